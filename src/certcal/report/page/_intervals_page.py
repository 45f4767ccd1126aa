"""The page of a table of intervals: what they certify, at each radius and for each group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from certcal._html import Child, Raw, element, join, table
from certcal.binning import BinTable
from certcal.claims import Bound
from certcal.report.explained import CALIBRATION_ERROR, CERTIFIED
from certcal.report.page._claims import Claim, at_most, card, how_computed, key_numbers
from certcal.report.page._curves import BETWEEN, curves, terms_figure
from certcal.report.page._diagrams import reliability_legend, reliability_states
from certcal.report.page._frames import chosen, marked_row, slider
from certcal.report.page._information import TITLE, information_part
from certcal.report.page._pieces import beside, clipped, figure, note, row, scrolling, shown, unbroken
from certcal.report.page._skeleton import Page, Section, document
from certcal.report.provenance import Provenance
from certcal.report.results import CertifiedResults, Line, Method
from certcal.worst_case import CertifiedSummary

MOST_LINES = 400
_KEY = "radius"
NAMES = {
    "certified_accuracy": "certified accuracy",
    "certified_skill": "certified skill",
    "certified_best_skill": "certified skill of the best monotone map",
    "certified_miscalibration": "certified miscalibration",
    "certified_resolution": "certified resolution",
    "certified_uncertainty": "uncertainty",
    "brier_score": "Brier score",
    "nll": "log loss",
    "calibration_error": "calibration error (ECE)",
    "mce": "largest gap of a bin (MCE)",
    "ks_error": "Kolmogorov–Smirnov error",
    "population_bound": "calibration error of the population",
    "claimed_calibration_error": "calibration error, claimed",
}
_NOTHING = "–"


def intervals_page(
    results: CertifiedResults, provenance: Provenance | None = None, *, title: str | None = None
) -> Page:
    """The page of what intervals certify.

    Parameters
    ----------
    results
        Of ``certcal certify`` of a table.
    provenance, title
        As for :func:`certcal.report.page.page`.
    """
    wholes = [line for line in results.lines if line.group is None]
    last = wholes[-1]
    worst = last.summary["calibration_error"]
    claim = worst.worst or worst.worst_all
    population = last.summary.population or last.summary.population_all
    at = "" if last.radius is None else f"At radius {last.radius}, the"
    frames = chosen(len(wholes), len(wholes) - 1)
    sections = [
        Section("numbers", "Key numbers", _key_numbers(last)),
        Section("information", TITLE, information_part(last.summary, last.radius)),
        *([Section("radii", "Against the radius", _over_radii(wholes, frames))] if len(wholes) > 1 else []),
        Section("worst", "What the worst case looks like", _worst(wholes, frames)),
        Section("population", "The population behind the samples", _population(last, population)),
        *(
            [Section("methods", "Other ways of finding it", methods_section(results.methods))]
            if results.methods
            else []
        ),
        Section("values", "All certified values", _values(results, wholes, frames)),
        Section("computed", "How each number was computed", _computed(last)),
    ]
    return document(
        "How wrong can the confidences be inside their intervals?" if title is None else title,
        sections,
        results.to_dict(),
        headline=card(
            claim,
            lead=f"{at or 'The'} calibration error is",
            meaning=CALIBRATION_ERROR,
            more=(population,),
        ),
        eyebrow="Certified calibration",
        source=results.source,
        description=results.description,
        provenance=provenance,
        smaller=_smaller(results),
    )


def _smaller(results: CertifiedResults) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What the page keeps for machines when the signs of all bins at all radii are too many."""

    def without_signs(value: Any) -> Any:
        if isinstance(value, dict):
            entries = cast("dict[str, Any]", value).items()
            return {key: without_signs(entry) for key, entry in entries if key != "signs"}
        return [without_signs(entry) for entry in cast("list[Any]", value)] if isinstance(value, list) else value

    said = "are too many to be kept in this page; the JSON inside it leaves them out."
    lean = without_signs(results.to_dict())
    yield f"The signs of the bins {said}", lean
    wholes = [entry for entry in lean["results"] if entry["group"] is None]
    yield f"The signs of the bins and the groups {said}", {**lean, "results": wholes}


