"""Any real score, such as points of a scorecard or margins, as a probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from certcal._base.checks import LARGEST_REAL, InputError, real_numbers
from certcal.calibrators._base import Calibrator, ConfidenceMap, Floats
from certcal.calibrators._choice import MapChoice, choose
from certcal.calibrators._formulas import SCORE, ScoreFormula
from certcal.calibrators._predictions import CONFIDENCE_METHODS, fit_predictions
from certcal.predictions import Predictions


class RealScores(Calibrator):
    """A score on any scale, made a probability: sigmoid((score - centre)/scale), and a map of that.

    Centre and scale are the median and the standard deviation of the fit; the scale is below 0 where higher scores go
    with fewer outcomes of 1, as points of a scorecard do. Platt's curves, quadratic ones and splines do not depend on
    either.

    Parameters
    ----------
    calibrator
        The map: "auto" (:func:`choose`; where no map helps, Platt's, since these scores are no probabilities yet) or
        another map of one confidence, or its name.

    Attributes
    ----------
    centre_, scale_, map_
        Fitted.
    choice_
        What was compared, where the map is "auto".

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
    _kept: ClassVar = {"centre": (-LARGEST_REAL, LARGEST_REAL), "scale": (-LARGEST_REAL, LARGEST_REAL), "map": None}

    choice_: MapChoice | None = None

    def __init__(self, calibrator: Any = "auto") -> None:
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
        if not isinstance(self.calibrator, ConfidenceMap) and self.calibrator not in ("auto", *CONFIDENCE_METHODS):
            known = ", ".join(CONFIDENCE_METHODS)
            raise InputError(f"calibrator is {self.calibrator!r}; expected auto or one of {known}")
        x = real_numbers(scores, "scores")
        self.centre_ = float(np.median(x)) if x.size else 0.0
        self.scale_ = float(np.std(x)) or 1.0
        given = Predictions.from_scores(self.squashed(x), y, sample_weight)
        w = np.ones(x.size) if given.sample_weight is None else given.sample_weight
        if float(np.dot(w * given.correct, x - np.average(x, weights=w))) < 0:
            self.scale_ = -self.scale_
            given = Predictions.from_scores(self.squashed(x), y, sample_weight)
        found = choose(given, believed=False) if self.calibrator == "auto" else None
        self.choice_ = None if found is None else _among_maps(found)
        if found is not None and found.method != "none":
            self.map_ = found.calibrator
        else:
            self.map_ = fit_predictions(given, "platt" if found is not None else self.calibrator)
        return self

    def alike(self) -> RealScores:
        """One that is not fitted, with a map of the same kind as the one that was chosen."""
        return RealScores(self.map_.unfitted())

    def squashed(self, x: Floats) -> Floats:
        """Scores between 0 and 1, as the map takes them."""
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
        return found.transform(self.squashed(real_numbers(scores, "scores")))

    predict = transform

    def _formula(self) -> ScoreFormula:
        found: Any = self.map_._formula()
        place = ((SCORE - self.centre_) / self.scale_).logistic()
        return ScoreFormula(
            found.value.of(place),
            f"of sigmoid((score - {self.centre_:g}) / {self.scale_:g}): {found.words}",
            -LARGEST_REAL,
            LARGEST_REAL,
        )

    def __call__(self, score: float) -> float:
        """One number after the map."""
        return float(self.transform([score])[0])

    def _restore(self, state: Mapping[str, Any]) -> None:
        found = self._fitted_in(state.get("map"))
        if found is None or not hasattr(found, "n_features_in_") or hasattr(found, "predict_proba"):
            raise InputError("map is damaged; expected a fitted map of confidences")
        super()._restore(state)
        if self.scale_ == 0:
            raise InputError("scale is 0; expected another number")
        self.map_ = found

    @classmethod
    def _param(cls, name: str, value: Any) -> Any:
        return value if value in ("auto", *CONFIDENCE_METHODS) else super()._param(name, value)


def _among_maps(found: MapChoice) -> MapChoice:
    """The choice without no map, which is none of these: scores are no probabilities."""
    tried = tuple(each for each in found.tried if each.method != "none")
    method = "platt" if found.method == "none" else found.method
    losses = {each.method: each.nll for each in tried}
    if not losses:
        return replace(found, method=method, tried=(), why="Platt's map: there are too few samples to choose one.")
    least = min(losses.values())
    others = min((loss for name, loss in losses.items() if name != method), default=losses[method])
    apart = f"{method} has a cross-fitted log loss of {losses[method]:.4f}; the best of the others has {others:.4f}."
    why = apart if losses[method] <= least else f"No map is better than another beyond chance: {apart}"
    return replace(found, method=method, tried=tried, why=why)
