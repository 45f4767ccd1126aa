"""Can a map repair the confidences, also in the worst case? Maps are judged on samples that they were not fitted to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    cast,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, ranks_of, real_numbers
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import SEED, Option, Range, Takes, defaults_of, gather, settings_of, verb
from certcal._base.text import counted
from certcal.calibrators import (
    FOLDS,
    NEAREST,
    Calibrator,
    FittedOn,
    MapChoice,
    MapInput,
    RealScores,
    Saved,
    TwoProbabilities,
    VennAbers,
    choose,
    cross_fit,
    describe,
    fit_by_group,
    fit_predictions,
    split_positions,
    takes_scores,
)
from certcal.calibrators.scores import LEAST
from certcal.claims import Frozen, in_full
from certcal.data import load_table, open_table, resolve_columns
from certcal.data.grouping import GroupRule, PredictionGroup
from certcal.data.pieces import fingerprint_of
from certcal.data.predictions import group_samples
from certcal.data.sources import (
    DataLike,
    Estimator,
    ModelLike,
    PredictionSource,
    Table,
    Values,
    about_predictions,
    grouping_names,
)
from certcal.metrics import Measurements
from certcal.metrics.differences import score_change
from certcal.predictions import Predictions
from certcal.result import Answer, Result
from certcal.smoothing import CertificateName
from certcal.verbs.answers import GROUPS, SEGMENTS, Diagnosis
from certcal.verbs.certified_samples import ROLES, CertifyingSettings, SampleSource, source_of
from certcal.verbs.changes import Change, ChangeComparison, answers
from certcal.verbs.group_changes import ERROR, GroupChange, group_changes
from certcal.verbs.map_answer import map_answer
from certcal.verbs.measure import BRACKETS, Measurement
from certcal.verdict import Candidate

if TYPE_CHECKING:
    from certcal.calibrators import CertifiedSamples
    from certcal.data import Layout
    from certcal.smoothing import CertificateKind, Counts, Run
    from certcal.verbs.apply_map import MappedTable
    from certcal.verbs.certified_recalibration import CertifiedRecalibration
    from certcal.verbs.verify import Verification

    Certifiable = Run | Counts | CertifiedSamples | Verification
    EitherRecalibration: TypeAlias = "PredictionRecalibration | CertifiedRecalibration"

P = ParamSpec("P")

IDENTITY = "before recalibration"
_FEW = 10
_LONGEST_NAME = 500
_MOST_WEIGHT = 1e100  # beyond it sums of weights are not finite


@dataclass(frozen=True)
class RecalibrateSettings(CertifyingSettings):
    """What :func:`recalibrate` was asked; ``recalibrate(data, **vars(settings))`` asks it again."""

    method: Any
    tradeoff: float | None
    tradeoffs: tuple[float, ...] | None
    fraction: float | None
    seed: int
    fit_on_all: bool
    common_map: bool
    real_scores: bool
    map_bins: int | None
    bins: int
    closed: str
    radius_weight: tuple[float, ...] | None
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius_weight is not None and not any(self.radius_weight):
            raise InputError("all weights are 0", argument="radius_weight", remedy="give at least one above 0")


@dataclass(frozen=True, eq=False, repr=False)
class Recalibration(Result):
    """A map that was fitted to samples. What it does to others is in the two kinds of this result."""

    view: ClassVar[str] = "certcal.report.views.recalibrated_predictions"

    source: str
    """Name of the file or folder, or what is in memory."""
    about: Mapping[str, Any]
    """Further facts for machines: columns, or the run."""
    description: str
    """What was read, in a line for people."""
    method: str
    """Name of the calibrator."""
    map: Any
    """The calibrator, fitted."""
    fitted_on: FittedOn
    """Which samples it was fitted to."""
    n_fit: int
    n_held_out: int
    """Numbers of samples: fitted to, and judged on, each by a map that was not fitted to it."""
    conventions: Mapping[str, Any]
    """Bins, closed, fraction, seed and, for certified samples, delta."""
    notes: tuple[str, ...]
    """What a reader should know, one sentence each."""
    settings: RecalibrateSettings | None = field(default=None, kw_only=True)
    """What was asked: ``recalibrate(data, **vars(r.settings))`` gives the same."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "conventions", Frozen(self.conventions))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.source}: {describe(self.map)}, fitted to {self.n_fit:,}, judged on "
            f"{self.n_held_out:,}>"
        )

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seeds of the split, and of the noise of a run."""
        noise = {"noise of the run": self.about["run"].get("seed")} if "run" in self.about else {}
        split = {"folds or split": self.conventions["seed"]} if self.n_held_out else {}
        return {name: seed for name, seed in (split | noise).items() if seed is not None}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Nothing: no sample was held out."""
        return {}

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON, without the samples."""
        return {
            "source": self.source,
            "method": self.method,
            "n_fit": self.n_fit,
            "n_held_out": self.n_held_out,
            **self._judgement_document(),
            "map": self.map.to_dict() if isinstance(self.map, Calibrator) else {"type": describe(self.map)},
            **self.about,
            "conventions": {**self.conventions, "bins_are": BRACKETS[self.conventions["closed"]]},
            "claims": [in_full(claim) for claim in self.claims()],
            "notes": list(self.notes),
        }

    def _judgement_document(self) -> dict[str, Any]:
        return {}

    def to_bytes(self, form: str, **options: Any) -> bytes:
        """The content of a file of the answer; of .json the map, which :func:`certcal.calibrators.load` reads.

        The numbers as JSON are :meth:`to_json`.
        """
        return Saved(self.map, self.fitted_on).to_bytes() if form == ".json" else super().to_bytes(form, **options)

    def apply(self, data: Any, **options: Any) -> MappedTable:
        """The map applied to other samples, or to those of the same source that it was not fitted to.

        Parameters
        ----------
        data
            As for :func:`certcal.recalibrate`; predictions need no labels.
        options
            Of :func:`certcal.apply_map`.
        """
        from certcal.verbs.apply_map import apply_map

        return apply_map(self, data, **options)


@dataclass(frozen=True, eq=False, repr=False)
class PredictionRecalibration(Recalibration):
    """What a map does to predictions that it was not fitted to; estimates, nothing is claimed about an attack.

    Examples
    --------
    >>> import certcal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(0, 1, 4000)
    >>> r = certcal.recalibrate({"confidence": z, "correct": rng.random(4000) < 0.2 + 0.6 * z})
    >>> r.method, r.n_fit, r.after["ece"].value < r.before["ece"].value / 2
    ('spline', 4000, True)
    """

    change: ChangeComparison
    """The samples as they are and after maps that were not fitted to them, compared row by row."""
    choice: MapChoice | None = None
    """Which maps were compared, where the method is "auto"."""
    fold_methods: tuple[str, ...] = ()
    """The map that each fold was judged by."""
    groups: tuple[GroupChange, ...] = ()
    """Each group before and after; of real scores, after the common map and after that by group."""
    by_group: Change | None = None
    """The log loss after one map for all, and after maps by group, where groups have their own."""
    two_probabilities: TwoProbabilities | None = None
    """Of a Venn-Abers map."""

    @property
    def is_real(self) -> bool:
        """Whether scores are real numbers, of which nothing but ranks is measured before the map."""
        return bool(self.about.get("real_scores"))

    @property
    def before(self) -> Measurements:
        """Measurements of the held-out samples as they are."""
        return self._measurements(self.change.old)

    @property
    def after(self) -> Measurements:
        """Measurements of the held-out samples after the map."""
        return self._measurements(self.change.new)

    def _measurements(self, found: Any) -> Measurements:
        return Measurements(tuple(found.rows), found.n, found.about["kind"])

    @property
    def answer(self) -> Answer:
        """Whether the map helps: log loss, slope, ranges that remain wrong, and what to do next."""
        why = None if self.choice is None else self.choice.why
        return map_answer(self, why)

    def candidates(self) -> Sequence[Candidate]:
        """The numbers after the map by their names, those before as "old", and "difference"s."""
        first = next((row.new for row in self.change.rows if row.name == "ece"), self.change.rows[0].new)
        return [Candidate(first), *self.change.candidates()]

    def claims(self) -> Sequence[Any]:
        """The ECE after the map, then the other estimates after it, then those before."""
        rows = sorted(self.after.rows, key=lambda row: row.name != "ece")
        return (*rows, *self.before.rows)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per metric before and after the map, with all digits."""
        lines = [(IDENTITY, row) for row in self.before.rows] + [(self.method, row) for row in self.after.rows]
        return {
            "map": [name for name, _ in lines],
            "metric": [row.name for _, row in lines],
            "bins": [row.settings.get("bins") for _, row in lines],
            "value": [float(row.value) for _, row in lines],
            "n": [row.n for _, row in lines],
        }

    def _judgement_document(self) -> dict[str, Any]:
        both = {"before": self.before.to_dict(), "after": self.after.to_dict()}
        compared = () if self.choice is None else self.choice.tried
        told = [each.to_dict() for each in compared]
        if self.is_real:  # no map is none of these
            told = [{name: each[name] for name in ("method", "nll")} for each in told]
        tried = {} if self.choice is None else {"tried": told}
        groups = {"groups": [each.to_dict() for each in self.groups]} if self.groups else {}
        by_group = {} if self.by_group is None else {"by_group": self.by_group.to_dict()}
        pair = {} if self.two_probabilities is None else {"two_probabilities": self.two_probabilities.to_dict()}
        return {"calibrator": describe(self.map), **tried, **both, **by_group, **groups, **pair}


