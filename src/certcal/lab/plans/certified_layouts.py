"""Tables and charts of certified networks: the layouts that plans of this kind can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from certcal._base.text import capital, counted
from certcal.lab.plans.certified import CertifiedPlan, PlannedModel
from certcal.lab.plans.outcome import MISSING, Number, OurTable, Outcome, line_charts
from certcal.lab.plans.paired import paired_over_seeds
from certcal.report.charts import MOST_SERIES, Chart, Heatmap, Mark, Panel, Points, Segments, covering

_SOLVERS = {"ADMM": "admm", "dECE": "dece", "Brier confidences": "brier-confidences", "exact": "exact"}
# What is correlated by rank (Figure 19).
_RANKED = ("CA", "CBS", "ACCE", "ACR")


@dataclass(frozen=True)
class CertifiedNetwork(PlannedModel):
    """A network with what is certified of it: a line per radius, None where nothing is."""

    at: Sequence[Mapping[str, Any] | None]
    whole: Mapping[str, Any]

    def value(self, place: int, key: str) -> float | None:
        """A number at a radius by its place; None where nothing is certified."""
        line = self.at[place]
        return None if line is None else line.get(key)


def comparable(networks: Sequence[CertifiedNetwork], place: int, within: float) -> tuple[float, list[CertifiedNetwork]]:
    """The highest certified accuracy at a radius, and the networks that are about as accurate; none if it is 0."""
    there = [(each, accuracy) for each in networks if (accuracy := each.value(place, "accuracy")) is not None]
    highest = max((accuracy for _, accuracy in there), default=0.0)
    return highest, [each for each, accuracy in there if highest > 0 and accuracy >= highest - within - 1e-12]


def is_pareto(one: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    """Whether no other accuracy and calibration error is as good in both and better in one (appendix I.2).

    Examples
    --------
    >>> points = [(0.8, 0.3), (0.7, 0.2), (0.7, 0.3)]
    >>> [is_pareto(each, points) for each in points]
    [True, True, False]
    """
    return not any(other[0] >= one[0] and other[1] <= one[1] and other != one for other in others)


def _solver(plan: CertifiedPlan) -> str:
    """What stands for ACCE: the best of the published grid of ADMM, or of its two runs."""
    return next((name for name in ("admm-grid", "admm") if name in plan.certify.solvers), "exact")


def _percent(value: float | None) -> Number:
    return MISSING if value is None else 100 * value


def best_of_each_method(plan: CertifiedPlan, networks: Sequence[CertifiedNetwork]) -> Outcome:
    """The rule of Emde et al. (Tables 2 and 6 to 10): of those near the highest accuracy, each method's best."""
    metrics = {"ACCE": _solver(plan), "CBS": "brier", "exact": "exact"}
    methods = list(dict.fromkeys([*(each.row for each in plan.baselines), *(each.row for each in plan.methods)]))
    rows: dict[str, list[Number]] = {"CA": []}
    rows |= {f"{metric} | {method}": [] for metric in metrics for method in methods}
    for place in range(len(plan.radii)):
        highest, near = comparable(networks, place, plan.within)
        rows["CA"].append(f"[{100 * (highest - plan.within):.0f}, {100 * highest:.0f}]" if near else MISSING)
        for metric, key in metrics.items():
            for method in methods:
                values = [value for each in near if each.row == method if (value := each.value(place, key)) is not None]
                rows[f"{metric} | {method}"].append(_percent(min(values, default=None)))
    table = OurTable("table", [*plan.radii], rows, "metric, method")
    note = "ACCE is what ADMM finds, a lower bound; exact is the largest error that the certified intervals allow."
    return Outcome([table], [], [note])


def every_baseline(plan: CertifiedPlan, networks: Sequence[CertifiedNetwork]) -> Outcome:
    """Certified metrics of each baseline, and at which radii no other beats it (Tables 4 and 5)."""
    metrics = {"ACCE": _solver(plan), "CA": "accuracy", "CBS": "brier", "exact": "exact"}
    columns = [f"{metric} {radius:.2f}" for metric in metrics for radius in plan.radii]
    rows: dict[str, list[Number]] = {}
    for each in networks:
        cells = [each.value(place, key) for key in metrics.values() for place in range(len(plan.radii))]
        of_ca = [column.startswith("CA") for column in columns]
        shown = [0.0 if value is None and ca else _percent(value) for value, ca in zip(cells, of_ca, strict=True)]
        efficient = [
            f"{radius:.2f}"
            for place, radius in enumerate(plan.radii)
            if each.at[place] is not None and is_pareto(_point(each, place), [_point(o, place) for o in networks])
        ]
        base = each.baseline
        name = each.baseline.name or f"T={base.attack_steps}, m={base.draws}, σ={base.sigma:g}, ε={base.epsilon:g}"
        rows[name] = [*shown, ", ".join(efficient) or MISSING]
    table = OurTable("table", [*columns, "baseline for radius"], rows, "model")
    note = "The last column is here where no other model has both more certified accuracy and a smaller exact error."
    return Outcome([table], [], [note])


