"""Certified calibration of several models of one data set: the table of the best of each method, and its intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from certcal import choose
from certcal.lab.baselines import ONE_SIZE_FITS_ALL, admm
from certcal.lab.choose import WITHIN, CertifiedModel
from certcal.smoothing import Certificates, certificates, open_run
from certcal.worst_case import brier_score, calibration_error

ALPHA = 0.001
BINS = 15
RESAMPLES = 1000


@dataclass(frozen=True)
class Model:
    """A trained model and its draws.

    Attributes
    ----------
    method
        The row of the table it competes in.
    name
        What distinguishes it from others of the method.
    run
        Folder of its draws.
    """

    method: str
    name: str
    run: Path


@dataclass(frozen=True)
class Cell:
    """One model at one radius: certified accuracy, and the worst case of what is certified."""

    model: Model
    accuracy: float
    error: float
    error_all: float
    brier: float


@cache
def made(run: Path, radius: float, kind: str) -> Certificates:
    """Certificates of a run; made once."""
    return certificates(open_run(run).counts(), radius, alpha=ALPHA, confidence=kind)


def accuracy(found: Certificates) -> float:
    """Share of samples that are certified and right."""
    return float(np.mean(found.certified & found.correct))


def evaluate(model: Model, radius: float, kind: str) -> Cell | None:
    """The model at a radius, None where nothing is certified."""
    found = made(model.run, radius, kind)
    if not found.n_certified:
        return None
    worst = calibration_error(found.lower, found.upper, found.correct, BINS, certified=found.certified)
    brier = brier_score(found.lower, found.upper, found.correct, certified=found.certified)
    assert worst.all_samples is not None
    return Cell(model, accuracy(found), worst.value, worst.all_samples.value, brier.value)


@dataclass(frozen=True)
class Column:
    """One radius: the range of certified accuracies that are compared, and the best cell of each method in it."""

    radius: float
    highest: float
    by_error: dict[str, Cell]
    by_brier: dict[str, Cell]


def column(models: Sequence[Model], radius: float, kind: str) -> Column:
    """The paper's rule, as the library has it: of the models within 3 % of the highest accuracy, each method's best."""
    runs: dict[str, list[str]] = {}
    for model in models:
        runs.setdefault(model.method, []).append(str(model.run))
    by_run = {str(model.run): model for model in models}
    settings = {"radii": [radius], "within": WITHIN, "bins": BINS, "alpha": ALPHA, "confidence": kind}
    if not any(made(model.run, radius, kind).n_certified for model in models):
        return Column(radius, 0.0, {}, {})
    (found,) = choose(runs, **settings).at

    def cells(best: Mapping[str, CertifiedModel]) -> dict[str, Cell]:
        return {method: _cell(by_run[one.name], one) for method, one in best.items()}

    return Column(radius, found.highest, cells(found.by_error), cells(found.by_brier))


def _cell(model: Model, one: CertifiedModel) -> Cell:
    return Cell(model, one.accuracy, one.error.value, one.error_all.value, one.brier.value)


def approximated(model: Model, radius: float, kind: str) -> float:
    """What ADMM finds: the larger of the two runs of appendix G.3, in single precision as on a GPU."""
    found = made(model.run, radius, kind)
    keep = found.certified
    confidence = open_run(model.run).counts().confidence_estimates().values[keep]
    given = found.lower[keep], found.upper[keep], found.correct[keep]
    clean = np.clip(confidence, found.lower[keep], found.upper[keep])
    return admm(*given, BINS, confidence=clean, settings=ONE_SIZE_FITS_ALL, precision="float32").value


def difference(one: Model, other: Model, radius: float, kind: str, seed: int = 0) -> tuple[float, float, float]:
    """Exact calibration error of one model minus another's, with the middle 95 % over resampled images.

    The images are resampled in pairs: the same for both models. Which models are compared is not resampled.
    """
    first, second = made(one.run, radius, kind), made(other.run, radius, kind)

    def error(found: Certificates, rows: np.ndarray | slice) -> float:
        keep = found.certified[rows]
        given = (each[rows][keep] for each in (found.lower, found.upper, found.correct))
        return calibration_error(*given, BINS).value

    rng = np.random.default_rng([seed, 7])
    n = len(first)
    draws = [error(first, rows) - error(second, rows) for rows in (rng.integers(0, n, n) for _ in range(RESAMPLES))]
    low, high = np.quantile(draws, [0.025, 0.975])
    whole = slice(None)
    return error(first, whole) - error(second, whole), float(low), float(high)
