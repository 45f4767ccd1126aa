"""Recipes: the numbers of the papers, by method, data set and σ, and what cannot be trained."""

import json
import math
import re
from dataclasses import asdict, fields, replace
from itertools import product

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.training import METHODS, Recipe, constants_of, preset_grid, presets, recipe
from certcal.lab.training.acr import radius_weights
from certcal.lab.training_presets import complete_name


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
        ("acr", {"preset": "mnist"}, "preset is 'mnist', which is unknown: acr has 'sun-2025:cifar-10', 'sun-2025-p"),
        ("acr", {"preset": "imagenet"}, "is 'imagenet', a data set; name the paper too: pass 'sun-2025:imagenet'$"),
        ("acr", {"preset": "sun-2025"}, "several data sets; pass 'sun-2025:cifar-10' or 'sun-2025:imagenet'"),
        ("acr", {"preset": "sun-2024:imagenet"}, "'sun-2024:imagenet', which is unknown: did you mean 'sun-2025:im"),
        ("smoothmix", {"preset": "jeong-2021-smothmix"}, "did you mean 'jeong-2021-smoothmix'?"),
        ("standard", {"preset": "emde-2024"}, "preset is 'emde-2024', which is unknown: standard has none; leave it"),
        ("acce-act", {"preset": "emde-2024:svhn", "fine_tune": False}, "is for fine-tuning; pass the weights to begin"),
        ("acr", {"preset": "sun-2025:imagenet", "sigma": 0.3}, "sigma is 0.3, and preset .* of acr has .* 0.25, 0.5"),
        ("cat-rs", {"preset": "jeong-2023-catrs:mnist"}, r"sigma is 0\.5, and preset .* has constants for 0\.25"),
        ("smoothmix", {"epsilon": 1.0}, "smoothmix training has no use for epsilon"),
        ("acr", {"discard": 0.5}, "'discard' is no part of a recipe; did you mean 'discard"),
        ("acr", {"preset": ["cifar-10"]}, r"preset is \['cifar-10'\], which is unknown"),
        ("macer", {"preset": "zhai-2020-macer", "sigma": np.array([0.25, 0.5])}, "has constants for 0.25, 0.5, 1"),
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
# What is the same at every σ, and a column for each of them.
MACER = {"margin": 8.0, "sharpness": 16.0, "draws": 16, "loss": "smoothed", "sigma_warmup": 0}
CONSISTENCY = {"draws": 2, "loss": "draws", "sigma_warmup": 0, "weight_decay": 1e-4}
SMOOTHMIX = {"mixed_weight": 5.0, "mixed_warmup": 10, "sigma_warmup": 0, "loss": "draws"}
CATRS = {"epsilon": 1.0, "sigma_warmup": 0, "epsilon_delay": 0, "epsilon_warmup": 0, "target_sigma": 0.25}
CATRS_CIFAR = {**CATRS, "draws": 4, "attack_steps": 4, "batch": 64, "epochs": 150, "learning_rate": 0.1}
ACR = {"loss": "draws", "weigh_draws": 16, "weigh_alpha": 0.1, "sphere_norm": "l2", "sigma_warmup": 0}
SHORT, LONG = {"epochs": 90, "milestones": (30, 60)}, {"epochs": 150, "milestones": (50, 100)}
SGD = {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "sigma_warmup": 0}
SALMAN = {**SGD, "loss": "draws", "attack_steps": 10, "epsilon_delay": 0, "epsilon_warmup": 10}
FINE_TUNED = {"epochs": 10, "milestones": (4, 8), "learning_rate": 0.01, "sigma_warmup": 0, "epsilon_warmup": 3}
EMDE_AT = {**LONG, "batch": 256, "loss": "smoothed", "sigma_warmup": 8, "epsilon_delay": 8, "epsilon_warmup": 8}
PRESETS = {
    ("gaussian", "cohen-2019:cifar-10", FOUR): ({**SHORT, **SGD, "batch": 400}, {}),
    ("gaussian", "cohen-2019:imagenet", THREE): ({**SHORT, **SGD, "batch": 400}, {}),
    ("gaussian", "jeong-2020-consistency:mnist", THREE): ({**SHORT, **SGD, "learning_rate": 0.01, "batch": 256}, {}),
    ("gaussian", "jeong-2023-catrs:cifar-10", THREE): ({**LONG, **SGD, "batch": 256, "draws": 1}, {}),
    ("gaussian", "sun-2025:cifar-10", THREE): ({**LONG, **SGD, "batch": 64, "draws": 4, "loss": "draws"}, {}),
    ("smoothadv", "salman-2019:cifar-10", FOUR): ({**LONG, **SALMAN, "batch": 128, "draws": 2}, {}),
    ("smoothadv", "salman-2019:imagenet", THREE): (
        {**SHORT, **SALMAN, "batch": 256, "draws": 1, "attack_steps": 1, "epsilon_warmup": 1},
        {},
    ),
    ("smoothadv", "sun-2025:cifar-10", THREE): (
        {**LONG, **SALMAN},
        {"draws": (4, 8, 2), "epsilon": (1.0, 1.0, 2.0), "batch": (64, 32, 128)},
    ),
    ("smoothadv", "emde-2024:fashion-mnist", FOUR): ({**EMDE_AT, **SGD, "sigma_warmup": 8}, {}),
    ("smoothadv", "emde-2024:cifar-10", FOUR): ({**FINE_TUNED, "batch": 256}, {}),
    ("brier-act", "emde-2024:svhn", FOUR): ({**FINE_TUNED, "batch": 256, "weight_decay": 1e-4}, {}),
    ("acce-act", "emde-2024:cifar-100", FOUR): ({**FINE_TUNED, "batch": 2048, "rho": 0.01}, {}),
    ("acce-act", "emde-2024:imagenet", THREE): ({**FINE_TUNED, "batch": 1024, "draws": 1}, {}),
    ("exact-act", "emde-2024:cifar-10", FOUR): ({**FINE_TUNED, "batch": 2048}, {}),
    ("macer", "jeong-2020-consistency:mnist", THREE): (
        {**MACER, **SHORT, "learning_rate": 0.01, "batch": 256, "deferred": 30},
        {"weight": (16.0, 16.0, 6.0)},
    ),
    ("macer", "zhai-2020-macer:cifar-10", THREE): (
        {**MACER, "epochs": 440, "milestones": (200, 400), "learning_rate": 0.01, "batch": 64, "weight_decay": 5e-4},
        {"weight": (12.0, 4.0, 12.0), "deferred": (0, 0, 200), "decay": (0.1,) * 3, "momentum": (0.9,) * 3},
    ),
    ("macer", "sun-2025:cifar-10", THREE): (
        {**MACER, **LONG, **SGD, "batch": 256},
        {"weight": (12.0, 6.0, 12.0), "deferred": (0, 0, 50)},
    ),
    ("consistency", "jeong-2020-consistency:mnist", THREE): (
        {**CONSISTENCY, **SHORT, "batch": 128, "learning_rate": 0.01, "entropy": 0.5},
        {"weight": (10.0, 5.0, 5.0)},
    ),
    ("consistency", "jeong-2020-consistency:cifar-10", THREE): (
        {**CONSISTENCY, **LONG, "batch": 128, "learning_rate": 0.1, "entropy": 0.5},
        {"weight": (20.0, 10.0, 10.0)},
    ),
    ("consistency", "jeong-2020-consistency:imagenet", (0.5, 1.0)): (
        {**CONSISTENCY, **SHORT, "batch": 100, "learning_rate": 0.1},
        {"weight": (5.0, 5.0), "entropy": (0.5, 0.1)},
    ),
    ("smoothmix", "jeong-2021-smoothmix:mnist", THREE): (
        {**SMOOTHMIX, **SHORT, "draws": 4, "batch": 64, "learning_rate": 0.01, "step": 1.0, "one_step": False},
        {"attack_steps": (2, 4, 8)},
    ),
    ("smoothmix", "jeong-2021-smoothmix:cifar-10", THREE): (
        {**SMOOTHMIX, **LONG, "draws": 2, "batch": 128, "learning_rate": 0.1, "one_step": False},
        {"step": (0.5, 1.0, 2.0), "attack_steps": (4, 4, 4)},
    ),
    ("smoothmix", "sun-2025:cifar-10", THREE): ({**SMOOTHMIX, **LONG}, {"one_step": (False, True, True)}),
    ("cat-rs", "jeong-2023-catrs:mnist", (0.25,)): ({**CATRS_CIFAR, "learning_rate": 0.01}, {"high_weight": (1.0,)}),
    ("cat-rs", "jeong-2023-catrs:cifar-10", THREE): ({**CATRS_CIFAR, **LONG}, {"high_weight": (0.5, 1.0, 2.0)}),
    ("cat-rs", "jeong-2023-catrs:cifar-100", THREE): ({**CATRS_CIFAR, **LONG}, {"high_weight": (0.5, 1.0, 2.0)}),
    ("cat-rs", "jeong-2023-catrs:imagenet", (1.0,)): (
        {**CATRS, "draws": 2, "attack_steps": 1, "batch": 128, "epochs": 90},
        {"milestones": ((30, 60, 85),), "high_weight": (2.0,)},
    ),
    **{
        ("acr", f"{paper}:cifar-10", THREE): (
            {**ACR, **LONG, "draws": 4, "batch": 64, "weigh_every": 10, "discard_draws": 100, "weigh_floor": floor},
            {
                **{"begin": (60, 70, 60), "discard_below": (0.5, 0.4, 0.4)},
                **{"sphere_steps": (3, 6, 4), "sphere_step": (0.25, 0.25, 0.5)},
            },
        )
        for paper, floor in (("sun-2025", 0.5610780527448468), ("sun-2025-printed", 0.75))
    },
    ("acr", "sun-2025:imagenet", THREE): (
        {**ACR, **SHORT, "begin": 0, "weigh_every": 0, "discard_draws": 50},
        {
            **{"draws": (1, 1, 2), "discard_below": (0.2, 0.2, 0.1), "batch": (256, 256, 128)},
            **{"sphere_steps": (2, 2, 1), "sphere_step": (0.5, 1.0, 2.0)},
        },
    ),
}


