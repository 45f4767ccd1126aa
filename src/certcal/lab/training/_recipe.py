"""Everything that decides what a training run does, as numbers that can be written down, and what was published."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast

import numpy as np

from certcal._base.checks import InputError, choice, whole_number
from certcal._base.text import did_you_mean
from certcal._base.told import Told
from certcal.attacks import ADVERSARIES, Ball
from certcal.attacks.ball import NORMS, Norm
from certcal.lab.training._augment import AUGMENTATIONS
from certcal.lab.training.parts import LOSSES, Constants
from certcal.lab.training_methods import METHODS, Method, method_named
from certcal.lab.training_presets import preset_named, preset_names

Loss = Literal["smoothed", "draws"]
Optimiser = Literal["sgd", "adam"]
Precision = Literal["float32", "bfloat16", "float16"]
Augment = Literal["none", "flip", "crop", "crop+flip", "resized-crop+flip"]

MOST_EPOCHS = 100_000
# Of the recipes from scratch; constants that count epochs are for so many.
_EPOCHS = 150


@dataclass(frozen=True)
class Recipe(Told):
    """One training run, apart from its data, its network and where it begins.

    :func:`certcal.lab.training.recipe` fills in the published numbers of a method. Epochs are counted from 0.

    Examples
    --------
    >>> Recipe("gaussian", sigma=0.5, epochs=3).learning_rate
    0.1
    >>> Recipe("gaussian", sigma=0.5, epochs=0)
    Traceback (most recent call last):
        ...
    certcal.InputError: epochs is 0; pass a whole number from 1 to 100000
    """

    method: str
    """One of :data:`certcal.lab.training.METHODS`."""
    sigma: float = 0.0
    """Standard deviation σ of the noise, in the units of the inputs; 0 trains the network itself."""
    epsilon: float = 0.0
    norm: Norm = "l2"
    box: tuple[float, float] | None = (0.0, 1.0)
    """Where adversaries may go; see :class:`certcal.attacks.Ball`."""
    draws: int = 1
    """Draws V of the noise per sample."""
    attack_steps: int = 4
    attack_scale: float = 1.0
    """T and v of the adversary, whose steps have length 2vε/T."""
    bins: int = 15
    """Of the calibration error that adversaries attack."""
    rho: float | None = None
    rho_growth: float | None = None
    assignment_rate: float | None = None
    """Of the ADMM in ``acce-act``; None for the adversary's own."""
    mix: float = 0.9
    """η of ``acce-act-star`` and ``exact-act-star``: share of the cross entropy in the loss."""
    loss: Loss | Any = "smoothed"
    """``"smoothed"`` for the cross entropy of the average over the draws, ``"draws"`` for the average of the draws', or
    an :class:`Objective` of your own."""
    epochs: int = 10
    batch: int = 256
    """Passes over the data, and the largest number of samples per step. An epoch's samples are shared evenly among as
    few steps as that allows."""
    pieces: int = 1
    """Into how many parts a batch is cut, which are worked on one after the other or in several processes. Adversaries
    and losses that look at a batch as a whole (:attr:`together`) still do, to rounding. But batch normalisation sees
    one piece at a time where it is trained (adversaries meet it in evaluation mode), and other methods draw noise for
    each piece: so this can change the result, and the number of processes does not."""
    learning_rate: float = 0.1
    milestones: tuple[int, ...] = ()
    decay: float = 0.1
    """The learning rate is multiplied by ``decay`` at the beginning of each of the epochs in ``milestones``."""
    momentum: float = 0.9
    weight_decay: float = 1e-4
    optimiser: Optimiser = "sgd"
    """As in torch; ``"adam"`` ignores the momentum."""
    sigma_warmup: int = 0
    epsilon_delay: int = 0
    epsilon_warmup: int = 0
    """Epochs over which σ rises, during which ε is 0, and over which it then rises; see :mod:`certcal.lab.training`'s
    schedules."""
    precision: Precision = "float32"
    """Of the forward and backward passes, those of the adversaries included; logarithms and weights are float32. In
    ``"float16"`` the loss is scaled, and a step whose gradients overflow is left out."""
    augment: Augment = "none"
    """What happens to the images of a batch before noise and adversary: ``"crop"`` shifts each by up to 4 pixels in
    each direction, ``"flip"`` mirrors half of them left to right, ``"crop+flip"`` does both. ``"resized-crop+flip"``
    enlarges a part of each, with 8 to 100 % of its area, as is usual for ImageNet."""
    seed: int = 0
    """Of everything random."""
    own: Any = None
    """The constants that only this method has (see :func:`certcal.lab.training.constants_of`), by name or as the
    method's own class; None for a method without any. What is left out has its default."""
    adversary: Any = None
    """Another adversary than the method's: ``"smoothadv"``, ``"brier"``, ``"acce"``, ``"ece"``, ``"exact"``,
    ``"sign"``, or a :class:`certcal.attacks.Adversary` of your own. None for the method's."""

    def __post_init__(self) -> None:
        method = method_named(self.method)
        changed: dict[str, Any] = {"method": method.name}
        for name, words in _WORDS.items():
            choice(getattr(self, name), words, name)
        _check_part(self.loss, LOSSES, "loss", "Objective, called with a View")
        if self.adversary is not None:
            protocol = "Adversary, called with target, inputs, labels, ball and keep"
            _check_part(self.adversary, ADVERSARIES, "adversary", protocol)
        for name, (least, most) in _WHOLE.items():
            remedy = f"pass a whole number from {least} to {most}"
            changed[name] = whole_number(getattr(self, name), least, most, name, remedy)
        for name, (least, most) in _REAL.items():
            changed[name] = real_number(getattr(self, name), least, most, name)
        for name in ("learning_rate", "attack_scale", "decay"):
            if changed[name] == 0:
                raise InputError(f"{name} is 0; pass a number above 0")
        for name in ("rho", "rho_growth", "assignment_rate"):
            if getattr(self, name) is not None:
                changed[name] = real_number(getattr(self, name), 0.0, math.inf, name)
        changed["box"] = _recipe_box(self.box)
        changed["milestones"] = _milestones(self.milestones)
        changed["own"] = _check_constants(method.name, self.own)
        for name, value in changed.items():
            object.__setattr__(self, name, value)
        self._fits_together(method)

    def _fits_together(self, method: Method) -> None:
        Ball(self.epsilon, self.norm, self.box)
        if self.pieces > self.batch:
            raise InputError(f"pieces is {self.pieces}, more than a batch of {self.batch}; pass fewer pieces")
        if self.sigma_warmup > self.epochs:
            raise InputError(
                f"sigma_warmup is {self.sigma_warmup} of {self.epochs} epochs, so sigma is never whole; shorten it"
            )
        if self.epsilon and self.epsilon_delay + max(self.epsilon_warmup, 1) > self.epochs:
            raise InputError(
                f"epsilon_delay {self.epsilon_delay} and epsilon_warmup {self.epsilon_warmup} leave no epoch with the "
                f"whole epsilon out of {self.epochs}; shorten them"
            )
        if "sigma" in method.unused and (self.sigma or self.epsilon):
            raise InputError(
                f"{method.name} training has no noise and no adversary; leave sigma and epsilon at 0, or take another "
                "method"
            )
        if "epsilon" in method.unused and self.epsilon:
            raise InputError(f"{method.name} training has no use for epsilon; leave it at 0, or take smoothadv")
        if method.needs_noise and not self.sigma:
            raise InputError(f"sigma is 0; {method.name} training needs noise: pass sigma, for example 0.5")
        if self.adversary is not None and method.adversary is None:
            raise InputError(
                f"{method.name} training has no adversary to replace; leave adversary out, or take smoothadv"
            )
        if method.own_loss and not isinstance(self.loss, str):
            raise InputError(f"{method.name} training has a loss of its own; leave loss out, or take gaussian")
        if self.own is not None:
            self.own.fits(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, words and lists.

        Examples
        --------
        >>> recipe = Recipe("standard", epochs=6, milestones=(2, 4))
        >>> Recipe.from_dict(recipe.to_dict()) == recipe, recipe.to_dict()["milestones"]
        (True, [2, 4])
        """
        parts = {name: _describe_part(getattr(self, name)) for name in ("loss", "adversary")}
        rest = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in parts}
        rest["own"] = None if self.own is None else asdict(self.own)
        values = rest | parts
        return json.loads(json.dumps({each.name: values[each.name] for each in fields(self)}))

    @property
    def together(self) -> bool:
        """Whether adversary or loss look at a whole batch at once, so that one sample has no loss of its own."""
        if getattr(self.own, "together", False) or getattr(self.loss, "together", False):
            return True
        chosen: Any = METHODS[self.method].adversary if self.adversary is None else self.adversary
        return bool(getattr(ADVERSARIES[chosen] if isinstance(chosen, str) else chosen, "together", False))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe that :meth:`to_dict` wrote, or part of one; what is missing has its default.

        Examples
        --------
        >>> Recipe.from_dict({"method": "standard", "epoch": 3})
        Traceback (most recent call last):
            ...
        certcal.InputError: 'epoch' is no part of a recipe; did you mean 'epochs'?
        """
        if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a recipe is a table of names and values, not a {type(values).__name__}; write one")
        check_names(values)
        if "method" not in values:
            raise InputError(f"the recipe names no method; pass one of {', '.join(METHODS)}")
        return cls(**dict(values))


def _check_part(value: Any, known: Mapping[str, Any], name: str, protocol: str) -> None:
    """Raise unless it is one of the names, or an object of your own."""
    if isinstance(value, str):
        choice(value, tuple(known), name)
    elif isinstance(value, type) or not callable(value):
        what = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise InputError(f"{name} is {what}; pass one of {', '.join(known)}, or an object that is an {protocol}")


def _describe_part(part: Any) -> Any:
    """A part of a recipe in plain values: its name, or its class with its parameters."""
    if part is None or isinstance(part, str):
        return part
    kind: Any = part if hasattr(part, "__qualname__") else part.__class__
    given: dict[str, Any] = getattr(part, "__dict__", {})
    plain = {name: value for name, value in given.items() if isinstance(value, int | float | str)}
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **plain}


