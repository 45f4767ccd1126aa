"""Cost of bounds on the true calibration error: against sorting the scores, with growing n, and against a peer.

Prints tables and asserts ratios measured in this run.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from ratios import Row, at_most, conclude

from certcal import bounds

SIZE = 10_000_000
DENOISED = 1_000_000
REPEATS = 3

# Targets: a bound at n = 10⁷ in sorts of the scores; growth from 10⁶ to 10⁷; denoising 10⁶ values in prox_tv's time.
SORTS = 5
GROWTH = 20
PEER = 2

Case = Callable[[np.ndarray, np.ndarray], Any]
CASES: dict[str, Case] = {
    "binned": bounds.binned,
    "binned_lower": bounds.binned_lower,
    "bounded_variation": bounds.bounded_variation,
    "bounded_variation, as published": lambda s, y: bounds.bounded_variation(s, y, form="published"),
    "lipschitz, constant 2": lambda s, y: bounds.lipschitz(s, y, 2.0),
    "lipschitz, constant 32": lambda s, y: bounds.lipschitz(s, y, 32.0),
    "smooth, bandwidth 1/64": lambda s, y: bounds.smooth(s, y, 2**-6),
    "smooth, bandwidth 1/8": lambda s, y: bounds.smooth(s, y, 2**-3),
    "smooth, as published": lambda s, y: bounds.smooth(s, y, 2**-6, form="published"),
}


def seconds(call: Callable[[], Any]) -> float:
    """Least of a few times."""
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def against_sorting() -> list[Row]:
    """Every bound at the full size in sorts of the scores, and how it grows from a tenth of the size."""
    rng = np.random.default_rng(0)
    s = rng.random(SIZE)
    y = rng.random(SIZE) < s
    tenth = SIZE // 10
    sort, small_sort = seconds(lambda: np.sort(s)), seconds(lambda: np.sort(s[:tenth]))
    print(f"sorting {SIZE:,} scores: {sort:.2f} s, a tenth of them: {small_sort:.3f} s")
    rows: list[Row] = []
    for name, bound in CASES.items():
        bound(s[:300_000], y[:300_000])  # compiles
        small = seconds(lambda bound=bound: bound(s[:tenth], y[:tenth]))
        whole = seconds(lambda bound=bound: bound(s, y))
        print(f"{name:<30} {small:7.3f} s at 10⁶ {whole:7.3f} s at 10⁷")
        rows.append(at_most(f"{name}: n = 10⁷ / sorting the scores", whole / sort, SORTS))
        rows.append(at_most(f"{name}: n = 10⁷ / n = 10⁶", whole / small, GROWTH))
    return rows


def against_peer() -> list[Row]:
    """Denoising as in Proposition 1, and the same by prox_tv, which must give the same values."""
    from certcal._kernels.denoise import denoise

    rng = np.random.default_rng(0)
    total = (rng.random(DENOISED) < np.linspace(0, 1, DENOISED)).astype(np.int32)
    weight = np.ones(DENOISED, np.int32)
    price = math.sqrt(DENOISED / 8 * math.log(4 * (DENOISED - 1) / 0.00625))
    denoise(weight[:10], total[:10], 1.0)  # compiles
    ours = seconds(lambda: denoise(weight, total, price))
    try:
        import prox_tv
    except ImportError as error:
        print(f"denoising {DENOISED:,} values: {1000 * ours:.0f} ms; no comparison: {error}")
        print("prox_tv has no wheels; building it needs the headers and library of LAPACKE")
        return []
    values = total.astype(np.float64)
    theirs = seconds(lambda: prox_tv.tv1_1d(values, price))
    apart = float(np.abs(prox_tv.tv1_1d(values, price) - denoise(weight, total, price)).max())
    print(f"denoising {DENOISED:,} values: {1000 * ours:.0f} ms, prox_tv {1000 * theirs:.0f} ms, {apart:.1g} apart")
    return [
        at_most("denoising 10⁶ values / prox_tv", ours / theirs, PEER),
        at_most("denoising: largest difference from prox_tv", apart, 1e-9),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-docs", action="store_true", help="also rewrite the table of the documentation")
    options = parser.parse_args()
    return conclude(against_sorting() + against_peer(), "bounds", options.write_docs)


if __name__ == "__main__":
    sys.exit(main())
