"""Projected gradient descent against labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from certcal._checks import positive, whole_number
from certcal.attacks._ascent import ascend
from certcal.attacks._attacked import Attacked, attacked
from certcal.attacks._ball import Norm
from certcal.attacks._confidence import step_length
from certcal.attacks._odds import odds_against
from certcal.attacks._subject import Box, Progress, Subject, known, subject
from certcal.models._protocol import Outputs
from certcal.models._torch_threads import torch_threads


def pgd(
    model: object,
    inputs: Any,
    labels: Any,
    *,
    epsilon: float,
    norm: Norm = "l2",
    steps: int = 20,
    scale: float = 1.0,
    box: Box = (0.0, 1.0),
    sigma: float | None = None,
    draws: int = 1,
    seed: int = 0,
    outputs: Outputs | None = None,
    batch: int = 500,
    threads: int = 1,
    progress: Progress | None = None,
) -> Attacked:
    """Raise the cross entropy of the true class over ‖γ‖ ≤ ε, whatever becomes of the label.

    Steps have length 2 · scale · ε / steps along the normalised gradient, and the noise of a smoothed classifier stays
    the same during the attack (Salman et al. 2019). Per sample the best point on the way is kept.

    Parameters
    ----------
    model, inputs, labels, epsilon, norm, box, sigma, draws, seed, outputs, batch, threads, progress
        As for :func:`ace`.
    steps
        How many steps are taken.
    scale
        Factor of their length.

    Examples
    --------
    >>> from certcal.models.networks import MLP
    >>> rng = np.random.default_rng(0)
    >>> inputs, labels = rng.random((100, 4)), rng.integers(0, 3, 100)
    >>> found = pgd(MLP(4, hidden=(16,), classes=3).eval(), inputs, labels, epsilon=0.2)
    >>> found.accuracy < found.clean_accuracy, bool((found.lengths <= 0.2).all())
    (True, True)
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
        return attack(found, steps, scale, progress)


def attack(subject: Subject, steps: int, scale: float, progress: Progress | None) -> Attacked:
    """As :func:`pgd`, when what is attacked has been checked."""
    count = whole_number(steps, 1, 1_000_000, "steps", "pass the number of steps, at least 1")
    ball = subject.ball
    length = step_length(ball, count, positive(scale, "scale"))
    clean = subject.predict(subject.inputs)
    moved = np.array(subject.inputs)
    for part in subject.parts():
        start = subject.clean(part)
        (truth,) = known(start, subject.labels[part])

        def against(log_probabilities: Tensor, _: int = 0, truth: Tensor = truth) -> Tensor:
            return odds_against(log_probabilities, truth)

        best = ascend(subject.target(part), start, ball, count, length, against, against)
        moved[part] = best.cpu().numpy()
        if progress is not None:
            progress(part.stop, len(moved))
    return attacked("PGD", subject, moved, clean, subject.predict(moved), steps=count, scale=float(scale))
