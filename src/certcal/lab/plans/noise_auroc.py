"""Plans about what noise in the scores costs: AUROC by bandwidth, of networks trained with and without regard to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, field

from certcal._base.checks import InputError
from certcal.lab.plans.jobs import Job, JobContext, Passes
from certcal.lab.plans.networks import facts_of
from certcal.lab.plans.outcome import MISSING, Done, Outcome, line_charts, table_of
from certcal.lab.plans.plan import OF_GROUP, Count, Floor, Level, PaperPlan, Whole

PLAIN, AWARE = "cross entropy", "perturbed loss"


class TaskPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A binary task of a data set with classes: which of them are outcome 1, and how many inputs train and test."""

    name: str
    data: str
    positive: list[Whole]
    train: Annotated[int, Meta(ge=2), Floor(100)]
    test: Annotated[int, Meta(ge=2), Floor(100)]


class NoisePlan(PaperPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind."""

    tasks: list[TaskPart]
    network: str
    epochs: Annotated[Count, Floor(1)]
    recipe: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other arguments of :func:`certcal.lab.training.recipe`."""
    bandwidths: Annotated[list[Level], Floor(2)]
    chosen: Level
    """The one that is said to cost little."""
    repetitions: Annotated[Count, Floor(1)] = 64
    draws: Annotated[Count, Floor(2)] = 20
    """Of the noise, for each network."""

    @property
    def as_printed(self) -> bool:
        """Never: its networks are not the paper's."""
        return False


Settings = NoisePlan


def planned(plan: NoisePlan) -> list[tuple[Any, Job]]:
    """A network for each task, repetition and loss, by task and by the bandwidth that it is trained for."""
    from certcal.lab.training import recipe

    given: dict[str, Any] = {**plan.recipe, "epochs": plan.epochs}
    recipe("standard", **given)  # what is wrong with it is said before any job
    found: list[tuple[Any, Job]] = []
    for task in plan.tasks:
        own = {"data": task.data, "positive": task.positive, "train": task.train, "test": task.test}
        own |= {"network": plan.network, "recipe": given, "draws": plan.draws}
        shape, seen = facts_of(task.data).shape, plan.epochs * task.train
        passes = Passes({"name": plan.network}, shape, 2, forward=task.test, backward=seen)
        for seed in range(plan.repetitions):
            for noise in (None, *plan.bandwidths):
                arguments = {**own, "noise": noise, "bandwidths": [noise] if noise else plan.bandwidths, "seed": seed}
                told = f"{task.name}, {f'{AWARE} {noise:g}' if noise else PLAIN}, {seed}"
                found.append(((task.name, noise), Job("noise_auroc.train", told, arguments, passes=passes)))
    return found


def train(
    context: JobContext,
    *,
    data: str,
    positive: Sequence[int],
    train: int,
    test: int,
    network: str,
    recipe: Mapping[str, Any],
    noise: float | None,
    bandwidths: Sequence[float],
    draws: int,
    seed: int,
) -> dict[str, float]:
    """AUROC of a network on held-out inputs without noise ("0") and by bandwidth, averaged over draws of the noise."""
    import torch

    from certcal.bounds import perturb
    from certcal.data import Inputs, open_inputs
    from certcal.lab.training import recipe as make_recipe
    from certcal.lab.training import train as fit
    from certcal.metrics import auroc
    from certcal.models.networks import by_name

    inputs = open_inputs(context.source_of(data), split="train").inputs.in_memory()
    if len(inputs) < train + test:
        raise InputError(f"{data} has {len(inputs):,} inputs, and the task takes {train + test:,}; take fewer")
    order = np.random.default_rng(seed).permutation(len(inputs))
    kept, held = order[:train], order[train : train + test]
    x, y = np.asarray(inputs.inputs), np.isin(inputs.labels, list(positive)).astype(np.int64)
    given: dict[str, Any] = {**recipe, "batch": min(recipe.get("batch", train), train), "seed": seed}
    method = "standard" if noise is None else "perturbed"
    given |= {} if noise is None else {"bandwidth": noise}
    made = make_recipe(method, **given)
    model = by_name(network, x.shape[1:], 2, seed=seed)
    trained = fit(model, Inputs.from_arrays(x[kept], y[kept]), made, device=context.device).network.cpu().eval()
    with torch.no_grad():
        logits = [trained(torch.as_tensor(x[some])) for some in np.array_split(held, -(-test // 500))]
    scores = torch.softmax(torch.cat(logits).double(), 1)[:, 1].numpy()
    rng = np.random.default_rng([seed, 7])
    noisy = {h: [auroc(perturb(scores, h, rng), y[held]) for _ in range(draws)] for h in bandwidths}
    return {"0": float(auroc(scores, y[held])), **{f"{h:g}": float(np.mean(each)) for h, each in noisy.items()}}


def outcome(plan: NoisePlan, done: Done) -> Outcome:
    """AUROC by bandwidth for each task and loss, and what the chosen one costs."""
    drawn: dict[tuple[str, float], list[float]] = {}
    for (task, noise), result in done:
        for h, value in result.items():
            if noise is None or h != "0":
                drawn.setdefault((f"{task}{OF_GROUP}{AWARE if noise else PLAIN}", float(h)), []).append(value)
    means = {place: fmean(values) for place, values in sorted(drawn.items())}
    heads = [float(f"{h:g}") for h in (0, *plan.bandwidths)]
    table = table_of("AUROC", means, heads, "task, loss; by bandwidth", 4)
    falls = [
        f"{before - after:+.4f} ({', '.join(row.split(OF_GROUP))})"
        for row in table.rows
        if (after := means.get((row, float(f"{plan.chosen:g}")))) is not None
        and (before := means.get((row.replace(AWARE, PLAIN), 0.0))) is not None
    ]
    note = f"AUROC of cross entropy without noise minus that with h = {plan.chosen:g}: {', '.join(falls) or MISSING}."
    rows = {row: (heads, values) for row, values in table.rows.items()}
    return Outcome([table], line_charts("AUROC", rows, "bandwidth", "AUROC", low=None), [note])
