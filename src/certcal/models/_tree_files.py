"""Files of trees that XGBoost and LightGBM have saved, checked before the library sees them.

Both libraries trust their files: a wrong count, child or length ends the process or asks for all of its memory. So a
file is read here, by code that asks for no more memory than the file has bytes for; counts, children and lengths are
checked; and the library is given a model that is written anew from what was read. Of the rest of a file (importances,
training parameters, counts of samples) nothing reaches it, and predictions need none of that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.text import reason

# The libraries walk trees recursively, on the stack of a thread.
DEEPEST = 2_000
# XGBoost keeps a bit for every category up to the largest that a node names; it takes none above 2²⁴.
_MOST_CATEGORY, _MOST_BITS = 2**24, 2**33
# How deep the document of XGBoost is nested at most, and where it has no parent.
_NESTED, _NO_PARENT = 32, 2**31 - 1
_OBJECTIVES = {
    "xgboost": ("binary:logistic", "multi:softprob"),
    "lightgbm": ("binary", "cross_entropy", "multiclass"),
}


class _OtherKindError(Exception):
    """What a file holds that is whole and not read, and what to do."""


def checked_model(data: bytes, path: Path, library: str) -> bytes:
    """The model in a file as bytes that its library can be given: UBJSON for "xgboost", a text for "lightgbm".

    Of XGBoost the ending of the file says which of two formats it is in; its name is for messages.
    """
    try:
        if library == "lightgbm":
            return _checked_lightgbm(data.decode().replace("\r\n", "\n")).encode()
        found = json.loads(data) if path.suffix.lower() == ".json" else _Ubjson(data).value()
        return _to_ubjson(_checked_xgboost(found))
    except _OtherKindError as error:
        raise InputError(f"{path}: {error.args[0]}", remedy=error.args[1]) from None
    except KeyError as error:
        why = f"it has no {error.args[0]!r}"
    except (ArithmeticError, AttributeError, IndexError, RecursionError, TypeError, ValueError) as error:
        why = str(error) if type(error) is ValueError else reason(error)
    raise InputError(
        f"{path}: this is not what {library} saves, or it is damaged: {why}",
        remedy=f"save the model again with {library}'s save_model",
    )


def _whole_from(value: Any, least: int, most: int, name: str) -> int:
    result = int(value)
    if not least <= result <= most:
        raise ValueError(f"{name} is {result}, and not from {least} to {most}")
    return result


def _typed_array(given: Any, kind: Any, name: str, length: int | None = None) -> NDArray[Any]:
    found = np.asarray(given)
    if found.size == 0:
        found = found.astype(kind)
    if found.ndim != 1 or found.dtype.kind not in "biuf" or (length is not None and found.size != length):
        raise ValueError(f"{name} is not a list of {'' if length is None else f'{length} '}numbers")
    if np.dtype(kind).kind == "f":
        with np.errstate(over="ignore"):
            narrow = found.astype(kind)
        if np.isnan(narrow).any():
            raise ValueError(f"{name} holds what is no number")
        return narrow
    limits = np.iinfo(kind)
    if found.size and not (limits.min <= found.min() and found.max() <= limits.max):
        raise ValueError(f"{name} holds {found.min()} or {found.max()}, which is too large")
    return found.astype(kind)


def _reachable(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Which nodes a tree reaches from its first, after a check that it is a tree. A leaf has the children -1.

    No node is a child twice and the first is none, so that a walk downwards cannot come back: where it entered a circle
    there would be a node with two parents, or the first with one.
    """
    inner = left >= 0
    children = np.concatenate([left[inner], right[inner]])
    if children.size and not (children.min() >= 1 and children.max() < left.size):
        raise ValueError(f"a child is node {children.min()} or {children.max()}, and there are {left.size} nodes")
    if (right[~inner] >= 0).any() or (children.size and np.bincount(children).max() > 1):
        raise ValueError("its nodes are not those of a tree")
    reachable = np.zeros(left.size, np.bool_)
    level, depth = np.zeros(1, np.int64), 0
    while level.size:
        if depth > DEEPEST:
            raise ValueError(f"it is deeper than {DEEPEST}")
        reachable[level] = True
        level = level[left[level] >= 0]
        level = np.concatenate([left[level], right[level]])
        depth += 1
    return reachable


