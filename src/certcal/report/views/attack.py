"""What attacks have reached: the words and the layout of an Attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from certcal._base.rounding import share_text
from certcal._base.text import counted, distance_text
from certcal.report.charts import Chart
from certcal.report.document import (
    Block,
    Cell,
    Choice,
    Claim,
    Column,
    Facts,
    Figures,
    Heading,
    KeyNumber,
    KeyNumbers,
    Listing,
    Report,
    Section,
    Table,
    Text,
    left_out,
    without,
)
from certcal.report.names import definitions, label
from certcal.report.numbers import bins_text
from certcal.report.reliability import reliability_charts
from certcal.verbs.attack import NORMS

if TYPE_CHECKING:
    from certcal.verbs.attack import Attack, AttackRow

MOST_DRAWN = 24
_COLUMNS = {
    "equal_mass_ece": ("AdaECE", 0),
    "ece": ("ECE", 0),
    "mean_confidence": ("confidence", 1),
    "accuracy": ("accuracy", 2),
    "top_label_brier_score": ("Brier score", 4),
    "nll": ("log loss", 5),
}
_LOWER = (
    "AdaECE is the ECE with bins that hold equally many samples. An attack shows what is possible: the worst case "
    "within the same distance is at least this. Only a certificate says what no perturbation can exceed."
)
_DIAGONAL = "In a calibrated model every bar ends on the diagonal, up to sampling error."
_SAME = " The predictions are the same in all diagrams: only the confidences have moved."
_KEPT = {
    True: "No perturbation changes a predicted label: one that would is not made.",
    False: "Attacks that do not keep the predicted labels may change them.",
}
_NORMS = {"linf": "no pixel or feature changes by more than ε", "l2": "the Euclidean length of a change is at most ε"}


def view(found: Attack) -> Report:
    """The report of attacks."""
    strongest = found.strongest
    reached, *_ = found.sentences
    raised = strongest["equal_mass_ece"].value > found.clean["equal_mass_ece"].value
    value = f"at least {share_text(strongest['equal_mass_ece'].value, 'lower')}" if raised else ""
    claim = Claim.of(found.claims()[0], "AdaECE", meaning=_LOWER, settings=False)
    box, conventions = found.conventions["box"], found.conventions
    limits = "values unlimited" if box is None else f"values from {box[0]:g} to {box[1]:g}"
    draws = counted(conventions["draws"], "draw") if conventions["sigma"] is not None else ""
    smoothed = f"; smoothed, σ = {conventions['sigma']:g}, {draws}" if draws else ""
    samples = counted(found.n, "training sample" if found.about.get("split") == "train" else "sample")
    given = {"model": found.about["model"], "data": found.about["data"], **conventions}
    settings = Facts([(name, str(value)) for name, value in given.items() if value is not None], "Settings")
    notes = ["y is the true class, ŷ the predicted one."]
    if draws:
        notes.append("The attack is on the mean over the draws, which stay the same.")
    diagrams = _diagrams(found)
    return Report(
        "How far can an attack move the confidences?",
        [replace(claim, sentence=reached, value=value)],
        [
            Section("Key numbers", _key_numbers_of_attack(found)),
            Section("Attacks", _attacks_table(found), brief=True),
            Section("Reliability diagrams", Figures(diagrams[:2], _diagonal(found)), brief=True, pictured=True),
        ],
        [
            Section("Reliability diagrams under the other attacks", _other_diagrams(found, diagrams)),
            Section("Attacker", [Listing(_attacker_notes(found)), settings]),
            Section("All metrics", _metrics(found)),
        ],
        "",
        f"{samples} of shape {'×'.join(map(str, found.shape))}, {limits}{smoothed}",
        notes,
        smaller=[left_out("The bins", lambda: without(found.to_dict(), "reliability"))],
        picture=_picture(found, diagrams),
    )


def charts(found: Attack) -> Sequence[Chart]:
    """The reliability diagrams without an attack and under the strongest."""
    rows = (found.clean, found.strongest)
    return reliability_charts({_title(found, row): row.measured.reliability for row in rows})


def _within_text(found: Attack, row: AttackRow) -> str:
    return f"ε = {distance_text(row.epsilon)} ({NORMS[found.conventions['norm']]})"


def _title(found: Attack, row: AttackRow) -> str:
    return row.name if row.attacked is None else f"{row.name}, {_within_text(found, row)}"


def _key_numbers_of_attack(found: Attack) -> KeyNumbers:
    clean, strongest = found.clean, found.strongest
    before, after = (row["equal_mass_ece"] for row in (clean, strongest))
    kept = "before and after every attack" if not found.changed else "before"
    numbers = [
        KeyNumber("samples", f"{found.n:,}", (f"{counted(strongest.moved, 'input')} perturbed",)),
        KeyNumber("accuracy", share_text(clean["accuracy"].value), (kept,)),
        KeyNumber("labels changed", f"{found.changed:,}", ("checked on the final inputs",)),
        KeyNumber("AdaECE before", share_text(before.value), (f"{bins_text(before)} bins",)),
        KeyNumber(
            "AdaECE after",
            share_text(after.value, "lower"),
            ("at least", strongest.name, f"ε = {distance_text(strongest.epsilon)}"),
        ),
    ]
    return KeyNumbers(numbers, "Estimates on these samples; the worst case on them is at least as large.")


def _attacks_table(found: Attack) -> Table:
    columns = [Column("attack"), Column("confidence in", priority=3)]
    columns += [Column(head, "estimate", priority=priority) for head, priority in _COLUMNS.values()]
    rows: list[Sequence[Cell] | Heading] = [_attack_cells(found.clean)]
    for epsilon in found.epsilons:
        members = [row for row in found if row.epsilon == epsilon]
        rows += [Heading(f"Within {_within_text(found, members[0])}"), *map(_attack_cells, members)]
    return Table(columns, rows, f"Estimates on {counted(found.n, 'sample')}")


def _attack_cells(row: AttackRow) -> list[Cell]:
    return [row.name, row.aim, *(float(row[name].value) for name in _COLUMNS)]


def _diagrams(found: Attack) -> list[Chart]:
    """Without an attack, under the strongest, and smaller ones under others."""
    others = [row for row in found if row is not found.strongest]
    drawn = [found.clean, found.strongest, *others[: MOST_DRAWN - 2]]
    made = reliability_charts({_title(found, row): row.measured.reliability for row in drawn})
    return [*made[:2], *(replace(each, size="small") for each in made[2:])]


def _diagonal(found: Attack) -> str:
    return f"{_DIAGONAL}{'' if found.changed else _SAME}"


def _picture(found: Attack, diagrams: Sequence[Chart]) -> list[Block]:
    """The confidences under the strongest attack, and as they were."""
    states = [[each] for each in diagrams[:2]]
    note = Text(_diagonal(found), "note")
    return [Choice("state", "Confidences", ("unattacked", "attacked"), 1, states, switch=True), note]


def _other_diagrams(found: Attack, diagrams: Sequence[Chart]) -> Figures | None:
    undrawn = len(found) + 1 - len(diagrams)
    more = f"{counted(undrawn, 'further diagram')} would not be looked at; the JSON has the numbers." if undrawn else ""
    return Figures(diagrams[2:], more) if len(diagrams) > 2 else None


def _attacker_notes(found: Attack) -> list[str]:
    given = found.conventions
    box = given["box"]
    stays = "Values may become anything." if box is None else f"Values stay from {box[0]:g} to {box[1]:g}."
    said = [
        f"The attacker adds a perturbation to every input: {_NORMS[given['norm']]}. {stays}",
        f"{_KEPT[found.changed == 0]} The labels of the final inputs are computed once more, by the model's ordinary "
        "prediction in single precision.",
    ]
    names = {row.attack for row in found}
    if any(name.startswith(("plus-", "minus-")) for name in names):
        said.append(
            "An (η, ω)-ACE attack climbs η times the cross entropy of the model's answer against ω, the true class y "
            f"or the predicted class ŷ, in at most {given['steps']} steps along the gradient. With η = +1 it lowers "
            "the confidence in that class, with η = −1 it raises it."
        )
    if given.get("restarts", 1) > 1:
        won = max(row.restarts_won or 0 for row in found)
        said.append(
            f"Each attack that can begin anywhere ran {given['restarts']} times, from the clean input and from random "
            f"points of the ball; per input the best was kept, which was one of the latter for up to {won:,} inputs."
        )
    if "one-step" in names:
        said.append(
            "The one-step attack lowers the confidence of right predictions and raises that of wrong ones, by a single "
            "step along the sign of the gradient that is shortened until the label stays."
        )
    if given["sigma"] is not None:
        said.append(
            f"The smoothed classifier is attacked: its probabilities are the mean over {given['draws']:,} draws of "
            f"Gaussian noise of standard deviation {given['sigma']:g} around each input. The draws stay the same "
            f"during an attack and for its verification (seed {given['seed']}), so the attack is on this estimate."
        )
    return said


def _metrics(found: Attack) -> list[Block]:
    strongest = found.strongest
    columns = [
        Column("metric"),
        Column("bins", "count"),
        Column("unattacked", "estimate"),
        Column(strongest.name, "estimate"),
    ]
    pairs = zip(found.clean.measured.rows, strongest.measured.rows, strict=True)
    rows = [[label(one.name), bins_text(one), float(one.value), float(other.value)] for one, other in pairs]
    return [
        Table(columns, rows, f"Without an attack and within {_within_text(found, strongest)}"),
        Text(replace(strongest["equal_mass_ece"], name="AdaECE").sentence, "note"),
        definitions(strongest.measured.rows),
    ]
