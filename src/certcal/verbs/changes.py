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
from certcal._base.signature import SEED, Option, Range, Takes, gather, settings_of, verb
from certcal._base.text import counted
from certcal.claims import Bound, Estimate, Interval
from certcal.data import IDENTIFIER, PredictionSource, Table, load_table, open_table, plain_name, sample_keys
from certcal.metrics import check_names
from certcal.metrics.differences import difference_interval, joint_interval, joint_level
from certcal.predictions import Predictions
from certcal.result import Result
from certcal.verbs.bound import Bounds
from certcal.verbs.measure import MeasuredGroup, Measurement, measure
from certcal.verdict import Candidate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certcal.bounds import DifferenceBounds

# Rows are paired by their order unasked where independent rows would agree on what was true less often than this.
_BY_CHANCE = 1e-6
_NO_ROWS = "rows are not paired: measurements hold none, so compare the tables themselves for paired differences"
_TASKS = {"binary": "binary scores", "top-label": "confidences of the predicted class", "multiclass": "class scores"}


@dataclass(frozen=True)
class ChangeSettings:
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
class Pairing(PlainValues):
    """Which rows of two tables are the same sample."""

    by: str | None
    """"key", "order", or None when rows are not paired."""
    why: str
    """How it was decided, for people."""
    key: str | None = None
    """The column of the key."""
    only_old: int = 0
    only_new: int = 0
    """Number of rows that only one table has; they are left out of everything."""