class RecalibrateVerb(Protocol[P]):
    """The sources of :func:`recalibrate` and what comes of each.

    Where the map is fitted to all samples and so not judged, options are checked when it is called only.
    """

    @overload
    def __call__(self, *data: Any, fit_on_all: Literal[True], **more: Any) -> Recalibration: ...
    @overload
    def __call__(self, data: Predictions, /, *args: P.args, **more: P.kwargs) -> PredictionRecalibration: ...
    @overload
    def __call__(self, data: Certifiable, /, *args: P.args, **more: P.kwargs) -> CertifiedRecalibration: ...
    @overload
    def __call__(self, data: Table, /, *args: P.args, **more: P.kwargs) -> EitherRecalibration: ...
    @overload
    def __call__(
        self, y_true: Values, y_prob: Values, /, *args: P.args, **more: P.kwargs
    ) -> PredictionRecalibration: ...
    @overload
    def __call__(
        self, estimator: Estimator, X: Any, y: Values, /, *args: P.args, **more: P.kwargs
    ) -> PredictionRecalibration: ...
    @overload
    def __call__(
        self, model: ModelLike, data: DataLike, /, *args: P.args, **more: P.kwargs
    ) -> PredictionRecalibration: ...


def _with_signature_of(verb: Callable[Concatenate[PredictionSource, P], Recalibration]) -> RecalibrateVerb[P]:
    return cast("Any", about_predictions(verb))