def _read_trees(trees: list[Any], read: Callable[[Any, int], Any]) -> list[Any]:
    if not trees:
        raise ValueError("it holds no trees")
    result: list[Any] = []
    for place, tree in enumerate(trees):
        try:
            result.append(read(tree, place))
        except KeyError as error:
            raise ValueError(f"tree {place}: it has no {error.args[0]!r}") from error
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"tree {place}: {error}") from error
    return result


def _objective(name: str, library: str) -> str:
    if name not in _OBJECTIVES[library]:
        known = ", ".join(_OBJECTIVES[library])
        raise _OtherKindError(f"the objective {name[:40]!r} of {library} gives no probabilities", f"train with {known}")
    return name


# --- XGBoost -------------------------------------------------------------------------------------------------------


def _checked_xgboost(document: Any) -> dict[str, Any]:
    """The document of XGBoost with what predictions need, checked."""
    learner = document["learner"]
    objective, facts, grower = learner["objective"], learner["learner_model_param"], learner["gradient_booster"]
    name, kind = _objective(str(objective["name"]), "xgboost"), str(grower["name"])
    if kind not in ("gbtree", "dart"):
        raise _OtherKindError(f"the booster {kind[:40]!r} of xgboost has no trees", "train with gbtree or dart")
    model = grower["gbtree"]["model"] if kind == "dart" else grower["model"]
    trees = list(model["trees"])
    features = _whole_from(facts["num_feature"], 1, 2**31 - 2, "num_feature")
    several = name == "multi:softprob"
    classes = _whole_from(facts["num_class"], 2 if several else 0, len(trees) if several else 1, "num_class")
    _whole_from(facts.get("num_target", 1), 0, 1, "num_target")
    bits = [0]
    found = _read_trees(trees, lambda tree, place: _xgboost_tree(tree, place, features, bits))
    group = _typed_array(model["tree_info"], np.int32, "tree_info", len(trees))
    if not (group.min() >= 0 and group.max() < max(1, classes)):
        raise ValueError(f"tree_info holds class {group.min()} or {group.max()}, and there are {max(1, classes)}")
    parallel = _whole_from(model["gbtree_model_param"]["num_parallel_tree"], 1, len(trees), "num_parallel_tree")
    new: dict[str, Any] = {
        "cats": {"enc": [], "feature_segments": np.empty(0, np.int32), "sorted_idx": np.empty(0, np.int32)},
        "gbtree_model_param": {"num_parallel_tree": str(parallel), "num_trees": str(len(trees))},
        "tree_info": group.tolist(),
        "trees": found,
    }
    if "iteration_indptr" in model:
        starts = _typed_array(model["iteration_indptr"], np.int32, "iteration_indptr")
        if starts.size < 2 or starts[0] != 0 or starts[-1] != len(trees) or (np.diff(starts) < 0).any():
            raise ValueError(f"iteration_indptr does not go from 0 to {len(trees)}")
        new["iteration_indptr"] = starts.tolist()
    booster: dict[str, Any] = {"model": new, "name": "gbtree"}
    if kind == "dart":
        dropped = _typed_array(grower["weight_drop"], np.float32, "weight_drop", len(trees))
        booster = {"gbtree": booster, "name": "dart", "weight_drop": dropped.tolist()}
    parameter = {"reg_loss_param": {"scale_pos_weight": "1"}}
    if several:
        parameter = {"softmax_multiclass_param": {"num_class": str(classes)}}
    return {
        "learner": {
            "attributes": {str(key): str(value) for key, value in learner.get("attributes", {}).items()},
            "feature_names": _feature_texts(learner.get("feature_names", []), features),
            "feature_types": _feature_texts(learner.get("feature_types", []), features),
            "gradient_booster": booster,
            "learner_model_param": {
                "base_score": _base_score(str(facts["base_score"]), classes),
                "boost_from_average": "1",
                "num_class": str(classes),
                "num_feature": str(features),
                "num_target": "1",
            },
            "objective": {"name": name, **parameter},
        },
        "version": _typed_array(document["version"], np.uint16, "version", 3).tolist(),
    }


