# pyright: basic
"""Sums over survival counts, and the capital of bets against a mean, row by row of a table of histograms.

``flip`` looks at 1 - X instead of X: cells are read from the top. Widths are those of the steps from one threshold
to the next one above, seen from the side that is read; the first step starts at 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit


@njit
def weigh_survival(histogram: Any, flip: Any, widths: Any, table: Any, out: Any) -> None:
    """Σ_j widths[j] · table[number of draws at or above threshold j], per row."""
    last = histogram.shape[1] - 1
    for row in range(histogram.shape[0]):
        counts = histogram[row]
        above = 0
        total = 0.0
        for j in range(last, 0, -1):
            above += counts[last - j] if flip else counts[j]
            total += widths[j - 1] * table[above]
        out[row] = total


@njit
def best_bet(mass: Any, gain: Any, size: Any) -> Any:
    """The share θ in [0, 1) that makes Σ mass · log(1 + θ gain) largest, to about a thousandth of θ and of 1 - θ."""
    first = 0.0
    second = 0.0
    for i in range(size):
        first += mass[i] * gain[i]
        second += mass[i] * gain[i] * gain[i]
    if not (first > 0.0 and second > 0.0):
        return 0.0
    low, high = 0.0, 1.0
    theta = min(first / second, 0.9)
    for _ in range(20):
        slope = 0.0
        bend = 0.0
        for i in range(size):
            share = gain[i] / (1.0 + theta * gain[i])
            slope += mass[i] * share
            bend += mass[i] * share * share
        if slope > 0.0:
            low = theta
        else:
            high = theta
        step = slope / bend
        following = theta + step
        if not low < following < high:
            following = 0.5 * (low + high)
        moved = abs(following - theta)
        theta = following
        if moved < 1e-3 * min(theta, 1.0 - theta):
            break
    return min(theta, 1.0 - 1e-9)


# SplitMix64 (Steele, Lea and Flood 2014): a counter that grows by the golden ratio, mixed.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_FIRST, MIX_SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
EVERY_SECOND, PAIRS, NIBBLES = (np.uint64(word * (2**64 // 255)) for word in (0x55, 0x33, 0x0F))
BYTES, ONE = np.uint64(2**64 // 255), np.uint64(1)
S1, S2, S4, S27, S30, S31, S56 = (np.uint64(places) for places in (1, 2, 4, 27, 30, 31, 56))


@njit
def mix_bits(state: Any) -> Any:
    """64 bits of a counter."""
    word = (state ^ (state >> S30)) * MIX_FIRST
    word = (word ^ (word >> S27)) * MIX_SECOND
    return word ^ (word >> S31)


@njit
def toss(count: Any, state: Any) -> Any:
    """Heads among ``count`` fair coins, and the counter after them."""
    heads = 0
    while count > 0:
        state = state + GOLDEN
        word = mix_bits(state)
        if count < 64:
            word = word & ((ONE << np.uint64(count)) - ONE)
        word = word - ((word >> S1) & EVERY_SECOND)
        word = (word & PAIRS) + ((word >> S2) & PAIRS)
        word = (word + (word >> S4)) & NIBBLES
        heads += np.int64((word * BYTES) >> S56)
        count -= 64
    return heads, state


@njit
def split_draws(counts: Any, flip: Any, key: Any, parts: Any) -> None:
    """Deal draws out by fair coins: half of them into the last part, half of what is left into the one before, ….

    ``parts`` has one row per part, the earliest first. The coins are those of ``key`` alone.
    """
    last = counts.size - 1
    state = mix_bits(np.uint64(key) + GOLDEN)
    for i in range(last + 1):
        parts[0, i] = counts[last - i] if flip else counts[i]
    for part in range(parts.shape[0] - 1, 0, -1):
        for i in range(last + 1):
            if parts[0, i] > 0:
                earlier, state = toss(parts[0, i], state)
                parts[part, i] = parts[0, i] - earlier
                parts[0, i] = earlier
            else:
                parts[part, i] = 0


@njit
def log_capital(value: Any, counts: Any, worth: Any, ends: Any, offset: Any, bets: Any) -> Any:
    """Logarithm of the capital of all bets against "the functional is ``value``", and its derivative.

    Bet number b gains ``1 - θ + θ worth[i] / (value - offset[b])`` on each of the ``counts[i]`` draws of its part,
    whose cells are those from ``ends[b]`` to ``ends[b + 1]``.
    """
    log = 0.0
    slope = 0.0
    for b in range(bets.size):
        theta = bets[b]
        if theta > 0.0:
            mean = max(value - offset[b], 1e-300)
            scale = theta / mean
            pull = 0.0
            for i in range(ends[b], ends[b + 1]):
                factor = 1.0 - theta + scale * worth[i]
                log += counts[i] * np.log(factor)
                pull += counts[i] * worth[i] / factor
            slope -= pull * scale / mean
    return log, slope


@njit
def largest_refuted(start: Any, target: Any, counts: Any, worth: Any, ends: Any, offset: Any, bets: Any) -> Any:
    """A value whose capital was seen to be at least exp(``target``), next to the largest one; 0 when there is none.

    The capital falls in the value, so everything below is refuted too. Newton's steps within a bracket.
    """
    low, high = 0.0, 1.0
    value = min(max(start, 1e-6), 1.0 - 1e-6)
    for _ in range(60):
        log, pull = log_capital(value, counts, worth, ends, offset, bets)
        excess = log - target
        if excess >= 0.0:
            low = value
        else:
            high = value
        if 0.0 <= excess < 1e-5 or high - low < 1e-10:
            break
        value = value - (excess - 5e-6) / pull if pull < 0.0 else 0.5 * (low + high)
        if not low < value < high:
            value = 0.5 * (low + high)
    return low


@njit
def lay_tangent(
    past: Any,
    prior: Any,
    widths: Any,
    point: Any,
    slope: Any,
    intercept: Any,
    line: Any,
    worth: Any,
    mass: Any,
    gain: Any,
) -> Any:
    """What a draw in each cell is worth under lines chosen by the past, and their offset, mean and bet.

    The believed survival at a threshold is the share of the past draws at or above it, with ``prior`` of a draw more in
    the first and in the last cell. Its line has ``slope`` and ``intercept`` and touches at ``point``, each from a table
    evenly spaced in the arcsine of the root of the survival. The bet is the one that grows fastest if the belief is
    right and the functional is where the lines touch it.
    """
    cells = past.size
    number = 2.0 * prior
    for i in range(cells):
        number += past[i]
    steps = (point.size - 1) / (0.5 * np.pi)
    running = prior
    place = -1
    for i in range(cells - 1, 0, -1):
        running += past[i]
        if place < 0 or past[i] > 0:
            place = int(np.arcsin(np.sqrt(min(running / number, 1.0))) * steps + 0.5)
        line[i] = place
    total = 0.0
    offset = 0.0
    mean = 0.0
    worth[0] = 0.0
    for j in range(1, cells):
        k = line[j]
        rise = widths[j - 1] * slope[k]
        offset += widths[j - 1] * intercept[k]
        mean += rise * point[k]
        total += rise
        worth[j] = total
    if not mean > 0.0:
        return offset, mean, 0.0
    filled = 0
    for i in range(cells):
        believed = past[i] + (prior if i == 0 or i == cells - 1 else 0.0)
        if believed > 0.0:
            mass[filled] = believed
            gain[filled] = worth[i] / mean - 1.0
            filled += 1
    return offset, mean, best_bet(mass, gain, filled)


@njit
def tangent_bounds(
    histogram: Any,
    keys: Any,
    flip: Any,
    widths: Any,
    parts: Any,
    prior: Any,
    point: Any,
    slope: Any,
    intercept: Any,
    target: Any,
    out: Any,
) -> None:
    """Per row the largest value of the functional that the capital of the tangents' bets refutes.

    Draws are dealt into ``parts`` parts and one before them, and each part is bet on with tangents and bets chosen by
    all parts before it; see :func:`split_draws` and :func:`lay_tangent`.
    """
    cells = histogram.shape[1]
    dealt = np.empty((parts + 1, cells), np.int64)
    past = np.empty(cells, np.int64)
    line = np.empty(cells, np.int64)
    worth = np.empty(cells)
    mass = np.empty(cells)
    gain = np.empty(cells)
    counts = np.empty(parts * cells)
    kept = np.empty(parts * cells)
    ends = np.zeros(parts + 1, np.int64)
    offset = np.empty(parts)
    bets = np.empty(parts)
    for row in range(histogram.shape[0]):
        split_draws(histogram[row], flip, keys[row], dealt)
        past[:] = 0
        size = 0
        start = 0.0
        widest = 0.0
        for b in range(parts):
            for i in range(cells):
                past[i] += dealt[b, i]
            offset[b], mean, bets[b] = lay_tangent(
                past, prior, widths, point, slope, intercept, line, worth, mass, gain
            )
            widest = max(widest, worth[cells - 1])
            start = offset[b] + mean
            for i in range(cells):
                if dealt[b + 1, i] > 0:
                    counts[size] = dealt[b + 1, i]
                    kept[size] = worth[i]
                    size += 1
            ends[b + 1] = size
        low = largest_refuted(start, target, counts, kept, ends, offset, bets)
        # Sums of a few hundred terms up to the widest worth are right to far more digits than this.
        out[row] = max(low - 1e-12 * (1.0 + widest), 0.0)
