"""Tables as spreadsheets write them: read at the first try and told how, or refused with what to add."""

import re
import shlex

import numpy as np
import openpyxl
import pytest

import certcal
from certcal import InputError
from certcal.data import PredictionStream, read_predictions

RNG = np.random.default_rng(38)
SCORES = RNG.uniform(0.02, 0.9, 300).round(4)
OUTCOMES = (RNG.random(300) < SCORES).astype(int)
EXPECTED = certcal.measure(OUTCOMES, SCORES)["ece"].value


def rows(line, header):
    """A table of the same scores and outcomes, each row as ``line`` writes it."""
    return "\n".join([header, *(line(s, y) for s, y in zip(SCORES, OUTCOMES, strict=True))]) + "\n"


def percent(score, digits=2):
    return f"{100 * score:.{digits}f}"


def comma(score):
    return f"{score:.4f}".replace(".", ",")


# What is written, in which encoding; what is said of it; and the arguments that an error asks for, if it is refused.
FILES = {
    "plain": (rows(lambda s, y: f"{s},{y}", "score,outcome"), "utf-8", (), None),
    "percent signs": (
        rows(lambda s, y: f"{percent(s)}%,{y}", "score,outcome"),
        "utf-8",
        ("'score' has percent signs and was divided by 100",),
        None,
    ),
    "percent signs after a space, decimal commas, semicolons": (
        rows(lambda s, y: f"{percent(s).replace('.', ',')} %;{y}", "score;outcome"),
        "utf-8",
        ("'score' has decimal commas", "'score' has percent signs and was divided by 100"),
        None,
    ),
    "decimal commas and semicolons": (
        rows(lambda s, y: f"{comma(s)};{y}", "score;outcome"),
        "utf-8",
        ("'score' has decimal commas",),
        None,
    ),
    "decimal commas and tabs from Excel, UTF-16": (
        rows(lambda s, y: f"{comma(s)}\t{y}", "score\toutcome"),
        "utf-16",
        ("read as UTF-16", "'score' has decimal commas"),
        None,
    ),
    "quoted decimal commas": (
        rows(lambda s, y: f'"{comma(s)}",{y}', "score,outcome"),
        "utf-8",
        ("'score' has decimal commas",),
        {"decimal": ","},
    ),
    "0 to 100": (
        rows(lambda s, y: f"{percent(s)},{y}", "score,outcome"),
        "utf-8",
        ("was taken for percent and divided by 100",),
        None,
    ),
    "Windows-1252": (
        rows(lambda s, y: f"Zürich;{comma(s)};{y}", "agência;score;outcome"),
        "cp1252",
        ("read as Windows-1252", "'score' has decimal commas"),
        None,
    ),
    "missing cells": (
        rows(lambda s, y: f"{s},{y}", "score,outcome") + "0.3,\n,1\nNA,0\n",
        "utf-8",
        ("3 rows left out (3 with an empty cell)",),
        {"missing": "drop"},
    ),
    "two words": (
        rows(lambda s, y: f"{s},{'default' if y else 'paid'}", "score,outcome"),
        "utf-8",
        ("'default' counts as 1",),
        {"positive": "default"},
    ),
    "third outcome": (
        rows(lambda s, y: f"{s},{'default' if y else 'paid'}", "score,outcome") + "0.5,pending\n0.6,pending\n",
        "utf-8",
        ("2 rows left out (2 with outcome 'pending')", "'default' counts as 1, 'paid' as 0"),
        {"positive": "default", "negative": "paid"},
    ),
    "title lines": (
        "Defaults, first half\nmade by risk\n\n" + rows(lambda s, y: f"a,{s},{y}", "site,score,outcome"),
        "utf-8",
        ("3 lines above the column names skipped",),
        None,
    ),
    "a title of as many fields": (
        "Defaults,2024\n" + rows(lambda s, y: f"{s},{y}", "score,outcome"),
        "utf-8",
        ("1 line above the column names skipped",),
        None,
    ),
    "sep= and a byte order mark": (
        "\ufeffsep=;\n" + rows(lambda s, y: f"{comma(s)};{y}", "score;outcome"),
        "utf-8",
        ("'score' has decimal commas",),
        None,
    ),
    "swapped columns": (
        rows(lambda s, y: f"{y},{s}", "score,outcome"),
        "utf-8",
        (),
        {"score": "outcome", "outcome": "score"},
    ),
    "good and bad, with a byte order mark, percent signs and a quoted thousand": (
        "\ufeff" + rows(lambda s, y: f'{percent(s)}%,{"bad" if y else "good"},"1,234.50"', "score,outcome,amount"),
        "utf-8",
        ("'score' has percent signs and was divided by 100", "'bad' counts as 1"),
        {"positive": "bad"},
    ),
    "points for what Stata has not": (
        rows(lambda s, y: f"{s},{y}", "score,outcome") + ".,1\n0.5,.\n",
        "utf-8",
        ("2 rows left out (2 with an empty cell)",),
        {"missing": "drop"},
    ),
    "#N/A of Excel and n/a, with blank lines between": (
        rows(lambda s, y: f"{s},{y}\n", "score,outcome") + "#N/A,1\n0.5,n/a\n\n",
        "utf-8",
        ("2 rows left out (2 with an empty cell)",),
        {"missing": "drop"},
    ),
    "names of rows and TRUE, as R writes them with tabs": (
        "score\toutcome\n" + rows(lambda s, y: f'"{s}"\t{s}\t{"TRUE" if y else "FALSE"}', "").lstrip(),
        "utf-8",
        ("the first column, which has no name, taken for the names of rows",),
        None,
    ),
    "totals below": (
        rows(lambda s, y: f"c,{s},{'yes' if y else 'no'}", "customer,score,outcome") + "Total,,\n",
        "utf-8",
        ("1 row left out (1 with an empty cell)",),
        {"missing": "drop"},
    ),
    "padded names and cells, and a semicolon too many": (
        rows(lambda s, y: f" {comma(s)} ; {y};", "Score ; Outcome;"),
        "utf-8",
        ("'Score ' has decimal commas",),
        None,
    ),
    "names that say nothing": (
        rows(lambda s, y: f"{1000 + s * 1e4:.0f},{s},{'yes' if y else 'no'}", "Kunde,PD,Ausfall"),
        "utf-8",
        (),
        {"score": "PD", "outcome": "Ausfall"},
    ),
}