def numbers_of(made):
    return {each.name: getattr(made, each.name) for each in fields(made)} | (asdict(made.own) if made.own else {})


@pytest.mark.parametrize(("method", "preset", "sigmas"), PRESETS)
def test_presets_are_the_tables_of_the_papers_and_of_their_code(method, preset, sigmas):
    same, rows = PRESETS[method, preset, sigmas]
    assert presets(method)[preset] == sigmas
    for place, sigma in enumerate(sigmas):
        expected = {**same, **{name: row[place] for name, row in rows.items()}, "sigma": sigma}
        found = numbers_of(recipe(method, preset=preset, sigma=sigma))
        assert {name: found[name] for name in expected} == expected
        usual = {"cifar-10": "crop+flip", "cifar-100": "crop+flip", "imagenet": "resized-crop+flip"}
        assert found["augment"] == usual.get(preset.partition(":")[2], "none")


def test_the_weights_of_the_code_of_sun_et_al_and_those_in_print_are_two_presets():
    steepest = {}
    for paper in ("sun-2025", "sun-2025-printed"):
        own = recipe("acr", preset=f"{paper}:cifar-10").own
        weights = radius_weights(np.array([12, 16]), own.weigh_draws, own.weigh_alpha, own.weigh_floor)
        assert weights[0] == pytest.approx(1.0)
        steepest[paper] = weights[1]
    assert steepest == {"sun-2025": pytest.approx(7.206, abs=1e-3), "sun-2025-printed": pytest.approx(1.642, abs=1e-3)}


