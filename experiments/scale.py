"""What does work that outgrows one machine cost: draws, bytes, messages, and the one driver that hands it out?

Costs are measured on this machine, one after the other: draws per second and core, bytes per sample of a run, what the
driver does for a unit of work (plan it, send it, write its shard), and what Ray adds. Then a Ray cluster of made-up
nodes works on units that only wait, with more and more workers, until the driver can follow no longer. From these
numbers follows what 10⁶ images × 10⁵ draws, or a study of 10⁶ models, would take.

    python experiments/scale.py                # some minutes
    python experiments/scale.py --quick        # about a minute: fewer workers
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from _running import made_with, markdown

from certcal.models import Model, export_onnx, load
from certcal.smoothing import Sampler, sample

BATCH, SIGMA = 500, 0.5
IMAGES, DRAWS, MODELS = 10**6, 10**5, 10**6
WORKERS = (1, 2, 4, 8, 16, 32)
QUICK = (1, 4)
PER_NODE = 16
UNIT_SECONDS = 0.02  # what a made-up unit takes: short, so that few workers can saturate the driver
UNITS_EACH = 200


@dataclass(frozen=True)
class Rate:
    """Draws per second of one network on one core."""

    name: str
    inputs: tuple[int, ...]
    draws: float


@dataclass(frozen=True)
class Driver:
    """What the driver pays for one unit: seconds of processor time to plan it and to write its shard."""

    plan: float
    plan_bytes: float
    shard: float
    shard_samples: int
    bytes_per_sample: float


@dataclass(frozen=True)
class Load:
    """A cluster at work."""

    workers: int
    nodes: int
    seconds: float
    units: int
    driver_cpu: float
    driver_bytes: int

    @property
    def per_second(self) -> float:
        return self.units / self.seconds

    @property
    def use(self) -> float:
        """Share of the workers' time in which they had work."""
        return self.per_second * UNIT_SECONDS / self.workers


class Waiting:
    """A unit of work that only waits, and hands back as much as a real one."""

    def __init__(self, seconds: float, numbers: int) -> None:
        self.seconds, self.numbers = seconds, numbers

    def prepare(self) -> None:
        pass

    def __call__(self, piece: tuple[int, Any]) -> Any:
        time.sleep(self.seconds)
        return os.getpid(), np.zeros(self.numbers, np.int64)


def networks(folder: Path) -> Iterator[tuple[str, Model, tuple[int, ...]]]:
    from certcal.models.networks import LeNet, PreActResNet, ResNet

    for name, network, shape in (
        ("LeNet, 28 × 28", LeNet(seed=0), (1, 28, 28)),
        ("ResNet-20, 3 × 32 × 32", ResNet(depth=20, seed=0), (3, 32, 32)),
        ("PreActResNet-18, 3 × 32 × 32", PreActResNet(seed=0), (3, 32, 32)),
    ):
        path = folder / f"{name.split(',')[0]}.onnx"
        export_onnx(network.eval(), path)
        yield name, load(path), shape


def rates(folder: Path) -> list[Rate]:
    """Draws per second of processor time, noise and counting included."""
    found: list[Rate] = []
    for name, model, shape in networks(folder):
        sampler = Sampler(model, sigma=SIGMA, seed=0, batch=BATCH)
        inputs = np.random.default_rng(0).random((1, *shape), np.float32)
        draws = BATCH  # a batch is always full: fewer draws would pay for rows that nobody counts
        while True:  # as many draws as take a second; what came before has warmed up
            began = time.process_time()
            sampler.count(inputs, np.arange(1), np.zeros(1, np.int64), 0, draws)
            spent = time.process_time() - began
            if spent > 1:
                break
            draws *= 5
        found.append(Rate(name, shape, draws / spent))
    return found


