"""All bounds at once: which there are, and that each is its own function's."""

import numpy as np
import pytest

from certcal import InputError, bounds
from certcal.claims import ORDER

RNG = np.random.default_rng(5)
P = RNG.dirichlet((1.0, 1.0, 1.0), 400)
LABELS = (RNG.random(400)[:, None] > P.cumsum(axis=1)).sum(axis=1)
Z, C = P.max(axis=1), P.argmax(axis=1) == LABELS


def test_without_further_questions_there_are_those_that_need_none() -> None:
    assert bounds.every_bound(Z, C) == {
        "bounded_variation": bounds.bounded_variation(Z, C),
        "binned": bounds.binned(Z, C),
        "binned_lower": bounds.binned_lower(Z, C),
        "ks": bounds.ks(Z, C),
        "kuiper": bounds.kuiper(Z, C),
    }


def test_each_is_its_own_functions_at_the_same_level() -> None:
    found = bounds.every_bound(
        Z, C, 0.1, bins=7, closed="right", variation=2.0, constant=3.0, seed=4, probabilities=P, labels=LABELS
    )
    assert list(found)[:2] == ["lipschitz", "bounded_variation"]  # on the true error
    assert found == {
        "lipschitz": bounds.lipschitz(Z, C, 3.0, 0.1),
        "bounded_variation": bounds.bounded_variation(Z, C, 0.1, variation=2.0),
        "binned": bounds.binned(Z, C, 7, 0.1, closed="right"),
        "binned_lower": bounds.binned_lower(Z, C, 7, 0.1, closed="right", seed=4),
        "ks": bounds.ks(Z, C, 0.1),
        "kuiper": bounds.kuiper(Z, C, 0.1),
        "classwise_lipschitz": bounds.classwise(bounds.lipschitz, P, LABELS, 0.1, constant=3.0).mean,
        "classwise_bounded_variation": bounds.classwise(bounds.bounded_variation, P, LABELS, 0.1, variation=2.0).mean,
        "classwise_binned": bounds.classwise(bounds.binned, P, LABELS, 0.1, bins=7, closed="right").mean,
    }


def test_bounds_of_perturbed_scores_are_of_the_same_noise_and_say_so_each_by_itself() -> None:
    found = bounds.every_bound(Z, C, bandwidth=0.25, seed=3)
    noisy = bounds.perturb(Z, 0.25, 3)
    assert list(found) == ["smooth", "lipschitz", "bounded_variation", "binned", "binned_lower", "ks", "kuiper"]
    assert found["smooth"] == bounds.smooth(noisy, C, 0.25)
    assert found["lipschitz"].value == bounds.lipschitz(noisy, C, 2.0).value
    assert found["binned"].value == bounds.binned(noisy, C).value
    for bound in found.values():
        assert "perturbed scores" in bound.name
        assert any("perturbed once by the sech kernel of bandwidth 0.25" in each for each in bound.assumptions)


def test_the_order_of_the_samples_is_assumed_where_they_are_split_and_only_there() -> None:
    options = {"constant": 2.0, "probabilities": P, "labels": LABELS}
    found = bounds.every_bound(Z, C, **options) | {
        "smooth": bounds.smooth(Z, C, 0.25),
        "smooth, repaired": bounds.smooth(Z, C, 0.25, form="repaired"),
        "bounded_variation, published": bounds.bounded_variation(Z, C, form="published"),
        "lipschitz, published": bounds.lipschitz(Z, C, 2.0, form="published"),
        "classwise, repaired": bounds.classwise(bounds.smooth, P, LABELS, bandwidth=0.25, form="repaired").mean,
    }
    split = {name for name, bound in found.items() if ORDER in bound.assumptions}
    several = {"smooth, repaired", "bounded_variation, published", "lipschitz, published", "classwise, repaired"}
    assert split == {"binned_lower", *several}
    moved = {name for name, bound in found.items() if "seed" in bound.settings}
    assert moved == split
    for name in split:
        assert ORDER in found[name].assumptions
        assert ORDER in found[name].to_dict()["assumptions"]


def test_bounds_that_hold_together_have_a_share_of_delta_each() -> None:
    found = bounds.every_bound(Z, C, 0.05, joint=True)
    assert {each.delta for each in found.values()} == {bounds.equal_share(0.05, 5)}
    assert found["ks"] == bounds.ks(Z, C, 0.01)
    assert found["binned"].value > bounds.binned(Z, C).value


def test_with_weights_there_are_those_of_the_binned_error() -> None:
    w = np.linspace(0.5, 2, 400)
    assert bounds.every_bound(Z, C, sample_weight=w, largest_weight=3.0) == {
        "binned": bounds.binned(Z, C, sample_weight=w, largest_weight=3.0),
        "binned_lower": bounds.binned_lower(Z, C, sample_weight=w, largest_weight=3.0),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.1, "constant": 2.0}, "bandwidth and constant exclude each other"),
        ({"bandwidth": 0.1, "probabilities": P, "labels": LABELS}, "bandwidth and probabilities exclude each other"),
        ({"sample_weight": np.ones(400), "constant": 2.0}, "weights and constant exclude each other"),
        ({"sample_weight": np.ones(400), "bandwidth": 0.1}, "weights and bandwidth exclude each other"),
        ({"bandwidth": 0.0}, "bandwidth is 0"),
        ({"delta": 1.0}, "delta is 1"),
        ({"constant": -1.0}, "constant is -1"),
    ],
)
def test_what_cannot_be_asked_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bounds.every_bound(Z, C, **options)
