"""What the tests of runs share: small data, and ways to compare runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from certcal.models import load
from certcal.smoothing import Run, sample

HERE = "tests.smoothing.models_for_tests"
ROOT = Path(__file__).parent.parent.parent
COUNTED = ("label", "predicted", "draws", "votes", "invalid", "histogram", "sums")

X = np.random.default_rng(2).normal(size=(24, 4)).astype(np.float32)
Y = np.random.default_rng(3).integers(0, 3, 24)


def model(name: str = "linear", outputs: Any = "logits") -> Any:
    return load(f"{HERE}:{name}", outputs)


def draw(out: Path, **changes: Any) -> Run:
    """A small run, some forty shards."""
    settings: dict[str, Any] = {"model": model(), "inputs": X, "labels": Y, "sigma": 0.5, "n": 400, "n0": 20}
    settings |= {"seed": 7, "batch": 32, "unit": 400} | changes
    given, inputs, labels = (settings.pop(name) for name in ("model", "inputs", "labels"))
    return sample(given, inputs, labels, out=out, **settings)


def digests(run: Run) -> dict[str, bytes]:
    """The digest that every shard carries."""
    return {
        unit.name: pq.read_schema(run.path / unit.name).metadata[b"certcal.digest"] for unit in run.manifest.units()
    }


def assert_same_counts(one: Run, two: Run, names: tuple[str, ...] = COUNTED) -> None:
    a, b = one.counts(), two.counts()
    for name in names:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def shards(run: Run) -> list[Path]:
    return sorted((run.path / unit.name) for unit in run.manifest.units())
