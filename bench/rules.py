"""Which bin rule a library follows, found by asking it about pairs of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

Ece = Callable[[Any, Any], float]
APART, TOGETHER, DROPPED = "apart", "together", "dropped"
TENTHS = [k / 10 for k in range(11)]


def pair(ece: Ece, low: float, high: float, dtype: str) -> str:
    """Whether two confidences share a bin, from the ECE of the two alone.

    The lower one is given outcome 1 and the higher one outcome 0, so their gaps have opposite signs: they cancel in a
    shared bin and add up otherwise. A value that fits neither means that one of the two was not counted.
    """
    value = ece(np.array([low, high], dtype), np.array([1, 0], np.uint8))
    options = {TOGETHER: abs((1 - low) - high) / 2, APART: ((1 - low) + high) / 2}
    near = [name for name, expected in options.items() if abs(value - expected) < 1e-5]
    return near[0] if near else DROPPED


def groups(ece: Ece, values: list[float], dtype: str) -> str:
    """Confidences grouped by bin, such as ``0 .1 │ .2``; a sample that is not counted is in brackets."""
    text = short(values[0])
    for low, high in pairwise(values):
        found = pair(ece, low, high, dtype)
        if found == DROPPED and low == values[0]:
            text = f"({text}) │ {short(high)}"
        else:
            text += (" " if found == TOGETHER else " │ ") + short(high)
    return text


def short(value: float) -> str:
    return f"{value:g}".replace("0.", ".") if 0 < value < 1 else f"{value:g}"


def count_bins(ece: Ece) -> int:
    """Number of bins between 0 and 1, from 1000 neighbouring pairs."""
    points = [(i + 0.5) / 1001 for i in range(1001)]
    return 1 + sum(pair(ece, low, high, "float64") != TOGETHER for low, high in pairwise(points))


# --- The rules that are in use

Assign = Callable[[Any, int], Any]


def _searched(edges: Callable[[int], Any], side: str) -> Assign:
    return lambda p, bins: np.searchsorted(edges(bins), p.astype(np.float64), side=side)


def _torch(p: Any, bins: int) -> Any:
    import torch

    edges = torch.linspace(0, 1, bins + 1, dtype=getattr(torch, str(p.dtype))).numpy()
    return np.searchsorted(edges, p, side="right")


def _exact(p: Any, bins: int, closed: str) -> Any:
    edges = np.array([m / bins for m in range(1, bins)], p.dtype)
    return np.searchsorted(edges, p, side="right" if closed == "left" else "left")


RULES: dict[str, Assign] = {
    "exact edges, [a, b), the last closed": lambda p, bins: _exact(p, bins, "left"),
    "exact edges, (a, b], the first closed": lambda p, bins: _exact(p, bins, "right"),
    "`np.linspace` edges, [a, b), the last closed": _searched(lambda m: np.linspace(0, 1, m + 1)[1:-1], "right"),
    "`np.linspace` edges, (a, b], 0 in no bin": _searched(lambda m: np.linspace(0, 1, m + 1), "left"),
    "`int(p / (1 / M))`: 1 has a bin of its own": lambda p, bins: (p / (1.0 / bins)).astype(int),
    "`torch.linspace` edges, [a, b): 1 has a bin of its own": _torch,
    "M − 1 bins from `np.linspace(0, 1, M)`, (a, b]: 0 has a bin of its own": _searched(
        lambda m: np.linspace(0, 1, m), "left"
    ),
    "edges from 0 to 1 + 1e-8, [a, b)": _searched(lambda m: np.linspace(0, 1 + 1e-8, m + 1), "right"),
}


def exact_error(assign: Assign, bins: int, drops_zero: bool) -> Ece:
    """ECE with a rule, in exact arithmetic on the given floats."""

    def ece(p: Any, y: Any) -> float:
        kept = [i for i in range(len(p)) if not (drops_zero and p[i] == 0)]
        where, sums = assign(p, bins), dict[int, Fraction]()
        for i in kept:
            sums[int(where[i])] = sums.get(int(where[i]), Fraction(0)) + Fraction(float(p[i])) - int(y[i])
        return float(sum(map(abs, sums.values())) / len(kept))

    return ece


@dataclass(frozen=True)
class Fingerprint:
    """What is seen of a library's bins from outside: bins of tenths in two precisions, and how many bins there are."""

    float64: str
    float32: str
    bins: int


def fingerprint(ece: Ece) -> Fingerprint:
    """Take the fingerprint of an ECE with ten bins."""
    return Fingerprint(groups(ece, TENTHS, "float64"), groups(ece, TENTHS, "float32"), count_bins(ece))


def explain(seen: Fingerprint) -> list[str]:
    """The rules with the same fingerprint."""
    return [
        name
        for name, assign in RULES.items()
        if fingerprint(exact_error(assign, 10, name.endswith("0 in no bin"))) == seen
    ]