def _point(each: CertifiedNetwork, place: int) -> tuple[float, float]:
    accuracy, error = each.value(place, "accuracy"), each.value(place, "exact")
    return (-1.0, 2.0) if accuracy is None or error is None else (accuracy, error)


def changes(plan: CertifiedPlan, networks: Sequence[CertifiedNetwork]) -> Outcome:
    """What fine-tuning changes, for every baseline at every radius that it was chosen for (Figures 17 and 18).

    Or for the most accurate of these at each radius alone (Figure 4).
    """
    pairs: list[tuple[int, CertifiedNetwork]] = []
    for place, radius in enumerate(plan.radii):
        chosen = [each for each in networks if each.name == each.baseline.title and radius in each.baseline.radii]
        chosen = [each for each in chosen if each.at[place] is not None]
        if plan.layout == "changes" and chosen:
            chosen = [max(chosen, key=lambda each: each.value(place, "accuracy") or 0.0)]
        pairs += [(place, each) for each in chosen]
    solver, rows, charts = _solver(plan), dict[str, list[Number]](), list[Chart]()
    methods = [each.row for each in plan.methods]
    for place, base in pairs:
        accuracy, error = base.value(place, "accuracy") or 0.0, base.value(place, solver) or 0.0
        moved = [
            (each, 100 * (there["accuracy"] - accuracy), 100 * (there[solver] - error))
            for each in networks
            if each.baseline is base.baseline and each is not base and (there := each.at[place]) is not None
        ]
        named = f"R = {plan.radii[place]:g}, {base.name}"
        for method in (*methods, "any ACT"):
            own = [(x, y) for each, x, y in moved if each.row == method or (method == "any ACT" and "ACT" in each.row)]
            best = min((y for x, y in own if x >= 0), default=None)
            gained = None if best is None else max(x for x, y in own if y == best and x >= 0)
            rows[f"{named} | {method}"] = [len(own), best, gained]
        if moved:
            charts.append(_scatter(named, methods, moved))
    columns = ["models", "ACCE, points", "CA, points"]
    note = "Of the models that lose no certified accuracy against their baseline, the one whose ACCE falls most."
    return Outcome([OurTable("changes", columns, rows, "baseline, method", 1)], charts, [note])


def _scatter(title: str, methods: Sequence[str], moved: Sequence[tuple[CertifiedNetwork, float, float]]) -> Chart:
    across = covering([0.0, *(x for _, x, _ in moved)], "change of certified accuracy, points", low=None)
    up = covering([0.0, *(y for _, _, y in moved)], "change of ACCE, points", low=None)
    marks: list[Mark] = [
        Segments([(across.low, 0.0, across.high, 0.0)], "zero"),
        Segments([(0.0, up.low, 0.0, up.high)], "zero"),
    ]
    for number, method in enumerate(methods):
        own = [(each.name, x, y) for each, x, y in moved if each.row == method]
        if own:
            names, x, y = zip(*own, strict=True)
            marks.append(Points(x, y, number % MOST_SERIES, method, names))
    said = f"{counted(len(moved), 'model')}; the baseline is at the origin, better is down and to the right."
    return Chart(title, said, [Panel(across, up, marks, 240)], size="small")


def _by_noise(networks: Sequence[CertifiedNetwork]) -> dict[str, CertifiedNetwork]:
    several = len({each.kind for each in networks}) > 1
    return {f"σ = {each.baseline.sigma:g}{f', {each.kind}' if several else ''}": each for each in networks}


