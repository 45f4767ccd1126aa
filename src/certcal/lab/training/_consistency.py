"""Consistency regularisation: Gaussian training in which all draws of a sample should give the same answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from torch.nn import functional

from certcal.lab.training._recipe import Loss, Recipe, real_number
from certcal.lab.training.parts import Constants, GaussianNoise, Judged, TrainingParts, View, mean_log


@dataclass(frozen=True)
class Consistency(Constants, method="consistency"):
    """Mean cross entropy of the draws, plus their divergence from their average and its entropy: Jeong & Shin (2020).

    With f_v the probabilities under draw v of m and F = mean f_v, a sample of label y adds ::

        mean over v of [-log f_v,y + λ·KL(F ‖ f_v)] + η·H(F),

    the paper's regulariser, with the divergence in that direction and gradients through F as well, as in the authors'
    code; all is averaged over the samples. Everything is computed from logarithms, so there is no floor under F, which
    is 1e-20 there. With a single draw the divergence is zero and only the entropy is left: take at least two.

    λ is 10, 5 and 5 on MNIST in the names of the published results and in the commands of Jeong et al. (2021); a first
    version of the authors' commands had 20 throughout. On CIFAR-10 there are results with several λ; 20, 10 and 10 are
    among them, and are what Jeong et al. (2023)'s commands have.
    """

    weight: float = 10.0
    entropy: float = 0.5

    def __post_init__(self) -> None:
        self._set(**{name: real_number(getattr(self, name), 0.0, math.inf, name) for name in ("weight", "entropy")})

    def parts(self, recipe: Recipe) -> TrainingParts:
        """Gaussian noise and this loss."""
        return TrainingParts(GaussianNoise(recipe.draws), partial(self, loss=recipe.loss))

    def __call__(self, view: View, loss: Loss = "draws") -> Judged:
        """The loss, with the average of the draws' cross entropies or the cross entropy of their average."""
        every = view.target.draw_log_probabilities(view.found.inputs)
        mean = mean_log(every)
        drawn = every.mean(0)  # of logarithms: enough for the cross entropies and for the divergences
        cross_entropy = functional.nll_loss(drawn if loss == "draws" else mean, view.labels)
        probabilities = mean.exp()
        divergence = (probabilities * (mean - drawn)).sum(1)
        spread = -(probabilities * mean).sum(1)
        return Judged(cross_entropy + (self.weight * divergence + self.entropy * spread).mean(), mean)
