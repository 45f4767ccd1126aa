"""Bound on the calibration error E|s - η(s)| when η changes no faster than a known constant."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._base.checks import MOST_CHANGE, InputError, choice, failure_probability, positive
from certcal.binning import equal_width_edges, sums
from certcal.bounds._bets import OUTCOME_DEVIATIONS, mean_from_logs, running_sums, signed_sums, sorted_cells
from certcal.bounds._shared import (
    Floats,
    Sample,
    average_terms,
    bernstein_term,
    check_folds,
    check_pairs,
    check_scale,
    check_seed,
    fold_of_each,
    log_odds,
    mean_rounding,
    refuse_split,
    sort_pairs,
    upper_bound,
)
from certcal.bounds.concentration import place_bets
from certcal.claims import ORDER, Bound, short_text

FORMS = ("direct", "published")

# How far the influence of a zero of η - s goes, in standard deviations of the outcomes there; and how fine cells are.
_REACH = 0.5
_FINE = 0.05

# Scores this near to 1 have log-odds that are known too badly.
_NEAR = 2.0**-24

# Of the published form: positions of the grid for each number of buckets; and the cells that buckets consist of.
SHIFTS = 4
CELLS = 2**16


def lipschitz(
    scores: Any,
    outcomes: Any,
    constant: float,
    delta: float = 0.05,
    *,
    scale: str = "probability",
    form: str = "direct",
    folds: int | None = None,
    seed: int | None = None,
) -> Bound:
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
    form
        "direct" as above. "published": the Lipschitz bucketing to which *Measuring uncertainty calibration* compares
        (there with perturbed scores and the constant 1/2h): means of the outcomes in equally wide buckets of other
        folds, the least bound over several numbers and positions of the buckets. It claims the same and is larger; the
        page on bounds has its terms. For the scale "probability" only.
    folds, seed
        Of the published form, as for :func:`bounded_variation`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(100_000)
    >>> bound = lipschitz(s, rng.random(s.size) < s, constant=2)
    >>> print(bound.text)
    0.0163
    >>> bound = lipschitz(s, rng.random(s.size) < s, constant=2, form="published")
    >>> print(bound.text, bound.settings["buckets"])
    0.1496 32
    """
    split = {"form": form, "folds": folds, "seed": seed}
    return lipschitz_of(*check_pairs(scores, outcomes), delta, constant, scale, **split)  # pyright: ignore


def lipschitz_of(
    s: NDArray[Any],
    y: NDArray[np.uint8],
    delta: float,
    constant: float,
    scale: str = "probability",
    *,
    form: str = "direct",
    folds: int | None = None,
    seed: int | None = None,
) -> Bound:
    slope = positive(constant, "constant", MOST_CHANGE)
    level, on_log_odds = failure_probability(delta, "delta"), check_scale(scale) == "logit"
    most, unit = short_text(slope, "lower"), "log-odds" if on_log_odds else "score"
    change = f"the share of outcomes 1 as a function of the {unit} changes by at most {most} per unit of the {unit}"
    assumptions = INDEPENDENT, NOT_USED_BEFORE, change
    if choice(form, FORMS, "form") == "published":
        if on_log_odds:
            raise InputError("form is 'published', which is for the scale 'probability'; pass form='direct'")
        terms, settings = _terms_of_best_partition(s, y, level, slope, 2 if folds is None else folds, seed or 0)
        settings = {"constant": slope, **settings}
        return upper_bound("calibration error", terms, level, s.size, (*assumptions, ORDER), settings)
    refuse_split(folds, seed)
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
    return upper_bound("calibration error", terms, level, n, assumptions, settings)


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


# -------------------------------------------------------------------------------------------------- the published form


