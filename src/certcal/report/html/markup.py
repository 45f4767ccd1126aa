"""Small pieces of markup. Any text of a report may come from outside: it is escaped, clipped and kept in direction."""

from __future__ import annotations

import re

from certcal.report.html.elements import Child, Raw, element, join

NAME, SENTENCE = 160, 2000
_SPACES = re.compile(r"(\s+)")
_JOINTS = re.compile(r"(?<=[^\s\d=_/][=_/])(?=[^\s=_/])")


def clip_middle(text: str, most: int = NAME) -> str:
    """A text without its middle when it is too long to be read."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-(most // 3) :]}"


def clip_end(text: str, most: float) -> str:
    """The beginning of a text, for places of a picture that have no more room."""
    return text if len(text) <= most else f"{text[: max(1, int(most) - 1)]}…"


def as_markup(text: str, most: int = NAME) -> Raw:
    """A text as markup: in its own direction of writing, and no longer than can be read."""
    return element("bdi", clip_middle(text, most))


def unbroken(text: str) -> Raw:
    """Text in which lines are not broken at hyphens, so that an option of a command stays whole."""
    return join([element("span", each, class_="word") if "-" in each else each for each in _SPACES.split(text)])


def breakable(text: str, most: int = NAME) -> Raw:
    """A name as markup, of which lines may also be broken after "=", "_" and "/"."""
    pieces = _JOINTS.split(clip_middle(text, most))
    return element("bdi", pieces[0], [(element("wbr"), piece) for piece in pieces[1:]])


def note(text: Child) -> Raw:
    """A paragraph in smaller type."""
    return element("p", text, class_="note")


def details(summary: Child, *content: Child, class_: str | None = None) -> Raw:
    """A part that opens on demand; it is printed in any case."""
    return element("details", element("summary", summary), element("div", content), class_=class_)


def scrolling(content: Child, label: str) -> Raw:
    """What may be wide, in a region that scrolls by itself, also with the keyboard; labels are unique on a page."""
    return element("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)
