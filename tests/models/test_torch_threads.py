from __future__ import annotations

import pytest
import torch

from certcal import InputError
from certcal.models.torch_threads import torch_threads


def test_threads_and_generator_are_as_before_also_after_an_error():
    before, state = torch.get_num_threads(), torch.get_rng_state()

    def fail():
        with torch_threads(before + 1):
            assert torch.get_num_threads() == before + 1
            torch.rand(3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.get_num_threads() == before
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("threads", [0, 1.5, "two", 100_000])
def test_a_number_of_threads_that_makes_no_sense_is_one_sentence(threads):
    with pytest.raises(InputError, match=r"threads is .*; pass how many threads torch may use"), torch_threads(threads):
        pass
