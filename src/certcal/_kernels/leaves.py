# pyright: basic
"""Leaves of tree ensembles that a box can reach: bounds on sums of leaf values, tightened by splitting the box.

A feature's thresholds cut its values into cells, numbered from 0, and a box is an interval of cells [low, high] of each
feature; -1 stands for a value that is missing and stays so. At most nodes a cell goes left when it is at most ``cut``.
Other nodes (categories) list the cells that go left: ``prefix[offset + c]`` counts those among the cells below c.

For one row and one combination of classes, what the box reaches of every tree is first copied into small arrays (a
local forest), parents before children. The sum over trees of the largest reachable leaf bounds the largest sum from
above. Then boxes are split where trees disagree most about a feature, the box with the largest bound first. The bound
of the box on top is sound whenever the search stops, and it is exact when no trees disagree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certcal._kernels._compile import njit

TIE = 1e-12  # what a tree loses at least when it does not get its way, so that ties count as disagreement
SWEEPS = 4  # of the search along single features


class Forest(NamedTuple):
    """Trees as arrays over all nodes; ``feature`` is -1 at leaves, ``group`` the class that a tree adds to, or -1."""

    feature: Any
    cut: Any
    offset: Any
    missing_left: Any
    left: Any
    right: Any
    values: Any
    roots: Any
    group: Any
    prefix: Any


class Local(NamedTuple):
    """What a box reaches of a forest; ``up`` is 2 · parent + side, ``dear`` the sides that change one more feature."""

    feature: Any
    cut: Any
    offset: Any
    left: Any
    right: Any
    up: Any
    dear: Any
    value: Any
    first: Any
    stack: Any


@njit
def _copy(given: Any, into: Any) -> None:
    for k in range(into.size):  # a loop compiles sooner than a slice
        into[k] = given[k]


@njit
def _sides(cut: Any, offset: Any, prefix: Any, low: Any, high: Any) -> Any:
    """Whether cells from low to high go left, and whether any go right."""
    if offset < 0:
        return low <= cut, high > cut
    left = prefix[offset + high + 1] - prefix[offset + low]
    return left > 0, left < high - low + 1


@njit
def _reach(forest: Any, low: Any, high: Any, at: Any, plus: Any, minus: Any, local: Any) -> Any:
    """Copy what a box reaches; trees of which it reaches one leaf go into a constant.

    Returns the number of nodes and of trees, the constant, and the sum over trees of the largest absolute leaf value.
    """
    used, trees, constant, size = 0, 0, 0.0, 0.0
    for tree in range(forest.roots.size):
        group = forest.group[tree]
        if group >= 0 and group != plus and group != minus:
            continue
        start, top, largest = used, 0, 0.0
        local.stack[0, 0], local.stack[0, 1] = forest.roots[tree], -1
        while top >= 0:
            node, up = local.stack[top, 0], local.stack[top, 1]
            top -= 1
            while forest.feature[node] >= 0:
                f = forest.feature[node]
                if low[f] < 0:
                    node = forest.left[node] if forest.missing_left[node] else forest.right[node]
                    continue
                left, right = _sides(forest.cut[node], forest.offset[node], forest.prefix, low[f], high[f])
                if left and right:
                    break
                node = forest.left[node] if left else forest.right[node]
            me = used
            used += 1
            local.up[me] = up
            if up >= 0:
                if up % 2 == 0:
                    local.left[up // 2] = me
                else:
                    local.right[up // 2] = me
            f = forest.feature[node]
            local.feature[me] = f
            if f < 0:
                value, weight = 0.0, 0.0
                if plus >= 0:
                    value += forest.values[node, plus]
                    weight += abs(forest.values[node, plus])
                if minus >= 0:
                    value -= forest.values[node, minus]
                    weight += abs(forest.values[node, minus])
                local.value[me] = value
                largest = max(largest, weight)
                continue
            local.cut[me], local.offset[me] = forest.cut[node], forest.offset[node]
            clean, _ = _sides(forest.cut[node], forest.offset[node], forest.prefix, at[f], at[f])
            local.dear[me] = 2 if clean else 1
            above = up
            while above >= 0:  # a feature that has been changed on the way costs nothing more
                one = above // 2
                if local.feature[one] == f and (local.dear[one] == 0 or local.dear[one] == 1 + above % 2):
                    local.dear[me] = 0
                    break
                above = local.up[one]
            top += 1
            local.stack[top, 0], local.stack[top, 1] = forest.right[node], 2 * me + 1
            top += 1
            local.stack[top, 0], local.stack[top, 1] = forest.left[node], 2 * me
        size += largest
        if used == start + 1:
            constant += local.value[start]
            used = start
        else:
            local.first[trees] = start
            trees += 1
    return used, trees, constant, size


@njit
def _spare(low: Any, high: Any, at: Any, most: Any) -> Any:
    """How many more features may differ, of those that a box does not force to; 0 where nothing is counted."""
    if most >= low.size:
        return 0
    for f in range(low.size):
        if at[f] < low[f] or at[f] > high[f]:
            most -= 1
    return most


@njit
def _bound(local: Any, used: Any, trees: Any, prefix: Any, low: Any, high: Any, at: Any, spare: Any, best: Any) -> Any:
    """The sum over trees of the largest leaf that a box reaches with so many features changed; leaves first."""
    if spare < 0:
        return -np.inf
    for node in range(used - 1, -1, -1):
        f = local.feature[node]
        if f < 0:
            for c in range(spare + 1):
                best[node, c] = local.value[node]
            continue
        left, right = _sides(local.cut[node], local.offset[node], prefix, low[f], high[f])
        forced = at[f] < low[f] or at[f] > high[f]
        dear = 0 if forced else local.dear[node]
        for c in range(spare + 1):
            value = -np.inf
            if left and c >= (dear & 1):
                value = best[local.left[node], c - (dear & 1)]
            if right and c >= (dear >> 1):
                value = max(value, best[local.right[node], c - (dear >> 1)])
            best[node, c] = value
    total = 0.0
    for tree in range(trees):
        total += best[local.first[tree], spare]
    return total


@njit
def _value(local: Any, trees: Any, prefix: Any, point: Any) -> Any:
    """The sum of the leaves of one point."""
    total = 0.0
    for tree in range(trees):
        node = local.first[tree]
        while local.feature[node] >= 0:
            cell = point[local.feature[node]]
            left, _ = _sides(local.cut[node], local.offset[node], prefix, cell, cell)
            node = local.left[node] if left else local.right[node]
        total += local.value[node]
    return total


@njit
def _demands(
    local: Any,
    trees: Any,
    prefix: Any,
    low: Any,
    high: Any,
    at: Any,
    spare: Any,
    best: Any,
    base: Any,
    beyond: Any,
    below: Any,
    sets: Any,
) -> None:
    """What each cell of each feature costs the trees that want another one: above it, below it, or in a set."""
    for f in range(low.size):
        for c in range(base[f] + low[f], base[f] + high[f] + 2):
            beyond[c], below[c], sets[c] = 0.0, 0.0, 0.0
    for tree in range(trees):
        node, c = local.first[tree], spare
        while local.feature[node] >= 0:
            f = local.feature[node]
            cut, offset = local.cut[node], local.offset[node]
            left, right = _sides(cut, offset, prefix, low[f], high[f])
            forced = at[f] < low[f] or at[f] > high[f]
            dear = 0 if forced else local.dear[node]
            one = best[local.left[node], c - (dear & 1)] if left and c >= (dear & 1) else -np.inf
            two = best[local.right[node], c - (dear >> 1)] if right and c >= (dear >> 1) else -np.inf
            goes_left = one > two or (one == two and local.dear[node] != 1)
            if left and right:
                loss = TIE + (abs(one - two) if min(one, two) > -np.inf else 0.0)
                if offset < 0 and goes_left:
                    beyond[base[f] + cut + 1] += loss
                elif offset < 0:
                    below[base[f] + cut] += loss
                else:
                    for cell in range(low[f], high[f] + 1):
                        inside = prefix[offset + cell + 1] > prefix[offset + cell]
                        if inside != goes_left:
                            sets[base[f] + cell] += loss
            c -= (dear & 1) if goes_left else (dear >> 1)
            node = local.left[node] if goes_left else local.right[node]
    for f in range(low.size):
        for c in range(base[f] + low[f] + 1, base[f] + high[f] + 1):
            beyond[c] += beyond[c - 1]
        for c in range(base[f] + high[f] - 1, base[f] + low[f] - 1, -1):
            below[c] += below[c + 1]


@njit
def _choose(
    low: Any, high: Any, at: Any, most: Any, base: Any, beyond: Any, below: Any, sets: Any, point: Any, gain: Any
) -> Any:
    """The point that costs least feature by feature, and the feature and cell at which to split: (feature, last left).

    Where features disagree about nothing but how many may differ, the split is beside the cell of the row itself.
    """
    feature, place, worst = -1, -1, 0.0
    changed = 0
    for f in range(low.size):
        begin = at[f] if low[f] <= at[f] <= high[f] else low[f]
        cell = begin
        for c in range(low[f], high[f] + 1):
            k, b = base[f] + c, base[f] + cell
            if beyond[k] + below[k] + sets[k] < beyond[b] + below[b] + sets[b]:
                cell = c
        point[f] = cell
        b, k = base[f] + begin, base[f] + cell
        gain[f] = beyond[b] + below[b] + sets[b] - (beyond[k] + below[k] + sets[k])
        changed += cell != at[f]
        if low[f] == high[f]:
            continue
        clash = beyond[k] + below[k] + sets[k]
        for c in range(low[f], high[f]):
            score = min(beyond[base[f] + c + 1], below[base[f] + c])
            if score > worst:
                feature, place, worst = f, c, score
        if clash > worst and sets[k] > 0.0:
            feature, place, worst = f, min(cell, high[f] - 1), clash
    while changed > most:  # take back what gains least
        weakest = -1
        for f in range(low.size):
            if point[f] != at[f] and low[f] <= at[f] <= high[f] and (weakest < 0 or gain[f] < gain[weakest]):
                weakest = f
        if weakest < 0:
            break
        point[weakest] = at[weakest]
        changed -= 1
    if feature < 0:
        for f in range(low.size):
            if low[f] < high[f] and low[f] <= at[f] <= high[f] and (feature < 0 or gain[f] > gain[feature]):
                feature = f
        if feature >= 0:
            place = at[feature] if at[feature] < high[feature] else at[feature] - 1
    return feature, place


@njit
def _climb(
    local: Any, trees: Any, prefix: Any, low: Any, high: Any, at: Any, most: Any, point: Any, line: Any, has_sets: Any
) -> Any:
    """Move one feature at a time to the cell with the largest sum, as long as that helps; exact along each feature."""
    total = _value(local, trees, prefix, point)
    for _ in range(SWEEPS):
        before = total
        for f in range(low.size):
            differ = 0
            for g in range(low.size):
                differ += g != f and point[g] != at[g]
            if differ >= most or low[f] == high[f]:
                continue
            own, cells = point[f], high[f] - low[f] + 1
            if has_sets[f]:
                for c in range(cells):
                    point[f] = low[f] + c
                    line[c] = _value(local, trees, prefix, point)
                point[f] = own
            else:
                for c in range(cells + 1):
                    line[c] = 0.0
                for tree in range(trees):
                    top = 0
                    local.stack[0, 0], local.stack[0, 1], local.stack[0, 2] = local.first[tree], low[f], high[f]
                    while top >= 0:
                        node, a, b = local.stack[top, 0], local.stack[top, 1], local.stack[top, 2]
                        top -= 1
                        while local.feature[node] >= 0 and local.feature[node] != f:
                            g = local.feature[node]
                            left, _ = _sides(local.cut[node], local.offset[node], prefix, point[g], point[g])
                            node = local.left[node] if left else local.right[node]
                        if local.feature[node] < 0:
                            line[a - low[f]] += local.value[node]
                            line[b - low[f] + 1] -= local.value[node]
                            continue
                        cut = local.cut[node]
                        if b > cut:
                            top += 1
                            local.stack[top, 0], local.stack[top, 1] = local.right[node], max(a, cut + 1)
                            local.stack[top, 2] = b
                        if a <= cut:
                            top += 1
                            local.stack[top, 0], local.stack[top, 1] = local.left[node], a
                            local.stack[top, 2] = min(b, cut)
                for c in range(1, cells):
                    line[c] += line[c - 1]
            best = own - low[f]
            for c in range(cells):
                if line[c] > line[best] + TIE:
                    best = c
            point[f] = low[f] + best
        total = _value(local, trees, prefix, point)
        if total <= before + TIE:
            break
    return total


@njit
def _push(heap: Any, bounds: Any, length: Any, entry: Any) -> Any:
    """Put an entry into a heap whose top has the largest bound."""
    place = length
    while place > 0 and bounds[heap[(place - 1) // 2]] < bounds[entry]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = entry
    return length + 1


@njit
def _pop(heap: Any, bounds: Any, length: Any) -> Any:
    """Take the top away, and close the gap."""
    last, place = heap[length - 1], 0
    length -= 1
    while 2 * place + 1 < length:
        child = 2 * place + 1
        if child + 1 < length and bounds[heap[child + 1]] > bounds[heap[child]]:
            child += 1
        if bounds[heap[child]] <= bounds[last]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = last
    return length


@njit
def _largest(
    local: Any,
    used: Any,
    trees: Any,
    prefix: Any,
    low: Any,
    high: Any,
    at: Any,
    most: Any,
    budget: Any,
    search: Any,
    tolerance: Any,
    best: Any,
    base: Any,
    costs: Any,
    has_sets: Any,
    boxes: Any,
    bounds: Any,
    splits: Any,
    heap: Any,
    found: Any,
) -> Any:
    """A bound on the largest sum in a box, and in ``found`` a point with a large one."""
    count = low.size
    _copy(at, found)
    top = _bound(local, used, trees, prefix, low, high, at, _spare(low, high, at, most), best)
    if not search and budget == 0:
        return top
    gain, point = np.empty(count), np.empty(count, np.int32)
    reached = _climb(local, trees, prefix, low, high, at, most, found, costs[3], has_sets)
    length, made = 0, 0
    for f in range(count):
        boxes[0, f], boxes[0, count + f] = low[f], high[f]
    for turn in range(budget + 1):
        if turn == 0:
            first, last = 0, 0
        else:
            # Split the box on top: one half takes its place, the other a new one.
            if length == 0 or bounds[heap[0]] <= reached + tolerance:
                break
            entry = heap[0]
            length = _pop(heap, bounds, length)
            f, place = splits[entry, 0], splits[entry, 1]
            made += 1
            _copy(boxes[entry], boxes[made])
            boxes[entry, count + f], boxes[made, f] = place, place + 1
            first, last = entry, made
        for half in range(first, last + 1, max(1, last - first)):
            a, b = boxes[half, :count], boxes[half, count:]
            spare = _spare(a, b, at, most)
            bounds[half] = _bound(local, used, trees, prefix, a, b, at, spare, best)
            if turn > 0:
                bounds[half] = min(bounds[half], top)
            if bounds[half] <= reached + tolerance and turn > 0:
                continue
            _demands(local, trees, prefix, a, b, at, spare, best, base, costs[0], costs[1], costs[2])
            f, place = _choose(a, b, at, most, base, costs[0], costs[1], costs[2], point, gain)
            value = _value(local, trees, prefix, point)
            if value > reached:
                reached = value
                _copy(point, found)
            splits[half, 0], splits[half, 1] = f, place
            if f >= 0:
                length = _push(heap, bounds, length, half)
            else:
                reached = max(reached, bounds[half])  # nothing is left to disagree about: the bound is reached
        top = min(top, max(reached + tolerance, bounds[heap[0]] if length > 0 else -np.inf))
    return top


@njit
def bound_rows(
    low: Any,
    high: Any,
    at: Any,
    forest: Any,
    depth: Any,
    plus: Any,
    minus: Any,
    most: Any,
    budget: Any,
    search: Any,
    least: Any,
    largest: Any,
    size: Any,
    lowest: Any,
    highest: Any,
) -> None:
    """Bounds of each row's sum of leaves of class ``plus`` less those of class ``minus`` (-1 for none) over its box.

    ``most`` features may differ from the row. ``lowest`` and ``highest`` become cells of points with small and large
    sums, ``size`` the sum over trees of the largest leaf in absolute value, for bounds on rounding.
    """
    n, features = low.shape
    nodes = forest.feature.size
    local = Local(
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.float64),
        np.empty(forest.roots.size, np.int32),
        np.empty((depth + 2, 3), np.int32),
    )
    best = np.empty((nodes, 1))
    slot = np.empty(features, np.int32)
    active = np.empty(features, np.int32)
    bounds, heap = np.empty(budget + 2), np.empty(budget + 2, np.int32)
    splits = np.empty((budget + 2, 2), np.int32)
    for i in range(n):
        used, trees, constant, size[i] = _reach(forest, low[i], high[i], at[i], plus[i], minus[i], local)
        _copy(at[i], lowest[i])
        _copy(at[i], highest[i])
        if trees == 0:
            least[i] = largest[i] = constant
            continue
        count = 0
        for f in range(features):
            slot[f] = -1
        for node in range(used):
            f = local.feature[node]
            if f >= 0:
                if slot[f] < 0:
                    slot[f] = count
                    active[count] = f
                    count += 1
                local.feature[node] = slot[f]
        a, b, own = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
        for k in range(count):
            a[k], b[k], own[k] = low[i, active[k]], high[i, active[k]], at[i, active[k]]
        allowed = min(most, count)
        width = allowed + 1
        if allowed == count:  # nothing needs to be counted
            for node in range(used):
                local.dear[node] = 0
            width = 1
        if best.shape[1] < width:
            best = np.empty((nodes, width))
        has_sets = np.zeros(count, np.bool_)
        for node in range(used):
            if local.feature[node] >= 0 and local.offset[node] >= 0:
                has_sets[local.feature[node]] = True
        base = np.empty(count, np.int32)
        cells, widest = 0, 0
        for f in range(count):
            base[f] = cells - a[f]
            cells += b[f] - a[f] + 2
            widest = max(widest, b[f] - a[f] + 2)
        costs = np.empty((4, max(cells, widest) + 1))
        boxes = np.empty((budget + 2, 2 * count), np.int32)
        found = np.empty(count, np.int32)
        tolerance = 1e-9 * (1.0 + size[i])
        for side in range(2):
            if side == 1:
                for node in range(used):
                    local.value[node] = -local.value[node]
            value = _largest(
                local,
                used,
                trees,
                forest.prefix,
                a,
                b,
                own,
                allowed,
                budget,
                search,
                tolerance,
                best,
                base,
                costs,
                has_sets,
                boxes,
                bounds,
                splits,
                heap,
                found,
            )
            if side == 0:
                largest[i] = constant + value
            else:
                least[i] = constant - value
            for k in range(count):
                if side == 0:
                    highest[i, active[k]] = found[k]
                else:
                    lowest[i, active[k]] = found[k]
