"""What the bounds on a calibration error have in common: input, order, deviations, folds, and the claim they return."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, choice, confidences, correctness, same_length, whole_number
from certcal._base.threads import SMALL, map_blocks, thread_count
from certcal.claims import Bound, move_outward

Floats = NDArray[np.float64]

# Room left for rounding in a term of a bound, relative to its size: a few hundred units in the last place.
ROUNDING = 1e-13

# Share of what is kept for the draw of the outcomes that pays for the bound on their variance.
SET_ASIDE = 1 / 64

# Samples up to which folds have equal sizes.
SHUFFLED = 100_000

# The scale on which noise is added, or on which a calibration function changes slowly.
SCALES = ("probability", "logit")

# Scores nearer to 0 or 1 than this have no useful log-odds: noise is added to those of the end.
NEAREST = 1e-6

# Tells the stream of the folds from that of noise or of simulated samples which were drawn with the same seed.
FOLDS = 2


class Sample(NamedTuple):
    """Scores as float64 in rising order with their outcomes; among equal scores outcomes 0 come first."""

    scores: Floats
    outcomes: NDArray[np.uint8]


def check_pairs(scores: Any, outcomes: Any) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    s = confidences(scores, "scores")
    y = correctness(outcomes, "outcomes", "pass what happened: 0 or 1 per sample")
    same_length(scores=s.size, outcomes=y.size)
    return s, y


def sort_pairs(s: NDArray[Any], y: NDArray[np.uint8]) -> Sample:
    """Sort pairs by one sort of whole numbers.

    The bits of a float from 0 to 1 are a whole number below 2^62 that grows with the float, so the outcome fits below
    them; sorting those is several times faster than sorting indices and gathering.
    """
    keys = sort(_sort_keys(s, y))
    ordered = np.empty(keys.size, np.uint8)

    def part(a: int, b: int) -> None:
        ordered[a:b] = keys[a:b]  # the lowest byte
        ordered[a:b] &= 1
        keys[a:b] >>= np.uint64(1)

    map_blocks(part, keys.size)
    return Sample(keys.view(np.float64), ordered)


def sort_in_folds(s: NDArray[Any], y: NDArray[np.uint8], folds: int, seed: int) -> tuple[Sample, NDArray[np.uint8]]:
    """The sorted sample, and the fold of each of its places: see :func:`fold_of_each`."""
    fold = fold_of_each(s.size, folds, seed)
    keys = _sort_keys(s, y)
    if folds > 2:
        order = np.argsort(keys, kind="stable")
        return Sample(s.astype(np.float64)[order] + 0.0, y[order]), fold[order]
    keys <<= np.uint64(1)  # there is room for one bit more
    keys |= fold
    keys = sort(keys)
    bits = keys.astype(np.uint8)
    ordered = bits & np.uint8(1)
    bits >>= np.uint8(1)
    bits &= np.uint8(1)
    keys >>= np.uint64(2)
    return Sample(keys.view(np.float64), bits), ordered


def sort(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys in order: halves on threads of their own, then the lower and the upper part of their merger likewise."""
    middle = keys.size // 2
    if middle <= SMALL or thread_count() == 1:
        keys.sort()
        return keys
    from certcal._kernels.buckets import merge

    low, high = keys[:middle], keys[middle:]
    map_blocks(lambda a, b: (low, high)[a].sort(), 2, 1)
    i = middle // 2
    j = int(np.searchsorted(high, low[i : i + 1])[0])  # what is below low[i] on either side comes before the rest
    out = np.empty_like(keys)
    parts = ((low[:i], high[:j], out[: i + j]), (low[i:], high[j:], out[i + j :]))
    map_blocks(lambda a, b: merge(*parts[a]), 2, 1)
    return out


