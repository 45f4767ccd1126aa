"""Training for the average certified radius by what it rewards: caring for easy samples alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor, nn

from certcal._base.checks import InputError, choice, share, whole_number
from certcal.attacks import Target
from certcal.attacks.ball import NORMS, Norm
from certcal.attacks.sphere import checked_length, sphere_attack
from certcal.bounds.concentration import clopper_pearson
from certcal.lab.training._recipe import MOST_EPOCHS, Recipe, float_or_nan
from certcal.lab.training.parts import Constants, GaussianNoise, Noise, SelectionContext, TrainingParts, objective_of
from certcal.lab.training.schedules import Moment, draw_like
from certcal.lab.training.step import ReadInputs, select_inputs

# Rows that the network gets at a time.
_ROWS = 500
# Whole numbers and their least values.
_WHOLE = {"begin": 0, "discard_draws": 1, "weigh_every": 0, "weigh_draws": 1, "sphere_steps": 0}


@dataclass(frozen=True)
class EasyFirst(Constants, method="acr"):
    """Gaussian training that gives up hard samples: Sun et al. (2025), section 5 and algorithm 2.

    Until the epoch ``begin`` it is Gaussian training. Then three things begin, each of which can be left out. None of
    them is meant to make a better classifier: together they show how far the average certified radius rises when hard
    samples are abandoned, which the distribution of p_A shows and the average hides.

    *Discarding* (5.1): at ``begin``, once, samples whose share of noisy copies classified as their label is below
    ``discard_below`` are left out for good. The others come round more often: the number of steps stays the same. They
    come in rounds, each sample once in each; algorithm 2 draws them with replacement, as is done here once they are
    weighed.

    *Weighing* (5.2): at ``begin`` and every ``weigh_every`` epochs after it (so section 5.4; algorithm 2 takes the
    epochs divisible by 10, which are the same for the published ``begin``), the samples that are left are drawn in
    proportion to their approximate certified radius; see :func:`radius_weights`.

    *Attack on the sphere* (5.3): every draw of noise is turned, at its length, until the network misclassifies the
    noisy input; see :func:`certcal.attacks.sphere.sphere_attack`.

    p_A is judged with the recipe's whole σ, whatever its warm-up, by the network in evaluation mode.

    ``sun-2025`` has tables 6 and 7. The paper judges ImageNet's samples by a network that was trained before with
    Gaussian noise: pass it as ``judge`` of :func:`certcal.lab.training.train`, or train from it.
    """

    takes: ClassVar[tuple[str, ...]] = ("judge",)

    begin: int = 70
    discard_below: float = 0.4
    discard_draws: int = 100
    weigh_every: int = 10
    weigh_draws: int = 16
    weigh_alpha: float = 0.1
    weigh_floor: float = 0.75
    sphere_steps: int = 6
    sphere_step: float = 0.25
    sphere_norm: Norm = "l2"

    def __post_init__(self) -> None:
        for name, least in _WHOLE.items():
            remedy = f"pass a whole number from {least} to {MOST_EPOCHS}"
            self._set(**{name: whole_number(getattr(self, name), least, MOST_EPOCHS, name, remedy)})
        below = float_or_nan(self.discard_below)
        if not 0 <= below < 1:
            raise InputError(
                f"discard_below is {self.discard_below!r}; pass a probability from 0, which discards nothing, to below "
                "1, which would discard everything"
            )
        remedy = "pass a probability above 0.5, at which the radius is positive, and below 1"
        floor = share(self.weigh_floor, "weigh_floor", remedy)
        if floor <= 0.5:
            raise InputError(f"weigh_floor is {self.weigh_floor}; {remedy}")
        choice(self.sphere_norm, NORMS, "sphere_norm")
        self._set(
            discard_below=below,
            weigh_alpha=share(self.weigh_alpha, "weigh_alpha", "pass a number between 0 and 1, such as 0.1"),
            weigh_floor=floor,
            sphere_step=checked_length(self.sphere_step, "sphere_step"),
        )

    def parts(self, recipe: Recipe) -> TrainingParts:
        """Noise, objective and selection."""
        drawn = GaussianNoise(recipe.draws)
        return TrainingParts(
            noise=SphereNoise(drawn, self) if self.sphere_steps else drawn,
            objective=objective_of(recipe),
            selection=EasySamples(self, recipe.sigma) if self.discard_below or self.weigh_every else None,
        )

    def can_begin(self, recipe: Recipe, started: bool) -> None:
        """Raise if nothing would ever begin, or if random weights would judge which samples are hard."""
        if not (self.discard_below or self.weigh_every or self.sphere_steps):
            return
        if self.begin >= recipe.epochs:
            raise InputError(
                f"begin is {self.begin} of {recipe.epochs} epochs (counted from 0), so what acr adds to gaussian "
                f"training would never begin; pass a begin below {recipe.epochs}, or more epochs"
            )
        if self.begin == 0 and self.discard_below and not started:
            raise InputError(
                "begin is 0, so random weights would judge which samples are hard and discard whole classes; pass the "
                "weights to begin with as start, a trained network as judge, a begin of at least 1 with more epochs "
                "than that, or discard_below 0"
            )


@dataclass(frozen=True)
class SphereNoise:
    """Noise that is turned on its sphere to where the network is wrong, from the epoch ``begin`` on."""

    drawn: Noise
    constants: EasyFirst

    def __call__(
        self, target: Target, inputs: Tensor, labels: Tensor, moment: Moment, generator: torch.Generator
    ) -> Tensor | None:
        """Noise, or None while σ is 0."""
        noise, own = self.drawn(target, inputs, labels, moment, generator), self.constants
        if noise is None or moment.epoch < own.begin:
            return noise
        return sphere_attack(
            target, inputs, labels, noise, steps=own.sphere_steps, length=own.sphere_step, norm=own.sphere_norm
        )


@dataclass(frozen=True)
class EasySamples:
    """Discards hard samples once, and weighs the others again and again."""

    constants: EasyFirst
    sigma: float

    def __call__(self, weights: Tensor, context: SelectionContext) -> Tensor:
        """New weights; a weight of 0 stays 0."""
        own, since = self.constants, context.moment.epoch - self.constants.begin
        if since == 0 and own.discard_below:
            weights = self._discard_hard(weights, context)
        if since >= 0 and own.weigh_every and since % own.weigh_every == 0:
            weights = self._weigh_by_radius(weights, context)
        return weights

    def _discard_hard(self, weights: Tensor, context: SelectionContext) -> Tensor:
        own, everything = self.constants, torch.arange(weights.numel())
        judged = context if context.judge is None else replace(context, target=context.judge)
        shares = self._votes(judged, everything, own.discard_draws, "discard").double() / own.discard_draws
        if not bool((shares >= own.discard_below).any()):
            raise InputError(
                f"no sample is left for epoch {context.moment.epoch}: of the noisy copies of each, fewer than "
                f"{own.discard_below:g} (discard_below) are classified right, at most {float(shares.max()):g}; pass a "
                "smaller discard_below, or a later begin"
            )
        return torch.where(shares >= own.discard_below, weights, 0.0)

    def _weigh_by_radius(self, weights: Tensor, context: SelectionContext) -> Tensor:
        own, kept = self.constants, (weights > 0).nonzero().squeeze(1)
        votes = self._votes(context, kept, own.weigh_draws, "weigh")
        found = radius_weights(votes.numpy(), own.weigh_draws, own.weigh_alpha, own.weigh_floor)
        return torch.zeros_like(weights).index_copy(0, kept, torch.tensor(found))

    def _votes(self, context: SelectionContext, index: Tensor, draws: int, purpose: str) -> Tensor:
        generator = context.generator(purpose)
        inputs, labels = select_inputs(context.inputs, index), context.labels[index]
        return label_votes(context.target, inputs, labels, self.sigma, draws, generator)


def radius_weights(votes: NDArray[Any], draws: int, alpha: float, floor: float) -> NDArray[np.float64]:
    """Sampling weights max(1, Φ⁻¹(p̂) / Φ⁻¹(floor)): approximate certified radii, as section 5.2 states them.

    p̂ is the lower Clopper-Pearson bound of the probability of the label. With the published 16 draws, α = .1 and floor
    .75 the weight is 1.642 for all votes, 1.134 for all but one, and 1 for fewer.

    The paper says that .75 is the smallest probability with a positive radius under this setting. It is the smallest
    *share* of votes with one: the bound is .561 for 12 of 16 votes and .496 for 11. So the radius at that share is
    Φ⁻¹(.561), and not the formula's Φ⁻¹(.75). The authors' code divides by the former, which makes the weights 1 up to
    12 votes, then 2.138, 3.420, 4.976 and 7.206. For these pass that bound as the floor, 0.561078.
    """
    bounds = clopper_pearson(np.arange(draws + 1), draws, alpha, "lower").lower
    radii = np.asarray(ndtri(bounds), np.float64) / float(ndtri(floor))
    return np.maximum(1.0, radii)[votes]


def label_votes(
    target: Target, inputs: Tensor | ReadInputs, labels: Tensor, sigma: float, draws: int, generator: torch.Generator
) -> Tensor:
    """Among some noisy copies of every sample, how many are classified as its label.

    Their share estimates the probability of the label under noise: p_A of a sample that the smoothed classifier gets
    right.
    """
    return class_votes(target, inputs, labels.numel(), sigma, draws, generator).gather(1, labels.cpu()[:, None])[:, 0]


def class_votes(
    target: Target, inputs: Tensor | ReadInputs, samples: int, sigma: float, draws: int, generator: torch.Generator
) -> Tensor:
    """Among some noisy copies of every sample, how many are classified as each class (samples, classes)."""
    weight = next(target.network.parameters(), None) if isinstance(target.network, nn.Module) else None
    several, found = max(1, _ROWS // draws), list[Tensor]()
    with torch.no_grad():
        for first in range(0, samples, several):
            clean = inputs[slice(first, min(first + several, samples))]
            clean = clean if weight is None else clean.to(weight.device)
            votes: Tensor | int = 0
            for done in range(0, draws, _ROWS):
                now = min(_ROWS, draws - done)
                noisy = draw_like(torch.randn, (now, *clean.shape), generator, clean).mul_(sigma).add_(clean)
                scores = target.log_probabilities(noisy.flatten(0, 1))
                best = scores.argmax(1).reshape(now, -1)
                votes = votes + torch.zeros_like(scores[: len(clean)], dtype=torch.int64).scatter_add_(
                    1, best.T, torch.ones_like(best.T)
                )
            found.append(torch.as_tensor(votes).cpu())
    return torch.cat(found)
