"""Speed of sampling: LeNet on 28×28 inputs through onnxruntime, with noise and counting against the bare forward pass.

Prints tables and asserts ratios measured in this run, on one core. Bare and sampled passes take turns, and the fastest
turn of each counts: in this process's own processor time, so that other work on the machine weighs on neither, or,
where files are written, in seconds on the wall.
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
    batch, passes = ready(size), 8
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
    return [at_least("a run on disk: draws / bare forward passes", share, 0.8)]


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
    return conclude(rows + noise_rate(turns), "sampling", options.write_docs)


if __name__ == "__main__":
    sys.exit(main())
