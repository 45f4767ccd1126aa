"""Samples whose confidences are certified at radii: what certified recalibration is fitted to and judged on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import (
    InputError,
    confidences,
    correctness,
    failure_probability,
    same_length,
    share,
    to_numpy,
    whole_number,
)
from certcal._base.told import Told
from certcal.calibrators._base import describe
from certcal.calibrators._protocols import IntervalCalibrator, interval_of, predicted
from certcal.calibrators.scores import Floats
from certcal.worst_case import certify

if TYPE_CHECKING:
    from certcal.smoothing import Certificates, Counts
    from certcal.worst_case import CertifiedSummary

# Keeps the split's random numbers apart from those that anybody makes of the same seed.
_SPLIT = 0x5EC7


@dataclass(frozen=True, eq=False)
class CertifiedSamples(Told):
    """Confidences of N samples without a perturbation, and the intervals that hold them at each of R radii.

    Build one with :meth:`from_intervals` or :meth:`from_counts`.
    """

    correct: NDArray[np.uint8]
    """Whether each prediction is correct, as bytes."""
    confidence: Floats | None
    """Without a perturbation, or None when it is not known. An estimate where the classifier is smoothed."""
    radii: tuple[str, ...]
    """As texts, ascending."""
    lower: Floats
    upper: Floats
    certified: NDArray[np.bool_]
    """N × R. Where a sample is not certified, its interval is [0, 1]."""
    alpha: tuple[float, ...]
    """Per radius, the probability with which a sample's certificate may fail."""
    index: NDArray[np.int64]
    """Which sample of the source each is; positions from 0."""
    source: str = "arrays"
    """Where they come from, in words."""
    fingerprint: str | None = None
    """Of the samples of the source, the same for all that are made of the same samples; None when not known."""
    certificates: tuple[Certificates, ...] = ()
    """Of a run, per radius; empty for others. They make claims that count failing certificates."""

    def __len__(self) -> int:
        return self.correct.size

    def __repr__(self) -> str:
        return f"CertifiedSamples(n={len(self)}, radii={', '.join(self.radii)}, source={self.source!r})"

    @classmethod
    def from_intervals(
        cls,
        lower: Any,
        upper: Any,
        correct: Any,
        confidence: Any = None,
        *,
        certified: Any = None,
        radii: float | str | Sequence[float | str] | None = None,
        alpha: float | Sequence[float] = 0.0,
        source: str = "arrays",
        fingerprint: str | None = None,
    ) -> CertifiedSamples:
        """Intervals of any verifier.

        Parameters
        ----------
        lower, upper
            One column per radius, or one-dimensional for one radius.
        correct
            Whether each prediction is correct.
        confidence
            Without a perturbation, or None.
        certified
            Of the same shape as ``lower``; all when not given. What is not certified may hold anything.
        radii
            One per column, ascending; 1, 2, … when not given.
        alpha
            Probability with which a sample's certificate may fail, one for all radii or one for each.
        source, fingerprint
            Where the samples come from.

        Examples
        --------
        >>> CertifiedSamples.from_intervals([0.5, 0.2], [0.9, 0.6], [1, 0], [0.8, 0.4], radii=[0.25])
        CertifiedSamples(n=2, radii=0.25, source='arrays')
        """
        low, high = _columns(lower, "lower"), _columns(upper, "upper")
        marks = np.ones(low.shape, np.bool_) if certified is None else _columns(certified, "certified")
        for name, array in (("upper", high), ("certified", marks)):
            if array.shape != low.shape:
                raise InputError(f"{name} has shape {array.shape} and lower {low.shape}; pass one entry for each")
        kept = _read_marks(marks)
        low, high = _check_interval_ends(low, "lower", kept, 0.0), _check_interval_ends(high, "upper", kept, 1.0)
        c = correctness(correct)
        same_length(lower=low.shape[0], correct=c.size)
        swapped = low > high
        if swapped.any():
            place = _first_index_text(swapped)
            raise InputError(f"lower{place} is above upper{place}; are the two swapped?")
        z = None
        if confidence is not None:
            z = confidences(confidence).astype(np.float64)
            same_length(correct=c.size, confidence=z.size)
        texts = tuple(f"{k + 1}" for k in range(low.shape[1])) if radii is None else _radius_texts(radii, low.shape[1])
        rows = np.arange(c.size, dtype=np.int64)
        return cls(
            c.copy(), z, texts, low, high, kept, _alpha_per_radius(alpha, low.shape[1]), rows, source, fingerprint
        )

    @classmethod
    def from_counts(cls, counts: Counts, radii: float | Sequence[float], **settings: Any) -> CertifiedSamples:
        """Samples of a run, certified at radii, from its counts (:meth:`certcal.smoothing.Run.counts`).

        Parameters
        ----------
        counts
            Of all samples, or of some.
        radii
            One or several, in the units of the input.
        settings
            alpha, confidence and familywise, as for :func:`certcal.smoothing.certificates`.
        """
        from certcal.smoothing import certificates

        distances = sorted(set(_distances(radii)))
        if not distances:
            raise InputError("radii is empty; pass at least one")
        found = tuple(certificates(counts, radius, **settings) for radius in distances)
        made = cls.from_intervals(
            np.stack([one.lower for one in found], axis=1),
            np.stack([one.upper for one in found], axis=1),
            found[0].correct,
            counts.confidence_estimates().values,
            certified=np.stack([one.certified for one in found], axis=1),
            radii=distances,
            alpha=[one.ledger.spent for one in found],
            source="counts",
        )
        return replace(made, certificates=found, index=counts.index)

    def select(self, rows: Any) -> CertifiedSamples:
        """The samples at positions."""
        picked = np.asarray(rows)
        return replace(
            self,
            correct=self.correct[picked],
            confidence=None if self.confidence is None else self.confidence[picked],
            lower=self.lower[picked],
            upper=self.upper[picked],
            certified=self.certified[picked],
            index=self.index[picked],
            certificates=tuple(one.select(picked) for one in self.certificates),
        )

    def split(self, fraction: float = 0.5, seed: int = 0) -> tuple[CertifiedSamples, CertifiedSamples]:
        """Samples to fit to, and the others to judge on: drawn by position, whatever the samples hold.

        Parameters
        ----------
        fraction
            Share to fit to.
        seed
            The same seed and number of samples give the same split.

        Examples
        --------
        >>> samples = CertifiedSamples.from_intervals([0.1] * 10, [0.9] * 10, [1] * 10)
        >>> fit, rest = samples.split(0.5, seed=1)
        >>> len(fit), len(rest), sorted({*fit.index, *rest.index}) == list(range(10))
        (5, 5, True)
        """
        fit, rest = split_positions(len(self), fraction, seed)
        return self.select(fit), self.select(rest)

    def mapped(self, calibrator: IntervalCalibrator | None) -> CertifiedSamples:
        """The same samples after a map: intervals and confidences go through it. None is the identity.

        What is not certified keeps [0, 1].
        """
        if calibrator is None:
            return self
        if not isinstance(calibrator, IntervalCalibrator):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"calibrator is a {type(calibrator).__name__}, which has no predict and intervals; certificates are "
                "about one confidence per sample and the interval that holds it"
            )
        low, high = np.zeros_like(self.lower), np.ones_like(self.upper)
        made: list[Certificates] = []
        for k in range(len(self.radii)):
            kept = self.certified[:, k]
            if kept.any():
                low[kept, k], high[kept, k] = interval_of(calibrator, self.lower[kept, k], self.upper[kept, k])
            if self.certificates:
                made.append(self.certificates[k].recalibrated(low[:, k], high[:, k], describe(calibrator)))
        confidence = None if self.confidence is None else predicted(calibrator, self.confidence)
        return replace(self, confidence=confidence, lower=low, upper=high, certificates=tuple(made))

    def summary(self, radius: int, bins: int = 15, closed: str = "left", delta: float = 0.05) -> CertifiedSummary:
        """Everything that the intervals of one radius (by its place) say; see :func:`certcal.worst_case.certify`."""
        return certify(
            self.lower[:, radius],
            self.upper[:, radius],
            self.correct,
            certified=self.certified[:, radius],
            bins=bins,
            closed=closed,
            delta=delta,
            alpha=self.alpha[radius],
        )


