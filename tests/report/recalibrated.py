"""Made-up certified samples to recalibrate."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from certcal.calibrators import CertifiedSamples
from certcal.smoothing import Counts


def interval_samples(n: int = 400, radii: Sequence[float] = (0.25, 0.5), *, clean: bool = True) -> CertifiedSamples:
    """Overconfident samples whose intervals widen with the radius, while fewer are certified."""
    rng = np.random.default_rng(6)
    z = np.clip(rng.beta(2.5, 1, n), 0.05, 1)
    correct = (rng.random(n) < z**1.7).astype(int)
    columns = np.asarray(radii, float)
    width = 0.3 * columns + 0.02
    lower, upper = np.clip(z[:, None] - width, 0, 1), np.clip(z[:, None] + width, 0, 1)
    certified = z[:, None] > 0.2 + columns / 5
    return CertifiedSamples.from_intervals(
        lower, upper, correct, z if clean else None, certified=certified, radii=radii, source="intervals.csv"
    )


def run_samples(n: int = 80, radii: Sequence[float] = (0.125, 0.25)) -> CertifiedSamples:
    """Samples of a smoothed classifier, with certificates that may fail."""
    rng = np.random.default_rng(7)
    mean = rng.beta(9, 1.5, n)
    draws = rng.beta(12 * mean[:, None], 12 * (1 - mean[:, None]) + 0.02, (n, 400))
    counts = Counts.from_confidences(
        draws,
        np.linspace(0.01, 0.99, 99),
        votes=(draws > 0.4).sum(axis=1),
        sigma=0.5,
        correct=rng.random(n) < mean,
    )
    return replace(CertifiedSamples.from_counts(counts, radii), source="a run", fingerprint="ab" * 32)
