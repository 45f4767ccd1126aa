# pyright: basic
"""Kernel sums: moments of confidences per cell, integrals of |piecewise polynomials|, and a quadratic form.

Without weights every power is rounded once to a multiple of 2**-44 and summed as an integer, so the
sums are the same for any order, cut or number of threads.

The quadratic form is that of the Laplacian kernel over sorted points: Σ_mn r_m r_n exp(-|z_m - z_n| / width) for
residuals r = w (c - z) and z in increasing order. With ρ_k = exp(-(z_k - z_{k-1}) / width), ρ_1 = 0, and
B_k = r_k + ρ_{k+1} B_{k+1}, it is Σ_k (1 - ρ_k²) B_k². B and the sum are carried in two floats each, so their rounding
does not grow with the number of samples.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, MANY, njit

# Adding this to a number in [-1, 1] leaves the number, in units of 2**-44, in the lowest bits of the float.
SHIFT = 1.5 * 2.0**8
SHIFT_BITS = np.float64(SHIFT).view(np.int64)
UNIT = 2.0**-44
# 2**18 numbers of magnitude up to 2**44 fit one int64; after that many the sums move to two words.
CARRY_EVERY = 1 << 18
LOW_WORD = 0xFFFFFFFF

# What is left of a piece is not halved again when it cannot hold more than this (times the step).
NEGLIGIBLE = 1e-13
DEEPEST = 64


def _offsets(values: Any, origin: Any, scale: Any, cells: Any) -> Any:
    """The cell of every value, and its offset from the cell's centre in half cells."""
    x = (values.astype(np.float64) - origin) * scale
    j = np.minimum(x.astype(np.int64), cells - 1)
    return j, 2.0 * (x - j) - 1.0


def _add_exactly(values: Any, correct: Any, origin: Any, scale: Any, state: Any) -> Any:
    j, v = _offsets(values, origin, scale, state.shape[1])
    v2 = v * v
    v3, v4 = v2 * v, v2 * v2
    powers = np.stack((v, v2, v3, v4, v4 * v, v4 * v2, v4 * v3), axis=1)
    part = np.zeros(state.shape[1:], np.int64)
    np.add.at(part[:, :, 0], (j, correct), 1 << 44)
    np.add.at(part[:, :, 1:], (j, correct), (SHIFT + powers).view(np.int64) - SHIFT_BITS)
    low = state[1] + (part & LOW_WORD)
    state[0] += (part >> 32) + (low >> 32)
    state[1] = low & LOW_WORD


@njit(patience=MANY, in_numpy=_add_exactly)
def add_exactly(values: Any, correct: Any, origin: Any, scale: Any, state: Any) -> Any:
    """Add samples to ``state[word, cell, correct, power]``, integers in units of ``UNIT``.

    Cell ``j`` holds the values with ``j <= (value - origin) * scale < j + 1``; the powers are those of the offset from
    the cell's centre in half cells.
    """
    cells = state.shape[1]
    part = np.empty((cells, 2, 8), np.int64)
    for start in range(0, values.size, CARRY_EVERY):
        part[:] = 0
        for i in range(start, min(values.size, start + CARRY_EVERY)):
            x = (np.float64(values[i]) - origin) * scale
            j = min(np.int64(x), cells - 1)
            v = 2.0 * (x - j) - 1.0
            v2 = v * v
            v3 = v2 * v
            v4 = v2 * v2
            m = part[j, correct[i]]
            m[0] += 1
            m[1] += np.float64(SHIFT + v).view(np.int64)
            m[2] += np.float64(SHIFT + v2).view(np.int64)
            m[3] += np.float64(SHIFT + v3).view(np.int64)
            m[4] += np.float64(SHIFT + v4).view(np.int64)
            m[5] += np.float64(SHIFT + v4 * v).view(np.int64)
            m[6] += np.float64(SHIFT + v4 * v2).view(np.int64)
            m[7] += np.float64(SHIFT + v4 * v3).view(np.int64)
        _carry(part, state)


