"""Bound on the calibration error E|s - η(s)| when η changes no faster than a known constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._checks import MOST_CHANGE, InputError, failure_probability, positive, whole_number
from certcal.bounds._scale import check_scale, places
from certcal.bounds._shared import (
    Floats,
    bucket_counts,
    bucket_gap,
    bucket_spread,
    check_pairs,
    draw_terms,
    in_order,
    upper_bound,
)
from certcal.claims import Bound, short_text

# The finest grid has at most this many cells.
_MOST_CELLS = 2**22

_POWERS = "pass 1, 2, 4, 8, 16, 32 or 64"


def lipschitz(
    scores: Any, outcomes: Any, constant: float, delta: float = 0.05, *, shifts: int = 4, scale: str = "probability"
) -> Bound:
    """Upper bound on E|s - η(s)|, η(s) = E[y | s], for every η with |η(s) - η(s')| <= constant · |s - s'|.

    The constant is an assumption, except for scores perturbed by :func:`certcal.bounds.perturb` with bandwidth h, whose
    η has the constant 1/(2h). What is random: n independent draws of (s, y). What is claimed: with probability at least
    1 - delta over them, the calibration error of the population is at most ``value``.

    Why: as for :func:`bounded_variation`, with buckets of width 1/B. Only the third step differs: in a bucket the mean
    distance of η from its mean is at most its standard deviation, and that at most constant · (standard deviation of
    the scores in the bucket), because a variance is half the mean squared difference of two draws. With what the scores
    themselves contribute that is (constant + 1) times the mean standard deviation within buckets: at most half a
    bucket's width, and 0.29 of it for scores that are spread evenly; it is computed from the sample and costs no
    probability. Bucket counts B = 1, 2, 4 … and ``shifts`` positions of the grid are tried; half of delta is divided by
    how many pairs (B, shift) there are, and the smallest bound is taken (a union bound; the paper's appendix E writes
    δ/(BR), which is meant as this: with B the bucket count itself the levels would not add up to δ).

    The rate is n^(-1/3). On the scale "logit" η changes by at most the constant per unit of the log-odds; buckets are
    equally wide in these, and what η and s contribute is computed from the standard deviations of each.

    Parameters
    ----------
    scores, outcomes, delta
        As for :func:`bounded_variation`.
    constant
        Largest slope of η that the claim covers.
    shifts
        Positions of the grid for each width: a power of two.
    scale
        What the constant is per unit of: "probability" (the score itself) or "logit", ln(s/(1 - s)).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(100_000)
    >>> bound = lipschitz(s, rng.random(s.size) < s, constant=2)
    >>> print(bound.text)
    0.0248
    """
    slope = positive(constant, "constant", MOST_CHANGE)
    positions = whole_number(shifts, 1, 64, "shifts", _POWERS)
    if positions & (positions - 1):
        raise InputError(f"shifts is {positions}; {_POWERS}")
    delta, on_log_odds = failure_probability(delta, "delta"), check_scale(scale) == "logit"
    sample = in_order(*check_pairs(scores, outcomes))
    n = sample.scores.size
    where = places(sample.scores, scale, slope)
    steep = slope * where.stretch
    # Where 0.29 (constant + 1)/B and the noise 0.4 √(B/n) balance, and some room to both sides.
    counts = bucket_counts(min(4 * ((steep + 1) ** 2 * n) ** (1 / 3), _MOST_CELLS / positions), n)
    from certcal._kernels.buckets import cell_sums, run_sums

    cells = np.empty((counts[-1] * positions, 4))
    cell_sums(where.values, sample.outcomes, len(cells), cells)
    scores_in = np.empty_like(cells if on_log_odds else cells[:0])
    if on_log_odds:
        run_sums(*sample, np.concatenate(([0], np.cumsum(cells[:, 0]))).astype(np.int64), scores_in)
    best, chosen = dict[str, float](), (0, 0)
    for count in counts:
        for shift in range(positions if count > 1 else 1):
            grid = len(cells) // count, shift * (len(cells) // (count * positions))
            sums = _merged(cells, *grid)
            change = (slope + 1) * bucket_spread(sums, n)
            if on_log_odds:
                change = steep * bucket_spread(sums, n) + 2 * where.rounding
                sums = _merged(scores_in, *grid)
                change += bucket_spread(sums, n)
            terms = {"gap": bucket_gap(sums, n), "change within a bucket": change}
            if not best or sum(terms.values()) < sum(best.values()):
                best, chosen = terms, (count, shift)
    candidates = 1 + (len(counts) - 1) * positions
    terms = best | draw_terms(sum(best.values()), sample, delta, candidates)
    settings: dict[str, Any] = {"constant": slope, "shifts": positions, "buckets": chosen[0], "shift": chosen[1]}
    if on_log_odds:
        settings["scale"] = scale
    limit, unit = short_text(slope, "lower"), "log-odds" if on_log_odds else "score"
    change = f"the share of outcomes 1 as a function of the {unit} changes by at most {limit} per unit of the {unit}"
    return upper_bound("calibration error", terms, delta, n, (INDEPENDENT, NOT_USED_BEFORE, change), settings)


def _merged(cells: Floats, width: int, shift: int) -> Floats:
    """Sums over buckets of ``width`` cells, of which the first ends after ``shift`` cells (or ``width``, if 0)."""
    from certcal._kernels.buckets import merge_cells

    sums = np.empty((len(cells) // width + 2, 4))
    return sums[: merge_cells(cells, width, shift or width, sums)]
