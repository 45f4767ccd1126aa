"""Any Python callable, given or named."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from certcal._checks import InputError
from certcal._text import reason
from certcal.models._adapter import Adapter, Batch
from certcal.models.fingerprint import Inside
from certcal.models.protocol import Outputs, Source

NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class CallableModel(Adapter):
    """A function of a float32 batch. It must not keep the batch, whose memory is used again."""

    def __init__(
        self, function: Callable[[Batch], Any], outputs: Outputs, name: str | None = None, source: Source | None = None
    ) -> None:
        name = name or f"{getattr(function, '__module__', '?')}:{_qualified_name(function)}"
        super().__init__(outputs, f"{name} (Python callable)", source)
        self.function = function

    def _forward(self, batch: Batch) -> Any:
        return self.function(batch)

    def identity(self, probe: Any) -> str | None:
        """Of the code and the values it uses, if Python shows them all."""
        inside = looked_at(self, self.function, _home(self.function), probe)
        return inside.digits if inside.complete else None

    def fingerprint(self, probe: Any) -> str:
        """Of the name, the code and the values it uses, and the answers to the probe."""
        inside = looked_at(self, self.function, _home(self.function), probe)
        return self._behaviour(probe, inside.digits, inside.complete)


def looked_at(model: Callable[[Any], Any], inner: object, home: str, probe: Any) -> Inside:
    """The inside of an object. What calls change in it, such as a count of calls, is left out."""
    model(probe)  # what is made at the first call is there from now on
    before = _look(inner, home, values=True)
    model(probe)
    if _look(inner, home, values=True).digits == before.digits:
        return before
    code = _look(inner, home, values=False)
    code.complete = False
    return code


def _look(inner: object, home: str, values: bool) -> Inside:
    inside = Inside(home, values)
    inside.add(inner)
    return inside


def _home(function: object) -> str:
    own = getattr(function, "__module__", None)
    return own if isinstance(own, str) else type(function).__module__


def _qualified_name(function: object) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def find_named(name: str) -> object:
    """The object that ``"package.module:name"`` names; only that module is imported.

    The module is looked for as Python does, and, if it is not found there, in the current folder.

    Examples
    --------
    >>> find_named("math:pi")
    3.141592653589793
    """
    module_name, _, attribute = name.partition(":")
    module = _imported(module_name)
    target: object = module
    for part in attribute.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            raise InputError(f"{name}: module {module_name!r} has no {attribute!r}; check the spelling") from None
    return target


def _imported(name: str) -> object:
    here = os.getcwd()
    # Looked for last, so that a file in the current folder never stands in for an installed package.
    elsewhere = _is_missing(name.partition(".")[0]) and here not in sys.path
    if elsewhere:
        sys.path.append(here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise InputError(f"there is no module {error.name!r}; check the spelling and the current folder") from None
        raise InputError(f"importing {name} failed: {reason(error)}; install what it needs") from error
    except SystemExit:
        raise InputError(
            f"importing {name} ended the program; put what it does as a script under if __name__ == '__main__'"
        ) from None
    except Exception as error:
        raise InputError(f"importing {name} failed: {reason(error)}; make `import {name}` work first") from error
    finally:
        if elsewhere:
            sys.path.remove(here)


def _is_missing(top: str) -> bool:
    try:
        return find_spec(top) is None
    except (ImportError, ValueError):
        return top not in sys.modules
