"""What a plan would take: jobs, passes through networks, and hours from a short try of the real network."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from certcal._base.text import three_digits
from certcal.lab.plans.jobs import Job, Passes

_BYTES = 4
_BATCH_NUMBERS = 1 << 20  # of the inputs of one try, at most


@dataclass(frozen=True)
class WorkCost:
    """All jobs of one function."""

    work: str
    jobs: int
    left: int
    """All jobs, and those that are not done."""
    forward: int
    backward: int
    """Passes of one input without and with gradients in the jobs that are left."""
    hours: float | None
    """On one device as it was tried; None without a try."""
    stored: int | None
    """Bytes that are kept; None where the networks were not made."""


def cost_of(jobs: Iterable[Job], device: str, seconds: float, done: Collection[str] = ()) -> list[WorkCost]:
    """The cost of jobs by function, in order; with ``seconds`` of trying each network, half of them with gradients.

    Of jobs that are ``done``, by their fingerprints, nothing is left to be paid.
    """
    rates: dict[str, tuple[float, float, int]] = {}
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.work, []).append(job)
    lines: list[WorkCost] = []
    for work, own in found.items():
        left = [job for job in own if job.fingerprint not in done]
        passes = [job.passes for job in left if job.passes is not None]
        hours: float | None = None
        stored: int | None = None
        if seconds and passes:
            hours, stored = 0.0, 0
            for each in passes:
                key = repr((each.network, each.shape, each.classes))
                if key not in rates:
                    rates[key] = try_network(each, device, seconds)
                once, both, weights = rates[key]
                hours += (each.forward * once + each.backward * both) / 3600
                stored += each.stored + (weights if each.backward else 0)
        forward, backward = (sum(getattr(each, name) for each in passes) for name in ("forward", "backward"))
        lines.append(WorkCost(work.partition(".")[2], len(own), len(left), forward, backward, hours, stored))
    return lines


def check_networks(jobs: Iterable[Job]) -> None:
    """Refuse networks that there are not, or that do not take the inputs of their data."""
    for passes in {repr(each): each for job in jobs if (each := job.passes) is not None}.values():
        _make(json.dumps(passes.network, sort_keys=True), passes.shape, passes.classes)


@cache
def _make(network: str, shape: tuple[int, ...], classes: int) -> None:
    from certcal.models.networks import by_name

    by_name(sample_shape=shape, classes=classes, **json.loads(network))


def try_network(passes: Passes, device: str, seconds: float) -> tuple[float, float, int]:
    """Seconds of one input's forward pass, of its forward and backward pass, and bytes of the weights."""
    import torch

    from certcal.models.devices import resolve
    from certcal.models.networks import by_name

    place = resolve(device)
    network = by_name(sample_shape=passes.shape, classes=passes.classes, **passes.network).to(place)
    batch = max(1, min(256, _BATCH_NUMBERS // math.prod(passes.shape)))
    inputs = torch.rand((batch, *passes.shape), device=place)

    def forward() -> None:
        with torch.no_grad():
            network.eval()(inputs)

    def backward() -> None:
        network.train()(inputs).logsumexp(dim=1).sum().backward()

    once = [_seconds_of(way, seconds / 2, place) / batch for way in (forward, backward)]
    return once[0], once[1], _BYTES * sum(each.numel() for each in network.parameters())


def _seconds_of(way: Callable[[], None], seconds: float, device: str) -> float:
    import torch

    def run() -> None:
        way()
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    run()
    began, count = time.perf_counter(), 0
    while not count or time.perf_counter() - began < seconds:
        run()
        count += 1
    return (time.perf_counter() - began) / count


def cost_columns(lines: Sequence[WorkCost]) -> dict[str, list[Any]]:
    """The cost as a table."""
    hours = any(line.hours is not None for line in lines)
    columns: dict[str, list[Any]] = {
        "work": [line.work for line in lines],
        "jobs": [line.jobs for line in lines],
        **({"left": [line.left for line in lines]} if any(line.left < line.jobs for line in lines) else {}),
        "forward passes": [line.forward for line in lines],
        "backward passes": [line.backward for line in lines],
    }
    if hours:
        columns["hours of this device"] = [_text(line.hours, 1.0) for line in lines]
        columns["GB kept"] = [_text(line.stored, 1e9) for line in lines]
    return columns


def _text(value: float | None, unit: float) -> str:
    return "–" if value is None else three_digits(value / unit)
