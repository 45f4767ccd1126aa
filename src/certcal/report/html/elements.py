"""Markup built from pieces: every text is escaped unless it is markup already."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable
from numbers import Integral, Real
from typing import TypeAlias, cast

from certcal._base.notebook import Card


class Raw(str):
    """Text that is already markup. Only what this package wrote itself may be called so.

    Adding to it gives an ordinary string again, which is escaped when it becomes part of an element.
    """

    __slots__ = ()


Child: TypeAlias = "str | float | Iterable[Child] | None"
Value: TypeAlias = "str | float | bool | None"

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
# Browsers read what is inside these as it stands, so escaping would change it.
_UNPARSED = frozenset(("script", "style"))
# Browsers drop a line break right after the start of these.
_PREFORMATTED = frozenset(("pre", "textarea"))
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:.-]*")
# What HTML forbids (control characters, halves of pairs, noncharacters), and marks that turn the order of the text
# around them; a line break and a tabulator are allowed.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 17))
    + "]"
)


def visible(text: str) -> str:
    r"""Replace what a page may not hold, or what would not be seen there, by its escape sequence."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def escape(text: str) -> Raw:
    """Text as markup that shows it."""
    return Raw(html.escape(visible(text), quote=True))


def element(tag: str, *children: Child, **attributes: Value) -> Raw:
    """Markup of one element."""
    start = f"<{_check_name(tag)}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    pieces = list(_flat(children))
    if tag in _VOID:
        if pieces:
            raise ValueError(f"<{tag}> has no content; leave its children out")
        return Raw(start)
    if tag in _UNPARSED:
        return Raw(f"{start}{_raw_text(tag, pieces)}</{tag}>")
    content = "".join(piece if isinstance(piece, Raw) else escape(piece) for piece in pieces)
    if tag in _PREFORMATTED and content.startswith("\n"):
        content = f"\n{content}"
    return Raw(f"{start}{content}</{tag}>")


def join(*children: Child) -> Raw:
    """Markup of several children, without an element around them.

    Examples
    --------
    >>> join(element("b", "a"), " < ", element("b", "c"))
    '<b>a</b> &lt; <b>c</b>'
    """
    return Raw("".join(piece if isinstance(piece, Raw) else escape(piece) for piece in _flat(children)))


def table(
    header: Iterable[Child],
    rows: Iterable[Iterable[Child]],
    caption: Child = None,
    *,
    numeric: Collection[int] = (),
    row_headers: bool = False,
    **attributes: Value,
) -> Raw:
    """Markup of a table."""

    def cell(column: int, content: Child, *, head: str | None) -> Raw:
        kind = "number" if column in numeric else None
        return element("th" if head else "td", content, scope=head, class_=kind)

    heads = [cell(column, content, head="col") for column, content in enumerate(header)]
    lines = [
        element(
            "tr",
            [
                cell(column, content, head="row" if row_headers and column == 0 else None)
                for column, content in enumerate(row)
            ],
        )
        for row in rows
    ]
    return element(
        "table",
        element("caption", caption) if caption is not None else None,
        element("thead", element("tr", heads)) if heads else None,
        element("tbody", lines),
        **attributes,
    )


def card(shown: Card) -> Raw:
    """Markup of what a notebook shows of a small value.

    Examples
    --------
    >>> card(Card("ece is 0.04.", kind="Estimate"))
    '<p><strong>Estimate</strong>: ece is 0.04.</p>'
    """
    first, *others = shown.sentences or ("",)
    lead = element("p", element("strong", shown.kind), f": {first}") if shown.kind else element("p", first)
    parts = [lead, *(element("p", each) for each in others)] if shown.sentences else []
    for rows, head, caption in shown.tables:
        numeric = range(1, len(head))
        parts.append(table(head, rows, caption or None, numeric=numeric, row_headers=True))
    return parts[0] if len(parts) == 1 else element("div", parts)


def definition_list(pairs: Iterable[tuple[Child, Child]], **attributes: Value) -> Raw:
    """Markup of terms and what they mean.

    Examples
    --------
    >>> definition_list([("radius", 0.25), ("name", "<b>")])
    '<dl><dt>radius</dt><dd>0.25</dd><dt>name</dt><dd>&lt;b&gt;</dd></dl>'
    """
    return element("dl", [(element("dt", term), element("dd", meaning)) for term, meaning in pairs], **attributes)


def number(value: float) -> str:
    """A number in the fewest digits that give it back.

    Examples
    --------
    >>> number(3), number(3.0), number(-0.0), number(0.1), number(1e-7)
    ('3', '3', '0', '0.1', '1e-07')
    """
    if isinstance(value, Integral):
        return str(int(value))
    exact = float(value)
    return repr(exact + 0.0).removesuffix(".0")


def _flat(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            yield child
        elif isinstance(child, bool | bytes):
            raise TypeError(f"{child!r} cannot be shown; give a text, a number or an element")
        elif isinstance(child, Real):
            yield number(float(child) if not isinstance(child, Integral) else int(child))
        else:
            yield from _flat(cast("Iterable[Child]", child))


def _attribute(name: str, value: Value) -> str:
    spelled = _check_name(name.removesuffix("_").replace("_", "-"))
    if value is None or value is False:
        return ""
    if value is True:
        return f" {spelled}"
    return f' {spelled}="{escape(value if isinstance(value, str) else number(value))}"'


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot name an element or attribute; use letters, digits and hyphens")
    return name


def _raw_text(tag: str, pieces: list[str]) -> str:
    """What stands inside a script or style: only our own text, which must not be able to end or hide the element."""
    content = "".join(pieces)
    if not all(isinstance(piece, Raw) for piece in pieces):
        raise TypeError(f"the content of <{tag}> cannot be escaped; give Raw text of your own making")
    if re.search(rf"</{tag}|<!--|<{tag}", content, re.IGNORECASE):
        raise ValueError(f"the content of <{tag}> would end it early; write its '<' as '\\u003c'")
    return content
