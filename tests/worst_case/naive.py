"""Slow, obvious worst and best cases: enumeration, brute force over points, and a mixed-integer program.

Written from the definitions. A supremum over a half-open bin is the value at its open end, so a *spot* is a pair of a
bin and a confidence in the closure of that bin. For a fixed choice of bins every error here is a convex function of the
confidences, hence largest at the ends of what they can be: trying both ends of every reachable bin misses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

Spot = tuple[int, float]


@dataclass(frozen=True)
class Problem:
    """Intervals, correctness and bins."""

    lower: np.ndarray
    upper: np.ndarray
    correct: np.ndarray
    edges: np.ndarray
    closed: str

    @property
    def n(self) -> int:
        return self.lower.size

    @property
    def bins(self) -> int:
        return self.edges.size - 1

    @property
    def options(self) -> dict[str, Any]:
        return {"edges": self.edges, "closed": self.closed}

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.lower, self.upper, self.correct

    def select(self, index: Any) -> Problem:
        return Problem(self.lower[index], self.upper[index], self.correct[index], self.edges, self.closed)


def problem(
    lower: Any, upper: Any, correct: Any, edges: Any = (0.0, 1.0), closed: str = "left", dtype: Any = np.float64
) -> Problem:
    return Problem(
        np.array(lower, dtype), np.array(upper, dtype), np.array(correct, np.int64), np.array(edges, float), closed
    )


# --------------------------------------------------------------------------------------------------- what can be chosen


def bin_edges(p: Problem) -> list[float]:
    """Edges compare in the type of the confidences."""
    inner = p.edges[1:-1].astype(p.lower.dtype).astype(float)
    return [0.0, *inner.tolist(), 1.0]


def stretch(low: float, high: float, a: float, b: float, closed: str, first: bool, last: bool) -> list[float]:
    """Both ends of the confidences in [low, high] that are in the bin from a to b; nothing when there are none."""
    bottom, top = max(low, a), min(high, b)
    if closed == "left":
        reachable = bottom <= high and (bottom <= b if last else bottom < b)
    else:
        reachable = top >= low and (top >= a if first else top > a)
    return [bottom, top] if reachable else []


def spots(p: Problem, i: int, low: float | None = None, high: float | None = None) -> list[Spot]:
    """Every bin sample i can be in, with both ends of where in it."""
    bottom = float(p.lower[i]) if low is None else low
    top = float(p.upper[i]) if high is None else high
    out: list[Spot] = []
    for m, (a, b) in enumerate(pairwise(bin_edges(p))):
        ends = stretch(bottom, top, a, b, p.closed, m == 0, m == p.bins - 1)
        out += [(m, end) for end in dict.fromkeys(ends)]
    return out


def bin_sums(p: Problem, correct: Sequence[int], chosen: Sequence[Spot]) -> tuple[list[float], list[int]]:
    sums, counts = [0.0] * p.bins, [0] * p.bins
    for c, (m, z) in zip(correct, chosen, strict=True):
        sums[m] += c - z
        counts[m] += 1
    return sums, counts


def ece_at(p: Problem, correct: Sequence[int], chosen: Sequence[Spot]) -> float:
    return sum(abs(each) for each in bin_sums(p, correct, chosen)[0]) / len(correct)


def mce_at(p: Problem, correct: Sequence[int], chosen: Sequence[Spot]) -> float:
    return max(abs(s) / k for s, k in zip(*bin_sums(p, correct, chosen), strict=True) if k)


def choices(p: Problem, certified: Sequence[bool] | None = None) -> Iterator[tuple[list[int], list[Spot]]]:
    """All (correctness, spots) of the samples; an uncertified sample may be right or wrong, anywhere."""
    menu: list[list[tuple[int, Spot]]] = []
    for i in range(p.n):
        if certified is None or certified[i]:
            menu.append([(int(p.correct[i]), spot) for spot in spots(p, i)])
        else:
            menu.append([(c, spot) for c in (0, 1) for spot in spots(p, i, 0.0, 1.0)])
    for chosen in product(*menu):
        yield [c for c, _ in chosen], [spot for _, spot in chosen]


def worst_by_points(p: Problem, error: Any = ece_at, certified: Sequence[bool] | None = None) -> float:
    """The largest error over all ends of all reachable bins of all samples."""
    return max(error(p, correct, chosen) for correct, chosen in choices(p, certified))


# --------------------------------------------------------------------------------------------------- signs, one by one


def gains(p: Problem) -> np.ndarray:
    """``[n, m, k]``: the most that s(c - z) can be for sample n in bin m, s = +1 for k = 1 and -1 for k = 0."""
    out = np.full((p.n, p.bins, 2), -np.inf)
    for i in range(p.n):
        for m, z in spots(p, i):
            gap = float(p.correct[i]) - z
            out[i, m, 1] = max(out[i, m, 1], gap)
            out[i, m, 0] = max(out[i, m, 0], -gap)
    return out


def sign_patterns(bins: int) -> np.ndarray:
    """All 2^M patterns of 0 for '-' and 1 for '+'."""
    return np.array(list(product((0, 1), repeat=bins)))


def worth_by_pattern(p: Problem) -> np.ndarray:
    """``[pattern, n]``: what every sample is worth under every sign pattern: it chooses the best bin alone."""
    worth = gains(p)
    columns = np.arange(p.bins)
    return np.array([worth[:, columns, pattern].max(axis=1) for pattern in sign_patterns(p.bins)])


def least_log_capital(p: Problem, bets: np.ndarray, m: float, certified: Sequence[bool] | None = None) -> np.ndarray:
    """The least log of a product of gains 1 + bet (m - worth) over all sign patterns, for each bet."""
    worth = worth_by_pattern(p)
    if certified is not None:
        worth = with_free(worth, p, certified)
    return np.array([np.log1p(bet * (m - worth)).sum(axis=1).min() for bet in np.minimum(bets, 0.9 / (1 - m))])


def with_free(worth: np.ndarray, p: Problem, certified: Sequence[bool]) -> np.ndarray:
    """The same where samples that are not certified may be anything."""
    free = [worth_by_pattern(problem([0], [1], [c], p.edges, p.closed))[:, 0] for c in (0, 1)]
    return np.where(np.asarray(certified)[None, :], worth, np.maximum(*free)[:, None])


def worst_by_signs(p: Problem) -> float:
    """The largest mean worth over all sign patterns."""
    return float(worth_by_pattern(p).mean(axis=1).max())


def worst_with_failing(p: Problem, failing: int, certified: Sequence[bool]) -> float:
    """The largest mean worth over all choices of so many certified samples that may be anything, too."""
    worth, kept = worth_by_pattern(p), np.flatnonzero(certified)
    holding = [np.delete(kept, chosen) for chosen in combinations(range(kept.size), min(failing, kept.size))]
    return max(float(with_free(worth, p, np.isin(range(p.n), left)).mean(axis=1).max()) for left in holding)


def worst_in_population(p: Problem, probability: np.ndarray, certified: Sequence[bool] | None = None) -> float:
    """The worst case of a population in which sample i of the problem has the given probability."""
    worth = worth_by_pattern(p)
    if certified is not None:
        worth = with_free(worth, p, certified)
    return float((worth @ probability).max())


# ------------------------------------------------------------------------------------------------- the printed program


def worst_by_mip(p: Problem) -> float:
    """Eq. (6) of Emde et al. (2024) by branch and bound.

    Variables are a (assignment), w = a·z between l'·a and u'·a, t_m <= |S_m| and the sign of S_m = Σ (c·a - w).
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    n, bins = p.n, p.bins
    low = np.maximum(p.lower[:, None], p.edges[:-1])
    high = np.minimum(p.upper[:, None], p.edges[1:])
    closed_off = low >= high  # k, "bin m is inaccessible to data point n"
    low, high = np.where(closed_off, 0, low), np.where(closed_off, 0, high)
    size = n * bins
    a, w = slice(0, size), slice(size, 2 * size)
    t, sign = slice(2 * size, 2 * size + bins), slice(2 * size + bins, 2 * size + 2 * bins)
    variables = 2 * size + 2 * bins

    def rows(count: int) -> np.ndarray:
        return np.zeros((count, variables))

    once = rows(n)  # C'a = 1
    once[:, a] = np.kron(np.eye(n), np.ones(bins))
    above, below = rows(size), rows(size)  # l'a <= w <= u'a
    above[:, w] = below[:, w] = np.eye(size)
    above[:, a], below[:, a] = -np.diag(low.reshape(-1)), -np.diag(high.reshape(-1))
    in_bin = np.kron(np.ones((1, n)), np.eye(bins))
    gap = rows(bins)
    gap[:, a], gap[:, w] = in_bin * np.repeat(p.correct, bins), -in_bin
    far = 2.0 * n
    positive, negative = -gap, gap.copy()  # t <= S + far·(1 - sign) and t <= -S + far·sign
    positive[:, t] = negative[:, t] = np.eye(bins)
    positive[:, sign], negative[:, sign] = far * np.eye(bins), -far * np.eye(bins)
    constraints = [
        LinearConstraint(once, 1, 1),
        LinearConstraint(above, 0, np.inf),
        LinearConstraint(below, -np.inf, 0),
        LinearConstraint(positive, -np.inf, far),
        LinearConstraint(negative, -np.inf, 0),
    ]
    ceiling = np.ones(variables)
    ceiling[a] = np.where(closed_off, 0, 1).reshape(-1)  # K'a = 0
    ceiling[t] = n
    whole = np.zeros(variables)
    whole[a] = whole[sign] = 1
    cost = np.zeros(variables)
    cost[t] = -1
    # HiGHS 1.12 fails in its presolve on the worked example.
    options = {"mip_rel_gap": 0, "presolve": False}
    found = milp(cost, constraints=constraints, bounds=Bounds(0, ceiling), integrality=whole, options=options)
    assert found.success, found.message
    return -found.fun / n


