"""Every metric once: its function, its words, and what it is a function of.

Adding a metric is one function and one entry of :data:`METRICS`. Tables, pages, streams, the bootstrap and the command
line all read the entries, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import groupby
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, shortened
from certcal._base.text import plain_name
from certcal.binning import BinTable
from certcal.metrics import _intervals as intervals
from certcal.metrics import binary, binned, classwise, cumulative, kernel, loess, scores
from certcal.metrics._intervals import IntervalRule

if TYPE_CHECKING:
    from certcal.metrics.cosine import KernelSums
    from certcal.predictions import Predictions

Floats = NDArray[np.float64]

# What predictions can be, for texts that differ between them.
TASK_KINDS = ("binary", "top-label", "multiclass")
# Headings of tables, in their order, and what the first is called where accuracy is one number of several.
SECTIONS = (
    "Accuracy",
    "Calibration error in bins",
    "Calibration error without bins",
    "Calibration of risks",
    "Proper scores",
)
SECTION_NAMES = {"binary": {"Accuracy": "Rates and discrimination"}}
# Words that stand for rows: those that practitioners read without looking them up (docs/metrics.md says why), and all.
DEFAULT, ALL = "default", "all"
_ERRORS = ("ece", "equal_mass_ece", "smooth_ece", "ks_error")
_RISK = ("observed_expected_ratio", "calibration_intercept", "calibration_slope")
_TOP_LABEL = ("accuracy", "mean_confidence", "auroc", *_ERRORS, "mce", "top_label_brier_score")
USUAL = {
    "binary": ("base_rate", "mean_score", "auroc", *_ERRORS, *_RISK, "brier_score", "nll"),
    "top-label": (*_TOP_LABEL, "top_label_nll"),
    "multiclass": (*_TOP_LABEL, "classwise_ece", "brier_score", "nll"),
}


# --------------------------------------------------------------------------------------- what a metric is a function of


@dataclass(frozen=True)
class OfSamples:
    """Of all samples at once: left out where tables are streamed."""

    of: Callable[..., float] | None = None


@dataclass(frozen=True)
class OfBins:
    """Of the sums per bin, and of the top-label Brier score if ``scored``; ``mass`` is for bins of equal mass."""

    of: Callable[..., float]
    scored: bool = False
    mass: bool = False


@dataclass(frozen=True)
class MeanOf:
    """Mean of a loss per sample; streams use ``of_bins`` if given, and have an interval if small cells tell enough."""

    losses: Callable[..., NDArray[Any]]
    of_bins: Callable[[BinTable], float] | None = None
    of_cells: bool = False


@dataclass(frozen=True)
class OfExtremes:
    """Of the lowest and the highest value of the cumulative deviation."""

    of: Callable[[float, float], float]
    of_samples: Callable[..., float]


@dataclass(frozen=True)
class OfKernelSums:
    """Of kernel sums over the samples or, with a bound on the error, over a grid of moments."""

    of: Callable[[KernelSums], float]
    of_grid: Callable[..., tuple[float, float]]


@dataclass(frozen=True)
class OfClasses:
    """Of the sums per class and bin; bins of equal mass are not streamed."""

    mass: bool = False


@dataclass(frozen=True)
class OfPart:
    """Of something that several metrics share, made once from the samples; left out where tables are streamed."""

    make: Callable[..., Any]
    of: Callable[[Any], float]


Form = OfSamples | OfBins | MeanOf | OfExtremes | OfKernelSums | OfClasses | OfPart


# --------------------------------------------------------------------------------------------------------- the entries


@dataclass(frozen=True)
class MetricEntry:
    """A metric of the table."""

    function: Callable[..., float]
    """The metric: a function of arrays, ``sample_weight`` and options. Its name is that of the row."""
    label: str
    definition: str
    section: str = "Other"
    place: int = 0
    """The heading it stands under, and where."""
    form: Form = field(default_factory=OfSamples)
    """What it is a function of, which says how it streams."""
    reads: Literal["pair", "confidence", "correct", "classes", "logits"] = "pair"
    """What the function takes: confidences and correctness, one of them, class probabilities and labels, or logits
    instead of probabilities where there are some."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further options of the row."""
    better: Literal["lower", "higher", "neither"] | float = "lower"
    """Which values are better; a number is the ideal, and nearer is better."""
    short: str = ""
    """What it is called, how it is computed in a sentence, and a short label for narrow tables."""
    headline: int = 0
    """Its place in tables with a line per group; 0 where it is not shown."""
    test: bool = False
    """Whether it belongs to a test of calibration, and has no interval."""
    tasks: tuple[str, ...] = TASK_KINDS
    """Kinds of tasks that it means something for; it is measured and shown for these."""
    interval: IntervalRule | None = None
    """How it gets its interval; without one, from the percentiles of resamples."""
    caution: str = ""
    """A sentence that stands below every table that shows it."""
    by_kind: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Other texts for a kind of task, by kind and then by "name" (of the row), "label", "definition" or "short"."""

    @property
    def name(self) -> str:
        """Name of the row."""
        return self.function.__name__

    @property
    def bins(self) -> bool:
        """Whether it has a row per number of bins."""
        return isinstance(self.form, OfBins | OfClasses)

    def text(self, what: Literal["name", "label", "definition", "short"], kind: str | None = None) -> str:
        """A text in the words of a kind of task; the short label is the label where there is none."""
        found = self.by_kind.get(kind or "", {}).get(what) or str(getattr(self, what))
        return found or self.text("label", kind)

    def arguments(self, predictions: Predictions) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The checked arrays and the options that the function is called with; None when they are not there."""
        p, y, x = predictions.probabilities, predictions.labels, predictions.logits
        if self.reads == "pair":
            return (predictions.confidence, predictions.correct), {}
        if self.reads in ("confidence", "correct"):
            return (getattr(predictions, self.reads),), {}
        if p is None or y is None:
            return None
        return ((x, y), {"from_logits": True}) if self.reads == "logits" and x is not None else ((p, y), {})

    def settings(self, count: int | None, closed: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The settings of the row with so many bins; what is given replaces options that it has."""
        own = {key: (given or {}).get(key, value) for key, value in self.options.items()}
        return {**({} if count is None else {"bins": count, "closed": closed}), **own}


_RATES, _BINS, _WHOLE, _RISKS, _SCORES = SECTIONS
_OF_CLASSES = ("top-label", "multiclass")


def _binary(definition: str = "", label: str = "", name: str = "", short: str = "") -> dict[str, dict[str, str]]:
    texts = {"definition": definition, "label": label, "name": name, "short": short}
    return {"binary": {what: text for what, text in texts.items() if text}}


_ENTRIES = (
    MetricEntry(
        scores.accuracy,
        "accuracy",
        "The share of samples whose prediction is correct.",
        _RATES,
        1,
        MeanOf(np.asarray, scores.accuracy_of, of_cells=True),
        "correct",
        better="higher",
        headline=1,
        tasks=_OF_CLASSES,
        interval=intervals.rate_of(np.asarray),
    ),
    MetricEntry(
        scores.base_rate,
        "base rate",
        "The share of samples whose outcome is 1.",
        _RATES,
        0,
        MeanOf(np.asarray, scores.accuracy_of, of_cells=True),
        "correct",
        better="neither",
        headline=1,
        tasks=("binary",),
        interval=intervals.rate_of(np.asarray),
    ),
    MetricEntry(
        scores.mean_confidence,
        "mean confidence",
        "The mean of the confidences. Above the accuracy, the model is overconfident on the whole.",
        _RATES,
        2,
        MeanOf(scores.as_float64, scores.mean_confidence_of, of_cells=True),
        "confidence",
        better="neither",
        short="mean conf.",
        headline=2,
        by_kind=_binary(
            "The mean of the scores. Above the base rate, the model over-predicts on the whole; below it, it "
            "under-predicts.",
            "mean score",
            "mean_score",
            "mean score",
        ),
        interval=intervals.mean_of(scores.as_float64, 1.0),
    ),
    MetricEntry(
        binned.ece,
        "ECE",
        "Samples are put into bins of equal width by their confidence. The value is the mean over samples of the "
        "distance between accuracy and mean confidence of their bin.",
        _BINS,
        1,
        OfBins(binned.ece_of),
        headline=3,
        by_kind=_binary(
            "Samples are put into bins of equal width by their score. The value is the mean over samples of the "
            "distance between observed rate and mean score of their bin."
        ),
        interval=intervals.ECE,
    ),
    MetricEntry(
        binned.equal_mass_ece,
        "ECE, equal-mass bins",
        "As ECE, with bins that hold equally many samples; equal confidences share a bin.",
        _BINS,
        2,
        OfBins(binned.ece_of, mass=True),
        short="equal mass",
        headline=5,
        by_kind=_binary("As ECE, with bins that hold equally many samples; equal scores share a bin."),
        interval=intervals.MASS_ECE,
    ),
    MetricEntry(
        binned.mce,
        "MCE, the largest gap",
        "The largest gap between accuracy and mean confidence of any bin that holds samples, however few.",
        _BINS,
        6,
        OfBins(binned.mce_of),
        short="MCE",
        headline=10,
        by_kind=_binary("The largest gap between observed rate and mean score of any bin that holds samples."),
        interval=intervals.LARGEST_GAP,
    ),
    MetricEntry(
        binned.lp_ece,
        "ECE, root mean square",
        "The root of the mean squared gap of the bins, each weighted by its samples.",
        _BINS,
        4,
        OfBins(binned.lp_ece_of),
        options={"p": 2.0},
        interval=intervals.LP,
    ),
    MetricEntry(
        binned.debiased_ece,
        "RMS gap, debiased",
        "The root of the mean squared gap of the bins, after the expected sampling error of each bin is subtracted.",
        _BINS,
        3,
        OfBins(binned.debiased_ece_of),
        interval=intervals.RMS,
    ),
    MetricEntry(
        scores.harmonic_calibration_score,
        "harmonic score of accuracy, 1 − ECE",
        "The harmonic mean of the accuracy and 1 − ECE: high only when both are.",
        _RATES,
        4,
        OfBins(scores.harmonic_score_of),
        options={"beta": 1.0},
        better="higher",
        tasks=_OF_CLASSES,
        interval=intervals.HARMONIC,
    ),
    MetricEntry(
        scores.brier_reliability,
        "= reliability (miscalibration)",
        "The part of the Brier score that recalibrating the bins would remove.",
        _SCORES,
        3,
        OfBins(scores.reliability_of),
        interval=intervals.RELIABILITY,
    ),
    MetricEntry(
        scores.brier_resolution,
        "− resolution (what is told apart)",
        "How much the accuracies of the bins differ from the overall accuracy: more is better.",
        _SCORES,
        4,
        OfBins(scores.resolution_of),
        better="higher",
        by_kind=_binary("How much the observed rates of the bins differ from the base rate: more is better."),
        interval=intervals.RESOLUTION,
    ),
    MetricEntry(
        scores.brier_uncertainty,
        "+ uncertainty (of the outcomes)",
        "The variance of the outcomes, which no model of these samples can change.",
        _SCORES,
        5,
        OfBins(scores.uncertainty_of),
        better="neither",
        interval=intervals.UNCERTAINTY,
    ),
    MetricEntry(
        scores.brier_within_bin,
        "+ spread within bins",
        "What is left because confidences differ within their bin.",
        _SCORES,
        6,
        OfBins(scores.within_bin_of, scored=True),
        better="neither",
        by_kind=_binary("What is left because scores differ within their bin."),
        interval=intervals.WITHIN,
    ),
    MetricEntry(
        classwise.classwise_ece,
        "ECE per class, averaged",
        "The ECE of “the probability of class k” against “the label is k”, averaged over the classes.",
        _BINS,
        7,
        OfClasses(),
        "classes",
        tasks=("multiclass",),
        interval=intervals.CLASSWISE,
    ),
    MetricEntry(
        classwise.classwise_equal_mass_ece,
        "ECE per class, equal-mass",
        "As the ECE per class, with equal-mass bins chosen for each class.",
        _BINS,
        8,
        OfClasses(mass=True),
        "classes",
        tasks=("multiclass",),
        interval=intervals.CLASSWISE_MASS,
    ),
    MetricEntry(
        binned.sweep_ece,
        "ECE, monotone sweep",
        "As ECE with equal-mass bins, with as many bins as keep the accuracies rising.",
        _BINS,
        5,
        OfSamples(binned.sweep_ece_of),
        by_kind=_binary("As ECE with equal-mass bins, with as many bins as keep the observed rates rising."),
        interval=intervals.SWEEP_ECE,
    ),
    MetricEntry(
        cumulative.ks_error,
        "KS calibration error",
        "The largest distance from zero of the running sum of correctness minus confidence, taken in the order of the "
        "confidences, divided by the number of samples. No bins are chosen.",
        _WHOLE,
        2,
        OfExtremes(lambda low, high: max(high, -low), cumulative.ks_error_of),
        short="KS",
        headline=7,
        by_kind=_binary(
            "The largest distance from zero of the running sum of outcome minus score, taken in the order of the "
            "scores, divided by the number of samples. No bins are chosen."
        ),
        interval=intervals.SUP,
    ),
    MetricEntry(
        cumulative.kuiper_error,
        "Kuiper calibration error",
        "The range of the same running sum: the largest miscalibration of any interval of confidences.",
        _WHOLE,
        3,
        OfExtremes(lambda low, high: high - low, cumulative.kuiper_error_of),
        short="Kuiper",
        by_kind=_binary("The range of the same running sum: the largest miscalibration of any interval of scores."),
        interval=intervals.RANGE,
    ),
    MetricEntry(
        kernel.smooth_ece,
        "SmoothECE",
        "Gaps are smoothed with a kernel, reflected at 0 and 1, whose width is where the smoothed error equals it. No "
        "bins are chosen.",
        _WHOLE,
        1,
        OfKernelSums(kernel.smoothed_error, kernel.smooth_ece_of),
        headline=4,
        interval=intervals.SMOOTH,
    ),
    MetricEntry(
        kernel.kde_ece,
        "ECE by kernel density",
        "Accuracy as a function of the confidence is estimated with kernels; the value is its mean distance from the "
        "confidence.",
        _WHOLE,
        4,
        OfKernelSums(kernel.density_error, kernel.kde_ece_of),
        caution="ECE by kernel density is too large where scores crowd near 0 and 1: of a calibrated model (1,500 "
        "scores, Beta(0.1, 0.1)) it says 0.062 ± 0.005 where every other calibration error says about 0.01.",
        by_kind=_binary(
            "The observed rate as a function of the score is estimated with kernels; the value is its mean distance "
            "from the score."
        ),
        interval=intervals.DENSITY,
    ),
    MetricEntry(
        kernel.mmce,
        "MMCE",
        "A kernel compares all pairs of samples; the value is zero only when no smooth function of the confidence "
        "tells correct from expected.",
        _WHOLE,
        5,
        OfSamples(kernel.mmce_of),
        by_kind=_binary(
            "A kernel compares all pairs of samples; the value is zero only when no smooth function of the score "
            "tells outcomes from what the scores expect."
        ),
        interval=intervals.HILBERT,
    ),
    MetricEntry(
        scores.top_label_brier_score,
        "Brier score, top label",
        "The mean squared difference between confidence and correctness.",
        _SCORES,
        2,
        MeanOf(scores.top_label_brier, of_cells=True),
        short="Brier",
        headline=6,
        by_kind=_binary(
            "The mean squared difference between score and outcome.", "Brier score", "brier_score", "Brier"
        ),
        interval=intervals.mean_of(scores.top_label_brier, 1.0),
    ),
    MetricEntry(
        scores.top_label_nll,
        "log loss, top label",
        "The mean of −log z over correct samples and −log(1 − z) over wrong ones.",
        _SCORES,
        8,
        MeanOf(scores.top_label_log_losses),
        short="log loss",
        headline=8,
        by_kind=_binary(
            "The mean of −log s over samples with outcome 1 and −log(1 − s) over the others, for scores s.",
            "log loss",
            "nll",
            "log loss",
        ),
        interval=intervals.mean_of(scores.top_label_log_losses),
    ),
    MetricEntry(
        scores.auroc,
        "AUROC (confidence ranks correct)",
        "The probability that a random correct sample has a higher confidence than a random wrong one; ties count "
        "half.",
        _RATES,
        3,
        OfSamples(scores.auroc_of),
        better="higher",
        short="AUROC",
        headline=9,
        by_kind=_binary(
            "The probability that a random sample with outcome 1 has a higher score than a random one with outcome 0; "
            "ties count half.",
            "AUROC (score ranks outcomes)",
        ),
        interval=intervals.AUROC,
    ),
    MetricEntry(
        scores.accuracy_at_threshold,
        "accuracy",
        "The share of samples with outcome 1 and a score of at least the threshold, or with outcome 0 and one below.",
        _RATES,
        5,
        MeanOf(scores.right_at, of_cells=True),
        options={"threshold": 0.5},
        better="higher",
        headline=11,
        tasks=("binary",),
        by_kind=_binary(name="accuracy"),
        interval=intervals.rate_of(scores.right_at),
    ),
    MetricEntry(
        scores.brier_score,
        "Brier score, all classes",
        "The mean squared distance between the probabilities of all classes and the outcome, from 0 to 2.",
        _SCORES,
        1,
        MeanOf(scores.brier),
        "classes",
        tasks=("multiclass",),
        interval=intervals.mean_of(scores.brier, 2.0),
    ),
    MetricEntry(
        scores.nll,
        "log loss, all classes",
        "The mean of −log of the probability that was given to the true class.",
        _SCORES,
        7,
        MeanOf(scores.log_losses),
        "logits",
        tasks=("multiclass",),
        interval=intervals.mean_of(scores.log_losses),
    ),
    MetricEntry(
        binary.calibration_slope,
        "calibration slope",
        "The slope of a logistic regression of the outcome on the log-odds of the score: 1 for a calibrated one; below "
        "1, the scores are too extreme. Undefined for one outcome only, outcomes that a threshold separates, or a "
        "score of exactly 0 or 1 that was wrong.",
        _RISKS,
        1,
        OfPart(binary.OutcomeRegression, lambda fit: fit.line[1]),
        better=1.0,
        tasks=("binary",),
        interval=binary.SLOPE,
    ),
    MetricEntry(
        binary.calibration_intercept,
        "calibration intercept",
        "The intercept of the same regression with the slope held at 1, also called calibration in the large: 0 for "
        "a calibrated one; above 0, events are more frequent than the scores say. Undefined for one outcome only, or "
        "a score of exactly 0 or 1 that was wrong.",
        _RISKS,
        2,
        OfPart(binary.OutcomeRegression, attrgetter("shift")),
        better=0.0,
        tasks=("binary",),
        interval=binary.INTERCEPT,
    ),
    MetricEntry(
        binary.observed_expected_ratio,
        "observed / expected",
        "The number of events divided by the sum of the scores: 1 for calibrated ones; above 1, the scores are too low "
        "on the whole.",
        _RISKS,
        3,
        OfSamples(binary.ratio_of),
        better=1.0,
        short="O/E",
        headline=12,
        tasks=("binary",),
        interval=binary.RATIO,
    ),
    MetricEntry(
        loess.ici,
        "ICI, smoothed curve",
        "The outcomes are smoothed over the scores with a loess of span 0.75; the value is the mean distance between "
        "this curve and the scores.",
        _RISKS,
        4,
        OfPart(loess.CalibrationCurve, attrgetter("mean")),
        short="ICI",
        tasks=("binary",),
        interval=loess.ICI,
    ),
    MetricEntry(
        loess.e50,
        "E50, median distance",
        "The median of the distances between the smoothed curve and the scores.",
        _RISKS,
        5,
        OfPart(loess.CalibrationCurve, methodcaller("quantile", 0.5)),
        tasks=("binary",),
        interval=loess.E50,
    ),
    MetricEntry(
        loess.e90,
        "E90, 90th percentile",
        "The 90th percentile of the distances between the smoothed curve and the scores.",
        _RISKS,
        6,
        OfPart(loess.CalibrationCurve, methodcaller("quantile", 0.9)),
        tasks=("binary",),
        interval=loess.E90,
    ),
    MetricEntry(
        binary.spiegelhalter_z,
        "Spiegelhalter’s z",
        "How far the Brier score is from what calibrated scores would give, in standard deviations: above 0, the "
        "scores are too extreme.",
        _RISKS,
        7,
        OfSamples(binary.spiegelhalter_z_of),
        better="neither",
        test=True,
        tasks=("binary",),
    ),
    MetricEntry(
        binary.spiegelhalter_p,
        "p-value of Spiegelhalter’s z",
        "How often calibrated scores would have a z at least as far from 0, for many samples. Small values speak "
        "against calibration; large ones do not show it.",
        _RISKS,
        8,
        OfSamples(binary.spiegelhalter_p_of),
        better="neither",
        test=True,
        tasks=("binary",),
    ),
)

METRICS = {entry.name: entry for entry in _ENTRIES}
# Names of the rows, in the order of the table.
NAMES = METRICS.keys()


# ----------------------------------------------------------------------------------------------- what is read from them


def entry_of(function: Callable[..., Any]) -> MetricEntry | None:
    """The entry of a metric's function."""
    return next((entry for entry in METRICS.values() if entry.function is function), None)


def entry_named(name: str, task: str | None = None) -> MetricEntry | None:
    """The entry of a row's name, in a kind of task or, where that is not known, in the first that has such a row."""
    if task is None:
        return METRICS.get(name) or next(filter(None, (entry_named(name, kind) for kind in TASK_KINDS)), None)
    return next((each for each in METRICS.values() if task in each.tasks and each.text("name", task) == name), None)


def row_names(task: str | None = None) -> list[str]:
    """Names of the rows of a kind of task, or of all."""
    kinds = TASK_KINDS if task is None else (task,)
    every = (each.text("name", kind) for each in METRICS.values() for kind in kinds if kind in each.tasks)
    return list(dict.fromkeys(every))


def metric_name(name: str) -> str:
    """The row that is called so: by its name in any spelling, or as it is shown; what none is called stays plain."""
    plain = plain_name(name)
    if plain in row_names():
        return plain
    shown = {
        plain_name(text): each.text("name", kind)
        for each in METRICS.values()
        for kind in each.tasks
        for text in (each.text("label", kind), each.name.removesuffix("_error"))
    }
    return shown.get(plain, plain)


def table_rows(counts: Iterable[int], task: str) -> Iterator[tuple[MetricEntry, int | None]]:
    """Entries and numbers of bins in the order of the table: a run of binned metrics is repeated for each number."""
    shown = (entry for entry in METRICS.values() if task in entry.tasks)
    for with_bins, entries in groupby(shown, key=lambda entry: entry.bins):
        members = list(entries)
        for count in counts if with_bins else (None,):
            yield from ((entry, count) for entry in members)


def check_names(metrics: Iterable[Any]) -> tuple[Any, ...]:
    """Names in plain spelling, "default", "all", and metrics of one's own; others are refused with the nearest."""
    found: list[Any] = []
    known = [*row_names(), DEFAULT, ALL]
    for name in metrics:
        plain = metric_name(name) if isinstance(name, str) else name
        if not callable(name) and not (isinstance(plain, str) and plain in known):
            near = get_close_matches(str(plain), known, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise InputError(f"there is no {shortened(name)}", argument="metrics", remedy=remedy)
        found.append(plain)
    return tuple(found)


def named_rows(metrics: Iterable[Any], task: str) -> list[Any]:
    """Checked names and metrics of one's own, with the rows that "default" and "all" stand for; none is the default."""
    words = {DEFAULT: USUAL[task], ALL: row_names(task)}
    every = (words.get(each, (each,)) if isinstance(each, str) else (each,) for each in metrics or (DEFAULT,))
    return list(dict.fromkeys(name for some in every for name in some))
