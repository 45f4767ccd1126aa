"""Training one architecture on one data set, and what is kept of it."""

from __future__ import annotations

import io
import json
import math
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _population_data import Images4, Places, read

from certcal._base.checks import InputError
from certcal._base.durable import make_folder, write_durably

EARLY, AGAIN = "early", "second seed"
EVALUATED = 200  # images in a batch when nothing is learned
ROBUST = 1_000  # test images on which robustness is measured
SOME = 2_000  # training images on which the fit is measured
STEPS = 4  # of projected gradient descent

# Per data set: standard deviation of the noise, and how far an adversary may move each pixel, in 255ths.
NOISE = {"mnist": 0.2, "fashion-mnist": 0.1, "cifar-10": 0.05, "digits": 0.2}
EPSILON = {"mnist": 16, "fashion-mnist": 4, "cifar-10": 2, "digits": 16}


@dataclass(frozen=True)
class Scale:
    """How much is trained. The first ``early`` epochs are a whole cosine; the rest begins again from there."""

    train: int
    epochs: int
    early: int
    batch: int = 128
    rate: float = 0.1
    decay: float = 5e-4


@dataclass(frozen=True)
class Job:
    """One training."""

    number: int
    space: str
    model: str
    operations: tuple[str, ...]
    widths: tuple[int, ...]
    data: str
    repeat: int = 0

    @property
    def name(self) -> str:
        return f"{self.space}-{self.number:04d}-{self.data}" + (f"-{self.repeat}" if self.repeat else "")

    @property
    def seed(self) -> int:
        """Its own, whatever else is trained."""
        return zlib.crc32(f"{self.model} on {self.data}{f', {self.repeat}' if self.repeat else ''}".encode())

    def __str__(self) -> str:
        return f"{self.model} on {self.data}"


@dataclass(frozen=True)
class Training:
    """The work: everything of a job, written to the folder; what it returns is its record."""

    scales: Mapping[str, Scale]  # by data set
    places: Places
    out: str

    def prepare(self) -> None:
        """One thread, and numbers too small to matter are zero."""
        import torch

        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        self.__dict__["images"] = dict[str, Images4]()

    def __getstate__(self) -> dict[str, Any]:
        return {"scales": self.scales, "places": self.places, "out": self.out}

    def __call__(self, job: Job) -> dict[str, Any]:
        images: dict[str, Images4] = self.__dict__["images"]
        scale = self.scales[job.data]
        if job.data not in images:
            images[job.data] = read(job.data, self.places, scale.train)
        began = time.perf_counter()
        record = {**asdict(job), "scale": asdict(scale)}
        try:
            record |= {"status": "ok", "reason": "", **self._trained(job, images[job.data])}
        except (ArithmeticError, RuntimeError) as error:
            record |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
        record["seconds"] = time.perf_counter() - began
        folder = Path(self.out) / "records"
        make_folder(folder)
        write_durably(folder / f"{job.name}.json", json.dumps(record, indent=1).encode())
        return record

    def _trained(self, job: Job, images: Images4) -> dict[str, Any]:
        """Train, keep the logits, and measure what needs the network."""
        import torch

        from certcal.models.networks import CellNetwork

        channels, pixels = images.train.shape[1:3]
        network = CellNetwork(
            job.operations,
            job.widths,
            stride=2 if pixels > 8 else 1,
            channels=channels,
            pixels=pixels,
            mean=images.mean,
            std=images.std,
            seed=job.seed,
        ).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]  # torch does not declare it
        found: dict[str, Any] = {
            "params": sum(weights.numel() for weights in network.parameters()),
            "multiply_adds": multiply_adds(network, images.test[:1]),
        }
        for stage, spent in fit(network, images, self.scales[job.data], job.seed):
            found[f"{stage}_seconds"] = spent
            logits = logits_of(network, images.test)
            if not np.isfinite(logits).all():
                raise ArithmeticError("the training diverged: there are logits that are not finite")
            self._keep(job, stage, logits=logits, labels=images.test_labels)
            found[f"{stage}_accuracy"] = float((logits.argmax(1) == images.test_labels).mean())
        trained = logits_of(network, images.train[:SOME])
        found["train_accuracy"] = float((trained.argmax(1) == images.train_labels[:SOME]).mean())
        rng = np.random.default_rng([job.seed, 1])
        test, labels = images.test[:ROBUST], images.test_labels[:ROBUST]
        noise = rng.standard_normal(test.shape, np.float32)
        noisy_logits = logits_of(network, np.clip(test + NOISE[job.data] * noise, 0, 1))
        self._keep(job, "ood-noisy", logits=noisy_logits)
        self._keep(job, "ood-other", logits=logits_of(network, images.other))
        epsilon = EPSILON[job.data] / 255
        attacked = {
            "noise_accuracy": noisy_logits,
            "blur_accuracy": logits_of(network, blurred(test)),
            "fgsm_accuracy": logits_of(network, climbed(network, test, labels, epsilon, 1)),
            "pgd_accuracy": logits_of(network, climbed(network, test, labels, epsilon, STEPS)),
        }
        return found | {name: float((each.argmax(1) == labels).mean()) for name, each in attacked.items()}

    def _keep(self, job: Job, stage: str, **arrays: Any) -> None:
        folder = Path(self.out) / stage
        make_folder(folder)
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        write_durably(folder / f"{job.name}.npz", stream.getvalue())


