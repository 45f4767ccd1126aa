"""What pictures of a recalibration show, as plain numbers: the line and flat parts of a map, and the constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certcal.binning import BinTable, bin_table, equal_width_edges
from certcal.calibrators._base import ConfidenceMap
from certcal.calibrators._curve import MonotoneCurve
from certcal.calibrators._recalibrate import FrontPoint, Recalibration
from certcal.metrics import top_label_brier_score

Floats = NDArray[np.float64]

CONSTANT = "one constant confidence"
_GRID = 400
# Parts narrower than this would not be seen.
_NARROWEST = 0.004


@dataclass(frozen=True, eq=False)
class MapPoints:
    """A map as a line that can be drawn.

    Attributes
    ----------
    x, y
        Points of the line from 0 to 1, ascending.
    flat
        Start, end and value of each part on which the map is constant, one row each: confidences there become one.
    knots
        Number of places where the map may bend; None for a map given by a formula.
    """

    x: Floats
    y: Floats
    flat: Floats
    knots: int | None


def map_points(calibrator: ConfidenceMap | None) -> MapPoints:
    """Points of a map's line and its flat parts; None is the identity.

    Between the points the map differs from the straight line by less than can be seen. Flat parts narrower than 0.004
    are left out.

    Parameters
    ----------
    calibrator
        A fitted map.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedIsotonic
    >>> fitted = CertifiedIsotonic(tradeoff=1).fit([0.1, 0.4, 0.7, 0.8], [0.3, 0.6, 0.9, 0.95], [0, 1, 0, 1])
    >>> map_points(fitted).flat.round(4).tolist()
    [[0.0, 0.3, 0.0], [0.4, 1.0, 0.6667]]
    """
    if calibrator is None:
        ends = np.array([0.0, 1.0])
        return MapPoints(ends, ends, np.empty((0, 3)), None)
    curve = getattr(calibrator, "curve_", None)
    knots = curve.x[(curve.x >= 0) & (curve.x <= 1)] if isinstance(curve, MonotoneCurve) else None
    x = _grid() if knots is None or knots.size > _GRID else np.unique(np.concatenate([[0.0, 1.0], knots]))
    y = calibrator.transform(x)
    corners = x if knots is None else np.unique(np.concatenate([[0.0, 1.0], knots]))
    return MapPoints(x, y, _flat(corners, calibrator.transform(corners)), None if knots is None else knots.size)


def _grid() -> Floats:
    """Places that are closer near 0 and 1, where sigmoids of logits turn fastest."""
    near = np.logspace(-6, -2, 60)
    return np.unique(np.concatenate([near, np.arange(_GRID + 1) / _GRID, 1 - near]))


def _flat(x: Floats, y: Floats) -> Floats:
    """Runs of equal values as rows of start, end and value."""
    starts = np.flatnonzero(np.concatenate(([True], y[1:] != y[:-1])))
    ends = np.append(starts[1:], y.size) - 1
    rows = np.stack([x[starts], x[ends], y[starts]], axis=1)
    return rows[rows[:, 1] - rows[:, 0] >= _NARROWEST]


def confidence_counts(found: Recalibration, bins: int = 50) -> BinTable | None:
    """How many held-out confidences lie where, before the map; None when they are not known.

    Parameters
    ----------
    found
        From :func:`certcal.calibrators.recalibrate`.
    bins
        Of equal width.
    """
    values = found.before.confidence
    return None if values is None else bin_table(values, found.before.correct, equal_width_edges(bins))


def constant_point(found: Recalibration) -> FrontPoint | None:
    """Scores on the held-out samples of one constant confidence, the mean correctness of the fit's certified samples.

    It is the constant with the least certified Brier score on the samples of the fit, with the weights of the radii.
    None when nothing was certified there. Its scores on the samples of the fit are not kept.

    Parameters
    ----------
    found
        From :func:`certcal.calibrators.recalibrate`.
    """
    parts = [
        (weight, float(at.gain.settings["constant"]))
        for weight, at in zip(found.radius_weight, found.identity.at, strict=True)
        if at.gain is not None and weight > 0
    ]
    if not parts:
        return None
    confidence = float(np.average([value for _, value in parts], weights=[weight for weight, _ in parts]))
    correct, certified = found.before.correct, found.before.certified

    def score(outcomes: NDArray[np.uint8]) -> float:
        return top_label_brier_score(np.full(outcomes.size, confidence), outcomes)

    weights = [w if certified[:, k].any() else 0.0 for k, w in enumerate(found.radius_weight)]
    worst = [score(correct[certified[:, k]]) for k, weight in enumerate(weights) if weight > 0]
    clean = None if found.before.confidence is None else score(correct)
    held_out = float(np.average(worst, weights=[weight for weight in weights if weight > 0]))
    return FrontPoint(CONSTANT, None, (None, None), (clean, held_out))
