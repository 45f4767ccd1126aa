"""A calibrator in words."""

from __future__ import annotations

from typing import Any

from certcal.calibrators._base import Calibrator

_LONGEST = 300  # characters; parameters that need more are cut off


def described(calibrator: Any) -> str:
    """Name and all parameters, also those that have their default, so that a sentence says what was done.

    A calibrator of one's own is what its ``repr`` says, or its class where that says nothing.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedIsotonic
    >>> repr(CertifiedIsotonic(0.5)), described(CertifiedIsotonic(0.5))
    ('CertifiedIsotonic()', 'CertifiedIsotonic(tradeoff=0.5)')
    """
    name = type(calibrator).__name__
    if isinstance(calibrator, Calibrator):
        params = calibrator.get_params(deep=False).items()
        given = (f"{key}={described(value) if isinstance(value, Calibrator) else repr(value)}" for key, value in params)
        text = f"{name}({', '.join(given)})"
    else:
        text = name if type(calibrator).__repr__ is object.__repr__ else repr(calibrator)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