def of_the_driver(folder: Path, planned_samples: int = 10**6) -> Driver:
    """Plan a unit for each of so many samples; write shards as large runs do; weigh what one leaves on the disk."""
    from certcal.models import wrap
    from certcal.smoothing._manifest import Size, Unit, plan
    from certcal.smoothing._sampler import Tally
    from certcal.smoothing._shards import counting_columns, write_shard

    before, began = resident(), time.process_time()
    units = plan([Size(planned_samples, 10**5)], 100, 100, 10**5)
    planned = (time.process_time() - began) / len(units), (resident() - before) / len(units)
    del units
    rng = np.random.default_rng(0)
    model = wrap(lambda batch: np.c_[batch.sum(1), -batch.sum(1)], outputs="logits")
    inputs, labels = rng.random((500, 4), np.float32), rng.integers(0, 2, 500)
    run = sample(model, inputs, labels, sigma=SIGMA, n=2_000, out=folder / "r")
    samples, shards = 250, 40
    width, none = len(run.manifest.thresholds) + 1, np.zeros(samples, np.int64)
    tally = Tally(
        np.full(samples, 10**5),
        none,
        rng.multinomial(10**5, rng.dirichlet(np.full(width, 0.05)), samples),
        np.full(samples, 10**5 << 29),
        np.tile([10**5, 0], (samples, 1)),
        np.zeros((samples, 0, width), np.int64),
    )
    began = time.process_time()
    for number in range(shards):
        unit = Unit("counting", number * samples, (number + 1) * samples, 0, 10**5)
        columns = counting_columns(unit, run.manifest, none, none[:, None][:, :0], tally)
        write_shard(folder / "shards", run.manifest, unit, columns)
    written = (time.process_time() - began) / shards
    weight = sum(path.stat().st_size for path in run.path.rglob("*.parquet"))
    return Driver(*planned, written, samples, weight / 500)


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Supply:
    """Pieces without end, until it is said how many are left."""

    def __init__(self, numbers: int) -> None:
        self.numbers, self.left = numbers, -1

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        for number in count():
            if self.left == 0:
                return
            self.left -= 1
            yield number, np.zeros(self.numbers, np.float32)