@_with_signature_of
@verb(roles=ROLES)
def recalibrate(
    data: PredictionSource,
    *,
    score: str | Iterable[Any] | None = None,
    outcome: str | Iterable[Any] | None = None,
    positive: Any = None,
    negative: Any = None,
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
    method: Annotated[
        Literal[
            "auto",
            "none",
            "temperature",
            "platt",
            "beta",
            "quadratic",
            "spline",
            "isotonic",
            "venn-abers",
            "histogram",
            "equal-mass",
            "vector",
            "svs",
            "sms",
            "matrix",
        ]
        | Calibrator,
        Option(metavar="METHOD"),
    ] = "auto",
    tradeoff: Annotated[float | None, Range(0, 1), Option(metavar="L")] = None,
    tradeoffs: Annotated[float | Iterable[float] | None, Range(0, 1), Option(metavar="L")] = None,
    fraction: Annotated[float | None, Takes("share")] = None,
    seed: Annotated[int, SEED] = 0,
    fit_on_all: bool = False,
    by: str | Iterable[Any] | None = None,
    common_map: bool = False,
    real_scores: bool = False,
    map_bins: Annotated[int | None, Range(1, 1_000_000)] = None,
    bins: Annotated[int, Range(1, 10_000)] = 15,
    closed: Literal["left", "right"] = "left",
    radius_weight: Annotated[
        float | Iterable[float] | None, Range(0, _MOST_WEIGHT), Option(metavar="W", ordered=True)
    ] = None,
    delta: Annotated[float, Takes("failure")] = 0.05,
    radii: Annotated[float | Iterable[float] | None, Range(0), Option("--radius", metavar="R", ordered=True)] = None,
    alpha: Annotated[float | None, Takes("failure", zero=True)] = None,
    familywise: bool = False,
    drawn_only: bool = False,
    kind: Annotated[CertificateName | CertificateKind, Option(metavar="KIND")] = "tangent",
    source: str | None = None,
    progress: ProgressLike = True,
) -> Recalibration:
    """Fit a map, and judge it on samples that it was not fitted to.

    Certified samples (a run, a table of intervals): a monotone map preserves certificates, so it can be fitted to be
    best in the worst case, without a perturbation, or in between. The result is a :class:`CertifiedRecalibration`, with
    the claims of :func:`certcal.worst_case.certify` and :func:`certcal.calibrators.gain_over`. Given the map, the
    held-out samples are fresh draws, so bounds on the population hold. Each map and radius has bounds of its own, each
    of which may fail with probability delta. Choose the trade-off before looking; for the best of k that were looked
    at, pass delta / k.

    Predictions: the best of several maps, fitted to all samples, and estimates before and after on each sample by a map
    that was chosen and fitted without it: :class:`PredictionRecalibration`.

    Parameters
    ----------
    data
        A run (its folder, or open), a table of intervals, :class:`~certcal.calibrators.CertifiedSamples`, or
        predictions from any source: a table, :class:`~certcal.Predictions`, ``recalibrate(y_true, y_prob)``,
        ``recalibrate(estimator, X, y)`` or ``recalibrate(model, data)``, as for :func:`certcal.measure`.
    score, outcome, positive, negative, correct, prediction, label, probabilities, logits, weight
        Columns of a table by role, or their values; as for :func:`certcal.measure`.
    decimal, percent, encoding, missing, skip, sheet
        How a table is read; as for :func:`certcal.measure`.
    columns
        The same, as a dictionary, with confidence and the roles of intervals: lower, upper, certified, radius, sample.
    method
        Calibrator: isotonic, temperature or beta for certified samples; for predictions also none, platt, quadratic,
        spline, venn-abers, histogram or equal-mass of one confidence, and vector, svs, sms or matrix of all classes.
        Default: auto, the best by cross-fitted log loss if outcomes are 100 times as likely with it, else none;
        isotonic for certified samples.

        Or a calibrator of one's own, of which a copy is fitted: see
        :class:`~certcal.calibrators.ConfidenceCalibrator`, :class:`~certcal.calibrators.ScoreCalibrator` and
        :class:`~certcal.calibrators.IntervalCalibrator`.
    tradeoff
        Weight of the worst case in the fit, from 0 (clean confidences only) to 1. Default: 0.5; 1 where the clean
        confidences are not known.
    tradeoffs
        Trade-offs to compare with. Default: 0,0.25,0.5,0.75,1.
    fraction
        Fit to this fraction of the samples, and judge on the others. Default: cross-fitting, so that the map is fitted
        to all samples and all are judged; 0.5 for certified samples.
    seed
        Random seed of the folds, or of the split.
    fit_on_all
        Fit to all samples; nothing can then be claimed about the map.
    by
        Correct the map in each group of a column, or of a crossing such as product*channel; repeatable.

        Few rows change little: how far groups may move is chosen by cross-fitted log loss, and is 0 where nothing is
        gained (:class:`~certcal.calibrators.GroupedMap`). For Predictions and arrays, the group of each sample, or
        several such arrays by name. Maps of all classes are judged by group, and stay one for all.
    common_map
        Use one map for all groups, and only judge them.
    real_scores
        Scores are any numbers, such as points of a scorecard, margins or log-odds, and become probabilities.
    map_bins
        Number of bins of the map, for histogram and equal-mass.
    bins
        Number of bins of the calibration error.
    closed
        Closed end of each bin.
    radius_weight
        Weights of the radii in the fit, in their order. Default: equal.
    delta
        Failure probability of each population bound.
    radii
        Radii to certify at. Default: half of sigma for a run, all radii of a table.
    alpha
        Failure probability of each sample's interval. Default: 0.001 for a run; for a table its column alpha, or 0.
        Samples on which the verifier abstained must stay in the table, with certified = 0.
    familywise
        Treat alpha as the family-wise error rate: the probability that any certificate fails.
    drawn_only
        Use the finished samples of an incomplete run.
    kind
        Kind of certificate of a run.
    source
        What is recalibrated, in a few words; by default the name of the file or folder.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal
    >>> table = {"confidence": [0.6, 0.7, 0.8, 0.9] * 50, "correct": [0, 1, 1, 1] * 50}
    >>> r = certcal.recalibrate(table, method="isotonic")
    >>> r
    <PredictionRecalibration of table: IsotonicCalibration(smoothing=0.0), fitted to 200, judged on 200>
    >>> r.apply({"confidence": [0.65]}).table["confidence_calibrated"].round(2).tolist()
    [0.5]
    """
    progress = as_reporter(progress)
    asked = gather(RecalibrateSettings, locals())
    real, data = _real_scores(data) if real_scores else (None, data)
    table, columns = data.read(columns, {**locals(), "confidence": None})
    given = source_of(table, columns, asked, defaults_of(recalibrate))
    if common_map and by is None:
        raise InputError(
            "it is for groups, and there are none", argument="common_map", remedy="give by, or leave it out"
        )
    if given.kind == "predictions":
        found = _of_predictions(given, columns, asked, _Beside(by, real), progress)
    elif by is not None:
        reason = f"it is for a table of predictions, and {given.name} is {given.words}"
        raise InputError(reason, argument="by", remedy="leave it out")
    else:
        from certcal.verbs.certified_recalibration import recalibrate_certified

        given_method = None if asked.method == "auto" else asked.method
        split = replace(asked, method=given_method, fraction=0.5 if asked.fraction is None else asked.fraction)
        found = recalibrate_certified(given, columns, split, progress)
    return replace(found, settings=asked, source=found.source if source is None else source)