def check_names(values: Mapping[str, Any], own: Sequence[str] = ()) -> None:
    """Raise unless all are parts of a recipe, or among a method's own constants."""
    known = [*(field.name for field in fields(Recipe)), *own]
    for name in values:
        if name not in known:
            if owners := [method for method in METHODS if name in constants_of(method)]:
                raise InputError(f"{name!r} is a constant of {' and '.join(owners)} only; leave it out")
            hint = did_you_mean(name, known, f"its parts are {', '.join(known)}")
            raise InputError(f"{name!r} is no part of a recipe; {hint}")


def _check_constants(method: str, given: Any) -> Any:
    kind = Constants.of.get(method)
    if kind is None:
        if given:
            raise InputError(f"own is {given!r}, but {method} has no constants of its own; leave it out")
        return None
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"own is {given!r}; pass a table of the constants of {method}")
    values = cast("Mapping[str, Any]", given or {})
    names = [field.name for field in fields(kind)]
    for name in values:
        if name not in names:
            raise InputError(f"{name!r} is no constant of {method}; its own are {', '.join(names)}")
    return kind(**values)


_WORDS: dict[str, tuple[str, ...]] = {
    "norm": NORMS,
    "optimiser": ("sgd", "adam"),
    "precision": ("float32", "bfloat16", "float16"),
    "augment": AUGMENTATIONS,
}
_WHOLE = {
    "draws": (1, 100_000),
    "attack_steps": (1, 100_000),
    "bins": (1, 100_000),
    "epochs": (1, MOST_EPOCHS),
    "batch": (1, 10_000_000),
    "pieces": (1, 65_536),
    "sigma_warmup": (0, MOST_EPOCHS),
    "epsilon_delay": (0, MOST_EPOCHS),
    "epsilon_warmup": (0, MOST_EPOCHS),
    "seed": (0, 2**63 - 1),
}
_REAL = {
    "sigma": (0.0, math.inf),
    "epsilon": (0.0, math.inf),
    "attack_scale": (0.0, math.inf),
    "mix": (0.0, 1.0),
    "learning_rate": (0.0, math.inf),
    "decay": (0.0, 1.0),
    "momentum": (0.0, 1.0),
    "weight_decay": (0.0, math.inf),
}


