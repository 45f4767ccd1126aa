"""The page of a certified recalibration: what the map does to samples that it was not fitted to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from certcal._html import Child, Raw, definition_list, element, join, table
from certcal._text import counted
from certcal.calibrators import JudgedAt, Recalibration
from certcal.calibrators._verdict import verdict
from certcal.claims import Certificate, short_text
from certcal.report.explained import CALIBRATION_ERROR, CERTIFIED, remarks_on
from certcal.report.numbers import number
from certcal.report.page._claims import Claim, card, how_computed, key_numbers
from certcal.report.page._curves import terms_figure
from certcal.report.page._diagrams import MOST_BARS, MOST_SIGNS, counts_of, reliability_legend, reliability_states
from certcal.report.page._frames import chosen, slider
from certcal.report.page._pieces import clipped, figure, note, row, scrolling, shown, unbroken
from certcal.report.page._recalibration_drawn import front_figure, map_figure, name_of, within
from certcal.report.page._recalibration_maps import maps_part
from certcal.report.page._skeleton import Page, Section, document
from certcal.report.provenance import Provenance
from certcal.report.results import RecalibratedResults
from certcal.report.views.certification import NAMES
from certcal.worst_case import WorstCase

_KEY = "radius"
_TITLE = "Which confidences survive an attack after recalibration?"
_MAPPED = (
    "A monotone map takes every certified interval to an interval, so what is certified about the model before the map "
    "is certified about it after the map as well."
)
_GAIN = (
    "For each certified sample: the squared error of one constant confidence minus the worst squared error inside the "
    "mapped interval. The bound on its mean holds for the population, because map and constant come from other samples."
)
_PRICE = {"brier_score": "clean Brier score", "ece": "clean ECE", "auroc": "clean AUROC"}
_CLEAN = {"brier_score": "top_label_brier_score", "ece": "ece", "auroc": "auroc"}


def recalibration_page(
    results: RecalibratedResults, provenance: Provenance | None = None, *, title: str | None = None
) -> Page:
    """The page of what certified recalibration does.

    Parameters
    ----------
    results
        Of ``certcal recalibrate fit`` of a run or of a table of intervals.
    provenance, title
        As for :func:`certcal.report.page.page`.
    """
    found = results.found
    sections = [
        Section("numbers", "Before and after", _key_numbers(found)),
        Section("map", "The map, and what it costs", row(map_figure(found), front_figure(found))),
        Section("worst", "What the worst case looks like", _diagrams(found)),
        Section("maps", "All maps", maps_part(found)),
        Section("population", "The population behind the samples", _population(found)),
        Section("computed", "How each number was computed", _computed(found)),
        Section("samples", "The samples", _facts(results)),
    ]
    return document(
        _TITLE if title is None else title,
        sections,
        results.to_dict(),
        headline=_headline(found),
        eyebrow="Certified recalibration",
        source=results.source,
        description=results.description,
        provenance=provenance,
        smaller=_smaller(results),
    )


def _smaller(results: RecalibratedResults) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What the page keeps for machines when the signs of all bins, or all maps, are too many."""

    def without_signs(value: Any) -> Any:
        if isinstance(value, dict):
            entries = cast("dict[str, Any]", value).items()
            return {key: without_signs(entry) for key, entry in entries if key != "signs"}
        return [without_signs(entry) for entry in cast("list[Any]", value)] if isinstance(value, list) else value

    lean = without_signs(results.to_dict())
    said = "too many to be kept in this page; the JSON inside it leaves them out."
    yield f"The signs of the bins are {said}", lean
    asked = [line for line in lean["lines"] if line["tradeoff"] in (None, results.found.tradeoff)]
    yield f"The signs of the bins and maps of other trade-offs are {said}", {**lean, "lines": asked}


def _error(at: JudgedAt) -> WorstCase:
    ranges = at.summary["calibration_error"]
    return ranges.worst or ranges.worst_all


def _brier(at: JudgedAt) -> WorstCase:
    ranges = at.summary["brier_score"]
    return ranges.worst or ranges.worst_all


