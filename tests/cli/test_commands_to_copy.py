"""Tables that a first command refuses: the error prints a command, and that command works."""

import re
import shlex

import numpy as np
import openpyxl
import pandas as pd
import pytest

import certcal
from certcal import InputError

RNG = np.random.default_rng(5)
SCORE = RNG.uniform(0.02, 0.9, 300).round(4)
OUTCOME = (RNG.random(300) < SCORE).astype(int)
WORDS = np.where(OUTCOME == 1, "bad", "good")
PENDING = np.arange(300) % 30 == 0
WIDE = pd.DataFrame({f"x{k}": RNG.normal(50, 40, 300) for k in range(25)} | {"pd": SCORE, "default": OUTCOME})
FRAMES = {
    "percentages and Y or N under names that say nothing": (
        pd.DataFrame({"ID": np.arange(300), "PD (%)": 100 * SCORE, "Default Flag": np.where(OUTCOME == 1, "Y", "N")}),
        "--score 'PD (%)' --outcome 'Default Flag'",
        "was taken for percent",
    ),
    "percentages that are whole and named so": (
        pd.DataFrame({"age": 18 + np.arange(300) % 70, "pd_pct": (100 * SCORE).round(), "gone": OUTCOME}),
        "--score pd_pct --outcome gone",
        "was taken for percent",
    ),
    "good and bad": (
        pd.DataFrame({"score": SCORE, "outcome": WORDS}),
        "--positive bad",
        "'bad' counts as 1",
    ),
    "two words of which the rarer is offered": (
        pd.DataFrame({"score": SCORE, "outcome": np.where(PENDING, "up", "down")}),
        "--positive up",
        "'up' counts as 1",
    ),
    "1 and 2, of which neither is a word": (
        pd.DataFrame({"score": SCORE, "outcome": np.where(PENDING, 2, 1)}),
        "--positive 2",
        "'2' counts as 1",
    ),
    "0, 1 and unknown": (
        pd.DataFrame({"score": SCORE, "outcome": np.where(PENDING, "unknown", OUTCOME.astype(str))}),
        "--positive 1 --negative 0",
        "10 rows left out (10 with outcome 'unknown')",
    ),
    "good, bad and pending": (
        pd.DataFrame({"score": SCORE, "outcome": np.where(PENDING, "pending", WORDS)}),
        "--positive bad --negative good",
        "10 rows left out (10 with outcome 'pending')",
    ),
    "totals below, named in another column": (
        pd.DataFrame(
            {
                "customer": [*map(str, range(300)), "Total"],
                "score": [*SCORE, SCORE.mean()],
                "outcome": [*OUTCOME, OUTCOME.sum()],
            }
        ),
        "--positive 1 --negative 0",
        "1 row left out",
    ),
    "25 columns before the two": (WIDE, "--score pd --outcome default", "score 'pd'"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_the_command_that_is_printed_works_as_it_stands(certcal_command, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    frame, add, said = FRAMES[name]
    frame.to_csv("t.csv", index=False)
    refused = certcal_command("measure", "t.csv")
    assert refused.code == 2
    assert refused.err.strip().endswith(f"; run: certcal measure t.csv {add}")
    shown = certcal_command(*shlex.split(re.search(r"run: certcal (.*)$", refused.err.strip())[1]), "--no-diagram")
    assert shown.code == 0
    assert said in " ".join(shown.out.split())


def test_the_command_for_points_of_a_scorecard_reads_the_table_as_asked(certcal_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f'"{1000 + int(500 * s):,}",{y}' for s, y in zip(SCORE, OUTCOME, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["score,outcome", *lines]) + "\n")
    refused = certcal_command("measure", "t.csv").err.strip()
    assert refused.endswith("and the point is decimal, say so; run: certcal measure t.csv --decimal .")
    refused = certcal_command("measure", "t.csv", "--decimal", ".").err.strip()
    command = "recalibrate fit t.csv --score=score --outcome=outcome --decimal=. --real-scores -o map.json"
    assert refused.endswith(f"by certcal {command}")
    assert certcal_command(*command.split()).code == 0


def test_a_row_of_totals_is_recognised_by_another_column(certcal_command, tmp_path):
    FRAMES["totals below, named in another column"][0].to_csv(tmp_path / "t.csv", index=False)
    said = r"row 301 is '.*; its row says 'Total' and looks like one of totals: delete it, or leave it out; add "
    with pytest.raises(InputError, match=said + r"positive='1', negative='0'$"):
        certcal.measure(tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join([*text[:-1], "Summe,12.5,1"]) + "\n")
    with pytest.raises(InputError, match=r"row 301 is 12\.5, outside"):
        certcal.measure(tmp_path / "t.csv")


def test_of_a_wide_table_the_columns_that_could_be_meant_come_first_and_are_choices_where_several_fit(tmp_path):
    wide = WIDE.assign(new=SCORE**2, region=np.where(PENDING, "north", "south"))
    with pytest.raises(InputError) as refused:
        certcal.measure(wide)
    assert "; the columns are 'pd', 'default', 'new', 'x0', 'x1'" in str(refused.value)
    assert str(refused.value).endswith(
        "; by their values, 'pd' or 'new' as the score and 'default' as the outcome would fit"
    )


def book(path, **sheets):
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, lines in sheets.items():
        sheet = made.create_sheet(name.replace("_", " "))
        for line in lines:
            sheet.append(line)
    made.save(path)


NOTES = [["PD validation"], ["Owner", "Risk"]]
SCORES = [["score", "outcome"], *zip(SCORE.tolist(), OUTCOME.tolist(), strict=True)]
NAMELESS = [["ID", "PD", "Default"], *zip(range(300), SCORE.tolist(), OUTCOME.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("sheet", "given", "add"),
    [
        (SCORES, [], "--sheet 'All scores'"),
        (NAMELESS, [], "--score PD --outcome Default --sheet 'All scores'"),
        (NAMELESS, ["--score", "PD", "--outcome", "Default"], "--score PD --outcome Default --sheet 'All scores'"),
    ],
)
def test_the_sheet_that_holds_predictions_is_offered(certcal_command, tmp_path, monkeypatch, sheet, given, add):
    monkeypatch.chdir(tmp_path)
    book("b.xlsx", Read_me=NOTES, All_scores=sheet)
    refused = certcal_command("measure", "b.xlsx", *given).err.strip()
    assert "b.xlsx: sheet 'Read me' is no table of predictions (" in refused
    assert refused.endswith(f"; sheet 'All scores' looks like one; run: certcal measure b.xlsx {add}")
    shown = certcal_command("measure", "b.xlsx", *shlex.split(add), "--no-diagram")
    assert shown.code == 0
    assert "sheet 'All scores' of 'Read me', 'All scores'" in " ".join(shown.out.split())


def test_sheets_are_named_and_chosen(certcal_command, tmp_path):
    path = tmp_path / "b.xlsx"
    halves = [["score", "outcome"], *zip((SCORE / 2).tolist(), OUTCOME.tolist(), strict=True)]
    book(path, Read_me=NOTES, A=SCORES, B=halves)
    with pytest.raises(InputError, match=r"; this is sheet 'Read me' of 'Read me', 'A', 'B'$"):
        certcal.measure(path)
    with pytest.raises(InputError, match=r"^sheet: there is no sheet 'C' in .*; the sheets are 'Read me', 'A', 'B'$"):
        certcal.measure(path, sheet="C")
    with pytest.raises(InputError, match=r"^sheet: .*; did you mean 'Read me'\?$"):
        certcal.bound(path, sheet="Readme")
    found = [certcal.measure(path, sheet=name)["mean_score"].value for name in "AB"]
    assert found == pytest.approx([SCORE.mean(), SCORE.mean() / 2])
    assert "300 samples, rows are paired" in str(certcal.compare(path, path, sheet="A", pair="order"))
    assert certcal_command("recalibrate", "fit", path, "--sheet", "B", "-o", tmp_path / "m.json").code == 0
    SCORE.tofile(tmp_path / "t.csv", sep="\n")
    for other in (tmp_path / "t.csv", {"score": SCORE, "outcome": OUTCOME}):
        with pytest.raises(InputError, match=r"^sheet: it is for Excel files, and .* is none; leave it out$"):
            certcal.measure(other, sheet="A")


def test_one_table_cannot_be_compared_and_the_second_is_asked_for(certcal_command, tmp_path):
    pd.DataFrame({"score": SCORE, "outcome": OUTCOME}).to_csv(tmp_path / "old.csv", index=False)
    said = (
        "old.csv is a table of predictions, and a second one is missing; give the old and the new one, or two columns"
    )
    for given in ([], ["--outcome", "outcome"], ["--by", "site"]):
        refused = certcal_command("compare", tmp_path / "old.csv", *given)
        assert refused.code == 2
        assert f"{said} of this one (--score)" in refused.err
    with pytest.raises(InputError, match="a second one is missing"):
        certcal.compare(str(tmp_path / "old.csv"), outcome="outcome")


def test_two_columns_in_one_by_are_offered_as_two(certcal_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"score": SCORE, "outcome": OUTCOME, "a": PENDING, "b": np.arange(300) % 2})
    frame.to_csv("t.csv", index=False)
    refused = certcal_command("measure", "t.csv", "--by", "a,b").err.strip()
    assert "'a' and 'b' are 2; cross them as 'a*b', or give each; run: certcal measure t.csv --by a --by b" in refused
    assert certcal_command("measure", "t.csv", "--by", "a", "--by", "b", "--no-diagram").code == 0
    assert certcal_command("measure", "t.csv", "--by", "a", "--by", "a*a", "--no-diagram").code == 0


@pytest.mark.parametrize("names", [("lower", "upper", "correct"), ("lo", "hi", "outcome")])
def test_what_is_certified_leads_on_to_a_map_and_the_command_and_the_call_fit_it(
    certcal_command, tmp_path, monkeypatch, names
):
    monkeypatch.chdir(tmp_path)
    columns = np.maximum(SCORE - 0.05, 0), np.minimum(SCORE + 0.05, 1), OUTCOME
    table = dict(zip(names, columns, strict=True)) | {"r": np.full(SCORE.size, 0.3)}
    pd.DataFrame(table).to_csv("t.csv", index=False)
    given = {"radius": "r"} | {
        role: name for role, name in zip(("lower", "upper"), names, strict=False) if role != name
    }
    step = certcal.certify("t.csv", columns=given).answer[-1]
    assert step.kind == "next"
    assert step.command.endswith(" --radius-column r --radius 0.3 -o map.json")
    assert certcal_command(*shlex.split(step.command)[1:]).code == 0
    assert (tmp_path / "map.json").exists()
    call = certcal.certify(table, columns=given).answer[-1].command
    assert "radii=[0.3]" in call
    eval(call.removesuffix(".save('map.json')"), {"certcal": certcal, "data": table})


def test_where_nothing_is_certified_no_map_is_offered():
    margins = {"margin_lower_0": [0.0, 0.1], "margin_lower_1": [0.2, 0.0], "prediction": [0, 1], "label": [0, 1]}
    nothing = {"lower": [0.1, 0.2], "upper": [0.9, 0.9], "correct": [0, 1], "certified": [0, 0]}
    for table in (margins, nothing):
        assert all(each.kind != "next" for each in certcal.certify(table).answer)
