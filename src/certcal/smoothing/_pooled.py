"""The calibration error of a whole data set from noise draws: the noise of its samples is averaged, not added up.

Certificates hold sample by sample, and a worst case takes the far end of every interval at once. But the noise of
different samples is independent, so the *sum* of their ends is known √N times better than one by one. What is random
are the draws of all samples, the split of each one's draws into halves, and the coins of ``_tangent``; the class A of
each is fixed. In the notation of ``_bands`` and ``_tangent`` let
l = L(S) be the end of sample n below which no perturbation brings its confidence, and u = 1 - L(S of 1 - X) the upper
one. All of the following hold together except with the probability in the ledger:

1. *predictions*: each class probability p lies within its Clopper-Pearson limits, at level/2N each. So the samples that
   are called certified are, and have p >= Φ(R/σ).
2. *limits of the ends*: l and u lie within their limits from below and above, at level/4N each.
3. *sum of the ends*: of each sample's draws a random half (by the run's seed) chooses one end a (l or 1 - u) or none,
   and a tangent for each threshold: a >= c + E W(X). The other half gives the estimate â = c + mean W. With Y = W/n'
   for its n' draws and a mean Ŷ from the first half, let ξ = ρ (Y - Ŷ) >= -1. Then exp(λξ - ψξ²) <= 1 + λξ with
   ψ = -log(1 - λ) - λ (Fan, Grama and Liu 2015), hence E exp(λρ (Y - EY) - ψξ²) <= (1 + x) exp(-x) <= 1 with
   x = λρ (EY - Ŷ). So has the product over all draws of the samples in T: those that have chosen an end and whose class
   probability is at least Φ(R/σ). T is fixed once the first halves are, though not known, and so are λ and ρ. By
   Markov's inequality, except with probability ``level``,

       Σ_{n in T} (â_n - a_n) <= (log(1/level) + ψ Σ_{n in T} Σ ξ²) / (λρ).

``certcal.worst_case`` finds the largest calibration error that 2 and 3 allow, over the samples that 1 certifies. Which
ends are chosen, and by which signs, is a matter of width only: those that the worst case of the first halves takes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import choice, failure_probability
from certcal.binning import CLOSED, bin_indices, edges_for, equal_width_edges
from certcal.bounds.concentration import binomial_limits
from certcal.claims import Certificate, Ledger
from certcal.smoothing._bands import HistogramRows, Side, shift, tight_above
from certcal.smoothing._certificates import (
    CONFIDENCE,
    NAME,
    Certificates,
    assumptions_of,
    certificates,
    certified_radii,
    checked_ends,
    equal_part,
    prediction_level,
)
from certcal.smoothing._counts import Counts
from certcal.smoothing._kinds import DEFAULT_KIND, CertificateKind, equal_draws, holds_at_all_radii, kind_name, kind_of
from certcal.smoothing._tangent import lines
from certcal.worst_case import PooledEnds, pooled_calibration_error
from certcal.worst_case.calibration import calibration_error_of
from certcal.worst_case.intervals import Intervals

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SHARES = {"predictions": 1, "limits_of_the_ends": 2, "sum_of_the_ends": 1}
# Random numbers of the halves: others than those that draws may have been made from with the same seed.
HALVES = 0x68616C76
# Added to the counts of both sides of a threshold: a tangent is best where its survival is expected to be.
PRIOR = 0.25
LARGEST_BET = 0.9
# Samples whose tables are in memory at once.
_BLOCK = 1 << 12


@names_wrong_types
def pooled_claim(
    counts: Counts,
    radius: float,
    delta: float = 0.001,
    confidence: str | CertificateKind = DEFAULT_KIND,
    *,
    bins: int = 15,
    closed: str = "left",
    edges: Any = None,
    samples: str | None = None,
) -> Certificate:
    """The calibration error that no perturbations up to a radius exceed on these samples, whose noise is averaged.

    What is claimed: except with probability ``delta`` over the noise of all samples and the random splits of their
    draws, the samples that count as certified keep their prediction under every perturbation of norm up to the radius,
    and their calibration error is at most the value, whatever the perturbations are. Why: see the module. It is a claim
    about the data set, not about single samples, and usually smaller than what their intervals allow, since their noise
    is averaged. It is the :meth:`~certcal.smoothing.Certificates.claim` of certificates with alpha = ``delta``, and may
    be made with any kind.

    Parameters
    ----------
    counts
        From a run, :meth:`certcal.smoothing.Run.counts`.
    radius
        In the units of the input, at least 0.
    delta
        Probability with which the claim may fail.
    confidence
        Kind of the samples' own intervals, as for :func:`certificates`: they decide in which bins an end may lie.
    bins, closed, edges
        As for :func:`certcal.metrics.ece`.
    samples
        "certified": the error of the certified samples. "all": of all, those that are not certified being free. By
        default the first, if some are.

    Examples
    --------
    >>> x = np.random.default_rng(0).beta(8, 1, (200, 1000))
    >>> right = np.arange(200) % 5 > 0
    >>> counts = Counts.from_confidences(x, np.linspace(0.01, 0.99, 99), votes=[1000] * 200, sigma=0.5, correct=right)
    >>> pooled_claim(counts, 0.5).text, certificates(counts, 0.5).claim_of_intervals().text
    ('0.3845', '0.4345')
    """
    # Which samples are certified does not depend on the kind, and these intervals take no time.
    certified = certificates(counts, radius, failure_probability(delta, "delta"), "standard")
    one = replace(certified, kind=kind_of(confidence))
    return averaged_claim(one, bins=bins, closed=closed, edges=edges, samples=one.counted(samples))


def averaged_claim(one: Certificates, *, bins: int, closed: str, edges: Any, samples: str) -> Certificate:
    """The claim about the data set that certificates are of: the one behind :meth:`Certificates.claim`."""
    counts, kind, distance = one.counts, one.kind, one.radius
    assert counts is not None
    assert kind is not None
    ledger = _ledger_of_radius(one)
    spent = dict(ledger.entries)
    certified, possible = one.certified, _membership(counts, distance, one.alpha)[1]
    correct = counts.predicted == counts.label
    pooled = _Pool.of(counts, distance / counts.sigma, spent["sum_of_the_ends"], bins)
    end = np.where(possible, pooled.end, 0).astype(np.int8)
    rows = certified | (end != 0)
    lower, upper, inner = np.zeros(len(counts)), np.ones(len(counts)), pooled.estimate.copy()
    part = equal_part(spent["limits_of_the_ends"], 4 * len(counts))
    if rows.any():
        chosen = counts.select(rows)
        lower[rows], upper[rows] = checked_ends(kind(chosen, distance, 2 * part), chosen, kind_name(kind))
        for which, flip in ((-1, False), (1, True)):
            if (inside := end == which).any():
                limit = _limits_from_above(counts.select(inside), distance / counts.sigma, part, flip)
                inner[inside] = 1 - limit if flip else limit
    deviation = pooled.deviation(spent["sum_of_the_ends"], end != 0)
    own = PooledEnds(lower, upper, 0 * end, pooled.estimate, inner, certified, 0.0)
    together = PooledEnds(lower, upper, end, pooled.estimate, inner, certified, deviation)
    binned: dict[str, Any] = {"bins": bins, "closed": choice(closed, CLOSED, "closed"), "edges": edges}
    value = min(
        pooled_calibration_error(each, correct, certified, **binned, samples=samples) for each in (own, together)
    )
    settings: dict[str, Any] = {"confidence": CONFIDENCE, "intervals": kind_name(kind)}
    settings |= {"bins": edges_for(bins, edges).size - 1, "closed": closed, "samples": samples}
    if edges is not None:
        settings["edges"] = "given"
    settings |= {"certified": "together", "noise": "averaged over the samples"}
    if one.together > 1:
        settings["radii that hold together"] = one.together
    n = int(np.count_nonzero(certified)) if samples == "certified" else len(counts)
    rests = assumptions_of(counts, kind_name(kind), split=True)
    return Certificate(NAME, value, "upper", distance, ledger, n, rests, settings)


def _ledger_of_radius(one: Certificates) -> Ledger:
    """How alpha is spent at one of the radii that hold together; what is an event for all of them is spent once."""
    shares = Ledger(one.alpha).split(**SHARES).entries
    once = {"predictions", *(["limits_of_the_ends"] if one.kind and holds_at_all_radii(one.kind) else [])}
    parts = ((name, part if name in once else equal_part(part, one.together)) for name, part in shares)
    return Ledger(one.alpha, tuple(parts))


def _membership(counts: Counts, radius: float, delta: float) -> tuple[NDArray[np.bool_], ...]:
    """Which samples are certified, and whose class probability may be at least what certifies."""
    from scipy.special import ndtr

    level = prediction_level(delta, len(counts))
    certified = np.nan_to_num(certified_radii(counts, level), nan=-1.0) >= radius
    possible = np.asarray(binomial_limits(counts.votes, counts.draws, level, side="upper").upper)
    return certified, certified | (possible >= float(ndtr(radius / counts.sigma)))


def _limits_from_above(counts: Counts, r: float, level: float, flip: bool) -> Floats:
    """What the functional L exceeds with probability at most ``level``, per sample."""
    side, keys, out = Side.of(counts.thresholds, flip), counts.keys, np.zeros(len(counts))
    for _, rows in equal_draws(counts):
        out[rows] = tight_above(HistogramRows(counts.histogram[rows], keys[rows], side, r, level))
    return out


class _Pool(NamedTuple):
    """The ends that the first halves of the draws choose, with what the others say of them.

    ``squares`` are Σ (Y - Ŷ)² per sample; ``bet`` is λ and ``scale`` is ρ.
    """

    end: NDArray[np.int8]
    estimate: Floats
    squares: Floats
    bet: float
    scale: float

    @classmethod
    def of(cls, counts: Counts, r: float, level: float, bins: int) -> _Pool:
        """Split the draws, choose ends by the first halves, and estimate them from the others."""
        from scipy.special import ndtr

        generator, blocks, votes = np.random.default_rng([counts.seed, HALVES]), list[Floats](), list[Floats]()
        half = int(np.searchsorted(counts.thresholds, 0.5))
        for start in range(0, len(counts), _BLOCK):
            draws = counts.histogram[start : start + _BLOCK]
            first = _first_half(draws, generator)
            sides = (Side.of(counts.thresholds, flip) for flip in (False, True))
            blocks.append(np.stack([_half_means(first, draws - first, side, r) for side in sides]))
            votes.append(first[:, half + 1 :].sum(axis=1) / first.sum(axis=1).clip(1))
        both: Floats = np.concatenate(blocks, axis=2)
        lower, upper = both[0], both[1]
        # Samples that will probably be certified: a draw with a confidence above ½ is a vote.
        likely = np.concatenate(votes) > ndtr(r)
        likely |= not likely.any()
        end = _chosen_ends(lower[0], 1 - upper[0], counts.predicted == counts.label, likely, bins)

        def of_end(row: int) -> Floats:
            return np.asarray(np.where(end > 0, upper[row], lower[row]), np.float64)

        estimate, mean, squares, foreseen = map(of_end, range(1, 5))
        scale = 1 / float(mean.max(where=end != 0, initial=1e-12))
        bets = np.geomspace(1e-4, LARGEST_BET, 200)
        total = scale**2 * float(foreseen.sum(where=likely & (end != 0)))
        bet = float(bets[np.argmin((math.log(1 / level) + _price(bets) * total) / bets)])
        return cls(end, np.where(end > 0, 1 - estimate, estimate), squares, bet, scale)

    def deviation(self, level: float, rows: NDArray[np.bool_]) -> float:
        """What Σ (â - a) over any of these samples exceeds with probability at most ``level``."""
        squares = self.scale**2 * float(self.squares.sum(where=rows))
        return (math.log(1 / level) + float(_price(self.bet)) * squares) / (self.bet * self.scale) * (1 + 1e-12)


def _price(bet: Any) -> Any:
    """ψ = -log(1 - λ) - λ."""
    return -np.log1p(-bet) - bet


def _first_half(histogram: Integers, generator: np.random.Generator) -> Integers:
    """A random half of each row's draws."""
    left = histogram.sum(axis=1)
    wanted = left // 2
    out = np.zeros_like(histogram)
    for cell in range(histogram.shape[1]):
        left = left - histogram[:, cell]
        out[:, cell] = generator.hypergeometric(histogram[:, cell], left, wanted)
        wanted = wanted - out[:, cell]
    return out


