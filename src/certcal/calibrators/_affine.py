"""The log loss of softmax(affine map of the logits) with a ridge, and its minimum by Newton's method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.calibrators._base import numbers
from certcal.calibrators._temperature import best_inverse
from certcal.calibrators.scores import Floats

TOLERANCE = 1e-12  # of the mean loss, as Newton's decrement estimates it
BLOCK = 2**16  # numbers worked on at once, so that they stay in the cache
LARGEST = 1e100  # of logits and of restored parameters: products of larger ones may overflow


class AffineLoss(ABC):
    """(Σ w·loss + ½ Σ ridge·(θ - centre)²) / Σ w, its gradient, and products with its Hessian, in passes over the rows.

    With z an affine function of the logits x whose parameters are θ, p = softmax(z) and loss = -log p_y, the gradient
    is A*(p - e_y) and the Hessian A*(diag p - p pᵀ)A plus the ridge, A being the linear part and A* its adjoint.
    """

    def __init__(self, x: NDArray[np.float64], y: NDArray[np.int64], w: Floats | None, ridge: Floats, centre: Floats):
        total = float(y.size if w is None else w.sum())
        self.x, self.y, self.centre, self.ridge = x, y, centre, ridge / total
        self.w = np.full(y.size, 1 / total) if w is None else w / total
        self.p = np.empty(x.shape)
        step = max(1, BLOCK // x.shape[1])
        self.blocks = [slice(start, start + step) for start in range(0, y.size, step)]

    @abstractmethod
    def forward(self, x: Floats, parameters: Floats) -> Floats:
        """Z of rows of logits, in a new array."""

    @abstractmethod
    def adjoint(self, x: Floats, residual: Floats) -> Floats:
        """Derivative of Σ residual·z in the parameters."""

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
        """The Hessian times a direction."""
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
        """The diagonal of the Hessian."""
        found = self.ridge.copy()
        for rows in self.blocks:
            p = self.p[rows]
            found += self.adjoint(self.x[rows] ** 2, p * (1 - p) * self.w[rows, None])
        return found


def minimise(loss: AffineLoss, starts: list[Floats]) -> Floats:
    """The parameters of the least loss, within TOLERANCE of it.

    Newton's method with conjugate gradients inside and halved steps: it begins at the best of the starts and ends after
    the first step by which the quadratic model promises less than TOLERANCE. Nothing in it is random.
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


def as_matrix(x: NDArray[np.float32] | NDArray[np.float64]) -> Floats:
    """Logits as float64; InputError where their squares would overflow."""
    matrix = x.astype(np.float64, copy=False)
    large = np.abs(matrix) > LARGEST
    if large.any():
        row, column = np.unravel_index(int(np.argmax(large)), matrix.shape)
        raise InputError(f"scores[{row}, {column}] is {matrix[row, column]:g}; rescale the logits to ordinary sizes")
    return matrix


def temperature_start(x: Floats, y: NDArray[np.int64], w: Floats | None) -> float:
    """The best single factor of the logits, whatever their size."""
    below = x - x.max(axis=1, keepdims=True)
    spread = -float(below.min(axis=1).mean())
    return best_inverse(below / spread, y, w) / spread if spread > 1 / LARGEST else 1.0


def restored(state: Mapping[str, Any], name: str) -> tuple[Floats, Floats]:
    """The named parameters, one row or number per class, and the intercept of a state."""
    intercept = numbers(state, "intercept", (None,))
    k = intercept.size
    found = numbers(state, name, (k, k) if name == "matrix" else (k,))
    if k < 2 or max(np.abs(found).max(), np.abs(intercept).max()) > LARGEST:
        raise InputError(f"{name} and intercept are damaged; expected ordinary numbers for at least 2 classes")
    return found, intercept