# ---------------------------------------------------------------------------------------------------------- best cases


def best_by_assignment(p: Problem) -> float:
    """The infimum of the calibration error: for every choice of bins each S_m can be anything between its two ends."""
    menus = [{m: [z for other, z in spots(p, i) if other == m] for m, _ in spots(p, i)} for i in range(p.n)]
    best = np.inf
    for chosen in product(*menus):
        least, most = [0.0] * p.bins, [0.0] * p.bins
        for i, m in enumerate(chosen):
            least[m] += p.correct[i] - max(menus[i][m])
            most[m] += p.correct[i] - min(menus[i][m])
        best = min(best, sum(max(0.0, a, -b) for a, b in zip(least, most, strict=True)))
    return float(best) / p.n


def weak_orders(n: int) -> set[tuple[tuple[int, ...], ...]]:
    """All ways to order n samples with ties."""
    out: set[tuple[tuple[int, ...], ...]] = set()
    for order in permutations(range(n)):
        for cuts in product((False, True), repeat=n - 1):
            groups = [[order[0]]]
            for item, cut in zip(order[1:], cuts, strict=True):
                if cut:
                    groups.append([])
                groups[-1].append(item)
            out.add(tuple(tuple(sorted(group)) for group in groups))
    return out


def best_ks_by_orders(p: Problem) -> float:
    """The infimum of the KS calibration error: one linear program for every order with ties of the confidences."""
    from scipy.optimize import linprog

    best = np.inf
    for order in weak_orders(p.n):
        heights = len(order)  # one confidence for each group of ties, and the KS calibration error
        low = [max(p.lower[i] for i in group) for group in order]
        high = [min(p.upper[i] for i in group) for group in order]
        if any(a > b for a, b in zip(low, high, strict=True)):
            continue
        left: list[list[float]] = []
        right: list[float] = []
        for k in range(heights - 1):
            row = [0.0] * (heights + 1)
            row[k], row[k + 1] = 1.0, -1.0
            left.append(row)
            right.append(0.0)
        for k in range(heights):
            total = float(sum(p.correct[i] for group in order[: k + 1] for i in group))
            sizes = [float(len(group)) if j <= k else 0.0 for j, group in enumerate(order)]
            left += [[-size for size in sizes] + [-1.0], [*sizes, -1.0]]
            right += [-total, total]
        found = linprog(
            [0.0] * heights + [1.0], A_ub=left, b_ub=right, bounds=[*zip(low, high, strict=True), (0, None)]
        )
        if found.success:
            best = min(best, found.fun / p.n)
    return float(best)


