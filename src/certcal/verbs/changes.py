"""What changed? Two tables of predictions, measurements or bounds: old, new and the difference, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.progress import ProgressLike, as_reporter
from certcal._base.rounding import decimals
from certcal._base.signature import SEED, Option, Range, Takes, gather, settings_of, verb
from certcal._base.text import counted
from certcal._base.told import Told, first_by_name
from certcal.claims import Bound, Estimate, Interval, percent_text
from certcal.data.sources import PredictionSource, Table
from certcal.metrics import MetricEntry
from certcal.metrics.differences import (
    difference_interval,
    joint_interval,
    joint_level,
    metric_change,
    proper_scores,
    score_change,
)
from certcal.metrics.registry import check_names, entry_named
from certcal.predictions import Predictions
from certcal.result import Answer, Result
from certcal.verbs.bound import Bounds
from certcal.verbs.changed_answers import change_answer, judged_names
from certcal.verbs.compared_tables import ComparedPredictions, Pairing, pair_columns, pair_rows, read_side, two_scores
from certcal.verbs.measure import MeasuredGroup, Measurement, measure
from certcal.verdict import Candidate

if TYPE_CHECKING:
    from certcal.bounds import DifferenceBounds

_NO_ROWS = "rows are not paired: measurements hold none, so compare the tables themselves for paired differences"
_TASKS = {"binary": "binary scores", "top-label": "confidences of the predicted class", "multiclass": "class scores"}


@dataclass(frozen=True)
class ChangeSettings(Told):
    """How two tables of predictions are compared; ``compare(old, new, **vars(settings))`` does it again."""

    pair: str
    bins: tuple[int, ...]
    closed: str
    metrics: tuple[Any, ...]
    level: float
    seed: int
    bounds: bool
    delta: float

    def __post_init__(self) -> None:
        check_names(self.metrics)


@dataclass(frozen=True)
class Change(PlainValues, keys="name old new difference interval verdict?"):
    """One number in two results."""

    name: str
    """Name of the metric or of the bound's method."""
    old: Estimate | Bound
    new: Estimate | Bound
    """The claims."""
    interval: Interval | None = None
    """Interval of the difference, if there is one."""

    @property
    def entry(self) -> MetricEntry | None:
        """The metric; None for a bound or a metric of one's own."""
        return None if isinstance(self.new, Bound) else entry_named(self.name)

    @property
    def difference(self) -> float:
        """The new value minus the old; undefined for a test, whose statistics and p-values are not subtracted."""
        test = self.entry is not None and self.entry.test
        return math.nan if test else float(self.new.value) - float(self.old.value)

    @property
    def gain(self) -> Interval | None:
        """By how much the new value is better: lower, higher, or nearer to the ideal; None where nothing is better."""
        better = "neither" if self.entry is None else self.entry.better
        spread = self.interval
        if better == "neither" or spread is None:
            return None
        ends = -spread.upper, -spread.lower
        if better == "higher":
            ends = spread.lower, spread.upper
        elif not isinstance(better, str):
            (near, far), (nearest, farthest) = (_distances(each, better) for each in (self.old, self.new))
            ends = near - farthest, far - nearest
        return replace(spread, lower=ends[0], upper=ends[1])

    @property
    def verdict(self) -> Literal["better", "worse", "unclear"] | None:
        """Whether the new value is better, beyond the interval; None where neither is."""
        found = self.gain
        return None if found is None else "better" if found.lower > 0 else "worse" if found.upper < 0 else "unclear"

    @property
    def changed(self) -> bool | None:
        """Whether the interval of the difference excludes 0; None without an interval."""
        spread = self.interval
        if spread is None or math.isnan(spread.lower + spread.upper):
            return None
        return spread.lower > 0 or spread.upper < 0

    @property
    def sentence(self) -> str:
        """Old, new, and what the interval of the difference shows."""
        said = f"{self.name} was {decimals(self.old)} and is {decimals(self.new)}"
        said += "" if math.isnan(self.difference) else f", a difference of {self.difference:.4f}"
        spread, verdict = self.interval, "" if self.verdict is None else f": {self.verdict}"
        within = "" if spread is None else f" ({' to '.join(spread.ends())}, {percent_text(spread.level)})"
        return f"{said}{within}{verdict}."

    @property
    def claim(self) -> Estimate:
        """The difference as an estimate."""
        n = min(self.old.n, self.new.n)
        return Estimate(f"difference_{self.name}", self.difference, n, self.new.settings, self.interval)


