"""Which metrics are functions of bin sums, which are means over samples, which need the points themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import choice, class_pair, confidences, correctness, logit_matrix, positive, score_pair
from certcal._checks import labels as check_labels
from certcal.binning import CLOSED, BinTable, edges_for
from certcal.metrics import binned, scores
from certcal.metrics._bootstrap import Evaluate, point_metric, scored_metric, table_metric

Floats = NDArray[np.float64]
OfTable = Callable[[BinTable], float]


def _of_table(metric: Callable[..., float], options: Mapping[str, Any]) -> OfTable | None:
    """The metric as a function of bin sums, if it is one."""
    if metric is binned.lp_ece:
        order = float(options.get("p", 2.0))
        return lambda table: binned.lp_ece_of(table, order)
    if metric is scores.harmonic_calibration_score:
        beta = positive(options.get("beta", 1.0), "beta")
        return lambda table: scores.harmonic_score(
            float(table.correct_sum.sum() / table.total), binned.ece_of(table), beta
        )
    if metric in scores.BRIER_PARTS.values():
        name = metric.__name__.removeprefix("brier_")
        return lambda table: float(getattr(scores.decompose(table, float("nan")), name))
    known: dict[Any, OfTable] = {
        binned.ece: binned.ece_of,
        binned.mce: binned.mce_of,
        binned.debiased_ece: binned.debiased_ece_of,
    }
    return known.get(metric)


def table_edges(metric: Callable[..., float], options: Mapping[str, Any]) -> tuple[Floats | None, str]:
    """The fixed edges a metric bins by, or None when it has none."""
    if _of_table(metric, options) is None:
        return None, "left"
    closed = choice(options.get("closed", "left"), CLOSED, "closed")
    return edges_for(options.get("bins", 15), options.get("edges")), closed


def evaluator(metric: Callable[..., float], options: Mapping[str, Any], edges: Floats | None, closed: str) -> Evaluate:
    """How one replicate of a metric is computed."""
    of = _of_table(metric, options)
    if of is None or edges is None:
        return point_metric(metric, **options)
    if metric is scores.BRIER_PARTS["within_bin"]:  # the one that needs more than the bin sums
        return scored_metric(lambda table, score: scores.decompose(table, score).within_bin, edges, closed)
    return table_metric(of, edges, closed)


def losses(metric: Callable[..., float], arrays: tuple[Any, ...], options: Mapping[str, Any]) -> Floats | None:
    """The per-sample values whose mean is the metric, or None when it is not a mean."""
    if metric is scores.accuracy:
        return correctness(arrays[0]).astype(np.float64)
    if metric is scores.mean_confidence:
        return confidences(arrays[0]).astype(np.float64)
    if metric in (scores.top_label_brier_score, scores.top_label_nll):
        z, c, _ = score_pair(arrays[0], arrays[1])
        return (
            scores.top_label_brier(z, c)
            if metric is scores.top_label_brier_score
            else scores.top_label_log_losses(z, c)
        )
    if metric is scores.nll and options.get("from_logits"):
        x = logit_matrix(arrays[0])
        return scores.logit_losses(x, check_labels(arrays[1], x.shape[1]))
    if metric in (scores.brier_score, scores.nll):
        p, y, _ = class_pair(arrays[0], arrays[1])
        return scores.brier(p, y) if metric is scores.brier_score else scores.log_losses(p, y)
    return None
