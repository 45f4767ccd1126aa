"""The exact worst case beside the published approximations, with the time each takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from certcal._checks import InputError
from certcal.claims import round_outward
from certcal.cli._progress import Waiting
from certcal.data import IntervalPart
from certcal.report.certificates import Method
from certcal.worst_case import baselines, calibration_error

# Whether no confidences exceed the value, and what finds it.
METHODS: dict[str, tuple[bool, Callable[..., Any]]] = {
    "exact": (True, calibration_error),
    "ADMM": (False, baselines.admm),
    "dECE ascent": (False, baselines.dece_ascent),
    "Brier confidences": (False, baselines.brier_confidences),
}


def prepare_rivals() -> None:
    """Load and compile what the methods need, so that their times are of the work alone; say so if torch is missing."""
    try:
        for _, method in METHODS.values():
            steps = {"steps": 1} if method in (baselines.admm, baselines.dece_ascent) else {}
            method([0.25], [0.75], [1], 2, **steps)
    except InputError as error:
        raise InputError(f"--compare: {error}, or leave out --compare") from None


def run_methods(part: IntervalPart, bins: int, closed: str, waiting: Waiting) -> list[Method]:
    """Every method on the certified samples of a part."""
    keep = slice(None) if part.certified is None else part.certified
    arrays = (part.lower[keep], part.upper[keep], part.correct[keep])
    found: list[Method] = []
    for name, (is_exact, method) in METHODS.items():
        waiting.stage(name if part.radius is None else f"{name}, radius {part.radius}")
        start = time.perf_counter()
        result = method(*arrays, bins, closed=closed)
        seconds = time.perf_counter() - start
        value = float(result.value)
        text = result.text if is_exact else round_outward(value, "lower")
        found.append(Method(part.radius, name, value, text, seconds, is_exact))
    return found
