"""Several runs of one method at one noise level: other seeds of the same training, taken together.

Pooled, the rows of S runs over the same n samples make S n rows. Certified accuracy, average certified radius and
P(p_A >= p) of these are the means over the runs, so all that is asked of one run can be asked of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal.smoothing.robustness.votes import NamedLog, as_record

if TYPE_CHECKING:
    from certcal.lab.logs._comparison import Compared


class Spread(NamedTuple):
    """Mean and standard deviation over runs, the latter with S - 1 below."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Mean and standard deviation of at least two values.

        Examples
        --------
        >>> Spread.of([1.0, 2.0, 3.0])
        Spread(mean=2.0, deviation=1.0)
        """
        return cls(fmean(values), stdev(values))


@dataclass(frozen=True, eq=False)
class RepeatedRuns(
    PlainValues,
    kind="repeated runs",
    keys="family sigma runs=names at average_certified_radius=average certified_accuracy=accuracies "
    "certified_as_printed=printed",
):
    """The runs of one method at one noise level, each on its own.

    What spreads is everything that differs between the runs: seeds of training and of the noise. The samples are the
    same, so nothing is said of others.

    Examples
    --------
    >>> from certcal.lab.logs import compare
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> one, two = (VoteRecord.of(votes, 100, [1, 1], sigma=1.0) for votes in ([100, 90], [100, 100]))
    >>> (repeated,) = compare({"gaussian": [one, two]}, at=[1.0]).repeats
    >>> repeated.accuracies[0].mean, round(repeated.accuracies[0].deviation, 4)
    (0.75, 0.3536)
    """

    family: str
    sigma: float
    """Which method, and its noise level."""
    runs: tuple[Compared, ...]
    """In the order given."""

    @property
    def average(self) -> Spread:
        """Average certified radius."""
        return Spread.of([run.average.value for run in self.runs])

    @property
    def accuracies(self) -> tuple[Spread, ...]:
        """Certified accuracy at each radius; of logs as in their curves, at least."""
        return tuple(Spread.of(values) for values in zip(*(run.curve.values for run in self.runs), strict=True))

    @property
    def printed(self) -> tuple[Spread, ...]:
        """Certified accuracy by the radii as a log prints them, as published tables have it."""
        return tuple(Spread.of(values) for values in zip(*(run.printed.values for run in self.runs), strict=True))

    @property
    def at(self) -> tuple[float, ...]:
        """Radii."""
        return self.runs[0].curve.at

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the runs."""
        return tuple(run.name for run in self.runs)


def pool_runs(sources: Sequence[Any], name: str) -> Any:
    """Runs of one method at one noise level as one source, under a name."""
    records = [as_record(each) for each in sources]
    logs = [hasattr(each, "record") for each in sources]
    if any(logs) and not all(logs):
        raise InputError(f"{name} has both runs and logs at one sigma; give the runs and the logs different names")
    sizes = {len(record) for record in records}
    if len(sizes) > 1:
        raise InputError(
            f"the runs of {name} have {min(sizes)} to {max(sizes)} samples",
            argument="samples",
            remedy="compare the common ones, or runs of the same samples",
        )
    arrays = ("index", "label", "correct", "draws", "lowest", "highest", "unknown")
    together = {each: np.concatenate([getattr(record, each) for record in records]) for each in arrays}
    record = replace(records[0], name=name, **together)
    if not any(logs):
        return record
    levels = {float(each.alpha) for each in sources}
    if len(levels) > 1:
        raise InputError(f"the logs of {name} were certified at different alpha; give them different names")
    radii = np.concatenate([each.radii for each in sources])
    notes = tuple(dict.fromkeys(note for each in sources for note in each.notes))
    return NamedLog(record, name, radii, levels.pop(), notes)
