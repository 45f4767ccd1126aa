"""Certificates at a radius, from counts: which predictions are certain, and between which confidences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.assumptions import BATCH, NOISE, SPLIT, fixed, own_kind
from certcal._base.checks import InputError, bin_count, choice, failure_probability, to_numpy, whole_number
from certcal._base.notebook import Card, CardTable, NotebookCard
from certcal.binning import CLOSED, edges_for
from certcal.claims import Certificate, Ledger, round_outward, short_text
from certcal.smoothing._bands import lower_limits, radii_of_limits
from certcal.smoothing._counts import Counts
from certcal.smoothing._kinds import (
    DEFAULT_KIND,
    KINDS,
    CertificateKind,
    equal_draws,
    holds_at_all_radii,
    kind_name,
    kind_of,
    pools_noise,
)

if TYPE_CHECKING:
    from certcal.smoothing._diagnostics import Widths
    from certcal.worst_case import CertifiedSummary
    from certcal.worst_case.intervals import Intervals

Floats = NDArray[np.float64]

# How α is shared between predictions and the two ends of a sample's confidence interval: fixed once, for all radii and
# kinds. Everything depends on the logarithm of a share only.
SHARES = {"prediction": 2, "lower": 3, "upper": 3}
# Whether the predictions of all samples hold at once, as a claim about their data set needs, or each on its own.
PREDICTIONS = ("together", "each")
# As the papers count, alpha goes wholly to each of these bounds, so a certificate may fail with as many times alpha.
ACCOUNTINGS = ("ledger", "published")

_PER_SAMPLE = ("lower", "upper", "correct", "certified", "abstained", "radii")

NAME = "calibration error of the smoothed classifier"
# What the worst case inside all intervals at once is called: a claim need not rest on all of them.
IF_ALL_HOLD = "calibration error where every certificate holds"
CONFIDENCE = "mean probability of the predicted class under the noise"


@dataclass(frozen=True)
class Failures:
    """How many certificates may be wrong at once."""

    count: int
    """K: more than K certificates fail with probability at most ``delta``."""
    delta: float
    """That probability."""
    n: int
    """Number of samples in the error."""


@dataclass(frozen=True, eq=False)
class Certificates(NotebookCard):
    """What holds for each sample under every perturbation of norm up to ``radius``."""

    lower: Floats
    upper: Floats
    """Interval of the smoothed confidence in class A; [0, 1] where the prediction is not certified."""
    correct: NDArray[np.bool_]
    """Whether class A is the true class."""
    certified: NDArray[np.bool_]
    """Whether the smoothed prediction is A everywhere within the radius."""
    abstained: NDArray[np.bool_]
    """Whether not even the prediction at the input itself is certain: the votes do not show a majority."""
    radii: Floats
    """Radius within which the prediction is certified, rounded down; NaN where abstained."""
    radius: float
    """Radius of the intervals."""
    alpha: float
    """Probability with which one sample's certificate may fail; with ``familywise``, any of them."""
    ledger: Ledger
    """How one sample's share of it is spent."""
    confidence: str
    familywise: bool
    noise: str
    """Kind of interval, whether alpha is for all samples together, and how the noise was drawn."""
    earlier: tuple[tuple[int, int], ...] = ()
    """Sizes (samples, draws per sample) that the run had before it was extended, if it was."""
    recalibration: str | None = None
    """The map that the confidences went through, in words; None for those of the model itself."""
    accounting: str = "ledger"
    """"ledger" when alpha is shared among the bounds of a sample, "published" when each of them had a third of
    ``alpha``: what the papers call alpha."""
    together: int = 1
    """Number of radii at which they hold at once, this one among them."""
    predictions: str = "together"
    """"together" when the predictions of all certified samples hold at once, "each" when each does on its own."""
    counts: Counts | None = None
    kind: CertificateKind | None = None
    """The draws they were made from, and what made the intervals; None after a map of the confidences."""

    def __len__(self) -> int:
        return self.lower.size

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self)

    @property
    def n_certified(self) -> int:
        """Number of certified samples."""
        return int(np.count_nonzero(self.certified))

    @property
    def n_abstained(self) -> int:
        """Number of samples without a certified prediction even at radius 0."""
        return int(np.count_nonzero(self.abstained))

    @property
    def mean_width(self) -> float | None:
        """Mean width of the certified samples' intervals; None when there are none."""
        return float(np.mean((self.upper - self.lower)[self.certified])) if self.n_certified else None

    @cached_property
    def intervals(self) -> Intervals:
        """The intervals as worst cases read them, checked when they are first asked for."""
        from certcal.worst_case.intervals import check_intervals

        return check_intervals(self.lower, self.upper, self.correct, self.certified)

    def widths(self) -> Widths | None:
        """How wide the certified samples' intervals are; None when there are none."""
        from certcal.smoothing._diagnostics import widths_of

        return widths_of(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What every certificate here rests on."""
        return assumptions_of(self, self.confidence)

    def __repr__(self) -> str:
        return (
            f"Certificates(n={self.n}, radius={self.radius:g}, confidence={self.confidence!r}, "
            f"certified={self.n_certified}, abstained={self.n_abstained})"
        )

    def card(self) -> Card:
        """What a notebook shows."""
        width = self.mean_width
        whose = "that any certificate fails" if self.familywise else "that a sample's certificate fails"
        facts = [
            ("radius", short_text(self.radius, "lower")),
            ("samples", f"{self.n:,}"),
            ("certified at the radius", f"{self.n_certified:,}"),
            ("without a certified prediction", f"{self.n_abstained:,}"),
            ("intervals", self.confidence),
            ("mean width, certified samples", "undefined" if width is None else round_outward(width, "upper")),
            (f"probability {whose}, at most", short_text(self.alpha, "upper")),
            ("if", " and ".join(self.assumptions)),
        ]
        return Card(tables=(CardTable(facts, caption="Certificates"),))

    def summary(self, bins: int = 15, closed: str = "left", delta: float = 0.05, **edges: Any) -> CertifiedSummary:
        """Everything that holds where every certificate does; see :func:`certcal.worst_case.certify`.

        The bounds on the population pay for certificates that fail with probability ``ledger.spent`` each. ``edges``,
        ``chosen`` and ``adaptive`` are passed on. The calibration error is :meth:`claim`.
        """
        from certcal.worst_case import CertifiedSummary

        summary = CertifiedSummary.of(self.intervals, bins, closed, delta, self.ledger.spent, **edges)
        return summary.with_name("calibration_error", IF_ALL_HOLD)

    def select(self, rows: Any) -> Certificates:
        """Those of the samples at positions, which must have been chosen without looking at the samples' draws."""
        arrays = {name: getattr(self, name)[rows] for name in _PER_SAMPLE}
        return replace(self, **arrays, counts=None if self.counts is None else self.counts.select(rows))

    def recalibrated(self, lower: Floats, upper: Floats, recalibration: str) -> Certificates:
        """The same certificates for confidences after a map; see :meth:`certcal.calibrators.ConfidenceMap.intervals`.

        Parameters
        ----------
        lower, upper
            Ends of intervals that contain every mapped confidence of the former ones.
        recalibration
            The map, in words.
        """
        return replace(self, lower=lower, upper=upper, recalibration=recalibration, counts=None)

    def failures(self, delta: float = 0.001, samples: str = "certified") -> Failures:
        """The number K of failing certificates that is exceeded with probability at most ``delta``.

        What is random: the noise. Samples have noise of their own, and each certificate fails with probability at most
        a = ``ledger.spent``, so the number of failures is below a binomial variable with N and a in distribution. N are
        all samples: how many of them are certified depends on the noise. What K failing ones can do to a calibration
        error, :meth:`certcal.worst_case.WorstCase.with_failing` says.

        Parameters
        ----------
        delta
            Probability of more failures.
        samples
            "certified" or "all": over which samples the error is.
        """
        choice(samples, ("certified", "all"), "samples")
        failure_probability(delta, "delta")
        count = failing(self.n, self.ledger.spent, delta)
        return Failures(count, delta, self.n_certified if samples == "certified" else self.n)

    def averages(self, bins: int = 15) -> bool:
        """Whether :meth:`claim` averages the noise of the samples: with kinds that allow it, and alpha for each."""
        from certcal.worst_case import MOST_POOLED_BINS

        if self.familywise or self.predictions != "together" or self.counts is None or self.kind is None:
            return False
        return pools_noise(self.kind) and bins <= MOST_POOLED_BINS

    def claim(
        self, bins: int = 15, closed: str = "left", samples: str | None = None, *, edges: Any = None
    ) -> Certificate:
        """The calibration error that no perturbations up to the radius exceed on these samples: certify's headline.

        It fails with probability ``alpha`` (as papers count, a third of it) over the noise of all samples. Where draws
        and kind allow it, their noise is averaged: :func:`certcal.smoothing.pooled_claim`. Else it is
        :meth:`claim_of_intervals`.

        Parameters
        ----------
        bins, closed, edges
            As for :func:`certcal.metrics.ece`.
        samples
            "certified": of the certified samples. "all": of all, those that are not certified being free. By default
            the first, if some are.
        """
        from certcal.smoothing._pooled import averaged_claim

        given: dict[str, Any] = {"bins": bins if edges is None else len(edges) - 1, "closed": closed, "edges": edges}
        if not self.averages(given["bins"]):
            return self.claim_of_intervals(**given, samples=samples)
        return averaged_claim(self, **given, samples=self.counted(samples))

    def counted(self, samples: str | None) -> str:
        """Which samples a claim is over."""
        if samples is None:
            return "certified" if self.n_certified else "all"
        if choice(samples, ("certified", "all"), "samples") == "certified" and not self.n_certified:
            raise InputError(f'no sample is certified at radius {self.radius:g}; use samples="all" or a smaller radius')
        return samples

    def claim_of_intervals(
        self,
        bins: int = 15,
        closed: str = "left",
        samples: str | None = None,
        delta: float | None = None,
        *,
        edges: Any = None,
        adaptive: bool = False,
    ) -> Certificate:
        """The same from the intervals alone: their noise is not averaged, and some of them may fail.

        With ``familywise`` all intervals hold together except with probability ``alpha``. Without, more than K of them
        fail with probability at most ``delta``, and the worst case is that of intervals of which any K do not hold;
        alpha is then not the probability of the claim, ``delta`` is.

        Parameters
        ----------
        bins, closed, samples, edges
            As for :meth:`claim`.
        delta
            Used when alpha is per sample: the probability with which the claim may fail; that of a sample by default.
        adaptive
            Whether to claim the equal-mass calibration error with edges recomputed after the attack instead. K failing
            samples move the ranks of the others, and edges may then be K ranks further out.
        """
        from certcal.worst_case.calibration import calibration_error_of
        from certcal.worst_case.equal_mass import equal_mass_error_of
        from certcal.worst_case.intervals import check_intervals

        samples = self.counted(samples)
        if delta is None:
            delta = self.alpha / 3 if self.accounting == "published" else self.alpha
        failed = None if self.familywise else self.failures(delta, samples)
        intervals, side = self.intervals, choice(closed, CLOSED, "closed")
        if not self.n_certified:  # all samples are free, and correct ones are as bad as free samples get
            intervals = check_intervals(self.lower, self.upper, np.ones(self.n, np.uint8))
        if adaptive:
            lost = 0 if failed is None else min(failed.count, failed.n)
            worst = equal_mass_error_of(intervals, bin_count(bins), side, failing=lost, trials=0)
        else:
            worst = calibration_error_of(intervals, edges_for(bins, edges), side)
        worst = worst if samples == "certified" else worst.all_samples or worst
        of = CONFIDENCE if self.recalibration is None else f"a map of the {CONFIDENCE}"
        settings: dict[str, Any] = {"confidence": of, "intervals": self.confidence}
        settings |= {"bins": bins if edges is None else len(edges) - 1, "closed": closed, "samples": samples}
        if adaptive or edges is not None:
            settings["edges"] = "recomputed after the attack" if adaptive else "given"
        if self.accounting == "published":
            settings["accounting"] = f"as published: {short_text(self.alpha / 3, 'upper')} to each of three bounds"
        if self.together > 1:
            settings["radii that hold together"] = self.together
        if failed is None:
            ledger = Ledger(self.alpha).split(**SHARES)
        else:
            ledger = Ledger(delta).spend(f"more than {failed.count} certificates fail", delta)
            settings |= {"alpha per sample": self.alpha, "failing certificates": failed.count}
        # Where edges move, the worst case has its failing samples already.
        value = worst.value if adaptive or failed is None else worst.with_failing(failed.count)
        name = f"equal-mass {NAME}" if adaptive else NAME
        if self.recalibration is not None:
            name = name.replace("the ", "the recalibrated ")
            settings["recalibration"] = self.recalibration
        return Certificate(name, value, "upper", self.radius, ledger, worst.n, self.assumptions, settings)


def assumptions_of(draws: Counts | Certificates, confidence: str, split: bool = False) -> tuple[str, ...]:
    """What certificates of a kind rest on; some divide the draws of a sample."""
    chosen = fixed("the seed and the number of draws")
    own = () if confidence in KINDS else (own_kind(confidence),)
    divided = (SPLIT,) if split or confidence == "tangent" else ()
    return (NOISE[draws.noise], BATCH, chosen, *divided, *own, *_growth_assumption(draws.earlier, len(draws)))


@names_wrong_types
def certificates(
    counts: Counts,
    radius: float,
    alpha: float = 0.001,
    confidence: str | CertificateKind = DEFAULT_KIND,
    familywise: bool = False,
    *,
    accounting: str = "ledger",
    together: int = 1,
    predictions: str = "together",
) -> Certificates:
    """Certify predictions and confidences of a smoothed classifier under perturbations of norm up to a radius.

    What is random: the noise draws behind the counts and, for the kind "tangent", the coins that deal them into
    parts; both come from the run's seed. What is assumed: draws are independent (so a model's output does not depend on
    what else is in its batch), and their seed and number were fixed before any result was looked at; Gaussian noise is
    taken as exact, its rounding to float32 being neglected. What is claimed of a sample marked certified: for every
    perturbation γ with ‖γ‖₂ <= radius the smoothed classifier predicts class A at x + γ, and its confidence
    E f_A(x + γ + δ) lies in [lower, upper]. For each sample, the probability that it is marked certified and this is
    not so is at most alpha.

    Why. Prediction: votes are binomial with probability p_A, whose Clopper-Pearson lower limit p fails with its share
    of alpha; if p > ½ the prediction is A within σΦ⁻¹(p) (Cohen et al. 2019). The limit is rounded down, so the strict
    inequality that rules out ties holds at the radius itself. Confidence: each end has its share, and its proof is
    with its kind; :func:`certcal.smoothing.kind_explanation` says in a sentence what each does.

    Parameters
    ----------
    counts
        From a run, :meth:`certcal.smoothing.Run.counts`.
    radius
        In the units of the input, at least 0. At 0 the interval is one of the mean confidence.
    alpha
        Probability with which the certificate of a sample may fail.
    confidence
        Kind of interval: a name, or a :class:`CertificateKind` of your own.
    familywise
        Share alpha among the samples, so that with probability at least 1 - alpha *no* certificate fails.
    accounting
        "ledger" shares alpha among the prediction and both ends of the interval. "published" gives alpha to each of the
        three, as the papers do: their largest radii (3.811 σ for 10⁵ draws at alpha = .001) come from it. What is
        returned then has three times alpha, which is what a union bound allows to be claimed.
    together
        Number of radii, this one among them, at which certificates are to hold at once. A kind with an event for each
        radius then has that part of its share of alpha at each of them, so that with probability at least 1 - alpha
        the certificate of a sample fails at none. Votes, and kinds with ``all_radii``, have one event for all anyway.
    predictions
        "together" shares their part of alpha among the samples, so that the predictions of all that are marked
        certified hold at once: they are the samples that :meth:`Certificates.claim` is about. "each" gives it to every
        sample, as papers do and "published" always does.

    Returns
    -------
    Certificates
        Intervals, radii and the ledger. ``summary()`` answers what they mean together.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.smoothing import Counts, certificates
    >>> x = np.random.default_rng(0).beta(50, 0.5, (2, 10_000))
    >>> counts = Counts.from_confidences(x, np.linspace(0.01, 0.99, 99), votes=[10_000, 5_020], sigma=0.5)
    >>> found = certificates(counts, radius=0.5)
    >>> found
    Certificates(n=2, radius=0.5, confidence='tangent', certified=1, abstained=1)
    >>> found.lower.round(3), found.radii.round(3)
    (array([0.953, 0.   ]), array([1.55,  nan]))
    """
    if not isinstance(counts, Counts):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"counts is {type(counts).__name__}; pass what a run's counts() returns")
    kind = kind_of(confidence)
    failure_probability(alpha, "alpha")
    distance = check_radius(radius)
    radii_at_once = whole_number(together, 1, 10**9, "together", "pass a number of radii, at least 1")
    shares = SHARES
    if choice(accounting, ACCOUNTINGS, "accounting") == "published":
        if familywise:
            reason = "alpha wholly to each bound and alpha for all samples together exclude each other"
            raise InputError(reason, argument="accounting", remedy="choose one")
        alpha, shares = failure_probability(3 * alpha, "alpha"), dict.fromkeys(SHARES, 1)
    ledger = Ledger(equal_part(alpha, len(counts)) if familywise else float(alpha)).split(**shares)
    spent = dict(ledger.entries)
    at_once = (
        choice(predictions, PREDICTIONS, "predictions") == "together" and not familywise and accounting == "ledger"
    )
    radii = certified_radii(counts, prediction_level(alpha, len(counts)) if at_once else spent["prediction"])
    abstained = np.isnan(radii)
    certified = ~abstained & (radii >= distance)
    lower, upper = np.zeros(len(counts)), np.ones(len(counts))
    if certified.any():
        chosen = counts.select(certified)
        sharing = 1 if holds_at_all_radii(kind) else radii_at_once
        found = kind(chosen, distance, equal_part(spent["lower"] + spent["upper"], sharing))
        lower[certified], upper[certified] = checked_ends(found, chosen, kind_name(kind))
    return Certificates(
        lower,
        upper,
        counts.predicted == counts.label,
        certified,
        abstained,
        radii,
        distance,
        float(alpha),
        ledger,
        kind_name(kind),
        bool(familywise),
        counts.noise,
        counts.earlier,
        accounting=accounting,
        together=radii_at_once,
        predictions=predictions if accounting == "ledger" else "each",
        counts=counts,
        kind=kind,
    )


