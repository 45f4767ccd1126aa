"""Whatever is wrong with a file of trees is a sentence, said before XGBoost or LightGBM sees any of it."""

import json
import random
import re
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

from certcal import InputError
from certcal.models import load
from certcal.models._tree_files import DEEPEST, _to_ubjson, _Ubjson, checked_model

NAMES = (
    "plain.json",
    "plain.ubj",
    "several.json",
    "several.ubj",
    "pruned.json",
    "plain.txt",
    "several.txt",
    "mean.txt",
)


def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(200, 4)), 2)
    x[:, 3] = rng.integers(0, 5, 200)
    score = x[:, 0] + np.isin(x[:, 3], (1, 4)) + rng.normal(0, 0.3, 200)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x, np.digitize(score, [0.2, 0.8])


@cache
def saved(name: str) -> bytes:
    """A small model as its library saves it."""
    kind, _, ending = name.partition(".")
    x, y = rows()
    if kind != "several":
        y = (y > 0).astype(int)
    if ending == "txt":
        given: dict[str, Any] = {"n_estimators": 3, "num_leaves": 5, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
        given |= {"cat_smooth": 1, "cat_l2": 0.1, "min_data_per_group": 5, "max_cat_to_onehot": 1}
        given |= {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1} if kind == "mean" else {}
        model = lightgbm.LGBMClassifier(**given).fit(x, y, categorical_feature=[3])
        return model.booster_.model_to_string().encode()
    types = ["q", "q", "i", "c"]
    given = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "max_cat_to_onehot": 1}
    if kind == "several":
        given |= {"objective": "multi:softprob", "num_class": 3, "booster": "dart", "rate_drop": 0.5}
    if kind == "pruned":
        given, types = given | {"tree_method": "exact", "gamma": 3, "max_depth": 6}, ["q", "q", "q", "q"]
    table = xgboost.DMatrix(x, y, feature_names=["a", "b", "c", "d e"], feature_types=types, enable_categorical=True)
    return bytes(xgboost.train(given, table, 3).save_raw(ending))


def predicted(booster: Any, x: Any) -> Any:
    if isinstance(booster, xgboost.Booster):
        return booster.inplace_predict(x, validate_features=False)
    return booster.predict(x)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_was_read_here_answers_as_the_librarys_own_to_the_bit(name: str, tmp_path: Path) -> None:
    path, (x, _) = tmp_path / name, rows()
    path.write_bytes(saved(name))
    own = (lightgbm if name.endswith("txt") else xgboost).Booster(model_file=str(path))
    found: Any = load(path)
    np.testing.assert_array_equal(predicted(found.booster, x), predicted(own, x))
    if name.startswith("pruned"):
        assert b'"num_deleted":"0"' not in saved(name).split(b"tree_param")[1]  # nodes that training cut off


def edited(name: str, change: Callable[[Any, Any], None]) -> bytes:
    """A file of XGBoost after a change of its document, or of its first tree."""
    document = json.loads(saved(name))
    model = document["learner"]["gradient_booster"]
    change(document["learner"], (model.get("gbtree") or model)["model"]["trees"][0])
    return json.dumps(document).encode()


def put(field: str, place: int, value: Any) -> bytes:
    def change(_: Any, tree: Any) -> None:
        tree[field][place] = value

    return edited("plain.json", change)


def bits_by_the_gigabyte(_: Any, tree: Any) -> None:
    """Six kilobytes that ask for a bit for each of 2²⁴ categories at every node."""
    inner, size = 600, 1201
    left = [2 * k + 1 for k in range(inner)] + [-1] * (size - inner)
    tree["left_children"], tree["right_children"] = left, [each + (each > 0) for each in left]
    for name in ("base_weights", "default_left", "loss_changes", "split_conditions", "sum_hessian"):
        tree[name] = [0] * size
    tree["split_indices"] = [3] * size
    tree["split_type"] = [int(each > 0) for each in left]
    tree["categories"], tree["categories_nodes"] = [2**24 - 1], list(range(inner))
    tree["categories_segments"], tree["categories_sizes"] = [0] * inner, [1] * inner
    tree["tree_param"]["num_nodes"] = str(size)


def chain(_: Any, tree: Any) -> None:
    inner, size = DEEPEST + 1, 2 * DEEPEST + 3
    tree["left_children"] = [k + 1 if k % 2 == 0 and k < 2 * inner else -1 for k in range(size)]
    tree["right_children"] = [k + 2 if k % 2 == 0 and k < 2 * inner else -1 for k in range(size)]
    for name in ("base_weights", "default_left", "loss_changes", "split_conditions", "sum_hessian", "split_type"):
        tree[name] = [0] * size
    tree["split_indices"] = [0] * size
    tree["tree_param"]["num_nodes"] = str(size)


