"""MACER: Gaussian training that also widens the certified radius of what is classified correctly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from certcal._base.checks import InputError, positive
from certcal.lab.training._recipe import Loss, Recipe, epochs_number, real_number
from certcal.lab.training.parts import Constants, GaussianNoise, Judged, TrainingParts, View, mean_log
from certcal.lab.training.schedules import finest

# Below this, the derivative of Φ⁻¹ leaves the type's range; Φ⁻¹(1e-300) is -37, Φ⁻¹(1e-36) is -12.6.
_LEAST = {torch.float64: 1e-300, torch.float32: 1e-36}


@dataclass(frozen=True)
class Macer(Constants, method="macer"):
    """Cross entropy of the average over the draws, plus a hinge on the soft certified radius: Zhai et al. (2020).

    With f the draws' probabilities and p the average over the draws of softmax(β·logits), a sample of label y adds ::

        -log mean f_y + λ·σ/2·max(0, γ - (Φ⁻¹(p_y) - Φ⁻¹(p_c))),   c the largest class but y,

    of which the second term is there only where p_y > p_c, that is where the soft smoothed prediction is right
    (Algorithm 1 of the paper). Its gradient is that of -λ times the radius of the soft smoothed classifier, until
    the radius is γσ/2. The sum is divided by the number of all samples, right or wrong. σ is the epoch's.

    Averages and Φ⁻¹ are taken in double precision, where the device has it, and 1 - p_y is the sum of the other
    classes, so nothing is lost where the network is certain. Saturated samples add nothing, as in the authors' code,
    which leaves out what is infinite or further apart than γ; at their γ this gives the same loss but for rounding.
    (Here a sample is saturated where p_c < 1e-300, which is 74 apart.) Their 1e-10 inside the logarithm is not needed.
    Where the two largest classes tie, the prediction counts as wrong. If the network gives probabilities, β multiplies
    their logarithms, which comes to the same as for the logits that they were made of.

    The defaults of the authors' code are for CIFAR-10 at σ = 0.25. For the other σ it refers to the paper: λ = 4 at
    0.5 is in the names of the results that Jeong and Shin (2020) published, and λ = 12 after the first decay of the
    learning rate at 1 in the commands of Jeong et al. (2023). The latter train for 150 epochs at learning rate 0.1 and
    have both 4 and 6 for λ at 0.5.
    """

    weight: float = 12.0
    margin: float = 8.0
    sharpness: float = 16.0
    deferred: int = 0

    def __post_init__(self) -> None:
        self._set(
            weight=real_number(self.weight, 0.0, math.inf, "weight"),
            margin=positive(self.margin, "margin"),
            sharpness=positive(self.sharpness, "sharpness"),
            deferred=epochs_number(self.deferred, "deferred"),
        )

    def fits(self, recipe: Recipe) -> None:
        """Raise unless the second term is there at the end of a recipe's training."""
        if self.deferred >= recipe.epochs:
            raise InputError(
                f"deferred is {self.deferred} of {recipe.epochs} epochs, so that nothing is left of macer; shorten it, "
                "or train for longer"
            )

    def parts(self, recipe: Recipe) -> TrainingParts:
        """Gaussian noise and this loss."""
        return TrainingParts(GaussianNoise(recipe.draws), partial(self, loss=recipe.loss))

    def __call__(self, view: View, loss: Loss = "smoothed") -> Judged:
        """The loss, with the cross entropy of the average over the draws or the average of the draws'."""
        every = view.target.draw_log_probabilities(view.found.inputs)
        mean = mean_log(every)
        entropy = functional.nll_loss(mean if loss == "smoothed" else every.mean(0), view.labels)
        if self.weight == 0 or view.moment.epoch < self.deferred:
            return Judged(entropy, mean)
        missing = self._radius_shortfall(every, view.labels).sum() / len(view.labels)
        return Judged(entropy + (self.weight * view.moment.sigma / 2 * missing).to(entropy.dtype), mean)

    def _radius_shortfall(self, every: Tensor, labels: Tensor) -> Tensor:
        """γ - (Φ⁻¹(p_y) - Φ⁻¹(p_c)) of the samples that are right and short of γ; gradients of no other."""
        mean = functional.log_softmax(self.sharpness * every.to(finest(every.device)), 2).exp().mean(0)
        others = mean.scatter(1, labels[:, None], 0.0)
        rest, runner = others.sum(1), others.amax(1)  # 1 - p_y without cancellation, and p_c
        right = mean.gather(1, labels[:, None])[:, 0] > runner
        # Others would have infinite slopes, which even a weight of zero does not make finite: 0·∞.
        finite = right & (runner > _LEAST[mean.dtype])
        wrong, second = (_quantile(torch.where(finite, each, 0.5)) for each in (rest, runner))
        return torch.where(finite, (self.margin + wrong + second).clamp_min(0.0), 0.0)


def _quantile(probability: Tensor) -> Tensor:
    """Φ⁻¹."""
    return torch.special.ndtri(probability)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
