# pyright: basic
"""The one decorator of all kernels: interpreted while there is little to do, then compiled once and kept on disk.

Compiling takes up to a second for each kernel and type, importing the compiler half of one, and a table of a few
hundred rows needs neither. Both ways give the same bits, which ``tests/test_kernels.py`` holds to.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from threading import RLock
from types import FunctionType
from typing import Any

import numpy as np

# Entries that are interpreted one by one, or looked at by NumPy, in about the time that it takes to load a kernel.
FEW, MANY = 1 << 13, 1 << 16

_ONE_AT_A_TIME = RLock()


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept: every process compiles them anew."""


class Kernel:
    """A loop over the arrays that it is given.

    A first argument of up to ``patience`` entries is walked over by the function as it is written, or by its twin in
    NumPy where one is given; what is larger is compiled, and so is all that follows on ``often`` times as many entries.
    A call counts as a 128th of ``patience`` at least, so that thousands of small calls are compiled as well.
    Inside another kernel it is what that one is: interpreted or compiled. A private one is called nowhere else, and
    compiled sooner for that; from Python it is interpreted.
    """

    def __init__(self, function: Any, options: dict[str, Any], patience: int, often: int, in_numpy: Any) -> None:
        self.py_func = function
        self.targetoptions = options  # numba reads here what is to be inlined
        self.patience, self._left = patience, patience * often
        self._in_numpy = in_numpy
        self._private = function.__name__.startswith("_")
        self._dispatcher: Any = None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if self._private:
            return self.interpreted(*arguments)
        if self._left:
            steps = arguments[0].size
            if steps <= min(self.patience, self._left):
                self._left = max(0, self._left - max(steps, self.patience >> 7))
                with np.errstate(over="ignore", invalid="ignore"):  # sums may wrap around, or hold a NaN to be found
                    return self.interpreted(*arguments)
            self._left = 0
        return (self._dispatcher or self.compiled)(*arguments)

    @cached_property
    def interpreted(self) -> Any:
        """The function as it is written, and all that it calls as well; or its twin in NumPy."""
        if self._in_numpy is not None:
            return self._in_numpy
        scope, code = self.py_func.__globals__, self.py_func.__code__
        called = {name: scope[name].interpreted for name in code.co_names if isinstance(scope.get(name), Kernel)}
        return FunctionType(code, {**scope, **called}, closure=self.py_func.__closure__)

    @property
    def compiled(self) -> Any:
        """The dispatcher: one, whichever thread asks first."""
        with _ONE_AT_A_TIME:
            if self._dispatcher is None:
                self._dispatcher = _dispatcher(self.py_func, self.targetoptions)
            return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What numba takes this for in the body of another kernel."""
        return self.compiled._numba_type_


def _dispatcher(function: Any, options: dict[str, Any]) -> Any:
    """numba's, without its cache where it finds no folder that it may write to."""
    import numba

    _listen()
    try:
        return numba.njit(**options)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
    _warn_once()
    uncached: dict[str, Any] = {**options, "cache": False}
    return numba.njit(**uncached)(function)


def njit(function: Any = None, *, patience: int = 0, often: int = 16, in_numpy: Any = None, **options: Any) -> Any:
    """A kernel that is kept on disk and releases the interpreter lock."""
    if function is None:
        return lambda function: njit(function, patience=patience, often=often, in_numpy=in_numpy, **options)
    if function.__name__.startswith("_"):
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return Kernel(function, {"cache": True, "nogil": True, **options}, patience, often, in_numpy)


_listeners: list[Callable[[str], None]] = []


def when_compiling(tell: Callable[[str], None]) -> None:
    """Call ``tell`` with the name of each kernel that is compiled from now on, rather than found on the disk."""
    _listeners.append(tell)


@cache
def _listen() -> None:
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            # Not what numba compiles of its own; and what cannot be kept has a warning.
            if function.__module__.startswith(__package__) and not _warn_once.cache_info().currsize:
                for tell in _listeners:
                    tell(function.__name__)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())


@cache
def _warn_once() -> None:
    text = "no folder for compiled kernels is writable, so each process compiles them anew; set NUMBA_CACHE_DIR to one"
    warnings.warn(text, CacheWarning, stacklevel=2)
