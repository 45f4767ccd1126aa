"""Plans about certified networks: baselines, what is fine-tuned from them, their noise, and the tables made of that."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct, field

from certcal._base.checks import InputError
from certcal.lab.plans.jobs import Job
from certcal.lab.plans.networks import certify_job, sample_job, train_job
from certcal.lab.plans.outcome import Done, Outcome
from certcal.lab.plans.plan import Count, Floor, Level, PaperPlan, Positive, Radius, Share, Whole
from certcal.smoothing import CertificateName


class DataPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Which data, and on how many of its inputs to train."""

    name: str
    train: Annotated[Count | None, Floor(500)] = None


class NetworkPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of :func:`certcal.models.networks.by_name`."""

    name: str
    mean: float | list[float] | None = None
    std: float | list[float] | None = None
    seed: Whole = 0

    @property
    def arguments(self) -> dict[str, Any]:
        """Those that are given."""
        return {name: value for name, value in msgspec.to_builtins(self).items() if value is not None}


class RecipePart(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of :func:`certcal.lab.training.recipe`."""

    preset: str | None = None
    epochs: Annotated[Count, Floor(1)] = 150
    set: dict[str, Any] = {}


class RecipeParts(Struct, frozen=True, forbid_unknown_fields=True):
    """Recipes from scratch and of fine-tuning."""

    scratch: RecipePart
    tuning: RecipePart | None = None


