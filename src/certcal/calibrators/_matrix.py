"""Matrix scaling: every class's logit from the logits of all classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, positive
from certcal.calibrators._affine import AffineLoss, as_matrix, minimise, restored, temperature_start
from certcal.calibrators._base import ScoreMap
from certcal.calibrators.scores import Floats, check_classes, labelled_scores, read_scores, softmax

MOST_CLASSES = 1000  # a million parameters


class MatrixScaling(ScoreMap):
    """softmax(M x + b), with a full matrix M and an intercept b (Guo et al. 2017), regularised off the diagonal.

    What is minimised is Σ w·log loss + ½ penalty·(Σ (M_kk - 1)² + Σ b²) + ½ off_diagonal_penalty·Σ M_kl² (k ≠ l). Guo
    et al. saw matrices overfit: K² numbers are many. So, as in the off-diagonal and intercept regularisation of Kull et
    al. (2019), the entries off the diagonal are pulled to 0 with a strength of their own. Unlike there, sums are not
    divided by numbers of entries, and the diagonal has a weak ridge towards 1, without which separable data have no
    minimum. The larger off_diagonal_penalty is, the nearer is the map to :class:`VectorScaling` with the same penalty.
    The loss is convex; Newton's method ends when it promises less than 1e-12 of the mean loss. A pass over the data
    costs n·K² and M has K² numbers: up to 1000 classes are taken.

    Parameters
    ----------
    penalty
        Above 0, of the diagonal and the intercept, as for :class:`VectorScaling`.
    off_diagonal_penalty
        Above 0. The default, 300, is a prior standard deviation of 0.06. It was chosen on simulated logits (5 to 30
        classes, 200 to 10,000 samples); on further draws from the same simulation the held-out log loss was 0.004 to
        0.05 above that of a vector where a vector is the truth, and 0.01 to 0.5 below it where a matrix is. It was not
        tuned on real models: choose it by cross-validation when classes are many.
    inputs
        What the scores are: "logits", or "probabilities", whose logarithms are then the logits (a probability of 0
        counts as 1.2e-38, the smallest normal number of float32). Never guessed from the values.

    Attributes
    ----------
    matrix_, intercept_
        M, with M_kl what the logit of class l adds to that of class k, and b.
    classes_
        0, 1, … up to the last class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20_000, 2))
    >>> mixed = logits @ np.array([[2.0, 0.5], [0.0, 2.0]]).T
    >>> labels = (mixed + rng.gumbel(size=(20_000, 2))).argmax(axis=1)
    >>> matrix = MatrixScaling(off_diagonal_penalty=1).fit(logits, labels).matrix_
    >>> (matrix[0] - matrix[1]).round(1).tolist()  # two classes: only differences of the rows matter
    [2.0, -1.5]
    """

    matrix_: Floats
    intercept_: Floats
    classes_: NDArray[np.int64]

    def __init__(self, penalty: float = 1.0, off_diagonal_penalty: float = 300.0, inputs: str = "logits") -> None:
        self.penalty = penalty
        self.off_diagonal_penalty = off_diagonal_penalty
        self.inputs = inputs

    def fit(self, scores: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Find the matrix and the intercept.

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
        off = positive(self.off_diagonal_penalty, "off_diagonal_penalty")
        given, y, w = labelled_scores(scores, labels, sample_weight, self.inputs)
        x = as_matrix(given)
        k: int = x.shape[1]
        if k > MOST_CLASSES:
            raise InputError(f"scores have {k} columns, too many for a matrix of their pairs; use VectorScaling")
        pull = np.concatenate([np.where(np.eye(k) == 1, ridge, off).reshape(-1), np.full(k, ridge)])
        identity = np.concatenate([np.eye(k).reshape(-1), np.zeros(k)])
        loss = MatrixLoss(x, y, w, pull, identity)
        found = minimise(loss, [identity, temperature_start(x, y, w) * identity])
        self.matrix_, self.intercept_ = found[: k * k].reshape(k, k), found[k * k :]
        self.classes_ = np.arange(k, dtype=np.int64)
        return self

    def predict_proba(self, scores: Any) -> Floats:
        """softmax(M logits + b), one row per sample."""
        self._require_fitted()
        x = read_scores(scores, self.inputs)
        check_classes(x, self.classes_.size, type(self).__name__)
        return softmax(as_matrix(x) @ self.matrix_.T + self.intercept_)

    def _state(self) -> dict[str, Any] | None:
        if not hasattr(self, "matrix_"):
            return None
        return {"matrix": self.matrix_.tolist(), "intercept": self.intercept_.tolist()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.matrix_, self.intercept_ = restored(state, "matrix")
        self.classes_ = np.arange(self.intercept_.size, dtype=np.int64)


class MatrixLoss(AffineLoss):
    """With the parameters (M by rows, b)."""

    def forward(self, x: Floats, parameters: Floats) -> Floats:
        """M x + b."""
        k = x.shape[1]
        z = x @ parameters[: k * k].reshape(k, k).T
        z += parameters[k * k :]
        return z

    def adjoint(self, x: Floats, residual: Floats) -> Floats:
        """(Σ residual xᵀ by rows, Σ residual)."""
        return np.concatenate([(residual.T @ x).reshape(-1), residual.sum(axis=0)])
