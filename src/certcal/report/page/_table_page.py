"""The page of a table of predictions: metrics, the reliability diagram, bounds, groups side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from certcal._html import Child, Raw, element, join, table
from certcal._text import counted
from certcal.claims import Estimate, short_text
from certcal.report.explained import CALIBRATION_ERROR, remarks_on
from certcal.report.names import HEADLINES, SHORT, in_sections, label
from certcal.report.numbers import INTERVALS, bins_text, interval, number
from certcal.report.page._bounds_page import bounds_part, lead_of
from certcal.report.page._claims import Claim, card, how_computed, key_numbers
from certcal.report.page._diagrams import bins_table, counts_of, reliability_figure
from certcal.report.page._pieces import beside, clipped, details, note, row, scrolling, shown
from certcal.report.page._skeleton import Page, Section, document
from certcal.report.provenance import Provenance
from certcal.report.results import MeasuredResults, Part, for_json

MOST_DRAWN = 24
MOST_LISTED = 200
_TITLE = "How calibrated are the confidences?"
_MOST_BESIDE = 25
# A bin takes a hundred characters of JSON.
_MOST_BINS_KEPT = 30_000
_NUMBERS = "The numbers of this figure"
_KEY = ("accuracy", "mean_confidence", "ece", "smooth_ece", "top_label_brier_score", "auroc")


def table_page(results: MeasuredResults, provenance: Provenance | None = None, *, title: str | None = None) -> Page:
    """The page of what was measured.

    Parameters
    ----------
    results
        Of ``certcal measure``, or :meth:`certcal.report.results.MeasuredResults.of`.
    provenance, title
        As for :func:`certcal.report.page.page`.
    """
    claim = _headline(results)
    sections = [
        Section("numbers", "Key numbers", _key_numbers(results.whole)),
        Section("diagram", "Confidence against accuracy", _diagram(results.whole)),
        Section("metrics", "All metrics", _metrics(results.whole)),
        Section("computed", "How each number was computed", _computed(results)),
    ]
    if results.parts:
        sections.insert(2, Section("groups", "Groups", _groups(results)))
    if results.bounds:
        named = [(bound.name, bound) for bound in results.bounds]
        sections.insert(2, Section("bounds", "Bounds for the population", bounds_part(named)))
    smaller = _kept(results)
    left_out, data = next(smaller)
    return document(
        _TITLE if title is None else title,
        sections,
        data,
        headline=None if claim is None else card(claim, lead=_lead(claim), meaning=_meaning(claim)),
        source=results.source,
        description=results.description,
        provenance=provenance,
        left_out=left_out,
        smaller=smaller,
    )


def _headline(results: MeasuredResults) -> Claim | None:
    """The first bound when there are bounds, otherwise the calibration error of the diagram's bins."""
    if results.bounds:
        return results.bounds[0]
    return _row_of(results.whole, "ece") or next(iter(results.whole.rows), None)


def _row_of(part: Part, name: str) -> Estimate | None:
    """The row of that name, with the bins of the diagram if there are several."""
    rows = [each for each in part.rows if each.name == name]
    bins = len(part.reliability.table.count)
    return next((each for each in rows if each.settings.get("bins") == bins), next(iter(rows), None))


def _lead(claim: Claim) -> str:
    if isinstance(claim, Estimate):
        return f"{label(claim.name)} on these samples is"
    return lead_of(claim)


def _meaning(claim: Claim) -> str:
    return " ".join(remarks_on(claim.name)) if isinstance(claim, Estimate) else CALIBRATION_ERROR


def _key_numbers(whole: Part) -> Raw:
    entries: list[tuple[str, str, str]] = [("samples", f"{whole.n:,}", "")]
    for name in _KEY:
        found = _row_of(whole, name)
        if found is not None:
            bins = bins_text(found)
            remark = "\n".join(filter(None, (interval(found), f"{bins} bins" if bins else "")))
            undefined = math.isnan(found.value)  # as AUROC is where all are right; the word is too long for large type
            text, remark = ("–", "undefined") if undefined else (number(found.value), remark)
            entries.append((label(name).split(" (")[0], text, remark))
    spread = next((each.interval for each in whole.rows if each.interval is not None), None)
    said = (
        f"Estimates from these samples. Ranges are bootstrap intervals of level {short_text(spread.level, 'lower')}: "
        "how much a number varies under resampling, not a guarantee."
        if spread is not None
        else "Estimates from these samples; they guarantee nothing about others."
    )
    return join(key_numbers(entries), note(said))


def _diagram(whole: Part) -> Raw:
    prepared = whole.reliability
    words = (
        "In a calibrated model every bar ends on the diagonal. Hatching shows how far the accuracy of a bin is from "
        "its mean confidence; below stand the samples that each bin holds."
    )
    if prepared.lower is not None:
        level = short_text(prepared.level, "lower")
        words += (
            f" Upright lines are bootstrap bands of level {level} around the accuracy: how it varies under resampling."
        )
    picture = reliability_figure("reliability", "Reliability diagram", prepared, caption=words)
    numbers = bins_table(prepared.table, lower=prepared.lower, upper=prepared.upper, caption="Bins of the diagram")
    return beside(picture, numbers if len(prepared.table.count) <= _MOST_BESIDE else details(_NUMBERS, numbers))


