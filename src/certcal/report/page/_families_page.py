"""The page of families: training methods at several noise levels, and who is better than whom whatever the setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certcal._html import Child, Raw, element, join, table
from certcal._text import counted
from certcal.claims import short_text
from certcal.report.numbers import number
from certcal.report.page._families_accuracy import accuracy_part, best_part, settings_part
from certcal.report.page._families_calibration import calibration_part
from certcal.report.page._families_drawn import members
from certcal.report.page._families_graph import graph_part
from certcal.report.page._families_p_a import p_a_part, share_text
from certcal.report.page._pieces import note, scrolling, shown, verdict_card
from certcal.report.page._skeleton import Page, Section, document
from certcal.report.provenance import Provenance
from certcal.smoothing.robustness import WARNING, Compared, Families

if TYPE_CHECKING:
    from certcal.report.results import FamilyResults

_SAID_ON_TOP = 4
_AT = (0.5, 0.9, 0.99)


def families_page(results: FamilyResults, provenance: Provenance | None = None, *, title: str | None = None) -> Page:
    """The page of several families of runs and logs beside each other.

    Parameters
    ----------
    results
        Of ``certcal compare`` with named sources.
    provenance, title
        As for :func:`certcal.report.page.page`.
    """
    found = results.families
    sections = [
        Section("runs", "What is compared", _runs(results)),
        *([Section("better", "Better whatever the setting?", graph_part(found))] if found.graphs else []),
        Section("p-a", "How sure the votes are", p_a_part(found)),
        Section("average", "What the average certified radius hides", _average(found)),
        Section("accuracy", "Certified accuracy", accuracy_part(found)),
        *([Section("best", "Best over sigma", best_part(found))] if _several(found) else []),
        *([Section("settings", "Other draws and levels", settings_part(found))] if found.settings else []),
        *([Section("calibration", "Certified calibration", calibration_part(found))] if found.calibration else []),
        Section("notes", "What limits the comparison", _notes(found)),
    ]
    data = results.to_dict()
    runs = sum(len(family.runs) for family in found.families)
    return document(
        "Which training method is more robust?" if title is None else title,
        sections,
        data,
        headline=_headline(found),
        eyebrow="Certified robustness of training methods",
        source=", ".join(dict.fromkeys(source for _, source in results.sources)),
        description=f"{counted(len(found.families), 'method')}, "
        f"{runs:,} {'run or log' if runs == 1 else 'runs or logs'} at sigma "
        f"{', '.join(f'{sigma:g}' for sigma in found.sigmas)}",
        provenance=provenance,
        smaller=[_without_steps(data)],
    )


def _several(found: Families) -> bool:
    return len(found.sigmas) > 1


def _without_steps(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The numbers without the steps of the distributions, which grow with the samples."""
    steps = ("p", "lower", "upper")

    def slim(run: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in run["distribution"].items() if key not in steps}
        return run | {"distribution": kept}

    families = [family | {"runs": [slim(run) for run in family["runs"]]} for family in data["families"]]
    return (
        "The steps of the distributions of p_A are not among the numbers in this page, to keep it small; certcal "
        "compare --json prints them.",
        data | {"families": families},
    )


def _headline(found: Families) -> Raw:
    """The verdicts, which are estimates; where nothing can be compared, what is certified."""
    sentences = [_capital(graph.sentence) for graph in found.graphs]
    kind = "estimate"
    said = "verdicts about these samples, since shares of votes stand for p_A"
    if not sentences:
        middle = len(found.at) // 2
        runs = [run for family in found.families for run in family.runs]
        sentences = [f"{run.name}: {run.curve.sentences[middle]}" for run in runs]
        kind = "certificate"
        said = "holds for every perturbation up to a radius, where the radii of the samples hold"
    rest = len(sentences) - _SAID_ON_TOP
    more = note(f"{rest:,} more below.") if rest > 0 else None
    return verdict_card(kind, said, sentences[:_SAID_ON_TOP], more)


def _runs(results: FamilyResults) -> Raw:
    caption = "Families and their runs"
    rows: list[Sequence[Child]] = []
    for name, source, run in results.runs:
        low, high = run.draws
        draws = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        numbers = (f"{run.sigma:g}", f"{run.n:,}", f"{run.n_abstained:,}", draws, short_text(run.alpha, "upper"))
        rows.append((shown(name, 60), *numbers, shown(source)))
    header = ["family", "sigma", "samples", "abstained", "draws each", "alpha", "from"]
    return join(
        scrolling(table(header, rows, caption, numeric=range(1, 6), row_headers=True), caption),
        element(
            "p",
            "A family is one way of training, with a network for each noise level sigma. Its name was given with its "
            "files; nothing in them says how they were trained.",
        ),
    )


def _average(found: Families) -> Raw:
    made: list[Raw] = [
        element("p", element("strong", _capital(f"{WARNING}.")), " It is shown because others print it.")
    ]
    graphs = {graph.sigma: graph for graph in found.graphs}
    for sigma in found.sigmas:
        caption = f"By average certified radius, sigma {sigma:g}"
        ranked = sorted(members(found, sigma), key=lambda member: -member[2].average.value)
        graph = graphs.get(sigma)
        edges = graph.edges if graph is not None else ()
        rows = [
            (
                shown(name, 60),
                number(run.average.value),
                _top(run),
                "" if run.average.trivial is None else number(run.average.trivial),
                *(share_text(run, p) for p in _AT),
                _names([worse for better, worse in edges if better == name]),
            )
            for _, name, run in ranked
        ]
        shares = [f"share with p_A ≥ {p:g}" for p in _AT]
        header = ["family", "average radius", "from a tenth of all", "of always one class", *shares, "better than"]
        made.append(scrolling(table(header, rows, caption, numeric=range(1, 7), row_headers=True), caption))
        if graph is not None and graph.contradiction:
            made.append(element("p", shown(_capital(graph.contradiction), 2000)))
    made.append(
        note(
            "The last column is the order of the graphs above: what a family is better than whatever the setting. No "
            "number of draws certifies more than the share with p_A of at least one half: where the average is larger "
            "and this share smaller, easy samples became easier and hard ones were given up."
        )
    )
    return join(made)


def _top(run: Compared) -> str:
    share = run.average.top_tenth
    return "undefined" if share != share else f"{100 * share:.1f} %"


def _names(names: Sequence[str]) -> Child:
    return shown(", ".join(names), 200) if names else "–"


def _notes(found: Families) -> Raw:
    if not found.notes:
        return element("p", "Nothing beyond what is said above.")
    return element("ul", [element("li", shown(each, 2000)) for each in found.notes], class_="assumptions")


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
