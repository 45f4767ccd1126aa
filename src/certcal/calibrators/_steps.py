"""Calibrators that are made of several, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

from certcal._checks import InputError
from certcal.calibrators._base import Calibrator


class Steps(Calibrator):
    """A calibrator whose one parameter is a list of calibrators. Their parameters go by place: ``0__bins``."""

    steps: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The steps; with ``deep`` their parameters too, as ``0__bins``."""
        found: dict[str, Any] = {"steps": self.steps}
        if deep:
            for place, step in enumerate(_listed(self.steps)):
                if isinstance(step, Calibrator):
                    found |= {f"{place}__{inner}": each for inner, each in step.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change the steps, or parameters of a step, as ``0__bins``."""
        if "steps" in params:
            self.steps = params.pop("steps")
        steps = _listed(self.steps)
        for name, value in params.items():
            place, _, inner = name.partition("__")
            if not inner or place not in map(str, range(len(steps))):
                raise InputError(f"{type(self).__name__} has no parameter {name!r}; pass steps, or such as 0__bins")
            steps[int(place)].set_params(**{inner: value})
        return self

    @classmethod
    def _param(cls, name: str, value: Any) -> Any:
        each_of = cast("list[Any]", value) if isinstance(value, list) else [value]
        return [super(Steps, cls)._param(name, each) for each in each_of]

    @classmethod
    def _checked(cls, steps: Any, kind: type[Any], what: str) -> list[Any]:
        """Steps of one kind, at least one."""
        given = _listed(steps)
        if not given:
            raise InputError(f"steps is {steps!r}; pass a list of at least one calibrator")
        for place, step in enumerate(given):
            if not isinstance(step, kind):
                raise InputError(f"steps[{place}] is {step!r}; {cls.__name__} takes {what}")
        return given


def fitted_steps(state: Mapping[str, Any], kind: type[Any]) -> list[Any]:
    """Fitted steps of a state, which may come from a file."""
    documents = _listed(state.get("steps"))
    found: list[Any] = [
        Calibrator.from_dict(cast("Mapping[str, Any]", each)) if isinstance(each, Mapping) else None
        for each in documents
    ]
    if not found or not all(isinstance(each, kind) and each.__sklearn_is_fitted__() for each in found):
        raise InputError("steps is damaged; expected fitted calibrators")
    return found


def _listed(steps: Any) -> list[Any]:
    return list(cast("Sequence[Any]", steps)) if isinstance(steps, list | tuple) else []
