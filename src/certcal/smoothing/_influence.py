"""The samples that add most to a worst calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._checks import whole_number
from certcal.claims import round_outward
from certcal.smoothing._certificates import Certificates
from certcal.smoothing._counts import ConfidenceEstimates, Counts

if TYPE_CHECKING:
    from certcal.worst_case import WorstCase


@dataclass(frozen=True)
class InfluentialSample:
    """A sample, its interval, and what it adds to the worst calibration error.

    Attributes
    ----------
    index
        Position in the data set.
    label, predicted
        True class, and the class that the smoothed classifier predicts.
    lower, upper
        Interval of its confidence.
    confidence
        Estimate of its confidence without a perturbation.
    witness
        Its confidence in the worst case.
    contribution
        What it adds; those of all samples add up to the worst case.
    votes, draws
        Draws that predicted the class, and all of them.
    radius
        Up to which its prediction is certified.
    """

    index: int
    label: int
    predicted: int
    lower: float
    upper: float
    confidence: float
    witness: float
    contribution: float
    votes: int
    draws: int
    radius: float

    @property
    def interval_text(self) -> str:
        """The interval as printed: rounded outward."""
        return f"{round_outward(self.lower, 'lower')} to {round_outward(self.upper, 'upper')}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "influential sample",
            "index": self.index,
            "label": self.label,
            "predicted": self.predicted,
            "lower": self.lower,
            "upper": self.upper,
            "confidence": self.confidence,
            "witness": self.witness,
            "contribution": self.contribution,
            "votes": self.votes,
            "draws": self.draws,
            "radius": self.radius,
        }


def influential_samples(
    counts: Counts, found: Certificates, worst: WorstCase | None, clean: ConfidenceEstimates, k: int
) -> tuple[InfluentialSample, ...]:
    """Samples with the largest contributions, most first; equal ones in their order."""
    most = whole_number(k, 1, 2**31, "k", "pass how many samples to name")
    if worst is None:
        return ()
    added = worst.contributions
    order = np.argsort(-added, kind="stable")[:most]
    return tuple(
        InfluentialSample(
            int(counts.index[i]),
            int(counts.label[i]),
            int(counts.predicted[i]),
            float(found.lower[i]),
            float(found.upper[i]),
            float(clean.values[i]),
            float(worst.witness[i]),
            float(added[i]),
            int(counts.votes[i]),
            int(counts.draws[i]),
            float(found.radii[i]),
        )
        for i in order
        if added[i] > 0
    )
