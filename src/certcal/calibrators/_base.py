"""What every calibrator is: parameters as scikit-learn has them, a fitted state, and both as plain values for JSON.

scikit-learn's ``BaseEstimator`` is not the base class: deriving from it imports scikit-learn, an optional extra that
takes more than a second to load, before anything can be fitted. The few methods that it has are written here, and
scikit-learn's own estimator checks are among the tests.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice, confidences, positive, same_length, score_pair, shortened
from certcal.binning import CLOSED
from certcal.calibrators._formulas import Formula

Floats = NDArray[np.float64]

INPUTS = ("logits", "probabilities")  # what scores of all classes may be
MOST_BINS, MOST_ADDED = 10_000_000, 1e9
_LONGEST = 300  # characters of a description; parameters that need more are cut off
_CHAINS = ("Chain", "ConfidenceChain")  # classes of earlier versions that files may still name


class NotFittedError(InputError, AttributeError):
    """A calibrator that was not fitted is asked for something.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedIsotonic
    >>> CertifiedIsotonic().transform([0.5])
    Traceback (most recent call last):
        ...
    certcal.calibrators._base.NotFittedError: this CertifiedIsotonic is not fitted; call fit first
    """


class RemovedError(InputError):
    """A document names a calibrator that earlier versions had: it is not damaged, and cannot be read."""


@cache
def _error_of_both(other: type[Exception]) -> type[NotFittedError]:
    return type("NotFittedError", (NotFittedError, other), {"__doc__": NotFittedError.__doc__})


def _not_fitted() -> type[NotFittedError]:
    """The error, which is also scikit-learn's where that is loaded: nobody else could ask for it."""
    loaded = sys.modules.get("sklearn.exceptions")
    return NotFittedError if loaded is None else _error_of_both(loaded.NotFittedError)


