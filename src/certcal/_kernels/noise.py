# pyright: basic
"""Noise by counter: every value is a pure function of (seed, sample, stage, draw, coordinate).

The words come from Philox4x32-10 (Salmon, Moraes, Dror & Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011):
key = the seed's two halves, counter = (block of coordinates, draw, sample, stage). Loops run over lanes in plain
arithmetic, so that they compile to vector instructions; nothing is fused or reordered and no library's logarithm or
sine is called, so that every machine with IEEE arithmetic gives the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certcal._kernels._compile import njit

LANES = 256  # blocks worked on at once: the scratch arrays stay in the fastest cache
GROUP = 8  # neighbouring blocks whose values are stored side by side

WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
MULTIPLY_FIRST = np.uint64(0xD2511F53)
MULTIPLY_SECOND = np.uint64(0xCD9E8D57)
BUMP_FIRST = np.uint64(0x9E3779B9)
BUMP_SECOND = np.uint64(0xBB67AE85)
EXTENSION = np.uint64(2)  # added to the stage: the lower bits of numbers that the first 32 do not settle

ONE = np.float32(1)
TWO = np.float32(2)
LOG_2 = np.float32(0.6931471805599453)
UNIT = np.float32(2.0**-32)
SHORT = np.int32(1 << 20)  # a radius whose word is nearer than this to 0 or 2³² has 64 bits more
LONG_UNIT = np.float32(2.0**-64)
QUARTER_TURN = np.int32(1 << 30)
PER_QUARTER = np.float32(2.0**-30)
HALF_TURN = np.int32(-(1 << 31))
ROOT_HALF_BITS = np.int32(0x3F3504F3)  # the float32 nearest to √½, as an integer

# ln((1+s)/(1-s)) = 2s + s³(2/3 + 2s²/5 + …), cut after s⁹: for |s| <= 3 - √8 the rest is below 2.1e-9 of the value.
L3, L5, L7, L9 = (np.float32(2 / k) for k in (3, 5, 7, 9))
# sin(πx/2)/x on [-1, 1], the polynomial of degree 4 in x² of least relative error, 5.4e-9.
S1, S3, S5, S7, S9 = (
    np.float32(c) for c in (1.57079631845, -0.6459637106, 0.0796896789478, -0.00467376661205, 0.000151485130451)
)


@njit
def key_schedule(seed: Any) -> Any:
    """The ten round keys of a 64-bit seed."""
    keys = np.empty((10, 2), np.uint64)
    first, second = seed & WORD, seed >> HALF
    for turn in range(10):
        keys[turn, 0], keys[turn, 1] = first, second
        first, second = (first + BUMP_FIRST) & WORD, (second + BUMP_SECOND) & WORD
    return keys


@njit
def _turn(a: Any, b: Any, c: Any, d: Any, keys: Any) -> Any:
    p = a * MULTIPLY_FIRST
    q = c * MULTIPLY_SECOND
    return (q >> HALF) ^ b ^ keys[0], q & WORD, (p >> HALF) ^ d ^ keys[1], p & WORD


@njit
def philox(block: Any, draw: Any, sample: Any, stage: Any, keys: Any, count: Any, words: Any) -> None:
    """Encrypt the counters (block + lane, draw, sample, stage) for ``count`` lanes into ``words[0:4, lane]``."""
    w0, w1, w2, w3 = words[0], words[1], words[2], words[3]
    # As tuples the keys stay in registers; a loop over turns would be left as a loop and keep the lanes apart.
    k0, k1, k2, k3, k4 = _pair(keys, 0), _pair(keys, 1), _pair(keys, 2), _pair(keys, 3), _pair(keys, 4)
    k5, k6, k7, k8, k9 = _pair(keys, 5), _pair(keys, 6), _pair(keys, 7), _pair(keys, 8), _pair(keys, 9)
    for lane in range(count):
        a, b, c, d = _turn((block + np.uint64(lane)) & WORD, draw, sample, stage, k0)
        a, b, c, d = _turn(a, b, c, d, k1)
        a, b, c, d = _turn(a, b, c, d, k2)
        a, b, c, d = _turn(a, b, c, d, k3)
        a, b, c, d = _turn(a, b, c, d, k4)
        a, b, c, d = _turn(a, b, c, d, k5)
        a, b, c, d = _turn(a, b, c, d, k6)
        a, b, c, d = _turn(a, b, c, d, k7)
        a, b, c, d = _turn(a, b, c, d, k8)
        a, b, c, d = _turn(a, b, c, d, k9)
        w0[lane] = np.uint32(a)
        w1[lane] = np.uint32(b)
        w2[lane] = np.uint32(c)
        w3[lane] = np.uint32(d)


@njit
def _pair(keys: Any, turn: Any) -> Any:
    return keys[turn, 0], keys[turn, 1]


@njit
def _fold_phase(phase: Any) -> Any:
    """The angle in [-¼, ¼] turns with the same sine; 2³² is a full turn."""
    outside = np.int32(phase ^ np.int32(phase << 1)) < 0
    return np.int32(HALF_TURN - phase) if outside else phase


@njit
def _sine(phase: Any) -> Any:
    x = np.float32(_fold_phase(phase)) * PER_QUARTER
    t = x * x
    return x * (S1 + t * (S3 + t * (S5 + t * (S7 + t * S9))))


@njit
def _near(word: Any) -> Any:
    """How many whole words are between a word and the nearer end of their range."""
    return np.int32(word ^ np.int32(word >> 31))


@njit
def distances(radius: Any, count: Any, distance: Any) -> Any:
    """Distance of each u = (word + ½) / 2³² from the nearer of 0 and 1; whether some are :data:`SHORT` of bits."""
    least = SHORT
    for lane in range(count):
        near = _near(np.int32(radius[lane]))
        distance[lane] = (np.float32(near) + np.float32(0.5)) * UNIT
        least = min(least, near)
    return least < SHORT


@njit
def long_distance(near: Any, second: Any, third: Any) -> Any:
    """The distance of u from the nearer of 0 and 1 when 64 more bits follow those of ``near``, in units of 2⁻⁹⁶."""
    high = np.float64(np.uint64(near) << HALF | np.uint64(second))  # exact: below 2⁵²
    return np.float32(high + (np.float64(third) + 0.5) * 2.0**-32) * LONG_UNIT


@njit
def lengthen(
    words: Any,
    pair: Any,
    first: Any,
    draw: Any,
    sample: Any,
    stage: Any,
    keys: Any,
    count: Any,
    more: Any,
    distance: Any,
) -> None:
    """Distances again where they are short of bits: words ``pair`` and ``pair + 1`` of the extension of the block."""
    for lane in range(count):
        near = _near(np.int32(words[pair, lane]))
        if near < SHORT:
            philox(first + np.uint64(lane), draw, sample, stage + EXTENSION, keys, 1, more)
            distance[lane] = long_distance(near, more[pair, 0], more[pair + 1, 0])


@njit(error_model="numpy")
def box_muller(
    radius: Any, angle: Any, distance: Any, count: Any, unit: Any, unit_bits: Any, cosine: Any, sine: Any
) -> None:
    """Two standard normal values from two words: √(-2 ln u) times the cosine and the sine of a turn's fraction.

    ``distance`` is that of u from 0, or from 1 where the first bit of ``radius`` is set; the angle is its word / 2³² of
    a turn. Near u = 1 the logarithm is taken from 1 - u, without cancellation. The result is within 2⁻²¹ of the exact
    one, relative to the radius. ``unit`` and ``unit_bits`` are one scratch array, as float32 and as int32.
    """
    for lane in range(count):
        unit[lane] = ONE - distance[lane] if np.int32(radius[lane]) < 0 else distance[lane]
    for lane in range(count):  # u = 2^e m with m in [√½, √2): e into `cosine`, m stays in `unit`
        bits = unit_bits[lane]
        exponent = np.int32(np.int32(bits - ROOT_HALF_BITS) >> 23)
        unit_bits[lane] = np.int32(bits - np.int32(exponent << 23))
        cosine[lane] = np.float32(exponent)
    for lane in range(count):
        exponent = cosine[lane]
        f = -distance[lane] if exponent == 0 else unit[lane] - ONE  # u - 1, or m - 1
        s = f / (TWO + f)
        t = s * s
        log = s * (TWO + t * (L3 + t * (L5 + t * (L7 + t * L9))))
        length = np.sqrt(TWO * (-exponent * LOG_2 - log))
        phase = np.int32(angle[lane])
        cosine[lane] = length * _sine(np.int32(phase + QUARTER_TURN))
        sine[lane] = length * _sine(phase)


@njit(error_model="numpy")
def add_gaussian(
    inputs: Any, indices: Any, keys: Any, stage: Any, start: Any, per_sample: Any, first: Any, sigma: Any, out: Any
) -> None:
    """Fill ``out[row]`` with input + sigma * noise for the flat positions first, first + 1, … of (sample, draw).

    Position p is draw ``start + p % per_sample`` of the sample in row ``p // per_sample`` of ``inputs``. Coordinate
    32g + 8k + i takes the k-th of the four values of block 8g + i, whatever the number of coordinates. The first and
    the third word of a block are radii; one within 2²⁰ of 0 or 2³² goes on with 64 bits of the block's extension.
    """
    dimension = inputs.shape[1]
    blocks = -(-dimension // (4 * GROUP)) * GROUP
    words, more = np.empty((4, LANES), np.uint32), np.empty((4, 1), np.uint32)
    values = np.empty((4, LANES), np.float32)
    unit, distance = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    unit_bits = unit.view(np.int32)
    level = np.uint64(stage)
    for row in range(out.shape[0]):
        place = (first + row) // per_sample
        draw, sample = np.uint64(start + (first + row) % per_sample), np.uint64(indices[place])
        point, noisy = inputs[place], out[row]
        for begin in range(0, blocks, LANES):
            count = min(LANES, blocks - begin)
            philox(np.uint64(begin), draw, sample, level, keys, count, words)
            for pair in (0, 2):
                if distances(words[pair], count, distance):
                    lengthen(words, pair, np.uint64(begin), draw, sample, level, keys, count, more, distance)
                turned = (values[pair], values[pair + 1])
                box_muller(words[pair], words[pair + 1], distance, count, unit, unit_bits, *turned)
            for group in range(0, count, GROUP):
                for k in range(4):
                    base = 4 * (begin + group) + GROUP * k
                    if base + GROUP <= dimension:
                        for i in range(GROUP):
                            noisy[base + i] = point[base + i] + sigma * values[k, group + i]
                    else:
                        for i in range(dimension - base):
                            noisy[base + i] = point[base + i] + sigma * values[k, group + i]


@njit
def below(word: Any, upper: Any, guide: Any, shift: Any) -> Any:
    """How many thresholds have an upper part below ``word``; ``upper`` ends with a sentinel that nothing exceeds."""
    place = np.uint64(guide[word >> shift])
    place += np.uint64(upper[place] < word)  # a sum, no branch: most of what is left to decide is decided here
    while upper[place] < word:
        place += np.uint64(1)
    return place


@njit
def _at_most(lower: Any, more: Any) -> Any:
    for part in range(3):
        if lower[part] != more[part]:
            return lower[part] < more[part]
    return True


@njit
def pass_ties(place: Any, word: Any, more: Any, upper: Any, lower: Any) -> Any:
    """Go on from :func:`below` to how many thresholds (upper, lower) are at most the 128-bit (word, more)."""
    while place < lower.shape[0] and upper[place] == word and _at_most(lower[place], more):
        place += np.uint64(1)
    return place


@njit(error_model="numpy")
def add_exact(
    levels: Any,
    indices: Any,
    keys: Any,
    stage: Any,
    start: Any,
    per_sample: Any,
    first: Any,
    upper: Any,
    lower: Any,
    guide: Any,
    shift: Any,
    out: Any,
) -> None:
    """Fill ``out[row]`` with (level + J) / 255 for the flat positions first, first + 1, … of (sample, draw).

    J is the number of thresholds at or below a uniform 128-bit number, less half of all thresholds. Coordinate
    32g + 8k + i takes the k-th word of block 8g + i as the first 32 bits; the 96 others, first words of a block of the
    coordinate's own, are drawn only when the first 32 tie with those of a threshold.
    """
    dimension = levels.shape[1]
    blocks = -(-dimension // (4 * GROUP)) * GROUP
    words, block = np.empty((4, LANES), np.uint32), np.empty((4, 1), np.uint32)
    found = np.empty((4, LANES), np.int32)
    half = np.int32(lower.shape[0] // 2)
    full = np.float32(255)
    for row in range(out.shape[0]):
        place = (first + row) // per_sample
        draw, sample = np.uint64(start + (first + row) % per_sample), np.uint64(indices[place])
        point, noisy = levels[place], out[row]
        for begin in range(0, blocks, LANES):
            count = min(LANES, blocks - begin)
            philox(np.uint64(begin), draw, sample, np.uint64(stage), keys, count, words)
            for k in range(4):
                for lane in range(count):
                    word = np.uint64(words[k, lane])
                    passed = below(word, upper, guide, shift)
                    if upper[passed] == word:
                        coordinate = 4 * (begin + lane - lane % GROUP) + GROUP * k + lane % GROUP
                        philox(np.uint64(coordinate), draw, sample, np.uint64(stage) + EXTENSION, keys, 1, block)
                        passed = pass_ties(passed, word, block[:3, 0], upper, lower)
                    found[k, lane] = np.int32(passed) - half
            for group in range(0, count, GROUP):
                for k in range(4):
                    base = 4 * (begin + group) + GROUP * k
                    if base + GROUP <= dimension:
                        for i in range(GROUP):
                            noisy[base + i] = np.float32(np.int32(point[base + i] + found[k, group + i])) / full
                    else:
                        for i in range(dimension - base):
                            noisy[base + i] = np.float32(np.int32(point[base + i] + found[k, group + i])) / full


@njit
def sech_quantiles(share: Any, score: Any, h: Any, out: Any) -> Any:
    """Fill ``out`` with the values below which the given shares of the perturbed scores lie."""
    for i in range(share.size):
        s = score[i]
        left = 2 * math.atan(math.tanh(0.5 * s / h))
        right = 2 * math.atan(math.tanh(0.5 * (1 - s) / h))
        passed = share[i] * (left + right)
        to_left = passed < left
        inner = left - passed if to_left else passed - left
        if inner < 1:
            offset = h * math.asinh(math.tan(inner))
        else:
            # Counted from the angle of a score at infinity, the tail keeps its digits.
            if to_left:
                outer = passed + 2 * math.atan(math.exp(-s / h))
            else:
                outer = max(left + right - passed, 0.0) + 2 * math.atan(math.exp(-(1 - s) / h))
            offset = -h * math.log(math.tan(0.5 * outer)) if outer > 0 else 1.0
        out[i] = min(max(s - offset if to_left else s + offset, 0.0), 1.0)
