"""Slow, obvious twins of what the bound for smooth calibration functions computes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Local(NamedTuple):
    """Weights (points by training scores), averages and bounds on their expected errors."""

    weights: Floats
    average: Floats
    error: Floats


def local_averages(
    train: Floats, outcomes: Any, points: Floats, width: float, first: float, second: float, *, tight: bool
) -> Local:
    """Every weight of every point, one formula at a time."""
    rows, averages, errors = [], [], []
    for point in points:
        offset = train - point
        kernel = np.where(np.abs(offset) < width, 1 - (offset / width) ** 2, 0.0)
        inside = np.abs(offset) < width
        if not inside.any() or kernel.sum() < inside.sum() / 8:
            distance = np.abs(offset)
            nearest = train[np.argmin(distance)]  # of two equally near ones the lower
            kernel = np.where(train == nearest, 1.0, 0.0)
        w = kernel / kernel.sum()
        absolute, signed, square = w @ np.abs(offset), abs(w @ offset), w @ offset**2
        curved = 0.5 * second * square
        bias = min(first * absolute, first * signed + curved) if tight else first * absolute + curved
        error = bias + 0.5 * np.sqrt(w @ w)
        rows.append(w)
        averages.append(w @ np.asarray(outcomes, np.float64))
        errors.append(min(error, 1.0) if tight else error)
    return Local(np.array(rows), np.array(averages), np.array(errors))


def sech_density(values: Floats, score: float, h: float) -> Floats:
    """Density of a perturbed score on a grid of the unit interval, normalised by the trapezoid rule."""
    density = 1 / np.cosh(np.clip((values - score) / h, -700, 700))
    return density / np.trapezoid(density, values)


def perturbed_calibration(
    original: Floats, probability: Floats, mass: Floats, h: float, cells: int = 20_000
) -> tuple[Floats, Floats, Floats]:
    """Grid, density and calibration function of perturbed scores when scores before the noise are a finite mixture."""
    grid = (np.arange(cells) + 0.5) / cells
    kernel = 1 / np.cosh(np.clip((grid[None, :] - original[:, None]) / h, -700, 700))
    kernel /= kernel.mean(axis=1, keepdims=True)
    density = mass @ kernel
    return grid, density, (mass * probability) @ kernel / density


def perturbed_calibration_error(original: Floats, probability: Floats, mass: Floats, h: float) -> float:
    """E|s - η(s)| of perturbed scores by quadrature."""
    grid, density, eta = perturbed_calibration(original, probability, mass, h)
    return float(np.mean(density * np.abs(grid - eta)))


class Projection(NamedTuple):
    """The matrix of a weighted least-squares fit, its weights, and how far η may be from the functions it fits."""

    matrix: Floats
    weights: Floats
    far: Floats


def interpolating(places: Floats, nodes: Floats, h: float) -> tuple[Floats, Floats]:
    """The functions that interpolate at the nodes, and the product of all factors, factor by factor."""
    values, products = np.empty((places.size, nodes.size)), np.ones(places.size)
    for i, x in enumerate(places):
        for j, t in enumerate(nodes):
            others = np.delete(nodes, j)
            quotient = np.prod(np.tanh((x - others) / (2 * h)) / np.tanh((t - others) / (2 * h)))
            values[i, j] = quotient / np.cosh((x - t) / (2 * h)) ** 2
            products[i] *= np.tanh((x - t) / (2 * h))
    return values, np.abs(products)


def projection(places: Floats, scores: Floats, nodes: Floats, h: float) -> Projection:
    """Sample by sample, through the pseudoinverse; the scores have different places."""
    inherent = scores * (1 - scores)
    weights = 1 / np.maximum(inherent, inherent.mean() / 1.5)
    values, product = interpolating(places, nodes, h)
    root = np.sqrt(weights)
    matrix = values @ np.linalg.pinv(root[:, None] * values) * root
    return Projection(matrix, weights, product * np.sqrt(1 + product**2 / 4))


def calibration_of_atoms(x: Floats, original: Floats, probability: Floats, mass: Floats, h: float) -> Floats:
    """η at any places when scores before the noise are a finite mixture, on a scale without ends."""
    kernel = mass / np.cosh(np.clip((x[:, None] - original) / h, -700, 700))
    return kernel @ probability / kernel.sum(axis=1)