def has_figure(data: Any, columns: Mapping[str, Any] | None, **options: Any) -> bool:
    """Whether the map that would be fitted to a table can be drawn: all but those of the scores of all classes can."""
    asked = settings_of(recalibrate, RecalibrateSettings, **options)
    if source_of(data, columns, asked, defaults_of(recalibrate)).kind != "predictions":
        return True
    layout = resolve_columns(open_table(data).columns, columns)
    return not takes_scores(asked.method, layout.kind)


@dataclass(frozen=True)
class _Beside:
    """What arrays have beside what was predicted and what was true."""

    by: Any = None
    real: NDArray[np.float64] | None = None


def _real_scores(data: PredictionSource) -> tuple[NDArray[np.float64] | None, PredictionSource]:
    """Real scores of arrays, and ranks in their place; a table has its own."""
    first: Any = data.given[0]
    if len(data.given) == 1 and not isinstance(first, Predictions):
        return None, data
    if len(data.given) != 2 or isinstance(first, str) or callable(first) or hasattr(first, "predict_proba"):
        reason = "it is for a column of a table, or for arrays"
        raise InputError(
            reason, argument="real_scores", remedy="pass y_true and the scores, such as decision_function(X)"
        )
    scores: Any = data.given[1]
    real = real_numbers(scores, "y_prob")
    ranks = type(scores)(ranks_of(real), index=scores.index) if hasattr(scores, "iloc") else ranks_of(real)
    return real, PredictionSource(data.verb, (first, ranks))


