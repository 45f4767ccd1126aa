"""Parameters that come from a file: only what ``fit`` takes, so that sentences about the map cannot say anything."""

from __future__ import annotations

from typing import Any

from certcal._checks import InputError, choice, positive
from certcal.calibrators._state import number

MOST_BINS = 10_000_000


def check_param(name: str, value: Any) -> None:
    """Raise unless a calibrator of this package takes the value; parameters of other classes are theirs to check.

    Examples
    --------
    >>> check_param("bins", 15)
    >>> check_param("bins", "15), approved by all (")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: bins is '15), approved by all ('; expected a whole number from 1 to 10000000
    """
    choices = _choices()
    if name in choices:
        choice(value, choices[name], name)
    elif name == "tradeoff":
        number({name: value}, name, 0.0, 1.0)
    elif name in ("tolerance", "penalty", "off_diagonal_penalty"):
        positive(number({name: value}, name, 0.0, float("inf")), name)
    elif name == "bins" and not (type(value) is int and 1 <= value <= MOST_BINS):
        raise InputError(f"bins is {value!r}; expected a whole number from 1 to {MOST_BINS}")
    elif name == "per_class" and value not in (0, 1):
        raise InputError(f"per_class is {value!r}; expected true or false")
    elif name in ("calibrator", "steps"):
        raise InputError(f"{name} is {value!r}; expected {'calibrators' if name == 'steps' else 'a calibrator'}")


def _choices() -> dict[str, tuple[str, ...]]:
    from certcal.binning import CLOSED
    from certcal.calibrators._beta import PARAMETERS
    from certcal.calibrators._platt import TARGETS
    from certcal.calibrators.scores import INPUTS

    return {"closed": CLOSED, "parameters": PARAMETERS, "targets": TARGETS, "inputs": INPUTS}