# ------------------------------------------------------------------------------------------------------------------ KS

TINY = 1e-9


def ks_at(correct: Any, z: Any) -> float:
    return max(abs(sum(float(c) - float(a) for c, a in zip(correct, z, strict=True) if a <= t)) for t in z) / len(z)


def thresholds(p: Problem) -> np.ndarray:
    """Every end of an interval, the points just before and after it, and points in between."""
    ends = np.unique(np.concatenate(([0, 1], p.lower, p.upper)).astype(float))
    every = np.concatenate((ends, ends - TINY, ends + TINY, (ends[1:] + ends[:-1]) / 2))
    return np.unique(every[(every >= 0) & (every <= 1)])


def worst_ks_by_thresholds(p: Problem, certified: Sequence[bool] | None = None) -> float:
    """For every threshold and sign each sample takes the best of its ends and the threshold itself."""
    best = 0.0
    for t in thresholds(p):
        for sign in (1, -1):
            total = 0.0
            for i in range(p.n):
                free = certified is not None and not certified[i]
                low, high = (0.0, 1.0) if free else (float(p.lower[i]), float(p.upper[i]))
                points = [low, high] + ([float(t)] if low <= t <= high else [])
                total += max(
                    sign * (c - z) if z <= t else 0.0 for z in points for c in ((0, 1) if free else (p.correct[i],))
                )
            best = max(best, total)
    return best / p.n


