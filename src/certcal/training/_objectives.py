"""The objective part: what the weights descend on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from certcal.attacks import Found, Target
from certcal.training._schedules import Moment


@dataclass(frozen=True, eq=False)
class View:
    """What an objective sees of a piece.

    Attributes
    ----------
    target
        The network in training mode, with the piece's noise.
    clean, labels
        The samples.
    found
        What the adversary made of them; the clean inputs themselves without one.
    moment
        The numbers of the epoch.
    generator
        For this piece, for objectives that are random themselves.
    scouted
        What the method's scout found out with the network fixed; None without one.
    """

    target: Target
    clean: Tensor
    labels: Tensor
    found: Found
    moment: Moment
    generator: torch.Generator
    scouted: Any = None


@dataclass(frozen=True, eq=False)
class Judged:
    """An objective's answer.

    Attributes
    ----------
    loss
        One number, the mean over the piece, with its history.
    log_probabilities
        (n, classes), from which the accuracy that is logged is taken.
    """

    loss: Tensor
    log_probabilities: Tensor


class Objective(Protocol):
    """From what there is of a piece to the loss of the weights."""

    def __call__(self, view: View) -> Judged:
        """The loss."""
        ...


@dataclass(frozen=True)
class SmoothedCrossEntropy:
    """Cross entropy of the average over the draws: equation (7) of Emde et al."""

    def __call__(self, view: View) -> Judged:
        """The loss."""
        log_probabilities = view.target.log_probabilities(view.found.inputs)
        return Judged(functional.nll_loss(log_probabilities, view.labels), log_probabilities)


@dataclass(frozen=True)
class MeanCrossEntropy:
    """Mean over the draws of their cross entropies, an upper bound of the average's: Salman et al. (2019)'s code."""

    def __call__(self, view: View) -> Judged:
        """The loss."""
        every = view.target.draw_log_probabilities(view.found.inputs)
        loss = functional.nll_loss(every.flatten(0, 1), view.labels.repeat(every.shape[0]))
        return Judged(loss, torch.logsumexp(every, 0) - math.log(every.shape[0]))


@dataclass(frozen=True)
class MixedLoss:
    """η·CE + (1 - η)·calibration error of the adversary, its bins held fixed: ACCE-ACT* (appendix J.4.2).

    The calibration error is that of equation (5), with its 1/N: at most 1. The paper takes η from .8 to .99 because its
    own "may be magnitudes larger than the CE", which only the sum over the batch can be; so the same η gives the
    calibration less weight here. Where there was no adversary (ε = 0), the loss is the cross entropy alone.
    """

    mix: float = 0.9
    entropy: Objective = field(default_factory=SmoothedCrossEntropy)

    def __call__(self, view: View) -> Judged:
        """The loss."""
        judged = self.entropy(view)
        if view.found.calibration is None:
            return judged
        # From one forward pass: of the average over the draws, whichever cross entropy it is mixed with.
        calibration = view.found.calibration(judged.log_probabilities)
        return Judged(self.mix * judged.loss + (1 - self.mix) * calibration, judged.log_probabilities)
