"""What the bounds share: pairs in order."""

import numpy as np
import pytest

from certcal._base.threads import SMALL
from certcal.bounds._shared import sort, sort_pairs

LARGE = 2 * SMALL + 3


@pytest.mark.parametrize("n", [0, 1, 2, 1000, LARGE])
@pytest.mark.parametrize("values", [2, 50, 2**62])
def test_keys_are_sorted_on_any_number_of_threads(n: int, values: int) -> None:
    keys = np.random.default_rng(n).integers(0, values, n, dtype=np.uint64)
    np.testing.assert_array_equal(sort(keys.copy()), np.sort(keys))


@pytest.mark.parametrize("shift", [-1, 1])
def test_halves_that_do_not_overlap_are_merged(shift: int) -> None:
    keys = np.roll(np.arange(LARGE, dtype=np.uint64), shift * (LARGE // 2))
    np.testing.assert_array_equal(sort(keys), np.arange(LARGE))


@pytest.mark.parametrize("n", [7, LARGE])
def test_pairs_stay_together_in_the_order_of_score_and_outcome(n: int) -> None:
    rng = np.random.default_rng(n)
    scores = rng.choice([0.0, -0.0, 5e-324, 0.1, 0.5, 1.0], n)
    outcomes = rng.integers(0, 2, n).astype(np.uint8)
    found = sort_pairs(scores, outcomes)
    order = np.lexsort((outcomes, scores))
    np.testing.assert_array_equal(found.scores, scores[order])
    np.testing.assert_array_equal(found.outcomes, outcomes[order])
