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


def distance_text(distance: float) -> str:
    """A distance as a person writes it, from which the same number is read: in 255ths where that is shorter.

    Examples
    --------
    >>> distance_text(0.5), distance_text(8 / 255), distance_text(1.0), distance_text(0.2)
    ('0.5', '8/255', '1', '0.2')
    """
    written = [f"{distance:g}", repr(distance)]
    pixels = round(distance * 255) if distance < 1e9 else 0
    exact = [text for text in written if float(text) == distance]
    return min([*exact, *([f"{pixels}/255"] if pixels and pixels / 255 == distance else [])], key=len)