def _key_numbers(line: Line) -> Raw:
    summary = line.summary
    error, brier = summary["calibration_error"], summary["brier_score"]
    population = summary.population or summary.population_all
    entries = [
        ("samples", f"{summary.n:,}", f"{summary.n_certified:,} certified"),
        ("certified accuracy", summary.accuracy.text, "at least"),
        ("calibration error", (error.worst or error.worst_all).text, f"at most, {_over(error.worst is not None)}"),
        ("in the population", population.text, at_most(population, _over(summary.population is not None))),
        ("Brier score", (brier.worst or brier.worst_all).text, f"at most, {_over(brier.worst is not None)}"),
        ("certified skill", summary.skill.text, "" if math.isnan(summary.skill.value) else "at least"),
    ]
    where = "" if line.radius is None else f"At radius {line.radius}. "
    return join(key_numbers(entries), note(f"{where}Every number is rounded in the safe direction."))


def _over(certified: bool) -> str:
    return "certified samples" if certified else "all samples"


def _over_radii(wholes: Sequence[Line], frames: Sequence[int]) -> Raw:
    radii = [float(line.radius or 0) for line in wholes]
    start = len(frames) - 1

    def values(pick: Callable[[CertifiedSummary], Any]) -> list[float]:
        return [math.nan if (found := pick(line.summary)) is None else float(found.value) for line in wholes]

    mark = (_KEY, frames, start)
    accuracy, keys = curves(
        "certified-accuracy",
        "Certified accuracy against the radius",
        radii,
        {"certified accuracy, at least": values(lambda each: each.accuracy)},
        x_label="radius",
        y_label="certified accuracy",
        description=_ends("Certified accuracy", wholes, lambda each: each.accuracy),
        most=1.0,
        mark=mark,
    )
    errors, error_keys = curves(
        "certified-errors",
        "Calibration error against the radius",
        radii,
        {
            "ECE, at most": values(lambda each: each["calibration_error"].worst),
            "ECE in the population, at most": values(lambda each: each.population),
            "Brier score, at most": values(lambda each: each["brier_score"].worst),
        },
        x_label="radius",
        y_label="value",
        description=_ends("The worst calibration error", wholes, lambda each: each["calibration_error"].worst),
        mark=mark,
    )
    said = "The dotted upright line is the radius of the diagram below. The table of all values follows further down. "
    said += BETWEEN
    share = f"The share of all samples that are certified and correct. {BETWEEN}"
    return row(
        figure(accuracy, share, legend=keys, heading="Accuracy"),
        figure(errors, f"The worst cases over the certified samples. {said}", legend=error_keys, heading="Errors"),
    )


def _ends(name: str, wholes: Sequence[Line], pick: Callable[[CertifiedSummary], Any]) -> str:
    first, last = (pick(line.summary) for line in (wholes[0], wholes[-1]))
    texts = ["undefined" if each is None else each.text for each in (first, last)]
    return f"{name} is {texts[0]} at radius {wholes[0].radius} and {texts[1]} at radius {wholes[-1].radius}."


def _worst(wholes: Sequence[Line], frames: Sequence[int]) -> Raw:
    found = [_witness(wholes[place]) for place in frames]
    if not any(bins is not None for bins, _ in found):
        return element("p", "No sample is certified, so there is no worst case to draw.")
    start = len(frames) - 1
    names: list[str] = []
    texts: list[str] = []
    for place in frames:
        line = wholes[place]
        worst = line.summary["calibration_error"].worst
        names.append("" if line.radius is None else f"radius {line.radius}")
        value = "the calibration error is undefined" if worst is None else f"calibration error at most {worst.text}"
        certified = f"{line.summary.n_certified:,} of {line.summary.n:,} samples are certified"
        texts.append(f"{names[-1]}: {value}; {certified}")
    picture, numbers = reliability_states(
        "worst-diagram",
        "Reliability diagram of the worst case",
        [bins for bins, _ in found],
        names,
        chosen_by=_KEY,
        start=start,
        signs=[signs for _, signs in found],
    )
    caption = (
        "One choice of confidences inside the intervals that reaches the worst calibration error: each sample goes "
        "where it opens the gap of a bin most. No other choice is worse."
    )
    return join(
        slider(_KEY, "Radius", names, start, texts=texts) if len(frames) > 1 else None,
        note(f"The diagram has {len(frames)} of {len(wholes)} radii; the table of all values has all.")
        if len(frames) < len(wholes)
        else None,
        beside(figure(picture, caption, legend=reliability_legend(signs=True)), numbers),
    )


def _witness(line: Line) -> tuple[BinTable | None, Any]:
    worst = line.summary["calibration_error"].worst
    if worst is None or worst.attain is None:
        return None, None
    return worst.bins, worst.signs


