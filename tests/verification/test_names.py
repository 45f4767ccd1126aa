"""A table's columns go to a model by their names, in whatever order; other names are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import certcal
from certcal import InputError
from certcal.models.networks import MLP

NAMES = ["income", "loan age", "region"]


def _saved(model: Any, path: Path) -> str:
    model.save_model(path)
    return str(path)


MODELS: dict[str, Callable[[Any, Any, Path], Any]] = {
    "xgboost": lambda x, y, _: xgboost.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1).fit(x, y),
    "xgboost, json": lambda x, y, to: _saved(MODELS["xgboost"](x, y, to), to / "model.json"),
    "xgboost, ubj": lambda x, y, to: _saved(MODELS["xgboost"](x, y, to).get_booster(), to / "model.ubj"),
    "lightgbm": lambda x, y, _: lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(x, y),
    "lightgbm, txt": lambda x, y, to: _saved(MODELS["lightgbm"](x, y, to).booster_, to / "model.txt"),
    "random forest": lambda x, y, _: RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, y),
    "histogram boosting": lambda x, y, _: HistGradientBoostingClassifier(max_iter=4).fit(x, y),
}


@pytest.mark.parametrize("kind", MODELS)
def test_columns_go_by_name_or_are_refused(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(120, 3)), columns=NAMES)
    y = (x["income"] - x["region"] > 0).astype(int).to_numpy()
    model = MODELS[kind](x, y, tmp_path)
    change = {"income": 0.1, "region": "0.2sd"}
    first, plain = certcal.verify(model, (x, y), change), certcal.verify(model, (x.to_numpy(), y), 0.1)
    mixed = pd.DataFrame({"region": x["region"], "label": y, "income": x["income"], "loan age": x["loan age"]})
    for other in ((x[["region", "income", "loan age"]], y), mixed):
        found = certcal.verify(model, other, change)
        assert "by position" not in found.description
        for name, values in found.intervals().items():
            np.testing.assert_array_equal(values, first.intervals()[name])
    np.testing.assert_array_equal(plain.confidence, first.confidence)
    with pytest.raises(InputError, match=r"data: .*missing: 'income'; unexpected: 'wage'.*in any order"):
        certcal.verify(model, (x.rename(columns={"income": "wage"}), y), change | {"income": 0.1})
    unnamed = certcal.verify(MODELS[kind](x.to_numpy(), y, tmp_path), (x, y), change)
    assert unnamed.description.endswith("columns by position")
    np.testing.assert_array_equal(unnamed.at().verified.upper, first.at().verified.upper)


def test_a_network_takes_columns_by_position_and_what_may_change_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(1e4 + rng.normal(size=(40, 3)), columns=NAMES)
    network = MLP(3, hidden=(8,), classes=2, mean=1e4, seed=1).eval()
    x.assign(risk=rng.integers(0, 2, 40)).to_csv(tmp_path / "loans.csv", index=False)
    found = certcal.verify(network, tmp_path / "loans.csv", {"income": "+0.3", "region": 0.1}, label="risk")
    assert found.description.endswith("columns by position")
    assert found.binary
    moved = rng.uniform(0, 1, (200, 40, 2)) * [0.3, 0.2] - [0, 0.1]
    line = found.at().verified
    for step in moved:
        other = x.to_numpy() + np.column_stack([step[:, 0], np.zeros(40), step[:, 1]])
        with torch.no_grad():
            score = torch.softmax(network(torch.tensor(other, dtype=torch.float32)).double(), 1)[:, 1].numpy()
        assert ((line.lower <= score) & (score <= line.upper)).all()
    assert (line.upper - line.lower).max() < 0.5
    ends = certcal.verify(network, (x, found.correct), {"income": 1 / 3})
    assert (ends.at().verified.lower <= ends.confidence).all()
    with pytest.raises(InputError, match="label: it is for tables of features"):
        certcal.verify(network, (x.to_numpy(), found.correct), 0.1, label="risk")
    with pytest.raises(InputError, match="no column 'risky'"):
        certcal.verify(network, tmp_path / "loans.csv", {"income": 1}, label="risky")
