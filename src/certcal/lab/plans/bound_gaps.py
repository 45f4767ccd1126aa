"""Plans about bounds on the calibration error: their gaps by number of samples, bounds of real scores, and curves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise, product
from statistics import fmean
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from certcal import bounds
from certcal._base.checks import InputError
from certcal.lab.plans.jobs import Job, JobContext
from certcal.lab.plans.outcome import MISSING, Done, Number, OurTable, Outcome, line_charts, table_of
from certcal.lab.plans.plan import OF_GROUP, Count, Floor, Level, PaperPlan
from certcal.lab.study import SYNTHETIC
from certcal.metrics import ece

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

# Places of a curve, and draws of a bootstrap interval.
PLACES = 256
RESAMPLES = 400


class PrintedClaim(Struct, frozen=True, forbid_unknown_fields=True):
    """What a paper says of a figure, where it does, and what is looked at here."""

    says: str
    place: str
    check: str


class GapPlan(PaperPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind."""

    layout: Literal["gaps", "rates", "bounds", "curves"] = "gaps"
    functions: list[str] = field(default_factory=list[str])
    """Calibration functions of :data:`certcal.lab.study.SYNTHETIC`; or"""
    tables: list[str] = field(default_factory=list[str])
    """tables of scores and outcomes that are brought, by name."""
    methods: list[str] = field(default_factory=list[str])
    """Of :data:`METHODS`."""
    sizes: Annotated[list[Count], Floor(3)]
    repetitions: Annotated[Count, Floor(2)] = 64
    samples: Count = 20_000_000
    """How many one job draws at most, unless one repetition has more."""
    bandwidth: Level = 2.0**-6
    delta: Level = 0.1
    bins: Count = 15
    claims: list[PrintedClaim] = field(default_factory=list[PrintedClaim])

    @property
    def as_printed(self) -> bool:
        """Never: the paper prints neither its functions nor its scores."""
        return False


Settings = GapPlan


class Samples(NamedTuple):
    """Scores as they are and perturbed, with outcomes; what the variation of η is at most; and the settings."""

    scores: Floats
    perturbed: Floats
    outcomes: Bytes
    variation: float
    bandwidth: float
    delta: float
    bins: int


class BoundMethod(NamedTuple):
    """A bound, which error it is of ("true", "perturbed" or "binned"), and the rate at which theory lets it fall."""

    bound: Callable[[Samples], float]
    target: str
    theory: str = MISSING


def _smooth(form: str) -> Callable[[Samples], float]:
    return lambda d: bounds.smooth(d.perturbed, d.outcomes, d.bandwidth, d.delta, form=form).value


def _variation(form: str) -> Callable[[Samples], float]:
    return lambda d: bounds.bounded_variation(d.scores, d.outcomes, d.delta, variation=d.variation, form=form).value


def _binned(d: Samples) -> float:
    return bounds.binned(d.scores, d.outcomes, d.bins, d.delta).value


def _ece(d: Samples) -> float:
    return ece(d.scores, d.outcomes, d.bins)


def _lipschitz(form: str) -> Callable[[Samples], float]:
    return lambda d: bounds.lipschitz(d.perturbed, d.outcomes, 1 / (2 * d.bandwidth), d.delta, form=form).value


# The first four are the paper's.
METHODS = {
    "NW": BoundMethod(_smooth("published"), "perturbed", "−1/3"),
    "TV": BoundMethod(_variation("published"), "true", "−1/4"),
    "Lip+Bkt": BoundMethod(_lipschitz("published"), "perturbed", "−1/3"),
    "ECE": BoundMethod(_ece, "true"),
    "smooth": BoundMethod(_smooth("direct"), "perturbed", "−1/2"),
    "smooth, repaired": BoundMethod(_smooth("repaired"), "perturbed", "−2/5"),
    "bounded variation": BoundMethod(_variation("direct"), "true", "−1/3"),
    "Lipschitz": BoundMethod(_lipschitz("direct"), "perturbed", "−1/3"),
    "binned": BoundMethod(_binned, "binned", "−1/2"),
}

# ------------------------------------------------------------------------------------------------------------- jobs


