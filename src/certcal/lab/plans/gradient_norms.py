"""Which samples a method's loss pulls at: gradient norms of easy and of hard samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certcal._base.checks import InputError, whole_number
from certcal.attacks import Target
from certcal.binning import assign, equal_width_edges
from certcal.data import Inputs
from certcal.lab.training import Recipe
from certcal.lab.training.acr import SphereNoise, label_votes
from certcal.lab.training.parts import TrainingParts, parts_of
from certcal.lab.training.prepare import prepare_worker
from certcal.lab.training.schedules import finest, generator_of, moment
from certcal.lab.training.step import StepWorker, select_inputs, to_numbers
from certcal.models.devices import resolve, torch_threads
from certcal.models.protocol import Outputs

Floats = NDArray[np.float64]

SAMPLES, DRAWS, BINS = 500, 100, 10
# Of the boxes: ends of lines, ends of boxes, and medians.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST = 10_000_000


class NormBox(NamedTuple):
    """Gradient norms of the samples in one bin of p_A, which holds its lower end; the last bin holds both."""

    low: float
    high: float
    samples: int
    quantiles: list[float] | None
    """At :data:`QUANTILES`; None without samples."""


@dataclass(frozen=True, eq=False)
class GradientNorms:
    """Norms of the gradients that single samples give a method's loss: estimates, not guarantees."""

    index: NDArray[np.int64]
    """Which samples of the data, ascending."""
    p_a: Floats
    """Share of the noisy copies of each sample that the network gives its true label."""
    norms: Floats
    """ℓ2 norm of each sample's gradient with respect to all trained weights."""
    plain: Floats | None = None
    """The same with Gaussian noise as it was drawn, for a method that attacks its noise; else None."""

    @property
    def easy(self) -> float | None:
        """Mean norm of the samples with p_A > ½; None without any."""
        return _mean(self.norms[self.p_a > 0.5])

    @property
    def hard(self) -> float | None:
        """Mean norm of the samples with p_A < ½; None without any."""
        return _mean(self.norms[self.p_a < 0.5])

    @property
    def ratio(self) -> float | None:
        """Mean norm of the easy samples over that of the hard ones; None without one of them, or if theirs is 0."""
        return None if self.easy is None or not self.hard else self.easy / self.hard

    @property
    def bins(self) -> list[NormBox]:
        """Distribution of the norms by tenths of p_A."""
        edges = equal_width_edges(BINS)
        place = assign(self.p_a, edges)
        groups = [self.norms[place == where] for where in range(BINS)]
        return [
            NormBox(low, high, own.size, np.quantile(own, QUANTILES).tolist() if own.size else None)
            for (low, high), own in zip(pairwise(edges.tolist()), groups, strict=True)
        ]

    @property
    def before(self) -> GradientNorms | None:
        """Norms under the noise as drawn, for a method that attacks its noise; else None."""
        return None if self.plain is None else replace(self, norms=self.plain, plain=None)


def _mean(norms: Floats) -> float | None:
    return float(norms.mean()) if norms.size else None


def gradient_norms(
    network: nn.Module,
    inputs: Inputs,
    recipe: Recipe,
    *,
    samples: int = SAMPLES,
    draws: int = DRAWS,
    seed: int = 0,
    outputs: Outputs | None = None,
    device: str = "auto",
) -> GradientNorms:
    """How strongly easy and hard samples pull at the weights of a network, by the loss of a training method.

    The norm of the gradient that a sample gives is a proxy of its weight in training (Sun et al. 2025, §4.3, Table 2).
    Of at most ``samples`` random ones this estimates p_A from ``draws`` noisy copies (1 or 0 without noise), and takes
    the gradient of the method's own loss of that one sample, with noise, adversary and numbers of the last epoch.

    Left out are augmentation, weight decay, dropout, and how often a method that weighs its samples draws each; the
    network is in evaluation mode, so that batch normalisation mixes no samples. Also samples that the method would
    discard can be chosen. The noise of the loss is drawn once per sample, so that near p_A = ½ one may be taken for
    easy or hard by chance.
    """
    remedy = f"pass a whole number from 1 to {_MOST}"
    samples, draws = (
        whole_number(each, 1, _MOST, name, remedy) for each, name in ((samples, "samples"), (draws, "draws"))
    )
    seed = whole_number(seed, 0, 2**63 - 1, "seed", "pass a whole number of at least 0")
    worker = prepare_worker(network, inputs, recipe, outputs=outputs, device=resolve(device))
    if recipe.together:
        raise InputError(
            f"{recipe.method} attacks a whole batch together, so that one sample has no loss of its own; compare "
            "gradients of easy and hard samples by another method, such as smoothadv"
        )
    index, copies = _choose_samples(len(inputs), samples, seed), draws if recipe.sigma else 1
    with torch_threads():
        p_a = _p_a(worker, index, copies, seed)
        parts = parts_of(recipe)
        every = [parts]
        if isinstance(parts.noise, SphereNoise):
            every.append(replace(parts, noise=parts.noise.drawn))
        norms = _norms(worker, every, index, seed)
    norms.flags.writeable = p_a.flags.writeable = False
    plain = norms[1] if len(norms) > 1 else None
    return GradientNorms(index.numpy(), p_a, norms[0], plain)


def _choose_samples(count: int, samples: int, seed: int) -> Tensor:
    if samples >= count:
        return torch.arange(count)
    order = torch.randperm(count, generator=generator_of("gradient norms: samples", seed))
    return order[:samples].sort().values


def _p_a(worker: StepWorker, index: Tensor, draws: int, seed: int) -> Floats:
    target = Target(worker.network.eval(), worker.outputs)
    generator = generator_of("gradient norms: votes", seed, device=worker.device)
    inputs, labels = select_inputs(worker.inputs, index), worker.labels[index]
    with torch.no_grad():
        votes = label_votes(target, inputs, labels, worker.recipe.sigma, draws, generator)
    return votes.numpy().astype(np.float64) / draws


def _norms(worker: StepWorker, every: Sequence[TrainingParts], index: Tensor, seed: int) -> Floats:
    """Norms (ways, n) of each sample's gradient, in each way from the same generator."""
    now = moment(worker.recipe, worker.recipe.epochs - 1)
    norms, kind = np.empty((len(every), index.numel())), finest(worker.device)
    for place, sample in enumerate(index):
        for way, parts in enumerate(every):
            generator = generator_of("gradient norms: noise", seed, int(sample), device=worker.device)
            judged = worker.loss(parts, now, *worker.samples(sample[None], None), generator, dropout=None)
            squares = [each.to(kind).square().sum() for each in worker.gradients(judged)]
            norms[way, place] = math.sqrt(sum(to_numbers(torch.stack(squares))))
        if not np.isfinite(norms[:, place]).all():
            raise InputError(
                f"the gradient of inputs[{int(sample)}] is not finite; pass a network with finite weights and outputs"
            )
    return norms
