"""How does a map run where certcal is not? As SQL, plain Python, an Excel workbook or an ONNX model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from certcal._base.checks import InputError
from certcal._base.signature import Option, Takes, verb
from certcal.verbs.apply_map import open_map

ENDINGS = {"sql": ".sql", "python": ".py", "excel": ".xlsx", "onnx": ".onnx"}


@verb()
def export_map(
    map: Any,
    *,
    to: Annotated[Literal["sql", "python", "excel", "onnx"], Option(metavar="LANGUAGE")],
    column: Annotated[str | None, Takes("text"), Option(metavar="NAME")] = None,
) -> str | bytes:
    """Write a map in another language: text for SQL and Python, the bytes of a file for Excel and ONNX.

    Maps of one score go to all four; maps of all classes to Python and ONNX. A score that is missing or outside the
    range of the map gets NULL, #N/A, NaN or an error in Python.

    Parameters
    ----------
    map
        A file that :meth:`certcal.Recalibration.save` wrote, a :class:`certcal.Recalibration`, or a fitted calibrator.
    to
        Language: sql (an expression for a SELECT list), python (a module that needs nothing else), excel (a workbook),
        onnx (a float64 model).
    column
        Column of the scores in SQL. Default: score.

    Examples
    --------
    >>> import certcal
    >>> from certcal.calibrators import IsotonicCalibration
    >>> fitted = IsotonicCalibration().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> print(certcal.export_map(fitted, to="sql", column="pd").splitlines()[0])
    -- IsotonicCalibration(smoothing=0.0), written by certcal: straight lines between 4 knots, constant outside.
    """
    from certcal.calibrators.export import WRITERS

    if column is not None and to != "sql":
        raise InputError(f"it is for sql, and the language is {to}", argument="column", remedy="leave it out")
    calibrator: Any = open_map(map)[0].calibrator
    return WRITERS[to](calibrator, *(() if column is None else (column,)))
