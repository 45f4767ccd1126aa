"""Noise ahead of the model: the same bits however it is done, one caller, and no thread that stays."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal._base.threads import one_thread
from certcal._kernels import noise
from certcal.smoothing import Sampler, SamplingError, _pipeline, decide
from tests.smoothing.test_sampler import CLASSES, INDICES, POINTS, Plain, as_lists, linear, sampler

PATIENCE = 1  # seconds until a test that hangs fails


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


EXPECTED = {
    kind: [
        as_lists(sampler(noise=kind, noise_threads=0).count(POINTS, INDICES, CLASSES, 3, 43)),
        as_lists(sampler(noise=kind, noise_threads=0).select(POINTS, INDICES, 23)),
    ]
    for kind in ("gaussian", "exact")
}


@given(
    kind=st.sampled_from(["gaussian", "exact"]),
    threads=st.integers(0, 3),
    batch=st.sampled_from([1, 2, 7, 16, 40, 99, 300]),
    block=st.sampled_from([1, 24, 400, 1 << 20]),
    buffers=st.integers(1, 5),
)
def test_counts_have_the_same_bits_for_any_number_of_threads_and_buffers(
    kind: str, threads: int, batch: int, block: int, buffers: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pipeline, "BLOCK", block)
        patch.setattr(_pipeline, "MEMORY", buffers * max(block, 24 * batch))
        made = sampler(noise=kind, batch=batch, noise_threads=threads)
        counted = as_lists(made.count(POINTS, INDICES, CLASSES, 3, 43))
        assert [counted, as_lists(made.select(POINTS, INDICES, 23))] == EXPECTED[kind]
    assert set(made.model.shapes) == {(batch, 2, 3)}  # type: ignore[attr-defined]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_decisions_do_not_depend_on_the_number_of_threads(threads: int) -> None:
    settings: dict[str, Any] = {"sigma": 0.5, "radius": 0.2, "budget": 2000, "batch": 16, "block": 50}
    expected = decide(Plain(linear), POINTS, CLASSES, noise_threads=0, **settings)  # type: ignore[arg-type]
    found = decide(Plain(linear), POINTS, CLASSES, noise_threads=threads, **settings)  # type: ignore[arg-type]
    assert found.to_dict() == expected.to_dict()


def test_a_model_that_answers_in_the_same_place_every_time_is_counted_as_any_other() -> None:
    place = np.empty((7, 3), np.float32)

    def again(batch: np.ndarray) -> np.ndarray:
        place[:] = linear(batch)
        return place

    found = sampler(again, batch=7, noise_threads=2).count(POINTS, INDICES, CLASSES, 3, 43)
    assert as_lists(found) == EXPECTED["gaussian"][0]


@pytest.mark.parametrize("threads", [1, 2])
def test_noise_of_the_next_batch_is_made_while_the_model_computes(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model waits until the batch after its own is filled: that never happens if the two take turns."""
    filled = {first: threading.Event() for first in range(0, 200, 40)}
    fill, caller = noise.add_gaussian, threading.current_thread()

    def filling(*arguments: Any) -> None:
        fill(*arguments)
        filled[arguments[6]].set()

    monkeypatch.setattr(noise, "add_gaussian", filling)
    monkeypatch.setattr(_pipeline, "BLOCK", 1 << 20)
    coming = iter([*filled.values()][1:])

    def waiting(batch: np.ndarray) -> np.ndarray:
        assert threading.current_thread() is caller
        assert next(coming, filled[0]).wait(PATIENCE)
        return linear(batch)

    found = sampler(waiting, batch=40, noise_threads=threads).count(POINTS, INDICES, CLASSES, 3, 43)
    assert as_lists(found) == EXPECTED["gaussian"][0]


def test_answers_are_counted_while_the_model_computes_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting waits until the model is asked again: that never happens if the two take turns."""
    from certcal._kernels import counting

    asked, count, calls = threading.Event(), counting.add_confidences, iter(range(5))

    def counting_on(*arguments: Any) -> None:
        assert asked.wait(PATIENCE)
        count(*arguments)

    def telling(batch: np.ndarray) -> np.ndarray:
        if next(calls) == 1:
            asked.set()
        return linear(batch)

    monkeypatch.setattr(counting, "add_confidences", counting_on)
    found = sampler(telling, batch=40, noise_threads=1).count(POINTS, INDICES, CLASSES, 3, 43)
    assert as_lists(found) == EXPECTED["gaussian"][0]


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("error", [ZeroDivisionError("no"), KeyboardInterrupt()])
def test_a_model_that_fails_in_the_middle_leaves_no_thread(error: BaseException, threads: int) -> None:
    calls = iter(range(100))

    def failing(batch: np.ndarray) -> np.ndarray:
        if next(calls) == 3:
            raise error
        return linear(batch)

    expected = SamplingError if isinstance(error, Exception) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        sampler(failing, batch=20, noise_threads=threads).count(POINTS, INDICES, CLASSES, 3, 43)
    running = {thread.name for thread in threading.enumerate()}  # the traceback still holds the frames
    assert not any(name.startswith("certcal-noise") for name in running)
    if expected is SamplingError:
        assert str(caught.value).startswith("the model failed on sample 0: ZeroDivisionError: no; check")


def test_classes_that_the_model_does_not_have_are_refused_from_another_thread_as_well() -> None:
    with pytest.raises(InputError, match=r"classes\[2\] is 3, but the model has 3 classes"):
        sampler(batch=7, noise_threads=2).count(POINTS, INDICES, [0, 1, 3, 1, 0], 3, 43)


def test_noise_goes_to_memory_of_the_models_own_if_it_offers_some() -> None:
    class Offering(Plain):
        def host_buffer(self, shape: tuple[int, ...]) -> np.ndarray:
            offered.append(np.empty(shape, np.float32))
            return offered[-1]

        def __call__(self, batch: np.ndarray) -> Any:
            assert any(np.shares_memory(batch, each) for each in offered)
            return super().__call__(batch)

    offered: list[np.ndarray] = []
    model: Any = Offering(linear)
    found = Sampler(model, sigma=0.5, seed=5, batch=16, noise_threads=2).count(POINTS, INDICES, CLASSES, 3, 43)
    assert as_lists(found) == EXPECTED["gaussian"][0]
    assert len(offered) == 4  # one that the model reads, one for each thread, and one that is ready


def test_a_model_on_the_cpu_leaves_a_core_and_one_elsewhere_leaves_all_to_the_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_pipeline, "thread_count", lambda: 8)
    assert (_pipeline.free_cores("cpu"), _pipeline.free_cores("cuda:1")) == (7, 8)
    monkeypatch.undo()
    with one_thread():
        assert (_pipeline.free_cores("cpu"), _pipeline.free_cores("mps")) == (0, 1)


@pytest.mark.parametrize("bad", [-1, 1025, 1.5])
def test_a_number_of_threads_that_cannot_be_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match=rf"noise_threads is {bad}; pass a number of threads from 0 to 1024"):
        sampler(noise_threads=bad)
