"""Slow, obvious versions of everything that is fast elsewhere: definitions in exact arithmetic, one sample at a time.

Written from the definitions, not from the code they check. All sums are sums of fractions, so what comes out is the
exact value for the given floats, rounded once. At the end are the inputs worth comparing on.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

Sample = tuple[Fraction, int, Fraction]

# Weights exceed a share of the total when they do so by more than this part of it: sums of decimals are not exact.
SLACK = Fraction(1, 10**11)


# ---------------------------------------------------------------------------------------------------------------- bins


def equal_width_edges(bins: int) -> list[float]:
    return [float(Fraction(m, bins)) for m in range(bins + 1)]


def bins_of(confidence: Any, edges: Sequence[float], closed: str = "left") -> list[int]:
    """[a, b) with the last closed, or (a, b] with the first closed; edges in the type of the confidences."""
    z = np.asarray(confidence)
    number = z.dtype.type if z.dtype.kind == "f" else np.float64
    inner = [float(number(edge)) for edge in edges[1:-1]]
    if closed == "left":
        return [sum(edge <= value for edge in inner) for value in z.astype(np.float64).tolist()]
    return [sum(edge < value for edge in inner) for value in z.astype(np.float64).tolist()]


def samples(confidence: Any, correct: Any, sample_weight: Any = None) -> list[Sample]:
    z = np.asarray(confidence).astype(np.float64).tolist()
    c = np.asarray(correct).astype(np.int64).tolist()
    w = [1] * len(z) if sample_weight is None else np.asarray(sample_weight).astype(np.float64).tolist()
    return [(Fraction(a), b, Fraction(d)) for a, b, d in zip(z, c, w, strict=True)]


def groups(
    confidence: Any, correct: Any, edges: Sequence[float], closed: str = "left", sample_weight: Any = None
) -> list[list[Sample]]:
    """The samples of positive weight in every bin."""
    out: list[list[Sample]] = [[] for _ in range(len(edges) - 1)]
    where = bins_of(confidence, edges, closed)
    for m, sample in zip(where, samples(confidence, correct, sample_weight), strict=True):
        if sample[2] > 0:
            out[m].append(sample)
    return out


def sum_of(values: Iterable[Fraction]) -> Fraction:
    """The sum, over one common denominator."""
    terms = list(values)
    below = math.lcm(*(term.denominator for term in terms))
    return Fraction(sum(term.numerator * (below // term.denominator) for term in terms), below)


def weight_of(group: list[Sample]) -> Fraction:
    return sum_of(w for _, _, w in group)


def confidence_of(group: list[Sample]) -> Fraction:
    return sum_of(w * z for z, _, w in group) / weight_of(group)


def accuracy_of(group: list[Sample]) -> Fraction:
    return sum_of(w * c for _, c, w in group) / weight_of(group)


def shares_and_gaps(bins: list[list[Sample]]) -> list[tuple[Fraction, Fraction]]:
    """Share of the weight and accuracy minus confidence of every bin that is not empty."""
    used = [group for group in bins if group]
    total = sum_of(weight_of(group) for group in used)
    return [(weight_of(group) / total, accuracy_of(group) - confidence_of(group)) for group in used]


def equal_mass_edges(confidence: Any, bins: int, closed: str = "left", sample_weight: Any = None) -> list[float]:
    """Walk through the sorted samples; an edge is where the weight walked over first exceeds its share of the total."""
    pairs = sorted((z, w) for z, _, w in samples(confidence, np.zeros(np.asarray(confidence).size), sample_weight))
    if closed == "right":
        pairs.reverse()
    total = sum_of(w for _, w in pairs)
    inner: list[float] = []
    walked, next_share = Fraction(0), 1
    for z, w in pairs:
        walked += w
        while next_share < bins and walked > (Fraction(next_share, bins) + SLACK) * total:
            inner.append(float(z))
            next_share += 1
    assert len(inner) == bins - 1
    return [0.0, *sorted(inner), 1.0]


# ------------------------------------------------------------------------------------------------------ binned metrics


def ece_of(bins: list[list[Sample]]) -> float:
    return float(sum(share * abs(gap) for share, gap in shares_and_gaps(bins)))


def mce_of(bins: list[list[Sample]]) -> float:
    return float(max(abs(gap) for _, gap in shares_and_gaps(bins)))


def lp_ece_of(bins: list[list[Sample]], p: float) -> float:
    if math.isinf(p):
        return mce_of(bins)
    if p == int(p):
        power = sum(share * abs(gap) ** int(p) for share, gap in shares_and_gaps(bins))
        return root_of(power, p)
    return math.fsum(float(share) * abs(float(gap)) ** p for share, gap in shares_and_gaps(bins)) ** (1 / p)


def root_of(value: Fraction, p: float) -> float:
    """value ** (1 / p) also when the value is too small for a float."""
    if value == 0:
        return 0.0
    return math.exp((math.log(value.numerator) - math.log(value.denominator)) / p)


def debiased_square_of(bins: list[list[Sample]]) -> float:
    """The square of the debiased error before it is cut off at zero."""
    used = [group for group in bins if group]
    total = sum_of(weight_of(group) for group in used)
    square = Fraction(0)
    for group in used:
        effective = weight_of(group) ** 2 / sum(w**2 for _, _, w in group)
        if len(group) > 1:
            mean = accuracy_of(group)
            gap = mean - confidence_of(group)
            square += weight_of(group) / total * (gap**2 - mean * (1 - mean) / (effective - 1))
    return float(square)


def ece(confidence: Any, correct: Any, bins: int = 15, edges: Any = None, closed: str = "left", w: Any = None) -> float:
    chosen = equal_width_edges(bins) if edges is None else list(edges)
    return ece_of(groups(confidence, correct, chosen, closed, w))


def equal_mass_ece(confidence: Any, correct: Any, bins: int = 15, closed: str = "left", w: Any = None) -> float:
    edges = equal_mass_edges(confidence, bins, closed, w)
    return ece_of(groups(confidence, correct, edges, closed, w))


def sweep_ece(confidence: Any, correct: Any, w: Any = None) -> float:
    """Add bins one at a time until an accuracy falls; the error before that.

    Without weights there is no need to go beyond one bin per sample: all distinct confidences are then apart. With
    weights they may not be, and are where even they do not fall.
    """
    kept = [sample for sample in samples(confidence, correct, w) if sample[2] > 0]
    z = np.array([float(value) for value, _, _ in kept])
    c = np.array([outcome for _, outcome, _ in kept])
    heavy = np.array([float(weight) for _, _, weight in kept])

    def falls(found: list[list[Sample]]) -> bool:
        heights = [accuracy_of(group) for group in found]
        return any(after < before * (1 - SLACK) for before, after in pairwise(heights))

    best = [kept]
    for bins in range(2, len(kept) + 1):
        found = [group for group in groups(z, c, equal_mass_edges(z, bins, "left", heavy), "left", heavy) if group]
        if falls(found):
            return ece_of(best)
        best = found
    apart = [[sample for sample in kept if sample[0] == value] for value in sorted({sample[0] for sample in kept})]
    return ece_of(best if falls(apart) else apart)


def classwise(probabilities: Any, labels: Any, error: Callable[[Any, Any], float]) -> float:
    """Mean over the classes of a calibration error of "probability of class k" against "the label is k"."""
    p = np.minimum(np.asarray(probabilities), 1)
    y = np.asarray(labels).astype(np.int64)
    return math.fsum(error(p[:, k], y == k) for k in range(p.shape[1])) / p.shape[1]


# ------------------------------------------------------------------------------------------------------------- no bins


def cumulative(confidence: Any, correct: Any, sample_weight: Any = None) -> list[Fraction]:
    """(1/N) Σ_{z_n <= t} (c_n - z_n) for every t at which it changes, and 0 before all of them."""
    found = sorted(samples(confidence, correct, sample_weight), key=lambda sample: sample[0])
    total = sum_of(w for _, _, w in found)
    reached = [Fraction(0)]
    running = Fraction(0)
    for index, (z, c, w) in enumerate(found):
        running += w * (c - z)
        if index + 1 == len(found) or found[index + 1][0] > z:
            reached.append(running / total)
    return reached


def ks_error(confidence: Any, correct: Any, sample_weight: Any = None) -> float:
    return float(max(abs(value) for value in cumulative(confidence, correct, sample_weight)))


def kuiper_error(confidence: Any, correct: Any, sample_weight: Any = None) -> float:
    reached = cumulative(confidence, correct, sample_weight)
    return float(max(reached) - min(reached))


# -------------------------------------------------------------------------------------------------------------- scores


def mean(values: Sequence[float | Fraction], sample_weight: Any = None) -> float:
    """Weighted mean; a value whose weight is 0 does not count, not even an infinite one."""
    w = [1.0] * len(values) if sample_weight is None else np.asarray(sample_weight, np.float64).tolist()
    counted = [(value, weight) for value, weight in zip(values, w, strict=True) if weight > 0]
    if any(math.isinf(value) for value, _ in counted):
        return math.inf
    top = sum_of(Fraction(value) * Fraction(weight) for value, weight in counted)
    return float(top / sum_of(Fraction(weight) for _, weight in counted))


def accuracy(correct: Any, w: Any = None) -> float:
    return mean(np.asarray(correct).astype(np.float64).tolist(), w)


def top_label_brier_score(confidence: Any, correct: Any, w: Any = None) -> float:
    return mean([(c - z) ** 2 for z, c, _ in samples(confidence, correct)], w)


def top_label_nll(confidence: Any, correct: Any, w: Any = None) -> float:
    return mean([_minus_log(z if c else 1 - z) for z, c, _ in samples(confidence, correct)], w)


def brier_score(probabilities: Any, labels: Any, w: Any = None) -> float:
    rows = np.asarray(probabilities).astype(np.float64).tolist()
    return mean(
        [
            sum_of((Fraction(value) - (k == int(label))) ** 2 for k, value in enumerate(row))
            for row, label in zip(rows, labels, strict=True)
        ],
        w,
    )


def nll(probabilities: Any, labels: Any, w: Any = None) -> float:
    rows = np.asarray(probabilities).astype(np.float64).tolist()
    return mean(
        [_minus_log(min(Fraction(1), Fraction(row[int(label)]))) for row, label in zip(rows, labels, strict=True)], w
    )


def nll_from_logits(logits: Any, labels: Any, w: Any = None) -> float:
    losses: list[float] = []
    for row, label in zip(np.asarray(logits).astype(np.float64).tolist(), labels, strict=True):
        top = max(row)
        losses.append(math.log(math.fsum(math.exp(value - top) for value in row)) + (top - row[int(label)]))
    return mean(losses, w)


def _minus_log(probability: Fraction) -> float:
    if probability == 0:
        return math.inf
    if probability > Fraction(1, 2):
        return -math.log1p(float(probability - 1))
    return math.log(probability.denominator) - math.log(probability.numerator)


@dataclass(frozen=True)
class Decomposition:
    reliability: float
    resolution: float
    uncertainty: float
    within_bin: float


def brier_decomposition(bins: list[list[Sample]]) -> Decomposition:
    """The four terms, each from its own definition."""
    everything = [sample for group in bins for sample in group]
    total, overall = weight_of(everything), accuracy_of(everything)
    reliability = resolution = within = Fraction(0)
    for group in bins:
        if group:
            share, mean_confidence, mean_correct = weight_of(group) / total, confidence_of(group), accuracy_of(group)
            reliability += share * (mean_confidence - mean_correct) ** 2
            resolution += share * (mean_correct - overall) ** 2
            for z, c, w in group:
                within += w / total * (z - mean_confidence) ** 2
                within -= 2 * w / total * (z - mean_confidence) * (c - mean_correct)
    return Decomposition(float(reliability), float(resolution), float(overall * (1 - overall)), float(within))


def auroc(confidence: Any, correct: Any, w: Any = None) -> float:
    """Every pair of a correct and an incorrect sample; ties count half."""
    found = samples(confidence, correct, w)
    good = [(z, weight) for z, c, weight in found if c == 1]
    bad = [(z, weight) for z, c, weight in found if c == 0]
    pairs = sum_of(a * b for _, a in good for _, b in bad)
    if pairs == 0:
        return math.nan
    won = sum_of(a * b * Fraction((x > y) + (x >= y), 2) for x, a in good for y, b in bad)
    return float(won / pairs)


def harmonic_score(accuracy: float, calibration_error: float, beta: float) -> float:
    """Weighted harmonic mean of accuracy and 1 - ECE."""
    kept = 1 - calibration_error
    return 0.0 if accuracy == 0 or kept == 0 else (1 + beta) / (1 / accuracy + beta / kept)


def replicates(metric: Callable[..., float], arrays: Sequence[Any], count: int, seed: int) -> Any:
    """The ordinary bootstrap: draw n indices with replacement, compute the metric again."""
    rng = np.random.default_rng(seed)
    n = len(arrays[0])
    chosen = (rng.integers(0, n, n) for _ in range(count))
    return np.array([metric(*(array[index] for array in arrays)) for index in chosen])


# ------------------------------------------------------------------------------------------------------- binary scores


def calibration_line(scores: Any, outcomes: Any, sample_weight: Any = None, slope: float | None = None) -> Any:
    """Intercept and slope (or the intercept at a slope) of the largest likelihood, by a general optimiser of scipy's.

    For scores strictly between 0 and 1 and outcomes that overlap.
    """
    from scipy.optimize import minimize

    x = np.array([math.log(s / (1 - s)) for s in np.asarray(scores, np.float64).tolist()])
    y = np.asarray(outcomes, np.float64)
    w = np.ones(x.size) if sample_weight is None else np.asarray(sample_weight, np.float64)

    def loss(theta: Any) -> float:
        t = theta[0] + (theta[1] if slope is None else slope) * x
        return float((w * (np.logaddexp(0, t) - y * t)).sum() / w.sum())

    options = {"xatol": 1e-10, "fatol": 1e-15, "maxiter": 20000, "maxfev": 20000}
    found = minimize(loss, [0.0, 1.0] if slope is None else [0.0], method="Nelder-Mead", options=options)
    return tuple(found.x)


def observed_expected_ratio(scores: Any, outcomes: Any, sample_weight: Any = None) -> float:
    used = samples(scores, outcomes, sample_weight)
    observed, expected = sum(w * y for _, y, w in used), sum(w * s for s, _, w in used)
    return float(observed / expected) if expected else (math.inf if observed else math.nan)


def spiegelhalter_z(scores: Any, outcomes: Any, sample_weight: Any = None) -> float:
    used = samples(scores, outcomes, sample_weight)
    excess = sum(w * ((y - s) ** 2 - s * (1 - s)) for s, y, w in used)  # Brier score minus what is expected of it
    variance = sum(w**2 * (1 - 2 * s) ** 2 * s * (1 - s) for s, _, w in used)
    if variance:
        return float(excess) / math.sqrt(variance)
    return math.copysign(math.inf, excess) if excess else math.nan


def net_benefit(scores: Any, outcomes: Any, threshold: float, sample_weight: Any = None) -> float:
    at = float(np.asarray(scores).dtype.type(threshold))
    used = samples(scores, outcomes, sample_weight)
    hits = sum(w for s, y, w in used if y == 1 and s >= at)
    wrong = sum(w for s, y, w in used if y == 0 and s >= at)
    return float(hits - wrong * Fraction(threshold) / (1 - Fraction(threshold))) / float(sum(w for _, _, w in used))


def loess(x: Any, y: Any, sample_weight: Any = None, span: float = 0.75) -> list[float]:
    """Local quadratics by least squares, one point after the other, with tricube weights over the nearest points."""
    w = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    used = w > 0
    x, y, w = np.asarray(x, np.float64)[used], np.asarray(y, np.float64)[used], w[used]
    fitted: list[float] = []
    for centre in x.tolist():
        order = np.argsort(np.abs(x - centre), kind="stable")
        reached = int(np.argmax(np.cumsum(w[order]) >= span * w.sum() * (1 - 1e-12)))
        width = float(np.abs(x - centre)[order[reached]]) or 1.0
        u = (x - centre) / width
        near = np.sqrt(w * np.clip(1 - np.abs(u) ** 3, 0, None) ** 3)
        columns = np.stack((np.ones(x.size), u, u * u), axis=1) * near[:, None]
        fitted.append(float(np.linalg.lstsq(columns, near * y, rcond=1e-6)[0][0]))
    return fitted


# ---------------------------------------------------------------------------------------------- inputs worth comparing

DTYPES = (np.float16, np.float32, np.float64)


def _values(rng: np.random.Generator, kind: str, n: int, dtype: Any) -> Any:
    if kind == "neighbours of edges":
        bins = int(rng.integers(1, 701))
        edges = (rng.integers(0, bins + 1, n) / bins).astype(dtype)
        moved = np.nextafter(edges, rng.integers(0, 2, n).astype(dtype))
        return np.where(rng.random(n) < 0.4, moved, edges)
    made = {
        "uniform": lambda: rng.random(n),
        "tenths": lambda: rng.integers(0, 11, n) / 10,
        "fifteenths": lambda: rng.integers(0, 16, n) / 15,
        "ends": lambda: rng.integers(0, 2, n) * 1.0,
        "near zero": lambda: 10.0 ** rng.uniform(-20, 0, n),
        "near one": lambda: 1 - 10.0 ** rng.uniform(-17, 0, n),
        "both ends": lambda: rng.beta(0.05, 0.05, n),
        "one value": lambda: np.full(n, rng.random()),
        "few values": lambda: rng.choice(rng.random(3), n),
    }
    return made[kind]().astype(dtype)


KINDS = (
    "uniform",
    "tenths",
    "fifteenths",
    "ends",
    "near zero",
    "near one",
    "both ends",
    "one value",
    "few values",
    "neighbours of edges",
)


@st.composite
def scored(draw: st.DrawFn, most: int = 60, dtypes: Sequence[Any] = DTYPES) -> tuple[Any, Any]:
    """Confidences of every type and shape of distribution, and outcomes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, most))
    z = _values(rng, draw(st.sampled_from(KINDS)), n, draw(st.sampled_from(dtypes)))
    outcome = draw(st.sampled_from(["calibrated", "random", "all correct", "all wrong", "sorted"]))
    c = {
        "calibrated": rng.random(n) < z,
        "random": rng.random(n) < 0.5,
        "all correct": np.ones(n, np.bool_),
        "all wrong": np.zeros(n, np.bool_),
        "sorted": z > 0.5,
    }[outcome]
    return z, c.astype(np.uint8)


