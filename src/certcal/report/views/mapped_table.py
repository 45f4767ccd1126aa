"""What a map was applied to, and what to do next: the words of a MappedTable."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from certcal.report.document import Block, Report, Text

if TYPE_CHECKING:
    from certcal.verbs.apply_map import MappedTable

_CSV = "CSV does not record which map this was; Parquet does."


def view(found: MappedTable, files: Sequence[Path] = ()) -> Report:
    """The report of a map that was applied."""
    endings = [path.suffix.lower() for path in files]
    said = [*found.notes, *([_CSV] if ".csv" in endings else [])]
    blocks: list[Block] = [Text(" ".join(said))]
    if found.reader is not None and files:
        named = (word for role, name in found.roles.items() for word in (f"--{role}", str(name)))
        command = shlex.join(["certcal", found.reader, str(files[0]), *named])
        blocks.append(Text(f"{command}  # what it says now", "code"))
    return Report("Samples after the map", blocks)
