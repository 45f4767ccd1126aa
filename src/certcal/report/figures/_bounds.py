"""Of what a bound is made: its terms, stacked."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.claims import short_text
from certcal.report.figures._canvas import COLOURS, GREY, HATCHES, legend, new_figure, shortened, tidy

if TYPE_CHECKING:
    from certcal.claims import Bound

_MOST = 12


def bound_terms(bounds: Bound | Iterable[Bound] | Mapping[str, Bound]) -> Any:
    """Draw upper bounds as stacked bars of their terms, with the value that is claimed as a line across.

    The line is below the top of a bar when the sum of the terms exceeds what the quantity can be.

    Parameters
    ----------
    bounds
        One or several ``certcal.claims.Bound`` on the upper side, or a mapping that names them.

    Examples
    --------
    >>> from certcal.claims import Bound
    >>> terms = {"empirical worst case": 0.25, "deviation": 0.125, "certificate failures": 0.002}
    >>> figure = bound_terms({"R = 0.5": Bound("ece", 0.377, "upper", 0.05, 900, (), terms)})
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['empirical worst case', 'deviation', 'certificate failures', 'the bound']
    """
    named = _named(bounds)
    if not 1 <= len(named) <= _MOST:
        raise InputError(f"{len(named)} bounds were asked for in one figure; draw from 1 to {_MOST}")
    for name, bound in named:
        _check(name, bound)
    terms = list(dict.fromkeys(term for _, bound in named for term in bound.terms))
    if len(terms) > len(COLOURS):
        raise InputError(f"the bounds have {len(terms)} different terms, too many to tell apart; draw fewer together")
    figure = new_figure(figsize=(max(5.0, 1.6 + 1.1 * len(named)), 4.4))
    ax = figure.add_subplot()
    handles: list[Any] = []
    tops = [0.0] * len(named)
    for place, term in enumerate(terms):
        heights = [float(bound.terms.get(term, 0.0)) for _, bound in named]
        handles.append(
            ax.bar(
                range(len(named)),
                heights,
                0.62,
                bottom=tops,
                facecolor=COLOURS[place],
                hatch=HATCHES[place],
                alpha=0.75,
                edgecolor="black",
                linewidth=0.6,
            )
        )
        tops = [top + height for top, height in zip(tops, heights, strict=True)]
    for place, ((_, bound), top) in enumerate(zip(named, tops, strict=True)):
        line = ax.hlines(bound.value, place - 0.38, place + 0.38, color="black", linewidth=2.2, zorder=5)
        handles = [*handles, line] if place == 0 else handles
        above = max(top, bound.value)
        ax.annotate(
            f"≤ {bound.text}", (place, above), (0, 4), textcoords="offset points", ha="center", fontsize="small"
        )
        if not bound.terms:
            ax.text(place, bound.value / 2, "no terms given", ha="center", va="center", fontsize="x-small", color=GREY)
    highest = max(0.01, *tops, *(bound.value for _, bound in named))
    ax.set(ylim=(0, 1.12 * highest), xlim=(-0.6, len(named) - 0.4))
    ax.set_ylabel(_quantity([bound for _, bound in named]), parse_math=False)
    slanted = max(len(name) for name, _ in named) > 12
    ax.set_xticks(range(len(named)), [shortened(name) for name, _ in named], parse_math=False)
    if slanted and len(named) > 1:
        ax.tick_params(axis="x", rotation=25)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    tidy(ax, grid=True)
    longest = max(map(len, [*terms, ""]))
    legend(figure, handles, [*(shortened(term) for term in terms), "the bound"], columns=2 if longest > 14 else 3)
    return figure


def _named(bounds: Any) -> list[tuple[str, Bound]]:
    if isinstance(bounds, Mapping):
        return list(bounds.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    several: list[Bound] = [bounds] if hasattr(bounds, "terms") else list(bounds)
    return [(f"n = {bound.n:,}, δ = {short_text(bound.delta, 'upper')}", bound) for bound in several]


def _check(name: str, bound: Bound) -> None:
    if bound.side != "upper":
        raise InputError(f"the bound {name!r} is a lower one; stacked terms are drawn of upper bounds")
    if not math.isfinite(bound.value):
        raise InputError(f"the bound {name!r} is {bound.value}; only finite bounds can be drawn")
    for term, value in bound.terms.items():
        if not 0 <= value < math.inf:
            raise InputError(f"the term {term!r} of the bound {name!r} is {value}; terms are finite and at least 0")


def _quantity(bounds: list[Bound]) -> str:
    names = {bound.name for bound in bounds}
    return textwrap.fill(shortened(names.pop(), 120), 42) if len(names) == 1 else "upper bound"