class Calibrator(ABC):
    """A map that is fitted to samples and then applied to others.

    Constructors keep their arguments under their own names and check nothing, as scikit-learn's do: arguments are
    checked by ``fit``. Classes register themselves by name, so that a file can name one.
    """

    _known: ClassVar[dict[str, type[Calibrator]]] = {}
    _choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"closed": CLOSED, "inputs": INPUTS}
    _kept: ClassVar[Mapping[str, tuple[float, float] | None]]
    """What a fit finds, by its names in files (attributes have an underscore behind them), and limits of numbers."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Calibrator._known[cls.__name__] = cls

    @classmethod
    def _names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def _inner(self) -> dict[str, Calibrator]:
        """Calibrators among the parameters, by what stands before ``__`` in the names of theirs."""
        found = {name: getattr(self, name) for name in self._names()}
        return {name: value for name, value in found.items() if isinstance(value, Calibrator)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor by name; with ``deep`` those of calibrators among them as ``name__inner``."""
        found = {name: getattr(self, name) for name in self._names()}
        for name, each in self._inner().items() if deep else ():
            found |= {f"{name}__{inner}": value for inner, value in each.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name; ``name__inner`` reaches into a calibrator among them."""
        for name in sorted(params, key=lambda name: "__" in name):
            own, _, rest = name.partition("__")
            if rest and own in self._inner():
                self._inner()[own].set_params(**{rest: params[name]})
            elif name in self._names():
                setattr(self, name, params[name])
            else:
                known = ", ".join(self.get_params()) or "none"
                raise InputError(f"{type(self).__name__} has no parameter {name!r}; its parameters are {known}")
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        own = self.get_params(deep=False)
        given = [
            f"{name}={value!r}" for name, value in own.items() if not _equals_default(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def unfitted(self) -> Self:
        """A new one with the same parameters, not fitted, and so are the calibrators among them."""
        inner = {name: each.unfitted() for name, each in self._inner().items()}
        return type(self)(**(self.get_params(deep=False) | inner))

    def __sklearn_tags__(self) -> Any:
        """A map of confidences is a regression of outcomes on one column; a map of scores is a classifier."""
        tags = import_module("sklearn.utils")

        scores = hasattr(self, "predict_proba")
        return tags.Tags(
            estimator_type="classifier" if scores else "regressor",
            target_tags=tags.TargetTags(required=True),
            transformer_tags=tags.TransformerTags(),
            classifier_tags=tags.ClassifierTags() if scores else None,
            regressor_tags=None if scores else tags.RegressorTags(),
            input_tags=tags.InputTags(one_d_array=not scores, two_d_array=scores),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return f"{next(iter(self._kept))}_" in vars(self)

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted()(f"this {type(self).__name__} is not fitted; call fit first")

    def _check_choice(self, name: str) -> str:
        return choice(getattr(self, name), self._choices[name], name)

    def _state(self) -> dict[str, Any]:
        """What was fitted, as numbers, texts, lists and mappings of them."""
        return {name: _as_json(getattr(self, f"{name}_")) for name in self._kept}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state that may come from a file, so everything in it is checked; InputError says what is bad."""
        for name, limits in self._kept.items():
            if limits is not None:
                setattr(self, f"{name}_", number(state, name, *limits))

    def _formula(self) -> Formula:
        """What the fitted map computes, for export to other languages."""
        raise InputError(f"a {type(self).__name__} has no formula that could be exported; apply it with certcal")

    def _take_over(self, state: Mapping[str, Any]) -> None:
        self._restore(state)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: class, parameters, and what was fitted. Floats come back as they were, bit for bit."""
        params = {name: _as_json(value) for name, value in self.get_params(deep=False).items()}
        state = self._state() if self.__sklearn_is_fitted__() else None
        return {"type": type(self).__name__, "params": params, "fitted": state}

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> Calibrator:
        """The calibrator that :meth:`to_dict` wrote; whatever else is given is refused with a sentence."""
        name, params, state = (document.get(key) for key in ("type", "params", "fitted"))
        if name in _CHAINS:
            raise RemovedError(
                f"holds a {name}, which this version no longer has; fit the maps one after the other, each to what the "
                "one before it makes of the samples, and save each, or keep them in a Pipeline of scikit-learn"
            )
        kind = Calibrator._known.get(name) if isinstance(name, str) else None
        if kind is None or inspect.isabstract(kind):
            known = ", ".join(sorted(name for name, each in Calibrator._known.items() if not inspect.isabstract(each)))
            raise InputError(f"type is {name!r}, which is not a calibrator; known are {known}")
        wanted = inspect.signature(kind).parameters
        if not isinstance(params, Mapping) or not set(params) <= set(wanted):  # pyright: ignore[reportUnknownArgumentType]
            raise InputError(f"params of {name} are {params!r}; expected some of {', '.join(wanted) or 'none'}")
        given = {key: kind._param(key, value) for key, value in cast("Mapping[str, Any]", params).items()}
        missing = [key for key, each in wanted.items() if each.default is each.empty and key not in given]
        if missing:
            raise InputError(f"params of {name} are {params!r}; {', '.join(missing)} is missing")
        made = kind(**given)
        if state is not None:
            if not isinstance(state, Mapping):
                raise InputError(f"what was fitted of {name} is {state!r}; expected a mapping")
            made._take_over(cast("Mapping[str, Any]", state))
        return made

    @staticmethod
    def _fitted_in(document: Any) -> Calibrator | None:
        found = Calibrator.from_dict(cast("Mapping[str, Any]", document)) if isinstance(document, Mapping) else None
        return found if found is not None and found.__sklearn_is_fitted__() else None

    @classmethod
    def _param(cls, name: str, value: Any) -> Any:
        """One parameter as the constructor takes it, from what a file holds.

        Only what ``fit`` takes passes, so that a sentence about the map cannot say anything else. Parameters of classes
        elsewhere are theirs to check.
        """
        if isinstance(value, Mapping) and "type" in value:
            return Calibrator.from_dict(cast("Mapping[str, Any]", value))
        value = cast("Any", value)
        if name in cls._choices:
            choice(value, cls._choices[name], name)
        elif name == "tradeoff":
            number({name: value}, name, 0.0, 1.0)
        elif name in ("tolerance", "penalty", "off_diagonal_penalty"):
            positive(number({name: value}, name, 0.0, float("inf")), name)
        elif name == "bins" and not (type(value) is int and 1 <= value <= MOST_BINS):
            raise InputError(f"bins is {value!r}; expected a whole number from 1 to {MOST_BINS}")
        elif name == "smoothing":
            number({name: value}, name, 0.0, MOST_ADDED)
        elif name in ("per_class", "intercept") and value not in (0, 1):
            raise InputError(f"{name} is {value!r}; expected true or false")
        elif name == "calibrator":
            raise InputError(f"{name} is {value!r}; expected a calibrator")
        return value


class ConfidenceMap(Calibrator):
    """A map from confidences in [0, 1] to confidences in [0, 1]: it changes no prediction.

    Attributes
    ----------
    monotone
        Whether a larger confidence is never mapped to a smaller one. All are but binning, which is where the values of
        the bins happen to ascend.
    """

    @property
    def monotone(self) -> bool:
        """Whether a larger confidence is never mapped to a smaller one."""
        return True

    @property
    def n_features_in_(self) -> int:
        """One, once it is fitted: the confidence."""
        self._require_fitted()
        return 1

    def transform(self, confidence: Any) -> Floats:
        """Confidences after the map.

        Parameters
        ----------
        confidence
            In [0, 1], one per sample.
        """
        self._require_fitted()
        return self._apply(confidences(confidence).astype(np.float64))

    def __call__(self, score: float) -> float:
        """One number after the map, in microseconds: what a service asks for."""
        self._require_fitted()
        try:
            inside = 0 <= score <= 1
        except (TypeError, ValueError):  # several
            inside = False
        if not inside:
            raise InputError(f"score is {shortened(score)}; pass one number from 0 to 1, or several to transform")
        return float(self._apply(np.array([score], np.float64))[0])

    def predict(self, confidence: Any) -> Floats:
        """The same as :meth:`transform`, for pipelines that predict."""
        return self.transform(confidence)

    @abstractmethod
    def _apply(self, values: Floats) -> Floats:
        """The map on checked float64 values."""

    def intervals(self, lower: Any, upper: Any) -> tuple[Floats, Floats]:
        """Intervals that contain every mapped confidence of the given ones.

        Why: a monotone map g takes [l, u] into [g(l), g(u)]; one that is not, into the range of its values there. A
        perturbation that keeps the confidence inside the first keeps the mapped one inside the second, at every radius
        and whatever certified the first. Ends are moved outward by what the formula of the map may round.

        Parameters
        ----------
        lower, upper
            Ends in [0, 1], one pair per sample.
        """
        self._require_fitted()
        low = confidences(lower, "lower").astype(np.float64)
        high = confidences(upper, "upper").astype(np.float64)
        same_length(lower=low.size, upper=high.size)
        if (low > high).any():
            index = int(np.argmax(low > high))
            raise InputError(f"lower[{index}] is above upper[{index}]; are the two swapped?")
        return self._interval(low, high)

    @abstractmethod
    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """The map on checked intervals: what holds every value inside, as computed and as written."""


class OutcomeMap(ConfidenceMap):
    """A map of confidences that is fitted to confidences and outcomes.

    Confidences are compared and mapped as float64 whatever their type, so that a number has one image.
    """

    def fit(self, confidence: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        confidence
            In [0, 1], one per sample.
        y
            Whether each prediction is correct (binary task: the outcome), 0 or 1.
        sample_weight
            Weights >= 0, or None. A weight of 2 counts like two samples.
        """
        z, c, w = score_pair(confidence, y, sample_weight)
        self._fit(z.astype(np.float64), c, w)
        return self

    def fit_transform(self, confidence: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Fit, and :meth:`transform` the same confidences."""
        return self.fit(confidence, y, sample_weight).transform(confidence)

    @abstractmethod
    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        """Fit to checked samples."""


@names_wrong_types
def describe(calibrator: Any) -> str:
    """Name and all parameters, also those that have their default, so that a sentence says what was done.

    A calibrator of one's own is what its ``repr`` says, or its class where that says nothing.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedIsotonic
    >>> repr(CertifiedIsotonic(0.5)), describe(CertifiedIsotonic(0.5))
    ('CertifiedIsotonic()', 'CertifiedIsotonic(tradeoff=0.5)')
    """
    name = type(calibrator).__name__
    if hasattr(calibrator, "common_"):
        text = f"{describe(calibrator.common_)}, corrected by {', '.join(calibrator.group_columns)}"
    elif isinstance(calibrator, Calibrator):
        params = calibrator.get_params(deep=False).items()
        given = (f"{key}={describe(value) if isinstance(value, Calibrator) else repr(value)}" for key, value in params)
        text = f"{name}({', '.join(given)})"
    else:
        text = name if type(calibrator).__repr__ is object.__repr__ else repr(calibrator)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def number(state: Mapping[str, Any], name: str, least: float, most: float) -> float:
    value = state.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"{name} is {value!r}; expected a number from {least:g} to {most:g}")
    return float(value)


def numbers(state: Mapping[str, Any], name: str, shape: tuple[int | None, ...]) -> Floats:
    """Finite numbers of a state in an array of a shape; None is any length above 0."""
    value = state.get(name)
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        array = np.empty(0)
    array = array.astype(np.float64) if array.dtype.kind in "iuf" else np.empty(0)  # texts are no numbers
    fits = array.ndim == len(shape) and all(
        size > 0 and wanted in (None, size) for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not isinstance(value, list) or not fits or not np.isfinite(array).all():
        expected = " × ".join("n" if size is None else str(size) for size in shape)
        raise InputError(f"{name} is damaged; expected {expected} finite numbers")
    return array


def _equals_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_json(each) for key, each in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in cast("list[Any]", value)]
    return value.to_dict() if hasattr(value, "to_dict") else value.tolist() if hasattr(value, "tolist") else value
