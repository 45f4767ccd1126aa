from __future__ import annotations

import json
import re

import numpy as np
import pytest

from certcal import InputError
from certcal.training import METHODS, Recipe, recipe


@pytest.mark.parametrize("method", METHODS)
def test_a_recipe_survives_json(method):
    made = recipe(method, seed=7, epochs=9)
    assert Recipe.from_dict(json.loads(json.dumps(made.to_dict()))) == made


def test_fine_tuning_is_that_of_appendix_i3():
    brier, acce = recipe("brier-act"), recipe("acce-act")
    assert (brier.epochs, brier.batch, brier.weight_decay, brier.epsilon_warmup) == (10, 256, 1e-4, 3)
    assert (brier.learning_rate, brier.milestones, brier.decay) == (0.01, (4, 8), 0.1)
    assert (acce.epochs, acce.batch, acce.epsilon_warmup, acce.milestones) == (10, 2048, 3, (4, 8))
    assert recipe("smoothadv", fine_tune=True).to_dict() == {**brier.to_dict(), "method": "smoothadv"}


def test_baselines_are_those_of_appendix_j11():
    at = recipe("at")
    assert at.method == "smoothadv"
    assert (at.epochs, at.batch, at.learning_rate, at.momentum, at.weight_decay) == (150, 256, 0.1, 0.9, 1e-4)
    assert (at.milestones, at.decay) == ((50, 100), 0.1)
    assert (at.sigma_warmup, at.epsilon_delay, at.epsilon_warmup) == (8, 8, 8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fine_tune", [False, True])
def test_every_number_of_epochs_has_schedules_that_fit(method, fine_tune):
    for epochs in range(1, 40):
        made = recipe(method, epochs=epochs, fine_tune=fine_tune)
        assert made.epochs == epochs
        assert all(0 < milestone < epochs for milestone in made.milestones)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"method": "mixup"}, "method is 'mixup'; pass one of standard, gaussian"),
        ({"epochs": 0}, "epochs is 0; pass a whole number from 1 to 100000"),
        ({"epochs": 2.5}, "epochs is 2.5; pass a whole number"),
        ({"sigma": -1}, "sigma is -1; pass a finite number of at least 0"),
        ({"sigma": float("nan")}, "sigma is nan; pass a finite number"),
        ({"sigma": "much"}, "sigma is 'much'; pass a finite number"),
        ({"learning_rate": 0}, "learning_rate is 0; pass a number above 0"),
        ({"norm": "l1"}, "norm is 'l1'; pass one of 'l2', 'linf'"),
        ({"box": (1, 0)}, r"box is \(1.0, 0.0\); pass the smallest and the largest"),
        ({"box": 3}, "box is 3; pass the smallest and the largest value, or None"),
        ({"milestones": (8, 4)}, r"milestones is \(8, 4\); pass increasing epochs"),
        ({"milestones": 4}, "milestones is 4; pass a list of epochs"),
        ({"pieces": 300, "batch": 200}, "pieces is 300, more than a batch of 200"),
        ({"sigma_warmup": 11}, "sigma_warmup is 11 of 10 epochs"),
        ({"epsilon_delay": 5, "epsilon_warmup": 6}, "leave no epoch with the whole epsilon out of 10; shorten"),
        ({"mix": 1.5}, "mix is 1.5; pass a finite number from 0 to 1"),
        ({"precision": "float16"}, "precision is 'float16'; pass one of 'float32', 'bfloat16'"),
        ({"rho": -1.0}, "rho is -1.0; pass a finite number of at least 0"),
        ({"method": "standard"}, "standard training has no noise and no adversary"),
        ({"method": "gaussian"}, "gaussian training has no use for epsilon; leave it at 0"),
        ({"method": "gaussian", "epsilon": 0, "sigma": 0}, "sigma is 0; gaussian training needs noise"),
        ({"sgima": 1}, "'sgima' is no part of a recipe; did you mean 'sigma'"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        Recipe.from_dict({"method": "smoothadv", "sigma": 0.5, "epsilon": 1.0, **changes})
    assert "\n" not in str(caught.value)


def test_a_recipe_without_a_method_and_a_list_are_refused():
    with pytest.raises(InputError, match="the recipe names no method; pass one of"):
        Recipe.from_dict({"sigma": 1})
    with pytest.raises(InputError, match=re.escape("a recipe is a table of names and values, not a list")):
        Recipe.from_dict([1])


@pytest.mark.parametrize(
    ("method", "changes", "sentence"),
    [
        ("macer", {"discard_below": 0.3}, "'discard_below' is a constant of acr only; leave it out"),
        ("gaussian", {"weight": 3}, "'weight' is a constant of macer and consistency only; leave it out"),
        ("macer", {"own": {"weight": 3}, "margin": 2}, "'margin' and own are given; pass 'margin' inside own"),
        ("acr", {"preset": ["cifar-10"]}, r"preset is \['cifar-10'\], which is unknown: acr has 'cifar-10'"),
        ("acr", {"preset": "cifar-10", "sigma": np.array([0.25, 0.5])}, "acr has constants for 0.25, 0.5, 1"),
    ],
)
def test_a_constant_of_another_method_and_a_preset_that_is_none_are_one_sentence(method, changes, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        recipe(method, **changes)
    assert "\n" not in str(caught.value)


def test_schedules_shrink_with_a_number_of_epochs_of_any_type_and_with_own_left_open():
    assert recipe("acr", epochs=np.int64(15)) == recipe("acr", epochs=15, own=None) == recipe("acr", epochs=15)
    assert recipe("acr", epochs=15).own.begin == 7
