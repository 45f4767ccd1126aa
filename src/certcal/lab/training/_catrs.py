"""CAT-RS: as many draws as fit the confidence, and the worst noise near them where it is high (Jeong et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from certcal._base.checks import choice, positive
from certcal.attacks import Ball, Target
from certcal.attacks.ascent import ascend, step_length
from certcal.attacks.ball import Norm
from certcal.lab.training._recipe import Recipe, epochs_number
from certcal.lab.training.parts import Constants, GaussianNoise, Judged, TrainingParts, View, mean_log
from certcal.lab.training.schedules import Moment, draw_like, finest


@dataclass(frozen=True)
class CatRs(Constants, method="cat-rs"):
    """CAT-RS (Jeong, Kim and Shin, "Confidence-aware Training of Smoothed Classifiers", AAAI 2023): an objective.

    With M draws δ_1, …, δ_M of the noise (the recipe's ``draws``) and f the network's probabilities, the loss of a
    sample is ::

        (1/M) · (sum of the K smallest of the M cross entropies -log f_y(x + δ_i))
          + λ 1[K = M] · max_i KL( ŷ ‖ f(x + δ*_i) )

    and the mean over the samples is descended on. p̂ is the share of the M draws that the network, in training mode,
    gives the label y; K is drawn from Binomial(M, p̂) and is at least 1, so what is hard under noise is learnt from
    its easiest draws only, and the second term belongs to samples that are likely to be certified. The sum is divided
    by M and not by K. δ*_i climbs the same divergence from δ_i, within ε of it (the recipe's ``epsilon`` and ``norm``),
    in T steps (``attack_steps``) of length 2vε/T (v: ``attack_scale``), with the network fixed in evaluation mode.
    After every step the noise gets back the mean and the standard deviation, over its entries, of δ_i, and is then
    projected into the ball. The inputs' ``box`` is not applied to noisy inputs. Gradients of the weights pass through
    the cross entropies and through f(x + δ*_i); ŷ, K and δ* are held. The form of both losses, 1/M, K ≥ 1, p̂ and the
    length of the steps are as in the authors' code.

    Where this differs from the authors' code:

    - Their ŷ is computed beforehand: the shares of 10,000 votes per training sample of another network, trained with
      Gaussian noise of σ = 0.25, whatever σ is now. Here a run depends on its recipe and its data only, so ŷ is the
      average prediction of the network that is being trained (fixed, in evaluation mode) over the same M draws, shrunk
      to σ = ``target_sigma`` where the noise is larger. So ŷ is as soft as the network itself and moves with it; early
      in training it asks for less than theirs. For theirs, pass what :func:`certcal.lab.training.soft_labels` counts
      as ``soft`` of :func:`certcal.lab.training.train`.
    - They restore mean and root mean square after projecting, which can leave the ball by a little; here it comes
      first, and what is used is within ε.
    - While ε is 0 (the recipe's ``epsilon_delay``), δ* = δ, which is what small ε tend to; theirs has no warm-up.

    For ImageNet they draw K from ŷ's probability of the label instead of p̂, which is nothing at first
    (``confidence``: "soft"), and double ε from an epoch on (``double_from``; 0 for never).

    The recipe's ``loss`` has no part in it.
    """

    takes: ClassVar[tuple[str, ...]] = ("soft",)

    high_weight: float = 1.0
    target_sigma: float = 0.25
    confidence: Literal["draws", "soft"] = "draws"
    double_from: int = 0

    def __post_init__(self) -> None:
        choice(self.confidence, ("draws", "soft"), "confidence")
        self._set(
            double_from=epochs_number(self.double_from, "double_from"),
            **{name: positive(getattr(self, name), name) for name in ("high_weight", "target_sigma")},
        )

    def parts(self, recipe: Recipe) -> TrainingParts:
        """Gaussian noise, the search for worse noise, and this."""
        how = recipe.attack_steps, recipe.attack_scale, recipe.norm
        search = WorseNoise(self.target_sigma, *how, double_from=self.double_from)
        return TrainingParts(GaussianNoise(recipe.draws), self, inner_search=search)

    def __call__(self, view: View) -> Judged:
        """The loss, with K from the view's generator."""
        searched: NoisyInputs = view.search_result
        every = view.target.draw_log_probabilities(view.clean)
        worse = every
        if searched.noisy is not None:
            base = Target(view.target.network, view.target.outputs)
            worse = base.log_probabilities(searched.noisy.flatten(0, 1)).reshape(every.shape)
        sure = searched.soft.exp() if self.confidence == "soft" else None
        kept = confident_draws(every.detach(), view.labels, view.generator, sure)
        loss = catrs_loss(every, worse, searched.soft, view.labels, kept, self.high_weight)
        return Judged(loss, mean_log(every))


@dataclass(frozen=True, eq=False)
class NoisyInputs:
    """Log probabilities (n, classes) of ŷ, and inputs with the worse noise (draws, n, …), or None where ε is 0."""

    soft: Tensor
    noisy: Tensor | None


@dataclass(frozen=True)
class WorseNoise:
    """Seeks, near every draw of the noise, noise under which the network is further from its smoothed prediction."""

    target_sigma: float
    steps: int
    scale: float = 1.0
    norm: Norm = "l2"
    soft: Tensor | None = None  # probabilities (n, classes) of the samples at hand, where they are given
    double_from: int = 0  # epoch from which epsilon is twice as large; 0 for never

    def __call__(
        self, target: Target, inputs: Tensor, labels: Tensor, moment: Moment, generator: torch.Generator
    ) -> NoisyInputs:
        """What the network should predict, and the noisy inputs at which it does so least."""
        noise = target.noise
        assert noise is not None
        if self.soft is None:
            with torch.no_grad():
                calm = noise * min(1.0, self.target_sigma / moment.sigma)
                soft = Target(target.network, target.outputs, calm).log_probabilities(inputs)
        else:
            soft = self.soft.clamp_min(torch.finfo(self.soft.dtype).tiny).log()  # shares may be 0, which adds nothing
        if not moment.epsilon:
            return NoisyInputs(soft, None)
        doubled = 0 < self.double_from <= moment.epoch
        ball = Ball((2 if doubled else 1) * moment.epsilon, self.norm, box=None)
        return NoisyInputs(
            soft, self._find_worse_noise(Target(target.network, target.outputs), inputs, noise, soft, ball)
        )

    def _find_worse_noise(self, base: Target, inputs: Tensor, noise: Tensor, soft: Tensor, ball: Ball) -> Tensor:
        centre, drawn = inputs.unsqueeze(0).expand_as(noise).flatten(0, 1), noise.flatten(0, 1)
        wanted, length = soft.repeat(noise.shape[0], 1), step_length(ball, self.steps, self.scale)

        def away(log_probabilities: Tensor, step: int) -> Tensor:
            return divergence(wanted, log_probabilities)

        def move(gradient: Tensor, moved: Tensor, step: int) -> Tensor:
            now = moved - centre
            return restore_moments(now + ball.step(gradient, length), drawn) - now

        return ascend(base, centre + drawn, ball, self.steps, move, away).reshape(noise.shape)


def restore_moments(noise: Tensor, drawn: Tensor) -> Tensor:
    """The noise with the mean and the standard deviation, over the entries of each sample, that the drawn one has."""
    flat, before = noise.flatten(1), drawn.flatten(1)
    centred, as_before = (each - each.mean(1, keepdim=True) for each in (flat, before))
    size, size_before = (each.square().mean(1, keepdim=True).sqrt() for each in (centred, as_before))
    scale = size_before / size.clamp_min(torch.finfo(noise.dtype).tiny)
    return (before.mean(1, keepdim=True) + centred * scale).reshape(noise.shape)


def confident_draws(every: Tensor, labels: Tensor, generator: torch.Generator, soft: Tensor | None = None) -> Tensor:
    """K of each sample: binomial, of as many trials as there are draws, with the share of them that are right.

    With soft labels (n, classes), with their probability of the label instead.
    """
    kind = finest(every.device)
    if soft is None:
        share = (every.argmax(2) == labels).to(kind).mean(0)
    else:
        share = soft.gather(1, labels.unsqueeze(1)).squeeze(1).to(kind)
    trials = draw_like(torch.rand, every.shape[:2], generator, share) < share
    return trials.sum(0).clamp_min(1)


def catrs_loss(every: Tensor, worse: Tensor, soft: Tensor, labels: Tensor, kept: Tensor, weight: float) -> Tensor:
    """The mean over the samples of the low loss and, where all draws are kept, ``weight`` times the high one."""
    draws = every.shape[0]
    entropies = -every.gather(2, labels.expand(draws, -1).unsqueeze(2)).squeeze(2)
    ranks = torch.arange(draws, device=kept.device).unsqueeze(1)
    low = torch.where(ranks < kept, entropies.sort(0).values, 0.0).mean(0)
    high = divergence(soft, worse).amax(0)
    return (low + weight * torch.where(kept == draws, high, 0.0)).mean()


def divergence(soft: Tensor, log_probabilities: Tensor) -> Tensor:
    """KL(ŷ ‖ f) along the last axis, both as log probabilities."""
    return (soft.exp() * (soft - log_probabilities)).sum(-1)