class BaselinePart(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A network to begin with: trained here, a checkpoint, or a run that is there already."""

    name: str = ""
    row: str = "AT"
    method: str = "smoothadv"
    sigma: Positive
    epsilon: Radius = 0.0
    attack_steps: Count = 1
    draws: Count = 1
    checkpoint: str = ""
    run: str = ""
    radii: list[Radius] = []
    """At which it was chosen to be fine-tuned; never, if there are none."""

    @property
    def title(self) -> str:
        """What tells it from others."""
        adversary = f"-eps{self.epsilon:g}-m{self.draws}-T{self.attack_steps}" if self.epsilon else ""
        return self.name or f"{self.row}-sigma{self.sigma:g}{adversary}"


class MethodPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A way of fine-tuning: a row of the table, a training method, and a grid of hyperparameters."""

    row: str
    method: str
    models: Annotated[Count, Floor(1)] = 16
    """Of each baseline: that many points of the grid, at random if there are more."""
    grid: dict[str, list[float]] = {}
    """Hyperparameters that are tried; by default those of the recipe's preset."""
    set: dict[str, Any] = {}
    """Other arguments of the recipe."""


class SamplePart(Struct, frozen=True, forbid_unknown_fields=True):
    """Noise around the first ``images`` of every ``every``-th test input."""

    images: Annotated[Count, Floor(20)]
    n: Annotated[Count, Floor(200)]
    every: Count = 1
    n0: Count = 100
    seed: Whole = 0


class CertifyPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Certificates, and which methods look for the worst calibration error; the exact one is always there."""

    confidence: CertificateName | list[CertificateName] = "cdf"
    """Kind of certificate, or several."""
    accounting: Literal["ledger", "published"] = "published"
    alpha: Level = 0.001
    bins: Count = 15
    solvers: list[Literal["admm", "admm-grid", "dece", "brier-confidences", "recalibrated"]] = []
    steps: Annotated[Count, Floor(20)] = 3000
    most: Annotated[Count | None, Floor(200)] = None
    """Number of certified samples that are looked at, the first ones."""


Layout = Literal[
    "best",
    "baselines",
    "changes",
    "changes of all",
    "brier",
    "constant brier",
    "widths",
    "solvers",
    "correlations",
    "paired",
]


class CertifiedPlan(PaperPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind."""

    layout: Layout = "best"
    data: DataPart
    network: NetworkPart
    recipe: RecipeParts
    baselines: Annotated[list[BaselinePart], Floor(2)]
    methods: list[MethodPart] = field(default_factory=list[MethodPart])
    sample: SamplePart
    certify: CertifyPart
    radii: list[Radius]
    within: Share = 0.03
    """How far below the highest certified accuracy a model may be to be compared."""


Settings = CertifiedPlan


@dataclass(frozen=True)
class PlannedModel:
    """A network of the plan: the row it competes in, the baseline it comes from, and its noise."""

    row: str
    name: str
    baseline: BaselinePart
    kind: str
    """Of the certificates."""
    run: Any
    """The job that samples its noise, or the folder of a run."""


def planned(plan: CertifiedPlan) -> list[tuple[PlannedModel, Job]]:
    """All networks of a plan with their certificates: every baseline, and after it what is fine-tuned from it."""
    from certcal.lab.training import recipe

    network, checkpoints = plan.network.arguments, plan.given.get("checkpoints")
    settings = {**msgspec.to_builtins(plan.certify), "radii": plan.radii}
    del settings["confidence"]
    kinds = [plan.certify.confidence] if isinstance(plan.certify.confidence, str) else plan.certify.confidence

    def certified(row: str, title: str, baseline: BaselinePart, weights: Any) -> list[tuple[PlannedModel, Job]]:
        run: Any = baseline.run
        if weights is not None:
            drawn = msgspec.to_builtins(plan.sample)
            run = sample_job(title, plan.data.name, network, weights, sigma=baseline.sigma, **drawn)
        return [
            (PlannedModel(row, title, baseline, kind, run), certify_job(title, run, **settings, confidence=kind))
            for kind in kinds
        ]

    found: list[tuple[PlannedModel, Job]] = []
    for baseline in plan.baselines:
        noise = {"sigma": baseline.sigma, "draws": baseline.draws}
        attacked = {"epsilon": baseline.epsilon, "attack_steps": baseline.attack_steps} if baseline.epsilon else {}
        weights: Any = None
        if checkpoints and baseline.checkpoint:
            weights = baseline.checkpoint
        elif not baseline.run:
            made = _recipe(recipe, baseline.method, plan.recipe.scratch, {**noise, **attacked}, fine_tune=False)
            weights = train_job(baseline.title, plan.data.name, network, made, plan.data.train)
        found += certified(baseline.row, baseline.title, baseline, weights)
        for method in plan.methods if baseline.radii else ():
            if plan.recipe.tuning is None or weights is None:
                raise InputError(f"{plan.name}: recipe.tuning is missing, or {baseline.title} is a run; add networks")
            for point in grid_points(method, plan.recipe.tuning.preset, plan.scale):
                changes = {**noise, **attacked, **method.set, **point}
                made = _recipe(recipe, method.method, plan.recipe.tuning, changes, fine_tune=True)
                told = ", ".join(f"{name} {value:g}" for name, value in point.items())
                title = f"{method.row} from {baseline.title}, {told}"
                tuned = train_job(title, plan.data.name, network, made, plan.data.train, weights)
                found += certified(method.row, title, baseline, tuned)
    return found


def _recipe(
    recipe: Callable[..., Any], method: str, part: RecipePart, changes: Mapping[str, Any], *, fine_tune: bool
) -> Any:
    whole = {
        name: int(value) if name in ("attack_steps", "batch", "seed") else value for name, value in changes.items()
    }
    given = {"epochs": part.epochs, **part.set, **whole}
    return recipe(method, fine_tune=fine_tune, preset=part.preset, **given)


def grid_points(method: MethodPart, preset: str | None, scale: float = 1.0) -> list[dict[str, float]]:
    """Points of a method's grid: all, as many as published at random, or fewer that are spread evenly.

    Examples
    --------
    >>> some = MethodPart("ACT", "brier-act", 8, {"attack_scale": [0.01, 0.1, 1.0, 2.0], "attack_steps": [1, 4]})
    >>> len(grid_points(some, None)), grid_points(msgspec.structs.replace(some, models=1), None, scale=0.1)
    (8, [{'attack_scale': 1.0, 'attack_steps': 1}])
    """
    from certcal.lab.training import preset_grid

    points = [dict(zip(method.grid, values, strict=True)) for values in product(*method.grid.values())]
    if not method.grid and preset is not None:
        points = preset_grid(method.method, preset)
    count = min(method.models, len(points))
    if scale < 1:
        return [points[(2 * place + 1) * len(points) // (2 * count)] for place in range(count)]
    chosen = sorted(random.Random(0).sample(range(len(points)), count))
    return [points[place] for place in chosen]


def outcome(plan: CertifiedPlan, done: Done) -> Outcome:
    """The tables and charts of a plan's layout."""
    from certcal.lab.plans.certified_layouts import LAYOUTS, CertifiedNetwork

    networks = [
        CertifiedNetwork(each.row, each.name, each.baseline, each.kind, each.run, result["at"], result)
        for each, result in done
    ]
    if len({each.whole["data"] for each in networks}) > 1:
        raise InputError(f"{plan.name}: the runs are of different samples; sample all networks on the same ones")
    return LAYOUTS[plan.layout](plan, networks)
