"""What every calibrator is: parameters as scikit-learn has them, a fitted state, and both as plain values for JSON."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, confidences, same_length
from certcal.calibrators._params import check_param
from certcal.calibrators._state import number, numbers

Floats = NDArray[np.float64]


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


class Calibrator(ABC):
    """A map that is fitted to samples and then applied to others.

    Constructors keep their arguments under their own names and check nothing, as scikit-learn's do: arguments are
    checked by ``fit``. Classes register themselves by name, so that a file can name one.
    """

    _known: ClassVar[dict[str, type[Calibrator]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Calibrator._known[cls.__name__] = cls

    @classmethod
    def _names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor by name; with ``deep`` those of calibrators among them as ``name__inner``."""
        found = {name: getattr(self, name) for name in self._names()}
        if deep:
            for name, value in list(found.items()):
                if isinstance(value, Calibrator):
                    found |= {f"{name}__{inner}": each for inner, each in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name; ``name__inner`` reaches into a calibrator among them."""
        for name, value in params.items():
            own, _, inner = name.partition("__")
            if own not in self._names():
                known = ", ".join(self._names()) or "none"
                raise InputError(f"{type(self).__name__} has no parameter {own!r}; its parameters are {known}")
            if inner:
                getattr(self, own).set_params(**{inner: value})
            else:
                setattr(self, own, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        own = self.get_params(deep=False)
        given = [f"{name}={value!r}" for name, value in own.items() if not _same(value, defaults[name].default)]
        return f"{type(self).__name__}({', '.join(given)})"

    def unfitted(self) -> Self:
        """A new one with the same parameters, not fitted, and so are the calibrators among them."""
        return type(self)(**{name: _unfitted(value) for name, value in self.get_params(deep=False).items()})

    def __sklearn_tags__(self) -> Any:
        from certcal.calibrators._sklearn_tags import tags_of

        return tags_of(self)

    def __sklearn_is_fitted__(self) -> bool:
        return self._state() is not None

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit first")

    @abstractmethod
    def _state(self) -> dict[str, Any] | None:
        """What was fitted, as numbers, texts, lists and mappings of them; None before fit."""

    @abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state that may come from a file, so everything in it is checked; InputError says what is bad."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: class, parameters, and what was fitted. Floats come back as they were, bit for bit."""
        params = {
            name: value.to_dict() if isinstance(value, Calibrator) else _plain(value)
            for name, value in self.get_params(deep=False).items()
        }
        return {"type": type(self).__name__, "params": params, "fitted": self._state()}

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> Calibrator:
        """The calibrator that :meth:`to_dict` wrote; whatever else is given is refused with a sentence."""
        name, params, state = (document.get(key) for key in ("type", "params", "fitted"))
        kind = Calibrator._known.get(name) if isinstance(name, str) else None
        if kind is None or inspect.isabstract(kind):
            known = ", ".join(sorted(name for name, each in Calibrator._known.items() if not inspect.isabstract(each)))
            raise InputError(f"type is {name!r}, which is no calibrator; known are {known}")
        if not isinstance(params, Mapping) or not set(params) <= set(kind._names()):  # pyright: ignore[reportUnknownArgumentType]
            raise InputError(f"params of {name} are {params!r}; expected some of {', '.join(kind._names()) or 'none'}")
        given: dict[str, Any] = {str(key): kind._param(str(key), value) for key, value in params.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        wanted = inspect.signature(kind).parameters
        missing = [key for key, each in wanted.items() if each.default is each.empty and key not in given]
        if missing:
            raise InputError(f"params of {name} are {params!r}; {', '.join(missing)} is missing")
        made = kind(**given)
        if state is not None:
            if not isinstance(state, Mapping):
                raise InputError(f"what was fitted of {name} is {state!r}; expected a mapping")
            made._restore(state)  # pyright: ignore[reportUnknownArgumentType]
        return made

    @classmethod
    def _param(cls, name: str, value: Any) -> Any:
        """One parameter as the constructor takes it, from what a file holds."""
        if isinstance(value, Mapping) and "type" in value:
            return Calibrator.from_dict(cast("Mapping[str, Any]", value))
        check_param(name, value)
        return cast(Any, value)


class ConfidenceMap(Calibrator):
    """A map from confidences in [0, 1] to confidences in [0, 1]: it changes no prediction.

    Attributes
    ----------
    monotone
        Whether a larger confidence is never mapped to a smaller one. All are but binning, and chains with binning in
        them, which are where the values of their bins happen to ascend.
    """

    @property
    def monotone(self) -> bool:
        """Whether a larger confidence is never mapped to a smaller one."""
        return True

    def transform(self, confidence: Any) -> Floats:
        """Confidences after the map.

        Parameters
        ----------
        confidence
            In [0, 1], one per sample.
        """
        self._require_fitted()
        return self._apply(confidences(confidence).astype(np.float64))

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


class ScoreMap(Calibrator):
    """A map from logits (or probabilities) of all classes to probabilities of all classes."""

    @abstractmethod
    def fit(self, scores: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Fit to scores, one row per sample and one column per class, and true classes from 0."""

    def fit_transform(self, scores: Any, labels: Any, sample_weight: Any = None) -> Floats:
        """Fit, and :meth:`transform` the same scores."""
        return self.fit(scores, labels, sample_weight).transform(scores)

    @abstractmethod
    def predict_proba(self, scores: Any) -> Floats:
        """Probabilities after the map, one row per sample."""

    def predict(self, scores: Any) -> NDArray[np.int64]:
        """The most probable class after the map, the first of several."""
        return self.predict_proba(scores).argmax(axis=1).astype(np.int64)

    def transform(self, scores: Any) -> Floats:
        """Logarithms of the probabilities after the map: logits for the next calibrator of a chain."""
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.predict_proba(scores)), -745.0)  # exp of it is the smallest number above 0


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def _unfitted(value: Any) -> Any:
    if isinstance(value, Calibrator):
        return value.unfitted()
    if isinstance(value, list | tuple):
        return [_unfitted(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [each.to_dict() if isinstance(each, Calibrator) else _plain(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value


__all__ = ["Calibrator", "ConfidenceMap", "NotFittedError", "ScoreMap", "number", "numbers"]
