"""Attacks that ruin confidences and keep labels: the four (η, ω)-ACE attacks, and one of a single step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal._base.checks import InputError, choice, positive, share, whole_number
from certcal._base.rounding import minus
from certcal.attacks._protocol import AttackedModel, Target
from certcal.attacks.ascent import checked_steps, cross_entropy, odds_against
from certcal.attacks.ball import LONGEST as MOST
from certcal.attacks.ball import Ball
from certcal.predictions import Predictions

Omega = Literal["true", "predicted"]
OMEGAS: tuple[Omega, ...] = ("true", "predicted")

# Longest and shortest steps as shares of epsilon. On a perceptron for digits (linf, ε = .1) a quarter reached a little
# more than a half or one; without the barrier, lengths from .1 to 2 made next to no difference.
LONGEST, SHORTEST = 0.25, 1e-3

# A label counts as kept on the way only if its log probability leads by this much, so that another order of summation
# (other batches, another device) does not turn it over afterwards.
MARGIN = 1e-4


@dataclass(frozen=True)
class Ace:
    """Raise η·CE(f(x + γ), ω) over ‖γ‖ ≤ ε and F(x + γ) = F(x): an (η, ω)-ACE attack (Emde et al., eq. 2).

    With η = 1 confidence is taken from the class ω, with η = -1 it is given to it. No label changes, so the accuracy
    stays what it was, while the calibration may be ruined. What is found is a lower bound on the worst case.

    It is gradient ascent by normalised steps, one forward and one backward pass each, and the best point on the way is
    kept per sample, the clean one included: no sample's objective decreases. A step that would change the label is not
    taken; where the original attack stops then, this one halves the sample's step and goes on, and near the border
    follows it. Where the objective stalls the step is halved, too; a sample whose steps
    have become tiny is finished, so later steps cost less.

    Examples
    --------
    >>> Ace(-1, "predicted").name
    '(−1, ŷ)-ACE'
    """

    begins_anywhere: ClassVar[bool] = True

    eta: int = 1
    """1 to lower the confidence in ω, -1 to raise it."""
    omega: Omega = "true"
    """``"true"`` for the true class y, ``"predicted"`` for the predicted class ŷ."""
    steps: int = 100
    """The most steps that are taken."""
    step: float | None = None
    """Length of the longest step; a quarter of epsilon by default."""

    def __post_init__(self) -> None:
        if self.eta not in (1, -1):
            raise InputError(f"eta is {self.eta!r}; pass 1 to lower the confidence in omega, -1 to raise it")
        choice(self.omega, OMEGAS, "omega")
        object.__setattr__(self, "steps", checked_steps(self.steps))
        if self.step is not None:
            object.__setattr__(self, "step", min(positive(self.step, "step"), MOST))

    @property
    def name(self) -> str:
        """As the paper writes it."""
        return f"({minus(f'{self.eta:+d}')}, {'y' if self.omega == 'true' else 'ŷ'})-ACE"

    @property
    def key(self) -> str:
        """In commands and files, such as "plus-true"."""
        return f"{'plus' if self.eta == 1 else 'minus'}-{self.omega}"

    @property
    def aim(self) -> str:
        """What becomes of which confidence."""
        way = "down" if self.eta == 1 else "up"
        return f"{'true class' if self.omega == 'true' else 'prediction'}, {way}"

    def run(self, model: AttackedModel, inputs: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        """Perturbed inputs; see :class:`AttackMethod`."""
        longest = LONGEST * epsilon if self.step is None else self.step
        schedule = Schedule(self.steps, longest, SHORTEST * min(epsilon, longest))
        classes = labels if self.omega == "true" else model.predicted
        signs = torch.full_like(labels, self.eta)
        return climb(model, inputs, model.predicted, classes, signs, model.ball(epsilon), schedule, model.start)

    def objective(self, predictions: Predictions, predicted: NDArray[np.int64]) -> NDArray[np.float64]:
        """What is climbed, per sample."""
        assert predictions.labels is not None
        return self.eta * cross_entropy(predictions, predictions.labels if self.omega == "true" else predicted)


@dataclass(frozen=True)
class StoppingAce(Ace):
    """The (η, ω)-ACE attack as it was published (Emde et al., appendix B.2), to compare like with like.

    Plain gradient ascent with a learning rate that falls to a tenth where the objective has not grown for ten steps
    (torch's schedule for plateaus, here for each sample by itself), projected into the ball. The attack of a sample
    ends where its label would change, and the last point before that is what it finds: no other way is tried, so it is
    weaker than :class:`Ace`. The paper says "a learning rate of 10" and not whether of the gradient or its sign; it is
    the gradient here.

    Examples
    --------
    >>> StoppingAce(1, "true").name
    '(+1, y)-ACE, stopping'
    """

    rate: float = 10.0
    """First learning rate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rate", min(positive(self.rate, "rate"), MOST))
        if self.step is not None:
            raise InputError("its steps have a learning rate and no length", argument="step", remedy="pass rate")

    @property
    def name(self) -> str:
        """As the paper writes it, and what it does at the border."""
        return f"{super().name}, stopping"

    @property
    def key(self) -> str:
        """In commands and files."""
        return f"stopping-{super().key}"

    def run(self, model: AttackedModel, inputs: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        """Perturbed inputs; see :class:`AttackMethod`."""
        classes = labels if self.omega == "true" else model.predicted
        given = (inputs, model.predicted, classes, torch.full_like(labels, self.eta), model.ball(epsilon))
        return ascend_within_label(model, *given, self.steps, self.rate)


@dataclass(frozen=True)
class OneStepAce:
    """Move every input once along the gradient of its confidence: down where the prediction is right, up where not.

    The attack of Galil & El-Yaniv (*Disrupting deep uncertainty estimation without harming accuracy*, NeurIPS 2021)
    with the softmax confidence as what is attacked. One gradient is taken, at the clean input; a step that would change
    the label is made shorter, again and again, until the label stays. It wants what the (+1, y)-ACE attack of
    :class:`Ace` wants for predictions that are right, and what (-1, ŷ) wants for those that are wrong; it is cheaper
    and weaker than both.

    Examples
    --------
    >>> OneStepAce(decay=0.7).name
    'one-step ACE'
    """

    key: ClassVar[str] = "one-step"
    aim: ClassVar[str] = "right down, wrong up"

    decay: float = 0.5
    """What the length of a step that changes the label is multiplied with."""
    attempts: int = 15
    """How many lengths are tried; a sample for which none keeps the label stays where it is."""

    def __post_init__(self) -> None:
        rate = share(self.decay, "decay", "pass a number between 0 and 1, such as 0.5")
        remedy = "pass how many step lengths are tried, from 1 to 1000"
        object.__setattr__(self, "decay", rate)
        object.__setattr__(self, "attempts", whole_number(self.attempts, 1, 1000, "attempts", remedy))

    @property
    def name(self) -> str:
        """What it is called."""
        return "one-step ACE"

    def run(self, model: AttackedModel, inputs: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        """Perturbed inputs; see :class:`AttackMethod`."""
        signs = torch.where(model.predicted == labels, 1, -1)
        return backtrack(model, inputs, model.predicted, signs, model.ball(epsilon), self.decay, self.attempts)

    def objective(self, predictions: Predictions, predicted: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cross entropy of the predicted class where it is right, minus that where it is wrong."""
        return np.where(predicted == predictions.labels, 1, -1) * cross_entropy(predictions, predicted)


def backtrack(
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
            found[left] = _of(fits, ahead, clean[left])
            left = left[(~fits).nonzero().squeeze(1)]
            if not left.numel():
                break
            length *= decay
    return found


def lead(log_probabilities: Tensor, classes: Tensor) -> Tensor:
    """By how much the logarithm of one class's probability exceeds the largest of the others; NaN if any is NaN."""
    chosen = classes.unsqueeze(1)
    others = log_probabilities.scatter(1, chosen, -torch.inf)
    return log_probabilities.gather(1, chosen).squeeze(1) - others.amax(1)


# torch's defaults for rates that fall on plateaus: factor, patience, and the least relative gain that counts.
PLATEAU = (0.1, 10, 1e-4)


def ascend_within_label(
    target: Target, clean: Tensor, kept: Tensor, classes: Tensor, signs: Tensor, ball: Ball, steps: int, rate: float
) -> Tensor:
    """Perturbed inputs of a batch, sealed: each sample's last point before its label would change."""
    factor, patience, gain = PLATEAU
    found, place = clean.clone(), clean
    left = torch.arange(clean.shape[0], device=clean.device)
    rates = torch.full(clean.shape[:1], rate, device=clean.device, dtype=clean.dtype)
    best, idle = torch.full_like(rates, -torch.inf), torch.zeros_like(left)
    for step in range(steps + 1):
        at = place.detach().requires_grad_(True)
        log_probabilities = target.rows(left).log_probabilities(at)
        values = -signs[left] * log_probabilities.gather(1, classes[left].unsqueeze(1)).squeeze(1)
        (gradient,) = torch.autograd.grad(values.sum(), at)
        keeps = lead(log_probabilities.detach(), kept[left]) > MARGIN if step else torch.ones_like(left).bool()
        rows = keeps.nonzero().squeeze(1)
        left, place, gradient, now = left[rows], place[rows], gradient[rows], values.detach()[rows]
        found[left] = place
        if step == steps or not rows.numel():
            break
        rates, best, idle = rates[rows], best[rows], idle[rows]
        grows = now > best + gain * best.abs().nan_to_num(0.0, 0.0, 0.0)
        best, idle = torch.where(grows, now, best), torch.where(grows, 0, idle + 1)
        falls = idle > patience
        rates, idle = torch.where(falls, rates * factor, rates), torch.where(falls, 0, idle)
        moves = rates.reshape(-1, *(1,) * (place.ndim - 1)) * gradient
        place = ball.seal(clean[left], place + moves)
    return found


@dataclass(frozen=True)
class Schedule:
    """How long the steps of an ascent are, and how far it keeps from where labels change."""

    steps: int
    longest: float
    shortest: float
    patience: int = 3
    growth: float = 1.25
    barrier: float = 1.0

    def weights(self, leads: Tensor) -> Tensor:
        """Weight of the barrier at the first step, from the leads of the clean inputs."""
        return (0.9 * leads).clamp(0.0, self.barrier)

    @property
    def decay(self) -> float:
        """Factor of the weight from one step to the next."""
        return 1e-6 ** (1 / self.steps)


def climb(
    target: Target,
    clean: Tensor,
    kept: Tensor,
    classes: Tensor,
    signs: Tensor,
    ball: Ball,
    schedule: Schedule,
    start: Tensor | None = None,
) -> Tensor:
    """Perturbed inputs of a batch, sealed: per sample the best point on the way whose label is kept.

    The direction of a step is the gradient of what is climbed plus a weight times the logarithm of the label's lead
    over the next class. Far from where the label changes the second term does nothing. Near it, it bends the way along
    the border instead of into it, where every step would have to be refused; as its weight falls, the way comes as
    close to the border as it pays (an interior-point method). What counts as better is what is climbed alone. With
    100 steps against the cross entropy of the true class it took the mean from .81 to .92 and the calibration error
    from .41 to .45 on a perceptron for digits (linf, ε = .1), and the mean from .84 to .86 on a LeNet for Fashion-MNIST
    (ε = 8/255; calibration error from .172 to .177; in l2 with ε = .5 from .171 to .170). Weight and decay were chosen
    among some twenty settings on images that these numbers are from, so elsewhere expect less.

    Each step is one forward and one backward pass over the samples that are not finished: what is learned about a
    proposed point (is the label kept, is it better?) and the gradient there come from the same pass. It may start
    elsewhere than at the clean inputs, where the labels are the same.
    """
    begun = clean if start is None else start
    best = begun.clone()
    left = torch.arange(clean.shape[0], device=clean.device)
    state, proposed, weights = None, begun, signs
    for step in range(schedule.steps + 1):
        at = proposed.detach().requires_grad_(True)
        log_probabilities = target.rows(left).log_probabilities(at)
        values = signs[left] * odds_against(log_probabilities, classes[left])
        leads = lead(log_probabilities, kept[left])
        if state is None:
            weights = schedule.weights(leads.detach())
        climbed = values + weights[left] * schedule.decay**step * leads.clamp_min(MARGIN).log()
        last = step == schedule.steps
        gradient = torch.zeros_like(at) if last else torch.autograd.grad(climbed.sum(), at)[0]
        if state is None:
            state = _State.at(proposed, gradient, values.detach(), schedule.longest)
        else:
            state.judge(proposed, gradient, values.detach(), leads.detach() > MARGIN, schedule)
            best[left] = state.best
        if last:
            break
        proposed = ball.seal(clean[left], state.place + ball.step(state.gradient, state.length))
        going = (state.length >= schedule.shortest) & (proposed != state.place).flatten(1).any(1)
        rows = going.nonzero().squeeze(1)  # one wait for the device
        if not rows.numel():
            break
        if rows.numel() < left.numel():
            left, proposed, state = left[rows], proposed[rows], state.rows(rows)
    return best


@dataclass
class _State:
    """Where every unfinished sample stands."""

    place: Tensor  # from where the next step starts
    gradient: Tensor
    best: Tensor
    best_gradient: Tensor
    best_value: Tensor
    length: Tensor
    idle: Tensor  # steps since the last gain

    @classmethod
    def at(cls, place: Tensor, gradient: Tensor, value: Tensor, length: float) -> _State:
        lengths = torch.full_like(value, length)
        return cls(place, gradient, place, gradient, value, lengths, torch.zeros_like(value, dtype=torch.int64))

    def rows(self, which: Tensor) -> _State:
        return _State(*(getattr(self, name)[which] for name in _State.__dataclass_fields__))

    def judge(self, proposed: Tensor, gradient: Tensor, value: Tensor, allowed: Tensor, schedule: Schedule) -> None:
        """Go to the proposed points whose label is kept; shorten the steps of the others, and of those that stall."""
        gains = allowed & (value > self.best_value)
        self.place, self.gradient = _of(allowed, proposed, self.place), _of(allowed, gradient, self.gradient)
        self.best, self.best_gradient = _of(gains, proposed, self.best), _of(gains, gradient, self.best_gradient)
        self.best_value = torch.where(gains, value, self.best_value)
        self.idle = torch.where(gains, 0, self.idle + 1)
        stalls = allowed & (self.idle >= schedule.patience)
        self.place, self.gradient = _of(stalls, self.best, self.place), _of(stalls, self.best_gradient, self.gradient)
        shorter = stalls | ~allowed
        factor = torch.where(shorter, 0.5, torch.where(gains, schedule.growth, 1.0))
        self.length = (self.length * factor).clamp_max(schedule.longest)
        self.idle = torch.where(shorter, 0, self.idle)


def _of(mask: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(mask.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
