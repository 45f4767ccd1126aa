"""What tests of pages share: reading a page as a browser would."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from certcal.report.page import Page


class Reader(HTMLParser):
    """Tables by caption, visible texts, tags with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._rows: list[list[str]] = []
        self._caption: str | None = None
        self._cell: list[str] | None = None
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "table":
            self._rows, self._caption = [], None
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th", "caption"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self._rows[-1].append("".join(self._cell))
            self._cell = None
        elif tag == "caption" and self._cell is not None:
            self._caption, self._cell = "".join(self._cell), None
        elif tag == "table":
            self.tables[self._caption or ""] = self._rows

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.text.append(data)
        if self._cell is not None:
            self._cell.append(data)


def embedded(made: Page) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', made.html)
    return json.loads(text)


def flat(reader: Reader) -> str:
    return " ".join("".join(reader.text).split())
