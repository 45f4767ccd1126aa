"""A run over images of which only a few are ever in memory: how much the driver holds, by the number of images.

    python experiments/lazy_inputs.py                                  # 500 and 2,000 of 10^6 images, some two minutes
    python experiments/lazy_inputs.py --images 1000000 --workers 64    # all of them
    python experiments/lazy_inputs.py --kind dataset                   # made by number instead of read from a file
    SIDE=12 python experiments/lazy_inputs.py --images 100000 1000000  # 10^6 samples of tiny images: all but the inputs

The file declares 10^6 images of 3 x 224 x 224 bytes (150 GB, as float32 602 GB). It is sparse: it takes no disk, and
what is read from it are zeros. Every size runs in a process of its own, whose largest resident memory is the operating
system's. The driver must stay below 2 GB, also at 10^6 images by what an image adds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

DECLARED = 10**6
LIMIT = 2e9


def shape() -> tuple[int, int, int]:
    """Of an image."""
    side = int(os.environ.get("SIDE", "224"))
    return 3, side, side


class Synthetic:
    """Image i is made from i: bytes of a generator with that seed. What a torch ``Dataset`` would look like."""

    targets = np.arange(DECLARED) % 10

    def __len__(self) -> int:
        return DECLARED

    def __getitem__(self, number: int) -> tuple[np.ndarray, int]:
        return np.random.default_rng(number).integers(0, 256, shape(), np.uint8), number % 10


def corner(batch: np.ndarray) -> np.ndarray:
    """A network that costs nothing: ten pixels are the logits."""
    return batch[:, 0, 0, :10]


def declare(folder: Path) -> None:
    """Images on disk without any: a header and a hole."""
    folder.mkdir(exist_ok=True)
    with (folder / "inputs.npy").open("wb") as stream:
        np.lib.format.write_array_header_2_0(
            stream, {"descr": "|u1", "fortran_order": False, "shape": (DECLARED, *shape())}
        )
        stream.truncate(stream.tell() + DECLARED * int(np.prod(shape())))
    np.save(folder / "labels.npy", np.arange(DECLARED) % 10)


def one(data: str, images: int, workers: int, draws: int) -> dict[str, Any]:
    """Draw a run, and say how long its parts took and what this process held at most."""
    import certcal

    begun: dict[str, float] = {"start": time.perf_counter()}

    class Clock:
        def stage(self, name: str, *_: object) -> None:
            begun[name] = time.perf_counter()

        def advance(self, *_: object) -> None:
            pass

        say = advance

    with tempfile.TemporaryDirectory() as folder:
        options = {"sigma": 0.5, "n": draws, "n0": draws, "batch": 64, "limit": images, "workers": workers}
        clock: Any = Clock()
        model = certcal.models.load("lazy_inputs:corner", outputs="logits")
        certcal.sample(model, data, out=f"{folder}/run", progress=clock, **options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "images": images,
        "fingerprint_seconds": begun["drawing"] - begun["trying the model"],
        "drawing_seconds": time.perf_counter() - begun["drawing"],
        "driver_bytes": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--kind", choices=("file", "dataset"), default="file")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(asked.one, asked.images[0], asked.workers, asked.draws)))
        return
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/data" if asked.kind == "file" else "lazy_inputs:Synthetic"
        if asked.kind == "file":
            declare(Path(data))
        for images in asked.images:
            command = [sys.executable, __file__, "--one", data, "--images", str(images)]
            command += ["--workers", str(asked.workers), "--draws", str(asked.draws)]
            paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}
            )
            row = json.loads(done.stdout)
            found.append(row)
            size = images * int(np.prod(shape())) * 4
            print(
                f"{images:>9,} of {DECLARED:,} images ({size / 1e9:.1f} GB as float32): driver at most "
                f"{row['driver_bytes'] / 1e6:.0f} MB; trial and fingerprint {row['fingerprint_seconds']:.1f} s "
                f"({size / 1e9 / row['fingerprint_seconds']:.2f} GB/s); {asked.draws} + {asked.draws} draws each "
                f"{row['drawing_seconds']:.1f} s ({images / row['drawing_seconds']:.0f} images/s)"
            )
    first, last = found[0], found[-1]
    slope = max(0.0, (last["driver_bytes"] - first["driver_bytes"]) / max(1, last["images"] - first["images"]))
    whole = last["driver_bytes"] + slope * max(0, DECLARED - last["images"])
    print(f"an image adds {slope:.0f} bytes to the driver's peak, which makes {whole / 1e9:.2f} GB for {DECLARED:,}")
    if last["driver_bytes"] >= LIMIT:
        raise SystemExit("the driver held 2 GB or more")


if __name__ == "__main__":
    main()