def test_the_grid_of_fine_tuning_is_that_of_appendices_i3_and_j41():
    brier, acce = (preset_grid(method, "emde-2024:cifar-10") for method in ("brier-act", "acce-act"))
    assert len(brier) == len(acce) == 16
    assert preset_grid("smoothadv", "emde-2024:cifar-10") == brier
    every = list(product((0.01, 0.1, 1.0, 2.0), (0.01, 0.05), (1, 4)))
    assert [(each["attack_scale"], each["learning_rate"], each["attack_steps"]) for each in brier] == every
    assert {each["attack_steps"] for each in acce} <= {1, 4, 10, 20}
    assert {each["rho_growth"] for each in acce} <= {1.01, 1.05, 1.1, 1.5}
    assert len({tuple(each.values()) for each in acce}) == 16
    assert preset_grid("acce-act", "emde-2024:cifar-10") == acce != preset_grid("acce-act", "emde-2024:svhn", seed=1)
    assert len(preset_grid("acce-act", "emde-2024:imagenet")) == 6
    assert preset_grid("acr", "sun-2025:imagenet") == [{}]


@pytest.mark.parametrize(
    ("preset", "data", "found"),
    [
        ("emde-2024", "cifar-100-binary", "emde-2024:cifar-100"),
        ("emde-2024", "cifar-10-batches-bin", "emde-2024:cifar-10"),
        ("emde-2024", "Fashion_MNIST", "emde-2024:fashion-mnist"),
        ("emde-2024", "ImageNet/train", "emde-2024:imagenet"),
        ("emde-2024", "mine.npz", "emde-2024"),
        ("emde-2024:svhn", "cifar-10", "emde-2024:svhn"),
        (None, "cifar-10", None),
    ],
)
def test_the_data_set_of_a_preset_is_that_of_the_datas_name(preset, data, found):
    assert complete_name("acce-act", preset, data) == found


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
            *("catrs", {"high_weight": 1.0, "target_sigma": 0.25, "confidence": "draws", "double_from": 0}),
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
    tuned = recipe("smoothadv", preset="salman-2019:cifar-10", sigma=0.25, fine_tune=True)
    plain = recipe("smoothadv", sigma=0.25, fine_tune=True)
    assert tuned == replace(plain, augment="crop+flip", loss="draws", batch=128, attack_steps=10)
    at = {"preset": "salman-2019:cifar-10", "sigma": 0.25, "epochs": 15}
    assert recipe("at", **at).epsilon_warmup == 1
    assert recipe("at", **at, epsilon_warmup=4).epsilon_warmup == 4


