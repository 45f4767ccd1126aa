"""Attacks on confidences by one step (Galil & El-Yaniv 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from certcal._checks import share, whole_number
from certcal.attacks._attacked import Attacked, predicted
from certcal.attacks._ball import Ball, Norm
from certcal.attacks._kept import MARGIN, verified
from certcal.attacks._odds import lead, odds_against
from certcal.attacks._subject import Box, Progress, Subject, known, subject
from certcal.attacks._target import Target
from certcal.models._protocol import Outputs
from certcal.models._torch_threads import torch_threads
from certcal.predictions import Predictions


def one_step_ace(
    model: object,
    inputs: Any,
    labels: Any,
    *,
    epsilon: float,
    norm: Norm = "linf",
    decay: float = 0.5,
    attempts: int = 15,
    box: Box = (0.0, 1.0),
    sigma: float | None = None,
    draws: int = 16,
    seed: int = 0,
    outputs: Outputs | None = None,
    batch: int = 500,
    threads: int = 1,
    progress: Progress | None = None,
) -> Attacked:
    """Move every input once along the gradient of its confidence: down where the prediction is right, up where not.

    The attack of Galil & El-Yaniv (*Disrupting deep uncertainty estimation without harming accuracy*, NeurIPS 2021)
    with the softmax confidence as what is attacked. One gradient is taken, at the clean input; a step that would change
    the label is made shorter, again and again, until the label stays. It wants what the (+1, y)-ACE attack of
    :func:`ace` wants for predictions that are right, and what (-1, ŷ) wants for those that are wrong; it is cheaper and
    weaker than both.

    Parameters
    ----------
    model, inputs, labels, epsilon, norm, box, sigma, draws, seed, outputs, batch, threads, progress
        As for :func:`ace`.
    decay
        What the length of a step that changes the label is multiplied with.
    attempts
        How many lengths are tried; a sample for which none keeps the label stays where it is.

    Examples
    --------
    >>> from certcal.models.networks import MLP
    >>> rng = np.random.default_rng(0)
    >>> inputs, labels = rng.random((8, 4)), rng.integers(0, 3, 8)
    >>> one_step_ace(MLP(4, hidden=(16,), classes=3).eval(), inputs, labels, epsilon=0.1).changed
    0
    """
    with torch_threads(threads):
        found = subject(
            model,
            inputs,
            labels,
            outputs=outputs,
            epsilon=epsilon,
            norm=norm,
            box=box,
            sigma=sigma,
            draws=draws,
            seed=seed,
            batch=batch,
        )
        return attack(found, found.predict(found.inputs), decay, attempts, progress)


def attack(
    subject: Subject, clean: Predictions, decay: float = 0.5, attempts: int = 15, progress: Progress | None = None
) -> Attacked:
    """As :func:`one_step_ace`, when the clean predictions are known."""
    rate = share(decay, "decay", "pass a number between 0 and 1, such as 0.5")
    tries = whole_number(attempts, 1, 1000, "attempts", "pass how many step lengths are tried, from 1 to 1000")
    kept = predicted(clean)
    signs = np.where(kept == subject.labels, 1, -1)
    inputs = np.array(subject.inputs)
    for part in subject.parts():
        start = subject.clean(part)
        label, sign = known(start, kept[part], signs[part])
        moved = shortened(subject.target(part), start, label, sign, subject.ball, rate, tries)
        inputs[part] = moved.cpu().numpy()
        if progress is not None:
            progress(part.stop, len(inputs))
    return verified("one-step ACE", subject, clean, inputs, kept, signs, steps=1, decay=rate, attempts=tries)


def shortened(
    target: Target, clean: Tensor, kept: Tensor, signs: Tensor, ball: Ball, decay: float, attempts: int
) -> Tensor:
    """One step for every sample of a batch, the longest of the lengths tried that keeps the label."""
    at = clean.detach().requires_grad_(True)
    values = signs * odds_against(target.log_probabilities(at), kept)
    direction = ball.step(torch.autograd.grad(values.sum(), at)[0], 1.0)
    found = clean.clone()
    left = torch.arange(clean.shape[0], device=clean.device)
    length = ball.epsilon
    with torch.no_grad():
        for _ in range(attempts):
            ahead = ball.seal(clean[left], clean[left] + length * direction[left])
            fits = lead(target.rows(left).log_probabilities(ahead), kept[left]) > MARGIN
            found[left[fits]] = ahead[fits]
            left = left[~fits]
            if not left.numel():
                break
            length *= decay
    return found
