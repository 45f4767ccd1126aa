"""Everything that decides what a training run does, as numbers that can be written down."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast

from certcal._checks import InputError, choice, whole_number
from certcal._training_methods import ALIASES, METHODS, NOISY, WITHOUT_BALL
from certcal.attacks import Ball
from certcal.attacks.ball import NORMS, Norm

Loss = Literal["smoothed", "draws"]
Optimiser = Literal["sgd", "adam"]
Precision = Literal["float32", "bfloat16"]

MOST_EPOCHS = 100_000
# Which adversary a method trains against; those that attack a whole batch; methods that mix its measure into the loss.
ADVERSARY_OF = {
    "smoothadv": "smoothadv",
    "brier-act": "brier",
    **dict.fromkeys(("acce-act", "acce-act-star"), "acce"),
    **dict.fromkeys(("exact-act", "exact-act-star"), "ece"),
    "exact-act-ahead": "exact",
}
TOGETHER = ("acce", "ece", "exact")
MIXED = ("acce-act-star", "exact-act-star")
_OWN_LOSS = ("macer", "consistency", "smoothmix", "cat-rs")


@dataclass(frozen=True)
class Recipe:
    """One training run, apart from its data, its network and where it begins.

    :func:`certcal.training.recipe` fills in the published numbers of a method. Epochs are counted from 0.

    Attributes
    ----------
    method
        One of ``standard``, ``gaussian``, ``smoothadv`` (or ``at``), ``brier-act``, ``acce-act``, ``acce-act-star``,
        ``exact-act``, ``exact-act-star``, ``exact-act-ahead``, ``macer``, ``consistency``, ``smoothmix``, ``cat-rs``,
        ``acr``.
    sigma
        Standard deviation σ of the noise, in the units of the inputs; 0 trains the network itself.
    epsilon, norm, box
        Where adversaries may go; see :class:`certcal.attacks.Ball`.
    draws
        Draws V of the noise per sample.
    attack_steps, attack_scale
        T and v of the adversary, whose steps have length 2vε/T.
    bins
        Of the calibration error that adversaries attack.
    rho, rho_growth, assignment_rate
        Of the ADMM in ``acce-act``; None for the adversary's own.
    mix
        η of ``acce-act-star`` and ``exact-act-star``: share of the cross entropy in the loss.
    loss
        ``"smoothed"`` for the cross entropy of the average over the draws, ``"draws"`` for the average of the draws',
        or an :class:`Objective` of your own.
    epochs, batch
        Passes over the data, and the largest number of samples per step. An epoch's samples are shared evenly among as
        few steps as that allows.
    pieces
        Into how many parts a batch is cut. Adversaries and batch normalisation see one piece at a time, gradients are
        added in the order of the pieces; so this changes the result, and the number of workers does not.
    learning_rate, milestones, decay
        The learning rate is multiplied by ``decay`` at the beginning of each of the epochs in ``milestones``.
    momentum, weight_decay, optimiser
        As in torch; ``"adam"`` ignores the momentum.
    sigma_warmup, epsilon_delay, epsilon_warmup
        Epochs over which σ rises, during which ε is 0, and over which it then rises; see
        :mod:`certcal.training`'s schedules.
    precision
        Of the forward and backward pass for the weights; adversaries are always sought in float32.
    seed
        Of everything random.
    own
        The constants that only this method has (see :func:`certcal.training.constants_of`), by name or as the method's
        own class; None for a method without any. What is left out has its default.
    adversary
        Another adversary than the method's: ``"smoothadv"``, ``"brier"``, ``"acce"``, ``"ece"``, ``"exact"``, or a
        :class:`certcal.attacks.Adversary` of your own. None for the method's.

    Examples
    --------
    >>> Recipe("gaussian", sigma=0.5, epochs=3).learning_rate
    0.1
    >>> Recipe("gaussian", sigma=0.5, epochs=0)
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: epochs is 0; pass a whole number from 1 to 100000
    """

    method: str
    sigma: float = 0.0
    epsilon: float = 0.0
    norm: Norm = "l2"
    box: tuple[float, float] | None = (0.0, 1.0)
    draws: int = 1
    attack_steps: int = 4
    attack_scale: float = 1.0
    bins: int = 15
    rho: float | None = None
    rho_growth: float | None = None
    assignment_rate: float | None = None
    mix: float = 0.9
    loss: Loss | Any = "smoothed"
    epochs: int = 10
    batch: int = 256
    pieces: int = 1
    learning_rate: float = 0.1
    milestones: tuple[int, ...] = ()
    decay: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    optimiser: Optimiser = "sgd"
    sigma_warmup: int = 0
    epsilon_delay: int = 0
    epsilon_warmup: int = 0
    precision: Precision = "float32"
    seed: int = 0
    own: Any = None
    adversary: Any = None

    def __post_init__(self) -> None:
        changed: dict[str, Any] = {"method": known_method(self.method)}
        for name in ("norm", "optimiser", "precision"):
            choice(getattr(self, name), _WORDS[name], name)
        _part(self.loss, ("smoothed", "draws"), "loss", "Objective, called with a View")
        if self.adversary is not None:
            known = tuple(dict.fromkeys(ADVERSARY_OF.values()))
            _part(self.adversary, known, "adversary", "Adversary, called with target, inputs, labels, ball and keep")
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
        changed["box"] = _box(self.box)
        changed["milestones"] = _milestones(self.milestones)
        changed["own"] = _own(changed["method"], self.own)
        for name, value in changed.items():
            object.__setattr__(self, name, value)
        self._fits_together()

    def _fits_together(self) -> None:
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
        if self.method == "standard" and (self.sigma or self.epsilon):
            raise InputError(
                "standard training has no noise and no adversary; leave sigma and epsilon at 0, or take another method"
            )
        if self.method in WITHOUT_BALL and self.epsilon:
            raise InputError(f"{self.method} training has no use for epsilon; leave it at 0, or take smoothadv")
        if self.method in NOISY and not self.sigma:
            raise InputError(f"sigma is 0; {self.method} training needs noise: pass sigma, for example 0.5")
        if self.adversary is not None and self.method not in ADVERSARY_OF:
            raise InputError(
                f"{self.method} training has no adversary to replace; leave adversary out, or take smoothadv"
            )
        if self.method in _OWN_LOSS and not isinstance(self.loss, str):
            raise InputError(f"{self.method} training has a loss of its own; leave loss out, or take gaussian")
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
        parts = {name: _described(getattr(self, name)) for name in ("loss", "adversary")}
        rest = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in parts}
        rest["own"] = None if self.own is None else asdict(self.own)
        values = rest | parts
        return json.loads(json.dumps({each.name: values[each.name] for each in fields(self)}))

    @property
    def together(self) -> bool:
        """Whether the adversary attacks a whole batch at once, so that one sample has no loss of its own."""
        chosen = self.adversary if self.adversary is not None else ADVERSARY_OF.get(self.method)
        return chosen in TOGETHER if isinstance(chosen, str) else bool(getattr(chosen, "together", False))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe that :meth:`to_dict` wrote, or part of one; what is missing has its default.

        Examples
        --------
        >>> Recipe.from_dict({"method": "standard", "epoch": 3})
        Traceback (most recent call last):
            ...
        certcal._checks.InputError: 'epoch' is no part of a recipe; did you mean 'epochs'?
        """
        if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a recipe is a table of names and values, not a {type(values).__name__}; write one")
        check_names(values)
        if "method" not in values:
            raise InputError(f"the recipe names no method; pass one of {', '.join(METHODS)}")
        return cls(**dict(values))