def worst_ks_by_points(p: Problem) -> float:
    """The KS calibration error of every combination of interval ends and the points at and just before them."""
    ends = np.unique(np.concatenate((p.lower, p.upper)).astype(float))
    menu: list[list[float]] = []
    for low, high in zip(p.lower.tolist(), p.upper.tolist(), strict=True):
        points = {low, high, *ends.tolist(), *(ends - TINY).tolist()}
        menu.append([z for z in points if low <= z <= high])
    return max(ks_at(p.correct, z) for z in product(*menu))


# -------------------------------------------------------------------------------------------- the four rules, by hand

# How each rule of math for the worth of a sample can be got wrong.
BROKEN = (
    "correct takes the last plus",
    "correct forgets its lower end",
    "correct forgets the edge",
    "correct without plus is worth nothing",
    "incorrect takes the first minus",
    "incorrect forgets its upper end",
    "incorrect forgets the edge",
    "incorrect without minus is worth nothing",
)


def rule(c: int, low: float, high: float, bins: Sequence[int], signs: Sequence[int], edges: Any, broken: str) -> float:
    """Worth of one sample given the signs: the four rules, each of which can be broken."""
    if c == 1:
        plus = [m for m in bins if signs[m] > 0]
        if plus:
            first = plus[-1] if broken == "correct takes the last plus" else plus[0]
            low = 0.0 if broken == "correct forgets its lower end" else low
            return 1 - (low if broken == "correct forgets the edge" else max(low, edges[first]))
        return 0.0 if broken == "correct without plus is worth nothing" else high - 1
    minus = [m for m in bins if signs[m] < 0]
    if minus:
        last = minus[0] if broken == "incorrect takes the first minus" else minus[-1]
        high = 1.0 if broken == "incorrect forgets its upper end" else high
        return high if broken == "incorrect forgets the edge" else min(high, edges[last + 1])
    return 0.0 if broken == "incorrect without minus is worth nothing" else -low