def _xgboost_tree(tree: Mapping[str, Any], place: int, features: int, bits: list[int]) -> dict[str, Any]:
    size = _whole_from(tree["tree_param"]["num_nodes"], 1, len(tree["left_children"]), "num_nodes")
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise _OtherKindError("trees with vectors as leaves are not read", "train a tree for each class")
    left, right, split = (
        _typed_array(tree[name], np.int32, name, size) for name in ("left_children", "right_children", "split_indices")
    )
    default, by_category = (_typed_array(tree[name], np.uint8, name, size) for name in ("default_left", "split_type"))
    floats = {
        name: _typed_array(tree[name], np.float32, name, size)
        for name in ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
    }
    # What cannot be reached was cut off in training; the other nodes move together.
    there = _reachable(left, right)
    number = (np.cumsum(there) - 1).astype(np.int32)
    inner = left[there] >= 0
    left, right = (np.where(inner, number[side[there]], -1).astype(np.int32) for side in (left, right))
    split, default, by_category = split[there], default[there], by_category[there]
    floats = {name: values[there] for name, values in floats.items()}
    if ((split < 0) | (split >= features))[inner].any():
        raise ValueError(f"a node splits feature {split[inner].min()} or {split[inner].max()} of {features}")
    if (by_category > 1).any() or not np.isfinite(floats["split_conditions"][~inner]).all():
        raise ValueError("split_type or the value of a leaf is out of range")
    parents = np.full(inner.size, _NO_PARENT, np.int32)
    for children in (left, right):
        parents[children[inner]] = np.flatnonzero(inner)
    return {
        **floats,
        **_categories(tree, np.flatnonzero(inner & (by_category == 1)), there, bits),
        "default_left": (default != 0).astype(np.uint8),
        "id": place,
        "left_children": left,
        "parents": parents,
        "right_children": right,
        "split_indices": np.where(inner, split, 0).astype(np.int32),
        "split_type": np.where(inner, by_category, 0).astype(np.uint8),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(features),
            "num_nodes": str(inner.size),
            "size_leaf_vector": "1",
        },
    }


def _categories(
    tree: Mapping[str, Any], wanted: NDArray[Any], there: NDArray[np.bool_], bits: list[int]
) -> dict[str, Any]:
    """Categories of the nodes that split them, each node's own behind those of the one before it."""
    values = _typed_array(tree["categories"], np.int32, "categories")
    if values.size and not (values.min() >= 0 and values.max() < _MOST_CATEGORY):
        raise ValueError(f"a category is {values.min()} or {values.max()}")
    nodes, starts, sizes = (
        _typed_array(tree[f"categories_{name}"], np.int64, f"categories_{name}")
        for name in ("nodes", "segments", "sizes")
    )
    kept = np.isin(nodes, np.flatnonzero(there)[wanted])
    if not nodes.size == starts.size == sizes.size or not np.array_equal(np.flatnonzero(there)[wanted], nodes[kept]):
        raise ValueError("categories_nodes are not the nodes that split categories")
    parts = [np.empty(0, np.int32)]
    for start, size in zip(starts[kept].tolist(), sizes[kept].tolist(), strict=True):
        if not 0 <= start < start + size <= values.size:
            raise ValueError(f"a node names the categories {start} to {start + size} of {values.size}")
        parts.append(values[start : start + size])
        bits[0] += int(parts[-1].max()) + 1
    if bits[0] > _MOST_BITS:
        raise ValueError(f"its categories would take {bits[0] / 2**33:.1f} GB")
    return {
        "categories": np.concatenate(parts),
        "categories_nodes": wanted.astype(np.int32),
        "categories_segments": np.cumsum(sizes[kept]) - sizes[kept],
        "categories_sizes": sizes[kept],
    }


def _base_score(text: str, classes: int) -> str:
    """A number, or since XGBoost 3.1 a list of them as text."""
    found: Any = json.loads(text)
    several = [float(each) for each in (cast("list[Any]", found) if isinstance(found, list) else [found])]
    if len(several) not in (1, classes) or not all(map(math.isfinite, several)):
        raise ValueError(f"base_score is {text[:40]!r}")
    if classes < 2 and not 0 < several[0] < 1:
        raise ValueError(f"base_score is {several[0]}, and not between 0 and 1")
    return json.dumps(several) if isinstance(found, list) else json.dumps(several[0])