def real_number(value: Any, least: float, most: float, name: str) -> float:
    """A finite number in a range."""
    number = float_or_nan(value)
    if not (least <= number <= most and math.isfinite(number)):
        allowed = f"from {least:g} to {most:g}" if math.isfinite(most) else f"of at least {least:g}"
        raise InputError(f"{name} is {value!r}; pass a finite number {allowed}")
    return number


def epochs_number(value: Any, name: str) -> int:
    """A number of epochs, perhaps none."""
    return whole_number(value, 0, MOST_EPOCHS, name, f"pass a whole number of epochs from 0 to {MOST_EPOCHS}")


def float_or_nan(value: Any) -> float:
    """A float; NaN if it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _recipe_box(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    try:
        low, high = (real_number(each, -math.inf, math.inf, "box") for each in value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"box is {value!r}; pass the smallest and the largest value, or None") from None
    return low, high


def _milestones(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"milestones is {value!r}; pass a list of epochs, for example (4, 8)")
    remedy = f"pass whole numbers from 1 to {MOST_EPOCHS}"
    several = cast("list[Any]", value)
    epochs = tuple(whole_number(each, 1, MOST_EPOCHS, "milestones", remedy) for each in several)
    if list(epochs) != sorted(set(epochs)):
        raise InputError(f"milestones is {value!r}; pass increasing epochs")
    return epochs


def recipe(method: str, *, fine_tune: bool | None = None, preset: str | None = None, **changes: Any) -> Recipe:
    """The published recipe of a method, with changes.

    Numbers are those of Salman et al. (2019) for CIFAR-10 as Emde et al. changed them (appendices J.1.1, from scratch,
    and I.3, to fine-tune); the page "Training" of the documentation lists them. With fewer epochs the schedules shrink:
    warm-ups take at most a quarter of the epochs from scratch.

    Parameters
    ----------
    method
        See :class:`Recipe`.
    fine_tune
        Whether training begins with trained weights. By default true for the methods that were published that way:
        those of adversarial calibration training, with ``act`` in their names.
    preset
        Take the numbers of a paper on a data set at this ``sigma``, such as ``"sun-2025:imagenet"``; the data set may
        be left out where the paper has one. See :func:`certcal.lab.training.presets` for all of them, and
        :func:`certcal.lab.training.preset_sources` for their places. Numbers that count epochs shrink with the number
        of epochs; batches shrink with the draws where the authors' code cuts them by these.
    changes
        Any attributes of :class:`Recipe`, and any of the method's own constants
        (:func:`certcal.lab.training.constants_of`).

    Examples
    --------
    >>> recipe("brier-act", sigma=0.5, epsilon=1.0).milestones
    (4, 8)
    >>> scratch = recipe("smoothadv", sigma=0.5, epochs=12)
    >>> scratch.milestones, scratch.sigma_warmup, scratch.epsilon_delay, scratch.epsilon_warmup
    ((4, 8), 3, 3, 3)
    """
    entry = method_named(method)
    kind = Constants.of.get(entry.name)
    own_names = [] if kind is None else [field.name for field in fields(kind)]
    check_names(changes, own_names)
    flat = [each for each in changes if each in own_names]
    if changes.get("own") is None:
        changes.pop("own", None)
    elif flat:
        raise InputError(f"{flat[0]!r} and own are given; pass {flat[0]!r} inside own, or all by their names")
    tuning = entry.fine_tunes if fine_tune is None else fine_tune
    published: Mapping[str, Any] = {}
    if preset is not None:
        published, tuning = _published_numbers(entry, preset, changes, fine_tune)
    epochs = _int_if_whole(changes.get("epochs", published.get("epochs", 10 if tuning else _EPOCHS)))
    counted = isinstance(epochs, int)
    noisy = {} if "sigma" in entry.unused else {"sigma": 0.5}
    schedule = _schedule(entry, tuning, epochs if counted else 1)
    numbers: dict[str, Any] = {**schedule, **noisy, **entry.usual, **published, **changes}
    own = {each: numbers.pop(each) for each in own_names if each in numbers}
    share = epochs / published.get("epochs", _EPOCHS) if counted else 1.0
    if "milestones" in published and "milestones" not in changes:
        numbers["milestones"] = tuple(sorted({int(each * share) for each in published["milestones"]} - {0}))
    for name in ("sigma_warmup", "epsilon_delay", "epsilon_warmup"):
        if name in published and name not in changes and counted:
            numbers[name] = _shorten_epochs(published[name], share, epochs)
    if passes := numbers.pop("passes", 0):
        numbers["batch"] = changes.get("batch", max(1, passes // (_int_if_whole(numbers["draws"]) or 1)))
    if kind is not None and "own" not in changes:
        shrinking = [each for each in entry.counts_epochs if each not in changes] if counted else []
        numbers["own"] = {
            each: _shorten_epochs(value, share, epochs) if each in shrinking else value
            for each, value in {**asdict(kind()), **own}.items()
        }
    return Recipe.from_dict({**numbers, "epochs": epochs, "method": entry.name})


def presets(method: str) -> dict[str, tuple[float, ...]]:
    """The presets of a method, ``paper:data``, with the σ that there are published numbers for.

    Examples
    --------
    >>> presets("standard"), presets("consistency")["jeong-2020-consistency:imagenet"]
    ({}, (0.5, 1.0))
    """
    return {name: each.sigmas for name, each in preset_names(method).items()}


def constants_of(method: str) -> dict[str, Any]:
    """The constants that only one method has, with their defaults.

    Examples
    --------
    >>> constants_of("standard"), constants_of("cat-rs")
    ({}, {'high_weight': 1.0, 'target_sigma': 0.25, 'confidence': 'draws', 'double_from': 0})
    """
    kind = Constants.of.get(method_named(method).name)
    return {} if kind is None else asdict(kind())


def _int_if_whole(value: Any) -> Any:
    """A whole number of any type as an int; anything else as it is, for the recipe to refuse."""
    try:
        return operator.index(value)
    except TypeError:
        return value


def _published_numbers(
    method: Method, preset: Any, changes: Mapping[str, Any], fine_tune: bool | None
) -> tuple[dict[str, Any], bool]:
    """A preset's numbers, without a schedule that is not for this training; and whether that is fine-tuning."""
    name, chosen = preset_named(method.name, preset)
    sigma = changes.get("sigma", 0.5)
    if np.ndim(sigma) or sigma not in chosen.sigmas:
        levels = ", ".join(f"{each:g}" for each in chosen.sigmas)
        raise InputError(
            f"sigma is {sigma!r}, and preset {name!r} of {method.name} has constants for {levels}; pass one of "
            "these, or no preset"
        )
    if chosen.fine_tunes and fine_tune is False:
        raise InputError(
            f"preset {name!r} of {method.name} is for fine-tuning; pass the weights to begin with (start), or no preset"
        )
    numbers, tuning = chosen.numbers(sigma), chosen.fine_tunes if fine_tune is None else fine_tune
    if tuning and not chosen.fine_tunes:  # which has a schedule of its own
        left_out = ("epochs", "learning_rate", *_SCHEDULED)
    elif tuning and changes.get("epochs", numbers["epochs"]) != numbers["epochs"]:  # by rules that fit any number
        left_out = _SCHEDULED
    else:
        left_out = ()
    return {each: value for each, value in numbers.items() if each not in left_out}, tuning


def _shorten_epochs(value: int, share: float, epochs: int) -> int:
    """A number of epochs out of fewer: at least one, unless it was none, and short of all."""
    return min(max(1, round(value * share)), max(epochs - 1, 0)) if value else value


_SCHEDULED = ("milestones", "sigma_warmup", "epsilon_delay", "epsilon_warmup")


def _schedule(method: Method, tuning: bool, epochs: int) -> dict[str, Any]:
    """How learning rate, σ and ε change, where ε means something."""
    moves = "epsilon" not in method.unused
    if tuning:
        return {
            "learning_rate": 0.01,
            "milestones": tuple(range(4, epochs, 4)),
            "epsilon_warmup": min(3, max(epochs, 1)) if moves else 0,
        }
    warm = min(8, epochs // 4)
    return {
        "learning_rate": 0.1,
        "milestones": tuple(sorted({third for third in (epochs // 3, 2 * epochs // 3) if third})),
        "sigma_warmup": 0 if "sigma" in method.unused else warm,
        **({"epsilon_delay": warm, "epsilon_warmup": warm, "attack_steps": 2} if moves else {}),
    }
