"""Tables of experiments/recalibration.py."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from _recalibration_lending import Lending
from _recalibration_maps import Difference, Fit, Row
from _running import markdown

from certcal.worst_case import Information

DIFFERENCES = {
    "brier": "certified Brier score",
    "error": "exact error",
    "clean_brier": "clean Brier score",
    "clean_ece": "clean ECE",
}

CHANGES = {
    "profit": "profit",
    "attacked": "under an attack",
    "shifted": "if those who will default shift",
    "worst": "if anybody shifts",
    "hidden": "unannounced losses",
}


def up(value: float) -> str:
    """Per cent with two decimals, rounded up: for what is at most."""
    return _signed(math.ceil(1e4 * value - 1e-7) / 100)


def down(value: float) -> str:
    """Per cent with two decimals, rounded down: for what is at least."""
    return "–" if math.isnan(value) else _signed(math.floor(1e4 * value + 1e-7) / 100)


def _signed(value: float, form: str = ".2f") -> str:
    return f"{round(value, 2) + 0.0:{form}}".replace("-", "−")


def measured(lines: Sequence[tuple[str, str, Row, Fit]], what: str = "model") -> str:
    """One line per model (or what else it is) and map, in per cent; times in milliseconds."""
    head = [
        what,
        "map",
        "certified Brier score ≤",
        "skill ≥",
        "exact error ≤",
        "over all ≤",
        "population gain ≥",
        "clean Brier score",
        "clean ECE",
        "AUROC",
        "certified accuracy",
        "fit, ms",
    ]
    rows = [
        [
            model,
            name,
            up(row.brier),
            down(row.skill),
            up(row.error),
            up(row.error_all),
            down(row.gain),
            f"{100 * row.clean_brier:.2f}",
            f"{100 * row.clean_ece:.2f}",
            f"{100 * row.auroc:.1f}",
            f"{math.floor(1000 * row.accuracy + 1e-7) / 10:.1f}",
            f"{fit.milliseconds:.2f}" if fit.milliseconds else "",
        ]
        for model, name, row, fit in lines
    ]
    return markdown(head, rows)


def compared(
    lines: Sequence[tuple[str, str, Mapping[str, Difference]]], where: str, names: Sequence[str] = tuple(DIFFERENCES)
) -> str:
    """One line per comparison: differences in points, with their two kinds of spread."""
    head = ["first minus second", where, *(text for name in names for text in (DIFFERENCES[name], "splits"))]
    rows: list[list[str]] = []
    for what, place, found in lines:
        row = [what, place]
        for name in names:
            each = found[name]
            row.append(f"{_points(each.value)} [{_points(each.low)}, {_points(each.high)}]")
            row.append(f"{_points(each.mean)} ({_points(each.least)} to {_points(each.most)})")
        rows.append(row)
    return markdown(head, rows)


def _points(value: float) -> str:
    return _signed(100 * value, "+.2f")


def survives(lines: Sequence[tuple[str, str, Information, Row]]) -> str:
    """One line per place and model: the skill as it is, of the best map in hindsight, and of one fitted to others."""
    head = [
        "σ, R",
        "model",
        "skill as it is ≥",
        "of the best map for these very samples ≥",
        "of λ = 1, fitted to others ≥",
    ]
    rows = [
        [place, model, down(found.skill.value), down(found.best_skill.value), down(row.skill)]
        for place, model, found, row in lines
    ]
    return markdown(head, rows)


def changes(lines: Sequence[tuple[str, str, Sequence[tuple[float, float, float]]]]) -> str:
    """One line per radius and map: what the map changes, per 100 applicants."""
    head = ["R", "map", *CHANGES.values()]
    rows = [
        [
            radius,
            name,
            *(f"{_signed(v, '+.2f')} [{_signed(low, '+.2f')}, {_signed(high, '+.2f')}]" for v, low, high in found),
        ]
        for radius, name, found in lines
    ]
    return markdown(head, rows)


def lending(lines: Sequence[tuple[str, str, Lending]]) -> str:
    """One line per radius and map, per 100 applicants."""
    head = [
        "R",
        "map",
        "loans",
        "not paid back",
        "profit promised",
        "profit",
        "profit under an attack",
        "profit if those who will default shift ≥",
        "profit if anybody shifts ≥",
        "unannounced losses ≤",
    ]
    rows = [
        [
            radius,
            name,
            f"{found.loans:.1f}",
            f"{found.lost:.1f}",
            _signed(found.promised),
            _signed(found.profit),
            _signed(found.attacked),
            down(found.shifted / 100),
            down(found.worst / 100),
            up(found.hidden / 100),
        ]
        for radius, name, found in lines
    ]
    return markdown(head, rows)
