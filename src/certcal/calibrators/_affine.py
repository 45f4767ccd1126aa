"""Vector and matrix scaling: softmax(affine map of the logits), the least regularised log loss by Newton's method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, positive
from certcal.calibrators._base import numbers
from certcal.calibrators._formulas import ClassFormula
from certcal.calibrators._temperature import best_inverse
from certcal.calibrators.scores import LEAST, Floats, ScoreMap, as_logits, softmax

TOLERANCE = 1e-12  # of the mean loss, as Newton's decrement estimates it
BLOCK = 2**16  # numbers worked on at once, so that they stay in the cache
LARGEST = 1e100  # of logits and of restored parameters: products of larger ones may overflow
MOST_CLASSES = 1000  # of a matrix: a million parameters


class AffineScaling(ScoreMap):
    """softmax(A x + b) with a linear part A, one factor per class or a matrix, and an intercept b.

    The loss is convex, and its ridge towards the identity gives it exactly one minimum, whatever the data are.
    """

    penalty: float
    intercept_: Floats
    _linear: ClassVar[str]  # name of A
    _structured: ClassVar[bool] = False  # whether A is pulled towards the best temperature, and not towards 1

    @abstractmethod
    def _prior(self, classes: int) -> tuple[Floats, Floats]:
        """A of the map that changes nothing, and the ridge of each of its entries."""

    def _fit(self, x: NDArray[Any], y: NDArray[np.int64], w: Floats | None) -> None:
        penalty = positive(self.penalty, "penalty")
        x = _finite_squares(as_logits(x, self.inputs, self.floor_))
        k: int = x.shape[1]
        identity, pull = self._prior(k)
        centre, best = np.concatenate([identity.reshape(-1), np.zeros(k)]), _best_factor(x, y, w)
        scale, start = (best, 1.0) if self._structured else (1.0, best)
        ridge = np.concatenate([pull.reshape(-1), np.full(k, penalty * (k if self._structured else 1))])
        found = minimise(AffineLoss(scale * x, y, w, ridge, centre), [centre, start * centre])
        setattr(self, f"{self._linear}_", scale * found[:-k].reshape(identity.shape))
        self.intercept_ = found[-k:]

    def _probabilities(self, x: NDArray[Any]) -> Floats:
        x = _finite_squares(as_logits(x, self.inputs, self.floor_))
        p = softmax(_affine(x, getattr(self, f"{self._linear}_"), self.intercept_))
        return np.maximum(p, LEAST, out=p)

    def _formula(self) -> ClassFormula:
        words = f"softmax({self._linear} · logits + intercept)"
        linear: Floats = getattr(self, f"{self._linear}_")
        return ClassFormula(self.inputs, self.classes_.size, words, linear, self.intercept_, self.floor_)

    def _restore(self, state: Mapping[str, Any]) -> None:
        name, intercept = self._linear, numbers(state, "intercept", (None,))
        k = intercept.size
        found = numbers(state, name, (k, k) if name == "matrix" else (k,))
        if k < 2 or max(np.abs(found).max(), np.abs(intercept).max()) > LARGEST:
            raise InputError(f"{name} and intercept are damaged; expected ordinary numbers for at least 2 classes")
        setattr(self, f"{name}_", found)
        self.intercept_, self.classes_ = intercept, np.arange(k, dtype=np.int64)


class VectorScaling(AffineScaling):
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
        counts as half the least positive one of the fit). Never guessed from the values.

    Attributes
    ----------
    scale_, intercept_
        a and b, one number per class.

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
    _linear, _kept = "scale", {"scale": None, "intercept": None}

    def __init__(self, penalty: float = 1.0, inputs: str = "logits") -> None:
        self.penalty = penalty
        self.inputs = inputs

    def _prior(self, classes: int) -> tuple[Floats, Floats]:
        return np.ones(classes), np.full(classes, float(self.penalty) * (classes if self._structured else 1))


class MatrixScaling(AffineScaling):
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
        As for :class:`VectorScaling`.

    Attributes
    ----------
    matrix_, intercept_
        M, with M_kl what the logit of class l adds to that of class k, and b.

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
    _linear, _kept = "matrix", {"matrix": None, "intercept": None}

    def __init__(self, penalty: float = 1.0, off_diagonal_penalty: float = 300.0, inputs: str = "logits") -> None:
        self.penalty = penalty
        self.off_diagonal_penalty = off_diagonal_penalty
        self.inputs = inputs

    def _prior(self, classes: int) -> tuple[Floats, Floats]:
        off = positive(self.off_diagonal_penalty, "off_diagonal_penalty")
        if classes > MOST_CLASSES:
            raise InputError(f"scores have {classes} columns, too many for a matrix of their pairs; use VectorScaling")
        identity = np.eye(classes)
        return identity, np.where(identity == 1, float(self.penalty), off)


class StructuredVectorScaling(VectorScaling):
    """Vector scaling around the best temperature: softmax(β (1 + v)·x + b) (SVS of Berta et al. 2025).

    β is that of :class:`TemperatureScaling`; then Σ w·log loss + ½ penalty·K·(Σ v² + Σ b²) is minimised over v and b,
    for K classes. So with few samples the map is temperature scaling, and the unit of the logits does not matter.

    Parameters
    ----------
    penalty, inputs
        As for :class:`VectorScaling`.

    Attributes
    ----------
    scale_, intercept_
        β (1 + v) and b, one number per class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20_000, 3))
    >>> labels = (2 * logits + rng.gumbel(size=(20_000, 3))).argmax(axis=1)
    >>> StructuredVectorScaling().fit(10 * logits, labels).scale_.round(1).tolist()
    [0.2, 0.2, 0.2]
    """

    _structured = True


class StructuredMatrixScaling(MatrixScaling):
    """Matrix scaling around the best temperature: softmax(β (1 + M) x + b) (SMS of Berta et al. 2025).

    As :class:`StructuredVectorScaling`, with a matrix M, whose entries off the diagonal have the ridge
    off_diagonal_penalty·K (K - 1): the more of them there are, the nearer each is kept to 0.

    Parameters
    ----------
    penalty, off_diagonal_penalty, inputs
        As for :class:`MatrixScaling`, in these units.

    Attributes
    ----------
    matrix_, intercept_
        β (1 + M) and b.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20_000, 2))
    >>> mixed = logits @ np.array([[2.0, 0.5], [0.0, 2.0]]).T
    >>> labels = (mixed + rng.gumbel(size=(20_000, 2))).argmax(axis=1)
    >>> matrix = StructuredMatrixScaling().fit(logits, labels).matrix_
    >>> (matrix[0] - matrix[1]).round(1).tolist()
    [2.0, -1.5]
    """

    _structured = True

    def __init__(self, penalty: float = 1.0, off_diagonal_penalty: float = 1.0, inputs: str = "logits") -> None:
        super().__init__(penalty, off_diagonal_penalty, inputs)

    def _prior(self, classes: int) -> tuple[Floats, Floats]:
        identity, pull = super()._prior(classes)
        return identity, pull * np.where(identity == 1, classes, classes * (classes - 1))


class AffineLoss:
    """(Σ w·loss + ½ Σ ridge·(θ - centre)²) / Σ w, its gradient, and products with its Hessian, in passes over the rows.

    With z = A x + b an affine function of the logits x whose parameters are θ = (A by rows, b), p = softmax(z) and
    loss = -log p_y, the gradient is J*(p - e_y) and the Hessian J*(diag p - p pᵀ)J plus the ridge, J being the linear
    map from θ to z and J* its adjoint.
    """

    def __init__(self, x: NDArray[np.float64], y: NDArray[np.int64], w: Floats | None, ridge: Floats, centre: Floats):
        total = float(y.size if w is None else w.sum())
        self.x, self.y, self.centre, self.ridge = x, y, centre, ridge / total
        self.w = np.full(y.size, 1 / total) if w is None else w / total
        self.p = np.empty(x.shape)
        k: int = x.shape[1]
        self.shape = (k,) if centre.size == 2 * k else (k, k)  # of A
        step = max(1, BLOCK // k)
        self.blocks = [slice(start, start + step) for start in range(0, y.size, step)]

    def forward(self, x: Floats, parameters: Floats) -> Floats:
        """Z of rows of logits, in a new array."""
        k: int = x.shape[1]
        return _affine(x, parameters[:-k].reshape(self.shape), parameters[-k:])

    def adjoint(self, x: Floats, residual: Floats) -> Floats:
        """Derivative of Σ residual·z in the parameters."""
        linear = np.einsum("ik,ik->k", x, residual) if len(self.shape) == 1 else (residual.T @ x).reshape(-1)
        return np.concatenate([linear, residual.sum(axis=0)])

    def at(self, parameters: Floats) -> tuple[float, Floats]:
        """Loss and gradient; :meth:`product` and :meth:`diagonal` are then of these parameters."""
        away = parameters - self.centre
        loss = 0.5 * float(away @ (self.ridge * away))
        gradient = self.ridge * away
        for rows in self.blocks:
            x, y, w, p = self.x[rows], self.y[rows], self.w[rows], self.p[rows]
            z = self.forward(x, parameters)
            z -= z.max(axis=1, keepdims=True)
            np.exp(z, out=p)
            total = p.sum(axis=1)
            each = np.arange(y.size)
            loss += float(w @ (np.log(total) - z[each, y]))
            p /= total[:, None]
            residual = p * w[:, None]
            residual[each, y] -= w
            gradient += self.adjoint(x, residual)
        return loss, gradient

    def product(self, direction: Floats) -> Floats:
        found = self.ridge * direction
        for rows in self.blocks:
            x, w, p = self.x[rows], self.w[rows], self.p[rows]
            change = self.forward(x, direction)
            change *= p
            change -= p * change.sum(axis=1, keepdims=True)
            change *= w[:, None]
            found += self.adjoint(x, change)
        return found

    def diagonal(self) -> Floats:
        found = self.ridge.copy()
        for rows in self.blocks:
            p = self.p[rows]
            found += self.adjoint(self.x[rows] ** 2, p * (1 - p) * self.w[rows, None])
        return found


def minimise(loss: AffineLoss, starts: list[Floats]) -> Floats:
    """The parameters of the least loss, within TOLERANCE of it.

    Newton's method with conjugate gradients inside and halved steps: it begins at the best of the starts and ends after
    the first step by which the quadratic model promises less than TOLERANCE. Nothing in it is random. scipy's general
    optimisers took 0.8 to 5 times as long (one of them at times far longer), and mostly end 1e-9 to 1e-6 from the
    minimum: there the loss, which they compare, no longer changes, while the gradient still tells where to go.
    """
    best = min(range(len(starts)), key=lambda k: loss.at(starts[k])[0])
    here = starts[best]
    value, gradient = loss.at(here)
    for _ in range(200):
        direction = _newton_direction(loss, gradient)
        slope = float(gradient @ direction)
        if -0.5 * slope <= TOLERANCE:
            return here + direction
        for halvings in range(60):
            share = 0.5**halvings
            there = here + share * direction
            new_value, new_gradient = loss.at(there)
            if new_value <= value + 1e-4 * share * slope + 1e-15 * abs(value):
                break
        else:
            return here  # what remains is rounding
        here, value, gradient = there, new_value, new_gradient
    return here


def _newton_direction(loss: AffineLoss, gradient: Floats) -> Floats:
    """-H⁻¹ gradient by conjugate gradients, the more exact the smaller the gradient is."""
    inverse = 1 / loss.diagonal()
    direction = np.zeros_like(gradient)
    residual = -gradient
    scaled = inverse * residual
    ahead = scaled.copy()
    size = float(residual @ scaled)
    enough = size * min(0.01, size)
    for _ in range(min(10 * gradient.size, 1000)):
        if size <= enough:
            break
        product = loss.product(ahead)
        length = size / float(ahead @ product)
        direction += length * ahead
        residual -= length * product
        scaled = inverse * residual
        before, size = size, float(residual @ scaled)
        ahead = scaled + (size / before) * ahead
    return direction


def _affine(x: Floats, linear: Floats, intercept: Floats) -> Floats:
    z = x * linear if linear.ndim == 1 else x @ linear.T
    z += intercept
    return z


def _finite_squares(x: NDArray[Any]) -> Floats:
    """Logits as float64; InputError where their squares would overflow."""
    matrix = x.astype(np.float64, copy=False)
    large = np.abs(matrix) > LARGEST
    if large.any():
        row, column = np.unravel_index(int(np.argmax(large)), matrix.shape)
        raise InputError(f"scores[{row}, {column}] is {matrix[row, column]:g}; rescale the logits to ordinary sizes")
    return matrix


def _best_factor(x: Floats, y: NDArray[np.int64], w: Floats | None) -> float:
    """The best single factor of the logits, whatever their size."""
    below = x - x.max(axis=1, keepdims=True)
    spread = -float(below.min(axis=1).mean())
    return best_inverse(below / spread, y, w) / spread if spread > 1 / LARGEST else 1.0