def worst_by_runs(p: Problem, broken: str = "") -> float:
    """The longest path over runs of equal signs, with the rules applied sample by sample.

    A run [a, b) is worth what its correct samples (by lowest bin) and incorrect samples (by highest bin) are worth. The
    bins next to it have the other sign, and what lies beyond those changes no choice. Bins that hold no confidence are
    in no run.
    """
    reach = [sorted({m for m, _ in spots(p, i)}) for i in range(p.n)]
    usable = sorted({m for m, _ in spots(p, 0, 0.0, 1.0)})

    def run(a: int, b: int, sign: int) -> float:
        inside = usable[a:b]
        signs = [sign if m in inside else -sign for m in range(p.bins)]
        total = 0.0
        for i in range(p.n):
            c, home = int(p.correct[i]), reach[i][0] if p.correct[i] else reach[i][-1]
            if home in inside:
                total += rule(c, float(p.lower[i]), float(p.upper[i]), reach[i], signs, p.edges, broken)
        return total

    best: dict[tuple[int, int], float] = {(0, 1): 0.0, (0, -1): 0.0}
    for b in range(1, len(usable) + 1):
        for sign in (1, -1):
            best[b, sign] = max(run(a, b, sign) + best[a, -sign] for a in range(b))
    return max(best[len(usable), 1], best[len(usable), -1]) / p.n


# ---------------------------------------------------------------------------------- the certified Brier score, in parts


def worst_places(p: Problem) -> list[Fraction]:
    """Where each sample hurts any non-decreasing map most: its lower end if correct, its upper end if not."""
    ends = zip(p.lower.tolist(), p.upper.tolist(), p.correct.tolist(), strict=True)
    return [Fraction(low if c else high) for low, high, c in ends]


def best_map(places: Sequence[Fraction], correct: Sequence[int]) -> dict[Fraction, Fraction]:
    """The non-decreasing map with the least sum of squares, by the largest smallest mean, in fractions."""
    distinct = sorted(set(places))

    def mean(low: Fraction, high: Fraction) -> Fraction:
        inside = [c for x, c in zip(places, correct, strict=True) if low <= x <= high]
        return Fraction(sum(inside), len(inside))

    return {x: max(min(mean(a, b) for b in distinct if b >= x) for a in distinct if a <= x) for x in distinct}


def brier_parts(p: Problem) -> tuple[Fraction, Fraction, Fraction]:
    """Miscalibration, resolution and uncertainty of the certified Brier score, in fractions."""
    places, correct = worst_places(p), p.correct.tolist()
    best = best_map(places, correct)
    score = sum(((c - x) ** 2 for x, c in zip(places, correct, strict=True)), Fraction(0)) / p.n
    least = sum(((c - best[x]) ** 2 for x, c in zip(places, correct, strict=True)), Fraction(0)) / p.n
    share = Fraction(sum(correct), p.n)
    return score - least, share * (1 - share) - least, share * (1 - share)


# ------------------------------------------------------------------------------------------------- in exact arithmetic


def exact_calibration_error(p: Problem, extreme: Any, certified: Sequence[bool] | None = None) -> Fraction:
    """The largest or smallest mean worth over all sign patterns, of samples that each do what is best for the signs."""

    def worth(i: int, signs: Sequence[int]) -> Fraction:
        if certified is None or certified[i]:
            return max(signs[m] * (int(p.correct[i]) - Fraction(z)) for m, z in spots(p, i))
        return max(signs[m] * (c - Fraction(z)) for m, z in spots(p, i, 0.0, 1.0) for c in (0, 1))

    return extreme(
        sum((worth(i, signs) for i in range(p.n)), Fraction(0)) / p.n for signs in product((1, -1), repeat=p.bins)
    )


