"""The four (η, ω)-ACE attacks: confidences are ruined, labels stay."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from certcal._checks import InputError, choice, positive, whole_number
from certcal.attacks._attacked import Attacked, predicted
from certcal.attacks._ball import LONGEST as MOST
from certcal.attacks._ball import Norm
from certcal.attacks._climb import Schedule, climb
from certcal.attacks._kept import verified
from certcal.attacks._subject import Box, Progress, Subject, known, subject
from certcal.models._protocol import Outputs
from certcal.models._torch_threads import torch_threads
from certcal.predictions import Predictions

Omega = Literal["true", "predicted"]
OMEGAS: tuple[Omega, ...] = ("true", "predicted")

# Longest and shortest steps as shares of epsilon. On a perceptron for digits (linf, ε = .1) a quarter reached a little
# more than a half or one; without the barrier, lengths from .1 to 2 made next to no difference.
LONGEST, SHORTEST = 0.25, 1e-3


def ace(
    model: object,
    inputs: Any,
    labels: Any,
    *,
    eta: int = 1,
    omega: Omega = "true",
    epsilon: float,
    norm: Norm = "linf",
    steps: int = 100,
    step: float | None = None,
    box: Box = (0.0, 1.0),
    sigma: float | None = None,
    draws: int = 16,
    seed: int = 0,
    outputs: Outputs | None = None,
    batch: int = 500,
    threads: int = 1,
    progress: Progress | None = None,
) -> Attacked:
    """Raise η·CE(f(x + γ), ω) over ‖γ‖ ≤ ε and F(x + γ) = F(x): an (η, ω)-ACE attack (Emde et al., eq. 2).

    With η = 1 confidence is taken from the class ω, with η = -1 it is given to it. No label changes, so the accuracy
    stays what it was, while the calibration may be ruined. What is found is a lower bound on the worst case.

    It is gradient ascent by normalised steps, one forward and one backward pass each, and the best point on the way is
    kept per sample, the clean one included: no sample's objective decreases. A step that would change the label is not
    taken; where the original attack stops then, this one halves the sample's step and goes on, and near the border
    follows it (:mod:`certcal.attacks._climb`). Where the objective stalls the step is halved, too; a sample whose steps
    have become tiny is finished, so later steps cost less.

    That labels are kept is verified, not assumed: the final float32 inputs go through the model's ordinary call once
    more, and a sample whose label is another one gets its clean input back. The label is the first of the largest
    outputs. For a smoothed classifier it is that of the Monte Carlo average over the noise that was drawn: the attack
    is one on this estimate, with this noise; the exact smoothed classifier may see it otherwise.

    Parameters
    ----------
    model
        What :func:`certcal.models.differentiable` takes: a torch module in evaluation mode, a file, a name.
    inputs
        One per sample along the first axis, inside the box; uint8 pixels become k/255.
    labels
        True classes, from 0.
    eta
        1 to lower the confidence in ω, -1 to raise it.
    omega
        ``"true"`` for the true class y, ``"predicted"`` for the predicted class ŷ.
    epsilon
        The largest distance from the clean inputs.
    norm
        ``"linf"`` or ``"l2"``.
    steps
        The most steps that are taken.
    step
        Length of the longest step; a quarter of epsilon by default.
    box
        Smallest and largest value that an input may have, rounded to float32 as inputs are; None if any may.
    sigma, draws, seed
        To attack the smoothed classifier: standard deviation of the Gaussian noise, how many draws it is averaged over,
        and the seed of these.
    outputs
        What the model returns, ``"logits"`` or ``"probabilities"``; needed unless it says so itself.
    batch
        How many inputs (times draws) the network gets at a time.
    threads
        How many threads torch computes with. More may be faster, and may change the last digits of what is found.
    progress
        Called with how many samples are done and how many there are.

    Raises
    ------
    InputError
        If the model gives no gradients or no finite outputs, or an argument cannot be used.

    Examples
    --------
    >>> from certcal.models.networks import MLP
    >>> rng = np.random.default_rng(0)
    >>> inputs, labels = rng.random((8, 4)), rng.integers(0, 3, 8)
    >>> ace(MLP(4, hidden=(16,), classes=3).eval(), inputs, labels, epsilon=0.1)
    Attacked('(+1, y)-ACE', n=8, norm='linf', epsilon=0.1, moved=8, labels_changed=0, accuracy=0.125)
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
        return attack(found, found.predict(found.inputs), eta, omega, steps, step, progress)


def attack(
    subject: Subject,
    clean: Predictions,
    eta: int,
    omega: Omega,
    steps: int,
    step: float | None,
    progress: Progress | None,
) -> Attacked:
    """As :func:`ace`, when the clean predictions are known."""
    if eta not in (1, -1):
        raise InputError(f"eta is {eta!r}; pass 1 to lower the confidence in omega, -1 to raise it")
    choice(omega, OMEGAS, "omega")
    count = whole_number(steps, 1, 1_000_000, "steps", "pass the number of steps, at least 1")
    ball = subject.ball
    longest = LONGEST * ball.epsilon if step is None else min(positive(step, "step"), MOST)
    schedule = Schedule(count, longest, SHORTEST * min(ball.epsilon, longest))
    kept = predicted(clean)
    classes = subject.labels if omega == "true" else kept
    signs = np.full(len(kept), eta)
    inputs = np.array(subject.inputs)
    for part in subject.parts():
        start = subject.clean(part)
        label, of, sign = known(start, kept[part], classes[part], signs[part])
        moved = climb(subject.target(part), start, label, of, sign, ball, schedule)
        inputs[part] = moved.cpu().numpy()
        if progress is not None:
            progress(part.stop, len(inputs))
    name = f"({eta:+d}, {'y' if omega == 'true' else 'ŷ'})-ACE"
    return verified(name, subject, clean, inputs, classes, signs, eta=eta, omega=omega, steps=count)
