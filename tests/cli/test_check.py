"""``certcal check``: exit codes, what is printed, and families."""

import json
import shutil


def test_a_page_that_holds_ends_with_0_and_a_changed_one_with_1(certcal_command, scores, tmp_path):
    page = tmp_path / "page.html"
    assert certcal_command("report", scores, "--require", "ece <= 0.3", "--title", "July", "-o", page).code == 0
    ran = certcal_command("check", page, "--data", scores)
    assert ran.code == 0
    assert "claims came out the same." in ran.out
    assert "file" not in ran.err
    text = page.read_text("utf-8")
    page.write_text(text.replace("<p>", "<p>Approved. ", 1), "utf-8")
    ran = certcal_command("check", page, "--data", scores, "--json")
    assert ran.code == 1
    told = json.loads(ran.out)
    assert (told["schema"], told["outcome"], told["verb"]) == ("certcal/check/1", "does not hold", "measure")
    assert [row["claim"] for row in told["rows"] if not row["holds"]] == ["text, pictures and script"]


def test_another_table_ends_with_1_and_says_so(certcal_command, scores, tmp_path):
    file = tmp_path / "numbers.json"
    certcal_command("bound", scores, "-o", file)
    other = tmp_path / "other.csv"
    other.write_text("\n".join(scores.read_text().splitlines()[:-9]) + "\n")
    ran = certcal_command("check", file, "--data", other)
    assert ran.code == 1
    assert " ".join(ran.out.split()).count("The page is of another file: ") == 1
    assert certcal_command("check", file, "--data", shutil.copy(scores, tmp_path / "same.csv")).code == 0


def test_what_is_not_recomputed_ends_with_1_and_bad_input_with_2(certcal_command, scores, tmp_path):
    page = tmp_path / "page.html"
    certcal_command("measure", scores, "-o", page)
    ran = certcal_command("check", page)
    assert ran.code == 1
    assert "Its data are not given" in ran.out
    assert certcal_command("check", page, "--data", tmp_path / "missing.csv").code == 2
    assert certcal_command("check", tmp_path / "missing.html", "--data", scores).code == 2
    ran = certcal_command("check", scores, "--data", scores)
    assert ran.code == 2
    assert "no page of certcal" in ran.err


def test_a_page_about_a_check_is_written_and_is_not_checked_itself(certcal_command, scores, tmp_path):
    page, report = tmp_path / "page.html", tmp_path / "check.html"
    certcal_command("measure", scores, "-o", page)
    assert certcal_command("check", page, "--data", scores, "-o", report, "-o", tmp_path / "check.csv").code == 0
    assert "Does this page hold?" in report.read_text("utf-8")
    assert certcal_command("check", report, "--data", scores).code == 1


def test_a_table_read_in_pieces_and_a_comparison_hold(certcal_command, scores, tmp_path):
    pieces, compared = tmp_path / "pieces.json", tmp_path / "compared.html"
    certcal_command("measure", scores, "--memory", "1kB", "-o", pieces)
    assert certcal_command("check", pieces, "--data", scores).code == 0
    assert certcal_command("compare", scores, scores, "--by", "site", "-o", compared).code == 0
    assert certcal_command("check", compared, "--data", scores, "--data", scores).code == 0
