"""What was verified over a perturbation set: the words and the layout of a Verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from certcal._base.rounding import claim_text, share_text
from certcal._base.text import capital, counted
from certcal.claims import sure_text
from certcal.metrics import ece
from certcal.report.charts import Axis, Chart, Line, Mark, Panel, Stack, Words, covering, radii_axis, with_percent_ticks
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
    picture = Figures([bracket_chart(found)], _GAP if found.settings.attack else "")
    return Report(
        f"How wrong can the {one.summary.information.of} be inside the box?",
        [claim, Text(bracket)],
        [
            Section("Key numbers", _key_numbers_of_verification(found)),
            Section("Worst case", picture, pictured=True),
            Section("By size of the box", [_table_of_multiples(found), _widths_chart(found)], brief=True),
        ],
        [
            Section("What may change", [Facts(allowed, "Box")]),
            Section("How it is known", [Listing(_method_notes(found))]),
        ],
        notes=notes,
        picture=[picture],
    )


def charts(found: Verification) -> Sequence[Chart]:
    """Between what the worst calibration error lies, and how wide the intervals are at the largest size."""
    return [bracket_chart(found), _widths_chart(found)]


def bracket_chart(found: Verification) -> Chart:
    """Between what the worst calibration error lies: bars of one size of the box, lines over several."""
    return _bracket_by_size(found) if len(found.lines) > 1 else _bracket_of_one_size(found)


def _bracket_by_size(found: Verification) -> Chart:
    x, attacked = [line.epsilon for line in found], found.settings.attack
    certified, reached = [line.worst.value for line in found], [line.reached.value for line in found]
    population = [line.population.value for line in found]
    largest = found.at().population
    marks: list[Mark] = [
        Line(x, population, 2, "population, certified", guide=True),
        Line(x, certified, 0, "these samples, certified", guide=True),
        Line(x, reached, 1, "these samples, reached" if attacked else "these samples as they are", guide=True),
        Words([x[-1]], [largest.value], [f"at most {claim_text(largest)}"], beside=True),
    ]
    axis = with_percent_ticks(covering([0, *certified, *reached, *population], "ECE", most=1.0))
    said = "ECE certified for the population and for these samples, and ECE reached, by multiple of the box"
    panel = Panel(radii_axis(x, "multiple of the box"), axis, marks)
    return Chart("ECE by size of the box", said, [panel], _MARKED)


def _bracket_of_one_size(found: Verification) -> Chart:
    """The ECE of the samples as they are, what an attack reached, and what is certified of these and of new ones."""
    one, attacked = found.at(), found.settings.attack
    whole = found.binary or one.summary["calibration_error"].worst is None
    kept = slice(None) if whole else one.verified.certified
    clean = ece(found.confidence[kept], found.correct[kept], bins=found.settings.bins, closed=found.settings.closed)
    reached, worst, population = one.reached.value, one.worst.value, one.population.value
    within = {"reached by an attack" if attacked else "as they are": reached}
    within["left open by the verifier"] = max(0.0, worst - reached)
    beyond = {**within, "sampling error": max(0.0, population - worst)}
    rows = [("these samples as they are", {"as they are": clean}, share_text(clean))]
    if attacked:
        text = f"at least {share_text(reached, 'lower')}"
        rows.append(("inside the box: reached", {"reached by an attack": reached}, text))
    rows.append(("inside the box: certified", within, f"at most {claim_text(one.worst)}"))
    rows.append(("new samples: certified", beyond, f"at most {claim_text(one.population)}"))
    names, terms, totals = (list(each) for each in zip(*rows, strict=True))
    axis = with_percent_ticks(covering([clean, reached, worst, population], "calibration error (ECE)", most=1.0))
    said = " ".join(f"{capital(name)}: {total}." for name, _, total in rows)
    return Chart("Calibration error inside the box", said, [Stack(names, terms, totals, axis)])


def _widths_chart(found: Verification) -> Chart:
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
    return Chart("Widths of the score intervals", said, [Panel(x_axis, high, made)])


def _key_numbers_of_verification(found: Verification) -> KeyNumbers:
    one = found.at()
    mean = float(found.correct.mean())
    numbers = [
        KeyNumber("samples", f"{len(found):,}", (found.about["model"],)),
        KeyNumber("base rate" if found.binary else "accuracy", share_text(mean), ("on these samples",)),
        KeyNumber("ECE, certified", claim_text(one.worst), ("at most, on these samples",)),
        KeyNumber("ECE, reached", share_text(one.reached.value, "lower"), ("at least",)),
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
