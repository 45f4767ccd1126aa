"""Jobs with networks: train one, sample noise around its inputs, certify what was sampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certcal._base.checks import InputError
from certcal.lab.plans.jobs import Job, JobContext, Passes

# Bytes of one sample's line in a run.
_RUN_BYTES = 700


@dataclass(frozen=True)
class DataFacts:
    """Shape of an input, number of classes, and number of inputs to train and to test on."""

    shape: tuple[int, ...]
    classes: int
    train: int
    test: int


DATA_SETS = {
    "digits": DataFacts((1, 8, 8), 10, 898, 899),
    "fashion-mnist": DataFacts((1, 28, 28), 10, 60_000, 10_000),
    "cifar-10": DataFacts((3, 32, 32), 10, 50_000, 10_000),
    "cifar-100": DataFacts((3, 32, 32), 100, 50_000, 10_000),
    "svhn": DataFacts((3, 32, 32), 10, 73_257, 26_032),
    "imagenet": DataFacts((3, 224, 224), 1000, 1_281_167, 50_000),
}
# How images of ImageNet's folders are prepared.
_PREPARED = {"imagenet": {"resize": 256, "crop": 224}}


def facts_of(data: str) -> DataFacts:
    """What is known of a data set: by its name, or from its files."""
    if data in DATA_SETS:
        return DATA_SETS[data]
    from certcal.data import open_inputs

    train, test = (open_inputs(data, split=split).inputs for split in ("train", "test"))
    return DataFacts(tuple(train.inputs.shape[1:]), _classes(train), len(train), len(test))


def _classes(inputs: Any) -> int:
    return max(2, len(inputs.class_names), int(inputs.labels.max()) + 1)


def train_job(
    name: str,
    data: str,
    network: Mapping[str, Any],
    recipe: Any,
    limit: int | None = None,
    start: Any = None,
    **helpers: Job | None,
) -> Job:
    """Train a network from its first weights, or from those of a job or of a checkpoint.

    ``helpers`` are jobs that another network needed first: "judge", which trained it, and "soft", which counted votes.
    """
    facts = facts_of(data)
    forward, backward = training_passes(recipe, facts.train if limit is None else min(limit, facts.train))
    arguments = {"data": data, "limit": limit, "network": dict(network), "recipe": recipe.to_dict()}
    return Job(
        "networks.train",
        f"train {name}",
        {**arguments, "start": named(start), **{each: job.fingerprint for each, job in helpers.items() if job}},
        jobs_among(start, *helpers.values()),
        Passes(network, facts.shape, facts.classes, forward, backward),
    )


def training_passes(recipe: Any, images: int) -> tuple[int, int]:
    """Inputs that pass without and with gradients over a whole training; acr's attacks may end earlier.

    Examples
    --------
    >>> from certcal.lab.training import recipe
    >>> training_passes(recipe("smoothadv", sigma=0.5, draws=2, attack_steps=4, epochs=10, epsilon_delay=2), 1000)
    (0, 84000)
    """
    epochs, own, looks = recipe.epochs, recipe.own, 0
    attacked = epochs - recipe.epsilon_delay if recipe.epsilon else 0
    attacks = recipe.attack_steps * attacked
    if recipe.method == "smoothmix":
        attacks = (recipe.attack_steps + 1) * epochs  # what is mixed passes, too
    elif recipe.method == "cat-rs":
        attacks, looks = attacks + attacked, recipe.draws * epochs
    elif recipe.method == "acr":
        since = epochs - own.begin
        attacks, looks = own.sphere_steps * since, own.discard_draws if own.discard_below else 0
        looks += own.weigh_draws * -(-since // own.weigh_every) if own.weigh_every else 0
    return images * looks, images * recipe.draws * (epochs + attacks)


def votes_job(name: str, data: str, network: Mapping[str, Any], model: Job, limit: int | None, **how: Any) -> Job:
    """Count the votes of a trained network for every training input under noise: soft labels."""
    facts = facts_of(data)
    images = facts.train if limit is None else min(limit, facts.train)
    passes = Passes(network, facts.shape, facts.classes, images * how["draws"], stored=4 * images * facts.classes)
    arguments = {"data": data, "limit": limit, "model": named(model), **how}
    return Job("networks.count_votes", f"votes of {name}", arguments, (model,), passes)


def sample_job(
    name: str, data: str, network: Mapping[str, Any], model: Any, *, sigma: float, images: int, n: int, **others: Any
) -> Job:
    """Sample noise around inputs of a network that a job trained, or of a checkpoint."""
    facts = facts_of(data)
    count = min(images, -(-facts.test // others["every"]))
    passes = Passes(network, facts.shape, facts.classes, count * (n + others["n0"]), stored=count * _RUN_BYTES)
    arguments = {"data": data, "network": dict(network), "model": named(model), "sigma": sigma, "images": images}
    return Job("networks.sample", f"sample {name}", {**arguments, "n": n, **others}, jobs_among(model), passes)


def certify_job(name: str, run: Any, **settings: Any) -> Job:
    """Certify a run that a job sampled, or that is in a folder."""
    return Job("networks.certify", f"certify {name}", {"run": named(run), **settings}, jobs_among(run))


def named(source: Any) -> Any:
    """How a job's arguments name what another one gives: its fingerprint, or a file."""
    return source.fingerprint if isinstance(source, Job) else None if source is None else {"file": source}