@dataclass(frozen=True, eq=False)
class _Fitting:
    """How a map is fitted to samples."""

    settings: RecalibrateSettings
    rules: Sequence[GroupRule] | None
    """What makes the groups that have corrections of their own; None for one map."""

    def common(self, given: MapInput) -> tuple[Any, MapChoice | None]:
        """One map for all."""
        asked, method = self.settings, self.settings.method
        if given.real is not None:
            if asked.map_bins is not None:
                raise InputError("maps of real scores have their own", argument="map_bins", remedy="leave it out")
            samples = given.predictions
            fitted = RealScores(method).fit(given.real, samples.correct, samples.sample_weight)
            return fitted, fitted.choice_
        if method == "auto" and asked.map_bins is None:
            choice = choose(given.predictions, asked.seed)
            return choice.calibrator, choice
        return fit_predictions(given.predictions, method, map_bins=asked.map_bins), None

    def fit(self, given: MapInput) -> tuple[Any, MapChoice | None]:
        """The map, and how it was chosen."""
        common, choice = self.common(given)
        if self.rules is None:
            return common, choice
        believed = choice is not None and given.real is None
        return fit_by_group(given, self.rules, common, self.settings.seed, believed=believed), choice


def _of_predictions(
    given: SampleSource,
    columns: Mapping[str, Any] | None,
    settings: RecalibrateSettings,
    beside: _Beside,
    progress: Progress,
) -> Recalibration:
    progress.stage("reading")
    by, is_real = beside.by, settings.real_scores
    loaded = None
    groups: Sequence[PredictionGroup] = ()
    if isinstance(given.data, Predictions):
        predictions, real = given.data, beside.real
        cut, groups, codes = (None, (), None) if by is None else group_samples(predictions, by)
    else:
        loaded = load_table(given.data, columns, by=grouping_names(by), real=is_real)
        predictions, real, cut, groups, codes = loaded.predictions, loaded.real, loaded.cut, loaded.groups, loaded.codes
    samples = MapInput(predictions, real, codes)
    method = settings.method
    corrected = cut is not None and not settings.common_map and not takes_scores(method, predictions.kind)
    fitting = _Fitting(settings, cut.rules if corrected and cut is not None else None)
    classes = None if loaded is None else class_names(loaded.layout)
    folded = settings.fraction is None
    common: dict[str, Any] = {
        "source": given.name,
        "about": ({"kind": predictions.kind} if loaded is None else {"columns": loaded.layout.to_dict()})
        | ({"real_scores": True} if is_real else {})
        | ({} if cut is None else {"by": list(cut.asked)}),
        "description": counted(len(predictions), "sample") + (f"; {loaded.layout.description}" if loaded else ""),
        "method": method if isinstance(method, str) else type(method).__name__,
        "fitted_on": samples_of_fit(
            given,
            prediction_fingerprint(predictions, real),
            len(predictions),
            settings,
            classes,
            task=predictions.task,
        ),
        "conventions": {each: getattr(settings, each) for each in ("bins", "closed", "fraction", "seed")}
        | ({"folds": FOLDS} if folded else {}),
    }
    progress.stage("fitting")
    fit, rest, rows = samples, samples, None
    if not (folded or settings.fit_on_all):
        assert settings.fraction is not None
        fit_rows, rows = split_positions(len(predictions), settings.fraction, settings.seed)
        fit, rest = samples.select(fit_rows), samples.select(rows)
    fitted, choice = fitting.fit(fit)
    common["method"] = common["method"] if choice is None else choice.method
    if settings.fit_on_all:
        return fitted_to_all(fitted, common)
    progress.stage("measuring")
    made_by: list[MapChoice | None] = []

    def fit_fold(part: MapInput) -> Any:
        found, chosen = fitting.fit(part)
        made_by.append(chosen)
        return found

    def judged(fold_maps: Iterable[Any] | None) -> tuple[Predictions, Sequence[Any]]:
        """The samples after maps that were not fitted to them."""
        own = None if fold_maps is None else iter(fold_maps)
        if folded:
            return cross_fit(samples, fit_fold if own is None else lambda _: next(own), settings.seed)  # pyright: ignore
        one = fitted if own is None else next(own)
        return rest.after(rest.apply(one)), [one]

    after, maps = judged(None)
    before = rest.predictions
    proper = ("nll", "brier_score") if after.probabilities is not None or after.task == "binary" else ()
    top = () if after.task == "binary" else ("top_label_nll", "top_label_brier_score")
    slope = ("calibration_slope",) if after.task == "binary" else ()
    metrics = (*proper, *top, *slope, "ece", "accuracy", "auroc")
    told: Any = {"bins": settings.bins, "closed": settings.closed, "metrics": metrics, "seed": settings.seed}
    change = answers(before, after, ("before recalibration", common["method"]), **told)
    if groups:
        change = replace(change, old=_sharing(change.old, before), new=_sharing(change.new, after))
    if is_real:
        change = _without_before(change)
    one_map = judged([each.common_ for each in maps])[0] if corrected else None
    against = one_map if is_real else before
    notes = [
        *split_notes(fit.predictions, before, folded=folded),
        *_votes_note(fitted),
        *(f"Assumed: {each}." for each in predictions.doubts if not is_real),
        *([_REAL] if is_real else []),
        *([_FALLING] if is_real and _real_map(fitted).scale_ < 0 else []),
        *([_ONE_MAP] if cut is not None and takes_scores(method, predictions.kind) else []),
    ]
    made = after.confidence if after.probabilities is None else after.probabilities
    certain, what = (
        int(np.count_nonzero((made == 0) | (made == 1))),
        "score" if after.task == "binary" else "confidence",
    )
    whole = cast("Measurement", change.new).whole
    if not all(math.isfinite(row.value) for row in whole.rows if row.name in ("nll", "top_label_nll")):
        notes.append(f"The log loss is infinite where a map makes a {what} 0 or 1 and the sample says otherwise.")
    elif certain:
        some = counted(certain, what)
        notes.append(f"The map makes {some} exactly 0 or 1: a sample that says otherwise makes the log loss infinite.")
    pair, weighted = None, before.sample_weight is not None
    if isinstance(fitted, VennAbers):
        pair = TwoProbabilities.of(fitted, before.confidence.astype(np.float64), weighted=weighted)
    return PredictionRecalibration(
        **common,
        two_probabilities=pair,
        map=fitted,
        n_fit=len(fit.predictions),
        n_held_out=len(before),
        notes=tuple(notes),
        change=change,
        choice=choice,
        fold_methods=tuple(each.method for each in made_by if each is not None),
        groups=group_changes(groups, against, after, rows) if groups else (),
        by_group=None if one_map is None else _score_change(one_map, after),
    )