def _ends(found: Recalibration) -> tuple[JudgedAt, JudgedAt]:
    """At the radius of the headline, the largest: as it is, and after the map."""
    return found.identity.at[-1], found.chosen.at[-1]


def _over(at: JudgedAt) -> str:
    kept = at.summary.n_certified
    return counted(kept, "certified held-out sample") if kept else "all held-out samples: none is certified"


def _headline(found: Recalibration) -> Raw:
    before, after = _ends(found)
    claim = _error(after) if after.claim is None else after.claim
    rows: list[list[Child]] = [
        ["Brier score", _brier(before).text, element("strong", _brier(after).text)],
        ["calibration error", _error(before).text, element("strong", _error(after).text)],
    ]
    if before.claim is not None and after.claim is not None:
        claimed = "the same, with certificates that fail"
        rows.append([claimed, before.claim.text, element("strong", after.claim.text)])
    caption = f"The worst case {within(after.radius)}, over {_over(after)}"
    heads = ["at most", "as it is", "recalibrated"]
    return card(
        claim,
        lead=f"{f'At radius {after.radius}, re' if after.radius else 'Re'}calibrated, the calibration error is",
        meaning=CALIBRATION_ERROR,
        numbers=scrolling(table(heads, rows, caption, numeric=(1, 2), row_headers=True), caption),
        more=(verdict(found),),
    )


def _key_numbers(found: Recalibration) -> Raw:
    before, after = _ends(found)
    clean, mapped = found.identity.clean, found.chosen.clean

    def estimate(key: str) -> tuple[str, str]:
        return number(mapped[key].value), f"estimate\nas it is: {number(clean[key].value)}"

    entries = [
        ("held-out samples", f"{found.n_held_out:,}", f"fitted to {counted(found.n_fit, 'other')}"),
        ("certified accuracy", after.summary.accuracy.text, "at least\nno map changes it"),
        ("certified Brier score", _brier(after).text, f"at most\nas it is: {_brier(before).text}"),
        ("certified skill", after.summary.skill.text, _least(after.summary.skill.value, before.summary.skill.text)),
        *((name, *estimate(key)) for key, name in _PRICE.items() if mapped),
    ]
    where = f"Certified numbers are {within(after.radius)}"
    more = ", the largest of those asked for" if len(found.radii) > 1 else ""
    return join(
        key_numbers(entries),
        note(f"{where}{more}, and rounded in the safe direction. No sample of the fit is among those judged."),
    )


def _least(value: float, before: str) -> str:
    return f"{'' if math.isnan(value) else 'at least'}\nas it is: {before}".strip()


def _diagrams(found: Recalibration) -> Raw:
    frames = chosen(len(found.radii), len(found.radii) - 1)
    start = len(frames) - 1
    pairs = [(found.identity.at[place], found.chosen.at[place]) for place in frames]
    if not any(after.summary.n_certified for _, after in pairs):
        return element("p", "No held-out sample is certified, so there is no worst case to draw.")
    names = [f"radius {after.radius}" if after.radius else "" for _, after in pairs]
    texts = [_said(before, after) for before, after in pairs]
    bins = [[_witness(at) for at in pair] for pair in pairs]
    axis = counts_of([each for pair in bins for each, _ in pair])
    many = int(found.settings["bins"]) > MOST_BARS
    drawn = " Neighbouring bins are drawn as one." if many else ""
    figures: list[Raw] = []
    for side, (key, heading, words) in enumerate(
        (
            ("before", "As it is", "confidences inside their certified intervals"),
            ("after", f"After {name_of(found.chosen)}", "confidences inside the mapped intervals"),
        )
    ):
        picture, numbers = reliability_states(
            f"{key}-diagram",
            f"Reliability diagram of the worst case {'before' if side == 0 else 'after'} the map",
            [pair[side][0] for pair in bins],
            names,
            chosen_by=_KEY,
            start=start,
            signs=[pair[side][1] for pair in bins],
            count_axis=axis,
        )
        caption = f"The held-out samples, with {words} that reach the worst calibration error.{drawn}"
        keys = reliability_legend(signs=int(found.settings["bins"]) <= MOST_SIGNS, many=many)
        figures.append(figure(picture, caption, heading=heading, legend=keys, numbers=numbers))
    return join(
        slider(_KEY, "Radius", names, start, texts=texts) if len(frames) > 1 else element("p", texts[start]),
        note(f"The slider has {len(frames):,} of {len(found.radii):,} radii.")
        if len(frames) < len(found.radii)
        else None,
        row(*figures),
    )


