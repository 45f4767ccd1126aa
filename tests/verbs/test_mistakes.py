"""Mistakes in Python end in one sentence that names the argument as Python spells it."""

import numpy as np
import pytest
import torch

import certcal
from certcal import InputError
from tests.smoothing.drawing import draw

TABLE = {"confidence": [0.9, 0.8, 0.6, 0.3], "correct": [1, 1, 0, 0], "site": ["a", "a", "b", "b"], "w": [1, 2, 1, 2]}
INTERVALS = {"lower": [0.8, 0.1], "upper": [0.9, 0.4], "correct": [1, 0]}


@pytest.mark.parametrize("verb", [certcal.measure, certcal.bound, certcal.certify, certcal.recalibrate])
@pytest.mark.parametrize("thing", [3, None, [0.5, 0.5], np.zeros(3), (np.zeros(3), np.zeros(3))])
def test_what_is_no_table_is_refused_by_its_type(verb, thing):
    kind = type(thing).__name__
    with pytest.raises(InputError, match=f"a table is a file or columns by name .*, not {kind}; name the columns"):
        verb(thing)


def test_what_belongs_to_another_question_is_answered_by_the_way_there():
    predictions = certcal.Predictions.from_scores([0.2, 0.7], [0, 1])
    with pytest.raises(InputError, match=r"predictions alone .*; pass a run .* or ask measure\(\) and bound\(\)"):
        certcal.certify(predictions)
    with pytest.raises(InputError, match=r"^source 1 is ndarray; pass a run.*compare\(Predictions\.from_scores\("):
        certcal.compare(np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    ("verb", "table", "known"),
    [
        (certcal.measure, TABLE, "score"),
        (certcal.certify, INTERVALS, "lower"),
        (certcal.recalibrate, TABLE, "score"),
    ],
)
def test_columns_are_a_mapping_from_roles(verb, table, known):
    with pytest.raises(InputError, match=rf"^columns: \['w'\] does not say .*; map roles to names, as in .*{known}"):
        verb(table, columns=["w"])
    with pytest.raises(InputError, match=r"^columns: there is no role 'corect'; did you mean 'correct'\?$"):
        verb(table, columns={"corect": "w"})
    with pytest.raises(InputError, match=r"^columns: there is no role 'x'; the roles are "):
        verb(table, columns={"x": "w"})


def test_matrices_and_tensors_are_columns():
    logits, labels = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 3
    expected = certcal.measure(certcal.Predictions.from_logits(logits, labels))["ece"].value
    assert certcal.measure({"logits": logits, "labels": labels})["ece"].value == expected
    assert certcal.measure({"logits": torch.tensor(logits), "labels": torch.tensor(labels)})["ece"].value == expected
    column = {"confidence": np.array(TABLE["confidence"])[:, None], "correct": TABLE["correct"]}
    assert certcal.measure(column)["ece"].value == certcal.measure(TABLE)["ece"].value
    with pytest.raises(InputError, match=r"^logits\[0, 0\] is 'a', not a number"):
        certcal.measure({"logits": np.array([["a", "b"]]), "labels": [0]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: certcal.measure([0, 1], np.array([0.5, 1j], object)),
            "y_prob[1] is 1j, not a number; convert or drop such entries",
        ),
        (lambda: certcal.measure(TABLE, bin=10), "unexpected argument 'bin'; did you mean 'bins'?"),
        (lambda: certcal.measure(TABLE, sourc="x"), "unexpected argument 'sourc'; did you mean 'source'?"),
        (
            lambda: certcal.certify(INTERVALS, label="y"),
            "unexpected argument 'label'; name columns as in columns={'label': '…'}",
        ),
        (lambda: certcal.certify(INTERVALS, radius=0.5), "unexpected argument 'radius'; did you mean 'radii'?"),
        (lambda: certcal.compare("a", "b", radius=[0.5]), "unexpected argument 'radius'; did you mean 'radii'?"),
        (lambda: certcal.compare(a="a", b="b", alhpa=0.5), "unexpected argument 'alhpa'; did you mean 'alpha'?"),
        (lambda: certcal.sample(None, None, sigm=1, out="x"), "unexpected argument 'sigm'; did you mean 'sigma'?"),
        (
            lambda: certcal.measure(np.array([0.2, 0.7]), [0, 1]),
            "y_true holds probabilities and y_prob holds outcomes: they are swapped; write "
            "certcal.measure(y_true, y_prob), the outcomes first",
        ),
        (
            lambda: certcal.bound("t.csv", "site"),
            "bound takes one table and was given 2 arguments by position; name the others, as in certcal.bound(data, "
            "score=…, outcome=…, bins=15)",
        ),
        (
            lambda: certcal.measure(certcal.Predictions.from_confidence([0.5], [1]), by="site"),
            "by: predictions have no columns; give the group of each sample, or pass a table",
        ),
    ],
)
def test_arguments_that_do_not_exist_are_answered_with_the_right_ones(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"requires": "ece < 1"}, "unexpected argument 'requires'; did you mean 'require'?"),
        (
            {"require": "ece"},
            "require: 'ece' is no requirement; write NAME, a relation and a number, as in 'ece <= 5%' or "
            "'0.9 <= calibration slope <= 1.1'",
        ),
        ({"about": ["me"]}, "about: ['me'] has no names; map names to texts, as in {'owner': '…'}"),
    ],
)
def test_what_a_report_does_not_take_is_one_sentence(given, message):
    with pytest.raises(InputError) as caught:
        certcal.measure(TABLE).report(**given)
    assert str(caught.value) == message


def test_endings_that_are_not_written_are_answered_with_all_that_are(tmp_path):
    with pytest.raises(
        InputError, match=r"a\.xyz: choose one of the endings \.html, \.txt, \.png, .*, \.json, \.csv, \.md, \.tex$"
    ):
        certcal.measure(TABLE).save(tmp_path / "a.xyz")
    assert not list(tmp_path.iterdir())


def test_an_answer_without_a_chart_says_so(tmp_path):
    draw(tmp_path / "run")
    found = certcal.summarize(tmp_path / "run")
    with pytest.raises(InputError, match=r"^this answer has no chart; save it as a page \(\.html\)"):
        found.plot()
    with pytest.raises(InputError, match=r"^this answer has no chart"):
        found.save(tmp_path / "a.png")


def test_tables_of_predictions_are_not_taken_for_logs(tmp_path):
    (tmp_path / "a.csv").write_text("confidence,correct\n0.9,1\n")
    (tmp_path / "log.tsv").write_text("idx\tlabel\tpredict\tradius\tcorrect\n0\t1\t1\t0.5\t1\n")
    with pytest.raises(
        InputError, match=r"a\.csv is a table of predictions and .*log\.tsv is a log; compare two of one"
    ):
        certcal.compare(tmp_path / "a.csv", tmp_path / "log.tsv")
    assert certcal.compare(tmp_path / "a.csv", tmp_path / "a.csv").new.n == 1
    with pytest.raises(InputError, match=r"^n: .*log\.tsv: a log does not say how it was certified"):
        certcal.compare(tmp_path / "log.tsv")
