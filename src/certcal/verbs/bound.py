"""How large can the true calibration error be? Bounds that hold for the population behind a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import certcal
from certcal._checks import MOST_CHANGE, InputError
from certcal._progress import SILENT, Progress
from certcal._settings import Settings, setting, takes
from certcal._text import counted
from certcal.claims import Bound, round_outward
from certcal.data import OPTIONS, load_table
from certcal.predictions import Predictions
from certcal.result import Result

if TYPE_CHECKING:
    from certcal.bounds import BandwidthChoice

_FROM_BELOW = "binned_lower"


@dataclass(frozen=True)
class BoundSettings(Settings):
    """What is assumed, and how often a bound may fail."""

    delta: float = setting(0.05, "Failure probability of each bound.", "failure")
    bins: int = setting(15, "Number of bins of the binned error.", "whole", least=1, most=10_000)
    closed: str = setting("left", "Closed end of each bin.", "word", choices=("left", "right"))
    variation: float = setting(
        1.0,
        "Total variation of accuracy as a function of confidence; 1 suffices if accuracy rises with confidence.",
        "positive",
        most=MOST_CHANGE,
    )
    lipschitz: float | None = setting(
        None, "Lipschitz constant of accuracy as a function of confidence.", "positive", most=MOST_CHANGE
    )
    perturb: float | None = setting(
        None,
        "Bandwidth of noise added to the scores first; the bound is about the perturbed scores.",
        "positive",
    )
    classwise: bool = setting(False, "Also bound the classwise calibration error, averaged over classes.", "flag")
    seed: int = setting(0, "Random seed of the noise and the folds.", "whole", least=0, most=2**63 - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.perturb is not None and (self.lipschitz is not None or self.classwise):
            other = "lipschitz" if self.lipschitz is not None else "classwise"
            raise InputError(f"it cannot be combined with {other}", argument="perturb", remedy="leave one out")

    @property
    def conventions(self) -> dict[str, Any]:
        """How the numbers were computed, for machines."""
        given = {"variation": self.variation, "lipschitz": self.lipschitz, "perturb": self.perturb}
        found = {"delta": self.delta, "bins": self.bins, "closed": self.closed}
        found |= {name: value for name, value in given.items() if value is not None}
        return found | {"seed": self.seed, "classwise": self.classwise}


@dataclass(frozen=True, eq=False, repr=False)
class Bounds(Result):
    """Bounds on the true calibration error behind a table.

    Attributes
    ----------
    source
        Name of the file, or what was bounded.
    n
        Number of samples.
    about
        Further facts for machines: columns, kind, classes.
    description
        The same in a line for people.
    bounds
        By method, the function of :mod:`certcal.bounds`; the mean over classes has "classwise_" before it.
    conventions
        Delta and what else was asked for.

    Examples
    --------
    >>> import certcal
    >>> b = certcal.bound({"confidence": [0.75] * 400, "correct": [1, 1, 1, 0] * 100})
    >>> b["binned"].text
    '0.0643'
    """

    view: ClassVar[str] = "certcal.report.views.bounds"

    source: str
    n: int
    about: Mapping[str, Any]
    description: str
    bounds: Mapping[str, Bound]
    conventions: Mapping[str, Any]

    def __getitem__(self, method: str) -> Bound:
        return self.bounds[method]

    def __repr__(self) -> str:
        first = next(iter(self.bounds.values()))
        return f"<Bounds of {self.source}: {counted(self.n, 'sample')}, {first.name} at most {first.text}>"

    @property
    def seeds(self) -> Mapping[str, int]:
        """Of noise and folds."""
        return {"noise and folds": self.conventions["seed"]}

    @property
    def sources(self) -> Sequence[str]:
        """The file."""
        return (self.source,)

    def claims(self) -> Sequence[Bound]:
        """Every bound."""
        return tuple(self.bounds.values())

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "certcal": certcal.__version__,
            "source": self.source,
            "n": self.n,
            **self.about,
            "conventions": dict(self.conventions),
            "bounds": [{"method": name, **bound.to_dict()} for name, bound in self.bounds.items()],
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per bound with all digits, followed by its terms."""
        lines: list[tuple[Any, ...]] = []
        for name, bound in self.bounds.items():
            rest = bound.delta, bound.n
            lines.append((name, None, bound.side, bound.value, bound.text, *rest, bound.statement))
            for term, value in bound.terms.items():
                text = round_outward(value, bound.side)
                lines.append((name, term, bound.side, float(value), text, *rest, None))
        names = ("method", "term", "side", "value", "text", "delta", "n", "sentence")
        return dict(zip(names, zip(*lines, strict=True), strict=True))