def _witness(at: JudgedAt) -> tuple[Any, Any]:
    worst = at.summary["calibration_error"].worst
    return (None, None) if worst is None or worst.attain is None else (worst.bins, worst.signs)


def _said(before: JudgedAt, after: JudgedAt) -> str:
    if not after.summary.n_certified:
        return f"{within(after.radius)}: no held-out sample is certified, so there is nothing to draw"
    return (
        f"{within(after.radius)}: calibration error at most {_error(before).text} as it is, at most "
        f"{_error(after).text} after the map; {after.summary.n_certified:,} of {after.summary.n:,} held-out samples "
        "certified"
    )


def _population(found: Recalibration) -> Raw:
    before, after = _ends(found)
    pairs = [(at.summary.population, at.summary.population_all) for at in (before, after)]
    bounds = [certified or everything for certified, everything in pairs]
    sentences = [bounds[1].sentence, *([] if after.gain is None else [after.gain.sentence])]
    return join(
        [element("p", shown(each, 2000)) for each in sentences],
        row(terms_figure("population-terms", bounds, ["as it is", f"after {name_of(found.chosen)}"])),
    )


def _computed(found: Recalibration) -> Raw:
    _, after = _ends(found)
    claims: list[tuple[str, Claim, Sequence[str]]] = []
    for key, estimate in found.chosen.clean.items():
        claims.append((f"clean {estimate.name}", estimate, remarks_on(_CLEAN[key])))
    for key, samples, claim in after.summary.claims():
        claims.append((f"{NAMES[key]}, {samples} samples", claim, (CERTIFIED[key],)))
    if isinstance(after.claim, Certificate):
        claims.append((NAMES["claimed_calibration_error"], after.claim, ()))
    if after.gain is not None:
        claims.append(("gain over one constant confidence", after.gain, (_GAIN,)))
    return join(
        element("p", _MAPPED),
        note(f"The claims after {name_of(found.chosen)}, {within(after.radius)}; all others are in the JSON."),
        how_computed(claims),
    )


def _facts(results: RecalibratedResults) -> Raw:
    found = results.found
    settings = found.settings
    radii = [
        f"{radius} (weight {weight:.3g})" if len(found.radii) > 1 else radius or "not given"
        for radius, weight in zip(found.radii, found.radius_weight, strict=True)
    ]
    closed = {"left": "closed on the left", "right": "closed on the right"}[str(settings["closed"])]
    facts: list[tuple[Child, Child]] = [
        ("Fitted to", f"{counted(found.n_fit, 'sample')}, a share of {float(settings['fraction']):g}"),
        ("Judged on", f"{counted(found.n_held_out, 'other sample')}"),
        ("Split", f"drawn by position with seed {settings['seed']}, whatever the samples hold"),
        ("Radii", ", ".join(radii)),
        ("Map", f"{found.method}, trade-off λ = {found.tradeoff:g} between clean (0) and certified (1) Brier score"),
        ("Bins", f"{settings['bins']:,} of equal width, {closed}"),
        ("Delta", short_text(float(settings["delta"]), "upper")),
    ]
    if found.before.fingerprint is not None:
        facts.append(("Fingerprint of the samples", element("code", found.before.fingerprint)))
    said = [*(each for each in found.notes if each not in results.notes), *([results.notes] if results.notes else [])]
    return join(
        definition_list(facts, class_="facts"),
        [note(element("bdi", unbroken(clipped(each, 4000)))) for each in said],
    )
