"""How calibrated are these predictions? Every metric of a table, its groups, and the reliability diagram."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.rounding import decimals, minus
from certcal._base.signature import SEED, Option, Range, Takes, gather, verb
from certcal._base.text import counted
from certcal._base.told import Told, first_by_name
from certcal.binning import equal_width_edges, sums
from certcal.claims import Bound, Estimate
from certcal.data import PredictionStream
from certcal.data.formats import physical_memory
from certcal.data.grouping import GroupingColumns
from certcal.data.pieces import DoesNotFit
from certcal.data.sources import (
    PredictionData,
    PredictionSource,
    about_predictions,
    columns_read,
    grouping_names,
    size_text,
)
from certcal.metrics.registry import ALL, DEFAULT, check_names, metric_name, named_rows
from certcal.predictions import Predictions, task_of
from certcal.result import Answer, NamedAsPrinted, Result
from certcal.verbs.answers import GROUPS, SEGMENTS, Diagnosis, calibration_answer, command_for
from certcal.verbs.groups import ByName, GroupRate, group_rates
from certcal.verdict import Candidate

if TYPE_CHECKING:
    from certcal.metrics import DecisionCurve, Measurements, Reliability, Survey

BRACKETS = {"left": "[a, b), the last one closed", "right": "(a, b], the first one closed"}
# What a certainty that was wrong makes infinite or undefined.
_OF_CERTAINTIES = {"nll", "top_label_nll", "calibration_slope", "calibration_intercept"}
# A diagram with more lines than this is not read.
_MOST_LINES = 40
# Bytes that the program itself takes; and how much measuring all at once takes at its peak, in sizes of the table.
_PROGRAM, _PEAK = 1 << 28, 5
# For the interval of a metric of one's own.
RESAMPLES = 200
# The fewest samples of the simulations of docs/intervals.md, and the effective sample size below which weights are
# carried by few.
SIMULATED_FROM, HEAVY_BELOW = 30, 100
_MANY = (
    f"In our simulations, from {SIMULATED_FROM} samples on, 95% intervals covered in at least 93% of tables, those of "
    "an ECE near 0 in up to 100%. Bounds are proven."
)
_TOO_FEW = (
    f"For {{n}}{{where}} no simulation shows how often they cover ({SIMULATED_FROM} is the fewest tried); those of "
    "unweighted rates are exact."
)
_WEIGHTS = (
    "Weights: intervals assume that no rare kind of sample with a large weight is missing here. Where it was missing "
    "in simulations, they covered in 63 to 89 % of the samples."
)
_FEW_HEAVY = (
    f"Warning: below {HEAVY_BELOW} of equal weight a few samples decide, and another draw may have had none of them. "
    "Do not rely on the level of these intervals."
)


@dataclass(frozen=True)
class MeasureSettings(Told):
    """What :func:`measure` was asked; ``measure(data, **vars(settings))`` asks it again."""

    bins: tuple[int, ...]
    closed: str
    metrics: tuple[Any, ...]
    bootstrap: int
    level: float
    seed: int
    band: str
    bounds: bool | None
    delta: float
    threshold: float | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", check_names(self.metrics))

    @property
    def by_name(self) -> bool:
        """Whether metrics were named one by one, and not as the default or as all."""
        return bool(self.metrics) and not {DEFAULT, ALL} & {*filter(lambda each: isinstance(each, str), self.metrics)}

    @property
    def diagram_bins(self) -> int:
        """The number of bins nearest to 15 that can be drawn, or 15."""
        drawn = (count for count in self.bins if count <= _MOST_LINES)
        return min(drawn, key=lambda count: abs(count - 15), default=15)

    def conventions(self, task: str) -> dict[str, Any]:
        """How the numbers were computed, for machines."""
        described: dict[str, Any] = {"bins": list(self.bins), "closed": self.closed, "bins_are": BRACKETS[self.closed]}
        described["band"] = self.band
        if task == "binary":
            given = self.threshold is not None
            described |= {"threshold": self.threshold if given else 0.5}
            described |= {"threshold_is": "given" if given else "by convention"}
        if self.bootstrap:
            names = ("level", *(("bootstrap", "seed") if any(map(callable, self.metrics)) else ()))
            described |= {name: getattr(self, name) for name in names}
        return described


@dataclass(frozen=True, eq=False)
class MeasuredGroup(
    NamedAsPrinted, PlainValues, keys="n where? rate? measurements=rows reliability effective_n? bounds?"
):
    """The measurements of all samples or of one group."""

    name: str
    """Name of the group; "all" for all samples."""
    n: int
    """Number of samples."""
    rows: Sequence[Estimate]
    """One :class:`~certcal.claims.Estimate` per metric and setting."""
    reliability: Reliability
    """The reliability diagram."""
    bounds: Sequence[Bound] = ()
    """Bounds of a group, if asked for: they hold for all groups together, delta being shared."""
    effective_n: float | None = None
    """Of weighted samples, how many of equal weight would say as much, (Σw)²/Σw² (Kish 1965); else None."""
    by: str = ""
    """What it is a group of: a column, or a crossing such as "product*channel"."""
    where: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its value of each column."""
    rate: GroupRate | None = None
    """What was predicted of it and observed, with intervals that hold for all groups together; None for all samples."""

    def named(self) -> Mapping[str, Estimate]:
        """The measurements by metric; of several numbers of bins the first."""
        return first_by_name(self.rows)


