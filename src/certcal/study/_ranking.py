"""Models by harmonic calibration score, which weighs accuracy and calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certcal.study._findings import Table
from certcal.study._population import Population, Sheet

Floats = NDArray[np.float64]

_SHOWN = 20


def harmonic_scores(population: Population, sheet: Sheet) -> Floats | None:
    """HCS_β = (1 + β)·Acc·(1 - ECE) / (β·Acc + 1 - ECE) of every model of a sheet; None without the two columns.

    NaN where one of the two is missing, or not a share from 0 to 1.
    """
    column = sheet.measured("ece", population.bins)
    if column not in sheet or "accuracy" not in sheet:
        return None
    accuracy, calibrated, beta = sheet["accuracy"], 1 - sheet[column], population.beta
    below = beta * accuracy + calibrated
    known = (accuracy >= 0) & (accuracy <= 1) & (calibrated >= 0) & (calibrated <= 1)
    found = np.where(known, 0.0, np.nan)
    np.divide((1 + beta) * accuracy * calibrated, below, out=found, where=known & (below > 0))
    return found


def ranking(population: Population, sheet: Sheet) -> Table | None:
    """The models with the best score, and their places by accuracy and by ECE."""
    scores = harmonic_scores(population, sheet)
    if scores is None or np.isnan(scores).all():
        return None
    column = sheet.measured("ece", population.bins)
    accuracy, error = sheet["accuracy"], sheet[column]
    order = np.argsort(-scores, kind="stable")
    order = order[~np.isnan(scores[order])][:_SHOWN]
    rows = tuple(
        (
            str(place + 1),
            str(sheet.raw("model")[row]),
            float(scores[row]),
            float(accuracy[row]),
            float(error[row]),
            str(1 + int((accuracy > accuracy[row]).sum())),
            str(1 + int((error < error[row]).sum())),
        )
        for place, row in enumerate(order.tolist())
    )
    score = f"HCS (β = {population.beta:g})"
    header = ("place", "model", score, "accuracy", f"ECE ({population.bins} bins)", "by accuracy", "by ECE")
    return Table(f"{sheet.name}: best harmonic calibration scores", header, rows)
