"""Slow, obvious versions of the kernel metrics: direct sums over samples and images, roots found one by one.

Beside them, the samples that trouble kernel sums.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]


def _prepared(confidence: Any, correct: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    z = np.asarray(confidence, np.float64)
    c = np.asarray(correct, np.float64)
    w = np.ones(z.size) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return z, c, w / w.sum()


@dataclass(frozen=True)
class Images:
    """Places from which a Gaussian reaches [0, 1]: each z, mirrored at 0 and 1 again and again."""

    mirror: Floats  # the place is 2 * mirror ± z
    offset: Floats  # mirror ± z, without the rounding that adding the mirror twice would bring
    sample: NDArray[np.int64]

    def distance(self, t: Floats) -> Floats:
        return (t[:, None] - self.mirror) - self.offset


def _images(z: Floats, sigma: float) -> Images:
    far = 2 + math.ceil(5 * sigma)
    every = [(m, sign) for m in range(-far, far + 1) for sign in (1, -1)]
    mirror = np.concatenate([np.full(z.size, float(m)) for m, _ in every])
    offset = np.concatenate([m + sign * z for m, sign in every])
    sample = np.tile(np.arange(z.size), len(every))
    near = np.abs(mirror + offset - 0.5) < 0.5 + 10 * sigma
    return Images(mirror[near], offset[near], sample[near])


def _scan(z: Floats, sigma: float) -> Floats:
    """Points of [0, 1] no further apart than sigma / 32 wherever the kernel of a sample has not died out."""
    if sigma > 1e-3:
        return np.linspace(0, 1, 1 + math.ceil(32 / min(sigma, 1)))
    near = (np.unique(z)[:, None] + np.linspace(-10 * sigma, 10 * sigma, 641)).ravel()
    return np.unique(np.concatenate([[0.0, 1.0], near[(near > 0) & (near < 1)]]))


def _with_roots(function: Function, t: Floats) -> Floats:
    """The points t and, wherever the function changes sign between two of them, the place where it does."""
    positive = function(t) > 0
    change = np.flatnonzero(positive[1:] != positive[:-1])
    low, high, left = t[change], t[change + 1], positive[change]
    for _ in range(50 if change.size else 0):
        middle = (low + high) / 2
        same = (function(middle) > 0) == left
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.sort(np.concatenate([t, low]))


def _absolute_integral(value: Function, slope: Function, integral: Function, t: Floats) -> float:
    """∫|value| over [t[0], t[-1]]; between two roots of its slope the function has one root at most."""
    return float(np.abs(np.diff(integral(_with_roots(value, _with_roots(slope, t))))).sum())


def _gauss(x: Floats) -> Floats:
    return np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


def _in_blocks(function: Callable[[Floats], Floats], t: Floats) -> Floats:
    return np.concatenate([function(part) for part in np.array_split(t, 1 + t.size // 200)])


def smooth_ece_at(confidence: Any, correct: Any, sigma: float, sample_weight: Any = None) -> float:
    """∫_0^1 |Σ w (c - z) K_σ(t, z)| dt."""
    z, c, w = _prepared(confidence, correct, sample_weight)
    images = _images(z, sigma)
    mass = (w * (c - z))[images.sample]

    def value(t: Floats) -> Floats:
        return _in_blocks(lambda t: _gauss(images.distance(t) / sigma) @ mass, t)

    def slope(t: Floats) -> Floats:
        return _in_blocks(lambda t: -(_gauss(images.distance(t) / sigma) * images.distance(t)) @ mass, t)

    def integral(t: Floats) -> Floats:
        return _in_blocks(lambda t: ndtr(images.distance(t) / sigma) @ mass, t)

    return _absolute_integral(value, slope, integral, _scan(z, sigma))


def smooth_ece(confidence: Any, correct: Any, sample_weight: Any = None) -> float:
    """The σ with smECE_σ = σ."""
    z, c, w = _prepared(confidence, correct, sample_weight)
    low, high = abs(float(w @ (c - z))), float(w @ np.abs(c - z))
    if high - low < 1e-15:
        return high
    low = max(low, 1e-13)
    if smooth_ece_at(z, c, low, w) <= low:
        return low
    return float(brentq(lambda sigma: smooth_ece_at(z, c, sigma, w) - sigma, low, high * (1 + 1e-12), xtol=1e-13))


def kde_ece(confidence: Any, correct: Any, bandwidth: float | None = None, sample_weight: Any = None) -> float:
    """∫_0^1 |t p(t) - q(t)| dt for the densities p of all samples and q of the correct ones."""
    z, c, w = _prepared(confidence, correct, sample_weight)
    if bandwidth is None:
        spread = math.sqrt(float(w @ (z - w @ z) ** 2))
        if spread < 1e-10:
            return abs(float(w @ (z - c)))
        bandwidth = 1.06 * spread * float(w @ w) ** 0.2
    h = bandwidth
    images = _images(z, h)
    mass, outcome = w[images.sample], c[images.sample]

    def value(t: Floats) -> Floats:
        return _in_blocks(lambda t: (_gauss(images.distance(t) / h) * (t[:, None] - outcome)) @ mass, t)

    def slope(t: Floats) -> Floats:
        def part(t: Floats) -> Floats:
            x = images.distance(t) / h
            return (_gauss(x) * (1 - x / h * (t[:, None] - outcome))) @ mass

        return _in_blocks(part, t)

    def integral(t: Floats) -> Floats:
        def part(t: Floats) -> Floats:
            x = images.distance(t) / h
            return ((images.mirror + images.offset - outcome) * ndtr(x) - h * _gauss(x)) @ mass

        return _in_blocks(part, t)

    return _absolute_integral(value, slope, integral, _scan(z, h))


def triweight_ece(confidence: Any, correct: Any, bandwidth: float | None = None, sample_weight: Any = None) -> float:
    """The same with (1 - (u/3h)²)³, confidences reflected at the nearer end: direct sums at many places."""
    z, c, w = _prepared(confidence, correct, sample_weight)
    if bandwidth is None:
        right = w * c / (w @ c)
        bandwidth = math.sqrt(float(right @ (z - right @ z) ** 2)) * (2 / float(w @ w)) ** -0.2
    t = (np.arange(20_000) + 0.5) / 20_000
    p, q = np.zeros(t.size), np.zeros(t.size)
    for place, outcome, mass in zip(z, c, w, strict=True):
        for image in (place, -place if place < 0.5 else 2 - place):
            kernel = mass * np.maximum(1 - ((t - image) / (3 * bandwidth)) ** 2, 0.0) ** 3
            p += kernel
            q += kernel * outcome
    return float(np.abs(t * p - q).sum() / p.sum())


def mmce(confidence: Any, correct: Any, width: float = 0.4, sample_weight: Any = None) -> float:
    """√(Σ w w' d d' exp(-|z - z'| / width)), all pairs."""
    z, c, w = _prepared(confidence, correct, sample_weight)
    residual = w * (c - z)
    total = sum(float(residual[i] * (np.exp(-np.abs(z[i] - z) / width) @ residual)) for i in range(z.size))
    return math.sqrt(max(0.0, total))


@st.composite
def samples(draw: st.DrawFn, largest: int = 12) -> tuple[Floats, NDArray[np.uint8]]:
    """Confidences with ties, near ties, the ends of [0, 1] and values close to them; any correctness."""
    confidence = st.one_of(
        st.floats(0, 1),
        st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1 / 3]),
        st.integers(1, 9).map(lambda k: 1 - 10.0**-k),
        st.integers(1, 9).map(lambda k: 0.5 + 10.0**-k),
    )
    z = draw(st.lists(confidence, min_size=1, max_size=largest))
    c = draw(st.lists(st.integers(0, 1), min_size=len(z), max_size=len(z)))
    return np.array(z), np.array(c, np.uint8)


def shapes(n: int, seed: int) -> dict[str, tuple[Floats, NDArray[np.uint8]]]:
    """Data sets of n samples: spread out, near one, tied, at the ends, within a hair's breadth; not all calibrated."""
    rng = np.random.default_rng(seed)
    confidences = {
        "uniform": rng.random(n),
        "overconfident": rng.beta(4, 1, n),
        "near one": rng.beta(20, 0.3, n),
        "very near one": 1 - 10 ** rng.uniform(-9, -1, n),
        "tied": np.round(rng.random(n), 1),
        "at the ends": rng.choice([0.0, 1.0], n),
        "narrow": 0.5 + 1e-6 * rng.random(n),
        "equal": np.full(n, rng.random()),
    }
    return {
        name: (z, (rng.random(n) < (0.8 * z if name == "overconfident" else z)).astype(np.uint8))
        for name, z in confidences.items()
    }


SHAPES = list(shapes(1, 0))