_REAL = (
    "Scores are real numbers: before the map they have ranks and no calibration error, so that nothing but the AUROC "
    "is shown before it."
)
_FALLING = "Higher scores go with fewer outcomes of 1: the map turns their order round."
_ONE_MAP = "A map of all classes has no corrections by group: one map was fitted, and groups are judged."


def _real_map(fitted: Any) -> RealScores:
    return getattr(fitted, "common_", fitted)


def _score_change(before: Predictions, after: Predictions) -> Change:
    """Whether corrections by group help, at the share that they have of what an answer shows."""
    old, new, spread = score_change(before, after, 1 - ERROR, paired=True)
    return Change(new.name, old, new, spread)


def _sharing(side: Any, predictions: Predictions) -> Measurement:
    """A side of a comparison whose ranges of scores leave groups their share."""
    return replace(side, diagnosis=Diagnosis.of(predictions, GROUPS - SEGMENTS))


def _without_before(change: ChangeComparison) -> ChangeComparison:
    """What is known of ranks alone before a map."""
    old = change.old
    assert isinstance(old, Measurement)
    rows = tuple(row for row in change.rows if row.name == "auroc")
    whole = replace(old.whole, rows=tuple(row for row in old.whole.rows if row.name == "auroc"))
    rest = (row.name for row in change.rows if row.name != "auroc")
    return replace(change, old=replace(old, whole=whole), rows=rows, unmatched=tuple(dict.fromkeys(rest)), judged=())


