"""Intervals of confidences as a file that :func:`certcal.data.read_intervals` reads."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

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

    Examples
    --------
    >>> origin = IntervalOrigin("tight", "exact", ("inputs lie on k/255",))
    >>> IntervalOrigin.parse(origin.text) == origin, IntervalOrigin.parse("nonsense")
    (True, None)
    """

    confidence: str
    noise: str
    assumptions: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """In a few words."""
        return f"{self.confidence} certificates, {NOISE_NAMES.get(self.noise, self.noise)}"

    @property
    def sentence(self) -> str:
        """The same with what is assumed."""
        return self.description + (f", which hold if {' and '.join(self.assumptions)}" if self.assumptions else "")

    @property
    def text(self) -> str:
        """As it is written into a file."""
        return json.dumps(asdict(self))

    @staticmethod
    def parse(text: str | None) -> IntervalOrigin | None:
        """What a file says of its origin; None when it says nothing that is understood."""
        if text is None or len(text) > _LONGEST:
            return None
        try:
            found: Any = json.loads(text)
            kind, noise, assumptions = (found[name] for name in ("confidence", "noise", "assumptions"))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        if not isinstance(assumptions, list):
            return None
        words = [kind, noise, *cast("list[Any]", assumptions)]
        return IntervalOrigin(kind, noise, tuple(words[2:])) if all(isinstance(word, str) for word in words) else None


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
    >>> intervals_as_parquet({"lower": np.array([0.25]), "upper": np.array([0.5])})[:4]
    b'PAR1'
    """
    from certcal.data._parquet import parquet
    from certcal.data._pyarrow import from_numpy, pa

    table = pa.table({name: from_numpy(np.ascontiguousarray(values)) for name, values in columns.items()})
    if origin is not None:
        table = table.replace_schema_metadata({METADATA: origin.text})
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()
