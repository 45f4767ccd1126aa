"""The numbers of the papers, per method."""

from __future__ import annotations

import operator
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from certcal._checks import InputError
from certcal.training._own import own_class
from certcal.training._recipe import Recipe, check_names, known_method

# Attack a whole batch at once, for which a large one is advisable.
_DISTRIBUTIONAL = ("acce-act", "acce-act-star", "exact-act", "exact-act-star", "exact-act-ahead")
_ADVERSARIAL = ("smoothadv", "brier-act", *_DISTRIBUTIONAL)


# Of the recipes from scratch; constants that count epochs are for so many.
_EPOCHS = 150


def recipe(method: str, *, fine_tune: bool | None = None, preset: str | None = None, **changes: Any) -> Recipe:
    """The published recipe of a method, with changes.

    From scratch these are Salman et al. (2019)'s for CIFAR-10 as Emde et al. changed them for Fashion-MNIST (appendix
    J.1.1): 150 epochs of SGD in batches of 256 with learning rate 0.1, momentum 0.9 and weight decay 0.0001, a tenth of
    the learning rate after every third of the epochs, σ rising over 8 epochs, ε zero for 8 epochs and rising over 8.
    Fine-tuning (appendix I.3) takes 10 epochs with ε whole in the third, learning rate 0.01, a tenth of it every 4
    epochs, and batches of 256, or 2048 for adversaries of the calibration error. With fewer epochs the schedules
    shrink: warm-ups take at most a quarter of the epochs from scratch.

    Parameters
    ----------
    method
        See :class:`Recipe`.
    fine_tune
        Whether training begins with trained weights. By default true for the methods that were published that way
        (``brier-act``, ``acce-act``, ``acce-act-star``, ``exact-act``, ``exact-act-star``,
        ``exact-act-ahead``).
    preset
        Take the constants that were published for a data set, such as ``"cifar-10"``, at this ``sigma``; see
        :func:`certcal.training.presets`. Those that count epochs shrink with the number of epochs.
    changes
        Any attributes of :class:`Recipe`, and any of the method's own constants
        (:func:`certcal.training.constants_of`).

    Examples
    --------
    >>> recipe("brier-act", sigma=0.5, epsilon=1.0).milestones
    (4, 8)
    >>> scratch = recipe("smoothadv", sigma=0.5, epochs=12)
    >>> scratch.milestones, scratch.sigma_warmup, scratch.epsilon_delay, scratch.epsilon_warmup
    ((4, 8), 3, 3, 3)
    """
    name = known_method(method)
    kind = own_class(name)
    own_names = [] if kind is None else [field.name for field in fields(kind)]
    check_names(changes, own_names)
    flat = [each for each in changes if each in own_names]
    if changes.get("own") is None:
        changes.pop("own", None)
    elif flat:
        raise InputError(f"{flat[0]!r} and own are given; pass {flat[0]!r} inside own, or all by their names")
    published = {} if preset is None else _published(name, preset, changes.get("sigma", 0.5))
    tuning = name in _ADVERSARIAL[1:] if fine_tune is None else fine_tune
    epochs = _whole(changes.get("epochs", 10 if tuning else published.get("epochs", _EPOCHS)))
    schedule = _schedule(name, tuning, epochs if isinstance(epochs, int) else 1)
    numbers = {**schedule, **_common(name), **published, **changes}
    own = {each: numbers.pop(each) for each in own_names if each in numbers}
    share = epochs / published.get("epochs", _EPOCHS) if isinstance(epochs, int) else 1.0
    if "milestones" in published and "milestones" not in changes:
        numbers["milestones"] = tuple(sorted({int(each * share) for each in published["milestones"]} - {0}))
    if kind is not None and "own" not in changes:
        given = {**asdict(kind()), **own}
        numbers["own"] = {
            each: _shrunk(value, share, epochs) if each in kind.EPOCHS and each not in changes else value
            for each, value in given.items()
        }
    return Recipe.from_dict({**numbers, "epochs": epochs, "method": name})


def presets(method: str) -> dict[str, tuple[float, ...]]:
    """The presets of a method: for each data set, the σ that there are published constants for.

    Examples
    --------
    >>> presets("gaussian")
    {}
    """
    kind = own_class(known_method(method))
    return {} if kind is None else {name: tuple(levels) for name, levels in kind.PUBLISHED.items()}


def _whole(value: Any) -> Any:
    """A whole number of any type as an int; anything else as it is, for the recipe to refuse."""
    try:
        return operator.index(value)
    except TypeError:
        return value


def _published(method: str, preset: Any, sigma: Any) -> dict[str, Any]:
    known = presets(method)
    if not isinstance(preset, str) or preset not in known:
        there = f"{method} has {', '.join(map(repr, known))}" if known else f"{method} has none; leave it out"
        raise InputError(f"preset is {preset!r}, which is unknown: {there}")
    if np.ndim(sigma) or sigma not in known[preset]:
        levels = ", ".join(f"{each:g}" for each in known[preset])
        raise InputError(
            f"sigma is {sigma!r}, and preset {preset!r} of {method} has constants for {levels}; pass one of these, or "
            "no preset"
        )
    kind = own_class(method)
    assert kind is not None
    return dict(kind.PUBLISHED[preset][sigma])


def _shrunk(value: int, share: float, epochs: Any) -> int:
    """A number of epochs out of fewer: at least one, unless it was none, and short of all."""
    if not value or not isinstance(epochs, int):
        return value
    return min(max(1, round(value * share)), max(epochs - 1, 0))


def _common(name: str) -> dict[str, Any]:
    noisy: dict[str, Any] = {} if name == "standard" else {"sigma": 0.5}
    if name in _ADVERSARIAL:
        noisy |= {"epsilon": 1.0, "draws": 2}
    kind = own_class(name)
    usual: dict[str, Any] = {} if kind is None else dict(kind.RECIPE)
    return {**noisy, "batch": 2048 if name in _DISTRIBUTIONAL else 256, **usual}


def _schedule(name: str, tuning: bool, epochs: int) -> dict[str, Any]:
    adversarial = name in (*_ADVERSARIAL, "cat-rs")
    if tuning:
        return {
            "learning_rate": 0.01,
            "milestones": tuple(range(4, epochs, 4)),
            "epsilon_warmup": min(3, max(epochs, 1)) if adversarial else 0,
        }
    warm = min(8, epochs // 4)
    thirds = {third for third in (epochs // 3, 2 * epochs // 3) if third}
    return {
        "learning_rate": 0.1,
        "milestones": tuple(sorted(thirds)),
        "sigma_warmup": 0 if name == "standard" else warm,
        **({"epsilon_delay": warm, "epsilon_warmup": warm, "attack_steps": 2} if adversarial else {}),
    }
