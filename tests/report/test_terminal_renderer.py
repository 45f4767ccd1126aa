"""Reports in a terminal: they fit, lose no number, and nothing in a text moves the cursor."""

import contextlib
import io
import os
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from certcal.report.charts import Chart, TextBars
from certcal.report.document import (
    Block,
    Choice,
    Claim,
    Column,
    Details,
    Facts,
    Figures,
    Heading,
    KeyNumber,
    KeyNumbers,
    Listing,
    Report,
    Section,
    Strong,
    Table,
    Text,
)
from certcal.report.terminal import make_console, render
from tests.report.gallery import CHOICE, gallery

HOSTILE = "\x1b[31mred\x1b[0m\r\n\t\x07\u202e\u2028[bold]x[/bold]\ud800:smile:"


def shown(*blocks: Block, width: int = 80, full: bool = False, ascii_only: bool = False) -> str:
    return Report("Title", blocks).to_text(width=width, full=full, ascii_only=ascii_only)


def widest(text: str) -> int:
    return max(map(cell_len, text.splitlines()))


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


SIDES = (None, "upper", "lower")  # what is claimed has one
NUMBERS = ("estimate", "brief", "count", "bound", "level", "percent")
names = st.text(max_size=60)
# A level of 1e-300 has three hundred digits: no terminal shows it, and nobody asks for it.
finite = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-12)


@st.composite
def tables(draw: st.DrawFn, texts: st.SearchStrategy[str] = names) -> Table:
    kinds = draw(st.lists(st.sampled_from(("text", "interval", *NUMBERS)), max_size=9))
    columns = [Column(draw(texts))]
    columns += [
        Column(draw(texts), kind, draw(st.sampled_from(SIDES[kind in ("bound", "level") :])), draw(st.integers(0, 4)))
        for kind in kinds
    ]
    cells = {"text": texts, "interval": st.tuples(finite, finite).map(lambda pair: (min(pair), max(pair)))}
    row = st.tuples(texts, *(st.none() | cells.get(kind, finite) for kind in kinds))
    rows = draw(st.lists(row | texts.map(Heading), max_size=6))
    return Table(columns, rows, draw(texts), draw(texts), draw(st.sampled_from(("drop", "split"))))


@given(tables(), st.sampled_from([60, 80, 120]), st.booleans())
def test_no_table_is_wider_than_the_terminal(table: Table, width: int, ascii_only: bool) -> None:
    text = shown(table, width=width, ascii_only=ascii_only)
    assert widest(text) <= width
    assert not ascii_only or text.isascii()


@given(tables(st.from_regex(r"[a-z]{1,12}( [a-z]{1,12})?", fullmatch=True)), st.sampled_from([60, 80]))
def test_every_column_is_shown_with_all_its_cells_or_named_as_left_out(table: Table, width: int) -> None:
    text = shown(table, width=width)
    found = re.search(r"not shown at this width: ((.|\n)*);\sa\swider", text)
    left_out = squeezed(found[1]) if found else ""
    assert not (left_out and table.fit == "split")
    for i, column in enumerate(table.columns[1:], 1):
        if column.priority and squeezed(column.title) in left_out:
            continue
        for row in table.rows:
            if not isinstance(row, Heading):
                written = column.text(row[i])
                assert all(part in text for part in ([written] if column.is_number else written.split()))


def test_columns_are_left_out_by_priority_and_named() -> None:
    columns = [Column("method"), *(Column(f"number {i}", "bound", "upper", (3 * i) % 11) for i in range(11))]
    values = [i / 100 for i in range(11)]
    text = shown(Table(columns, [("a", *values)]))
    kept = [
        column.text(value) for column, value in zip(columns[1:], values, strict=True) if column.priority not in (9, 10)
    ]
    *_, row, first, second = text.split("\n")
    assert row.split() == ["a", *kept]
    said = "not shown at this width: number 3 ≤, number 7 ≤; a wider terminal or a page (.html) has them"
    assert f"{first} {second}" == said
    assert "not shown" not in shown(Table(columns, [("a", *values)]), width=100)


def test_columns_that_are_called_the_same_are_named_once() -> None:
    columns = [Column("method"), *(Column("interval", "interval", priority=i) for i in range(1, 8))]
    text = shown(Table(columns, [("a", *[(0.1, 0.2)] * 7)]), width=60)
    assert "not shown at this width: interval; a wider" in text


@pytest.mark.parametrize("fit", ["drop", "split"])
def test_where_no_column_may_be_left_out_a_table_is_split_and_nothing_is_cut(fit: str) -> None:
    columns = [Column("method"), *(Column(f"n{i}", "count") for i in range(6))]
    counts = [111_111 * i for i in range(1, 7)]
    for width in range(24, 80):
        text = shown(Table(columns, [("smoothed", *counts)], fit=fit), width=width)
        assert all(f"{count:,}" in text for count in counts)
        assert text.count("\nsmoothed ") == text.count("\nmethod ")
        assert widest(text) <= width


