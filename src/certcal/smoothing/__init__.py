"""Randomised smoothing: noise, the run on disk, certificates, sequential decisions, robustness."""

from __future__ import annotations

from certcal.smoothing import robustness
from certcal.smoothing._certificates import ACCOUNTINGS, IF_ALL_HOLD, Certificates, Failures, certificates
from certcal.smoothing._counts import ConfidenceEstimates, Counts, Overview, default_thresholds, overview
from certcal.smoothing._decisions import Decisions, decide, read_decisions
from certcal.smoothing._diagnostics import InfluentialSample, Widths, influential_samples
from certcal.smoothing._kinds import (
    CONFIDENCES,
    DEFAULT_KIND,
    KINDS,
    CertificateKind,
    CertificateName,
    holds_at_all_radii,
    kind_explanation,
    kind_name,
    pools_noise,
)
from certcal.smoothing._manifest import Manifest
from certcal.smoothing._pooled import pooled_claim
from certcal.smoothing._run import Run, RunState, check_inputs, open_run, usable_counts
from certcal.smoothing._sample import sample
from certcal.smoothing._sampler import Sampler, SamplingError, Selection, Tally

__all__ = [
    "ACCOUNTINGS",
    "CONFIDENCES",
    "DEFAULT_KIND",
    "IF_ALL_HOLD",
    "KINDS",
    "CertificateKind",
    "CertificateName",
    "Certificates",
    "ConfidenceEstimates",
    "Counts",
    "Decisions",
    "Failures",
    "InfluentialSample",
    "Manifest",
    "Overview",
    "Run",
    "RunState",
    "Sampler",
    "SamplingError",
    "Selection",
    "Tally",
    "Widths",
    "certificates",
    "check_inputs",
    "decide",
    "default_thresholds",
    "holds_at_all_radii",
    "influential_samples",
    "kind_explanation",
    "kind_name",
    "open_run",
    "overview",
    "pooled_claim",
    "pools_noise",
    "read_decisions",
    "robustness",
    "sample",
    "usable_counts",
]
