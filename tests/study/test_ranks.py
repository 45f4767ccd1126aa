import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from certcal import InputError
from certcal.lab.study import correlations, kendall, kendall_matrix, kendall_resampled, spearman, spearman_matrix
from tests.study import naive

FAST = {"kendall": kendall, "spearman": spearman}
SLOW = {"kendall": naive.kendall, "spearman": naive.spearman}
MATRIX = {"kendall": kendall_matrix, "spearman": spearman_matrix}


def scipy_value(method, x, y):
    function = stats.kendalltau if method == "kendall" else stats.spearmanr
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constant input
        return function(x, y).statistic


def ties(n, levels, seed):
    """Two related columns with about as many different values as ``levels`` says."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, n)
    return x.astype(float), (x + rng.integers(0, levels, n)) / 7


@pytest.mark.parametrize("method", FAST)
@given(
    st.lists(
        st.tuples(*[st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, np.inf, -np.inf, np.nan]) | st.floats(-3, 3)] * 2),
        max_size=30,
    )
)
def test_correlations_are_those_of_the_definition_with_ties_missing_and_infinite_values(method, rows):
    x, y = [row[0] for row in rows], [row[1] for row in rows]
    assert FAST[method](x, y) == pytest.approx(SLOW[method](x, y), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("method", FAST)
@given(st.integers(2, 700), st.sampled_from([2, 5, 100, 10**6]), st.integers(0, 2**32))
def test_correlations_agree_with_scipy(method, n, levels, seed):
    x, y = ties(n, levels, seed)
    assert FAST[method](x, y) == pytest.approx(scipy_value(method, x, y), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("method", FAST)
@pytest.mark.parametrize(
    ("n", "levels"),
    [
        (20_000, 10**9),  # several branches, hardly a tie
        (20_000, 300),  # leaves that hold more than 255 values
        (150_000, 2),  # and more than 65,535
        (70_000, 40_000),  # branches that do
        (300_000, 10**9),  # several limbs
    ],
)
def test_large_columns_agree_with_scipy(method, n, levels):
    x, y = ties(n, levels, 1)
    assert FAST[method](x, y) == pytest.approx(scipy_value(method, x, y), abs=1e-12)
    assert FAST[method](x, -y) == -FAST[method](x, y)


@pytest.mark.parametrize("method", FAST)
def test_matrix_holds_the_value_of_every_pair_over_the_rows_that_both_have(method):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 1)) + rng.normal(size=(60, 7)).round(1)
    values[:, 3] = 2.5
    values[rng.random((60, 7)) < 0.2] = np.nan
    values[:, 0] = np.arange(60)  # complete
    values[:, 1] = np.arange(60) % 7
    found = MATRIX[method](values)
    assert found.shape == (7, 7)
    for i in range(7):
        for j in range(7):
            slow = SLOW[method](values[:, i].tolist(), values[:, j].tolist())
            assert found[i, j] == pytest.approx(slow, abs=1e-12, nan_ok=True)
    assert np.isnan(found[3]).all()
    assert found[0, 0] == found[2, 2] == 1
    assert np.array_equal(found, found.T, equal_nan=True)


@pytest.mark.parametrize("method", FAST)
def test_a_value_in_the_matrix_is_that_of_the_pair_alone_and_for_any_number_of_threads(method, monkeypatch):
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3000, 1)) + rng.normal(size=(3000, 12))
    values[:, 5] = values[:, 5].round(1)
    values[::9, 4] = np.nan
    found = MATRIX[method](values)
    assert found[2, 5] == FAST[method](values[:, 2], values[:, 5])
    assert found[4, 5] == FAST[method](values[:, 4], values[:, 5])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert np.array_equal(MATRIX[method](values), found)
    assert np.array_equal(MATRIX[method](values[::-1]), found)


@pytest.mark.parametrize("method", FAST)
def test_only_the_order_of_values_matters(method):
    x, y = ties(500, 100, 3)
    assert FAST[method](x, y) == FAST[method](np.exp(x / 50), y**3)
    assert FAST[method](x, x) == 1
    assert FAST[method](x, -x) == -1
    assert FAST[method](np.where(x == x.max(), np.inf, x), y) == FAST[method](x, y)


@pytest.mark.parametrize("method", FAST)
@pytest.mark.parametrize("shape", [(0, 0), (5, 0), (0, 3), (1, 3)])
def test_too_little_to_correlate_gives_nan_and_no_complaint(method, shape):
    found = MATRIX[method](np.ones(shape))
    assert found.shape == (shape[1], shape[1])
    assert np.isnan(found).all()


@pytest.mark.parametrize("method", FAST)
def test_columns_without_two_values_in_common_have_no_correlation(method):
    nan = np.nan
    assert np.isnan(FAST[method]([1, nan, 2, nan], [nan, 1, nan, 2]))
    assert np.isnan(FAST[method]([1, 2, nan], [nan, 1, 2]))
    assert np.isnan(FAST[method]([nan, nan], [nan, nan]))
    assert np.isnan(FAST[method]([], []))
    assert np.isnan(FAST[method]([1, 2, 5], [3, 3, nan]))
    assert MATRIX[method]([[1.0], [2.0]]).tolist() == [[1.0]]


def test_whole_numbers_too_large_for_floats_keep_their_order():
    x = np.array([2**62, 2**62 + 1, 2**62 + 2])
    assert kendall(x, [0, 1, 2]) == spearman(x, [0, 1, 2]) == 1
    assert kendall(np.array([False, True, True]), [0.0, 1.0, 1.0]) == 1


@given(st.integers(1, 40), st.integers(1, 60), st.sampled_from([2, 5, 100]), st.integers(0, 2**32))
def test_resampled_values_are_those_of_the_rows_drawn(n, drawn, levels, seed):
    x, y = ties(n, levels, seed)
    rng = np.random.default_rng(seed)
    x[rng.random(n) < 0.1] = np.nan
    rows = rng.integers(0, n, (3, drawn))
    found = kendall_resampled(x, y, rows)
    for value, picked in zip(found, rows, strict=True):
        slow = naive.kendall(x[picked].tolist(), y[picked].tolist())
        assert value == pytest.approx(slow, abs=1e-12, nan_ok=True)


def test_resampling_with_every_row_once_changes_nothing_and_one_row_alone_has_no_value():
    x, y = ties(70_000, 10**6, 4)
    rows = np.stack([np.random.default_rng(0).permutation(70_000), np.zeros(70_000, int), np.arange(70_000)])
    found = kendall_resampled(x, y, rows)
    assert found[0] == found[2] == kendall(x, y)
    assert np.isnan(found[1])
    few = np.full(70_000, 1)
    few[0] = 0
    assert abs(kendall_resampled(x, y, [few])[0]) == 1
    assert kendall_resampled(x, y, np.empty((0, 5), int)).shape == (0,)
    assert np.isnan(kendall_resampled([np.nan] * 2, [np.nan, 1], [[0, 1]])).all()
    assert np.isnan(kendall_resampled(x, y, np.empty((2, 0), int))).tolist() == [True, True]


def test_named_matrix_says_which_columns_are_constant_and_which_have_gaps():
    values = np.column_stack([np.arange(4), [3, 1, 2, 0], np.ones(4), [1, 2, np.nan, 0]])
    found = correlations(values, ["ece", "mce", "depth", "robust"], title="A title")
    assert (found.title, found.method, found.n, found.names) == (
        "A title",
        "Kendall",
        4,
        ("ece", "mce", "depth", "robust"),
    )
    assert found.note == (
        "depth is constant, so it has no correlations; "
        "robust has missing values, so pairs use the rows that both columns have"
    )
    assert found.values[0, 1] == kendall(values[:, 0], values[:, 1])
    ranked = correlations(values[:, :2], ["ece", "mce"], method="spearman")
    assert ranked.note == ""
    assert ranked.method == "Spearman"
    assert ranked.values[0, 1] == spearman(values[:, 0], values[:, 1])
    many = correlations(np.zeros((3, 8)), list("abcdefgh"))
    assert many.note == "a, b, c, d, e and 3 others are constant, so they have no correlations"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kendall([1, 2], [1, 2, 3]), "x has 2"),
        (lambda: kendall([[1, 2]], [1, 2]), r"x has shape \(1, 2\)"),
        (lambda: spearman(["a", "b"], [1, 2]), r"x\[0\] is 'a', not a number"),
        (lambda: kendall_matrix([1, 2, 3]), r"values has shape \(3,\); pass a matrix"),
        (lambda: correlations(np.ones((2, 2)), ["a"]), "names has 1 entries and values has 2 columns"),
        (lambda: correlations(np.ones((2, 1)), ["a"], method="pearson"), "method"),
        (lambda: kendall_resampled([1, 2], [1, 2], [[0, 2]]), r"rows\[0, 1\] is 2; pass positions from 0 to 1"),
        (lambda: kendall_resampled([1, 2], [1, 2], [[0, -1]]), r"rows\[0, 1\] is -1"),
        (lambda: kendall_resampled([1, 2], [1, 2], [0, 1]), r"rows has shape \(2,\)"),
        (lambda: kendall_resampled([1, 2], [1, 2], [[0.0, 1.0]]), "type float64"),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_column_without_values_is_not_called_constant():
    found = correlations([[1, np.nan, 2], [2, np.nan, np.nan], [3, np.nan, 3]], ["a", "b", "c"])
    assert found.note == "b has no values; c has missing values, so pairs use the rows that both columns have"


@pytest.mark.parametrize("method", FAST)
def test_a_matrix_as_wide_as_the_battery_with_gaps_is_that_of_every_pair(method):
    rng = np.random.default_rng(8)
    values = (rng.normal(size=(40, 1)) + rng.normal(size=(40, 102))).round(1)
    values[rng.random(values.shape) < rng.uniform(0, 0.9, 102)] = np.nan
    values[:, 50] = np.where(np.isnan(values[:, 49]), 1.0, np.nan)  # no row in common with its neighbour
    found = MATRIX[method](values)
    for i, j in rng.integers(0, 102, (300, 2)).tolist():
        assert found[i, j] == pytest.approx(SLOW[method](values[:, i].tolist(), values[:, j].tolist()), nan_ok=True)
    assert np.isnan(found[49, 50])
