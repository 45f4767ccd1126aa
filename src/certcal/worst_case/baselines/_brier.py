"""The confidences that reach the certified Brier score, used as a guess at the worst calibration error."""

from __future__ import annotations

from typing import Any

from certcal.worst_case.baselines._problem import check_problem
from certcal.worst_case.baselines._result import Baseline, plain_error


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
