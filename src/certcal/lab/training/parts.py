"""The parts that a training loop is made of: noise, adversary, objective and selection; and those of every method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from certcal.attacks import ADVERSARIES, Adversary, Found, Target
from certcal.lab.training.schedules import Moment, draw_like, generator_of
from certcal.lab.training_methods import METHODS

if TYPE_CHECKING:
    from certcal.lab.training._recipe import Recipe


# --- noise: what is added to the inputs of a piece before the network sees them ------------------------------------


# From a target (evaluation mode, without gradients), inputs (n, …), labels, the moment and a generator to noise
# (draws, n, …), or None for none.
Noise = Callable[[Target, Tensor, Tensor, Moment, torch.Generator], Tensor | None]


@dataclass(frozen=True)
class GaussianNoise:
    """Independent Gaussian noise of the epoch's σ; none while that is 0."""

    draws: int = 1

    def __call__(
        self, target: Target, inputs: Tensor, labels: Tensor, moment: Moment, generator: torch.Generator
    ) -> Tensor | None:
        """Noise (draws, n, …), or None while σ is 0."""
        if moment.sigma == 0:
            return None
        return draw_like(torch.randn, (self.draws, *inputs.shape), generator, inputs).mul_(moment.sigma)


# A search on which an objective depends, with the same arguments: what it finds is the ``view.search_result``, without
# history.
InnerSearch = Callable[[Target, Tensor, Tensor, Moment, torch.Generator], Any]


# --- selection: which samples an epoch is made of -------------------------------------------------------------------


class SelectionWarning(UserWarning):
    """A class of which a selection left no sample. The text says which, from which epoch on, and what to try."""


@dataclass(frozen=True, eq=False)
class SelectionContext:
    """The network and the data of an epoch, by which a selection weighs the samples."""

    target: Target
    inputs: Any  # a tensor, or what is read when it is indexed
    labels: Tensor
    moment: Moment
    seed: int
    device: torch.device | str = "cpu"
    judge: Target | None = None  # another network than the one in training, for once-and-for-all decisions

    def generator(self, purpose: str) -> torch.Generator:
        """A generator for this epoch; another purpose gives another."""
        return generator_of(f"selection {purpose}", self.seed, self.moment.epoch, device=self.device)


# New weights of the samples (n,) at the beginning of an epoch, from those of the epoch before, which are 1 at first. A
# sample of weight 0 is left out; if the others' weights differ, they are drawn in proportion. Nothing else is
# remembered from epoch to epoch, and the weights are part of every checkpoint.
SampleSelection = Callable[[Tensor, SelectionContext], Tensor]


def lost_classes(weights: Tensor, labels: Tensor) -> list[int]:
    """Classes that have samples, but none of weight above 0."""
    everything = torch.bincount(labels)
    left = torch.bincount(labels[weights > 0], minlength=everything.numel())
    return [int(each) for each in ((everything > 0) & (left == 0)).nonzero().flatten()]


def selection_record(weights: Tensor, labels: Tensor) -> dict[str, Any]:
    """Fields of the log: share of samples kept, largest weight, and classes without any sample."""
    lost = lost_classes(weights, labels)
    kept = int((weights > 0).sum()) / weights.numel()
    return {"kept": kept, "largest_weight": float(weights.max()), **({"lost_classes": lost} if lost else {})}


# --- objective: what the weights descend on --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class View:
    """What an objective sees of a piece."""

    target: Target
    """The network in training mode, with the piece's noise."""
    clean: Tensor
    labels: Tensor
    """The samples."""
    found: Found
    """What the adversary made of them; the clean inputs themselves without one."""
    moment: Moment
    """The numbers of the epoch."""
    generator: torch.Generator
    """For this piece, for objectives that are random themselves; of the network's device, where that has generators."""
    search_result: Any = None
    """What the method's inner search returned; None without one."""


@dataclass(frozen=True, eq=False)
class Judged:
    """An objective's answer."""

    loss: Tensor
    """One number, the mean over the piece, with its history."""
    log_probabilities: Tensor
    """(n, classes), from which the accuracy that is logged is taken."""


class Objective(Protocol):
    """From what there is of a piece to the loss of the weights."""

    def __call__(self, view: View) -> Judged:
        """The loss."""
        ...


def smoothed_cross_entropy(view: View) -> Judged:
    """Cross entropy of the average over the draws: equation (7) of Emde et al."""
    log_probabilities = view.target.log_probabilities(view.found.inputs)
    return Judged(functional.nll_loss(log_probabilities, view.labels), log_probabilities)


