"""Several prepared states of a figure, of which one is shown. Nothing is computed or formatted when it changes."""

from __future__ import annotations

from collections.abc import Sequence

from certcal._html import Child, Raw, Value, element

MOST_FRAMES = 41


def chosen(count: int, start: int, most: int = MOST_FRAMES) -> list[int]:
    """Which of ``count`` states get a frame: evenly spread, always with the first, the last and ``start``.

    Examples
    --------
    >>> chosen(4, 1), chosen(1000, 10, most=5)
    ([0, 1, 2, 3], [0, 10, 333, 666, 999])
    """
    if count <= most:
        return list(range(count))
    spread = {round(place * (count - 1) / (most - 2)) for place in range(most - 1)}
    return sorted({int(place) for place in spread} | {start})


def framed(tag: str, key: str, frame: int, start: int, *children: Child, **attributes: Value) -> Raw:
    """An element that is seen only while ``frame`` is chosen; ``start`` is the frame that is seen at first.

    Examples
    --------
    >>> framed("span", "radius", 1, 0, "at radius 0.5")
    '<span data-of="radius" data-frame="1" hidden>at radius 0.5</span>'
    """
    return element(tag, *children, data_of=key, data_frame=frame, hidden=frame != start, **attributes)


def marked_row(key: str, frame: int, start: int, *cells: Child) -> Raw:
    """A row of a table that is always seen and stands out while ``frame`` is chosen."""
    return element("tr", *cells, data_row_of=key, data_frame=frame, aria_current="true" if frame == start else None)


def slider(key: str, label: str, names: Sequence[str], start: int, *, texts: Sequence[Child] | None = None) -> Raw:
    """A control that chooses one of several frames; it appears only where scripts run.

    Parameters
    ----------
    key
        A name of our own making that :func:`framed` elements refer to.
    label
        What is chosen.
    names
        What each frame is called, such as "radius 0.25".
    start
        The frame that is seen at first.
    texts
        What is said beside the control per frame; by default its name.

    Examples
    --------
    >>> 'max="2"' in slider("radius", "Radius", ["0", "0.25", "0.5"], 1)
    True
    """
    said = names if texts is None else texts
    return element(
        "div",
        element("label", label, for_=f"{key}-slider"),
        element(
            "input",
            type="range",
            id=f"{key}-slider",
            min=0,
            max=len(names) - 1,
            step=1,
            value=start,
            data_slider=key,
            aria_valuetext=names[start],
            autocomplete="off",
        ),
        element(
            "output",
            [framed("span", key, frame, start, text, data_name=names[frame]) for frame, text in enumerate(said)],
            for_=f"{key}-slider",
            data_output=key,
        ),
        class_="slider",
        data_needs_script=True,
        hidden=True,
    )
