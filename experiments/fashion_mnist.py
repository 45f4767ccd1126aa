"""Does training against calibration adversaries lower certified calibration errors? Fashion-MNIST, LeNet, two cores.

The setting of Emde et al. (2024), appendix J.1, scaled down: LeNet is trained adversarially (SmoothAdv) at two noise
levels, each of these baselines is fine-tuned by every method with two learning rates, every model is sampled on the
first 500 test images, and each method's best model within 3 % of the highest certified accuracy is compared per
radius (the rule of its Table 7), by the exact worst-case calibration error.

    python experiments/fashion_mnist.py --out models              # resumes where it was stopped
    python experiments/fashion_mnist.py --out quick --quick       # minutes: few images, few epochs
    python experiments/fashion_mnist.py --out models --only acce-act  # one row: that method, and its baselines
    python experiments/fashion_mnist.py --out svhn --data svhn --network resnet20 --set test=500   # another data set
    python experiments/fashion_mnist.py --out full --full --device cuda  # the published grid, for a GPU
    python experiments/fashion_mnist.py --out models --write-docs # table, figure and text's numbers into docs/results

Needs Debian's package `dataset-fashion-mnist`, or --data FOLDER: its idx files, or CIFAR, SVHN or image folders.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from _running import RESULTS, processes, write_results

from certcal.data import Inputs, fashion_mnist, open_inputs

RADII = (0.05, 0.1, 0.2, 0.5, 1.0)
# Of the training images.
MEAN, STD = 0.286, 0.353

METHODS = {
    "at": "AT",
    "tuned-at": "Fine-tuned AT",
    "tuned-at-large": "Fine-tuned AT, large batches",
    "gaussian": "Fine-tuned Gaussian",
    "brier-act": "Brier-ACT",
    "acce-act": "ACCE-ACT",
    "acce-act-star": "ACCE-ACT*",
    "acce-act-star-sum": "ACCE-ACT*, summed",
    "exact-act": "Exact-ACT",
    "exact-act-star": "Exact-ACT*",
    "exact-act-ahead": "Exact-ACT, looking ahead",
}


# Which adversary Exact-ACT has was chosen on the test images of the table, so these are also compared on others.
CONFIRMED = ("tuned-at", "acce-act", "exact-act")


@dataclass(frozen=True)
class Scale:
    """How much is done.

    Attributes
    ----------
    train, tuned, test
        Images for a baseline, for fine-tuning, and to test on.
    epochs, tuning
        Of a baseline, and of fine-tuning.
    baselines
        (σ, ε) of each.
    rates
        Learning rates of fine-tuning.
    draws
        Per test image.
    batch, large
        Samples per step, and those of adversaries of the calibration error.
    attack_steps, attack_scales
        T and v of the adversaries of fine-tuning: every combination is a model (appendix I.3).
    network
        "lenet", or another that certcal knows by name.
    """

    train: int = 60_000
    tuned: int = 30_000
    test: int = 500
    epochs: int = 8
    tuning: int = 3
    baselines: tuple[tuple[float, float], ...] = ((0.25, 0.5), (0.5, 1.0))
    rates: tuple[float, ...] = (0.02, 0.05)
    draws: int = 5_000
    batch: int = 256
    large: int = 512
    attack_steps: tuple[int, ...] = (2,)
    attack_scales: tuple[float, ...] = (1.0,)
    network: str = "lenet"


# As published (appendices I.3 and J.1); 10 steps in the baselines.
FULL = Scale(
    tuned=60_000,
    epochs=150,
    tuning=10,
    rates=(0.01, 0.05),
    draws=100_000,
    large=2048,
    attack_steps=(1, 4),
    attack_scales=(0.01, 0.1, 1.0, 2.0),
)
QUICK = Scale(6_000, 3_000, 100, epochs=4, tuning=2, baselines=((0.5, 0.5),), rates=(0.02,), draws=1_000)


@dataclass(frozen=True)
class Job:
    """One model: how it is trained, and where it is kept."""

    method: str
    sigma: float
    epsilon: float
    rate: float
    scale: Scale
    data: str | None
    out: str
    attack_steps: int = 2
    attack_scale: float = 1.0
    device: str = "cpu"

    @property
    def name(self) -> str:
        """Of its folder."""
        tuned = "" if self.method == "at" else f"-lr{self.rate:g}"
        searched = "" if self.attack_steps == 2 else f"-T{self.attack_steps}"
        searched += "" if self.attack_scale == 1 else f"-v{self.attack_scale:g}"
        return f"{self.method}-sigma{self.sigma:g}{tuned}{searched}"

    @property
    def folder(self) -> Path:
        return Path(self.out) / self.name


def images(job: Job) -> tuple[Any, Any]:
    """Training and test images: of Fashion-MNIST, or of any folder that certcal reads."""
    folder = None if job.data is None else Path(job.data)
    if folder is None or any(folder.glob("*idx3*")):
        split = fashion_mnist(job.data, test=2 * job.scale.test)
        return split.train, split.test
    return open_inputs(folder, split="train").inputs, open_inputs(folder, split="test").inputs


def train_and_sample(job: Job) -> dict[str, Any]:
    """Train a model and draw its noise, or find both done. In a process of its own, on one core."""
    import torch

    from certcal.lab.training import recipe, train
    from certcal.models import export_onnx, load
    from certcal.models.networks import LeNet, by_name, load_weights
    from certcal.smoothing import sample

    torch.set_num_threads(1)
    training, testing = images(job)
    most = job.scale.train if job.method == "at" else job.scale.tuned
    inputs = Inputs.from_arrays(training.inputs[:most], training.labels[:most])
    kind = "smoothadv" if job.method in ("at", "tuned-at", "tuned-at-large") else job.method
    settings: dict[str, Any] = {"sigma": job.sigma, "draws": 2}
    if kind != "gaussian":
        settings |= {"epsilon": job.epsilon, "attack_steps": job.attack_steps, "attack_scale": job.attack_scale}
    start = None
    if job.method == "at":
        chosen = recipe(kind, epochs=job.scale.epochs, batch=job.scale.batch, **settings)
        # Warm-ups are a large part of so few epochs, so the learning rate falls late.
        last = job.scale.epochs
        chosen = replace(chosen, milestones=(last - 2, last - 1), sigma_warmup=1, epsilon_delay=1, epsilon_warmup=2)
    else:
        large = job.method.startswith(("acce", "exact", "tuned-at-large"))
        batch = job.scale.large if large else job.scale.batch
        chosen = recipe(kind, fine_tune=True, epochs=job.scale.tuning, batch=batch, learning_rate=job.rate, **settings)
        chosen = replace(chosen, milestones=(job.scale.tuning - 1,), epsilon_warmup=1 if kind != "gaussian" else 0)
        start = replace(job, method="at", attack_steps=2, attack_scale=1.0).folder / "model.safetensors"
    shape, classes = inputs.inputs.shape[1:], int(training.labels.max()) + 1
    is_small = job.scale.network == "lenet" and shape == (1, 28, 28)
    network = LeNet(mean=MEAN, std=STD) if is_small else by_name(job.scale.network, shape, classes)
    trained = train(network, inputs, chosen, out=job.folder, start=start, device=job.device)
    onnx = job.folder / "model.onnx"
    if not onnx.exists():
        export_onnx(load_weights(job.folder / "model.safetensors"), onnx)
    began = time.perf_counter()
    for run, rows in (("run", slice(0, job.scale.test)), ("fresh", slice(job.scale.test, 2 * job.scale.test))):
        if run == "run" or job.method in CONFIRMED:
            sample(
                load(onnx),
                testing.inputs[rows],
                testing.labels[rows],
                sigma=job.sigma,
                n=job.scale.draws,
                seed=0,
                out=job.folder / run,
            )
    seconds = sum(line["seconds"] for line in trained.history)
    samples = sum(line["samples"] for line in trained.history)
    return {"name": job.name, "train": seconds, "samples": samples, "sample": time.perf_counter() - began}


def jobs_of(scale: Scale, options: Any) -> tuple[list[Job], list[Job]]:
    """The baselines, and what is fine-tuned from them by the methods that are wanted."""
    where = None if options.data is None else str(options.data)
    first = [
        Job("at", sigma, epsilon, 0.1, scale, where, str(options.out), device=options.device)
        for sigma, epsilon in scale.baselines
    ]
    wanted = METHODS if options.only is None else ("at", "tuned-at", *options.only)
    rest = [
        replace(job, method=method, rate=rate, attack_steps=steps, attack_scale=factor)
        for rate in scale.rates
        for job in first
        for method in METHODS
        if method != "at" and method in wanted
        for steps in scale.attack_steps
        for factor in scale.attack_scales
    ]
    return first, rest


def run_all(scale: Scale, options: Any) -> tuple[list[Job], dict[str, Any]]:
    """Everything trained and sampled; how long each took is kept beside the models."""
    first, rest = jobs_of(scale, options)
    out, workers = options.out, options.workers
    kept = out / "times.json"
    times: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    for stage in (first, rest):
        with processes(workers) as pool:
            for done in pool.map(train_and_sample, stage):
                old = times.get(done["name"])
                # Draws that were there already took no time now; training's own log knows what it took.
                times[done["name"]] = {**done, "sample": max(done["sample"], old["sample"] if old else 0.0)}
                kept.write_text(json.dumps(times, indent=1), encoding="utf-8")
                print(
                    f"{done['name']}: trained in {done['train']:.0f} s, sampled in {done['sample']:.0f} s", flush=True
                )
    return [*first, *rest], times


def main() -> None:
    """Train, sample, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the four idx files, or of another data set")
    parser.add_argument("--network", help="another network than LeNet, by name, such as resnet20")
    parser.add_argument("--only", nargs="+", choices=METHODS, help="these rows, with AT and fine-tuned AT beside them")
    parser.add_argument("--full", action="store_true", help="the published scale, for a GPU")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--attack-steps", type=int, nargs="+", help="T of the adversaries, instead of 2")
    parser.add_argument("--attack-scales", type=float, nargs="+", help="v of the adversaries, instead of 1")
    parser.add_argument("--baselines", nargs="+", metavar="SIGMA:EPSILON", help="baselines, such as 0.25:0.5 0.5:1")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=NUMBER", help="change the scale, such as test=200"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the models and their draws")
    parser.add_argument("--quick", action="store_true", help="a small version, in minutes")
    parser.add_argument("--rates", type=float, nargs="+", help="learning rates of fine-tuning, instead of two")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL if options.full else Scale()
    for name in ("rates", "attack_steps", "attack_scales", "network"):
        given = getattr(options, name)
        if given:
            scale = replace(scale, **{name: given if name == "network" else tuple(given)})
    if options.baselines:
        pairs = tuple(tuple(map(float, each.split(":"))) for each in options.baselines)
        scale = replace(scale, baselines=pairs)
    for name, _, value in (each.partition("=") for each in options.set):
        scale = replace(scale, **{name: int(value)})
    options.out.mkdir(parents=True, exist_ok=True)
    jobs, times = run_all(scale, options)

    from _act_tables import compared

    present = {name: title for name, title in METHODS.items() if any(job.method == name for job in jobs)}
    page, figure = compared(jobs, present, RADII, CONFIRMED)
    spent = sum(each["train"] + each["sample"] for each in times.values()) / 3600
    page = f"{page}\n\n{len(jobs)} models were trained and sampled in {spent:.2g} hours of one core."
    print(page)
    if options.write_docs:
        chosen = f" --rates {' '.join(f'{rate:g}' for rate in options.rates)}" if options.rates else ""
        quick = " --quick" if options.quick else ""
        command = f"python experiments/fashion_mnist.py --out models{quick}{chosen} --write-docs"
        figure(RESULTS / "fashion-mnist.svg")
        write_results("fashion-mnist", command, page, "torch", "onnxruntime", "numpy")


if __name__ == "__main__":
    main()
