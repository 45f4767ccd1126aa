"""Tables and diagrams in the terminal: readable at 80 columns, without colour, and in ASCII."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import certcal
from certcal._text import printable
from certcal.claims import Estimate, Interval
from certcal.metrics import reliability
from certcal.report._old_terminal import ReliabilityDiagram, comparison, interval, metrics_table, number
from certcal.report.names import NAMES, in_sections

RNG = np.random.default_rng(2)
CONFIDENCE = RNG.random(500)
CORRECT = RNG.random(500) < CONFIDENCE**2
PREDICTIONS = certcal.Predictions.from_confidence(CONFIDENCE, CORRECT)


class Ascii(io.StringIO):
    encoding = "ascii"


def shown(renderable, width=80, *, ascii_only=False):
    console = Console(
        file=Ascii() if ascii_only else io.StringIO(), width=width, color_system=None, force_terminal=False
    )
    console.print(renderable)
    return console.file.getvalue()


def bars(text):
    """The lines of a diagram that stand for bins."""
    return [line for line in text.splitlines() if re.match(r"\d\.\d+ [–-] \d\.\d+", line)]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("bins", [1, 2, 15, 40])
def test_diagrams_never_exceed_the_terminal(width, bins):
    text = shown(ReliabilityDiagram(reliability(CONFIDENCE, CORRECT, bins=bins)), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert len(bars(text)) <= bins


def test_over_and_underconfidence_are_told_without_colour():
    over, under = bars(shown(ReliabilityDiagram(reliability([0.4] * 4 + [0.9] * 4, [1, 1, 1, 0, 1, 0, 0, 0], bins=2))))[
        ::-1
    ]
    assert "−0.650 over" in over
    assert "░" in over
    assert "▓" not in over
    assert "+0.350 under" in under
    assert "▓" in under
    assert "░" not in under


def test_perfect_bins_have_no_gap():
    (line,) = bars(shown(ReliabilityDiagram(reliability([0.5, 0.5], [1, 0], bins=1))))
    assert " 0.000 " in line
    assert "over" not in line
    assert "under" not in line


def test_the_ascii_diagram_says_the_same():
    prepared = reliability(CONFIDENCE, CORRECT, bins=10)
    fancy, plain = shown(ReliabilityDiagram(prepared)), shown(ReliabilityDiagram(prepared), ascii_only=True)
    assert plain.isascii()
    assert not fancy.isascii()
    numbers = [re.findall(r"[\d.,]+", line) for line in bars(plain)]
    assert len(numbers) == 10
    for fancy_line, plain_line in zip(bars(fancy), bars(plain), strict=True):
        assert fancy_line.translate(str.maketrans("█░▓┃–−", "#.+|--")) == plain_line


def test_counts_are_those_of_the_table_and_empty_bins_are_zero():
    prepared = reliability([0.05, 0.95, 0.95], [0, 1, 1], bins=10)
    lines = bars(shown(ReliabilityDiagram(prepared)))
    assert [int(line.split()[-1]) for line in lines] == prepared.table.count.tolist()


def test_many_bins_show_only_those_with_samples_and_say_so():
    text = shown(ReliabilityDiagram(reliability([0.05, 0.95, 0.951], [0, 1, 1], bins=1000)))
    assert len(bars(text)) == 3
    assert "997 empty bins are not shown" in text


@pytest.mark.parametrize("edge", [0.0, 1.0])
def test_confidences_at_the_ends_are_drawn(edge):
    for outcome in (0, 1):
        (line,) = [
            row for row in bars(shown(ReliabilityDiagram(reliability([edge], [outcome], bins=5)))) if row.endswith("1")
        ]
        assert "┃" in line


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_numbers_are_short(value):
    text = number(value)
    assert text == "undefined" or np.isinf(value) or abs(value) >= 1e6 or len(text) <= 12


@pytest.mark.parametrize("noise", [2.2e-16, -5e-15])
def test_rounding_noise_is_shown_as_zero_and_small_numbers_are_not(noise):
    assert number(noise) == "0.0000"
    assert number(1e-12) == "1.0e-12"


def test_intervals_are_rounded_outward_and_left_out_when_infinite():
    assert interval(Estimate("ece", 0.1, 5, {}, Interval(0.12345, 0.23451, 0.95, "bca"))) == "0.1234 – 0.2346"
    assert interval(Estimate("nll", np.inf, 5, {}, Interval(np.inf, np.inf, 0.95, "bca"))) == ""
    assert interval(Estimate("ece", 0.1, 5)) == ""


@pytest.mark.parametrize("bootstrap", [0, 20])
def test_every_row_of_a_measurement_is_in_the_table(bootstrap):
    table = certcal.measure(PREDICTIONS, bins=(5, 10), bootstrap=bootstrap)
    text = shown(metrics_table(table.rows), 120)
    for row in table.rows:
        assert number(row.value) in text
    assert ("bootstrap" in text) == bool(bootstrap)
    assert "asymptotic" not in text
    assert max(map(cell_len, text.splitlines())) <= 80


def test_every_metric_has_a_place_under_a_heading():
    probabilities = RNG.dirichlet(np.ones(3), 200)
    rows = certcal.measure(certcal.Predictions.from_probabilities(probabilities, RNG.integers(0, 3, 200))).rows
    assert {row.name for row in rows} <= set(NAMES)
    assert "Other" not in [title for title, _ in in_sections(rows)]


def test_unknown_metrics_are_shown_under_other():
    assert "shiny new thing" in shown(metrics_table([Estimate("shiny_new_thing", 0.5, 3)]))


def test_tables_and_diagrams_in_ascii_hold_only_ascii_lines_and_boxes():
    table = certcal.measure(PREDICTIONS, metrics=["ece", "accuracy"])
    assert shown(metrics_table(table.rows), ascii_only=True).isascii()


@pytest.mark.parametrize("count", [1, 2, 3, 12])
@pytest.mark.parametrize("width", [80, 120])
def test_groups_fit_beside_or_below_each_other(count, width):
    rows = certcal.measure(PREDICTIONS).rows
    groups = [("all", rows), *((f"group {i}", rows) for i in range(count))]
    text = shown(comparison(groups, width, "site"), width)
    assert max(map(cell_len, text.splitlines())) <= width
    for name, _ in groups:
        assert name in text
    assert text.count(number(certcal.measure(PREDICTIONS)["ece"].value)) >= count + 1


def test_a_group_without_a_row_leaves_its_place_empty():
    groups = [("all", [Estimate("ece", 0.25, 4), Estimate("mce", 0.75, 4)]), ("a", [Estimate("ece", 0.5, 2)])]
    text = shown(comparison(groups, 100))
    assert "0.7500" in text
    assert text.count("0.5000") == 1


HOSTILE = ["\x1b[31mred", "[bold]markup[/bold]", "tab\tand\nnewline", "\u202ereversed", ":smile:", "日本語", "\ud800"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_from_files_cannot_control_the_terminal(name):
    rows = [Estimate("ece", 0.25, 4)]
    for count in (1, 9):
        text = shown(comparison([("all", rows), *((name, rows) for _ in range(count))], 80, by=name), 80)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert printable(name)[:6] in text
