"""Widths of certified confidence intervals, by kind of certificate and radius."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.report.figures._canvas import COLOURS, GREY, HATCHES, legend, new_figure, set_title, shortened, tidy

if TYPE_CHECKING:
    from certcal.smoothing import Certificates

_MOST_PANELS, _MOST_RADII = 6, 16


def interval_widths(certificates: Iterable[Certificates] | Mapping[str, Iterable[Certificates]]) -> Any:
    """Draw how wide the confidence intervals of the certified samples are, a box per kind of certificate and radius.

    A box reaches from the first to the third quartile, the line in it is the median, and the whiskers end at the 5 %
    and 95 % quantiles. Narrower is better; a width of 1 says nothing.

    Parameters
    ----------
    certificates
        Several ``certcal.smoothing.Certificates``, of different kinds or radii; or a mapping from names (of runs, or
        of the noise) to such, for a panel each.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.smoothing import Counts, certificates
    >>> x = np.random.default_rng(0).beta(50, 0.5, (2, 1000))
    >>> counts = Counts.from_confidences(x, np.linspace(0.01, 0.99, 99), votes=[1000, 980], sigma=0.5)
    >>> kinds = [certificates(counts, 0.25, confidence=kind) for kind in ("tight", "standard")]
    >>> figure = interval_widths(kinds)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['tight', 'standard']
    """
    panels = {name: list(members) for name, members in _panels(certificates).items()}
    if not 1 <= len(panels) <= _MOST_PANELS or not all(panels.values()):
        raise InputError(f"{len(panels)} panels were asked for; draw from 1 to {_MOST_PANELS}, none of them empty")
    kinds = list(dict.fromkeys(one.confidence for members in panels.values() for one in members))
    widest = max(len({one.radius for one in members}) for members in panels.values())
    size = max(4.2, 1.2 + widest * (0.35 + 0.28 * len(kinds)))
    columns = min(len(panels), max(1, int(14 / size)))
    figure = new_figure(figsize=(size * columns, 3.6 * -(-len(panels) // columns) + 0.4))
    axes = figure.subplots(-(-len(panels) // columns), columns, squeeze=False, sharey=True).flatten()
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    for ax, (name, members) in zip(axes, panels.items(), strict=False):
        _draw_boxes(ax, members, kinds)
        set_title(ax, shortened(name))
    patch = import_module("matplotlib.patches").Patch
    handles = [patch(**_look(place), edgecolor="black") for place in range(len(kinds))]
    legend(figure, handles, kinds, columns=5)
    return figure


def _panels(given: Any) -> dict[str, Iterable[Certificates]]:
    if isinstance(given, Mapping):
        return dict(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return {"": given}


def _look(place: int) -> dict[str, Any]:
    return {"facecolor": COLOURS[place % len(COLOURS)], "hatch": HATCHES[place % len(HATCHES)], "alpha": 0.75}


def _draw_boxes(ax: Any, members: list[Certificates], kinds: list[str]) -> None:
    from certcal.smoothing._widths import widths_of

    radii = sorted({one.radius for one in members})
    if len(radii) > _MOST_RADII:
        raise InputError(f"certificates are at {len(radii)} radii, too many to draw; pass at most {_MOST_RADII}")
    if len({(one.radius, one.confidence) for one in members}) < len(members):
        raise InputError("two certificates have the same kind and radius; pass each once, or a mapping with names")
    slot = 0.8 / len(kinds)
    drawn: set[float] = set()
    for one in members:
        widths = widths_of(one)
        if widths is None:
            continue
        drawn.add(one.radius)
        kind = kinds.index(one.confidence)
        low, first, median, third, high = widths.quantiles
        boxes = ax.bxp(
            [{"whislo": low, "q1": first, "med": median, "q3": third, "whishi": high, "fliers": []}],
            positions=[radii.index(one.radius) + slot * (kind - (len(kinds) - 1) / 2)],
            widths=0.85 * slot,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": "black", "linewidth": 1.6},
        )["boxes"]
        boxes[0].set(**_look(kind), edgecolor="black")
    for place, radius in enumerate(radii):
        if radius not in drawn:
            ax.text(place, 0.5, "no sample\nis certified", ha="center", va="center", fontsize="small", color=GREY)
    ax.set(xlabel="radius", ylabel="width of the interval", xlim=(-0.6, len(radii) - 0.4), ylim=(0, 1))
    ax.set_xticks(range(len(radii)), [f"{radius:g}" for radius in radii])
    tidy(ax, grid=True)
    ax.yaxis.set_tick_params(labelleft=True)
