"""Randomised smoothing: noise, the run on disk, certificates, sequential decisions, robustness."""

from __future__ import annotations

from certcal.smoothing import robustness
from certcal.smoothing._certificates import (
    CONFIDENCES,
    CertificateKind,
    Certificates,
    certificates,
    holds_at_all_radii,
    kind_name,
)
from certcal.smoothing._counts import ConfidenceEstimates, Counts
from certcal.smoothing._decide import decide
from certcal.smoothing._decisions import Decisions, read_decisions
from certcal.smoothing._failures import Failures
from certcal.smoothing._grid import default_thresholds
from certcal.smoothing._influence import InfluentialSample, influential_samples
from certcal.smoothing._logs import CertificationLog, LogWarning, read_log
from certcal.smoothing._manifest import Manifest
from certcal.smoothing._run import Run, State, open_run
from certcal.smoothing._sample import sample
from certcal.smoothing._sampler import Sampler, SamplingError, Selection, Tally
from certcal.smoothing._usable import check_inputs, usable_counts
from certcal.smoothing._widths import Widths

__all__ = [
    "CONFIDENCES",
    "CertificateKind",
    "Certificates",
    "CertificationLog",
    "ConfidenceEstimates",
    "Counts",
    "Decisions",
    "Failures",
    "InfluentialSample",
    "LogWarning",
    "Manifest",
    "Run",
    "Sampler",
    "SamplingError",
    "Selection",
    "State",
    "Tally",
    "Widths",
    "certificates",
    "check_inputs",
    "decide",
    "default_thresholds",
    "holds_at_all_radii",
    "influential_samples",
    "kind_name",
    "open_run",
    "read_decisions",
    "read_log",
    "robustness",
    "sample",
    "usable_counts",
]
