"""A calibrator in words."""

from __future__ import annotations

from certcal.calibrators._base import Calibrator

_LONGEST = 300  # characters; parameters that need more are cut off


def described(calibrator: Calibrator) -> str:
    """Name and all parameters, also those that have their default, so that a sentence says what was done.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedIsotonic
    >>> repr(CertifiedIsotonic(0.5)), described(CertifiedIsotonic(0.5))
    ('CertifiedIsotonic()', 'CertifiedIsotonic(tradeoff=0.5)')
    """
    params = calibrator.get_params(deep=False).items()
    given = (f"{name}={described(value) if isinstance(value, Calibrator) else repr(value)}" for name, value in params)
    text = f"{type(calibrator).__name__}({', '.join(given)})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
