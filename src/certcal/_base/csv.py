"""CSV whose cells a spreadsheet shows and does not run."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any, TextIO

# What spreadsheets take for the beginning of a formula, also behind spaces and in full width.
_FORMULA = re.compile("[ \u00a0\u3000]*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
# Characters that control a terminal or break a line, and halves of pairs, which no file can hold.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+](inf|nan)")


def plain_cell(value: Any) -> Any:
    r"""A cell that begins no formula and controls nothing; numbers, also as texts, stay as they are."""
    if not isinstance(value, str):
        return value
    text = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


class CsvWriter:
    """Writes rows of plain cells, each on a line of its own."""

    def __init__(self, stream: TextIO) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")

    def writerow(self, row: Iterable[Any]) -> None:
        """Write one row."""
        self._writer.writerow([plain_cell(value) for value in row])
