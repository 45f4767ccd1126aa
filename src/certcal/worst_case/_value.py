"""A number that follows from intervals, as it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CertifiedValue:
    """A number that follows from the intervals, with its text rounded to the safe side and its sentence.

    Attributes
    ----------
    side
        "lower" when the number is claimed as "at least", and rounded down; "upper" for "at most", rounded up.

    Examples
    --------
    >>> from certcal.worst_case import certify
    >>> certify([0.6, 0.2], [0.9, 0.5], [1, 0], certified=[1, 0]).accuracy.text
    '0.5000'
    """

    name: str
    value: float
    n: int
    text: str
    sentence: str
    side: str = "lower"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "certified value",
            "name": self.name,
            "value": self.value,
            "text": self.text,
            "side": self.side,
            "n": self.n,
            "sentence": self.sentence,
        }
