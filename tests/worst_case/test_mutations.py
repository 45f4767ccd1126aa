"""Every rule matters: a copy of the solver with one rule broken no longer agrees with enumeration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certcal._kernels import signs as kernels
from certcal.metrics import ece
from certcal.worst_case import calibration_error
from tests.worst_case import naive

# Enough small problems of every kind that each mistake shows in some of them.
PROBLEMS = [naive.instance(seed, n=8, bins=6) for seed in range(140)]
EXPECTED = [naive.worst_by_signs(p) for p in PROBLEMS]


def disagreements(values: list[float]) -> int:
    return sum(abs(value - expected) > 1e-9 for value, expected in zip(values, EXPECTED, strict=True))


# --------------------------------------------------------------------------------------------------- the rules by hand


def test_the_four_rules_by_hand_agree_with_enumeration() -> None:
    assert disagreements([naive.worst_by_runs(p) for p in PROBLEMS]) == 0


@pytest.mark.parametrize("broken", naive.BROKEN)
def test_each_rule_broken_by_hand_disagrees_with_enumeration(broken: str) -> None:
    assert disagreements([naive.worst_by_runs(p, broken) for p in PROBLEMS]) >= 3


# ------------------------------------------------------------------------------------------------ the kernel's own text

# rule: (text in the kernel, what it is replaced with)
RULES = {
    "correct in '+': stays at its lower end": (
        "stay_right[right_low[r]] += right_sums[r, 1]",
        "stay_right[right_low[r]] -= right_sums[r, 2]",
    ),
    "correct in '+': counts itself": (
        "stay_right[right_low[r]] += right_sums[r, 1]",
        "stay_right[right_low[r]] += right_sums[r, 0]",
    ),
    "correct below '+': goes up to the first edge": ("gain = up[t]", "gain = up[t - 1]"),
    "correct below '+': only if it reaches the bin": (
        "right_high[right_order[next_right]] < t",
        "right_high[right_order[next_right]] < t - 1",
    ),
    "correct below '+': also if it just reaches the bin": (
        "right_high[right_order[next_right]] < t",
        "right_high[right_order[next_right]] <= t",
    ),
    "correct without '+': goes to its upper end": (
        "stuck[right_low[r]] += right_sums[r, 2]",
        "stuck[right_low[r]] += 0.0",
    ),
    "correct without '+': not to its lower end": (
        "stuck[right_low[r]] += right_sums[r, 2]",
        "stuck[right_low[r]] -= right_sums[r, 1]",
    ),
    "correct without '+': no longer counts as reaching": (
        "reach[right_low[r]] -= right_sums[r, 0]",
        "reach[right_low[r]] -= 0.0",
    ),
    "incorrect in '-': stays at its upper end": (
        "stay_wrong[wrong_high[r]] += wrong_sums[r, 1]",
        "stay_wrong[wrong_high[r]] -= wrong_sums[r, 2]",
    ),
    "incorrect above '-': comes down to the last edge": ("down[b] * down_to[t]", "down[b] * down_to[b + 1]"),
    "incorrect above '-': not to the edge below": ("down[b] * down_to[t]", "down[b] * down_to[max(t - 1, 0)]"),
    "incorrect above '-': only if it reaches the bin": (
        "wrong_low[wrong_order[next_wrong]] < t",
        "wrong_low[wrong_order[next_wrong]] <= t",
    ),
    "incorrect above '-': also if it just reaches the bin": (
        "wrong_low[wrong_order[next_wrong]] < t",
        "wrong_low[wrong_order[next_wrong]] < t - 1",
    ),
    "incorrect without '-': goes to its lower end": (
        "held[wrong_high[r]] += wrong_sums[r, 2]",
        "held[wrong_high[r]] -= wrong_sums[r, 1]",
    ),
    "incorrect without '-': is not forgotten": (
        "held[wrong_high[r]] += wrong_sums[r, 2]",
        "held[wrong_high[r]] += 0.0",
    ),
    "incorrect with '-': is no longer held": ("held[wrong_high[r]] -= wrong_sums[r, 2]", "held[wrong_high[r]] -= 0.0"),
}

# Where samples are placed, given the signs: the same rules once more.
PLACES = {
    "correct without '+' goes to its upper end": (
        "chosen[i], out[i] = high_bin[i], upper[i]",
        "chosen[i], out[i] = low_bin[i], lower[i]",
    ),
    "correct in '+' stays at its lower end": (
        "chosen[i], out[i] = p, lower[i]",
        "chosen[i], out[i] = p, upper[i]",
    ),
    "correct below '+' goes to the bin's edge": (
        "inside = edges[p] if closed_left",
        "inside = lower[i] if closed_left",
    ),
    "the bin's edge is outside when bins are closed on the right": ("np.nextafter(edges[p], 2.0)", "edges[p]"),
    "incorrect without '-' goes to its lower end": (
        "chosen[i], out[i] = low_bin[i], lower[i]",
        "chosen[i], out[i] = high_bin[i], upper[i]",
    ),
    "incorrect in '-' stays at its upper end": (
        "chosen[i], out[i] = q, upper[i]",
        "chosen[i], out[i] = q, lower[i]",
    ),
    "incorrect above '-' comes down to the bin's edge": ("else edges[q + 1]", "else upper[i]"),
    "the bin's edge is outside when bins are closed on the left": ("np.nextafter(edges[q + 1], -1.0)", "edges[q + 1]"),
}


def recompiled(old: str, new: str) -> dict[str, Any]:
    """The kernels as plain Python, made from their source with one text replaced."""
    source = Path(kernels.__file__).read_text()
    assert source.count(old) == 1, f"{old!r} is in the kernel {source.count(old)} times; follow its new wording here"
    names: dict[str, Any] = {"__name__": "patched"}
    exec(compile(source.replace(old, new), "patched", "exec"), names)
    return {name: getattr(value, "interpreted", value) for name, value in names.items()}


def values_with(monkeypatch: pytest.MonkeyPatch, solver: Callable[..., Any]) -> list[float]:
    monkeypatch.setattr(kernels, "best_runs", solver)
    return [calibration_error(*p.arguments, **p.options).value for p in PROBLEMS]


def witnesses_with(monkeypatch: pytest.MonkeyPatch, placer: Callable[..., Any]) -> list[float]:
    """Plain errors of the witnesses; those outside their intervals count as none."""
    monkeypatch.setattr(kernels, "place", placer)
    out: list[float] = []
    for p in PROBLEMS:
        z = calibration_error(*p.arguments, **p.options).witness
        inside = bool(((z >= p.lower) & (z <= p.upper)).all())
        out.append(ece(z, p.correct, **p.options) if inside else np.nan)
    return out


def missed(values: list[float]) -> int:
    return sum(not abs(value - expected) <= 1e-9 for value, expected in zip(values, EXPECTED, strict=True))


def test_the_kernel_as_plain_python_agrees_with_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    unchanged = recompiled("gain = up[t]", "gain = up[t]")
    assert disagreements(values_with(monkeypatch, unchanged["best_runs"])) == 0
    assert missed(witnesses_with(monkeypatch, unchanged["place"])) == 0


@pytest.mark.parametrize("name", RULES)
def test_each_rule_broken_in_the_kernel_disagrees_with_enumeration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = recompiled(*RULES[name])["best_runs"]
    assert disagreements(values_with(monkeypatch, solver)) >= 2


@pytest.mark.parametrize("name", PLACES)
def test_each_place_broken_in_the_kernel_is_seen_in_the_witness(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    placer = recompiled(*PLACES[name])["place"]
    assert missed(witnesses_with(monkeypatch, placer)) >= 2


def test_always_taking_one_sign_everywhere_disagrees_with_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = recompiled("worth = minus[t]", "worth = minus[t] if t == 0 else -np.inf")["best_runs"]
    assert disagreements(values_with(monkeypatch, solver)) >= 2
