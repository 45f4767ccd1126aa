"""What a map does to each group: log loss first, then slope, then ranges that remain wrong.

*What is random.* The samples of a group, independent draws; the map did not see those it is judged on. *What is
claimed.* The changes of the log loss of all groups lie in their intervals together (each of k groups has 1 %/k), at a
level that is reached as samples become many. Ranges that remain wrong are proven, also for all groups together.

*Together.* What an answer shows of a map is wrong with probability at most 5 %: one end of the interval of the log loss
has 2.5 % of it, one of the change by correcting groups 0.5 %, one of all groups 0.5 %, and ranges 1.5 %, of which those
of groups have 1 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certcal._base.json import PlainValues
from certcal.claims import Estimate
from certcal.data.grouping import PredictionGroup
from certcal.metrics.differences import metric_change, proper_scores
from certcal.predictions import Predictions
from certcal.verbs.answers import SEGMENTS, Diagnosis
from certcal.verbs.changes import Change

Rows = NDArray[np.int64]

ERROR = 0.01


@dataclass(frozen=True, eq=False)
class GroupChange(
    PlainValues, keys="group by where n score? after=alone? slope_before? slope_after? wrong_before? wrong_after"
):
    """A group before and after a map; of real scores, which nothing is wrong with before, after it alone."""

    group: str
    by: str
    where: Mapping[str, str]
    n: int
    new: Estimate
    """Log loss after the map; the Brier score where that is infinite."""
    score: Change | None
    """The same before and after; its interval holds with those of all other groups."""
    slope_before: float | None
    slope_after: float | None
    """Calibration slope of binary scores."""
    wrong_before: int | None
    wrong_after: int
    """Ranges of scores that are wrong."""

    @property
    def alone(self) -> Estimate | None:
        """The number after the map, where nothing stands beside it."""
        return self.new if self.score is None else None

    @property
    def verdict(self) -> str | None:
        """Whether the map makes the group better, worse, or that is unclear."""
        return None if self.score is None else self.score.verdict


def group_changes(
    groups: Sequence[PredictionGroup], before: Predictions | None, after: Predictions, rows: Rows | None
) -> tuple[GroupChange, ...]:
    """Each group before and after a map; ``rows`` are those of all samples that it was judged on, None for all."""
    place = None if rows is None else np.full(1 + max(each.rows.max() for each in groups), -1)
    if place is not None and rows is not None:
        kept = rows[rows < place.size]
        place[kept] = np.flatnonzero(rows < place.size)
    parts = [(each, each.rows if place is None else place[each.rows]) for each in groups]
    parts = [(each, own[own >= 0]) for each, own in parts]
    w = after.sample_weight
    parts = [(each, own) for each, own in parts if own.size and (w is None or w[own].any())]
    names = proper_scores(after.task)
    for name in names:
        found = tuple(_change_of(each, own, before, after, name, len(parts)) for each, own in parts)
        scores = [each.score for each in found if each.score is not None]
        if name == names[-1] or all(math.isfinite(sum(_ends(each))) for each in scores):
            return found
    raise AssertionError(names)


def _ends(change: Change) -> tuple[float, ...]:
    spread = change.interval
    return (math.nan,) if spread is None else (spread.lower, spread.upper)


def _change_of(
    group: PredictionGroup,
    own: NDArray[np.int64],
    before: Predictions | None,
    after: Predictions,
    name: str,
    count: int,
) -> GroupChange:
    new = after.select(own)
    old = None if before is None else before.select(own)
    first, last, spread = metric_change(name, new if old is None else old, new, 1 - ERROR / count, paired=True)
    share = SEGMENTS / count
    was = None if old is None else len(Diagnosis.of(old, share).ranges)
    wrong = was, len(Diagnosis.of(new, share).ranges)
    score = None if old is None else Change(name, first, last, spread)
    return GroupChange(group.name, group.by, group.where, own.size, last, score, _slope(old), _slope(new), *wrong)


def _slope(predictions: Predictions | None) -> float | None:
    from certcal.metrics import measure

    if predictions is None or predictions.task != "binary":
        return None
    return float(measure(predictions, metrics=["calibration_slope"], bootstrap=0).rows[0].value)
