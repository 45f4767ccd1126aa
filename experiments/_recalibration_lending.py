"""What confidences mean for a lender, without an attack, under one, and in the worst case."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _recalibration_credit import DEFAULTS, PAYS, Customers, pays_intervals, smoothed
from numpy.typing import NDArray

from certcal.calibrators import CertifiedSamples, ConfidenceMap
from certcal.smoothing import Counts

# A loan that is paid back earns a quarter of what one that is not costs: it is worth giving from confidence 0.8 on.
EARNS, COSTS = 0.25, 1.0
THRESHOLD = COSTS / (COSTS + EARNS)
_NOISE, _FRESH = 0xA77, 0xF4E5
_DRAWS = 2_000
_ERROR = 0.05  # of an estimate by so many draws: more than four standard errors


@dataclass(frozen=True)
class Lending:
    """Per 100 applicants, each asking for a loan of 1.

    Attributes
    ----------
    loans, lost
        Loans that are given when nobody shifts anything, and those of them that are not paid back.
    profit, promised
        Of these loans, and what the confidences promise.
    attacked
        Profit when those who will not pay back shift bills and payments as an attack finds.
    shifted
        Profit is at least this when those who will not pay back shift any features by up to the radius.
    worst
        Profit is at least this when everybody may, whether or not it is to their advantage.
    hidden
        Losses beyond those that the confidences announce are at most this, when everybody may.
    """

    loans: float
    lost: float
    profit: float
    promised: float
    attacked: float
    shifted: float
    worst: float
    hidden: float


@dataclass(frozen=True, eq=False)
class Applicants:
    """Held-out customers: what is certified about them at a radius, and what an attack reached.

    Attributes
    ----------
    repays
        Whether each will.
    pays, said
        Smoothed probability of paying, and whether that is the prediction.
    lower, upper
        Of that probability under every shift up to the radius.
    certified
        Whether the prediction stays under every such shift.
    reached, reached_said
        Probability and prediction after the attack; those who will pay stay where they are.
    """

    repays: NDArray[np.bool_]
    pays: NDArray[np.float64]
    said: NDArray[np.bool_]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    certified: NDArray[np.bool_]
    reached: NDArray[np.float64]
    reached_said: NDArray[np.bool_]


def applicants(
    customers: Customers, network: Any, counts: Counts, held_out: CertifiedSamples, radius: float, alpha: float
) -> Applicants:
    """Everything that is known of held-out customers at a radius."""
    rows = held_out.index
    low, high = (each[rows] for each in pays_intervals(counts, radius, alpha))
    said = counts.predicted[rows] == PAYS
    estimate = counts.confidence_estimates().values[rows]
    p = np.where(said, estimate, 1 - estimate)
    inputs, labels = customers.test.inputs[rows], customers.test.labels[rows]
    reached, votes = p.copy(), said.copy()
    moved = labels == DEFAULTS
    found = attack(customers, network, inputs[moved], counts.sigma, radius)
    reached[moved], share = smoothed(network, found, counts.sigma, _DRAWS, _FRESH)
    votes[moved] = share > 0.5
    assert ((reached >= low - _ERROR) & (reached <= high + _ERROR)).all(), "an attack left a certified interval"
    return Applicants(labels == PAYS, p, said, low, high, held_out.certified[:, 0], reached, votes)


def attack(customers: Customers, network: Any, inputs: Any, sigma: float, radius: float) -> NDArray[np.float32]:
    """Shift bills and payments so that a customer who will not pay looks like one who will."""
    import torch

    from certcal.attacks import Ball, SmoothAdv, Target

    x = torch.as_tensor(np.array(inputs))
    free = torch.as_tensor(customers.of_kind("bill", "pay")).to(x.dtype)

    def only_free(z: Any) -> Any:
        return network(z * free + z.detach() * (1 - free))  # gradients of the others are 0, so they stay

    noise = sigma * torch.randn((64, *x.shape), generator=torch.Generator().manual_seed(_NOISE))
    labels = torch.full((len(x),), DEFAULTS)
    return SmoothAdv(steps=20)(Target(only_free, noise=noise), x, labels, Ball(radius, box=None)).inputs.numpy()


def lend(who: Applicants, calibrator: ConfidenceMap | None) -> dict[str, NDArray[np.float64]]:
    """Every applicant's part of each number of :class:`Lending`, times 100.

    The lender gives a loan where paying is predicted with a confidence, after the map, of at least the threshold. Worst
    cases are exact in the intervals, for each part depends on one applicant alone. Who will not pay back may get a loan
    if the upper end allows it and no other prediction is certified; who will pay back surely gets one if that
    prediction is certified and the lower end allows it. Of a loan with confidence q, (1 - paid) - (1 - q) is not
    announced.
    """
    g = (lambda values: values) if calibrator is None else calibrator.transform
    q, low, high, reached = g(who.pays), g(who.lower), g(who.upper), g(who.reached)
    good, bad = who.repays, ~who.repays
    given = who.said & (q >= THRESHOLD)
    broken = who.reached_said & (reached >= THRESHOLD)
    may = (high >= THRESHOLD) & (who.said | ~who.certified)
    must = (low >= THRESHOLD) & who.said & who.certified
    parts = {
        "loans": given,
        "lost": given & bad,
        "profit": EARNS * (given & good) - COSTS * (given & bad),
        "promised": given * (EARNS * q - COSTS * (1 - q)),
        "attacked": EARNS * (given & good) - COSTS * (broken & bad),
        "shifted": EARNS * (given & good) - COSTS * (may & bad),
        "worst": EARNS * (must & good) - COSTS * (may & bad),
        "hidden": high * (may & bad) - (1 - high) * (must & good),
    }
    return {name: 100.0 * values for name, values in parts.items()}


def per_hundred(parts: dict[str, NDArray[np.float64]]) -> Lending:
    """The numbers that the parts add up to."""
    return Lending(**{name: float(values.mean()) for name, values in parts.items()})


def change(
    before: dict[str, NDArray[np.float64]], after: dict[str, NDArray[np.float64]], name: str, resamples: int = 1000
) -> tuple[float, float, float]:
    """What a map changes of one number, with the middle 95 % over resampled applicants, the map being fixed."""
    each = after[name] - before[name]
    rng = np.random.default_rng([0, 0x1E4D])
    means = [each[rng.integers(0, each.size, each.size)].mean() for _ in range(resamples)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(each.mean()), float(low), float(high)


def network_of(folder: Path) -> Any:
    """The trained network."""
    from certcal.models.networks import load_weights

    return load_weights(folder / "model.safetensors").eval()
