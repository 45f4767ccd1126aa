"""Everything that intervals certify about a classifier, in one frozen result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, bin_count, choice, failure_probability
from certcal._base.notebook import Card, CardTable, NotebookCard
from certcal._base.rounding import minus, sure_text
from certcal._base.told import Told
from certcal.binning import CLOSED, edges_for
from certcal.bounds.concentration import binomial_limits
from certcal.claims import Bound, Frozen, in_full, in_words, round_outward, these_samples
from certcal.worst_case._information import Information, decompose_brier_score
from certcal.worst_case._ks import ks_error_of
from certcal.worst_case._mce import mce_of
from certcal.worst_case._population import population_bound
from certcal.worst_case._result import CertifiedValue, WorstCase
from certcal.worst_case._scores import brier_score_of, nll_of
from certcal.worst_case.calibration import calibration_error_of
from certcal.worst_case.equal_mass import any_edges_error_of, equal_mass_error_of
from certcal.worst_case.intervals import Intervals, check_intervals

# Of delta, for a lower bound on the certified share: it only divides alpha, which is small.
_FOR_THE_SHARE = 0.01
_INTERVALS_HOLD = "each interval holds except with probability alpha"
_FREE = "give 0 and 1 as the ends where nothing is known"
# Keys of the metrics in the order in which they are reported.
METRICS = ("brier_score", "nll", "calibration_error", "mce", "ks_error")


@dataclass(frozen=True, eq=False)
class CertifiedRange(Told):
    """What one metric can be when every confidence is anywhere inside its interval.

    Examples
    --------
    >>> ranges = certify([0.513, 0.217], [0.771, 0.433], [1, 0])["brier_score"]
    >>> print(ranges.sentence)
    Brier score is between 0.0497 and 0.2124 on these 2 samples, whatever the confidences inside the given intervals.
    """

    worst: WorstCase | None
    """The largest value over the certified samples, or None when there is none."""
    worst_all: WorstCase
    """The largest value over all samples, with those that are not certified free to be anything."""
    best: WorstCase | None
    """The smallest value over the certified samples, or a bracket of it; None where no best case is known."""

    def with_settings(self, more: Mapping[str, Any]) -> CertifiedRange:
        """The same with more settings in its sentences."""
        return self._each(lambda each: replace(each, settings={**each.settings, **more}))

    def of_scores(self) -> CertifiedRange:
        """The same in the words of a binary score."""
        return self._each(lambda each: replace(each, of="scores"))

    def with_name(self, name: str) -> CertifiedRange:
        """The same under another name."""
        return self._each(lambda each: replace(each, name=name))

    def _each(self, change: Callable[[WorstCase], WorstCase]) -> CertifiedRange:
        worst, best = (None if each is None else change(each) for each in (self.worst, self.best))
        return CertifiedRange(worst, change(self.worst_all), best)

    @property
    def lowest(self) -> float | None:
        """A value that no confidences inside the intervals fall below, or None."""
        if self.best is None:
            return None
        return self.best.value if self.best.lower_end is None else self.best.lower_end

    @property
    def lowest_text(self) -> str | None:
        """``lowest`` as printed: rounded down."""
        return None if self.best is None else self.best.text

    @property
    def sentence(self) -> str:
        """What is claimed about the certified samples."""
        if self.worst is None:
            return f"{self.worst_all.name} of the certified samples is undefined: no sample is certified."
        if self.lowest_text is None:
            return self.worst.sentence
        return (
            f"{self.worst.name}{in_words(self.worst.settings)} is between {self.lowest_text} and {self.worst.text} "
            f"on {these_samples(self.worst.n)}, whatever the {self.worst.of} inside the given intervals."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: over the certified samples, over all, and the range of the certified ones."""
        lowest = None
        if self.best is not None:
            lowest = {"value": self.lowest, "text": self.lowest_text, "reached": self.best.value}
        return {
            "certified": None if self.worst is None else _without_all_samples(self.worst),
            "all": _without_all_samples(self.worst_all),
            "lowest": lowest,
            "sentence": self.sentence,
        }


