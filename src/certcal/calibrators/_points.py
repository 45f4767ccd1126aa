"""Where a monotone map is judged: clean confidences, and the ends of intervals that cost most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, same_length, to_numpy
from certcal.calibrators._samples import CertifiedSamples

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Points:
    """Places, outcomes and weights whose weighted squared error is (1 - λ)·clean + λ·certified Brier score of a map.

    For a monotone map g and a sample with interval [l, u], the largest (c - g(z))² inside is (1 - g(l))² when c = 1
    and g(u)² when c = 0: one place per sample, whatever g is. So (1 - λ) times the clean Brier score plus λ times the
    certified one is Σ w (c - g(x))² over the clean confidences, each of weight (1 - λ)/N, and these places, each of
    weight λ v_r / N_r, with N_r samples certified at radius r and v_r the radius's share.

    Attributes
    ----------
    x, c, w
        Places, outcomes, weights that add up to 1.
    """

    x: Floats
    c: Floats
    w: Floats

    def score(self, values: Floats) -> float:
        """Σ w (c - g)², for a map's values at the places."""
        return float(np.sum(self.w * (self.c - values) ** 2))


@dataclass(frozen=True, eq=False)
class Parts:
    """Clean and worst-case places of samples, ready to be weighted by any trade-off.

    Attributes
    ----------
    clean
        Confidences without a perturbation and outcomes; None when they are not known.
    worst
        Per radius: places and outcomes of the certified samples.
    share
        Per radius, its share of the certified Brier score; they add up to 1. Radii where nothing is certified have 0.
    """

    clean: tuple[Floats, Floats] | None
    worst: tuple[tuple[Floats, Floats], ...]
    share: Floats

    @classmethod
    def of(cls, samples: CertifiedSamples, radius_weight: Sequence[float] | None = None) -> Parts:
        """Parts of samples; ``radius_weight`` are weights of the radii, equal when not given."""
        count = len(samples.radii)
        share = np.ones(count)
        if radius_weight is not None:
            share = np.atleast_1d(np.asarray(to_numpy(radius_weight, "radius_weight"), np.float64))
            same_length(radii=count, radius_weight=share.size)
            if not (np.isfinite(share).all() and (share >= 0).all() and share.sum() > 0):
                raise InputError(f"radius_weight is {share.tolist()}; pass weights of at least 0, not all 0")
        correct = samples.correct.astype(np.float64)
        worst: list[tuple[Floats, Floats]] = []
        for k in range(count):
            kept = samples.certified[:, k]
            place = np.where(samples.correct == 1, samples.lower[:, k], samples.upper[:, k])
            worst.append((place[kept], correct[kept]))
            share[k] = share[k] if kept.any() else 0.0
        total = share.sum()
        clean = None if samples.confidence is None else (samples.confidence, correct)
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
                "no sample is certified at these radii, so there is nothing to fit the map to; pass a smaller radius, "
                "or tradeoff=0"
            )
        parts: list[tuple[Floats, Floats, float]] = []
        if tradeoff < 1 and self.clean is not None:
            parts.append((*self.clean, (1 - tradeoff) / self.clean[0].size))
        if tradeoff > 0:
            parts += [
                (x, c, tradeoff * float(v) / x.size)
                for (x, c), v in zip(self.worst, self.share, strict=True)
                if v > 0 and x.size
            ]
        return Points(
            np.concatenate([x for x, _, _ in parts]),
            np.concatenate([c for _, c, _ in parts]),
            np.concatenate([np.full(x.size, w) for x, _, w in parts]),
        )


def check_tradeoff(tradeoff: Any) -> float:
    """A number from 0 to 1."""
    try:
        value = float(tradeoff)
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"tradeoff is {tradeoff!r}; pass a number from 0 (clean) to 1 (certified)")
    return value
