"""Scores with noise on top, so that their calibration function is smooth, and how much noise they stand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, confidence_level, confidences, positive, share
from certcal._base.json import PlainValues
from certcal._base.rounding import percent_text
from certcal._base.threads import map_blocks
from certcal.bounds._shared import NEAREST, check_pairs, check_scale, check_seed, log_odds, places, sort_pairs
from certcal.claims import round_outward, short_text

Floats = NDArray[np.float64]

# Tells the stream of the noise from that of folds, or of simulated scores, which were drawn with the same seed. Scores
# that are the generator's numbers themselves, moved by the same numbers, would not be moved at random at all.
NOISE = 1

# Bandwidths that are tried. Scores are shared out to the two nearest of so many nodes per bandwidth, a power of two:
# AUROC is a smooth function of each score at the scale of h, so that interpolating it is off by less than 1e-5.
POWERS = {"probability": range(-12, 1), "logit": range(-8, 3)}
NODES_PER_BANDWIDTH = 128
STEPS = 12


def perturb(
    scores: Any, bandwidth: float, seed: int | np.random.Generator = 0, *, scale: str = "probability"
) -> Floats:
    """Replace each score s₀ by a draw from the density on [0, 1] that is proportional to sech((s - s₀)/h).

    What for: the classifier that answers with the perturbed score is another classifier, nearly as good when h is small
    (:func:`choose_bandwidth`). Its calibration function η has |η′| <= 1/2h and |η″| <= 1/2h² for *every* distribution
    of scores and outcomes, which is what :func:`smooth` rests on. The scores that are then *used* must be perturbed
    too: the bound says nothing about those before.

    How: the distribution function is (gd((s - s₀)/h) - gd(-s₀/h)) / (gd((1 - s₀)/h) + gd(s₀/h)) with the Gudermannian
    gd(x) = 2 atan(tanh(x/2)). Its inverse at a uniform number is asinh(tan(angle)) near the score; far out it is
    -log(tan(angle/2)) of the angle that is missing to ±π/2, which keeps its digits in the tails. The perturbed score
    stays in [0, 1]; a score at an end is only moved inward.

    On the scale "logit" it is the log-odds t₀ = ln(s₀/(1 - s₀)) to which noise with the density sech(x/h)/πh is added.
    Where outcomes are rare this costs far less: scores of 0.001 and 0.01 stay apart. The calibration function then has
    these bounds as a function of t. Scores nearer than 1e-6 to 0 or 1 are moved there first.

    Parameters
    ----------
    scores
        Probabilities in [0, 1], not logits.
    bandwidth
        h > 0, in units of the scale.
    seed
        A whole number, or a Generator that is advanced: one that had no part in scores and outcomes. (The noise of a
        whole number is another stream than that of ``default_rng`` with it.) Perturb every sample once: averaging over
        several draws, or choosing among seeds, undoes what is claimed.
    scale
        Scale of the noise: "probability" or "logit".

    Returns
    -------
    ndarray
        float64 in the order of ``scores``. The same seed gives the same bits on any number of threads.

    Examples
    --------
    >>> perturb([0.0, 0.5, 0.99], 2**-6, seed=1).round(4)
    array([0.0085, 0.5056, 0.9824])
    >>> perturb([0.001, 0.01, 0.5], 0.2, seed=1, scale="logit").round(4)
    array([0.0009, 0.0107, 0.5012])
    """
    return perturb_scores(confidences(scores, "scores"), bandwidth, seed, scale)


def perturb_scores(
    scores: NDArray[Any], bandwidth: float, seed: int | np.random.Generator = 0, scale: str = "probability"
) -> Floats:
    on_log_odds = check_scale(scale) == "logit"
    s = scores.astype(np.float64, copy=False)
    h = check_bandwidth(bandwidth)
    generator = seed if isinstance(seed, np.random.Generator) else np.random.default_rng([check_seed(seed), NOISE])
    uniform = generator.random(s.size)
    uniform += 2.0**-54  # the middle of each of the generator's steps: never 0
    if not on_log_odds:
        return quantile(uniform, s, h)
    noise = np.log(np.tan(uniform * (np.pi / 2)))
    odds = np.exp(-(log_odds(np.clip(s, NEAREST, 1 - NEAREST)) + h * noise).clip(-700, 700))
    return np.asarray(1 / (1 + odds), np.float64)


def perturbed_assumption(h: float, scale: str = "probability") -> str:
    where = " on the logit scale" if scale == "logit" else ""
    kernel = f"each was perturbed once by the sech kernel of bandwidth {short_text(h, 'upper')}{where}"
    return f"{kernel}, independently of all else and not chosen among draws"


def check_bandwidth(bandwidth: Any) -> float:
    """A bandwidth at which the kernel is neither a point nor, to twelve digits, uniform."""
    h = positive(bandwidth, "bandwidth")
    if not 1e-9 <= h <= 1000:
        raise InputError(f"bandwidth is {h:g}; pass a number from 1e-9 to 1000 (scores lie in [0, 1])")
    return h


def quantile(shares: Floats, score: Floats, h: float) -> Floats:
    """The perturbed score below which the given share of draws lies."""
    from certcal._kernels.noise import sech_quantiles

    out = np.empty(score.size)
    map_blocks(
        lambda start, stop: sech_quantiles(shares[start:stop], score[start:stop], h, out[start:stop]),
        score.size,
        20_000,
    )
    return out


def distribution(value: Floats, score: Floats, h: float) -> Floats:
    below = gudermannian(score / h)
    return (gudermannian((value - score) / h) + below) / (gudermannian((1 - score) / h) + below)


def normaliser(score: Floats, h: float) -> Floats:
    """Integral over [0, 1] of sech((s - score)/h)."""
    return h * (gudermannian((1 - score) / h) + gudermannian(score / h))


def gudermannian(x: Floats) -> Floats:
    """Integral of sech from 0 to x."""
    return 2 * np.arctan(np.tanh(x / 2))


# --------------------------------------------------------------------------------------------- choosing a bandwidth


@dataclass(frozen=True)
class BandwidthChoice(PlainValues, kind="bandwidth", more="sentence"):
    """A bandwidth, with what it costs."""

    bandwidth: float
    """The largest h at which, and below which, AUROC falls by at most the tolerance."""
    tolerance: float
    """The largest fall that was allowed."""
    auroc: float
    """Area under the ROC curve of the scores as given."""
    perturbed_auroc: float
    """Its expectation over the noise at this bandwidth, for the same samples."""
    fall: float
    fall_lower: float
    fall_upper: float
    """``auroc - perturbed_auroc``, with an asymptotic interval for its value in the population."""
    level: float
    """Level of the interval."""
    n: int
    """Number of samples."""
    scale: str = "probability"
    """Scale of the noise."""

    @property
    def sentence(self) -> str:
        """What was found."""
        where = " on the logit scale" if self.scale == "logit" else ""
        low, high = round_outward(self.fall_lower, "lower", 5), round_outward(self.fall_upper, "upper", 5)
        return (
            f"perturbing with bandwidth {self.bandwidth:.4g}{where} lowers AUROC from {self.auroc:.5f} to "
            f"{self.perturbed_auroc:.5f} on these {self.n} samples, {percent_text(self.level)} interval of the fall "
            f"{low} to {high} (asymptotic); an estimate, not a guarantee."
        )


def choose_bandwidth(
    scores: Any, outcomes: Any, tolerance: float = 0.001, *, level: float = 0.95, scale: str = "probability"
) -> BandwidthChoice:
    """The largest bandwidth of :func:`perturb` that lowers AUROC by at most ``tolerance``.

    The expectation of AUROC over the noise is computed, not simulated: the probability with which a perturbed score
    falls into a cell has a closed form, so the distribution of all of them is one convolution per outcome. Scores are
    shared out to the two nearest nodes of a grid of h/128 or finer. Bandwidths 2^-12, 2^-11 … 1 (on the logit scale
    2^-8 … 4) are tried in this order up to the first that costs too much; the place between is then found by halving.

    The interval is that of a difference of two areas for the same samples (the variances of the two projections of a
    U-statistic, as DeLong's): asymptotic in the number of samples.

    Choose on samples other than those given to :func:`smooth`. A bandwidth that was chosen by looking at outcomes is part
    of the classifier, and the bound holds for classifiers that do not depend on its samples.

    Parameters
    ----------
    scores
        Probabilities in [0, 1], before any noise.
    outcomes
        0 or 1 per sample, both of them present.
    tolerance
        Largest fall of AUROC.
    level
        Level of the interval for the fall.
    scale
        Scale of the noise, as for :func:`perturb`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.beta(0.3, 0.3, 10_000)
    >>> choice = choose_bandwidth(scores, rng.random(10_000) < scores)
    >>> print(choice.sentence)
    perturbing with bandwidth 0.01222 lowers AUROC from 0.94778 to 0.94678 on these 10000 samples, 95% interval of the fall 0.00083 to 0.00117 (asymptotic); an estimate, not a guarantee.
    """  # noqa: E501
    allowed = share(tolerance, "tolerance", "pass the largest fall of AUROC, between 0 and 1")
    confidence = confidence_level(level)
    on_log_odds = check_scale(scale) == "logit"
    sample = sort_pairs(*check_pairs(scores, outcomes))
    where, stretch = sample.scores, None
    if on_log_odds:
        where, stretch, _ = places(np.clip(sample.scores, NEAREST, 1 - NEAREST), scale, 0.0)
    table = _AurocTable(where[sample.outcomes == 1], where[sample.outcomes == 0], stretch)
    if table.before is None:
        raise InputError("outcomes are all equal; AUROC needs samples of both outcomes")
    powers = POWERS[scale]
    good, bad = 0.0, 2.0 ** powers[-1]
    for power in powers:
        if table.before - table.perturbed(2.0**power).auroc > allowed:
            bad = 2.0**power
            break
        good = 2.0**power
    if good == 0:
        raise InputError(
            f"tolerance is {allowed:g}, but a bandwidth of {bad:g} already lowers AUROC by more; allow a larger fall"
        )
    for _ in range(STEPS if bad > good else 0):
        middle = math.sqrt(good * bad)
        costs = table.before - table.perturbed(middle).auroc > allowed
        good, bad = (good, middle) if costs else (middle, bad)
    digits = 10.0 ** (3 - math.floor(math.log10(good)))
    good = math.floor(good * digits) / digits  # four digits are enough, and less noise costs no more
    after = table.perturbed(good)
    fall = table.before - after.auroc
    margin = NormalDist().inv_cdf((1 + confidence) / 2) * table.standard_error(after)
    return BandwidthChoice(
        good,
        allowed,
        table.before,
        after.auroc,
        fall,
        fall - margin,
        fall + margin,
        confidence,
        sample.scores.size,
        scale,
    )


class _PerturbedAuroc(NamedTuple):
    """AUROC after the noise, and what the noise leaves of the other outcome's distribution, as seen from each node."""

    auroc: float
    nodes: Floats
    below: Floats  # share of perturbed negatives below a perturbed positive, by the node it starts from
    above: Floats  # share of perturbed positives above a perturbed negative


class _AurocTable:
    """Sorted scores of both outcomes, and their masses on nested grids.

    With a stretch these are places from 0 to 1 on the scale of the noise, which leaves that interval.
    """

    def __init__(self, positives: Floats, negatives: Floats, stretch: float | None = None) -> None:
        self.positives, self.negatives, self.stretch = positives, negatives, stretch
        self.before: float | None = None
        if positives.size and negatives.size:
            self.ranks = _share_below(positives, negatives)
            self.before = float(self.ranks.mean())
        self._masses: dict[int, tuple[Floats, Floats]] = {}

    def masses(self, cells: int) -> tuple[Floats, Floats]:
        """Shares of both outcomes on the nodes of a grid, from a finer grid where there is one."""
        if cells not in self._masses:
            finer = self._masses.get(2 * cells)
            self._masses[cells] = (
                (_masses(self.positives, cells), _masses(self.negatives, cells))
                if finer is None
                else (_coarser_masses(finer[0]), _coarser_masses(finer[1]))
            )
        return self._masses[cells]

    def perturbed(self, h: float) -> _PerturbedAuroc:
        """The area after noise of a bandwidth of at least 2^-12, in expectation over the noise."""
        from scipy.signal import fftconvolve

        if self.stretch is not None:
            return self._perturbed_anywhere(h / self.stretch)
        cells = NODES_PER_BANDWIDTH << max(0, math.ceil(-math.log2(h)))
        positive, negative = self.masses(cells)
        nodes = np.arange(cells + 1) / cells
        angle = normaliser(nodes, h) / h
        reach = min(cells, math.ceil(45 * h * cells))  # beyond, the kernel is below the smallest difference from 0
        kernel = np.diff(gudermannian(np.arange(-reach, reach + 1) / (cells * h)))

        # Entry g + reach of a convolution is what falls into the cell right of node g.
        def fallen(mass: Floats) -> Floats:
            inside = np.maximum(fftconvolve(mass / angle, kernel)[reach : reach + cells], 0.0)
            return inside / inside.sum()

        # Read backwards, the same convolution gives each node the mean of what its noise meets.
        def met(values: Floats) -> Floats:
            return np.asarray(fftconvolve(values, kernel[::-1])[reach - 1 : reach + cells] / angle, np.float64)

        up, down = fallen(positive), fallen(negative)
        below = np.cumsum(down) - down / 2
        above = 1 - (np.cumsum(up) - up / 2)
        return _PerturbedAuroc(float(up @ below), nodes, met(below), met(above))

    def _perturbed_anywhere(self, h: float) -> _PerturbedAuroc:
        """The same for noise with the density sech(x/h)/πh: the difference of two has 2x/(π²h² sinh(x/h))."""
        from scipy.signal import fftconvolve

        cells = NODES_PER_BANDWIDTH << max(0, math.ceil(-math.log2(h)))
        positive, negative = self.masses(cells)
        x = np.minimum(np.arange(1, cells + 1) / (cells * h), 700)
        density = np.concatenate(([1.0], x / np.sinh(x))) * 2 / (np.pi**2 * cells * h)
        right = 0.5 + np.cumsum(density) - density / 2 - density[0] / 2
        below_by = np.concatenate((1 - right[:0:-1], right))
        below, under = (fftconvolve(mass, below_by)[cells : 2 * cells + 1] for mass in (negative, positive))
        return _PerturbedAuroc(float(positive @ below), np.arange(cells + 1) / cells, below, 1 - under)

    def standard_error(self, after: _PerturbedAuroc) -> float:
        ranks = 1 - _share_below(self.negatives, self.positives)
        moved = self.ranks - np.interp(self.positives, after.nodes, after.below)
        other = ranks - np.interp(self.negatives, after.nodes, after.above)
        return math.sqrt(float(moved.var()) / moved.size + float(other.var()) / other.size)


def _share_below(scores: Floats, others: Floats) -> Floats:
    """For each score the share of the others below it, equal ones counting half; both are sorted."""
    strictly, with_equal = np.searchsorted(others, scores, "left"), np.searchsorted(others, scores, "right")
    return (strictly + with_equal) / (2 * others.size)


def _masses(scores: Floats, cells: int) -> Floats:
    """Each score shared out to its two neighbouring nodes so that its mean is kept."""
    place = scores * cells
    node = np.minimum(place.astype(np.int64), cells - 1)
    right = np.bincount(node, place - node, minlength=cells)
    count = np.bincount(node, minlength=cells)
    mass = np.zeros(cells + 1)
    mass[:-1] += count - right
    mass[1:] += right
    return mass / scores.size


def _coarser_masses(mass: Floats) -> Floats:
    """The masses on every second node: half of what is between two goes to each, as if shared out there at once."""
    half = mass[1::2] / 2
    result = mass[::2].copy()
    result[:-1] += half
    result[1:] += half
    return result