def fit(network: Any, images: Images4, scale: Scale, seed: int) -> Any:
    """Stochastic gradient descent with Nesterov's momentum; yields after the early and after the last epoch."""
    import torch
    from torch.nn.functional import cross_entropy

    inputs, labels = torch.from_numpy(images.train), torch.from_numpy(images.train_labels)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=scale.rate, momentum=0.9, nesterov=True, weight_decay=scale.decay, fused=True
    )
    steps = math.ceil(len(inputs) / scale.batch)
    rng = np.random.default_rng([seed, 0])
    began = time.perf_counter()
    for epoch in range(scale.epochs):
        first, last = (0, scale.early) if epoch < scale.early else (scale.early, scale.epochs)
        order = torch.from_numpy(rng.permutation(len(inputs)))
        network.train()
        for step, rows in enumerate(order.split(scale.batch)):
            progress = (epoch - first + step / steps) / (last - first)
            optimizer.param_groups[0]["lr"] = scale.rate * (1 + math.cos(math.pi * progress)) / 2
            optimizer.zero_grad()
            cross_entropy(network(inputs[rows]), labels[rows]).backward()
            optimizer.step()
        if epoch + 1 in (scale.early, scale.epochs):
            yield (EARLY if epoch + 1 == scale.early else "test"), time.perf_counter() - began


def logits_of(network: Any, inputs: Any) -> Any:
    """Logits in evaluation mode, as 32-bit numbers."""
    import torch

    network.eval()
    with torch.inference_mode():
        return torch.cat([network(part) for part in torch.from_numpy(inputs).split(EVALUATED)]).numpy()


def blurred(images: Any) -> Any:
    """Means of 3 × 3 pixels."""
    from torch import from_numpy
    from torch.nn.functional import avg_pool2d

    return avg_pool2d(from_numpy(images), 3, 1, 1, count_include_pad=False).numpy()


def climbed(network: Any, images: Any, labels: Any, epsilon: float, steps: int) -> Any:
    """Images moved by the signs of the loss's gradient, each pixel by at most epsilon and within 0 and 1."""
    import torch
    from torch.nn.functional import cross_entropy

    network.eval()
    found: list[Any] = []
    for start in range(0, len(images), EVALUATED):
        clean = torch.from_numpy(images[start : start + EVALUATED])
        truth = torch.from_numpy(labels[start : start + EVALUATED])
        here = clean.clone()
        for _ in range(steps):
            here.requires_grad_(True)
            (slope,) = torch.autograd.grad(cross_entropy(network(here), truth, reduction="sum"), here)
            stride = epsilon if steps == 1 else 2.5 * epsilon / steps
            moved = here.detach() + stride * slope.sign()
            here = moved.clamp(clean - epsilon, clean + epsilon).clamp(0, 1)
        found.append(here)
    return torch.cat(found).numpy()


def multiply_adds(network: Any, image: Any) -> int:
    """Products of weights and values for one image, in convolutions and linear layers."""
    from torch import nn

    counted: list[int] = []

    def count(module: Any, _: Any, output: Any) -> None:
        counted.append(module.weight.numel() * math.prod(output.shape[2:]))

    hooks = [each.register_forward_hook(count) for each in network.modules() if isinstance(each, nn.Conv2d | nn.Linear)]
    logits_of(network, image)
    for hook in hooks:
        hook.remove()
    return sum(counted)


def undone(jobs: list[Job], out: Path, scales: Mapping[str, Scale]) -> list[Job]:
    """Those without a record of success; records of another scale are refused."""
    rest: list[Job] = []
    for job in jobs:
        record = record_of(job, out)
        if record is not None and record["scale"] != asdict(scales[job.data]):
            raise InputError(f"{out} holds trainings of another scale; give another folder with --out")
        if record is None or record["status"] != "ok":
            rest.append(job)
    return rest


def record_of(job: Job, out: Path) -> dict[str, Any] | None:
    """What is known of a job, or None if it was not done."""
    path = out / "records" / f"{job.name}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None
