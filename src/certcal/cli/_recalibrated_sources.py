"""What ``certcal recalibrate`` is given: which kind of source, which options are for it, and what tells it apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal.cli._reporting import KINDS, kind_of
from certcal.cli._sources import existing, plain_names
from certcal.data import Layout, open_table
from certcal.data._aligned import fingerprint_of
from certcal.data._interval_layout import SAMPLE_OPTIONS
from certcal.data._roles import LOWER, UPPER
from certcal.predictions import Predictions

_BOTH, _RUN, _INTERVALS, _PREDICTIONS = ("run", "intervals"), ("run",), ("intervals",), ("predictions",)
# Which kinds of sources an option is for; one that is not here is for all.
FOR = {
    **dict.fromkeys(("radii", "radius_weights", "tradeoff", "tradeoffs", "delta", "alpha"), _BOTH),
    **dict.fromkeys(("familywise", "drawn_only"), _RUN),
    **dict.fromkeys(("lower", "upper", "certified", "sample", "radius_column"), _INTERVALS),
    **dict.fromkeys(("probabilities", "logits", "weight", "map_bins"), _PREDICTIONS),
    **dict.fromkeys(("correct", "prediction", "label"), ("intervals", "predictions")),
}
SPELLED = {"radii": "--radius", "radius_weights": "--radius-weight"}


def source_kind(source: str, given: Sequence[str]) -> tuple[Path, str]:
    """The path, and "run", "intervals" or "predictions": told by folders, columns and options, never by values.

    Parameters
    ----------
    source
        A file or folder.
    given
        Names of the options that were given.
    """
    path = existing(source, "run or table")
    if not path.is_dir():
        names = plain_names(open_table(path).names)
        if names & set(LOWER) and names & set(UPPER) and not {"probabilities", "logits"} & set(given):
            return path, "intervals"
    kind = kind_of([source], given)
    if kind == "comparison":
        raise InputError(f"{source}: this is a log of certified radii, which holds no confidences; give a run or table")
    if kind == "study":
        raise InputError(f"{source}: this is the table of a study, which holds no confidences; give a run or table")
    return path, kind


def class_names(layout: Layout) -> tuple[str, ...] | None:
    """What the columns call the classes, unless they are numbered from 0 or given in order.

    Parameters
    ----------
    layout
        Of a table of predictions.
    """
    return None if layout.family is None or layout.family.is_ordered else layout.family.classes


def refuse_unused(kind: str, source: str, given: Sequence[str]) -> None:
    """Refuse options that are for another kind of source.

    Examples
    --------
    >>> refuse_unused("run", "run", ["logits"])
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: --logits is for a table of predictions, and run is a run; leave it out
    """
    for name in given:
        kinds = FOR.get(name, (kind,))
        if kind not in kinds:
            option = SPELLED.get(name, f"--{name.replace('_', '-')}")
            whose = " or ".join(KINDS[each] for each in kinds)
            raise InputError(f"{option} is for {whose}, and {source} is {KINDS[kind]}; leave it out")


def prediction_fingerprint(predictions: Predictions) -> str:
    """What tells predictions from others.

    Examples
    --------
    >>> len(prediction_fingerprint(Predictions.from_confidence([0.5], [1])))
    64
    """
    scores = predictions.logits if predictions.kind == "logits" else predictions.probabilities
    if scores is None:
        return fingerprint_of(predictions.confidence, predictions.correct)
    return fingerprint_of(scores, predictions.labels)


def columns_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of a table of intervals by role."""
    roles = {role: options[role] for role in SAMPLE_OPTIONS if role not in ("radius", "by")}
    return {**roles, "radius": options["radius_column"]}
