"""A model before and under attacks, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from certcal._checks import InputError, bin_count, choice
from certcal._rounding import round_outward
from certcal.attacks._ace import Omega
from certcal.attacks._ace import attack as ace_attack
from certcal.attacks._attacked import Attacked, of_what
from certcal.attacks._ball import Ball, Norm
from certcal.attacks._one_step import attack as one_step_attack
from certcal.attacks._subject import Box, Progress, Subject, subject
from certcal.claims import Frozen
from certcal.metrics import Measurements, measure
from certcal.models._protocol import Outputs
from certcal.models._torch_threads import torch_threads
from certcal.predictions import Predictions

AttackName = Literal["+1,y", "-1,y", "+1,pred", "-1,pred", "one-step"]
ACE_ATTACKS: dict[AttackName, tuple[int, Omega]] = {
    "-1,y": (-1, "true"),
    "+1,y": (1, "true"),
    "-1,pred": (-1, "predicted"),
    "+1,pred": (1, "predicted"),
}
ATTACKS: tuple[AttackName, ...] = (*ACE_ATTACKS, "one-step")
_METRICS = ("accuracy", "mean_confidence", "ece", "equal_mass_ece", "top_label_brier_score", "brier_score", "nll")


@dataclass(frozen=True, eq=False)
class AttackRow:
    """What was measured under one attack, or without any.

    Attributes
    ----------
    attack
        Its short name, as :func:`attack_table` takes it; None for the clean inputs.
    name
        Its name in full, or ``"unattacked"``.
    epsilon
        The largest distance that was allowed; 0 for the clean inputs.
    measurements
        Accuracy, mean confidence, calibration errors, Brier scores and likelihood, each an
        :class:`~certcal.claims.Estimate`.
    predictions
        What was measured.
    attacked
        The attack's result; None for the clean inputs.
    """

    attack: AttackName | None
    name: str
    epsilon: float
    measurements: Measurements
    predictions: Predictions
    attacked: Attacked | None = None

    @property
    def ece(self) -> float:
        """Calibration error with equal-width bins."""
        return self.measurements["ece"].value

    @property
    def adaptive_ece(self) -> float:
        """Calibration error with equally many samples per bin (AdaECE)."""
        return self.measurements["equal_mass_ece"].value

    @property
    def brier(self) -> float:
        """Brier score of "this prediction is right"."""
        return self.measurements["top_label_brier_score"].value

    @property
    def nll(self) -> float:
        """Negative log-likelihood."""
        return self.measurements["nll"].value

    @property
    def confidence(self) -> float:
        """Mean confidence."""
        return self.measurements["mean_confidence"].value

    @property
    def accuracy(self) -> float:
        """Share of right predictions."""
        return self.measurements["accuracy"].value

    @property
    def changed(self) -> int:
        """How many labels differ from those of the clean inputs: 0, which was verified."""
        return 0 if self.attacked is None else self.attacked.changed

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "attack": self.attack,
            "name": self.name,
            "epsilon": self.epsilon,
            "ece": self.ece,
            "adaptive_ece": self.adaptive_ece,
            "brier": self.brier,
            "nll": self.nll,
            "mean_confidence": self.confidence,
            "accuracy": self.accuracy,
            "labels_changed": self.changed,
            "moved": 0 if self.attacked is None else self.attacked.moved,
        }


@dataclass(frozen=True, eq=False, repr=False)
class AttackTable:
    """A model's calibration without an attack and under several, each at one or more distances.

    Attributes
    ----------
    clean
        Without an attack.
    rows
        Attacks in the order asked for, for the first epsilon, then for the next.
    n
        Number of samples.
    settings
        Norm, box, bins, steps, and the noise of a smoothed classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.models.networks import MLP
    >>> rng = np.random.default_rng(0)
    >>> inputs, labels = rng.random((50, 4)), rng.integers(0, 3, 50)
    >>> table = attack_table(MLP(4, hidden=(16,), classes=3).eval(), inputs, labels, epsilons=(0.05, 0.1), steps=5)
    >>> len(table), table["+1,y", 0.1].changed, table["+1,y", 0.1].nll > table["+1,y", 0.05].nll > table.clean.nll
    (8, 0, True)
    """

    clean: AttackRow
    rows: tuple[AttackRow, ...]
    n: int
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", Frozen(self.settings))

    def __iter__(self) -> Iterator[AttackRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str | tuple[str, float]) -> AttackRow:
        attack, epsilon = key if isinstance(key, tuple) else (key, None)
        found = [row for row in self.rows if row.attack == attack and epsilon in (None, row.epsilon)]
        if len(found) == 1:
            return found[0]
        known = ", ".join(f"({row.attack!r}, {row.epsilon:g})" for row in self.rows)
        raise KeyError(f"{key!r} names {len(found) or 'no'} rows; there are {known}")

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The distances, in the order asked for."""
        return tuple(dict.fromkeys(row.epsilon for row in self.rows))

    @property
    def worst(self) -> AttackRow:
        """The row with the largest calibration error (AdaECE), the clean one included."""
        return max((self.clean, *self.rows), key=lambda row: row.adaptive_ece)

    @property
    def sentence(self) -> str:
        """What was found."""
        worst = self.worst
        reached = round_outward(worst.adaptive_ece, "lower")
        error = f"the calibration error (AdaECE){of_what(self.settings)}"
        start = f"On these {self.n} samples {error} is {self.clean.adaptive_ece:.4f}"
        if worst.attacked is None:
            return (
                f"{start}, and no attack raised it; that an attack finds nothing does not prove that nothing is there."
            )
        return (
            f"{start}; {worst.name} within an {self.settings['norm']} distance of {worst.epsilon:g} makes it at least "
            f"{reached} without changing one label (verified); attacks show what is possible, not the worst case."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "attack_table",
            "n": self.n,
            "settings": dict(self.settings),
            "clean": self.clean.to_dict(),
            "rows": [row.to_dict() for row in self.rows],
            "sentence": self.sentence,
        }

    def __repr__(self) -> str:
        lines = [f"AttackTable(n={self.n}, norm={self.settings['norm']!r})"]
        lines += [
            f"  {'':<14} {'epsilon':>8} {'AdaECE':>7} {'ECE':>7} {'Brier':>7} {'conf.':>7} {'acc.':>7} {'changed':>7}"
        ]
        for row in (self.clean, *self.rows):
            values = (row.adaptive_ece, row.ece, row.brier, row.confidence, row.accuracy)
            numbers = " ".join(f"{value:7.4f}" for value in values)
            lines.append(f"  {row.name:<14} {row.epsilon:8.4g} {numbers} {row.changed:7d}")
        return "\n".join(lines)


