"""Slow, obvious twins of the calibrators of scores."""

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import logsumexp, softmax


def loss(logits, labels, weights=None):
    """Mean negative log-likelihood of softmax(logits)."""
    z = np.asarray(logits, float)
    each = logsumexp(z, axis=1) - z[np.arange(len(labels)), labels]
    return float(np.average(each, weights=weights))


def slope_and_moments(logits, labels, weights, inverse):
    """First three derivatives of the summed loss of softmax(inverse · logits) in the inverse."""
    total = np.zeros(3)
    for row, label, weight in zip(np.asarray(logits, float), labels, weights, strict=True):
        p = softmax(inverse * row)
        mean = p @ row
        total += weight * np.array([mean - row[label], p @ (row - mean) ** 2, p @ (row - mean) ** 3])
    return total


def temperature(logits, labels, weights=None):
    """Where the derivative of the loss changes its sign, between 0.001 and 1000."""
    x = np.asarray(logits, float)
    x = x - x.max(axis=1, keepdims=True)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, float)
    own = x[np.arange(len(x)), labels]

    def slope(inverse):
        return float(w @ ((softmax(inverse * x, axis=1) * x).sum(axis=1) - own))

    return 1 / brentq(slope, 1e-3, 1e3, xtol=1e-15, rtol=1e-14)


def affine(logits, labels, penalties, diagonal, weights=None):
    """Matrix and intercept of the least regularised loss by a quasi-Newton method of scipy's.

    ``penalties`` are of the diagonal and the intercept, and of what is off the diagonal; with ``diagonal`` it is 0.
    """
    x = np.asarray(logits, float)
    n, k = x.shape
    w = np.ones(n) if weights is None else np.asarray(weights, float)
    on, off = penalties
    eye = np.eye(k)

    def unpack(parameters):
        if diagonal:
            return np.diag(parameters[:k]), parameters[k:]
        return parameters[: k * k].reshape(k, k), parameters[k * k :]

    def objective(parameters):
        matrix, intercept = unpack(parameters)
        away = matrix - eye
        ridge = on * (np.diag(away) @ np.diag(away) + intercept @ intercept) + off * (away[eye == 0] ** 2).sum()
        z = x @ matrix.T + intercept
        residual = (softmax(z, axis=1) - eye[labels]) * w[:, None]
        slope = residual.T @ x + np.where(eye == 1, on, off) * away
        slope = np.diag(slope) if diagonal else slope.reshape(-1)
        value = w.sum() * loss(z, labels, w) + ridge / 2
        return value / n, np.concatenate([slope, residual.sum(axis=0) + on * intercept]) / n

    start = np.concatenate([np.ones(k) if diagonal else eye.reshape(-1), np.zeros(k)])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-9, "maxiter": 5000})
    return *unpack(found.x), float(found.fun)