@njit
def _carry(part: Any, state: Any) -> Any:
    """Add one word of sums, SHIFT_BITS too large for each sample, to the two words of the state."""
    for j in range(part.shape[0]):
        for c in range(2):
            count = part[j, c, 0]
            if count == 0:
                continue
            for p in range(8):
                # The subtraction wraps around exactly like the sums did.
                total = count << 44 if p == 0 else part[j, c, p] - count * SHIFT_BITS
                low = state[1, j, c, p] + (total & LOW_WORD)
                state[0, j, c, p] += (total >> 32) + (low >> 32)
                state[1, j, c, p] = low & LOW_WORD


def _add_weighted(values: Any, correct: Any, weights: Any, origin: Any, scale: Any, sums: Any) -> Any:
    j, v = _offsets(values, origin, scale, sums.shape[0])
    powers = np.repeat(v[:, None], 8, axis=1)
    powers[:, 0] = weights
    np.add.at(sums, (j, correct), np.multiply.accumulate(powers, axis=1))


@njit(patience=MANY, in_numpy=_add_weighted)
def add_weighted(values: Any, correct: Any, weights: Any, origin: Any, scale: Any, sums: Any) -> Any:
    """Add weighted samples to the float64 sums ``sums[cell, correct, power]``."""
    cells = sums.shape[0]
    for i in range(values.size):
        x = (np.float64(values[i]) - origin) * scale
        j = min(np.int64(x), cells - 1)
        v = 2.0 * (x - j) - 1.0
        m = sums[j, correct[i]]
        term = weights[i]
        for p in range(8):
            m[p] += term
            term *= v


def _absolute_integral(derivatives: Any, step: Any) -> Any:
    first = step / 7.0
    second = first * step / 6.0
    third = second * step / 5.0
    f, f1, f2, f3 = derivatives[:, :-1]
    g, g1, g2, g3 = derivatives[:, 1:]
    b = np.array(
        (
            f,
            f + first * f1,
            f + 2 * first * f1 + second * f2,
            f + 3 * first * f1 + 3 * second * f2 + third * f3,
            g - 3 * first * g1 + 3 * second * g2 - third * g3,
            g - 2 * first * g1 + second * g2,
            g - first * g1,
            g,
        )
    )
    lowest, highest = b.min(axis=0), b.max(axis=0)
    parts = np.abs(np.add.accumulate(b / 8.0)[-1])
    for k in np.flatnonzero((lowest < 0) & (highest > 0) & (np.maximum(highest, -lowest) > NEGLIGIBLE)):
        parts[k] = _list_by_halves(b[:, k].tolist())
    total = 0.0
    for start in range(0, parts.size, 1024):
        total += float(np.add.accumulate(parts[start : start + 1024])[-1])
    return total * step


def _list_by_halves(b: Any) -> Any:
    """:func:`_by_halves` of one polynomial, in lists."""
    total = 0.0
    stack = [(1.0, b)]
    while stack:
        share, b = stack.pop()
        lowest, highest = min(b), max(b)
        if lowest >= 0 or highest <= 0 or share * max(highest, -lowest) <= NEGLIGIBLE or len(stack) >= DEEPEST:
            mean = 0.0
            for value in b:
                mean += value / 8.0
            total += share * abs(mean)
            continue
        left, right, share = [], [], share / 2.0
        while b:
            left.append(b[0])
            right.append(b[-1])
            b = [(x + y) / 2.0 for x, y in pairwise(b)]
        stack += [(share, right[::-1]), (share, left)]
    return total


