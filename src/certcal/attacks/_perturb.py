"""One attack on a model: run, checked, verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from certcal._checks import InputError
from certcal.attacks._attacked import Attacked, predicted
from certcal.attacks._kept import verified
from certcal.attacks._protocol import AttackMethod
from certcal.attacks.ball import Norm
from certcal.attacks.subject import Box, Progress, Subject, known, subject
from certcal.models.protocol import Outputs
from certcal.models.torch_threads import torch_threads
from certcal.predictions import Predictions


def perturb(model: object, inputs: Any, labels: Any, method: AttackMethod, *, epsilon: float, **rest: Any) -> Attacked:
    """Attack a model by one method within one distance, and keep the perturbed inputs.

    Parameters
    ----------
    model, inputs, labels, rest
        As for :func:`perturb_each`.
    method
        :class:`Ace`, :class:`OneStepAce`, :class:`Pgd`, or an :class:`AttackMethod` of your own.
    epsilon
        The largest distance from the clean inputs.

    Examples
    --------
    >>> from certcal.attacks import Ace
    >>> from certcal.models.networks import MLP
    >>> rng = np.random.default_rng(0)
    >>> inputs, labels = rng.random((8, 4)), rng.integers(0, 3, 8)
    >>> perturb(MLP(4, hidden=(16,), classes=3).eval(), inputs, labels, Ace(), epsilon=0.1)
    Attacked('(+1, y)-ACE', n=8, norm='linf', epsilon=0.1, moved=8, labels_changed=0, accuracy=0.125)
    """
    return perturb_each(model, inputs, labels, [method], epsilons=[epsilon], **rest)[0]


def perturb_each(
    model: object,
    inputs: Any,
    labels: Any,
    methods: Sequence[AttackMethod],
    *,
    epsilons: Sequence[float],
    norm: Norm = "linf",
    box: Box = (0.0, 1.0),
    sigma: float | None = None,
    draws: int = 16,
    seed: int = 0,
    outputs: Outputs | None = None,
    batch: int = 500,
    threads: int = 1,
    progress: Progress | None = None,
) -> list[Attacked]:
    """Attack a model by several methods within several distances.

    What a method claims is verified, not assumed: the inputs that it returns must be within epsilon and the box, and
    go through the model's ordinary call once more; unless the method says that it keeps no labels, a sample whose label
    is another one gets its clean input back. The label is the first of the largest outputs. For a smoothed classifier
    it is that of the Monte Carlo average over the noise that was drawn: the attack is one on this estimate, with this
    noise; the exact smoothed classifier may see it otherwise.

    Parameters
    ----------
    model
        What :func:`certcal.models.differentiable` takes: a torch module in evaluation mode, a file, a name.
    inputs
        One per sample along the first axis, inside the box; uint8 pixels become k/255.
    labels
        True classes, from 0.
    methods
        Attacks.
    epsilons
        The largest distances from the clean inputs.
    norm
        ``"linf"`` or ``"l2"``.
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
        Called with how many samples were attacked and how many there are, over all attacks.

    Returns
    -------
    list of Attacked
        All methods within the first distance, then within the next.

    Raises
    ------
    InputError
        If the model gives no gradients or no finite outputs, if a method returns what it may not, or if an argument
        cannot be used.

    Examples
    --------
    >>> from certcal.attacks import Ace, OneStepAce
    >>> from certcal.models.networks import MLP
    >>> inputs, labels = np.random.default_rng(0).random((8, 4)), [0, 1, 2, 0] * 2
    >>> network = MLP(4, hidden=(16,), classes=3).eval()
    >>> [found.name for found in perturb_each(network, inputs, labels, [Ace(), OneStepAce()], epsilons=[0.1])]
    ['(+1, y)-ACE', 'one-step ACE']
    """
    for method in methods:
        check_method(method)
    with torch_threads(threads):
        first = subject(
            model,
            inputs,
            labels,
            outputs=outputs,
            epsilon=epsilons[0],
            norm=norm,
            box=box,
            sigma=sigma,
            draws=draws,
            seed=seed,
            batch=batch,
        )
        within = [first, *(first.within(epsilon) for epsilon in epsilons[1:])]
        clean = first.predict(first.inputs)
        total = len(within) * len(methods) * len(clean)
        found: list[Attacked] = []
        for each in within:
            for method in methods:
                before = len(found) * len(clean)
                tell = None if progress is None else partial(_told, progress, before, total)
                found.append(_run(method, each, clean, tell))
    return found


def _told(progress: Progress, before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)


def _run(method: AttackMethod, subject: Subject, clean: Predictions, progress: Progress | None) -> Attacked:
    kept = predicted(clean)
    inputs = np.array(subject.inputs)
    for part in subject.parts():
        start = subject.clean(part)
        truth, labels = known(start, subject.labels[part], kept[part])
        moved = method.run(subject.attacked(part, labels), start, truth, subject.ball.epsilon)
        inputs[part] = subject.ball.checked(method.name, start, moved, part.start).cpu().numpy()
        if progress is not None:
            progress(part.stop, len(inputs))
    return verified(method, subject, clean, inputs, _settings(method))


def check_method(method: Any) -> None:
    """Raise unless it is an attack: named, and with a method ``run``."""
    if isinstance(method, type) or not isinstance(method, AttackMethod) or not callable(method.run):
        what = f"the class {method.__name__}" if isinstance(method, type) else f"of type {type(method).__name__}"
        remedy = "an object with a name and run(model, inputs, labels, epsilon)"
        raise InputError(f"an attack is {what}; pass {remedy}, such as certcal.attacks.Ace()")


def _settings(method: AttackMethod) -> dict[str, Any]:
    """The parameters of a method that is a dataclass, those that are given."""
    if not is_dataclass(method):
        return {}
    given = {each.name: getattr(method, each.name) for each in fields(method) if each.name != "name"}
    return {name: value for name, value in given.items() if isinstance(value, int | float | str)}