def _population(line: Line, bound: Bound) -> Raw:
    bounds, names = [bound], ["certified samples" if line.summary.population is not None else "all samples"]
    if line.summary.population is not None and line.summary.n_certified < line.summary.n:
        bounds.append(line.summary.population_all)
        names.append("all samples, the uncertified ones free")
    sentences = [element("p", shown(each.sentence, 2000)) for each in bounds]
    return beside(terms_figure("population-terms", bounds, names), sentences)


def _values(results: CertifiedResults, wholes: Sequence[Line], frames: Sequence[int]) -> Raw:
    has_radius = any(line.radius is not None for line in results.lines)
    grouped = any(line.group is not None for line in results.lines)
    partly = any(line.summary.n_certified < line.summary.n for line in results.lines)
    heads = [
        *(["radius"] if has_radius else []),
        *([shown(results.by or "group", 60)] if grouped else []),
        "samples",
        *(["certified"] if partly else []),
        "certified accuracy\u00a0≥",
        "Brier\u00a0≤",
        "skill\u00a0≥",
        "log loss\u00a0≤",
        "ECE\u00a0≤",
        *(["ECE, all\u00a0≤"] if partly else []),
        "MCE\u00a0≤",
        "KS\u00a0≤",
        "ECE, population\u00a0≤",
    ]
    place_of = {id(wholes[place]): frame for frame, place in enumerate(frames)}
    start = len(frames) - 1
    lines: list[Raw] = []
    for line in results.lines[:MOST_LINES]:
        cells = _cells(line, has_radius, grouped, partly)
        frame = place_of.get(id(line))
        several = frame is not None and len(frames) > 1
        lines.append(marked_row(_KEY, frame, start, cells) if several and frame is not None else element("tr", cells))
    shown_first = 1 if has_radius != grouped else 2 if grouped else 0
    header = [
        element("th", head, scope="col", class_="number" if place >= shown_first or head == "radius" else None)
        for place, head in enumerate(heads)
    ]
    caption = "Certified values; ≥ and ≤ say on which side each holds"
    body = join(element("caption", caption), element("thead", element("tr", header)), element("tbody", lines))
    rest = len(results.lines) - len(lines)
    return join(
        scrolling(element("table", body), caption),
        note(f"{rest:,} further lines are not listed; the JSON has them.") if rest else None,
        note(element("bdi", unbroken(clipped(results.notes, 4000)))),
    )


def _cells(line: Line, has_radius: bool, grouped: bool, partly: bool) -> list[Raw]:
    summary = line.summary

    def worst(metric: str) -> str:
        found = summary[metric].worst
        return _NOTHING if found is None else found.text

    texts = [
        f"{summary.n:,}",
        *([f"{summary.n_certified:,}"] if partly else []),
        summary.accuracy.text,
        worst("brier_score"),
        summary.skill.text,
        worst("nll"),
        worst("calibration_error"),
        *([summary["calibration_error"].worst_all.text] if partly else []),
        worst("mce"),
        worst("ks_error"),
        _NOTHING if summary.population is None else summary.population.text,
    ]
    group: Child = element("strong", "all samples") if line.group is None else shown(line.group, 80)
    return [
        *([element("th", line.radius or "", scope="row", class_="number")] if has_radius else []),
        *([element("td" if has_radius else "th", group, scope=None if has_radius else "row")] if grouped else []),
        *(element("td", text, class_="number") for text in texts),
    ]


def methods_section(methods: Sequence[Method]) -> Raw:
    """The exact worst case beside what other methods reach."""
    rows = [
        (method.radius or "", method.name, "at most" if method.is_exact else "at least", method.text)
        for method in methods
    ]
    caption = "The worst calibration error by each method"
    return join(
        element("p", "The exact worst case, and what published methods reach: none of them can be above it."),
        scrolling(table(["radius", "method", "side", "value"], rows, caption, numeric=(0, 3)), caption),
    )


def _computed(line: Line) -> Raw:
    claims: list[tuple[str, Claim, Sequence[str]]] = []
    partly = line.summary.n_certified < line.summary.n
    for key, samples, claim in line.summary.claims():
        if not partly and any(name == NAMES[key] for name, _, _ in claims):
            continue  # all samples are certified, so both are the same claim
        name = NAMES[key] + (f", {samples} samples" if partly else "")
        claims.append((name, claim, (CERTIFIED[key],)))
    if line.claim is not None:
        claims.append((NAMES["claimed_calibration_error"], line.claim, ()))
    where = "" if line.radius is None else f"The claims at radius {line.radius}; those at others are in the JSON."
    return join(note(where) if where else None, how_computed(claims))