@njit(patience=1 << 11, often=512, in_numpy=_absolute_integral)
def absolute_integral(derivatives: Any, step: Any) -> Any:
    """Integral of |p|, p the polynomial of degree 7 on each step that has the given values at both its ends.

    ``derivatives[k]`` holds the k-th derivative, k = 0 to 3, at nodes ``step`` apart. On each step p is written in
    Bernstein form. Coefficients of one sign mean that p has that sign, and its integral is their mean;
    otherwise the step is halved, until what is left is negligible.
    """
    total = 0.0
    stack = np.empty((DEEPEST + 2, 9))
    first = step / 7.0
    second = first * step / 6.0
    third = second * step / 5.0
    for start in range(0, derivatives.shape[1] - 1, 1024):
        part = 0.0
        for j in range(start, min(derivatives.shape[1] - 1, start + 1024)):
            b = stack[0]
            f, f1, f2, f3 = derivatives[:, j]
            b[0] = f
            b[1] = f + first * f1
            b[2] = f + 2 * first * f1 + second * f2
            b[3] = f + 3 * first * f1 + 3 * second * f2 + third * f3
            f, f1, f2, f3 = derivatives[:, j + 1]
            b[4] = f - 3 * first * f1 + 3 * second * f2 - third * f3
            b[5] = f - 2 * first * f1 + second * f2
            b[6] = f - first * f1
            b[7] = f
            b[8] = 1.0
            part += _by_halves(stack)
        total += part
    return total * step


@njit
def _by_halves(stack: Any) -> Any:
    """Integral over [0, 1] of the absolute value of the polynomial in the first row of the stack."""
    total = 0.0
    size = 1
    while size:
        b = stack[size - 1]
        lowest, highest, mean = b[0], b[0], 0.0
        for k in range(8):
            lowest, highest = min(lowest, b[k]), max(highest, b[k])
            mean += b[k] / 8.0
        if lowest >= 0 or highest <= 0 or b[8] * max(highest, -lowest) <= NEGLIGIBLE or size > DEEPEST:
            total += b[8] * abs(mean)
            size -= 1
            continue
        # De Casteljau: the right half stays in place, the left half is left behind on top of it.
        left = stack[size]
        for k in range(8):
            left[k] = b[0]
            for i in range(7 - k):
                b[i] = (b[i] + b[i + 1]) / 2.0
        b[8] /= 2.0
        left[8] = b[8]
        size += 1
    return total


@njit(inline="always")
def _add(total: Any, lost: Any, term: Any) -> Any:
    """Two floats that hold a sum, after one more term."""
    new = total + term
    back = new - total
    return new, lost + ((total - (new - back)) + (term - back))


@njit(patience=FEW)
def squared_norm(keys: Any, cell: Any, value: Any, width: Any) -> Any:
    """The form for sorted keys that hold the bits of a confidence and, as their lowest bit, its correctness.

    The keys are taken apart one at a time, so that nothing of their size is needed beside them: ``cell`` and
    ``value`` are the same few bytes, as the integer that goes in and as the float that comes out.
    """
    b = lost_b = total = lost_total = 0.0
    after = 1.0
    for k in range(keys.size - 1, -1, -1):
        cell[0] = keys[k] >> 1
        z = np.float64(value[0])
        decay = math.expm1((z - after) / width)  # ρ - 1; while B is 0 it does not matter
        whole = b + lost_b
        total, lost_total = _add(total, lost_total, -decay * (2.0 + decay) * (whole * whole))
        lost_b += decay * lost_b
        b, lost_b = _add(b, lost_b, decay * b + (np.float64(keys[k] & 1) - z))
        after = z
    whole = b + lost_b
    total, lost_total = _add(total, lost_total, whole * whole)
    return total + lost_total


@njit(patience=FEW)
def weighted_squared_norm(order: Any, z: Any, c: Any, w: Any, width: Any) -> Any:
    """The form for samples with weights, of which ``order`` gives the positions by increasing confidence."""
    b = lost_b = total = lost_total = 0.0
    after = 1.0
    for k in range(order.size - 1, -1, -1):
        i = order[k]
        now = np.float64(z[i])
        decay = math.expm1((now - after) / width)
        whole = b + lost_b
        total, lost_total = _add(total, lost_total, -decay * (2.0 + decay) * (whole * whole))
        lost_b += decay * lost_b
        b, lost_b = _add(b, lost_b, decay * b + w[i] * (np.float64(c[i]) - now))
        after = now
    whole = b + lost_b
    total, lost_total = _add(total, lost_total, whole * whole)
    return total + lost_total
