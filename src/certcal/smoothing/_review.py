"""Everything that a run certifies, at several radii and by several kinds of certificates, with what is behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._checks import InputError, choice
from certcal.claims import Certificate
from certcal.smoothing._certificates import CONFIDENCES, Certificates, certificates, check_radius
from certcal.smoothing._counts import ConfidenceEstimates, Counts
from certcal.smoothing._manifest import Manifest
from certcal.smoothing._run import Run
from certcal.smoothing._telling import TellingSample, telling_samples
from certcal.smoothing._usable import usable_counts
from certcal.smoothing._widths import Widths, widths_of

if TYPE_CHECKING:
    from certcal.metrics import Reliability
    from certcal.smoothing.robustness import PaDistribution
    from certcal.worst_case import CertifiedSummary, WorstCase

MOST_RADII = 1000
STEPS_PER_SIGMA = 4
HEADLINE_STEP = 2  # half of sigma


@dataclass(frozen=True, eq=False)
class Reviewed:
    """What one kind of certificate says at one radius.

    Attributes
    ----------
    radius
        Of the perturbations, as the shortest text of the number.
    certificates
        Intervals of all samples.
    summary
        What they mean together.
    claim
        What no perturbation up to the radius can make the calibration error exceed, with what certificates that fail
        can add: of the certified samples, or of all when none is certified.
    """

    radius: str
    certificates: Certificates
    summary: CertifiedSummary
    claim: Certificate

    @property
    def kind(self) -> str:
        """Kind of certificate."""
        return self.certificates.confidence

    @property
    def width(self) -> float | None:
        """Mean width of the certified samples' intervals; None when there are none."""
        return self.certificates.mean_width

    @property
    def worst(self) -> WorstCase | None:
        """The worst calibration error of the certified samples; None when there are none."""
        return self.summary["calibration_error"].worst

    @cached_property
    def worst_bins(self) -> Reliability | None:
        """The reliability diagram of the witness: confidences inside the intervals that reach the worst case."""
        from certcal.metrics import Reliability

        if self.worst is None or self.worst.bins is None:
            return None
        return Reliability(self.worst.bins, self.worst.value, None, None, 0.95)


@dataclass(frozen=True, eq=False)
class Review:
    """What a run certifies at several radii. Made by :func:`review`; pictures of it are computed when asked for.

    Attributes
    ----------
    counts
        The draws of the samples.
    radii
        As texts, smallest first.
    kinds
        Kinds of certificates; the first one is that of the headline.
    lines
        Per radius, each kind.
    headline
        Place of the radius of the headline among ``radii``. It was fixed before looking: the largest that was asked
        for, or half of sigma. A radius that the results chose would not do, because the population's bound has an event
        for each radius, and so do tangent certificates.
    bins, closed
        Of the calibration error.
    manifest
        Of the run, if there is one.
    """

    counts: Counts
    radii: tuple[str, ...]
    kinds: tuple[str, ...]
    lines: tuple[Reviewed, ...]
    headline: int
    bins: int
    closed: str
    manifest: Manifest | None = field(default=None, repr=False)
    _widths: dict[tuple[int, str], Widths | None] = field(
        default_factory=dict[tuple[int, str], "Widths | None"], repr=False
    )

    def __len__(self) -> int:
        return len(self.lines)

    def __repr__(self) -> str:
        return (
            f"Review(n={len(self.counts)}, radii={len(self.radii)}, kinds={self.kinds}, "
            f"headline={self.radii[self.headline]})"
        )

    def at(self, place: int | None = None, kind: str | None = None) -> Reviewed:
        """What one kind says at one radius.

        Parameters
        ----------
        place
            Of the radius among ``radii``; the headline's when not given.
        kind
            Of certificate; the first one when not given.
        """
        wanted = self.kinds[0] if kind is None else choice(kind, self.kinds, "kind")
        where = self.headline if place is None else range(len(self.radii))[place]
        return self.lines[where * len(self.kinds) + self.kinds.index(wanted)]

    @cached_property
    def clean(self) -> ConfidenceEstimates:
        """Smoothed confidences without a perturbation: an estimate, from the histograms."""
        return self.counts.confidence_estimates()

    def clean_bins(self, place: int | None = None) -> Reliability | None:
        """The reliability diagram without a perturbation of the samples that are certified at a radius.

        An estimate: each confidence is read off a histogram (see :meth:`Counts.confidence_estimates`). None when no
        sample is certified. All kinds of certificates certify the same samples.

        Parameters
        ----------
        place
            Of the radius among ``radii``; the headline's when not given.
        """
        from certcal.metrics import reliability

        one = self.at(place).certificates
        if not one.n_certified:
            return None
        shown = one.certified
        return reliability(self.clean.values[shown], one.correct[shown], bins=self.bins, closed=self.closed)

    def widths(self, kind: str, place: int | None = None) -> Widths | None:
        """How wide the certified samples' intervals of any kind are at a radius; None when there are none.

        Kinds that were not asked for are computed for this alone. Nothing is claimed by them: of several kinds, the one
        that is used must be chosen before looking.

        Parameters
        ----------
        kind
            Any of ``CONFIDENCES``.
        place
            Of the radius among ``radii``; the headline's when not given.
        """
        where = self.headline if place is None else range(len(self.radii))[place]
        if (where, kind) not in self._widths:
            one = self.at(where).certificates
            if kind in self.kinds:
                one = self.at(where, kind).certificates
            else:
                one = certificates(self.counts, one.radius, one.alpha, kind, one.familywise)
            self._widths[where, kind] = widths_of(one)
        return self._widths[where, kind]

    @cached_property
    def p_a(self) -> PaDistribution:
        """The distribution of p_A over the samples: shares of votes for the true class."""
        from certcal.smoothing.robustness import PaDistribution

        return PaDistribution.of(self.counts)

    def most_telling(self, k: int = 12) -> tuple[TellingSample, ...]:
        """The samples that add most to the worst calibration error of the headline, most first.

        Parameters
        ----------
        k
            How many, at most. Samples that add nothing are left out.
        """
        chosen = self.at()
        return telling_samples(self.counts, chosen.certificates, chosen.worst, self.clean, k)


