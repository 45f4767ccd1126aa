"""Which bounds are computed of predictions, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from certcal import __version__
from certcal._checks import InputError
from certcal._text import counted
from certcal.claims import short_text
from certcal.cli._progress import Waiting
from certcal.data import load_table
from certcal.report.results import BoundedResults, as_text, for_json

if TYPE_CHECKING:
    from certcal.claims import Bound
    from certcal.predictions import Predictions

_FROM_BELOW = "binned_lower"
_PERTURBED = "These are bounds for the classifier that answers with perturbed scores: perturb those that are used, too."


@dataclass(frozen=True)
class Question:
    """What is asked of a table.

    Attributes
    ----------
    delta
        The probability with which each bound may fail.
    bins, closed
        Of the binned error.
    variation
        By how much accuracy may go up and down in all, as confidence rises.
    slope
        How fast it may change, or None.
    bandwidth
        Of the noise that is added to the scores, or None.
    seed
        Of that noise, and of the folds.
    classwise
        Whether each class is bounded on its own.
    """

    delta: float
    bins: int
    closed: str
    variation: float = 1.0
    slope: float | None = None
    bandwidth: float | None = None
    seed: int = 0
    classwise: bool = False

    @property
    def conventions(self) -> dict[str, Any]:
        """How the numbers were computed, for machines."""
        given = {"variation": self.variation, "lipschitz": self.slope, "perturb": self.bandwidth}
        found = {"delta": self.delta, "bins": self.bins, "closed": self.closed}
        found |= {name: value for name, value in given.items() if value is not None}
        return found | {"seed": self.seed, "classwise": self.classwise}


def bound_table(path: str, overrides: Mapping[str, Any], asked: Question) -> BoundedResults:
    """Read a table of predictions and bound its calibration error in every way that the question allows.

    Parameters
    ----------
    path, overrides
        The file, and which of its columns to use for what.
    asked
        Levels and assumptions.
    """
    with Waiting() as waiting:
        waiting.stage("reading")
        loaded = load_table(path, overrides)
        predictions = loaded.predictions
        if predictions.sample_weight is not None:
            raise InputError(f"{path}: bounds are for samples of equal weight; leave --weight out")
        if asked.classwise and predictions.probabilities is None:
            raise InputError(
                f"--classwise needs a probability for each class, and {path} has {loaded.layout.kind} only"
            )
        waiting.stage("bounding")
        found = _bounds(predictions, asked)
    classes = "" if predictions.classes is None else f", {predictions.classes} classes"
    return BoundedResults(
        source=path,
        n=len(predictions),
        about={"kind": loaded.layout.kind, "classes": predictions.classes, "columns": loaded.layout.to_dict()},
        description=f"{counted(len(predictions), 'sample')}{classes}; {loaded.layout.description}",
        bounds=found,
        conventions=asked.conventions,
        notes=_notes(found, asked),
    )


def choose_for_table(path: str, overrides: Mapping[str, Any], tolerance: float, *, as_json: bool) -> None:
    """Print the largest bandwidth that lowers AUROC by at most the tolerance.

    Parameters
    ----------
    path, overrides
        The file, and which of its columns to use for what.
    tolerance
        The fall that is allowed.
    as_json
        For machines.
    """
    from certcal.bounds import choose_bandwidth

    with Waiting() as waiting:
        waiting.stage("choosing")
        predictions = load_table(path, overrides).predictions
        found = choose_bandwidth(predictions.confidence, predictions.correct, tolerance)
    if as_json:
        click.echo(as_text(for_json({"certcal": __version__, "source": path, **found.to_dict()})), nl=False)
        return
    click.echo(found.sentence[:1].upper() + found.sentence[1:])
    click.echo(f"For samples that had no part in this choice: certcal bound TABLE --perturb {found.bandwidth:g}")


def page_bounds(predictions: Predictions, *, delta: float, bins: int, closed: str) -> tuple[Bound, ...]:
    """The upper bounds that need no further question, for a report; none for weighted samples.

    The first is the one on the true calibration error.
    """
    if predictions.sample_weight is not None:
        return ()
    found = _bounds(predictions, Question(delta, bins, closed))
    return tuple(bound for name, bound in found.items() if name != _FROM_BELOW)


def _bounds(predictions: Predictions, asked: Question) -> dict[str, Bound]:
    from certcal.bounds import every_bound

    classes = {"probabilities": predictions.probabilities, "labels": predictions.labels} if asked.classwise else {}
    return every_bound(
        predictions.confidence,
        predictions.correct,
        asked.delta,
        bins=asked.bins,
        closed=asked.closed,
        variation=asked.variation,
        constant=asked.slope,
        bandwidth=asked.bandwidth,
        seed=asked.seed,
        **classes,
    )


def _notes(found: Mapping[str, Bound], asked: Question) -> str:
    level = short_text(asked.delta, "upper")
    text = (
        f"Numbers are rounded in the safe direction. Each bound may fail with probability {level} of its own: "
        f"choose one before looking, since that the best of these {len(found)} fails has up to {len(found)} times the "
        "probability. The true error can be above the binned one, never below it."
    )
    return text if asked.bandwidth is None else f"{text} {_PERTURBED}"
