"""A run at a glance: what the draws say before anything is certified."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from certcal.smoothing._counts import Counts


@dataclass(frozen=True)
class Overview:
    """Shares over the samples of a run. Estimates, not guarantees.

    Attributes
    ----------
    correct
        Samples whose chosen class is the label.
    abstained
        Samples whose votes do not prove at level ``alpha`` that the chosen class is the likeliest one.
    votes
        Draws that voted for the chosen class, averaged over samples.
    invalid
        Draws, in all, for which the model returned no prediction; they count against the class.
    alpha
        The level of abstention.
    """

    correct: float
    abstained: float
    votes: float
    invalid: int
    alpha: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def overview(counts: Counts, alpha: float = 0.001) -> Overview:
    """What a run's counts say at a glance."""
    from certcal.smoothing.robustness import vote_radii

    radii = vote_radii(counts.votes, counts.draws, counts.sigma, alpha)
    return Overview(
        correct=float(np.count_nonzero(counts.predicted == counts.label)) / len(counts),
        abstained=float(np.mean(np.isnan(radii))),
        votes=float(np.mean(counts.votes / counts.draws)),
        invalid=int(counts.invalid.sum()),
        alpha=alpha,
    )
