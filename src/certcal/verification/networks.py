"""The verifier of torch networks: intervals of their confidences over a region, and an attack inside it.

Importing this loads torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certcal._checks import InputError
from certcal._margins import DOUBLE, SINGLE, predicted_intervals
from certcal.attacks import Target
from certcal.attacks.ascent import ascend, odds_against
from certcal.attacks.ball import LONGEST, Ball, Norm
from certcal.models import Model, wrap
from certcal.models.torch_threads import torch_threads
from certcal.verification.boxes import BoxedRows
from certcal.verification.kinds import Verified
from certcal.verification.networks_bounds import MarginBounds

# The smallest normal number of the network's arithmetic.
_TINY = float(np.finfo(np.float32).tiny)
# Samples at a time, and steps of the attack in each direction.
_SAMPLES, _STEPS = 64, 20


def network_verifier(model: Any) -> NetworkVerifier:
    """The verifier of a torch module in evaluation mode, or of what ``certcal.models`` makes of one."""
    adapted: Any = wrap(model) if isinstance(model, nn.Module) else model
    module: Any = getattr(adapted, "module", None)
    if not isinstance(module, nn.Module):
        raise InputError(f"{adapted.description} is no torch module", argument="model", remedy="give one")
    return NetworkVerifier(adapted, module)


class NetworkVerifier:
    """A torch network whose margins are bounded.

    A budget of 0 gives intervals alone. With any other margins are bounded by lines as well (CROWN), and before that as
    many unstable neurons per sample and layer as the budget allows.

    Parameters
    ----------
    model, module
        The network as a model, and its module.
    """

    method = "interval and linear bounds of the network (IBP, CROWN)"
    names: tuple[str, ...] = ()  # a module stores none: columns of a table go by position

    def __init__(self, model: Model, module: nn.Module) -> None:
        self.model, self.module = model, module
        self.description = model.description
        self._bounds: dict[tuple[int, ...], MarginBounds] = {}

    @property
    def classes(self) -> int:
        """Number of classes: what the last linear layer gives."""
        widths = [part.out_features for part in self.module.modules() if isinstance(part, nn.Linear)]
        if not widths:
            raise InputError(f"{self.description} has no Linear layer, which its classes are counted by")
        return widths[-1]

    def predict(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The network's own probabilities."""
        found = self._probabilities(self.model(_single(rows)))
        if found.shape[1] != self.classes:
            raise InputError(
                f"{self.description} returns {found.shape[1]} columns, its last Linear layer {self.classes}"
            )
        return found

    def verify(self, region: BoxedRows, predicted: NDArray[np.int64], *, budget: int, attack: bool) -> Verified:
        """Bound the answers over a region, and attack inside it."""
        if region.at_most is not None or region.integers or region.choices:
            raise InputError(
                "numbers of features, whole numbers and categories are for tree ensembles",
                argument="box",
                remedy="give amounts, or an l2 radius",
            )
        if not (np.isfinite(region.lower).all() and np.isfinite(region.upper).all()):
            raise InputError("inputs or amounts are not finite", argument="box", remedy="give finite ones")
        region = replace(
            region,
            rows=_single(region.rows),
            lower=_single(region.lower, -np.inf),
            upper=_single(region.upper, np.inf),
        )
        with torch_threads():
            parts = [slice(start, start + _SAMPLES) for start in range(0, len(region), _SAMPLES)]
            found = [self._verify(_part(region, part), predicted[part], budget, attack) for part in parts]
        joined = (np.concatenate([getattr(each, name) for each in found]) for name in Verified.__dataclass_fields__)
        return Verified(*joined)

    def _verify(self, region: BoxedRows, predicted: NDArray[np.int64], budget: int, attack: bool) -> Verified:
        rows, lower, upper = (torch.tensor(each) for each in (region.rows, region.lower, region.upper))
        classes = torch.tensor(predicted)
        bounds = self._of(tuple(rows.shape[1:]))
        self._check(bounds, rows, classes)
        ends = bounds.margins(lower, upper, classes, centre=rows, radius=region.l2, budget=budget)
        least, most = (each.numpy() for each in ends)
        unit = SINGLE if self.model.outputs == "probabilities" else DOUBLE
        low, high, certified = predicted_intervals(least, most, predicted, unit=unit)
        reached = [self.predict(region.rows)]
        if attack:
            reached += [self.predict(self._attacked(region, rows, lower, upper, classes, sign)) for sign in (1.0, -1.0)]
        two = reached[0].shape[1] == 2
        own = np.stack([each[:, 1] if two else each[np.arange(len(each)), predicted] for each in reached])
        flipped = np.stack([(each.argmax(axis=1) != predicted) & (not two) for each in reached]).any(axis=0)
        return Verified(low, high, certified, own.min(axis=0), own.max(axis=0), np.asarray(flipped))

    def _of(self, shape: tuple[int, ...]) -> MarginBounds:
        if shape not in self._bounds:
            self._bounds[shape] = MarginBounds(self.module, shape, self.model.outputs)
        return self._bounds[shape]

    def _check(self, bounds: MarginBounds, rows: Tensor, predicted: Tensor) -> None:
        """Refuse a network that, as it was traced, does not compute what its module computes of these samples."""
        answers = torch.tensor(self.model(rows.numpy()), dtype=torch.float64)
        lower, upper = bounds.margins(rows, rows, predicted, budget=0)
        least = most = answers
        if self.model.outputs == "probabilities":
            # Below its smallest normal number float32 has few digits or none.
            least, most = (answers - _TINY).clamp_min(0).log(), (answers + _TINY).log()
            lower, upper = lower - 1e-5 * (1 + lower.abs()), upper + 1e-5 * (1 + upper.abs())
        own = predicted[:, None]
        wrong = (most - least.gather(1, own) < lower) | (least - most.gather(1, own) > upper)
        finite = answers.isfinite()
        wrong &= finite & finite.gather(1, own) & (own != torch.arange(answers.shape[1]))
        if bool(wrong.any()):
            sample = int(wrong.any(1).nonzero()[0])
            raise InputError(
                f"{self.description} answers sample {sample} outside of what its layers can make of it; its forward "
                "must be the same for every batch, in float32 without reduced precision"
            )

    def _attacked(
        self, region: BoxedRows, rows: Tensor, lower: Tensor, upper: Tensor, predicted: Tensor, sign: float
    ) -> NDArray[Any]:
        """Inputs of the region where the odds of the predicted class are low (sign 1) or high (−1)."""
        distance: tuple[float, Norm] = (LONGEST, "linf") if region.l2 is None else (region.l2, "l2")
        ball = _Inside(*distance, None, lower, upper)

        def gain(log_probabilities: Tensor, _: int = 0) -> Tensor:
            return sign * odds_against(log_probabilities, predicted)

        def move(gradient: Tensor, moved: Tensor, step: int) -> Tensor:
            if region.l2 is None:
                return gradient.nan_to_num(0.0).sign() * (upper - lower) * (1.25 / _STEPS)
            return ball.step(gradient, 2.5 * region.l2 / _STEPS)

        target = Target(self.module, self.model.outputs)
        return ascend(target, rows, ball, _STEPS, move, gain, gain).numpy()

    def _probabilities(self, answers: NDArray[Any]) -> NDArray[np.float64]:
        wide = answers.astype(np.float64)
        if self.model.outputs == "probabilities":
            return wide
        powers = np.exp(wide - wide.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class _Inside(Ball):
    """A ball cut by a box with ends of its own for every entry; clean inputs are inside."""

    lower: Tensor | None = None
    upper: Tensor | None = None

    def project(self, clean: Tensor, moved: Tensor) -> Tensor:
        return super().project(clean, moved).clamp(self.lower, self.upper)

    def seal(self, clean: Tensor, moved: Tensor) -> Tensor:
        return super().seal(clean, moved).clamp(self.lower, self.upper)


def _single(values: NDArray[Any], side: float | None = None) -> NDArray[Any]:
    """Numbers of a table as the network is given them, in float32; ends of a box on the outer side."""
    if values.dtype != np.float64:
        return values
    nearest = values.astype(np.float32)
    if side is None:
        return nearest
    inward = nearest > values if side < 0 else nearest < values
    return np.where(inward, np.nextafter(nearest, np.float32(side)), nearest)


def _part(region: BoxedRows, part: slice) -> BoxedRows:
    return replace(region, rows=region.rows[part], lower=region.lower[part], upper=region.upper[part])
