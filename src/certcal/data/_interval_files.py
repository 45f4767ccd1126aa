"""Intervals of confidences as a file that :func:`certcal.data.read_intervals` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from numpy.typing import NDArray

from certcal.data._columns import columns_as_bytes

NOISE_NAMES = {"gaussian": "Gaussian noise", "exact": "exact noise"}
METADATA = "certcal.certificates"
_LONGEST = 4000  # characters; what is longer was not written here


@dataclass(frozen=True)
class IntervalOrigin:
    """Where intervals come from, in words that change no number.

    Attributes
    ----------
    confidence
        Kind of certificate, such as "tight".
    noise
        "gaussian" or "exact".
    assumptions
        What the intervals rest on, one clause each.
    recalibration
        The map that the confidences went through, if they did, and what it was fitted to.
    samples
        Fingerprint of the samples of a run, if these are all that were taken from it.
    run
        Name of the run whose first samples these are, numbered from 0, if they are.

    Examples
    --------
    >>> origin = IntervalOrigin("tight", "exact", ("inputs lie on k/255",))
    >>> IntervalOrigin.parse(origin.text) == origin, IntervalOrigin.parse("nonsense")
    (True, None)
    """

    confidence: str
    noise: str
    assumptions: tuple[str, ...] = ()
    recalibration: str | None = None
    samples: str | None = None
    run: str | None = None

    @property
    def description(self) -> str:
        """In a few words."""
        return self._in_words("")

    @property
    def sentence(self) -> str:
        """The same with what is assumed."""
        return self._in_words(f", which hold if {' and '.join(self.assumptions)}" if self.assumptions else "")

    def _in_words(self, assumed: str) -> str:
        made = f"{self.confidence} certificates, {NOISE_NAMES.get(self.noise, self.noise)}{assumed}"
        changed = "" if self.recalibration is None else f"recalibrated by {self.recalibration}"
        return "; ".join(part for part in (made if self.confidence else "", changed) if part)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: what is known."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def text(self) -> str:
        """As it is written into a file."""
        return json.dumps(self.to_dict())

    @staticmethod
    def parse(text: str | None) -> IntervalOrigin | None:
        """What a file says of its origin; None when it says nothing that is understood."""
        if text is None or len(text) > _LONGEST:
            return None
        try:
            found: Any = json.loads(text)
            kind, noise, assumptions = (found[name] for name in ("confidence", "noise", "assumptions"))
            later = {name: found[name] for name in ("recalibration", "samples", "run") if name in found}
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        if not isinstance(assumptions, list):
            return None
        words = [kind, noise, *cast("list[Any]", assumptions)]
        if not all(isinstance(word, str) for word in (*words, *later.values())):
            return None
        return IntervalOrigin(kind, noise, tuple(words[2:]), **later)


def intervals_as_parquet(columns: Mapping[str, NDArray[Any]], origin: IntervalOrigin | None = None) -> bytes:
    """A Parquet file of columns of equal length, to be written in one piece.

    Parameters
    ----------
    columns
        Such as radius, lower, upper, correct, certified and alpha.
    origin
        Kept in the file's metadata.

    Examples
    --------
    >>> import numpy as np
    >>> intervals_as_parquet({"lower": np.array([0.25]), "upper": np.array([0.5])})[:4]
    b'PAR1'
    """
    return columns_as_bytes(columns, ".parquet", {} if origin is None else {METADATA: origin.text})