@pytest.fixture(params=FILES)
def spreadsheet(request, tmp_path):
    text, encoding, said, add = FILES[request.param]
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    return path, said, add


def test_a_spreadsheet_is_read_at_the_first_try_or_the_error_says_what_to_add(spreadsheet):
    path, said, add = spreadsheet
    if add is not None:
        with pytest.raises(InputError) as refused:
            certcal.measure(path)
        for name, value in add.items():  # which outcome counts as 1 is the user's to say
            assert (repr(value) if name in ("positive", "negative") else f"{name}={value!r}") in str(refused.value)
    found = certcal.measure(path, **(add or {}))
    assert found["ece"].value == pytest.approx(EXPECTED, abs=1e-3)
    for clause in said:
        assert clause in found.description
        assert clause in f"{found.contents().get('reading')} {found.description}"


@pytest.mark.parametrize(
    "name", ["missing cells", "quoted decimal commas", "swapped columns", "names that say nothing"]
)
def test_the_command_line_prints_the_command_that_works(certcal_command, tmp_path, name):
    text, encoding, said, _ = FILES[name]
    path = tmp_path / "a table.csv"
    path.write_bytes(text.encode(encoding))
    refused = certcal_command("measure", path, "--no-diagram")
    assert refused.code == 2
    command = shlex.split(re.search(r"run: certcal (.*)$", refused.err.strip())[1])
    shown = certcal_command(*command)
    assert shown.code == 0
    for clause in said:
        assert clause in " ".join(shown.out.split())


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("size", [7, 299])
def test_pieces_say_and_hold_what_the_whole_does(tmp_path, name, size):
    text, encoding, _, add = FILES[name]
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    columns = {**(add or {}), **({"percent": True} if name == "0 to 100" else {})}
    stream = PredictionStream(path, columns, size=size)
    parts = [list(stream) for _ in range(2)]
    whole = read_predictions(path, **columns)
    for pieces in parts:
        np.testing.assert_array_equal(np.concatenate([each.confidence for each in pieces]), whole.confidence)
        np.testing.assert_array_equal(np.concatenate([each.correct for each in pieces]), whole.correct)
    assert stream.layout.notes == PredictionStream(path, columns).load().layout.notes


