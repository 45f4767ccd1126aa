"""What a map does to the certified confidences of ``certcal demo``, on images that it was not fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certcal.calibrators import CertifiedSamples
from certcal.report.numbers import number
from certcal.smoothing import Review
from certcal.verbs.recalibrate import recalibrate

_FEW = 40  # certified images; with fewer, half of them would say little


@dataclass(frozen=True, eq=False)
class DemoRecalibration:
    """A map of the certified confidences, at the radius of the headline."""

    found: Any

    @property
    def sentence(self) -> str:
        """What the map does, and what it costs."""
        before, after = self.found.identity, self.found.chosen
        first, last = before.at[-1], after.at[-1]
        worst = [[at.summary[name].worst for at in (first, last)] for name in ("brier_score", "calibration_error")]
        brier, error = (["-" if each is None else each.text for each in pair] for pair in worst)
        clean = [number(line.clean["brier_score"].value) for line in (before, after)]
        return (
            f"A map fitted to half of the images keeps the certificates. On the other half's "
            f"{last.summary.n_certified:,} certified images it takes the Brier score that by their certificates no "
            f"attack within {last.radius} exceeds from {brier[0]} to {brier[1]}, and the ECE from {error[0]} to "
            f"{error[1]}; without an attack the Brier score goes from {clean[0]} to {clean[1]}, an estimate."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self.found.to_dict()


def demo_recalibration(review: Review, settings: Mapping[str, Any]) -> DemoRecalibration | None:
    """Fit the map that trades the worst case off against no attack evenly; None when too few images are certified.

    Parameters
    ----------
    review
        What is certified.
    settings
        Bins, closed and delta.
    """
    one = review.at().certificates
    if one.n_certified < _FEW:
        return None
    samples = CertifiedSamples.from_counts(
        review.counts, [one.radius], alpha=one.alpha, confidence=one.confidence, familywise=one.familywise
    )
    return DemoRecalibration(recalibrate(samples, tradeoffs=(), **settings))
