"""A bound per class: what is spent on each, and what their mean rests on."""

from fractions import Fraction
from typing import Any

import numpy as np

from certcal.bounds import classwise
from certcal.claims import Bound


def test_the_mean_over_classes_needs_no_terms_and_spends_no_more_than_delta() -> None:
    def constant(scores: Any, outcomes: Any, delta: float) -> Bound:
        return Bound("error", 0.3, "upper", delta, 3, ())

    for k in (3, 7, 10):
        found = classwise(constant, np.full((3, k), 1 / k), [0, 1, 2], 0.1)
        assert 0.3 <= found.mean.value <= 0.3 * (1 + 1e-12)
        assert found.mean.delta == 0.1
        assert sum(Fraction(each.delta) for each in found.classes) <= Fraction(0.1)


def test_the_mean_of_values_of_which_some_are_capped_is_below_that_of_their_terms() -> None:
    def alternating(scores: Any, outcomes: Any, delta: float) -> Bound:
        large = bool(outcomes[0])
        terms = {"gap": 0.9 if large else 0.1, "deviation": 0.4}
        return Bound("error", min(1.0, sum(terms.values())), "upper", delta, 2, (), terms)

    found = classwise(alternating, np.full((2, 2), 0.5), [0, 1])
    assert 0.75 <= found.mean.value <= 0.75 * (1 + 1e-12)
    assert found.mean.terms == {"gap": 0.5, "deviation": 0.4}
    assert found.mean.settings["sum of the terms"] == "capped at 1 in some classes"
