"""Vector scaling: a factor and an intercept for each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certcal._checks import positive
from certcal.calibrators._affine import AffineLoss, as_matrix, minimise, restored, temperature_start
from certcal.calibrators._base import ScoreMap
from certcal.calibrators.scores import Floats, check_classes, labelled_scores, read_scores, softmax


class VectorScaling(ScoreMap):
    """softmax(a·x + b), with a factor a and an intercept b for each class (Guo et al. 2017).

    What is minimised is Σ w·log loss + ½ penalty·(Σ (a - 1)² + Σ b²). The ridge pulls towards the map that changes
    nothing, as a normal prior with variance 1/penalty would: with few samples the map does little, a class without
    samples keeps a bounded intercept, and there is exactly one minimum whatever the data are. It is fixed while the
    sum of the losses grows with the samples, so it vanishes as they become many. The loss is convex; Newton's method
    ends when it promises less than 1e-12 of the mean loss.

    Parameters
    ----------
    penalty
        Above 0. The default, 1, is a prior standard deviation of 1 for factors and intercepts.
    inputs
        What the scores are: "logits", or "probabilities", whose logarithms are then the logits (a probability of 0
        counts as 1.2e-38, the smallest normal number of float32). Never guessed from the values.

    Attributes
    ----------
    scale_, intercept_
        a and b, one number per class.
    classes_
        0, 1, … up to the last class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20_000, 3))
    >>> labels = (2 * logits + [0, 0, 1] + rng.gumbel(size=(20_000, 3))).argmax(axis=1)
    >>> fitted = VectorScaling().fit(logits, labels)
    >>> fitted.scale_.round().tolist(), float((fitted.intercept_[2] - fitted.intercept_[0]).round(1))
    ([2.0, 2.0, 2.0], 1.0)
    """

    scale_: Floats
    intercept_: Floats
    classes_: NDArray[np.int64]

    def __init__(self, penalty: float = 1.0, inputs: str = "logits") -> None:
        self.penalty = penalty
        self.inputs = inputs

    def fit(self, scores: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Find factors and intercepts.

        Parameters
        ----------
        scores
            One row per sample, one column per class.
        labels
            True class of each sample, from 0.
        sample_weight
            Weights >= 0, or None. A weight of 2 is a sample seen twice.
        """
        ridge = positive(self.penalty, "penalty")
        given, y, w = labelled_scores(scores, labels, sample_weight, self.inputs)
        x = as_matrix(given)
        k: int = x.shape[1]
        identity = np.concatenate([np.ones(k), np.zeros(k)])
        start = np.concatenate([np.full(k, temperature_start(x, y, w)), np.zeros(k)])
        found = minimise(VectorLoss(x, y, w, np.full(2 * k, ridge), identity), [identity, start])
        self.scale_, self.intercept_ = found[:k], found[k:]
        self.classes_ = np.arange(k, dtype=np.int64)
        return self

    def predict_proba(self, scores: Any) -> Floats:
        """softmax(a·logits + b), one row per sample."""
        self._require_fitted()
        x = read_scores(scores, self.inputs)
        check_classes(x, self.classes_.size, type(self).__name__)
        return softmax(as_matrix(x) * self.scale_ + self.intercept_)

    def _state(self) -> dict[str, Any] | None:
        if not hasattr(self, "scale_"):
            return None
        return {"scale": self.scale_.tolist(), "intercept": self.intercept_.tolist()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.scale_, self.intercept_ = restored(state, "scale")
        self.classes_ = np.arange(self.scale_.size, dtype=np.int64)


class VectorLoss(AffineLoss):
    """With the parameters (a, b)."""

    def forward(self, x: Floats, parameters: Floats) -> Floats:
        """a·x + b."""
        k = x.shape[1]
        z = x * parameters[:k]
        z += parameters[k:]
        return z

    def adjoint(self, x: Floats, residual: Floats) -> Floats:
        """(Σ x·residual, Σ residual)."""
        return np.concatenate([np.einsum("ik,ik->k", x, residual), residual.sum(axis=0)])
