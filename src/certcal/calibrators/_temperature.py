"""Temperature scaling: the one number by which logits are divided."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import read_only
from certcal._base.threads import map_blocks
from certcal.calibrators._formulas import ClassFormula
from certcal.calibrators.scores import (
    LEAST,
    Floats,
    ScoreMap,
    as_logits,
    check_labelled,
    read_scores,
    softmax,
)

# Beyond these the loss has no minimum (every label is the largest logit, or the logits point away from the labels).
SMALLEST, LARGEST = 1e-3, 1e3
LOWEST, HIGHEST = 1 / LARGEST, 1 / SMALLEST  # of the inverse

# A fit to more rows than this begins where the fit to every 16th of them ended.
MANY, STRIDE = 20_000, 16

# A step of the third order that is shorter than this share leaves an error of the size of its cube.
SHORT = 1e-5

Derivatives = Callable[[float], tuple[float, float, float]]


@names_wrong_types
def fit_temperature(logits: Any, labels: Any, sample_weight: Any = None) -> float:
    """Temperature T that minimises the negative log-likelihood of softmax(logits / T) (Guo et al. 2017).

    The loss is convex in 1/T, so steps of Newton's kind inside a shrinking bracket find its minimum, to about 12 digits
    of T. When there is none (every label has the largest logit, say), the nearer end of [0.001, 1000] is returned; when
    every temperature is as good (the logits of each row are equal), 1 is.

    Parameters
    ----------
    logits
        One row per sample, one column per class.
    labels
        True class of each sample, from 0.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> round(fit_temperature([[0.0, 2.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [1, 0, 1, 0]), 6)
    1.820478
    """
    x = read_scores(logits, "logits", "logits")
    return 1 / best_inverse(x, *check_labelled(x, labels, sample_weight, "logits")[:2])


class TemperatureScaling(ScoreMap):
    """Logits divided by one temperature, fitted by :func:`fit_temperature`. It changes no prediction.

    No probability becomes 0 (the least is 1.2e-38), so that the log loss is finite on all samples.

    Parameters
    ----------
    inputs
        What the scores are: "logits", or "probabilities", whose logarithms are then the logits (a probability of 0
        counts as half the least positive one of the fit). Never guessed from the values.

    Examples
    --------
    >>> fitted = TemperatureScaling().fit([[0.0, 2.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [1, 0, 1, 0])
    >>> fitted.predict_proba([[0.0, 2.0]]).round(6).tolist()
    [[0.25, 0.75]]
    """

    temperature_: float
    """T, from 0.001 to 1000."""
    _kept: ClassVar = {"temperature": (SMALLEST, LARGEST), "classes": None}
    _keeps_predictions = True

    def __init__(self, inputs: str = "logits") -> None:
        self.inputs = inputs

    def _fit(self, x: NDArray[Any], y: NDArray[np.int64], w: Floats | None) -> None:
        self.temperature_ = 1 / best_inverse(as_logits(x, self.inputs, self.floor_), y, w)

    def _probabilities(self, x: NDArray[Any]) -> Floats:
        x = as_logits(x, self.inputs, self.floor_)
        with np.errstate(over="ignore"):  # logits of 1e308 and -1e308: a probability of 0
            p = softmax((x - x.max(axis=1, keepdims=True).astype(np.float64)) / self.temperature_)
        return np.maximum(p, LEAST, out=p)

    def _formula(self) -> ClassFormula:
        k = self.classes_.size
        words = f"softmax(logits / {self.temperature_:g})"
        return ClassFormula(self.inputs, k, words, np.full(k, 1 / self.temperature_), np.zeros(k), self.floor_)


def best_inverse(x: NDArray[Any], y: NDArray[np.int64], w: Floats | None) -> float:
    """1/T of the least loss, for checked logits, labels and weights."""
    start = 1.0
    if y.size > MANY:
        few = slice(None, None, STRIDE)
        part = None if w is None else w[few]
        if part is None or part.any():
            start = best_inverse(np.ascontiguousarray(x[few]), y[few], part)
    return _minimise(_passes(x, y, w), start)


def _minimise(derivatives: Derivatives, start: float) -> float:
    """Where the first derivative of a convex function is 0, or the end of the range towards which it falls."""
    low, high, inverse = LOWEST, HIGHEST, start
    before, slow, seen = math.inf, 0, False
    for _ in range(200):
        slope, curvature, third = derivatives(inverse)
        if slope == 0 or (slope < 0 and inverse >= HIGHEST) or (slope > 0 and inverse <= LOWEST):
            return inverse
        low, high = (inverse, high) if slope < 0 else (low, inverse)
        following = inverse + _halley_step(slope, curvature, third)
        if low < following < high and abs(following - inverse) <= SHORT * inverse:
            return following
        # On a flat tail of the loss steps are short though the way is long: then the bracket is halved instead.
        slow = slow + 1 if abs(following - inverse) > before / 2 else 0
        if not low < following < high or slow == 3:
            end = HIGHEST if slope < 0 else LOWEST
            if not seen and end in (low, high):
                seen = True
                outward = derivatives(end)[0]
                if (outward <= 0) if slope < 0 else (outward >= 0):
                    return end
            following, slow = math.sqrt(low * high), 0
        before, inverse = abs(following - inverse), following
    return inverse


def _halley_step(slope: float, curvature: float, third: float) -> float:
    """Halley's step to the zero of the slope; Newton's where the third derivative would more than double it."""
    if not curvature > 0:
        return math.copysign(math.inf, -slope)
    newton = -slope / curvature
    correction = 1 + 0.5 * newton * third / curvature
    return newton / correction if correction > 0.5 else newton


def _passes(x: NDArray[Any], y: NDArray[np.int64], w: Floats | None) -> Derivatives:
    """The derivatives at any inverse temperature, each for one pass over the logits."""
    from certcal._kernels.map_losses import derivatives, row_tops

    tops, given = np.empty(y.size), read_only(np.empty(0) if w is None else w)
    x, y = read_only(x), read_only(y)
    small = 1 + 100_000 // x.shape[1]
    map_blocks(lambda start, stop: row_tops(x[start:stop], tops[start:stop]), y.size, small)

    def evaluate(inverse: float) -> tuple[float, float, float]:
        parts = map_blocks(
            lambda start, stop: derivatives(x[start:stop], y[start:stop], given[start:stop], tops[start:stop], inverse),
            y.size,
            small,
        )
        slope, curvature, third = (sum(part[k] for part in parts) for k in range(3))
        return slope, curvature, third

    return evaluate