def _metrics(whole: Part) -> Raw:
    spreads = [each.interval for each in whole.rows if each.interval is not None]
    header = ["metric", "bins", "value"]
    if spreads:
        header.append(f"{short_text(spreads[0].level, 'lower')} bootstrap interval")
    lines: list[Raw] = []
    for heading, members in in_sections(whole.rows):
        lines.append(element("tr", element("th", heading, colspan=len(header), scope="colgroup")))
        for each in members:
            lines.append(
                element(
                    "tr",
                    element("th", label(each.name), scope="row"),
                    element("td", bins_text(each), class_="number"),
                    element("td", number(each.value), class_="number"),
                    element("td", interval(each), class_="number") if spreads else None,
                )
            )
    heads = [element("th", text, scope="col", class_="number" if place else None) for place, text in enumerate(header)]
    caption = f"Estimates on {counted(whole.n, 'sample')}"
    body = join(element("caption", caption), element("thead", element("tr", heads)), element("tbody", lines))
    return scrolling(element("table", body), caption)


def _groups(results: MeasuredResults) -> Raw:
    parts = results.parts
    drawn, listed = parts[:MOST_DRAWN], parts[:MOST_LISTED]
    shared = counts_of([part.reliability.table for part in drawn])
    figures = [
        reliability_figure(
            f"group-{place}",
            f"Reliability diagram of {clipped(part.name, 60)}",
            part.reliability,
            heading=shown(part.name, 80),
            small=True,
            count_axis=shared,
        )
        for place, part in enumerate(drawn)
    ]
    rest, undrawn = len(parts) - len(listed), len(parts) - len(drawn)
    return join(
        element("p", "Groups are the values of ", shown(results.by or "group"), ". Marks as in the diagram above."),
        _comparison(results.whole, listed, results.by or "group"),
        note(f"{rest:,} further groups are not listed; the JSON has them.") if rest else None,
        row(*figures, small=True),
        note(f"Diagrams of the first {len(drawn)} of {len(parts):,} groups.") if undrawn else None,
    )


def _comparison(whole: Part, parts: Sequence[Part], by: str) -> Raw:
    """One line per group with the metrics that tell most."""
    found = [_row_of(whole, name) for name in HEADLINES]
    telling = [each for each in found if each is not None][:8] or list(whole.rows[:8])
    header: list[Child] = [shown(by, 60), "samples"]
    header += [f"{SHORT.get(each.name, label(each.name))} {bins_text(each)}".strip() for each in telling]
    rows: list[list[Child]] = []
    for part in (whole, *parts):
        values = {_key(each): number(each.value) for each in part.rows}
        name: Child = element("strong", "all samples") if part is whole else shown(part.name, 80)
        rows.append([name, f"{part.n:,}", *(values.get(_key(each), "") for each in telling)])
    caption = "Estimates per group"
    return scrolling(table(header, rows, caption, numeric=range(1, len(header)), row_headers=True), caption)


def _key(each: Estimate) -> tuple[str, str]:
    return each.name, repr(sorted(each.settings.items()))


def _computed(results: MeasuredResults) -> Raw:
    claims: list[tuple[str, Claim, Sequence[str]]] = [(bound.name, bound, ()) for bound in results.bounds]
    for _, members in in_sections(results.whole.rows):
        for each in members:
            bins = bins_text(each)
            claims.append((label(each.name) + (f", {bins} bins" if bins else ""), each, remarks_on(each.name)))
    return join(note(_conventions(results.conventions)), how_computed(claims))


def _conventions(conventions: Mapping[str, Any]) -> str:
    """How all numbers were computed, in sentences."""
    said = [f"Bins are {conventions['bins_are']}."] if "bins_are" in conventions else []
    if "level" in conventions:
        facts = [
            f"level {short_text(conventions['level'], 'lower')}",
            f"{conventions.get('method', 'percentile')} method",
        ]
        facts += [f"{conventions['bootstrap']:,} replicates"] if "bootstrap" in conventions else []
        facts += [f"seed {conventions['seed']}"] if "seed" in conventions else []
        said.append(f"Intervals come from the bootstrap ({', '.join(facts)}). {INTERVALS}")
    if conventions.get("without_interval"):
        said.append(f"Without an interval: {', '.join(map(label, conventions['without_interval']))}.")
    if conventions.get("streamed"):
        said.append("The table was read in pieces, without the metrics that need all samples at once.")
    return " ".join(said)


def _kept(results: MeasuredResults) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What the page keeps for machines: everything or, when that is too much, less and less, and what is left out."""
    bins = [len(part.reliability.table.count) for part in (results.whole, *results.parts)]
    if sum(bins) <= _MOST_BINS_KEPT:
        yield "", results.to_dict()
    whole = replace(results, parts=()).to_dict()
    groups = [
        {"group": part.name, "n": part.n, "measurements": [each.to_dict() for each in part.rows]}
        for part in results.parts
    ]
    said = "are too many to be kept in this page; the JSON inside it leaves them out."
    yield f"The bins of the groups {said}", {**whole, "groups": for_json(groups)}
    yield f"Bins and groups {said}", {key: value for key, value in whole.items() if key != "reliability"}
