"""Recipes: the numbers of the papers, by method, data set and σ, and what cannot be trained."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, fields, replace

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.training import METHODS, Recipe, constants_of, presets, recipe


@pytest.mark.parametrize("method", METHODS)
def test_a_recipe_survives_json(method):
    for changes in ({}, {"sphere_norm": "linf"} if method == "acr" else {"box": None}):
        made = recipe(method, seed=7, epochs=9, **changes)
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
        ({"precision": "float8"}, "precision is 'float8'; pass one of 'float32', 'bfloat16', 'float16'"),
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
        ("acr", {"preset": "mnist"}, "preset is 'mnist', which is unknown: acr has 'cifar-10', 'imagenet'"),
        ("smoothmix", {"preset": "imagenet"}, "preset is 'imagenet', which is unknown"),
        ("acr", {"preset": "cifar-10", "sigma": 0.3}, r"sigma is 0.3, and preset 'cifar-10' of acr has .* 0.25, 0.5"),
        ("cat-rs", {"preset": "mnist"}, r"sigma is 0\.5, and preset 'mnist' of cat-rs has constants for 0\.25"),
        ("smoothmix", {"epsilon": 1.0}, "smoothmix training has no use for epsilon"),
        ("acr", {"discard": 0.5}, "'discard' is no part of a recipe; did you mean 'discard"),
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


EPOCHS = "pass a whole number of epochs from 0 to 100000"
FINITE, POSITIVE, SURE = "pass a finite number of at least 0", "pass a positive finite number", "pass a positive number"
BELOW = "pass a probability from 0, which discards nothing, to below 1, which would discard everything"
ABOVE = "pass a probability above 0.5, at which the radius is positive, and below 1"
WRONG = {
    "macer": [
        *(("weight", value, FINITE) for value in (-1, "large", math.inf)),
        *(("margin", value, POSITIVE) for value in (0.0, math.nan)),
        *(("sharpness", -16.0, POSITIVE), ("sharpness", "sharp", SURE)),
        *(("deferred", value, EPOCHS) for value in (-1, 1.5)),
    ],
    "consistency": [
        (name, value, FINITE) for name in ("weight", "entropy") for value in (-0.5, math.nan, math.inf, "much", None)
    ],
    "smoothmix": [
        *(("step", 0.0, POSITIVE), ("step", "long", SURE), ("mixed_weight", math.nan, POSITIVE)),
        *(("one_step", 1, "pass True or False"), ("mixed_warmup", -1, EPOCHS), ("mixed_warmup", 2.5, EPOCHS)),
    ],
    "cat-rs": [
        *(("high_weight", 0.0, POSITIVE), ("high_weight", None, SURE)),
        *(("target_sigma", math.inf, POSITIVE), ("target_sigma", -0.25, POSITIVE)),
    ],
    "acr": [
        *(("discard_below", value, BELOW) for value in (1, 1.5, -0.1, math.nan, "half")),
        *((name, -1, "pass a whole number from 0 to 100000") for name in ("begin", "weigh_every", "sphere_steps")),
        *((name, 0, "pass a whole number from 1 to 100000") for name in ("discard_draws", "weigh_draws")),
        *(("begin", 1.5, "pass a whole number from 0 to 100000"), ("sphere_norm", "l1", "pass one of 'l2', 'linf'")),
        *(("weigh_alpha", 0, "pass a number between 0 and 1, such as 0.1"), ("weigh_floor", 0.5, ABOVE)),
        *(("weigh_floor", 1.0, ABOVE), ("sphere_step", 0, "pass the length of a step, above 0 and at most 1e+18")),
    ],
}


@pytest.mark.parametrize(("method", "name", "value", "remedy"), [(m, *row) for m in WRONG for row in WRONG[m]])
def test_wrong_constants_are_one_sentence(method, name, value, remedy):
    with pytest.raises(InputError) as caught:
        recipe(method, sigma=0.5, **{name: value})
    assert str(caught.value) == f"{name} is {value!r}; {remedy}"


THREE = (0.25, 0.5, 1.0)
FOUR = (0.12, *THREE)
LEVELS = {
    "gaussian": {"cifar-10": FOUR, "imagenet": THREE},
    **{method: {"cifar-10": FOUR} for method in METHODS if METHODS[method].adversary},
    "macer": {"mnist": THREE, "cifar-10": THREE},
    "consistency": {"mnist": THREE, "cifar-10": THREE, "imagenet": (0.5, 1.0)},
    "smoothmix": {"mnist": THREE, "cifar-10": THREE},
    "cat-rs": {"mnist": (0.25,), "cifar-10": THREE, "cifar-100": THREE, "imagenet": (1.0,)},
    "acr": {"cifar-10": THREE, "imagenet": THREE},
}
# What is the same at every σ, and a column for each of them.
MACER = {"margin": 8.0, "sharpness": 16.0, "draws": 16, "loss": "smoothed", "learning_rate": 0.01, "sigma_warmup": 0}
CONSISTENCY = {"draws": 2, "loss": "draws", "sigma_warmup": 0, "weight_decay": 1e-4}
SMOOTHMIX = {"mixed_weight": 5.0, "mixed_warmup": 10, "one_step": False, "sigma_warmup": 0, "loss": "draws"}
CATRS = {"epsilon": 1.0, "sigma_warmup": 0, "epsilon_delay": 0, "epsilon_warmup": 0, "target_sigma": 0.25}
CATRS_CIFAR = {**CATRS, "draws": 4, "attack_steps": 4, "batch": 64, "epochs": 150, "learning_rate": 0.1}
ACR = {"loss": "draws", "weigh_draws": 16, "weigh_alpha": 0.1, "weigh_floor": 0.75, "sphere_norm": "l2"}
SHORT, LONG = {"epochs": 90, "milestones": (30, 60)}, {"epochs": 150, "milestones": (50, 100)}
COHEN = {**SHORT, "batch": 400, "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "sigma_warmup": 0}
SALMAN = {**LONG, "batch": 256, "learning_rate": 0.1, "sigma_warmup": 0, "epsilon_delay": 0, "epsilon_warmup": 10}
FINE_TUNED = {"epochs": 10, "milestones": (4, 8), "learning_rate": 0.01, "sigma_warmup": 0, "epsilon_warmup": 3}
TABLES = [
    *(("gaussian", name, COHEN, {}) for name in ("cifar-10", "imagenet")),
    ("smoothadv", "cifar-10", SALMAN, {}),
    *((method, "cifar-10", FINE_TUNED, {}) for method in METHODS if METHODS[method].fine_tunes),
    ("macer", "mnist", {**MACER, **SHORT, "batch": 256, "deferred": 30}, {"weight": (16.0, 16.0, 6.0)}),
    (
        *("macer", "cifar-10", {**MACER, "epochs": 440, "milestones": (200, 400), "batch": 64, "weight_decay": 5e-4}),
        {"weight": (12.0, 4.0, 12.0), "deferred": (0, 0, 200), "decay": (0.1,) * 3, "momentum": (0.9,) * 3},
    ),
    (
        *("consistency", "mnist", {**CONSISTENCY, **SHORT, "batch": 128, "learning_rate": 0.01, "entropy": 0.5}),
        {"weight": (10.0, 5.0, 5.0)},
    ),
    (
        *("consistency", "cifar-10", {**CONSISTENCY, **LONG, "batch": 128, "learning_rate": 0.1, "entropy": 0.5}),
        {"weight": (20.0, 10.0, 10.0)},
    ),
    (
        *("consistency", "imagenet", {**CONSISTENCY, **SHORT, "batch": 100, "learning_rate": 0.1}),
        {"weight": (5.0, 5.0), "entropy": (0.5, 0.1)},
    ),
    (
        *("smoothmix", "mnist", {**SMOOTHMIX, **SHORT, "draws": 4, "batch": 64, "learning_rate": 0.01, "step": 1.0}),
        {"attack_steps": (2, 4, 8)},
    ),
    (
        *("smoothmix", "cifar-10", {**SMOOTHMIX, **LONG, "draws": 2, "batch": 128, "learning_rate": 0.1}),
        {"step": (0.5, 1.0, 2.0), "attack_steps": (4, 4, 4)},
    ),
    ("cat-rs", "mnist", {**CATRS_CIFAR, "learning_rate": 0.01}, {"high_weight": (1.0,)}),
    *(
        ("cat-rs", name, {**CATRS_CIFAR, **LONG}, {"high_weight": (0.5, 1.0, 2.0)})
        for name in ("cifar-10", "cifar-100")
    ),
    (
        *("cat-rs", "imagenet", {**CATRS, "draws": 2, "attack_steps": 1, "batch": 128, "epochs": 90}),
        {"milestones": ((30, 60, 85),), "high_weight": (2.0,)},
    ),
    (
        *("acr", "cifar-10", {**ACR, **LONG, "draws": 4, "batch": 64, "weigh_every": 10, "discard_draws": 100}),
        {
            **{"begin": (60, 70, 60), "discard_below": (0.5, 0.4, 0.4), "sigma_warmup": (0, 0, 0)},
            **{"sphere_steps": (3, 6, 4), "sphere_step": (0.25, 0.25, 0.5)},
        },
    ),
    (
        *("acr", "imagenet", {**ACR, **SHORT, "begin": 0, "weigh_every": 0, "discard_draws": 50, "sigma_warmup": 0}),
        {
            **{"draws": (1, 1, 2), "discard_below": (0.2, 0.2, 0.1), "batch": (256, 256, 128)},
            **{"sphere_steps": (2, 2, 1), "sphere_step": (0.5, 1.0, 2.0)},
        },
    ),
]


def numbers_of(made):
    return {each.name: getattr(made, each.name) for each in fields(made)} | (asdict(made.own) if made.own else {})


@pytest.mark.parametrize(("method", "preset", "same", "rows"), TABLES)
def test_presets_are_the_tables_of_the_papers_and_of_their_code(method, preset, same, rows):
    for place, sigma in enumerate(LEVELS[method][preset]):
        expected = {**same, **{name: row[place] for name, row in rows.items()}, "sigma": sigma}
        found = numbers_of(recipe(method, preset=preset, sigma=sigma))
        assert {name: found[name] for name in expected} == expected
        usual = {"cifar-10": "crop+flip", "cifar-100": "crop+flip", "imagenet": "resized-crop+flip"}
        assert found["augment"] == usual.get(preset, "none")


def test_there_are_presets_for_these_data_sets_and_sigmas():
    assert {method: presets(method) for method in METHODS if presets(method)} == LEVELS
    assert {(method, preset) for method in LEVELS for preset in LEVELS[method]} == {row[:2] for row in TABLES}


@pytest.mark.parametrize(
    ("method", "constants", "usual"),
    [
        ("macer", {"weight": 12.0, "margin": 8.0, "sharpness": 16.0, "deferred": 0}, {"draws": 16}),
        ("consistency", {"weight": 10.0, "entropy": 0.5}, {"draws": 2, "loss": "draws", "batch": 256}),
        (
            *("smoothmix", {"step": 1.0, "mixed_weight": 5.0, "one_step": False, "mixed_warmup": 10}),
            {"draws": 2, "attack_steps": 4, "loss": "draws"},
        ),
        (
            *("catrs", {"high_weight": 1.0, "target_sigma": 0.25}),
            {"draws": 4, "epsilon": 1.0, "attack_steps": 4, "loss": "draws"},
        ),
    ],
)
def test_without_a_preset_a_method_has_its_authors_usual_numbers(method, constants, usual):
    assert constants_of(method) == constants
    found = numbers_of(recipe(method, sigma=0.5))
    assert {name: found[name] for name in constants | usual} == constants | usual
    changed = recipe(method, sigma=0.25, **{next(iter(constants)): 6})
    assert numbers_of(changed)[next(iter(constants))] == 6.0


def test_a_preset_from_scratch_leaves_fine_tuning_its_schedule():
    tuned = recipe("smoothadv", preset="cifar-10", sigma=0.25, fine_tune=True)
    plain = recipe("smoothadv", sigma=0.25, fine_tune=True)
    assert tuned == replace(plain, augment="crop+flip")
    assert recipe("at", preset="cifar-10", sigma=0.25, epochs=15).epsilon_warmup == 1
    assert recipe("at", preset="cifar-10", sigma=0.25, epochs=15, epsilon_warmup=4).epsilon_warmup == 4


def test_what_counts_epochs_shrinks_with_them_unless_it_is_given():
    short = recipe("macer", preset="cifar-10", sigma=1.0, epochs=22)
    assert (short.milestones, short.own.deferred, short.own.weight) == ((10, 20), 10, 12.0)
    kept = recipe("macer", preset="cifar-10", sigma=1.0, epochs=22, milestones=(3,), deferred=4)
    assert (kept.milestones, kept.own.deferred) == ((3,), 4)
    for epochs in range(2, 40):
        made = recipe("macer", preset="cifar-10", sigma=1.0, epochs=epochs)
        assert all(0 < milestone < epochs for milestone in made.milestones)
        assert 0 < made.own.deferred < epochs
    assert recipe("smoothmix", sigma=0.25, preset="mnist", epochs=18).own.mixed_warmup == 2
    own = recipe("acr", sigma=0.25, preset="cifar-10", epochs=15).own
    assert (own.begin, own.weigh_every) == (6, 1)
    assert recipe("acr", sigma=0.25, preset="cifar-10", epochs=15, begin=9).own.begin == 9