def _distances(value: Any, ideal: float) -> tuple[float, float]:
    """The smallest and the largest distance of an interval from what would be ideal."""
    lower, upper = value.interval.lower - ideal, value.interval.upper - ideal
    return max(lower, -upper, 0.0), max(-lower, upper)


@dataclass(frozen=True, eq=False, repr=False)
class ChangeComparison(Result):
    """Two tables, two measurements, or two results of bounds, side by side.

    Examples
    --------
    >>> import certcal
    >>> old = certcal.measure({"confidence": [0.9, 0.8], "correct": [1, 0]}, source="old")
    >>> new = certcal.measure({"confidence": [0.9, 0.6], "correct": [1, 0]}, source="new")
    >>> round(certcal.compare(old, new)["ece"].difference, 3)
    -0.1
    """

    view: ClassVar[str] = "certcal.report.views.changes"
    schema_version: ClassVar[int] = 2

    old: Measurement | Bounds
    new: Measurement | Bounds
    """What was measured, or bounded."""
    rows: tuple[Change, ...]
    """Every number that both have."""
    unmatched: tuple[str, ...] = ()
    """Names of those that only one has."""
    groups: Mapping[str, tuple[Change, ...]] = field(default_factory=dict[str, "tuple[Change, ...]"])
    """The numbers of each group that both have."""
    pairing: Pairing | None = None
    """Which rows are the same sample; of two measurements none, since they hold no rows. None for bounds."""
    bounds: DifferenceBounds | None = None
    """Bounds on the differences, where they were asked for."""
    conventions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How it was computed."""
    settings: ChangeSettings | None = None
    """What was asked of tables: ``compare(old, new, **vars(c.settings))`` gives the same. None for two results."""
    judged: tuple[Change, ...] = ()
    """What the answer is about, the number that decides first, at levels of its own."""

    @property
    def of_tables(self) -> bool:
        """Whether tables were compared: then differences of means are those of their rows."""
        return bool(self.conventions)

    @property
    def kind(self) -> str:
        """What is compared: "estimates" or "bounds"."""
        return "bounds" if isinstance(self.new, Bounds) else "estimates"

    def named(self) -> Mapping[str, Change]:
        """The numbers that both have, with their differences; of several numbers of bins the first."""
        return first_by_name(self.rows)

    def __repr__(self) -> str:
        return f"<ChangeComparison of {counted(len(self.rows), self.kind[:-1])}: {self.old.source} → {self.new.source}>"

    @property
    def sources(self) -> Sequence[str]:
        """What was compared."""
        return (self.old.source, self.new.source)

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seed of resampling and of the bounds' split."""
        return {"resampling and split": self.conventions["seed"]} if "seed" in self.conventions else {}

    @property
    def paired(self) -> bool:
        """Whether rows are the same samples."""
        return self.pairing is not None and self.pairing.by is not None

    @property
    def headline(self) -> Change | None:
        """What decides: a proper score of the same rows, else the calibration error; None with nothing in common."""
        return next(iter(self.judged), next(iter(self.rows), None))

    @property
    def answer(self) -> Answer:
        """Better or worse, by what, and what to do next: see :mod:`certcal.verbs.changed_answers`."""
        return super().answer if self.kind == "bounds" or not self.judged else change_answer(self)

    def claims(self) -> Sequence[Any]:
        """Bounds on differences, differences of estimates (that of the headline first), the new numbers, the old."""
        rows = self._ordered()
        bounds = () if self.bounds is None else (self.bounds.binned, self.bounds.brier)
        differences = [row.claim for row in rows if not math.isnan(row.difference)] if self.kind == "estimates" else []
        return (*bounds, *differences, *(row.new for row in rows), *(row.old for row in rows))

    def _ordered(self) -> list[Change]:
        """The rows, that of the headline first; a headline that no row repeats stands before them."""
        first = self.headline
        if first is None or self.kind == "bounds":
            return list(self.rows)
        same = next(
            (row for row in self.rows if (row.name, row.old.settings) == (first.name, first.old.settings)), first
        )
        return [same, *(row for row in self.rows if row is not same)]

    def candidates(self) -> Sequence[Candidate]:
        """Differences by "difference NAME", the new numbers by their names, the old ones by "old NAME"."""
        found: list[Candidate] = []
        if self.bounds is not None:
            brier = "brier_score" if self.conventions.get("task") == "binary" else "top_label_brier_score"
            for name, both in (("ece", self.bounds.binned), (brier, self.bounds.brier)):
                found += [Candidate(each, (f"difference_{name}",)) for each in (both.upper, both.lower)]
        for group, members in ((None, self._ordered()), *self.groups.items()):
            if self.kind == "estimates":
                found += [self._candidate(row.claim, group) for row in members if not math.isnan(row.difference)]
            found += [self._candidate(row.new, group, self.new, (row.name, f"new_{row.name}")) for row in members]
            old = (self._candidate(row.old, group, self.old) for row in members)
            found += [replace(each, claim=_rename_claim(each.claim, f"old {each.claim.name}")) for each in old]
        return found

    def _candidate(self, claim: Any, group: str | None, side: Any = None, names: tuple[str, ...] = ()) -> Candidate:
        """A claim about all samples or a group; of one side also why it is undefined."""
        part = (side or self.new).whole if group is None else (side or self.new).groups[group]
        why = side.why_undefined(claim, cast("MeasuredGroup", part)) if isinstance(side, Measurement) else ""
        if group is None:
            return Candidate(claim, names, why=why)
        return Candidate.of_group(claim, names, part, self.new.by, why=why)

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        document: dict[str, Any] = {
            "type": f"comparison of {self.kind}",
            "old": self.old.source,
            "new": self.new.source,
            **({} if self.pairing is None else {"pairing": self.pairing.to_dict(), "n": self.new.n}),
            **({"conventions": dict(self.conventions)} if self.conventions else {}),
            **({} if self.headline is None else {"headline": self.headline.to_dict()}),
            "rows": [row.to_dict() for row in self.rows],
            "unmatched": list(self.unmatched),
        }
        if self.bounds is not None:
            document["bounds"] = self.bounds.to_dict()
        if self.groups:
            document["groups"] = [
                {"group": name, "rows": [row.to_dict() for row in rows]} for name, rows in self.groups.items()
            ]
        return document

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per group and number."""
        lines = [(name, row) for name, rows in (("all", self.rows), *self.groups.items()) for row in rows]
        spreads = [row.interval.to_dict() if row.interval else {} for _, row in lines]
        return {
            **({"group": [name for name, _ in lines]} if self.groups else {}),
            "name": [row.name for _, row in lines],
            "bins": [row.old.settings.get("bins") for _, row in lines],
            "old": [float(row.old.value) for _, row in lines],
            "new": [float(row.new.value) for _, row in lines],
            "difference": [row.difference for _, row in lines],
            "verdict": [row.verdict for _, row in lines],
            **{key: [spread.get(key) for spread in spreads] for key in ("lower", "upper", "level", "method")},
        }


def _rename_claim(claim: Any, name: str) -> Any:
    return replace(claim, name=name)


def compare_results(*results: Any) -> ChangeComparison:
    """Two measurements, or two results of bounds; differences lie between those of the ends of their intervals."""
    if len(results) != 2 or type(results[0]) is not type(results[1]):
        raise InputError("measurements and bounds are compared in pairs of one kind; pass two of the same kind")
    old, new = results
    if isinstance(old, Bounds):
        before, after = dict(old.bounds), dict(new.bounds)
        rows = tuple(Change(name, before[name], after[name]) for name in before if name in after)
        rest = (name for name in (*before, *after) if not (name in before and name in after))
        return ChangeComparison(old, new, rows, tuple(dict.fromkeys(rest)))
    rows, rest = _match_numbers(old.whole, new.whole)
    judged = tuple(row for name in judged_names(new.task, paired=False) for row in rows if row.name == name)
    theirs = {group.name: group for group in old.groups}
    groups = {group.name: _match_numbers(theirs[group.name], group)[0] for group in new.groups if group.name in theirs}
    return ChangeComparison(old, new, rows, rest, groups, Pairing(None, _NO_ROWS), judged=judged)


def _match_numbers(
    old: MeasuredGroup,
    new: MeasuredGroup,
    before: Predictions | None = None,
    after: Predictions | None = None,
    level: float = 0.95,
    *,
    paired: bool = False,
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Every number that both have, and the names of the others."""
    one, other = ({(row.name, repr(sorted(row.settings.items()))): row for row in each.rows} for each in (old, new))
    rows: list[Change] = []
    for key in one:
        if key in other:
            if before is None or after is None:
                spread = joint_interval(one[key], other[key])
            else:
                spread = difference_interval(one[key], other[key], before, after, level, paired=paired)
            rows.append(Change(key[0], one[key], other[key], spread))
    rest = dict.fromkeys(key[0] for key in (*one, *other) if not (key in one and key in other))
    return tuple(rows), tuple(rest)


