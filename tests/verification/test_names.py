"""A table's columns go to a model by their names, in whatever order; other names are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import certcal
from certcal import InputError

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
