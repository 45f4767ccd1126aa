"""Plans about certified robustness: training methods at several noise levels, trained here or in published logs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from certcal._base.checks import InputError
from certcal.lab.plans.certified import DataPart, NetworkPart, SamplePart
from certcal.lab.plans.jobs import Job, JobContext
from certcal.lab.plans.networks import open_sampled, sample_job, train_job, training_inputs, votes_job, weights_of
from certcal.lab.plans.outcome import MISSING, Done, Number, OurTable, Outcome, line_charts
from certcal.lab.plans.plan import OF_GROUP, Count, Floor, Level, PaperPlan, Positive, Radius, Share, Whole

ACR = "ACR"
# Of a curve from p = 0 to 1, which runs have and logs, which do not say who got the other votes, have not.
_POINTS = 201


class SharedRecipePart(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of :func:`certcal.lab.training.recipe` that all rows share."""

    epochs: Annotated[int, Meta(ge=2), Floor(2)]
    of: Count
    """Epochs as published, in which a row's ``begin`` is counted."""
    preset: str = ""
    set: dict[str, Any] = {}


class HelperPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A network, trained with Gaussian noise, whose opinion another one's training takes."""

    preset: str = ""
    """Of its training."""
    sigma: Positive | None = None
    """Its noise level; by default the row's."""
    draws: Annotated[Count, Floor(10)] = 10_000
    """Votes per training input, where votes are taken."""


