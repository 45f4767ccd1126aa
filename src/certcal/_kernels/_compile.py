# pyright: basic
"""The one decorator of all kernels: compiled once and kept on disk, or compiled in every process where no disk is."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numba


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept: every process compiles them anew."""


def njit(**options: Any) -> Any:
    """``numba.njit``, without its cache where numba finds no folder that it may write to."""

    def compiled(function: Any) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
        _warn_once()
        plain: dict[str, Any] = {**options, "cache": False}
        return numba.njit(**plain)(function)

    return compiled


@cache
def _warn_once() -> None:
    text = "no folder for compiled kernels is writable, so each process compiles them anew; set NUMBA_CACHE_DIR to one"
    warnings.warn(text, CacheWarning, stacklevel=2)
