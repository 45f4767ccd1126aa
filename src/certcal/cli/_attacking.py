"""The work of ``certcal attack``: every attack within every distance, measured and put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from certcal._checks import InputError
from certcal._text import counted
from certcal.claims import round_outward
from certcal.data._table import physical_memory
from certcal.report.numbers import number
from certcal.report.results import AttackedResults, AttackLine, Part, estimate_of

if TYPE_CHECKING:
    from certcal.attacks import AttackRow, AttackTable
    from certcal.cli._progress import Waiting
    from certcal.data import Inputs
    from certcal.models import Model

Box = tuple[float, float] | None

ONE_STEP = "one-step"
# For each attack its name in the library, and what it does to the confidence in what.
ATTACKS = {
    "minus-true": ("-1,y", "true class, up"),
    "plus-true": ("+1,y", "true class, down"),
    "minus-predicted": ("-1,pred", "prediction, up"),
    "plus-predicted": ("+1,pred", "prediction, down"),
    ONE_STEP: ("one-step", "right down, wrong up"),
}
_NORMS = {"linf": "no pixel or feature changes by more than ε", "l2": "the Euclidean length of a change is at most ε"}


@dataclass(frozen=True)
class Question:
    """What is asked of the attacks.

    Attributes
    ----------
    epsilons
        Distances, each as it was written and as a number.
    norm, box
        Of which norm, and within which values; "auto" is from 0 to 1 where all inputs are pixels k/255.
    attacks
        Some of ``ATTACKS``.
    steps, batch, seed, threads
        Of every attack.
    sigma, draws
        Of the noise of a smoothed classifier; sigma is None to attack the network itself.
    bins
        Of the calibration error.
    """

    epsilons: tuple[tuple[str, float], ...]
    norm: str
    box: Box | Literal["auto"]
    attacks: tuple[str, ...]
    steps: int
    batch: int
    seed: int
    threads: int
    sigma: float | None
    draws: int
    bins: int

    def box_of(self, inputs: Inputs) -> Box:
        """The box, now that the inputs are known."""
        return inputs.box if self.box == "auto" else self.box

    def settings(self, inputs: Inputs) -> dict[str, Any]:
        """What :func:`certcal.attacks.attack_table` is told."""
        found: dict[str, Any] = {
            "epsilons": [number for _, number in self.epsilons],
            "attacks": [ATTACKS[name][0] for name in self.attacks],
            **{name: getattr(self, name) for name in ("norm", "steps", "batch", "seed", "threads", "bins")},
            "box": self.box_of(inputs),
        }
        return found if self.sigma is None else {**found, "sigma": self.sigma, "draws": self.draws}

    def conventions(self, inputs: Inputs) -> dict[str, Any]:
        """How the numbers were computed, for machines and in words."""
        box = self.box_of(inputs)
        return {
            "norm": self.norm,
            "box": None if box is None else list(box),
            "steps": self.steps,
            "sigma": self.sigma,
            "draws": None if self.sigma is None else self.draws,
            "seed": self.seed,
            "bins": self.bins,
            "closed": "left",
            "in_words": self.in_words(box),
        }

    def in_words(self, box: Box) -> list[str]:
        """What the attacker may do and does, in sentences."""
        stays = "Values may become anything." if box is None else f"Values stay from {box[0]:g} to {box[1]:g}."
        said = [
            f"The attacker adds a perturbation to every input: {_NORMS[self.norm]}. {stays} A perturbation that would "
            "change the predicted label is not made, and the labels of the final inputs are computed once more, by "
            "the model's ordinary prediction in single precision.",
            f"An (η, ω)-ACE attack climbs η times the cross entropy of the model's answer against ω, the true class y "
            f"or the predicted class ŷ, in at most {self.steps} steps along the gradient. With η = +1 it lowers the "
            "confidence in that class, with η = −1 it raises it.",
        ]
        if ONE_STEP in self.attacks:
            said.append(
                "The one-step attack lowers the confidence of right predictions and raises that of wrong ones, by a "
                "single step along the sign of the gradient that is shortened until the label stays."
            )
        if self.sigma is not None:
            said.append(
                f"The smoothed classifier is attacked: its probabilities are the mean over {self.draws:,} draws of "
                f"Gaussian noise of standard deviation {self.sigma:g} around each input. The draws stay the same "
                f"during an attack and for its verification (seed {self.seed}), so the attack is on this estimate."
            )
        return said


def attacked(model: Model, inputs: Inputs, asked: Question, waiting: Waiting) -> AttackTable:
    """Attack within every distance, with progress.

    Parameters
    ----------
    model, inputs
        What is attacked.
    asked
        How.
    waiting
        Where progress shows.
    """
    from certcal.attacks import attack_table

    _check_memory(inputs, asked)
    order = [f"{name}, ε = {text}" for text, _ in asked.epsilons for name in asked.attacks]
    done = [0]

    def progress(finished: int, total: int) -> None:
        waiting.advance(finished - done[0])
        waiting.say(order[min(finished // len(inputs), len(order) - 1)])
        done[0] = finished

    waiting.stage(order[0], len(inputs) * len(order))
    return attack_table(model, inputs.inputs, inputs.labels, progress=progress, **asked.settings(inputs))


def _check_memory(inputs: Inputs, asked: Question) -> None:
    """Refuse more perturbed inputs than can be kept: those of all attacks are, until the end."""
    memory = physical_memory()
    attacks = len(asked.attacks) * len(asked.epsilons)
    needed = attacks * inputs.inputs.nbytes
    if memory is not None and needed > memory:
        raise InputError(
            f"the perturbed inputs of {counted(attacks, 'attack')} take {needed / 2**30:.1f} GiB and this machine has "
            f"{memory / 2**30:.1f} GiB; give fewer --attacks or --epsilon at a time, or --limit"
        )


def results_of(
    source: str, about: Mapping[str, Any], inputs: Inputs, table: AttackTable, asked: Question
) -> AttackedResults:
    """What was found, in numbers and in words."""
    texts = {number: text for text, number in asked.epsilons}
    keys = {name: (key, aim) for key, (name, aim) in ATTACKS.items()}
    lines: list[AttackLine] = []
    for row in table:
        assert row.attack is not None
        assert row.attacked is not None
        key, aim = keys[row.attack]
        moved = row.attacked.moved
        lines.append(
            AttackLine(key, row.name, aim, row.epsilon, texts[row.epsilon], _part(row, asked), moved, row.changed)
        )
    shape = "×".join(map(str, inputs.inputs.shape[1:]))
    box = asked.box_of(inputs)
    limits = "values unlimited" if box is None else f"values from {box[0]:g} to {box[1]:g}"
    smoothed = "" if asked.sigma is None else f"; smoothed, σ = {asked.sigma:g}, {counted(asked.draws, 'draw')}"
    samples = "training sample" if about.get("part") == "train" else "sample"
    found = AttackedResults(
        source=source,
        about=about,
        description=f"{counted(len(inputs), samples)} of shape {shape}, {limits}{smoothed}",
        clean=_part(table.clean, asked),
        lines=tuple(lines),
        conventions=asked.conventions(inputs),
        claims=(),
        notes=_notes(asked),
    )
    return replace(found, claims=tuple(_claims(found)))


def _part(row: AttackRow, asked: Question) -> Part:
    from certcal.metrics import reliability

    predictions = row.predictions
    prepared = reliability(predictions.confidence, predictions.correct, bins=asked.bins)
    return Part(row.name, len(predictions), row.measurements.rows, prepared)


def _claims(found: AttackedResults) -> list[str]:
    strongest = found.strongest
    before, after = (estimate_of(part, "equal_mass_ece").value for part in (found.clean, strongest.part))
    plain = [number(estimate_of(part, "ece").value) for part in (found.clean, strongest.part)]
    accuracy = number(estimate_of(found.clean, "accuracy").value)
    within = f"within ε = {strongest.epsilon_text} ({found.norm_text})"
    these = "this sample" if found.clean.n == 1 else f"these {counted(found.clean.n, 'sample')}"
    start = f"On {these} the AdaECE is {number(before)} (ECE {plain[0]})"
    if after > before:
        reached = (
            f"{start}; {strongest.name} {within} makes it at least {round_outward(after, 'lower')} (ECE {plain[1]})."
        )
    else:
        reached = f"{start}, and no attack raised it, which does not prove that none can."
    kept = (
        f"No predicted label changed, verified on the final inputs: the accuracy is {accuracy} before and after."
        if found.changed == 0
        else f"{counted(found.changed, 'predicted label')} changed."
    )
    return [reached, kept, "Attacks show what is possible, not the worst case."]


def _notes(asked: Question) -> str:
    text = (
        "AdaECE is the ECE with bins that hold equally many samples. y is the true class, ŷ the predicted one. "
        "Estimates on these samples, not guarantees."
    )
    return text if asked.sigma is None else f"{text} The attack is on the mean over the draws, which stay the same."