@verb()
def compare_tables(
    old: Table,
    new: Table,
    *,
    key: str | None = None,
    by: str | Iterable[Any] | None = None,
    score: str | Iterable[Any] | None = None,
    outcome: str | Iterable[Any] | None = None,
    positive: Any = None,
    negative: Any = None,
    confidence: str | Iterable[Any] | None = None,
    correct: str | Iterable[Any] | None = None,
    prediction: str | Iterable[Any] | None = None,
    label: str | Iterable[Any] | None = None,
    probabilities: str | Iterable[Any] | None = None,
    logits: str | Iterable[Any] | None = None,
    weight: str | Iterable[Any] | None = None,
    decimal: Literal[".", ","] | None = None,
    percent: bool | None = None,
    encoding: str | None = None,
    missing: Literal["drop"] | None = None,
    skip: int | None = None,
    sheet: str | None = None,
    columns: Mapping[str, Any] | None = None,
    names: tuple[str, str] | None = None,
    pair: Literal["key", "order", "none"] = "key",
    bins: Annotated[int | Iterable[int], Range(1, 1_000_000)] = 15,
    closed: Literal["left", "right"] = "left",
    metrics: Annotated[
        str | Callable[..., float] | Iterable[str | Callable[..., float]], Takes("text"), Option("--metric", "NAME")
    ] = (),
    level: Annotated[float, Takes("level")] = 0.95,
    seed: Annotated[int, SEED] = 0,
    bounds: bool = False,
    delta: Annotated[float, Takes("failure")] = 0.05,
    progress: ProgressLike = True,
) -> ChangeComparison:
    """Compare two tables of predictions, or two scores of one, row by row where rows are the same samples.

    See :func:`compare`.
    """
    progress = as_reporter(progress)
    values = locals()  # a comprehension has its own
    asked = gather(ChangeSettings, values)
    progress.stage("reading")
    by = list(by) if isinstance(by, Iterator) else by
    scores = two_scores(score)
    of_one = new is old and scores is not None
    own: Any = ({}, {}) if scores is None else ({"score": scores[0]}, {"score": scores[1]})
    called = scores if of_one and scores is not None else ("old", "new")
    both = [
        PredictionSource("compare", (each,)).read(columns, values | more)
        for each, more in zip((old, new), own, strict=True)
    ]
    sides = [
        read_side(data, roles, by, name, other, of_one=of_one)
        for (data, roles), name, other in zip(both, names or (None, None), called, strict=True)
    ]
    tasks = [side.predictions.task for side in sides]
    if tasks[0] != tasks[1]:
        said = [f"{side.name} has {_TASKS[task]}" for side, task in zip(sides, tasks, strict=True)]
        raise InputError(f"{said[0]} and {said[1]}; compare two tables of one kind")
    sides, pairing = pair_columns(sides) if of_one else pair_rows(sides, key, asked.pair)
    progress.stage("comparing")
    return compare_predictions(*sides, pairing=pairing, by=by, settings=asked)