def exact_mce(p: Problem, certified: Sequence[bool] | None = None) -> Fraction:
    """The largest mean gap of a bin over all ends of all reachable bins of all samples."""

    def largest(correct: Sequence[int], chosen: Sequence[Spot]) -> Fraction:
        gaps: dict[int, list[Fraction]] = {}
        for c, (m, z) in zip(correct, chosen, strict=True):
            gaps.setdefault(m, []).append(c - Fraction(z))
        return max(abs(sum(each, Fraction(0))) / len(each) for each in gaps.values())

    return max(largest(correct, chosen) for correct, chosen in choices(p, certified))


def exact_gap(p: Problem, i: int, best: bool) -> Fraction:
    """The gap c - z of a sample that is as far from (or as near to) its outcome as its interval allows."""
    at = p.lower[i] if (p.correct[i] == 1) != best else p.upper[i]
    return int(p.correct[i]) - Fraction(float(at))


def exact_cumulative_sums(p: Problem) -> tuple[list[Fraction], list[Fraction]]:
    """Largest and minus the smallest Σ_{z <= t} (c - z) at every end t of an interval, and just before it."""
    rows = [(Fraction(float(low)), Fraction(float(high)), int(c)) for low, high, c in zip(*p.arguments, strict=True)]
    rises, falls = [], []
    for t in {Fraction(0), Fraction(1), *(low for low, _, _ in rows), *(high for _, high, _ in rows)}:
        rises.append(sum(((1 - low) * (low <= t) if c else -low * (high <= t) for low, high, c in rows), Fraction(0)))
        falls.append(
            sum(((high - 1) * (high <= t) if c else min(high, t) * (low <= t) for low, high, c in rows), Fraction(0))
        )
        falls.append(
            sum(((high - 1) * (high < t) if c else min(high, t) * (low < t) for low, high, c in rows), Fraction(0))
        )
    return rises, falls


# -------------------------------------------------------------------------------------------------------------- inputs


def worst_equal_mass(p: Problem, bins: int) -> float:
    """Largest equal-mass calibration error with edges recomputed from the confidences, by trying all that can matter.

    For a given weak order of the samples the bins are given and the error is a convex function of the confidences, so
    it is largest where each is an end of some interval. A supremum under strict inequalities is met by confidences
    that differ infinitely little: by -1, 0 or 1 of something, which is enough for three samples.
    """
    assert p.n <= 3
    ends = np.unique(np.concatenate((p.lower, p.upper)))
    spots = [
        [
            (float(end), off)
            for end in ends
            if low <= end <= high
            for off in (-1, 0, 1)
            if (off >= 0 or end > low) and (off <= 0 or end < high)
        ]
        for low, high in zip(p.lower, p.upper, strict=True)
    ]
    best = 0.0
    for chosen in product(*spots):
        totals = [0.0] * bins
        for (value, off), right in zip(chosen, p.correct, strict=True):
            if p.closed == "left":  # the number of edges m/M below the share of samples up to this one
                passed = sum(other <= (value, off) for other in chosen)
                m = sum(Fraction(edge, bins) < Fraction(passed, p.n) for edge in range(1, bins))
            else:
                passed = sum(other >= (value, off) for other in chosen)
                m = bins - 1 - sum(Fraction(edge, bins) < Fraction(passed, p.n) for edge in range(1, bins))
            totals[m] += right - value
        best = max(best, sum(map(abs, totals)) / p.n)
    return best


