"""The samples of a run: how wide their intervals are, how sure the votes, and which of them matter most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._html import Child, Raw, element, join, table
from certcal.claims import round_outward
from certcal.report.numbers import number
from certcal.report.page._axes import Axis, covering, ticks
from certcal.report.page._curves import BETWEEN, curves
from certcal.report.page._frames import chosen
from certcal.report.page._pieces import figure, note, row, scrolling
from certcal.report.page._png import image
from certcal.report.page._run_radii import NOTHING
from certcal.report.page._svg import Frame, chart, legend
from certcal.smoothing import CONFIDENCES, Review, Reviewed, TellingSample, Widths
from certcal.smoothing.robustness import PaCurve

# Kinds of certificates that nobody asked for are computed for a figure alone: at this many radii, and at fewer where
# that would take longer than the rest of the page.
MOST_WIDTHS, FEWER_WIDTHS, MANY_SAMPLES = 13, 5, 2000
_LARGEST_SIDE = 96
_SHARES = ("5 %", "25 %", "median", "75 %", "95 %")


def widths(review: Review) -> Raw:
    """How wide the intervals of each kind of certificate are: distribution at the headline's radius, and medians."""
    radius = review.radii[review.headline]
    found = {kind: review.widths(kind) for kind in CONFIDENCES}
    known = {kind: each for kind, each in found.items() if each is not None}
    first, *others = review.kinds
    said = (
        f"{'The headline' if others else 'Every claim'} of this page is from {first} "
        "certificates; other kinds are here to be compared. Of several kinds, the one that is used must be chosen "
        "before looking."
    )
    medians = _medians(review) if len(review.radii) > 1 else None
    if not known:
        nothing = element("p", f"No sample is certified at radius {radius}, so there is no interval to measure.")
        return join(nothing, row(medians) if medians is not None else None)
    return join(
        element("p", said),
        row(
            figure(
                _width_steps(known, radius),
                f"The share of the {next(iter(known.values())).n:,} certified samples whose interval at radius "
                f"{radius} is no wider than that. Curves further left are better.",
                legend=_kinds_legend(known),
                heading=f"At radius {radius}",
                numbers=_width_table(known, f"Widths of the intervals at radius {radius}"),
            ),
            medians,
        ),
    )


def _width_steps(known: Mapping[str, Widths], radius: str) -> Raw:
    across = covering([float(each.values[-1]) for each in known.values()], "width of the interval", most=1.0)
    frame = Frame(across, Axis(0.0, 1.0, ticks(0, 1), "share of samples"), height=220)
    drawn = [
        frame.steps([0.0, *each.values.tolist()], [0.0, *each.shares.tolist()], CONFIDENCES.index(kind))
        for kind, each in known.items()
    ]
    said = " ".join(f"{kind}: median {_up(each.median)}." for kind, each in known.items())
    title = f"Distribution of interval widths at radius {radius}"
    return chart("width-steps", title, said, frame.furniture(), drawn, height=frame.bottom + 46)


def _kinds_legend(kinds: Mapping[str, Any]) -> Raw:
    return legend(*((f"line {CONFIDENCES.index(kind)}", kind) for kind in kinds))


def _width_table(known: Mapping[str, Widths], caption: str) -> Raw:
    rows = [(kind, _up(each.mean), *map(_up, each.quantiles)) for kind, each in known.items()]
    header = ["certificate", "mean", *_SHARES]
    return scrolling(table(header, rows, caption, numeric=range(1, 7), row_headers=True), caption)


def _medians(review: Review) -> Raw | None:
    most = MOST_WIDTHS if len(review.counts) <= MANY_SAMPLES else FEWER_WIDTHS
    places = chosen(len(review.radii), review.headline, most)
    radii = [float(review.radii[place]) for place in places]
    found = {kind: [review.widths(kind, place) for place in places] for kind in CONFIDENCES}
    if all(each is None for row in found.values() for each in row):
        return None
    picture, keys = curves(
        "width-medians",
        "Median width of the intervals against the radius",
        radii,
        {kind: [math.nan if each is None else each.median for each in row] for kind, row in found.items()},
        x_label="radius",
        y_label="median width",
        description=" ".join(
            f"{kind}: {_or_nothing(row[0])} at radius {review.radii[places[0]]}, "
            f"{_or_nothing(row[-1])} at radius {review.radii[places[-1]]}."
            for kind, row in found.items()
        ),
        most=1.0,
    )
    caption = "Quartiles of the widths by radius: 25 %, median, 75 %"
    rows = [
        (review.radii[place], *(_quartiles(found[kind][i]) for kind in CONFIDENCES)) for i, place in enumerate(places)
    ]
    numbers = scrolling(table(["radius", *CONFIDENCES], rows, caption, numeric=range(6), row_headers=True), caption)
    thinned = f" {len(places)} of {len(review.radii):,} radii." if len(places) < len(review.radii) else ""
    return figure(
        picture,
        f"The width that half of the certified samples do not exceed.{thinned} {BETWEEN}",
        legend=keys,
        heading="Against the radius",
        numbers=numbers,
    )


