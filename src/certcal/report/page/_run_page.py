"""The page of a run: what is certified about a smoothed classifier, at each radius, and what is behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal._html import Child, Raw, definition_list, element, join
from certcal.claims import round_outward
from certcal.report.explained import CALIBRATION_ERROR, CERTIFIED
from certcal.report.page._claims import Claim, at_most, card, how_computed, key_numbers, ledger_table
from certcal.report.page._curves import terms_figure
from certcal.report.page._diagrams import MOST_BARS
from certcal.report.page._frames import MOST_FRAMES, chosen, marked_row
from certcal.report.page._information import TITLE, information_part
from certcal.report.page._intervals_page import MOST_LINES, NAMES, methods_section
from certcal.report.page._pieces import clipped, note, row, scrolling, shown, unbroken
from certcal.report.page._run_radii import KEY, NOTHING, clean_and_worst, over_radii
from certcal.report.page._run_samples import p_a, telling, widths
from certcal.report.page._skeleton import Page, Section, document
from certcal.report.provenance import Provenance
from certcal.report.results import CertifiedResults, Line
from certcal.smoothing import Review, Reviewed
from certcal.smoothing._usable import check_inputs

TELLING = 12
# Bins times positions of the slider: what is drawn stays below a megabyte.
_MOST_STATES, _FEWEST_FRAMES = 1500, 5

_TITLE = "How wrong can the confidences be when somebody perturbs the inputs?"
_NOISE = {"gaussian": "Gaussian, drawn in floating point", "exact": "exact: discretised, for inputs on k/255"}
_CLAIMED = (
    "The worst calibration error on these samples, plus what certificates that fail can add: each failing one moves "
    "two bins by at most one sample each, and how many fail is bounded by the tail of a binomial distribution. When "
    "all certificates hold together (familywise), nothing is added."
)


def run_page(
    results: CertifiedResults,
    review: Review,
    provenance: Provenance | None = None,
    *,
    title: str | None = None,
    inputs: Any = None,
    remarks: Sequence[str] = (),
) -> Page:
    """The page of what a run certifies.

    Parameters
    ----------
    results
        Of ``certcal certify`` of a run.
    review
        What is behind them.
    provenance, title
        As for :func:`certcal.report.page.page`.
    inputs
        The data that the run was drawn from, to show images of the samples that matter most. Other data is refused.
    remarks
        Sentences to stand below the claim.
    """
    if [line.radius for line in results.lines] != [each.radius for each in review.lines]:
        raise InputError("review is of other radii than results; pass the one that came with them")
    images, words = _images(review, inputs)
    one = review.at()
    population = one.summary.population or one.summary.population_all
    most = max(_FEWEST_FRAMES, min(MOST_FRAMES, _MOST_STATES // min(review.bins, MOST_BARS)))
    frames = chosen(len(review.radii), review.headline, most)
    nothing = (
        [] if one.summary.n_certified else ["No sample is certified at this radius, so nothing better is claimed."]
    )
    sections = [
        Section("numbers", "Key numbers", _key_numbers(one)),
        Section("information", TITLE, information_part(one.summary, one.radius)),
        Section("worst", "What the worst case looks like", clean_and_worst(review, frames)),
        *([Section("radii", "Against the radius", over_radii(review, frames))] if len(frames) > 1 else []),
        Section("telling", "The samples that matter most", telling(review.most_telling(TELLING), one, images, words)),
        Section("widths", "How wide the certified intervals are", widths(review)),
        Section("p-a", "How sure the votes are", p_a(review)),
        Section("population", "The population behind the samples", _population(one)),
        *(
            [Section("methods", "Other ways of finding it", methods_section(results.methods))]
            if results.methods
            else []
        ),
        Section("values", "All certified values", _values(results, review, frames)),
        Section("computed", "How each number was computed", _computed(one)),
        Section("ledger", "What may fail, and how often", _ledgers(one)),
        Section("run", "The run", _facts(results, review)),
    ]
    data = results.to_dict()
    return document(
        _TITLE if title is None else title,
        sections,
        data,
        headline=card(
            one.claim,
            lead=f"At radius {one.radius}, the calibration error is",
            meaning=f"{CALIBRATION_ERROR} A radius is the Euclidean length of a change to an input.",
            more=(*nothing, population, *remarks),
        ),
        eyebrow="Certified calibration of a smoothed classifier",
        source=results.source,
        description=results.description,
        provenance=provenance,
        smaller=[_of_some_radii(data, review, frames)],
    )


def _of_some_radii(data: dict[str, Any], review: Review, frames: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """The numbers at the radii of the slider alone."""
    kinds = len(review.kinds)
    kept = [each for place in frames for each in data["results"][place * kinds : (place + 1) * kinds]]
    return (
        f"The numbers in this page are of {len(frames):,} of {len(review.radii):,} radii, to keep it small; certcal "
        "certify --json prints all.",
        data | {"results": kept},
    )


def _images(review: Review, inputs: Any) -> tuple[NDArray[np.float32] | None, str | None]:
    """Checked images, or what to say instead of them."""
    if inputs is None:
        return None, None
    if review.manifest is None:
        raise InputError("inputs cannot be checked, because the review is of counts without a run; leave them out")
    checked = check_inputs(review.manifest, inputs)
    shape = tuple(checked.shape[1:])
    grey = len(shape) == 2 and min(shape) > 1
    coloured = len(shape) == 3 and (shape[0] in (1, 3) or shape[2] in (1, 3))
    if grey or coloured:
        return checked, None
    return None, f"The inputs, of shape {shape}, are no images, so none are shown."


def _key_numbers(one: Reviewed) -> Raw:
    summary, population = one.summary, one.summary.population or one.summary.population_all
    over = "certified samples" if summary.n_certified else "all samples"
    error = summary["calibration_error"].worst or summary["calibration_error"].worst_all
    brier = summary["brier_score"].worst or summary["brier_score"].worst_all
    entries = [
        ("samples", f"{summary.n:,}", f"{summary.n_certified:,} certified"),
        ("certified accuracy", summary.accuracy.text, "at least"),
        ("calibration error, claimed", one.claim.text, f"at most, {over}"),
        *([] if one.certificates.familywise else [("where all certificates hold", error.text, f"at most, {over}")]),
        ("in the population", population.text, at_most(population, over)),
        ("Brier score", brier.text, f"at most, {over}"),
    ]
    return join(
        key_numbers(entries),
        note(
            f"At radius {one.radius}: the largest that was asked for, or half of sigma when none was. It must not be "
            "chosen by its results. Every number is rounded in the safe direction."
        ),
    )


def _population(one: Reviewed) -> Raw:
    summary = one.summary
    bounds, names = [summary.population_all], ["all samples, the uncertified ones free"]
    if summary.population is not None:
        bounds, names = [summary.population, *bounds], ["certified samples", *names]
    return join(
        [element("p", shown(each.sentence, 2000)) for each in bounds],
        row(terms_figure("population-terms", bounds, names)),
    )


def _values(results: CertifiedResults, review: Review, frames: Sequence[int]) -> Raw:
    several = len(review.kinds) > 1
    heads = [
        "radius",
        *(["certificate"] if several else []),
        "certified samples",
        "certified accuracy\u00a0≥",
        "ECE, claimed\u00a0≤",
        "ECE\u00a0≤",
        "ECE, population\u00a0≤",
        "ECE, all\u00a0≤",
        "Brier\u00a0≤",
        "skill\u00a0≥",
        "log loss\u00a0≤",
        "MCE\u00a0≤",
        "KS\u00a0≤",
        "mean width\u00a0≤",
    ]
    start = frames.index(review.headline)
    frame_of = {place: frame for frame, place in enumerate(frames)}
    rows: list[Raw] = []
    for index, line in enumerate(results.lines[:MOST_LINES]):
        place, kind = divmod(index, len(review.kinds))
        cells = _cells(line, several)
        frame = frame_of.get(place)
        marked = len(frames) > 1 and frame is not None and kind == 0
        rows.append(marked_row(KEY, frame, start, cells) if marked and frame is not None else element("tr", cells))
    header = [element("th", head, scope="col", class_=None if head == "certificate" else "number") for head in heads]
    caption = "Certified values; ≥ and ≤ say on which side each holds"
    body = join(element("caption", caption), element("thead", element("tr", header)), element("tbody", rows))
    rest = len(results.lines) - len(rows)
    return join(
        scrolling(element("table", body), caption),
        note(f"{rest:,} further lines are in the JSON only.") if rest else None,
        note(element("bdi", unbroken(clipped(results.notes, 4000)))),
    )


def _cells(line: Line, several: bool) -> list[Raw]:
    summary = line.summary

    def worst(metric: str) -> str:
        found = summary[metric].worst
        return NOTHING if found is None else found.text

    texts = [
        f"{summary.n_certified:,}",
        summary.accuracy.text,
        NOTHING if line.claim is None else line.claim.text,
        worst("calibration_error"),
        NOTHING if summary.population is None else summary.population.text,
        summary["calibration_error"].worst_all.text,
        worst("brier_score"),
        summary.skill.text,
        worst("nll"),
        worst("mce"),
        worst("ks_error"),
        NOTHING if line.width is None else round_outward(line.width, "upper"),
    ]
    return [
        element("th", line.radius or "", scope="row", class_="number"),
        *([element("td", shown(line.group or "", 80))] if several else []),
        *(element("td", text, class_="number") for text in texts),
    ]


def _computed(one: Reviewed) -> Raw:
    claims: list[tuple[str, Claim, Sequence[str]]] = [
        (NAMES["claimed_calibration_error"], one.claim, (_CLAIMED,)),
        *(
            (f"{NAMES[key]}, {samples} samples", claim, (CERTIFIED[key],))
            for key, samples, claim in one.summary.claims()
        ),
    ]
    return join(note(f"The claims at radius {one.radius}; those at others are in the JSON."), how_computed(claims))


def _ledgers(one: Reviewed) -> Raw:
    found = one.certificates
    each = "its share of a probability for all samples together" if found.familywise else "a probability of its own"
    return join(
        element(
            "p",
            f"The certificate of each sample may fail over the noise with {each}. It is spent on the votes for the "
            "predicted class, and on the lower and the upper end of the confidence interval:",
        ),
        ledger_table(found.ledger),
        element("p", "The claim at the top of this page may fail, over the noise, with this probability:"),
        ledger_table(one.claim.ledger),
        element(
            "p", "The bound for the population may fail over the draw of the samples as well; its share is its own."
        ),
    )


def _facts(results: CertifiedResults, review: Review) -> Raw:
    counts, manifest = review.counts, review.manifest
    invalid = int(counts.invalid.sum())
    facts: list[tuple[Child, Child]] = [
        ("Noise", f"{_NOISE[counts.noise]}, sigma {counts.sigma:g}"),
        ("Draws per sample", f"{int(counts.draws.min()):,} count"),
        ("Samples", f"{len(counts):,}"),
        ("Abstained", f"{review.at().certificates.n_abstained:,}"),
        ("Invalid outputs", f"{invalid:,}, counted against the class"),
    ]
    if manifest is None:
        return definition_list(facts, class_="facts")
    m = manifest
    versions = ", ".join(f"{name} {version}" for name, version in m.versions.items())
    facts[1] = ("Draws per sample", f"{m.n0:,} choose the class, {int(counts.draws.min()):,} count")
    if len(counts) < m.samples:
        facts[2] = ("Samples", f"{len(counts):,} of {m.samples:,}: those that were drawn completely")
    facts += [
        ("Seed", f"{m.seed}"),
        ("Model", shown(m.model.description)),
        ("Fingerprint of the model", element("code", m.model.fingerprint)),
        ("Data", shown(m.data.source or "arrays")),
        ("Fingerprint of the inputs", element("code", m.data.inputs)),
        ("Fingerprint of the labels", element("code", m.data.labels)),
        ("Drawn with", shown(versions, 400)),
        ("Begun", shown(m.created)),
        ("Sizes it had", "; ".join(f"{size.samples:,} samples, {size.n:,} draws" for size in m.sizes[-8:])),
    ]
    if not m.rows_independent:
        facts.append(("Batches", f"of {m.batch:,}; the last bits of the model depend on that, so it is kept"))
    return definition_list(facts, class_="facts")