def planned(plan: GapPlan) -> list[tuple[Any, Job]]:
    """Jobs by function or table and number of samples; small ones first, and all functions before more repetitions."""
    for known, chosen in ((METHODS, plan.methods), (SYNTHETIC, plan.functions)):
        for each in chosen:
            if each not in known:
                raise InputError(f"{plan.name}: there is no {each!r}; there are {', '.join(known)}")
    kind = "function" if plan.functions else "table"
    found: list[tuple[Any, Job]] = []
    for n in plan.sizes:
        step = plan.repetitions if plan.layout == "curves" else max(1, plan.samples // n)
        for first, name in product(range(0, plan.repetitions, step), plan.functions or plan.tables):
            given = {"source": {kind: name}, "n": n, "bandwidth": plan.bandwidth, "delta": plan.delta}
            if plan.layout == "curves":
                found.append(((name, n), Job("bound_gaps.curves", f"curves {name} {n}", given)))
                continue
            some = {"first": first, "count": min(step, plan.repetitions - first)}
            settings = {**given, **some, "methods": plan.methods, "bins": plan.bins}
            found.append(((name, n), Job("bound_gaps.values", f"bounds {name} {n} from {first}", settings)))
    return found


def values(
    context: JobContext,
    *,
    source: Mapping[str, str],
    n: int,
    first: int,
    count: int,
    methods: Sequence[str],
    **how: Any,
) -> dict[str, dict[str, Any]]:
    """Values of some methods, repetition by repetition, and their processor time; none where a table has too few rows.

    One repetition is in memory at a time. Its draw depends on the function, the number of samples and its own number.
    """
    table = None if "function" in source else _table(context, source["table"])
    if table is not None and n > table[0].size:
        return {"values": {}, "seconds": {}}
    found: dict[str, list[float]] = {name: [] for name in methods}
    seconds = dict.fromkeys(("drawing", *methods), 0.0)
    for repetition in range(first, first + count):
        start = time.process_time()
        s, y, variation, noise = _draw(source.get("function"), table, n, repetition)
        drawn = Samples(s, bounds.perturb(s, how["bandwidth"], noise), y, variation, **how)
        seconds["drawing"] += time.process_time() - start
        for name in methods:
            start = time.process_time()
            found[name].append(float(METHODS[name].bound(drawn)))
            seconds[name] += time.process_time() - start
    return {"values": found, "seconds": seconds}


def _draw(
    function: str | None, table: tuple[Floats, Bytes] | None, n: int, repetition: int
) -> tuple[Floats, Bytes, float, np.random.Generator]:
    """Scores and outcomes, what the variation of η is at most, and the generator of the noise."""
    if table is not None:
        rng = np.random.default_rng([n, repetition])
        rows = rng.permutation(table[0].size)[:n]
        return table[0][rows], table[1][rows], 1.0, rng
    assert function is not None
    entropy = [list(SYNTHETIC).index(function), n, repetition]
    drawn = SYNTHETIC[function].draw(n, np.random.default_rng(entropy))
    return *drawn, SYNTHETIC[function].variation, np.random.default_rng([*entropy, 1])


def _table(context: JobContext, name: str) -> tuple[Floats, Bytes]:
    from certcal.data import load_table

    found = load_table(context.table_file(name)).predictions
    return found.confidence.astype(np.float64), found.correct


def curves(
    context: JobContext, *, source: Mapping[str, str], n: int, bandwidth: float, delta: float
) -> dict[str, list[float]]:
    """The two reconstructions of a calibration function from one draw."""
    del context
    s, y, _, noise = _draw(source["function"], None, n, 0)
    z, at = bounds.perturb(s, bandwidth, noise), curve_places()
    found = {"NW": bounds.nadaraya_watson(z, y, bandwidth, at), "TV": bounds.denoised(s, y, delta).at(at)}
    return {name: curve.tolist() for name, curve in found.items()}


def curve_places() -> Floats:
    """Where curves are looked at: in the middle of equal cells."""
    return (np.arange(PLACES) + 0.5) / PLACES


# ---------------------------------------------------------------------------------------------------------- outcome


@cache
def true_errors(function: str, bandwidth: float, bins: int, cells: int = 2048) -> dict[str, float]:
    """The true error, that of the perturbed scores and the binned one; the last two by the middles of many cells.

    Examples
    --------
    >>> {name: round(value, 4) for name, value in true_errors("monotone", 2**-6, 15).items()}
    {'true': 0.1667, 'perturbed': 0.1667, 'binned': 0.1667}
    """
    each = SYNTHETIC[function]
    fine = (np.arange(bins * cells) + 0.5) / (bins * cells)
    binned = float(np.abs((each.eta(fine) - fine).reshape(bins, -1).mean(axis=1)).mean())
    middles = (np.arange(cells) + 0.5) / cells
    density, hits = np.zeros(cells), np.zeros(cells)
    for some in np.array_split(middles, max(1, cells // 256)):
        kernel = 1 / np.cosh((middles[:, None] - some) / bandwidth)
        kernel /= kernel.sum(axis=0)
        density += kernel.sum(axis=1)
        hits += kernel @ each.eta(some)
    perturbed = float(np.abs(middles * density - hits).mean())
    return {"true": each.calibration_error, "perturbed": perturbed, "binned": binned}


class GapCurve(NamedTuple):
    """Mean gap of a method on one function by size (of ECE the mean distance), its slope, and how often it failed."""

    sizes: list[int]
    gaps: list[float]
    failures: int
    draws: int
    slope: float | None
    interval: tuple[float, float] | None


def gap_curve(values: Mapping[int, Sequence[float]], truth: float, *, heuristic: bool = False) -> GapCurve:
    """The slope is that of a line through the logarithms over the sizes at which no value was capped at 1.

    Examples
    --------
    >>> found = gap_curve({100: [0.4, 0.4], 400: [0.2, 0.2], 1600: [0.1, 0.1]}, 0.0)
    >>> round(found.slope, 3), found.failures
    (-0.5, 0)
    """
    sizes, drawn = sorted(values), {n: np.array(values[n]) for n in values}
    draws = sum(each.size for each in drawn.values())
    if heuristic:
        return GapCurve(sizes, [float(np.abs(drawn[n] - truth).mean()) for n in sizes], 0, draws, None, None)
    means = {n: float(drawn[n].mean()) - truth for n in sizes}
    failures = sum(int((each < truth).sum()) for each in drawn.values())
    used = [n for n in sizes if drawn[n].max() < 1 and means[n] > 0]
    if len(used) < 3:
        return GapCurve(sizes, [*means.values()], failures, draws, None, None)
    logs, rng = np.log(used), np.random.default_rng(0)
    again = np.array([rng.choice(drawn[n], (RESAMPLES, drawn[n].size)).mean(axis=1) for n in used]) - truth
    slopes = np.polyfit(logs, np.log(np.maximum(again, 1e-9)), 1)[0]
    slope = float(np.polyfit(logs, np.log([means[n] for n in used]), 1)[0])
    low, high = np.quantile(slopes, [0.025, 0.975]).tolist()
    return GapCurve(sizes, [*means.values()], failures, draws, slope, (low, high))


GapCurves = dict[tuple[str, str], GapCurve]
# Tables, charts, and what can be said, by the names of checks.
Found = tuple[list[OurTable], list[Any], dict[str, str]]


def outcome(plan: GapPlan, done: Done) -> Outcome:
    """The tables and charts of a plan's layout, and what the paper says of them."""
    layouts = {"gaps": _gaps, "rates": _rates, "bounds": _bounds, "curves": _curves}
    tables, charts, checks = layouts[plan.layout](plan, done)
    said = [each for each in plan.claims if done and each.check in checks]
    notes = [f"Printed ({each.place}): {each.says}. Here: {checks[each.check]}." for each in said]
    return Outcome(tables, charts, notes)


def _values_by_size(done: Done) -> dict[tuple[str, str], dict[int, list[float]]]:
    """Values of each method on each function or table, by number of samples."""
    drawn: dict[tuple[str, str], dict[int, list[float]]] = {}
    for (name, n), result in done:
        for method, some in result["values"].items():
            drawn.setdefault((name, method), {}).setdefault(n, []).extend(some)
    return drawn


def _gap_curves(plan: GapPlan, done: Done) -> tuple[GapCurves, dict[str, str]]:
    """Gaps of all methods on all functions, and what can be said of them."""
    drawn = _values_by_size(done)
    found: GapCurves = {}
    for name in plan.functions:
        truth = true_errors(name, plan.bandwidth, plan.bins)
        for method in plan.methods:
            if (name, method) in drawn:
                target = truth[METHODS[method].target]
                found[name, method] = gap_curve(drawn[name, method], target, heuristic=method == "ECE")
    whole = [name for name in plan.functions if all((name, method) in found for method in plan.methods)]
    last = {method: {name: found[name, method].gaps[-1] for name in whole} for method in plan.methods}
    proved = [each for (_, method), each in found.items() if method != "ECE"]
    falling = sum(all(b <= a for a, b in pairwise(each.gaps)) and each.gaps[-1] < each.gaps[0] for each in proved)
    least = {name: min((gap[name], method) for method, gap in last.items() if method != "ECE")[1] for name in whole}
    seconds = sum(sum(result["seconds"].values()) for _, result in done)
    checks = {
        "least": f"the least gap at the most samples has {_by_name(least)}",
        "consistent": f"gaps below the cap of 1 fall with the number of samples in {falling} of {len(proved)} curves",
        "seconds": f"{seconds:,.0f} s of processor time for {len(whole)} functions",
        "table": "see the table",
    }
    checks |= {method: f"{method} is off by {_by_name(gap)} at the most samples" for method, gap in last.items() if gap}
    return found, checks


def _by_name(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{value if isinstance(value, str) else f'{value:.4f}'} ({name})" for name, value in found.items())


def _sizes_axis(plan: GapPlan) -> Any:
    from certcal.report.charts import Axis

    return Axis(plan.sizes[0], plan.sizes[-1], tuple((n, _size_text(n)) for n in plan.sizes), "samples", log=True)


def _gaps(plan: GapPlan, done: Done) -> Found:
    from certcal.report.charts import Axis

    found, checks = _gap_curves(plan, done)
    rows: dict[str, list[Number]] = {}
    for (name, method), each in found.items():
        by_size = dict(zip(each.sizes, each.gaps, strict=True))
        failed = MISSING if method == "ECE" else f"{each.failures}/{each.draws}"
        rows[f"{name}{OF_GROUP}{method}"] = [*(by_size.get(n) for n in plan.sizes), failed]
    up = Axis(1e-4, 1.0, tuple((10.0**k, f"{10.0**k:g}") for k in range(-4, 1)), "gap", log=True)
    drawn = {
        f"η = {SYNTHETIC[name].formula}{OF_GROUP}{method}": (each.sizes, each.gaps)
        for (name, method), each in found.items()
    }
    heads = [*map(_size_text, plan.sizes), "failed"]
    charts = line_charts("Gap by number of samples", drawn, _sizes_axis(plan), up)
    return [OurTable("gaps", heads, rows, "function, method", 4)], charts, checks


def _rates(plan: GapPlan, done: Done) -> Found:
    found, checks = _gap_curves(plan, done)
    rows: dict[str, list[Number]] = {}
    single: dict[str, list[Number]] = {}
    for method in (each for each in plan.methods if each != "ECE"):
        own = [found.get((name, method)) for name in plan.functions]
        slopes = [each.slope for each in own if each is not None and each.slope is not None]
        rows[method] = [min(slopes, default=None), max(slopes, default=None), METHODS[method].theory]
        single[method] = [
            MISSING if each is None or each.interval is None else f"{each.slope:.3f} {_interval_text(each.interval)}"
            for each in own
        ]
    heads = [SYNTHETIC[name].formula for name in plan.functions]
    tables = [OurTable("table", ["least slope", "largest slope", "theory"], rows, "method", 3)]
    return [*tables, OurTable("slopes by function", heads, single, "method")], [], checks


def _interval_text(ends: tuple[float, float]) -> str:
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]"


def _size_text(n: int) -> str:
    power = len(str(n)) - 1
    return f"10^{power}" if n == 10**power else f"{n:,}"


def _bounds(plan: GapPlan, done: Done) -> Found:
    means = {key: {n: fmean(some) for n, some in each.items()} for key, each in _values_by_size(done).items()}
    rows = {OF_GROUP.join(key): means.get(key, {}) for key in product(plan.tables, plan.methods)}
    cells = {(row, _size_text(n)): own.get(n) for row, own in rows.items() for n in plan.sizes}
    least = {
        name: min((means[name, method][max(means[name, method])], method) for method in plan.methods if method != "ECE")
        for name in plan.tables
        if all((name, method) in means for method in plan.methods)
    }
    checks = {"least": f"the least bound at the most samples is {_by_name({k: v[1] for k, v in least.items()})}"}
    drawn = {row: (plan.sizes, [own.get(n) for n in plan.sizes]) for row, own in rows.items() if own}
    charts = line_charts("Upper bound by number of samples", drawn, _sizes_axis(plan), "upper bound")
    return [table_of("bounds", cells, corner="scores, method", digits=4)], charts, checks


def _curves(plan: GapPlan, done: Done) -> Found:
    from certcal.report.charts import unit

    at, cells, charts = curve_places(), dict[Any, Number](), list[Any]()
    places = {"everywhere": at >= 0, "near 0 and 1": np.abs(at - 0.5) > 0.45}
    for (name, n), result in sorted(done, key=lambda each: plan.functions.index(each[0][0])):
        eta = SYNTHETIC[name].eta(at)
        for method, (place, inside) in product(("NW", "TV"), places.items()):
            away = np.abs(result[method] - eta)[inside]
            cells[f"{name}, {place}{OF_GROUP}{method}", _size_text(n)] = float(away.mean())
        lines = {"η": (at.tolist(), eta.tolist()), **{method: (at.tolist(), result[method]) for method in ("NW", "TV")}}
        title = f"Reconstruction of η = {SYNTHETIC[name].formula} from {n:,} samples"
        charts += line_charts(title, lines, unit("score"), unit("rate of outcome 1"))
    heads = [*map(_size_text, plan.sizes)]
    table = table_of("distance from η", cells, heads, "function and place, curve", 4)
    return [table], charts, {"table": "see the table"}
