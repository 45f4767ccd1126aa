"""How small values show themselves in notebooks: sentences and tables as data, which ``certcal.report`` lays out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from certcal._base.told import Told


class CardTable(NamedTuple):
    """Rows whose first cell heads them; below a head, the other cells are numbers."""

    rows: Sequence[Sequence[str]]
    head: Sequence[str] = ()
    caption: str = ""


class Card:
    """Sentences, after the kind of claim that they make, and tables."""

    def __init__(self, *sentences: str, kind: str = "", tables: Sequence[CardTable] = ()) -> None:
        self.kind, self.sentences, self.tables = kind, sentences, tables


class NotebookCard(Told):
    """A value that notebooks show by its :class:`Card`."""

    @abstractmethod
    def card(self) -> Card:
        """What a notebook shows."""

    def _repr_html_(self) -> str:
        return import_module("certcal.report.html").card(self.card())
