"""Which device a word means, and what is said where it is not there."""

import pytest
import torch

from certcal import InputError
from certcal.models.devices import has_doubles, resolve, shares, torch_threads
from tests.accelerator import accelerator


def test_auto_is_the_cpu_where_there_is_nothing_else_and_the_accelerator_where_there_is_one() -> None:
    assert resolve("auto") == resolve(None) == resolve() == "cpu"
    with accelerator():
        assert resolve("auto") == resolve(None) == "pretend"
        assert resolve("cpu") == resolve("cpu:0") == "cpu"


def test_a_device_is_taken_with_and_without_its_number() -> None:
    with accelerator():
        words = ["pretend", "pretend:0", "pretend:1"]
        assert [resolve(word) for word in words] == words


@pytest.mark.parametrize("word", ["gpu", "cuda", "cuda:1", "mps", "pretend:2", "meta", "cpu:1", "cuda:-1", "", "CPU "])
def test_a_device_that_is_not_there_is_one_sentence_with_those_that_are(word: str) -> None:
    with accelerator(), pytest.raises(InputError, match="here, only cpu, pretend:0, pretend:1; give one") as caught:
        resolve(word)
    assert caught.value.argument == "device"
    assert repr(word) in str(caught.value)
    assert ("pytorch.org" in str(caught.value)) == word.startswith("cuda")


def test_workers_share_all_devices_of_a_kind_or_the_one_that_was_named() -> None:
    with accelerator():
        assert shares("pretend") == ("pretend:0", "pretend:1")
        assert shares("pretend:1") == ("pretend:1",)
        assert shares("cpu") == ("cpu",)


def test_a_device_without_float64_is_known() -> None:
    with accelerator(doubles=False):
        assert not has_doubles("pretend")
        assert has_doubles("cpu")
    with accelerator():
        assert has_doubles("pretend:1")


def test_threads_and_generator_are_as_before_also_after_an_error() -> None:
    before, state = torch.get_num_threads(), torch.get_rng_state()

    def fail() -> None:
        with torch_threads(before + 1):
            assert torch.get_num_threads() == before + 1
            torch.rand(3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.get_num_threads() == before
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("threads", [0, 1.5, "two", 100_000])
def test_a_number_of_threads_that_makes_no_sense_is_one_sentence(threads: int) -> None:
    with pytest.raises(InputError, match=r"threads is .*; pass how many threads torch may use"), torch_threads(threads):
        pass
