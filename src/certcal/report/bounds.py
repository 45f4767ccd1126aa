"""Bounds and what they add up to, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from certcal.claims import Bound, round_outward

_FILLS, _PLAIN_FILLS = "█▓▒░▚▞", "#=+-:*"
_COLOURS = ("blue", "cyan", "magenta", "yellow", "green", "red")
_WIDEST = 72
_CLASSWISE = "classwise_"
_NAMES = {"lipschitz": "Lipschitz", "binned_lower": "binned, from below"}


class BoundTerms:
    r"""A bar for each bound, as long as its value, made of its terms; which term is which stands below it.

    Parameters
    ----------
    bounds
        By method.

    Examples
    --------
    >>> terms = {"on the samples": 0.25, "deviation": 0.125}
    >>> bounds = {"binned": Bound("error", 0.375, "upper", 0.05, 9, (), terms)}
    >>> console = Console(width=60, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(BoundTerms(bounds))
    >>> print("\n".join(line.rstrip() for line in shown.get().splitlines()))
    binned  ≤ 0.3750
      █████████████████████████████████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
      █ on the samples 0.2500  ▓ deviation 0.1250
    """

    def __init__(self, bounds: Mapping[str, Bound]) -> None:
        self.bounds = bounds

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        plain = options.ascii_only
        fills = _PLAIN_FILLS if plain else _FILLS
        room = max(10, min(_WIDEST, options.max_width - 4))
        longest = max((_length(bound) for bound in self.bounds.values()), default=0.0) or 1.0
        for place, (name, bound) in enumerate(self.bounds.items()):
            if place:
                yield Text()
            relation = {"upper": "<=" if plain else "≤", "lower": ">=" if plain else "≥"}[bound.side]
            yield Text(f"{bound_name(name)}  {relation} {bound.text}", style="bold")
            if bound.side == "upper":
                yield Text("  ").append_text(_bar(bound, fills, room / longest))
            yield from _legend(bound, fills, options.max_width)


def bound_name(method: str) -> str:
    """What a method is called among people.

    Examples
    --------
    >>> bound_name("bounded_variation"), bound_name("classwise_lipschitz")
    ('bounded variation', 'Lipschitz, mean over classes')
    """
    short = method.removeprefix(_CLASSWISE)
    name = _NAMES.get(short, short.replace("_", " "))
    return name if short == method else f"{name}, mean over classes"


def bound_sentences(bounds: Iterable[Bound]) -> list[str]:
    """What bounds claim, each in a sentence of its own.

    Examples
    --------
    >>> bound_sentences([Bound("error", 0.375, "upper", 0.05, 9, ("draws are independent",))])
    ['Error is at most 0.3750 with probability at least 0.95 over the draw of 9 samples, if draws are independent.']
    """
    return [f"{bound.sentence[:1].upper()}{bound.sentence[1:]}" for bound in bounds]


def _length(bound: Bound) -> float:
    return sum(bound.terms.values()) if bound.side == "upper" else 0.0


def _bar(bound: Bound, fills: str, scale: float) -> Text:
    """Cells for each term; rounding is carried on, so that the bar is as long as the sum."""
    bar, drawn, reached = Text(no_wrap=True, overflow="crop"), 0, 0.0
    for place, value in enumerate(bound.terms.values()):
        reached += value
        end = round(reached * scale)
        bar.append(fills[place % len(fills)] * (end - drawn), style=_COLOURS[place % len(_COLOURS)])
        drawn = max(drawn, end)
    return bar


def _legend(bound: Bound, fills: str, width: int) -> Iterator[Text]:
    """The terms with their values, none of them broken over two lines."""
    line = ""
    for place, (term, value) in enumerate(bound.terms.items()):
        mark = f"{fills[place % len(fills)]} " if bound.side == "upper" else ""
        entry = f"{mark}{term} {round_outward(value, bound.side)}"
        if line and len(line) + 2 + len(entry) > width - 2:
            yield Text(f"  {line}", style="dim")
            line = ""
        line = f"{line}  {entry}" if line else entry
    if line:
        yield Text(f"  {line}", style="dim")