@takes(BoundSettings, OPTIONS)
def bound(
    data: Predictions | str | os.PathLike[str] | Any,
    *,
    columns: Mapping[str, Any] | None = None,
    source: str | None = None,
    progress: Progress = SILENT,
    settings: BoundSettings,
) -> Bounds:
    """Bound the true calibration error of the classifier behind the predictions, in every way that is allowed.

    A measured error is an estimate that can be wrong by any amount. A bound holds with probability 1 - delta over the
    draw of the samples, for any number of them, under the assumptions that it lists. The samples must not have been
    used to train, choose or recalibrate the classifier. Keywords beside those below are the fields of
    :class:`BoundSettings`: delta, bins, closed, variation, lipschitz, perturb, classwise, seed.

    Parameters
    ----------
    data, columns, source, progress
        As for :func:`certcal.measure`.
    settings
        All settings at once.

    Examples
    --------
    >>> import certcal
    >>> certcal.bound({"confidence": [0.75] * 400, "correct": [1, 1, 1, 0] * 100}, delta=0.01)["binned"].delta
    0.01
    """
    progress.stage("reading")
    if isinstance(data, Predictions):
        predictions, name, about, more = data, "predictions", {"kind": data.kind, "classes": data.classes}, ""
    else:
        loaded = load_table(data, columns)
        predictions, name = loaded.predictions, str(loaded.path)
        about = {"kind": loaded.layout.kind, "classes": predictions.classes, "columns": loaded.layout.to_dict()}
        more = f"; {loaded.layout.description}"
    if predictions.sample_weight is not None:
        raise InputError(f"{name}: bounds are for samples of equal weight; leave the weights out")
    if settings.classwise and predictions.probabilities is None:
        reason = f"it needs a probability for each class, and {name} has {about['kind']} only"
        raise InputError(reason, argument="classwise")
    progress.stage("bounding")
    classes = "" if predictions.classes is None else f", {predictions.classes} classes"
    return Bounds(
        name if source is None else source,
        len(predictions),
        about,
        f"{counted(len(predictions), 'sample')}{classes}{more}",
        _bounds(predictions, settings),
        settings.conventions,
    )


def choose_bandwidth(
    data: Predictions | str | os.PathLike[str] | Any, tolerance: float, *, columns: Mapping[str, Any] | None = None
) -> BandwidthChoice:
    """The largest bandwidth of noise that lowers AUROC by at most the tolerance.

    Parameters
    ----------
    data, columns
        As for :func:`certcal.measure`. Bound other samples with the bandwidth than those it was chosen with.
    tolerance
        The fall that is allowed.
    """
    from certcal.bounds import choose_bandwidth as choose

    predictions = data if isinstance(data, Predictions) else load_table(data, columns).predictions
    return choose(predictions.confidence, predictions.correct, tolerance)


def plain_bounds(predictions: Predictions, delta: float, bins: int, closed: str) -> tuple[Bound, ...]:
    """The upper bounds that need no further question; the first is the one on the true calibration error."""
    found = _bounds(predictions, BoundSettings(delta=delta, bins=bins, closed=closed))
    return tuple(bound for name, bound in found.items() if name != _FROM_BELOW)


def _bounds(predictions: Predictions, asked: BoundSettings) -> dict[str, Bound]:
    from certcal.bounds import every_bound

    classes = {"probabilities": predictions.probabilities, "labels": predictions.labels} if asked.classwise else {}
    return every_bound(
        predictions.confidence,
        predictions.correct,
        asked.delta,
        bins=asked.bins,
        closed=asked.closed,
        variation=asked.variation,
        constant=asked.lipschitz,
        bandwidth=asked.perturb,
        seed=asked.seed,
        **classes,
    )
