"""The two kinds of noise: Gaussian in float32, and exact noise for inputs on the grid k/255.

**Gaussian.** ``x + sigma * g`` in float32, where g is a Box–Muller transform.

- *Claim.* To every pair of values belongs a pair of exactly Gaussian ones, independent of all others, that differs by
  at most 2⁻²⁰ of the pair's length in each coordinate, except with probability 2⁻⁷⁵.
- *Why.* The 96 bits of the radius and the 32 of the angle are the first bits of two uniform real numbers. (Only where
  the first 32 bits of the radius are within 2²⁰ of either end do the other 64 matter, and are drawn.) Cutting the one
  off moves the length by at most 2⁻²² of itself unless the 96-bit number is within 2²⁰ of an end, cutting the other
  moves the point by 2⁻²⁹ of the length, and what is computed is within 2⁻²¹ of the exact transform.
- *What is left.* Over 10⁵ draws of 224×224×3 pixels the exception has probability below 10⁻¹². So nothing is missing
  from the tails (values reach 11.6 σ), but a certificate neglects rounding: it treats the computed sum, a float32, as
  if it were Gaussian. Float32 addition leaks the grid of ``x``, and inputs exist for which such a certificate is wrong
  (Voráček & Hein, *Sound randomized smoothing in floating-point arithmetic*, ICLR 2023).
- The noise is scaled by the least float32 that is not below sigma: certificates for sigma are then certificates.

**Exact.** Let x be on the grid, x = k/255 with whole numbers k, and let round take every coordinate of a point to the
nearest multiple of 1/255 (halves upwards). The classifier that is smoothed is f∘round: what the model computes at the
rounded point.

- *Claim.* With ε ~ N(0, σ²I), every probability and expectation that a certificate bounds, P(f(round(x + ε)) = A) and
  E f_A(round(x + ε)), is that of f at (k + J)/255 with independent whole numbers J of
  P(J = j) = Φ((j + ½)/(255σ)) - Φ((j - ½)/(255σ)).
- *Why.* round(k/255 + ε) = (k + J)/255 with J = ⌊255ε + ½⌋: rounding is done to exact Gaussian noise, in real numbers,
  and J is drawn without ever forming ε. f∘round is a function of a real point like any other, so Cohen, Rosenfeld &
  Kolter's theorem applies to it and to every perturbed input, on the grid or not. No rounding error enters anywhere:
  the float32 value passed to the model is the correctly rounded quotient, one and the same for each whole number, and
  what the model computes from it, with all its rounding errors, *is* f. An input that misses k/255 by rounding is
  taken as k/255: that is where the ball of perturbations is centred.
- *Random:* the words of the generator, taken as independent uniform bits. *Assumed:* the model is a function: the same
  input gives the same output bits, whatever else is in the batch.
- *What is left.* J is found by comparing a uniform 128-bit number with the K cumulative probabilities, each rounded to
  128 bits: one coordinate is within (K + 2) 2⁻¹²⁸ of its law in total variation, and n draws of d coordinates within
  n d (K + 2) 2⁻¹²⁸ (:meth:`ExactNoise.distance`). A certificate at level α from n draws therefore holds at α plus this
  number. For 10⁵ draws of 224×224×3 pixels at σ = 1 it is below 10⁻²⁴: for α ≥ 10⁻⁸ less than the rounding of α itself
  to a float64, so that it is covered by rounding bounds outward.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError

NoiseKind = Literal["gaussian", "exact"]
NOISES: tuple[str, ...] = get_args(NoiseKind)
LEVELS = 255
LARGEST_EXACT_SIGMA = 4.0  # a table of 27,000 thresholds, a few seconds to compute

BITS = 128  # of a threshold: 32 to begin with, 96 more for ties
WORKING = 320  # bits after the point while a threshold is computed
GUIDE_BITS = 13  # a guide of 16 kilobytes stays in the fastest cache

# An input may miss the float32 nearest to k/255 by two units in its last place: other ways to divide by 255.
OFF_GRID = 2.0**-23


@dataclass(frozen=True, eq=False)
class ExactNoise:
    """Thresholds of the whole numbers J, ready for the compiled loop.

    ``upper`` (K + 1,) and ``lower`` (K, 3) are the first and the other words of 2¹²⁸ P(J < j), rounded, for
    j = 1 - K/2 … K/2, ``upper`` with a sentinel at its end; ``guide[h]`` is how many of ``upper`` lie below all words
    that, shifted right by ``shift``, are h.
    """

    upper: NDArray[np.uint32]
    lower: NDArray[np.uint32]
    guide: NDArray[np.uint16]
    shift: np.uint64

    def distance(self, dimension: int, draws: int) -> float:
        """Total variation between all draws together and exact Gaussian noise rounded to the grid."""
        bound = Fraction(dimension * draws * (len(self.lower) + 2), 2**BITS)
        return min(1.0, float(np.nextafter(float(bound), np.inf)))


@lru_cache(maxsize=8)
def exact_noise(sigma: float) -> ExactNoise:
    """Thresholds for one sigma, to the last of their 128 bits, computed with whole numbers only."""
    if not 0 < sigma <= LARGEST_EXACT_SIGMA:
        raise InputError(
            f"sigma is {sigma}, too large for exact noise; pass at most {LARGEST_EXACT_SIGMA:g} or use Gaussian noise"
        )
    tails: list[int] = []  # 2^128 P(J >= j) for j = 1, 2, …
    while True:
        tail = (1 << BITS - 1) - _scaled_centre(2 * len(tails) + 1, sigma)
        if tail <= 0:
            break
        tails.append(tail)
    if not tails:  # noise too small to reach the next level even once in 2^128
        tails = [0]
    thresholds = [*reversed(tails), *((1 << BITS) - tail for tail in tails)]
    full = (1 << BITS) - 1
    thresholds = [min(threshold, full) for threshold in thresholds]
    upper = np.array([*(threshold >> 96 for threshold in thresholds), (1 << 32) - 1], np.uint32)
    lower = np.array([[threshold >> bits & 0xFFFFFFFF for bits in (64, 32, 0)] for threshold in thresholds], np.uint32)
    shift = 32 - GUIDE_BITS
    guide = np.searchsorted(upper[:-1], np.arange(1 << GUIDE_BITS) << shift).astype(np.uint16)
    return ExactNoise(upper, lower, guide, np.uint64(shift))


def _scaled_centre(odd: int, sigma: float) -> int:
    """2¹²⁸ (Φ(z) - ½) to the nearest whole number, z = odd / (510 sigma), sigma taken as the exact binary number it is.

    The alternating series Φ(z) - ½ = (2π)^-½ Σ_k (-1)^k z^(2k+1) / (2^k k! (2k+1)) in fixed point. Its terms grow to
    exp(z²/2) < 2¹⁴² for z <= 14, and with them the truncation of every step (one unit of 2⁻³²⁰): the sum is right to
    2⁻¹⁶⁰, so the result is the nearest whole number unless Φ comes that near to a midpoint.
    """
    z = Fraction(odd, 2 * LEVELS) / Fraction(sigma)
    if z > 14:  # the tail is below 2^-146
        return 1 << BITS - 1
    half_square = _fixed_point(z * z / 2)
    term = total = _fixed_point(z)
    k = 0
    while term:
        k += 1
        term = (term * half_square >> WORKING) // k
        total += -(term // (2 * k + 1)) if k % 2 else term // (2 * k + 1)
    scaled = total * _root_of_two_pi_inverse() >> WORKING
    return (scaled + (1 << WORKING - BITS - 1)) >> (WORKING - BITS)


def _fixed_point(value: Fraction) -> int:
    return (value.numerator << WORKING) // value.denominator


@lru_cache(maxsize=1)
def _root_of_two_pi_inverse() -> int:
    """(2π)^-½ in fixed point; π by Machin's formula 16 arctan(1/5) - 4 arctan(1/239)."""
    guard = WORKING + 64

    def arctan_inverse(n: int) -> int:
        term = total = (1 << guard) // n
        k = 1
        while term:
            term //= n * n
            k += 2
            total += -(term // k) if k % 4 == 3 else term // k
        return total

    pi = 16 * arctan_inverse(5) - 4 * arctan_inverse(239)
    return isqrt((1 << (2 * WORKING + guard)) // (2 * pi))


def gaussian_scale(sigma: float) -> np.float32:
    """The least float32 not below sigma, by which Gaussian noise is scaled.

    A radius certified for noise of a larger standard deviation is larger, so that certificates may use sigma itself.
    """
    nearest = np.float32(sigma)
    return nearest if float(nearest) >= sigma else np.nextafter(nearest, np.float32(np.inf))


def grid_levels(inputs: NDArray[np.float32], indices: NDArray[np.int64]) -> NDArray[np.int32]:
    """The whole numbers k of inputs on k/255, or an :class:`InputError` that names the first sample off the grid."""
    scaled = inputs.astype(np.float64) * LEVELS
    levels = np.rint(scaled)
    bad = (np.abs(scaled - levels) > LEVELS * OFF_GRID) | (levels < 0) | (levels > LEVELS)
    if bad.any():
        place: tuple[Any, ...] = np.unravel_index(int(np.argmax(bad)), bad.shape)
        coordinate = ", ".join(str(int(i)) for i in place[1:])
        raise InputError(
            f"sample {indices[place[0]]} is not on the grid k/255: its coordinate [{coordinate}] is "
            f"{inputs[place]:.9g}; divide bytes by 255, or use Gaussian noise"
        )
    return levels.astype(np.int32)
