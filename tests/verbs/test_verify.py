"""What verify says of intervals is what certify says of its table; files, commands and mistakes."""

import json
import re
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import certcal
from certcal import InputError
from certcal.data import read_features
from certcal.metrics import ece

NAMES = ("income", "age", "score", "region")


def text_of(found: Any) -> str:
    """What is printed, without the ends of lines."""
    return " ".join(str(found).split())


@pytest.fixture(scope="module")
def loans() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    x = np.column_stack(
        [rng.normal(2000, 500, 600), rng.integers(18, 70, 600), rng.normal(size=600), rng.integers(0, 3, 600)]
    )
    y = (rng.random(600) < 1 / (1 + np.exp(-(x[:, 0] - 2000) / 400 - x[:, 2]))).astype(int)
    return x, y


@pytest.fixture(scope="module")
def model(loans: tuple[Any, Any]) -> Any:
    return xgboost.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1).fit(loans[0][:300], loans[1][:300])


@pytest.fixture(scope="module")
def files(loans: tuple[Any, Any], model: Any, tmp_path_factory: Any) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    model.save_model(folder / "model.json")
    rows = [",".join([*NAMES, "label"])]
    rows += [
        ",".join(map(repr, map(float, row))) + f",{label}"
        for row, label in zip(loans[0][300:], loans[1][300:], strict=True)
    ]
    (folder / "loans.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_a_binary_score_is_certified_on_every_sample_and_bracketed(model: Any, loans: tuple[Any, Any]) -> None:
    x, y = loans[0][300:], loans[1][300:]
    v = certcal.verify(model, (x, y), epsilon=[0.02, 0.1])
    assert v.binary
    assert [line.epsilon for line in v] == [0.02, 0.1]
    clean = ece(model.predict_proba(x)[:, 1], y)
    for line in v:
        assert line.summary.n_certified == 300
        assert clean <= line.reached.value + 1e-12
        assert line.reached.value <= line.worst.value
        assert line.population.value > line.worst.value
        assert line.exact > 0.9
    assert v.at(0.1).worst.value > v.at(0.02).worst.value
    c = certcal.certify(v)
    assert c.at(0.1).summary.to_dict() == v.at(0.1).summary.to_dict()
    assert "no noise" in c.description
    assert c.origin.assumptions[0] == "every input stays inside its box"
    assert "each interval holds" in v.answer.assumptions
    assert str(v).count("- each interval holds") == 1
    r = certcal.recalibrate(v, radii=[0.1])
    assert r.to_dict()["columns"]["outcome"] == "outcome"
    for said in (str(c), str(v)):
        assert "How wrong can the scores be" in said
        assert not re.search("certified (accuracy|sample|prediction)|correctness|confidence", said)
    assert c.at().summary.accuracy.name == "base rate"
    assert c.verdict("base rate >= 0.1")
    one = v.at()
    limits = {"ece": one.population, "population ece": one.population, "samples ece": one.worst}
    for name, claim in limits.items():
        (found,) = v.verdict(f"{name} <= {claim.value}").judgements
        assert (found.passed, found.value) == (True, claim.value)
        assert ("on these samples" in found.what) == (claim is not one.population)
    assert not v.verdict(f"ece <= {one.worst.value}")
    assert v.verdict(f"estimate reached ece <= {one.reached.value}")
    assert c.verdict("ece <= 1").judgements[0].value == c.at().worst.value
    assert c.verdict("population ece <= 1").judgements[0].value == c.at().population.value
    assert "whatever inputs do inside the box (±0.1 sd of every feature; the largest of 2)." in text_of(v)
    assert "at multiples 0.02, 0.1 of ±1 sd of every feature" in v.description
    assert "at multiples 0.02, 0.1 of ±1 sd of every feature" in c.description
    assert "(±0.3333 sd of every feature)" in text_of(certcal.verify(model, (x[:9], y[:9]), "2sd", epsilon=0.16665))
    assert v.to_dict()["alpha"] == 0
    json.loads(v.to_json())


def test_what_the_attack_reaches_is_reached_by_real_inputs(model: Any, loans: tuple[Any, Any]) -> None:
    """The reached ends are scores of the model: random search finds hardly more, and never what is not certified."""
    x, y = loans[0][300:340], loans[1][300:340]
    v = certcal.verify(model, (x, y), {"0": "5%", "1": 2}, effort=200)
    one = v.at().verified
    rng = np.random.default_rng(0)
    points = x + rng.uniform(-1, 1, (300, 40, 4)) * np.stack(
        [0.05 * x[:, 0], np.full(40, 2.0), *np.zeros((2, 40))], axis=1
    )
    found = model.predict_proba(points.reshape(-1, 4))[:, 1].reshape(300, 40)
    assert (one.lower <= found.min(axis=0)).all()
    assert (found.max(axis=0) <= one.upper).all()
    assert (one.reached_lower <= found.min(axis=0) + 1e-9).mean() > 0.95
    assert (certcal.verify(model, (x, y), {"0": "5%"}, attack=False).at().verified.reached_upper == v.confidence).all()


def test_several_classes_are_certified_where_none_can_change(loans: tuple[Any, Any]) -> None:
    x = loans[0]
    y = np.digitize(x[:, 2], [-0.5, 0.5])
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(x[:300], y[:300])
    v = certcal.verify(forest, (x[300:], y[300:]), 0.05)
    one = v.at()
    assert 0 < one.summary.n_certified < 300
    assert not (one.verified.flipped & one.verified.certified).any()
    assert one.verified.flipped.any()
    assert certcal.certify(v).at().summary.n_certified == one.summary.n_certified
    assert "certified" in v.intervals()
    assert "whose class cannot change" in str(v)
    assert f"ECE of the population of certified samples ({one.summary.n_certified} of 300) is at most" in text_of(v)
    wide = certcal.verify(forest, (x[300:310], y[300:310]), 50.0, effort=0)
    assert wide.at().summary.n_certified == 0
    assert "of all samples (none is certified), is at most" in text_of(wide)
    assert "worst ECE over all samples" in text_of(wide)


def test_pieces_files_and_memory_give_the_same_intervals(
    model: Any, loans: tuple[Any, Any], files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x, y = loans[0][300:], loans[1][300:]
    whole = certcal.verify(model, (x, y), 0.1)
    monkeypatch.setattr("certcal.verbs.verify.PIECE", 70)
    parts = certcal.verify(files / "model.json", files / "loans.csv", 0.1)
    assert np.array_equal(whole.at().verified.upper, parts.at().verified.upper)
    booster = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=5, n_jobs=1, verbose=-1).fit(x, y)
    booster.booster_.save_model(tmp_path / "model.txt")
    text = certcal.verify(tmp_path / "model.txt", (x, y), 0.1)
    assert np.array_equal(text.at().verified.lower, certcal.verify(booster, (x, y), 0.1).at().verified.lower)
    kept = parts.save(tmp_path / "intervals.parquet")
    again = certcal.certify(kept)
    assert again.at().summary.to_dict() == parts.at().summary.to_dict()
    assert again.origin.assumptions == parts.assumptions


def test_models_and_tables_that_do_not_fit_are_refused(model: Any, loans: tuple[Any, Any], tmp_path: Path) -> None:
    x, y = loans
    with pytest.raises(InputError, match="takes 4 features"):
        certcal.verify(model, (x[:, :3], y))
    with pytest.raises(InputError, match="label of sample 0 is 2"):
        certcal.verify(model, (x, np.full(600, 2)))
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(InputError, match="it is damaged: it has no 'learner'; save the model again"):
        certcal.verify(tmp_path / "broken.json", (x, y))
    with pytest.raises(InputError, match="cannot be verified"):
        certcal.verify(lambda rows: rows, (x, y), outputs="logits")
    with pytest.raises(InputError, match="'f' of sample 1 is infinite"):
        read_features({"f": [1.0, np.inf], "label": [0, 1]})
    missing = x.copy()
    missing[0, 0] = np.nan
    boosted = GradientBoostingClassifier(n_estimators=2, max_depth=2).fit(x, y)
    with pytest.raises(InputError, match="NaN"):
        certcal.verify(boosted, (missing, y), 0.1)
