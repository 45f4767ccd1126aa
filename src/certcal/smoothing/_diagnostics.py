"""What certificates look like together: how wide intervals are, and which samples add most to a worst case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import whole_number
from certcal._base.json import PlainValues
from certcal.claims import round_outward
from certcal.smoothing._certificates import Certificates
from certcal.smoothing._counts import ConfidenceEstimates, Counts

if TYPE_CHECKING:
    from certcal.worst_case import WorstCase

MOST_STEPS = 200
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Widths:
    """Widths of the certified samples' intervals, of one kind at one radius.

    Examples
    --------
    >>> from certcal.smoothing import Counts, certificates
    >>> x = np.random.default_rng(0).beta(50, 0.5, (3, 4000))
    >>> counts = Counts.from_confidences(x, np.linspace(0.01, 0.99, 99), votes=[4000] * 3, sigma=0.5)
    >>> found = widths_of(certificates(counts, 0.25))
    >>> found.n, found.shares.round(4).tolist()
    (3, [0.3333, 0.6667, 1.0])
    """

    kind: str
    radius: float
    """Of the certificates."""
    n: int
    """Certified samples."""
    mean: float
    """Of the widths."""
    quantiles: tuple[float, ...]
    """The 5 %, 25 %, 50 %, 75 % and 95 % quantiles: the smallest width that such a share does not exceed."""
    values: NDArray[np.float64]
    shares: NDArray[np.float64]
    """Steps of the distribution, at most 200: the share of the samples whose width is at most each value. Where there
    are more, they are thinned evenly; the shares that are kept are exact."""

    @property
    def median(self) -> float:
        """The middle one of the quantiles."""
        return self.quantiles[2]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "interval widths",
            "kind": self.kind,
            "radius": self.radius,
            "n": self.n,
            "mean": self.mean,
            "quantiles": {f"{share:g}": value for share, value in zip(QUANTILES, self.quantiles, strict=True)},
            "values": self.values.tolist(),
            "shares": self.shares.tolist(),
        }


def widths_of(certificates: Certificates) -> Widths | None:
    """Widths of the certified samples' intervals; None when there are none."""
    mean = certificates.mean_width
    if mean is None:
        return None
    widths = np.sort((certificates.upper - certificates.lower)[certificates.certified])
    n = widths.size
    ranks = np.maximum(np.ceil(np.array(QUANTILES) * n - 1e-9).astype(np.int64), 1)
    values, last = np.unique(widths[::-1], return_index=True)
    shares = (n - last) / n
    if values.size > MOST_STEPS:
        kept = np.unique(np.linspace(0, values.size - 1, MOST_STEPS).round().astype(np.int64))
        values, shares = values[kept], shares[kept]
    quantiles = tuple(float(width) for width in widths[ranks - 1])
    return Widths(certificates.confidence, certificates.radius, n, mean, quantiles, values, shares)


@dataclass(frozen=True)
class InfluentialSample(PlainValues, kind="influential sample"):
    """A sample, its interval, and what it adds to the worst calibration error."""

    index: int
    """Position in the data set."""
    label: int
    predicted: int
    """True class, and the class that the smoothed classifier predicts."""
    lower: float
    upper: float
    """Interval of its confidence."""
    confidence: float
    """Estimate of its confidence without a perturbation."""
    witness: float
    """Its confidence in the worst case."""
    contribution: float
    """What it adds; those of all samples add up to the worst case."""
    votes: int
    draws: int
    """Draws that predicted the class, and all of them."""
    radius: float
    """Up to which its prediction is certified."""

    @property
    def interval_text(self) -> str:
        """The interval as printed: rounded outward."""
        return f"{round_outward(self.lower, 'lower')} to {round_outward(self.upper, 'upper')}"


@names_wrong_types
def influential_samples(
    counts: Counts, certificates: Certificates, worst: WorstCase | None, clean: ConfidenceEstimates, k: int
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
            float(certificates.lower[i]),
            float(certificates.upper[i]),
            float(clean.values[i]),
            float(worst.witness[i]),
            float(added[i]),
            int(counts.votes[i]),
            int(counts.draws[i]),
            float(certificates.radii[i]),
        )
        for i in order
        if added[i] > 0
    )
