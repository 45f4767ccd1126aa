"""A table of binary scores is answered in the words and numbers of binary scores, everywhere."""

import csv
import io
import json
import re

import numpy as np
import pytest

import certcal
from certcal import InputError, Predictions

RNG = np.random.default_rng(5)
SCORE = np.round(RNG.beta(1, 3, 600), 3) * 0.998 + 0.001
OUTCOME = (RNG.random(600) < SCORE**1.2).astype(int)
SITE = np.where(np.arange(600) % 3, "north", "south")
TABLE = {"score": SCORE, "default": OUTCOME, "site": SITE}
# Words of the predicted class, none of which says anything about a binary score.
MEANINGLESS = re.compile(r"confiden|correct|top.label|harmonic|all classes|right predictions", re.IGNORECASE)


def measured(**more):
    asked = {"columns": {"outcome": "default"}, "by": "site", "bootstrap": 20, "metrics": "all"}
    return certcal.measure(TABLE, **asked | more)


def naive_row(name):
    side = (SCORE >= 0.5) == (OUTCOME == 1)
    return {
        "base_rate": OUTCOME.mean(),
        "mean_score": SCORE.mean(),
        "accuracy": side.mean(),
        "brier_score": ((SCORE - OUTCOME) ** 2).mean(),
        "nll": -np.log(np.where(OUTCOME, SCORE, 1 - SCORE)).mean(),
    }[name]


@pytest.mark.parametrize("name", ["base_rate", "mean_score", "accuracy", "brier_score", "nll"])
def test_rows_of_a_binary_score_are_what_their_names_say(name):
    assert measured()[name].value == pytest.approx(naive_row(name), rel=1e-12)


def test_nothing_is_said_in_words_of_the_predicted_class(tmp_path):
    found = measured(bounds=True)
    assert (found.task, found.to_dict()["task"]) == ("binary", "binary")
    report = found.report()
    report.save(tmp_path / "page.html")
    page = re.sub(r"<(style|script)\b.*?</\1>", "", (tmp_path / "page.html").read_text("utf-8"), flags=re.DOTALL)
    text = report.to_text(width=100, full=True)
    table = ",".join(next(iter(csv.reader(io.StringIO(found.to_csv())))))
    names = " ".join(row.sentence for row in found.rows)
    # A bootstrap interval has a confidence level, whatever it is an interval of.
    for said in (page, text, table, names):
        assert MEANINGLESS.findall(re.sub(r"[Cc]onfidence level", "", said)) == []
    for words in ("base rate", "mean score", "observed rate", "over-predicted", "accuracy at threshold 0.5"):
        assert words in page
    assert "Outcome 1 is predicted from a score of 0.5 on (by convention)." in " ".join(text.split())


def test_calling_the_other_class_1_changes_only_what_must_change():
    one = measured()
    other = certcal.measure(
        {**TABLE, "score": 1 - SCORE, "default": 1 - OUTCOME}, columns={"outcome": "default"}, metrics="all"
    )
    same = {"ece", "equal_mass_ece", "mce", "lp_ece", "debiased_ece", "kuiper_error", "smooth_ece", "kde_ece", "mmce"}
    same |= {"brier_score", "nll", "auroc", "accuracy", "brier_reliability", "brier_resolution", "brier_uncertainty"}
    assert same < {row.name for row in one.rows}
    for name in (*same, "base_rate", "mean_score"):
        value = one[name].value
        # A score on an edge of a bin moves to the other side of it; none of these lies on one.
        assert other[name].value == pytest.approx(value if name in same else 1 - value, abs=1e-6), name
    # KS sums from below, so that the other class sums from above.
    sums = np.cumsum((OUTCOME - SCORE)[np.argsort(-SCORE, kind="stable")]) / SCORE.size
    assert other["ks_error"].value == pytest.approx(np.abs(sums[np.diff(np.sort(-SCORE), append=9) > 0]).max())


def test_the_threshold_is_a_setting_and_it_is_said_how_it_was_chosen():
    found = measured(threshold=0.2)
    row = found["accuracy"]
    assert row.value == ((SCORE >= 0.2) == (OUTCOME == 1)).mean()
    assert row.settings["threshold"] == found.conventions["threshold"] == 0.2
    assert found.conventions["threshold_is"] == "given"
    assert "accuracy at threshold 0.2" in found.report().to_text(full=True)
    with pytest.raises(InputError, match=r"^threshold: it is for binary scores"):
        certcal.measure({"confidence": SCORE, "correct": OUTCOME}, threshold=0.2)
    with pytest.raises(InputError, match=r"^threshold: 1.5 is not between 0 and 1"):
        measured(threshold=1.5)


