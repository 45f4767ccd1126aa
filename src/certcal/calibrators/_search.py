"""The best slope and offset of a logistic map, by branch and bound: how far from the best is proved, not hoped."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certcal._base.threads import map_blocks
from certcal.calibrators._logistic import LARGEST_LOG_ODDS

Floats = NDArray[np.float64]

# Rows of the coarser problems; each is used only where the places are many more.
_COARSE = (128, 2048)
_MISSED = 0.25
# Rows looked at before the search gives up and says how far it got: some ten seconds.
_BUDGET = 150_000_000
# A bound is lowered by this much for each row and unit of what was summed: more than the sums can have rounded. So it
# is for each unit of what a·u + q is made of, a few times: where both are large and cancel, t has few digits left.
_ROUNDING = 2.3e-16
_LARGEST_PLACE = 2 * LARGEST_LOG_ODDS


@dataclass(frozen=True)
class SearchResult:
    """The best point seen, the squared error there, and what no point of the box has a squared error below."""

    slope: float
    offset: float
    value: float
    least: float


@dataclass(frozen=True, eq=False)
class BoxRows:
    """Places and weights of a problem, or of one that is below it everywhere; see :func:`box_bounds`."""

    place: Floats
    weight: Floats

    def __len__(self) -> int:
        return self.place.shape[0]

    def look(self, low: Floats, high: Floats, at: Floats) -> Floats:
        """Values, slopes, least curvatures and bounds of boxes."""
        from certcal._kernels.map_losses import box_bounds

        out = np.empty((low.shape[0], 8))
        map_blocks(
            lambda start, stop: box_bounds(
                self.place, self.weight, low[start:stop], high[start:stop], at[start:stop], out[start:stop]
            ),
            low.shape[0],
            small=1 + 20_000 // len(self),
        )
        return out


def search(places: Floats, right: Floats, wrong: Floats, low: Floats, high: Floats, tolerance: float) -> SearchResult:
    """Minimise Σ right·(1 - σ(a·u + q))² + wrong·σ(a·u + q)² over a box of (a, q), to within a tolerance.

    Why the bound is one: a box of parameters gives each place u a range of t = a·u + q, and the larger t is, the
    smaller is the error of a correct sample and the larger that of another; so the sum over the better ends bounds the
    box from below. So does f(p) + f'(p)·d + d'Kd/2 around any point p of the box, least over the box, where K adds up
    the least curvature of each place in its range: every place adds a multiple of a matrix without negative
    eigenvalues, so K is below the Hessian throughout. The larger bound counts. A box whose bound is within the
    tolerance of the best value seen is closed, the others are halved; the second bound closes whole neighbourhoods of
    a minimum as soon as K is positive there.

    Coarser problems are asked first. Neighbouring places make one row, correct samples at its upper end and others at
    its lower: with a >= 0 no error grows by that, and no row's error is below that of its best monotone map. So their
    bounds hold too. A box goes on to a finer problem when halving it adds little to the coarse one.

    Places are ascending, and ``low[0]`` is at least 0.
    """
    levels = [*(_coarser(places, right, wrong, rows) for rows in _COARSE if 4 * rows < places.size)]
    levels.append(_finest(places, right, wrong))
    best, value = _first_guess(levels, low, high)
    spread = np.array([math.sqrt(float(np.sum((right + wrong) * places**2))), 1.0])
    waiting: list[list[tuple[Floats, Floats, Floats]]] = [[] for _ in levels]
    waiting[0].append((low[None, :], high[None, :], np.array([-math.inf])))
    least, rows = math.inf, 0
    while (depth := next((k for k, each in enumerate(waiting) if each), None)) is not None and rows < _BUDGET:
        bottom, top, floor = (np.concatenate(parts) for parts in zip(*waiting[depth], strict=True))
        few = 1 + _BUDGET // (16 * len(levels[depth]))
        waiting[depth] = [(bottom[few:], top[few:], floor[few:])] if floor.size > few else []
        bottom, top = bottom[:few], top[:few]
        at = _points_to_try(bottom, top, best)
        seen = levels[depth].look(bottom, top, at)
        rows += len(seen) * len(levels[depth])
        bound = _lower_bounds(seen, bottom, top, at, len(levels[depth]))
        last = depth == len(levels) - 1
        if last and seen[:, 0].min() < value:
            best, value = _descend(levels[-1], at[np.argmin(seen[:, 0])], low, high)
        closed = bound >= value - tolerance
        least = min(least, float(bound[closed].min(initial=math.inf)))
        # A coarse problem of equal rows is below the fine one by up to 2 / rows, and by much less mostly: where halving
        # a box could add no more than that, the finer problem is asked.
        deeper = ~closed & (seen[:, 0] - bound <= _MISSED / len(levels[depth])) & (not last)
        if deeper.any():
            waiting[depth + 1].append((bottom[deeper], top[deeper], bound[deeper]))
        halved = ~closed & ~deeper
        if halved.any():
            waiting[depth].append(_halves(bottom[halved], top[halved], bound[halved], spread))
    for _, _, bound in (part for each in waiting for part in each):
        least = min(least, float(bound.min()))
    return SearchResult(float(best[0]), float(best[1]), value, min(least, value))


def _finest(places: Floats, right: Floats, wrong: Floats) -> BoxRows:
    floor = right * wrong / (right + wrong)
    return BoxRows(np.stack([places, places], axis=1), np.stack([right, wrong, floor], axis=1))


def _coarser(places: Floats, right: Floats, wrong: Floats, rows: int) -> BoxRows:
    """Fewer rows, each of neighbouring places."""
    from scipy.optimize import isotonic_regression

    cuts = np.linspace(0, places.size, rows + 1).astype(np.int64)
    first, stop = cuts[:-1], cuts[1:]
    mass = right + wrong
    mean = right / mass
    spread = np.add.reduceat(right * wrong / mass, first)
    floor = np.empty(rows)
    for k, (i, j) in enumerate(zip(first.tolist(), stop.tolist(), strict=True)):
        fitted = isotonic_regression(mean[i:j], weights=mass[i:j]).x
        floor[k] = spread[k] + np.sum(mass[i:j] * (mean[i:j] - fitted) ** 2)
    weight = np.stack([np.add.reduceat(right, first), np.add.reduceat(wrong, first), floor], axis=1)
    return BoxRows(np.stack([places[stop - 1], places[first]], axis=1), weight)


def _points_to_try(low: Floats, high: Floats, best: Floats) -> Floats:
    """Where to look in each box: in the middle, or as near to the best point as a box next to it allows."""
    near = np.clip(best, low, high)
    beside = (np.abs(near - best) <= high - low).all(axis=1, keepdims=True)
    return np.where(beside, near, (low + high) / 2)


def _lower_bounds(seen: Floats, low: Floats, high: Floats, at: Floats, rows: int) -> Floats:
    """The larger of the two bounds, lowered by what rounding may have added.

    The first three derivatives of each place's error in t are below 1/3 times its weight, and the weights add up to 1:
    so what t is off by moves the first bound by less, and the second by less times (1 + the reach of the box in t)².
    """
    value, ends, size = seen[:, 0], seen[:, 6], seen[:, 7]
    change, _ = least_of_quadratic(seen[:, 1:3], seen[:, 3:6], low - at, high - at)
    slack = (rows + 64) * _ROUNDING
    off = 4 * _ROUNDING * (_LARGEST_PLACE * high[:, 0] + np.maximum(np.abs(low[:, 1]), np.abs(high[:, 1])))
    reach = _LARGEST_PLACE * (high[:, 0] - low[:, 0]) + high[:, 1] - low[:, 1]
    return np.maximum(ends - slack - off, value + change - slack * (1 + size) - off * (1 + reach) ** 2)


@np.errstate(over="ignore")  # where a curvature is next to nothing, a turning point is as far away as it gets
def least_of_quadratic(slope: Floats, matrix: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Least g·d + d'Kd/2 over rectangles low <= d <= high that contain 0, and where: many problems, one per row.

    It is at a corner, on an edge where the quadratic along it turns, or where its slope is 0 if K is positive. A K so
    near to singular that solving would lose its digits is made singular, by which it only falls.
    """
    g0, g1 = slope.T
    aa, ab, bb = matrix.T
    determinant = aa * bb - ab * ab
    thin = (aa > 0) & (bb > 0) & (determinant > 0) & (determinant < 1e-9 * aa * bb)
    shift = np.where(thin, 2 * determinant / np.where(thin, aa + bb, 1.0), 0.0)
    aa, bb = aa - shift, bb - shift
    inner = (aa > 0) & (bb > 0) & (determinant > 0) & ~thin
    scale = np.where(inner, determinant, 1.0)
    stationary = np.stack([(ab * g1 - bb * g0) / scale, (ab * g0 - aa * g1) / scale], axis=1)
    candidates = [np.where(inner[:, None], np.clip(stationary, low, high), 0.0)]
    for first in (low[:, 0], high[:, 0]):
        candidates += [np.stack([first, end], axis=1) for end in (low[:, 1], high[:, 1])]
        turn = np.where(bb > 0, -(g1 + ab * first) / np.where(bb > 0, bb, 1.0), low[:, 1])
        candidates.append(np.stack([first, np.clip(turn, low[:, 1], high[:, 1])], axis=1))
    for second in (low[:, 1], high[:, 1]):
        turn = np.where(aa > 0, -(g0 + ab * second) / np.where(aa > 0, aa, 1.0), low[:, 0])
        candidates.append(np.stack([np.clip(turn, low[:, 0], high[:, 0]), second], axis=1))
    d = np.stack(candidates)
    x, y = d[..., 0], d[..., 1]
    values = g0 * x + g1 * y + 0.5 * (aa * x * x + bb * y * y) + ab * x * y
    pick = values.argmin(axis=0)
    every = np.arange(len(slope))
    return values[pick, every], d[pick, every]


