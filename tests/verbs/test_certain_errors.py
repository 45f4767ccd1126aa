"""Certainties that were wrong: which rows they are, and what the numbers are without them."""

import math

import numpy as np
import pytest

import certcal

RNG = np.random.default_rng(7)
SCORES = RNG.random(400).round(1)  # as the votes of ten trees
OUTCOMES = (RNG.random(400) < 0.1 + 0.8 * SCORES).astype(int)
WRONG = ((SCORES == 0) & (OUTCOMES == 1)) | ((SCORES == 1) & (OUTCOMES == 0))


def test_certainties_that_were_wrong_are_named_and_left_out_once():
    found = certcal.measure(OUTCOMES, SCORES)
    assert found["nll"].value == math.inf
    errors = found.certain_errors
    assert (errors.n, list(errors.rows)) == (WRONG.sum(), np.flatnonzero(WRONG)[:5].tolist())
    rest = certcal.measure(OUTCOMES[~WRONG], SCORES[~WRONG])
    without = {row.name: row for row in errors.without}
    assert without.keys() == {"nll", "calibration_slope", "calibration_intercept"}
    for name, row in without.items():
        assert (row.value, row.interval) == (rest[name].value, rest[name].interval)
    assert found.contents()["certain_errors"]["without"][0]["value"] == pytest.approx(rest["nll"].value)
    text = " ".join(str(found.report()).split())
    assert f"{errors.n} outcomes happened although the probability given was exactly 0 (indices " in text
    assert f"log loss {rest['nll'].value:.4f} (" in text.partition("Without them: ")[2]
    assert rest.certain_errors is None
    assert "certain_errors" not in rest.contents()


def test_rows_are_those_of_the_file_also_in_pieces_and_after_rows_that_were_left_out(tmp_path):
    path = tmp_path / "scores.csv"
    lines = [f"{s},{y}" for s, y in zip(SCORES, OUTCOMES, strict=True)]
    path.write_text("\n".join(["score,outcome", ",1", *lines]) + "\n")
    expected = (np.flatnonzero(WRONG)[:5] + 2).tolist()
    for memory in (None, 10_000):
        errors = certcal.measure(path, missing="drop", memory=memory, progress=False).certain_errors
        assert (errors.n, list(errors.rows)) == (WRONG.sum(), expected)
        assert f"(rows {expected[0]}, " in errors.sentence


def test_of_classes_the_true_one_had_probability_zero():
    found = certcal.measure([0, 1, 2, 1], [[0.5, 0.5, 0], [0.2, 0.8, 0], [0.6, 0.4, 0], [0.1, 0.9, 0]])
    assert (found.certain_errors.n, list(found.certain_errors.rows)) == (1, [2])
    assert "1 outcome happened although the probability given was exactly 0 (index 2): it makes" in str(found.report())