def test_a_preset_of_fine_tuning_has_the_schedule_of_any_number_of_epochs():
    made = recipe("acce-act", preset="emde-2024:cifar-10", epochs=20)
    assert (made.milestones, made.epsilon_warmup, made.batch) == ((4, 8, 12, 16), 3, 2048)


def test_batches_shrink_with_the_draws_where_the_authors_cut_them():
    made = recipe("smoothadv", preset="salman-2019:cifar-10", draws=8)
    assert (made.draws, made.batch) == (8, 32)
    assert recipe("smoothadv", preset="salman-2019:cifar-10", draws=8, batch=100).batch == 100
    with pytest.raises(InputError, match="draws is 0"):
        recipe("smoothadv", preset="salman-2019:cifar-10", draws=0)


def test_what_counts_epochs_shrinks_with_them_unless_it_is_given():
    macer = {"preset": "zhai-2020-macer", "sigma": 1.0}
    short = recipe("macer", **macer, epochs=22)
    assert (short.milestones, short.own.deferred, short.own.weight) == ((10, 20), 10, 12.0)
    kept = recipe("macer", **macer, epochs=22, milestones=(3,), deferred=4)
    assert (kept.milestones, kept.own.deferred) == ((3,), 4)
    for epochs in range(2, 40):
        made = recipe("macer", **macer, epochs=epochs)
        assert all(0 < milestone < epochs for milestone in made.milestones)
        assert 0 < made.own.deferred < epochs
        made = recipe("at", preset="emde-2024:svhn", epochs=epochs)
        assert 0 < made.sigma_warmup < epochs > made.epsilon_delay + made.epsilon_warmup - 1
    assert recipe("smoothmix", sigma=0.25, preset="jeong-2021-smoothmix:mnist", epochs=18).own.mixed_warmup == 2
    own = recipe("acr", sigma=0.25, preset="sun-2025:cifar-10", epochs=15).own
    assert (own.begin, own.weigh_every) == (6, 1)
    assert recipe("acr", sigma=0.25, preset="sun-2025:cifar-10", epochs=15, begin=9).own.begin == 9
