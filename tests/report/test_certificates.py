"""Tables of certified values: the texts of the summary, readable at 80 columns, without colour, and in ASCII."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from certcal.claims import Certificate, Ledger
from certcal.report.certificates import (
    CertifiedLines,
    Line,
    Method,
    MethodsTable,
    duration,
    summary_table,
    terms_text,
    verdict_text,
)
from certcal.worst_case import certify

RNG = np.random.default_rng(3)
N = 60
Z = RNG.beta(6, 2, N)
CORRECT = (RNG.random(N) < Z).astype(int)
MARGIN = RNG.random(N)


def at(radius, *, masked=True):
    lower, upper = np.clip(Z - radius, 0, 1), np.clip(Z + radius, 0, 1)
    return certify(lower, upper, CORRECT, certified=radius < MARGIN if masked else None)


class Ascii(io.StringIO):
    encoding = "ascii"


def shown(renderable, width=80, *, ascii_only=False):
    console = Console(file=Ascii() if ascii_only else io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    return console.file.getvalue()


def row(text, name):
    (line,) = [line for line in text.splitlines() if line.strip().startswith(name)]
    return line.strip().removeprefix(name).split()


def test_the_block_shows_the_range_over_certified_and_the_worst_over_all_samples():
    summary = at(0.1)
    text = shown(summary_table(summary))
    error, brier = summary["calibration_error"], summary["brier_score"]
    assert row(text, "ECE, 15 bins, exactly") == [error.lowest_text, error.worst.text, error.worst_all.text]
    assert row(text, "Brier score") == [brier.lowest_text, brier.worst.text, brier.worst_all.text]
    assert row(text, "certified accuracy") == [summary.accuracy.text]
    assert row(text, "skill over one constant") == [summary.skill.text]
    assert row(text, "skill of the best monotone map") == [summary.information.best_skill.text]
    assert row(text, "each except with probability 0.05") == [summary.population.text, summary.population_all.text]
    assert float(row(text, "+ chance of the draw")[0]) >= summary.population.terms["deviation"]
    assert max(map(cell_len, text.splitlines())) <= 80


def test_when_all_samples_are_certified_there_is_one_pair_of_columns():
    summary = at(0.1, masked=False)
    text = shown(summary_table(summary))
    assert text.count("at most") == 1
    assert "certified," not in text
    assert row(text, "Kolmogorov–Smirnov, no bins") == [
        summary["ks_error"].lowest_text,
        summary["ks_error"].worst.text,
    ]


def test_when_nothing_is_certified_the_values_are_undefined_and_those_of_all_samples_stay():
    summary = at(2)
    text = shown(summary_table(summary))
    assert row(text, "ECE, 15 bins, exactly") == ["undefined", summary["calibration_error"].worst_all.text]
    assert row(text, "each except with probability 0.05") == ["undefined", "1.0000"]
    assert row(text, "log loss") == ["undefined", "inf"]
    assert row(text, "skill of the best monotone map") == ["undefined"]


def test_the_verdict_comes_with_the_parts_of_the_brier_score():
    found = at(0.1).information
    parts = (found.miscalibration.text, found.resolution.text, found.uncertainty.text)
    assert verdict_text(found, "0.1") == (
        "{} The certified Brier score is {} miscalibration - {} resolution + {} uncertainty.".format(
            found.verdict_at("0.1"), *parts
        )
    )
    nothing = at(2).information
    assert verdict_text(nothing, None) == nothing.verdict


LINES = [Line(str(radius), None, at(radius)) for radius in (0.05, 0.25, 2)]
GROUPED = [
    Line(str(radius), group, at(radius)) for radius in (0.05, 0.25) for group in (None, "north", "a long\x1b name")
]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("lines", [LINES, GROUPED])
def test_lines_never_exceed_the_terminal_and_none_is_lost(width, lines):
    text = shown(CertifiedLines(lines, "clinic"), width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert sum(line.summary.accuracy.text in text for line in lines) == len(lines)
    assert "\x1b" not in text


def test_each_radius_has_a_line_with_every_value_at_80_columns():
    text = shown(CertifiedLines(LINES))
    summary = LINES[0].summary
    assert row(text, "0.05") == [
        str(summary.n_certified),
        summary.accuracy.text,
        summary["brier_score"].worst.text,
        summary.skill.text,
        summary["ks_error"].worst.text,
        summary["calibration_error"].worst.text,
        summary["calibration_error"].worst_all.text,
        summary.population.text,
    ]
    assert row(text, "2") == ["0", "0.0000", *"----", LINES[2].summary["calibration_error"].worst_all.text, "-"]


def test_a_wider_terminal_shows_more_columns_and_a_narrow_one_keeps_the_main_ones():
    assert "chance" in shown(CertifiedLines(LINES), 120)
    narrow = shown(CertifiedLines(GROUPED, "clinic"), 60)
    assert "chance" not in narrow
    assert "accuracy" in narrow
    assert "ECE" in narrow


def test_columns_about_uncertified_samples_appear_only_when_there_are_some():
    text = shown(CertifiedLines([Line("0.1", None, at(0.1, masked=False))] * 2))
    assert "all" not in text
    assert "samples" in text


def test_groups_without_radius_stand_below_the_whole():
    text = shown(CertifiedLines([Line(None, None, at(0.1)), Line(None, "north", at(0.1))], "clinic"))
    assert "radius" not in text
    names = [line.split()[0] for line in text.splitlines()[4:] if line.strip()]
    assert names == ["all", "north"]


def test_signs_have_ascii_cousins():
    assert "≥" in shown(CertifiedLines(LINES))
    text = shown(CertifiedLines(LINES), ascii_only=True)
    assert ">=" in text
    assert "≥" not in text


def test_methods_say_what_their_values_claim():
    methods = [
        Method(radius, name, 0.3, text, seconds, is_exact)
        for radius in ("0.5", "1")
        for name, text, seconds, is_exact in (("exact", "0.3000", 0.002, True), ("ADMM", "0.2711", 3.0, False))
    ]
    text = shown(MethodsTable(methods))
    assert row(text, "0.5 ") == ["exact", "at", "most", "0.3000", "2", "ms"]
    assert row(text, "1 ") == ["exact", "at", "most", "0.3000", "2", "ms"]
    assert text.count("at least 0.2711") == 2
    assert "radius" not in shown(MethodsTable([Method(None, "exact", 0.3, "0.3000", 1, True)]))


def test_terms_of_a_bound_are_rounded_up():
    bound = at(0.1).population
    text = terms_text(bound)
    numbers = [float(part.split()[0]) for part in text.split(" + ")]
    assert all(number >= term for number, term in zip(numbers, bound.terms.values(), strict=True))
    assert sum(numbers) >= bound.value


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.000012, "0.012 ms"), (0.00999, "10 ms"), (0.0999, "100 ms"), (59.9, "59.9 s"), (119.7, "2 min 0 s")],
)
def test_times_read_well(seconds, text):
    assert duration(seconds) == text


def test_what_is_claimed_and_how_wide_intervals_are_have_columns_where_they_are_known():
    claim = Certificate("calibration error", 0.43211, "upper", 0.05, Ledger(0.001), N, ())
    lines = [Line("0.05", kind, at(0.05), claim, 0.12341) for kind in ("tight", "cdf")]
    text = shown(CertifiedLines(lines, "certificate"))
    assert "claimed" in text
    assert row(text, "0.05  tight")[1] == "0.1235"
    assert "0.4322" in row(text, "cdf")
    assert "0.1235" not in shown(CertifiedLines([Line("0.05", None, at(0.05), claim, 0.12341)]))
    assert "claimed" not in shown(CertifiedLines(LINES))
