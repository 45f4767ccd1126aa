"""Modules of the lab that verbs of the core call, by name; each loads when a verb asks for it.

The package's front fills the mapping, so that no module of the core imports the lab.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

EXTENSIONS: dict[str, Callable[[], Any]] = {}
