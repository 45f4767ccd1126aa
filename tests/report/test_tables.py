"""Tables for papers: LaTeX that is safe and Markdown that is a table, of every answer that has one."""

import re
from pathlib import Path

import numpy as np
import pytest

import certcal
from certcal.report.document import Column, Heading, Report, Table
from certcal.report.tables import as_latex, as_markdown, tex

RNG = np.random.default_rng(3)
HOSTILE = "a_b & 50 % \\input{x} $y$ #1 ~^ | <b> `c` \u202e"


@pytest.fixture(scope="module")
def measured():
    score = RNG.random(400)
    outcome = (RNG.random(400) < score).astype(int)
    table = {"score": score, "outcome": outcome, "site": np.where(score > 0.5, HOSTILE, "b")}
    return certcal.measure(table, by="site")


def test_every_number_of_the_terminal_stands_in_both_files(measured, tmp_path: Path):
    (table,) = measured.report().tables()[:1]
    written = {}
    for form in (".tex", ".md"):
        measured.save(tmp_path / f"table{form}")
        written[form] = (tmp_path / f"table{form}").read_text("utf-8")
    assert {"%", "×"} <= {sign for row in table.texts() for cell in row for sign in cell}
    for row in table.texts():
        for cell in row[1:]:
            assert tex(cell) in written[".tex"]
            assert cell in written[".md"]
    lines = [line for line in written[".md"].splitlines() if line.startswith("|")]
    # An escaped mark is a letter, every other one ends a cell.
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines[: len(table.rows) + 2]}) == 1


def test_what_stands_in_a_cell_is_never_a_command(measured):
    made = measured.to_bytes(".tex").decode()
    assert r"\textbackslash{}input\{x\}" in made
    body = "".join(line for line in made.splitlines() if not line.startswith(("%", "\\")))
    for sign in "%#_":
        assert re.search(rf"(?<!\\){sign}", body.replace(r"\textasciicircum{}", "")) is None
    rows = [line for line in made.splitlines() if line.endswith(r" \\")]
    assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows[:4]}) == 1
    assert "\u202e" not in made


def test_comments_cannot_be_left_and_headings_span_a_row():
    table = Table([Column("a"), Column("b", "count")], [Heading("group"), ["x", 1_000]], "one\n\\input{x}")
    made = as_latex([table])
    assert "% one \\input{x}\n" in made
    assert "group &  \\\\\nx & 1,000 \\\\" in made
    assert "| group |  |\n| x | 1,000 |" in as_markdown([table])


def test_letters_of_formulas_are_mathematics():
    assert tex("σ ≤ −1 → ℓ∞") == r"$\sigma$ $\le$ $-$1 $\to$ $\ell$$\infty$"


def test_the_table_is_wide_with_a_line_per_group_and_a_column_per_metric(measured):
    wide = measured.to_table()
    assert wide["site"] == ["all", *(each.name for each in measured.groups)]
    parts = (measured.whole, *measured.groups)
    assert wide["ece"] == [row.value for part in parts for row in part.rows if row.name == "ece"]
    assert {len(values) for values in wide.values()} == {len(measured.groups) + 1}


def test_an_answer_without_a_table_says_what_to_write():
    with pytest.raises(certcal.InputError, match=r"this answer has no table; save it as a page"):
        Report("How many?", []).to_bytes(".tex")


def test_figures_hold_their_fonts_as_true_type(measured):
    made = measured.to_bytes(".pdf")
    assert b"/Type3" not in made
    assert b"/TrueType" in made or b"/CIDFontType2" in made
