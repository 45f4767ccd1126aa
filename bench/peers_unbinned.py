"""Metrics without bins, as the peers are asked for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from registry import Run, peer, tensors

# --- KS, SmoothECE, MMCE


@peer("ks_error", "probmetrics", "in float32")
def _(d: SimpleNamespace) -> Run:
    from probmetrics.distributions import CategoricalDirac, CategoricalProbs
    from probmetrics.metrics import KolmogorovSmirnovCalibrationMetric

    z, y = tensors(d)
    truth, prediction, metric = CategoricalDirac(y, 2), CategoricalProbs(z), KolmogorovSmirnovCalibrationMetric()
    return lambda: float(metric.compute(truth, prediction))


@peer("ks_error", "MAPIE", "its statistic times its length scale; confidences are jittered")
def _(d: SimpleNamespace) -> Run:
    from mapie.metrics.calibration import cumulative_differences

    y = d.correct.astype(np.int64)
    return lambda: float(np.abs(cumulative_differences(y, d.confidence)).max())


@peer("ks_error", "probcal")
def _(d: SimpleNamespace) -> Run:
    from probcal import metrics

    y = d.correct.astype(np.float64)
    return lambda: metrics.ecce(y, d.confidence).stat_max


@peer("smooth_ece", "probcal", "another definition: smooths on the logit scale")
def _(d: SimpleNamespace) -> Run:
    from probcal import metrics

    y = d.correct.astype(np.float64)
    return lambda: metrics.smooth_ece(y, d.confidence)


@peer("smooth_ece", "relplot", "same definition; bandwidth from 10 bisections")
def _(d: SimpleNamespace) -> Run:
    from relplot import metrics

    y = d.correct.astype(d.confidence.dtype)
    return lambda: float(metrics.smECE(d.confidence, y))


@peer("mmce", "netcal")
def _(d: SimpleNamespace) -> Run:
    from netcal.metrics import MMCE

    # It takes labels and derives correctness from the predicted side of 1/2.
    label = np.where(d.confidence > 0.5, d.correct, 1 - d.correct)
    return lambda: float(MMCE().measure(d.confidence, label))


@peer("mmce", "probcal", "root of half its biased SKCE, Laplace kernel")
def _(d: SimpleNamespace) -> Run:
    from probcal.metrics import skce

    y = d.correct.astype(np.float64)
    return lambda: float(np.sqrt(skce(y, d.confidence, estimator="biased", bandwidth=0.4) / 2))


# --- KDE-ECE: none of the libraries above offers it, so it is put together from what there is

GRID = (np.arange(10_000) + 0.5) / 10_000


def _bandwidth(z: Any) -> float:
    return float(1.06 * z.std() * z.size**-0.2)


@peer("kde_ece", "double sum", "the definition in numpy, on 10⁴ points")
def _(d: SimpleNamespace) -> Run:
    def run() -> float:
        z, h, total = d.confidence, _bandwidth(d.confidence), 0.0
        for t in np.array_split(GRID, 100):
            kernel = sum(np.exp(-0.5 * ((t[:, None] - image) / h) ** 2) for image in (z, -z, 2 - z))
            total += float(np.abs(t * kernel.sum(1) - kernel @ d.correct).sum())
        return total / (z.size * GRID.size * h * np.sqrt(2 * np.pi))

    return run


@peer("kde_ece", "scipy", "two gaussian_kde of reflected samples, on 10⁴ points")
def _(d: SimpleNamespace) -> Run:
    from scipy.stats import gaussian_kde

    def density(z: Any, h: float) -> Any:
        images = np.concatenate((z, -z, 2 - z))
        return 3 * gaussian_kde(images, bw_method=h / images.std(ddof=1))(GRID)

    def run() -> float:
        h, right = _bandwidth(d.confidence), d.confidence[d.correct == 1]
        share = right.size / d.confidence.size
        return float(np.abs(GRID * density(d.confidence, h) - share * density(right, h)).mean())

    return run


@peer("kde_ece", "statsmodels", "two KDEUnivariate by FFT on 2¹⁴ points; no error bound")
def _(d: SimpleNamespace) -> Run:
    from statsmodels.nonparametric.kde import KDEUnivariate

    def density(z: Any, h: float) -> Any:
        fit = KDEUnivariate(np.concatenate((z, -z, 2 - z)))
        fit.fit(kernel="gau", bw=h, fft=True, gridsize=2**14, cut=0)
        return 3 * np.interp(GRID, fit.support, fit.density)

    def run() -> float:
        h, right = _bandwidth(d.confidence), d.confidence[d.correct == 1]
        share = right.size / d.confidence.size
        return float(np.abs(GRID * density(d.confidence, h) - share * density(right, h)).mean())

    return run