def prediction_level(alpha: float, n: int) -> float:
    """The level of each limit of a class probability where all of n samples hold at once, from below and above."""
    return equal_part(dict(Ledger(float(alpha)).split(**SHARES).entries)["prediction"], 2 * n)


def checked_ends(found: Any, counts: Counts, name: str) -> tuple[Floats, Floats]:
    """The ends that a kind returned, once it is sure that they are intervals."""
    if not isinstance(found, tuple) or len(cast("tuple[Any, ...]", found)) != 2:
        kind = type(cast("Any", found)).__name__
        raise InputError(f"{name} returned {kind}; return lower and upper ends", argument="confidence")
    ends: list[Floats] = []
    for which, each in zip(("lower", "upper"), cast("tuple[Any, Any]", found), strict=True):
        array = to_numpy(each, f"the {which} ends of {name}").astype(np.float64)
        if array.shape != (len(counts),):
            reason = f"the {which} ends of {name} have shape {array.shape} for {len(counts)} samples"
            raise InputError(reason, argument="confidence", remedy="return one per sample")
        ends.append(array)
    lower, upper = ends
    for good, what in (
        ((lower >= 0) & (lower <= 1) & (upper >= 0) & (upper <= 1), "is no interval inside [0, 1]"),
        (lower <= upper, "has its lower end above its upper end"),
    ):
        if not good.all():
            at = int(np.argmin(good))
            reason = f"{name} gives sample {int(counts.index[at])} {lower[at]:g} to {upper[at]:g}, which {what}"
            raise InputError(reason, argument="confidence")
    return lower, upper


