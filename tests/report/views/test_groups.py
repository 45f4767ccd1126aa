"""Groups on pages, in terminals and figures: worst first, with intervals that leave out the ideal or do not."""

from typing import Any

import numpy as np
import pytest

import certcal
from certcal.report.charts import Chart, NamedInterval, Panel, Points, Segments, TextRanges, around, forest
from certcal.report.document import Figures, Report, Strong, Table
from certcal.report.terminal import as_text
from tests.report.parsed import assert_sound

RNG = np.random.default_rng(8)
N = 1500
SCORE = RNG.beta(1.5, 4, N)
KIND = np.array(["usual", "usual", "other", "rare", "usual"])[np.arange(N) % 5]
TABLE = {
    "score": SCORE,
    "outcome": (RNG.random(N) < np.where(KIND == "other", np.minimum(1, 2 * SCORE), SCORE)).astype(int),
    "kind": KIND,
    "channel": np.array(["web", "shop"])[np.arange(N) % 2],
    "age": np.arange(N) % 47,
    "opened": np.datetime64("2024-01-01") + np.arange(N) % 180,
}


@pytest.fixture(scope="module")
def found() -> certcal.Measurement:
    return certcal.measure(TABLE, by=["kind", "kind*channel", "age", "opened"], bootstrap=0)


def section(made: Report) -> Any:
    return next(each for each in made.sections if each.title == "Groups")


def pictures(made: Report) -> dict[str, Chart]:
    (drawn,) = (block for block in section(made).blocks if isinstance(block, Figures))
    return {chart.title: chart for chart in drawn.charts}


def test_groups_are_drawn_worst_first_and_those_beyond_sampling_error_have_another_mark(
    found: certcal.Measurement,
) -> None:
    chart = pictures(found.report())["Groups, clearest first"]
    (panel,) = chart.panels
    assert isinstance(panel, Panel)
    assert panel.x.log
    names = [name for _, name in panel.y.ticks]
    assert names[:3] == ["kind=other", "other × shop", "other × web"]
    assert len(names) == 3 + 6 + 5  # periods have a chart of their own
    places = [place for place, _ in panel.y.ticks]
    assert places == sorted(places, reverse=True)
    ideal, lines, beyond, within = panel.marks
    assert isinstance(ideal, Segments)
    assert isinstance(lines, Segments)
    assert isinstance(beyond, Points)
    assert isinstance(within, Points)
    assert (beyond.label, within.label) == ("beyond sampling error", "not beyond sampling error")
    drawn = dict(zip(beyond.y, beyond.x, strict=True))
    for group, (low, y, high, _) in zip(
        (each for each in found.worst_groups if each.by != "opened"), lines.ends, strict=True
    ):
        assert group.rate is not None
        assert group.rate.ratio_interval is not None
        assert (low, high) == pytest.approx(np.clip(group.rate.ratio_interval, panel.x.low, panel.x.high))
        assert (y in drawn) == bool(group.rate.direction) == (not low <= 1 <= high)
    assert drawn[places[0]] == found.groups["kind=other"].rate.ratio  # pyright: ignore[reportOptionalMemberAccess]


def test_periods_are_drawn_in_their_order_with_what_was_predicted_and_observed(found: certcal.Measurement) -> None:
    chart = pictures(found.report())["Over time, by opened"]
    (panel,) = chart.panels
    assert isinstance(panel, Panel)
    assert [name for _, name in panel.x.ticks] == [f"2024-0{k}" for k in range(1, 7)]
    assert isinstance(chart.bars, TextRanges)
    assert [name for name, *_ in chart.bars.rows] == [name for _, name in panel.x.ticks]


