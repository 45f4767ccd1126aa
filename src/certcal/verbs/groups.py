"""Groups of a table: what was predicted of each and what happened, with intervals that hold for all of them.

*What is random.* The outcomes, given scores, weights and the columns that name the groups, independent of each other.
*What is claimed.* For every group at once, with the share of 5 % that an answer leaves them (99 %): limits of the mean
probability of outcome 1, of which observed/expected and the gap are functions, since the mean score of a group is
given. *Why.* The limits of one of k groups fail with probability at most α/k (Clopper and Pearson for draws that
differ, Hoeffding with weights), and groups may overlap, so the union bound is what adds them up. Slopes share α among
themselves in the same way; their intervals are asymptotic.

Groups are ordered by the p-value of their deviation, the smallest α at which their limits would leave out what was
predicted: the same tails, so that order and intervals never contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, SupportsIndex, TypeVar, overload

from certcal._base.checks import InputError
from certcal._base.rounding import LEAST_P
from certcal._base.text import did_you_mean
from certcal._base.told import table_of
from certcal.binning import BinTable
from certcal.claims import Estimate
from certcal.verbs.answers import SEGMENTS, ObservedRate, rate_of

Member = TypeVar("Member", bound=Any)


class ByName(tuple[Member, ...]):
    """Groups in their order, also by name.

    Examples
    --------
    >>> import certcal
    >>> m = certcal.measure([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], by=["a", "b", "a", "b"])
    >>> m.groups["b"].n, m.groups[0].name
    (2, 'a')
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Member: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Member, ...]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> Member | tuple[Member, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = next((each for each in self if each.name == key), None)
        if found is None:
            names = [str(each.name) for each in self]
            raise InputError(
                f"there is no group {key!r}", remedy=did_you_mean(key, names, f"there are {', '.join(names)}")
            )
        return found

    def __str__(self) -> str:
        return table_of(self) if self else "no groups"

    __repr__ = __str__


_OF_SCORES = ("events", "expected", "ratio", "ratio_interval")


@dataclass(frozen=True)
class GroupRate(
    ObservedRate,
    keys="events expected predicted observed ratio ratio_interval gap gap_interval slope? slope_interval? p direction "
    "level",
):
    """What was predicted of a group and what happened, with intervals that hold for all groups together."""

    p: float
    """Two-sided p-value of this group alone."""
    level: float
    """Of all groups together."""
    is_score: bool
    """Whether outcomes are events of a binary score, and not whether a prediction is right."""
    counted: bool
    """Whether outcomes can be counted: they have no weights."""
    slope: float | None = None
    slope_interval: tuple[float, float] | None = None
    """Calibration slope of a binary score, asymptotic."""

    @property
    def events(self) -> float:
        """Sum of the outcomes, each with its weight."""
        return round(self.observed * self.n) if self.counted else self.observed * self.weight

    @property
    def expected(self) -> float:
        """Sum of the scores."""
        return self.predicted * self.weight

    @property
    def order(self) -> tuple[float, float]:
        """What groups are ordered by: evidence, then size of the deviation."""
        return self.p, -abs(self.gap) * self.weight

    def to_dict(self) -> dict[str, Any]:
        """Plain values; events and their ratio of a binary score only."""
        return {key: value for key, value in super().to_dict().items() if self.is_score or key not in _OF_SCORES}

    def columns(self) -> Mapping[str, Any]:
        """One value per column of a table."""
        found = {name: getattr(self, name) for name in ("events", "expected", "predicted", "observed")}
        for name in ("ratio", "gap", "slope"):
            lower, upper = getattr(self, f"{name}_interval") or (None, None)
            found |= {name: getattr(self, name), f"{name}_lower": lower, f"{name}_upper": upper}
        blank = () if self.is_score else ("events", "expected", "ratio", "ratio_lower", "ratio_upper")
        return {**found, **dict.fromkeys(blank), "p": self.p}


def group_rates(
    groups: Sequence[tuple[BinTable, Estimate | None]], *, is_score: bool, level: float = 1 - SEGMENTS
) -> list[GroupRate]:
    """The rates of groups from the sums of their bins and their slopes; at the level that answers have for them."""
    share = (1 - level) / max(1, len(groups))
    return [
        GroupRate(
            **vars(rate_of(bins, share)),
            p=deviation_p(bins),
            level=level,
            is_score=is_score,
            counted=_is_unweighted(bins),
            **_slope(slope if is_score else None, share),
        )
        for bins, slope in groups
    ]


def _slope(row: Estimate | None, share: float) -> dict[str, Any]:
    if row is None or row.interval is None or not math.isfinite(row.value):
        return {}
    quantile = NormalDist().inv_cdf
    longer = quantile(1 - share / 2) / quantile((1 + row.interval.level) / 2)
    value = float(row.value)
    ends = (value + longer * (end - value) for end in (row.interval.lower, row.interval.upper))
    return {"slope": value, "slope_interval": tuple(ends)}


def deviation_p(bins: BinTable) -> float:
    """Two-sided p-value of the outcomes of all bins as one group, if their probabilities are the scores.

    That of the limits of :func:`certcal.bounds.clopper_pearson` for draws that differ: twice the smaller binomial tail
    at the mean score, of a single event n p̄, and 1 where that tail is above ¼ and no longer a limit. With weights it
    is that of Hoeffding's inequality.
    """
    from scipy.special import betainc

    weight, expected, events = (float(each.sum()) for each in (bins.weight, bins.confidence_sum, bins.correct_sum))
    if not _is_unweighted(bins):
        tail = math.exp(-2 * (events - expected) ** 2 / float(bins.squared_weight.sum()))
        return min(1.0, max(2 * tail, LEAST_P))
    n, mean = round(weight), min(1.0, max(0.0, expected / weight))
    tails: list[float] = []
    for hits, p in ((round(events), mean), (n - round(events), 1 - mean)):
        tails.append(1.0 if hits == 0 else n * p if hits == 1 else float(betainc(hits, n - hits + 1, p)))
    return max(2 * min(tails), LEAST_P) if min(tails) <= 0.25 else 1.0


def _is_unweighted(bins: BinTable) -> bool:
    return bool((bins.weight == bins.count).all() and (bins.squared_weight == bins.count).all())