def mean_cross_entropy(view: View) -> Judged:
    """Mean over the draws of their cross entropies, an upper bound of the average's: Salman et al. (2019)'s code."""
    every = view.target.draw_log_probabilities(view.found.inputs)
    loss = functional.nll_loss(every.flatten(0, 1), view.labels.repeat(every.shape[0]))
    return Judged(loss, mean_log(every))


@dataclass(frozen=True)
class MixedLoss:
    """η·CE + (1 - η)·calibration error of the adversary, its bins held fixed: ACCE-ACT* (appendix J.4.2).

    The calibration error is that of equation (5), with its 1/N: at most 1. The paper takes η from .8 to .99 because its
    own "may be magnitudes larger than the CE", which only the sum over the batch can be; so the same η gives the
    calibration less weight here, unless ``sums`` takes the sum. Where there was no adversary (ε = 0), the loss is the
    cross entropy alone.
    """

    mix: float = 0.9
    entropy: Objective = smoothed_cross_entropy
    sums: bool = False

    def __call__(self, view: View) -> Judged:
        """Judge the batch, with the adversary's calibration error where it has one."""
        judged = self.entropy(view)
        if view.found.calibration is None:
            return judged
        # From one forward pass: of the average over the draws, whichever cross entropy it is mixed with.
        calibration = view.found.calibration(judged.log_probabilities) * (view.labels.shape[0] if self.sums else 1)
        return Judged(self.mix * judged.loss + (1 - self.mix) * calibration, judged.log_probabilities)


def mean_log(every: Tensor) -> Tensor:
    """Log probabilities of the average over the draws, from those of every draw (draws, n, classes)."""
    return torch.logsumexp(every, 0) - math.log(every.shape[0])


LOSSES: dict[str, Objective] = {"smoothed": smoothed_cross_entropy, "draws": mean_cross_entropy}


# --- all parts of a method --------------------------------------------------------------------------------------------

MakeAdversary = Callable[[Moment], Adversary]


@dataclass(frozen=True)
class TrainingParts:
    """Parts of a training loop; None for a part that a method does without."""

    noise: Noise | None
    objective: Objective
    adversary: MakeAdversary | None = None
    selection: SampleSelection | None = None
    inner_search: InnerSearch | None = None


class Constants:
    """Base of a method's own constants: frozen dataclasses with defaults, named after the method's entry."""

    of: ClassVar[dict[str, type[Any]]] = {}

    def __init_subclass__(cls, method: str | None = None) -> None:
        if method is not None:
            Constants.of[method] = cls

    def parts(self, recipe: Recipe) -> TrainingParts:
        """Parts of the training loop."""
        raise NotImplementedError

    def fits(self, recipe: Recipe) -> None:
        """Raise unless the constants go together with the rest of a recipe."""

    # What a training by the method can be given besides its data: "judge", "soft".
    takes: ClassVar[tuple[str, ...]] = ()
    two_classes: ClassVar[bool] = False  # whether it is for networks with two classes only

    def can_begin(self, recipe: Recipe, started: bool) -> None:
        """Raise unless training can begin; ``started`` if it does so, or judges, with weights trained before."""

    def _set(self, **checked: Any) -> None:
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def parts_of(recipe: Recipe) -> TrainingParts:
    """The parts of a recipe's method."""
    if recipe.own is not None:
        return recipe.own.parts(recipe)
    objective = objective_of(recipe)
    if METHODS[recipe.method].mixes:
        objective = MixedLoss(recipe.mix, objective, METHODS[recipe.method].sums)
    noise = GaussianNoise(recipe.draws) if recipe.sigma else None
    return TrainingParts(noise, objective, adversary_of(recipe))


def objective_of(recipe: Recipe) -> Objective:
    """The recipe's loss: by its name, or an objective of your own."""
    return LOSSES[recipe.loss] if isinstance(recipe.loss, str) else recipe.loss


def adversary_of(recipe: Recipe) -> MakeAdversary | None:
    """From the numbers of an epoch to the recipe's adversary."""
    chosen: Any = METHODS[recipe.method].adversary if recipe.adversary is None else recipe.adversary
    if not isinstance(chosen, str):
        return None if chosen is None else lambda moment: chosen
    kind: Any = ADVERSARIES[chosen]

    def made(moment: Moment) -> Adversary:
        known = {
            **{"steps": recipe.attack_steps, "scale": recipe.attack_scale, "bins": recipe.bins},
            **{"sigma": moment.sigma or None, "rho": recipe.rho, "rho_growth": recipe.rho_growth},
            "assignment_rate": recipe.assignment_rate,
        }
        names = [each.name for each in fields(kind)]
        return kind(**{name: value for name, value in known.items() if name in names and value is not None})

    return made