def simulate(workers: Sequence[int]) -> list[Load]:
    """A cluster of made-up nodes, each with sixteen of this machine's imaginary cores."""
    from ray.cluster_utils import Cluster

    from certcal.engines import RayCluster

    found: list[Load] = []
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = 0
    try:
        for number in workers:
            while nodes * PER_NODE < number:
                cluster.add_node(num_cpus=PER_NODE)
                nodes += 1
            engine = RayCluster(cluster.address, workers=number, patience=600)
            work, begun = Supply(784 * 10), set[int]()
            stream = engine.run(Waiting(UNIT_SECONDS, 257 * 10), work)
            with closing(stream):
                while len(begun) < number:  # a worker takes a while to start, and starting takes what is measured
                    begun.add(next(stream)[1][0])
                before, cpu, began = resident(), time.process_time(), time.perf_counter()
                work.left = UNITS_EACH * number
                done = sum(1 for _ in stream)
                spent = time.perf_counter() - began
            used = time.process_time() - cpu
            found.append(Load(number, nodes, spent, done, used / done, resident() - before))
            print(f"{number} workers: {found[-1].per_second:.0f} units/s, {found[-1].use:.0%} busy", flush=True)
    finally:
        cluster.shutdown()
    return found


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(90), duration(7_200), duration(10**7)
    ('1.5 minutes', '2 hours', '116 days')
    """
    for name, size, upto in (
        ("seconds", 1, 60),
        ("minutes", 60, 3600),
        ("hours", 3600, 172_800),
        ("days", 86_400, 1e99),
    ):
        if seconds < upto:
            return f"{float(f'{seconds / size:.3g}'):,g} {name}"
    raise AssertionError


def tables(rate: list[Rate], driver: Driver, loads: list[Load], battery: tuple[float, float]) -> str:
    from certcal.smoothing._manifest import Size, default_unit, number_of_units

    cost = loads[-1].driver_cpu + driver.shard
    unit = default_unit(IMAGES, 100, DRAWS, BATCH)
    count = number_of_units([Size(IMAGES, DRAWS)], 100, 100, unit)
    passes = IMAGES * (DRAWS + 100)
    parts = [
        "### What things cost",
        markdown(
            ("network (onnxruntime, float32)", "draws/s per core", f"{IMAGES:,} images × {DRAWS:,} draws, core hours"),
            [(each.name, f"{each.draws:,.0f}", f"{passes / each.draws / 3600:,.0f}") for each in rate],
        ),
        markdown(
            ("what", "measured"),
            [
                ("a run on disk, bytes per sample", f"{driver.bytes_per_sample:,.0f}"),
                ("planning a unit in the driver", f"{driver.plan * 1e6:.2f} µs, {driver.plan_bytes:,.0f} bytes"),
                (
                    f"writing a shard of {driver.shard_samples} samples",
                    f"{driver.shard * 1e3:.2f} ms of processor time",
                ),
                (
                    "handing a unit out and taking its result, through Ray",
                    f"{loads[-1].driver_cpu * 1e3:.2f} ms of processor time",
                ),
                ("the battery of a study, 10⁴ samples × 10 classes", f"{battery[0] * 1e3:,.0f} ms"),
                ("the battery of a study, 10⁴ samples × 100 classes", f"{battery[1] * 1e3:,.0f} ms"),
            ],
        ),
        f"### A cluster of made-up nodes, units of {UNIT_SECONDS:g} s",
        markdown(
            (
                "workers",
                "nodes",
                "units",
                "units/s",
                "workers busy",
                "driver, ms per unit",
                "driver's memory grew by, MB",
            ),
            [
                (
                    *(
                        f"{each.workers}",
                        f"{each.nodes}",
                        f"{each.units}",
                        f"{each.per_second:,.0f}",
                        f"{each.use:.0%}",
                    ),
                    *(f"{each.driver_cpu * 1e3:.2f}", f"{each.driver_bytes / 1e6:.1f}"),
                )
                for each in loads
            ],
        ),
        f"### {IMAGES:,} images × {DRAWS:,} draws",
        markdown(
            ("network", "cores", "time by the draws", "the driver's share of its time", "on disk, GB"),
            [
                (
                    *(each.name, f"{cores:,}", duration(passes / each.draws / cores)),
                    f"{count * cost / (passes / each.draws / cores):.2%}",
                    f"{IMAGES * driver.bytes_per_sample / 1e9:.1f}",
                )
                for each in rate
                for cores in (64, 4096)
            ],
        ),
        f"### A study of {MODELS:,} models",
        markdown(
            ("predictions per model", "core hours", "time on 64 cores", "files, TB", "driver, hours"),
            [
                (
                    f"10⁴ × {classes}",
                    f"{MODELS * seconds / 3600:,.0f}",
                    duration(MODELS * seconds / 64),
                    f"{MODELS * 4e4 * classes / 1e12:.1f}",
                    f"{MODELS * loads[-1].driver_cpu / 3600:.2f}",
                )
                for classes, seconds in zip((10, 100), battery, strict=True)
            ],
        ),
    ]
    return "\n\n".join(parts)


def of_the_battery() -> tuple[float, float]:
    """Seconds of one model's measurements, for 10 and 100 classes."""
    from certcal import Predictions
    from certcal.lab.study import battery

    found: list[float] = []
    for classes in (10, 100):
        rng = np.random.default_rng(0)
        logits = rng.normal(size=(10_000, classes)) * 3
        predictions = Predictions.from_logits(logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1))
        spent: list[float] = []
        for _ in range(4):
            began = time.process_time()
            battery(predictions)
            spent.append(time.process_time() - began)
        found.append(min(spent))
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer workers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = tables(
            rates(folder), of_the_driver(folder), simulate(QUICK if given.quick else WORKERS), of_the_battery()
        )
    print(made_with("ray", "torch", "onnxruntime", "numpy"), text, sep="\n\n")


if __name__ == "__main__":
    main()
