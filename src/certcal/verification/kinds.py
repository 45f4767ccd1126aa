"""What a verifier is, and which kind of verifier takes which model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.told import Told
from certcal.verification.boxes import BoxedRows

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Verified(Told):
    """What a verifier found about each sample of a region."""

    lower: Floats
    upper: Floats
    """An interval that holds the model's own answer at every input of the region: of two classes the score of class 1,
    of more the confidence of the predicted class."""
    certified: NDArray[np.bool_]
    """Where the predicted class cannot change; true everywhere for a binary score, which has no class to keep."""
    reached_lower: Floats
    reached_upper: Floats
    """The smallest and the largest of the model's own answers that an attack found inside the region. They lie in the
    interval, with the answer at the sample itself between them."""
    flipped: NDArray[np.bool_]
    """Where an attack changed the predicted class; false everywhere for a binary score."""


class Verifier(Protocol):
    """A model whose answers can be bounded over a region."""

    @property
    def description(self) -> str:
        """A few words for people, such as "XGBoost, 100 trees"."""
        ...

    @property
    def method(self) -> str:
        """How bounds are found, in a few words, such as "reachable leaves"."""
        ...

    @property
    def classes(self) -> int:
        """Number of classes."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features that the model was fitted on; empty where it stores none."""
        ...

    def predict(self, rows: NDArray[Any]) -> Floats:
        """The model's own probabilities, a row per sample and a column per class."""
        ...

    def verify(self, region: BoxedRows, predicted: NDArray[np.int64], *, budget: int, attack: bool) -> Verified:
        """Bound the answers over a region, and attack inside it; sound whatever the budget."""
        ...


@dataclass(frozen=True)
class Kind:
    """A kind of verifier."""

    name: str
    """Such as "trees"."""
    accepts: Callable[[Any], bool]
    """Whether it takes a model: an object, or what :func:`certcal.models.load` and ``wrap`` have made."""
    make: Callable[[Any], Verifier]
    """Makes a verifier from such a model; what it needs loads then."""
    tabular: bool = False
    """Whether rows are float64 with NaN for what is missing, as tables have them; else float32 of any shape."""


def inside(model: Any) -> Any:
    """The estimator or Booster in what :func:`certcal.models.wrap` made of it; any other object as it is."""
    own = type(model).__module__.startswith("certcal.")  # estimators have parameters of these names
    return getattr(model, "estimator", getattr(model, "booster", model)) if own else model


def _is_tree_ensemble(model: Any) -> bool:
    inner = inside(model)
    library = type(inner).__module__.partition(".")[0]
    return library in ("xgboost", "lightgbm", "sklearn")


def _of_trees(model: Any) -> Verifier:
    from certcal.verification.trees import tree_verifier

    return tree_verifier(model)


def _is_network(model: Any) -> bool:
    return hasattr(model, "module") or any(kind.__module__ == "torch.nn.modules.module" for kind in type(model).__mro__)


def _of_network(model: Any) -> Verifier:
    from certcal.verification.networks import network_verifier

    return network_verifier(model)


KINDS: Mapping[str, Kind] = {
    each.name: each
    for each in (
        Kind("networks", _is_network, _of_network),
        Kind("trees", _is_tree_ensemble, _of_trees, tabular=True),
    )
}


def kind_of(model: Any) -> Kind:
    """The kind of verifier that takes a model."""
    for kind in KINDS.values():
        if kind.accepts(model):
            return kind
    what = getattr(model, "description", type(model).__name__)
    raise InputError(
        f"{what} cannot be verified",
        argument="model",
        remedy="give a tree ensemble of scikit-learn, XGBoost or LightGBM, or a torch network "
        "of linear layers and ReLU; of any other model give intervals of your own verifier to certify",
    )


def verifier_of(model: Any) -> Verifier:
    """The verifier of a model.

    Parameters
    ----------
    model
        A fitted ensemble of scikit-learn, XGBoost or LightGBM, a torch module, or what :func:`certcal.models.load` and
        :func:`certcal.models.wrap` make of one.

    Examples
    --------
    >>> verifier_of(abs)
    Traceback (most recent call last):
        ...
    certcal.InputError: model: builtin_function_or_method cannot be verified; give a tree ensemble of
    scikit-learn, XGBoost or LightGBM, or a torch network of linear layers and ReLU; of any other model give intervals
    of your own verifier to certify
    """
    return kind_of(model).make(model)
