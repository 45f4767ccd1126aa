"""How many samples are enough for a bound of a given size? Simulated before there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from certcal._base.progress import ProgressLike, as_reporter
from certcal._base.signature import SEED, Option, Range, Takes, verb
from certcal.data import LoadedTable
from certcal.data.predictions import load_scores
from certcal.predictions import Predictions

if TYPE_CHECKING:
    from certcal.bounds import Plan
    from certcal.claims import Bound


@verb()
def plan(
    target: float,
    data: Any = None,
    *,
    score: str | Iterable[Any] | None = None,
    confidence: str | Iterable[Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    delta: Annotated[float, Takes("failure")] = 0.05,
    method: Annotated[
        Literal["binned", "ks", "kuiper", "bounded_variation"] | Callable[..., Bound], Option(metavar="BOUND")
    ] = "binned",
    error: Annotated[float, Takes("share", zero=True)] = 0.0,
    power: Annotated[float, Takes("share")] = 0.9,
    bins: Annotated[int, Range(1, 10_000)] = 15,
    repetitions: Annotated[int, Range(5, 10_000)] = 40,
    seed: Annotated[int, SEED] = 0,
    progress: ProgressLike = True,
) -> Plan:
    """Plan how many samples a bound on the true calibration error takes, before there are any.

    An estimate by simulation, see :func:`certcal.bounds.plan`: other scores or another miscalibration need other
    numbers.

    Parameters
    ----------
    target
        What the bound is to be at most.
    data
        Scores like those that are to come: an array, a table or a file; outcomes are not needed. By default scores
        are spread evenly from 0 to 1.
    score, confidence, columns
        Columns of a table by role; as for :func:`certcal.measure`.
    delta
        Failure probability of each bound.
    method
        Bound to plan for: binned, ks, kuiper or bounded_variation.

        Or a function of scores, outcomes and ``delta`` that returns a bound.
    error
        True error that is assumed. Default: 0.
    power
        Chance with which the bound is to be small enough.
    bins
        Number of bins of the binned error.
    repetitions
        Simulated data sets per number of samples.
    seed
        Random seed of the simulation.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal
    >>> certcal.plan(0.1, error=0.02).n
    790
    """
    from certcal.bounds import plan as simulated

    as_reporter(progress).stage("simulating")
    named = {role: name for role, name in (("score", score), ("confidence", confidence)) if name is not None}
    scores = _scores(data, {**(columns or {}), **named})
    return simulated(
        target,
        delta,
        method=method,
        scores=scores,
        error=error,
        power=power,
        bins=bins,
        repetitions=repetitions,
        seed=seed,
    )


def _scores(data: Any, columns: Mapping[str, Any]) -> Any:
    if isinstance(data, Predictions):
        return data.confidence
    if data is None or getattr(data, "ndim", 0) == 1 or type(data) in (list, tuple):
        return data
    loaded = load_scores(data, columns or None)
    return loaded.predictions.confidence if isinstance(loaded, LoadedTable) else loaded.confidence