def _halves(low: Floats, high: Floats, bound: Floats, spread: Floats) -> tuple[Floats, Floats, Floats]:
    side = ((high - low) * spread).argmax(axis=1)
    every = np.arange(len(low))
    middle = (low[every, side] + high[every, side]) / 2
    left, right = high.copy(), low.copy()
    left[every, side] = right[every, side] = middle
    return np.concatenate([low, right]), np.concatenate([left, high]), np.concatenate([bound, bound])


def _first_guess(levels: list[BoxRows], low: Floats, high: Floats) -> tuple[Floats, float]:
    """A local minimum to begin with, from the best of a few points of the coarsest problem."""
    slopes, offsets = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]), np.linspace(-4.0, 4.0, 17)
    points = np.clip(np.stack(np.meshgrid(slopes, offsets), axis=-1).reshape(-1, 2), low, high)
    start = points[np.argmin(levels[0].look(points, points, points)[:, 0])]
    for level in levels:
        start, value = _descend(level, start, low, high)
    return start, value  # pyright: ignore[reportPossiblyUnboundVariable]


def _descend(rows: BoxRows, start: Floats, low: Floats, high: Floats) -> tuple[Floats, float]:
    """A local minimum: Newton's steps inside a rectangle that grows when the model was right and shrinks when not."""
    point, reach = start[None, :], np.array([1.0, 1.0])
    seen = rows.look(point, point, point)
    for _ in range(60):
        down, up = np.maximum(low - point, -reach), np.minimum(high - point, reach)
        promised, step = least_of_quadratic(seen[:, 1:3], seen[:, 3:6], down, up)
        if promised[0] > -1e-16 or reach.max() < 1e-12:
            break
        ahead = np.clip(point + step, low, high)
        there = rows.look(ahead, ahead, ahead)
        gained = seen[0, 0] - there[0, 0]
        reach = reach * (3.0 if gained > -0.5 * promised[0] else 1.0 if gained > 0 else 0.25)
        if gained > 0:
            point, seen = ahead, there
    return point[0], float(seen[0, 0])
