"""Slow obvious twins of noise and counting: one number at a time, in Python's own arithmetic."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

import mpmath
import numpy as np

WORD = 0xFFFFFFFF


def philox(counter: Sequence[int], key: Sequence[int], rounds: int = 10) -> tuple[int, int, int, int]:
    """Philox4x32 as its paper defines it."""
    a, b, c, d = counter
    first, second = key
    for _ in range(rounds):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ first, q & WORD, (p >> 32) ^ d ^ second, p & WORD
        first, second = (first + 0x9E3779B9) & WORD, (second + 0xBB67AE85) & WORD
    return a, b, c, d


def words(seed: int, index: int, stage: int, draw: int, block: int) -> tuple[int, int, int, int]:
    return philox((block, draw, index, stage), (seed & WORD, seed >> 32))


def block_and_place(coordinate: int) -> tuple[int, int]:
    """Which block a coordinate takes its value from, and which of the block's four."""
    group, within = divmod(coordinate, 32)
    return 8 * group + within % 8, within // 8


def pair(radius: int, angle: int, more: Sequence[int] = ()) -> tuple[float, float]:
    """Box–Muller in float64, of a radius of 32 bits or, with two words more, of 96."""
    top = radius >= 2**31
    near, bits = WORD - radius if top else radius, 32 + 32 * len(more)
    for word in more:
        near = near << 32 | word
    distance = (2 * near + 1) / 2 ** (bits + 1)  # whole numbers: rounded once
    length = math.sqrt(-2 * (math.log1p(-distance) if top else math.log(distance)))
    turn = 2 * math.pi * (angle - 2**32 * (angle >= 2**31)) / 2**32
    return length * math.cos(turn), length * math.sin(turn)


