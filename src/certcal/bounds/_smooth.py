"""The calibration error of perturbed scores, bounded through fits of the outcomes.

Perturbed scores (:func:`certcal.bounds.perturb`) have a calibration function η that is analytic, with two bounded
derivatives, whatever the classifier and the population are. So a fit η̂(s) of the outcomes of samples with scores near s
is close to η(s), and |s - η̂(s)| close to |s - η(s)|.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from certcal._base.assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._base.checks import InputError, choice, confidences, failure_probability, flag, positive
from certcal._base.threads import map_blocks
from certcal.bounds import _analytic, _perturb
from certcal.bounds._shared import (
    Places,
    Sample,
    average_terms,
    bernstein_term,
    check_folds,
    check_pairs,
    check_scale,
    check_seed,
    outcome_term,
    places,
    sort_in_folds,
    sort_pairs,
    upper_bound,
)
from certcal.bounds.concentration import chernoff_upper
from certcal.claims import ORDER, Bound, Estimate, Frozen, Ledger

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

NAME = "calibration error of the perturbed scores"
PUBLISHED = f"published formula (its proof has a gap) for the {NAME}"

FORMS = ("direct", "repaired", "published")

# Shares of a fold's delta. Which outcomes the training samples had costs most, so it gets most.
SHARES = {"validation": 8.0, "outcomes": 10.0, "weights": 2.0}

# Widths that the repaired form tries, in bandwidths, on at most so many of the training scores.
TRIED = tuple(2.0 ** (power / 2) for power in range(-14, 17))
ENOUGH = 1 << 14

# What is expected of weights before they are known: of the analytic fit the largest is some six times 1/n, and a tenth
# more than their mean square counts.
TYPICAL_LARGEST, TYPICAL_SQUARES = 6.0, 1.1


@dataclass(frozen=True)
class Unproved(Estimate):
    """What a published formula gives whose proof has a gap: an estimate, with the terms that add up to it."""

    terms: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "terms", Frozen(self.terms))


@overload
def smooth(
    scores: Any,
    outcomes: Any,
    bandwidth: float,
    delta: float = 0.05,
    *,
    form: Literal["direct", "repaired"] = "direct",
    folds: int | None = None,
    seed: int = 0,
    smoothing: float | None = None,
    perturb: bool = False,
    scale: str = "probability",
) -> Bound: ...


@overload
def smooth(
    scores: Any,
    outcomes: Any,
    bandwidth: float,
    delta: float = 0.05,
    *,
    form: Literal["published"],
    folds: int | None = None,
    seed: int = 0,
    smoothing: float | None = None,
    perturb: bool = False,
    scale: str = "probability",
) -> Unproved: ...


@overload
def smooth(
    scores: Any,
    outcomes: Any,
    bandwidth: float,
    delta: float = 0.05,
    *,
    form: str,
    folds: int | None = None,
    seed: int = 0,
    smoothing: float | None = None,
    perturb: bool = False,
    scale: str = "probability",
) -> Bound | Unproved: ...


def smooth(
    scores: Any,
    outcomes: Any,
    bandwidth: float,
    delta: float = 0.05,
    *,
    form: str = "direct",
    folds: int | None = None,
    seed: int = 0,
    smoothing: float | None = None,
    perturb: bool = False,
    scale: str = "probability",
) -> Bound | Unproved:
    """Upper bound on CE = E|s - η(s)| of scores s that were perturbed with the sech kernel of bandwidth h.

    What is random: the samples and the noise in their scores. With probability at least 1 - δ over these the true
    calibration error of the perturbed classifier is at most the value. What is assumed: samples are independent draws,
    and scores were perturbed once with this bandwidth, which was not chosen from these outcomes, by noise that is
    independent of scores and outcomes and was not chosen among several draws. Nothing is assumed about the classifier,
    the population or the distribution of scores before the noise: they may be discrete, tied, or all equal.

    Why, for the default form:

    1. η̂(s_i) = ½ + Σ_j H_ij (y_j - ½) with a matrix H that depends on the scores only. With y_j = η(s_j) + ε_j, η̂ is
       η + Hε up to a bias (H - I)(η - ½), which is bounded for every η that perturbed scores can have.
    2. Let σ_i be the sign of s_i - η(s_i): unknown, but given the scores it is fixed. The mean of |s_i - η(s_i)| =
       σ_i(s_i - η(s_i)) is at most the mean of |s_i - η̂(s_i)|, plus the mean absolute bias, plus Σ_j a_j ε_j with a =
       Hᵀσ/n. The last is a fixed combination of independent variables of mean 0, each in an interval of length |a_j|:
       at most √(½ ln(1/δ₁) Σ a_j²) except with probability δ₁ (Hoeffding), or less by Bernstein's inequality where the
       Brier score shows that outcomes vary little. What a can be for any signs is known.
    3. |s - η(s)| is a function of the score with values in [0, 1]; Chernoff's inequality at δ₂ leads from its mean over
       the samples to its expectation. δ₁ + δ₂ = δ.

    H is one of two, chosen by looking at scores only. *Analytic*: a projection on functions that interpolate, piece by
    piece (:func:`interpolating` has the theorem). Its bias falls like exp(-π²N/2) with N nodes per bandwidth,
    so the bound falls like √(ln(n)/nh). *Local averages*: H_ij = w_ij, not negative, in a window around s_i; better for
    few samples with scores near 0 or 1. Their bias is at most Σ_j w_ij |d_ij|/2h and at most |Σ_j w_ij d_ij|/2h + Σ_j
    w_ij d_ij²/4h², d_ij = s_j - s_i, because |η′| <= 1/2h and |η″| <= 1/2h².

    No samples are set aside, and the noise of the fit enters through one sign pattern only.

    Parameters
    ----------
    scores
        Perturbed scores in [0, 1] (or scores before the noise and ``perturb=True``).
    outcomes
        0 or 1 per sample.
    bandwidth
        Bandwidth h of the perturbation.
    delta
        Probability with which the bound may fail.
    form
        "direct" as above. "published": the paper's terms as printed, with averages from training samples and distances
        from validation samples. Its proof uses the expectation over the training outcomes in place of the outcomes at
        hand, so it is **not** guaranteed to hold, and the documentation shows a case in which it fails: an estimate is
        returned, not a bound. "repaired": the same split with what the proof lacks, and with the derivatives and the
        bias above; it holds.
    folds
        How many folds take turns as validation set, in the last two forms. Default: 2.
    seed
        Seed of the folds, and of the noise with ``perturb=True``.
    smoothing
        Half the width of the window of local averages, chosen without looking at the outcomes. By default the fit, or
        in the repaired form the width, at which bias and noise together are least over the scores; in the published
        form the paper's plug-in.
    perturb
        Perturb the scores first.
    scale
        Scale of the noise, as for :func:`certcal.bounds.perturb`. On that of log-odds, nodes, windows and derivatives
        are in units of these; there is the direct form only.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scores = rng.random(100_000)
    >>> outcomes = rng.random(100_000) < scores
    >>> bound = smooth(scores, outcomes, 2**-3, perturb=True)
    >>> print(bound.text)
    0.0363
    >>> [name for name, size in bound.terms.items()]
    ['surrogate gap', 'bias', 'draw of the outcomes', 'draw of the scores']
    """
    s, y = check_pairs(scores, outcomes)
    given: dict[str, Any] = {"form": form, "folds": folds, "seed": seed, "smoothing": smoothing, "scale": scale}
    return smooth_of(s, y, delta, bandwidth, perturb=perturb, **given)


def smooth_of(
    s: NDArray[Any],
    y: NDArray[np.uint8],
    delta: float,
    bandwidth: float,
    *,
    form: str = "direct",
    folds: int | None = None,
    seed: int = 0,
    smoothing: float | None = None,
    perturb: bool = False,
    scale: str = "probability",
) -> Bound | Unproved:
    level, h = failure_probability(delta, "delta"), _perturb.check_bandwidth(bandwidth)
    choice(form, FORMS, "form")
    if check_scale(scale) == "logit" and form != "direct":
        raise InputError(f"form is {form!r}, which is for noise on the probability scale; pass form='direct'")
    width = None if smoothing is None else positive(smoothing, "smoothing")
    start = check_seed(seed)
    if form == "direct" and folds is not None:
        raise InputError(f"folds is {folds}, but nothing is split in this form; leave it out or pass form='repaired'")
    count = 1 if form == "direct" else check_folds(2 if folds is None else folds, s.size)
    if flag(perturb, "perturb"):
        s = _perturb.perturb_scores(s, h, start, scale)
    elif scale == "logit" and s.dtype != np.float64:
        raise InputError(
            f"scores are {s.dtype}, in which log-odds near 0 and 1 are too coarse; pass perturbed scores as float64"
        )
    if form == "direct":
        parts = [_terms_without_split(sort_pairs(s, y), h, level, width, scale)]
    else:
        sample, fold = sort_in_folds(s, y, count, start)
        part = Ledger(level).split(**{str(k): 1.0 for k in range(count)}).entries[0][1]
        room = _SplitMemory(fold, count)
        parts = [one_split(*room.fill(sample, fold, k), h, part, form, width) for k in range(count)]
    settings: dict[str, Any] = {"bandwidth": h, "form": form}
    if scale == "logit":
        settings["scale"] = scale
    settings |= parts[0].used if count == 1 else average_terms([part.used for part in parts])
    if form != "direct":
        settings |= {"folds": count, "seed": start}
    assumptions = (INDEPENDENT, NOT_USED_BEFORE, _perturb.perturbed_assumption(h, scale))
    if width is not None:
        assumptions += ("the smoothing was chosen without looking at the outcomes",)
    if form != "direct":
        assumptions += (ORDER,)
    terms = average_terms([part.terms for part in parts])
    if form == "published":
        value = min(1.0, math.fsum(terms.values()))
        return Unproved(PUBLISHED, value, s.size, settings | {"delta": level}, terms=terms)
    return upper_bound(NAME, terms, level, s.size, assumptions, settings)


class SmoothTerms(NamedTuple):
    """The terms of the bound from one split (or from all samples), and the width of the window or number of nodes."""

    terms: dict[str, float]
    used: Mapping[str, float]


def _terms_without_split(sample: Sample, h: float, delta: float, width: float | None, scale: str) -> SmoothTerms:
    n = sample.scores.size
    where = places(sample.scores, scale, 0.5 / h)
    h /= where.stretch
    budget = dict(Ledger(delta).split(outcomes=1.0, scores=1.0).entries)
    if width is None:
        fit, used = _best_fit(sample, where, h, budget["outcomes"])
    else:
        fit, used = _fit_by_averages(sample, where, h, max(width / where.stretch, NARROWEST))
    terms = {
        "surrogate gap": fit.gap,
        "bias": fit.bias + where.rounding * (1 + n * fit.largest),
        "draw of the outcomes": outcome_term(budget["outcomes"], 1, fit.squares, fit.errors, fit.largest),
    }
    seen = math.fsum(terms.values())
    terms["draw of the scores"] = max(chernoff_upper(seen, n, budget["scores"]) - seen, 0.0)
    return SmoothTerms(terms, used)


def _best_fit(sample: Sample, where: Places, h: float, delta: float) -> tuple[_analytic.Fit, Mapping[str, float]]:
    """The fit of which most is expected, were η(s) = s; it looks at scores only."""
    n = sample.scores.size
    cells = _analytic.group_in_cells(sample, where, h)
    pieces = _analytic.cut_in_pieces(cells, h)
    variance = float((cells.number * cells.score) @ (1 - cells.score)) / n
    wide, expected = best_width(where.values, h, _analytic.NORMAL * math.sqrt(variance))
    expected += outcome_term(delta, 1, 1 / n, variance / n, 1 / n)
    more = TYPICAL_SQUARES / n, TYPICAL_SQUARES * variance / n, TYPICAL_LARGEST / n
    if pieces.expected + outcome_term(delta, 1, *more) > expected:
        return _fit_by_averages(sample, where, h, wide)
    return _analytic.fit_pieces(cells, pieces, h), {"nodes": int(pieces.nodes.sum())}


def _fit_by_averages(sample: Sample, where: Places, h: float, wide: float) -> tuple[_analytic.Fit, Mapping[str, float]]:
    scores, at, keep = sample.scores, where.values, where.values is not sample.scores
    # In a narrow window Taylor's bound on the bias is the smaller one, except at the ends and there by little.
    sides, slopes = wide > h / 4, (0.5 / h, 0.5 / h**2)
    around = Surrogate(at, sample.outcomes, at, wide, *slopes, tight=True, noise=0.0, sides=sides, keep=keep)
    gap = float(np.abs(scores - around.average).mean()) * (1 + 1e-12) if keep else around.mean_gap
    weights = around.weights((sample.outcomes - scores) ** 2)
    bias = around.mean_error + around.rounding_of_error
    spread = weights.norm**2, weights.norm_of_errors**2, weights.largest
    return _analytic.Fit(gap + around.rounding, bias, *spread), {"smoothing": wide * where.stretch}


def nadaraya_watson(scores: Any, outcomes: Any, bandwidth: float, at: Any) -> Floats:
    """The calibration function of perturbed scores by local averages: the surrogate of Proposition 2, of all samples.

    It is the blue curve of Figure 5 of *Measuring uncertainty calibration* and an estimate; for a band around a local
    average see :func:`certcal.bounds.surrogate`.

    Parameters
    ----------
    scores, outcomes, bandwidth
        As for :func:`smooth`. The width of the averages is the paper's plug-in of its appendix E.
    at
        Scores at which η is estimated. Where no score is as near as an average is wide, there is none: 1, the end of
        the range that :func:`surrogate` gives there.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(100_000)
    >>> nadaraya_watson(s, rng.random(s.size) < s**2, 2**-6, [0.0, 0.5, 1.0]).round(2).tolist()
    [0.0, 0.26, 1.0]
    """
    sample, h = sort_pairs(*check_pairs(scores, outcomes)), _perturb.check_bandwidth(bandwidth)
    places = confidences(at, "at").astype(np.float64)
    order = np.argsort(places, kind="stable")
    slopes = 0.5 / h, 1.5 / h**2
    wide = plug_in_width(sample.scores.size, *slopes)
    around = Surrogate(*sample, places[order], wide, *slopes, tight=False, keep=True)
    result = np.empty_like(places)
    result[order] = around.average
    return result


class _SplitMemory:
    """Memory for the samples of one split, used again for every fold."""

    def __init__(self, fold: Bytes, folds: int) -> None:
        self.sizes = np.bincount(fold, minlength=folds)
        least, most = int(self.sizes.min()), int(self.sizes.max())
        self.train, self.points = np.empty(fold.size - least + 1), np.empty(most + 1)
        self.labels = np.empty(self.train.size, np.uint8)

    def fill(self, sample: Sample, fold: Bytes, held: int) -> tuple[Floats, Bytes, Floats]:
        """Training scores with their outcomes, and the validation scores of one fold, all sorted."""
        from certcal._kernels.local_average import split_fold

        split_fold(sample.scores, sample.outcomes, fold, held, self.train, self.labels, self.points)
        m = int(self.sizes[held])
        n = fold.size - m
        return self.train[:n], self.labels[:n], self.points[:m]


def one_split(
    train: Floats, outcomes: Bytes, points: Floats, h: float, delta: float, form: str, width: float | None = None
) -> SmoothTerms:
    """Proposition 2 of "Measuring uncertainty calibration", for sorted training and validation scores."""
    if form == "published":
        first, second = 0.5 / h, 1.5 / h**2
        wide = plug_in_width(train.size, first, second) if width is None else max(width, NARROWEST)
        around = Surrogate(train, outcomes, points, wide, first, second, tight=False)
        return SmoothTerms(
            _published_terms(around, delta, first * wide + 0.5 * second * wide**2 + 0.5), {"smoothing": wide}
        )
    first, second = 0.5 / h, 0.5 / h**2
    wide = best_width(train, h)[0] if width is None else max(width, NARROWEST)
    around = Surrogate(train, outcomes, points, wide, first, second, tight=True)
    return SmoothTerms(_repaired_terms(around, delta, _most_of_any_slope(train, wide, first)), {"smoothing": wide})


# Below this a window cannot be told from a point in double precision.
NARROWEST = 1e-12


class MeanWeights(NamedTuple):
    """Of weights c_j: √Σ c_j², √Σ c_j² error_j and the largest."""

    norm: float
    norm_of_errors: float
    largest: float


class Surrogate:
    """Local averages at the validation scores, with bounds on their expected errors and the weights behind them."""

    def __init__(
        self,
        train: Floats,
        outcomes: Bytes,
        points: Floats,
        width: float,
        first: float,
        second: float,
        *,
        tight: bool,
        noise: float = 0.5,
        sides: bool = True,
        keep: bool = False,
    ) -> None:
        from certcal._kernels.local_average import local_averages, unit_bits

        self.train, self.points, self.width = train, points, width
        self.inverse = np.empty(points.size)
        self.average, self.error = (np.empty(points.size if keep else 0) for _ in range(2))

        def fill(a: int, b: int) -> Floats:
            out = self.average[a:b], self.error[a:b], self.inverse[a:b]
            return local_averages(train, outcomes, points[a:b], width, first, second, noise, tight, sides, *out)

        sums = np.sum(map_blocks(fill, points.size, 20_000), axis=0) / points.size
        self.mean_gap, self.mean_error = float(sums[0]), float(sums[1])
        gaps, errors = sums[2] - sums[0] ** 2, sums[3] - sums[1] ** 2
        both = gaps + errors + 2 * (sums[4] - sums[0] * sums[1])
        self.variances = tuple(max(float(each), 0.0) + 1e-12 for each in (gaps, errors, both))  # room for rounding
        # Powers are cut to the unit u. Per score that moves the sum of weights W by at most 8u, that of outcomes by 8u,
        # those of offsets, squares and squared weights by 84u, 88u and 96u; and W is at least 1/8 per score. So ratios
        # of sums to W are off by 8 times that (and by 64u for W itself), and √Σw² by 1536u.
        unit = 2.0 ** -int(unit_bits(train.size))
        self.rounding = 256 * unit
        self.rounding_of_error = 2048 * unit * (1 + first * width + second * width**2)

    def weight_norm(self) -> float:
        """Length of the vector of mean weights of the training scores, rounded up."""
        return self.weights(np.empty(0)).norm

    def weights(self, errors: Floats) -> MeanWeights:
        """How much each training score weighs on average over the points, summed up and rounded up."""
        from certcal._kernels.local_average import squared_weights, weights_alone

        alone = np.empty(self.train.size if self.inverse.min() < 0 else 0)
        if alone.size:
            weights_alone(self.train, self.inverse, alone)

        def squares(a: int, b: int) -> tuple[float, float, float]:
            part = self.train[a:b], errors[a:b], alone[a:b]
            return squared_weights(*part, self.points, self.inverse, self.width)

        def rounded(weight: float) -> float:
            return min(weight / self.points.size * (1 + 1e-6) + self.rounding, 1.0)

        parts = np.array(map_blocks(squares, self.train.size, 20_000))
        norm, of_errors = (rounded(math.sqrt(math.fsum(parts[:, column]))) for column in (0, 1))
        return MeanWeights(norm, of_errors, rounded(float(parts[:, 2].max())))


def _repaired_terms(around: Surrogate, delta: float, largest: float) -> dict[str, float]:
    budget = dict(Ledger(delta).split(**SHARES).entries)
    m, whole = around.points.size, 1 + largest
    deviation = whole * bernstein_term(m, budget["validation"], around.variances[2] / whole**2)
    length = chernoff_upper(around.weight_norm(), m, budget["weights"])
    return {
        "surrogate gap": around.mean_gap,
        "smoothing error": around.mean_error,
        "validation samples": deviation + around.rounding + 2 * around.rounding_of_error,
        "training outcomes": math.sqrt(0.5 * math.log(1 / budget["outcomes"])) * length,
    }


def _published_terms(around: Surrogate, delta: float, largest: float) -> dict[str, float]:
    m = around.points.size
    return {
        "surrogate gap": around.mean_gap,
        "smoothing error": around.mean_error,
        "validation of the gap": bernstein_term(m, delta / 2, around.variances[0]),
        "validation of the error": largest * bernstein_term(m, delta / 2, around.variances[1] / largest**2),
    }


def _most_of_any_slope(train: Floats, width: float, first: float) -> float:
    """What no g(s) exceeds: g is capped at 1, and no training score with weight is farther than the window or a gap."""
    from certcal._kernels.local_average import widest_gap

    return min(1.0, first * max(width, float(widest_gap(train))) + 0.5)


def plug_in_width(n: int, first: float, second: float) -> float:
    """The width of appendix E: the least of a h' + b h'² + c/√h', clipped to [1e-4, ¼]."""
    a, b, c = 0.375 * first, 0.1 * second, 1.15 / (2 * math.sqrt(2 * n))
    t = (c / (2 * a)) ** (1 / 3)
    for _ in range(60):  # from above the root of a convex increasing function Newton's steps fall towards it
        t -= (2 * b * t**5 + a * t**3 - c / 2) / (10 * b * t**4 + 3 * a * t**2)
    return min(max(t * t, 1e-4), 0.25)


def best_width(train: Floats, h: float, noise: float = 0.5) -> tuple[float, float]:
    """Of a few widths, the one at which the mean of bias and noise over the training scores is least, and that mean.

    It looks at scores only, so the weights still do not depend on any outcome. Every k-th sorted score stands for its
    neighbours; the noise is scaled to what it is with all of them. Windows so narrow that most would hold one of these
    only are not tried; if all are, nothing is known of the widest one, either.
    """
    stride = -(-train.size // ENOUGH)
    some = np.ascontiguousarray(train[stride // 2 :: stride])
    narrow = 2 * float(np.median(np.diff(some))) if stride > 1 else 0.0
    none = np.zeros(some.size, np.uint8)
    noise *= math.sqrt(some.size / train.size)
    widths = sorted({min(max(h * times, NARROWEST), 2.0) for times in TRIED})
    if widths[-1] < narrow:
        return widths[-1], math.inf
    widths = [width for width in widths if width >= narrow]
    slopes = 0.5 / h, 0.5 / h**2
    means = [Surrogate(some, none, some, width, *slopes, tight=True, noise=noise).mean_error for width in widths]
    return widths[int(np.argmin(means))], min(means)
