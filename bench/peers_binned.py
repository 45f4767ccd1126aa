"""Binned and classwise metrics, as the peers are asked for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from registry import Run, batched, peer, tensors


def touch(*_: Any) -> None:
    """No value: the yardstick reads the arrays once and measures nothing."""


# --- ECE with equal-width bins


@peer("ece", "numpy", "sum of both arrays; not a calibration error")
def _(d: SimpleNamespace) -> Run:
    return lambda: touch(d.confidence.sum(), d.correct.sum())


@peer("ece", "relplot")
def _(d: SimpleNamespace) -> Run:
    from relplot import metrics

    y = d.correct.astype(d.confidence.dtype)
    return lambda: metrics.binnedECE(d.confidence, y, nbins=d.bins)


@peer("ece", "probcal")
def _(d: SimpleNamespace) -> Run:
    from probcal import metrics

    y = d.correct.astype(np.float64)
    return lambda: metrics.ece(y, d.confidence, n_bins=d.bins, strategy="width")


@peer("ece", "torchmetrics")
def _(d: SimpleNamespace) -> Run:
    from torchmetrics.functional.classification import binary_calibration_error

    z, y = tensors(d)
    return lambda: float(binary_calibration_error(z, y, n_bins=d.bins, norm="l1"))


@peer("ece", "netcal")
def _(d: SimpleNamespace) -> Run:
    from netcal.metrics import ECE

    y = d.correct.astype(np.int64)
    return lambda: float(ECE(bins=d.bins).measure(d.confidence, y))


@peer("ece", "calibstats")
def _(d: SimpleNamespace) -> Run:
    import calibstats

    return lambda: calibstats.ece(d.confidence, d.correct, n_bins=d.bins)


@peer("ece", "MAPIE", "num_bins=16 makes 15 bins, closed on the right")
def _(d: SimpleNamespace) -> Run:
    from mapie.metrics.calibration import expected_calibration_error

    y = d.correct.astype(np.int64)
    return lambda: expected_calibration_error(y, d.confidence, num_bins=d.bins + 1, split_strategy="uniform")


@peer("ece", "pycalib")
def _(d: SimpleNamespace) -> Run:
    from pycalib.metrics import binary_ECE

    y = d.correct.astype(np.float64)
    return lambda: float(binary_ECE(y, d.confidence, bins=d.bins))


@peer("ece", "calzone-tool")
def _(d: SimpleNamespace) -> Run:
    from calzone.metrics import calculate_ece_mce
    from calzone.utils import reliability_diagram

    rows, y = np.stack((1 - d.confidence, d.confidence), axis=1), d.correct.astype(np.int64)

    def run() -> float:
        accuracy, confidence, _, count = reliability_diagram(y, rows, num_bins=d.bins, class_to_plot=1)
        return float(calculate_ece_mce(accuracy, confidence, count)[0])

    return run


@peer("stateful_ece", "torchmetrics")
def _(d: SimpleNamespace) -> Run:
    from torchmetrics.classification import BinaryCalibrationError

    return batched(BinaryCalibrationError, d, n_bins=d.bins, norm="l1")


@peer("weighted_ece", "numpy", "sum of the three arrays; not a calibration error")
def _(d: SimpleNamespace) -> Run:
    return lambda: touch(d.confidence.sum(), d.correct.sum(), d.weight.sum())


@peer("weighted_ece", "probcal")
def _(d: SimpleNamespace) -> Run:
    from probcal import metrics

    y = d.correct.astype(np.float64)
    return lambda: metrics.ece(y, d.confidence, n_bins=d.bins, strategy="width", sample_weight=d.weight)


# --- Equal-mass bins


@peer("equal_mass_ece", "probcal", "edges interpolated between samples")
def _(d: SimpleNamespace) -> Run:
    from probcal import metrics

    y = d.correct.astype(np.float64)
    return lambda: metrics.ece(y, d.confidence, n_bins=d.bins, strategy="mass")


@peer("equal_mass_ece", "scikit-learn", "mean gap of calibration_curve, which has no counts")
def _(d: SimpleNamespace) -> Run:
    from sklearn.calibration import calibration_curve

    def run() -> float:
        accuracy, confidence = calibration_curve(d.correct, d.confidence, n_bins=d.bins, strategy="quantile")
        return float(np.abs(accuracy - confidence).mean())

    return run


@peer("equal_mass_ece", "netcal")
def _(d: SimpleNamespace) -> Run:
    from netcal.metrics import ECE

    y = d.correct.astype(np.int64)
    return lambda: float(ECE(bins=d.bins, equal_intervals=False).measure(d.confidence, y))


@peer("equal_mass_ece", "calibstats", "edges interpolated between samples")
def _(d: SimpleNamespace) -> Run:
    import calibstats

    return lambda: calibstats.ace(d.confidence, d.correct, n_bins=d.bins)


@peer("equal_mass_ece", "MAPIE", "num_bins=16 makes 15 bins; edges interpolated")
def _(d: SimpleNamespace) -> Run:
    from mapie.metrics.calibration import expected_calibration_error

    y = d.correct.astype(np.int64)
    return lambda: expected_calibration_error(y, d.confidence, num_bins=d.bins + 1, split_strategy="quantile")


# --- Classwise


@peer("classwise_ece", "numpy", "sum of the matrix; not a calibration error")
def _(d: SimpleNamespace) -> Run:
    return lambda: touch(d.probabilities.sum())


@peer("classwise_ece", "MAPIE", "num_bins=16 makes 15 bins, closed on the right; an extra one for 0")
def _(d: SimpleNamespace) -> Run:
    from mapie.metrics.calibration import expected_calibration_error

    options = {"num_bins": d.bins + 1, "split_strategy": "uniform", "classwise": True, "class_labels": d.labels}
    return lambda: expected_calibration_error(d.labels, d.probabilities, **options)


@peer("classwise_ece", "pycalib")
def _(d: SimpleNamespace) -> Run:
    from pycalib.metrics import classwise_ECE

    rows = np.zeros(d.probabilities.shape, np.uint8)
    rows[np.arange(d.labels.size), d.labels] = 1
    return lambda: float(classwise_ECE(rows, d.probabilities, bins=d.bins))
