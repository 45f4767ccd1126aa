"""Does a map help? The sentences of a recalibration: log loss first, then slope, then ranges that remain wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from certcal._base.rounding import round_outward
from certcal._base.text import counted
from certcal.result import Answer, Sentence
from certcal.verbs.answers import Diagnosis, command_for

if TYPE_CHECKING:
    from certcal.verbs.changes import Change, ChangeComparison

# What decides whether a map helps: proper scores, the first that was measured and is finite.
_PROPER = {
    "nll": "log loss",
    "top_label_nll": "log loss of the confidences",
    "brier_score": "Brier score",
    "top_label_brier_score": "Brier score of the confidences",
}


def deciding_change(change: ChangeComparison) -> Change | None:
    """The difference that decides: that of the log loss or, where it is infinite, of the Brier score."""
    rows = {row.name: row for row in change.rows}
    found = (rows[name] for name in _PROPER if name in rows)
    return next((row for row in found if math.isfinite(row.difference) and row.interval is not None), None)


def _signed(number: str) -> str:
    return number if number.startswith("-") else f"+{number}"


def map_answer(change: ChangeComparison, method: str, why: str | None, source: str, columns: Any) -> Answer:
    """The answer about a map and the samples it was judged on.

    Parameters
    ----------
    change
        The samples before and after.
    method
        Name of the map.
    why
        How it was chosen; None where it was given.
    source, columns
        Of the command that applies it.
    """
    row, told = deciding_change(change), list[Sentence]()
    helps = row is not None and bool(row.changed) and row.difference < 0
    if method == "none" and why is not None:
        told.append(Sentence("seen", why))
    elif row is not None:
        spread = row.interval
        assert spread is not None
        what = f"{_PROPER[row.name]} {float(row.old.value):.4f} before, {float(row.new.value):.4f} after"
        low, high = round_outward(spread.lower, "lower"), round_outward(spread.upper, "upper")
        by = f"{row.difference:+.4f} ({_signed(low)} to {_signed(high)})".replace("-", "−")
        data = {"quantity": f"difference_{row.name}", "value": row.difference, "interval": [spread.lower, spread.upper]}
        verdict = f"{method} helps" if helps else f"{method} makes it worse" if row.changed else "unclear"
        if row.changed:
            told.append(Sentence("shown", f"{verdict[0].upper()}{verdict[1:]}: {what}, {by}.", "asymptotic", data))
        else:
            told.append(Sentence("seen", f"Whether {method} helps is unclear: {what}, {by}.", data=data))
    slope = next((each for each in change.rows if each.name == "calibration_slope"), None)
    if slope is not None and method != "none" and math.isfinite(slope.difference):
        old, new = float(slope.old.value), float(slope.new.value)
        data = {"quantity": "calibration_slope", "value": new, "before": old, "ideal": 1.0}
        told.append(Sentence("seen", f"The calibration slope goes from {old:.2f} to {new:.2f}; ideal is 1.", data=data))
    found: Diagnosis | None = getattr(change.new, "diagnosis", None)
    if found is not None:
        left = len(found.ranges)
        told.append(
            Sentence(
                "shown", f"{counted(left, 'range')} of scores {'is' if left == 1 else 'are'} still wrong.", "proven"
            )
            if left
            else Sentence(
                "seen", f"{'After it no' if method != 'none' else 'No'} range of scores is shown to be wrong."
            )
        )
    if helps:
        command = command_for(["recalibrate", "fit"], "recalibrate", source, columns, "-o", "map.json")
        told.append(Sentence("next", "Keep the map, and apply it to new scores.", data={"command": command}))
    else:
        told.append(Sentence("next", "Use the scores as they are, or judge the map on more samples."))
    assumptions = ("these samples are independent draws from those that the map will see",)
    unsaid = ("anything about an attack, or about samples that are drawn differently",)
    return Answer(tuple(told), assumptions, unsaid)