def _terms_of_best_partition(
    s: NDArray[Any], y: NDArray[np.uint8], delta: float, slope: float, folds: int, seed: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Terms of the partition with the least bound, averaged over the folds, and the settings to be recorded.

    What the paper says (section 5, footnote 6, appendix E): η is Lipschitz with the constant 1/2h, which bounds the
    error of bucketing; buckets are equally wide on [0, 1]; a shift moves the inner edges by a fraction of a bucket and
    leaves 0 and 1 where they are; every pair of a number of buckets B and a shift r < R is a candidate at level δ/(BR),
    and the least bound is taken; folds take turns. What it leaves open is chosen here: the bound of one partition, the
    numbers of buckets (powers of two up to ((constant + 1)² n)^⅓, which depends on no sample), R = 4, the unit of the
    shift (a bucket's width over R: the printed r/B would be whole buckets), and B in δ/(BR), which must be how many
    numbers are tried: with the number of buckets itself the levels would add up to more than δ. The paper's validation
    on a subset of the samples, which it has for speed, is left out. Concentration is by its Bernstein term throughout
    (its section 3).

    What is random: n independent draws of (s, y) in the order in which they came. Given which bucket each training
    sample is in, and for one partition at level δ' = delta/(candidates · folds), in three equal parts:

    1. In each of the m buckets with training samples their N_b outcomes are independent draws with one probability, the
       mean of η over the bucket. Their mean η̂ is within BB(N_b, δ'/3m, η̂(1 - η̂)) of it (the empirical Bernstein
       inequality has both sides; all buckets together); and it is within constant · width of η at every score of the
       bucket. So |η̂(s) - η(s)| <= g(s), the sum of the two, at most 1; without training samples η̂ is ½ and g is ½.
    2. The validation fold is independent of η̂ and g. By the empirical Bernstein inequality the means over it of
       |s - η̂(s)| and of g(s) are with δ'/3 each at most BB and R · BB below their expectations, R being the largest g,
       as in Proposition 2; and E|s - η(s)| is at most the sum of these.

    All folds of all candidates hold together except with probability delta; so does the least mean over the folds.
    """
    folds, seed = check_folds(folds, s.size), check_seed(seed)
    fold = fold_of_each(s.size, folds, seed)
    most = math.ceil(math.log2(max(1.0, min(((slope + 1) ** 2 * s.size) ** (1 / 3), s.size, CELLS / SHIFTS))))
    candidates = [(2**power, shift) for power in range(most + 1) for shift in range(SHIFTS)]
    level = delta / (len(candidates) * folds)
    parts: list[list[dict[str, float]]] = []
    for held_out in range(folds):
        split = BucketedSplit.of(s, y, fold != held_out)
        parts.append([split.terms(bucket_cells(*each), slope, level) for each in candidates])
    means = [average_terms(each) for each in zip(*parts, strict=True)]
    best = min(range(len(means)), key=lambda index: math.fsum(means[index].values()))
    chosen = dict(zip(("buckets", "shift"), candidates[best], strict=True))
    return means[best], {**chosen, "shifts": SHIFTS, "folds": folds, "seed": seed, "form": "published"}


def bucket_cells(count: int, shift: int) -> NDArray[np.int64]:
    """Cells with which the buckets start, the end included; those between 0 and 1 are moved by a share of a width."""
    return np.concatenate(([0], (np.arange(1, count) * SHIFTS + shift) * (CELLS // (SHIFTS * count)), [CELLS]))


class BucketedSplit(NamedTuple):
    """Of the first k cells of equal width: training samples and their outcomes; validation samples, scores, squares."""

    number: Floats
    hits: Floats
    held: Floats
    scores: Floats
    squares: Floats

    @classmethod
    def of(cls, s: NDArray[Any], y: NDArray[np.uint8], training: NDArray[np.bool_]) -> BucketedSplit:
        edges = equal_width_edges(CELLS)
        train, held = (sums(s[some], y[some], None, edges) for some in (training, ~training))
        a, b = edges[:-1], edges[1:]
        squares = (a + b) * held.confidence_sum - a * b * held.count  # at least, as (s - a)(s - b) <= 0
        every = train.count, train.correct_sum, held.count, held.confidence_sum, squares
        return cls(*(running_sums(each.astype(np.float64)) for each in every))

    def terms(self, cut: NDArray[np.int64], slope: float, delta: float) -> dict[str, float]:
        """The bound of one partition, given the cells with which its buckets start."""
        part, m = delta / 3, int(self.held[-1])
        number, size = np.diff(self.number[cut]), np.diff(self.held[cut])
        there = number > 0
        mean = np.divide(np.diff(self.hits[cut]), number, out=np.full(number.size, 0.5), where=there)
        rate = math.log(3 * np.count_nonzero(there) / part) / np.maximum(number, 1)
        deviation = np.sqrt(2 * mean * (1 - mean) * rate) + 3 * rate
        error = np.minimum(slope * np.diff(cut) / CELLS + deviation, 1.0)
        error[~there] = 0.5
        gap = float(self._distances(mean, cut[:-1], cut[1:]).sum()) / m
        square = np.diff(self.squares[cut]) - 2 * mean * np.diff(self.scores[cut]) + mean**2 * size
        bias, largest = float(size @ error) / m, float(error.max())
        # The gap is rounded up, by up to half a cell.
        gaps = max(0.0, float(square.sum()) / m - max(0.0, gap - 0.5 / CELLS) ** 2) + 4 * mean_rounding(m)
        errors = max(0.0, float(size @ error**2) / m - bias**2) + 3 * mean_rounding(m)
        return {
            "surrogate gap": gap + 3 * mean_rounding(m),
            "bucketing error": bias + mean_rounding(m),
            "validation of the gap": bernstein_term(m, part, gaps),
            "validation of the error": largest * bernstein_term(m, part, errors / largest**2),
        }

    def _distances(self, mean: Floats, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
        """Sums of |s - mean| over the buckets: below the cell of the mean, above it, and in it at most the chord."""
        cell = np.floor(mean * CELLS).astype(np.int64)
        low, high = np.clip(cell, start, stop), np.clip(cell + 1, start, stop)
        (below, first), (above, last), (inside, here) = (
            (self.held[b] - self.held[a], self.scores[b] - self.scores[a])
            for a, b in ((start, low), (high, stop), (low, high))
        )
        place = mean * CELLS - cell
        chord = place * ((cell + 1) * inside - CELLS * here) + (1 - place) * (CELLS * here - cell * inside)
        return mean * (below - above) - first + last + chord / CELLS
