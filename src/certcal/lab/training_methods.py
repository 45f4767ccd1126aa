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


@dataclass(frozen=True)
class Method:
    """What a training method needs; what was published for it is in ``training_presets``."""

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


def _noisy(name: str, help: str, unused: tuple[str, ...] = ("epsilon", "norm", "attack_steps"), **facts: Any) -> Method:
    """A method that trains under noise without an adversary."""
    return Method(name, help, needs_noise=True, unused=unused, **facts)


def _adversarial(name: str, help: str, adversary: str, batch: int = 256, **facts: Any) -> Method:
    """A method that trains on what an adversary makes of a batch, which is large where it attacks all of it at once."""
    return Method(name, help, adversary=adversary, usual={"epsilon": 1.0, "draws": 2, "batch": batch}, **facts)


_CLEAN = ("sigma", "epsilon", "norm", "draws", "attack_steps")

_ENTRIES = (
    Method("standard", "clean inputs", unused=_CLEAN),
    _noisy("gaussian", "Gaussian noise"),
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
    _adversarial(
        "sign-act",
        "adversaries that move all confidences one way: acce-act without ADMM",
        "sign",
        2048,
        fine_tunes=True,
    ),
    _noisy(
        "macer",
        "Gaussian noise, with a larger certified radius where the prediction is right",
        own_loss=True,
        usual={"draws": 16},
        counts_epochs=("deferred",),
    ),
    _noisy(
        "consistency",
        "Gaussian noise, with the same answer under every noise sample",
        own_loss=True,
        usual={"draws": 2, "loss": "draws"},
    ),
    _noisy(
        "smoothmix",
        "Gaussian noise, with less confidence on the way to an adversarial input",
        unused=("epsilon", "norm"),
        own_loss=True,
        usual={"draws": 2, "attack_steps": 4, "loss": "draws"},
        counts_epochs=("mixed_warmup",),
    ),
    Method(
        "cat-rs",
        "as many noise samples as fit the confidence, the worst ones where it is high",
        aliases=("catrs",),
        needs_noise=True,
        own_loss=True,
        usual={"draws": 4, "epsilon": 1.0, "attack_steps": 4, "loss": "draws"},
        counts_epochs=("double_from",),
    ),
    _noisy(
        "acr",
        "attacked noise on easy samples, which the average certified radius rewards",
        usual={"draws": 4, "loss": "draws"},
        counts_epochs=("begin", "weigh_every"),
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