def distance_in_float32(radius: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """Distance of u from the nearer of 0 and 1, by NumPy's operations: from 96 bits where 32 are too few."""
    word = radius.view(np.int32)
    near = np.where(word < 0, ~word, word)
    high = (near.astype(np.uint64) << np.uint64(32) | second).astype(np.float64)
    long = (high + (third + 0.5) * 2.0**-32).astype(np.float32) * np.float32(2.0**-64)
    short = (near.astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-32)
    return np.where(near < 2**20, long, short)


def box_muller_in_float32(radius: np.ndarray, angle: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The transform as the compiled loop writes it, by NumPy's float32 operations, each rounded on its own."""
    f = np.float32
    word = radius.view(np.int32)
    mantissa, exponent = np.frexp(np.where(word < 0, f(1) - distance, distance))  # in [½, 1)
    small = mantissa < np.float32(np.sqrt(0.5))
    mantissa, exponent = np.where(small, f(2) * mantissa, mantissa), exponent - small
    above = np.where(exponent == 0, -distance, mantissa - f(1))
    s = above / (f(2) + above)
    t = s * s
    log = s * (f(2) + t * (f(2 / 3) + t * (f(2 / 5) + t * (f(2 / 7) + t * f(2 / 9)))))
    length = np.sqrt(f(2) * (-exponent.astype(f) * f(math.log(2)) - log))

    def sine(phase: np.ndarray) -> np.ndarray:
        wide = phase.astype(np.int64)
        folded = np.where(wide >= 2**30, 2**31 - wide, np.where(wide < -(2**30), -(2**31) - wide, wide))
        x = folded.astype(f) * f(2.0**-30)
        c1, c3, c5, c7, c9 = map(
            f, (1.57079631845, -0.6459637106, 0.0796896789478, -0.00467376661205, 0.000151485130451)
        )
        y = x * x
        return x * (c1 + y * (c3 + y * (c5 + y * (c7 + y * c9))))

    return length * sine((angle + np.uint32(1 << 30)).view(np.int32)), length * sine(angle.view(np.int32))


def gaussian(seed: int, index: int, stage: int, draw: int, coordinate: int) -> float:
    block, place = block_and_place(coordinate)
    found, first = words(seed, index, stage, draw, block), place - place % 2
    more = words(seed, index, stage + 2, draw, block)[first : first + 2] if is_short(found[first]) else ()
    return pair(found[first], found[first + 1], more)[place % 2]


def is_short(radius: int) -> bool:
    """Whether a radius' 32 bits are too few: within 2²⁰ of either end."""
    return min(radius, WORD - radius) < 2**20


@cache
def thresholds(sigma: float) -> list[int]:
    """2¹²⁸ P(J < j) to the nearest whole number, for all j where it is neither 0 nor 2¹²⁸."""
    tails: list[int] = []
    with mpmath.workdps(100):
        while True:
            tail = int(mpmath.nint(2**128 * mpmath.ncdf(-mpmath.mpf(2 * len(tails) + 1) / (510 * mpmath.mpf(sigma)))))
            if tail == 0:
                return [*reversed(tails), *(2**128 - tail for tail in tails)]
            tails.append(tail)


def whole_number(seed: int, index: int, stage: int, draw: int, coordinate: int, sigma: float) -> int:
    """The J of exact noise: how many cumulative probabilities a 128-bit number passes."""
    block, place = block_and_place(coordinate)
    more = words(seed, index, stage + 2, draw, coordinate)
    number = words(seed, index, stage, draw, block)[place]
    for word in more[:3]:
        number = number << 32 | word
    return bisect_right(thresholds(sigma), number) - len(thresholds(sigma)) // 2


def softmax(row: Sequence[float]) -> list[float]:
    top = max(row)
    total = math.fsum(math.exp(v - top) for v in row)
    return [math.exp(v - top) / total for v in row]


def is_prediction(row: Sequence[float], logits: bool) -> bool:
    if not all(math.isfinite(v) for v in row):
        return False
    return logits or (all(0 <= v <= 1 + 1e-6 for v in row) and abs(math.fsum(row) - 1) <= 1e-3)


def tally(
    rows: Sequence[Sequence[float]], logits: bool, chosen: int, levels: Sequence[float]
) -> tuple[int, int, list[int]]:
    """Votes for the chosen class, invalid rows, histogram of its confidence."""
    votes, invalid, histogram = 0, 0, [0] * (len(levels) + 1)
    for row in rows:
        confidence = 0.0
        if is_prediction(row, logits):
            votes += max(range(len(row)), key=lambda k: row[k]) == chosen  # max takes the first of equal ones
            confidence = min(1.0, (softmax(row) if logits else row)[chosen])
        else:
            invalid += 1
        histogram[sum(t <= confidence for t in levels)] += 1
    return votes, invalid, histogram


def tally_of_all(
    rows: Sequence[Sequence[float]], logits: bool, chosen: int, others: Sequence[int], levels: Sequence[float]
) -> tuple[int, list[int], list[list[int]]]:
    """Sum of the chosen class's confidence in units of 2⁻³⁰, votes by class, histograms of others and of the rest."""
    total, votes = 0, [0] * len(rows[0])
    histograms = [[0] * (len(levels) + 1) for _ in (*others, None)]
    for row in rows:
        valid = is_prediction(row, logits)
        shares = (softmax(row) if logits else [min(1.0, v) for v in row]) if valid else [0.0] * len(row)
        if valid:
            votes[max(range(len(row)), key=lambda k: row[k])] += 1
        total += math.floor(shares[chosen] * 2**30)
        rest = min(1.0, sum(share for k, share in enumerate(shares) if k not in (chosen, *others)))
        for histogram, share in zip(histograms, [*(shares[k] for k in others), rest], strict=True):
            histogram[sum(t <= share for t in levels)] += 1
    return total, votes, histograms


def noisy(point: np.ndarray, noise: Callable[[int], float], sigma: float) -> np.ndarray:
    """Input + sigma * noise in float32, coordinate by coordinate, with the least float32 not below sigma."""
    scale = next(s for s in (np.float32(sigma), np.nextafter(np.float32(sigma), np.float32(1e9))) if float(s) >= sigma)
    flat = [np.float32(x) + scale * np.float32(noise(c)) for c, x in enumerate(point.reshape(-1))]
    return np.array(flat, np.float32).reshape(point.shape)
