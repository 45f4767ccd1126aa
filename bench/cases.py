"""What is measured, on which data, and which ratios must hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

OURS = "certcal"
YARDSTICK = "numpy"
BINS = 15


@dataclass(frozen=True)
class Entry:
    """One library in a case, at the case's number of samples unless said otherwise."""

    library: str
    n: int | None = None


@dataclass(frozen=True)
class Case:
    """One task, given to several libraries on the same data."""

    name: str
    title: str
    metric: str
    n: int
    libraries: tuple[str, ...]
    others: tuple[Entry, ...] = ()
    dtype: str = "float64"
    classes: int = 0
    measures: str = "time"

    def entries(self) -> tuple[Entry, ...]:
        return (*(Entry(library) for library in self.libraries), *self.others)

    def size(self, entry: Entry, shrink: int) -> int:
        """Number of samples for an entry when everything is ``shrink`` times smaller."""
        return max(100, (entry.n or self.n) // shrink)


@dataclass(frozen=True)
class Target:
    """A ratio that must hold: peer's time over ours at least, or ours over the reference at most."""

    case: str
    text: str
    against: tuple[str, ...]
    at_least: float | None = None
    at_most: float | None = None


BIG, MIDDLE, SMALL = 10_000_000, 1_000_000, 10_000

CASES = (
    Case(
        "ece",
        "ECE, 15 equal-width bins, float64",
        "ece",
        BIG,
        (
            YARDSTICK,
            OURS,
            "relplot",
            "probcal",
            "torchmetrics",
            "netcal",
            "calibstats",
            "MAPIE",
            "pycalib",
            "calzone-tool",
        ),
    ),
    Case(
        "ece32",
        "ECE, 15 equal-width bins, float32",
        "ece",
        BIG,
        (YARDSTICK, OURS, "relplot", "probcal", "torchmetrics", "netcal"),
        dtype="float32",
    ),
    Case(
        "stateful",
        "ECE as a torchmetrics class, 100 batches, float32",
        "stateful_ece",
        BIG,
        (OURS, "torchmetrics"),
        dtype="float32",
    ),
    Case("weighted", "ECE with sample weights, float64", "weighted_ece", BIG, (YARDSTICK, OURS, "probcal")),
    Case(
        "equal-mass",
        "ECE, 15 equal-mass bins, float64",
        "equal_mass_ece",
        BIG,
        (OURS, "probcal", "scikit-learn", "netcal", "calibstats", "MAPIE"),
    ),
    Case("ks", "KS calibration error, float64", "ks_error", BIG, (OURS, "probmetrics", "MAPIE", "probcal")),
    Case("smooth", "SmoothECE, float64", "smooth_ece", BIG, (OURS, "probcal", "relplot")),
    Case(
        "classwise-100",
        "Classwise ECE, 100 classes, float64",
        "classwise_ece",
        100_000,
        (YARDSTICK, OURS, "MAPIE", "pycalib"),
        classes=100,
    ),
    Case(
        "classwise-1000",
        "Classwise ECE, 1000 classes, float64",
        "classwise_ece",
        50_000,
        (YARDSTICK, OURS, "MAPIE", "pycalib"),
        classes=1000,
    ),
    Case(
        "mmce",
        "MMCE, float64",
        "mmce",
        MIDDLE,
        (OURS,),
        (Entry(OURS, SMALL), Entry("netcal", SMALL), Entry("probcal", SMALL)),
    ),
    Case(
        "kde",
        "KDE-ECE, float64",
        "kde_ece",
        MIDDLE,
        (OURS, "statsmodels"),
        (Entry(OURS, SMALL), Entry("double sum", SMALL), Entry("scipy", SMALL)),
    ),
    Case(
        "memory",
        "Extra memory, float64",
        "memory",
        BIG,
        (
            *(f"{OURS}: {metric}" for metric in ("ece", "stateful_ece", "weighted_ece", "equal_mass_ece")),
            *(f"{OURS}: {metric}" for metric in ("ks_error", "smooth_ece", "kde_ece", "mmce", "weighted_mmce")),
            "torchmetrics: ece",
            "torchmetrics: stateful_ece",
            "relplot: ece",
            "probcal: equal_mass_ece",
            "probmetrics: ks_error",
            "probcal: smooth_ece",
        ),
        measures="memory",
    ),
)

FASTEST: tuple[str, ...] = ()  # every peer that was measured

TARGETS = (
    Target("ece", "at least 3 times as fast as relplot", ("relplot",), at_least=3),
    Target("ece", "at most 4 times numpy's sums of the two arrays", (YARDSTICK,), at_most=4),
    Target("equal-mass", "at least 5 times as fast as the fastest peer", FASTEST, at_least=5),
    Target("ks", "at least 5 times as fast as the fastest peer", FASTEST, at_least=5),
    Target("smooth", "at least 2 times as fast as probcal", ("probcal",), at_least=2),
    Target("classwise-100", "at least 15 times as fast as the fastest peer", FASTEST, at_least=15),
    Target("classwise-1000", "at least 15 times as fast as the fastest peer", FASTEST, at_least=15),
    Target("mmce", "10⁶ samples in less time than the fastest peer needs for 10⁴", FASTEST, at_least=1),
    Target("kde", "10⁶ samples in less time than a double sum over 10⁴", ("double sum", "scipy"), at_least=1),
    Target("memory", "every metric of ours needs at most one copy of its input", (), at_most=1),
)


def make_data(folder: Path, n: int, dtype: str, classes: int) -> None:
    """Write the arrays of one case to files that every library's process reads.

    Scores: confidences from Beta(4, 1.5) whose accuracy is too low and too high in turns, so that the metrics differ
    from each other. Matrices: softmax of Gaussian logits with labels drawn from a warmer softmax of the same logits.
    """
    rng = np.random.default_rng([n, classes])
    folder.mkdir(parents=True, exist_ok=True)
    if classes == 0:
        confidence = rng.beta(4.0, 1.5, size=n).astype(dtype)
        np.save(folder / "confidence.npy", confidence)
        accuracy = confidence + 0.1 * np.sin(4 * np.pi * confidence)
        np.save(folder / "correct.npy", (rng.random(n) < accuracy).astype(np.uint8))
        np.save(folder / "weight.npy", rng.exponential(size=n))
        return
    probabilities = np.empty((n, classes), dtype)
    labels = np.empty(n, np.int64)
    for start in range(0, n, 10_000):
        logits = 3.0 * rng.standard_normal((min(10_000, n - start), classes))
        noise = rng.gumbel(size=logits.shape)
        labels[start : start + 10_000] = (logits / 1.5 + noise).argmax(1)
        exponentials = np.exp(logits - logits.max(1, keepdims=True))
        probabilities[start : start + 10_000] = exponentials / exponentials.sum(1, keepdims=True)
    np.save(folder / "probabilities.npy", probabilities)
    np.save(folder / "labels.npy", labels)


def load_data(folder: Path) -> SimpleNamespace:
    """The arrays of one case, by name."""
    return SimpleNamespace(bins=BINS, **{path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))})


def first(data: SimpleNamespace, n: int) -> SimpleNamespace:
    """The first n samples."""
    arrays = {name: value[:n].copy() for name, value in vars(data).items() if isinstance(value, np.ndarray)}
    return SimpleNamespace(**{**vars(data), **arrays})
