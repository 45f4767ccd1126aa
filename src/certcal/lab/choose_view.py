"""Which model has the best certified calibration: the words and the layout of a ModelChoice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from certcal._base.text import counted
from certcal.claims import round_outward
from certcal.report.charts import MOST_SERIES, Chart, Mark, Panel, Points, Segments, covering, curves
from certcal.report.document import (
    NOTHING,
    Block,
    Cell,
    Claim,
    Column,
    Figures,
    Heading,
    Report,
    Section,
    Strong,
    Table,
    Text,
)
from certcal.report.names import CALIBRATION_ERROR
from certcal.verbs.certification import radius_text

if TYPE_CHECKING:
    from certcal.lab.choose import CertifiedModel, ChosenAt, ModelChoice

_MOST_LINES = 12
_RULE = (
    "At each radius, models whose certified accuracy is at most {within:g} below the highest are compared, and each "
    "method is represented by its best: the rule of Emde et al. (2024). Calibration errors are exact worst "
    "cases where every certificate holds; the claim of certify, which averages the noise of the samples, is another "
    "number."
)
_CHANGES = (
    "Certified accuracy and certified calibration error, each model against the most accurate one of the baseline."
)
_OPTIMISTIC = (
    "Values hold on these samples where the certificates do. The best of several models is chosen by these very "
    "numbers, so expect more on other samples."
)


def view(found: ModelChoice, *, remarks: Sequence[str] = ()) -> Report:
    """The report of a choice."""
    return Report(
        "Which model has the best certified calibration?",
        [_headline(found), *map(Text, remarks)],
        [
            Section(
                "Best calibration at comparable accuracy",
                [_best_table(found, "error"), _best_table(found, "brier")],
                brief=True,
            ),
            Section(f"Change against {found.baseline}", Figures(charts(found), _CHANGES)),
            Section("Certified Brier score on a constant subset", _constant_subset_chart(found)),
            Section(
                "Rank correlations by radius", _rank_correlations(found) if found.correlations else None, brief=True
            ),
        ],
        [Section("All models", _models_table(found))],
        ", ".join(found.methods),
        f"{counted(len(found.constant), 'model')} on the same {counted(found.n, 'sample')}; "
        f"{found.conventions['confidence']} certificates, alpha {found.conventions['alpha']:g} each; "
        f"{found.conventions['bins']} bins",
        [*found.notes, _RULE.format(within=found.conventions["within"]), _OPTIMISTIC],
    )


def _headline(found: ModelChoice) -> Claim:
    one = found.headline
    each = next(each for each in found.at if each.radius == one.radius)
    least = round_outward(max(0.0, each.highest - found.conventions["within"]), "lower")
    where = radius_text(each.radius) + ("" if each is found.at[-1] else ", the largest at which anything is certified")
    what = f"At radius {where}, {one.method} has the smallest calibration error where every certificate holds, which"
    over = f"among models with a certified accuracy of at least {least}"
    made = Claim.of(one.error, what, over=over, meaning=CALIBRATION_ERROR)
    return replace(made, assumptions=())  # its probability says the same


def _best_table(found: ModelChoice, key: str) -> Table:
    def chosen(each: ChosenAt) -> dict[str, CertifiedModel]:
        return dict(each.by_error if key == "error" else each.by_brier)

    def value(one: CertifiedModel) -> float:
        return one.error.value if key == "error" else one.brier.value

    rows: list[Sequence[Cell] | Heading] = [
        [
            "certified accuracy",
            *(_compared_accuracies(each, found.conventions["within"]) for each in found.at),
        ]
    ]
    for method in found.methods:
        cells: list[Cell] = []
        for each in found.at:
            best = chosen(each)
            if method not in best:
                cells.append(NOTHING)
                continue
            text = best[method].error.text if key == "error" else best[method].brier.text
            cells.append(Strong(text) if value(best[method]) == min(map(value, best.values())) else text)
        rows.append([method, *cells])
    name = "calibration error if all certificates hold" if key == "error" else "Brier score"
    heads = [Column("method"), *(Column(_radius_head(each)) for each in found.at)]
    return Table(heads, rows, f"Certified {name}, at most; the smallest stands out", _dash_note(found))


def _radius_head(each: ChosenAt) -> str:
    return f"R\u00a0=\u00a0{radius_text(each.radius)}"


def _dash_note(found: ModelChoice) -> str:
    empty = [radius_text(each.radius) for each in found.at if not each.by_error]
    said = [f"at radius {', '.join(empty)} no model certifies anything"] if empty else []
    if any(0 < len(each.by_error) < len(found.methods) for each in found.at):
        said.append(f"{'elsewhere ' if empty else ''}no model of the method is about as accurate as the best")
    return f"A dash: {'; '.join(said)}." if said else ""


def _compared_accuracies(each: ChosenAt, within: float) -> str:
    return f"[{max(0.0, each.highest - within):.3f}, {each.highest:.3f}]" if each.by_error else NOTHING


def charts(found: ModelChoice) -> list[Chart]:
    """Accuracy and calibration error of every model against the most accurate baseline, by radius (Figure 4)."""
    made: list[Chart] = []
    for each in found.at:
        changed = found.changes(each.radius)
        if not changed:
            continue
        across = covering([0.0, *(x for _, x, _ in changed)], "change of accuracy", low=None)
        up = covering([0.0, *(y for _, _, y in changed)], "change of ECE", low=None)
        marks: list[Mark] = [
            Segments([(across.low, 0.0, across.high, 0.0)], "zero"),
            Segments([(0.0, up.low, 0.0, up.high)], "zero"),
        ]
        for place, method in enumerate(found.methods):
            own = [(one, x, y) for one, x, y in changed if one.method == method]
            if own:
                names = [f"{method}, {one.name}" for one, _, _ in own]
                marks.append(Points([x for _, x, _ in own], [y for _, _, y in own], place % MOST_SERIES, method, names))
        best = min(changed, key=lambda each: each[2])
        said = f"Largest fall of the calibration error: {best[2]:+.4f} by {best[0].method}, accuracy {best[1]:+.4f}."
        made.append(Chart(f"Radius {radius_text(each.radius)}", said, [Panel(across, up, marks, 240)], size="small"))
    return made


def _constant_subset_chart(found: ModelChoice) -> Figures | None:
    """Certified Brier score over samples certified at every radius (Figure 16b)."""
    lines = {
        f"{method}, {name.rstrip('/').split('/')[-1]} ({n})": values
        for (method, name), (n, values) in found.constant.items()
        if n
    }
    radii = [float(radius) for radius in found.conventions["radii"]]
    if not lines or len(radii) < 2:
        return None
    shown = dict(list(lines.items())[:_MOST_LINES])
    chart = curves(
        "Certified Brier score, the same samples at all radii",
        radii,
        shown,
        y_label="Brier score",
        description=f"{len(lines)} models over samples certified at every radius; their number is in brackets.",
        most=1.0,
        guide=True,
        caption="Samples certified at the largest radius only, so the certified accuracy does not change along a line. "
        "Computed at the marked radii; the light lines only lead the eye.",
    )
    return Figures([chart])


def _rank_correlations(found: ModelChoice) -> Table:
    """Spearman's correlations of each pair, by radius (Figure 19)."""
    names = list(next(iter(found.correlations.values())).names)
    matrices = [found.correlations.get(each.radius) for each in found.at]
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    rows: list[Sequence[Cell] | Heading] = [
        [f"{names[i]} – {names[j]}", *(None if m is None else float(m.values[i][j]) for m in matrices)]
        for i, j in pairs
    ]
    heads = [Column("pair"), *(Column(_radius_head(each), "estimate") for each in found.at)]
    return Table(heads, rows, "Spearman's rank correlation over all models")


def _models_table(found: ModelChoice) -> Block:
    efficient = {id(one) for each in found.at for one in each.pareto}
    rows: list[Sequence[Cell] | Heading] = []
    for each in found.at:
        rows.append(Heading(f"radius {radius_text(each.radius)}"))
        here = {(one.method, one.name): one for one in found.models if one.radius == each.radius}
        for method, name in found.constant:
            one = here.get((method, name))
            if one is None:
                rows.append([method, name, 0, 0.0, None, None, None, ""])
                continue
            mark = "yes" if id(one) in efficient else ""
            rows.append([method, name, one.n_certified, one.accuracy, one.error, one.error_all, one.brier, mark])
    heads = [
        Column("method"),
        Column("model", priority=3),
        Column("certified", "count", priority=4),
        Column("certified accuracy", "bound", "lower"),
        Column("ECE", "bound", "upper"),
        Column("ECE, all", "bound", "upper", 2),
        Column("Brier", "bound", "upper"),
        Column("Pareto", priority=1),
    ]
    return Table(heads, rows, "Pareto: no other model has more accuracy and a smaller error", most=400)
