"""Isotonic regression of outcomes on confidences, scikit-learn's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.calibrators._curve import MonotoneCurve
from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators._state import numbers

Floats = NDArray[np.float64]


class IsotonicCalibration(OutcomeMap):
    """The monotone map with the least Brier score on the samples, straight between them (Zadrozny and Elkan 2002).

    Fitted by scikit-learn's ``IsotonicRegression``, which takes confidences that differ by less than 1e-15 as equal.
    It is :class:`CertifiedIsotonic` with tradeoff=0. On the samples it is fitted to it looks better than it is: judge
    it on others.

    Attributes
    ----------
    curve_
        The map: knots and values.

    Examples
    --------
    >>> fitted = IsotonicCalibration().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> fitted.transform([0.1, 0.3, 0.5, 0.9]).round(6).tolist()
    [0.0, 0.25, 0.5, 1.0]
    """

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        try:
            from sklearn.isotonic import IsotonicRegression
        except ImportError as error:
            raise InputError("IsotonicCalibration needs scikit-learn; run: pip install 'certcal[sklearn]'") from error
        fitted: Any = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True, out_of_bounds="clip")
        fitted.fit(z, c.astype(np.float64), sample_weight=w)
        x, y = np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64)
        self.curve_ = MonotoneCurve(x, np.maximum.accumulate(np.clip(y, 0.0, 1.0)))

    def _apply(self, values: Floats) -> Floats:
        return self.curve_(values)

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return self.curve_(lower), self.curve_(upper)  # the curve is monotone as computed

    def _state(self) -> dict[str, Any] | None:
        return self.curve_.to_dict() if hasattr(self, "curve_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        x = numbers(state, "x", (None,))
        self.curve_ = MonotoneCurve(x, numbers(state, "y", (x.size,)))
