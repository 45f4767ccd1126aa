"""The training methods, one entry each: facts alone, so that the command line can list them without loading torch.

What a method descends on is its objective: the recipe's loss, or a class of its own in ``certcal.lab.training`` that
names the entry it belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from certcal._base.checks import InputError

Numbers = Mapping[str, Any]

_SIGMAS = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Method:
    """What a training method needs, and the numbers that were published for it."""

    name: str  # what it is called
    help: str  # what it trains on, in a few words
    aliases: tuple[str, ...] = ()
    # The adversary that it trains against, by its name in :data:`certcal.attacks.ADVERSARIES`; None for none.
    adversary: str | None = None
    mixes: bool = False  # whether the calibration error that the adversary reaches is part of the loss
    sums: bool = False  # whether it is then the sum over the batch, and not the mean
    needs_noise: bool = False  # whether it makes no sense without noise
    unused: tuple[str, ...] = ()  # hyperparameters that mean nothing to it
    own_loss: bool = False  # whether its loss cannot be replaced
    fine_tunes: bool = False  # whether it was published for fine-tuning
    usual: Numbers = field(default_factory=dict[str, Any])  # hyperparameters that differ from those of all methods
    counts_epochs: tuple[str, ...] = ()  # its own constants that count epochs, out of 150
    # Hyperparameters and constants by data set and σ.
    published: Mapping[str, Mapping[float, Numbers]] = field(default_factory=dict[str, Mapping[float, Numbers]])


def _noisy(name: str, help: str, unused: tuple[str, ...] = ("epsilon", "norm", "attack_steps"), **facts: Any) -> Method:
    """A method that trains under noise without an adversary."""
    return Method(name, help, needs_noise=True, unused=unused, **facts)


def _adversarial(name: str, help: str, adversary: str, batch: int = 256, **facts: Any) -> Method:
    """A method that trains on what an adversary makes of a batch, which is large where it attacks all of it at once."""
    usual = {"epsilon": 1.0, "draws": 2, "batch": batch}
    published = {"cifar-10": dict.fromkeys(_COHEN_SIGMAS, _CIFAR if facts.get("fine_tunes") else _SALMAN)}
    return Method(name, help, adversary=adversary, usual=usual, published=published, **facts)


def _by_sigma(rows: Mapping[str, tuple[Any, ...]], **same: Any) -> dict[float, Numbers]:
    """Constants at the three σ of most tables, from rows with a column for each."""
    return {level: {**same, **{name: row[k] for name, row in rows.items()}} for k, level in enumerate(_SIGMAS)}


# Everybody trains on CIFAR's images like this: the code of Cohen et al., and of those below, who took it over.
_CIFAR: Numbers = {"augment": "crop+flip"}
_IMAGENET: Numbers = {"augment": "resized-crop+flip"}

# Cohen et al.'s code and the commands in its experiments.MD, for ResNet-110 and ResNet-50.
_COHEN: Numbers = {"epochs": 90, "batch": 400, "learning_rate": 0.1, "milestones": (30, 60), "sigma_warmup": 0}
_COHEN_CIFAR: Numbers = {**_COHEN, **_CIFAR}
_COHEN_IMAGENET: Numbers = {**_COHEN, **_IMAGENET}

# Salman et al.'s commands: only ε rises. Their draws, steps and ε vary. Emde et al. fine-tune what these train.
_SALMAN: Numbers = {**_CIFAR, "epochs": 150, "sigma_warmup": 0, "epsilon_delay": 0, "epsilon_warmup": 10}
_COHEN_SIGMAS = (0.12, *_SIGMAS)

# Zhai et al.'s code, whose defaults are those of CIFAR-10 at σ = 0.25; for MNIST, Jeong and Shin's.
_MACER: Numbers = {"margin": 8.0, "sharpness": 16.0, "draws": 16, "learning_rate": 0.01, "sigma_warmup": 0}
_MACER_CIFAR: Numbers = {**_CIFAR, "epochs": 440, "batch": 64, "milestones": (200, 400), "weight_decay": 5e-4}

# A batch of 256 is cut into as many steps as there are draws, so that each sees 256 noisy inputs.
_CONSISTENCY: Numbers = {"draws": 2, "loss": "draws", "batch": 128, "sigma_warmup": 0, "entropy": 0.5}
_CONSISTENCY_CIFAR: Numbers = {**_CONSISTENCY, **_CIFAR, "epochs": 150, "learning_rate": 0.1}
_CONSISTENCY_IMAGENET: Numbers = {
    **{**_CONSISTENCY, **_IMAGENET, "batch": 100},
    **{"epochs": 90, "learning_rate": 0.1, "weight": 5.0},
}

# Batches of 256 forward passes per step, as in the authors' code: so many samples, times the draws. No warm-up of σ.
_SMOOTHMIX_MNIST: Numbers = {"draws": 4, "batch": 64, "epochs": 90, "learning_rate": 0.01, "sigma_warmup": 0}
_SMOOTHMIX_CIFAR: Numbers = {**_CIFAR, "draws": 2, "batch": 128, "epochs": 150, "learning_rate": 0.1, "sigma_warmup": 0}

# Nothing rises in the authors' code. Batches of 256 forward passes per step: so many samples, times the draws.
_CATRS: Numbers = {
    **{"sigma_warmup": 0, "epsilon_delay": 0, "epsilon_warmup": 0, "epsilon": 1.0},
    **{"draws": 4, "attack_steps": 4, "batch": 64, "epochs": 150, "learning_rate": 0.1},
}
_CATRS_IMAGENET: Numbers = {"draws": 2, "attack_steps": 1, "batch": 128, "epochs": 90, "milestones": (30, 60, 85)}
_CATRS_CIFAR = _by_sigma({"high_weight": (0.5, 1.0, 2.0)}, **_CATRS, **_CIFAR)

_CLEAN = ("sigma", "epsilon", "norm", "draws", "attack_steps")

_ENTRIES = (
    Method("standard", "clean inputs", unused=_CLEAN),
    _noisy(
        "gaussian",
        "Gaussian noise",
        published={
            "cifar-10": dict.fromkeys(_COHEN_SIGMAS, _COHEN_CIFAR),
            "imagenet": dict.fromkeys(_SIGMAS, _COHEN_IMAGENET),
        },
    ),
    _adversarial(
        "smoothadv",
        "adversaries of the smoothed classifier's labels (AT; also called at)",
        "smoothadv",
        aliases=("at",),
    ),
    _adversarial("brier-act", "adversaries of the Brier score", "brier", fine_tunes=True),
    _adversarial(
        "acce-act",
        "adversaries of the certified calibration error, by ADMM in the batch",
        "acce",
        2048,
        fine_tunes=True,
    ),
    _adversarial(
        "acce-act-star",
        "acce-act with the calibration error of its adversaries in the loss",
        "acce",
        2048,
        fine_tunes=True,
        mixes=True,
    ),
    _adversarial(
        "acce-act-star-sum",
        "acce-act-star with the error as a sum over the batch, for which its shares were published",
        "acce",
        2048,
        fine_tunes=True,
        mixes=True,
        sums=True,
    ),
    _adversarial(
        "exact-act",
        "adversaries of the calibration error itself, with the exact signs of its bins",
        "ece",
        2048,
        fine_tunes=True,
    ),
    _adversarial(
        "exact-act-star",
        "exact-act with the calibration error of its adversaries in the loss",
        "ece",
        2048,
        fine_tunes=True,
        mixes=True,
    ),
    _adversarial(
        "exact-act-ahead",
        "adversaries guided by the exact worst case of the calibration error",
        "exact",
        2048,
        fine_tunes=True,
    ),
    _noisy(
        "macer",
        "Gaussian noise, with a larger certified radius where the prediction is right",
        own_loss=True,
        usual={"draws": 16},
        counts_epochs=("deferred",),
        published={
            "mnist": _by_sigma({"weight": (16.0, 16.0, 6.0)}, **_MACER, deferred=30, epochs=90, batch=256),
            "cifar-10": _by_sigma({"weight": (12.0, 4.0, 12.0), "deferred": (0, 0, 200)}, **_MACER | _MACER_CIFAR),
        },
    ),
    _noisy(
        "consistency",
        "Gaussian noise, with the same answer under every noise sample",
        own_loss=True,
        usual={"draws": 2, "loss": "draws"},
        published={
            "mnist": _by_sigma({"weight": (10.0, 5.0, 5.0)}, **_CONSISTENCY, epochs=90, learning_rate=0.01),
            "cifar-10": _by_sigma({"weight": (20.0, 10.0, 10.0)}, **_CONSISTENCY_CIFAR),
            "imagenet": {0.5: _CONSISTENCY_IMAGENET, 1.0: {**_CONSISTENCY_IMAGENET, "entropy": 0.1}},
        },
    ),
    _noisy(
        "smoothmix",
        "Gaussian noise, with less confidence on the way to an adversarial input",
        unused=("epsilon", "norm"),
        own_loss=True,
        usual={"draws": 2, "attack_steps": 4, "loss": "draws"},
        counts_epochs=("mixed_warmup",),
        published={
            "mnist": _by_sigma({"attack_steps": (2, 4, 8)}, **_SMOOTHMIX_MNIST, step=1.0),
            "cifar-10": _by_sigma({"step": (0.5, 1.0, 2.0)}, **_SMOOTHMIX_CIFAR, attack_steps=4),
        },
    ),
    Method(
        "cat-rs",
        "as many noise samples as fit the confidence, the worst ones where it is high",
        aliases=("catrs",),
        needs_noise=True,
        own_loss=True,
        usual={"draws": 4, "epsilon": 1.0, "attack_steps": 4, "loss": "draws"},
        published={
            "mnist": {0.25: {**_CATRS, "learning_rate": 0.01, "high_weight": 1.0}},
            "cifar-10": _CATRS_CIFAR,
            "cifar-100": _CATRS_CIFAR,
            "imagenet": {1.0: {**_CATRS, **_IMAGENET, **_CATRS_IMAGENET, "high_weight": 2.0}},
        },
    ),
    _noisy(
        "acr",
        "attacked noise on easy samples, which the average certified radius rewards",
        usual={"draws": 4, "loss": "draws"},
        counts_epochs=("begin", "weigh_every"),
        published={
            "cifar-10": _by_sigma(
                {
                    "begin": (60, 70, 60),
                    "discard_below": (0.5, 0.4, 0.4),
                    "sphere_steps": (3, 6, 4),
                    "sphere_step": (0.25, 0.25, 0.5),
                },
                draws=4,
                batch=64,
                sigma_warmup=0,
                **_CIFAR,
            ),
            "imagenet": _by_sigma(
                {
                    "draws": (1, 1, 2),
                    "discard_below": (0.2, 0.2, 0.1),
                    "sphere_steps": (2, 2, 1),
                    "sphere_step": (0.5, 1.0, 2.0),
                    "batch": (256, 256, 128),
                },
                begin=0,
                discard_draws=50,
                weigh_every=0,
                epochs=90,
                sigma_warmup=0,
                **_IMAGENET,
            ),
        },
    ),
    Method("focal", "clean inputs, with the focal loss", unused=_CLEAN, own_loss=True),
    Method("mmce", "clean inputs, with the calibration error of the batch (MMCE)", unused=_CLEAN, own_loss=True),
    Method("perturbed", "clean inputs of two classes, whose scores will be perturbed", unused=_CLEAN, own_loss=True),
)

METHODS: dict[str, Method] = {each.name: each for each in _ENTRIES}


def method_named(method: Any) -> Method:
    """The entry of a method, also by another name of it."""
    name = str(method).lower().replace("_", "-")
    for each in METHODS.values():
        if name in (each.name, *each.aliases):
            return each
    raise InputError(f"method is {method!r}; pass one of {', '.join(METHODS)}")
