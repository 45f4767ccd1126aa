"""Charts about worst cases and certificates: where samples go, and interval widths.

Each returns a :class:`~certcal.report.charts.Chart`; ``chart.figure()`` draws it with matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from certcal._base.checks import InputError
from certcal.claims import round_outward
from certcal.report.charts import (
    MOST_SERIES,
    Axis,
    Boxes,
    Chart,
    Line,
    Mark,
    Panel,
    Points,
    Segments,
    Words,
    covering,
    named_axis,
    unit,
)
from certcal.report.document import Block, Choice, Column, Table, Text
from certcal.report.reliability import SIGNS, reliability_chart, shared_counts

if TYPE_CHECKING:
    from certcal.metrics import Reliability
    from certcal.smoothing import Certificates, Widths
    from certcal.worst_case import WorstCase

_MOST_SAMPLES, _MOST_BOXES = 60, 40
_QUANTILES = ("5 %", "25 %", "median", "75 %", "95 %")


def worst_case_charts(clean: Reliability, worst: WorstCase) -> list[Chart]:
    """The reliability diagram of the clean confidences, and that of the worst ones inside their intervals.

    Parameters
    ----------
    clean
        From ``certcal.metrics.reliability``, of the same samples and bins.
    worst
        From ``certcal.worst_case.calibration_error``.

    Examples
    --------
    >>> from certcal.metrics import reliability
    >>> from certcal.worst_case import calibration_error
    >>> worst = calibration_error([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3)
    >>> [each.caption.split(",")[0] for each in worst_case_charts(reliability([0.4, 0.7], [1, 0], bins=3), worst)]
    ['ECE 65.00%', 'ECE at most 90.01%']
    """
    table = worst.bins
    if table is None:
        raise InputError(f"worst is a {worst.name}, which has no bins; pass a result of calibration_error")
    if not np.array_equal(table.edges, clean.table.edges) or table.closed != clean.table.closed:
        raise InputError("clean and worst have other bins; compute both with the same bins, edges and closed")
    axis = shared_counts([clean.table, table])
    title = "Worst case" if worst.extreme == "highest" else "Best case"
    return [reliability_chart(clean, "Clean", axis=axis), extreme_chart(worst, title, axis)]


def extreme_chart(worst: WorstCase, title: str, axis: Axis | None, name: str = "ECE") -> Chart:
    """The reliability diagram of the witness: confidences inside the intervals that reach the worst or best case."""
    from certcal.metrics import Reliability

    assert worst.bins is not None
    claimed = worst.value if worst.lower_end is None else worst.lower_end
    witness = Reliability(worst.bins, claimed)
    relation = "at most" if worst.extreme == "highest" else "at least"
    return reliability_chart(witness, title, caption=SIGNS, signs=worst.signs, axis=axis, relation=relation, name=name)


def by_radius(
    key: str, names: Sequence[str], start: int, states: Sequence[Sequence[Block]], radii: int, others: str = ""
) -> list[Block]:
    """States behind a slider of radii, with a note where it has fewer than there are; a single state as it is."""
    if len(states) == 1:
        return list(states[0])
    note = f"The slider has {len(states):,} of {radii:,} radii{others}."
    return [Choice(key, "Radius", names, start, states), *([Text(note, "note")] if len(states) < radii else [])]


def sign_runs(worst: WorstCase, lower: Any, upper: Any, correct: Any) -> Chart:
    """Each sample's interval over bins marked with their sign, and the confidence it takes in the worst case.

    Correct samples go to the first '+' bin they reach, incorrect ones to the last '−' bin.

    Parameters
    ----------
    worst
        From ``certcal.worst_case.calibration_error``.
    lower, upper, correct
        What it was computed from, up to 60 samples.

    Examples
    --------
    >>> from certcal.worst_case import calibration_error
    >>> samples = [0.1, 0.5], [0.6, 0.9], [1, 0]
    >>> sign_runs(calibration_error(*samples, bins=3), *samples).panels[0].x.label
    'confidence'
    """
    low, high, c = np.asarray(lower, np.float64), np.asarray(upper, np.float64), np.asarray(correct)
    if worst.signs is None or worst.bins is None:
        raise InputError("worst has no signs; pass a result of certcal.worst_case.calibration_error")
    if low.size > _MOST_SAMPLES:
        raise InputError(f"lower has {low.size} samples, too many to draw; pass at most {_MOST_SAMPLES}")
    if not low.size == high.size == c.size == worst.witness.size:
        raise InputError(
            f"lengths differ: lower has {low.size}, upper {high.size}, correct {c.size} and the worst case "
            f"{worst.witness.size}; pass what worst was computed from"
        )
    edges, n = worst.bins.edges.tolist(), low.size
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    rows = np.lexsort((low, c))
    marks: list[Mark] = [
        Segments([(edge, 0.0, edge, n + 0.5) for edge in edges], "zero"),
        Words(middles, [n + 0.7] * len(middles), ["+" if sign > 0 else "−" for sign in worst.signs], "sign"),
    ]
    for right, look, label in ((1, 0, "correct: goes to the first + bin"), (0, 1, "wrong: goes to the last − bin")):
        places = np.flatnonzero(c[rows] == right)
        heights = (places + 0.5).tolist()
        ends = zip(low[rows[places]], heights, high[rows[places]], heights, strict=True)
        marks.append(Segments([cast("Any", tuple(map(float, each))) for each in ends], look))
        marks.append(Points(worst.witness[rows[places]].tolist(), heights, look, label))
    upright = Axis(0.0, n + 1.2, (), "samples")
    said = f"{n} samples, {len(middles)} bins; the calibration error is at most {worst.text}."
    return Chart("Signs and samples", said, [Panel(unit("confidence"), upright, marks, 60.0 + 14 * n)], SIGNS)


def widths_chart(widths: Mapping[str, Widths], radius: str, kinds: Sequence[str] | None = None) -> Chart:
    """The share of the certified samples whose interval is no wider than that, by kind of certificate."""
    order = list(widths) if kinds is None else list(kinds)
    marks: list[Mark] = [
        Line(
            [0.0, *each.values.tolist()],
            [0.0, *each.shares.tolist()],
            order.index(kind) % MOST_SERIES,
            kind,
            "post",
            markers=False,
        )
        for kind, each in widths.items()
    ]
    across = covering([float(each.values[-1]) for each in widths.values()], "width of the interval", most=1.0)
    n = next(iter(widths.values())).n
    return Chart(
        f"Interval widths at radius {radius}",
        " ".join(f"{kind}: median {round_outward(each.median, 'upper')}." for kind, each in widths.items()),
        [Panel(across, unit("share of samples"), marks, 220)],
        f"The share of the {n:,} certified samples whose interval is no wider. Curves further left are better.",
        _widths_table(widths, f"Widths of the intervals at radius {radius}"),
    )


def _widths_table(widths: Mapping[str, Widths | None], caption: str) -> Table:
    def texts(each: Widths | None) -> Iterable[str]:
        return [""] * 6 if each is None else [round_outward(v, "upper") for v in (each.mean, *each.quantiles)]

    columns = [Column("certificate"), *(Column(head, "bound") for head in ("mean", *_QUANTILES))]
    return Table(columns, [[name, *texts(each)] for name, each in widths.items()], caption)


def interval_widths(certificates: Iterable[Certificates]) -> Chart:
    """Boxes of the widths of certified intervals, one per kind of certificate and radius.

    A box reaches from the first to the third quartile, the line in it is the median, and the whiskers end at the 5 %
    and 95 % quantiles. Narrower is better; a width of 1 says nothing.

    Parameters
    ----------
    certificates
        Of different kinds or radii, such as ``certcal.smoothing.certificates`` makes; at most 40.

    Examples
    --------
    >>> from certcal.smoothing import Counts, certificates
    >>> x = np.random.default_rng(0).beta(50, 0.5, (2, 1000))
    >>> counts = Counts.from_confidences(x, np.linspace(0.01, 0.99, 99), votes=[1000, 980], sigma=0.5)
    >>> chart = interval_widths(certificates(counts, 0.25, confidence=kind) for kind in ("tight", "standard"))
    >>> [text for _, text in chart.panels[0].x.ticks]
    ['tight, R = 0.25', 'standard, R = 0.25']
    """
    several = [(one, one.widths()) for one in certificates]
    known = [(one, widths) for one, widths in several if widths is not None]
    if not 1 <= len(several) <= _MOST_BOXES:
        raise InputError(f"{len(several)} certificates were given; draw from 1 to {_MOST_BOXES}")
    names = [f"{one.confidence}, R = {one.radius:g}" for one, _ in several]
    if len(set(names)) < len(names):
        raise InputError("two certificates have the same kind and radius; pass each once")
    nan = (float("nan"),) * 5
    quantiles = [nan if widths is None else widths.quantiles for _, widths in several]
    marks: list[Mark] = [Boxes(*map(list, zip(*quantiles, strict=True)))]
    marks += [Words([i + 0.5], [0.5], ["none certified"]) for i, (_, widths) in enumerate(several) if widths is None]
    return Chart(
        "Interval widths",
        f"Widths of the intervals of {len(known)} certificates.",
        [Panel(named_axis(names), unit("width of the interval"), marks, 260)],
        "Boxes: quartiles and median; whiskers: 5 % and 95 % quantiles.",
        _widths_table(dict(zip(names, (widths for _, widths in several), strict=True)), "Widths of the intervals"),
        size="wide" if len(names) > 6 else "normal",
    )