@names_wrong_types
def split_positions(n: int, fraction: float = 0.5, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the samples to fit to, and of the others, both ascending.

    The others are fresh draws if the order of the samples does not depend on what they hold (or the seed was drawn at
    random): :data:`certcal.claims.ORDER`.

    Parameters
    ----------
    n
        Number of samples.
    fraction
        Share to fit to.
    seed
        The same three numbers give the same split.

    Examples
    --------
    >>> fit, rest = split_positions(10, 0.3, seed=1)
    >>> len(fit), sorted([*fit, *rest]) == list(range(10))
    (3, True)
    """
    first = share(fraction, "fraction", "pass the share of samples to fit to, between 0 and 1")
    start = whole_number(seed, 0, 2**63 - 1, "seed", "pass a whole number of at least 0")
    n = whole_number(n, 0, 2**53, "n", "pass how many samples there are")
    size = math.floor(n * first + 0.5)
    if not 0 < size < n:
        raise InputError(
            f"{n:,} {'sample' if n == 1 else 'samples'} cannot be split into parts of {size:,} and {n - size:,}; give "
            "more samples or another fraction"
        )
    order = np.random.default_rng([start, _SPLIT]).permutation(n)
    return np.sort(order[:size]), np.sort(order[size:])


def _columns(value: Any, name: str) -> NDArray[Any]:
    array = to_numpy(value, name)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name} has shape {array.shape}; pass one row per sample and one column per radius")
    return array


def _first_index_text(bad: NDArray[np.bool_]) -> str:
    """Index of the first true entry as text; the column only where there are several."""
    row, column = (int(place) for place in np.unravel_index(int(np.argmax(bad)), bad.shape))
    return f"[{row}]" if bad.shape[1] == 1 else f"[{row}, {column}]"


def _read_marks(marks: NDArray[Any]) -> NDArray[np.bool_]:
    if marks.dtype == np.bool_:
        return marks.copy()
    bad = (marks != 0) & (marks != 1)
    if bad.any():
        raise InputError(f"certified{_first_index_text(bad)} is {marks[bad][0]}, neither 0 nor 1; pass true or false")
    return marks == 1


def _check_interval_ends(values: NDArray[Any], name: str, kept: NDArray[np.bool_], otherwise: float) -> Floats:
    """Ends of intervals as float64, checked where they are certified and trivial elsewhere."""
    if values.dtype == np.bool_:
        raise InputError(f"{name} holds true/false; pass ends of intervals of confidences")
    ends = values.astype(np.float64)
    if not kept.all():
        ends[~kept] = otherwise
    bad = ~((ends >= 0) & (ends <= 1))
    if bad.any():
        entry = ends[bad][0]
        what = f"{entry:.9g}, outside [0, 1]" if math.isfinite(entry) else f"{entry}"
        remedy = "pass ends of intervals of confidences, or mark the sample as not certified"
        raise InputError(f"{name}{_first_index_text(bad)} is {what}; {remedy}")
    return ends


def _alpha_per_radius(alpha: Any, count: int) -> tuple[float, ...]:
    several = np.array(to_numpy(alpha, "alpha"), np.float64)
    if several.shape not in ((), (count,)):
        raise InputError(f"alpha has shape {several.shape}; pass one probability, or one for each of {count} radii")
    several = np.broadcast_to(several, count)
    return tuple(failure_probability(a, "alpha", zero=True) for a in several.tolist())


def _radius_texts(radii: float | str | Sequence[float | str], count: int) -> tuple[str, ...]:
    values = _distances(radii)
    if len(values) != count:
        raise InputError(f"there are {len(values)} radii and {count} columns of ends; pass one radius per column")
    if sorted(set(values)) != values:
        raise InputError(f"radii are {values}; pass different numbers, ascending")
    return tuple(repr(value).removesuffix(".0") for value in values)


def _distances(radii: float | str | Sequence[float | str]) -> list[float]:
    values: list[float] = []
    for index, radius in enumerate([radii] if isinstance(radii, int | float | str) else radii):
        try:
            value = float(radius)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not 0 <= value < math.inf:
            raise InputError(f"radii[{index}] is {radius!r}; pass finite numbers of at least 0")
        values.append(value)
    return values
