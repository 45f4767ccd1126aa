"""Speed of sampling: LeNet on 28×28 inputs through onnxruntime, with noise and counting against the bare forward pass.

Also a stand-in for a device, which only takes time: does it ever wait for noise?

Prints tables and asserts ratios measured in this run. Bare and sampled passes take turns, and the fastest turn of each
counts: in this process's own processor time, so that other work on the machine weighs on neither; where files are
written or something else computes, in seconds on the wall.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from ratios import Row, at_least, conclude

from certcal.models import Model, export_onnx, load
from certcal.smoothing import Sampler, sample

SHAPE = (1, 28, 28)
SIGMA = 0.5
SAMPLES = 8
BATCH = 500
# Inputs of the stand-in device, and how many it takes at a time.
IMAGES = {(3, 32, 32): 500, (3, 224, 224): 32}
RATES = (0.25, 0.5)  # of the draws per second that a device without any work would get


def lenet(folder: Path) -> Model:
    from certcal.models.networks import LeNet

    path = folder / "lenet.onnx"
    export_onnx(LeNet(seed=0).eval(), path)
    return load(path)


def fastest(
    calls: dict[str, Callable[[], object]], turns: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Least time of each call, the calls taking turns."""
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return {name: min(found) for name, found in seconds.items()}


def images() -> np.ndarray:
    return (np.random.default_rng(0).integers(0, 256, (SAMPLES, *SHAPE)) / np.float32(255)).astype(np.float32)


def ready(batch: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, *SHAPE), np.float32)


