"""Attacks on a model: run, checked, verified; and what was found, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certcal._base.checks import InputError, whole_number
from certcal._base.json import PlainValues
from certcal._base.rounding import round_outward, short_text
from certcal.attacks._protocol import AttackMethod
from certcal.attacks.ball import Ball
from certcal.attacks.subject import Floats, Progress, Subject
from certcal.binning import equal_width_edges, sums
from certcal.claims import Frozen
from certcal.metrics.binned import ece_of
from certcal.models.devices import Fitting, torch_threads
from certcal.predictions import Predictions

BINS = 15


@dataclass(frozen=True, eq=False, repr=False)
class Attacked(
    PlainValues,
    kind="attacked",
    keys="name n=labels.size settings clean_accuracy accuracy labels_changed=changed moved largest_length sentence",
):
    """Perturbed inputs, and what the model predicts before and after.

    Every number after the attack is a *lower* bound on the worst case: it was reached, and another attack may reach
    more. What no attack can exceed is what certificates say (:mod:`certcal.smoothing`).
    """

    name: str
    """The attack, such as ``"(+1, y)-ACE"``."""
    inputs: Floats
    """Perturbed inputs, float32: within epsilon of the clean ones and inside the box, exactly; none if they were not
    kept."""
    labels: NDArray[np.int64]
    """True classes."""
    clean_predictions: Predictions
    predictions: Predictions
    """Of the clean and of the perturbed inputs, by the model's ordinary call."""
    lengths: NDArray[np.float64]
    """Distance of each perturbed input from the clean one, measured in float64."""
    settings: Mapping[str, Any]
    """Norm, epsilon, box, number of steps, and the noise of a smoothed classifier."""
    won: NDArray[np.bool_] | None = None
    """For which inputs a random start reached more than the clean one; None without restarts."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", Frozen(self.settings))

    @classmethod
    def of_outputs(
        cls,
        method: AttackMethod,
        subject: Subject,
        epsilon: float,
        clean: Predictions,
        outputs: NDArray[Any],
        lengths: NDArray[np.float64],
        *,
        won: NDArray[np.bool_] | None = None,
        restarts: int = 1,
        inputs: Floats | None = None,
    ) -> Attacked:
        """What an attack found, put together from what the model gave for the perturbed inputs of all samples."""
        shared = subject.settings(epsilon)
        settings = {**shared, **_settings(method), **shared}
        if won is not None:
            settings |= {"restarts": restarts, "restarts_won": int(won.sum())}
        kept = np.empty((0, *subject.inputs.shape[1:]), np.float32) if inputs is None else inputs
        labels = clean.labels
        assert labels is not None
        after = subject.predictions(outputs, labels)
        return cls(method.name, kept, labels, clean, after, lengths, settings, won)

    @property
    def epsilon(self) -> float:
        """The largest distance that was allowed."""
        return float(self.settings["epsilon"])

    @cached_property
    def clean_predicted(self) -> NDArray[np.int64]:
        """Predicted classes of the clean inputs."""
        return predicted_classes(self.clean_predictions)

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """Predicted classes of the perturbed inputs."""
        return predicted_classes(self.predictions)

    @property
    def clean_probabilities(self) -> NDArray[Any]:
        """Class probabilities of the clean inputs."""
        return _probabilities(self.clean_predictions)

    @property
    def probabilities(self) -> NDArray[Any]:
        """Class probabilities of the perturbed inputs."""
        return _probabilities(self.predictions)

    @property
    def clean_accuracy(self) -> float:
        """Share of clean inputs predicted correctly."""
        return float(self.clean_predictions.correct.mean())

    @property
    def accuracy(self) -> float:
        """Share of perturbed inputs predicted correctly."""
        return float(self.predictions.correct.mean())

    @property
    def changed(self) -> int:
        """How many labels differ; 0 for every attack that keeps them, which is checked before it returns."""
        return int((self.predicted != self.clean_predicted).sum())

    @property
    def moved(self) -> int:
        """How many inputs were perturbed at all."""
        return int((self.lengths > 0).sum())

    @property
    def sentence(self) -> str:
        """What was found."""
        edges = equal_width_edges(BINS)
        tables = (sums(p.confidence, p.correct, None, edges) for p in (self.clean_predictions, self.predictions))
        before, after = map(ece_of, tables)
        limit = f"{short_text(self.epsilon, 'lower')} ({self.settings['norm']})"
        kept = (
            f"no label changed (verified), the accuracy stays {self.accuracy:.4f}"
            if self.changed == 0
            else f"{self.changed} labels changed, the accuracy is {self.accuracy:.4f} and was {self.clean_accuracy:.4f}"
        )
        reached = round_outward(max(before, after), "lower")
        return (
            f"{self.name} moved {self.moved} of {len(self.labels)} inputs by at most {limit}: {kept}, and the "
            f"calibration error ({BINS} bins){of_what(self.settings)} went from {before:.4f} to {after:.4f}; at least "
            f"{reached} is reachable, the worst case may be larger."
        )

    @property
    def largest_length(self) -> float:
        """The largest distance of a perturbed input from the clean one."""
        return float(self.lengths.max())

    def __repr__(self) -> str:
        return (
            f"Attacked({self.name!r}, n={len(self.labels)}, norm={self.settings['norm']!r}, epsilon={self.epsilon:g}, "
            f"moved={self.moved}, labels_changed={self.changed}, accuracy={self.accuracy:.3g})"
        )


def perturb(
    model: object,
    inputs: Any,
    labels: Any,
    method: AttackMethod,
    *,
    epsilon: float,
    restarts: int = 1,
    threads: int = 1,
    progress: Progress | None = None,
    **rest: Any,
) -> Attacked:
    """Attack a model by one method within one distance, and keep the perturbed inputs.

    Parameters
    ----------
    model, inputs, labels, rest
        As for :meth:`Subject.of`.
    method
        :class:`Ace`, :class:`OneStepAce`, :class:`Pgd`, or an :class:`AttackMethod` of your own.
    epsilon
        The largest distance from the clean inputs.
    restarts, threads, progress
        As for :func:`perturb_each`.

    Examples
    --------
    >>> from certcal.attacks import Ace
    >>> from certcal.models.networks import MLP
    >>> rng = np.random.default_rng(0)
    >>> inputs, labels = rng.random((8, 4)), rng.integers(0, 3, 8)
    >>> perturb(MLP(4, hidden=(16,), classes=3).eval(), inputs, labels, Ace(), epsilon=0.1)
    Attacked('(+1, y)-ACE', n=8, norm='linf', epsilon=0.1, moved=8, labels_changed=0, accuracy=0.125)
    """
    subject = Subject.of(model, inputs, labels, **rest)
    return perturb_each(subject, [method], [epsilon], restarts=restarts, threads=threads, progress=progress)[0]


def perturb_each(
    subject: Subject,
    methods: Sequence[AttackMethod],
    epsilons: Sequence[float],
    *,
    restarts: int = 1,
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
    subject
        What is attacked; see :meth:`Subject.of`.
    methods
        Attacks.
    epsilons
        The largest distances from the clean inputs.
    restarts
        How often an attack that can begin anywhere is run: first from the clean input, then from random points of the
        ball where the label is kept. Per sample the best is kept; ``settings["restarts_won"]`` says for how many that
        was not the first.
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
    See :class:`Subject`.
    """
    for method in methods:
        _check_method(method)
    restarts = whole_number(restarts, 1, 10_000, "restarts", "pass how often an attack is run, at least 1")
    balls = [subject.ball(epsilon) for epsilon in epsilons]
    n = len(subject.labels)
    found: list[Attacked] = []
    own: Fitting | None = getattr(subject.model, "fitting", None)  # what it has learned, and what it has said
    fitting = own or Fitting(subject.model.description, subject.network.device)
    with torch_threads(threads):
        clean = subject.predict(subject.inputs)

        def tell(done: int) -> None:
            if progress is not None:
                progress(len(found) * n + done, len(balls) * len(methods) * n)

        def run(method: AttackMethod, ball: Ball, restart: int, times: int) -> Attacked:
            inputs, kept = np.array(subject.inputs), predicted_classes(clean)
            move = partial(_move, method, subject, ball, kept, inputs, restart)
            for part in subject.parts():
                fitting.pieces(move, part.start, part.stop)
                tell((restart * n + part.stop) // times)
            return verify_attack(method, subject, ball, clean, inputs)

        for ball in balls:
            for method in methods:
                times = restarts if getattr(method, "begins_anywhere", False) and ball.epsilon else 1
                best, won = run(method, ball, 0, times), np.zeros(n, np.bool_)
                for restart in range(1, times):
                    best, better = _best(method, subject, ball, best, run(method, ball, restart, times))
                    won |= better
                if times > 1:
                    settings = {**best.settings, "restarts": times, "restarts_won": int(won.sum())}
                    best = replace(best, settings=settings, won=won)
                found.append(best)
    return found


def _best(
    method: AttackMethod, subject: Subject, ball: Ball, one: Attacked, other: Attacked
) -> tuple[Attacked, NDArray[np.bool_]]:
    """Of two attacks per sample the one whose objective is higher, and where that is the second."""
    kept, objective = one.clean_predicted, getattr(method, "objective")  # noqa: B009
    better: NDArray[np.bool_] = objective(other.predictions, kept) > objective(one.predictions, kept)
    if not better.any():
        return one, better
    inputs = np.where(better.reshape(-1, *(1,) * (one.inputs.ndim - 1)), other.inputs, one.inputs)
    return verify_attack(method, subject, ball, one.clean_predictions, inputs), better


def _move(
    method: AttackMethod,
    subject: Subject,
    ball: Ball,
    kept: NDArray[np.int64],
    inputs: Floats,
    restart: int,
    first: int,
    last: int,
) -> None:
    """Put perturbed inputs, within ball and box, in the places of a batch of clean ones."""
    part = slice(first, last)
    clean, truth, labels = (subject.tensor(each[part]) for each in (subject.inputs, subject.labels, kept))
    keeps = bool(getattr(method, "keeps_labels", True))
    start = subject.random_start(part, labels, ball, restart, keeps) if restart else None
    moved = method.run(subject.model_for(part, labels, start), clean, truth, ball.epsilon)
    number = subject.first + first
    inputs[part] = ball.check_moved(method.name, torch.tensor(subject.inputs[part]), moved, number).numpy()


def verify_attack(method: AttackMethod, subject: Subject, ball: Ball, clean: Predictions, found: Floats) -> Attacked:
    """The result of an attack, after the final float32 inputs went through the model once more.

    A sample whose label is not that of its clean input, or whose objective is below that of its clean input, gets its
    clean input back; then all is predicted and compared again. An attack that does not keep labels is taken as it is.
    """
    after = subject.predict(found)
    objective, keeps = getattr(method, "objective", None), getattr(method, "keeps_labels", True)
    back = keeps & _labels_differ(clean, after)
    if objective is not None:
        kept = predicted_classes(clean)
        back |= objective(after, kept) < objective(clean, kept)
    if back.any():
        found = np.where(back.reshape(-1, *(1,) * (found.ndim - 1)), subject.inputs, found)
        after = subject.predict(found)
        wrong = np.flatnonzero(keeps & _labels_differ(clean, after))
        if wrong.size:
            raise InputError(
                f"{subject.model.description} does not give inputs[{subject.first + wrong[0]}] the same label twice; "
                "attack a model that always answers the same"
            )
    found.flags.writeable = False
    change = (found.astype(np.float64) - subject.inputs).reshape(len(found), -1)
    lengths = np.abs(change).max(axis=1) if ball.norm == "linf" else np.sqrt(np.square(change).sum(axis=1))
    shared = subject.settings(ball.epsilon)
    settings = {**shared, **_settings(method), **shared}
    return Attacked(method.name, found, subject.labels, clean, after, lengths, settings)


def _labels_differ(clean: Predictions, after: Predictions) -> NDArray[np.bool_]:
    """Whether a label is another one, by the outputs or, where these are logits, by the probabilities made of them."""
    other = predicted_classes(clean) != predicted_classes(after)
    assert clean.probabilities is not None
    assert after.probabilities is not None
    return other | (clean.probabilities.argmax(axis=1) != after.probabilities.argmax(axis=1))


def outputs_of(predictions: Predictions) -> NDArray[Any]:
    """What the model gave: logits, or probabilities."""
    return _probabilities(predictions) if predictions.logits is None else predictions.logits


def predicted_classes(predictions: Predictions) -> NDArray[np.int64]:
    """Predicted classes: the first of the largest outputs of each row."""
    return np.asarray(outputs_of(predictions).argmax(axis=1), np.int64)


def _probabilities(predictions: Predictions) -> NDArray[Any]:
    assert predictions.probabilities is not None
    return predictions.probabilities


def of_what(settings: Mapping[str, Any]) -> str:
    """What the numbers of an attack on a smoothed classifier are of: the mean that was attacked, not the true one."""
    return f" of the mean over {settings['draws']} fixed draws of noise" if "sigma" in settings else ""


def _check_method(method: Any) -> None:
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