@dataclass(frozen=True)
class Change(PlainValues, keys="name old new difference interval"):
    """One number in two results."""

    name: str
    """Name of the metric or of the bound's method."""
    old: Estimate | Bound
    new: Estimate | Bound
    """The claims."""
    interval: Interval | None = None
    """Interval of the difference, if there is one."""

    @property
    def difference(self) -> float:
        """The new value minus the old."""
        return float(self.new.value) - float(self.old.value)

    @property
    def changed(self) -> bool | None:
        """Whether the interval of the difference excludes 0; None without an interval."""
        spread = self.interval
        if spread is None or math.isnan(spread.lower + spread.upper):
            return None
        return spread.lower > 0 or spread.upper < 0

    @property
    def claim(self) -> Estimate:
        """The difference as an estimate."""
        n = min(self.old.n, self.new.n)
        return Estimate(f"difference_{self.name}", self.difference, n, self.new.settings, self.interval)


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

    @property
    def of_tables(self) -> bool:
        """Whether tables were compared: then differences of means are those of their rows."""
        return bool(self.conventions)

    @property
    def kind(self) -> str:
        """What is compared: "estimates" or "bounds"."""
        return "bounds" if isinstance(self.new, Bounds) else "estimates"

    def __getitem__(self, name: str) -> Change:
        found = next((row for row in self.rows if row.name == name.lower()), None)
        if found is None:
            raise InputError(f"{name!r} is not among what both have: {', '.join(row.name for row in self.rows)}")
        return found

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
    def headline(self) -> Change | None:
        """The calibration error, or whatever both have first; None when they have nothing in common."""
        return next((row for row in self.rows if row.name == "ece"), next(iter(self.rows), None))

    def claims(self) -> Sequence[Any]:
        """Bounds on differences, differences of estimates (that of the headline first), the new numbers, the old."""
        rows = sorted(self.rows, key=lambda row: row is not self.headline)
        bounds = () if self.bounds is None else (self.bounds.binned, self.bounds.brier)
        differences = [row.claim for row in rows] if self.kind == "estimates" else []
        return (*bounds, *differences, *(row.new for row in rows), *(row.old for row in rows))

    def candidates(self) -> Sequence[Candidate]:
        """Differences by "difference NAME", the new numbers by their names, the old ones by "old NAME"."""
        found: list[Candidate] = []
        if self.bounds is not None:
            brier = "brier_score" if self.conventions.get("task") == "binary" else "top_label_brier_score"
            for name, both in (("ece", self.bounds.binned), (brier, self.bounds.brier)):
                found += [Candidate(each, (f"difference_{name}",)) for each in (both.upper, both.lower)]
        rows = sorted(self.rows, key=lambda row: row is not self.headline)
        for group, members in ((None, rows), *self.groups.items()):
            if self.kind == "estimates":
                found += [Candidate(row.claim, (), group) for row in members]
            found += [Candidate(row.new, (row.name, f"new_{row.name}"), group) for row in members]
            found += [Candidate(_rename_claim(row.old, f"old {row.name}"), (), group) for row in members]
        return found

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        document: dict[str, Any] = {
            "type": f"comparison of {self.kind}",
            "old": self.old.source,
            "new": self.new.source,
            **({} if self.pairing is None else {"pairing": self.pairing.to_dict(), "n": self.new.n}),
            **({"conventions": dict(self.conventions)} if self.conventions else {}),
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
    theirs = {group.name: group for group in old.groups}
    groups = {group.name: _match_numbers(theirs[group.name], group)[0] for group in new.groups if group.name in theirs}
    return ChangeComparison(old, new, rows, rest, groups, Pairing(None, _NO_ROWS))


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


# --- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _ComparedTable:
    """A table to compare, with its predictions and groups."""

    data: Any
    name: str
    predictions: Predictions
    groups: NDArray[Any] | None
    about: Mapping[str, Any]
    description: str
    rows: NDArray[np.int64] | None = None  # of the table, where some were left out

    @property
    def truth(self) -> NDArray[Any] | None:
        """What was true of each row, where it is known: answers of one sample share it."""
        task = self.predictions.task
        return None if task == "top-label" else self.predictions.labels if task == "multiclass" else self.correct

    @property
    def correct(self) -> NDArray[Any]:
        return self.predictions.correct

    def columns(self) -> list[str]:
        """Names of the columns; predictions have none."""
        return [] if isinstance(self.data, Predictions) else list(open_table(self.data).names)

    def keys(self, column: str, *, required: bool) -> list[str] | None:
        """What the column says of each row that counts."""
        found = sample_keys(self.data, column, required=required)
        return found if found is None or self.rows is None else [found[place] for place in self.rows]

    def select(self, rows: NDArray[np.int64]) -> _ComparedTable:
        """Some rows, in an order."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, predictions=self.predictions.select(rows), groups=groups)


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
    """Compare two tables of predictions, row by row where they are about the same samples; see :func:`compare`."""
    progress = as_reporter(progress)
    values = locals()  # a comprehension has its own
    asked = gather(ChangeSettings, values)
    progress.stage("reading")
    given = names or (None, None)
    by = list(by) if isinstance(by, Iterator) else by
    both = [PredictionSource("compare", (each,)).read(columns, values) for each in (old, new)]
    sides = [
        _read_side(data, roles, by, name or called)
        for (data, roles), name, called in zip(both, given, ("old", "new"), strict=True)
    ]
    tasks = [side.predictions.task for side in sides]
    if tasks[0] != tasks[1]:
        said = [f"{side.name} has {_TASKS[task]}" for side, task in zip(sides, tasks, strict=True)]
        raise InputError(f"{said[0]} and {said[1]}; compare two tables of one kind")
    sides, pairing = _pair_rows(sides, key, asked.pair)
    progress.stage("comparing")
    return compare_predictions(*sides, pairing=pairing, by=by, settings=asked)


def compare_predictions(
    old: _ComparedTable, new: _ComparedTable, *, pairing: Pairing, by: Any = None, settings: ChangeSettings
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
    return ChangeComparison(measured[0], measured[1], rows, rest, groups, pairing, bounds, conventions, settings)


def answers(old: Predictions, new: Predictions, names: tuple[str, str], **options: Any) -> ChangeComparison:
    """Compare two answers for the same samples, such as before and after a map, with options of :func:`compare`."""
    sides = [
        _ComparedTable(data, name, data, None, {"task": data.task, "kind": data.kind}, counted(len(data), "sample"))
        for data, name in zip((old, new), names, strict=True)
    ]
    asked = settings_of(compare_tables, ChangeSettings, **options)
    return compare_predictions(
        *sides, pairing=Pairing("order", "both are answers for the same samples"), settings=asked
    )


def _measure_side(side: _ComparedTable, by: Any, settings: ChangeSettings) -> Measurement:
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


def _read_side(data: Any, columns: Mapping[str, Any] | None, by: Any, name: str) -> _ComparedTable:
    if isinstance(data, Predictions):
        if isinstance(by, str):
            reason = "predictions have no columns"
            raise InputError(reason, argument="by", remedy="give the group of each sample, or compare tables")
        groups = None if by is None else np.asarray(list(by)).astype(str)
        if groups is not None and groups.size != len(data):
            raise InputError(f"it has {groups.size} entries for {len(data)} samples; give one each", argument="by")
        about = {"task": data.task, "kind": data.kind, "classes": data.classes}
        return _ComparedTable(data, name, data, groups, about, counted(len(data), "sample"))
    if by is not None and not isinstance(by, str):
        raise InputError("groups of tables are a column; give its name", argument="by")
    loaded = load_table(data, columns, by=by or ())
    groups = loaded.group_of_each
    if any(each.cuts for each in loaded.groupings):
        reason = f"{by!r} has many numbers or dates, which two tables would cut in different places"
        raise InputError(reason, argument="by", remedy="write a column of groups")
    predictions = loaded.predictions
    about = {"task": predictions.task, "kind": loaded.layout.kind, "columns": loaded.layout.to_dict()}
    shown = name if name not in ("old", "new") or str(loaded.path) == "table" else str(loaded.path)
    said = f"{counted(len(predictions), 'sample')}; {loaded.layout.description}"
    return _ComparedTable(data, shown, predictions, groups, about, said, loaded.rows)


def _pair_rows(sides: list[_ComparedTable], key: str | None, pair: str) -> tuple[list[_ComparedTable], Pairing]:
    """The rows that count, in one order where they are paired."""
    if key is not None and pair != "key":
        raise InputError("a key pairs the rows already", argument="pair", remedy="leave one of the two out")
    if pair == "none":
        return sides, Pairing(None, "rows are not paired, as asked")
    if pair == "order":
        _refuse_different_labels(sides, None)
        return sides, Pairing("order", "rows are paired by their order, as asked")
    column: str | None = None
    if any(isinstance(side.data, Predictions) for side in sides):
        if key is not None:
            raise InputError("predictions have no columns", argument="key", remedy="compare tables, or pair by order")
    elif (column := key or _shared_identifier(sides)) is not None:
        keys = [side.keys(column, required=key is not None) for side in sides]
        if keys[0] is not None and keys[1] is not None:
            return _by_key(sides, column, keys[0], keys[1])
    old, new = (side.truth for side in sides)
    if old is not None and new is not None and old.size == new.size and np.array_equal(old, new):
        shares = np.unique(old, return_counts=True)[1] / old.size
        if -old.size * math.log(float(np.dot(shares, shares))) > -math.log(_BY_CHANCE):
            why = "rows are paired by their order, since what was true agrees in every row"
            return sides, Pairing("order", why)
    why = "the tables share no key" if column is None else f"{column!r} is not unique in both tables"
    return sides, Pairing(None, f"rows are not paired: {why}")


def _shared_identifier(sides: list[_ComparedTable]) -> str | None:
    """A column that both have and that is called as identifiers are."""
    theirs = set(sides[1].columns())
    shared = [name for name in sides[0].columns() if name in theirs]
    return next((name for word in IDENTIFIER for name in shared if plain_name(name) == word), None)


def _by_key(
    sides: list[_ComparedTable], column: str, old: list[str], new: list[str]
) -> tuple[list[_ComparedTable], Pairing]:
    place = {value: row for row, value in enumerate(old)}
    rows = np.array([(place[value], row) for row, value in enumerate(new) if value in place], np.int64).reshape(-1, 2)
    if not rows.size:
        reason = f"{sides[0].name} and {sides[1].name} have no value of {column!r} in common"
        raise InputError(reason, argument="key", remedy="name another column, or do not pair the rows")
    both = [side.select(rows[:, place]) for place, side in enumerate(sides)]
    _refuse_different_labels(both, (column, rows, new))
    why = f"rows are paired by {column!r}"
    return both, Pairing("key", why, column, len(old) - len(rows), len(new) - len(rows))


def _refuse_different_labels(sides: list[_ComparedTable], key: tuple[str, NDArray[np.int64], list[str]] | None) -> None:
    sizes = [len(side.predictions) for side in sides]
    if sizes[0] != sizes[1]:
        reason = f"{sides[0].name} has {counted(sizes[0], 'row')} and {sides[1].name} {sizes[1]:,}"
        raise InputError(reason, argument="pair", remedy="pair by a key, or not at all")
    old, new = (side.truth for side in sides)
    if old is None or new is None or np.array_equal(old, new):
        return
    first = int(np.flatnonzero(old != new)[0])
    rows, sample = (first, first), "the same row"
    if key is not None:
        rows, sample = key[1][first], f"{key[0]} {key[2][int(key[1][first][1])]!r}"
    raise InputError(
        f"{sides[1].name} has outcome {new[first]} in row {rows[1] + 1} where {sides[0].name} has {old[first]} in row "
        f"{rows[0] + 1}, for {sample}; correct one of them, or do not pair the rows"
    )