def test_split_tables_repeat_their_names_and_share_the_columns_evenly() -> None:
    values = [[(row + 1) / 7 + column / 1000 for column in range(15)] for row in range(2)]
    rows = [Heading("sigma 0.25"), ("first", *values[0]), ("second", *values[1])]
    text = shown(Table([Column("name"), *(Column(f"r{i}", "estimate") for i in range(15))], rows, fit="split"))
    assert all(Column("", "estimate").text(value) in text for row in values for value in row)
    assert [len(line.split()) - 1 for line in text.splitlines() if line.startswith("  first")] == [8, 7]
    assert text.count("sigma 0.25") == text.count("  second") == 2
    assert widest(text) <= 80


LONG = "resnet-with-a-very-long-name-that-goes-on-and-on-seed-17"


@pytest.mark.parametrize(
    ("name", "numbers", "clipped"),
    [
        (LONG, 1, "resnet-with-a-very-l…s-on-and-on-seed-17"),
        (LONG, 6, "resnet-with-a-v…-and-on-seed-17"),
        ("模型" * 12, 1, "模型" * 5 + "…" + "型" + "模型" * 4),
    ],
)
def test_long_names_lose_their_middle_and_keep_their_ends(name: str, numbers: int, clipped: str) -> None:
    columns = [Column("model"), *(Column("value", "estimate", priority=1) for _ in range(numbers))]
    text = shown(Table(columns, [(name, *[0.5] * numbers)]))
    assert text.split("\n")[-1].split() == [clipped, *["0.5000"] * numbers]


def test_rows_under_headings_are_indented_and_equal_names_are_written_once() -> None:
    rows = [
        Heading("Errors"),
        ("ECE", 10, 0.1),
        ("ECE", 15, 0.2),
        Heading("Scores"),
        ("ECE", 20, 0.3),
        ("log loss", 0, 0.4),
    ]
    text = shown(Table([Column("metric"), Column("bins", "count"), Column("value", "estimate")], rows))
    assert text.split("─")[-1].split("\n")[1:] == [
        "Errors",
        "  ECE         10  0.1000",
        "              15  0.2000",
        "",
        "Scores",
        "  ECE         20  0.3000",
        "  log loss     0  0.4000",
    ]


def test_heads_are_wrapped_so_that_narrow_columns_stay_narrow() -> None:
    columns = [Column("name"), Column("certified samples in all", "count"), Column("Brier score", "bound", "upper")]
    text = shown(Table(columns, [("a", 3, 0.5)]))
    assert text.split("\n")[2:6] == [
        "      certified",
        "        samples    Brier",
        "name     in all  score ≤",
        "─" * 25,
    ]
    assert "score <=" in shown(Table(columns, [("a", 3, 0.5)]), ascii_only=True)


def test_captions_are_shown_unless_they_repeat_the_title_of_the_section() -> None:
    table = Table([Column("a")], [("b",)], "Caption", "A note.")
    assert Report("T", [], [Section("Caption", [table], True)]).to_text().count("Caption") == 1
    text = Report("T", [], [Section("Other", [table], True)]).to_text()
    assert text.index("Other") < text.index("Caption") < text.index("A note.")


def test_strong_cells_and_heads_are_bold_where_colours_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    file = io.StringIO()
    table = Table([Column("head"), Column("value", "estimate")], [(Strong("x"), 0.5), ("y", 0.25)])
    render(Report("Title", [table]), make_console(file, 80))
    assert re.findall(r"\x1b\[1m *(\w+)", file.getvalue()) == ["Title", "head", "value", "x"]
    assert "\x1b" not in shown(table)


BARS = TextBars(
    ("bin", "{bar}\u00a0accuracy {mark}\u00a0confidence", "gap", "samples"),
    [("0.0", 0.28, 0.5, ["over", "1"]), ("0.5", 1.0, 0.5, ["under", "2,000"]), ("0.9", None, None, ["", "0"])],
    "A note.",
)


def test_bars_are_drawn_exactly() -> None:
    text = shown(Chart("Diagram", "", [], "Caption.", bars=BARS), width=43)
    assert text.split("\n")[2:] == [
        "Diagram",
        "     ███ accuracy",
        "bin  ┃ confidence            gap  samples",
        "0.0  ██████░░░░┃            over        1",
        "0.5  ██████████┃▓▓▓▓▓▓▓▓▓  under    2,000",
        "0.9                                     0",
        "     0  0.2 0.4 0.6 0.8 1",
        "A note.",
        "Caption.",
    ]
    assert "0.5  ##########|+++++++++  under    2,000" in shown(Chart("", "", [], bars=BARS), width=43, ascii_only=True)


@pytest.mark.parametrize("width", [30, 60, 80, 200])
@pytest.mark.parametrize("name", ["bin", "a name much longer than there is any room for " * 3])
def test_bars_fit_and_keep_their_texts_whole(width: int, name: str) -> None:
    bars = TextBars(
        (name, "{bar} accuracy, {mark} confidence", "gap", "samples"), [(name, 0.5, 1.5, ["−0.425 over", "12"])]
    )
    text = shown(Chart("Diagram", "", [], bars=bars), width=width)
    assert widest(text) <= width
    assert "┃" in text
    assert "−0.425 over" in text or "gap" in text.split("not shown at this width:")[1]


