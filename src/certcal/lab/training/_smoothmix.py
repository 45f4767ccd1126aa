"""SmoothMix: less confidence between an input and an adversary that may go anywhere (Jeong et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from certcal._base.checks import InputError, positive
from certcal.attacks import Ball, Target
from certcal.attacks.ascent import ascend
from certcal.attacks.ball import LONGEST
from certcal.lab.training._recipe import Recipe, epochs_number
from certcal.lab.training.parts import Constants, GaussianNoise, Judged, TrainingParts, View, mean_log
from certcal.lab.training.schedules import Moment, draw_like, warmup_share


@dataclass(frozen=True)
class SmoothMix(Constants, method="smoothmix"):
    """SmoothMix (Jeong, Park, Kim, Lee, Kim and Shin, "SmoothMix", NeurIPS 2021), which is an objective itself.

    With M draws δ_1, …, δ_M of the noise, which stay the same throughout a step, f the network's probabilities,
    F̄(x) = (1/M) Σ f(x + δ_i) and C classes, the loss is the mean over the samples of ::

        (1/M) Σ_i -log f_y(x + δ_i)  +  w η 1[F̄(x) is right] (1/M) Σ_i KL( (1 - λ) F̄(x) + λ/C ‖ f(x_λ + δ_i) )

    where x_λ = (1 - λ) x + λ x̃ and λ is uniform on [0, ½], one per sample. The adversary x̃ is x after T steps (the
    recipe's ``attack_steps``) of length α along the normalised gradient of -log F̄_y, each followed by clamping into the
    recipe's ``box``; nothing else limits how far it goes. It is sought with the network fixed in evaluation mode. The
    gradients of the weights pass through both arguments of the divergence, so through the soft label too, and not
    through x̃, λ and the indicator; all of this, the weight w = min(1, (epoch + 1) / W) and the average over all
    samples, right or wrong, is as in the authors' code.

    The recipe's ``norm``, ``epsilon`` and ``loss`` have no part in it: steps have their length in ℓ2, and the first
    term is the average of the draws' cross entropies.
    """

    step: float = 1.0
    mixed_weight: float = 5.0
    one_step: bool = False
    mixed_warmup: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.one_step, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"one_step is {self.one_step!r}; pass True or False")
        self._set(
            step=positive(self.step, "step"),
            mixed_weight=positive(self.mixed_weight, "mixed_weight"),
            mixed_warmup=epochs_number(self.mixed_warmup, "mixed_warmup"),
        )

    def parts(self, recipe: Recipe) -> TrainingParts:
        """Gaussian noise, the search for adversaries, and this."""
        search = FreeAdversary(self, recipe.attack_steps, box=recipe.box)
        return TrainingParts(GaussianNoise(recipe.draws), self, inner_search=search)

    def share(self, moment: Moment) -> float:
        """The weight w of an epoch."""
        return warmup_share(moment.epoch, self.mixed_warmup)

    def __call__(self, view: View) -> Judged:
        """The loss, with λ from the view's generator."""
        ends: MixEndpoints = view.search_result
        shares = draw_like(torch.rand, [len(view.labels)], view.generator, ends.near) / 2
        column = shares.reshape(-1, *(1,) * (ends.near.ndim - 1))
        every = view.target.draw_log_probabilities(ends.near)
        mixed = view.target.draw_log_probabilities((1 - column) * ends.near + column * ends.far)
        weight = self.share(view.moment) * self.mixed_weight
        loss = smoothmix_loss(every, mixed, view.labels, shares, weight)
        return Judged(loss, mean_log(every))


@dataclass(frozen=True, eq=False)
class MixEndpoints:
    """Inputs (or their one-step adversaries) and their adversaries, between which the objective mixes."""

    near: Tensor
    far: Tensor


@dataclass(frozen=True)
class FreeAdversary:
    """Adversaries of the smoothed cross entropy by steps of a fixed length, which no ball contains."""

    constants: SmoothMix
    steps: int
    box: tuple[float, float] | None

    def __call__(
        self, target: Target, inputs: Tensor, labels: Tensor, moment: Moment, generator: torch.Generator
    ) -> MixEndpoints:
        """Search for the adversaries."""
        own, anywhere, column = self.constants, Ball(LONGEST, box=self.box), labels.unsqueeze(1)

        def loss(log_probabilities: Tensor, step: int) -> Tensor:
            return -log_probabilities.gather(1, column).squeeze(1)

        if not own.one_step or self.steps == 1:
            return MixEndpoints(inputs, ascend(target, inputs, anywhere, self.steps, own.step, loss))
        first = ascend(target, inputs, anywhere, 1, own.step, loss)
        reach = Ball(min(own.share(moment) * own.step, LONGEST), box=self.box)
        return MixEndpoints(reach.seal(inputs, first), ascend(target, first, anywhere, self.steps - 1, own.step, loss))


def smoothmix_loss(every: Tensor, mixed: Tensor, labels: Tensor, shares: Tensor, weight: float) -> Tensor:
    """The mean over the samples of the cross entropy and ``weight`` times the divergence at the mixed inputs."""
    draws, _, classes = every.shape
    natural = functional.nll_loss(every.flatten(0, 1), labels.repeat(draws))
    average = mean_log(every)
    column = shares.unsqueeze(1)
    # The soft label in logarithms, so that it has a gradient where a probability rounds to 0.
    soft = torch.logaddexp(torch.log1p(-column) + average, column.log() - math.log(classes))
    divergence = (soft.exp() * (soft - mixed)).sum(2)
    right = average.detach().argmax(1) == labels
    return natural + weight * torch.where(right, divergence, 0.0).mean()