def forward_share(model: Model, size: int, turns: int) -> list[Row]:
    """Throughput of sampling / of the bare forward pass on a batch of this size that is ready."""
    inputs, indices, classes = images(), np.arange(SAMPLES), np.zeros(SAMPLES, np.int64)
    batch, passes = ready(size), 4000 // size
    samplers = {
        f"{noise} noise, batch {size}": Sampler(model, sigma=SIGMA, seed=0, noise=noise, batch=size)
        for noise in ("gaussian", "exact")
    }
    calls: dict[str, Callable[[], object]] = {"bare": lambda: [model(batch) for _ in range(passes)]}
    calls |= {
        name: lambda sampler=sampler: sampler.count(inputs, indices, classes, 0, passes * size // SAMPLES)
        for name, sampler in samplers.items()
    }
    each = {name: found / (passes * size) * 1e6 for name, found in fastest(calls, turns).items()}
    print("counting     " + "   ".join(f"{name} {found:.2f} µs" for name, found in each.items()) + "   per draw")
    shares = {name: each["bare"] / each[name] for name in samplers}
    return [at_least(f"{name}: draws / bare forward passes", share, 0.8) for name, share in shares.items()]


def run_share(model: Model, folder: Path, turns: int) -> list[Row]:
    """The same for a whole run on disk: both stages, manifest, shards flushed to the disk."""
    inputs, labels = images(), np.zeros(SAMPLES, np.int64)
    batch, n, n0 = ready(BATCH), 9_900, 100
    passes = SAMPLES * (n + n0) // BATCH
    names = (folder / f"run-{number}" for number in range(10_000))
    seconds = fastest(
        {
            "bare": lambda: [model(batch) for _ in range(passes)],
            "run": lambda: sample(model, inputs, labels, sigma=SIGMA, n=n, n0=n0, out=next(names), batch=BATCH),
        },
        turns,
        time.perf_counter,
    )
    print(f"run on disk  {SAMPLES * (n + n0):,} draws: bare {seconds['bare']:.2f} s   run {seconds['run']:.2f} s")
    share = seconds["bare"] / seconds["run"]
    return [at_least("a run on disk: draws / bare forward passes", share, 0.85)]


class StandIn:
    """A device that only takes time, and leaves the interpreter to others meanwhile."""

    outputs, device = "logits", "stand-in"

    def __init__(self, rate: float = np.inf) -> None:
        self.rate = rate

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        until = time.perf_counter() + len(batch) / self.rate
        outputs = np.zeros((len(batch), 10), np.float32)
        time.sleep(max(0.0, until - time.perf_counter()))
        return outputs


def device_share(shape: tuple[int, ...], size: int, turns: int) -> list[Row]:
    """Draws of a device of several speeds / of the same one with batches that are ready."""
    inputs, passes, rows = np.zeros((1, *shape), np.float32), 40, []
    batch, name = np.zeros((size, *shape), np.float32), "×".join(map(str, shape))

    def drawing(model: StandIn) -> Callable[[], object]:
        sampler: Sampler = Sampler(model, sigma=SIGMA, seed=0, batch=size)  # pyright: ignore[reportArgumentType]
        return lambda: sampler.count(inputs, np.arange(1), np.zeros(1, np.int64), 0, passes * size)

    wall, most = time.perf_counter, drawing(StandIn())
    fastest({"": most}, 1)  # what comes first compiles
    began = wall()
    for _ in range(2 * turns):  # no fastest turn: other work on the machine is part of what the host can do
        most()
    ceiling = 2 * turns * passes * size / (wall() - began)
    for share in RATES:
        device = StandIn(share * ceiling)
        calls = {"bare": lambda device=device: [device(batch) for _ in range(passes)], "drawn": drawing(device)}
        rate = {each: passes * size / found for each, found in fastest(calls, turns, wall).items()}
        shown = "   ".join(f"{each} {found:,.0f}" for each, found in rate.items())
        print(f"stand-in     {name}: {shown} draws/s, of at most {ceiling:,.0f}")
        what = f"{name}, a device of {share:g} of the most draws: draws / bare"
        rows.append(at_least(what, rate["drawn"] / rate["bare"], 0.95))
    return rows


def noise_rate(turns: int) -> list[Row]:
    """Noise alone, straight into the batch."""
    from certcal._kernels import noise
    from certcal.smoothing._noise import exact_noise

    keys, table = noise.key_schedule(np.uint64(0)), exact_noise(SIGMA)
    size = int(np.prod(SHAPE))
    points, levels = np.zeros((1, size), np.float32), np.zeros((1, size), np.int32)
    numbers, rows = np.zeros(1, np.int64), np.empty((500, size), np.float32)
    where = (numbers, keys, 1, 0, 500, 0)
    thresholds = (table.upper, table.lower, table.guide, table.shift)
    calls: dict[str, Callable[[], object]] = {
        "gaussian": lambda: noise.add_gaussian(points, *where, np.float32(SIGMA), rows),
        "exact": lambda: noise.add_exact(levels, *where, *thresholds, rows),
        "numpy": lambda: np.random.default_rng(0).standard_normal(rows.shape, np.float32, rows),
    }
    seconds = fastest(calls, 4 * turns)
    rates = {name: rows.size / found / 1e6 for name, found in seconds.items()}
    print(
        "noise        " + "   ".join(f"{name} {rate:.0f} million/s" for name, rate in rates.items()) + "   on one core"
    )
    for shape in IMAGES:
        each = {name: 1e6 * rates[name] / np.prod(shape) for name in ("gaussian", "exact")}
        shown = "   ".join(f"{name} {rate:,.0f} draws/s" for name, rate in each.items())
        print(f"noise        {'×'.join(map(str, shape))}: {shown}   per core")
    ratio = rates["gaussian"] / rates["numpy"]
    return [at_least("Gaussian values per second / NumPy's", ratio, 1.5)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--write-docs", action="store_true", help="also rewrite the table of the documentation")
    options = parser.parse_args()
    turns = 10 if options.quick else 40
    with tempfile.TemporaryDirectory() as folder:
        model = lenet(Path(folder))
        rows = forward_share(model, BATCH, turns) + forward_share(model, 100, turns)
        rows += run_share(model, Path(folder), turns // 5)
    for shape, size in IMAGES.items():
        rows += device_share(shape, size, max(3, turns // 8))
    return conclude(rows + noise_rate(turns), "sampling", options.write_docs)


if __name__ == "__main__":
    sys.exit(main())