def compare_predictions(
    old: ComparedPredictions, new: ComparedPredictions, *, pairing: Pairing, by: Any = None, settings: ChangeSettings
) -> ChangeComparison:
    """Compare what was read and paired."""
    sides, paired = (old, new), pairing.by is not None
    measured = [_measure_side(side, by, settings) for side in sides]
    level = settings.level
    before, after = old.predictions, new.predictions
    rows, rest = _match_numbers(measured[0].whole, measured[1].whole, before, after, level, paired=paired)
    theirs = {group.name: group for group in measured[0].groups}
    groups: dict[str, tuple[Change, ...]] = {}
    for group in measured[1].groups:
        if group.name in theirs:
            chosen = [np.flatnonzero(side.groups == group.name) for side in sides]
            one, two = (side.predictions.select(rows) for side, rows in zip(sides, chosen, strict=True))
            together = paired and np.array_equal(chosen[0], chosen[1])  # a sample may have moved to another group
            groups[group.name] = _match_numbers(theirs[group.name], group, one, two, level, paired=together)[0]
    conventions = {
        "task": after.task,
        "level": level,
        **{key: value for key, value in measured[1].conventions.items() if key not in ("level", "streamed")},
        "seed": settings.seed,
    }
    bounds = _bound_difference(before, after, pairing, settings) if settings.bounds else None
    if bounds is not None:
        conventions["delta"] = settings.delta
    judged = judged_changes(before, after, settings, paired=paired)
    return ChangeComparison(
        measured[0], measured[1], rows, rest, groups, pairing, bounds, conventions, settings, judged
    )