def _weights(rng: np.random.Generator, kind: str, n: int) -> Any:
    made = {
        "whole": lambda: rng.integers(0, 4, n).astype(np.float64),
        "tenths": lambda: rng.integers(1, 10, n) / 10,
        "uniform": lambda: rng.random(n),
        "wide": lambda: 10.0 ** rng.uniform(-4, 4, n),
    }
    w = made[kind]()
    w[rng.integers(0, n)] += 1.0
    return w


@st.composite
def weighted(draw: st.DrawFn, most: int = 60) -> tuple[Any, Any, Any]:
    """As :func:`scored`, with weights or None."""
    z, c = draw(scored(most))
    kind = draw(st.sampled_from([None, "whole", "tenths", "uniform", "wide"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return z, c, None if kind is None else _weights(rng, kind, z.size)


@st.composite
def own_edges(draw: st.DrawFn) -> list[float]:
    """Edges from 0 to 1: few or many, spread or crowded at an end, perhaps repeated."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(KINDS))
    inner = np.sort(_values(rng, kind, draw(st.integers(0, 80)), np.float64))
    return [0.0, *inner.tolist(), 1.0]


@st.composite
def classified(draw: st.DrawFn, most: int = 30, classes: int = 6) -> tuple[Any, Any, Any]:
    """Rows of probabilities of every type, labels, and weights or None."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, k = draw(st.integers(1, most)), draw(st.integers(2, classes))
    kind = draw(st.sampled_from(["flat", "peaked", "tenths", "certain"]))
    p = {
        "flat": lambda: rng.dirichlet(np.ones(k), n),
        "peaked": lambda: rng.dirichlet(np.full(k, 0.02), n),
        "tenths": lambda: rng.multinomial(10, np.ones(k) / k, n) / 10,
        "certain": lambda: np.eye(k)[rng.integers(0, k, n)],
    }[kind]()
    w = None if draw(st.booleans()) else _weights(rng, draw(st.sampled_from(["whole", "tenths", "wide"])), n)
    y = rng.integers(0, k, n)
    if draw(st.booleans()):
        y = p.argmax(axis=1)
    return p.astype(draw(st.sampled_from(DTYPES))), y, w


# --------------------------------------------------------------------------------------------- change of a binned error


def change_of_binned_error(
    old: Sequence[float], new: Sequence[float], outcomes: Sequence[int], weights: Sequence[float], bins: int, q: float
) -> tuple[float, float]:
    """Ends of the new binned error minus the old one of the same samples, by bins as keys and pairs of terms."""
    total = sum(weights)
    values: list[dict[tuple[str, int], float]] = []  # what each sample adds to the gap of each of its two bins
    calm: dict[tuple[str, int], float] = {}
    for x, z, y, w in zip(old, new, outcomes, weights, strict=True):
        keys = (("old", min(int(x * bins), bins - 1)), x), (("new", min(int(z * bins), bins - 1)), z)
        values.append({key: y - score for key, score in keys})
        for key, score in keys:
            calm[key] = calm.get(key, 0.0) + (w / total) ** 2 * score * (1 - score)
    keys = [(side, k) for side in ("old", "new") for k in sorted({k for _, k in calm})]
    gap = {key: sum(w / total * each.get(key, 0.0) for each, w in zip(values, weights, strict=True)) for key in keys}

    def covariance(one: tuple[str, int], other: tuple[str, int]) -> float:
        found = 0.0
        for each, w in zip(values, weights, strict=True):
            found += (w / total) ** 2 * (each.get(one, 0.0) - gap[one]) * (each.get(other, 0.0) - gap[other])
        return max(found, calm.get(one, 0.0)) if one == other else found

    noise = {(one, other): covariance(one, other) for one in keys for other in keys}
    return -_most_above(gap, noise, "old", "new", q), _most_above(gap, noise, "new", "old", q)


def _most_above(gap: Any, noise: Any, a: str, b: str, q: float) -> float:
    """The upper end of the error of a minus that of b: bin by bin, what moves the middle and which terms are left."""
    every = sorted({k for _, k in gap})
    deviation = {key: math.sqrt(max(noise[key, key], 0.0)) for key in gap}
    clear = [k for k in every if abs(gap[b, k]) > 2.5 * deviation[b, k]]

    def sign(value: float, spread: float) -> float:
        return math.copysign(1, value) if abs(value) > 2.5 * spread else 0.0

    def end(by_neighbours: bool) -> list[float]:
        # Terms are (sign or 0 if unknown, factors of the gaps' noise); sizes are bins of b that enter by |noise|.
        terms: list[tuple[float, dict[tuple[str, int], float]]] = []
        sizes: list[int] = []
        middle = 0.0
        for k in every:
            apart = gap[a, k] - gap[b, k]
            square = noise[(a, k), (a, k)] + noise[(b, k), (b, k)] - 2 * noise[(a, k), (b, k)]
            spread = math.sqrt(max(square, 0.0))
            if k not in clear and abs(apart) + spread < deviation[b, k]:
                middle += abs(apart)
                terms.append((-sign(apart, spread), {(a, k): 1.0, (b, k): -1.0}))
                continue
            middle += abs(gap[a, k])
            terms.append((-sign(gap[a, k], deviation[a, k]), {(a, k): 1.0}))
            if k in clear or by_neighbours:
                nearest = min(clear, key=lambda other: (abs(every.index(other) - every.index(k)), other))
                own = math.copysign(1, gap[b, nearest])
                middle -= own * gap[b, k]
                terms.append((own, {(b, k): 1.0}))
            else:
                middle -= abs(gap[b, k])
                sizes += [k] if deviation[b, k] > 0 else []

        def shared(one: Any, other: Any) -> float:
            found = sum(x * y * noise[p, r] for p, x in one[1].items() for r, y in other[1].items())
            return one[0] * other[0] * found if one[0] and other[0] else abs(found)

        linear = sum(shared(one, other) for one in terms for other in terms)
        unknown = [(0.0, {(b, k): 1.0}) for k in sizes]
        ends = [middle + q * math.sqrt(sum(shared(one, other) for one in terms + unknown for other in terms + unknown))]
        variance, third, mean = max(linear, 0.0), 0.0, 0.0
        for k in sizes:
            own = deviation[b, k]
            mean += math.sqrt(2 / math.pi) * own
            slope = sum(shared(one, (0.0, {(b, k): 1.0})) for one in terms) / own**2
            third += own**3 * (math.sqrt(2 / math.pi) * 3 * slope**2 + math.sqrt(2 / math.pi) * (4 / math.pi - 1))
            for other in sizes:
                theirs = deviation[b, other]
                rho = max(-1.0, min(1.0, noise[(b, k), (b, other)] / (own * theirs))) if other != k else 1.0
                variance += own * theirs * 2 / math.pi * (math.sqrt(1 - rho**2) + rho * math.asin(rho) - 1)
        skew = third / variance**1.5 if variance > 0 else 0.0
        longer = q + (q**2 - 1) * skew / 6 - (2 * q**3 - 5 * q) * skew**2 / 36
        return [*ends, middle + mean + longer * math.sqrt(variance)]

    found = max(end(by_neighbours=False))
    return min(found, end(by_neighbours=True)[0]) if clear else found


# -------------------------------------------------------------------------------------------------------------- boxes


def box_points(
    row: Any, lower: Any, upper: Any, thresholds: Sequence[Any], at_most: int | None = None, step: Any = np.float64
) -> np.ndarray[Any, Any]:
    """One point of every cell into which thresholds cut a box, and both sides of every threshold inside it.

    ``step`` is the type whose neighbours are on both sides; a missing value stays missing.
    """
    choices: list[list[float]] = []
    for own, low, high, cuts in zip(row, lower, upper, thresholds, strict=True):
        if math.isnan(own):
            choices.append([own])
            continue
        near = [f(step(cut)) for cut in cuts for f in (float, _before, _after)]
        choices.append(sorted({float(own), float(low), float(high), *(cut for cut in near if low <= cut <= high)}))
    points = np.array(np.meshgrid(*choices, indexing="ij")).reshape(len(choices), -1).T
    differ = (points != np.asarray(row)) & ~np.isnan(points)
    return points if at_most is None else points[differ.sum(axis=1) <= at_most]


def _before(value: Any) -> float:
    return float(np.nextafter(value, type(value)(-np.inf)))


def _after(value: Any) -> float:
    return float(np.nextafter(value, type(value)(np.inf)))


# ------------------------------------------------------------------------------------------------------------ networks


def network_range(layers: Sequence[Any], lower: Any, upper: Any, row: Any) -> tuple[float, float]:
    """Smallest and largest row · f(x) over a box, by a linear program for every choice of which neurons are active.

    A layer is a pair (W, b) or the word "relu".
    """
    from scipy.optimize import linprog

    found: list[float] = []

    def solve(matrix: Any, shift: Any, conditions: list[Any], limits: list[float], rest: Sequence[Any]) -> None:
        if not rest:
            for sign in (1.0, -1.0):
                best = linprog(
                    sign * (row @ matrix),
                    A_ub=np.array(conditions) if conditions else None,
                    b_ub=np.array(limits) if limits else None,
                    bounds=list(zip(lower, upper, strict=True)),
                )
                if best.status == 0:
                    found.append(float(row @ matrix @ best.x + row @ shift))
            return
        if isinstance(rest[0], tuple):
            weight, bias = rest[0]
            solve(weight @ matrix, weight @ shift + bias, conditions, limits, rest[1:])
            return
        for active in product((0.0, 1.0), repeat=len(shift)):
            signs = 1.0 - 2.0 * np.array(active)  # an active neuron's value is not negative, another's not positive
            here = [*conditions, *(signs[:, None] * matrix)], [*limits, *(-signs * shift)]
            solve(np.array(active)[:, None] * matrix, np.array(active) * shift, *here, rest[1:])

    inputs = len(lower)
    solve(np.eye(inputs), np.zeros(inputs), [], [], list(layers))
    return min(found), max(found)