@dataclass(frozen=True, eq=False)
class CertifiedSummary(NotebookCard):
    """What intervals certify about a classifier on these samples, and about the population they were drawn from.

    Examples
    --------
    >>> certify([0.5, 0.25, 0], [0.75, 0.5, 1], [1, 0, 1], certified=[1, 1, 0])
    CertifiedSummary(n=3, n_certified=2, certified_accuracy=0.3333, calibration_error=0.4834)
    >>> certify([0.5, 0.25], [0.75, 0.5], [1, 0], binary=True).accuracy.sentence
    'base rate is 0.5000: 1 of these 2 outcomes is 1.'
    """

    n: int
    n_certified: int
    """Number of samples, and of certified ones."""
    accuracy: CertifiedValue
    """Certified accuracy: the share of all samples that are certified and correct. Of a binary score the base rate."""
    information: Information
    """What of the information in the confidences is certified to survive, over the certified samples: the certified
    Brier score, taken apart, and a verdict."""
    ranges: Mapping[str, CertifiedRange]
    """Per metric ("brier_score", "nll", "calibration_error", "mce", "ks_error" and, if asked for, "equal_mass_error")
    the worst case over the certified samples, the worst case over all, and the best case. ``summary["ks_error"]`` is
    short for one of them."""
    population: Bound | None
    population_all: Bound
    """Bounds on the worst-case calibration error of the population: given that a sample is certified (None when none
    is), and over all samples. Each holds with probability 1 - delta; both together with 1 - 2 delta."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Bins, closure, delta and alpha."""
    binary: bool = False
    """Whether it is of a binary score: outcomes are fixed, and no sample needs to be certified."""

    @classmethod
    def of(
        cls,
        intervals: Intervals,
        bins: int = 15,
        closed: str = "left",
        delta: float = 0.05,
        alpha: float = 0.0,
        *,
        edges: Any = None,
        chosen: bool = False,
        adaptive: bool = False,
        binary: bool = False,
    ) -> CertifiedSummary:
        """:func:`certify` of checked intervals."""
        delta = failure_probability(delta, "delta")
        alpha = failure_probability(alpha, "alpha", zero=True)
        mask, kept = intervals.certified, intervals.certified_count
        binned: dict[str, Any] = {"bins": bin_count(bins), "closed": choice(closed, CLOSED, "closed")}
        placed = {"edges": edges_for(bins, edges), "closed": closed}
        metrics: dict[str, tuple[Callable[..., WorstCase], bool, dict[str, Any]]] = {
            "brier_score": (brier_score_of, True, {}),
            "nll": (nll_of, True, {}),
            "calibration_error": (calibration_error_of, True, placed),
            "mce": (mce_of, False, placed),
            "ks_error": (ks_error_of, True, {}),
            "equal_mass_error": (equal_mass_error_of, False, binned),
        }
        wanted = (*METRICS, "equal_mass_error") if adaptive else METRICS
        ranges = {key: _certified_range(*metrics[key], intervals, nothing=kept == 0) for key in wanted}
        told = {} if edges is None else {"edges": "frozen" if chosen else "given"}
        for key in ("calibration_error", "mce") if told else ():
            ranges[key] = ranges[key].with_settings(told)
        errors = ranges["calibration_error"]
        if chosen and edges is not None:
            errors = _certified_range(any_edges_error_of, False, binned, intervals, nothing=kept == 0)
        right = int(np.count_nonzero(intervals.correct if mask is None else intervals.correct[mask]))
        information = decompose_brier_score(ranges["brier_score"].worst, intervals.only_certified() if kept else None)
        everywhere = population_bound(errors.worst_all, delta, alpha)
        if binary:
            if mask is not None:
                raise InputError("a binary score has no class that could change", argument="certified", remedy=_FREE)
            everywhere = replace(everywhere, assumptions=(*everywhere.assumptions[:-1], _INTERVALS_HOLD))
            information = replace(information, of="scores")
            ranges = {key: each.of_scores() for key, each in ranges.items()}
        given = (
            None
            if errors.worst is None
            else _population_bound_of_certified(errors.worst, mask is not None, len(intervals), delta, alpha)
        )
        return cls(
            len(intervals),
            kept,
            _certified_accuracy(right, len(intervals), binary),
            information,
            ranges,
            everywhere if binary else given,
            everywhere,
            {**binned, **told, "delta": delta, "alpha": alpha},
            binary,
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranges", Frozen(self.ranges))
        object.__setattr__(self, "settings", Frozen(self.settings))

    def with_name(self, metric: str, name: str) -> CertifiedSummary:
        """The same where one of the ranges has another name."""
        return replace(self, ranges={**self.ranges, metric: self.ranges[metric].with_name(name)})

    @property
    def skill(self) -> CertifiedValue:
        """Certified skill, 1 - (certified Brier score) / (Brier score of the best constant confidence).

        Over the certified samples. Above 0, the confidences carry information that survives inside the intervals.
        """
        return self.information.skill

    def __getitem__(self, metric: str) -> CertifiedRange:
        return self.ranges[metric]

    def __repr__(self) -> str:
        error = self["calibration_error"].worst
        return (
            f"CertifiedSummary(n={self.n}, n_certified={self.n_certified}, {self._share}={self.accuracy.text}, "
            f"{self['calibration_error'].worst_all.name.replace(' ', '_')}="
            f"{'undefined' if error is None else error.text})"
        )

    def card(self) -> Card:
        """What a notebook shows."""
        bound = self.population
        rows: list[tuple[str, ...]] = [
            (self.accuracy.name, "", "", self.accuracy.text, ""),
            *((each.name, minus(each.text), "", "", "") for each in (self.skill, self.information.best_skill)),
        ]
        for ranges in self.ranges.values():
            highest = "undefined" if ranges.worst is None else ranges.worst.text
            rows.append((ranges.worst_all.name, ranges.lowest_text or "", highest, "", ranges.worst_all.text))
        name = f"calibration error of the population, each {sure_text(self.settings['delta'])}"
        rows.append((name, "", "undefined" if bound is None else bound.text, "", self.population_all.text))
        head = ["claim", "certified: at least", "at most", "all: at least", "at most"]
        caption = f"{self.n_certified:,} of {self.n:,} samples are certified{in_words(self.settings)}"
        return Card(self.headline, self.information.verdict, tables=(CardTable(rows, head, caption),))

    @property
    def _share(self) -> str:
        return self.accuracy.name.replace(" ", "_")

    @property
    def headline(self) -> str:
        """The sentence of the exact calibration error: of the certified samples, or of all when none is certified."""
        ranges = self["calibration_error"]
        return (ranges.worst or ranges.worst_all).sentence

    def claims(self) -> Iterator[tuple[str, str, CertifiedValue | WorstCase | Bound]]:
        """Every claim with its key and the samples it is over, "certified" or "all"."""
        yield self._share, "all", self.accuracy
        for name, value in self.information.values.items():
            yield f"certified_{name}", "all" if self.binary else "certified", value
        for key, ranges in self.ranges.items():
            if ranges.worst is not None and not self.binary:
                yield key, "certified", ranges.worst
            yield key, "all", ranges.worst_all
        if self.population is not None and not self.binary:
            yield "population_bound", "certified", self.population
        yield "population_bound", "all", self.population_all

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is claimed, one sentence per claim."""
        return tuple(in_full(claim) for _, _, claim in self.claims())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "certified summary",
            "n": self.n,
            "n_certified": self.n_certified,
            "settings": dict(self.settings),
            self._share: self.accuracy.to_dict(),
            **{f"certified_{name}": value.to_dict() for name, value in self.information.values.items()},
            "information": {"finding": self.information.finding, "verdict": self.information.verdict},
            **{key: ranges.to_dict() for key, ranges in self.ranges.items()},
            "population_bound": {
                "certified": None if self.population is None else self.population.to_dict(),
                "all": self.population_all.to_dict(),
            },
            "headline": self.headline,
        }


@names_wrong_types
def certify(
    lower: Any,
    upper: Any,
    correct: Any,
    *,
    certified: Any = None,
    bins: int = 15,
    closed: str = "left",
    delta: float = 0.05,
    alpha: float = 0.0,
    edges: Any = None,
    chosen: bool = False,
    adaptive: bool = False,
    binary: bool = False,
) -> CertifiedSummary:
    """Everything that intervals of confidences certify about a classifier.

    What is claimed: for every choice of confidences inside the intervals, each metric of the certified samples lies in
    its range, and so does that of all samples when the others may be anything. With probability at least 1 - delta over
    the draw of the samples, the same worst-case calibration error in the population is below its bound.

    Parameters
    ----------
    lower, upper
        Interval of each sample's confidence, in [0, 1].
    correct
        Whether each (certified) prediction is correct, 0 or 1.
    certified
        Which samples are certified, or None for all. There may be none.
    bins, closed
        As for :func:`certcal.metrics.ece`.
    delta
        Probability with which a population bound may fail over the draw of the samples. When alpha > 0 and a mask is
        given, a hundredth of it goes to a Clopper-Pearson lower bound on the certified share.
    alpha
        Probability with which a sample's interval or correctness may be wrong.
    edges
        Edges of the bins, or None for equal widths.
    chosen
        Whether these edges were read off these samples. Population bounds are then for any edges of so many bins.
    adaptive
        Whether to add "equal_mass_error", the bracket of :func:`equal_mass_error`.
    binary
        Whether the intervals are of a binary score and ``correct`` is its outcome. The numbers are the same, the words
        are not; there is no mask.

    Returns
    -------
    CertifiedSummary
        Values, ranges, bounds and their sentences.

    Examples
    --------
    >>> summary = certify([0.125, 0.5], [0.625, 0.87505], [1, 0], bins=3)
    >>> summary.accuracy.value, round(summary["calibration_error"].worst.value, 6)
    (0.5, 0.875025)
    >>> print(summary.headline)
    calibration error (bins=3, closed=left) is at most 0.8751 on these 2 samples
    for all confidences inside the given intervals.
    """
    intervals = check_intervals(lower, upper, correct, certified)
    given: dict[str, Any] = {"edges": edges, "chosen": chosen, "adaptive": adaptive, "binary": binary}
    return CertifiedSummary.of(intervals, bins, closed, delta, alpha, **given)


def _certified_range(
    metric: Callable[..., WorstCase], has_best: bool, options: dict[str, Any], intervals: Intervals, nothing: bool
) -> CertifiedRange:
    if nothing:
        # All samples are free; correct with confidence anywhere in [0, 1] is as bad as free samples get.
        n = len(intervals)
        free = metric(Intervals(np.zeros(n), np.ones(n), np.ones(n, np.uint8), None), **options)
        return CertifiedRange(None, replace(free, settings={**free.settings, "uncertified": "free"}), None)
    worst = metric(intervals, **options)
    best = metric(intervals, best=True, **options) if has_best else None
    return CertifiedRange(worst, worst.all_samples or worst, best)


def _certified_accuracy(right: int, n: int, binary: bool = False) -> CertifiedValue:
    share = Fraction(right, n)
    value = float(share)
    value = value if Fraction(value) <= share else math.nextafter(value, 0.0)
    steps = 10_000 * right // n  # exact: the float of 7/10 is a little below, and must not become 0.6999
    text = f"{steps // 10_000}.{steps % 10_000:04d}"
    if binary:
        counted = f"{right} of these {n} outcomes {'is' if right == 1 else 'are'} 1"
        return CertifiedValue("base rate", value, n, text, f"base rate is {text}: {counted}.")
    counted = f"{right} of these {n} samples are" if n > 1 else f"this sample is{'' if right else ' not'}"
    sentence = f"certified accuracy is {text}: {counted} certified and correct."
    return CertifiedValue("certified accuracy", value, n, text, sentence)


def _population_bound_of_certified(worst: WorstCase, masked: bool, n: int, delta: float, alpha: float) -> Bound:
    """The bound over certified samples, with delta shared when the certified fraction must be bounded too."""
    if not masked or alpha == 0:
        return population_bound(worst, delta, alpha)
    spent = _FOR_THE_SHARE * delta
    fraction = float(binomial_limits(np.array(worst.n), np.array(n), spent, side="lower").lower)
    bound = population_bound(worst, delta - spent, alpha, certified_fraction=fraction)
    share = round_outward(fraction, "lower")
    return replace(bound, delta=delta, settings={**bound.settings, "certified_fraction": share})


def _without_all_samples(worst: WorstCase) -> dict[str, Any]:
    document = worst.to_dict()
    del document["all_samples"]
    return document
