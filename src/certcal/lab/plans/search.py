"""Plans about the search for the largest calibration error: random trials of ADMM and dECE, and how ADMM converges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from statistics import median
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from certcal._base.checks import InputError
from certcal.lab.plans import certified
from certcal.lab.plans.certified import CertifiedPlan
from certcal.lab.plans.jobs import Job, JobContext
from certcal.lab.plans.networks import certified_intervals, jobs_among, named, open_sampled
from certcal.lab.plans.outcome import Done, Number, OurTable, Outcome, line_charts, table_of
from certcal.lab.plans.plan import OF_GROUP, Count, Floor, Radius, Whole

_BATCH = 16  # trials of ADMM that advance together
_KEPT = 300  # steps of a convergence that are kept
_METHODS = {"ADMM": "admm", "dECE": "dece"}
_STEPWISE = ("lagrangian", "constraints", "assignment")  # layouts of one radius


class TrialsPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Random trials of one method: how many, numbers between two ends (on a log scale), and words among some."""

    trials: Annotated[Count, Floor(2)]
    between: dict[str, tuple[float, float]] = {}
    among: dict[str, list[Any]] = {}


class SearchPart(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Trials of both methods, their steps, and the seed that draws them."""

    admm: TrialsPart
    dece: TrialsPart
    steps: Annotated[Count, Floor(20)] = 3000
    seed: Whole = 0


SearchLayout = Literal["starts", "largest", "one setting", "ablation", "lagrangian", "constraints", "assignment"]


class SearchPlan(CertifiedPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind: those of certified networks, and trials or one radius to look at."""

    layout: SearchLayout = "largest"  # pyright: ignore[reportIncompatibleVariableOverride]
    search: SearchPart | None = None
    radius: Radius | None = None
    """Of the one run of ADMM whose steps are drawn."""


Settings = SearchPlan


def planned(plan: SearchPlan) -> list[tuple[Any, Job]]:
    """Every search, by noise level and radius."""
    if (plan.radius is not None) != (plan.layout in _STEPWISE):
        remedy = "give it" if plan.radius is None else f"leave it out, or take {', '.join(_STEPWISE)}"
        raise InputError(f"{plan.name}: layout is {plan.layout!r} and radius {plan.radius}; {remedy}")
    found: list[tuple[Any, Job]] = []
    for model, _ in certified.planned(plan):
        sigma, needs = f"σ = {model.baseline.sigma:g}", jobs_among(model.run)
        given = {"run": named(model.run), "kind": model.kind, "alpha": plan.certify.alpha, "bins": plan.certify.bins}
        given |= {"accounting": plan.certify.accounting, "most": plan.certify.most}
        if plan.radius is not None:
            asked = {"radius": plan.radius, "steps": plan.certify.steps}
            found.append(((sigma, plan.radius), Job("search.converge", f"ADMM {model.name}", given | asked, needs)))
        elif plan.search is not None:
            for radius in plan.radii:
                job = Job(
                    "search.search",
                    f"search {model.name} R {radius:g}",
                    {**given, "radius": radius, **msgspec.to_builtins(plan.search)},
                    needs,
                )
                found.append(((sigma, radius), job))
    return found


def _intervals(
    context: JobContext, run: Any, kind: str, alpha: float, accounting: str, radius: float, most: int | None
) -> tuple[tuple[Any, Any, Any], Any] | None:
    """Intervals and correctness of the certified samples, and their clean confidences; None if there are none."""
    from certcal.smoothing import certificates

    counts = open_sampled(context, run).counts()
    one = certificates(counts, radius, alpha, kind, accounting=accounting)
    return certified_intervals(one, counts.confidence_estimates().values, most) if one.n_certified else None


def search(
    context: JobContext, *, bins: int, admm: Any, dece: Any, steps: int, seed: int, **where: Any
) -> dict[str, Any] | None:
    """What random trials of both methods find at one radius, beside the exact value and that of one setting."""
    from certcal.lab.baselines import ONE_SIZE_FITS_ALL, AdmmSettings, brier_confidences, dece_ascent
    from certcal.lab.baselines import admm as solve
    from certcal.worst_case import calibration_error

    found = _intervals(context, **where)
    if found is None:
        return {"certified": 0}
    given, clean = found
    shared: dict[str, Any] = {"confidence": clean, "steps": steps, "precision": "float32", "device": context.device}
    drawn = _draw(admm, Random(seed))
    values: list[float] = []
    for first in range(0, len(drawn), _BATCH):
        some = [AdmmSettings(**each) for each in drawn[first : first + _BATCH]]
        values += solve(*given, bins, settings=some, **shared).runs
    tried = _draw(dece, Random(seed + 1))
    ascents = [dece_ascent(*given, bins, seed=number, **each, **shared).value for number, each in enumerate(tried)]
    return {
        "certified": len(clean),
        "exact": calibration_error(*given, bins).value,
        "brier": brier_confidences(*given, bins).value,
        "single": solve(*given, bins, settings=ONE_SIZE_FITS_ALL, **shared).value,
        "admm": [{**each, "value": value} for each, value in zip(drawn, values, strict=True)],
        "dece": [{**each, "value": value} for each, value in zip(tried, ascents, strict=True)],
    }


def _draw(trials: Mapping[str, Any], random: Random) -> list[dict[str, Any]]:
    """Settings of each trial."""
    return [
        {
            **{name: math.exp(random.uniform(math.log(a), math.log(b))) for name, (a, b) in trials["between"].items()},
            **{name: random.choice(words) for name, words in trials["among"].items()},
        }
        for _ in range(trials["trials"])
    ]


def converge(context: JobContext, *, bins: int, steps: int, **where: Any) -> dict[str, Any] | None:
    """The steps of one run of ADMM, some hundred of them."""
    from certcal.lab.baselines import AdmmSettings, admm
    from certcal.worst_case import calibration_error

    found = _intervals(context, **where)
    if found is None:
        return {"certified": 0}
    given, clean = found
    made = admm(*given, bins, confidence=clean, settings=AdmmSettings(), steps=steps, track=True)
    every = max(1, steps // _KEPT)
    history = {name: np.asarray(each) for name, each in made.history.items()}
    kept = {name: each[:, ::every] if each.ndim == 2 else each for name, each in history.items()}
    return {
        "certified": len(clean),
        "exact": calibration_error(*given, bins).value,
        "value": made.value,
        "history": {name: np.where(np.isfinite(each), each, np.nan).tolist() for name, each in kept.items()},
    }


def outcome(plan: SearchPlan, done: Done) -> Outcome:
    """The tables and charts of a plan's layout."""
    done = [each for each in done if each[1]["certified"]]
    if plan.radius is not None:
        return _convergence(plan, done)
    return _ablation(plan, done) if plan.layout == "ablation" else _by_radius(plan, done)


def _by_radius(plan: SearchPlan, done: Done) -> Outcome:
    """The largest value of all trials (Figure 13), by where they start (12), or of one setting against them (14)."""
    cells: dict[Any, Number] = {}
    won = 0
    for (sigma, radius), result in done:
        best: dict[str, float] = {}
        for name, key in _METHODS.items():
            for trial in result[key]:
                title = f"{name} from {trial['initial']}" if plan.layout == "starts" else name
                best[title] = max(best.get(title, 0.0), trial["value"])
        if plan.layout == "one setting":
            best = {"ADMM, one setting": result["single"], "dECE, best trial": best["dECE"]}
            won += best["ADMM, one setting"] >= best["dECE, best trial"]
        else:
            best |= {"Brier confidences": result["brier"], "exact": result["exact"]}
        cells |= {(f"{sigma}{OF_GROUP}{name}", radius): 100 * value for name, value in best.items()}
    table = table_of("table", cells, plan.radii, "σ, method")
    rows = {row: (plan.radii, values) for row, values in table.rows.items()}
    counts: dict[str, list[Number]] = {"ADMM at least as good": [float(won), float(len(done))]}
    tables = (
        [OurTable("instances", ["instances", "of"], counts, "", 0)] if done and plan.layout == "one setting" else []
    )
    return Outcome([table, *tables], line_charts("Calibration error", rows, "radius", "calibration error, %"))


def _ablation(plan: SearchPlan, done: Done) -> Outcome:
    """What each hyperparameter does to the value, as a share of the exact one (appendices G.2 and M.2)."""
    rows: dict[str, list[Number]] = {}
    for method, key in _METHODS.items():
        part: TrialsPart = getattr(plan.search, key)
        shares = [(trial, trial["value"] / result["exact"]) for _, result in done for trial in result[key]]
        groups: dict[str, list[float]] = {}
        for trial, share in shares:
            for name in part.among:
                groups.setdefault(f"{method}, {name} | {trial[name]}", []).append(share)
            for name, (low, high) in part.between.items():
                half = "below" if trial[name] < math.sqrt(low * high) else "above"
                groups.setdefault(f"{method}, {name} | {half} {math.sqrt(low * high):.3g}", []).append(share)
        rows |= {row: [float(len(own)), 100 * median(own), 100 * max(own)] for row, own in sorted(groups.items())}
    columns = ["trials", "median, % of exact", "largest, % of exact"]
    return Outcome([OurTable("table", columns, rows, "hyperparameter", 1)])


def _convergence(plan: SearchPlan, done: Done) -> Outcome:
    """One run of ADMM step by step: terms of the Lagrangian, distances, or assignments (Figures 9 to 11)."""
    from certcal.lab.baselines import Baseline, admm_assignments, admm_constraints, admm_convergence

    draw = {"lagrangian": admm_convergence, "constraints": admm_constraints, "assignment": admm_assignments}
    rows: dict[str, list[Number]] = {}
    charts: list[Any] = []
    for (sigma, _), result in done:
        history = {name: np.asarray(each, float) for name, each in result["history"].items()}
        history["assignment_step"] = history["assignment_step"].astype(np.int64)
        made = Baseline("ADMM", result["value"], np.zeros(0), (result["value"],), history)
        charts.append(draw[plan.layout](made))
        distances = [f"{name}_distance_max" for name in ("bounded", "binary", "unique", "valid")]
        last = [float(history[name][0, -1]) for name in distances]
        rows[sigma] = [*last, 100 * result["value"], 100 * result["exact"]]
    columns = ["bounded", "binary", "unique", "valid", "ADMM, %", "exact, %"]
    note = "The first four columns are the largest distances from each constraint after the last step."
    return Outcome([OurTable("table", columns, rows, "σ", 3)], charts, [note])
