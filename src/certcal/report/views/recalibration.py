"""What maps do to certified confidences: the words and the layout of a CertifiedRecalibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._text import capital, counted
from certcal.binning import bin_table, equal_width_edges
from certcal.claims import Certificate, Estimate, in_full, short_text
from certcal.report.charts import Axis, Bars, Chart, Line, Mark, Panel, Points, Segments, Words, counts, covering, unit
from certcal.report.document import (
    Block,
    Cell,
    Choice,
    Claim,
    Column,
    Details,
    Facts,
    Figures,
    Heading,
    Report,
    Section,
    Table,
    Text,
    frames_of,
    without,
)
from certcal.report.names import CALIBRATION_ERROR, CERTIFIED, CERTIFIED_NAMES, definition
from certcal.report.numbers import number
from certcal.report.reliability import SIGNS, reliability_chart, shared_counts
from certcal.report.views.bounds import terms_charts

if TYPE_CHECKING:
    from certcal.binning import BinTable
    from certcal.calibrators import FrontPoint, Judged, JudgedAt
    from certcal.verbs.certified_recalibration import CertifiedRecalibration

Floats = NDArray[np.float64]

_KEY = "radius"
MOST_MAPS = 60
_MOST_FRAMES, _MOST_FLAT, _MOST_ROWS = 40, 60, 40
_GRID = 400
# Parts of a map narrower than this would not be seen, nor would differences of scores.
_NARROWEST, _FINEST = 0.004, 0.001
_CLEAN = {"brier_score": "Brier score", "ece": "ECE", "auroc": "AUROC"}
_METRICS = {"brier_score": "top_label_brier_score", "ece": "ece", "auroc": "auroc"}
_MAPPED = (
    "A monotone map takes every certified interval to an interval, so what is certified about the model before the map "
    "is certified about it after the map as well."
)
_GAIN = (
    "For each certified sample: the squared error of one constant confidence minus the worst squared error inside the "
    "mapped interval. The bound on its mean holds for the population, because map and constant come from other samples."
)
_SKILL = (
    "Skill compares the certified Brier score with that of the best constant confidence on these samples. The gain is "
    "how far it is below that of a constant from the samples of the fit, in the population."
)


def view(found: CertifiedRecalibration) -> Report:
    """The report of what maps do to certified confidences."""
    bins, closed = found.conventions["bins"], found.conventions["closed"]
    notes = [
        *found.notes,
        f"The split is drawn with seed {found.conventions['seed']}. Clean numbers are estimates without an attack. "
        f"ECE has {bins} bins, closed on the {closed}. Certified numbers are over the certified held-out samples, and "
        "rounded in the safe direction.",
    ]
    return Report(
        "Which confidences survive an attack after recalibration?",
        _headline(found),
        [
            Section("Before and after", [_before_and_after(found)], brief=True),
            Section("Map and trade-off", [Figures(charts(found))]),
            Section("Worst case by radius" if len(found.radii) > 1 else "Worst case", _worst(found)),
            Section("All maps", _all_maps(found), brief=True, folded=True),
            Section("Population", _population(found)),
        ],
        [Section("How the numbers were computed", _computed(found)), Section("Samples and settings", [_facts(found)])],
        found.source,
        found.description,
        notes,
        smaller=_smaller(found),
    )


def charts(found: CertifiedRecalibration) -> Sequence[Chart]:
    """The map that was asked for, and clean against certified Brier scores of all maps."""
    beside = [line for line in (found.lines[1], found.lines[-1]) if line is not found.chosen]
    held_out = None
    if found.before.confidence is not None:
        held_out = bin_table(found.before.confidence, found.before.correct, equal_width_edges(50))
    drawn = {line.name: line.calibrator for line in (found.chosen, *beside)}
    front = front_chart(found)
    return [map_chart(drawn, held_out), *([] if front is None else [front])]


def within(radius: str) -> str:
    """Where a worst case is taken, in words; tables may have intervals without a radius."""
    return f"within radius {radius}" if radius else "inside the given intervals"


def _headline(found: CertifiedRecalibration) -> list[Block]:
    last = found.chosen.at[-1]
    kept = last.summary.n_certified
    over = f"{within(last.radius)} on {counted(kept, 'certified held-out sample')}"
    if not kept:
        over = f"{within(last.radius)} on all {counted(found.n_held_out, 'held-out sample')}: none is certified"
    claim = Claim.of(
        found.claims()[0], "After the map, the calibration error", over=over, meaning=CALIBRATION_ERROR, settings=False
    )
    return [claim, Text(verdict(found))]


def verdict(found: CertifiedRecalibration, radius: int = -1) -> str:
    """Say whether the recalibrated confidences are certified to beat one constant confidence on the held-out samples.

    The first sentence is exact about the held-out samples whose certificates hold. What follows about the population is
    the bound of :func:`certcal.calibrators.gain_over`, with the constant that comes from the samples of the fit.

    Examples
    --------
    >>> import certcal
    >>> from certcal.calibrators import CertifiedSamples
    >>> samples = CertifiedSamples.from_intervals([0.1, 0.5] * 200, [0.4, 0.9] * 200, [0, 1] * 200, radii=[0.5])
    >>> print(verdict(certcal.recalibrate(samples)).split(" In the population")[0])
    At radius 0.5, the recalibrated confidences carry information that is certified to survive the attack: on 200
    certified held-out samples they beat every constant confidence, with a certified skill of at least 0.9999 (as they
    were: 0.1738).
    """
    before, after = found.identity.at[radius], found.chosen.at[radius]
    information = after.summary.information
    if information.finding == "undefined":
        return information.verdict_at(after.radius or None)
    where = f"At radius {after.radius}" if after.radius else "Inside the given intervals"
    where += ", the recalibrated confidences"
    samples = counted(information.n, "certified held-out sample")
    skill = f"{information.skill.text} (as they were: {before.summary.skill.text})"
    if information.finding != "as they are":
        said = f"{where} are not certified to beat one constant confidence: on {samples} their certified skill is "
        said += f"at least {skill}."
        return f"{said} Nor is any non-decreasing map of them." if information.finding == "nothing" else said
    said = (
        f"{where} carry information that is certified to survive{' the attack' if after.radius else ''}: on {samples} "
        f"they beat every constant confidence, with a certified skill of at least {skill}."
    )
    gain = after.gain
    if gain is None or gain.value <= 0:
        return f"{said} Whether they do in the population is left open by its bound."
    return (
        f"{said} In the population, where certified, their certified Brier score is at least {gain.text} below that of "
        f"one constant, the accuracy of the certified samples of the fit ({gain.settings['constant']:.4f}), except "
        f"with probability {short_text(gain.delta, 'upper')}."
    )


def _worst_of(at: JudgedAt, metric: str) -> Any:
    ranges = at.summary[metric]
    return ranges.worst or ranges.worst_all


def _before_and_after(found: CertifiedRecalibration) -> Table:
    """The worst case at the largest radius, and the estimates without a perturbation."""
    first, last = found.identity.at[-1], found.chosen.at[-1]
    largest = " (the largest)" if len(found.radii) > 1 else ""
    rows: list[Sequence[Cell] | Heading] = [Heading(capital(within(last.radius)) + largest)]
    for name, *pair in (
        ("certified Brier score ≤", *(_worst_of(at, "brier_score") for at in (first, last))),
        ("ECE ≤", *(_worst_of(at, "calibration_error") for at in (first, last))),
        ("ECE with failing certificates ≤", first.claim, last.claim),
        ("certified skill ≥", first.summary.skill, last.summary.skill),
        ("certified accuracy ≥ (unchanged)", first.summary.accuracy, last.summary.accuracy),
    ):
        if pair[1] is not None:
            rows.append([name, *pair])
    if found.chosen.clean:
        rows.append(Heading("Without a perturbation (estimates)"))
        for key, name in _CLEAN.items():
            rows.append([name, *(float(line.clean[key].value) for line in (found.identity, found.chosen))])
    columns = (Column("held-out samples"), Column("as it is", "estimate"), Column("after the map", "estimate"))
    return Table(columns, rows, f"{capital(found.chosen.name)}, on {counted(found.n_held_out, 'held-out sample')}")


@dataclass(frozen=True, eq=False)
class MapPoints:
    """A map as a line that can be drawn."""

    x: Floats
    y: Floats
    flat: Floats


def map_points(calibrator: Any) -> MapPoints:
    """Points of a map's line and its flat parts.

    Between the points the map differs from the straight line by less than can be seen. Flat parts narrower than 0.004
    are left out.
    """
    curve = getattr(calibrator, "curve_", None)
    near = np.logspace(-6, -2, 60)  # places are closer near 0 and 1, where sigmoids of logits turn fastest
    grid = np.unique(np.concatenate([near, np.arange(_GRID + 1) / _GRID, 1 - near]))
    corners = grid if curve is None else np.unique(np.concatenate([[0.0, 1.0], curve.x]))
    x = corners if corners.size <= _GRID + 2 else grid
    values = np.asarray(calibrator.predict(corners))
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    ends = np.append(starts[1:], values.size) - 1
    rows = np.stack([corners[starts], corners[ends], values[starts]], axis=1)
    return MapPoints(x, np.asarray(calibrator.predict(x)), rows[rows[:, 1] - rows[:, 0] >= _NARROWEST])


def map_chart(maps: Mapping[str, Any], held_out: BinTable | None) -> Chart:
    """Maps against the diagonal, the first of them in words, and where held-out confidences lie."""
    lines = {name: map_points(each) for name, each in maps.items()}
    first = next(iter(lines.values()))
    across = unit("confidence as it is")
    marks: list[Mark] = [Segments([(0.0, 0.0, 1.0, 1.0)], "ideal", "no change")]
    for place, (name, each) in enumerate(lines.items()):
        marks.append(Line(each.x.tolist(), each.y.tolist(), place, name, markers=False))
    if 0 < len(first.flat) <= _MOST_FLAT:
        values = first.flat[:, 2].repeat(2).tolist()
        marks.append(Points(first.flat[:, :2].ravel().tolist(), values, 0, "ends of a flat part"))
    panels = [Panel(across, unit("confidence after the map"), marks, 275)]
    if held_out is not None:
        own = counts(held_out.count.tolist())
        left, right, count = (each.tolist() for each in (held_out.edges[:-1], held_out.edges[1:], held_out.count))
        bars = Bars(left, right, [own.low] * len(count), count, "count", "held-out confidences")
        panels.append(Panel(across, own, [bars], 52))
    said = _map_in_words(first)
    caption = f"Below the diagonal the map lowers a confidence, above it raises one. {said}"
    return Chart(f"Map: {next(iter(maps))}", said, panels, caption, _map_table(first))


def _map_in_words(points: MapPoints) -> str:
    low, high = number(float(points.y[0])), number(float(points.y[-1]))
    if low == high and len(points.flat) == 1:
        return f"Every confidence becomes {low}."
    said = f"It takes 0 to {low} and 1 to {high}."
    if not len(points.flat):
        return f"{said} No part of it is flat."
    width = number(float((points.flat[:, 1] - points.flat[:, 0]).max()))
    parts = f"{counted(len(points.flat), 'flat part')}, the widest {width} wide"
    return f"{said} It has {parts}: all confidences on a flat part become the same."


def _map_table(points: MapPoints) -> Table:
    if len(points.flat):
        heads, rows, caption = ("flat from", "to", "becomes"), points.flat.tolist(), "Flat parts of the map"
    else:
        wanted = [place / 20 for place in range(21)]
        pairs = zip(points.x.tolist(), points.y.tolist(), strict=True)
        heads, rows, caption = ("confidence", "becomes"), [p for p in pairs if p[0] in wanted], "Values of the map"
    return Table([Column(head, "estimate") for head in heads], rows, caption, most=_MOST_ROWS)


def front_chart(found: CertifiedRecalibration) -> Chart | None:
    """Clean against certified Brier score of all maps: a line on the samples of the fit, points on the others."""
    identity, *maps = found.front
    constant = found.constant
    if not any(None not in point.held_out for point in maps):
        return None
    marked = [*maps, identity, *([] if constant is None else [constant])]
    everything = [*(point.fitted for point in maps), *(point.held_out for point in marked)]
    chosen = found.front[found.lines.index(found.chosen)]
    weighted = ", their mean over radii by weight" if len(found.radii) > 1 else ""
    across = _near([clean for clean, _ in everything], "Brier score without a perturbation")
    up = _near([worst for _, worst in everything], "certified Brier score")
    fitted = f"{found.method} on the {counted(found.n_fit, 'sample')} of the fit"
    labelled = list(dict.fromkeys([chosen, identity, *marked[len(maps) + 1 :], maps[0], maps[-1], *maps]))
    short = {constant: "constant"}
    texts = [short.get(each, each.name) if each.tradeoff is None else f"{each.tradeoff:g}" for each in labelled]
    same = f"the same on {counted(found.n_held_out, 'held-out sample')}"
    marks: list[Mark] = [
        Line(*_xy(point.fitted for point in maps), 0, fitted),
        Segments([tuple(map(_value, (*identity.held_out, *chosen.held_out)))], "cursor"),  # pyright: ignore
        Points(*_xy(point.held_out for point in maps), 1, same),
        Points(*_xy([identity.held_out]), "ink", "as it is, held out"),
        *([] if constant is None else [Points(*_xy([constant.held_out]), 2, "one constant confidence, held out")]),
        Words(*_xy(point.held_out for point in labelled), texts, beside=True),
    ]
    said = _front_in_words(identity, chosen)
    caption = (
        "Lower is better under attack, further left is better without one. Certified scores are over certified "
        f"samples{weighted}. {said} The maps were not fitted to held-out samples, so the points count."
    )
    heads = [Column("map")]
    for part in ("fit", "held out"):
        heads += [Column(f"{part}: clean", "estimate"), Column(f"{part}: certified", "bound", "upper")]
    rows = [[point.name, *point.fitted, *point.held_out] for point in (identity, *maps, *marked[len(maps) + 1 :])]
    title = "Clean against certified Brier score"
    return Chart(title, said, [Panel(across, up, marks, 290)], caption, Table(heads, rows, "Brier scores of each map"))


def _front_in_words(identity: FrontPoint, chosen: FrontPoint) -> str:
    clean, worst = Column("", "estimate").text, Column("", "bound", "upper").text
    name = chosen.name if chosen.tradeoff is None else f"λ = {chosen.tradeoff:g}"
    return (
        f"On held-out samples {name} takes the certified Brier score from {worst(identity.held_out[1])} to "
        f"{worst(chosen.held_out[1])}, and the clean one from {clean(identity.held_out[0])} to "
        f"{clean(chosen.held_out[0])}."
    )


def _near(values: Iterable[float | None], label: str) -> Axis:
    """An axis near the values, never so fine that rounding would be seen."""
    known = [value for value in values if value is not None]
    middle = (min(known) + max(known)) / 2
    return covering([*known, max(0.0, middle - _FINEST), middle + _FINEST], label, low=None)


def _value(value: float | None) -> float:
    return math.nan if value is None else value


def _xy(pairs: Iterable[tuple[float | None, float | None]]) -> tuple[list[float], list[float]]:
    known = list(pairs)
    return [_value(clean) for clean, _ in known], [_value(worst) for _, worst in known]


def _worst(found: CertifiedRecalibration) -> list[Block]:
    """Reliability diagrams of the worst case before and after, at every radius."""
    frames = frames_of(len(found.radii), len(found.radii) - 1, _MOST_FRAMES)
    pairs = [(found.identity.at[place], found.chosen.at[place]) for place in frames]
    if not any(after.summary.n_certified for _, after in pairs):
        return [Text("No held-out sample is certified, so there is no worst case to draw.")]
    worst = [at.summary["calibration_error"].worst for pair in pairs for at in pair]
    axis = shared_counts([None if each is None or each.attain is None else each.bins for each in worst])
    states = [_state(found, pair, axis) for pair in pairs]
    if len(frames) == 1:
        return states[0]
    names = [after.radius for _, after in pairs]
    rest = len(found.radii) - len(frames)
    note = [Text(f"The slider has {len(frames):,} of {len(found.radii):,} radii.", "note")] if rest else []
    return [Choice(_KEY, "Radius", names, len(frames) - 1, states), *note]


def _state(found: CertifiedRecalibration, pair: tuple[JudgedAt, JudgedAt], axis: Axis) -> list[Block]:
    from certcal.metrics import Reliability

    before, after = pair
    if not after.summary.n_certified:
        return [Text(f"{capital(within(after.radius))} no held-out sample is certified, so there is nothing to draw.")]
    said = (
        f"{capital(within(after.radius))} the calibration error is at most "
        f"{_worst_of(before, 'calibration_error').text} as it is and at most "
        f"{_worst_of(after, 'calibration_error').text} after the map; {after.summary.n_certified:,} of "
        f"{after.summary.n:,} held-out samples are certified."
    )
    drawn: list[Chart] = []
    for title, at in (("Worst case as it is", before), (f"Worst case after {found.chosen.name}", after)):
        worst = at.summary["calibration_error"].worst
        if worst is None or worst.attain is None or worst.bins is None:
            continue
        prepared = Reliability(worst.bins, float(worst.value), None, None, 0.95)
        where = f"{title}, radius {at.radius}" if at.radius else title
        drawn.append(
            reliability_chart(prepared, where, caption=SIGNS, signs=worst.signs, axis=axis, relation="at most")
        )
    return [Text(said), Figures(drawn)]


_Text = Callable[["Judged", "JudgedAt"], Any]


def _clean_column(key: str) -> _Text:
    return lambda line, _: float(line.clean[key].value)


def _worst_column(metric: str) -> _Text:
    return lambda _, at: at.summary[metric].worst


def _all_maps(found: CertifiedRecalibration) -> list[Block]:
    """Every map on the held-out samples: without a perturbation, and in the worst case within each radius."""
    without: list[tuple[Column, _Text]] = [
        (Column(f"clean {name}".replace("clean AUROC", "AUROC").replace(" score", ""), "estimate"), _clean_column(key))
        for key, name in _CLEAN.items()
        if found.identity.clean
    ]
    certified: list[tuple[Column, _Text]] = [
        (Column("Brier", "bound", "upper"), _worst_column("brier_score")),
        (Column("ECE", "bound", "upper"), _worst_column("calibration_error")),
        (Column("skill", "bound", "lower"), lambda _, at: at.summary.skill),
        (Column("ECE, population", "bound", "upper", priority=2), lambda _, at: at.summary.population),
        (Column("gain, population", "bound", "lower", priority=3), lambda _, at: at.gain),
    ]
    if found.chosen.at[0].claim is not None:
        certified.insert(2, (Column("ECE, claimed", "bound", "upper", priority=1), lambda _, at: at.claim))
    shown = [found.lines[k] for k in frames_of(len(found.lines), found.lines.index(found.chosen), MOST_MAPS)]
    delta = short_text(float(found.conventions["delta"]), "upper")
    said = (
        f"Numbers about the population may fail with probability {delta} each, so choose the trade-off before looking."
    )
    where = f" {within(found.radii[0])}" if len(found.radii) == 1 else ""
    clean, worst = "Without a perturbation: estimates on held-out samples", f"Worst case on held-out samples{where}"
    tables: list[Block] = [_maps_table(found, shown, without, clean, 1)] if without else []
    return [*tables, _maps_table(found, shown, certified, worst, len(found.radii), said)]


def _maps_table(
    found: CertifiedRecalibration,
    shown: Sequence[Judged],
    columns: Sequence[tuple[Column, _Text]],
    caption: str,
    radii: int,
    note: str = "",
) -> Table:
    """Maps as rows, the one that was asked for marked; with several radii, a group of rows for each."""
    rows: list[Sequence[Cell] | Heading] = []
    for place in range(radii):
        if radii > 1:
            rows.append(Heading(f"Radius {found.radii[place]}, weight {found.radius_weight[place]:.3g}"))
        for line in shown:
            mark = " ◂" if line is found.chosen else ""
            rows.append([f"{line.name}{mark}", *(text(line, line.at[place]) for _, text in columns)])
    rest = len(found.lines) - len(shown)
    more = f"{counted(rest, 'further map')} {'is' if rest == 1 else 'are'} in the JSON only." if rest else ""
    return Table(
        [Column("map"), *(column for column, _ in columns)], rows, caption, f"{note} {more}".strip(), most=10_000
    )


def _population(found: CertifiedRecalibration) -> list[Block]:
    first, last = found.identity.at[-1].summary, found.chosen.at[-1].summary
    bounds = {
        "as it is": first.population or first.population_all,
        f"after {found.chosen.name}": last.population or last.population_all,
    }
    after = list(bounds.values())[1]
    made: list[Block] = [Claim.of(after, f"After the map, the {after.name}", over=within(found.radii[-1]))]
    gain = found.chosen.at[-1].gain
    if gain is not None:
        made.append(Claim.of(gain, f"The {gain.name}".rstrip(","), over=within(found.radii[-1]), meaning=_GAIN))
    terms = list(after.terms)
    columns = [Column("population"), *(Column(name, "bound", "upper") for name in ("calibration error", *terms))]
    rows = [[name, each, *(float(each.terms[term]) for term in terms)] for name, each in bounds.items()]
    first, *others = terms_charts(bounds)
    numbers = replace(first, numbers=Table(columns, rows, "Terms of the bounds"))
    return [*made, Figures([numbers, *others]), Text(_SKILL, "note")]


def _computed(found: CertifiedRecalibration) -> list[Block]:
    """Every claim of the map that was asked for, at the largest radius."""
    last = found.chosen.at[-1]
    claims: list[tuple[str, Any, Sequence[str]]] = [
        (f"clean {each.name}", each, (definition(_METRICS[key]),)) for key, each in found.chosen.clean.items()
    ]
    claims += [
        (f"{CERTIFIED_NAMES[key]}, {samples} samples", claim, (CERTIFIED[key],))
        for key, samples, claim in last.summary.claims()
    ]
    if isinstance(last.claim, Certificate):
        claims.append((CERTIFIED_NAMES["claimed_calibration_error"], last.claim, ()))
    if last.gain is not None:
        claims.append(("gain over one constant confidence", last.gain, (_GAIN,)))
    where = f"Claims after {found.chosen.name}, {within(last.radius)}; all others are in the JSON."
    return [Text(_MAPPED), Text(where, "note"), *(_detail(*each) for each in claims)]


def _detail(name: str, claim: Any, remarks: Sequence[str]) -> Details:
    block = Claim.of(claim, capital(name), meaning=" ".join(remarks))
    size = () if isinstance(claim, Estimate) else (Text(capital(in_full(claim)), "note"),)
    return Details(f"{capital(name)}: {block.value}", [block, *size, Facts([("Samples", f"{claim.n:,}")])])


def _facts(found: CertifiedRecalibration) -> Facts:
    given = found.conventions
    radii = [
        f"{radius} (weight {weight:.3g})" if len(found.radii) > 1 else radius or "not given"
        for radius, weight in zip(found.radii, found.radius_weight, strict=True)
    ]
    level = ""
    if found.tradeoff is not None:
        level = f", λ = {found.tradeoff:g} between clean (0) and certified (1) Brier score"
    facts = [
        ("Fitted to", f"{counted(found.n_fit, 'sample')}, a share of {given['fraction']:g}"),
        ("Judged on", counted(found.n_held_out, "other sample")),
        ("Split", f"by position with seed {given['seed']}, whatever the samples hold"),
        ("Radii", ", ".join(radii)),
        ("Map", f"{found.method}{level}"),
        ("Bins", f"{given['bins']:,} of equal width, closed on the {given['closed']}"),
        ("Delta", short_text(float(given["delta"]), "upper")),
    ]
    if found.before.fingerprint is not None:
        facts.append(("Fingerprint of the samples", found.before.fingerprint))
    return Facts(facts)


def _smaller(found: CertifiedRecalibration) -> list[Callable[[], tuple[str, Mapping[str, Any]]]]:
    """What the page keeps for machines when the signs of all bins, or all maps, are too many."""
    said = "too many to be kept in this page; the JSON inside it leaves them out."

    def without_signs() -> tuple[str, Mapping[str, Any]]:
        return f"The signs of the bins are {said}", without(found.to_dict(), "signs")

    def without_maps() -> tuple[str, Mapping[str, Any]]:
        document = without(found.to_dict(), "signs")
        asked = [line for line in document["lines"] if line["tradeoff"] in (None, found.tradeoff)]
        return f"The signs of the bins and maps of other trade-offs are {said}", {**document, "lines": asked}

    return [without_signs, without_maps]
