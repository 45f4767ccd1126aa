"""Curves over the radius: bars and marks where the numbers are, in any terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from certcal.report.certificates import Line
from certcal.report.curves import RadiusCurves
from certcal.worst_case import certify

Z = np.random.default_rng(4).beta(6, 2, 50)


def line(radius):
    lower, upper = np.clip(Z - radius, 0, 1), np.clip(Z + radius, 0, 1)
    return Line(str(radius), None, certify(lower, upper, np.ones(50, int), certified=np.arange(50) >= 100 * radius))


LINES = [line(radius) for radius in (0, 0.125, 0.25, 0.5)]


class Ascii(io.StringIO):
    encoding = "ascii"


def shown(width, *, ascii_only=False):
    console = Console(file=Ascii() if ascii_only else io.StringIO(), width=width, color_system=None)
    console.print(RadiusCurves(LINES))
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(("ascii_only", "bar", "mark"), [(False, "█", "┃"), (True, "#", "|")])
def test_a_bar_is_the_certified_accuracy_and_a_mark_the_worst_error(ascii_only, bar, mark):
    head, *rows, scale = shown(68, ascii_only=ascii_only)
    assert "certified accuracy" in head
    assert scale.split() == ["0", "1"]
    for each, text in zip(LINES, rows, strict=True):
        drawn = text[len("radius") + 1 :]
        worst = each.summary["calibration_error"].worst
        end = int(60 * each.summary.accuracy.value)
        if worst is None:
            assert mark not in text
        else:
            assert drawn.index(mark) == int(60 * worst.value) + 1
            assert text.count(bar) == end - (int(60 * worst.value) < end)


def test_it_fits_narrow_terminals():
    assert max(map(len, shown(40))) <= 40
