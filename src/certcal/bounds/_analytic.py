"""Least-squares fits of outcomes by functions that are analytic near the real line, for perturbed scores.

The calibration function η of perturbed scores (:func:`certcal.bounds.perturb`) is analytic in the strip |Im z| < πh/2
and takes no real value outside (0, 1) there. Functions of this kind are nearly interpolated by few of their values, so
a space of few dimensions comes close to all of them at once, and a projection on it has little bias.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal.bounds._shared import Places, Sample

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Pieces are 2, 4 … 64 bandwidths long, of at least so many samples if there are thousands; numbers of nodes to try.
SHORTEST, LEVELS, FEW = 2, 6, 8
NODES = np.unique(np.rint(2.0 ** (np.arange(65) / 8)).astype(np.int64))
# Cells per bandwidth, or per unit if that is less: √n, so that what η and s change within one is less than the noise.
FEWEST, FINEST = 8.0, 2048.0
# The mean of |ε| for a normal ε of variance 1, and √2 for the root mean square of 2 cos: what is expected of a fit.
NORMAL, WAVE = 0.8, 1.42
# A multiple of the unit matrix beside the mean of the normal equations: the fit exists where samples are few.
RIDGE = 1e-11
# Rows of the basis that are held at a time.
ROWS = 8192
# The basis is computed to 4 N units in the last place, and its N coefficients are at most ½: 6e-11 for N = 256.
ROUNDING = 1e-9


class NarrowCells(NamedTuple):
    """Samples by narrow cells: mean place, number, outcomes 1, Σ (place - mean)², mean score, Σ (score - mean)²."""

    place: Floats
    number: Floats
    hits: Floats
    within: Floats
    score: Floats
    score_within: Floats

    def part(self, which: slice | NDArray[np.bool_]) -> NarrowCells:
        return NarrowCells(*(each[which] for each in self))


class Pieces(NamedTuple):
    """Runs of cells with a number of nodes each, 0 where every cell stands for itself, and what they are to cost."""

    starts: Whole
    nodes: Whole
    expected: float


class Fit(NamedTuple):
    """Sums over samples: |s - η̂|, bias, a_j², a_j² (y_j - s_j)², and the largest |a_j|, where a = Hᵀσ for any signs."""

    gap: float
    bias: float
    squares: float
    errors: float
    largest: float


def group_in_cells(sample: Sample, where: Places, h: float) -> NarrowCells:
    """Sorted samples by cells; equal places share one."""
    from certcal._kernels.buckets import run_sums

    n = sample.scores.size
    per = min(max(math.sqrt(n), FEWEST), FINEST) / min(h, 1 / where.stretch)
    starts = np.append(np.flatnonzero(np.diff(np.floor(where.values * per), prepend=-1)), n)
    sums = np.empty((starts.size - 1, 4))
    run_sums(where.values, sample.outcomes, starts, sums)
    scores = sums
    if where.values is not sample.scores:
        scores = np.empty_like(sums)
        run_sums(*sample, starts, scores)
    number = sums[:, 0]
    return NarrowCells(sums[:, 2] / number, number, sums[:, 1], sums[:, 3], scores[:, 2] / number, scores[:, 3])


def cut_in_pieces(cells: NarrowCells, h: float) -> Pieces:
    """Cut the scores where noise and bias together are expected to be least, were η(s) = s. Outcomes are not looked at.

    A piece of length L with N nodes is to have the noise 0.8 √(N Σ v), v = s(1 - s), and the bias 2^½ exp(-N π²/4(L/2h
    + ln 2)) per sample, which is nearly what the best nodes have. Pieces are halves of halves of a longest one.
    """
    variance = cells.number * np.maximum(cells.score * (1 - cells.score), 1e-4)
    alone = np.minimum(2 * variance, NORMAL * np.sqrt(variance))
    finest = np.floor((cells.place - cells.place[0]) / (SHORTEST * h)).astype(np.int64)
    best, starts, nodes = alone, np.arange(alone.size), np.zeros(alone.size, np.int64)
    for level in range(LEVELS):
        first = np.flatnonzero(np.diff(finest >> level, prepend=-1))
        last = np.append(first[1:], cells.place.size) - 1
        number, spread, single = (np.add.reduceat(each, first) for each in (cells.number, variance, alone))
        rate = math.pi**2 / (4 * ((cells.place[last] - cells.place[first]) / (2 * h) + math.log(2)))
        cost, count = single, np.zeros(first.size, np.int64)
        enough = 9 * ((SHORTEST << level) / 2 + 1)  # with more of them the bias is below 1e-9
        for tried in NODES[enough >= NODES]:
            bias = np.minimum(WAVE * np.exp(-tried * rate), 1.0)
            total = NORMAL * np.sqrt(spread * np.minimum(tried, number)) + number * bias
            better = (total < cost) & (number >= min(FEW, cells.place.size / 1000))
            cost[better], count[better] = total[better], tried
        inside = np.searchsorted(first, starts, "right") - 1  # the piece that each of the shorter ones is part of
        halves = np.bincount(inside, best, first.size)
        whole = cost <= halves
        kept = ~whole[inside]
        starts, nodes = np.append(starts[kept], first[whole]), np.append(nodes[kept], count[whole])
        best = np.append(best[kept], cost[whole])
        order = np.argsort(starts)
        starts, nodes, best = starts[order], nodes[order], best[order]
    return Pieces(starts, nodes, float(best.sum()) / float(cells.number.sum()))


def fit_pieces(cells: NarrowCells, pieces: Pieces, h: float) -> Fit:
    """The fits of all pieces together, as means over samples: squares and errors are divided by n²."""
    n = float(cells.number.sum())
    stops = np.append(pieces.starts[1:], cells.place.size)
    found = [_fit_of_single_cells(cells.part(np.repeat(pieces.nodes == 0, stops - pieces.starts)), h)]
    for k in np.flatnonzero(pieces.nodes):
        found.append(_fit_by_projection(cells.part(slice(pieces.starts[k], stops[k])), int(pieces.nodes[k]), h))
    gap, bias, squares, errors, _ = (math.fsum(each) for each in zip(*found, strict=True))
    largest = max(each.largest for each in found) / n
    room = ROUNDING + 2.0**-50 / h  # the second is for the rounding of places
    return Fit(gap / n + room, bias / n + room, squares / n**2, errors / n**2 * (1 + ROUNDING), largest)


def optimal_nodes(low: float, high: float, count: int, h: float) -> Floats:
    """Nodes in an interval whose Blaschke product is small there: quantiles of 1/√(sinh(2y/2h) sinh(2(L - y)/2h)).

    (Zolotarev's nodes up to the rule of integration. What is claimed holds for any nodes.)
    """
    length = max(high - low, h / 4)
    angle = np.linspace(0, np.pi, 16 * count + 1)
    y = length * np.sin(angle / 2) ** 2

    def damped(distance: Floats) -> Floats:
        x = np.maximum(2 * distance / h, 1e-9)
        return x / -np.expm1(-x)

    density = np.sqrt(damped(y) * damped(length - y))
    mass: Floats = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    shares: Floats = (np.arange(count) + 0.5) / count * mass[-1]
    return np.interp(shares, mass, y) + (low + high - length) / 2


def interpolating(places: Floats, nodes: Floats, h: float) -> tuple[Floats, Floats]:
    """Functions φ_j(x) = sech²((x - t_j)/2h) Π_{k≠j} tanh((x - t_k)/2h)/tanh((t_j - t_k)/2h), one per node, and |B(x)|.

    For every calibration function η of scores perturbed with bandwidth h and every real x, |η(x) - ½ - Σ_j (η(t_j)
    - ½) φ_j(x)| <= |B(x)| (2√(η(x)(1 - η(x))) + |B(x)| |η(x) - ½|) <= |B(x)| √(1 + B(x)²/4), B(x) = Π_k tanh((x -
    t_k)/2h).

    Where η goes. η = P/(P + Q) with P(z) = E[η₀ w sech((z - S)/h)], Q(z) = E[(1 - η₀) w sech((z - S)/h)] and
    weights w > 0. For |Im z| = βh < πh/2, sech(a + iβ) has an argument of at most β, because its real part cosh a
    cos β/|cosh(a + iβ)|² is at least cos β times its modulus 1/|cosh(a + iβ)| >= 1/cosh a. So P and Q lie in the
    convex cone of arguments up to β, P + Q ≠ 0, and L = ln(P/Q) is analytic with |Im L| <= 2β < π (if P or Q
    vanishes, η is constant; see the end). It is real on the real line, and f = 2η - 1 = tanh(L/2).

    A function with a positive real part. p = sech(L/2) + i tanh(L/2) equals (1 + iv)/(1 - iv) with v = tanh(L/4),
    and |v| < 1 because |Im L/4| < π/4. So Re p > 0 in the strip. On the real line Im p = f and Re p = √(1 - f²).

    Recovery. Take the strip |Im z| <= β'h with a β' below π/2, in which p is bounded; u = tanh(πz/(4β'h)) maps it
    to the unit disc, and real x to real u. There B becomes the Blaschke product of the nodes: |B| = 1 on the
    circle, real on the real line. For g bounded and analytic, the residues of g(ζ)/B(ζ) · (1 - u²)/((ζ - u)(1 -
    uζ)) at u and at the nodes give g(u) - Σ_j g(t_j) φ_j(u) = B(u) ∫ g B̄ dP_u, since that kernel is Poisson's on
    the circle: P_u is a probability measure with ∫ g dP_u = g(u).

    Bound. With p = 2 Re p - p̄, ∫ p B̄ dP_u = 2 ∫ Re p · B̄ dP_u - conj(p(u) B(u)). The first integral is at most ∫
    Re p dP_u = Re p(u) in modulus, as Re p > 0 and |B| = 1. The imaginary part of the whole is at most 2 Re p(u) +
    |f(u)| |B(u)|. By symmetry under conjugation it is what f, the imaginary part of p on the real line, has in the
    place of g. So |f - Σ f(t_j) φ_j| <= |B| (2√(1 - f²) + |B| |f|); half of it is the claim, since √(1 - f²) =
    2√(η(1 - η)). The second inequality is that of Cauchy and Schwarz. Now let β' go to π/2. (For f = ±1 it holds
    with p = ±i.)
    """
    apart = np.tanh((nodes[:, None] - nodes) / (2 * h))
    np.fill_diagonal(apart, 1.0)
    factor = np.tanh((places[:, None] - nodes) / (2 * h))
    factor[factor == 0] = 1e-150  # at a node; the quotient below is then the limit
    product = factor.prod(axis=1)
    values = 1 - factor * factor
    values /= factor
    values *= product[:, None]
    values /= apart.prod(axis=1)
    return values, np.abs(product)


def distance_bound(product: Floats) -> Floats:
    """How far η may be from its interpolation where the Blaschke product is so large."""
    return product * np.sqrt(1 + product * product / 4)


def _fit_of_single_cells(cells: NarrowCells, h: float) -> Fit:
    """Every cell's mean outcome for itself: η changes by at most 1/2h per unit of the place."""
    m, hits, score = cells.number, cells.hits, cells.score
    gap = m * np.sqrt((score - hits / m) ** 2 + cells.score_within / m)
    errors = hits * (1 - 2 * score) + m * score**2
    bias = np.sqrt(m * cells.within) * (0.5 / h)
    return Fit(float(gap.sum()), float(bias.sum()), float(m.sum()), float(errors.sum()), 1.0)


def _fit_by_projection(cells: NarrowCells, count: int, h: float) -> Fit:
    """A weighted least-squares fit of the outcomes of one piece.

    H = Φ(ΦᵀWΦ + λ)⁻¹ΦᵀW with W = 1/v and v near s(1 - s), all fixed by the scores. Let ‖·‖ be the norm with weights W.

    1. H and I - H do not lengthen. So, with r the distance of η - ½ from its interpolation Φa, |a_j| <= ½, the bias has
       a norm of at most ‖r‖ + ½√λ|a|, and the sum of its absolute values is at most √(Σv) times that.
    2. η in a cell is a mean, η at the mean place up to Σ(x - x̄)²/4h² per sample, and the rest, which H does not see and
       which is orthogonal: its norm is at most that of (x - x̄)/2h.
    3. For signs σ and a = Hᵀσ, Σ a_j² z_j = σᵀΦA(ΦᵀW²zΦ)AΦᵀσ with A = (ΦᵀWΦ + λ)⁻¹. Since Σ σ_j² v_j = Σ v_j, it is at
       most Σ v_j times the largest eigenvalue of A^½ (ΦᵀW²zΦ) A^½; and since Σ σ_j² = n, Σ a_j² is at most n times that
       of (ΦᵀΦ)^½ A (ΦᵀW²Φ) A (ΦᵀΦ)^½.
    4. |a_j| <= W_j Σ_k |φ_k(x_j)| Γ_k with Γ_k = Σ_i |(ΦA)_ik|.

    Rounding of the sums, some 1e-13 of ΦᵀWΦ, is less than λ/10, so 0.6 stands for ½ in step 1; what the solution of the
    equations is off by is measured, and ‖ΦA·‖ <= 1/(2√λ) says what that does to the fit.
    """
    n = float(cells.number.sum())
    inherent = cells.score * (1 - cells.score)
    v = np.maximum(inherent, max(float(inherent @ cells.number) / (1.5 * n), 1e-6))
    spread = float(v @ cells.number)
    squared = cells.hits * (1 - 2 * cells.score) + cells.number * cells.score**2  # Σ (y - s)² about the mean score
    weights = np.stack((cells.number, cells.number / v, cells.number / v**2, np.maximum(squared, 0.0) / v**2))
    nodes = optimal_nodes(cells.place[0], cells.place[-1], count, h)
    rows = [slice(start, start + ROWS) for start in range(0, cells.place.size, ROWS)]

    gram: Floats = np.zeros((4, count, count))
    right: Floats = np.zeros(count)
    product = np.empty(cells.place.size)
    for each in rows:
        basis, product[each] = interpolating(cells.place[each], nodes, h)
        for matrix, weight in zip(gram, weights, strict=True):
            scaled = basis * np.sqrt(weight[each, None])
            matrix += scaled.T @ scaled
        right += basis.T @ ((cells.hits[each] - cells.number[each] / 2) / v[each])
    ridge = RIDGE * n * n / spread
    normal: Floats = gram[1] + ridge * np.eye(count)
    root = np.linalg.inv(np.linalg.cholesky(normal))
    inverse = root.T @ root
    solution = inverse @ right
    solution += inverse @ (right - normal @ solution)
    residual = float(np.linalg.norm(right - normal @ solution))

    influence, gap, largest = np.zeros(count), 0.0, 0.0
    for each in rows:
        basis, _ = interpolating(cells.place[each], nodes, h)
        influence += cells.number[each] @ np.abs(basis @ inverse)
        off = cells.score[each] - 0.5 - basis @ solution
        gap += float(cells.number[each] @ np.sqrt(off**2 + cells.score_within[each] / cells.number[each]))
    for each in rows:
        basis, _ = interpolating(cells.place[each], nodes, h)
        largest = max(largest, float((np.abs(basis) @ influence / v[each]).max()))

    moved = cells.within / (4 * h * h)
    far = math.sqrt(float(((distance_bound(product) + moved / cells.number) ** 2) @ weights[1]))
    norm = math.hypot(far, math.sqrt(float((moved / v).sum())))
    norm += 0.6 * math.sqrt(ridge * count / 4) + residual / (2 * math.sqrt(ridge))
    plain, steep, seen = (root @ gram[k] @ root.T for k in (0, 2, 3))
    values, vectors = np.linalg.eigh(plain)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    room = 1 + 1e-4  # the inverse is good to some 1e-5 where the equations are nearly singular
    return Fit(
        gap,
        math.sqrt(spread) * norm,
        n * float(np.linalg.eigvalsh(half.T @ steep @ half)[-1]) * room,
        spread * max(float(np.linalg.eigvalsh(seen)[-1]), 0.0) * room,
        largest * room,
    )
