"""Beta calibration: a logistic curve of ln z and ln(1 - z) apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import choice
from certcal.calibrators._logistic import fit_logistic, log_odds, rounding, sigmoid
from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators._state import number

Floats = NDArray[np.float64]

PARAMETERS = ("abm", "am", "ab")


class BetaCalibration(OutcomeMap):
    """g(z) = sigmoid(a·ln z - b·ln(1 - z) + c) with a, b >= 0 (Kull, Silva Filho and Flach 2017).

    The right family when the confidences of correct and of wrong samples are both beta distributed; it
    contains the identity (a = b = 1, c = 0). Least log loss, which is convex, by Newton's method; a, b >= 0 keep the
    order of the confidences. Confidences nearer to 0 or 1 than 2^-24 are taken as that far away; a ridge of 1e-8
    towards the identity makes the minimum unique where it would not be.

    Parameters
    ----------
    parameters
        "abm": a, b and c. "am": a = b, the same curves as :class:`PlattScaling` with targets="outcomes". "ab": g is ½
        at z = ½, so c = (a - b) ln 2.

    Attributes
    ----------
    a_, b_, c_
        The parameters.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(50_000)
    >>> fitted = BetaCalibration().fit(z, rng.random(z.size) < z)  # calibrated already: the identity
    >>> round(fitted.a_, 1), round(fitted.b_, 1), abs(round(fitted.c_, 1))
    (1.0, 1.0, 0.0)
    """

    def __init__(self, parameters: str = "abm") -> None:
        self.parameters = parameters

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        family = choice(self.parameters, PARAMETERS, "parameters")
        low, high = log_odds(z)
        one = np.ones(z.size)
        targets = c.astype(np.float64)
        if family == "abm":
            a, b, shift = fit_logistic([low, high, one], targets, w, [1.0, 1.0, 0.0], 2)
        elif family == "am":
            a, shift = fit_logistic([low + high, one], targets, w, [1.0, 0.0], 1)
            b = a
        else:
            log2 = math.log(2)
            a, b = fit_logistic([low + log2, high - log2], targets, w, [1.0, 1.0], 2)
            shift = (a - b) * log2
        self.a_, self.b_, self.c_ = float(a), float(b), float(shift)

    def _apply(self, values: Floats) -> Floats:
        low, high = log_odds(values)
        return sigmoid(self.a_ * low + self.b_ * high + self.c_)

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        room = rounding(self.a_, self.b_, self.c_)
        return np.maximum(self._apply(lower) - room, 0.0), np.minimum(self._apply(upper) + room, 1.0)

    def _state(self) -> dict[str, Any] | None:
        return {"a": self.a_, "b": self.b_, "c": self.c_} if hasattr(self, "a_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.a_, self.b_ = number(state, "a", 0.0, 1e6), number(state, "b", 0.0, 1e6)
        self.c_ = number(state, "c", -1e8, 1e8)
