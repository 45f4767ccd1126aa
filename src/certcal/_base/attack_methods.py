"""The attacks that have names, one entry each: facts alone, so that the command line can list them without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class AttackEntry:
    """An attack by name."""

    name: str
    """In commands, tables and files."""
    kind: str
    """Its class in ``certcal.attacks``; a number of steps is passed on where it has one."""
    help: str
    """What it does, in a few words."""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Those that the name stands for."""


_OWN = (
    AttackEntry("minus-true", "Ace", "raise the confidence in the true class", {"eta": -1, "omega": "true"}),
    AttackEntry("plus-true", "Ace", "lower it", {"eta": 1, "omega": "true"}),
    AttackEntry(
        "minus-predicted", "Ace", "raise the confidence in the predicted class", {"eta": -1, "omega": "predicted"}
    ),
    AttackEntry("plus-predicted", "Ace", "lower it", {"eta": 1, "omega": "predicted"}),
    AttackEntry(
        "one-step",
        "OneStepAce",
        "one gradient step: down where the prediction is right, up where it is wrong",
    ),
)

# As published, ending where the label would change: for comparisons with the paper's numbers.
_STOPPING = tuple(
    AttackEntry(f"stopping-{each.name}", "StoppingAce", f"{each.name} as published", each.parameters)
    for each in _OWN
    if each.kind == "Ace"
)
_ENTRIES = (*_OWN, *_STOPPING)

ATTACKS: dict[str, AttackEntry] = {each.name: each for each in _ENTRIES}
