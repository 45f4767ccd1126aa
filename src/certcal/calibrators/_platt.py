"""Platt scaling: a logistic curve of the log-odds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import choice
from certcal.calibrators._logistic import fit_logistic, log_odds, rounding, sigmoid
from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators._state import number

Floats = NDArray[np.float64]

TARGETS = ("platt", "outcomes")


class PlattScaling(OutcomeMap):
    """g(z) = sigmoid(a·logit(z) + b) with a >= 0: the least log loss of two parameters (Platt 1999).

    The loss is convex and solved by Newton's method. a >= 0 keeps the order of the confidences: where they are worse
    than nothing, g is constant. Confidences nearer to 0 or 1 than 2^-24 are taken as that far away. Where the loss has
    no minimum (outcomes that are separated by a confidence, or all the same), a ridge of 1e-8 towards the identity
    makes one; elsewhere it changes nothing that matters.

    Parameters
    ----------
    targets
        "platt": a correct sample counts as (N₊ + 1)/(N₊ + 2) and a wrong one as 1/(N₋ + 2), Platt's guard against
        overconfidence in small samples; N₊ and N₋ are the numbers (weights) of correct and wrong samples. "outcomes":
        1 and 0, the plain log loss.

    Attributes
    ----------
    slope_, intercept_
        a and b.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> logit = np.log(z / (1 - z))
    >>> correct = rng.random(z.size) < 1 / (1 + np.exp(0.5 - logit / 2))
    >>> fitted = PlattScaling().fit(z, correct)
    >>> round(fitted.slope_, 1), round(fitted.intercept_, 1)
    (0.5, -0.5)
    """

    def __init__(self, targets: str = "platt") -> None:
        self.targets = targets

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        targets = c.astype(np.float64)
        if choice(self.targets, TARGETS, "targets") == "platt":
            right = float(targets.sum() if w is None else w @ targets)
            wrong = float(c.size if w is None else w.sum()) - right
            targets = np.where(c == 1, (right + 1) / (right + 2), 1 / (max(wrong, 0.0) + 2))
        low, high = log_odds(z)
        found = fit_logistic([low + high, np.ones(z.size)], targets, w, [1.0, 0.0], 1)
        self.slope_, self.intercept_ = float(found[0]), float(found[1])

    def _apply(self, values: Floats) -> Floats:
        low, high = log_odds(values)
        return sigmoid(self.slope_ * (low + high) + self.intercept_)

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        room = rounding(self.slope_, self.intercept_)
        return np.maximum(self._apply(lower) - room, 0.0), np.minimum(self._apply(upper) + room, 1.0)

    def _state(self) -> dict[str, Any] | None:
        return {"slope": self.slope_, "intercept": self.intercept_} if hasattr(self, "slope_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.slope_, self.intercept_ = number(state, "slope", 0.0, 1e6), number(state, "intercept", -1e8, 1e8)
