"""``certcal.choose``: the rule of comparable accuracy, by hand; Pareto, ranks and constant subsets; mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import certcal
from certcal import InputError, ModelChoice, choose
from certcal.report.document import Table
from certcal.smoothing import Counts, certificates
from certcal.worst_case import brier_score, calibration_error

RADII = (0.1, 0.4)


def model(seed: int, sharpness: float) -> Counts:
    rng = np.random.default_rng(seed)
    x = rng.beta(rng.uniform(0.3, sharpness, 60)[:, None], 1.0, (60, 1500))
    votes = (x > 0.5).sum(axis=1)
    correct = np.arange(60) % 5 > 0
    return Counts.from_confidences(x, np.linspace(0.02, 0.98, 49), votes=votes, sigma=0.5, correct=correct)


MODELS = {"AT": [model(0, 30), model(1, 20)], "ACT": [model(2, 25), model(3, 32), model(4, 3)]}


@pytest.fixture(scope="module")
def found() -> ModelChoice:
    return choose(MODELS, radii=RADII, within=0.1)


def by_hand(radius: float) -> list[tuple[str, str, float, float, float]]:
    rows = []
    for method, runs in MODELS.items():
        for place, counts in enumerate(runs, 1):
            one = certificates(counts, radius)
            if one.n_certified:
                error = calibration_error(one.lower, one.upper, one.correct, certified=one.certified).value
                brier = brier_score(one.lower, one.upper, one.correct, certified=one.certified).value
                rows.append((method, f"run {place}", float(np.mean(one.certified & one.correct)), error, brier))
    return rows


def test_each_method_has_its_best_model_among_those_near_the_highest_accuracy(found: ModelChoice) -> None:
    for radius, each in zip(RADII, found.at, strict=True):
        rows = by_hand(radius)
        highest = max(row[2] for row in rows)
        assert (each.radius, each.highest) == (radius, highest)
        for method in MODELS:
            close = [row for row in rows if row[0] == method and row[2] >= highest - 0.1]
            for best, column in ((each.by_error, 3), (each.by_brier, 4)):
                expected = min(close, key=lambda row, c=column: row[c], default=None)
                assert (best[method].name if method in best else None) == (expected and expected[1])
        undominated = {
            row[:2] for row in rows if not any(o[2] >= row[2] and o[3] <= row[3] and o[2:4] != row[2:4] for o in rows)
        }
        assert {(one.method, one.name) for one in each.pareto} == undominated


def test_ranks_are_spearmans_and_constant_subsets_are_certified_at_all_radii(found: ModelChoice) -> None:
    rows = [one for one in found.models if one.radius == RADII[0]]
    matrix = found.correlations[RADII[0]]
    expected = spearmanr([one.accuracy for one in rows], [one.error.value for one in rows]).statistic
    assert matrix.values[0][1] == pytest.approx(expected)
    n, scores = found.constant["AT", "run 1"]
    made = [certificates(MODELS["AT"][0], radius) for radius in RADII]
    keep = made[-1].certified
    assert n == keep.sum()
    for score, one in zip(scores, made, strict=True):
        assert score == brier_score(one.lower[keep], one.upper[keep], one.correct[keep]).value
    assert scores[0] < scores[1]
    best, dx, dy = next(each for each in found.changes(RADII[0]) if (each[0].method, each[1]) == ("AT", 0.0))
    assert (dx, dy) == (0.0, 0.0)
    assert best.accuracy == max(one.accuracy for one in rows if one.method == "AT")


def test_the_answer_is_a_table_a_page_and_json(found: ModelChoice, tmp_path: Any) -> None:
    text = str(found)
    assert "Best calibration at comparable accuracy" in text
    assert "Spearman" in text
    assert found.at[0].by_error["AT"].error.text in text
    page = found.save(tmp_path / "choice.html").read_text()
    assert "constant subset" in page
    document = found.to_dict()
    assert document["schema"] == "certcal/model-choice/1"
    assert len(document["models"]) == len(found.columns()["radius"]) == len(found.models)
    assert any(found.columns()["pareto"])
    assert found.claims()[0] is found.at[0].by_error["AT"].error


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ([], "no mapping"),
        ({"AT": []}, "is empty"),
        ({"AT": [3]}, "holds int"),
        (
            {"AT": [MODELS["AT"][0], MODELS["AT"][0].select(np.arange(5))]},
            r"AT \(run 1\) and AT \(run 2\) are about different samples \(sample 5 is in AT \(run 1\) only\)",
        ),
        (
            {"AT": MODELS["AT"][0].select(np.arange(30)), "ACT": MODELS["ACT"][0].select(np.arange(30, 60))},
            "sample 0 is in AT .run 1. only",
        ),
    ],
)
def test_mistakes_are_answered_in_a_sentence(models: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        certcal.choose(models)


def test_runs_on_different_samples_are_judged_on_the_common_ones_when_asked() -> None:
    one, other = MODELS["AT"][0].select(np.arange(50)), MODELS["ACT"][0].select(np.arange(10, 60))
    cut = choose({"AT": one, "ACT": other}, radii=[0.1], samples="common")
    shared = [each.select(np.isin(each.index, np.arange(10, 50))) for each in (one, other)]
    same = choose({"AT": shared[0], "ACT": shared[1]}, radii=[0.1])
    assert (cut.n, same.n, same.notes) == (40, 40, ())
    assert [each.values for each in cut.models] == [each.values for each in same.models]
    assert "Compared on the 40 samples that all runs have" in " ".join(str(cut).split())
    assert cut.to_dict()["n"] == 40


def test_a_radius_at_which_nothing_is_certified_stays_with_dashes() -> None:
    found = choose(MODELS, radii=[0.1, 9.0])
    assert [(each.radius, each.highest, dict(each.by_error)) for each in found.at][1] == (9.0, 0.0, {})
    assert [each["radius"] for each in found.to_dict()["chosen"]] == [0.1, 9.0]
    assert "At radius 0.1, the largest at which anything is certified" in " ".join(str(found).split())
    tables = [block for part in found.report().sections for block in part.blocks if isinstance(block, Table)]
    assert [table.columns[-1].head for table in tables] == ["R\u00a0=\u00a09"] * 3
    assert "at radius 9 no model certifies anything" in tables[0].note
    assert {row[-1] for table in tables for row in table.texts()} == {"–"}
    (rows,) = [part.blocks[0].texts() for part in found.report().appendix if part.title == "All models"]
    assert [row[2:7] for row in rows[-5:]] == [["0", "0.0000", "–", "–", "–"]] * 5
