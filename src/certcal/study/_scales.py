"""Whether the numbers of a published table are shares or per cent: told where it is certain, asked where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.study._table import AUROC, MeasuredColumn

Scale = Literal["share", "percent"]
Floats = NDArray[np.float64]

# Scores that are no shares of anything: the logarithmic one is never scaled, the other only if it is beyond its range.
_FREE = ("nll", "brier_score")
_LARGEST_BRIER = 2.0
# Estimates that need not lie in [0, 1].
_UNBOUNDED = ("kde_ece", "mmce")
_ROUNDING = 1e-6


def to_shares(columns: dict[str, Any], scale: Scale | None, accuracy_scale: Scale | None) -> dict[str, str]:
    """Turn accuracies, calibration errors and areas under curves into shares, in place; what the first two were.

    Examples
    --------
    >>> columns = {"accuracy": [93.9, 90.1], "pre_ece_15": [4.2, 0.9]}
    >>> to_shares(columns, None, None), columns["pre_ece_15"].round(3).tolist()
    ({'accuracy': 'percent', 'errors': 'percent'}, [0.042, 0.009])
    """
    metrics = {name: found.metric for name in columns if (found := MeasuredColumn.parse(name)) is not None}
    areas = [name for name in columns if name.startswith(AUROC)]
    accuracy = ["accuracy"] if "accuracy" in columns else []
    errors = [name for name, metric in metrics.items() if metric not in _FREE]
    for name in (*accuracy, *metrics, *areas):
        values = np.array([np.nan if value is None else value for value in columns[name]], np.float64)
        _refuse(name, values, np.isinf(values), "which is not finite; repair or drop the row")
        columns[name] = values
    bounded = [name for name in errors if metrics[name] not in _UNBOUNDED]
    most, worst = _largest(columns, accuracy), _largest(columns, bounded or errors)
    of_accuracies = _of_accuracies(most[0], scale, accuracy_scale)
    of_errors = _of_errors(worst, scale, most[0], of_accuracies, accuracy_scale is not None)
    for names, of in ((accuracy, of_accuracies), (errors, of_errors)):
        for name in names:
            values = columns[name] / 100 if of == "percent" else columns[name]
            if metrics.get(name) not in _UNBOUNDED:
                why = f"outside 0 to 1 when read as {of}; give the right scale, 'share' or 'percent'"
                _refuse(name, values, (values < 0) | (values > 1 + _ROUNDING), why)
                values = np.minimum(values, 1.0)
            columns[name] = values
    briers = [name for name, metric in metrics.items() if metric == "brier_score"]
    for names, limit in ((areas, 1.0), (briers, _LARGEST_BRIER)):
        for name in names:
            if np.any(columns[name] > limit):
                _refuse(
                    name, columns[name], columns[name] > 100 * limit, "too large even for per cent; check the column"
                )
                columns[name] = columns[name] / 100
    return {"accuracy": of_accuracies, "errors": of_errors}


def _of_accuracies(most: float, scale: Scale | None, accuracy_scale: Scale | None) -> Scale:
    """All accuracies up to 1 per cent are not believed unless it is said of the accuracies themselves."""
    if accuracy_scale is not None:
        return accuracy_scale
    if scale == "percent" and most <= 1:
        raise InputError(
            f"accuracies are up to {most:g}, which are hardly per cent; give accuracy_scale='share' "
            "if only the errors are, or scale='share'"
        )
    return scale or ("percent" if most > 1 + _ROUNDING else "share")


def _of_errors(worst: tuple[float, str], scale: Scale | None, most: float, of_accuracies: Scale, said: bool) -> Scale:
    """Errors above 1 are per cent; smaller ones are what the accuracies are, if these are shares."""
    largest, name = worst
    if scale is not None or np.isnan(largest):
        return scale or of_accuracies
    if largest > 1 + _ROUNDING:
        if not np.isnan(most) and of_accuracies == "share" and not said:
            raise InputError(
                f"accuracies are up to {most:g} and errors up to {largest:g} ({name}), so the ones seem to be shares "
                "and the others per cent; give scale= of the errors and accuracy_scale="
            )
        return "percent"
    if not np.isnan(most) and of_accuracies == "share":
        return "share"
    beside = "" if np.isnan(most) else f", beside accuracies in per cent (up to {most:g})"
    raise InputError(
        f"no calibration error is above 1 (the largest is {largest:g}, {name}){beside}, so they may be shares or per "
        "cent; give scale='share' or 'percent'"
        + (" of the errors, and accuracy_scale='percent' if they differ" if beside else "")
    )


def _largest(columns: Mapping[str, Any], names: Sequence[str]) -> tuple[float, str]:
    """The largest value of some columns, and in which it is; NaN if there is none."""
    found = [(float(np.nanmax(columns[name])), name) for name in names if np.isfinite(columns[name]).any()]
    return max(found, default=(float("nan"), ""))


def _refuse(name: str, values: Floats, bad: NDArray[np.bool_], why: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}, row {row + 1}, is {values[row]:g}, {why}")
