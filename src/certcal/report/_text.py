"""Text from outside made safe to show."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Make everything visible that could move the cursor or change colours.

    Examples
    --------
    >>> printable("caf\u00e9 \x1b[31mred")
    'café \\x1b[31mred'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
