"""What a run or a table of intervals certifies: the words and the layout of a Certification."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from certcal._base.rounding import claim_text, share_text, sure_text, times_text
from certcal._base.text import capital
from certcal.claims import in_full, round_outward
from certcal.report.charts import Axis, Chart, Cursor, Line, Panel, TextBars, Words, curves, falling_steps
from certcal.report.document import (
    NOTHING,
    Block,
    Cell,
    Choice,
    Claim,
    Column,
    Details,
    Figures,
    KeyNumber,
    KeyNumbers,
    Listing,
    Report,
    Section,
    Table,
    Text,
    flat,
    frames_of,
    left_out,
    relation_of,
    without,
)
from certcal.report.names import CALIBRATION_ERROR, calibration_error
from certcal.report.numbers import minus, number
from certcal.report.reliability import MOST_BARS, SCORE_SIGNS, SIGNS, reliability_chart, shared_counts
from certcal.report.views.bounds import terms_charts
from certcal.report.views.certified_claims import (
    KEY,
    at_radius,
    claims_table,
    computed_table,
    methods_table,
    values_by_radius,
)
from certcal.report.views.certified_runs import (
    BETWEEN,
    distribution_of_p_a,
    failure_probabilities,
    influential,
    interval_widths,
    run_facts,
    run_notes,
)
from certcal.report.views.groups import cuts
from certcal.report.views.worst_case import by_radius
from certcal.smoothing.robustness import AccuracySteps

if TYPE_CHECKING:
    from certcal.verbs.certification import Certification, CertifiedAt

# Bins times positions of the slider: what is drawn stays below a megabyte.
_MOST_STATES, _MOST_FRAMES, _FEWEST_FRAMES = 1500, 41, 5
_MOST_GROUPS = 8

_EDGES = {
    "equal-mass": "The edges are quantiles of the confidences without an attack and stay where they are; since they "
    "were read off these samples, population bounds are for any edges."
}
_SCORES_INSIDE = "Exact where every score lies inside its interval."
# Of a run every sample's radius is known; of a table only which samples are certified at each of its radii.
_ACCURACY = {
    True: "The share of all samples whose prediction is certified and correct: exact at every radius, since the radius "
    "of every sample is known.",
    False: "The share of all samples whose prediction is certified and correct; between the marked radii at least that "
    "of the next larger one, which implies the smaller ones.",
}
# A name has the same look in every chart.
_LOOKS = {
    "where every certificate holds": 1,
    "bound for the population": 2,
    "without a perturbation": 3,
}


def view(found: Certification, *, images: Any = None, remarks: Sequence[str] = ()) -> Report:
    """The report of what is certified."""
    one, drawn = found.at(), found.counts is not None
    most = max(_FEWEST_FRAMES, min(_MOST_FRAMES, _MOST_STATES // min(found.settings.bins, MOST_BARS)))
    frames = frames_of(len(found.radii), found.place, most)
    several, shown = len(found.lines) > 1, 1 if found.binary else 2
    curves = _curves(found, frames) if len(frames) > 1 else []
    picture = _picture(found, one, curves)
    information, methods = one.summary.information, [line for line in found.lines if line.methods]
    nothing = "No sample is certified at this radius, so nothing better is claimed."
    return Report(
        "How wrong can the confidences be when somebody perturbs the inputs?"
        if drawn
        else f"How wrong can the {information.of} be inside their intervals?",
        flat(
            [
                _headline_of_certification(found, one),
                [Text(each) for each in found.top()[1:]],
                None if one.summary.n_certified else Text(nothing),
                map(Text, remarks),
            ]
        ),
        [
            Section("Key numbers", _key_numbers_of_radius(found, one)),
            Section("Worst case", _worst_case_section(found, frames), pictured=bool(picture) and not curves),
            Section("ECE by radius", Figures(curves[:1], BETWEEN) if curves else None, pictured=bool(picture)),
            Section(
                "Certified accuracy by radius",
                Figures(curves[1:shown], BETWEEN) if curves[1:shown] else None,
                len(frames) > 3,
            ),
            Section("Information that survives the attack", Text(information.verdict_at(one.radius_text)), brief=True),
            Section("The certified Brier score, taken apart", _brier_parts(one), brief=True, folded=True),
            Section("Most influential samples", influential(found, one, images) if drawn else None),
            Section("Bound for the population", _population_section(one), brief=True),
        ],
        [
            Section("Certified values", values_by_radius(found, frames) if several else None, brief=True),
            Section(at_radius("All claims", one), claims_table(one), brief=not several),
            Section("Other numbers by radius", Figures(curves[shown:], BETWEEN) if curves else None),
            Section("Other methods", methods_table(methods) if methods else None, brief=True),
            Section("Interval widths", interval_widths(found) if drawn else None),
            Section("Distribution of p_A", distribution_of_p_a(found) if drawn else None),
            Section("How the numbers were computed", computed_table(one)),
            Section("Failure probabilities", failure_probabilities(one) if drawn else None),
            Section("The run", run_facts(found) if drawn else None),
            Section(
                at_radius("Claims in full", one), Listing([capital(in_full(claim)) for _, _, claim in one.claims()])
            ),
        ],
        notes=_notes_of_certification(found),
        smaller=_smaller_documents(found, frames),
        picture=picture,
    )


def charts(found: Certification) -> Sequence[Chart]:
    """Calibration errors by radius, a chart per group or kind; at a single radius, the worst case."""
    if len(found.radii) == 1:
        return _worst_case_diagrams(found, found.at(), None)
    groups = list(dict.fromkeys(line.group for line in found.lines))[:_MOST_GROUPS]
    parts = {group: [line for line in found.lines if line.group == group] for group in groups}
    return [_error_chart(found, lines, group or "") for group, lines in parts.items()]


# --- the first screen ----------------------------------------------------------------------------------------------


def _headline_of_certification(found: Certification, one: CertifiedAt) -> Claim:
    claim, what, over = found.top()[0]
    if one.claim is not None:
        radius = "The claim holds under every change of the inputs of Euclidean length up to the radius."
        return Claim.of(claim, what, over=over, meaning=f"{CALIBRATION_ERROR} {radius}")
    made = Claim.of(claim, what, over=over, meaning=calibration_error(_task_of_certification(found)))
    made = replace(made, probability=_SCORES_INSIDE) if found.binary else made
    alpha = found.conventions["alpha"]
    each = f" Each interval fails {times_text(alpha)}." if alpha else ""
    return replace(made, probability=f"{made.probability}{each}", assumptions=())  # its probability says the same


def _picture(found: Certification, one: CertifiedAt, curves: Sequence[Chart]) -> list[Block]:
    """The calibration error by radius; at a single radius the worst case, and of a run what it was without noise."""
    if not any(line.of_certified for line in found.lines):
        return []
    if curves:
        return [Figures(curves[:1], BETWEEN)]
    drawn = {each.title.lower(): [each] for each in _worst_case_diagrams(found, one, _shared_axis(found, [one]))}
    if len(drawn) == 1:
        return [Figures(chart) for chart in drawn.values()]
    label = capital(one.summary.information.of)
    return [Choice("state", label, (*drawn,), len(drawn) - 1, [*drawn.values()], switch=True)]


def _task_of_certification(found: Certification) -> str | None:
    return "binary" if found.binary else None


def _key_numbers_of_radius(found: Certification, one: CertifiedAt) -> KeyNumbers:
    summary, population = one.summary, one.population
    over = "certified samples" if summary.n_certified and not found.binary else "all samples"
    brier = summary["brier_score"].worst or summary["brier_score"].worst_all
    level = sure_text(population.delta)
    side = "on these samples" if found.binary else "at least"
    numbers = [
        KeyNumber("samples", f"{summary.n:,}", () if found.binary else (f"{summary.n_certified:,} certified",)),
        KeyNumber(summary.accuracy.name, claim_text(summary.accuracy), (side,)),
        KeyNumber("calibration error", claim_text(one.headline), ("at most", over)),
        KeyNumber("in the population", claim_text(population), ("at most", level)),
        KeyNumber("Brier score", brier.text, ("at most", over)),
        KeyNumber("certified skill", minus(summary.skill.text), ("at least",)),
    ]
    if one.worst_apart is not None:
        numbers.insert(3, KeyNumber("where every certificate holds", claim_text(one.worst_apart), ("at most",)))
    if math.isnan(summary.skill.value):
        numbers[-1] = KeyNumber("certified skill", NOTHING, ("undefined",))
    note = (
        f"At radius {one.radius_text}: the largest that was asked for, or half of sigma when none was; not to be "
        "chosen by results."
    )
    return KeyNumbers(numbers, "" if found.counts is None else note)


def _worst_case_section(found: Certification, frames: Sequence[int]) -> list[Block]:
    lines = [found.at(found.radii[place]) for place in frames]
    if not any(line.worst is not None for line in lines):
        return [Text("No sample is certified, so there is no worst case to draw.")]
    clean, axis = _clean_bins(found, lines), _shared_axis(found, lines)
    states: list[list[Block]] = [
        [
            Text(_worst_case_sentence(found, line, each)),
            *([Figures(_worst_case_diagrams(found, line, axis))] if line.worst else []),
        ]
        for line, each in zip(lines, clean, strict=True)
    ]
    names, others = [line.radius_text for line in lines], "; the table of certified values has all"
    return by_radius(KEY, names, frames.index(found.place), states, len(found.radii), others)


def _clean_bins(found: Certification, lines: Sequence[CertifiedAt]) -> list[Any]:
    """The samples as they are, of a run."""
    return [found.clean_bins(line.radius) if found.counts is not None else None for line in lines]


def _shared_axis(found: Certification, lines: Sequence[CertifiedAt]) -> Axis:
    drawn = (*_clean_bins(found, lines), *(line.worst_bins for line in lines))
    return shared_counts([each.table for each in drawn if each is not None])


def _worst_case_sentence(found: Certification, line: CertifiedAt, clean: Any) -> str:
    where = f"Radius {line.radius_text}: " if line.radius_text else ""
    if line.worst is None:
        return f"{where}no sample is certified, so there is nothing to draw."
    before = "" if clean is None else f"{share_text(clean.ece)} (estimate) without a perturbation, "
    certified = f"; {line.summary.n_certified:,} of {line.summary.n:,} samples certified"
    certified = "" if found.binary else certified
    said = f"calibration error {before}at most {claim_text(line.headline)} in the worst case{certified}."
    return f"{where}{said}" if where else capital(said)


def _worst_case_diagrams(found: Certification, line: CertifiedAt, axis: Any) -> list[Chart]:
    task, words = _task_of_certification(found), line.summary.information.of
    worst = reliability_chart(
        line.worst_bins,
        "Worst case",
        caption=f"No {words} inside the certified intervals are worse. {SCORE_SIGNS if found.binary else SIGNS}",
        signs=None if line.worst is None else line.worst.signs,
        axis=axis,
        relation="at most",
        name="ECE" if line.worst_apart is None else "ECE where every certificate holds",
        task=task,
    )
    if found.counts is None:
        return [worst]
    off = round_outward(float(found.clean.error.max()), "upper")
    caption = (
        "The same samples as they are: an estimate from histograms, each confidence within "
        f"{off} of the mean over its draws."
    )
    return [
        reliability_chart(found.clean_bins(line.radius), "Without a perturbation", caption=caption, axis=axis),
        worst,
    ]


# --- by radius -----------------------------------------------------------------------------------------------------


def _curves(found: Certification, frames: Sequence[int]) -> list[Chart]:
    lines = [found.at(found.radii[place]) for place in frames]
    slides = any(line.worst is not None for line in lines)
    cursor = Cursor(KEY, _places(lines), frames.index(found.place)) if slides else None
    accuracy = _chart_by_radius(
        "Certified accuracy",
        lines,
        {"certified accuracy": [line.summary.accuracy for line in lines]},
        "lower",
        cursor,
        _ACCURACY[found.counts is not None],
        TextBars(
            ("radius", "certified accuracy {bar}", "accuracy ≥", "ECE ≤"),
            [
                (
                    line.radius_text,
                    accuracy.value,
                    None,
                    (accuracy.text, line.headline.text if line.of_certified else NOTHING),
                )
                for line in lines
                for accuracy in [line.summary.accuracy]
            ],
        ),
    )
    everything = _chart_by_radius(
        "Calibration error (ECE), all samples",
        lines,
        {
            "where every certificate holds" if found.counts is not None else "on these samples": [
                line.summary["calibration_error"].worst_all for line in lines
            ],
            "bound for the population": [line.summary.population_all for line in lines],
        },
        "upper",
        cursor,
        "Samples that are not certified may have any confidence and be right or wrong.",
        percent=True,
    )
    brier = _chart_by_radius(
        "Brier score" if found.binary else "Brier score, certified samples",
        lines,
        {"Brier score": [line.summary["brier_score"].worst for line in lines]},
        "upper",
        cursor,
        "The largest mean squared distance between score and outcome."
        if found.binary
        else "The largest mean squared distance between confidence and correctness.",
    )
    accuracy = _as_staircase(accuracy, lines)
    error = _error_chart(found, lines)
    return [error, brier] if found.binary else [error, accuracy, everything, brier]


def _as_staircase(chart: Chart, lines: Sequence[CertifiedAt]) -> Chart:
    """Certified accuracy as the staircase that it is: of a run everywhere, of a table as far as its radii say."""
    (panel,) = [each for each in chart.panels if isinstance(each, Panel)]
    (line,) = [mark for mark in panel.marks if isinstance(mark, Line)]
    known = lines[0].certificates
    if known is None:
        made = replace(line, steps="pre", guide=False)
    else:
        steps = AccuracySteps.of(known.radii, known.correct)
        marked = (line.x, line.y) if line.markers else ((), ())
        made = falling_steps(steps.radii.tolist(), steps.shares.tolist(), panel.x, line.look, line.label, marked)
    return replace(chart, panels=[replace(panel, marks=[made if mark is line else mark for mark in panel.marks])])


def _error_chart(found: Certification, lines: Sequence[CertifiedAt], group: str = "") -> Chart:
    series: dict[str, Sequence[Any]] = {
        "on these samples": [line.headline if line.of_certified else None for line in lines]
    }
    if any(line.worst_apart is not None for line in lines):
        series["where every certificate holds"] = [line.worst for line in lines]
    series["bound for the population"] = [line.summary.population for line in lines]
    if found.counts is not None:
        series["without a perturbation (estimate)"] = [found.clean_bins(line.radius) for line in lines]
    title = "Calibration error (ECE)" if found.binary else "Calibration error (ECE), certified samples"
    fewer = any(one.summary.n_certified > other.summary.n_certified for one, other in pairwise(lines))
    said = "The certified samples become fewer as the radius grows, and the easier ones are left." if fewer else ""
    one = next((line for line in lines if line.radius == found.at().radius), None)
    title = f"{title}: {group}" if group else title
    return _chart_by_radius(title, lines, series, "upper", None, said, percent=True, at=_mark_of_answer(one))


def _mark_of_answer(one: CertifiedAt | None) -> Words | None:
    """The radius that the answer is about, and what it says."""
    if one is None or one.radius is None or not one.of_certified or math.isnan(one.headline.value):
        return None
    return Words([one.radius], [one.headline.value], [f"at most {claim_text(one.headline)}"], beside=True)


def _places(lines: Sequence[CertifiedAt]) -> list[float]:
    return [0.0 if line.radius is None else line.radius for line in lines]


def _chart_by_radius(
    title: str,
    lines: Sequence[CertifiedAt],
    series: Mapping[str, Sequence[Any]],
    side: str,
    cursor: Cursor | None,
    caption: str,
    bars: TextBars | None = None,
    percent: bool = False,
    at: Words | None = None,
) -> Chart:
    def value(each: Any) -> float:
        return math.nan if each is None else float(each.ece if hasattr(each, "ece") else each.value)

    def text(each: Any) -> Cell:
        return number(each.ece) if hasattr(each, "ece") else each

    columns = [
        Column("radius", "level"),
        *(Column(name, "bound", None if "estimate" in name else side) for name in series),
    ]
    rows = [[line.radius_text, *(text(each[i]) for each in series.values())] for i, line in enumerate(lines)]
    name, first = next(iter(series.items()))
    ends = [f"{NOTHING if first[i] is None else first[i].text} at radius {lines[i].radius_text}" for i in (0, -1)]
    made = curves(
        title,
        _places(lines),
        {name: [value(each) for each in values] for name, values in series.items()},
        y_label=title.split(",")[0].split(" (")[0].lower().replace("brier", "Brier"),
        description=f"{capital(name)}: {ends[0]}, {ends[1]}.",
        most=1.0,
        cursor=cursor,
        caption=caption,
        numbers=Table(columns, rows, title),
        guide=True,
        looks=[_LOOKS.get(name.split(" (")[0], 0) for name in series],
        percent=percent,
        at=at,
    )
    return replace(made, bars=bars)


# --- what the confidences are worth, and which samples matter ------------------------------------------------------


def _brier_parts(one: CertifiedAt) -> Table | None:
    found, brier = one.summary.information, one.summary["brier_score"].worst
    if brier is None:
        return None
    parts = [
        (f"uncertainty (best constant {found.of[:-1]})", found.uncertainty),
        ("− resolution (gain of the best map)", found.resolution),
        ("+ miscalibration (what a map removes)", found.miscalibration),
        ("= certified Brier score", brier),
        (f"skill of these {found.of}", found.skill),
        ("skill of the best monotone map", found.best_skill),
    ]
    rows = [(name, relation_of(value), value) for name, value in parts]
    note = (
        f"Skill is how far a Brier score is below that of the best constant {found.of[:-1]}, as a share of it. The "
        "best monotone map is fitted to these very samples: expect less on others."
    )
    return Table((Column("part"), Column("side"), Column("value", "bound")), rows, note=note)


def _population_section(one: CertifiedAt) -> list[Block]:
    summary, where = one.summary, f"At radius {one.radius_text}, the" if one.radius_text else "The"
    what = f"{where} calibration error in the population"
    over = "over certified samples" if summary.population is not None else "over all samples"
    over = "" if summary.binary else over
    blocks: list[Block] = [Claim.of(one.population, what, over=over)]
    bounds = {"all samples" if summary.binary else "certified samples": one.population}
    if summary.population is not None and summary.n_certified < summary.n:
        bounds["all samples"] = summary.population_all
        everything = Claim.of(summary.population_all, what, over="over all samples")
        blocks.append(Details("All samples, the uncertified ones free", [everything]))
    elif summary.population is None:
        bounds = {"all samples": one.population}
    return [*blocks, Figures(terms_charts(bounds, "Terms of the bound"))]


# --- small print, and numbers for machines -------------------------------------------------------------------------


def _notes_of_certification(found: Certification) -> list[str]:
    from certcal.verbs.measure import BRACKETS

    given, lines = found.conventions, found.lines
    notes = [f"Bins are {BRACKETS[str(given['closed'])]}. Numbers are rounded in the safe direction."]
    if "edges" in given:
        notes.append(_EDGES.get(str(given["edges"]), "The edges were given."))
    if found.settings.adaptive:
        notes.append(
            "AdaECE has equal-mass bins whose edges are recomputed after the attack. Its value is a proved bound; some "
            "confidences inside the intervals reach the number beside it."
        )
    if len(lines) > 1:
        whole, part = (each.summary.settings["delta"] for each in (lines[0], lines[-1]))
        said = f"Each line's population bound is {sure_text(whole)} on its own: choose a line before looking."
        if found.by is not None and found.counts is None:
            said = (
                f"The population bounds of all groups hold together at one radius ({sure_text(whole)}): each group's "
                f"fails {times_text(part)}. That of all samples is as sure, by itself."
            )
            said += " Choose the radius before looking." if len(found.radii) > 1 else ""
        notes += [f"ECE has {given['bins']} bins. {said}", *cuts(found.groupings)]
    if any(line.summary.n_certified < line.summary.n for line in lines):
        notes.append("Over all samples, those that are not certified may have any confidence and be right or wrong.")
    if found.counts is not None:
        return [*notes, *run_notes(found)]
    if given["alpha"] == 0:
        notes.append("The intervals are taken as certain; if each may fail with some probability, give it as alpha.")
    else:
        column = found.about["columns"].get("alpha")
        said = "" if column is None else f", the largest in column {column!r}"
        notes.append(
            f"Numbers on these samples hold where their intervals do; each fails {times_text(given['alpha'])}{said}. "
            "Rows that the verifier abstained on belong in the table, with certified = 0."
        )
    if found.origin is not None:
        said = " Certify the run itself to have its noise averaged, too." if found.origin.run is not None else ""
        notes.append(f"The intervals are {found.origin.sentence}.{said}")
    return notes


def _smaller_documents(
    found: Certification, frames: Sequence[int]
) -> list[Callable[[], tuple[str, Mapping[str, Any]]]]:
    def few_radii() -> Mapping[str, Any]:
        kept = {found.radii[place] for place in frames}
        lines = [line.to_dict() for line in found.lines if line.radius in kept and (found.kinds or line.group is None)]
        return without({**found.to_dict(), "results": lines}, "signs")

    return [
        left_out("The signs of the bins", lambda: without(found.to_dict(), "signs")),
        left_out(f"Groups, signs of the bins, and radii beyond {len(frames):,}", few_radii),
    ]