def _quartiles(each: Widths | None) -> str:
    return NOTHING if each is None else " · ".join(_up(value) for value in each.quantiles[1:4])


def _or_nothing(each: Widths | None) -> str:
    return "undefined" if each is None else _up(each.median)


def _up(value: float) -> str:
    return round_outward(value, "upper")


def p_a_steps(found: PaCurve, frame: Frame, series: int, *, high: bool = False) -> Raw:
    """P(p_A >= p) as a staircase: a share holds from the p before it up to its own."""
    shares = found.upper if high else found.lower
    return frame.steps([found.p[0], *found.p[:-1]], shares.tolist(), series)


def p_a_frame() -> Frame:
    """Axes of a distribution of p_A: only p of at least one half can certify anything."""
    across = Axis(0.5, 1.0, ticks(0.5, 1), "p")
    return Frame(across, Axis(0.0, 1.0, ticks(0, 1), "share with p_A ≥ p"), height=220)


def p_a(review: Review) -> Raw:
    """The distribution of p_A."""
    seen = review.p_a
    found, frame = seen.curve(), p_a_frame()
    shares = {p: float(seen.survival(p)[0]) for p in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)}
    said = " ".join(f"{number(shares[p])} of the samples have p_A of at least {p:g}." for p in (0.5, 0.9, 0.99, 1.0))
    picture = chart(
        "p-a",
        "Distribution of p_A",
        said,
        frame.furniture(),
        p_a_steps(found, frame, 0),
        height=frame.bottom + 46,
    )
    caption = "Shares of the samples"
    rows = [(f"{p:g}", number(share)) for p, share in shares.items()]
    thinned = f" {found.p.size} of its steps are drawn; those are exact." if found.thinned else ""
    return row(
        figure(
            picture,
            "p_A of a sample is the probability that noise leaves its true class on top, estimated by the share of "
            "votes, and 0 where another class was chosen. A sample is certified at a radius when its p_A is large "
            f"enough, so this curve decides certified accuracy at every radius.{thinned}",
            numbers=scrolling(table(["p", "share with p_A ≥ p"], rows, caption, numeric=(0, 1)), caption),
        )
    )


def telling(
    samples: Sequence[TellingSample], one: Reviewed, inputs: NDArray[np.float32] | None, words: str | None
) -> Raw:
    """The samples that add most to the worst calibration error, with their images when there are some.

    Parameters
    ----------
    samples
        Most telling first.
    one
        The line of the headline.
    inputs
        Images of all samples, or None.
    words
        What to say instead of images, or None.
    """
    if not samples or one.worst is None:
        return element("p", f"No sample is certified at radius {one.radius}, so none adds to a worst case.")
    rows: list[Sequence[Child]] = []
    for each in samples:
        picture = None
        if inputs is not None:
            alternative = f"sample {each.index}: class {each.label}, predicted {each.predicted}"
            picture = image(_shrunk(inputs[each.index]), alternative, size=64)
        predicted = f"{each.predicted}" if each.predicted == each.label else f"{each.predicted} (wrong)"
        rows.append(
            (
                *([picture] if inputs is not None else []),
                f"{each.index}",
                f"{each.label}",
                predicted,
                f"{each.votes:,} of {each.draws:,}",
                number(each.confidence),
                each.interval_text,
                number(each.witness),
                number(each.contribution),
            )
        )
    pictured = ["image"] if inputs is not None else []
    header = [
        *pictured,
        "sample",
        "true class",
        "predicted",
        "votes",
        "confidence (estimate)",
        "certified interval",
        "in the worst case",
        "adds",
    ]
    caption = f"The {len(rows)} samples that add most at radius {one.radius}"
    shift = len(pictured)
    return join(
        element(
            "p",
            f"What all samples add is the worst calibration error of {one.worst.text}. A sample adds most when it is "
            "wrong and its confidence can be high, or right and its confidence can be low.",
        ),
        scrolling(
            table(header, rows, caption, numeric=[shift, *range(shift + 3, shift + 8)], class_="samples"), caption
        ),
        note(words) if words is not None else None,
    )


def _shrunk(values: NDArray[np.float32]) -> NDArray[Any]:
    """Fewer pixels of a large image; values of 0 to 1 as bytes, so that dark images stay dark."""
    channels_first = values.ndim == 3 and values.shape[0] in (1, 3)
    sides = values.shape[1:] if channels_first else values.shape[:2]
    step = max(1, -(-max(sides) // _LARGEST_SIDE))
    small = values[:, ::step, ::step] if channels_first else values[::step, ::step]
    if small.min() >= 0 and small.max() <= 1:
        small = np.rint(small * 255).astype(np.uint8)
    return small