@dataclass(frozen=True, eq=False)
class CertainErrors(PlainValues, keys="n rows without"):
    """Samples whose outcome was given probability 0: one of them makes log loss infinite and the slope undefined."""

    n: int
    """How many there are."""
    rows: Sequence[int]
    """The first of them: rows of a table, counted from 1, or indices of arrays."""
    without: Sequence[Estimate]
    """What they make infinite or undefined, of the other samples."""
    where: str
    """What the numbers of the rows count."""

    @property
    def _places(self) -> str:
        shown = ", ".join(map(str, self.rows)) + (", …" if self.n > len(self.rows) else "")
        return f"{self.where if self.n == 1 else {'row': 'rows', 'index': 'indices'}[self.where]} {shown}"

    @property
    def sentence(self) -> str:
        """Which samples they are; their effect is said with the numbers."""
        one = self.n == 1
        said = f"{counted(self.n, 'outcome')} happened although the probability given was exactly 0 ({self._places})"
        return f"{said}: {'it makes' if one else 'they make'} log loss infinite and slope and intercept undefined."

    def reason(self, name: str, binary: bool, whole: bool) -> str:
        """Why a number is infinite or undefined, of all samples or of a group, and what it is without them."""
        what = "score" if binary else "probability"
        several = {"score": "scores", "probability": "probabilities"}[what]
        if not whole:
            return f"a {what} of exactly 0 or 1 was wrong"
        n, were = (f"a {what}", "was") if self.n == 1 else (f"{self.n:,} {several}", "were")
        said = f"{n} of exactly 0 or 1 {were} wrong ({self._places})"
        rest = next((each for each in self.without if each.name == name and math.isfinite(each.value)), None)
        if rest is None:
            return said
        ends = rest.interval
        known = ends is not None and math.isfinite(ends.upper - ends.lower)
        spread = f" ({' to '.join(map(minus, ends.ends()))})" if ends is not None and known else ""
        return f"{said}; without {'it' if self.n == 1 else 'them'} it is {minus(decimals(rest))}{spread}"


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Result):
    """What was measured in a table of predictions.

    ``m["ece"]`` is the row of that name, in any case; when several bin counts were asked for, ``m["ece", 10]``.

    Examples
    --------
    >>> import certcal
    >>> m = certcal.measure({"confidence": [0.9, 0.8, 0.6, 0.3], "correct": [1, 1, 0, 0]}, bins=5)
    >>> m
    <Measurement of table: 4 samples, ECE 0.3000>
    >>> m["accuracy"].value
    0.5
    """

    view: ClassVar[str] = "certcal.report.views.measurement"

    source: str
    """Name of the file, or what was measured."""
    about: Mapping[str, Any]
    """Further facts for machines: task, kind, classes, columns."""
    description: str
    """What was read, in a line for people."""
    whole: MeasuredGroup
    """All samples."""
    by: str | None = None
    """What the groups are, or None."""
    groups: ByName[MeasuredGroup] = field(default_factory=ByName["MeasuredGroup"])
    """Each group on its own, by place or by name."""
    conventions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How the numbers were computed."""
    bounds: Sequence[Bound] = ()
    """Bounds on the true calibration error, each with a failure probability of its own."""
    decision_curve: DecisionCurve | None = None
    """Net benefit over thresholds, of a binary score that fits in memory whose metrics were not named one by one."""
    certain_errors: CertainErrors | None = None
    """Certainties that were wrong, and the numbers without them; None where there were none."""
    settings: MeasureSettings | None = None
    """What was asked: ``measure(data, **vars(m.settings))`` is the same measurement."""
    diagnosis: Diagnosis | None = None
    """Rates by range of scores, which the answer is made of."""
    groupings: Sequence[GroupingColumns] = ()
    """What the groups are made of, and how columns were cut."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", ByName(self.groups))

    @property
    def worst_groups(self) -> Sequence[MeasuredGroup]:
        """The groups by evidence that they are wrong: smallest p-value first, of equal ones the largest deviation."""
        return sorted(self.groups, key=lambda each: (1.0, 0.0) if each.rate is None else each.rate.order)

    @property
    def rows(self) -> Sequence[Estimate]:
        """The estimates of all samples."""
        return self.whole.rows

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.whole.n

    @property
    def task(self) -> str:
        """What the predictions are about: "binary", "top-label" or "multiclass"."""
        return self.about["task"]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.whole.rows)

    def __len__(self) -> int:
        return len(self.whole.rows)

    def named(self) -> Mapping[Any, Estimate]:
        """The measurements of all samples by metric, or by metric and bins where there are several."""
        from certcal.metrics import Measurements

        return Measurements(tuple(self.whole.rows), self.n, self.about["kind"]).named()

    def __repr__(self) -> str:
        first = self.headline
        said = "" if first is None else f", ECE {first.value:.4f}" if first.name == "ece" else f", {first.name}"
        return f"<Measurement of {self.source}: {counted(self.n, 'sample')}{said}>"

    @property
    def headline(self) -> Estimate | None:
        """The calibration error of the diagram's bins, or whatever was measured first."""
        return self.row_of("ece") or next(iter(self.whole.rows), None)

    def row_of(self, name: str, group: MeasuredGroup | None = None) -> Estimate | None:
        """The row of that name, with the bins of the diagram if there are several; None when it was not measured."""
        part = self.whole if group is None else group
        rows = [row for row in part.rows if row.name in (name, metric_name(name))]
        bins = len(part.reliability.table.count)
        return next((row for row in rows if row.settings.get("bins") == bins), next(iter(rows), None))

    @property
    def rates(self) -> Diagnosis:
        """Rates by range of scores: the diagnosis, or of a table that was read in pieces its bins."""
        share = GROUPS - SEGMENTS if self.groups else GROUPS
        return self.diagnosis or Diagnosis.of_bins(self.whole.reliability.table, share)

    @property
    def answer(self) -> Answer:
        """Calibrated or not, in which direction, where, and what to do next: see :mod:`certcal.verbs.answers`."""
        about = self.source, self.about.get("columns", {})
        by = {"by": self.by} if len(self.groupings) == 1 and about[1] else {}
        rank = self.row_of("auroc")
        unsaid = ["anything about samples that are drawn differently, or later"]
        if rank is not None and not math.isnan(rank.value):
            unsaid.append(f"how well they rank: that is another question (AUROC {rank.value:.4f})")
        if self.by is None:
            grouped = command_for(["measure"], "measure", *about, "--by", "COLUMN")
            unsaid.append(f"which groups are wrong: {grouped}")
        return calibration_answer(
            self.rates,
            self.task,
            slope=self.row_of("calibration_slope"),
            error=self.row_of("ece"),
            segments=[(each.where, each.rate) for each in self.groups if each.rate is not None],
            repair=command_for(["recalibrate", "fit"], "recalibrate", *about, "-o", "map.json"),
            prove=command_for(["bound"], "bound", self.source, {**about[1], **by}),
            unsaid=unsaid,
        )

    @property
    def interval_notes(self) -> Sequence[str]:
        """What holds of the intervals for so many samples and such weights, in sentences; none without intervals."""
        if all(row.interval is None for row in self.whole.rows):
            return ()
        parts = (self.whole, *self.groups)
        least = min(parts, key=lambda part: part.effective_n or part.n)
        size = least.effective_n or least.n
        where = "" if least is self.whole else f" of {least.name}"
        said = _MANY if size >= SIMULATED_FROM else _TOO_FEW.format(n=counted(round(size), "sample"), where=where)
        if self.whole.effective_n is None:
            return (said,)
        worth = (
            f"With their weights the {counted(least.n, 'sample')}{where} are worth {size:,.0f} of equal weight (Kish)."
        )
        return (said, worth, _WEIGHTS, *((_FEW_HEAVY,) if size < HEAVY_BELOW else ()))

    @property
    def seeds(self) -> Mapping[str, int]:
        """The bootstrap's seed."""
        return {"bootstrap": self.conventions["seed"]} if self.conventions.get("bootstrap") else {}

    def claims(self) -> Sequence[Estimate | Bound]:
        """Bounds first, then the headline, then every other estimate."""
        first = self.headline
        rest = [row for row in self.whole.rows if row is not first]
        return (*self.bounds, *([first] if first is not None else []), *rest)

    def candidates(self) -> Sequence[Candidate]:
        """The claims of all samples, then those of each group."""
        of_groups = [(group, claim) for group in self.groups for claim in (*group.bounds, *group.rows)]
        named = [
            Candidate.of_group(claim, (), group, self.by, why=self.why_undefined(claim, group))
            for group, claim in of_groups
        ]
        whole = [replace(each, why=self.why_undefined(each.claim, self.whole)) for each in super().candidates()]
        return [
            replace(each, names=(bound_method(each.claim),)) if isinstance(each.claim, Bound) else each
            for each in (*whole, *named)
        ]

    def why_undefined(self, claim: Estimate | Bound, part: MeasuredGroup) -> str:
        """Why a number is infinite or undefined, and what to do, as it stands behind "because"; empty where unknown."""
        if isinstance(claim, Bound) or math.isfinite(claim.value):
            return ""
        bins, binary = part.reliability.table, self.task == "binary"
        right = float(bins.correct_sum.sum()) / bins.total if bins.total else math.nan
        if right in (0, 1) and not claim.name.endswith("nll"):
            same = f"outcomes are {right:g}" if binary else f"predictions are {'right' if right else 'wrong'}"
            remedy = "" if part is self.whole else "; leave that group out, or make the groups coarser"
            return f"all {part.n:,} {same}{remedy}"
        if self.certain_errors is None or claim.name not in _OF_CERTAINTIES:
            return ""
        return self.certain_errors.reason(claim.name, binary, part is self.whole)

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        notes = self.interval_notes
        document: dict[str, Any] = {
            "source": self.source,
            **self.about,
            "conventions": {**self.conventions, **({"interval_notes": list(notes)} if notes else {})},
            **self.whole.to_dict(),
        }
        if self.diagnosis is not None:
            document["diagnosis"] = self.diagnosis.to_dict()
        if self.decision_curve is not None:
            document["decision_curve"] = self.decision_curve.to_dict()
        if self.certain_errors is not None:
            document["certain_errors"] = self.certain_errors.to_dict()
        if self.bounds:
            document["bounds"] = [bound.to_dict() for bound in self.bounds]
        if self.by is not None:
            document["by"] = self.by
            document["groupings"] = [each.to_dict() for each in self.groupings]
            document["groups"] = [{"group": group.name} | group.to_dict() for group in self.groups]
        return document

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per group and metric, with all digits."""
        lines = [(group, row) for group in (self.whole, *self.groups) for row in group.rows]
        spreads = [row.interval.to_dict() if row.interval else {} for _, row in lines]
        ends = ("lower", "upper", "level", "method")
        group = {} if self.by is None else {column_of(self.groupings, self.by): [each.name for each, _ in lines]}
        rates = [dict[str, Any]() if each.rate is None else each.rate.columns() for each, _ in lines]
        return {
            **group,
            "metric": [row.name for _, row in lines],
            **{key: [row.settings.get(key) for _, row in lines] for key in ("bins", "closed")},
            "value": [float(row.value) for _, row in lines],
            **{key: [spread.get(key) for spread in spreads] for key in ends},
            "n": [row.n for _, row in lines],
            "sentence": [row.sentence for _, row in lines],
            **{f"group_{key}": [rate.get(key) for rate in rates] for key in (*rates[-1:], {})[0]},
        }


@about_predictions
@verb()
def measure(
    data: PredictionSource,
    *,
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
    by: str | Iterable[Any] | None = None,
    bins: Annotated[int | Iterable[int], Range(1, 1_000_000)] = 15,
    closed: Literal["left", "right"] = "left",
    metrics: Annotated[
        str | Callable[..., float] | Iterable[str | Callable[..., float]], Takes("text"), Option("--metric", "NAME")
    ] = (),
    bootstrap: Annotated[int, Range(10, 1_000_000, zero=True)] = RESAMPLES,
    level: Annotated[float, Takes("level")] = 0.95,
    seed: Annotated[int, SEED] = 0,
    band: Literal["joint", "per-bin", "isotonic", "none"] = "joint",
    bounds: bool | None = False,
    delta: Annotated[float, Takes("failure")] = 0.05,
    threshold: Annotated[float | None, Takes("share")] = None,
    memory: Annotated[int | None, Takes("size", least=1, most=2**62)] = None,
    source: str | None = None,
    progress: ProgressLike = True,
) -> Measurement:
    """Measure the calibration of predictions: a dozen metrics or all, groups beside the whole, and a diagram.

    Parameters
    ----------
    data
        One table: a file (Parquet, CSV, Excel, JSON lines, npz, Arrow), a frame (pandas, polars, pyarrow), a mapping of
        columns, or :class:`~certcal.Predictions`. Or arrays, ``measure(y_true, y_prob)``: outcomes first, then
        probabilities of outcome 1 or a column per class, as scikit-learn has them. Or ``measure(estimator, X, y)``, a
        fitted classifier with ``predict_proba``. Or ``measure(model, data)``, a model and data as
        :func:`certcal.models.load` or ``wrap`` and :func:`certcal.data.open_inputs` take them.
    score, outcome, positive, negative, confidence, correct, prediction, label, probabilities, logits, weight
        Columns of a table by role, where their names do not say it; or their values. Score and outcome are those of a
        binary score (positive is the value that counts as 1, negative those that count as 0: rows with others are left
        out). Beside arrays and estimators: weight and positive.
    decimal, percent, encoding, missing, skip, sheet
        How a table is read, where that does not show: its decimal mark, whether scores are percentages, the encoding of
        text, "drop" for rows with an empty cell, how many lines stand above the column names, and the name of the sheet
        of an Excel file. Percent signs, columns from 0 to 100, decimal commas that cannot be anything else,
        Windows-1252 and title lines are recognised; the description says what was read how.
    columns
        The same, as a dictionary.
    by
        Measure each group beside the whole: those of a column, or of a crossing such as product*channel; repeatable.

        For Predictions and arrays, the group of each sample, or several such arrays by name. Numbers are cut at their
        quintiles where there are more than 20, and dates into months, quarters or years where there are more than 24.
    bins
        Number of bins; give several to compare them.
    closed
        Closed end of each bin.
    metrics
        Metric to report, or all; repeatable. Default: a dozen that practitioners know.

        Names, in any case, "default", "all", or functions of your own from confidences and outcomes to a number.
    bootstrap
        Number of resamples for the interval of a metric of your own; 0 for no intervals.
    level
        Confidence level of intervals and of the band; what is said of all groups together is 99 % sure.
    seed
        Random seed of these resamples.
    band
        Band of the reliability diagram: all bins at once, each bin, or without bins (isotonic).
    bounds
        Also bound the true calibration error.

        With None only where the table fits in memory.
    delta
        Failure probability of each bound; groups share it.
    threshold
        Score from which outcome 1 is predicted, for the accuracy of binary scores. Default: 0.5.
    memory
        Memory that measuring may take, at least about 300MB; a table that needs more is read in pieces. Default: half
        of this machine's.

        In bytes, the program itself (about 0.3 GB) and what is computed included. In pieces there are no metrics that
        need all samples at once.
    source
        What is measured, in a few words; by default the file's name.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal
    >>> m = certcal.measure([1, 0], [0.9, 0.6], bins=(5, 10))
    >>> round(m["ece", 5].value, 12)
    0.35
    >>> certcal.measure({"pd": [0.9, 0.6], "default": ["yes", "no"]}, score="pd", outcome="default")[
    ...     "brier_score"
    ... ].value
    0.185
    """
    progress = as_reporter(progress)
    asked = gather(MeasureSettings, locals())
    table, columns = data.read(columns, locals())
    if isinstance(table, Predictions):
        return _measure_in_memory(PredictionData.of_predictions(table, by), asked, source, progress)
    progress.stage("reading")
    limit = memory if memory is not None else (physical_memory() or 0) // 2 or None
    stream = PredictionStream(table, columns, by=grouping_names(by), memory=limit)
    if limit is not None:
        from certcal.metrics import check_bins

        classes = None if stream.layout.family is None else stream.width
        check_bins(asked.bins, classes, limit, weighted="weight" in stream.layout.roles)
    largest = None if limit is None else max(limit - _PROGRAM, limit // 2) // _PEAK
    if largest is None or stream.bytes_in_memory() <= largest:
        try:
            return _at_once(stream, asked, source, progress, largest)
        except DoesNotFit:  # text and what is compressed tell their size only as they are read
            pass
    return _measure_in_passes(stream, asked, source, progress, limit)


def _at_once(
    stream: PredictionStream, settings: MeasureSettings, source: str | None, progress: Progress, largest: int | None
) -> Measurement:
    progress.stage("reading", stream.rows, unit="rows")
    loaded = stream.load(advance=progress.advance, most=largest)
    return _measure_in_memory(PredictionData.of_table(loaded), settings, source, progress)


def _measure_in_memory(
    data: PredictionData, settings: MeasureSettings, source: str | None, progress: Progress
) -> Measurement:
    predictions, groups = data.predictions, data.groups
    progress.stage("measuring", 1 + len(groups))
    parts = [_measure_group("all", predictions, settings)]
    progress.advance(1)
    for group in groups:
        measured = _measure_group(group.name, group.predictions, settings)
        parts.append(replace(measured, by=group.by, where=group.where))
        progress.advance(1)
    parts[1:] = _with_rates(parts[1:], predictions.task)
    conventions = {**settings.conventions(predictions.task), "streamed": False}
    name = source or data.name
    about = (data.about, data.description, parts[0], data.by, ByName(parts[1:]), conventions)
    found = Measurement(
        name,
        *about,
        certain_errors=_certain_errors(data, parts[0], settings),
        settings=settings,
        diagnosis=Diagnosis.of(predictions, GROUPS - SEGMENTS if groups else GROUPS),
        groupings=data.groupings,
    )
    if predictions.task == "binary" and not settings.by_name:
        found = replace(found, decision_curve=_decision_curve(predictions, settings.level))
    if settings.bounds is False:
        return found
    from certcal.bounds import equal_share
    from certcal.verbs.bound import plain_bounds

    progress.stage("bounding")
    shared = settings.diagram_bins, settings.closed
    bounds = plain_bounds(predictions, settings.delta, *shared)
    level = equal_share(settings.delta, len(groups)) if groups else settings.delta
    bounded = [
        replace(each, bounds=plain_bounds(group.predictions, level, *shared))
        for each, group in zip(found.groups, groups, strict=True)
    ]
    conventions |= {"delta": settings.delta}
    return replace(found, groups=ByName(bounded), bounds=bounds, conventions=conventions)


def _with_rates(groups: Sequence[MeasuredGroup], task: str) -> list[MeasuredGroup]:
    """The groups with what holds of all of them together."""
    slopes = [next((row for row in each.rows if row.name == "calibration_slope"), None) for each in groups]
    sums_of = [(each.reliability.table, slope) for each, slope in zip(groups, slopes, strict=True)]
    rates = group_rates(sums_of, is_score=task == "binary")
    return [replace(each, rate=rate) for each, rate in zip(groups, rates, strict=True)]


def column_of(groupings: Sequence[GroupingColumns], by: str) -> str:
    """What the column of the groups is called in a table of numbers."""
    return by if len(groupings) < 2 else "group"


_FIRST_ROWS = 5


def _impossible_outcomes(predictions: Predictions) -> NDArray[np.bool_]:
    """Which outcomes had probability 0."""
    p = predictions
    if p.probabilities is not None and p.labels is not None:
        wrong = p.probabilities[np.arange(len(p)), p.labels] <= 0
    else:
        wrong = np.where(p.correct == 1, p.confidence <= 0, p.confidence >= 1)
    return wrong if p.sample_weight is None else wrong & (p.sample_weight > 0)


def _certain_errors(data: PredictionData, whole: MeasuredGroup, settings: MeasureSettings) -> CertainErrors | None:
    lost = [row.name for row in whole.rows if not math.isfinite(row.value)]
    wrong = _impossible_outcomes(data.predictions) if lost else np.zeros(0, np.bool_)
    if not wrong.any():
        return None
    places = np.flatnonzero(wrong)[:_FIRST_ROWS]
    places = (places if data.rows is None else data.rows[places]) + (data.layout is not None)
    without: Sequence[Estimate] = ()
    if not wrong.all():
        asked = replace(settings, metrics=tuple(dict.fromkeys(lost)))
        without = [row for row in _measure_group("", data.predictions.select(~wrong), asked).rows if row.name in lost]
    where = "index" if data.layout is None else "row"
    return CertainErrors(int(wrong.sum()), places.tolist(), without, where)


def bound_method(bound: Bound) -> str:
    """What certcal.bound calls one of the bounds of a measurement."""
    return "binned" if "bins" in bound.settings else "bounded_variation"


def _decision_curve(predictions: Predictions, level: float) -> DecisionCurve:
    from certcal.metrics.decision import DecisionCurve, threshold_edges

    p = predictions
    return DecisionCurve.of(sums(p.confidence, p.correct, p.sample_weight, threshold_edges()), level)


def _measure_group(name: str, predictions: Predictions, settings: MeasureSettings) -> MeasuredGroup:
    """Measure predictions and prepare their diagram."""
    from certcal.metrics import Reliability
    from certcal.metrics import measure as measurements

    w = predictions.sample_weight
    found: Measurements = measurements(
        predictions,
        bins=settings.bins,
        metrics=settings.metrics,
        bootstrap=settings.bootstrap,
        seed=settings.seed,
        threshold=settings.threshold,
        closed=settings.closed,
        level=settings.level,
    )
    edges = equal_width_edges(settings.diagram_bins)
    diagram = settings.closed, settings.band, settings.level
    prepared = Reliability.of(predictions.confidence, predictions.correct, w, edges, *diagram)
    effective = None if w is None else float(w.sum() ** 2 / (w @ w))
    return MeasuredGroup(name, len(predictions), found.rows, prepared, effective_n=effective)


def _measure_in_passes(
    stream: PredictionStream,
    settings: MeasureSettings,
    source: str | None,
    progress: Progress,
    memory: int | None,
) -> Measurement:
    """Measure a table that is too large for memory, in several passes."""
    from certcal.metrics import survey_stream

    if settings.bounds:
        raise InputError("bounds need a table that fits in memory", argument="bounds", remedy="allow more memory")
    passes = itertools.count(1)
    classes: set[int | None] = set()
    groups, seen_groups = stream.groupings, set[int]()
    certain: list[NDArray[np.int64]] = []

    def pieces() -> Iterator[Any]:
        progress.stage(f"pass {next(passes)}", stream.rows, unit="rows")
        seen = 0
        certain.clear()
        for piece in stream.in_groups() if groups.asked else stream:
            predictions = piece[0] if isinstance(piece, tuple) else piece
            if isinstance(piece, tuple):
                seen_groups.update(np.unique(piece[1]).tolist())
            classes.add(predictions.classes)
            certain.append(seen + np.flatnonzero(_impossible_outcomes(predictions)))
            yield piece
            seen += len(predictions)
            progress.advance(len(predictions))

    if groups.asked:
        progress.stage("finding the groups", stream.rows, unit="rows")
        stream.find_groups(progress.advance)
    found = survey_stream(
        pieces,
        bins=settings.bins,
        closed=settings.closed,
        diagram=settings.diagram_bins,
        band=settings.band,
        intervals=settings.bootstrap > 0,
        level=settings.level,
        threshold=settings.threshold,
        memory=memory,
    )
    there = {row.name for row in found.measurements.rows}
    for metric in settings.metrics:
        if metric not in (*there, DEFAULT, ALL):
            reason = (
                f"{getattr(metric, '__name__', metric)} needs all samples at once, and this table is read in pieces"
            )
            raise InputError(reason, argument="metrics", remedy="allow more memory")
    groups.leave_out(seen_groups - found.groups.keys())

    at_threshold = ("accuracy",) if settings.threshold is not None and not settings.metrics else ()
    shown = {*named_rows(settings.metrics, found.measurements.task), *at_threshold}

    def part(name: str, survey: Survey) -> MeasuredGroup:
        rows = [row for row in survey.measurements.rows if row.name in shown]
        return MeasuredGroup(name, survey.measurements.n, rows, survey.reliability)

    whole = part("all", found)
    parts: list[MeasuredGroup] = []
    for code, survey in found.groups.items():
        name, by, where = groups.named(code)
        parts.append(replace(part(name, survey), by=by, where=where))
    described = groups.described if groups.asked else ()
    several = classes.pop()
    conventions = settings.conventions(found.measurements.task) | {"streamed": True}
    if settings.bounds is None:
        conventions["without_bounds"] = "the table is read in pieces"
    if settings.bootstrap:
        conventions["without_interval"] = list(dict.fromkeys(row.name for row in whole.rows if row.interval is None))
    places = np.concatenate(certain)
    rows = stream.reader.positions(whole.n) if places.size else None
    first = (places if rows is None else rows[places])[:_FIRST_ROWS] + 1
    return Measurement(
        certain_errors=CertainErrors(places.size, first.tolist(), (), "row") if places.size else None,
        source=str(stream.table.path) if source is None else source,
        about={
            "task": task_of(stream.layout.kind),
            "kind": stream.layout.kind,
            "classes": several,
            **columns_read(stream.layout),
        },
        description=f"{size_text(whole.n, several, stream.layout)}; read in pieces, without the metrics that need all "
        "samples at once",
        whole=whole,
        by=", ".join(groups.asked) or None,
        groups=ByName(_with_rates(parts, found.measurements.task)),
        conventions=conventions,
        settings=settings,
        groupings=described,
    )
