"""Which samples a loss pulls at: gradient norms against p_A."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.report.figures._canvas import GREY, ORANGE, SKY, legend, new_figure, note, set_title, shortened, tidy

if TYPE_CHECKING:
    from certcal.training import GradientNorms, NormBox

# Where all quantiles of a box are 0, a logarithmic axis has no place for it: so many times below the least of others.
_BELOW = 0.3
_LOOKS = (SKY, ""), (ORANGE, "////")


def gradient_norm_boxes(found: GradientNorms) -> Any:
    """Draw the gradient norms of single samples by their p_A, on a logarithmic axis.

    Boxes hold the middle half with the median as a line, lines reach from 5 to 95 per cent. The number of samples is
    written below each. For a method that attacks its noise there are two boxes each, before and after the attack:
    Figure 5 of Sun et al. (2025). Norms of 0 are drawn at the lower edge, and said to be.

    Parameters
    ----------
    found
        From ``certcal.training.gradient_norms``.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.training import GradientNorms
    >>> p_a, norms = np.array([0.2, 0.9, 0.95]), np.array([9.0, 1.0, 2.0])
    >>> figure = gradient_norm_boxes(GradientNorms("gaussian", 0.5, 100, np.arange(3), p_a, norms))
    >>> figure.axes[0].get_yscale(), figure.axes[0].get_xlabel()
    ('log', 'p_A, share of noisy copies with the true label; number of samples')
    """
    series = [found] if found.before is None else [found.before, found]
    positive = [each for one in series for box in one.bins for each in box.quantiles or () if each > 0]
    if not positive:
        raise InputError(
            "every gradient norm is 0, so that a logarithmic axis has nothing to show; look at the numbers"
        )
    floor = _BELOW * min(positive)
    figure = new_figure(figsize=(6.4, 4.2))
    ax = figure.add_subplot()
    tidy(ax, grid=True)
    ax.set_yscale("log")
    handles: list[Any] = []
    for place, (one, (colour, hatch)) in enumerate(zip(series, _LOOKS, strict=False)):
        handles.append(_boxes(ax, one.bins, place, len(series), floor, colour, hatch))
    _axes(ax, found)
    if any(box.quantiles is not None and box.quantiles[0] <= 0 for one in series for box in one.bins):
        note(ax, "norms of 0 are drawn at the lower edge", y=0.04)
        ax.set_ylim(bottom=floor)
    if len(series) > 1:
        legend(figure, handles, ["noise as drawn", "after its attack"], columns=2)
    return figure


def _boxes(ax: Any, bins: Sequence[NormBox], place: int, several: int, floor: float, colour: str, hatch: str) -> Any:
    """The boxes of one series; returns what stands for it in a legend."""
    width = 0.7 / several
    known = [(where, box.quantiles) for where, box in enumerate(bins) if box.quantiles is not None]
    shown = [[max(each, floor) for each in quantiles] for _, quantiles in known]
    drawn = ax.bxp(
        [
            {"whislo": low, "q1": first, "med": median, "q3": third, "whishi": high}
            for low, first, median, third, high in shown
        ],
        positions=[where + (place - (several - 1) / 2) * width for where, _ in known],
        widths=0.9 * width,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": colour, "edgecolor": "black", "linewidth": 0.8, "hatch": hatch},
        medianprops={"color": "black", "linewidth": 1.6},
        manage_ticks=False,
    )
    return drawn["boxes"][0]


def _axes(ax: Any, found: GradientNorms) -> None:
    bins = found.bins
    middle = len(bins) / 2 - 0.5
    names = [f"{box.low:g}–{box.high:g}\n{box.count:,}" for box in bins]
    ax.set_xticks(range(len(bins)), labels=names, fontsize="x-small")
    ax.set_xlim(-0.6, len(bins) - 0.4)
    ax.axvline(middle, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    for side, word in ((-0.1, "hard"), (0.1, "easy")):
        align = "right" if side < 0 else "left"
        ax.text(
            middle + side, 1.0, word, transform=ax.get_xaxis_transform(), ha=align, va="bottom", fontsize="small",
            color=GREY,
        )  # fmt: skip
    ax.set(
        xlabel="p_A, share of noisy copies with the true label; number of samples", ylabel="gradient norm of a sample"
    )
    set_title(ax, shortened(f"{found.method}, σ = {found.sigma:g}"), loc="left")