def _curves(key: str, title: str) -> Callable[[CertifiedPlan, Sequence[CertifiedNetwork]], Outcome]:
    """A layout: one number by radius, a line per noise level."""

    def layout(plan: CertifiedPlan, networks: Sequence[CertifiedNetwork]) -> Outcome:
        series = {
            name: [each.value(place, key) for place in range(len(plan.radii))]
            for name, each in _by_noise(networks).items()
        }
        rows = {name: [_percent(value) for value in values] for name, values in series.items()}
        tables = [OurTable("table", [*plan.radii], rows, f"{title}, %")]
        increases: dict[str, list[Number]] = {}
        if key == "brier" and 0.0 in plan.radii and 0.25 in plan.radii:
            first, there = plan.radii.index(0.0), plan.radii.index(0.25)
            for name, values in series.items():
                low, high = values[first], values[there]
                increases[name] = [100 * (high / low - 1) if low and high is not None else MISSING]
            tables.append(OurTable("increase", ["0 to 0.25"], increases, f"increase of the {title}, %", 0))
        return Outcome(tables, _charts(capital(title), plan, series, title))

    return layout


def _charts(title: str, plan: CertifiedPlan, series: Mapping[str, Sequence[float | None]], y: str) -> list[Chart]:
    said = "By radius; a gap where nothing is certified."
    return line_charts(title, {name: (plan.radii, values) for name, values in series.items()}, "radius", y, said)


def solvers(plan: CertifiedPlan, networks: Sequence[CertifiedNetwork]) -> Outcome:
    """What each method finds of the largest calibration error, by radius and noise level (Figures 3 and 15)."""
    series, largest, every = dict[str, list[float | None]](), dict[str, list[Number]](), list[float]()
    for name, each in _by_noise(networks).items():
        keys = {title: key for title, key in _SOLVERS.items() if key == "exact" or key in plan.certify.solvers}
        found = {title: [each.value(k, key) for k in range(len(plan.radii))] for title, key in keys.items()}
        series |= {f"{name} | {title}": values for title, values in found.items()}
        both = zip(found.get("ADMM", ()), found.get("dECE", ()), strict=False)
        gaps = [one - other for one, other in both if one is not None and other is not None]
        every += gaps
        largest[name] = [max(gaps, default=MISSING), min(gaps, default=MISSING)]
    largest["any σ"] = [max(every, default=MISSING), min(every, default=MISSING)]
    rows = {name: [_percent(value) for value in values] for name, values in series.items()}
    tables = [OurTable("table", [*plan.radii], rows, "σ, method")]
    tables.append(OurTable("ADMM over dECE", ["largest", "smallest"], largest, "σ", 3))
    charts = _charts("Calibration error", plan, series, "calibration error")
    return Outcome(tables, charts, ["No method exceeds the exact value; the paper does not have it."])


def correlations_by_radius(plan: CertifiedPlan, networks: Sequence[CertifiedNetwork]) -> Outcome:
    """Spearman's rank correlations of accuracy, calibration and average radius over all models (Figure 19)."""
    from certcal.lab.study import correlations

    solver = _solver(plan)
    pairs = list(combinations(range(len(_RANKED)), 2))
    rows: dict[str, list[Number]] = {f"{_RANKED[i]} – {_RANKED[j]}": [] for i, j in pairs}
    charts: list[Chart] = []
    pooled: list[tuple[float, float]] = []
    for place, radius in enumerate(plan.radii):
        lines = [
            [line["accuracy"], line["brier"], line[solver], each.whole["average_certified_radius"]]
            for each in networks
            if (line := each.at[place]) is not None
        ]
        pooled += [(line[1], line[2]) for line in lines]
        values = np.asarray(correlations(lines, _RANKED, method="spearman").values) if len(lines) > 2 else None
        for i, j in pairs:
            seen = None if values is None else float(values[i][j])
            rows[f"{_RANKED[i]} – {_RANKED[j]}"].append(MISSING if seen is None or np.isnan(seen) else seen)
        if values is not None:
            said = f"Over {counted(len(lines), 'model')}."
            charts.append(Chart(f"R = {radius:g}", said, [Heatmap(_RANKED, values)], size="small"))
    whole = correlations(pooled, ("CBS", "ACCE"), method="spearman").values[0][1] if len(pooled) > 2 else None
    tables = [OurTable("table", [*plan.radii], rows, "Spearman's correlation")]
    tables.append(OurTable("all radii", ["ACCE – CBS"], {"all models": [MISSING if whole is None else float(whole)]}))
    return Outcome(tables, charts)


LAYOUTS: Mapping[str, Callable[[Any, Sequence[CertifiedNetwork]], Outcome]] = {
    "best": best_of_each_method,
    "baselines": every_baseline,
    "changes": changes,
    "changes of all": changes,
    "brier": _curves("brier", "certified Brier score"),
    "constant brier": _curves("constant_brier", "certified Brier score on a constant subset"),
    "widths": _curves("width", "mean width of the intervals"),
    "solvers": solvers,
    "correlations": correlations_by_radius,
    "paired": paired_over_seeds,
}
