"""Every metric once: its function, its words, and what it is a function of.

Adding a metric is one function and one entry of :data:`METRICS`. Tables, pages, streams, the bootstrap and the command
line all read the entries, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.binning import BinTable
from certcal.metrics import binned, classwise, cumulative, kde, scores, smooth
from certcal.metrics._mmce import mmce

if TYPE_CHECKING:
    from certcal.metrics.cosine import KernelSums
    from certcal.predictions import Predictions

Floats = NDArray[np.float64]

# What predictions can be, for texts that differ between them.
TASK_KINDS = ("binary", "top-label", "multiclass")
# Headings of tables, in their order.
SECTIONS = ("Accuracy", "Calibration error in bins", "Calibration error without bins", "Proper scores")


# --------------------------------------------------------------------------------------- what a metric is a function of


@dataclass(frozen=True)
class OfSamples:
    """Of all samples at once: called with the weights of every replicate, and left out where tables are streamed."""


@dataclass(frozen=True)
class OfBins:
    """Of the sums per bin, and of the top-label Brier score if ``scored``; ``mass`` is for bins of equal mass."""

    of: Callable[..., float]
    scored: bool = False
    mass: bool = False


@dataclass(frozen=True)
class MeanOf:
    """Mean of a loss per sample; streams use ``of_bins`` if given, and their intervals ``of_atoms``."""

    losses: Callable[..., NDArray[Any]]
    of_bins: Callable[[BinTable], float] | None = None
    of_atoms: Callable[[Any, Floats], float] | None = None


@dataclass(frozen=True)
class OfExtremes:
    """Of the lowest and the highest value of the cumulative deviation."""

    of: Callable[[float, float], float]


@dataclass(frozen=True)
class OfKernelSums:
    """Of kernel sums over the samples or, with a bound on the error, over a grid of moments."""

    of: Callable[[KernelSums], float]
    of_grid: Callable[..., tuple[float, float]]


@dataclass(frozen=True)
class OfClasses:
    """Of the sums per class and bin; bins of equal mass are not streamed."""

    mass: bool = False


Form = OfSamples | OfBins | MeanOf | OfExtremes | OfKernelSums | OfClasses


# --------------------------------------------------------------------------------------------------------- the entries


@dataclass(frozen=True)
class MetricEntry:
    """A metric of the table.

    Attributes
    ----------
    name
        Of its row.
    function
        The metric: a function of arrays, ``sample_weight`` and options.
    label, definition, short
        What it is called, how it is computed in a sentence, and a short label for narrow tables.
    section, place
        The heading it stands under, and where.
    form
        What it is a function of, which says how it streams and how a replicate of the bootstrap is computed.
    reads
        What the function takes: confidences and correctness, one of them, class probabilities and labels, or logits
        instead of probabilities where there are some.
    bins
        Whether it has a row per number of bins.
    options
        Further options of the row.
    better
        Which values are better.
    headline
        Its place in tables with a line per group; 0 where it is not shown.
    by_kind
        Other texts for a kind of task, by kind and then by "label", "definition" or "short".
    """

    name: str
    function: Callable[..., float]
    label: str
    definition: str
    section: str = "Other"
    place: int = 0
    form: Form = field(default_factory=OfSamples)
    reads: Literal["pair", "confidence", "correct", "classes", "logits"] = "pair"
    bins: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    better: Literal["lower", "higher", "neither"] = "lower"
    short: str = ""
    headline: int = 0
    by_kind: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def text(self, what: Literal["label", "definition", "short"], kind: str | None = None) -> str:
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

    def settings(self, count: int | None, closed: str) -> dict[str, Any]:
        """The settings of the row with so many bins."""
        return {**({} if count is None else {"bins": count, "closed": closed}), **self.options}


_RATES, _BINS, _WHOLE, _SCORES = SECTIONS

_ENTRIES = (
    MetricEntry(
        "accuracy",
        scores.accuracy,
        "accuracy",
        "The share of samples whose prediction is correct.",
        _RATES,
        1,
        MeanOf(np.asarray, scores.accuracy_of, lambda atoms, w: float(np.dot(w, atoms.correct) / w.sum())),
        "correct",
        better="higher",
        headline=1,
    ),
    MetricEntry(
        "mean_confidence",
        scores.mean_confidence,
        "mean confidence",
        "The mean of the confidences. Above the accuracy, the model is overconfident on the whole.",
        _RATES,
        2,
        MeanOf(scores.as_float64, scores.mean_confidence_of, scores.mean_confidence_of_atoms),
        "confidence",
        better="neither",
        short="mean conf.",
        headline=2,
    ),
    MetricEntry(
        "ece",
        binned.ece,
        "ECE",
        "Samples are put into bins of equal width by their confidence. The value is the mean over samples of the "
        "distance between accuracy and mean confidence of their bin.",
        _BINS,
        1,
        OfBins(binned.ece_of),
        bins=True,
        headline=3,
    ),
    MetricEntry(
        "equal_mass_ece",
        binned.equal_mass_ece,
        "ECE, equal-mass bins",
        "As ECE, with bins that hold equally many samples; equal confidences share a bin.",
        _BINS,
        2,
        OfBins(binned.ece_of, mass=True),
        bins=True,
        short="equal mass",
        headline=5,
    ),
    MetricEntry(
        "mce",
        binned.mce,
        "MCE, the largest gap",
        "The largest gap between accuracy and mean confidence of any bin that holds samples, however few.",
        _BINS,
        6,
        OfBins(binned.mce_of),
        bins=True,
        short="MCE",
        headline=10,
    ),
    MetricEntry(
        "lp_ece",
        binned.lp_ece,
        "ECE, root mean square",
        "The root of the mean squared gap of the bins, each weighted by its samples.",
        _BINS,
        4,
        OfBins(binned.lp_ece_of),
        bins=True,
        options={"p": 2.0},
    ),
    MetricEntry(
        "debiased_ece",
        binned.debiased_ece,
        "RMS gap, debiased",
        "The root of the mean squared gap of the bins, after the expected sampling error of each bin is subtracted.",
        _BINS,
        3,
        OfBins(binned.debiased_ece_of),
        bins=True,
    ),
    MetricEntry(
        "harmonic_calibration_score",
        scores.harmonic_calibration_score,
        "harmonic score of accuracy, 1 − ECE",
        "The harmonic mean of the accuracy and 1 − ECE: high only when both are.",
        _RATES,
        4,
        OfBins(scores.harmonic_score_of),
        bins=True,
        options={"beta": 1.0},
        better="higher",
    ),
    MetricEntry(
        "brier_reliability",
        scores.brier_reliability,
        "= reliability (miscalibration)",
        "The part of the Brier score that recalibrating the bins would remove.",
        _SCORES,
        3,
        OfBins(scores.reliability_of),
        bins=True,
    ),
    MetricEntry(
        "brier_resolution",
        scores.brier_resolution,
        "− resolution (what is told apart)",
        "How much the accuracies of the bins differ from the overall accuracy: more is better.",
        _SCORES,
        4,
        OfBins(scores.resolution_of),
        bins=True,
        better="higher",
    ),
    MetricEntry(
        "brier_uncertainty",
        scores.brier_uncertainty,
        "+ uncertainty (of the outcomes)",
        "The variance of the outcomes, which no model of these samples can change.",
        _SCORES,
        5,
        OfBins(scores.uncertainty_of),
        bins=True,
        better="neither",
    ),
    MetricEntry(
        "brier_within_bin",
        scores.brier_within_bin,
        "+ spread within bins",
        "What is left because confidences differ within their bin.",
        _SCORES,
        6,
        OfBins(scores.within_bin_of, scored=True),
        bins=True,
        better="neither",
    ),
    MetricEntry(
        "classwise_ece",
        classwise.classwise_ece,
        "ECE per class, averaged",
        "The ECE of “the probability of class k” against “the label is k”, averaged over the classes.",
        _BINS,
        7,
        OfClasses(),
        "classes",
        bins=True,
    ),
    MetricEntry(
        "classwise_equal_mass_ece",
        classwise.classwise_equal_mass_ece,
        "ECE per class, equal-mass",
        "As the ECE per class, with equal-mass bins chosen for each class.",
        _BINS,
        8,
        OfClasses(mass=True),
        "classes",
        bins=True,
    ),
    MetricEntry(
        "sweep_ece",
        binned.sweep_ece,
        "ECE, monotone sweep",
        "As ECE with equal-mass bins, with as many bins as keep the accuracies rising.",
        _BINS,
        5,
    ),
    MetricEntry(
        "ks_error",
        cumulative.ks_error,
        "Kolmogorov–Smirnov",
        "The largest distance from zero of the running sum of correctness minus confidence, taken in the order of the "
        "confidences, divided by the number of samples. No bins are chosen.",
        _WHOLE,
        2,
        OfExtremes(lambda low, high: max(high, -low)),
        short="KS",
        headline=7,
    ),
    MetricEntry(
        "kuiper_error",
        cumulative.kuiper_error,
        "Kuiper",
        "The range of the same running sum: the largest miscalibration of any interval of confidences.",
        _WHOLE,
        3,
        OfExtremes(lambda low, high: high - low),
    ),
    MetricEntry(
        "smooth_ece",
        smooth.smooth_ece,
        "SmoothECE",
        "Gaps are smoothed with a kernel, reflected at 0 and 1, whose width is where the smoothed error equals it. No "
        "bins are chosen.",
        _WHOLE,
        1,
        OfKernelSums(smooth.smoothed_error, smooth.smooth_ece_of),
        headline=4,
    ),
    MetricEntry(
        "kde_ece",
        kde.kde_ece,
        "ECE by kernel density",
        "Accuracy as a function of the confidence is estimated with kernels; the value is its mean distance from the "
        "confidence.",
        _WHOLE,
        4,
        OfKernelSums(kde.density_error, kde.kde_ece_of),
    ),
    MetricEntry(
        "mmce",
        mmce,
        "MMCE",
        "A kernel compares all pairs of samples; the value is zero only when no smooth function of the confidence "
        "tells correct from expected.",
        _WHOLE,
        5,
    ),
    MetricEntry(
        "top_label_brier_score",
        scores.top_label_brier_score,
        "Brier score, top label",
        "The mean squared difference between confidence and correctness.",
        _SCORES,
        2,
        MeanOf(scores.top_label_brier, of_atoms=scores.top_label_brier_of_atoms),
        short="Brier",
        headline=6,
    ),
    MetricEntry(
        "top_label_nll",
        scores.top_label_nll,
        "log loss, top label",
        "The mean of −log z over correct samples and −log(1 − z) over wrong ones.",
        _SCORES,
        8,
        MeanOf(scores.top_label_log_losses),
        short="log loss",
        headline=8,
    ),
    MetricEntry(
        "auroc",
        scores.auroc,
        "AUROC (confidence ranks correct)",
        "The probability that a random correct sample has a higher confidence than a random wrong one; ties count "
        "half.",
        _RATES,
        3,
        better="higher",
        short="AUROC",
        headline=9,
    ),
    MetricEntry(
        "brier_score",
        scores.brier_score,
        "Brier score, all classes",
        "The mean squared distance between the probabilities of all classes and the outcome, from 0 to 2.",
        _SCORES,
        1,
        MeanOf(scores.brier),
        "classes",
    ),
    MetricEntry(
        "nll",
        scores.nll,
        "log loss, all classes",
        "The mean of −log of the probability that was given to the true class.",
        _SCORES,
        7,
        MeanOf(scores.log_losses),
        "logits",
    ),
)

METRICS = {entry.name: entry for entry in _ENTRIES}
# Names of the rows, in the order of the table.
NAMES = METRICS.keys()


# ----------------------------------------------------------------------------------------------- what is read from them


def entry_of(function: Callable[..., Any]) -> MetricEntry | None:
    """The entry of a metric's function."""
    return next((entry for entry in METRICS.values() if entry.function is function), None)


def table_rows(counts: Iterable[int]) -> Iterator[tuple[MetricEntry, int | None]]:
    """Entries and numbers of bins in the order of the table: a run of binned metrics is repeated for each number."""
    for with_bins, entries in groupby(METRICS.values(), key=lambda entry: entry.bins):
        members = list(entries)
        for count in counts if with_bins else (None,):
            yield from ((entry, count) for entry in members)


def check_names(metrics: Iterable[Any]) -> None:
    """Refuse names that no metric has, with the nearest that one has.

    Examples
    --------
    >>> check_names(["smoth_ece"])
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: metrics: there is no 'smoth_ece'; did you mean 'smooth_ece'?
    """
    for name in metrics:
        if not callable(name) and not (isinstance(name, str) and name in METRICS):
            near = get_close_matches(str(name), METRICS, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(METRICS)}"
            raise InputError(f"there is no {name!r}", argument="metrics", remedy=remedy)