def certified_radii(counts: Counts, level: float) -> Floats:
    """Radius σΦ⁻¹(p) within which class A is predicted, p the lower limit of its votes; NaN where p is not above ½."""
    radii = np.full(len(counts), np.nan)
    for n, rows in equal_draws(counts):
        limits = lower_limits(n, level)
        limits.fill(counts.votes[rows])
        votes = counts.votes[rows]
        radii[rows] = radii_of_limits(limits.values[votes], limits.scores[votes], counts.sigma)
    return radii


def _growth_assumption(earlier: tuple[tuple[int, int], ...], now: int) -> tuple[str, ...]:
    """The assumption of a run that had other sizes before, or none."""
    if not earlier:
        return ()
    sizes = [f"n={n}" if samples == now else f"{samples} samples with n={n}" for samples, n in earlier]
    steps = sizes if len(sizes) <= 4 else [sizes[0], f"{len(sizes) - 2} other sizes", sizes[-1]]
    return (f"the run was extended from {', then '.join(steps)} without looking at its results",)


def check_radius(radius: Any) -> float:
    """A radius of perturbations: a finite number of at least 0."""
    try:
        value = float(radius)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"radius is {radius!r}; pass a number of at least 0, in the units of the input") from None
    if not 0 <= value < math.inf:
        raise InputError(f"radius is {value:g}; pass a finite number of at least 0, in the units of the input")
    return value


def equal_part(alpha: float, n: int) -> float:
    """One of n equal parts of alpha, rounded down."""
    value = alpha / n
    return value if Fraction(value) * n <= Fraction(alpha) else math.nextafter(value, 0.0)


def failing(n: int, level: float, delta: float) -> int:
    """The least K that Binomial(n, level) exceeds with probability at most delta."""
    from scipy.special import betainc

    # P(Bin > K) = I_level(K + 1, n - K), evaluated with room for its rounding. It falls in K: bisection.
    low, high = -1, n
    while high - low > 1:
        k = (low + high) // 2
        if betainc(k + 1, n - k, level) * (1 + 1e-9) <= delta:
            high = k
        else:
            low = k
    return high
