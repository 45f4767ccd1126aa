"""Plans that are formulas alone: radii by votes, sampling weights, and the constants of published recipes."""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec import field

from certcal.lab.plans.outcome import Done, Number, OurTable, Outcome, line_charts
from certcal.lab.plans.plan import Count, Level, PaperPlan, Share, Whole


class FormulaPlan(PaperPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind."""

    layout: Literal["trivial", "radius", "weights", "constants"] = "radius"
    draws: list[Count] = field(default_factory=list[int])
    alpha: Level = 0.001
    p: list[Share] = field(default_factory=list[float])
    preset: str = ""
    """Of the recipe whose constants are printed."""
    epochs: Whole = 0


Settings = FormulaPlan


def outcome(plan: FormulaPlan, done: Done) -> Outcome:
    """The table and charts of a plan's layout."""
    del done
    layouts = {"trivial": _trivial, "radius": _radius, "weights": _weights, "constants": _constants}
    return layouts[plan.layout](plan)


def _trivial(plan: FormulaPlan) -> Outcome:
    """Average certified radius of a constant answer to two equally frequent classes, and of a given p_A everywhere."""
    from certcal.smoothing.robustness import trivial_average_radius, vote_radii

    rows: dict[str, list[Number]] = {}
    for n in plan.draws:
        even = vote_radii([round(n * p) for p in plan.p], n, 1.0, plan.alpha)
        rows[str(n)] = [trivial_average_radius([0, 1], sigma=1.0, n=n, alpha=plan.alpha), *even.tolist()]
    columns = ["always one class", *(f"p_A = {p:g}" for p in plan.p)]
    return Outcome([OurTable("table", columns, rows, "noise samples", 3)])


def _radius(plan: FormulaPlan) -> Outcome:
    from scipy.special import ndtri

    from certcal.report.charts import Axis, ticks
    from certcal.smoothing.robustness import vote_radii

    n = plan.draws[0]
    shown = vote_radii([round(n * p) for p in plan.p], n, 1.0, plan.alpha)
    rows: dict[str, list[Number]] = {f"{p:g}": [float(r)] for p, r in zip(plan.p, shown, strict=True)}
    p = np.unique(np.concatenate([np.linspace(0.51, 1.0, 200), np.linspace(0.99, 1.0, 100)]))
    radii = vote_radii(np.round(n * p).astype(np.int64), n, 1.0, plan.alpha)
    inner = p[p < 1]
    slope = np.sqrt(2 * np.pi) * np.exp(ndtri(inner) ** 2 / 2)
    across = Axis(0.5, 1.0, ticks(0.5, 1), "p_A")
    up = Axis(1.0, 10**4, tuple((10.0**k, f"{10**k:,}") for k in range(5)), "slope of the radius / σ", log=True)
    reached = f"It rises to {radii[-1]:.2f}."
    charts = line_charts(
        "Certified radius by p_A", {"": (p.tolist(), radii.tolist())}, across, "certified radius / σ", reached
    )
    charts += line_charts("Slope of the certified radius by p_A", {"": (inner.tolist(), slope.tolist())}, across, up)
    return Outcome([OurTable("table", ["radius / σ"], rows, "p_A", 2)], charts)


def _weights(plan: FormulaPlan) -> Outcome:
    from certcal.lab.training.acr import radius_weights
    from certcal.report.charts import Axis, ticks

    n = plan.draws[0]
    votes = np.arange(n // 2, n + 1)
    weights: list[list[float]] = [radius_weights(votes, n, plan.alpha, floor).tolist() for floor in plan.p]
    names = [f"p_min = {floor:.3g}" for floor in plan.p]
    rows: dict[str, list[Number]] = {
        f"{k} of {n}": [each[place] for each in weights] for place, k in enumerate(votes.tolist())
    }
    lines = {floor: ((votes / n).tolist(), each) for floor, each in zip(names, weights, strict=True)}
    chart = line_charts("Sampling weight by p_A", lines, Axis(0.5, 1.0, ticks(0.5, 1), "p_A"), "weight")
    return Outcome([OurTable("table", names, rows, "votes", 2)], chart)


def _constants(plan: FormulaPlan) -> Outcome:
    from certcal.lab.training import presets, recipe

    levels = presets("acr")[plan.preset]
    made = [recipe("acr", preset=plan.preset, sigma=sigma, epochs=plan.epochs) for sigma in levels]
    names = {"E_t": "begin", "p_t": "discard_below", "T": "sphere_steps", "ε": "sphere_step"}
    rows: dict[str, list[Number]] = {"m": [each.draws for each in made]}
    rows |= {sign: [getattr(each.own, name) for each in made] for sign, name in names.items()}
    return Outcome([OurTable("table", [str(sigma) for sigma in levels], rows, "σ", 2)])
