"""Which map, the slow way: fold by fold and row by row."""

import numpy as np

from certcal.calibrators import IsotonicCalibration, named_calibrator
from certcal.calibrators._choice import fold_of_rows
from certcal.calibrators._logistic import resolution


def losses_of_scores(predictions, methods, seed):
    """Mean log loss of each method, and its difference to no map with the standard error."""
    z, y = predictions.confidence, predictions.correct
    z = np.clip(z, resolution(z), 1 - resolution(z))
    w = np.ones(z.size) if predictions.sample_weight is None else predictions.sample_weight
    folds, rows = fold_of_rows(predictions, seed), {}
    for method in methods:
        loss = np.empty(z.size)
        for fold in set(folds.tolist()):
            fit, rest = folds != fold, folds == fold
            made = IsotonicCalibration(smoothing=1.0) if method == "isotonic" else named_calibrator(method, "score")
            added = w[fit] * 40 / w[fit].sum() if w.sum() < 1000 else np.zeros(fit.sum())
            agree = np.where(y[fit] == 1, z[fit], 1 - z[fit])
            weight = np.concatenate([w[fit] + added * agree, added * (1 - agree)])
            p = made.fit(np.tile(z[fit], 2), np.concatenate([y[fit], 1 - y[fit]]), weight).transform(z[rest])
            loss[rest] = [-np.log(each if outcome else 1 - each) for each, outcome in zip(p, y[rest], strict=True)]
        rows[method] = loss
    found = {}
    for method, loss in rows.items():
        change = loss - rows["none"]
        mean = np.average(change, weights=w)
        found[method] = (np.average(loss, weights=w), mean, np.sqrt((w**2 * (change - mean) ** 2).sum()) / w.sum())
    return found
