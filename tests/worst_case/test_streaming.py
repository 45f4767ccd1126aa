"""Worst cases of samples that come in pieces: the same bits as of all samples at once, however they were cut."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal.worst_case import SignProgram, WorstCase, calibration_error, population_bound
from certcal.worst_case import _program as module
from tests.worst_case import naive


def draw(n: int, seed: int = 0, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    ends = np.sort(random.random((2, n)), axis=0).astype(dtype)
    return ends[0], ends[1], random.integers(0, 2, n)


def in_pieces(samples: tuple[np.ndarray, ...], cuts: list[int], **options: Any) -> SignProgram:
    """A program of pieces, of which every other one is merged instead of added."""
    program = SignProgram(**options)
    for k, rows in enumerate(np.split(np.arange(samples[0].size), sorted(cuts))):
        if rows.size:
            target = SignProgram(**options) if k % 2 else program
            target.add(*(column[rows] for column in samples))
            if k % 2:
                program.merge(target)
    return program


def assert_same(one: WorstCase, other: WorstCase) -> None:
    assert one.value == other.value
    assert one.n == other.n
    assert one.to_dict() == other.to_dict()
    mine, yours = one.gains, other.gains
    assert np.array_equal(mine.keys, yours.keys)
    assert np.array_equal(mine.sums, yours.sums)
    assert (mine.n, mine.free) == (yours.n, yours.free)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("bins", [1, 15, 256, 257, 2000])
def test_pieces_have_the_bits_of_the_whole(bins: int, dtype: Any) -> None:
    samples = draw(1000, 1, dtype)
    whole = calibration_error(*samples, bins=bins)
    for cuts in ([], [500], [1, 2, 3, 999], list(range(100, 1000, 100))):
        assert_same(in_pieces(samples, cuts, bins=bins).result(), whole)


@given(st.lists(st.integers(0, 60), max_size=6), st.integers(0, 1000), st.sampled_from(("left", "right")))
def test_any_cuts_and_any_order_give_the_same_bits(cuts: list[int], seed: int, closed: str) -> None:
    samples = draw(60, seed)
    mask = np.random.default_rng(seed).random(60) < 0.6
    mask[0] = True
    order = np.random.default_rng(seed + 1).permutation(60)
    shuffled = tuple(column[order] for column in (*samples, mask))
    result = in_pieces(shuffled, cuts, bins=7, closed=closed).result()
    whole = calibration_error(*samples, bins=7, closed=closed, certified=mask)
    assert_same(result, whole)
    assert population_bound(result).to_dict() == population_bound(whole).to_dict()
    assert result.all_samples is not None
    assert whole.all_samples is not None
    assert_same(result.all_samples, whole.all_samples)


def test_pieces_on_several_threads_have_the_bits_of_the_whole() -> None:
    samples = draw(450_000, 2)
    assert_same(in_pieces(samples, [7, 210_000]).result(), calibration_error(*samples))


@pytest.mark.parametrize("bins", [3, 400])
def test_cells_do_not_grow_with_the_number_of_pieces(bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING", 8)
    program = SignProgram(bins)
    samples = draw(200, 3)
    sizes = []
    for _ in range(30):
        program.add(*samples)
        sizes.append(len(pickle.dumps(program)))
    assert max(sizes) <= 3 * sizes[1]
    assert len(program) == 6000
    assert program.result().value == pytest.approx(calibration_error(*samples, bins=bins).value, abs=1e-12)


def test_the_value_is_that_of_enumeration() -> None:
    for seed in range(20):
        p = naive.instance(seed)
        program = in_pieces(p.arguments, [p.n // 3, p.n // 2], edges=p.edges, closed=p.closed)
        assert program.result().value == pytest.approx(naive.worst_by_signs(p), abs=1e-12)


def test_edges_that_crowd_at_one_end_are_counted_too() -> None:
    edges = np.concatenate(([0], 1 - np.geomspace(1e-3, 1e-9, 12), [1]))
    random = np.random.default_rng(5)
    ends = 1 - np.sort(10.0 ** random.uniform(-9.5, -2, (2, 40)), axis=0)[::-1]
    p = naive.problem(ends[0], ends[1], random.integers(0, 2, 40), edges)
    whole = calibration_error(*p.arguments, **p.options)
    assert whole.value == pytest.approx(naive.worst_by_signs(p), abs=1e-12)
    assert_same(in_pieces(p.arguments, [11, 30], edges=edges).result(), whole)


def test_a_piece_may_be_without_certified_samples() -> None:
    lower, upper, correct = draw(40, 4)
    mask = np.arange(40) >= 20
    program = in_pieces((lower, upper, correct, mask), [10, 20])
    assert len(program) == 40
    assert_same(program.result(), calibration_error(lower, upper, correct, certified=mask))


def test_without_certified_samples_at_all_there_is_no_result() -> None:
    program = SignProgram()
    with pytest.raises(InputError, match="no samples were added; add some"):
        program.result()
    program.add([0.5], [0.75], [1], certified=[0])
    assert len(program) == 1
    with pytest.raises(InputError, match="certified is false for every sample"):
        program.result()


def test_samples_can_be_added_after_a_result_which_does_not_change() -> None:
    first, second = draw(50, 5), draw(50, 6)
    program = SignProgram()
    program.add(*first)
    before = program.result()
    program.add(*second)
    assert_same(before, calibration_error(*first))
    both = tuple(np.concatenate(pair) for pair in zip(first, second, strict=True))
    assert_same(program.result(), calibration_error(*both))


def test_merging_leaves_the_other_program_as_it_was() -> None:
    samples = draw(30, 7)
    one, other = SignProgram(), SignProgram()
    other.add(*samples)
    one.merge(other)
    one.add(*samples)
    assert len(other) == 30
    assert_same(other.result(), calibration_error(*samples))


def test_a_program_and_its_result_can_be_copied_and_sent_to_another_process() -> None:
    program = SignProgram(bins=4)
    program.add(*draw(30, 8))
    for other in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        assert_same(other.result(), program.result())
    result = program.result()
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert_same(other, result)
        with pytest.raises(InputError, match="no witness"):
            _ = other.witness


def test_a_streamed_result_says_that_it_has_no_witness() -> None:
    program = SignProgram()
    program.add([0.5], [0.75], [1])
    result = program.result()
    for name in ("witness", "bins"):
        with pytest.raises(
            InputError, match="calibration error has no witness and no bins, because a SignProgram keeps"
        ):
            getattr(result, name)


def test_pieces_of_other_types_are_refused_and_add_nothing() -> None:
    program = SignProgram()
    program.add(*draw(10, 9))
    before = program.result()
    with pytest.raises(InputError, match="intervals are float32 after float64; convert all to one type"):
        program.add(*draw(10, 9, np.float32))
    for bad in (([0.5], [0.25], [1]), ([0.5, np.nan], [0.75, 1], [1, 0]), ([0.5], [1.5], [1]), ([0.5], [0.75], [2])):
        with pytest.raises(InputError):
            program.add(*bad)
    assert_same(program.result(), before)


def test_programs_with_other_bins_do_not_merge() -> None:
    program = SignProgram(3)
    for other in (SignProgram(4), SignProgram(3, closed="right"), SignProgram(edges=[0, 0.5, 0.75, 1])):
        with pytest.raises(InputError, match="different bins"):
            program.merge(other)
    with pytest.raises(InputError, match="pass a SignProgram"):
        program.merge(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("options", "words"), [({"bins": 0}, "bins is 0"), ({"closed": "up"}, "closed"), ({"edges": [0, 2]}, "the last 1")]
)
def test_bins_that_cannot_be_used_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SignProgram(**options)