def judged_changes(
    before: Predictions, after: Predictions, settings: ChangeSettings, *, paired: bool
) -> tuple[Change, ...]:
    """What the answer is about, each at its share of the level."""
    found: list[Change] = []
    for name, level in judged_names(after.task, paired=paired).items():
        if name in proper_scores(after.task):
            old, new, spread = score_change(before, after, level, paired=paired)
        else:
            bins, closed = settings.bins[0], settings.closed
            old, new, spread = metric_change(name, before, after, level, paired=paired, bins=bins, closed=closed)
        found.append(Change(new.name, old, new, spread))
    return tuple(found)


def answers(old: Predictions, new: Predictions, names: tuple[str, str], **options: Any) -> ChangeComparison:
    """Compare two answers for the same samples, such as before and after a map, with options of :func:`compare`."""
    sides = [
        ComparedPredictions(
            data, name, data, None, {"task": data.task, "kind": data.kind}, counted(len(data), "sample")
        )
        for data, name in zip((old, new), names, strict=True)
    ]
    asked = settings_of(compare_tables, ChangeSettings, **options)
    return compare_predictions(
        *sides, pairing=Pairing("order", "both are answers for the same samples"), settings=asked
    )


def _measure_side(side: ComparedPredictions, by: Any, settings: ChangeSettings) -> Measurement:
    groups = None if side.groups is None else side.groups
    found = measure(
        side.predictions,
        by=groups,
        source=side.name,
        bins=settings.bins,
        closed=cast("Any", settings.closed),
        metrics=settings.metrics,
        level=joint_level(settings.level),  # both hold together at the level
        seed=settings.seed,
    )
    named = by if isinstance(by, str) else found.by
    return replace(found, about=side.about, description=side.description, by=named)


def _bound_difference(
    old: Predictions, new: Predictions, pairing: Pairing, settings: ChangeSettings
) -> DifferenceBounds:
    from certcal.bounds import difference

    if pairing.by is None:
        remedy = "pair the rows by a key, or bound each table alone"
        raise InputError("bounds on a difference need paired rows", argument="bounds", remedy=remedy)
    if old.sample_weight is not None or new.sample_weight is not None:
        raise InputError("bounds need samples of equal weight", argument="bounds", remedy="leave the weights out")
    return difference(
        new.confidence,
        new.correct,
        old.confidence,
        old.correct,
        settings.bins[0],
        settings.delta,
        closed=settings.closed,
        seed=settings.seed,
        names=("new", "old"),
    )
