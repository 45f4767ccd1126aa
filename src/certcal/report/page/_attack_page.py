"""The page of attacks on a model's confidences: what they reached, with no predicted label changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from certcal._html import Raw, element, join
from certcal._text import counted
from certcal.claims import Estimate
from certcal.report.explained import remarks_on
from certcal.report.names import label
from certcal.report.numbers import bins_text, number
from certcal.report.page._claims import Claim, card, how_computed, key_numbers
from certcal.report.page._diagrams import counts_of, reliability_figure, reliability_legend
from certcal.report.page._pieces import note, row, scrolling, shown, unbroken
from certcal.report.page._skeleton import Page, Section, document
from certcal.report.provenance import Provenance
from certcal.report.results import AttackedResults, AttackLine, Part, estimate_of, for_json

MOST_DRAWN = 24
_TITLE = "How far can an attack move the confidences?"
_COLUMNS = ("equal_mass_ece", "ece", "mean_confidence", "top_label_brier_score", "nll", "accuracy")
_HEADINGS = {
    "equal_mass_ece": "AdaECE",
    "ece": "ECE",
    "mean_confidence": "mean confidence",
    "top_label_brier_score": "Brier score",
    "nll": "log loss",
    "accuracy": "accuracy",
}
_LOWER = (
    "An attack shows what is possible: the worst case within the same distance is at least this, and may be far more. "
    "Only a certificate says what no perturbation can exceed."
)


def attack_page(results: AttackedResults, provenance: Provenance | None = None, *, title: str | None = None) -> Page:
    """The page of what attacks have reached.

    Parameters
    ----------
    results
        Of ``certcal attack``.
    provenance, title
        As for :func:`certcal.report.page.page`.
    """
    strongest = results.strongest
    # Its sentence is for people here, and begins with a name of theirs.
    reached = replace(estimate_of(strongest.part, "equal_mass_ece"), name="AdaECE")
    sections = [
        Section("numbers", "Key numbers", _key_numbers(results)),
        Section("attacks", "What each attack reached", _attacks(results)),
        Section("diagrams", "Confidence against accuracy", _diagrams(results)),
        Section("computed", "How each number was computed", _computed(results)),
    ]
    smaller = _kept(results)
    left_out, data = next(smaller)
    return document(
        _TITLE if title is None else title,
        sections,
        data,
        headline=card(
            reached,
            lead=f"AdaECE after {strongest.name} within ε = {strongest.epsilon_text} ({results.norm_text}) is",
            meaning=_LOWER,
            more=(" ".join(results.claims),),
        ),
        eyebrow="Attack report",
        source=results.source,
        description=results.description,
        provenance=provenance,
        left_out=left_out,
        smaller=smaller,
    )


def _key_numbers(results: AttackedResults) -> Raw:
    clean, strongest = results.clean, results.strongest
    before, after = (estimate_of(part, "equal_mass_ece") for part in (clean, strongest.part))
    return join(
        key_numbers(
            [
                ("samples", f"{clean.n:,}", f"{counted(strongest.moved, 'input')} perturbed"),
                ("accuracy", number(estimate_of(clean, "accuracy").value), "before and after every attack"),
                ("labels changed", f"{results.changed:,}", "checked on the final inputs"),
                ("AdaECE before", number(before.value), f"{bins_text(before)} bins"),
                ("AdaECE after", number(after.value), f"{strongest.name}\nε = {strongest.epsilon_text}"),
            ]
        ),
        note("Estimates on these samples; the worst case on them is at least as large."),
    )


def _attacks(results: AttackedResults) -> Raw:
    width = 2 + len(_COLUMNS)
    lines = [_line("unattacked", "", results.clean)]
    for epsilon, members in results.by_epsilon.items():
        heading = element("th", f"Within ε = {epsilon} ({results.norm_text})", colspan=width, scope="colgroup")
        lines += [element("tr", heading), *(_line(line.name, line.aim, line.part) for line in members)]
    headings = ["attack", "confidence in", *(_HEADINGS[name] for name in _COLUMNS)]
    heads = [
        element("th", text, scope="col", class_="number" if place > 1 else None) for place, text in enumerate(headings)
    ]
    caption = f"Attacks on {counted(results.clean.n, 'sample')}"
    body = join(element("caption", caption), element("thead", element("tr", heads)), element("tbody", lines))
    return join(scrolling(element("table", body), caption), note(unbroken(results.notes)))


def _line(name: str, aim: str, part: Part) -> Raw:
    return element(
        "tr",
        element("th", shown(name), scope="row"),
        element("td", aim),
        [element("td", number(estimate_of(part, each).value), class_="number") for each in _COLUMNS],
    )


def _diagrams(results: AttackedResults) -> Raw:
    drawn: list[tuple[str, str, Part]] = [("none", "unattacked", results.clean)]
    for place, line in enumerate(results.lines[: MOST_DRAWN - 1]):
        drawn.append((f"attack-{place}", f"{line.name}, ε = {line.epsilon_text}", line.part))
    shared = counts_of([part.reliability.table for _, _, part in drawn])
    figures = [
        reliability_figure(
            f"reliability-{key}",
            f"Reliability diagram, {name}",
            part.reliability,
            heading=name,
            small=True,
            count_axis=shared,
        )
        for key, name, part in drawn
    ]
    undrawn = len(results.lines) + 1 - len(drawn)
    return join(
        element(
            "p",
            "In a calibrated model every bar ends on the diagonal. The predictions are the same in all diagrams: only "
            "the confidences have moved.",
        ),
        reliability_legend(),
        row(*figures, small=True),
        note(f"{counted(undrawn, 'further diagram')} would not be looked at; the JSON has the numbers.")
        if undrawn
        else None,
    )


def _computed(results: AttackedResults) -> Raw:
    claims: list[tuple[str, Claim, Sequence[str]]] = []
    for line in (None, results.strongest):
        part = results.clean if line is None else line.part
        claims += [(_named(each, line), each, remarks_on(each.name)) for each in part.rows]
    said = [element("p", unbroken(each)) for each in results.conventions["in_words"]]
    return join(said, how_computed(claims))


def _named(row: Estimate, line: AttackLine | None) -> str:
    bins = bins_text(row)
    under = "unattacked" if line is None else f"under {line.name}, ε = {line.epsilon_text}"
    return f"{label(row.name)}{f', {bins} bins' if bins else ''}, {under}"


def _kept(results: AttackedResults) -> Iterator[tuple[str, Mapping[str, Any]]]:
    whole = results.to_dict()
    yield "", whole
    bare = [{key: value for key, value in each.items() if key != "reliability"} for each in whole["attacks"]]
    yield (
        "The bins are too many to be kept in this page; the JSON inside it leaves them out.",
        for_json({**whole, "attacks": bare, "clean": {k: v for k, v in whole["clean"].items() if k != "reliability"}}),
    )