def text(old: str, new: str, name: str = "plain.txt") -> bytes:
    found, times = re.subn(old, new, saved(name).decode(), count=1, flags=re.MULTILINE)
    assert times
    return found.encode()


HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "json, half of it": (".json", lambda: saved("plain.json")[:1000], "not what xgboost saves, or it is damaged"),
    "json, nested": (".json", lambda: b"[" * 100_000, "recursion"),
    "json, of something else": (".json", lambda: b'{"a": 1}', "it has no 'learner'"),
    "a child that is not there": (".json", lambda: put("left_children", 0, 99), "a child is node 1 or 99|node 2 or 99"),
    "a circle": (".json", lambda: put("left_children", 1, 1), "its nodes are not those of a tree"),
    "a circle with the first": (".json", lambda: put("left_children", 1, 0), "a child is node 0"),
    "half of a node": (".json", lambda: put("right_children", -1, 1), "not those of a tree"),
    "a feature that is not there": (".json", lambda: put("split_indices", 0, 4), "splits feature . or 4 of 4"),
    "a number that is none": (".json", lambda: put("split_conditions", 0, float("nan")), "holds what is no number"),
    "a leaf without end": (".json", lambda: put("split_conditions", -1, 1e39), "value of a leaf is out of range"),
    "a number that is too large": (".json", lambda: put("left_children", 0, 2**40), "which is too large"),
    "fewer numbers than nodes": (
        ".json",
        lambda: edited("plain.json", lambda _, tree: tree["default_left"].pop()),
        "tree 0: default_left is not a list of",
    ),
    "categories beyond the list": (
        ".json",
        lambda: edited("plain.json", lambda _, tree: tree["categories_sizes"].__setitem__(0, 2**40)),
        "names the categories 0 to",
    ),
    "categories of another node": (
        ".json",
        lambda: edited("plain.json", lambda _, tree: tree["categories_nodes"].__setitem__(0, 77)),
        "not the nodes that split categories",
    ),
    "categories by the gigabyte": (".json", lambda: edited("plain.json", bits_by_the_gigabyte), r"would take 1\.2 GB"),
    "a chain": (".json", lambda: edited("plain.json", chain), f"it is deeper than {DEEPEST}"),
    "classes by the million": (
        ".json",
        lambda: edited("several.json", lambda learner, _: learner["learner_model_param"].update(num_class="1000000")),
        "num_class is 1000000, and not from 2 to 9",
    ),
    "no trees": (
        ".json",
        lambda: edited("plain.json", lambda learner, _: learner["gradient_booster"]["model"].update(trees=[])),
        "it holds no trees",
    ),
    "a base score of 2": (
        ".json",
        lambda: edited("plain.json", lambda learner, _: learner["learner_model_param"].update(base_score="2")),
        "base_score is 2",
    ),
    "ubj, half of it": (".ubj", lambda: saved("plain.ubj")[:1000], "is followed by"),
    "ubj, a length of 2⁶²": (".ubj", lambda: b"{L" + bytes(7) + b"\1a[$d#L\x40" + bytes(7), "is followed by 0 bytes"),
    "ubj, entries of a length of 2⁴⁰": (".ubj", lambda: b"[#L\0\0\1" + bytes(5) + b"i\0", "is followed by 2 bytes"),
    "ubj, a negative length": (".ubj", lambda: b"{i\xff", "and not by -1"),
    "ubj, nested": (".ubj", lambda: b"[" * 10_000, "nested too deeply"),
    "ubj, another kind": (".ubj", lambda: b"{Q", "is 'Q', which is no kind of number"),
    "txt, half of it": (".txt", lambda: saved("plain.txt")[:1000], "its trees do not end"),
    "txt, no UTF-8": (".txt", lambda: saved("plain.txt").replace(b"Column_0", b"Col\xfcmn"), "codec can't decode"),
    "txt, of something else": (".txt", lambda: b"0.5,1\n0.6,0\n", "it does not begin with 'tree'"),
    "txt, leaves that are not there": (
        ".txt",
        lambda: text(r"num_leaves=\d+", "num_leaves=7"),
        "leaf_value",
    ),
    "txt, leaves without number": (
        ".txt",
        lambda: text(r"num_leaves=\d+", "num_leaves=2147483647"),
        "num_leaves",
    ),
    "txt, a child that is not there": (".txt", lambda: text("left_child=1", "left_child=99"), "a child is node"),
    "txt, a leaf as a node": (
        ".txt",
        lambda: text(r"^(left_child=.* )-3", r"\g<1>6"),
        "a child is node 6, and there are 4",
    ),
    "txt, a leaf twice": (
        ".txt",
        lambda: text(r"(right_child=)\S+", r"\g<1>-1"),
        "not those|a child",
    ),
    "txt, a circle": (".txt", lambda: text(r"left_child=1", "left_child=0"), "a child is node 0"),
    "txt, a feature that is not there": (".txt", lambda: text(r"split_feature=\d", "split_feature=4"), "out of range"),
    "txt, categories that are not there": (
        ".txt",
        lambda: text("cat_boundaries=0 1", "cat_boundaries=0 9"),
        "do not go",
    ),
    "txt, categories without end": (".txt", lambda: text("num_cat=1", "num_cat=100000000"), "num_cat is 100000000"),
    "txt, names of other features": (
        ".txt",
        lambda: text("max_feature_idx=3", "max_feature_idx=999999999"),
        "are named",
    ),
    "txt, classes": (".txt", lambda: text("num_class=3", "num_class=300", "several.txt"), "do not go together"),
    "txt, no slope": (".txt", lambda: text("sigmoid:1", "sigmoid:0"), "sigmoid is 0"),
    "txt, a leaf without end": (".txt", lambda: text(r"leaf_value=\S+", "leaf_value=1e999"), "value of a leaf"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_a_sentence_and_takes_no_memory(name: str, tmp_path: Path) -> None:
    ending, make, said = HOSTILE[name]
    path = tmp_path / f"model{ending}"
    path.write_bytes(make())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=said) as caught:
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(f"{path}: ")
    assert "save the model again with" in str(caught.value)
    assert peak < 2e6 + 60 * path.stat().st_size