def _half_means(first: Integers, rest: Integers, side: Side, r: float) -> Floats:
    """Of one end a of each sample: L of the first half, â, Ŷ, Σ (Y - Ŷ)², and the same as the first half foresees."""
    first, rest = (first[:, ::-1], rest[:, ::-1]) if side.flip else (first, rest)
    n, more = first.sum(axis=1), rest.sum(axis=1)
    above = np.cumsum(first[:, :0:-1], axis=1)[:, ::-1]
    point = (above + PRIOR) / (n + 2 * PRIOR)[:, None]
    slope, intercept = lines(point, r)
    worth = np.zeros(first.shape)
    np.cumsum(side.widths * slope, axis=1, out=worth[:, 1:])
    offset, n = intercept @ side.widths, n.clip(1)
    mean = np.einsum("ij,ij->i", first, worth) / n
    apart = (worth - mean[:, None]) ** 2
    estimate = offset + np.einsum("ij,ij->i", rest, worth) / more
    found: Floats = shift(point, r) @ side.widths
    rounding = 1e-12 * (1 + worth[:, -1])
    squares, foreseen = (np.einsum("ij,ij->i", part, apart) for part in (rest, first))
    return np.stack([found, estimate - rounding, mean / more, squares / more**2, foreseen / n / more])


def _chosen_ends(
    lower: Floats, upper: Floats, correct: NDArray[np.bool_], likely: NDArray[np.bool_], bins: int
) -> NDArray[np.int8]:
    """The ends that the worst case of these intervals takes: -1 the lower, 1 the upper one, 0 an edge of a bin."""
    low, high = np.minimum(lower, upper).clip(0, 1), np.maximum(lower, upper).clip(0, 1)
    edges, right = equal_width_edges(bins), correct[likely].view(np.uint8)
    signs = np.asarray(calibration_error_of(Intervals(low[likely], high[likely], right, None), edges, "left").signs)
    first, last = (bin_indices(each, edges) for each in (low, high))
    wanted = np.where(correct, 1, -1)
    # How many bins up to each have the wanted sign; a correct sample wants '+' at its lower end.
    plus, minus = (np.concatenate(([0], np.cumsum(signs == sign))) for sign in (1, -1))
    found = np.where(correct, plus[last + 1] - plus[first], minus[last + 1] - minus[first]) > 0
    own = signs[np.where(correct, first, last)] == wanted
    return np.where(own, -wanted, np.where(found, 0, wanted)).astype(np.int8)