def attack_table(
    model: object,
    inputs: Any,
    labels: Any,
    *,
    epsilons: float | Sequence[float],
    norm: Norm = "linf",
    attacks: AttackName | Sequence[AttackName] = tuple(ACE_ATTACKS),
    steps: int = 100,
    step: float | None = None,
    bins: int = 15,
    box: Box = (0.0, 1.0),
    sigma: float | None = None,
    draws: int = 16,
    seed: int = 0,
    outputs: Outputs | None = None,
    batch: int = 500,
    threads: int = 1,
    progress: Progress | None = None,
) -> AttackTable:
    """Run attacks that keep labels, and measure what they do to the calibration.

    Parameters
    ----------
    model, inputs, labels, norm, steps, step, box, sigma, draws, seed, outputs, batch, threads
        As for :func:`ace`.
    epsilons
        One largest distance, or several.
    attacks
        Which: ``"+1,y"``, ``"-1,y"``, ``"+1,pred"``, ``"-1,pred"`` (see :func:`ace`), ``"one-step"`` (see
        :func:`one_step_ace`). By default the first four.
    bins
        Of the calibration errors.
    progress
        Called with how many samples were attacked and how many there are, over all attacks.

    Examples
    --------
    See :class:`AttackTable`.
    """
    distances = _distances(epsilons)
    wanted: list[AttackName] = list(dict.fromkeys((attacks,) if isinstance(attacks, str) else attacks))
    if not distances or not wanted:
        raise InputError(f"{'attacks' if distances else 'epsilons'} is empty; pass at least one")
    for each in wanted:
        choice(each, ATTACKS, "attacks")
    count = bin_count(bins)
    balls = [Ball(each, norm, None) for each in distances]
    with torch_threads(threads):
        first = subject(
            model,
            inputs,
            labels,
            outputs=outputs,
            epsilon=balls[0].epsilon,
            norm=norm,
            box=box,
            sigma=sigma,
            draws=draws,
            seed=seed,
            batch=batch,
        )
        clean = first.predict(first.inputs)
        total = len(balls) * len(wanted) * len(clean)
        rows: list[AttackRow] = []
        for ball in balls:
            here = first.within(Ball(ball.epsilon, norm, first.ball.box))
            for each in wanted:
                tell = _Shifted(progress, len(rows) * len(clean), total)
                found = _run(here, clean, each, steps, step, tell)
                measured = _measured(found.predictions, count)
                rows.append(AttackRow(each, found.name, ball.epsilon, measured, found.predictions, found))
    shared = {name: value for name, value in first.settings.items() if name != "epsilon"}
    start = AttackRow(None, "unattacked", 0.0, _measured(clean, count), clean)
    return AttackTable(start, tuple(rows), len(clean), {**shared, "steps": steps, "bins": count})


def _distances(epsilons: Any) -> list[float]:
    """Different distances in their order."""
    several: Any = [epsilons] if isinstance(epsilons, str) or not hasattr(epsilons, "__iter__") else epsilons
    try:
        return list(dict.fromkeys(float(each) for each in several))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"epsilons is {epsilons!r}; pass one distance or several, as numbers") from None


def _run(
    subject: Subject, clean: Predictions, attack: AttackName, steps: int, step: float | None, progress: Progress
) -> Attacked:
    if attack == "one-step":
        return one_step_attack(subject, clean, progress=progress)
    return ace_attack(subject, clean, *ACE_ATTACKS[attack], steps, step, progress)


def _measured(predictions: Predictions, bins: int) -> Measurements:
    return measure(predictions, bins=bins, metrics=_METRICS)


class _Shifted:
    """Progress of one attack as progress of all."""

    def __init__(self, progress: Progress | None, before: int, total: int) -> None:
        self._progress, self._before, self._total = progress, before, total

    def __call__(self, done: int, _: int) -> None:
        if self._progress is not None:
            self._progress(self._before + done, self._total)
