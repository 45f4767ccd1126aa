"""Certified accuracy, and the average certified radius with what is wrong with it.

Certified accuracy is the share of samples that are predicted correctly under every perturbation up to a radius. The
average has three defects (Sun et al., "Average Certified Radius is a Poor Metric for Randomized Smoothing", ICML 2025):
it has no upper limit but the budget's, so a classifier that always answers one class can reach any value; dr/dp_A grows
without limit as p_A approaches 1, so it pays to improve samples that are already easy and to give up hard ones; and
which of two models is ahead changes with the number of draws.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, correctness, same_length, shortened, to_numpy, whole_number
from certcal._base.json import PlainValues
from certcal._base.told import Told
from certcal.claims import short_text
from certcal.smoothing.robustness.votes import vote_radii

# What stands beside every average certified radius.
WARNING = (
    "It rewards making easy samples easier and giving up hard ones, and the order of two models can change with the "
    "number of draws"
)


@dataclass(frozen=True)
class AccuracyCurve(PlainValues, kind="certified accuracy", more="values texts"):
    """Certified accuracy at several radii, as whole numbers of samples.

    Examples
    --------
    >>> curve = certified_accuracy([0.3, 0.8, 0.4], [1, 1, 0], at=[0.25, 0.5])
    >>> curve.certified, curve.fractions, curve.texts
    ((2, 1), (Fraction(2, 3), Fraction(1, 3)), ('0.6666', '0.3333'))
    """

    name: str
    """Of the run."""
    at: tuple[float, ...]
    """Radii, in increasing order."""
    certified: tuple[int, ...]
    """How many samples are certified and correct at each."""
    n: int
    """How many samples there are, abstentions included."""

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The shares, exactly."""
        return tuple(Fraction(count, self.n) for count in self.certified)

    @property
    def values(self) -> tuple[float, ...]:
        """The shares as floats."""
        return tuple(count / self.n for count in self.certified)

    @property
    def texts(self) -> tuple[str, ...]:
        """The shares as printed: rounded down."""
        return tuple(rounded_down(share) for share in self.fractions)

    @property
    def percents(self) -> tuple[str, ...]:
        """The shares in per cent, rounded down to two decimals."""
        hundredths = (share.numerator * 10_000 // share.denominator for share in self.fractions)
        return tuple(f"{each // 100}.{each % 100:02d}" for each in hundredths)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is claimed at each radius, where each sample's radius holds."""
        return tuple(
            f"{count} of these {self.n} samples ({text} %) are predicted correctly under every perturbation of norm up "
            f"to {short_text(radius, 'lower')}, where their certified radii hold."
            for radius, count, text in zip(self.at, self.certified, self.percents, strict=True)
        )


@dataclass(frozen=True, eq=False)
class AccuracySteps(Told):
    """Certified accuracy at every radius: a falling staircase, known exactly since the radius of every sample is.

    Examples
    --------
    >>> steps = AccuracySteps.of([0.3, 0.8, 0.4], [1, 1, 0])
    >>> steps.radii.tolist(), steps.at([0.0, 0.3, 0.31, 0.8, 0.81]).round(4).tolist()
    ([0.3, 0.8], [0.6667, 0.6667, 0.3333, 0.3333, 0.0])
    """

    radii: NDArray[np.float64]
    """Where it falls, in increasing order."""
    shares: NDArray[np.float64]
    """At each of them, which is what holds after the one before up to and including its own; beyond the last, 0."""

    @classmethod
    def of(cls, radii: Any, correct: Any, *, abstained: Any = None) -> AccuracySteps:
        """The staircase of samples; arguments are those of :func:`certified_accuracy`."""
        r, c, no_claim = check_radii(radii, correct, abstained)
        different, counts = np.unique(r[(c == 1) & ~no_claim], return_counts=True)
        return cls(different, np.cumsum(counts[::-1])[::-1] / r.size)

    @classmethod
    def highest(cls, several: Iterable[AccuracySteps]) -> AccuracySteps:
        """The highest of several staircases at each radius, such as of one method's runs at several noise levels."""
        every = list(several)
        radii = np.unique(np.concatenate([each.radii for each in every]))
        return cls(radii, np.max([each.at(radii) for each in every], axis=0))

    def at(self, radius: Any) -> NDArray[np.float64]:
        """Certified accuracy at any radius."""
        return np.append(self.shares, 0.0)[np.searchsorted(self.radii, np.asarray(radius, np.float64), side="left")]


@dataclass(frozen=True)
class BestCurve(PlainValues, kind="best certified accuracy", more="values texts", without="fractions"):
    """At each radius the highest certified accuracy of several runs, and whose it is.

    Examples
    --------
    >>> small = certified_accuracy([0.3, 0.3, 0.2], [1, 1, 1], at=[0.25, 0.5], name="sigma 0.25")
    >>> large = certified_accuracy([0.7, 0.1, 0.1], [1, 1, 1], at=[0.25, 0.5], name="sigma 1")
    >>> best = best_accuracy([small, large])
    >>> best.names, best.texts
    ((('sigma 0.25',), ('sigma 1',)), ('0.6666', '0.3333'))
    """

    at: tuple[float, ...]
    fractions: tuple[Fraction, ...]
    names: tuple[tuple[str, ...], ...]

    @property
    def values(self) -> tuple[float, ...]:
        """The shares as floats."""
        return tuple(float(share) for share in self.fractions)

    @property
    def texts(self) -> tuple[str, ...]:
        """The shares as printed: rounded down."""
        return tuple(rounded_down(share) for share in self.fractions)


@dataclass(frozen=True)
class AverageCertifiedRadius(PlainValues, kind="average certified radius", more="sentence"):
    """Mean certified radius, abstained and wrong samples counting zero. Kept for comparison with published tables.

    Examples
    --------
    >>> average = average_certified_radius([0.2, 1.0, float("nan"), 0.6], [1, 1, 1, 0])
    >>> print(average.sentence)
    average certified radius is 0.3000 on these 4 samples; do not rank models by it.
    """

    name: str
    """Of the run."""
    value: float
    """The mean."""
    n: int
    """Number of samples."""
    top_tenth: float
    """Share of the sum that comes from the tenth of the samples with the largest radii; NaN when the sum is 0."""
    trivial: float | None = None
    """What a classifier that always answers the most frequent label would score at the same σ, draws and α, when these
    are known."""
    as_printed: bool = False
    """Whether the radii are those that a log prints, rounded to nearest."""

    @property
    def sentence(self) -> str:
        """The number and its warning, in short."""
        printed = " as printed" if self.as_printed else ""
        number = f"average certified radius{printed} is {self.value:.4f} on these {self.n} samples"
        return f"{number}; do not rank models by it."

    @property
    def statement(self) -> str:
        """The sentence, why not to rank by it, and what hides in the mean."""
        facts = [self.sentence, f"{WARNING}."]
        if self.top_tenth == self.top_tenth:
            facts.append(f"Here the tenth with the largest radii makes up {100 * self.top_tenth:.1f} % of it.")
        if self.trivial is not None:
            facts.append(f"Always answering the most frequent class would score {self.trivial:.4f}.")
        return " ".join(facts)


@names_wrong_types
def certified_accuracy(radii: Any, correct: Any, at: Any, *, abstained: Any = None, name: str = "") -> AccuracyCurve:
    """Share of samples that are correct and whose certified radius is at least R, for each R.

    Abstained samples are in the denominator and never count, not even at R = 0.

    Parameters
    ----------
    radii
        Certified radius per sample, >= 0; whatever stands where a sample is abstained is not looked at.
    correct
        Is the prediction right?
    at
        Radii R.
    abstained
        Samples that are not certified at all. Default: those whose radius is NaN.
    name
        Of the run.

    Examples
    --------
    >>> certified_accuracy([0.3, 0.0, float("nan")], [1, 1, 1], at=[0]).certified
    (2,)
    """
    r, c, no_claim = check_radii(radii, correct, abstained)
    where = check_at(at)
    reached = np.sort(r[(c == 1) & ~no_claim])
    counts = reached.size - np.searchsorted(reached, where, side="left")
    return AccuracyCurve(name, tuple(where.tolist()), tuple(int(count) for count in counts), r.size)


@names_wrong_types
def best_accuracy(curves: Iterable[AccuracyCurve]) -> BestCurve:
    """At each radius, the best of several curves (usually one per σ); ties name all who reach it.

    Parameters
    ----------
    curves
        Curves of :func:`certified_accuracy` at the same radii.
    """
    several = list(curves)
    if not several:
        raise InputError("curves is empty; pass at least one curve")
    for curve in several:
        if curve.at != several[0].at:
            raise InputError(f"curve {curve.name!r} is at other radii than the first; compute all at the same radii")
    best: list[Fraction] = []
    names: list[tuple[str, ...]] = []
    for shares in zip(*(curve.fractions for curve in several), strict=True):
        best.append(max(shares))
        names.append(tuple(curve.name for curve, share in zip(several, shares, strict=True) if share == max(shares)))
    return BestCurve(several[0].at, tuple(best), tuple(names))


@names_wrong_types
def average_certified_radius(
    radii: Any,
    correct: Any,
    *,
    abstained: Any = None,
    trivial: float | None = None,
    name: str = "",
    as_printed: bool = False,
) -> AverageCertifiedRadius:
    """Mean over all samples of the certified radius, zero where wrong or abstained. Its sentence says what it hides.

    Parameters
    ----------
    radii
        Certified radius per sample.
    correct
        Is the prediction right?
    abstained
        Samples that are not certified at all. Default: those whose radius is NaN.
    trivial
        What :func:`trivial_average_radius` gives for the same data, to be said beside it.
    name
        Of the run.
    as_printed
        Say that the radii are those that a log prints, rounded to nearest.
    """
    r, c, no_claim = check_radii(radii, correct, abstained)
    counted = np.sort(np.where((c == 1) & ~no_claim, r, 0.0))[::-1]
    total = float(np.sum(counted))
    top = float(np.sum(counted[: -(-r.size // 10)]))
    tenth = top / total if total > 0 else float("nan")
    return AverageCertifiedRadius(name, total / r.size, r.size, tenth, trivial, as_printed)


@names_wrong_types
def trivial_average_radius(labels: Any, *, sigma: float, n: int, alpha: float = 0.001) -> float:
    """Average certified radius of a classifier that always answers the most frequent of ``labels``.

    Every draw is a vote for its one answer, so its samples of that class have the largest radius there is,
    σΦ⁻¹(α^(1/n)), and the others count zero.

    Examples
    --------
    >>> [round(trivial_average_radius([0, 1], sigma=1.0, n=n), 3) for n in (50, 100, 200)]
    [0.565, 0.75, 0.913]
    """
    n = whole_number(n, 1, 2**53, "n", "pass the number of draws")
    try:
        _, counts = np.unique(np.asarray(labels), return_counts=True)
    except (TypeError, ValueError):  # lists of several lengths, or values that have no order
        counts = np.array([])
    if not counts.size:
        raise InputError(f"labels is {shortened(labels)}; pass one label per sample")
    largest = float(vote_radii(n, n, sigma, alpha))
    return 0.0 if largest != largest else float(counts.max() / counts.sum()) * largest


def rounded_down(share: Fraction) -> str:
    """Four decimals of a share, rounded down exactly."""
    whole, rest = divmod(share.numerator * 10_000 // share.denominator, 10_000)
    return f"{whole}.{rest:04d}"


def check_at(at: Any) -> NDArray[np.float64]:
    """Distinct radii >= 0 in increasing order."""
    where = np.atleast_1d(to_numpy(at, "at")).astype(np.float64).reshape(-1)
    if where.size == 0:
        raise InputError("at is empty; pass at least one radius")
    bad = ~(np.isfinite(where) & (where >= 0))
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"at[{index}] is {where[index]:g}; radii are finite numbers >= 0")
    return np.unique(where)


def check_radii(
    radii: Any, correct: Any, abstained: Any
) -> tuple[NDArray[np.float64], NDArray[np.uint8], NDArray[np.bool_]]:
    """Radii, correctness and abstentions of equal length; a radius that counts is finite and not negative."""
    r = np.atleast_1d(to_numpy(radii, "radii")).astype(np.float64)
    if r.ndim != 1 or r.size == 0:
        raise InputError(f"radii has shape {r.shape}; pass one radius per sample")
    c = correctness(correct)
    same_length(radii=r.size, correct=c.size)
    no_claim = np.isnan(r) if abstained is None else correctness(abstained, "abstained", "pass 0 or 1") == 1
    same_length(radii=r.size, abstained=no_claim.size)
    bad = ~no_claim & ~((r >= 0) & (r < np.inf))
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"radii[{index}] is {r[index]:g}; a radius is finite and >= 0 unless the sample is abstained")
    return r, c, no_claim
