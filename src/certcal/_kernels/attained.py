# pyright: basic
"""Among a few attained confidences of each sample, those with the largest binned calibration error that is found."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit


@njit
def ascend(options: Any, bins: Any, outcomes: Any, chosen: Any, sums: Any, sweeps: Any) -> None:
    """Move one sample at a time to the option that raises Σ_m |sum of bin m| most, until none does.

    ``options[i, k]`` is a confidence, ``bins[i, k]`` its bin and ``chosen[i]`` the option to start from, which is
    changed in place; ``sums`` holds the sums of confidence less outcome of every bin.
    """
    for _ in range(sweeps):
        moved = False
        for i in range(chosen.size):
            own = chosen[i]
            here, out = bins[i, own], options[i, own] - outcomes[i]
            best, most = own, 1e-12
            left = abs(sums[here] - out) - abs(sums[here])
            for k in range(options.shape[1]):
                if k == own:
                    continue
                there, come = bins[i, k], options[i, k] - outcomes[i]
                if there == here:
                    gain = abs(sums[here] - out + come) - abs(sums[here])
                else:
                    gain = left + abs(sums[there] + come) - abs(sums[there])
                if gain > most:
                    best, most = k, gain
            if best != own:
                sums[here] -= out
                sums[bins[i, best]] += options[i, best] - outcomes[i]
                chosen[i] = best
                moved = True
        if not moved:
            break


def sums_of(options: Any, bins: Any, outcomes: Any, chosen: Any, count: int) -> Any:
    """Sums of confidence less outcome of every bin for the chosen options."""
    rows = np.arange(chosen.size)
    return np.bincount(bins[rows, chosen], options[rows, chosen] - outcomes, minlength=count)
