"""What commands are given to read: files, standard input, and columns under any of their names."""

import hashlib
import io
import json
import sys

import pytest


@pytest.fixture
def typed(monkeypatch):
    """Puts text into standard input."""

    def put(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return put


INTERVALS = "lower,upper,y_pred,y_true\n.2,.5,1,1\n.3,.9,0,1\n"


@pytest.mark.parametrize("command", ["measure", "bound", "certify"])
def test_a_table_may_come_through_standard_input(certcal_command, typed, scores, tmp_path, command):
    text = INTERVALS if command == "certify" else scores.read_text()
    path = tmp_path / "same.csv"
    path.write_text(text)
    expected = json.loads(certcal_command(command, path, "--json").out)
    typed(text)
    found = json.loads(certcal_command(command, "-", "--json").out)
    assert found.pop("source") == "standard input"
    (read,), (same,) = (each.pop("provenance")["inputs"] for each in (found, expected))
    assert (read["bytes"], read["sha256"]) == (same["bytes"], same["sha256"])
    del expected["source"]
    for each in (*found["answer"], *expected["answer"]):
        each["command"] = each.get("command", "").replace(str(path), "-")
    assert found == expected


def test_a_page_of_standard_input_has_its_digest_and_a_name_of_its_own(
    certcal_command, typed, scores, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    typed(scores.read_text())
    assert certcal_command("report", "-", "--no-intervals").err == "wrote report.html\n"
    assert hashlib.sha256(scores.read_bytes()).hexdigest() in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("command", "option"),
    [(("certify",), "--radius-column"), (("recalibrate", "fit"), "--radius-column"), (("certify",), "--certified")],
)
def test_a_column_that_is_not_there_is_named_with_its_option(certcal_command, tmp_path, command, option):
    path = tmp_path / "intervals.csv"
    path.write_text(INTERVALS)
    ran = certcal_command(*command, path, option, "uppr")
    assert (ran.code, ran.out) == (2, "")
    assert f"{option}: there is no column 'uppr'; did you mean 'upper'? The columns are" in ran.err
