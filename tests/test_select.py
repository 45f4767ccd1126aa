"""Order statistics from bucket counts: the same as from a full sort, for any cut into blocks."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal._base import select
from certcal._base import threads as threading
from certcal._kernels import select as kernels
from tests import naive

GRIDS = [kernels.make_grid(40, 4), kernels.make_grid(20, 12), kernels.make_grid(40, 7), kernels.make_grid(40, 12)]
each_grid = pytest.mark.parametrize("grid", GRIDS, ids=str)


def cut(values, pieces, random):
    """The same samples in blocks, some of a single sample."""
    places = sorted(random.sample(range(1, values.size), min(pieces, values.size - 1)))
    return np.split(values, places)


@each_grid
def test_buckets_are_numbered_from_zero_and_never_decrease_with_the_value(grid):
    fine = 2.0 ** -np.arange(1, 1075)
    values = np.unique(np.concatenate(([0.0, 1.0], fine, 1 - fine, np.linspace(0, 1, 20_001))))
    found = np.array([kernels.bucket(value, grid) for value in values])
    assert found[0] == 0
    assert found[-1] == grid.buckets - 1
    assert (np.diff(found) >= 0).all()


@each_grid
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_sample_is_counted_in_one_bucket(grid, dtype):
    rng = np.random.default_rng(0)
    values = np.concatenate((rng.random(1000), rng.beta(0.01, 0.01, 1000), [0, 1, 0.5, 5e-324])).astype(dtype)
    counts = np.zeros(grid.buckets, np.int64)
    kernels.count(values, counts, grid)
    assert counts.sum() == values.size
    sums = np.zeros((grid.buckets, 2))
    kernels.weigh(values, np.full(values.size, 0.5), sums, grid)
    np.testing.assert_array_equal(sums[:, 0], counts / 2)


@given(naive.weighted(50), st.integers(1, 30), st.sampled_from(["left", "right"]), st.randoms(use_true_random=False))
def test_quantiles_do_not_depend_on_how_the_samples_were_cut_into_blocks(data, bins, closed, random):
    z, _, w = data
    values = cut(z, random.randrange(6), random)
    ends = np.cumsum([part.size for part in values])[:-1]
    weights = [None] * len(values) if w is None else np.split(w, ends)
    blocks = list(zip(values, weights, strict=True))
    found = select.quantiles(lambda: iter(blocks), bins, closed)
    assert found.tolist() == naive.equal_mass_edges(z, bins, closed, w)[1:-1]


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("weigh", [False, True])
def test_quantiles_of_many_samples_do_not_depend_on_the_number_of_threads(monkeypatch, dtype, weigh):
    rng = np.random.default_rng(3)
    z = np.concatenate((rng.beta(20, 0.5, 450_000), np.full(50_001, 0.75))).astype(dtype)
    w = rng.integers(1, 5, z.size).astype(np.float64) if weigh else None
    repeated = np.sort(np.repeat(z, 1 if w is None else w.astype(np.int64))).astype(np.float64)
    expected = [repeated[m * repeated.size // 40] for m in range(1, 40)]
    for threads in (1, 2, 5):
        monkeypatch.setattr(threading, "thread_count", lambda threads=threads: threads)
        assert select.quantiles(lambda: [(z, w)], 40, "left").tolist() == expected


def test_one_bin_has_no_inner_edges():
    assert select.quantiles(lambda: [(np.array([0.5]), None)], 1, "left").size == 0


@pytest.mark.parametrize("n", [10, 3000, 500_000])
def test_wanted_positions_are_all_samples_of_the_wanted_buckets_in_order(n):
    rng = np.random.default_rng(4)
    z = rng.random(n)
    grid = GRIDS[0]
    where = np.zeros(n, np.int64)
    for index in range(n) if n <= 3000 else rng.integers(0, n, 1000):
        where[index] = kernels.bucket(z[index], grid)
    wanted = np.zeros(grid.buckets, np.bool_)
    wanted[grid.buckets // 2 :] = True  # all values from one half up
    np.testing.assert_array_equal(select.wanted_positions(z, wanted, grid), np.flatnonzero(z >= 0.5))
    wanted[:] = False
    assert select.wanted_positions(z, wanted, grid).size == 0
    if n <= 3000:
        wanted[where[3]] = True
        found = select.wanted_positions(z, wanted, grid)
        np.testing.assert_array_equal(found, np.flatnonzero(where == where[3]))


def test_one_state_gives_the_edges_of_several_numbers_of_bins_and_keeps_values_with_their_weights():
    z, w = np.array([0.1, 0.9, 0.2, 0.8]), np.array([1.0, 2.0, 3.0, 4.0])
    state = select.Quantiles((1, 2, 5), "left")
    for part in (slice(0, 3), slice(3, 4)):
        state.count(z[part], w[part])
    state.settle()
    for part in (slice(0, 3), slice(3, 4)):
        state.look(z[part], w[part])
    assert state.edges(1).size == 0
    # Weights up to and including 0.1, 0.2, 0.8, 0.9 are 1, 4, 8, 10: the first beyond 5, and beyond 2, 4, 6, 8.
    assert state.edges(2).tolist() == [0.8]
    assert state.edges(5).tolist() == [0.2, 0.8, 0.8, 0.9]


@pytest.mark.parametrize(
    ("asked", "expected"), [("1", 1), ("0", 1), ("", None), ("two", None), ("1000000", None), ("1,2", None)]
)
def test_the_number_of_threads_follows_the_environment_but_never_exceeds_the_cores(monkeypatch, asked, expected):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = threading.thread_count()
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert threading.thread_count() == (cores if expected is None else expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 200_000, 200_001, 1_000_003])
def test_blocks_cover_everything_once_and_come_back_in_order(monkeypatch, threads, n):
    monkeypatch.setattr(threading, "thread_count", lambda: threads)
    blocks = threading.map_blocks(lambda start, stop: (start, stop), n)
    assert blocks[0][0] == 0
    assert blocks[-1][1] == n
    assert all(before[1] == after[0] for before, after in pairwise(blocks))
    assert len(blocks) <= max(1, min(threads, math.ceil(n / 200_000)))


def test_an_error_in_a_block_is_raised(monkeypatch):
    monkeypatch.setattr(threading, "thread_count", lambda: 2)

    def fail(start, stop):
        raise ZeroDivisionError(f"{start} to {stop}")

    with pytest.raises(ZeroDivisionError, match="0 to 250000"):
        threading.map_blocks(fail, 500_000)
