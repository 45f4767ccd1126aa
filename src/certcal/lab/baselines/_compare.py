"""The exact worst case beside the published approximations, with the time each takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from certcal._base.checks import InputError
from certcal.claims import round_outward
from certcal.lab.baselines._admm import GRID, admm
from certcal.lab.baselines._dece import dece_ascent
from certcal.lab.baselines._problem import Baseline, check_problem, plain_error
from certcal.verbs.certification import ComparedMethod
from certcal.worst_case import calibration_error


def brier_confidences(
    lower: Any, upper: Any, correct: Any, bins: int = 15, *, edges: Any = None, closed: str = "left"
) -> Baseline:
    """Confidences of the certified Brier score (Emde et al. 2024, Theorem 3.3) and their calibration error.

    The lower end where the prediction is correct, the upper end where it is not. They maximise the Brier score over the
    intervals; their calibration error is one of many feasible values, so a lower bound of the worst case.

    Parameters
    ----------
    lower, upper
        Interval of each sample's confidence, in [0, 1].
    correct
        Whether each prediction is correct, 0 or 1.
    bins, edges, closed
        As for :func:`certcal.metrics.ece`.

    Returns
    -------
    Baseline
        ``value`` and ``confidence``.

    Examples
    --------
    >>> result = brier_confidences([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3)
    >>> result.confidence.tolist(), round(result.value, 12)
    ([0.1, 0.9], 0.9)
    """
    problem = check_problem(lower, upper, correct, bins, edges, closed)
    confidence = problem.start("brier", 0)
    value = plain_error(confidence, problem.correct, problem.edges, problem.closed)
    settings = {"bins": problem.edges.size - 1, "closed": problem.closed}
    return Baseline("Brier confidences", value, confidence, (value,), settings=settings)


# Whether no confidences exceed the value, and what finds it.
METHODS: dict[str, tuple[bool, Callable[..., Any]]] = {
    "exact": (True, calibration_error),
    "ADMM": (False, admm),
    "dECE ascent": (False, dece_ascent),
    "Brier confidences": (False, brier_confidences),
}


def prepare() -> None:
    """Load and compile what the methods need, so that their times are of the work alone.

    Raises
    ------
    InputError
        If torch is missing.
    """
    try:
        for _, method in METHODS.values():
            method([0.25], [0.75], [1], 2, **({"steps": 1} if method in (admm, dece_ascent) else {}))
    except InputError as error:
        raise InputError(str(error), argument="compare", remedy="or leave it out") from None


def compare(
    lower: Any,
    upper: Any,
    correct: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    confidence: Any = None,
    grid: bool = False,
    say: Callable[[str], object] = str,
) -> tuple[ComparedMethod, ...]:
    """Every method on the same intervals: the exact worst case, and what the published ones reach.

    Parameters
    ----------
    lower, upper, correct, bins, edges, closed
        As for :func:`certcal.worst_case.calibration_error`.
    confidence
        Clean confidences, where ADMM and the ascent start; None takes the middle of each interval.
    grid
        Whether ADMM runs with the 16 settings of appendix I.1, as in the paper's tables of trained models, and not with
        the two of appendix G.3.
    say
        Called with the name of each method before it runs.

    Examples
    --------
    >>> exact, *others = compare([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3)
    >>> exact.text, all(each.value <= exact.value for each in others)
    ('0.9001', True)
    """
    methods: list[ComparedMethod] = []
    for name, (is_exact, method) in METHODS.items():
        options: dict[str, Any] = {"edges": edges, "closed": closed}
        if method in (admm, dece_ascent):
            options["confidence"] = confidence
        if method is admm and grid:
            name, options["settings"] = f"ADMM, best of {len(GRID)} runs", GRID
        say(name)
        start = time.perf_counter()
        result = method(lower, upper, correct, bins, **options)
        seconds = time.perf_counter() - start
        value = float(result.value)
        text = result.text if is_exact else round_outward(value, "lower")
        methods.append(ComparedMethod(name, value, text, seconds, is_exact))
    return tuple(methods)
