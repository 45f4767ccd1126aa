"""Pieces that pages are put together from: names, notes, figures, tables that scroll, parts that open."""

from __future__ import annotations

import re
from collections.abc import Sequence

from certcal._html import Child, Raw, element, join

_LONGEST_NAME = 160
_SPACES = re.compile(r"(\s+)")


def shown(name: str, most: int = _LONGEST_NAME) -> Raw:
    """A name from outside as markup: its own direction of writing, and no longer than can be read.

    Examples
    --------
    >>> shown("<b>"), len(shown("x" * 100_000)) < 200
    ('<bdi>&lt;b&gt;</bdi>', True)
    """
    return element("bdi", clipped(name, most))


def clipped(name: str, most: int = _LONGEST_NAME) -> str:
    """A name without its middle when it is too long to be read.

    Examples
    --------
    >>> clipped("predictions.csv"), clipped("a" * 9 + "z" * 9, 6)
    ('predictions.csv', 'aaaa … zz')
    """
    if len(name) <= most:
        return name
    return f"{name[: most * 2 // 3]} … {name[-(most // 3) :]}"


def unbroken(text: str) -> Raw:
    """Text in which lines are not broken at hyphens, so that an option of a command stays whole.

    Examples
    --------
    >>> unbroken("certcal demo -o <page>")
    'certcal demo <span class="word">-o</span> &lt;page&gt;'
    """
    return join([element("span", each, class_="word") if "-" in each else each for each in _SPACES.split(text)])


def details(summary: Child, *content: Child) -> Raw:
    """A part that opens on demand; it is printed in any case."""
    return element("details", element("summary", summary), element("div", content))


def scrolling(content: Child, label: str) -> Raw:
    """A wide table in a region that scrolls by itself, also with the keyboard.

    Examples
    --------
    >>> scrolling("a", "Metrics")
    '<div class="scroll" tabindex="0" role="region" aria-label="Metrics">a</div>'
    """
    return element("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)


def region(key: str, title: str, start: str = "") -> str:
    """What a region that scrolls is called where titles may repeat.

    Examples
    --------
    >>> region("question-5-chart-1", "Ranking", "Numbers of ")
    'Numbers of Ranking (question 5 chart 1)'
    """
    return f"{start}{clipped(title)} ({key.replace('-', ' ')})"


def figure(
    picture: Child, caption: Child, *, legend: Child = None, numbers: Child = None, heading: Child = None
) -> Raw:
    """A picture with its heading, legend, caption and the same numbers as a table.

    Parameters
    ----------
    picture
        Usually from :func:`certcal.report.page._svg.chart`.
    caption
        What is seen; None where the picture says it itself.
    legend
        From :func:`certcal.report.page._svg.legend`.
    numbers
        A table with what is drawn; opens on demand.
    heading
        Short title above the picture.
    """
    return element(
        "figure",
        element("h3", heading) if heading is not None else None,
        picture,
        legend,
        element("figcaption", caption) if caption is not None else None,
        details("The numbers of this figure", numbers) if numbers is not None else None,
    )


def row(*figures: Child, small: bool = False) -> Raw:
    """Figures beside each other where there is room; ``small`` puts more of them into a row."""
    return element("div", figures, class_="figures small" if small else "figures")


def beside(picture: Child, *content: Child) -> Raw:
    """A figure with tables or text at its side where there is room, below it where there is none."""
    return element("div", picture, element("div", content), class_="figures")


def note(*content: Child) -> Raw:
    """A paragraph in smaller type."""
    return element("p", content, class_="note")


def aside(*sentences: str) -> Raw | None:
    """Remarks from outside below something, each on a line of its own; empty ones are left out.

    Examples
    --------
    >>> aside("", "a < b"), aside("")
    ('<span class="aside">a &lt; b</span>', None)
    """
    return join([element("span", clipped(each, 1000), class_="aside") for each in sentences if each]) or None


def verdict_card(kind: str, said: str, sentences: Sequence[str], *more: Child) -> Raw:
    """What a page says first: a badge of the kind of claim, what that kind is, and the claims.

    Parameters
    ----------
    kind
        Of claim, such as ``"estimate"``: a class of the style, and what the badge reads.
    said
        What such a claim is, in a few words.
    sentences
        The claims.
    more
        What stands below them.
    """
    badge = element("span", kind.capitalize(), class_=f"badge {kind}")
    return element(
        "div",
        element("p", badge, element("span", said, class_="kind"), class_="kinds"),
        [element("p", shown(each, 2000), class_="sentence") for each in sentences],
        *more,
        class_=f"card {kind}",
    )
