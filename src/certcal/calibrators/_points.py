"""Where a monotone map is judged: clean confidences, and the ends of intervals that cost most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, to_numpy
from certcal._isotonic import counted
from certcal.calibrators._samples import CertifiedSamples

Floats = NDArray[np.float64]
Part = tuple[Floats, NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class Points:
    """Places and weights whose squared error is (1 - λ)·clean + λ·certified Brier score of a map into [0, 1].

    For a monotone map g and a sample with interval [l, u], the largest (c - g(z))² inside is (1 - g(l))² when c = 1
    and g(u)² when c = 0: one place per sample, whatever g is. So (1 - λ) times the clean Brier score plus λ times the
    certified one is Σ w (c - g(x))² over the clean confidences, each of weight (1 - λ)/N, and these places, each of
    weight λ v_r / N_r, with N_r samples certified at radius r and v_r the radius's share.

    Attributes
    ----------
    x
        Places, ascending, each once.
    right, wrong
        Weight of the correct samples there, and of the others; together they add up to 1.

    Examples
    --------
    >>> points = Points(np.array([0.25, 0.75]), np.array([0.0, 0.5]), np.array([0.5, 0.0]))
    >>> points.score(points.x)
    0.0625
    """

    x: Floats
    right: Floats
    wrong: Floats

    def score(self, values: Floats) -> float:
        """Σ w (c - g)², for a map's values at the places."""
        return float(np.sum(self.right * (1 - values) ** 2 + self.wrong * values**2))


@dataclass(frozen=True, eq=False)
class Parts:
    """Clean and worst-case places of samples, ready to be weighted by any trade-off: sorted once for all of them.

    Attributes
    ----------
    clean
        Confidences without a perturbation and outcomes; None when they are not known.
    worst
        Per radius: places and outcomes of the certified samples.
    share
        Per radius, its share of the certified Brier score; they add up to 1. Radii where nothing is certified have 0.
    """

    clean: Part | None
    worst: tuple[Part, ...]
    share: Floats

    @classmethod
    def of(cls, samples: CertifiedSamples, radius_weight: Sequence[float] | None = None) -> Parts:
        """Parts of samples; ``radius_weight`` are weights of the radii, equal when not given."""
        count = len(samples.radii)
        share = _radius_weights(radius_weight, count)
        worst: list[Part] = []
        for k in range(count):
            kept = samples.certified[:, k]
            place = np.where(samples.correct == 1, samples.lower[:, k], samples.upper[:, k])
            worst.append((place, samples.correct) if kept.all() else (place[kept], samples.correct[kept]))
            share[k] = share[k] if kept.any() else 0.0
        total = share.sum()
        clean = None if samples.confidence is None else (samples.confidence, samples.correct)
        return cls(clean, tuple(worst), share / total if total > 0 else share)

    def at(self, tradeoff: float) -> Points:
        """The weighted points of a trade-off λ."""
        if tradeoff < 1 and self.clean is None:
            raise InputError(
                f"confidence is missing: with tradeoff {tradeoff:g} the map is also fitted to the confidences without "
                "a perturbation; pass them, or tradeoff=1"
            )
        if tradeoff > 0 and not self.share.any():
            raise InputError(
                "no sample to fit to is certified at a radius that counts; pass a smaller radius, or tradeoff=0"
            )
        if tradeoff == 0:
            return self._clean
        return self._worst if tradeoff == 1 else self._together.at(tradeoff)

    @cached_property
    def _clean(self) -> Points:
        assert self.clean is not None
        return _points(*self.clean)

    @cached_property
    def _worst(self) -> Points:
        found = [(_points(x, c), float(v)) for (x, c), v in zip(self.worst, self.share, strict=True) if v > 0]
        mixed, weight = found[0]
        for points, v in found[1:]:
            weight += v
            mixed = _Pair(mixed, points).at(v / weight)
        return mixed

    @cached_property
    def _together(self) -> _Pair:
        return _Pair(self._clean, self._worst)


class _Pair:
    """Two sets of points on the places of both."""

    def __init__(self, first: Points, second: Points) -> None:
        x = np.concatenate([first.x, second.x])
        x.sort()
        self.x: Floats = x[np.concatenate(([True], x[1:] != x[:-1]))]
        self.first = _spread(first, self.x)
        self.second = _spread(second, self.x)

    def at(self, share: float) -> Points:
        """Their mixture, with this share of the second."""
        (a, b), (c, d) = self.first, self.second
        right, wrong = (1 - share) * a + share * c, (1 - share) * b + share * d
        some = right + wrong > 0  # a share may be too small to leave anything
        return Points(self.x, right, wrong) if some.all() else Points(self.x[some], right[some], wrong[some])


def _spread(points: Points, x: Floats) -> tuple[Floats, Floats]:
    """Weights on more places."""
    right, wrong = np.zeros(x.size), np.zeros(x.size)
    place = np.searchsorted(x, points.x)
    right[place], wrong[place] = points.right, points.wrong
    return right, wrong


def _points(places: Floats, correct: NDArray[np.uint8]) -> Points:
    """Points of samples that weigh the same. Their numbers are counted, so the order of samples changes no bit."""
    x, n, right = counted(places, correct)
    return Points(x, right / places.size, (n - right) / places.size)


def _radius_weights(value: Sequence[float] | None, count: int) -> Floats:
    if value is None:
        return np.ones(count)
    weights = np.atleast_1d(np.array(to_numpy(value, "radius_weight"), np.float64))
    if weights.ndim != 1:
        raise InputError(f"radius_weight has shape {weights.shape}; pass one weight per radius")
    if weights.size != count:
        raise InputError(
            f"lengths differ: radii has {count}, radius_weight has {weights.size}; pass one entry per radius"
        )
    bad = ~((weights >= 0) & (weights <= 1e100))
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"radius_weight[{index}] is {weights[index]:g}; pass ordinary numbers of at least 0")
    if not weights.max() >= 1e-100:
        raise InputError("radius_weight is 0 for every radius; at least one must be positive")
    return weights


def radius_shares(samples: CertifiedSamples, radius_weight: Sequence[float] | None = None) -> tuple[float, ...]:
    """Per radius, its share of the certified Brier score of samples; 0 where nothing is certified.

    Parameters
    ----------
    samples
        Certified.
    radius_weight
        Weights of the radii, equal when not given.
    """
    return tuple(float(share) for share in Parts.of(samples, radius_weight).share)


def check_tradeoff(tradeoff: Any) -> float:
    """A number from 0 to 1."""
    try:
        value = float(tradeoff)
    except (TypeError, ValueError, OverflowError):
        value = -1.0
    if isinstance(tradeoff, bool) or not 0 <= value <= 1:
        raise InputError(f"tradeoff is {tradeoff!r}; pass a number from 0 (clean) to 1 (certified)")
    return value
