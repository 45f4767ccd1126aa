# pyright: basic
"""Per-bin sums that do not depend on the order of the samples.

Without weights each confidence is rounded once to a multiple of 2**-50 and summed as an integer, so sums are exact and
the same for any order, cut or number of threads; the error of a mean is at most 2**-51 (about 4.4e-16).
With weights the products are summed in a superaccumulator (Neal 2015): 32-bit digits in 64-bit words
covering the whole exponent range of float64, again exact and independent of order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import MANY, njit
from certcal._kernels.select import bucket, make_grid

SCALE_BITS = 50
SCALE = 2.0**SCALE_BITS
# Integer sums are carried into two words after this many samples: 2**12 * 2**50 < 2**63.
CARRY_EVERY = 1 << 12
# With more bins than this, carrying every bin that often costs more than writing both words for each sample.
MANY_BINS = 512
LOW = 0xFFFFFFFF

# Cells for edges that crowd at 0 or 1.
CROWDED = make_grid(40, 7)

# A float64 is mantissa * 2**(exponent - 1075); digit d of a superaccumulator is worth 2**(32 d - 1075).
DIGITS = 68
# Each addition adds less than 2**32 to a digit (in magnitude), so 2**30 additions fit before a carry is needed.
NORMALISE_EVERY = 1 << 30


def _locate(values: Any, inner: Any, table: Any, cells: Any, out: Any) -> Any:
    out[: values.size] = np.searchsorted(inner[:-1], values.astype(np.float64), "right")


@njit(patience=MANY, in_numpy=_locate)
def locate(values: Any, inner: Any, table: Any, cells: Any, out: Any) -> Any:
    """Bin of every value: the number of inner edges <= value; ``inner`` ends with infinity.

    The table says how many edges lie below each of ``cells`` equal cells, or, when ``cells`` is 0
    because the edges crowd at one end, below each of the buckets that are fine near both ends.
    """
    if cells > 0.0:
        for i in range(values.size):
            value = np.float64(values[i])
            low = table[np.uint32(value * cells)]
            while value >= inner[low]:
                low += np.uint32(1)
            out[i] = low
        return
    for i in range(values.size):
        value = np.float64(values[i])
        cell = bucket(value, CROWDED)
        low = table[cell]
        span = table[cell + 1] - low
        while span > 0:  # halving without a branch: which half is taken cannot be predicted
            half = (span + np.uint32(1)) >> np.uint32(1)
            low += half * np.uint32(value >= inner[low + half - np.uint32(1)])
            span -= half
        out[i] = low


def _carry_words(state: Any) -> Any:
    state[:, :, 1] += state[:, :, 2] >> 32
    state[:, :, 2] &= LOW


@njit(patience=MANY, in_numpy=_carry_words)
def carry_words(state: Any) -> Any:
    """Bring every low word back into 32 bits."""
    for j in range(state.shape[0]):
        for c in range(state.shape[1]):
            state[j, c, 1] += state[j, c, 2] >> 32
            state[j, c, 2] &= LOW


def _add_counts_and_sums(values: Any, correct: Any, inner: Any, table: Any, cells: Any, state: Any) -> Any:
    whole = (values.astype(np.float64) * SCALE + 0.5).astype(np.int64)
    where = np.empty(values.size, np.int64)
    _locate(values, inner, table, cells, where)
    flat, place = state.reshape(-1), 3 * (2 * where + correct)
    np.add.at(flat, place, 1)
    np.add.at(flat, place + 1, whole >> 32)
    np.add.at(flat, place + 2, whole & LOW)
    _carry_words(state)


@njit(patience=MANY, in_numpy=_add_counts_and_sums)
def add_counts_and_sums(values: Any, correct: Any, inner: Any, table: Any, cells: Any, state: Any) -> Any:
    """Add samples to ``state[bin, correct] = (count, high word, low word)`` of integer confidence sums."""
    if inner.size > MANY_BINS:
        _add_directly(values, correct, inner, table, cells, state)
    else:
        _add_in_lanes(values, correct, inner, table, cells, state)
    carry_words(state)


@njit
def _add_in_lanes(values: Any, correct: Any, inner: Any, table: Any, cells: Any, state: Any) -> Any:
    """Four copies of every counter, so that neighbouring samples in one bin do not wait for each other."""
    bins = inner.size
    sums = np.zeros(8 * bins, np.int64)
    counts = np.zeros(8 * bins, np.int64)
    where = np.empty(CARRY_EVERY, np.uint32)
    for start in range(0, values.size, CARRY_EVERY):
        some = values[start : start + CARRY_EVERY]
        locate(some, inner, table, cells, where)
        for i in range(some.size):
            k = (where[i] << np.uint32(3)) + (np.uint32(correct[start + i]) << np.uint32(2)) + np.uint32(i & 3)
            sums[k] += np.int64(np.float64(some[i]) * SCALE + 0.5)
            counts[k] += 1
        for k in range(8 * bins):
            state[k >> 3, (k >> 2) & 1, 1] += sums[k] >> 32
            state[k >> 3, (k >> 2) & 1, 2] += sums[k] & LOW
            sums[k] = 0
    for k in range(8 * bins):
        state[k >> 3, (k >> 2) & 1, 0] += counts[k]


@njit
def _add_directly(values: Any, correct: Any, inner: Any, table: Any, cells: Any, state: Any) -> Any:
    """Both words of every sample at once."""
    where = np.empty(CARRY_EVERY, np.uint32)
    for start in range(0, values.size, CARRY_EVERY):
        some = values[start : start + CARRY_EVERY]
        locate(some, inner, table, cells, where)
        for i in range(some.size):
            whole = np.int64(np.float64(some[i]) * SCALE + 0.5)
            c = correct[start + i]
            state[where[i], c, 0] += 1
            state[where[i], c, 1] += whole >> 32
            state[where[i], c, 2] += whole & LOW
        if start % NORMALISE_EVERY == NORMALISE_EVERY - CARRY_EVERY:
            carry_words(state)


def _super_add(values: Any, row: Any, state: Any) -> Any:
    """Add each value to its row of superaccumulators."""
    bits = values.view(np.uint64)
    exponent = (bits >> np.uint64(52)) & np.uint64(0x7FF)
    mantissa = bits & np.uint64(0xFFFFFFFFFFFFF) | np.where(exponent > 0, np.uint64(1) << np.uint64(52), np.uint64(0))
    exponent = np.maximum(exponent, np.uint64(1))
    shift, flat = exponent & np.uint64(31), state.reshape(-1)
    place = row * DIGITS + (exponent >> np.uint64(5)).astype(np.int64)
    rest = mantissa >> (np.uint64(32) - shift)
    for k, digit in enumerate((mantissa << shift, rest, rest >> np.uint64(32))):
        np.add.at(flat, place + k, (digit & np.uint64(LOW)).astype(np.int64))


@njit
def super_add(digits: Any, bits: Any) -> Any:
    """Add the non-negative finite float64 with these bits to one superaccumulator."""
    exponent = (bits >> np.uint64(52)) & np.uint64(0x7FF)
    mantissa = bits & np.uint64(0xFFFFFFFFFFFFF)
    if exponent == 0:
        exponent = np.uint64(1)
    else:
        mantissa |= np.uint64(1) << np.uint64(52)
    digit = exponent >> np.uint64(5)
    shift = exponent & np.uint64(31)
    low = (mantissa << shift) & np.uint64(LOW)
    rest = mantissa >> (np.uint64(32) - shift)
    digits[digit] += np.int64(low)
    digits[digit + np.uint64(1)] += np.int64(rest & np.uint64(LOW))
    digits[digit + np.uint64(2)] += np.int64(rest >> np.uint64(32))


def _normalise(state: Any) -> Any:
    flat = state.reshape(-1, DIGITS)
    while (carried := flat[:, :-1] >> 32).any():
        flat[:, :-1] &= LOW
        flat[:, 1:] += carried


@njit(patience=4 * MANY, in_numpy=_normalise)
def normalise(state: Any) -> Any:
    """Carry the digits of every superaccumulator so that all but the top one are in [0, 2**32)."""
    flat = state.reshape(-1, DIGITS)
    for r in range(flat.shape[0]):
        for d in range(DIGITS - 1):
            flat[r, d + 1] += flat[r, d] >> 32
            flat[r, d] &= LOW


def _add_weighted(
    values: Any, correct: Any, weights: Any, inner: Any, table: Any, cells: Any, counts: Any, state: Any
) -> Any:
    where = np.empty(values.size, np.int64)
    _locate(values, inner, table, cells, where)
    np.add.at(counts, where, 1)
    for t, terms in enumerate((weights, weights * weights, weights * values.astype(np.float64), weights * correct)):
        _super_add(terms, 4 * where + t, state)


@njit(patience=MANY, in_numpy=_add_weighted)
def add_weighted(
    values: Any, correct: Any, weights: Any, inner: Any, table: Any, cells: Any, counts: Any, state: Any
) -> Any:
    """Add samples to ``counts[bin]`` and the superaccumulators ``state[bin] = (Σw, Σw², Σwz, Σwc)``."""
    where = np.empty(CARRY_EVERY, np.uint32)
    terms = np.empty(4, np.float64)
    bits = terms.view(np.uint64)
    for start in range(0, values.size, CARRY_EVERY):
        some = values[start : start + CARRY_EVERY]
        locate(some, inner, table, cells, where)
        for i in range(some.size):
            weight = weights[start + i]
            counts[where[i]] += 1
            terms[0] = weight
            terms[1] = weight * weight
            terms[2] = weight * np.float64(some[i])
            terms[3] = weight * correct[start + i]
            for t in range(4):
                if bits[t]:
                    super_add(state[where[i], t], bits[t])
        if start % NORMALISE_EVERY == NORMALISE_EVERY - CARRY_EVERY:
            normalise(state)


def _add_exact(values: Any, digits: Any) -> Any:
    _super_add(values, np.zeros(values.size, np.int64), digits)


@njit(patience=MANY, in_numpy=_add_exact)
def add_exact(values: Any, digits: Any) -> Any:
    """Add non-negative finite values to one superaccumulator."""
    bits = values.view(np.uint64)
    for i in range(values.size):
        if bits[i]:
            super_add(digits, bits[i])
        if i % NORMALISE_EVERY == NORMALISE_EVERY - 1:
            normalise(digits)