def _part(value: Any, known: tuple[str, ...], name: str, protocol: str) -> None:
    """Raise unless it is one of the names, or an object of your own."""
    if isinstance(value, str):
        choice(value, known, name)
    elif isinstance(value, type) or not callable(value):
        what = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise InputError(f"{name} is {what}; pass one of {', '.join(known)}, or an object that is an {protocol}")


def _described(part: Any) -> Any:
    """A part of a recipe in plain values: its name, or its class with its parameters."""
    if part is None or isinstance(part, str):
        return part
    kind: Any = part if hasattr(part, "__qualname__") else part.__class__
    given: dict[str, Any] = getattr(part, "__dict__", {})
    plain = {name: value for name, value in given.items() if isinstance(value, int | float | str)}
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **plain}


def check_names(values: Mapping[str, Any], own: Sequence[str] = ()) -> None:
    """Raise unless all are parts of a recipe, or among a method's own constants."""
    from difflib import get_close_matches

    from certcal.training._own import constants_of

    known = [*(field.name for field in fields(Recipe)), *own]
    for name in values:
        if name not in known:
            owners = [method for method in METHODS if name in constants_of(method)]
            if owners:
                raise InputError(f"{name!r} is a constant of {' and '.join(owners)} only; leave it out")
            near = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"its parts are {', '.join(known)}"
            raise InputError(f"{name!r} is no part of a recipe; {hint}")


def _own(method: str, given: Any) -> Any:
    """A method's own constants, checked."""
    from certcal.training._own import own_class

    kind = own_class(method)
    if kind is None:
        if given:
            raise InputError(f"own is {given!r}, but {method} has no constants of its own; leave it out")
        return None
    if isinstance(given, kind):
        return given
    if given is None:
        return kind()
    if not isinstance(given, Mapping):
        raise InputError(f"own is {given!r}; pass a table of the constants of {method}")
    values = cast("Mapping[str, Any]", given)
    names = [field.name for field in fields(kind)]
    for name in values:
        if name not in names:
            raise InputError(f"{name!r} is no constant of {method}; its own are {', '.join(names)}")
    return kind(**values)


def known_method(method: Any) -> str:
    """The method's own name, also for an alias."""
    name = str(method).lower().replace("_", "-")
    name = ALIASES.get(name, name)
    if name not in METHODS:
        raise InputError(f"method is {method!r}; pass one of {', '.join(METHODS)}")
    return name


_WORDS: dict[str, tuple[str, ...]] = {
    "norm": NORMS,
    "optimiser": ("sgd", "adam"),
    "precision": ("float32", "bfloat16"),
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
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (least <= number <= most and math.isfinite(number)):
        allowed = f"from {least:g} to {most:g}" if math.isfinite(most) else f"of at least {least:g}"
        raise InputError(f"{name} is {value!r}; pass a finite number {allowed}")
    return number


def _box(value: Any) -> tuple[float, float] | None:
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