def _sort_keys(s: NDArray[Any], y: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Whole numbers below 2^63 in the order of score and outcome."""
    keys = np.empty(s.size, np.uint64)
    values = keys.view(np.float64)

    def fill(a: int, b: int) -> None:
        np.add(s[a:b], 0.0, out=values[a:b], dtype=np.float64)  # + 0.0 makes -0.0 a 0
        keys[a:b] <<= np.uint64(1)
        keys[a:b] |= y[a:b]

    map_blocks(fill, s.size)
    return keys


class Places(NamedTuple):
    """Where sorted scores stand on a scale: as numbers from 0 to 1, of which one unit is ``stretch`` units of it.

    What is claimed is about the scores as they were rounded. A function of the log-odds that changes by at most
    ``slope`` per unit of it differs by at most ``rounding`` from a function of the rounded scores, on average over
    them, where one rounded score stands for all that it came from.
    """

    values: Floats
    stretch: float
    rounding: float


def check_scale(scale: Any) -> str:
    return choice(scale, SCALES, "scale")


def log_odds(scores: Floats) -> Floats:
    """ln(s/(1 - s)), at the ends that of the nearest score that has one."""
    s = np.clip(scores, np.finfo(np.float64).tiny, 1 - 2.0**-53)
    return np.asarray(np.log(s) - np.log1p(-s), np.float64)


def places(scores: Floats, scale: str, slope: float) -> Places:
    """Sorted scores on their scale. On that of probabilities they are what they are.

    A score is known to a few units in its last place, so its log-odds t to within 2^-48 (1 + |t|)/(1 - s); a score of 1
    stands for all beyond, and η for a number in [0, 1].
    """
    if scale == "probability":
        return Places(scores, 1.0, 0.0)
    t = log_odds(scores)
    off = np.minimum(slope * 2.0**-48 * (1 + np.abs(t)) / np.maximum(1 - scores, 2.0**-60), 1.0)
    off[scores < np.finfo(np.float64).tiny] = 1.0
    stretch = float(t[-1] - t[0]) or 1.0
    return Places(np.clip((t - t[0]) / stretch, 0.0, 1.0), stretch, float(off.mean()) * (1 + 1e-9))


def bernstein_term(n: int, delta: float, variance: float) -> float:
    """√(2 v ln(3/δ)/n) + 3 ln(3/δ)/n, rounded up: the empirical Bernstein deviation for means of variables in [0, 1].

    ``variance`` is the mean of (X - mean)² over the n draws; see :func:`certcal.bounds.empirical_bernstein`.
    """
    log = math.log(3 / delta)
    return move_outward(math.sqrt(2 * max(variance, 0.0) * log / n) + 3 * log / n, "upper", ROUNDING)


def outcome_term(delta: float, candidates: int, squares: float, errors: float, largest: float) -> float:
    """What Σ_j a_j (η_j - y_j) does not exceed, for fixed |a_j| <= c_j and all candidates together, rounded up.

    Given the scores, outcomes y_j are independent and 1 with probability η_j; the a_j may depend on scores and η, not
    on outcomes. ``squares`` is Σ c_j², ``errors`` is Σ c_j² (y_j - s_j)² and ``largest`` is max c_j; or they are at
    least Σ a_j², Σ a_j² (y_j - s_j)² and max |a_j| for all a that can be. Why it holds except with probability delta:

    1. A fixed sum of this kind is at most √(½ Σ c_j² ln(1/δ')) except with probability δ' (Hoeffding), and at most
       √(2 v ln(1/δ')) + ⅓ max c_j ln(1/δ') (Bernstein) with v = Σ c_j² η_j (1 - η_j). Both numbers are fixed given the
       scores, though the second is unknown, so the smaller of them has the same δ': there is no union over the two.
    2. E(y_j - s_j)² = η_j(1 - η_j) + (η_j - s_j)², so v is at most the expectation of ``errors``: the variance of the
       outcomes is at most a weighted Brier score. That differs from the one at hand by Σ_j c_j² (1 - 2 s_j)(η_j - y_j),
       again a sum as in step 1 with a variance of at most (max c_j)² v. Its deviation has a share SET_ASIDE of delta,
       once for all candidates, which divide the rest among them.

    So √v solves a quadratic inequality. Where Hoeffding's term is the smaller one, the share that is set aside makes it
    larger by less than 1 - SET_ASIDE makes it smaller: by some 0.1 %.
    """
    aside = SET_ASIDE * delta
    log, log_variance = math.log(candidates / (delta - aside)), math.log(1 / aside)
    half = largest * math.sqrt(log_variance / 2)
    deviation = half + math.sqrt(half * half + errors + largest * largest * log_variance / 3)  # at least √v
    bernstein = deviation * math.sqrt(2 * log) + largest * log / 3
    return move_outward(min(math.sqrt(squares * log / 2), bernstein), "upper", ROUNDING)


def mean_rounding(n: int) -> float:
    """What a mean of n scores can lose: each of the n additions rounds by at most a 2^-53rd, in whatever order."""
    return 1e-12 + n * 2.0**-52


# --------------------------------------------------------------------------------------------------------------- folds


def fold_of_each(n: int, folds: int, seed: int) -> NDArray[np.uint8]:
    """A fold for each sample, in the order in which the samples came.

    Up to ``SHUFFLED`` samples the sizes of the folds differ by at most one. Beyond, each sample draws its fold by
    itself, which is many times faster and leaves sizes that differ by about √n. A bound on one fold needs no size in
    particular, only that who is in it does not depend on scores or outcomes.

    Independent samples in the order of their drawing are split into independent parts by *any* fixed labels, so what
    is claimed holds for every seed by itself. (Labels for the places of the *sorted* sample would not do: with ties
    these separate outcomes 0 from outcomes 1 in one fixed way, and the claim would hold on average over seeds only.)
    Of samples that were sorted by score or outcome, fixed labels make parts that depend on each other: who relies on
    folds assumes :data:`certcal.claims.ORDER`. With a seed drawn at random the claim holds, over that choice too.
    """
    generator = np.random.default_rng([seed, FOLDS])
    if n > SHUFFLED:
        return generator.integers(0, folds, n, dtype=np.uint8)
    labels = (np.arange(n) % folds).astype(np.uint8)
    generator.shuffle(labels)
    return labels


def check_folds(folds: Any, n: int) -> int:
    """A number of folds that leaves samples on both sides."""
    count = whole_number(folds, 2, 100, "folds", "pass a whole number from 2 to 100")
    if n < count:
        raise InputError(f"scores has {n} entries for {count} folds; pass more samples or fewer folds")
    return count


def refuse_split(folds: Any, seed: Any) -> None:
    """Refuse what only a form with folds has."""
    for name, given in (("folds", folds), ("seed", seed)):
        if given is not None:
            raise InputError(
                f"{name} is {given}, but nothing is split in this form; leave it out or pass form='published'"
            )


def check_seed(seed: Any) -> int:
    return whole_number(seed, 0, 2**64 - 1, "seed", "pass a whole number >= 0")


def average_terms(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean of each term over the folds.

    Every fold's bound holds except with probability δ/K, so all hold together except with δ; then so does their mean.
    """
    return {name: math.fsum(part[name] for part in parts) / len(parts) for name in parts[0]}


def upper_bound(
    name: str,
    terms: Mapping[str, float],
    delta: float,
    n: int,
    assumptions: tuple[str, ...],
    settings: Mapping[str, Any],
) -> Bound:
    """A claim "at most the sum of the terms, and at most 1", with terms and sum rounded up."""
    outward = {key: move_outward(value, "upper", ROUNDING) if value else 0.0 for key, value in terms.items()}
    total = move_outward(math.fsum(outward.values()), "upper")
    recorded = dict(settings)
    if total > 1:
        recorded["sum of the terms"] = "capped at 1"
    return Bound(name, min(1.0, total), "upper", delta, n, assumptions, outward, recorded)