def jobs_among(*sources: Any) -> tuple[Job, ...]:
    """Those that are jobs, of sources that may also be files or nothing."""
    return tuple(each for each in sources if isinstance(each, Job))


def open_sampled(context: JobContext, run: Any) -> Any:
    """The run that a job sampled, or that is in a folder."""
    from certcal.smoothing import open_run

    return open_run(context.folder_of(run) / context.result_of(run)["run"] if isinstance(run, str) else run["file"])


def weights_of(context: JobContext, source: Any) -> Path:
    """The file that a job made (weights, votes), or that of a checkpoint."""
    if not isinstance(source, str):
        folder = context.given.get("checkpoints", "")
        path = Path(folder, source["file"])
        if not path.is_file():
            raise InputError(f"{path}: there is no such checkpoint; check the folder of checkpoints, or leave it out")
        return path
    return context.folder_of(source) / context.result_of(source)["file"]


def _model_and_data(
    context: JobContext, network: Mapping[str, Any], model: Any, data: str, images: int, every: int = 1
) -> dict[str, Any]:
    """The network with its weights, and the first test inputs, as verbs take them."""
    from certcal.data import open_inputs

    inputs = open_inputs(context.source_of(data), split="test", every=every, **_PREPARED.get(data, {})).inputs
    weights = weights_of(context, model)
    alone = weights.name == "model.safetensors"  # which says what network it is of
    return {
        "model": str(weights) if alone else network["name"],
        "weights": None if alone else weights,
        "data": inputs.subset(limit=min(images, len(inputs))),
    }


def training_inputs(context: JobContext, data: str, limit: int | None) -> Any:
    """The first inputs that a network is trained on."""
    from certcal.data import open_inputs

    inputs = open_inputs(context.source_of(data), split="train", **_PREPARED.get(data, {})).inputs
    return inputs if limit is None else inputs.subset(limit=min(limit, len(inputs)))


def train(
    context: JobContext,
    *,
    data: str,
    limit: int | None,
    network: Mapping[str, Any],
    recipe: Any,
    start: Any,
    judge: str | None = None,
    soft: str | None = None,
) -> dict[str, Any]:
    """Train a network, or go on training it."""
    from certcal.lab.train import train as verb
    from certcal.lab.training import Recipe
    from certcal.models.networks import by_name

    inputs = training_inputs(context, data, limit)
    chosen = Recipe.from_dict({**recipe, "batch": min(recipe["batch"], len(inputs))})
    others = {name: value for name, value in network.items() if name != "name" and value is not None}
    made = by_name(network["name"], inputs.inputs.shape[1:], _classes(inputs), **others)
    found = verb(
        made,
        inputs,
        chosen,
        out=context.folder / "trained",
        start=None if start is None else weights_of(context, start),
        judge=None if judge is None else weights_of(context, judge),
        soft=None if soft is None else weights_of(context, soft),
        device=context.device,
        progress=False,
    )
    assert found.file is not None
    last = {name: found.log[-1].get(name) for name in ("accuracy", "kept")}
    return {"file": str(found.file.relative_to(context.folder)), **last}


def count_votes(
    context: JobContext, *, data: str, limit: int | None, model: str, sigma: float, draws: int
) -> dict[str, Any]:
    """Shares of votes for every training input, or go on counting them."""
    from certcal.lab.training import soft_labels
    from certcal.models.networks import load_weights

    network = load_weights(weights_of(context, model))
    inputs = training_inputs(context, data, limit)
    found = soft_labels(network, inputs, sigma=sigma, draws=draws, device=context.device, out=context.folder / "votes")
    np.save(context.folder / "soft.npy", found)
    return {"file": "soft.npy", "samples": len(found)}


def sample(
    context: JobContext, *, data: str, network: Mapping[str, Any], model: Any, images: int, every: int, **drawn: Any
) -> dict[str, Any]:
    """Sample noise around inputs, or go on sampling it."""
    from certcal.verbs.sample import sample as verb

    asked = {**_model_and_data(context, network, model, data, images, every), **drawn}
    run = verb(**asked, device=context.device, out=context.folder / "run", progress=False)
    return {"run": "run", "samples": len(run.counts())}


