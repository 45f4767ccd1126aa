"""Which samples a method's loss pulls at: gradient norms of easy and of hard samples."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from certcal._checks import InputError, whole_number
from certcal.attacks import Target
from certcal.data import Inputs
from certcal.models.protocol import Outputs
from certcal.models.torch_threads import torch_threads
from certcal.training._acr import SphereNoise
from certcal.training._gradient_norms import GradientNorms
from certcal.training._methods import Parts, parts_of
from certcal.training._prepare import fitted
from certcal.training._randomness import generator_of
from certcal.training._recipe import Recipe
from certcal.training._schedules import Moment, moment
from certcal.training._step import Workshop
from certcal.training._votes import label_votes

SAMPLES, DRAWS = 500, 100
_MOST = 10_000_000


def gradient_norms(
    network: nn.Module,
    inputs: Inputs,
    recipe: Recipe,
    *,
    samples: int = SAMPLES,
    draws: int = DRAWS,
    seed: int = 0,
    outputs: Outputs | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> GradientNorms:
    """How strongly easy and hard samples pull at the weights of a network, by the loss of a training method.

    The norm of the gradient that a sample gives is a proxy of its weight in training (Sun et al. 2025, §4.3, Table 2).
    For a random part of the data this estimates p_A, the share of noisy copies that get their true label, and takes
    the ℓ2 norm of the gradient of the method's own loss of that one sample with respect to all trained weights. Noise,
    adversary and whatever else the method does are those of a step of training, with the numbers of its last epoch.

    What is left out: the network is in evaluation mode, so that batch normalisation does not mix samples and nothing
    is dropped out; weight decay, which no sample causes; and how often a method that weighs its samples draws each.
    All samples of the data can be chosen, also those that the method would discard.

    What is random: which samples are taken (all, where there are no more), the draws for p_A, and the noise of the
    loss, which is drawn once per sample. A sample near p_A = ½ may be taken for easy or hard by chance.

    Parameters
    ----------
    network
        The network, trained or on the way; it stays as it is.
    inputs
        Data, usually those it was trained on.
    recipe
        What it is trained with. The noise and σ are the recipe's.
    samples
        How many samples to take at most.
    draws
        Noisy copies of each for p_A. Without noise p_A is 1 where the network is right, else 0.
    seed
        Of everything random.
    outputs
        What the network returns, ``"logits"`` or ``"probabilities"``; needed unless it has an attribute ``outputs``.
    progress
        Called now and then with the number of samples done and of all.

    Examples
    --------
    >>> from certcal.models.networks import MLP
    >>> from certcal.training import gradient_norms, recipe
    >>> data = Inputs.from_arrays([[0.0, 1.0], [1.0, 0.0]] * 8, [1, 0] * 8)
    >>> found = gradient_norms(MLP(2, (8,), classes=2), data, recipe("gaussian", sigma=0.5), samples=10)
    >>> len(found), found.easy.count + found.hard.count + found.even
    (10, 10)
    """
    remedy = f"pass a whole number from 1 to {_MOST}"
    samples, draws = (
        whole_number(each, 1, _MOST, name, remedy) for each, name in ((samples, "samples"), (draws, "draws"))
    )
    seed = whole_number(seed, 0, 2**63 - 1, "seed", "pass a whole number of at least 0")
    workshop = fitted(network, inputs, recipe, None, None, outputs)
    refuse_together(recipe)
    index = _chosen(len(inputs), samples, seed)
    with torch_threads():
        p_a = _p_a(workshop, index, draws if recipe.sigma else 1, seed)
        parts = parts_of(recipe)
        every = [parts]
        if isinstance(parts.noise, SphereNoise):
            every.append(dataclasses.replace(parts, noise=parts.noise.drawn))
        norms = _norms(workshop, every, index, seed, progress)
    norms.flags.writeable = p_a.flags.writeable = False
    return GradientNorms(
        recipe.method, recipe.sigma, draws if recipe.sigma else 1, index.numpy(), p_a, norms[0],
        norms[1] if len(norms) > 1 else None,
    )  # fmt: skip


def refuse_together(recipe: Recipe) -> None:
    """Raise for methods whose samples have no loss of their own.

    Examples
    --------
    >>> refuse_together(Recipe("exact-act"))
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: exact-act attacks a whole batch together, so that one sample has no loss of its own;
    compare gradients of easy and hard samples by another method, such as smoothadv
    """
    if recipe.together:
        raise InputError(
            f"{recipe.method} attacks a whole batch together, so that one sample has no loss of its own; compare "
            "gradients of easy and hard samples by another method, such as smoothadv"
        )


def _chosen(count: int, samples: int, seed: int) -> Tensor:
    if samples >= count:
        return torch.arange(count)
    order = torch.randperm(count, generator=generator_of("gradient norms: samples", seed))
    return order[:samples].sort().values


def _p_a(workshop: Workshop, index: Tensor, draws: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    target = Target(workshop.network.eval(), workshop.outputs)
    generator = generator_of("gradient norms: votes", seed)
    inputs, labels = workshop.inputs[index], workshop.labels[index]
    with torch.no_grad():
        votes = label_votes(target, inputs, labels, workshop.recipe.sigma, draws, generator)
    return votes.cpu().numpy().astype(np.float64) / draws


def _norms(
    workshop: Workshop,
    every: Sequence[Parts],
    index: Tensor,
    seed: int,
    progress: Callable[[int, int], object] | None,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Norms (ways, n) of each sample's gradient, in each way from the same generator."""
    now: Moment = moment(workshop.recipe, workshop.recipe.epochs - 1)
    norms = np.empty((len(every), index.numel()))
    for place, sample in enumerate(index):
        for way, parts in enumerate(every):
            generator = generator_of("gradient norms: noise", seed, int(sample))
            piece = workshop.judge(parts, now, sample[None], generator, dropout=None)
            norms[way, place] = math.sqrt(sum(float(each.double().square().sum()) for each in piece.gradients))
        if not np.isfinite(norms[:, place]).all():
            raise InputError(
                f"the gradient of inputs[{int(sample)}] is not finite; pass a network with finite weights and outputs"
            )
        if progress is not None:
            progress(place + 1, index.numel())
    return norms
