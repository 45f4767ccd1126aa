"""Any real score, such as points of a scorecard or margins, as a probability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from certcal._base.checks import InputError
from certcal.calibrators._base import Calibrator, Floats, number
from certcal.calibrators._choice import choose
from certcal.calibrators._predictions import CONFIDENCE_METHODS, fit_predictions
from certcal.predictions import Predictions

_LARGEST = 1e100


class RealScores(Calibrator):
    """A score on any scale, made a probability: sigmoid((score - centre)/scale), and a map of that.

    Centre and scale are the median and the standard deviation of the fit; the scale is below 0 where higher scores go
    with fewer outcomes of 1, as points of a scorecard do. Platt's curves, quadratic ones and splines do not depend on
    either.

    Parameters
    ----------
    calibrator
        The map: "auto" (:func:`choose`; where no map helps, Platt's, since these scores are no probabilities yet) or
        another name of a map of one confidence.

    Attributes
    ----------
    centre_, scale_, map_
        Fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(600, 50, 5000)
    >>> default = rng.random(5000) < 1 / (1 + np.exp((points - 520) / 30))
    >>> RealScores("platt").fit(points, default).transform([480, 520, 640]).round(1).tolist()
    [0.8, 0.5, 0.0]
    """

    centre_: float
    scale_: float
    map_: Calibrator

    def __init__(self, calibrator: str = "auto") -> None:
        self.calibrator = calibrator

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        scores
            Real numbers, one per sample.
        y
            Outcomes, 0 or 1.
        sample_weight
            Weights >= 0, or None.
        """
        if self.calibrator not in ("auto", *CONFIDENCE_METHODS):
            known = ", ".join(CONFIDENCE_METHODS)
            raise InputError(f"calibrator is {self.calibrator!r}; expected auto or one of {known}")
        x = _real_numbers(scores)
        self.centre_ = float(np.median(x)) if x.size else 0.0
        self.scale_ = float(np.std(x)) or 1.0
        given = Predictions.from_scores(self._squashed(x), y, sample_weight)
        w = np.ones(x.size) if given.sample_weight is None else given.sample_weight
        if float(np.dot(w * given.correct, x - np.average(x, weights=w))) < 0:
            self.scale_ = -self.scale_
            given = Predictions.from_scores(self._squashed(x), y, sample_weight)
        found = choose(given) if self.calibrator == "auto" else None
        if found is not None and found.method != "none":
            self.map_ = found.calibrator
        else:
            self.map_ = fit_predictions(given, "platt" if found is not None else self.calibrator)
        return self

    def _squashed(self, x: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(expit((x - self.centre_) / self.scale_), np.float64)

    def transform(self, scores: Any) -> Floats:
        """Probabilities of scores.

        Parameters
        ----------
        scores
            Real numbers, one per sample.
        """
        self._require_fitted()
        found: Any = self.map_
        return found.transform(self._squashed(_real_numbers(scores)))

    predict = transform

    def _state(self) -> dict[str, Any] | None:
        if not hasattr(self, "map_"):
            return None
        return {"centre": self.centre_, "scale": self.scale_, "map": self.map_.to_dict()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        found = self._fitted_in(state.get("map"))
        if found is None or not hasattr(found, "n_features_in_") or hasattr(found, "predict_proba"):
            raise InputError("map is damaged; expected a fitted map of confidences")
        self.centre_, self.scale_ = (number(state, name, -_LARGEST, _LARGEST) for name in ("centre", "scale"))
        if self.scale_ == 0:
            raise InputError("scale is 0; expected another number")
        self.map_ = found

    @classmethod
    def _param(cls, name: str, value: Any) -> Any:
        return value if value in ("auto", *CONFIDENCE_METHODS) else super()._param(name, value)


def _real_numbers(scores: Any) -> Floats:
    try:
        x = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise InputError("scores are not numbers; pass one real number per sample") from None
    if x.ndim != 1 or not x.size:
        raise InputError(f"scores has shape {x.shape}; pass one real number per sample")
    bad = ~(np.abs(x) < _LARGEST)
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"scores[{index}] is {x[index]:g}; drop the sample or repair the model's output")
    return x
