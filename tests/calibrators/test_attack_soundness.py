"""What the strongest attacks reach lies inside the mapped certificates.

The classifier is one whose smoothed confidence is known: f(x) = Φ((w·x + b)/s) for one of two classes becomes
Φ((w·x + b)/√(s² + σ²‖w‖²)) under Gaussian noise, and the strongest perturbation of norm R goes along w. So attacks are
the best there are and are judged without an error, while the certificates come from draws like any others. A linear
classifier is also the one for which certificates of smoothing are tightest.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import norm

from certcal import recalibrate
from certcal.calibrators import CertifiedSamples, certified_path
from certcal.metrics import ece, top_label_brier_score
from certcal.smoothing import Counts

SIGMA, SCALE, STEEPNESS, DRAWS = 0.5, 0.3, 1.4, 2000
RADII = (0.1, 0.3)


@dataclass(frozen=True)
class Arena:
    """Signed scores w·x + b of the predicted class, and what was certified from draws."""

    score: np.ndarray
    samples: CertifiedSamples

    def smoothed(self, moved):
        """Exact confidence in the predicted class after moving by so much along w, in units of the input."""
        return norm.cdf((self.score + STEEPNESS * moved) / np.hypot(SCALE, SIGMA * STEEPNESS))


@pytest.fixture(scope="module")
def arena() -> Arena:
    rng = np.random.default_rng(11)
    n = 300
    side = rng.normal(0, 1.2, n)
    label = (side + rng.normal(0, 0.8, n) > 0).astype(np.int64)
    predicted = (side > 0).astype(np.int64)
    score = np.abs(side)
    x = norm.cdf((score[:, None] + SIGMA * STEEPNESS * rng.standard_normal((n, DRAWS))) / SCALE)
    counts = Counts.from_confidences(
        x, np.linspace(0.01, 0.99, 99), votes=(x > 0.5).sum(axis=1), sigma=SIGMA, correct=predicted == label
    )
    return Arena(score, CertifiedSamples.from_counts(counts, RADII, alpha=0.001))


def attacks(arena, samples, radius):
    """Confidences that perturbations up to the radius reach: all down, all up, the worse way for each, anywhere."""
    rng = np.random.default_rng(1)
    down, up = arena.smoothed(-radius)[samples.index], arena.smoothed(radius)[samples.index]
    worse = np.where(samples.correct == 1, down, up)
    mixed = [np.where(rng.random(len(samples)) < share, down, up) for share in (0.2, 0.5, 0.8)]
    between = [arena.smoothed(radius * rng.uniform(-1, 1, len(arena.score)))[samples.index] for _ in range(20)]
    return [down, up, worse, *mixed, *between]


@pytest.mark.parametrize("method", ["isotonic", "temperature", "beta"])
def test_no_attack_leaves_the_mapped_intervals_or_exceeds_the_certified_errors(arena, method):
    found = recalibrate(arena.samples, method=method, tradeoff=0.5, bins=10)
    for line in found.lines:
        mapped = found.before.mapped(line.calibrator)
        for k, radius in enumerate(RADII):
            kept = mapped.certified[:, k]
            assert 40 < np.count_nonzero(kept) <= 150
            summary, claim = line.at[k].summary, line.at[k].claim
            for reached in attacks(arena, found.before, radius):
                z = reached if line.calibrator is None else line.calibrator.transform(reached)
                assert (mapped.lower[kept, k] <= z[kept]).all()
                assert (z[kept] <= mapped.upper[kept, k]).all()
                error = ece(z[kept], mapped.correct[kept], bins=10)
                assert error <= summary["calibration_error"].worst.value + 1e-12
                assert error <= claim.value
                brier = top_label_brier_score(z[kept], mapped.correct[kept])
                assert brier <= summary["brier_score"].worst.value + 1e-12


def test_the_attack_would_refute_mapped_intervals_of_a_smaller_radius(arena):
    """What the test above would see if a map lost a part of the certificate."""
    fit, rest = arena.samples.split(0.5, 0)
    for calibrator in certified_path(fit, [0.5], method="beta"):
        small = rest.mapped(calibrator)
        reached = calibrator.transform(arena.smoothed(-RADII[1])[rest.index])
        kept = rest.certified[:, 1]
        assert np.count_nonzero(reached[kept] < small.lower[kept, 0]) > 0.5 * np.count_nonzero(kept)


def test_the_attack_comes_near_to_the_certified_brier_score(arena):
    """At least a third of the way that certificates allow; the rest is left to the noise of the draws."""
    found = recalibrate(arena.samples, method="beta", tradeoff=0, tradeoffs=[])
    kept = found.before.certified[:, 1]
    worse = attacks(arena, found.before, RADII[1])[2]
    clean, attacked = (
        top_label_brier_score(found.map.transform(z)[kept], found.before.correct[kept])
        for z in (arena.smoothed(0.0)[found.before.index], worse)
    )
    certified = found.chosen.at[1].summary["brier_score"].worst.value
    assert clean < attacked <= certified
    assert attacked - clean > (certified - clean) / 3