def review(
    source: Run | Counts,
    radii: Sequence[float] | None = None,
    *,
    confidence: str | Sequence[str] = "tight",
    alpha: float = 0.001,
    familywise: bool = False,
    bins: int = 15,
    closed: str = "left",
    delta: float = 0.05,
    drawn_only: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Review:
    """Certify a run at several radii, by one or more kinds of certificates.

    What is random, assumed and claimed at one radius and by one kind is with :func:`certificates` and
    :meth:`Certificates.claim`, and for the population with :func:`certcal.worst_case.certify`. Several of them together
    hold as follows. All kinds but "tangent" have one event for all radii, so their certificates hold at all radii at
    once. Bounds on the population, claims of tangent certificates, and the kinds among each other have events of their
    own: choose the radius and the kind before looking, as ``headline`` is.

    Parameters
    ----------
    source
        A run, or counts.
    radii
        In the units of the input. Default: quarters of sigma, from 0 to the largest radius that is certified for any
        sample, and half of sigma at least.
    confidence
        Kind of certificate, or several of them.
    alpha, familywise
        As for :func:`certificates`. Without ``familywise``, claims may fail with probability alpha too.
    bins, closed, delta
        As for :func:`certcal.worst_case.certify`.
    drawn_only
        Use the samples of a run that are drawn completely, even if the run is not.
    progress
        Called with the number of certified pairs of radius and kind, and how many there are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> counts = Counts.from_confidences(
    ...     rng.beta(50, 0.5, (3, 4000)), np.linspace(0.01, 0.99, 99), votes=[4000, 3900, 2010], sigma=0.5
    ... )
    >>> found = review(counts, familywise=True)
    >>> found.radii[-1], found.radii[found.headline], found.at().summary.n_certified
    ('1.375', '0.25', 2)
    >>> found.at().claim.text
    '0.0381'
    """
    counts, manifest = _given(source, drawn_only)
    kinds = (confidence,) if isinstance(confidence, str) else tuple(dict.fromkeys(confidence))
    if not kinds:
        raise InputError(f"confidence is empty; pass one or more of {', '.join(CONFIDENCES)}")
    for kind in kinds:
        choice(kind, CONFIDENCES, "confidence")
    texts = default_radii(counts, alpha, familywise) if radii is None else _asked(radii)
    total = len(texts) * len(kinds)
    lines: list[Reviewed] = []
    if progress is not None:
        progress(0, total)
    for radius in texts:
        for kind in kinds:
            one = certificates(counts, float(radius), alpha, kind, familywise)
            samples = "certified" if one.n_certified else "all"
            claim = one.claim(bins=bins, closed=closed, samples=samples, delta=alpha)
            lines.append(Reviewed(radius, one, one.summary(bins=bins, closed=closed, delta=delta), claim))
            if progress is not None:
                progress(len(lines), total)
    headline = HEADLINE_STEP if radii is None else len(texts) - 1
    return Review(counts, texts, kinds, tuple(lines), headline, bins, closed, manifest)


def default_radii(counts: Counts, alpha: float = 0.001, familywise: bool = False) -> tuple[str, ...]:
    """Quarters of sigma, from 0 to the largest radius that is certified for any sample, and half of sigma at least.

    Examples
    --------
    >>> counts = Counts.from_confidences([[0.9] * 100], [0.5], votes=[100], sigma=1.0)
    >>> default_radii(counts)
    ('0', '0.25', '0.5', '0.75', '1', '1.25')
    """
    reached = certificates(counts, 0.0, alpha, "standard", familywise).radii
    largest = float(np.nan_to_num(reached).max()) / counts.sigma  # NaN where a sample abstained
    steps = range(max(math.floor(largest * STEPS_PER_SIGMA), HEADLINE_STEP) + 1)
    return tuple(radius_text(float(f"{step * counts.sigma / STEPS_PER_SIGMA:.6g}")) for step in steps)


def radius_text(value: float) -> str:
    """The shortest text of a number.

    Examples
    --------
    >>> radius_text(0.5), radius_text(1.0)
    ('0.5', '1')
    """
    return repr(float(value)).removesuffix(".0")


def _given(source: Any, drawn_only: bool) -> tuple[Counts, Manifest | None]:
    if isinstance(source, Run):
        return usable_counts(source, drawn_only=drawn_only), source.manifest
    if isinstance(source, Counts):
        return source, None
    raise InputError(f"source is {type(source).__name__}; pass a run, or what its counts() returns")


def _asked(radii: Sequence[float]) -> tuple[str, ...]:
    values = sorted({abs(check_radius(radius)) for radius in radii})
    if not 1 <= len(values) <= MOST_RADII:
        raise InputError(f"radii has {len(values)} different entries; pass from 1 to {MOST_RADII}")
    return tuple(radius_text(value) for value in values)
