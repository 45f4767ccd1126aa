"""The calibration program and its ADMM as Emde et al. (2024) print them, with the matrices B, C, E and K in full.

Vectors have length NM, sample by sample. Slow and obvious; §3.3, appendices E.3 and E.4, and the clips of G.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Printed:
    """Everything in eqs. (23)-(26)."""

    lower: np.ndarray
    upper: np.ndarray
    k: np.ndarray
    lower_prime: np.ndarray
    upper_prime: np.ndarray
    B: np.ndarray
    C: np.ndarray
    K: np.ndarray
    correct: np.ndarray

    def E(self, z: np.ndarray) -> np.ndarray:
        bins = self.B.shape[1]
        e = np.repeat(self.correct, bins) - z
        return e[:, None] * self.B


def printed(lower: Sequence[float], upper: Sequence[float], correct: Sequence[int], edges: Sequence[float]) -> Printed:
    n, bins = len(lower), len(edges) - 1
    low = np.array([max(a, edges[m]) for a in lower for m in range(bins)])
    high = np.array([min(b, edges[m + 1]) for b in upper for m in range(bins)])
    k = np.array([1.0 if a >= b else 0.0 for a, b in zip(low, high, strict=True)])
    stack = np.vstack([np.eye(bins)] * n)
    C = np.kron(np.eye(n), np.ones((bins, 1)))
    K = k[:, None] * C
    c = np.array(correct, dtype=float)
    return Printed(low, high, k, np.where(k == 1, 0, low), np.where(k == 1, 0, high), stack, C, K, c)


def start(program: Printed, confidence: Sequence[float], rho: float) -> dict[str, Any]:
    n, bins = len(confidence), program.B.shape[1]
    z = np.clip(np.repeat(confidence, bins), program.lower_prime, program.upper_prime)
    a = np.full(n * bins, 1 / bins)
    zeros = [np.zeros(n * bins), np.zeros(n * bins), np.zeros(n), np.zeros(n), np.zeros(n * bins)]
    return {"a": a, "z": z, "g": z, "q1": a, "q2": a, "dual": zeros, "rho": rho}


def constraints(p: Printed, s: dict[str, Any]) -> list[np.ndarray]:
    a, z = s["a"], s["z"]
    return [a - s["q1"], a - s["q2"], p.C.T @ a - 1, p.K.T @ a, z - s["g"]]


def lagrangian(p: Printed, s: dict[str, Any]) -> float:
    """Eq. (27) at a state whose q₁, q₂ and g are in their sets."""
    value = -np.abs(p.E(s["z"]).T @ s["a"]).sum()
    for dual, residual in zip(s["dual"], constraints(p, s), strict=True):
        value += dual @ residual + s["rho"] / 2 * residual @ residual
    return float(value)


def gradient_of_a(p: Printed, s: dict[str, Any]) -> np.ndarray:
    E, dual, rho = p.E(s["z"]), s["dual"], s["rho"]
    box, sphere, unique, valid, _ = constraints(p, s)
    return (
        -E @ np.sign(E.T @ s["a"])
        + dual[0]
        + rho * box
        + dual[1]
        + rho * sphere
        + p.C @ (dual[2] + rho * unique)
        + p.K @ (dual[3] + rho * valid)
    )


def gradient_of_z(p: Printed, s: dict[str, Any]) -> np.ndarray:
    sign = np.sign(p.E(s["z"]).T @ s["a"])
    return s["a"] * (p.B @ sign) + s["dual"][4] + s["rho"] * constraints(p, s)[4]


def step(p: Printed, s: dict[str, Any], rates: tuple[float, float], clip: float, growth: float, ceiling: float) -> None:
    """Algorithm 1, one pass; rates are those of a and z."""
    reach = 1.2 * np.abs(s["q2"] - 0.5).max()
    s["a"] = s["a"] - rates[0] * np.clip(gradient_of_a(p, s), -clip, clip)
    s["a"] = np.clip(s["a"], 0.5 - reach, 0.5 + reach)
    s["z"] = s["z"] - rates[1] * gradient_of_z(p, s)
    s["g"] = np.clip(s["dual"][4] / s["rho"] + s["z"], p.lower_prime, p.upper_prime)
    s["q1"] = np.clip(s["dual"][0] / s["rho"] + s["a"], 0, 1)
    ray = s["dual"][1] / s["rho"] + s["a"] - 0.5
    s["q2"] = 0.5 + np.sqrt(ray.size) / 2 * ray / np.linalg.norm(ray)
    s["dual"] = [dual + s["rho"] * each for dual, each in zip(s["dual"], constraints(p, s), strict=True)]
    s["rho"] = min(s["rho"] * growth, ceiling)


def projected(p: Printed, s: dict[str, Any]) -> float:
    """Calibration error after every sample has gone to its best accessible bin."""
    n, bins = p.correct.size, p.B.shape[1]
    gaps = np.zeros(bins)
    for i in range(n):
        reachable = [m for m in range(bins) if p.k[i * bins + m] == 0]
        m = max(reachable, key=lambda m: s["a"][i * bins + m])
        j = i * bins + m
        gaps[m] += p.correct[i] - min(max(s["z"][j], p.lower_prime[j]), p.upper_prime[j])
    return float(np.abs(gaps).sum() / n)
