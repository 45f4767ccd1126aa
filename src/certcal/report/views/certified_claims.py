"""Tables of what is certified: by radius and group, everything at one radius, how it was computed, and by whom else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from certcal._base.rounding import sure_text
from certcal.claims import round_outward
from certcal.report.document import Block, Cell, Column, Heading, Table, kind_of, relation_of, text_of
from certcal.report.names import CERTIFIED, CERTIFIED_NAMES
from certcal.report.views.groups import group_head

if TYPE_CHECKING:
    from certcal.verbs.certification import Certification, CertifiedAt

KEY = "radius"
_TERMS = {
    "empirical worst case": "worst case on these samples",
    "deviation": "sampling error",
    "certificate failures": "intervals that fail",
}


def values_table(found: Certification, lines: Sequence[CertifiedAt], frames: Mapping[int, int] | None = None) -> Table:
    """A row per radius and group, with as many columns as fit."""
    partly = any(line.summary.n_certified < line.summary.n for line in lines)
    claimed = any(line.claim is not None for line in lines)
    grouped = any(line.group is not None for line in lines)
    accuracy = "base_rate" if found.binary else "certified_accuracy"

    def worst(metric: str) -> Callable[[CertifiedAt], Cell]:
        return lambda line: line.summary[metric].worst

    cells: list[tuple[bool, Column, Callable[[CertifiedAt], Cell]]] = [
        (found.radii != (None,), Column("radius", "level"), lambda line: line.radius_text),
        (grouped, Column(group_head(found.groupings, found.by)), lambda line: line.group or "all"),
        (True, Column("samples", "count", priority=11 if claimed else 2), lambda line: line.summary.n),
        (partly, Column("certified", "count", priority=10 if claimed else 2), lambda line: line.summary.n_certified),
        (
            True,
            Column(CERTIFIED_NAMES[accuracy], "bound", None if found.binary else "lower"),
            lambda line: line.summary.accuracy,
        ),
        (True, Column("ECE", "bound", "upper"), lambda line: line.headline if line.of_certified else None),
        (
            any(line.worst_apart is not None for line in lines),
            Column("ECE, if all hold", "bound", "upper", 4),
            worst("calibration_error"),
        ),
        (found.settings.adaptive, Column("AdaECE", "bound", "upper", 4), worst("equal_mass_error")),
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
        choice=None if frames is None else (KEY, frames),
        most=400,
    )


def _term(bound: Any, name: str) -> str | None:
    return None if bound is None else round_outward(bound.terms[name], "upper")


def values_by_radius(found: Certification, frames: Sequence[int]) -> list[Block]:
    """Certified values of every line; rows of the slider's radii are linked to it."""
    frame_of = {found.radii[place]: frame for frame, place in enumerate(frames)}
    rows: dict[int, int] = {}
    for place, line in enumerate(found.lines):
        if line is found.at(line.radius) and line.radius in frame_of:
            rows[place] = frame_of[line.radius]
    slides = len(frames) > 1 and any(line.worst is not None for line in found.lines)
    return [values_table(found, found.lines, rows if slides else None)]


def claims_table(one: CertifiedAt) -> Table:
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

    rows.append(Heading("Outcomes" if summary.binary else "Accuracy"))
    row(summary.accuracy.name, *(("", "", summary.accuracy) if both else (summary.accuracy,)))
    rows.append(Heading("Proper scores"))
    metric("brier_score")
    row(f"skill of these {summary.information.of}", summary.skill)
    row("skill of the best monotone map", summary.information.best_skill)
    metric("nll")
    rows.append(Heading("Calibration error"))
    ece = f"ECE, {summary.settings['bins']} bins"
    if one.claim is not None:
        row(ece, *(("", one.claim) if one.of_certified else ("", "", "", one.claim)))
    metric("calibration_error", f"{ece}, exact" if one.claim is None else "where every certificate holds")
    metric("mce")
    if "equal_mass_error" in summary.ranges:
        metric("equal_mass_error", "AdaECE, edges recomputed, bound")
        worst, everywhere = summary["equal_mass_error"].worst, summary["equal_mass_error"].worst_all
        reached = [
            None if each is None else round_outward(each.reached or 0.0, "lower") for each in (worst, everywhere)
        ]
        row("AdaECE that some confidences have", reached[0] or "undefined", "", reached[1] or "")
        if one.adaptive is not None:
            row("equal_mass_error", *(("", one.adaptive) if summary.n_certified else ("", "", "", one.adaptive)))
    metric("ks_error")
    rows.append(Heading("The same ECE in the population"))
    row(
        f"each {sure_text(summary.settings['delta'])}",
        "",
        summary.population or "undefined",
        "",
        summary.population_all,
    )
    for sign, (term, name) in zip("=++", _TERMS.items(), strict=True):
        row(f"{sign} {name}", "", _term(summary.population, term) or "", "", _term(summary.population_all, term))
    return Table([Column("claim"), *(Column(head, "bound") for head in heads)], rows)


def computed_table(one: CertifiedAt) -> Table:
    """How every claim was computed."""
    rows: list[list[Cell]] = []
    for key, samples, claim in one.claims():
        value = f"{relation_of(claim)} {text_of(claim)}".strip()
        how = CERTIFIED[f"claimed_{key}" if claim is one.claim or claim is one.adaptive else key]
        rows.append([CERTIFIED_NAMES[key], kind_of(claim), samples, claim.n, value, how])
    columns = (
        Column("claim"),
        Column("kind"),
        Column("over"),
        Column("samples", "count"),
        Column("value"),
        Column("how it is computed"),
    )
    note = "Claims at other radii are in the JSON." if one.radius_text else ""
    return Table(columns, rows, at_radius("The claims", one), note)


def methods_table(lines: Sequence[CertifiedAt]) -> list[Block]:
    """What the published methods reach, beside the exact worst case."""
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


def at_radius(what: str, one: CertifiedAt) -> str:
    """A title with the radius it is about, if there is one."""
    return f"{what} at radius {one.radius_text}" if one.radius_text else what
