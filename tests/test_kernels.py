"""Kernels give the same bits interpreted, in NumPy and compiled; and a small table needs no compiler at all."""

import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import _kernels
from certcal._base.checks import kernel_float, read_only
from certcal._kernels import bins, capital, select
from certcal._kernels._compile import Kernel
from certcal.binning import build_lookup
from certcal.bounds._bets import signed_sums
from certcal.bounds._lipschitz import _Patterns
from certcal.bounds._shared import Sample

KERNELS = {
    f"{module.name}.{name}": kernel
    for module in pkgutil.iter_modules(_kernels.__path__)
    for name, kernel in vars(importlib.import_module(f"{_kernels.__name__}.{module.name}")).items()
    if isinstance(kernel, Kernel) and kernel.__module__.endswith(f".{module.name}") and kernel.patience
}


class Draw:
    """Arrays as the callers of kernels make them: ties, crowds at both ends, exact edges, float32 and float64."""

    def __init__(self, seed: int, n: int, dtype: str, kind: str) -> None:
        self.rng, self.n, self.dtype = np.random.default_rng(seed), n, np.dtype(dtype)
        self.kind = kind
        self.z = read_only(self.scores(n))
        self.c = read_only((self.rng.random(n) < self.z).astype(np.uint8))
        self.w = read_only(self.rng.integers(0, 3, n) * self.rng.random(n))
        self.count = int(self.rng.choice([1, 2, 15, 17, 300]))  # more than a byte holds, too
        edges = np.linspace(0, 1, self.count + 1) if kind != "crowded" else np.append(0.0, 1 - 2.0 ** -np.arange(30))
        edges[-1] = 1.0
        self.edges = edges
        self.lookup = build_lookup(edges, self.rng.choice(["left", "right"]), self.dtype)
        self.bins = edges.size - 1
        self.grid = select.make_grid(int(self.rng.integers(8, 41)), int(self.rng.integers(2, 8)))

    def scores(self, n: int) -> np.ndarray:
        u = self.rng.random(n)
        made = {"even": u, "ties": u.round(2), "crowded": 1 - u**20, "coins": (u > 0.5) * 1.0, "low": u**20}[self.kind]
        return kernel_float(made.astype(self.dtype))

    def matrix(self) -> tuple[np.ndarray, np.ndarray]:
        classes = int(self.rng.integers(2, 6))
        raw = np.stack([self.scores(self.n).astype(np.float64) for _ in range(classes)], axis=1) + 1e-9
        p = np.ascontiguousarray((raw / raw.sum(axis=1, keepdims=True)).astype(self.dtype))
        return read_only(p), read_only(self.rng.integers(0, classes, self.n))

    def sorted(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.z, kind="stable")
        return self.z[order].astype(np.float64), self.c[order]

    def keys(self) -> np.ndarray:
        keys = self.z.copy().view(np.int64 if self.dtype == np.float64 else np.int32) << 1
        return np.sort(keys | self.c)

    def intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        other = self.scores(self.n)
        return np.minimum(self.z, other), np.maximum(self.z, other), self.c

    def plan(self) -> tuple:
        """Two sets of bins: the inner edges, which of them and which place each bin starts with, and the last bins."""
        counts = (self.count, 3)
        inner = [(np.arange(1, count) / count).astype(self.dtype).astype(np.float64) for count in counts]
        edges = np.unique(np.concatenate(inner))
        which = np.concatenate([np.append(-1, np.searchsorted(edges, each)) for each in inner])
        picks = np.concatenate([np.append(-1, np.arange(1, count) * self.n // count) for count in counts])
        last = np.isin(np.arange(which.size), np.cumsum(counts) - 1)
        return edges, which, np.minimum(picks, self.n - 1), bool(self.rng.random() < 0.5), last


def _rising(d: Draw) -> tuple:
    values, c = d.sorted()
    if d.rng.random() < 0.5:
        return values, values[c == 1], np.empty(0), np.empty(0), 1e-12
    w = 0.1 + d.rng.random(d.n)
    return values, values[c == 1], np.cumsum(w[c == 0]), np.cumsum(w[c == 1]), 1e-12


def _moment(d: Draw, *more: object) -> tuple:
    scale = 64 / 1.0
    return d.z, d.c, *more, 0.0, scale


def _smooth(d: Draw) -> tuple:
    steps = int(d.rng.integers(1, 2000))
    waves = np.sin(np.arange(steps + 1) * d.rng.random() + np.arange(4)[:, None])
    return waves * 10.0 ** np.arange(4)[:, None] * d.rng.choice([1.0, 1e-14]), 1 / steps


def _runs(d: Draw) -> tuple:
    def cells(size: int) -> tuple:
        low = d.rng.integers(0, d.bins, size)
        high = np.minimum(low + d.rng.integers(0, 4, size), d.bins - 1)
        number = d.rng.integers(1, 9, size).astype(float)
        sums = np.column_stack((number, number * d.rng.random(size) / 2, number * (1 + d.rng.random(size)) / 2))
        return low, high, sums

    right, wrong = cells(min(d.n, 40)), cells(min(d.n, 30))
    orders = np.argsort(right[1], kind="stable"), np.argsort(wrong[0], kind="stable")
    return 1 - d.edges, d.edges, *right, orders[0], *wrong, orders[1], float(d.rng.choice([1, -1]))


def _placed(d: Draw) -> tuple:
    low, high, c = d.intervals()
    where = [np.searchsorted(d.edges[1:-1], each, "right") for each in (low, high)]
    signs = d.rng.choice([-1, 1], d.bins).astype(np.int8)
    return low, high, c, *where, d.edges, signs, bool(d.rng.random() < 0.5), np.empty(d.n, d.dtype)


def _starts(d: Draw) -> np.ndarray:
    inner = np.unique(d.rng.integers(0, d.n + 1, 6))
    return np.concatenate(([0], inner, [d.n])).astype(np.int64)


def _capital(d: Draw) -> tuple:
    size = min(d.n, 60)
    points = np.column_stack((d.rng.integers(1, 9, size), d.rng.random((size, 3)) / 2))
    points[::3, 2] = 0.0
    return points, np.sort(d.rng.integers(0, 5, size)), d.rng.random(6) * 0.5, float(d.rng.random() * 9)


def _cut(d: Draw) -> np.ndarray:
    out = np.empty((d.n, capital.CELL))
    return out[: capital.cut_cells.interpreted(*d.sorted(), 3, out)]


def _patterns(d: Draw) -> tuple:
    found = _Patterns.of(Sample(*d.sorted()), float(d.rng.choice([0.5, 3.0, 30.0])), False)
    return signed_sums(found.cells, np.array([0.3]))[0], found.table, found.last, found.first, -0.3, found.rises


CASES = {
    "checking.all_in_unit_interval": lambda d: (_spoiled(d, d.z),),
    "checking.all_zero_or_one": lambda d: (
        _spoiled(d, d.c.astype(d.rng.choice(["i8", "f4", "f8"]))),
        np.empty(d.n, "u1"),
    ),
    "checking.bytes_are_zero_or_one": lambda d: (_spoiled(d, d.c),),
    "checking.all_finite_and_not_negative": lambda d: (_spoiled(d, d.w),),
    "checking.all_finite": lambda d: (_spoiled(d, d.z),),
    "checking.check_rows": lambda d: (_spoiled(d, d.matrix()[0]), 1e-6, float(d.rng.choice([1e-3, 1e-7, 1e-16]))),
    "bins.locate": lambda d: (d.z, *d.lookup, np.zeros(d.n, np.uint32)),
    "bins.carry_words": lambda d: (d.rng.integers(0, 1 << 50, (d.bins, 2, 3)),),
    "bins.add_counts_and_sums": lambda d: (d.z, d.c, *d.lookup, np.zeros((d.bins, 2, 3), np.int64)),
    "bins.normalise": lambda d: (d.rng.integers(0, 1 << 60, (d.bins, 4, bins.DIGITS)),),
    "bins.add_weighted": lambda d: (
        *(d.z, d.c, d.w, *d.lookup, np.zeros(d.bins, np.int64)),
        np.zeros((d.bins, 4, bins.DIGITS), np.int64),
    ),
    "bins.add_exact": lambda d: (d.w * 10.0 ** d.rng.integers(-320, 300, d.n), np.zeros(bins.DIGITS, np.int64)),
    "select.count": lambda d: (d.z, np.zeros(d.grid.buckets, np.int64), d.grid),
    "select.weigh": lambda d: (d.z, d.w, np.zeros((d.grid.buckets, 2)), d.grid),
    "select.rises_and_falls": lambda d: (
        *(d.z, d.c, d.w if d.rng.random() < 0.5 else read_only(np.empty(0))),
        *(np.zeros((d.grid.buckets, 2, 2)), d.grid),
    ),
    "select.positions": lambda d: (
        *(d.z, d.rng.random(d.grid.buckets) < 0.3, d.grid),
        np.zeros(int(d.rng.integers(1, 100)), np.int64),
    ),
    "sorted_bins.take_flags": lambda d: (d.keys()[None].copy(), np.empty((1, d.n), np.uint8)),
    "sorted_bins.score_sums": lambda d: (
        *(np.sort(d.z), d.c, *d.plan()),
        *(np.empty((2, d.count + 3, 2), np.int64), np.empty((2, d.count + 3))),
    ),
    "sorted_bins.column_gaps": lambda d: (
        *(np.sort(d.z)[None].copy(), d.c[None].copy(), *d.plan()),
        *(np.empty((1, d.count + 3)), np.empty((1, d.count + 3))),
    ),
    "moments.add_exactly": lambda d: (*_moment(d), np.zeros((2, 64, 2, 8), np.int64)),
    "moments.add_weighted": lambda d: (*_moment(d, d.w), np.zeros((64, 2, 8))),
    "moments.absolute_integral": _smooth,
    "sorted_bins.most_rising_bins": _rising,
    "moments.squared_norm": lambda d: (d.keys(), *_shared(d), float(0.1 + d.rng.random())),
    "moments.weighted_squared_norm": lambda d: (np.argsort(d.z, kind="stable"), d.z, d.c, d.w, 0.4),
    "buckets.run_sums": lambda d: (*d.sorted(), starts := _starts(d), np.empty((starts.size - 1, 4))),
    "runs.cells_between": lambda d: (*d.sorted(), starts := np.unique(_starts(d)), np.empty((starts.size - 1, 6))),
    "venn_abers.with_one_more": lambda d: (1 + d.w, (1 + d.w) * d.c, float(d.count % 2), np.empty(d.n)),
    "runs.fine_starts": lambda d: (s := d.sorted()[0], s, 2.0, d.rng.random(), np.empty(d.n + 1, np.int64)),
    "runs.reaches": lambda d: (np.arange((p := _patterns(d))[0].shape[1]) / 9, p[1], 0.5, *np.copy(p[2:4])),
    "runs.least_of_runs": _patterns,
    "buckets.equal_mass_starts": lambda d: (d.sorted()[0], d.count, np.empty(2 * d.count + 2, np.int64)),
    "capital.largest_mean": _capital,
    "capital.signs_so_far": lambda d: (
        d.rng.permutation(d.n),
        d.rng.integers(0, d.bins, d.n),
        d.c - d.z.astype(np.float64),
        d.bins,
        np.empty(d.n, np.bool_),
    ),
    "capital.cut_cells": lambda d: (*d.sorted(), int(d.rng.integers(1, 9)), np.zeros((d.n, capital.CELL))),
    "capital.largest_mean_of_cuts": lambda d: (_cut(d), d.rng.random(6) * 0.5, 3.0, bool(d.rng.random() < 0.5)),
    "classwise.add_gaps": lambda d: (*(m := d.matrix()), *d.lookup, np.zeros((m[0].shape[1], d.bins, 2), np.int64)),
    "classwise.squared_distances": lambda d: (*d.matrix(), np.empty(d.n)),
    "cells.all_in_order": lambda d: d.intervals()[:2][:: int(d.rng.choice([1, -1]))],
    "cells.add_intervals": lambda d: (*d.intervals(), *d.lookup, *_copies(d), np.zeros((2 * d.bins**2, 5), np.int64)),
    "cells.add_crowded_intervals": lambda d: (*d.intervals(), *d.lookup, np.zeros((2 * d.bins**2, 5), np.int64)),
    "cells.group_intervals": lambda d: (*_placed(d)[:5], d.bins),
    "signs.best_runs": _runs,
    "signs.place": _placed,
}


def _spoiled(d: Draw, values: np.ndarray) -> np.ndarray:
    """The same with a value that is to be found, now and then."""
    out = values.copy()
    if d.rng.random() < 0.6:
        wrong = [2, 255] if out.dtype.kind in "iu" else [-0.5, 1.5, np.nan, np.inf, -np.inf]
        out[tuple(d.rng.integers(0, size) for size in out.shape)] = wrong[int(d.rng.integers(len(wrong)))]
    return read_only(out)


def _shared(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    """The same few bytes as an integer and as a float."""
    cell = np.zeros(1, np.int64 if d.dtype == np.float64 else np.int32)
    return cell, cell.view(d.dtype)


def _copies(d: Draw) -> tuple:
    return tuple(np.empty(d.n, t) for t in (d.dtype, d.dtype, "u1")) if d.rng.random() < 0.5 else (None, None, None)


def _copied(arguments: tuple) -> tuple:
    """Arrays of their own, read-only where they were; those that share memory still do."""
    memo: dict[int, np.ndarray] = {}

    def copy(each: object) -> object:
        if not isinstance(each, np.ndarray):
            return each
        if isinstance(each.base, np.ndarray) and each.flags.writeable and each.size == 1:
            return memo[id(each.base)].view(each.dtype)
        out = memo[id(each)] = each.copy()
        return out if each.flags.writeable else read_only(out)

    return tuple(copy(each) for each in arguments)


def _bytes(found: object) -> list[bytes]:
    """Numbers and arrays to the last bit, whatever their container."""
    parts = found if isinstance(found, tuple) else (found,)
    return [each.tobytes() if isinstance(each, np.ndarray) else np.float64(each or 0).tobytes() for each in parts]


def test_every_kernel_that_may_be_interpreted_is_compared() -> None:
    assert set(CASES) == set(KERNELS)


@pytest.mark.parametrize("name", sorted(CASES))
@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 600),
    dtype=st.sampled_from(["float32", "float64"]),
    kind=st.sampled_from(["even", "ties", "crowded", "coins", "low"]),
)
def test_both_ways_give_the_same_bits(name: str, seed: int, n: int, dtype: str, kind: str) -> None:
    if name == "cells.add_intervals" and kind == "crowded":
        kind = "low"  # crowded edges have a kernel of their own
    kernel = KERNELS[name]
    one = CASES[name](Draw(seed, n, dtype, kind))
    other = _copied(one)
    with np.errstate(over="ignore", invalid="ignore"):
        plain = kernel.interpreted(*one)
    compiled = kernel.compiled(*other)
    assert _bytes(plain) == _bytes(compiled)
    assert [_bytes(each) for each in one] == [_bytes(each) for each in other]


def test_what_is_large_or_comes_often_is_compiled() -> None:
    def total(values: np.ndarray) -> float:
        walked.append(values.size)
        return 0.0

    walked: list[int] = []
    kernel = Kernel(total, {}, patience=4, often=16, in_numpy=None)
    kernel._dispatcher = lambda values: "compiled"
    found = [kernel(np.zeros(4)) for _ in range(20)]
    assert (found.count(0.0), found.count("compiled"), walked) == (16, 4, [4] * 16)
    kernel = Kernel(total, {}, patience=4, often=16, in_numpy=None)
    kernel._dispatcher = lambda values: "compiled"
    assert [kernel(np.zeros(n)) for n in (4, 5, 4)] == [0.0, "compiled", "compiled"]


FIRST = """
import sys
from certcal._kernels import when_compiling
from certcal.cli import cli
from certcal.cli.errors import run

compiled = []
when_compiling(compiled.append)
code = run(cli, sys.argv[1:])
print("compiled:", len(compiled), "numba" in sys.modules, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("command", [["measure"], ["report", "--force", "-o", "page.html"], ["bound"]])
def test_a_small_table_is_answered_without_a_compiler(command: list[str], tmp_path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    score = rng.random(285) ** 0.3
    outcome = rng.random(285) < score**1.5
    table = tmp_path / "table.csv"
    np.savetxt(table, np.column_stack((score, outcome)), "%.6f,%d", header="score,outcome", comments="")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    ran = subprocess.run(
        [sys.executable, "-c", FIRST, command[0], "table.csv", *command[1:]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert ran.stderr.splitlines()[-1] == "compiled: 0 False"
    assert not (tmp_path / "kernels").exists()
