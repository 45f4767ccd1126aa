"""What a run or a table of intervals certifies: the words and the layout of a Certification."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from certcal._checks import InputError
from certcal._text import capital, counted
from certcal.claims import Ledger, in_full, round_outward, short_text
from certcal.report.charts import Chart, Cursor, TextBars, curves
from certcal.report.document import (
    NOTHING,
    Block,
    Cell,
    Claim,
    Column,
    Details,
    Facts,
    Figures,
    Heading,
    KeyNumber,
    KeyNumbers,
    Listing,
    Picture,
    Report,
    Section,
    Table,
    Text,
    frames_of,
    kind_of,
    relation_of,
    text_of,
    without,
)
from certcal.report.names import CALIBRATION_ERROR, CERTIFIED, CERTIFIED_NAMES
from certcal.report.numbers import number
from certcal.report.p_a import P_A, PaLine, p_a_chart, share_text
from certcal.report.reliability import MOST_BARS, SIGNS, reliability_chart, shared_counts
from certcal.report.views.bounds import terms_charts
from certcal.report.views.worst_case import by_radius, widths_chart

if TYPE_CHECKING:
    from certcal.verbs.certify import Certification, CertifiedAt

_KEY = "radius"
_INFLUENTIAL, _SHOWN = 12, 4
_LARGEST_SIDE = 96  # pixels of an image
# Bins times positions of the slider: what is drawn stays below a megabyte.
_MOST_STATES, _MOST_FRAMES, _FEWEST_FRAMES = 1500, 41, 5
# Kinds of certificates that nobody asked for are computed for a figure alone: at this many radii, and at fewer where
# that would take longer than the rest of the page.
_MOST_WIDTHS, _FEWER_WIDTHS, _MANY_SAMPLES = 13, 5, 2000
_MOST_GROUPS = 8
_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)

_TERMS = {
    "empirical worst case": "worst case on these samples",
    "deviation": "sampling error",
    "certificate failures": "intervals that fail",
}
_NOISE = {
    "gaussian": "The noise was drawn in floating point and is taken as exactly Gaussian; for inputs on k/255, exact "
    "noise needs no such assumption.",
    "exact": "The noise is discretised from integer thresholds, so the certificates hold in floating point: they are "
    "for the model applied to inputs rounded to k/255.",
}
_DRAWN = {"gaussian": "Gaussian, drawn in floating point", "exact": "exact: discretised, for inputs on k/255"}
# A name has the same look in every chart.
_LOOKS = {
    "claimed": 1,
    "claimed, with certificates that fail": 1,
    "bound for the population": 2,
    "without a perturbation": 3,
}
_BETWEEN = "Certified at the marked radii; nothing is claimed between them."


def view(found: Certification, *, images: Any = None, remarks: Sequence[str] = ()) -> Report:
    """The report of what is certified."""
    one, drawn = found.at(), found.counts is not None
    most = max(_FEWEST_FRAMES, min(_MOST_FRAMES, _MOST_STATES // min(found.settings.bins, MOST_BARS)))
    frames = frames_of(len(found.radii), found.place, most)
    several = len(found.lines) > 1
    curves = _curves(found, frames) if len(frames) > 1 else []
    information, parts = one.summary.information, _brier_parts(one)
    headline: list[Block] = [_headline(found, one)]
    if not one.summary.n_certified:
        headline.append(Text("No sample is certified at this radius, so nothing better is claimed."))
    sections = [
        Section("Key numbers", [_key_numbers(found, one)]),
        Section("Worst case", _worst(found, frames)),
        *([Section("ECE by radius", [Figures(curves[:2], _BETWEEN)], len(frames) > 3)] if curves else []),
        Section("Information that survives the attack", [Text(information.verdict_at(one.radius_text))], brief=True),
        *([Section("The certified Brier score, taken apart", parts, brief=True, folded=True)] if parts else []),
        *([Section("Most influential samples", _influential(found, one, images))] if drawn else []),
        Section("Bound for the population", _population(one), brief=True),
    ]
    methods = [line for line in found.lines if line.methods]
    appendix = [
        *([Section("Certified values", _values(found, frames), brief=True)] if several else []),
        Section(_at("All claims", one), [_claims_table(one)], brief=not several),
        *([Section("Other numbers by radius", [Figures(curves[2:], _BETWEEN)])] if curves else []),
        *([Section("Other methods", _methods(methods), brief=True)] if methods else []),
        *([Section("Interval widths", _widths(found)), Section("Distribution of p_A", _p_a(found))] if drawn else []),
        Section("How the numbers were computed", [_computed(one)]),
        *([Section("Failure probabilities", _ledgers(one)), Section("The run", [_facts(found)])] if drawn else []),
        Section(_at("Claims in full", one), [Listing([capital(in_full(claim)) for _, _, claim in one.claims()])]),
    ]
    return Report(
        "How wrong can the confidences be when somebody perturbs the inputs?"
        if drawn
        else "How wrong can the confidences be inside their intervals?",
        [*headline, *map(Text, remarks)],
        sections,
        appendix,
        found.source,
        found.description,
        _notes(found),
        smaller=_smaller(found, frames),
    )


def charts(found: Certification) -> Sequence[Chart]:
    """Calibration errors by radius, a chart per group or kind; at a single radius, the worst case."""
    if len(found.radii) == 1:
        return _diagrams(found, found.at(), None)
    groups = list(dict.fromkeys(line.group for line in found.lines))[:_MOST_GROUPS]
    parts = {group: [line for line in found.lines if line.group == group] for group in groups}
    return [_error_chart(found, lines, None, group or "") for group, lines in parts.items()]


def values_table(found: Certification, lines: Sequence[CertifiedAt], frames: Mapping[int, int] | None = None) -> Table:
    """A row per radius and group, with as many columns as fit."""
    partly = any(line.summary.n_certified < line.summary.n for line in lines)
    claimed = any(line.claim is not None for line in lines)
    grouped = any(line.group is not None for line in lines)

    def worst(metric: str) -> Callable[[CertifiedAt], Cell]:
        return lambda line: line.summary[metric].worst

    cells: list[tuple[bool, Column, Callable[[CertifiedAt], Cell]]] = [
        (found.radii != (None,), Column("radius", "level"), lambda line: line.radius_text),
        (grouped, Column(found.by or "group"), lambda line: line.group or "all"),
        (True, Column("samples", "count", priority=11 if claimed else 2), lambda line: line.summary.n),
        (partly, Column("certified", "count", priority=10 if claimed else 2), lambda line: line.summary.n_certified),
        (True, Column("certified accuracy", "bound", "lower"), lambda line: line.summary.accuracy),
        (True, Column("ECE", "bound", "upper"), worst("calibration_error")),
        (claimed, Column("ECE, claimed", "bound", "upper", 4), lambda line: line.claim if line.worst else None),
        (partly, Column("ECE, all", "bound", "upper", 5), lambda line: line.summary["calibration_error"].worst_all),
        (True, Column("ECE, population", "bound", "upper", 6), lambda line: line.summary.population),
        (grouped and claimed, Column("mean width", "bound", "upper", 3), lambda line: line.width),
        (True, Column("Brier", "bound", "upper", 7), worst("brier_score")),
        (True, Column("skill", "bound", "lower", 8), lambda line: line.summary.skill),
        (True, Column("KS", "bound", "upper", 9), worst("ks_error")),
        (
            True,
            Column("sampling error", "bound", "upper", 12),
            lambda line: _term(line.summary.population, "deviation"),
        ),
        (True, Column("log loss", "bound", "upper", 13), worst("nll")),
        (True, Column("MCE", "bound", "upper", 14), worst("mce")),
        (not grouped and claimed, Column("mean width", "bound", "upper", 15), lambda line: line.width),
    ]
    shown = [(column, cell) for wanted, column, cell in cells if wanted]
    return Table(
        [column for column, _ in shown],
        [[cell(line) for _, cell in shown] for line in lines],
        "≥ and ≤ say on which side each value holds",
        choice=None if frames is None else (_KEY, frames),
        most=400,
    )


# --- the first screen ----------------------------------------------------------------------------------------------


def _at(what: str, one: CertifiedAt) -> str:
    return f"{what} at radius {one.radius_text}" if one.radius_text else what


def _over(one: CertifiedAt) -> str:
    summary = one.summary
    if not summary.n_certified:
        return f"on all {summary.n:,} samples"
    return f"on the {summary.n_certified:,} certified sample{'' if summary.n_certified == 1 else 's'}"


def _headline(found: Certification, one: CertifiedAt) -> Claim:
    what = f"At radius {one.radius_text}, the calibration error" if one.radius_text else "The calibration error"
    if one.claim is not None:
        radius = "The claim holds under every change of the inputs of Euclidean length up to the radius."
        meaning = f"{CALIBRATION_ERROR} {radius}"
        return Claim.of(one.claim, f"{what} of the smoothed classifier", over=_over(one), meaning=meaning)
    made = Claim.of(one.headline, what, over=_over(one), meaning=CALIBRATION_ERROR)
    alpha = found.conventions["alpha"]
    each = f" Each interval may fail with probability {short_text(alpha, 'upper')}." if alpha else ""
    return replace(made, probability=f"{made.probability}{each}", assumptions=())  # its probability says the same


def _key_numbers(found: Certification, one: CertifiedAt) -> KeyNumbers:
    summary, population = one.summary, one.population
    over = "certified samples" if summary.n_certified else "all samples"
    error = one.worst or summary["calibration_error"].worst_all
    brier = summary["brier_score"].worst or summary["brier_score"].worst_all
    level = f"except with probability {short_text(population.delta, 'upper')}"
    numbers = [
        KeyNumber("samples", f"{summary.n:,}", (f"{summary.n_certified:,} certified",)),
        KeyNumber("certified accuracy", summary.accuracy.text, ("at least",)),
        KeyNumber("calibration error", one.headline.text, ("at most", over)),
        KeyNumber("where all certificates hold", error.text, ("at most", over)),
        KeyNumber("in the population", population.text, ("at most", level)),
        KeyNumber("Brier score", brier.text, ("at most", over)),
        KeyNumber("certified skill", summary.skill.text, ("at least",)),
    ]
    if one.claim is None or found.settings.familywise:
        del numbers[3]
    if math.isnan(summary.skill.value):
        numbers[-1] = KeyNumber("certified skill", NOTHING, ("undefined",))
    note = (
        f"At radius {one.radius_text}: the largest that was asked for, or half of sigma when none was. It must not be "
        "chosen by its results."
    )
    return KeyNumbers(numbers, "" if found.counts is None else note)


def _worst(found: Certification, frames: Sequence[int]) -> list[Block]:
    """The diagram without a perturbation beside that of the worst case, at each of some radii."""
    lines = [found.at(found.radii[place]) for place in frames]
    if not any(line.worst is not None for line in lines):
        return [Text("No sample is certified, so there is no worst case to draw.")]
    clean = [found.clean_bins(line.radius) if found.counts is not None else None for line in lines]
    tables = [each.table for each in (*clean, *(line.worst_bins for line in lines)) if each is not None]
    axis = shared_counts(tables)
    states: list[list[Block]] = [
        [Text(_said(found, line, each)), *([Figures(_diagrams(found, line, axis))] if line.worst else [])]
        for line, each in zip(lines, clean, strict=True)
    ]
    names, others = [line.radius_text for line in lines], "; the table of certified values has all"
    return by_radius(_KEY, names, frames.index(found.place), states, len(found.radii), others)


def _said(found: Certification, line: CertifiedAt, clean: Any) -> str:
    """What is drawn, in one line."""
    where = f"Radius {line.radius_text}: " if line.radius_text else ""
    if line.worst is None:
        return f"{where}no sample is certified, so there is nothing to draw."
    before = "" if clean is None else f"{number(clean.ece)} (estimate) without a perturbation, "
    failing = f" ({line.claim.text} with certificates that fail)" if _pays(found, line) and line.claim else ""
    certified = f"{line.summary.n_certified:,} of {line.summary.n:,} samples certified"
    said = f"calibration error {before}at most {line.worst.text} in the worst case{failing}; {certified}."
    return f"{where}{said}" if where else capital(said)


def _pays(found: Certification, line: CertifiedAt) -> bool:
    return line.claim is not None and not found.settings.familywise


def _diagrams(found: Certification, line: CertifiedAt, axis: Any) -> list[Chart]:
    worst = reliability_chart(
        line.worst_bins,
        "Worst case",
        caption="Confidences inside the certified intervals that reach the worst calibration error; no others are "
        f"worse. {SIGNS}",
        signs=None if line.worst is None else line.worst.signs,
        axis=axis,
        relation="at most",
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
    """Calibration error and accuracy of certified samples; then what the appendix shows."""
    lines = [found.at(found.radii[place]) for place in frames]
    slides = any(line.worst is not None for line in lines)
    cursor = Cursor(_KEY, _places(lines), frames.index(found.place)) if slides else None
    accuracy = _chart(
        "Certified accuracy",
        lines,
        {"certified accuracy": [line.summary.accuracy for line in lines]},
        "lower",
        cursor,
        "The share of all samples whose prediction is certified and correct.",
        TextBars(
            ("radius", "certified accuracy {bar}", "accuracy ≥", "ECE ≤"),
            [(line.radius_text, line.summary.accuracy.value, None, _beside(line)) for line in lines],
        ),
    )
    everything = _chart(
        "Calibration error (ECE), all samples",
        lines,
        {
            "worst case of these samples": [line.summary["calibration_error"].worst_all for line in lines],
            "bound for the population": [line.summary.population_all for line in lines],
        },
        "upper",
        cursor,
        "Samples that are not certified may have any confidence and be right or wrong.",
    )
    brier = _chart(
        "Brier score, certified samples",
        lines,
        {"Brier score": [line.summary["brier_score"].worst for line in lines]},
        "upper",
        cursor,
        "The largest mean squared distance between confidence and correctness.",
    )
    return [_error_chart(found, lines, cursor), accuracy, everything, brier]


def _beside(line: CertifiedAt) -> tuple[str, str]:
    return line.summary.accuracy.text, NOTHING if line.worst is None else line.worst.text


def _error_chart(found: Certification, lines: Sequence[CertifiedAt], cursor: Cursor | None, group: str = "") -> Chart:
    series: dict[str, Sequence[Any]] = {"worst case of these samples": [line.worst for line in lines]}
    if found.counts is not None:
        claimed = "claimed" if found.settings.familywise else "claimed, with certificates that fail"
        series[claimed] = [line.claim if line.worst else None for line in lines]
    series["bound for the population"] = [line.summary.population for line in lines]
    if found.counts is not None:
        series["without a perturbation (estimate)"] = [found.clean_bins(line.radius) for line in lines]
    title = "Calibration error (ECE), certified samples"
    said = "The certified samples become fewer as the radius grows, and the easier ones are left."
    return _chart(f"{title}: {group}" if group else title, lines, series, "upper", cursor, said)


def _places(lines: Sequence[CertifiedAt]) -> list[float]:
    return [0.0 if line.radius is None else line.radius for line in lines]


def _chart(
    title: str,
    lines: Sequence[CertifiedAt],
    series: Mapping[str, Sequence[Any]],
    side: str,
    cursor: Cursor | None,
    caption: str,
    bars: TextBars | None = None,
) -> Chart:
    """Claims by radius as lines, with their texts as numbers."""

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
        looks=[_LOOKS.get(name.split(" (")[0], 0) for name in series],
    )
    return replace(made, bars=bars)


# --- what the confidences are worth, and which samples matter ------------------------------------------------------


def _brier_parts(one: CertifiedAt) -> list[Block]:
    found, brier = one.summary.information, one.summary["brier_score"].worst
    if brier is None:
        return []
    parts = [
        ("uncertainty (best constant confidence)", found.uncertainty),
        ("− resolution (gain of the best map)", found.resolution),
        ("+ miscalibration (what a map removes)", found.miscalibration),
        ("= certified Brier score", brier),
        ("skill of these confidences", found.skill),
        ("skill of the best monotone map", found.best_skill),
    ]
    rows = [(name, relation_of(value), value) for name, value in parts]
    note = (
        "Skill is how far a Brier score is below that of the best constant confidence, as a share of it. The best "
        "monotone map is fitted to these very samples: expect less on others."
    )
    columns = (Column("part"), Column("side"), Column("value", "bound"))
    return [Table(columns, rows, note=note)]


def _influential(found: Certification, one: CertifiedAt, images: Any) -> list[Block]:
    samples = found.influential(_INFLUENTIAL)
    inputs, note = _pictures(found, images)
    if not samples or one.worst is None:
        return [Text(f"No sample is certified at radius {one.radius_text}, so none adds to a worst case.")]
    columns = [
        *([Column("image")] if inputs is not None else []),
        Column("sample", "count"),
        Column("true class", "count"),
        Column("predicted"),
        Column("votes", "count"),
        Column("confidence (estimate)", "estimate"),
        Column("certified interval", "bound"),
        Column("in the worst case", "estimate"),
        Column("adds", "estimate"),
    ]
    rows: list[list[Any]] = []
    for each in samples:
        wrong = "" if each.predicted == each.label else " (wrong)"
        row: list[Any] = [f"{each.index}", f"{each.label}", f"{each.predicted}{wrong}"]
        row += [f"{each.votes:,} of {each.draws:,}", each.confidence, each.interval_text, each.witness]
        if inputs is not None:
            said = f"sample {each.index}: class {each.label}, predicted {each.predicted}"
            row.insert(0, Picture(_shrunk(inputs[each.index]), said))
        rows.append([*row, each.contribution])
    said = (
        f"The contributions of all samples add up to the worst calibration error, at most {one.worst.text}. A sample "
        "adds most when it is wrong and its confidence can be high, or right and its confidence can be low."
    )
    first = Table(columns, rows[:_SHOWN], f"The samples that add most at radius {one.radius_text}", note)
    rest = rows[_SHOWN:]
    more = [Details(counted(len(rest), "further sample"), [Table(columns, rest)])] if rest else []
    return [Text(said), first, *more]


def _pictures(found: Certification, images: Any) -> tuple[Any, str]:
    """Checked images, or what to say instead of them."""
    from certcal.smoothing import check_inputs

    if images is None:
        return None, ""
    if found.manifest is None:
        raise InputError(
            "images cannot be checked for counts without a run", argument="images", remedy="leave them out"
        )
    checked = check_inputs(found.manifest, images)
    shape = tuple(checked.shape[1:])
    grey = len(shape) == 2 and min(shape) > 1
    coloured = len(shape) == 3 and (shape[0] in (1, 3) or shape[2] in (1, 3))
    return (
        (checked, "")
        if grey or coloured
        else (None, f"The inputs, of shape {shape}, are no images, so none are shown.")
    )


def _shrunk(values: Any) -> Any:
    """Fewer pixels of a large image; values of 0 to 1 as bytes, so that dark images stay dark."""
    channels_first = values.ndim == 3 and values.shape[0] in (1, 3)
    sides = values.shape[1:] if channels_first else values.shape[:2]
    step = max(1, -(-max(sides) // _LARGEST_SIDE))
    small = values[:, ::step, ::step] if channels_first else values[::step, ::step]
    return np.rint(small * 255).astype(np.uint8) if small.min() >= 0 and small.max() <= 1 else small


def _population(one: CertifiedAt) -> list[Block]:
    summary, where = one.summary, f"At radius {one.radius_text}, the" if one.radius_text else "The"
    what = f"{where} calibration error in the population"
    over = "over certified samples" if summary.population is not None else "over all samples"
    blocks: list[Block] = [Claim.of(one.population, what, over=over)]
    bounds = {"certified samples": one.population}
    if summary.population is not None and summary.n_certified < summary.n:
        bounds["all samples"] = summary.population_all
        everything = Claim.of(summary.population_all, what, over="over all samples")
        blocks.append(Details("All samples, the uncertified ones free", [everything]))
    elif summary.population is None:
        bounds = {"all samples": one.population}
    return [*blocks, Figures(terms_charts(bounds, "Terms of the bound"))]


# --- appendix ------------------------------------------------------------------------------------------------------


def _term(bound: Any, name: str) -> str | None:
    return None if bound is None else round_outward(bound.terms[name], "upper")


def _values(found: Certification, frames: Sequence[int]) -> list[Block]:
    frame_of = {found.radii[place]: frame for frame, place in enumerate(frames)}
    rows: dict[int, int] = {}
    for place, line in enumerate(found.lines):
        if line is found.at(line.radius) and line.radius in frame_of:
            rows[place] = frame_of[line.radius]
    slides = len(frames) > 1 and any(line.worst is not None for line in found.lines)
    return [values_table(found, found.lines, rows if slides else None)]


def _claims_table(one: CertifiedAt) -> Table:
    """Everything that is certified about one set of samples: of the certified ones, and of all."""
    summary = one.summary
    both = summary.n_certified < summary.n
    heads = ("certified\u00a0≥", "certified\u00a0≤", "all\u00a0≥", "all\u00a0≤") if both else ("at least", "at most")
    rows: list[Sequence[Cell] | Heading] = []

    def row(name: str, *cells: Cell) -> None:
        rows.append([CERTIFIED_NAMES.get(name, name), *(*cells, "", "", "", "")[: len(heads)]])

    def metric(key: str, name: str = "") -> None:
        ranges = summary[key]
        highest = "undefined" if ranges.worst is None else ranges.worst
        row(name or key, ranges.lowest_text or "", highest, "", ranges.worst_all)

    rows.append(Heading("Accuracy"))
    row("certified_accuracy", *(("", "", summary.accuracy) if both else (summary.accuracy,)))
    rows.append(Heading("Proper scores"))
    metric("brier_score")
    row("skill of these confidences", summary.skill)
    row("skill of the best monotone map", summary.information.best_skill)
    metric("nll")
    rows.append(Heading("Calibration error"))
    if one.claim is not None:
        claim = one.claim
        row("claimed_calibration_error", *(("", claim) if summary.n_certified else ("", "", "", claim)))
    metric("calibration_error", f"ECE, {summary.settings['bins']} bins, exact")
    metric("mce")
    metric("ks_error")
    rows.append(Heading("The same ECE in the population"))
    level = short_text(summary.settings["delta"], "upper")
    row(f"each except with probability {level}", "", summary.population or "undefined", "", summary.population_all)
    for sign, (term, name) in zip("=++", _TERMS.items(), strict=True):
        row(f"{sign} {name}", "", _term(summary.population, term) or "", "", _term(summary.population_all, term))
    return Table([Column("claim"), *(Column(head, "bound") for head in heads)], rows)


def _methods(lines: Sequence[CertifiedAt]) -> list[Block]:
    rows = [
        (line.radius_text, each.name, "at most" if each.is_exact else "at least", each.text, _duration(each.seconds))
        for line in lines
        for each in line.methods
    ]
    columns = (
        Column("radius", "level"),
        Column("method"),
        Column("side"),
        Column("worst ECE", "bound"),
        Column("time"),
    )
    start = 0 if lines[0].radius_text else 1
    note = (
        "Only the exact value is a certificate. Each other one is reached by some confidences inside the intervals, so "
        "the worst case may be larger than it says."
    )
    shown = [row[start:] for row in rows]
    return [Table(columns[start:], shown, "The worst calibration error by each method", note)]


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.2g} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"
    minutes, rest = divmod(round(seconds), 60)
    return f"{seconds:.1f} s" if seconds < 60 else f"{minutes} min {rest} s"


def _widths(found: Certification) -> list[Block]:
    from certcal.smoothing import CONFIDENCES

    one, kinds = found.at(), list(dict.fromkeys((*CONFIDENCES, *found.kinds)))
    most = _MOST_WIDTHS if found.n <= _MANY_SAMPLES else _FEWER_WIDTHS
    places = frames_of(len(found.radii), found.place, most)
    radii = [radius for place in places if (radius := found.radii[place]) is not None]
    figures: list[Chart] = []
    said = f"No sample is certified at radius {one.radius_text}, so there is no interval to measure."
    at_one = {kind: widths for kind in kinds if (widths := found.widths(kind)) is not None}
    if at_one:
        said = (
            f"{'The headline' if len(found.kinds) > 1 else 'Every claim'} here is from {one.kind} certificates; "
            "the other kinds are for comparison. Choose the kind before looking."
        )
        figures.append(widths_chart(at_one, one.radius_text, kinds))
    by_radius = {kind: [found.widths(kind, radius) for radius in radii] for kind in kinds}
    if len(radii) > 1 and any(each is not None for row in by_radius.values() for each in row):
        thinned = f" {len(radii)} of {len(found.radii):,} radii." if len(radii) < len(found.radii) else ""
        texts = [found.at(radius).radius_text for radius in radii]
        rows = [[text, *(_quartiles(by_radius[kind][i]) for kind in kinds)] for i, text in enumerate(texts)]
        columns = [Column("radius", "level"), *(Column(kind, "bound") for kind in kinds)]
        ends = [[_median(row[i]) for i in (0, -1)] for row in by_radius.values()]
        figures.append(
            curves(
                "Median width by radius",
                radii,
                {k: [math.nan if each is None else each.median for each in row] for k, row in by_radius.items()},
                y_label="median width",
                description=" ".join(f"{kind}: {a} to {b}." for kind, (a, b) in zip(kinds, ends, strict=True)),
                most=1.0,
                caption=f"The width that half of the certified samples do not exceed.{thinned} {_BETWEEN}",
                numbers=Table(columns, rows, "Quartiles of the widths by radius: 25 %, median, 75 %"),
            )
        )
    return [Text(said), *([Figures(figures)] if figures else [])]


def _quartiles(each: Any) -> str:
    return NOTHING if each is None else " · ".join(round_outward(value, "upper") for value in each.quantiles[1:4])


def _median(each: Any) -> str:
    return "undefined" if each is None else round_outward(each.median, "upper")


def _p_a(found: Certification) -> list[Block]:
    caption = (
        f"{P_A} A sample is certified at a radius when its p_A is large enough, so this curve decides certified "
        "accuracy at every radius."
    )
    rows = [(f"{p:g}", share_text(found.p_a, p)) for p in _SHARES]
    numbers = Table((Column("p", "level"), Column("share with p_A ≥ p", "estimate")), rows, "Shares of the samples")
    return [replace(p_a_chart("Distribution of p_A", [PaLine(0, "", found.p_a)], caption=caption), numbers=numbers)]


def _computed(one: CertifiedAt) -> Table:
    rows: list[list[Cell]] = []
    for key, samples, claim in one.claims():
        value = f"{relation_of(claim)} {text_of(claim)}".strip()
        rows.append([CERTIFIED_NAMES[key], kind_of(claim), samples, claim.n, value, CERTIFIED[key]])
    columns = (
        Column("claim"),
        Column("kind"),
        Column("over"),
        Column("samples", "count"),
        Column("value"),
        Column("how it is computed"),
    )
    note = "Claims at other radii are in the JSON." if one.radius_text else ""
    return Table(columns, rows, _at("The claims", one), note)


def _ledgers(one: CertifiedAt) -> list[Block]:
    found = one.certificates
    assert found is not None
    assert one.claim is not None
    each = "its share of a probability for all samples together" if found.familywise else "a probability of its own"
    return [
        Text(
            f"The certificate of each sample may fail over the noise with {each}. It is spent on the votes for the "
            "predicted class, and on the lower and the upper end of the confidence interval. The bound for the "
            "population may also fail over the draw of the samples; its share is its own."
        ),
        _ledger(found.ledger, "Certificate of one sample"),
        _ledger(one.claim.ledger, "Claim of the headline"),
    ]


def _ledger(ledger: Ledger, caption: str) -> Table:
    entries: dict[str, float] = ledger.to_dict()["entries"]
    rows = [(name.replace("_", " "), short_text(alpha, "upper")) for name, alpha in entries.items()]
    rows += [("spent", short_text(ledger.spent, "upper")), ("budget", short_text(ledger.budget, "upper"))]
    return Table((Column("spent on"), Column("α", "level")), rows, caption)


def _facts(found: Certification) -> Facts:
    counts, m = cast("Any", found.counts), found.manifest
    one = found.at().certificates
    draws, samples = f"{int(counts.draws.min()):,}", f"{len(counts):,}"
    facts = {
        "Noise": f"{_DRAWN[counts.noise]}, sigma {counts.sigma:g}",
        "Noise samples for estimation (n)": draws,
        "Samples": samples,
        "Abstained": f"{0 if one is None else one.n_abstained:,}",
        "Invalid outputs": f"{int(counts.invalid.sum()):,}, counted against the class",
    }
    if m is None:
        return Facts(list(facts.items()))
    if len(counts) < m.samples:
        facts["Samples"] = f"{samples} of {m.samples:,}: those that were drawn completely"
    facts |= {
        "Noise samples for class selection (n0)": f"{m.n0:,}",
        "Seed": f"{m.seed}",
        "Model": m.model.description,
        "Fingerprint of the model": m.model.fingerprint,
        "Data": m.data.source or "arrays",
        "Fingerprint of the inputs": m.data.inputs,
        "Fingerprint of the labels": m.data.labels,
        "Drawn with": ", ".join(f"{name} {version}" for name, version in m.versions.items()),
        "Begun": m.created,
        "Sizes it had": "; ".join(f"{size.samples:,} samples, {size.n:,} draws" for size in m.sizes[-8:]),
    }
    if not m.rows_independent:
        facts["Batches"] = f"of {m.batch:,}; the last bits of the model depend on that, so it is kept"
    return Facts(list(facts.items()))


# --- small print, and numbers for machines -------------------------------------------------------------------------


def _notes(found: Certification) -> list[str]:
    """What holds for all numbers."""
    from certcal.verbs.measure import BRACKETS

    given, lines = found.conventions, found.lines
    notes = [f"Bins are {BRACKETS[str(given['closed'])]}. Numbers are rounded in the safe direction."]
    if len(lines) > 1:
        notes.append(
            f"ECE has {given['bins']} bins. Each line's population bound may fail with probability "
            f"{short_text(given['delta'], 'upper')} of its own: choose a line before looking."
        )
    if any(line.summary.n_certified < line.summary.n for line in lines):
        notes.append("Over all samples, those that are not certified may have any confidence and be right or wrong.")
    if found.counts is not None:
        return [*notes, *_run_notes(found)]
    if given["alpha"] == 0:
        notes.append("The intervals are taken as certain; if each may fail with some probability, give it as alpha.")
    else:
        column = found.about["columns"].get("alpha")
        said = "" if column is None else f", the largest in column {column!r}"
        notes.append(
            "Numbers on these samples hold where their intervals do; each may fail with probability "
            f"{float(short_text(given['alpha'], 'upper')):g}{said}. Rows that the verifier abstained on belong in the "
            "table, with certified = 0."
        )
    if found.origin is not None:
        notes.append(f"The intervals are {found.origin.sentence}.")
    return notes


def _run_notes(found: Certification) -> list[str]:
    from certcal.smoothing import holds_at_all_radii

    one, alpha = cast("Any", found.at().certificates), short_text(found.conventions["alpha"], "upper")
    kinds = found.settings.confidence
    apart = len(found.radii) > 1 and not all(map(holds_at_all_radii, kinds))
    notes: list[str] = []
    if found.settings.familywise:
        where = " at each radius" if apart else ""
        notes.append(f"All {one.n:,} certificates hold together{where} except with probability {alpha} over the noise.")
    else:
        failed = one.failures(found.conventions["alpha"]).count
        notes.append(
            f"Each certificate may fail with probability {alpha} over the noise; more than {failed:,} of {one.n:,} "
            f"fail with probability at most {alpha}, and what {failed:,} can add to the ECE is in the claim. The other "
            "numbers on these samples hold where the certificates do; familywise makes all hold."
        )
    if len(kinds) > 1:
        notes.append(
            f"Choose a certificate before looking: that the best of these {len(kinds)} fails has up to {len(kinds)} "
            "times the probability."
        )
    if apart:
        named = ", ".join(name for name, kind in zip(found.kinds, kinds, strict=True) if not holds_at_all_radii(kind))
        notes.append(
            f"Certificates of different radii by {named} fail each on their own; all others hold at all radii at once."
        )
    return [*notes, _NOISE[one.noise]]


def _smaller(found: Certification, frames: Sequence[int]) -> list[Callable[[], tuple[str, Mapping[str, Any]]]]:
    """What a page keeps for machines when the signs of all bins, at all radii, are too many."""

    def lean() -> tuple[str, Mapping[str, Any]]:
        said = "The signs of the bins are too many to be kept in this page; the JSON inside it leaves them out."
        return said, without(found.to_dict(), "signs")

    def few() -> tuple[str, Mapping[str, Any]]:
        kept = {found.radii[place] for place in frames}
        lines = [line.to_dict() for line in found.lines if line.radius in kept and (found.kinds or line.group is None)]
        said = (
            f"The numbers in this page are of {len(frames):,} of {len(found.radii):,} radii, without groups and the "
            "signs of the bins, to keep it small; the JSON has all."
        )
        return said, without({**found.to_dict(), "results": lines}, "signs")

    return [lean, few]
