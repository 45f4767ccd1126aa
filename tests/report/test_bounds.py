"""Bars of bounds in a terminal: as long as the terms say, readable without colour and in ASCII."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from certcal.claims import Bound
from certcal.report.bounds import BoundTerms

TERMS = {"on the samples": 0.25, "deviation": 0.125, "draw of the scores": 0.0625}


def bound(terms, side="upper", value=None):
    return Bound("error", sum(terms.values()) if value is None else value, side, 0.05, 100, (), terms)


def shown(bounds, width=80, encoding="utf-8"):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=stream, width=width, color_system=None, legacy_windows=False).print(BoundTerms(bounds))
    stream.seek(0)
    return [line.rstrip() for line in stream.read().splitlines()]


def test_a_bar_is_divided_as_the_terms_are():
    name, bar, legend = shown({"binned": bound(TERMS)})
    assert name == "binned  ≤ 0.4375"
    assert [bar.count(mark) for mark in "█▓▒"] == [41, 21, 10]
    assert legend.split("  ")[1:] == ["█ on the samples 0.2500", "▓ deviation 0.1250", "▒ draw of the scores 0.0625"]


def test_bars_of_several_bounds_have_one_scale():
    lines = shown({"binned": bound(TERMS), "smooth": bound({"on the samples": 0.125, "deviation": 0.09375})})
    bars = [line.strip() for line in lines if line.startswith("  █") and " on" not in line]
    assert [len(bar) for bar in bars] == [72, 36]


def test_terms_are_rounded_to_the_side_of_the_bound():
    assert "deviation 0.1001" in shown({"binned": bound({"deviation": 0.10001})})[2]
    below = shown({"binned_lower": bound({"error": 0.20009, "deviation": -0.10001}, "lower")})
    assert below == ["binned, from below  ≥ 0.1000", "  error 0.2000  deviation -0.1001"]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width):
    lines = shown({"binned": bound(TERMS), "bounded_variation": bound({f"term {k}": 0.1 for k in range(9)})}, width)
    assert max(map(len, lines)) <= width
    assert all(any(term in line for line in lines) for term in TERMS)


def test_plain_terminals_get_plain_ascii():
    lines = shown({"binned": bound(TERMS)}, encoding="ascii")
    assert "".join(lines).isascii()
    assert lines[0] == "binned  <= 0.4375"
    assert [lines[1].count(mark) for mark in "#=+"] == [41, 21, 10]


def test_terms_that_are_all_zero_have_an_empty_bar():
    assert shown({"binned": bound({"deviation": 0.0})})[1] == ""