def test_the_table_of_rates_has_every_group_and_says_how_columns_were_cut(found: certcal.Measurement) -> None:
    said, _, rates = section(found.report()).blocks
    assert "'age' is cut at its quintiles: 0–8, 9–18, 19–27, 28–36, 37–46." in said.text
    assert "'opened' is cut into months: 2024-01 to 2024-06." in said.text
    assert isinstance(rates, Table)
    assert len(rates.rows) == len(found.groups) == 20
    heads = [column.head for column in rates.columns]
    first = rates.rows[0]
    assert not isinstance(first, str)
    assert heads[:6] == ["group", "samples", "events", "mean score %", "observed rate %", "O/E"]
    assert isinstance(first[5], Strong)  # type: ignore[index]
    assert heads[-1] == "ECE 15"
    (per_group,) = (each for each in found.report().appendix if each.title == "Metrics per group")
    heads = [column.head for table in per_group.blocks for column in table.columns[2:]]
    assert len(heads) == 1 + len(found.groups)
    assert all(len(table.columns) <= 7 for table in per_group.blocks)
    named = certcal.measure(TABLE, by="kind", bootstrap=0, metrics=["brier_score", "accuracy", "base_rate"])
    (table,) = (block for block in section(named.report()).blocks if isinstance(block, Table))
    assert [column.head for column in table.columns][7:9] == ["gap, points", "joint interval of the gap"]
    assert {"Brier", "accuracy"} <= {column.head for column in table.columns}


def test_a_page_a_terminal_and_a_figure_show_them(found: certcal.Measurement) -> None:
    root = assert_sound(found.report().to_html())
    assert "Predicted and observed per group, clearest first" in root.text
    assert "other × shop" in root.text
    for ascii_only, marks in ((False, "┃●─"), (True, "|o-")):
        text = as_text(found.report(), width=80, ascii_only=ascii_only)
        assert max(map(len, text.split("\n"))) <= 80
        line = next(line for line in text.split("\n") if line.startswith("kind=other"))
        ideal, point, dash = marks
        drawn = line.removeprefix("kind=other").lstrip()
        assert drawn.index(ideal) < drawn.index(dash) < drawn.index(point)
    figure = found.plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert "Groups, clearest first" in titles
    assert "Over time, by opened" in titles


def test_what_lies_beyond_an_axis_stands_at_its_end_and_what_has_no_value_has_no_point() -> None:
    rows = [NamedInterval("a", 0.0, 0.0, 3.0), NamedInterval("b", 1.5, float("nan"), 900.0)]
    axis = around([end for row in rows for end in (row.low, row.value, row.high)], 1.0, "ratio", log=True)
    assert (axis.low, axis.high) == (0.5, 50.0)
    chart = forest("Two", rows, axis, 1.0, head=("group", "O/E"), beyond="beyond", within="within")
    (panel,) = chart.panels
    assert isinstance(panel, Panel)
    lines, points = panel.marks[1:]
    assert isinstance(lines, Segments)
    assert isinstance(points, Points)
    assert list(lines.ends) == [(0.5, 1.5, 3.0, 1.5), (1.5, 0.5, 50.0, 0.5)]
    assert (points.x, points.y, points.label) == ([0.5], [1.5], "within")


def test_of_many_groups_the_picture_has_those_with_most_evidence_and_the_table_all() -> None:
    many = certcal.measure(TABLE | {"id": [f"c{k % 70}" for k in range(N)]}, by="id", bootstrap=0)
    made = many.report()
    chart = pictures(made)["Groups, clearest first"]
    (panel,) = chart.panels
    assert isinstance(panel, Panel)
    assert [name for _, name in panel.y.ticks] == [each.name for each in many.worst_groups[:30]]
    assert chart.caption == "The 30 of 70 groups with the most evidence; the table has all."
    rates = next(block for block in section(made).blocks if isinstance(block, Table))
    assert len(rates.rows) == 70


def test_bounds_of_groups_are_drawn_from_both_sides_the_surest_error_on_top() -> None:
    found = certcal.bound(TABLE, by=["kind", "age"])
    chart = pictures(found.report())["Groups"]
    assert isinstance(chart.bars, TextRanges)
    assert chart.bars.rows[0][0] == "kind=other"
    ends = found.groups["kind=other"].interval
    assert chart.bars.rows[0][1][::2] == (ends.lower.value, ends.upper.value)
    assert "'age' is cut at its quintiles" in section(found.report()).blocks[0].text