class RowPart(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of a table: a method with other numbers than its preset's, or logs of networks that others trained."""

    name: str
    method: str = ""
    """Of training; a row without one is in logs only."""
    preset: str = ""
    """Instead of the plan's."""
    set: dict[str, Any] = {}
    """Other arguments of the recipe."""
    sigmas: list[Positive] = []
    """Noise levels, if it does not have all of the plan's."""
    judge: HelperPart | None = None
    """Who judges which samples are hard, instead of the network in training (acr)."""
    soft: HelperPart | None = None
    """Whose votes are the soft labels, instead of the network in training (cat-rs)."""
    logs: list[str] = []
    """Where its log is in a folder of logs, or in a clone inside it: the first of these. {sigma} is the noise level."""


class RobustnessPlan(PaperPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind."""

    layout: Literal[
        "accuracy",
        "spread",
        "curves",
        "distribution",
        "from curve",
        "budgets",
        "orders",
        "gradients",
        "gradients by p_A",
        "kept",
        "recovered",
    ] = "accuracy"
    data: DataPart
    network: NetworkPart
    recipe: SharedRecipePart
    rows: list[RowPart]
    sigmas: Annotated[list[Positive], Meta(min_length=1), Floor(1)]
    grouped: bool = True
    """Whether rows are in groups by noise level."""
    seeds: Annotated[list[Whole], Floor(1)] = field(default_factory=list[int])
    sample: SamplePart
    draws: Count = 100_000
    """Noise samples per input of the logs."""
    alpha: Level = 0.001
    radii: list[Radius] = field(default_factory=list[float])
    at: list[Share] = field(default_factory=list[float])
    """The p at which P(p_A >= p) is printed."""
    budgets: list[tuple[Count, Level]] = field(default_factory=list[tuple[int, float]])
    """Other numbers of noise samples and levels, at which certified accuracy is read off the distribution of p_A."""
    orders: Annotated[list[tuple[float, str, str]], Floor(1)] = field(default_factory=list[tuple[float, str, str]])
    """Noise level, and the names of a row that is better and of one that is worse."""
    gradients: Annotated[Count, Floor(20)] = 500
    """Training inputs whose gradients are looked at."""


Settings = RobustnessPlan


@dataclass(frozen=True)
class PlannedNetwork:
    """A network of a row at a noise level: where its votes come from, and the jobs about it."""

    row: str
    sigma: float
    source: Any
    measured: Job
    trained: Job | None = None
    recipe: Any = None


def _networks(plan: RobustnessPlan) -> Iterator[PlannedNetwork]:
    """All networks of a plan, by row; of logs those that are in the folder of logs."""
    asked = {"alpha": plan.alpha, "radii": plan.radii, "at": plan.at, "budgets": [list(each) for each in plan.budgets]}
    for row in plan.rows:
        for sigma in plan.sigmas if not row.sigmas else [each for each in plan.sigmas if each in row.sigmas]:
            title = f"{row.name}, sigma {sigma:g}"
            if "logs" in plan.given:
                path = find_log(Path(plan.given["logs"]), row.logs, sigma)
                if path is not None:
                    content = (Path(plan.given["logs"]) / path).read_bytes()
                    source = {"log": path, "sha256": hashlib.sha256(content).hexdigest(), "draws": plan.draws}
                    job = Job("robustness.measure", f"read {title}", {"source": source, "sigma": sigma, **asked})
                    yield PlannedNetwork(row.name, sigma, source, job)
                continue
            for seed in (plan.seeds or [0]) if row.method else ():
                made = _recipe(plan, row, sigma, seed)
                network = plan.network.arguments
                network["seed"] += seed
                told = f"{title}, seed {seed}" if seed else title
                helpers = _helper_jobs(plan, row, sigma, network)
                trained = train_job(told, plan.data.name, network, made, plan.data.train, **helpers)
                drawn = msgspec.to_builtins(plan.sample)
                run = sample_job(told, plan.data.name, network, trained, sigma=sigma, **drawn)
                source = {"run": run.fingerprint}
                job = Job("robustness.measure", f"measure {told}", {"source": source, "sigma": sigma, **asked}, (run,))
                yield PlannedNetwork(row.name, sigma, source, job, trained, made)


def _helper_jobs(plan: RobustnessPlan, row: RowPart, sigma: float, network: Mapping[str, Any]) -> dict[str, Job | None]:
    """What a row's training needs first: the network that judges, and the votes of one."""
    from certcal.lab.training import recipe

    def trained(part: HelperPart) -> Job:
        own = part.sigma or sigma
        made = recipe("gaussian", preset=part.preset or None, epochs=plan.recipe.epochs, sigma=own)
        return train_job(f"Gaussian helper, sigma {own:g}", plan.data.name, network, made, plan.data.train)

    votes: Job | None = None
    if (part := row.soft) is not None:
        own, asked = part.sigma or sigma, trained(part)
        how = {"sigma": own, "draws": part.draws}
        votes = votes_job(f"sigma {own:g}", plan.data.name, network, asked, plan.data.train, **how)
    return {"judge": None if row.judge is None else trained(row.judge), "soft": votes}


def _recipe(plan: RobustnessPlan, row: RowPart, sigma: float, seed: int) -> Any:
    from certcal.lab.training import recipe

    epochs = plan.recipe.epochs
    given: dict[str, Any] = {"epochs": epochs, **plan.recipe.set, **row.set, "sigma": sigma, "seed": seed}
    if "begin" in given:
        given["begin"] = min(max(1, round(given["begin"] * epochs / plan.recipe.of)), epochs - 1)
    return recipe(row.method, preset=row.preset or plan.recipe.preset or None, **given)


def find_log(folder: Path, patterns: Sequence[str], sigma: float) -> str | None:
    """The place of a row's log below a folder of logs or of clones; None where there is none."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder of logs; check it, or leave it out", argument="logs")
    below = ["", *sorted(f"{each.name}/" for each in folder.iterdir() if each.is_dir())]
    places = (base + pattern.format(sigma=sigma) for pattern in patterns for base in below)
    return next((place for place in places if (folder / place).is_file()), None)


def planned(plan: RobustnessPlan) -> list[tuple[Any, Job]]:
    """All jobs of a plan, by what they are ("measured", "gradients", "trained", "order") and the network or order."""
    networks = list(_networks(plan))
    if not networks:
        what = "no log of its rows is in that folder" if "logs" in plan.given else "its rows are in logs only"
        needed = "; ".join(plan.needs.values())
        raise InputError(f"{plan.name}: {what}", argument="logs", remedy=f"bring {needed}" if needed else None)
    found: list[tuple[Any, Job]] = [(("measured", each), each.measured) for each in networks]
    at = {(each.row, each.sigma): each for each in reversed(networks)}
    for sigma, *names in plan.orders if plan.layout == "orders" else ():
        pair = [at[name, sigma] for name in names if (name, sigma) in at]
        if len(pair) == 2:
            told = f"{sigma}{OF_GROUP}{' over '.join(names)}"
            arguments = {"sources": [each.source for each in pair], "sigma": sigma, "alpha": plan.alpha}
            found.append((("order", told), Job("robustness.order", told, arguments, tuple(p.measured for p in pair))))
    for each in networks if plan.layout in ("gradients", "gradients by p_A") else ():
        if each.trained is None:
            raise InputError(f"{plan.name}: gradients need networks, and a log has none; leave the logs out")
        arguments = {"data": plan.data.name, "limit": plan.data.train, "recipe": each.recipe.to_dict()}
        arguments |= {"model": each.trained.fingerprint, "samples": plan.gradients}
        told = f"gradients of {each.measured.name}"
        found.append((("gradients", each), Job("robustness.gradients", told, arguments, (each.trained,))))
    return [*found, *((("trained", each), each.trained) for each in networks if each.trained is not None)]


def _open_votes(context: JobContext, source: Mapping[str, Any], sigma: float, alpha: float) -> tuple[Any, Any, Any]:
    """The votes of a run or log, radii as certified or printed, and of a run the share of votes for each label."""
    import warnings

    from certcal.lab.logs import LogWarning, read_log
    from certcal.smoothing.robustness import VoteRecord

    if "run" in source:
        run = open_sampled(context, source["run"])
        record = VoteRecord.from_counts(run.counts())
        votes = run.class_votes().toarray()[np.arange(len(record)), record.label]
        return record, record.radii(alpha), votes / record.draws
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # the level that is used is in the result
        log = read_log(Path(context.given["logs"], source["log"]), sigma=sigma, n=source["draws"], alpha=alpha)
    return log.record(), log.radii, None


def measure(
    context: JobContext,
    *,
    source: Mapping[str, Any],
    sigma: float,
    alpha: float,
    radii: Sequence[float],
    at: Sequence[float],
    budgets: Sequence[Sequence[Any]],
) -> dict[str, Any]:
    """Average certified radius, certified accuracy, and the distribution of p_A, of a run or log."""
    from certcal.smoothing.robustness import PaDistribution, average_certified_radius, certified_accuracy

    record, certified, label = _open_votes(context, source, sigma, alpha)
    seen = PaDistribution.of(record)
    converted = [seen.certified_accuracy(radii, n=int(n), alpha=level) for n, level in budgets]
    curve = seen.curve()
    steps = {"p": curve.p.tolist(), "share": curve.lower.tolist()}
    if label is not None:
        p = np.linspace(0, 1, _POINTS)
        steps = {"p": p.tolist(), "share": np.mean(label >= p[:, None], axis=1).tolist()}
    return {
        "samples": len(record),
        "average": average_certified_radius(certified, record.correct).value,
        "accuracy": list(certified_accuracy(certified, record.correct, radii).values) if radii else [],
        "survival": seen.survival(at)[0].tolist(),
        "budgets": [{"p": each.p.tolist(), "accuracy": each.lower.tolist()} for each in converted],
        "curve": steps,
    }


def order(context: JobContext, *, sources: Sequence[Mapping[str, Any]], sigma: float, alpha: float) -> dict[str, Any]:
    """Whether the first of two runs or logs is above the second at every p_A, and where it is not."""
    from certcal.lab.logs import dominance
    from certcal.smoothing.robustness import PaDistribution

    names = ("first", "second")
    seen = [
        PaDistribution.of(_open_votes(context, source, sigma, alpha)[0], name)
        for source, name in zip(sources, names, strict=True)
    ]
    found = dominance(*seen)
    lost = [each for each in found.stretches if each.ahead == "second"]
    return {"verdict": found.verdict, "lost": [[each.start, each.stop] for each in lost]}


def gradients(
    context: JobContext, *, data: str, limit: int | None, recipe: Mapping[str, Any], model: str, samples: int
) -> dict[str, Any]:
    """Gradient norms of easy and hard training inputs, and their quartiles by p_A, as trained and as drawn."""
    from certcal.lab.plans.gradient_norms import gradient_norms
    from certcal.lab.training import Recipe
    from certcal.models.networks import load_weights

    inputs, network = training_inputs(context, data, limit), load_weights(weights_of(context, model))
    found = gradient_norms(network, inputs, Recipe.from_dict(recipe), samples=samples, device=context.device)
    ways = {"as trained": found, **({} if found.before is None else {"before the attack": found.before})}
    return {
        "easy": found.easy,
        "hard": found.hard,
        "ratio": found.ratio,
        "bins": {name: each.bins for name, each in ways.items()},
    }


def outcome(plan: RobustnessPlan, done: Done) -> Outcome:
    """The tables and charts of a plan's layout."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for (what, which), result in done:
        found.setdefault(what, []).append((which, result))
    several: dict[str, list[Any]] = {}
    for network, result in found.get("measured", ()):
        several.setdefault(_label(plan, network), []).append(result)
    layouts = {
        "accuracy": lambda: _accuracy(plan, several),
        "spread": lambda: _spread(plan, several),
        "curves": lambda: Outcome([], _accuracy_charts(plan, several)),
        "distribution": lambda: _distribution(plan, several),
        "from curve": lambda: _from_curve(plan, found.get("measured", ())),
        "budgets": lambda: _other_budgets(plan, several),
        "orders": lambda: _orders(plan, found.get("order", ())),
        "gradients": lambda: _gradients(plan, found.get("gradients", ()), several),
        "gradients by p_A": lambda: _gradients_by_p_a(plan, found.get("gradients", ())),
        "kept": lambda: _kept_outcome(plan, found.get("trained", ())),
        "recovered": lambda: _recovered_advance(plan, several),
    }
    return layouts[plan.layout]()


def _label(plan: RobustnessPlan, network: PlannedNetwork) -> str:
    return f"{network.sigma}{OF_GROUP}{network.row}" if plan.grouped else network.row


def _table(
    plan: RobustnessPlan, columns: Sequence[str], rows: Mapping[str, Sequence[Number]], digits: int | Sequence[int] = 3
) -> OurTable:
    printed = plan.published.get("table")
    return OurTable("table", columns, rows, "" if printed is None else printed.corner, digits)


def _columns(plan: RobustnessPlan) -> list[str]:
    return [ACR, *(f"{radius:.2f}" if any(4 * r % 2 for r in plan.radii) else f"{radius:.1f}" for radius in plan.radii)]


def _values(results: Sequence[Mapping[str, Any]]) -> list[tuple[float, ...]]:
    """Average radius and certified accuracies in per cent: of each column the values of all seeds."""
    lines = [[result["average"], *(100 * value for value in result["accuracy"])] for result in results]
    return list(zip(*lines, strict=True))


def _accuracy(plan: RobustnessPlan, several: Mapping[str, Sequence[Any]]) -> Outcome:
    rows = {name: [fmean(column) for column in _values(own)] for name, own in several.items()}
    counts = sorted({each["samples"] for own in several.values() for each in own})
    notes = [f"Certified on {' or '.join(f'{count:,}' for count in counts)} inputs."] if counts else []
    table = _table(plan, _columns(plan), rows, [3, *[1] * len(plan.radii)])
    return Outcome([table], _accuracy_charts(plan, several), notes)


def _spread(plan: RobustnessPlan, several: Mapping[str, Sequence[Any]]) -> Outcome:
    rows: dict[str, list[Number]] = {}
    for name, own in several.items():
        columns, sigma = _values(own), name.partition(OF_GROUP)[0]
        rows[f"{sigma}{OF_GROUP}mean"] = [fmean(each) for each in columns]
        rows[f"{sigma}{OF_GROUP}standard deviation"] = [stdev(each) if len(each) > 1 else MISSING for each in columns]
    return Outcome([_table(plan, _columns(plan), rows, [4, *[2] * len(plan.radii)])])


def _shares(title: str, curves: Mapping[str, Any], x: str) -> list[Any]:
    from certcal.report.charts import percent

    told = {f"σ = {name}" if OF_GROUP in name else name: curve for name, curve in curves.items()}
    return line_charts(title, told, x, percent("share of inputs"))


def _accuracy_charts(plan: RobustnessPlan, several: Mapping[str, Sequence[Any]]) -> list[Any]:
    curves = {name: (plan.radii, own[0]["accuracy"]) for name, own in several.items()}
    return _shares("Certified accuracy", curves, "radius")


def _distribution(plan: RobustnessPlan, several: Mapping[str, Sequence[Any]]) -> Outcome:
    rows = {name: [fmean(v) for v in zip(*(r["survival"] for r in own), strict=True)] for name, own in several.items()}
    curves = {name: (own[0]["curve"]["p"], own[0]["curve"]["share"]) for name, own in several.items()}
    tables = [_table(plan, [f"{p:g}" for p in plan.at], rows)] if plan.at else []
    return Outcome(tables, _shares("P(p_A ≥ p)", curves, "p"))


def _other_budgets(plan: RobustnessPlan, several: Mapping[str, Sequence[Any]]) -> Outcome:
    rows: dict[str, list[Number]] = {}
    charts: list[Any] = []
    for place, (n, alpha) in enumerate(plan.budgets):
        found = {name: own[0]["budgets"][place] for name, own in several.items()}
        for name, own in found.items():
            for radius, p, accuracy in zip(plan.radii, own["p"], own["accuracy"], strict=True):
                rows[f"{name}, R = {radius:g}"] = [p if p <= 1 else MISSING, accuracy]
        curves = {name: (plan.radii, own["accuracy"]) for name, own in found.items()}
        charts += _shares(f"Certified accuracy with {n:,} noise samples at level {alpha:g}", curves, "radius")
    return Outcome([_table(plan, ["p_A needed", "certified accuracy"], rows)], charts)


def _from_curve(plan: RobustnessPlan, measured: Done) -> Outcome:
    """P(p_A >= p) from certified accuracy at the radii alone, as far as that goes, and from the votes."""
    from certcal.smoothing.robustness import from_curve

    rows: dict[str, list[Number]] = {}
    for each, result in measured:
        draws = plan.draws if "log" in each.source else plan.sample.n
        points = from_curve(plan.radii, result["accuracy"], sigma=each.sigma, n=draws, alpha=plan.alpha)
        told = zip(*points.survival(plan.at), result["survival"], strict=True)
        rows[_label(plan, each)] = [f"{a:.3f} to {b:.3f}; {votes:.3f}" for a, b, votes in told]
    note = "From certified accuracy at the radii, lowest to highest that it allows; and from the votes."
    return Outcome([_table(plan, [f"{p:g}" for p in plan.at], rows)], [], [note])


def _orders(plan: RobustnessPlan, orders: Done) -> Outcome:
    words = {"first": "holds", "unclear": "open where radii are rounded", "equal": "the same", "second": "the other"}
    rows: dict[str, list[Number]] = {}
    for name, result in orders:
        lost = result["lost"]
        where = f"below at p from {lost[0][0]:.4g} to {lost[-1][1]:.4g}" if lost else ""
        rows[name] = [words.get(result["verdict"], where)]
    holds = sum(row[0] == words["first"] for row in rows.values())
    note = f"{holds} of {len(rows)} orders hold at every p_A."
    return Outcome([_table(plan, ["at every p_A ≥ 0.5"], rows)], [], [note])


def _gradients(plan: RobustnessPlan, gradients: Done, several: Mapping[str, Sequence[Any]]) -> Outcome:
    labels = [(_label(plan, each), result) for each, result in gradients]
    rows = {
        label: [several[label][0]["average"], *(result[name] for name in ("easy", "hard", "ratio"))]
        for label, result in labels
        if label in several
    }
    return Outcome([_table(plan, [ACR, "easy", "hard", "easy / hard"], rows, 2)])


def _gradients_by_p_a(plan: RobustnessPlan, gradients: Done) -> Outcome:
    """Figure 5: distribution of the norms by tenths of p_A, before and after the noise is attacked."""
    from certcal.report.charts import Boxes, Chart, Panel, covering, named_axis

    tables: list[OurTable] = []
    charts: list[Any] = []
    for each, result in gradients:
        rows: dict[str, list[Number]] = {}
        for name, boxes in result["bins"].items():
            bins = [f"{low:g} to {high:g}" for low, high, *_ in boxes]
            for place, (_, _, count, quantiles) in zip(bins, boxes, strict=True):
                rows[f"{name}{OF_GROUP}p_A {place}"] = [count, *(quantiles[1:4] if quantiles else [MISSING] * 3)]
            drawn = [[quantiles[k] if quantiles else nan for *_, quantiles in boxes] for k in range(5)]
            up = covering([value for line in drawn for value in line], "gradient norm")
            panel = Panel(named_axis(bins, "p_A"), up, [Boxes(*drawn)])
            charts.append(Chart(f"Gradient norm by p_A, {name}", "", [panel]))
        tables.append(OurTable(_label(plan, each), ["inputs", "25 %", "median", "75 %"], rows, "noise, p_A", 3))
    return Outcome(tables, charts)


def _kept_outcome(plan: RobustnessPlan, trained: Done) -> Outcome:
    shares = {str(each.sigma): result.get("kept") for each, result in trained}
    rows = {name: [MISSING if kept is None else 100 * kept] for name, kept in shares.items()}
    return Outcome([_table(plan, ["kept"], rows, 0)])


def _recovered_advance(plan: RobustnessPlan, several: Mapping[str, Sequence[Any]]) -> Outcome:
    """How much of the best average certified radius' advance over the first row's the last row has."""
    rows: dict[str, list[Number]] = {}
    first, last = (plan.rows[place].name for place in (0, -1))
    for sigma in plan.sigmas:
        labels = {each.name: f"{sigma}{OF_GROUP}{each.name}" for each in plan.rows}
        at = {name: several[label][0]["average"] for name, label in labels.items() if label in several}
        gap = max((value for name, value in at.items() if name != last), default=0.0) - at.get(first, 0.0)
        rows[str(sigma)] = [100 * (at[last] - at[first]) / gap if {first, last} <= at.keys() and gap > 0 else MISSING]
    return Outcome([_table(plan, ["recovered"], rows, 1)])