def instance(seed: int, n: int = 9, bins: int = 8) -> Problem:
    """A small problem; kinds alternate: ends anywhere, on edges, l = u, all [0, 1], uneven and repeated edges."""
    random = np.random.default_rng(seed)
    size, count = int(random.integers(1, n + 1)), int(random.integers(1, bins + 1))
    edges = np.arange(count + 1) / count
    if seed % 3 == 1:
        edges = np.concatenate(([0], np.sort(random.random(count - 1)), [1]))
    elif seed % 3 == 2:
        edges = np.concatenate(([0], np.sort(random.choice([0, 0.25, 0.5, 0.5, 0.75, 1], count - 1)), [1]))
    ends = np.sort(random.random((2, size)), axis=0)
    kind = seed % 7
    if kind == 1:
        ends = np.sort(random.choice(edges, (2, size)), axis=0)
    elif kind == 2:
        ends[1] = ends[0]
    elif kind == 3:
        ends[0], ends[1] = 0, 1
    elif kind == 4:
        ends[0] = random.choice(edges, size)
        ends[1] = np.maximum(ends[0], ends[1])
    elif kind == 5:
        ends[1] = np.minimum(1, ends[0] + 0.1 * random.random(size))
    return problem(ends[0], ends[1], random.integers(0, 2, size), edges, ("left", "right")[seed // 3 % 2])


def feasible(p: Problem, seed: int = 0) -> np.ndarray:
    """Random confidences inside the intervals, some of them at the ends."""
    random = np.random.default_rng(seed)
    share = random.choice([0.0, 1.0, random.random()], p.n) if seed % 2 else random.random(p.n)
    return np.clip(p.lower + share * (p.upper - p.lower), p.lower, p.upper)


@st.composite
def problems(draw: st.DrawFn, max_n: int = 12, min_bins: int = 1, max_bins: int = 6) -> Problem:
    """Problems on a coarse dyadic grid (so that ends, edges and thresholds coincide) or anywhere."""
    point = st.one_of(st.integers(0, 16).map(lambda k: k / 16), st.floats(0, 1, allow_subnormal=False))
    pairs = draw(st.lists(st.tuples(point, point, st.integers(0, 1)), min_size=1, max_size=max_n))
    inner = sorted(draw(st.lists(point, min_size=min_bins - 1, max_size=max_bins - 1)))
    return problem(
        [min(a, b) for a, b, _ in pairs],
        [max(a, b) for a, b, _ in pairs],
        [c for _, _, c in pairs],
        [0.0, *inner, 1.0],
        draw(st.sampled_from(("left", "right"))),
    )


# ------------------------------------------------------------------------- intervals of which a sum of ends is limited


def pooled(p: Problem, ends: Any, certified: Any, free: bool) -> float:
    """The largest Σ_n v_n(s) over all signs, by trying every reachable end; plus what is paid once."""
    total = -np.inf
    samples = range(p.n)
    for signs in product((1, -1), repeat=p.bins):

        def worth(i: int, low: float, high: float, c: int | None = None, s: Sequence[int] = signs) -> float:
            right = p.correct[i] if c is None else c
            return max(s[m] * (right - z) for m, z in spots(p, i, low, high))

        sums = 0.0
        for i in samples:
            low, high, end, value, inner = (getattr(ends, name)[i] for name in FIELDS)
            inner = min(max(inner, low), high)
            # Where an end is an edge of a bin, spots hold both sides of it.
            reach = (low, inner) if end < 0 else (inner, high)
            tried = [*reach, *(e for e in bin_edges(p) if reach[0] <= e <= reach[1])]
            apart = [np.nextafter(e, a) for e in tried for a in (0, 1)] + tried
            cases: list[float] = []
            if end == 0 or not ends.sure[i]:
                cases.append(worth(i, low, high) if certified[i] else 0.0)
            if end != 0:
                for e in {min(max(e, reach[0]), reach[1]) for e in apart}:
                    own = 0.0 if not certified[i] else worth(i, e, high) if end < 0 else worth(i, low, e)
                    cases.append(own + end * (value - e))
            sums += max(cases)
        if free:
            rest = [i for i in samples if not certified[i]]
            sums += max(sum(worth(i, 0, 1, c) for i in rest) for c in (0, 1))
        total = max(total, sums)
    n = p.n if free else int(np.count_nonzero(certified))
    return float((total + ends.deviation) / n)


FIELDS = ("lower", "upper", "end", "estimate", "inner")
