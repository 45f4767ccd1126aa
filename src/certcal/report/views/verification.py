"""What was verified over a perturbation set: the words and the layout of a Verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from certcal._base.text import counted
from certcal.claims import round_outward, sure_text
from certcal.report.charts import Axis, Chart, Line, Panel, covering, radii_axis
from certcal.report.document import (
    Cell,
    Claim,
    Column,
    Facts,
    Figures,
    KeyNumber,
    KeyNumbers,
    Listing,
    Report,
    Section,
    Table,
    Text,
)
from certcal.verification.boxes import short

if TYPE_CHECKING:
    from certcal.verbs.verify import Verification, VerifiedAt

_METRICS = {"ks_error": "KS", "brier_score": "Brier", "nll": "log loss"}
_MEANING = (
    "Whatever becomes of inputs inside their boxes, in this sample and in the population it was drawn from. Nothing "
    "about the model is left to chance: the intervals hold for certain."
)
_MARKED = "Computed at the marked sizes; the light lines only lead the eye, and nothing is claimed between."
_GAP = (
    "The worst case on these samples lies between what the attack reached and what is certified. The distance between "
    "the two is what the verifier does not know."
)


def view(found: Verification) -> Report:
    """The report of a verification."""
    one = found.at()
    (population, what, over), (_, bracket) = found.top()
    claim = Claim.of(population, what, over=over, meaning=_MEANING)
    claim = replace(claim, assumptions=(*claim.assumptions, *found.assumptions))
    amounts, *conditions = found.box.text.split("; ")
    allowed = [("changes", amounts), *([("conditions", ", ".join(conditions))] if conditions else [])]
    if found.binary:
        notes = ["The outcome of a binary score is fixed: no sample needs to be certified, and none is left out."]
    else:
        notes = ["A sample is certified when no input inside its box changes the predicted class."]
    return Report(
        f"How wrong can the {one.summary.information.of} be inside the box?",
        [claim, Text(bracket)],
        [
            Section("Key numbers", _key_numbers_of_verification(found)),
            Section(
                "By size of the box",
                [_table_of_multiples(found), Figures(charts(found), _GAP if found.settings.attack else "")],
                brief=True,
            ),
        ],
        [
            Section("What may change", [Facts(allowed, "Box")]),
            Section("How it is known", [Listing(_method_notes(found))]),
        ],
        notes=notes,
    )


def charts(found: Verification) -> Sequence[Chart]:
    """The bracket of the ECE by the size of the box, or the intervals' widths where there is one size."""
    if len(found.lines) > 1:
        x = [line.epsilon for line in found]
        certified, reached = [line.worst.value for line in found], [line.reached.value for line in found]
        population = [line.population.value for line in found]
        lines = [
            Line(x, population, 2, "population, certified", guide=True),
            Line(x, certified, 0, "these samples, certified", guide=True),
            Line(x, reached, 1, "these samples, reached", guide=True),
        ]
        axis = covering([0, *certified, *reached, *population], "ECE", most=1.0)
        said = "ECE certified for the population and for these samples, and ECE reached, by multiple of the box"
        panel = Panel(radii_axis(x, "multiple of the box"), axis, lines)
        return [Chart("ECE by size of the box", said, [panel], _MARKED)]
    one = found.at()
    share = np.linspace(0, 1, 101)
    made = [
        Line(share.tolist(), np.quantile(widths, share).tolist(), look, name, markers=False)
        for look, (name, widths) in enumerate(
            {
                "certified": one.verified.upper - one.verified.lower,
                "reached": one.verified.reached_upper - one.verified.reached_lower,
            }.items()
        )
    ]
    high = covering([0, *made[0].y], "width of the interval", most=1.0)
    x_axis = Axis(0.0, 1.0, ((0.0, "0"), (0.5, "0.5"), (1.0, "1")), "share of samples")
    said = "Widths of the certified and of the reached intervals, narrowest first"
    return [Chart("Widths of the score intervals", said, [Panel(x_axis, high, made)])]


def _key_numbers_of_verification(found: Verification) -> KeyNumbers:
    one = found.at()
    mean = float(found.correct.mean())
    numbers = [
        KeyNumber("samples", f"{len(found):,}", (found.about["model"],)),
        KeyNumber("base rate" if found.binary else "accuracy", f"{mean:.4f}", ("on these samples",)),
        KeyNumber("ECE, certified", one.worst.text, ("at most, on these samples",)),
        KeyNumber("ECE, reached", round_outward(one.reached.value, "lower"), ("at least",)),
        KeyNumber("mean width", f"{one.width:.4f}", (f"{one.reached_width:.4f} reached", f"{one.exact:.1%} exact")),
    ]
    if not found.binary:
        some = one.summary.n_certified
        numbers.insert(2, KeyNumber("certified", f"{some:,}", (f"class changed for {one.classes_changed:,}",)))
    return KeyNumbers(numbers, f"Box: {found.box.times(one.epsilon)}; multiple {short(one.epsilon)}.")


def _table_of_multiples(found: Verification) -> Table:
    def worst(key: str) -> Callable[[VerifiedAt], Cell]:
        return lambda line: line.summary[key].worst or line.summary[key].worst_all

    cells: dict[Column, Callable[[VerifiedAt], Cell]] = {Column("multiple"): lambda line: short(line.epsilon)}
    if not found.binary:
        cells[Column("certified", "count")] = lambda line: line.summary.n_certified
    cells |= {
        Column("ECE, population", "bound", "upper"): lambda line: line.population,
        Column("ECE, certified", "bound", "upper"): lambda line: line.worst,
        Column("ECE, reached", "bound", "lower"): lambda line: float(line.reached.value),
        **{Column(name, "bound", "upper", priority=2): worst(key) for key, name in _METRICS.items()},
        Column("mean width", "estimate", priority=3): lambda line: line.width,
        Column("exact", "percent", priority=4): lambda line: line.exact,
    }
    rows = [[cell(line) for cell in cells.values()] for line in found]
    return Table(list(cells), rows, "Worst cases inside the box; exact: % of samples")


def _method_notes(found: Verification) -> list[str]:
    effort = found.settings.effort
    said = [
        f"Scores are bounded for the model itself, {found.about['model']}, by {found.about['method']}. "
        f"Each sample's box is split at most {counted(effort, 'time')}; a larger effort can only tighten the bounds.",
        "Intervals hold the model's own answer in its own arithmetic: bounds have room for what rounding can do.",
        "There is no noise that these numbers could depend on. The bound for the population is "
        f"{sure_text(found.settings.delta)}, for samples drawn like these.",
    ]
    if found.settings.attack:
        said.append("The attack's inputs lie inside the boxes, and their scores are the model's own.")
    return said
