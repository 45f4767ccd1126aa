"""Which parts each method is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from certcal.attacks import Adversary, Target
from certcal.training._noise import GaussianNoise, Noise, NoNoise
from certcal.training._objectives import MeanCrossEntropy, MixedLoss, Objective, SmoothedCrossEntropy
from certcal.training._recipe import ADVERSARY_OF, MIXED, Recipe
from certcal.training._schedules import Moment
from certcal.training._selection import AllSamples, Selection

MakeAdversary = Callable[[Recipe, Moment], Adversary]


class Scout(Protocol):
    """Looks ahead for an objective: whatever must be found out with the network fixed and in evaluation mode."""

    def __call__(
        self, target: Target, inputs: Tensor, labels: Tensor, moment: Moment, generator: torch.Generator
    ) -> Any:
        """What the objective finds as ``view.scouted``, without history."""
        ...


@dataclass(frozen=True)
class Parts:
    """What a training loop is made of.

    Attributes
    ----------
    noise, objective, selection
        See their protocols.
    adversary
        From the recipe and the numbers of the epoch to the adversary, or None for none.
    scout
        What an objective needs to know beyond that, or None for nothing.
    """

    noise: Noise
    objective: Objective
    adversary: MakeAdversary | None = None
    selection: Selection = field(default_factory=AllSamples)
    scout: Scout | None = None


def parts_of(recipe: Recipe) -> Parts:
    """The parts of a recipe's method."""
    if recipe.own is not None:
        return recipe.own.parts(recipe)
    objective = objective_of(recipe)
    if recipe.method in MIXED:
        objective = MixedLoss(recipe.mix, objective)
    noise = GaussianNoise(recipe.draws) if recipe.sigma else NoNoise()
    return Parts(noise, objective, _adversary(recipe))


def objective_of(recipe: Recipe) -> Objective:
    """The recipe's loss: by its name, or an objective of your own."""
    return OBJECTIVES[recipe.loss]() if isinstance(recipe.loss, str) else recipe.loss


def _adversary(recipe: Recipe) -> MakeAdversary | None:
    chosen = recipe.adversary if recipe.adversary is not None else ADVERSARY_OF.get(recipe.method)
    if chosen is None or isinstance(chosen, str):
        return None if chosen is None else ADVERSARIES[chosen]
    return lambda recipe, moment: chosen


def smoothadv_adversary(recipe: Recipe, moment: Moment) -> Adversary:
    """Of SmoothAdv."""
    from certcal.attacks import SmoothAdv

    return SmoothAdv(recipe.attack_steps, recipe.attack_scale)


def brier_adversary(recipe: Recipe, moment: Moment) -> Adversary:
    """Of Brier-ACT."""
    from certcal.attacks import BrierAdversary

    return BrierAdversary(recipe.attack_steps, recipe.attack_scale)


def acce_adversary(recipe: Recipe, moment: Moment) -> Adversary:
    """Of ACCE-ACT."""
    from certcal.attacks import AcceAdversary

    numbers: dict[str, Any] = {
        name: getattr(recipe, name)
        for name in ("rho", "rho_growth", "assignment_rate")
        if getattr(recipe, name) is not None
    }
    return AcceAdversary(
        recipe.attack_steps, recipe.attack_scale, bins=recipe.bins, sigma=moment.sigma or None, **numbers
    )


def ece_adversary(recipe: Recipe, moment: Moment) -> Adversary:
    """Of Exact-ACT."""
    from certcal.attacks import EceAdversary

    return EceAdversary(recipe.attack_steps, recipe.attack_scale, bins=recipe.bins)


def exact_adversary(recipe: Recipe, moment: Moment) -> Adversary:
    """Of Exact-ACT that looks ahead."""
    from certcal.attacks import ExactAdversary

    return ExactAdversary(recipe.attack_steps, recipe.attack_scale, bins=recipe.bins)


OBJECTIVES: dict[str, Callable[[], Objective]] = {"smoothed": SmoothedCrossEntropy, "draws": MeanCrossEntropy}
ADVERSARIES: dict[str, MakeAdversary] = {
    "smoothadv": smoothadv_adversary,
    "brier": brier_adversary,
    "acce": acce_adversary,
    "ece": ece_adversary,
    "exact": exact_adversary,
}