def _votes_note(fitted: Any) -> list[str]:
    """What scores of 0 and 1 count as, where the map pulls them in."""
    nearest, floor = getattr(fitted, "nearest_", NEAREST), getattr(fitted, "floor_", LEAST)
    if nearest > NEAREST:
        return [f"Scores of 0 and 1 count as {nearest:.4g} and {1 - nearest:.4g}: votes, and not certainty."]
    return [f"A probability of 0 counts as {floor:.4g}: no votes, and not certainty."] if floor > LEAST else []


def fitted_to_all(fitted: Any, common: dict[str, Any]) -> Recalibration:
    """A map of which nothing is claimed."""
    n = common["fitted_on"].n
    note = (
        f"{describe(fitted)} was fitted to all {counted(n, 'sample')}. Nothing was held out, so nothing is claimed "
        "about it and no numbers are shown: on the samples of the fit they would be too optimistic. Judge it on "
        "other samples."
    )
    return Recalibration(**common, map=fitted, n_fit=n, n_held_out=0, notes=(note,))


def samples_of_fit(
    given: SampleSource,
    fingerprint: str | None,
    n: int,
    settings: RecalibrateSettings,
    classes: tuple[str, ...] | None = None,
    run: str | None = None,
    task: str | None = None,
) -> FittedOn:
    """Which samples a map is fitted to, for its file."""
    known = fingerprint is not None and re.fullmatch("[0-9a-f]{64}", fingerprint) is not None
    kind = "intervals" if given.kind == "samples" else given.kind
    name = re.sub(r"[/\\\x00-\x1f]", "_", Path(given.name).resolve().name)[:_LONGEST_NAME] or kind
    share = None if settings.fit_on_all else settings.fraction
    split = (1.0, 0) if share is None else (share, settings.seed)
    return FittedOn(name, kind, fingerprint if known else None, n, *split, classes, run, task)


