"""Bound on the calibration error E|s - η(s)| when η changes no faster than a known constant."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._base.checks import MOST_CHANGE, failure_probability, positive
from certcal.bounds._bets import OUTCOME_DEVIATIONS, mean_from_logs, running_sums, signed_sums, sorted_cells
from certcal.bounds._shared import Floats, Sample, check_pairs, check_scale, log_odds, sort_pairs, upper_bound
from certcal.bounds.concentration import place_bets
from certcal.claims import Bound, short_text

# How far the influence of a zero of η - s goes, in standard deviations of the outcomes there; and how fine cells are.
_REACH = 0.5
_FINE = 0.05

# Scores this near to 1 have log-odds that are known too badly.
_NEAR = 2.0**-24


def lipschitz(scores: Any, outcomes: Any, constant: float, delta: float = 0.05, *, scale: str = "probability") -> Bound:
    """Upper bound on E|s - η(s)|, η(s) = E[y | s], for every η with |η(s) - η(s')| <= constant · |s - s'|.

    The constant is an assumption, except for scores perturbed by :func:`certcal.bounds.perturb` with bandwidth h, whose
    η has the constant 1/(2h). What is random: n independent draws of (s, y). What is claimed: with probability at least
    1 - delta over them, the calibration error of the population is at most ``value``.

    Why. Let g = η - s, and let X_i <= 1 depend on the scores, on η and on y_i, with E[X_i | scores] >= |g(s_i)|. For a
    bet θ in [0, 1) chosen in advance, and given the scores, the product of 1 - θ X_i has an expectation of at most that
    of 1 - θ |g(s_i)|, since outcomes are independent; and this has the expectation (1 - θ E|g|)^n over the scores. So
    the product over (1 - θ m)^n, averaged over several bets, reaches 1/delta at m = E|g| with probability at most delta
    (Markov). η is unknown but fixed, so the X_i may be chosen by looking at it; the bound uses the least product over
    all that η might have led to, which is smaller still. It is where that reaches 1/delta.

    The choice: where g has a zero, |g| is small near it, at most the distance times the constant + 1 on the side on
    which g falls to or from it, and the constant - 1 where g rises. Near a zero X_i is that number, and nothing is
    random. Between the reaches of two zeros g has one sign σ, and X_i = σ (y_i - s_i). How far a zero reaches depends
    on the scores only: until the sum of those numbers is half a standard deviation of the sum of the outcomes. The
    least product over all places of zeros and all signs is found by dynamic programming over cells of samples, which
    are a fraction of a reach; zeros are placed to the nearest cell, and logarithms replaced by chords, so that the
    product only gets smaller.

    The rate is n^(-1/3); it is n^(-1/2) for a constant of at most 1, since g then never rises and has at most one zero.
    On the scale "logit" η changes by at most the constant per unit of the log-odds. Scores within 6e-8 of 1, whose
    log-odds are lost in rounding, have a sign of their own each.

    Parameters
    ----------
    scores, outcomes, delta
        As for :func:`bounded_variation`.
    constant
        Largest slope of η that the claim covers.
    scale
        What the constant is per unit of: "probability" (the score itself) or "logit", ln(s/(1 - s)).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(100_000)
    >>> bound = lipschitz(s, rng.random(s.size) < s, constant=2)
    >>> print(bound.text)
    0.0163
    """
    return lipschitz_of(*check_pairs(scores, outcomes), delta, constant, scale)


def lipschitz_of(
    s: NDArray[Any], y: NDArray[np.uint8], delta: float, constant: float, scale: str = "probability"
) -> Bound:
    slope = positive(constant, "constant", MOST_CHANGE)
    level, on_log_odds = failure_probability(delta, "delta"), check_scale(scale) == "logit"
    sample = sort_pairs(s, y)
    n = sample.scores.size
    begin, end = 0, n
    if on_log_odds:
        begin, end = np.searchsorted(sample.scores, (np.finfo(np.float64).tiny, 1 - _NEAR)).tolist()
    parts = [Sample(sample.scores[a:b], sample.outcomes[a:b]) for a, b in ((0, begin), (end, n), (begin, end))]
    bets = place_bets(level, n, OUTCOME_DEVIATIONS)
    least, rounding = (
        _sums_with_free_signs(parts[0], bets) + _sums_with_free_signs(parts[1], bets),
        n * (n - end + begin + 20) * 2.0**-51,
    )
    if begin < end:
        patterns = _Patterns.of(parts[2], slope, on_log_odds)
        least += patterns.least(bets)
        rounding += patterns.rounding
    observed = -float(least[-1]) / n
    limit = mean_from_logs(least[:-1], bets, n, level, rounding)
    terms = {"largest error on the samples": observed, "deviation": max(0.0, limit - observed)}
    settings: dict[str, Any] = {"constant": slope} | ({"scale": scale} if on_log_odds else {})
    most, unit = short_text(slope, "lower"), "log-odds" if on_log_odds else "score"
    change = f"the share of outcomes 1 as a function of the {unit} changes by at most {most} per unit of the {unit}"
    return upper_bound("calibration error", terms, level, n, (INDEPENDENT, NOT_USED_BEFORE, change), settings)


class _Patterns(NamedTuple):
    """Sorted samples in cells, and all that η may be: where its gaps have zeros, and their signs between these.

    ``table`` has the two coordinates by whose differences a gap can rise and fall: at the last score of each cell and
    at the first; the number of samples in the first k cells, and the sums of the coordinates over them; the
    coordinates from which a gap moves on if it has a zero in a cell, or just before it; and whether a cell has several
    scores.
    """

    cells: Floats
    table: tuple[Floats, Floats, Floats, Floats, Floats, Floats, NDArray[np.bool_]]
    last: NDArray[np.int64]
    first: NDArray[np.int64]
    largest: float
    rises: bool

    @classmethod
    def of(cls, sample: Sample, slope: float, on_log_odds: bool) -> _Patterns:
        from certcal._kernels.runs import fine_starts, reaches

        s = sample.scores
        place, room, rises = s, 0.0, slope > 1
        if on_log_odds:
            place, rises = log_odds(s), True
            # The log-odds of a score that is known to a few units in its last place.
            room = slope * 2.0**-48 * float(((1 + np.abs(place[[0, -1]])) / (1 - s[[0, -1]])).max())
        starts = np.empty(s.size + 1, np.int64)
        starts = starts[: fine_starts(s, place, slope, _FINE, starts)]
        cells = sorted_cells(sample, starts)
        ends = np.stack((starts[1:] - 1, starts[:-1]))
        # Below 1/4 a function of the log-odds may rise more slowly than the score, or fall: that is not used.
        own = s[ends] - s[0]
        less = own if not on_log_odds or slope >= 0.25 else 0.0
        rise, fall = (slope * (place[ends] - place[0]) + each for each in (-less, own))
        (hi_rise, lo_rise), (hi_fall, lo_fall) = rise if rises else 0 * rise, fall
        hi, lo = np.stack((hi_rise, hi_fall)) + room, np.stack((lo_rise, lo_fall)) - room
        number = np.diff(starts).astype(np.float64)
        before = np.concatenate((lo[:, :1], hi[:, :-1] - 2 * room), axis=1)
        sums = running_sums(number), running_sums(number * hi), running_sums(number * lo)
        table = hi, lo, *sums, before, cells[:, 4] < cells[:, 5]
        middle = s[ends].mean(axis=0)
        last, first = np.empty((2, len(cells)), np.int64), np.empty((2, len(cells)), np.int64)
        largest = reaches(running_sums(number * middle * (1 - middle)), table, _REACH, last, first)
        return cls(cells, table, last, first, max(float(largest), 1e-300), rises)

    @property
    def rounding(self) -> float:
        """What a sum of logarithms can be off by: those of the samples, and the sums of the coordinates."""
        n, steps = float(self.table[2][-1]), len(self.cells) + 20
        return n * steps * (1 + float(self.table[0].max())) * 2.0**-51

    def least(self, bets: Floats) -> Floats:
        """The least sum of logarithms for each bet, and minus the largest sum of X."""
        from certcal._kernels.runs import least_of_runs

        logs = signed_sums(self.cells, bets)
        slopes = np.append(np.log1p(-bets * self.largest) / self.largest, -1.0)
        rest = self.table, self.last, self.first
        return np.array([least_of_runs(each, *rest, s, self.rises) for each, s in zip(logs, slopes, strict=True)])


def _sums_with_free_signs(sample: Sample, bets: Floats) -> Floats:
    """The same where every score has a sign of its own."""
    new = np.flatnonzero(np.diff(sample.scores, prepend=-1.0, append=2.0))
    return np.diff(signed_sums(sorted_cells(sample, new), bets), axis=2).min(axis=1).sum(axis=1)