def _feature_texts(given: Any, features: int) -> list[str]:
    texts = [str(each) for each in given]
    if len(texts) not in (0, features):
        raise ValueError(f"{len(texts)} features are named or typed, and there are {features}")
    return texts


_KINDS = {
    letter: np.dtype(kind)
    for letter, kind in {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}.items()
}
_LETTERS = {kind.newbyteorder("="): letter.encode() for letter, kind in _KINDS.items()}


class _Ubjson:
    """A reader of UBJSON that takes nothing of a length that the file does not have."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise ValueError(f"byte {self.at} is followed by {len(self.data) - self.at} bytes, and not by {count}")
        self.at += count
        return self.data[self.at - count : self.at]

    def skips(self, mark: bytes) -> bool:
        result = self.data[self.at : self.at + 1] == mark
        self.at += result
        return result

    def kind(self) -> np.dtype[Any]:
        letter = self.take(1).decode("latin-1")
        if letter not in _KINDS:
            raise ValueError(f"byte {self.at - 1} is {letter!r}, which is no kind of number")
        return _KINDS[letter]

    def number(self) -> Any:
        kind = self.kind()
        return np.frombuffer(self.take(kind.itemsize), kind)[0].item()

    def length(self) -> int:
        return self.number()

    def text(self) -> str:
        return self.take(self.length()).decode()

    def value(self, depth: int = 0) -> Any:
        if depth > _NESTED:
            raise ValueError("it is nested too deeply")
        if self.skips(b"S"):
            return self.text()
        if self.skips(b"{"):
            result = dict[str, Any]()
            while not self.skips(b"}"):
                name = self.text()
                result[name] = self.value(depth + 1)
            return result
        return self.several(depth) if self.skips(b"[") else self.number()

    def several(self, depth: int) -> Any:
        if self.skips(b"$"):
            kind = self.kind()
            if not self.skips(b"#"):
                raise ValueError(f"byte {self.at} is no length")
            return np.frombuffer(self.take(self.length() * kind.itemsize), kind)
        if self.skips(b"#"):
            count = self.length()
            self.take(count)  # an entry has at least one byte
            self.at -= count
            return [self.value(depth + 1) for _ in range(count)]
        result: list[Any] = []
        while not self.skips(b"]"):
            result.append(self.value(depth + 1))
        return result


def _to_ubjson(value: Any) -> bytes:
    if isinstance(value, dict):
        several = cast("dict[str, Any]", value)
        return b"{" + b"".join(_to_ubjson(key)[1:] + _to_ubjson(each) for key, each in several.items()) + b"}"
    if isinstance(value, list):
        entries = cast("list[Any]", value)
        return b"[#" + _to_ubjson(len(entries)) + b"".join(map(_to_ubjson, entries))
    if isinstance(value, np.ndarray):
        array = cast("NDArray[Any]", value)
        head = b"[$" + _LETTERS[array.dtype] + b"#" + _to_ubjson(array.size)
        return head + array.astype(array.dtype.newbyteorder(">")).tobytes()
    if isinstance(value, str):
        return b"S" + _to_ubjson(len(value.encode())) + value.encode()
    if isinstance(value, float):
        return b"d" + np.array(value, ">f4").tobytes()
    return b"L" + int(value).to_bytes(8, "big", signed=True)


# --- LightGBM ------------------------------------------------------------------------------------------------------


def _checked_lightgbm(text: str) -> str:
    """The text of LightGBM with what predictions need, checked."""
    trees, ended, _ = text.partition("\nend of trees")
    head, *blocks = trees.split("\nTree=")
    if not head.startswith("tree\n") or not ended:
        raise ValueError("it does not begin with 'tree', or its trees do not end")
    facts = _block_fields(head)
    objective, *options = facts["objective"].split()
    _objective(objective, "lightgbm")
    several = objective == "multiclass"
    classes = _whole_from(facts["num_tree_per_iteration"], 1, max(1, len(blocks)), "num_tree_per_iteration")
    if several != (classes > 1) or len(blocks) % classes or int(facts["num_class"]) != classes:
        raise ValueError(f"num_class, num_tree_per_iteration, the objective and {len(blocks)} trees do not go together")
    names = [name for name in facts["feature_names"].split(" ") if name]  # other spaces are parts of names
    if len(names) != _whole_from(facts["max_feature_idx"], 0, 2**31 - 2, "max_feature_idx") + 1:
        raise ValueError(f"{len(names)} features are named, and max_feature_idx is {facts['max_feature_idx']}")
    if several:
        objective += f" num_class:{classes}"
    elif objective == "binary":
        slope = float(next((each[8:] for each in options if each.startswith("sigmoid:")), 1))
        if not 0 < slope < math.inf:
            raise ValueError(f"sigmoid is {slope}")
        objective += f" sigmoid:{slope!r}"
    found = _read_trees(blocks, lambda block, place: _lightgbm_tree_text(_block_fields(block), place, len(names)))
    lines = [
        "tree",
        "version=v4",
        f"num_class={classes}",
        f"num_tree_per_iteration={classes}",
        "label_index=0",
        f"max_feature_idx={len(names) - 1}",
        f"objective={objective}",
        *(["average_output"] if "average_output" in head.split("\n") else []),
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(['none'] * len(names))}",
        "",
        *found,
        "end of trees",
        "",
        "pandas_categorical:null",
        "",
    ]
    return "\n".join(lines)


def _block_fields(block: str) -> dict[str, str]:
    return {name: value for name, between, value in (line.partition("=") for line in block.split("\n")) if between}


def _lightgbm_tree_text(facts: Mapping[str, str], place: int, features: int) -> str:
    def numbers(name: str, kind: Any, length: int | None) -> NDArray[Any]:
        words = facts.get(name, "").split()
        return _typed_array([*map(float if kind is np.float64 else int, words)], kind, name, length)

    if int(facts.get("is_linear", 0)):
        raise _OtherKindError("trees with linear functions as leaves are not read", "train without linear_tree")
    values = numbers(
        "leaf_value", np.float64, _whole_from(facts["num_leaves"], 1, len(facts["leaf_value"]), "num_leaves")
    )
    inner = values.size - 1
    left, right, split = (numbers(name, np.int32, inner) for name in ("left_child", "right_child", "split_feature"))
    kinds, threshold = numbers("decision_type", np.int8, inner), numbers("threshold", np.float64, inner)
    # Leaf k is the child -1 - k; as a node of its own it is node inner + k.
    if (np.maximum(left, right) >= inner).any():
        raise ValueError(f"a child is node {max(left.max(), right.max())}, and there are {inner}")
    children = [np.where(side < 0, inner - 1 - side.astype(np.int64), side) for side in (left, right)]
    if inner and not _reachable(*(np.concatenate([side, np.full(values.size, -1)]) for side in children)).all():
        raise ValueError("its nodes are not those of a tree")
    if ((split < 0) | (split >= features)).any() or not np.isfinite(values).all():
        raise ValueError("a feature or the value of a leaf is out of range")
    if ((kinds < 0) | (kinds > 11) | ((kinds & 1 == 1) & (threshold != np.floor(threshold)))).any():
        raise ValueError("decision_type is out of range")
    which, sets = threshold[kinds & 1 == 1], _whole_from(facts.get("num_cat", 0), 0, inner, "num_cat")
    if which.size and not (which.min() >= 0 and which.max() < sets):
        raise ValueError(f"a node names the categories {which.min():g} or {which.max():g} of {sets}")
    lines: dict[str, Any] = {"num_leaves": [values.size], "num_cat": [sets]}
    if inner:
        lines |= {"split_feature": split, "threshold": threshold, "decision_type": kinds}
        lines |= {"left_child": left, "right_child": right}
    lines["leaf_value"] = values
    if sets:
        ends = numbers("cat_boundaries", np.int32, sets + 1)
        words = numbers("cat_threshold", np.uint32, None)
        if ends[0] != 0 or ends[-1] != words.size or (np.diff(ends) < 0).any():
            raise ValueError(f"cat_boundaries do not go from 0 to the {words.size} words of cat_threshold")
        lines |= {"cat_boundaries": ends, "cat_threshold": words}
    lines |= {"is_linear": [0], "shrinkage": [1]}
    shown = (f"{name}={' '.join(map(repr, np.asarray(each).tolist()))}" for name, each in lines.items())
    return "\n".join([f"Tree={place}", *shown, "", ""])