def attack(
    context: JobContext,
    *,
    data: str,
    network: Mapping[str, Any],
    model: Any,
    images: int,
    epsilons: Sequence[int],
    attacks: Sequence[str],
    steps: int,
) -> list[dict[str, Any]]:
    """Calibration of a network without and under attacks that keep its labels; distances are in 255ths, ℓ∞."""
    from certcal.verbs.attack import attack as verb

    found = verb(
        **_model_and_data(context, network, model, data, images),
        epsilon=[each / 255 for each in epsilons],
        attacks=[*attacks],
        steps=steps,
        box=(0, 1),
        device=context.device,
        progress=False,
    )
    lines = [("", 0, found.clean), *((name, each, found[name, each / 255]) for name in attacks for each in epsilons)]
    return [
        {
            "attack": name,
            "epsilon": epsilon,
            "labels_changed": row.changed,
            **{metric: float(row[metric].value) for metric in ("accuracy", "ece", "equal_mass_ece")},
            **_bins(row.measured.reliability),
        }
        for name, epsilon, row in lines
    ]


def _bins(found: Any) -> dict[str, list[float]]:
    table = found.table
    names = {"edges": "edges", "count": "count", "confidence": "confidence_sum", "correct": "correct_sum"}
    return {name: getattr(table, column).tolist() for name, column in names.items()}


def certify(
    context: JobContext,
    *,
    run: Any,
    radii: Sequence[float],
    confidence: str,
    accounting: str,
    alpha: float,
    bins: int,
    solvers: Sequence[str],
    steps: int,
    most: int | None,
) -> dict[str, Any]:
    """Certified accuracy and worst cases of a run at several radii; None at those where nothing is certified."""
    from certcal.smoothing import certificates
    from certcal.worst_case import brier_score

    opened = open_sampled(context, run)
    counts = opened.counts()
    clean = counts.confidence_estimates().values
    made = [certificates(counts, radius, alpha, confidence, accounting=accounting) for radius in radii]
    reached = [one for one in made if one.n_certified]
    always = np.logical_and.reduce([one.certified for one in reached]) if reached else np.zeros(len(counts), bool)
    found: list[dict[str, Any] | None] = []
    for one in made:
        if not one.n_certified:
            found.append(None)
            continue
        given, own = certified_intervals(one, clean, most)
        low, high = map(np.asarray, given[:2])
        line = {
            "certified": one.n_certified,
            "accuracy": float(np.mean(one.certified & one.correct)),
            "brier": brier_score(*given).value,
            "width": float(np.mean(high - low)),
            **_largest_errors(given, own, bins, solvers, steps),
        }
        if always.any():
            line["constant_brier"] = brier_score(one.lower[always], one.upper[always], one.correct[always]).value
        found.append(line)
    mean_radius = float(np.mean(np.where(made[0].correct, np.nan_to_num(made[0].radii), 0.0)))
    return {
        "samples": len(counts),
        "data": opened.manifest.data.inputs,
        "sigma": counts.sigma,
        "average_certified_radius": mean_radius,
        "constant": int(always.sum()),
        "at": found,
    }


def certified_intervals(one: Any, clean: Any, most: int | None) -> tuple[Any, Any]:
    """Ends of the intervals of the first certified samples, whether they are right, and confidences inside."""
    keep = np.flatnonzero(one.certified)[:most]
    given = one.lower[keep], one.upper[keep], one.correct[keep].astype(np.uint8)
    return given, np.clip(clean[keep], *given[:2])


def _largest_errors(given: Any, clean: Any, bins: int, solvers: Sequence[str], steps: int) -> dict[str, float]:
    """The largest calibration error: exactly, and as far as the published methods get."""
    from certcal.lab.baselines import GRID, ONE_SIZE_FITS_ALL, admm, brier_confidences, dece_ascent
    from certcal.worst_case import calibration_error

    searched: dict[str, Any] = {"confidence": clean, "steps": steps, "precision": "float32"}
    ways: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "exact": (calibration_error, {}),
        "admm": (admm, {**searched, "settings": ONE_SIZE_FITS_ALL}),
        "admm-grid": (admm, {**searched, "settings": GRID}),
        "dece": (dece_ascent, searched),
        "brier-confidences": (brier_confidences, {}),
        "recalibrated": (_error_after_temperature, {}),
    }
    chosen = {name: ways[name] for name in ("exact", *solvers)}
    return {name: float(way(*given, bins, **options).value) for name, (way, options) in chosen.items()}


def _error_after_temperature(lower: Any, upper: Any, correct: Any, bins: int) -> Any:
    """The exact error after a certified temperature for each half of the samples, fitted to the other half."""
    from certcal.calibrators import CertifiedTemperature, split_positions
    from certcal.worst_case import calibration_error

    low, high = np.array(lower), np.array(upper)
    halves = split_positions(len(low)) if len(low) > 1 else ()
    for rest, fit in (halves, halves[::-1]) if halves else ():
        made = CertifiedTemperature(1.0).fit(lower[fit], upper[fit], correct[fit])
        low[rest], high[rest] = made.transform(lower[rest]), made.transform(upper[rest])
    return calibration_error(low, high, correct, bins)