def test_rows_of_errors_are_those_of_the_file_where_rows_before_were_left_out(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("score,outcome\n,1\n0.5,\n0.5,1\n-3,0\n")
    with pytest.raises(InputError, match=r"column 'score', row 4 is -3, outside \[0, 1\]"):
        certcal.measure(path, missing="drop")
    path.write_text("score,outcome\n,1\n0.5,\n0.5,1\n0.5,maybe\n")
    with pytest.raises(InputError, match=r"column 'outcome', row 4 is 'maybe'"):
        certcal.measure(path, missing="drop")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "score,outcome\n0,35,1\n",
            "line 2 has 3 fields where the header has 2; .*decimal commas need another delimiter",
        ),
        ("score;outcome\n12 %;1\n0.3;0\n", "row 2 is '0.3', with no percent sign"),
        ("score,outcome\n3.5,1\n0.2,0\n", "is 3.5, outside .*; if these are percentages, say so; add percent=True"),
        ("score;outcome\n12 %;1\n13 %;0\nSumme;2\n", "row 3 is 'Summe', .*; it looks like a row of totals: delete it"),
        ("score,outcome\n0.2,1\nTotal,1\n", "is 'Total', not a number; it looks like a row of totals: delete it"),
        ("score,score,outcome\n0.2,0.2,1\n", "2 columns are called 'score'; rename all but one"),
        (
            "score,outcome\n612,1\n640,0\n",
            "certcal recalibrate fit .*table.csv --score=score --outcome=outcome --real-scores -o map.json",
        ),
        ("score,outcome\n-3.5,1\n0.2,0\n", "log-odds become probabilities by the sigmoid"),
    ],
)
def test_what_may_mean_two_things_is_refused(tmp_path, text, sentence):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        certcal.measure(tmp_path / "table.csv")


def test_a_byte_that_is_not_utf8_far_down_names_the_encoding_that_works(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(rows(lambda s, y: f"{s},{y},x", "score,outcome,site").encode() * 1 + b"0.5,1,Z\xfcrich\n" * 1)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], *(lines[1:-1] * 40), lines[-1]]) + b"\n")
    with pytest.raises(InputError, match=r"line 12002 holds the byte 0xFC .*; add encoding='cp1252'"):
        certcal.measure(path, by="site")
    assert [group.name for group in certcal.measure(path, by="site", encoding="cp1252").groups] == ["Zürich", "x"]


def workbook(path, *lines, other=False):
    book = openpyxl.Workbook()
    for line in lines:
        book.active.append(line)
    if other:
        book.create_sheet("notes")
    book.save(path)
    return path


def test_excel_is_read_with_titles_empty_cells_and_percentages(tmp_path):
    table = [[float(s), int(y), "a"] for s, y in zip(SCORES, OUTCOMES, strict=True)]
    path = workbook(tmp_path / "t.xlsx", ["Report"], [], ["score", "outcome", "site"], *table, other=True)
    found = certcal.measure(path, by="site")
    assert found["ece"].value == EXPECTED
    assert (
        "sheet 'Sheet' of 'Sheet', 'notes' (choose with sheet); 2 lines above the column names skipped"
        in found.description
    )
    book = openpyxl.load_workbook(path)
    book.create_sheet("cover", 0).append(["Risk report, May"])
    book.save(path)
    found = certcal.measure(path, by="site")
    assert found["ece"].value == EXPECTED
    assert (
        "sheet 'Sheet' of 'cover', 'Sheet', 'notes' (choose with sheet); 2 lines above the column names skipped"
        in found.description
    )
    path = workbook(tmp_path / "u.xlsx", ["score", "outcome"], ["12,5 %", "yes"], ["50 %", "no"], [None, "no"])
    with pytest.raises(InputError, match=r"column 'score', row 3 is empty; .*; add missing='drop'"):
        read_predictions(path)
    assert read_predictions(path, missing="drop").confidence.tolist() == [0.125, 0.5]


def test_a_damaged_workbook_is_refused_in_a_sentence(tmp_path):
    whole = workbook(tmp_path / "t.xlsx", ["score", "outcome"], [0.5, 1]).read_bytes()
    for content in (whole[:300], whole[:-60], b"PK\x03\x04", b"score,outcome\n0.5,1\n"):
        (tmp_path / "bad.xlsx").write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.xlsx: this Excel file cannot be read"):
            certcal.measure(tmp_path / "bad.xlsx")
    with pytest.raises(InputError, match="encoding: it is for text files"):
        certcal.measure(tmp_path / "t.xlsx", encoding="cp1252")
