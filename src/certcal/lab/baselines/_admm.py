"""ADMM on the worst-case calibration program (Emde et al. 2024, appendix E.3-E.4): a comparison for the exact one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from certcal._base.checks import InputError, choice, positive, whole_number
from certcal.lab.baselines._problem import STARTS, Baseline, check_problem, check_steps, plain_error, require_torch

ASSIGNMENTS = ("uniform", "zeros", "ones", "valid")


@dataclass(frozen=True)
class AdmmSettings:
    """Parameters of one run; the defaults are the one-size-fits-all setting of appendix G.3.

    Examples
    --------
    >>> AdmmSettings("brier").rho_growth
    1.004
    """

    initial: str = "clean"
    """Confidences to start from: "clean", "brier", "uniform" or "gaussian"."""
    confidence_rate: float = 0.001
    assignment_rate: float = 0.001
    """Learning rates of z and of a."""
    rho: float = 0.01
    rho_growth: float = 1.004
    rho_ceiling: float = 10.0
    """First ρ, the factor it grows by in every step, and where it stops growing; the same for all five constraints."""
    gradient_clip: float = 1.0
    """Largest entry of the gradient of a."""
    assignment: str = "uniform"
    """The first a: "uniform" for 1/M, "zeros", "ones", or "valid" for the bins of the first confidences. Appendix G.2
    finds the first by far the best."""
    updates: int = 1
    """Updates of a and z per step; appendix G.2 tries 1 to 3."""

    def __post_init__(self) -> None:
        choice(self.initial, STARTS, "initial")
        choice(self.assignment, ASSIGNMENTS, "assignment")
        whole_number(self.updates, 1, 100, "updates", "pass a whole number from 1 to 100")
        for name in ("confidence_rate", "assignment_rate", "rho", "rho_growth", "rho_ceiling", "gradient_clip"):
            positive(getattr(self, name), name)


# Both starts, and the larger value (appendices G.1 and G.3).
ONE_SIZE_FITS_ALL = (AdmmSettings("clean"), AdmmSettings("brier"))

# The 16 runs of appendix I.1. It does not print ρ and the clip, so they are those of the setting above.
GRID = tuple(
    AdmmSettings(initial, confidence_rate, assignment_rate, rho_growth=growth)
    for initial, confidence_rate, assignment_rate, growth in product(
        ("clean", "brier"), (0.001, 0.01), (0.01, 0.1), (1.004, 1.01)
    )
)


def admm(
    lower: Any,
    upper: Any,
    correct: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    confidence: Any = None,
    settings: AdmmSettings | Sequence[AdmmSettings] = ONE_SIZE_FITS_ALL,
    steps: int = 3000,
    seed: int = 0,
    track: bool = False,
    device: str = "auto",
    precision: str = "float64",
) -> Baseline:
    """Approximate the worst-case calibration error by ADMM (Emde et al. 2024, §3.4 and appendices E and G).

    After every step a copy of the state is projected to a feasible point, and the best of all steps and runs is kept.
    That is the published procedure, and its result is a *lower* bound of the worst case: it is not a certificate. For
    one use :func:`certcal.worst_case.calibration_error`.

    Parameters
    ----------
    lower, upper
        Interval of each sample's confidence, in [0, 1].
    correct
        Whether each prediction is correct, 0 or 1.
    bins, edges, closed
        As for :func:`certcal.metrics.ece`.
    confidence
        Clean confidences, for runs that start from them; None takes the middle of each interval.
    settings
        One setting or several; all runs advance together as one batch.
    steps
        Number of steps.
    seed
        For random starts.
    track
        Whether to keep the per-step diagnostics of Figures 9 to 11 in ``history``: curves of shape (runs, steps) named
        "lagrangian", "relaxed" and "projected" (calibration errors), "…_term" (of the Lagrangian, per constraint) and
        "…_distance_sum" and "…_distance_max" (from each constraint), and "assignment", the assignments of the first ten
        samples (runs, snapshots, samples, bins) after the steps "assignment_step".
    device, precision
        Where torch computes (as for :func:`certcal.models.load`), and in "float64" or "float32"; "auto" is a device
        that has the precision. The reported value is always that of float64 confidences.

    Returns
    -------
    Baseline
        ``value``, ``confidence``, ``runs`` and ``history``.

    Examples
    --------
    The worked example of appendix E.2, where the worst case is 0.9:

    >>> fast = AdmmSettings(confidence_rate=0.01, assignment_rate=0.1)
    >>> result = admm([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3, settings=fast, steps=200)
    >>> round(result.value, 12), result.confidence.tolist()
    (0.9, [0.1, 0.9])
    """
    problem = check_problem(lower, upper, correct, bins, edges, closed, confidence)
    chosen = (settings,) if isinstance(settings, AdmmSettings) else tuple(settings)
    if not chosen:
        raise InputError("settings is empty; pass at least one AdmmSettings")
    count = check_steps(steps)
    require_torch("admm")
    from certcal.lab.baselines.admm_steps import solve

    found, bin_of, history = solve(problem, chosen, count, seed, track, device, precision)
    confidences = [problem.inside(z, m) for z, m in zip(found, bin_of, strict=True)]
    values = [plain_error(z, problem.correct, problem.edges, problem.closed) for z in confidences]
    best = int(np.argmax(values))
    used = {"bins": problem.edges.size - 1, "closed": problem.closed, "steps": count, **asdict(chosen[best])}
    return Baseline("ADMM", values[best], confidences[best], tuple(values), history, used)


def admm_grid(lower: Any, upper: Any, correct: Any, bins: int = 15, **options: Any) -> Baseline:
    """:func:`admm` with the 16 settings of appendix I.1, of which the largest value counts.

    Parameters
    ----------
    lower, upper, correct, bins
        As for :func:`admm`.
    **options
        Any other argument of :func:`admm` except ``settings``.

    Returns
    -------
    Baseline
        With 16 ``runs``.

    Examples
    --------
    >>> result = admm_grid([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3, steps=300)
    >>> len(result.runs), round(result.value, 12)
    (16, 0.9)
    """
    return admm(lower, upper, correct, bins, settings=GRID, **options)
