"""How certcal is asked for each metric; the same shape as the peers."""

from __future__ import annotations

from types import SimpleNamespace

from cases import OURS
from registry import Run, batched, peer

from certcal import metrics


@peer("ece", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.ece(d.confidence, d.correct, bins=d.bins)


@peer("stateful_ece", OURS)
def _(d: SimpleNamespace) -> Run:
    from certcal.torchmetrics import ECE

    return batched(ECE, d, bins=d.bins, inputs="confidence")


@peer("weighted_ece", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.ece(d.confidence, d.correct, bins=d.bins, sample_weight=d.weight)


@peer("equal_mass_ece", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.equal_mass_ece(d.confidence, d.correct, bins=d.bins)


@peer("ks_error", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.ks_error(d.confidence, d.correct)


@peer("smooth_ece", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.smooth_ece(d.confidence, d.correct)


@peer("mmce", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.mmce(d.confidence, d.correct)


@peer("weighted_mmce", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.mmce(d.confidence, d.correct, sample_weight=d.weight)


@peer("kde_ece", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.kde_ece(d.confidence, d.correct)


@peer("classwise_ece", OURS)
def _(d: SimpleNamespace) -> Run:
    return lambda: metrics.classwise_ece(d.probabilities, d.labels, bins=d.bins)