def class_names(layout: Layout) -> tuple[str, ...] | None:
    """What the columns call the classes, unless they are numbered from 0 or given in order."""
    return None if layout.family is None or layout.family.is_ordered else layout.family.classes


def prediction_fingerprint(predictions: Predictions, real: NDArray[np.float64] | None = None) -> str:
    """What tells predictions from others; real scores, where predictions hold their ranks.

    Examples
    --------
    >>> len(prediction_fingerprint(Predictions.from_confidence([0.5], [1])))
    64
    """
    scores = predictions.logits if predictions.kind == "logits" else predictions.probabilities
    if real is not None:
        return fingerprint_of(real, predictions.correct)
    if scores is None:
        return fingerprint_of(predictions.confidence, predictions.correct)
    return fingerprint_of(scores, predictions.labels)


def split_notes(fit: Any, rest: Any, *, folded: bool = False) -> list[str]:
    """How the samples were split, and whether there was little to learn from."""
    n, right = len(fit), int(np.count_nonzero(fit.correct))
    parts = f"Fitted to {counted(n, 'sample')} and judged on {counted(len(rest), 'other')}; no sample is in both parts."
    folds = f"Fitted to all {n:,} samples; each is judged by a map that was fitted without it, in {FOLDS} folds. "
    folds += "Ranks mix between folds, so AUROC can fall where one map keeps the order."
    notes = [folds if folded else parts]
    if n < _FEW:
        few = "1 sample is" if n == 1 else f"{n} samples are"
        notes.append(f"{few} very few to fit a map to: expect it to be far from the best one.")
    if right in (0, n):
        alike = f"samples of the fit are {'correct' if right else 'wrong'}"
        if getattr(fit, "task", None) == "binary":
            alike = f"outcomes of the fit are {int(right > 0)}"
        notes.append(f"All {alike}: little can be learned from them.")
    return notes
