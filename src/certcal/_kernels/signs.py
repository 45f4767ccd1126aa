# pyright: basic
"""Best sign for every bin: the exact maximum of Σ_m |S_m| over all confidences inside their intervals.

A sign pattern is a sequence of runs. What a run of '-' bins [a, b) is worth depends only on a and b, because the next
'+' bin after it is b; likewise a run of '+' bins, because the last '-' before it is a - 1. So the maximum is a
longest path over run boundaries, found in O(cells + bins²) with running sums instead of tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, njit


@njit(patience=400)  # edges, of which it walks over the square
def best_runs(
    up: Any,
    down_to: Any,
    right_low: Any,
    right_high: Any,
    right_sums: Any,
    right_order: Any,
    wrong_low: Any,
    wrong_high: Any,
    wrong_sums: Any,
    wrong_order: Any,
    sense: Any,
) -> Any:
    """Largest (``sense`` = 1) or smallest (-1) sum over the samples of what their worth brings, and the signs.

    With the worths g_n(s) themselves the largest is the largest Σ_m |S_m|, and minus the smallest is a lower bound on
    the smallest Σ_m |S_m|. Any function of a worth can be added up instead: nothing here depends on it.

    ``up`` and ``down_to`` have, for every edge, what a correct sample brings that goes up to it, and an incorrect one
    that comes down to it. ``right_*`` are the cells of correct samples: their lowest and highest reachable bin, how
    many they are, what they bring at their lower ends (in a '+' bin) and at their upper ends (if none is reached), and
    the order of the cells by highest bin. ``wrong_*`` are those of incorrect samples, ordered by lowest bin: how many,
    what they bring at their upper ends (in a '-' bin), and at their lower ends.
    """
    bins = up.size - 1
    # Worth of a bin's own samples: correct ones starting in a '+' bin stay at their lower end (1 - lower), incorrect
    # ones ending in a '-' bin stay at their upper end.
    stay_right = np.zeros(bins)
    stay_wrong = np.zeros(bins)
    # Correct samples by lowest bin: how many reach the bin under way, and what those bring that do not.
    reach = np.zeros(bins)
    stuck = np.zeros(bins)
    for r in range(right_low.size):
        stay_right[right_low[r]] += right_sums[r, 1]
        reach[right_low[r]] += right_sums[r, 0]
    # Incorrect samples by highest bin: how many can come down to below the bin under way, and what those bring that
    # cannot.
    down = np.zeros(bins)
    held = np.zeros(bins)
    for r in range(wrong_low.size):
        stay_wrong[wrong_high[r]] += wrong_sums[r, 1]
        held[wrong_high[r]] += wrong_sums[r, 2]
    plus = np.full(bins + 1, -np.inf)
    plus[0] = 0.0
    minus = np.full(bins + 1, -np.inf)
    plus_from = np.zeros(bins + 1, np.int64)
    minus_from = np.zeros(bins + 1, np.int64)
    next_right = 0
    next_wrong = 0
    for t in range(bins + 1):
        # Runs of '-' that end at t: their correct samples go up to edge t if they reach bin t, else to their upper end.
        while next_right < right_order.size and right_high[right_order[next_right]] < t:
            r = right_order[next_right]
            reach[right_low[r]] -= right_sums[r, 0]
            stuck[right_low[r]] += right_sums[r, 2]
            next_right += 1
        gain = up[t]
        worth = 0.0
        best = -np.inf
        for a in range(t - 1, -1, -1):
            worth += sense * (reach[a] * gain + stuck[a] + stay_wrong[a])
            value = worth + plus[a]
            if value > best:
                best = value
                minus_from[t] = a
        minus[t] = best if t > 0 else 0.0
        if t == bins:
            break
        # Runs of '+' that start at t: their incorrect samples come down to edge t if they reach bin t - 1, else to
        # their lower end.
        while next_wrong < wrong_order.size and wrong_low[wrong_order[next_wrong]] < t:
            r = wrong_order[next_wrong]
            down[wrong_high[r]] += wrong_sums[r, 0]
            held[wrong_high[r]] -= wrong_sums[r, 2]
            next_wrong += 1
        worth = minus[t]
        for b in range(t, bins):
            worth += sense * (down[b] * down_to[t] + held[b] + stay_right[b])
            if worth > plus[b + 1]:
                plus[b + 1] = worth
                plus_from[b + 1] = t
    signs = np.zeros(bins, np.int8)
    t = bins
    sign = 1 if plus[bins] >= minus[bins] else -1
    value = max(plus[bins], minus[bins])
    while t > 0:
        start_of_run = plus_from[t] if sign > 0 else minus_from[t]
        for m in range(start_of_run, t):
            signs[m] = sign
        t = start_of_run
        sign = -sign
    return sense * value, signs


@njit(patience=FEW)
def place(
    lower: Any,
    upper: Any,
    correct: Any,
    low_bin: Any,
    high_bin: Any,
    edges: Any,
    signs: Any,
    closed_left: Any,
    out: Any,
) -> Any:
    """The confidence and bin each sample chooses given the signs: ``out`` gets the confidences, the bins are returned.

    In a bin open at the wanted end the nearest float inside is taken.
    """
    bins = edges.size - 1
    next_plus = np.full(bins + 1, bins, np.int64)
    for m in range(bins - 1, -1, -1):
        next_plus[m] = m if signs[m] > 0 else next_plus[m + 1]
    last_minus = np.full(bins + 1, -1, np.int64)
    for m in range(bins):
        before = last_minus[m - 1] if m > 0 else -1
        last_minus[m] = m if signs[m] < 0 else before
    chosen = np.empty(lower.size, np.int64)
    for i in range(lower.size):
        if correct[i]:
            p = next_plus[low_bin[i]]
            if p > high_bin[i]:
                chosen[i], out[i] = high_bin[i], upper[i]
            elif p == low_bin[i]:
                chosen[i], out[i] = p, lower[i]
            else:
                inside = edges[p] if closed_left else np.nextafter(edges[p], 2.0)
                chosen[i], out[i] = p, inside
        else:
            q = last_minus[high_bin[i]]
            if q < low_bin[i]:
                chosen[i], out[i] = low_bin[i], lower[i]
            elif q == high_bin[i]:
                chosen[i], out[i] = q, upper[i]
            else:
                inside = np.nextafter(edges[q + 1], -1.0) if closed_left else edges[q + 1]
                chosen[i], out[i] = q, inside
    return chosen
