"""How two classifiers differ on the same samples: binned calibration error and Brier score of the population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._base.checks import InputError, choice, failure_probability, same_length, score_pair, shortened
from certcal._base.json import PlainValues
from certcal.binning import CLOSED, edges_for
from certcal.bounds._bets import SMALL_DEVIATIONS, BetPoints, mean_limit, spread, upper_limit
from certcal.bounds._binned import gaps_with_past_signs, orders
from certcal.bounds._shared import Floats, check_seed
from certcal.claims import ORDER, Bound, TwoSidedBound, move_outward

_PAIRED = "both classifiers answered for the same samples, in the same order"
_FIXED = "the edges were not chosen from them"

# Lines of the grid for the part of a difference whose sign is known: see spread.
_NODES = 257


@dataclass(frozen=True)
class DifferenceBounds(PlainValues):
    """How much two classifiers differ in the population, the first minus the second."""

    binned: TwoSidedBound
    """Bounds on the difference of the binned calibration errors."""
    brier: TwoSidedBound
    """Bounds on the difference of the Brier scores, the means of (confidence - correctness)²."""


@names_wrong_types
def difference(
    confidence_a: Any,
    correct_a: Any,
    confidence_b: Any,
    correct_b: Any,
    bins: int = 15,
    delta: float = 0.05,
    *,
    edges: Any = None,
    closed: str = "left",
    seed: int = 0,
    names: tuple[str, str] = ("a", "b"),
) -> DifferenceBounds:
    """Bounds from below and above on the calibration error of a minus that of b, and on the same for the Brier score.

    What is random: n independent draws of (z_a, c_a, z_b, c_b), the answers of both classifiers for one sample; they
    may depend on each other in any way. What is claimed: with probability at least 1 - delta over the draws, T_a - T_b
    is between the two ends of ``binned``, where T = Σ_m |E[(c - z) 1(z in bin m)]|. The same holds for ``brier`` by
    itself: choose one of the two before looking, or ask for half of delta.

    Why. Let X = c - z. T_a = E[σ_a(z_a) X_a] for signs σ_a of the bins that are fixed, though unknown, and no signs σ_b
    bring E[σ_b(z_b) X_b] above T_b. So T_a - T_b is at most E[σ_a(z_a) X_a - σ_b(z_b) X_b], given the past, for σ_b
    that the samples before each one choose in a random order, as in :func:`binned_lower`. The bets are on that
    difference, halved into [-1, 1], with the worst signs σ_a bin by bin, as in :func:`binned`: at the true m a gain is
    expected to be at most 1 given the past. The difference varies less than either part where the classifiers agree.
    The lower end is the same with a and b exchanged. Each end spends delta/2. The Brier score needs no signs.

    Parameters
    ----------
    confidence_a, correct_a, confidence_b, correct_b
        Confidences in [0, 1] and correctness 0 or 1 of either classifier (binary: score, and twice the same outcome).
    bins, delta, edges, closed
        As for :func:`binned`; one binning for both.
    seed
        Of the order.
    names
        Of the two classifiers, for the sentences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(20_000)
    >>> y = rng.random(z.size) < z
    >>> found = difference(z**2, y, z, y)  # the population's differences are 1/6 and 1/30
    >>> found.binned.text, found.brier.text
    ('0.1435 to 0.1771', '0.0301 to 0.0383')
    """
    level = failure_probability(delta, "delta") / 2
    if len(names) != 2:
        raise InputError(f"names is {shortened(names)}; pass two names")
    first, second = _checked_samples(confidence_a, correct_a, "a"), _checked_samples(confidence_b, correct_b, "b")
    n = first[0].size
    same_length(confidence_a=n, confidence_b=second[0].size)
    given = edges_for(bins, edges)
    settings: dict[str, Any] = {"bins": given.size - 1, "closed": choice(closed, CLOSED, "closed")}
    settings |= {"seed": check_seed(seed)} if edges is None else {"edges": "given", "seed": check_seed(seed)}
    order = next(orders(n, seed))
    ends = [_limit_of_excess(*pair, order, given, closed, level) for pair in ((first, second), (second, first))]
    assumed = INDEPENDENT, NOT_USED_BEFORE, _PAIRED
    name = f"binned calibration error of {names[0]} minus that of {names[1]}"
    binned = _two_sided(name, ends, level, n, (*assumed, _FIXED, ORDER), settings)
    losses = _loss(*first) - _loss(*second)
    ends = [mean_limit(sign * losses, level, SMALL_DEVIATIONS) for sign in (1.0, -1.0)]
    brier = _two_sided(f"Brier score of {names[0]} minus that of {names[1]}", ends, level, n, assumed, {})
    return DifferenceBounds(binned, brier)


def _checked_samples(confidence: Any, correct: Any, which: str) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Checked samples of one classifier, with its name in every error."""
    try:
        z, c, _ = score_pair(confidence, correct)
    except InputError as error:
        raise InputError(f"classifier {which}: {error}") from None
    return z, c


def _limit_of_excess(
    first: tuple[NDArray[Any], NDArray[np.uint8]],
    second: tuple[NDArray[Any], NDArray[np.uint8]],
    order: NDArray[np.int64],
    edges: Floats,
    closed: str,
    delta: float,
) -> float:
    """Upper limit for the binned error of the first minus that of the second."""
    known = -0.5 * gaps_with_past_signs(*second, edges, closed, order)
    parts = spread(*first, edges, closed, known, np.linspace(-0.5, 0.5, _NODES))
    rows = np.column_stack((parts.number, np.ones(parts.number.size), 0.5 * parts.gap, parts.other))
    return 2 * upper_limit(BetPoints(rows, parts.bin), delta, known.size, SMALL_DEVIATIONS)


def _loss(z: NDArray[Any], c: NDArray[np.uint8]) -> Floats:
    return (z.astype(np.float64) - c) ** 2


def _two_sided(
    name: str, ends: list[float], level: float, n: int, assumptions: tuple[str, ...], settings: dict[str, Any]
) -> TwoSidedBound:
    """Two ends as one claim: upper limits for the difference and for its negative."""
    high, low = min(1.0, move_outward(ends[0], "upper")), max(-1.0, move_outward(-ends[1], "lower"))
    shared: Any = {"delta": level, "n": n, "assumptions": assumptions, "settings": settings}
    return TwoSidedBound(Bound(name, low, "lower", **shared), Bound(name, high, "upper", **shared))
