"""Certified networks of several seeds, compared in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from certcal.lab.plans.outcome import MISSING, Number, OurTable, Outcome, number_text

if TYPE_CHECKING:
    from certcal.lab.plans.certified import Settings
    from certcal.lab.plans.certified_layouts import CertifiedNetwork

_METRICS = {"CA": "accuracy", "exact": "exact", "recalibrated": "recalibrated"}


def paired_over_seeds(plan: Settings, networks: Sequence[CertifiedNetwork]) -> Outcome:
    """Means over seeds and baselines of each method, and differences from the first one with intervals of 95 %.

    The k-th network that a method makes of a baseline is paired with the k-th of the others; their differences are
    averaged over the baselines, and the interval is Student's, over the seeds.
    """
    methods = [each.row for each in plan.methods]
    rows = dict.fromkeys([*(each.row for each in plan.baselines), *methods])
    table: dict[str, list[Number]] = {f"{metric} | {row}": [] for metric in _METRICS for row in rows}
    table |= {f"{metric} − {methods[0]} | {row}": [] for metric in _METRICS for row in methods[1:]}
    for place in range(len(plan.radii)):
        for metric, key in _METRICS.items():
            found = {row: _by_seed(plan, networks, row, place, key) for row in rows}
            for row, values in found.items():
                table[f"{metric} | {row}"].append(100 * float(np.mean(values)) if values else MISSING)
            for row in methods[1:]:
                table[f"{metric} − {methods[0]} | {row}"].append(_difference(found[row], found[methods[0]]))
    notes = [
        "exact is the largest error that the certified intervals allow; recalibrated is that after a temperature "
        "fitted to the certified Brier score of the other half of the samples.",
        f"Differences are from {methods[0]} over the same seeds, in percentage points.",
    ]
    return Outcome([OurTable("table", [*plan.radii], table, "metric, method")], [], notes)


def _by_seed(plan: Settings, networks: Sequence[CertifiedNetwork], row: str, place: int, key: str) -> list[float]:
    """A metric of a method at a radius: one mean over the baselines that are fine-tuned for each seed."""
    columns: list[list[float]] = []
    for baseline in plan.baselines:
        mine = [each for each in networks if each.row == row and each.baseline == baseline]
        values = [value for each in mine if (value := each.value(place, key)) is not None]
        if mine and len(values) == len(mine):
            columns.append(values)
    return [float(np.mean(values)) for values in zip(*columns, strict=False)]


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> Number:
    """Mean of the paired differences with its interval."""
    pairs = 100 * (np.array(ours[: len(theirs)]) - np.array(theirs[: len(ours)]))
    if pairs.size < 2:
        return number_text(pairs[0]) if pairs.size else MISSING
    half = float(stdtrit(pairs.size - 1, 0.975)) * float(np.std(pairs, ddof=1)) / pairs.size**0.5
    middle = float(pairs.mean())
    return f"{number_text(middle)} [{number_text(middle - half)}, {number_text(middle + half)}]"
