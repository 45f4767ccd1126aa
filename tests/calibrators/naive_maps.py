"""Slow, obvious twins of the maps of confidences."""

from itertools import pairwise

import numpy as np
from scipy import stats
from scipy.optimize import minimize

NEAREST = 2.0**-24


def scored(seed, n=80, classes=4):
    """Logits of which most point to the label."""
    rng = np.random.default_rng([seed, 16])
    logits = 2 * rng.normal(size=(n, classes))
    labels = np.where(rng.random(n) < 0.6, logits.argmax(axis=1), rng.integers(0, classes, n))
    return logits, labels


def log_loss(z, targets, w, a, b, c):
    """Mean log loss of sigmoid(a ln z - b ln(1 - z) + c), sample by sample."""
    z = np.clip(np.asarray(z, float), NEAREST, 1 - NEAREST)
    t = a * np.log(z) - b * np.log(1 - z) + c
    each = targets * np.log1p(np.exp(-t)) + (1 - targets) * np.log1p(np.exp(t))
    return float(np.average(each, weights=w))


def platt_targets(c, w):
    c = np.asarray(c, float)
    w = np.ones(c.size) if w is None else np.asarray(w, float)
    right, wrong = w[c == 1].sum(), w[c == 0].sum()
    return np.where(c == 1, (right + 1) / (right + 2), 1 / (wrong + 2))


def least_loss(z, targets, w, family):
    """The least loss of a family that a general solver finds from several starts."""
    spread = {
        "am": lambda x: (x[0], x[0], x[1]),
        "ab": lambda x: (x[0], x[1], (x[0] - x[1]) * np.log(2)),
        "abm": tuple,
    }[family]
    bounds = {"am": [(0, 50), (-50, 50)], "ab": [(0, 50)] * 2, "abm": [(0, 50), (0, 50), (-50, 50)]}[family]
    starts = [np.ones(len(bounds)), np.full(len(bounds), 0.1)]
    found = [
        minimize(
            lambda x: log_loss(z, targets, w, *spread(x)),
            start,
            bounds=bounds,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10},
        ).fun
        for start in starts
    ]
    return min(found)


def bin_of(value, edges, closed):
    """The bin that a value lies in, by comparing with every bin."""
    last = len(edges) - 2
    for m in range(last + 1):
        a, b = edges[m], edges[m + 1]
        if closed == "left" and (a <= value < b or (m == last and a <= value <= b)):
            return m
        if closed == "right" and (a < value <= b or (m == 0 and a <= value <= b)):
            return m
    raise AssertionError(f"{value} is in no bin")


def binned_values(z, c, w, edges, closed):
    """Weighted mean outcome of every bin; the middle of empty ones."""
    home = np.array([bin_of(value, edges, closed) for value in z])
    w = np.ones(len(z)) if w is None else np.asarray(w, float)
    return np.array(
        [
            np.average(np.asarray(c)[home == m], weights=w[home == m])
            if w[home == m].sum() > 0
            else (edges[m] + edges[m + 1]) / 2
            for m in range(len(edges) - 1)
        ]
    )


def reached(fitted, low, high, edges):
    """Values that a binned map takes on [low, high]: at the ends, at all edges inside, and just beside those."""
    places = [low, high]
    for edge in edges:
        places += [np.nextafter(edge, -1), edge, np.nextafter(edge, 2)]
    inside = np.array([place for place in places if low <= place <= high])
    return fitted.transform(inside)


def farthest(value, right, n, level):
    """Distance of a value to the farther Clopper-Pearson limit."""
    lower = stats.beta.ppf(level / 2, right, n - right + 1) if right > 0 else 0.0
    upper = stats.beta.ppf(1 - level / 2, right + 1, n - right) if right < n else 1.0
    return max(upper - value, value - lower)


def equal_mass_cells(z, c, edges, values, closed):
    """(value, counted samples, correct among them, samples seen) of open bins and shared edges, ascending."""
    z, c = np.asarray(z), np.asarray(c)
    last = len(values) - 1
    cells = []
    for m, value in enumerate(values):
        at = z == edges[m]
        if m > 0 and at.sum() > 1:
            cells.append((value if closed == "left" else values[m - 1], at.sum(), c[at].sum(), at.sum()))
        inside = np.array([(m == 0 or x > edges[m]) and (m == last or x < edges[m + 1]) for x in z])
        own = m if closed == "left" else m + 1  # the edge that belongs to the bin
        alone = 1 <= own <= last and (z == edges[own]).sum() == 1
        if edges[m] < edges[m + 1] or alone:
            cells.append((value, inside.sum(), c[inside].sum(), inside.sum() + alone))
    return cells


def largest_distance(cells, delta):
    counted = [cell for cell in cells if cell[1] > 0]
    return max(farthest(v, k, n, delta / len(counted)) for v, n, k, _ in counted)


def mean_distance(cells, delta):
    counted = sum(n > 0 for _, n, _, _ in cells)
    far = [farthest(v, k, n, delta / 2 / counted) if n > 0 else max(v, 1 - v) for v, n, k, _ in cells]
    total = sum(seen for *_, seen in cells)
    width = np.sqrt(np.log(4 / delta) / (2 * total))
    here = sum(seen * f for (*_, seen), f in zip(cells, far, strict=True)) / total
    return min(here + width * sum(abs(a - b) for a, b in pairwise(far)), max(far))


def top_label(p, maps):
    """Row by row: the mapped confidence of the largest, the others in proportion."""
    out = np.zeros_like(p)
    for i, row in enumerate(p):
        k = int(np.argmax(row))
        q = float(maps(k).transform([row[k]])[0])
        rest = sum(row[j] for j in range(len(row)) if j != k)
        for j in range(len(row)):
            share = row[j] / rest if rest > 0 else 1 / (len(row) - 1)
            out[i, j] = q if j == k else (1 - q) * share
    return out


def spline(x, knots, slopes, level):
    """The curve whose slope is interpolated between knots, by integrating it numerically from the first knot."""
    out = []
    for end in np.atleast_1d(x):
        steps = np.linspace(knots[0], end, 20_001)
        out.append(level + np.trapezoid(np.interp(steps, knots, slopes), steps))
    return np.array(out)


def isotonic_with(z, c, place, outcome):
    """The isotonic fit at a place, of the samples and one more there."""
    z, c = np.append(z, place), np.append(np.asarray(c, float), outcome)
    places = np.unique(z)
    sums = [(c[z == x].sum(), (z == x).sum()) for x in places]
    k = int(np.searchsorted(places, place))

    def mean(a, b):
        return sum(s for s, _ in sums[a : b + 1]) / sum(n for _, n in sums[a : b + 1])

    return max(min(mean(a, b) for b in range(k, len(sums))) for a in range(k + 1))
