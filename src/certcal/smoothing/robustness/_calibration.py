"""What smoothing certifies of the confidences of a run, at several radii: beside what it certifies of predictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from certcal.smoothing.robustness._accuracy import check_at

if TYPE_CHECKING:
    from certcal.smoothing._counts import Counts
    from certcal.worst_case import CertifiedSummary

# Multiples of the smallest noise level: a radius means the same for every run.
MULTIPLES = (0.0, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class CertifiedCalibration:
    """The exact worst case of calibration of one run under perturbations up to each of several radii.

    What is claimed of the samples holds where their certificates do; each may fail with probability ``alpha``, as with
    :func:`certcal.smoothing.certificates`.

    Attributes
    ----------
    family, sigma
        Which run.
    radii
        Smallest first.
    summaries
        Per radius: exact calibration error over the certified samples (None where there are none) and over all, Brier
        score, skill and more.
    alpha
        Of one sample's certificate.
    """

    family: str
    sigma: float
    radii: tuple[float, ...]
    summaries: tuple[CertifiedSummary, ...]
    alpha: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "certified calibration",
            "family": self.family,
            "sigma": self.sigma,
            "alpha": self.alpha,
            "radii": list(self.radii),
            "summaries": [each.to_dict() for each in self.summaries],
        }


def certified_calibration(family: str, counts: Counts, radii: Iterable[float], alpha: float) -> CertifiedCalibration:
    """Certify a run's confidences at each radius.

    Parameters
    ----------
    family
        Its name.
    counts
        Of the run.
    radii
        Of the perturbations.
    alpha
        Probability with which one sample's certificate may fail.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.smoothing import Counts
    >>> x = np.random.default_rng(0).beta(50, 0.5, (2, 10_000))
    >>> counts = Counts.from_confidences(x, np.linspace(0.01, 0.99, 99), votes=[10_000, 5_020], sigma=0.5)
    >>> found = certified_calibration("gaussian", counts, [0.0, 0.5], 0.001)
    >>> [each.n_certified for each in found.summaries]
    [1, 1]
    """
    from certcal.smoothing._certificates import certificates

    where = tuple(check_at(list(radii)).tolist())
    summaries = tuple(certificates(counts, radius, alpha).summary() for radius in where)
    return CertifiedCalibration(family, counts.sigma, where, summaries, alpha)


def default_radii(sigmas: Iterable[float]) -> tuple[float, ...]:
    """Zero and multiples of the smallest noise level.

    Examples
    --------
    >>> default_radii([0.5, 0.25])
    (0.0, 0.25, 0.5)
    """
    smallest = min(sigmas)
    return tuple(float(f"{smallest * multiple:.6g}") for multiple in MULTIPLES)
