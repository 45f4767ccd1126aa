"""What is certified of the confidences of runs that are compared, at each of several radii."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._base.json import PlainValues
from certcal.smoothing import Counts
from certcal.smoothing.robustness.accuracy import check_at

if TYPE_CHECKING:
    from certcal.worst_case import CertifiedSummary

# Multiples of the smallest noise level at which confidences are certified unasked: a radius means the same for all.
_MULTIPLES = (0.0, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class CertifiedCalibration(PlainValues, kind="certified calibration"):
    """The exact worst case of calibration of one run under perturbations up to each of several radii.

    What is claimed of the samples holds where their certificates do; each may fail with probability ``alpha``, as with
    :func:`certcal.smoothing.certificates`.
    """

    family: str
    sigma: float
    """Which run."""
    radii: tuple[float, ...]
    """Smallest first."""
    summaries: tuple[CertifiedSummary, ...]
    """Per radius: exact calibration error over the certified samples (None where there are none) and over all, Brier
    score, skill and more."""
    alpha: float
    """Of one sample's certificate."""


def certified_calibration(
    sources: Sequence[tuple[str, Any]], radii: Sequence[float] | None, alpha: float
) -> tuple[CertifiedCalibration, ...]:
    """Certify the confidences of runs, each with the name of its family; logs have none.

    By default at 0 and multiples of the smallest σ.
    """
    from certcal.smoothing import certificates

    runs = [(name, source) for name, source in sources if isinstance(source, Counts)]
    if not runs:
        return ()
    smallest = min(counts.sigma for _, counts in runs)
    wanted = [float(f"{smallest * multiple:.6g}") for multiple in _MULTIPLES] if radii is None else np.atleast_1d(radii)
    where = tuple(check_at(wanted).tolist()) if len(wanted) else ()
    return tuple(
        CertifiedCalibration(
            name,
            counts.sigma,
            where,
            tuple(certificates(counts, radius, alpha).summary() for radius in where),
            alpha,
        )
        for name, counts in runs
        if where
    )
