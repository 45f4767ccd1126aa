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

from certcal import bounds, metrics

SIZE = 10_000_000
DENOISED = 1_000_000
REPEATS = 3

# Targets: a bound at n = 10⁷ in sorts of the scores; growth from 10⁶ to 10⁷; denoising 10⁶ values in prox_tv's time.
SORTS = 5
GROWTH = 20
PEER = 2
# The bound for perturbed scores at n = 10⁶, in units of the one from local averages alone.
ANALYTIC = 0.75
# A band of a reliability diagram, or an interval, of 10⁶ samples, in the time of their ECE, or of the metric.
ECES = 50

Case = Callable[[np.ndarray, np.ndarray], Any]
CASES: dict[str, Case] = {
    "binned": bounds.binned,
    "binned_lower": bounds.binned_lower,
    "binned, two weights": lambda s, y: bounds.binned(s, y, sample_weight=np.where(y, 1.0, 3.0)),
    "ks": bounds.ks,
    "kuiper": bounds.kuiper,
    "ks_lower": bounds.ks_lower,
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


def against_local_averages() -> list[Row]:
    """The bound for perturbed, calibrated scores, against the best from local averages of a few widths."""
    rng = np.random.default_rng(0)
    s, h = rng.random(SIZE // 10), 2.0**-6
    y = rng.random(s.size) < s
    z = bounds.perturb(s, h, 1)
    averages = min(bounds.smooth(z, y, h, smoothing=h * 2.0 ** (-power / 2)).value for power in range(2, 9))
    fitted = bounds.smooth(z, y, h).value
    print(f"perturbed scores, bandwidth 1/64: {fitted:.4f}, from local averages {averages:.4f}")
    return [at_most("smooth, bandwidth 1/64: bound / the one from local averages", fitted / averages, ANALYTIC)]


BANDS: dict[str, Case] = {
    "joint band of 15 bins": lambda s, y: metrics.reliability(s, y),
    "isotonic_band": bounds.isotonic_band,
    "surrogate, bandwidth 1/64": lambda s, y: bounds.surrogate(s, y, 2**-6),
}


def against_ece() -> list[Row]:
    """Every band of a million samples in times of their ECE."""
    rng = np.random.default_rng(0)
    s = rng.random(SIZE // 10)
    y = rng.random(s.size) < s
    metrics.ece(s, y)
    ece = min(seconds(lambda: metrics.ece(s, y)) for _ in range(5))
    print(f"ECE of {s.size:,} samples: {1000 * ece:.2f} ms")
    rows: list[Row] = []
    for name, band in BANDS.items():
        band(s, y)  # compiles
        taken = seconds(lambda band=band: band(s, y))
        print(f"{name:<30} {1000 * taken:7.2f} ms")
        rows.append(at_most(f"{name}: n = 10⁶ / ECE", taken / ece, ECES))
    return rows


def against_means() -> list[Row]:
    """Intervals of paired differences of a million samples, in times of the metric."""
    from certcal import Estimate, Predictions
    from certcal.metrics.differences import difference_interval

    rng = np.random.default_rng(0)
    z = rng.random(SIZE // 10)
    y = rng.random(z.size) < z
    old, new = Predictions.from_confidence(z**1.2, y), Predictions.from_confidence(z, y)
    rows: list[Row] = []
    for metric in (metrics.top_label_brier_score, metrics.auroc, metrics.top_label_nll):
        name = metric.__name__
        both = [Estimate(name, metric(each.confidence, each.correct), z.size) for each in (old, new)]
        once = min(seconds(lambda metric=metric: metric(new.confidence, new.correct)) for _ in range(REPEATS))
        taken = seconds(lambda both=both: difference_interval(both[0], both[1], old, new, 0.95, paired=True))
        print(f"{name:<30} {1000 * taken:7.2f} ms")
        rows.append(at_most(f"paired difference of {name}: n = 10⁶ / metric", taken / once, ECES))
    return rows


def against_metrics() -> list[Row]:
    """Every metric of a million samples with its interval, in times of the metric; the slowest is the row."""
    rng = np.random.default_rng(0)
    s = rng.random(SIZE // 10)
    y = (rng.random(s.size) < s).astype(np.uint8)
    arrays = {"pair": (s, y), "confidence": (s,), "correct": (y,)}
    worst = ("", 0.0)
    for name, entry in metrics.METRICS.items():
        if entry.reads in arrays:
            given = arrays[entry.reads]
            metrics.with_interval(entry.function, *given)  # compiles
            alone = seconds(lambda: entry.function(*given))  # noqa: B023
            both = seconds(lambda: metrics.with_interval(entry.function, *given))  # noqa: B023
            print(f"{name:<30} {1000 * alone:7.2f} ms, with its interval {1000 * both:7.2f} ms")
            worst = max(worst, (name, both / alone), key=lambda each: each[1])
    return [at_most(f"interval of {worst[0]}, the slowest: n = 10⁶ / the metric", worst[1], ECES)]


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
    rows = against_sorting() + against_local_averages() + against_ece() + against_metrics() + against_means()
    rows += against_peer()
    return conclude(rows, "bounds", options.write_docs)


if __name__ == "__main__":
    sys.exit(main())
