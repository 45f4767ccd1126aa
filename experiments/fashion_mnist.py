"""Does training against calibration adversaries lower certified calibration errors? Fashion-MNIST, LeNet, two cores.

The setting of Emde et al. (2024), appendix J.1, scaled down: LeNet is trained adversarially (SmoothAdv) at two noise
levels, each of these baselines is fine-tuned by every method with two learning rates, every model is sampled on the
first 500 test images, and each method's best model within 3 % of the highest certified accuracy is compared per
radius (the rule of its Table 7), by the exact worst-case calibration error.

    python experiments/fashion_mnist.py --out models              # resumes where it was stopped
    python experiments/fashion_mnist.py --out quick --quick       # minutes: few images, few epochs
    python experiments/fashion_mnist.py --out models --write-docs # table, figure and text's numbers into docs/results

Needs Debian's package `dataset-fashion-mnist`, or --data FOLDER with its idx files.
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

from certcal.data import Inputs, fashion_mnist

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

    @property
    def name(self) -> str:
        """Of its folder."""
        tuned = "" if self.method == "at" else f"-lr{self.rate:g}"
        return f"{self.method}-sigma{self.sigma:g}{tuned}"

    @property
    def folder(self) -> Path:
        return Path(self.out) / self.name


def train_and_sample(job: Job) -> dict[str, Any]:
    """Train a model and draw its noise, or find both done. In a process of its own, on one core."""
    import torch

    from certcal.models import export_onnx, load
    from certcal.models.networks import LeNet, load_weights
    from certcal.smoothing import sample
    from certcal.training import recipe, train

    torch.set_num_threads(1)
    split = fashion_mnist(job.data, test=2 * job.scale.test)
    most = job.scale.train if job.method == "at" else job.scale.tuned
    inputs = Inputs.from_arrays(split.train.inputs[:most], split.train.labels[:most])
    kind = "smoothadv" if job.method in ("at", "tuned-at", "tuned-at-large") else job.method
    settings: dict[str, Any] = {"sigma": job.sigma, "draws": 2}
    if kind != "gaussian":
        settings |= {"epsilon": job.epsilon, "attack_steps": 2}
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
        start = replace(job, method="at").folder / "model.safetensors"
    network = LeNet(mean=MEAN, std=STD)
    trained = train(network, inputs, chosen, out=job.folder, start=start)
    onnx = job.folder / "model.onnx"
    if not onnx.exists():
        export_onnx(load_weights(job.folder / "model.safetensors"), onnx)
    began = time.perf_counter()
    for run, rows in (("run", slice(0, job.scale.test)), ("fresh", slice(job.scale.test, 2 * job.scale.test))):
        if run == "run" or job.method in CONFIRMED:
            images, labels = split.test.inputs[rows], split.test.labels[rows]
            sample(load(onnx), images, labels, sigma=job.sigma, n=job.scale.draws, seed=0, out=job.folder / run)
    seconds = sum(line["seconds"] for line in trained.history)
    samples = sum(line["samples"] for line in trained.history)
    return {"name": job.name, "train": seconds, "samples": samples, "sample": time.perf_counter() - began}


def jobs_of(scale: Scale, data: Path | None, out: Path) -> tuple[list[Job], list[Job]]:
    """The baselines, and what is fine-tuned from them."""
    where = None if data is None else str(data)
    first = [Job("at", sigma, epsilon, 0.1, scale, where, str(out)) for sigma, epsilon in scale.baselines]
    rest = [
        replace(job, method=method, rate=rate)
        for rate in scale.rates
        for job in first
        for method in METHODS
        if method != "at"
    ]
    return first, rest


def run_all(scale: Scale, data: Path | None, out: Path, workers: int) -> tuple[list[Job], dict[str, Any]]:
    """Everything trained and sampled; how long each took is kept beside the models."""
    first, rest = jobs_of(scale, data, out)
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
    parser.add_argument("--data", type=Path, help="folder with the four idx files")
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the models and their draws")
    parser.add_argument("--quick", action="store_true", help="a small version, in minutes")
    parser.add_argument("--rates", type=float, nargs="+", help="learning rates of fine-tuning, instead of two")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    scale = QUICK if options.quick else Scale()
    if options.rates:
        scale = replace(scale, rates=tuple(options.rates))
    options.out.mkdir(parents=True, exist_ok=True)
    jobs, times = run_all(scale, options.data, options.out, options.workers)

    from _act_tables import compared

    page, figure = compared(jobs, METHODS, RADII, CONFIRMED)
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