OTHER: dict[str, tuple[str, Callable[[], bytes]]] = {
    "trees with vectors as leaves are not read; train a tree for each class": (
        ".json",
        lambda: edited("plain.json", lambda _, tree: tree["tree_param"].update(size_leaf_vector="3")),
    ),
    "the objective 'reg:squarederror' of xgboost gives no probabilities; train with binary:logistic, multi:softprob": (
        ".json",
        lambda: edited("plain.json", lambda learner, _: learner["objective"].update(name="reg:squarederror")),
    ),
    "the booster 'gblinear' of xgboost has no trees; train with gbtree or dart": (
        ".json",
        lambda: edited("plain.json", lambda learner, _: learner["gradient_booster"].update(name="gblinear")),
    ),
    "trees with linear functions as leaves are not read; train without linear_tree": (
        ".txt",
        lambda: text("is_linear=0", "is_linear=1"),
    ),
}


@pytest.mark.parametrize("said", OTHER)
def test_a_model_of_another_kind_is_refused_by_name(said: str, tmp_path: Path) -> None:
    ending, make = OTHER[said]
    path = tmp_path / f"model{ending}"
    path.write_bytes(make())
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: {said}"


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Cut, with bits turned, or with a number that is another."""
    changed, at = bytearray(data), rng.randrange(len(data) - 8)
    how = rng.randrange(4)
    if how == 0:
        return data[:at]
    if how == 1:
        changed[at] ^= 1 << rng.randrange(8)
    elif how == 2:
        changed[at : at + 8] = rng.choice([-1, 0, 1, 2**31, 2**40, 2**62]).to_bytes(8, "big", signed=True)
    else:
        number = rng.choice([*re.finditer(rb"-?\d+", data)])
        other = rng.choice([b"-1", b"0", b"7", b"2147483648", b"99999999999999999999", b"1e308", b"nan", b""])
        changed[number.start() : number.end()] = other
    return bytes(changed)


@pytest.mark.parametrize("name", NAMES)
def test_of_damaged_files_only_those_that_are_trees_reach_the_library(name: str) -> None:
    rng, path, refused = random.Random(name), Path(name), 0
    library = "lightgbm" if name.endswith("txt") else "xgboost"
    for _ in range(60):
        data = mutated(saved(name), rng)
        try:
            model = checked_model(data, path, library)
        except InputError:
            refused += 1
            continue
        given: Any = {"model_str": model.decode()} if library == "lightgbm" else {"model_file": bytearray(model)}
        assert np.isfinite(
            predicted((lightgbm if library == "lightgbm" else xgboost).Booster(**given), rows()[0])
        ).all()
    assert 0 < refused < 60


def test_a_name_of_lightgbm_may_hold_any_but_a_plain_space(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_bytes(text("Column_0", "Zins\u00a0=\u3000%"))
    found: Any = load(path)
    assert found.booster.feature_name()[0] == "Zins\u00a0=\u3000%"


def test_what_is_written_for_xgboost_is_read_again() -> None:
    document = {"a": [1, -2.5, "é"], "b": {"c": np.arange(3, dtype=np.int32), "d": np.zeros(0, np.float32)}}
    found = _Ubjson(_to_ubjson(document)).value()
    assert found["a"] == document["a"]
    np.testing.assert_array_equal(found["b"]["c"], [0, 1, 2])
    assert found["b"]["d"].size == 0
