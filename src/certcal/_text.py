"""Text from outside made safe to show, and numbers of things."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Make everything visible that could move the cursor or change colours.

    Examples
    --------
    >>> printable("caf\u00e9 \x1b[31mred")
    'café \\x1b[31mred'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def counted(n: int, thing: str) -> str:
    """So many of a thing.

    Examples
    --------
    >>> counted(1, "sample"), counted(2_000, "sample")
    ('1 sample', '2,000 samples')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