def test_charts_without_bars_are_not_drawn_and_diagrams_can_be_left_out() -> None:
    chart = Chart("Curve", "", [], "Caption.", Table([Column("x"), Column("y", "estimate")], [("a", 0.125)]))
    assert "Curve" not in shown(Figures([chart], "Note."))
    assert "Note." not in shown(Figures([chart], "Note."))
    assert "0.1250" in shown(chart, full=True)
    file = io.StringIO()
    report = Report("T", [Text("Said.")], [Section("Diagrams", [Chart("Diagram", "", [], bars=BARS)], True)])
    assert "Diagrams" in report.to_text()
    render(report, make_console(file, 80), diagrams=False)
    assert file.getvalue() == "T\n\nSaid.\n"


def test_only_the_brief_is_shown_unless_everything_is_wanted() -> None:
    report = gallery()
    titles = {section.title for section in (*report.sections, *report.appendix)} - {"Nothing"}
    brief, full = report.to_text(), report.to_text(full=True)
    assert "Reproducibility" not in brief
    assert "Reproducibility" in full
    lines = full.split("\n")
    assert titles <= {after for before, after in pairwise(lines) if not before}
    assert [title for title in titles if f"\n\n{title}\n" in brief] == ["Reliability"]
    for text in ("Settings:", "Inside.", "The calibration error is the average gap"):
        assert text not in brief
        assert text in full
    for text in (report.title, report.source, report.description, report.notes[0], report.verdict.lines[0]):
        assert text in brief.split("\n")
    assert "model: credit score; owner: Risk team; ticket: ABC-1" in brief


def test_of_a_choice_only_the_start_is_shown() -> None:
    frames = [[Text("The first.")], [Text("The second.")], [Text("The third.")]]
    text = shown(Choice(CHOICE, "Radius", ["0", "0.5", "1"], 1, frames), full=True)
    assert text.split("\n")[2:] == ["Radius: 0.5", "The second."]


def test_a_claim_is_its_sentence_then_probability_assumptions_settings_and_terms() -> None:
    terms = Table([Column("term"), Column("value", "bound", "upper")], [("deviation", 0.0625)], "Terms")
    claim = Claim(
        "Bound", "It is at most 3.", "3", "Fails rarely.", ("a " * 50, "b"), {"bins": "15"}, terms, "A number."
    )
    text = shown(claim, full=True, width=60)
    wrapped = ["- " + " ".join(["a"] * 29), "  " + " ".join(["a"] * 21)]
    assert text.split("\n")[2:12] == [
        *("It is at most 3.", "A number.", "Fails rarely.", "Assumptions:", *wrapped, "- b"),
        *("Settings:", "  bins  15", ""),
    ]
    assert text.endswith(f"deviation   {terms.columns[1].text(0.0625)}")
    assert "bins" not in shown(claim)


def test_names_and_numbers_are_aligned() -> None:
    numbers = KeyNumbers([KeyNumber("accuracy", "0.9", ("of 10", "all")), KeyNumber("ECE", "at most 0.1")], "A note.")
    text = shown(
        numbers, Facts([("bins", "15"), ("confidence level", "0.95")], "Settings"), Listing(["One.", "Two."], 1)
    )
    assert text.split("\n")[2:] == [
        *("accuracy  0.9          of 10; all", "ECE       at most 0.1", "A note.", ""),
        *("Settings", "bins              15", "confidence level  0.95", ""),
        *("- One.", "1 more is in the JSON only."),
    ]


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_in_a_text_controls_the_terminal(width: int, ascii_only: bool) -> None:
    text = gallery(HOSTILE).to_text(width=width, full=True, ascii_only=ascii_only)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "\\x1b[31mred" in squeezed(text)
    assert widest(text) <= width
    assert not ascii_only or text.isascii()


def test_details_and_code_keep_their_texts() -> None:
    more = Details("More", [Text("a\n  b", "code")])
    assert shown(more).split("\n")[1:] == []
    assert shown(more, full=True).split("\n")[2:] == ["More", "  a", "    b"]
    assert "a\\nb" in shown(Text("a\nb"))


@pytest.mark.parametrize("environment", [{"FORCE_COLOR": "1"}, {"TERM": "dumb", "COLUMNS": "40"}])
def test_texts_do_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    expected = gallery().to_text(width=72)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert gallery().to_text(width=72) == expected


def test_a_width_that_is_given_holds_in_dumb_terminals_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    assert make_console(Terminal(), 60).width == 60
    assert make_console(Terminal()).width == 80


def test_a_reader_that_goes_away_is_passed_on() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    file = io.TextIOWrapper(io.FileIO(writing, "w"), "utf-8", write_through=True)
    with pytest.raises(BrokenPipeError):
        render(gallery(), make_console(file, 80))
    with contextlib.suppress(BrokenPipeError):
        file.close()


def test_a_text_file_holds_everything(tmp_path) -> None:
    path = gallery().save(tmp_path / "report.txt")
    assert path.read_text("utf-8") == gallery().to_text(full=True) + "\n"