def test_in_pieces_the_same_rows_have_the_same_values():
    whole, pieces = measured(threshold=0.3), measured(threshold=0.3, memory=1)
    assert pieces.conventions["streamed"]
    for row in pieces.rows:
        assert row.value == pytest.approx(whole[row.name].value, abs=1e-9), row.name
    for name in ("base_rate", "mean_score", "accuracy", "brier_score", "nll"):
        assert pieces[name].settings == whole[name].settings


def test_two_class_columns_give_other_numbers_and_say_why_in_a_sentence():
    two = {"prob_0": 1 - SCORE, "prob_1": SCORE, "label": OUTCOME}
    found = certcal.measure(two, metrics="all")
    assert found.task == "multiclass"
    text = " ".join(found.report().to_text(width=100).split())
    assert "max(p, 1 − p), against whether it is right" in text
    assert "name 'prob_1' as score and 'label' as outcome" in text
    again = certcal.measure(two, columns={"score": "prob_1", "outcome": "label"}, metrics="all")
    assert again["ece"].value == measured()["ece"].value
    assert found["accuracy"].value == pytest.approx(again["accuracy"].value)


@pytest.mark.parametrize("spelled", ["ECE", "Ece", "ece", " ece "])
def test_metrics_are_found_in_any_spelling(spelled):
    found = measured(metrics=[spelled, "Brier-Score", "Mean score"])
    assert [row.name for row in found.rows] == ["mean_score", "ece", "brier_score"]
    assert found[spelled] == found["ece"]
    assert found["ECE", 15] == found["ece"]
    assert found["Mean_Confidence"] == found["mean score"]  # what it is called of other tasks
    with pytest.raises(KeyError, match="there is no 'precision'"):
        found["precision"]


def test_text_outcomes_need_to_know_which_is_1():
    table = {**TABLE, "default": np.where(OUTCOME, "default", "paid")}
    found = certcal.measure(table, columns={"outcome": "default", "positive": "Default"})
    assert found["ece"].value == measured()["ece"].value
    assert found.to_dict()["columns"]["positive"] == "Default"
    with pytest.raises(InputError, match=r"neither 0/1 nor true/false; name the value .*'paid'.*as positive"):
        certcal.measure(table, columns={"outcome": "default"})
    many = {**TABLE, "default": np.array(["default", "paid", "late"])[np.arange(600) % 3]}
    with pytest.raises(InputError, match=r"an outcome has two values, not 3"):
        certcal.measure(many, columns={"outcome": "default", "positive": "default"})
    pieces = certcal.measure(table, columns={"outcome": "default", "positive": "default"}, memory=1)
    assert pieces["base_rate"].value == OUTCOME.mean()


def test_every_question_takes_binary_scores(tmp_path):
    predictions = Predictions.from_scores(SCORE, OUTCOME)
    assert json.loads(certcal.bound(predictions).to_json())["task"] == "binary"
    fitted = certcal.recalibrate(TABLE, columns={"outcome": "default"})
    names = {row.name for row in fitted.after.rows}
    assert {"brier_score", "nll", "accuracy", "auroc", "ece", "calibration_slope"} == names
    assert MEANINGLESS.findall(fitted.report().to_text(full=True)) == []
    assert "Does the map repair the scores?" in fitted.report().to_text()
    after = fitted.apply(TABLE, columns={"outcome": "default"}, everything=True)
    assert after.after.task == "binary"
    assert certcal.measure(fitted.apply(predictions, everything=True).after)["ece"].value >= 0


def test_the_command_line_names_the_options_for_missing_columns(tmp_path, capsys):
    from certcal.cli import cli
    from certcal.cli.errors import run

    path = tmp_path / "t.csv"
    path.write_text("score,won,site\n0.5,yes,a\n0.7,no,b\n")
    assert run(cli, ["measure", str(path)]) == 2
    assert "no column of outcomes was found; name it as outcome (--outcome); the columns are" in capsys.readouterr().err
    path.write_text("score,won,site\n0.5,hit,a\n0.7,miss,b\n")
    assert run(cli, ["measure", str(path), "--outcome", "won"]) == 2
    assert "name the value that counts as 1, 'hit' or 'miss', as positive (--positive)" in capsys.readouterr().err
    assert run(cli, ["measure", str(path), "--outcome", "won", "--positive", "hit", "--metric", "Base-Rate"]) == 0
    capsys.readouterr()
    path.write_text("score,won\n" + "".join(f"0.5,{'x' * 500}{row}\n" for row in range(2000)))
    assert run(cli, ["measure", str(path), "--outcome", "won"]) == 2
    said = capsys.readouterr().err
    assert "and an outcome has two values, not 2000 (" in said
    assert said.endswith("as --positive and those that count as 0 as --negative, and rows with others are left out\n")
    assert len(said) < 1000
