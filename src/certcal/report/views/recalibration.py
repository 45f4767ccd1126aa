"""What maps do to certified confidences: the words and the layout of a CertifiedRecalibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.rounding import claim_text, minus, sure_text
from certcal._base.text import capital, counted
from certcal.binning import bin_table, equal_width_edges
from certcal.claims import Certificate, Estimate, in_full, short_text
from certcal.report.charts import Axis, Chart, Line, Mark, Panel, Points, Segments, Words, covering
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
    left_out,
    without,
)
from certcal.report.names import CALIBRATION_ERROR, CERTIFIED, CERTIFIED_NAMES, definition
from certcal.report.reliability import shared_counts
from certcal.report.views.bounds import terms_charts
from certcal.report.views.recalibrated_predictions import map_chart, split_facts
from certcal.report.views.worst_case import by_radius, extreme_chart
from certcal.verbs.certified_recalibration import within

if TYPE_CHECKING:
    from certcal.calibrators import FrontPoint, JudgedAt, JudgedMap
    from certcal.verbs.certified_recalibration import CertifiedRecalibration

Floats = NDArray[np.float64]

_KEY = "radius"
MOST_MAPS = 60
_MOST_FRAMES = 40
_FINEST = 0.001  # differences of scores below this are not drawn apart
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
    drawn, worst = charts(found), _worst_case_section(found)
    picture = _picture(found, worst) or [Figures(drawn[:1])]
    of_map = isinstance(picture[0], Figures)
    return Report(
        "Which confidences survive an attack after recalibration?",
        _headline_of_recalibration(found),
        [
            Section("Before and after", _before_and_after(found), brief=True),
            Section("Map", Figures(drawn[:1]), pictured=of_map),
            Section("Clean and certified Brier scores", Figures(drawn[1:]) if drawn[1:] else None),
            Section("Worst case by radius" if len(found.radii) > 1 else "Worst case", worst, pictured=not of_map),
            Section("All maps", _all_maps(found), brief=True, folded=True),
            Section("Population", _population_section(found)),
        ],
        [
            Section("How the numbers were computed", _definitions_section(found)),
            Section("Samples and settings", _facts_of_recalibration(found)),
        ],
        notes=notes,
        smaller=_smaller_documents(found),
        picture=picture,
    )


def _picture(found: CertifiedRecalibration, worst: Sequence[Block]) -> list[Block]:
    """The worst case after the map, and before it; of several radii there is a slider further below."""
    drawn = [[chart] for block in worst if isinstance(block, Figures) for chart in block.charts]
    if len(found.radii) > 1 or len(drawn) != 2:
        return []
    said = [Text(each.text, "note") for each in worst if isinstance(each, Text)]
    return [Choice("state", "Confidences", ("before the map", "after"), 1, drawn, switch=True), *said]


def charts(found: CertifiedRecalibration) -> Sequence[Chart]:
    """The map that was asked for, and clean against certified Brier scores of all maps."""
    beside = [line for line in (found.lines[1], found.lines[-1]) if line is not found.chosen]
    held_out = None
    if found.before.confidence is not None:
        held_out = bin_table(found.before.confidence, found.before.correct, equal_width_edges(50))
    drawn = {line.name: line.calibrator for line in (found.chosen, *beside)}
    front = front_chart(found)
    return [map_chart(drawn, held_out), *([] if front is None else [front])]


def _headline_of_recalibration(found: CertifiedRecalibration) -> list[Block]:
    (claim, what, over), *_ = found.top()
    return [Claim.of(claim, what, over=over, meaning=CALIBRATION_ERROR, settings=False), Text(verdict(found))]


def verdict(found: CertifiedRecalibration, radius: int = -1) -> str:
    """Say whether the recalibrated confidences are certified to beat one constant confidence on the held-out samples.

    The first sentence is exact about the held-out samples whose certificates hold. What follows about the population is
    the bound of :func:`certcal.calibrators.gain_over`, with the constant that comes from the samples of the fit.
    """
    before, after = found.identity.at[radius], found.chosen.at[radius]
    information = after.summary.information
    if information.finding == "undefined":
        return information.verdict_at(after.radius or None)
    where = f"At radius {after.radius}" if after.radius else "Inside the given intervals"
    where += ", the recalibrated confidences"
    samples = counted(information.n, "certified held-out sample")
    skill = f"{minus(information.skill.text)} (as they were: {minus(before.summary.skill.text)})"
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
        f"one constant, the accuracy of the certified samples of the fit ({gain.settings['constant']:.4f}): "
        f"{sure_text(gain.delta)}."
    )


def _worst_of(at: JudgedAt, metric: str) -> Any:
    ranges = at.summary[metric]
    return ranges.worst or ranges.worst_all


def _exact_ece_name(found: CertifiedRecalibration) -> str:
    """What the exact worst case is called: where a claim counts certificates that fail, the claim is the ECE."""
    return "ECE" if found.chosen.at[0].claim is None else "ECE, if all hold"


def _before_and_after(found: CertifiedRecalibration) -> Table:
    first, last = found.identity.at[-1], found.chosen.at[-1]
    largest = " (the largest)" if len(found.radii) > 1 else ""
    rows: list[Sequence[Cell] | Heading] = [Heading(capital(within(last.radius)) + largest)]
    for name, *pair in (
        ("certified Brier score ≤", *(_worst_of(at, "brier_score") for at in (first, last))),
        ("ECE ≤", first.claim, last.claim),
        (f"{_exact_ece_name(found)} ≤", *(_worst_of(at, "calibration_error") for at in (first, last))),
        ("certified skill ≥", first.summary.skill, last.summary.skill),
        ("certified accuracy ≥ (unchanged)", first.summary.accuracy, last.summary.accuracy),
    ):
        if pair[1] is not None:
            rows.append([name, *pair])
    if found.chosen.clean:
        rows.append(Heading("Without a perturbation (estimates)"))
        for key, name in _CLEAN.items():
            rows.append([name, *(float(line.clean[key].value) for line in (found.identity, found.chosen))])
    columns = (Column("held-out samples"), Column("before", "estimate"), Column("after the map", "estimate"))
    return Table(columns, rows, f"{capital(found.chosen.name)}, on {counted(found.n_held_out, 'held-out sample')}")


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
        Line(*_coordinates(point.fitted for point in maps), 0, fitted),
        Segments([tuple(map(_or_nan, (*identity.held_out, *chosen.held_out)))], "cursor"),  # pyright: ignore
        Points(*_coordinates(point.held_out for point in maps), 1, same),
        Points(*_coordinates([identity.held_out]), "ink", "before, held out"),
        *(
            []
            if constant is None
            else [Points(*_coordinates([constant.held_out]), 2, "one constant confidence, held out")]
        ),
        Words(*_coordinates(point.held_out for point in labelled), texts, beside=True),
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


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _coordinates(pairs: Iterable[tuple[float | None, float | None]]) -> tuple[list[float], list[float]]:
    known = list(pairs)
    return [_or_nan(clean) for clean, _ in known], [_or_nan(worst) for _, worst in known]


def _worst_case_section(found: CertifiedRecalibration) -> list[Block]:
    frames = frames_of(len(found.radii), len(found.radii) - 1, _MOST_FRAMES)
    pairs = [(found.identity.at[place], found.chosen.at[place]) for place in frames]
    if not any(after.summary.n_certified for _, after in pairs):
        return [Text("No held-out sample is certified, so there is no worst case to draw.")]
    worst = [at.summary["calibration_error"].worst for pair in pairs for at in pair]
    axis = shared_counts([None if each is None or each.attain is None else each.bins for each in worst])
    states = [_worst_case_at(found, pair, axis) for pair in pairs]
    names = [after.radius for _, after in pairs]
    return by_radius(_KEY, names, len(frames) - 1, states, len(found.radii))


def _worst_case_at(found: CertifiedRecalibration, pair: tuple[JudgedAt, JudgedAt], axis: Axis) -> list[Block]:
    before, after = pair
    if not after.summary.n_certified:
        return [Text(f"{capital(within(after.radius))} no held-out sample is certified, so there is nothing to draw.")]
    hold = "" if after.claim is None else " where every certificate holds"
    said = (
        f"{capital(within(after.radius))} the calibration error{hold} is at most "
        f"{claim_text(_worst_of(before, 'calibration_error'))} before and at most "
        f"{claim_text(_worst_of(after, 'calibration_error'))} after the map; {after.summary.n_certified:,} of "
        f"{after.summary.n:,} held-out samples are certified."
    )
    drawn: list[Chart] = []
    for title, at in (("Worst case before the map", before), (f"Worst case after {found.chosen.name}", after)):
        worst = at.summary["calibration_error"].worst
        if worst is None or worst.attain is None or worst.bins is None:
            continue
        drawn.append(extreme_chart(worst, f"{title}, radius {at.radius}" if at.radius else title, axis, f"ECE{hold}"))
    return [Text(said), Figures(drawn)]


_Cell = tuple[Column, Callable[["JudgedMap", "JudgedAt"], Any]]


def _all_maps(found: CertifiedRecalibration) -> list[Block]:
    clean: list[_Cell] = [
        (Column("clean Brier", "estimate"), lambda line, _: float(line.clean["brier_score"].value)),
        (Column("clean ECE", "estimate"), lambda line, _: float(line.clean["ece"].value)),
        (Column("AUROC", "estimate"), lambda line, _: float(line.clean["auroc"].value)),
    ]
    certified: list[_Cell] = [
        (Column("Brier", "bound", "upper"), lambda _, at: at.summary["brier_score"].worst),
        (
            Column(_exact_ece_name(found), "bound", "upper", priority=1),
            lambda _, at: at.summary["calibration_error"].worst,
        ),
        (Column("skill", "bound", "lower"), lambda _, at: at.summary.skill),
        (Column("ECE, population", "bound", "upper", priority=2), lambda _, at: at.summary.population),
        (Column("gain, population", "bound", "lower", priority=3), lambda _, at: at.gain),
    ]
    if found.chosen.at[0].claim is not None:
        certified.insert(1, (Column("ECE", "bound", "upper"), lambda _, at: at.claim))
    sure = sure_text(float(found.conventions["delta"]))
    said = f"Numbers about the population are {sure} each, so choose the trade-off before looking."
    where = f" {within(found.radii[0])}" if len(found.radii) == 1 else ""
    tables = [_maps_table(found, certified, f"Worst case on held-out samples{where}", len(found.radii), said)]
    if found.identity.clean:
        tables.insert(0, _maps_table(found, clean, "Without a perturbation: estimates on held-out samples", 1))
    return [*tables]


def _maps_table(
    found: CertifiedRecalibration, cells: Sequence[_Cell], caption: str, radii: int, note: str = ""
) -> Table:
    shown = [found.lines[k] for k in frames_of(len(found.lines), found.lines.index(found.chosen), MOST_MAPS)]
    rows: list[Sequence[Cell] | Heading] = []
    for place in range(radii):
        if radii > 1:
            rows.append(Heading(f"Radius {found.radii[place]}, weight {found.radius_weight[place]:.3g}"))
        for line in shown:
            mark = " ◂" if line is found.chosen else ""
            rows.append([f"{line.name}{mark}", *(cell(line, line.at[place]) for _, cell in cells)])
    rest = len(found.lines) - len(shown)
    more = f"{counted(rest, 'further map')} {'is' if rest == 1 else 'are'} in the JSON only." if rest else ""
    columns = [Column("map"), *(column for column, _ in cells)]
    return Table(columns, rows, caption, f"{note} {more}".strip(), most=10_000)


def _population_section(found: CertifiedRecalibration) -> list[Block]:
    first, last = found.identity.at[-1].summary, found.chosen.at[-1].summary
    bounds = {
        "before": first.population or first.population_all,
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


def _definitions_section(found: CertifiedRecalibration) -> list[Block]:
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


def _facts_of_recalibration(found: CertifiedRecalibration) -> Facts:
    radii = [
        f"{radius} (weight {weight:.3g})" if len(found.radii) > 1 else radius or "not given"
        for radius, weight in zip(found.radii, found.radius_weight, strict=True)
    ]
    level = ""
    if found.tradeoff is not None:
        level = f", λ = {found.tradeoff:g} between clean (0) and certified (1) Brier score"
    facts = [
        *split_facts(found),
        ("Radii", ", ".join(radii)),
        ("Map", f"{found.method}{level}"),
        ("Delta", short_text(float(found.conventions["delta"]), "upper")),
    ]
    if found.before.fingerprint is not None:
        facts.append(("Fingerprint of the samples", found.before.fingerprint))
    return Facts(facts)


def _smaller_documents(found: CertifiedRecalibration) -> list[Callable[[], tuple[str, Mapping[str, Any]]]]:
    def of_this_tradeoff() -> Mapping[str, Any]:
        document = without(found.to_dict(), "signs")
        return {**document, "lines": [each for each in document["lines"] if each["tradeoff"] in (None, found.tradeoff)]}

    return [
        left_out("The signs of the bins", lambda: without(found.to_dict(), "signs")),
        left_out("The signs of the bins and maps of other trade-offs", of_this_tradeoff),
    ]
