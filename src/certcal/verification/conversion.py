"""Ensembles of scikit-learn, XGBoost and LightGBM as arrays. What cannot be converted is refused by name.

Nothing here imports these libraries: they are recognised by the names of their classes, and their models are read from
fitted attributes or from the text that the library itself writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.margins import DOUBLE, SINGLE
from certcal._base.text import counted
from certcal._base.threads import thread_count
from certcal.verification.trees import CategorySplit, Ensemble, stack_trees

Tree = dict[str, Any]


def ensemble_of(model: Any) -> Ensemble:
    """A fitted model as arrays."""
    library, name = type(model).__module__.partition(".")[0], type(model).__name__
    convert = _CONVERSIONS.get((library, name))
    if convert is None:
        known = ", ".join(dict.fromkeys(each for _, each in _CONVERSIONS))
        if name == "Pipeline":
            line = "verify(pipe[-1], (pipe[:-1].transform(X), y))"
            raise _unsupported("a Pipeline", "cannot be verified", f"pass its last step and what it is given: {line}")
        raise _unsupported(f"{name} of {library}", "cannot be verified", f"verified are {known}")
    return replace(convert(model), names=_names(model))


def _names(model: Any) -> tuple[str, ...]:
    """Names of the features that a model was fitted on, if it stores them."""
    inner = model.get_booster() if hasattr(model, "get_booster") else getattr(model, "booster_", model)
    found = inner.feature_name() if hasattr(inner, "feature_name") else getattr(inner, "feature_names", None)
    found = getattr(inner, "feature_names_in_", None) if found is None else found
    return () if found is None else tuple(map(str, found))


def _unsupported(what: str, why: str, remedy: str = "fit a model without it") -> InputError:
    return InputError(f"{what} {why}", argument="model", remedy=remedy)


def _tree(feature: Any, threshold: Any, missing_left: Any, left: Any, right: Any, values: Any) -> Tree:
    """Arrays of one tree; leaves have the feature -1 and children of no meaning."""
    leaf = np.asarray(left) < 0
    return {
        "feature": np.where(leaf, -1, feature),
        "threshold": np.asarray(threshold, np.float64),
        "missing_left": np.asarray(missing_left, np.bool_),
        "left": np.where(leaf, 0, left),
        "right": np.where(leaf, 0, right),
        "values": np.asarray(values, np.float64).reshape(leaf.size, -1),
        "categories": dict[int, CategorySplit](),
    }


def _in_column(values: Any, column: int, columns: int) -> NDArray[np.float64]:
    result = np.zeros((np.size(values), columns))
    result[:, column] = values
    return result


# --- scikit-learn --------------------------------------------------------------------------------------------------


def _of_sklearn_tree(tree: Any, values: Any) -> Tree:
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    return _tree(tree.feature, tree.threshold, missing, tree.children_left, tree.children_right, values)


def _features(model: Any) -> Callable[[Any], Any]:
    """Its ``predict_proba`` on plain rows."""
    from certcal.models import wrap

    named: Any = wrap(model)
    return named.predict_rows


def _convert_forest(model: Any) -> Ensemble:
    """RandomForest and ExtraTrees, the mean of the trees' probabilities; a single tree is a forest of one."""
    if getattr(model, "n_outputs_", 1) != 1:
        raise _unsupported(type(model).__name__, "predicts several outputs at once", "fit one model for each")
    several = getattr(model, "estimators_", [model])
    classes = int(model.n_classes_)
    parts = [_of_sklearn_tree(each.tree_, each.tree_.value[:, 0, :classes]) for each in several]
    return stack_trees(
        parts,
        description=f"{type(model).__name__}, {counted(len(parts), 'tree')}",
        features=int(model.n_features_in_),
        classes=classes,
        group=np.full(len(parts), -1, np.int32),
        base=np.zeros(classes),
        predict=_features(model),
        link="mean",
        single=True,
    )


def _gradient_boosting(model: Any) -> Ensemble:
    if model.loss != "log_loss":
        raise _unsupported(
            f"loss={model.loss!r} of GradientBoostingClassifier", "has another link", "use loss='log_loss'"
        )
    init = type(model.init_).__name__
    if model.init is not None and model.init != "zero" and init != "DummyClassifier":
        raise _unsupported(f"init={init} of GradientBoostingClassifier", "is a model of its own", "leave init out")
    rounds, columns = model.estimators_.shape
    zeros = np.zeros((1, model.n_features_in_), np.float32)
    parts = [
        _of_sklearn_tree(each.tree_, _in_column(model.learning_rate * each.tree_.value[:, 0, 0], k, columns))
        for row in model.estimators_
        for k, each in enumerate(row)
    ]
    return stack_trees(
        parts,
        description=f"GradientBoostingClassifier, {counted(len(parts), 'tree')}",
        features=int(model.n_features_in_),
        classes=int(model.n_classes_),
        group=np.tile(np.arange(columns, dtype=np.int32), rounds),
        base=np.asarray(model._raw_predict_init(zeros), np.float64).reshape(-1),
        predict=_features(model),
        link="logistic" if columns == 1 else "softmax",
        single=True,
    )


def _hist_gradient_boosting(model: Any) -> Ensemble:
    if model.loss != "log_loss":
        raise _unsupported(f"loss={model.loss!r} of HistGradientBoostingClassifier", "has another link")
    columns, features = int(model.n_trees_per_iteration_), int(model.n_features_in_)
    places, categories = np.arange(features), dict[int, Any]()
    if model._preprocessor is not None:  # categories come first, as numbers in the order of their values
        chosen = np.asarray(model.is_categorical_, np.bool_)
        places = np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])
        encoder = model._preprocessor.named_transformers_["encoder"]
        for place, values in zip(np.flatnonzero(chosen), encoder.categories_, strict=True):
            if np.asarray(values).dtype.kind not in "biuf":
                raise _unsupported(
                    f"feature {place} of HistGradientBoostingClassifier", "has categories that are texts"
                )
            there = np.asarray(values, np.float64)
            categories[int(place)] = there[~np.isnan(there)]
    parts: list[Tree] = []
    for row in model._predictors:
        for k, predictor in enumerate(row):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(np.bool_)
            left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
            feature = places[np.where(leaf, 0, nodes["feature_idx"])]
            threshold, missing = nodes["num_threshold"], nodes["missing_go_to_left"]
            part = _tree(feature, threshold, missing, left, right, _in_column(nodes["value"], k, columns))
            for node in np.flatnonzero(nodes["is_categorical"].astype(np.bool_) & ~leaf):
                bits = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]
                known = categories[int(feature[node])]
                left_ones = known[_bits(bits)[: known.size]]
                right_ones = np.setdiff1d(known, left_ones)
                # Categories that were not seen go where missing values go.
                others = bool(missing[node])
                part["categories"][int(node)] = CategorySplit(left_ones, right_ones, others)
            parts.append(part)
    return stack_trees(
        parts,
        description=f"HistGradientBoostingClassifier, {counted(len(parts), 'tree')}",
        features=features,
        classes=int(np.size(model.classes_)),
        group=np.tile(np.arange(columns, dtype=np.int32), len(model._predictors)),
        base=np.asarray(model._baseline_prediction, np.float64).reshape(-1),
        predict=_features(model),
        link="logistic" if columns == 1 else "softmax",
    )


def _bits(words: Any) -> NDArray[np.bool_]:
    """Bits of 32-bit words, the lowest first."""
    return ((np.asarray(words, np.uint32)[:, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(np.bool_).reshape(-1)


# --- XGBoost -------------------------------------------------------------------------------------------------------


def _xgboost_estimator(model: Any) -> Ensemble:
    missing = model.missing
    if not (missing is None or np.isnan(missing)):
        raise _unsupported(f"missing={missing!r} of {type(model).__name__}", "is no NaN", "mark what is missing as NaN")
    best = getattr(model, "best_iteration", None) if model.early_stopping_rounds is not None else None
    return _convert_xgboost(model.get_booster(), None if best is None else int(best) + 1)


def _convert_xgboost(booster: Any, rounds: int | None = None) -> Ensemble:
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    objective, grower = learner["objective"]["name"], learner["gradient_booster"]
    if objective not in ("binary:logistic", "multi:softprob"):
        raise _unsupported(
            f"objective {objective!r} of XGBoost", "gives no probabilities", "use binary:logistic or multi:softprob"
        )
    if grower["name"] not in ("gbtree", "dart"):
        raise _unsupported(f"booster {grower['name']!r} of XGBoost", "has no trees", "use gbtree or dart")
    weights = np.asarray(grower.get("weight_drop", []), np.float32)
    model = grower["gbtree"]["model"] if grower["name"] == "dart" else grower["model"]
    used = len(model["trees"]) if rounds is None else int(model["iteration_indptr"][rounds])
    facts = learner["learner_model_param"]
    classes, columns = max(2, int(facts["num_class"])), max(1, int(facts["num_class"]))
    parts: list[Tree] = []
    for place, tree in enumerate(model["trees"][:used]):
        if int(tree["tree_param"]["size_leaf_vector"]) > 1:
            raise _unsupported("multi_strategy='multi_output_tree' of XGBoost", "has vectors as leaves")
        values = np.asarray(tree["split_conditions"], np.float32)
        leaves = values * weights[place] if weights.size else values
        # To be below a float32 is to be at most the one before it.
        threshold = np.nextafter(values, np.float32(-np.inf)).astype(np.float64)
        left, right = (np.asarray(tree[f"{side}_children"], np.int64) for side in ("left", "right"))
        spread = _in_column(leaves, int(model["tree_info"][place]), columns)
        part = _tree(np.asarray(tree["split_indices"]), threshold, tree["default_left"], left, right, spread)
        many = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
        for node, start, size in many:
            chosen = np.asarray(tree["categories"][start : start + size], np.float64)
            part["categories"][int(node)] = CategorySplit(np.empty(0), chosen, True)
        parts.append(part)
    base = np.atleast_1d(np.asarray(json.loads(facts["base_score"]), np.float64))
    base = np.log(base / (1 - base)) if columns == 1 else np.broadcast_to(base, columns).copy()
    return stack_trees(
        parts,
        description=f"XGBoost, {counted(len(parts), 'tree')}",
        features=int(facts["num_feature"]),
        classes=classes,
        group=np.asarray(model["tree_info"][:used], np.int32),
        base=base,
        predict=partial(booster.inplace_predict, validate_features=False, iteration_range=(0, rounds or 0)),
        link="logistic" if columns == 1 else "softmax",
        single=True,
        unit=SINGLE,
        truncated=True,
    )


# --- LightGBM ------------------------------------------------------------------------------------------------------


def _convert_lightgbm(booster: Any) -> Ensemble:
    head, *blocks = booster.model_to_string().partition("\nend of trees")[0].split("\nTree=")
    facts = _lightgbm_fields(head)
    objective, *more = facts.get("objective", "").split()
    if objective not in ("binary", "cross_entropy", "multiclass"):
        remedy = "use binary, cross_entropy or multiclass"
        raise _unsupported(f"objective {objective!r} of LightGBM", "gives no such probabilities", remedy)
    options = dict(each.split(":") for each in more if ":" in each)
    columns = int(facts["num_tree_per_iteration"])
    scale = float(options.get("sigmoid", 1.0)) if columns == 1 else 1.0
    if "average_output" in head.split():
        scale /= len(blocks) // columns
    parts = [
        _lightgbm_tree(_lightgbm_fields(block), place % columns, columns, scale) for place, block in enumerate(blocks)
    ]
    return stack_trees(
        parts,
        description=f"LightGBM, {counted(len(parts), 'tree')}",
        features=int(facts["max_feature_idx"]) + 1,
        classes=max(2, columns),
        group=np.arange(len(parts), dtype=np.int32) % columns,
        base=np.zeros(columns),
        predict=partial(booster.predict, validate_features=False, num_threads=thread_count()),
        link="logistic" if columns == 1 else "softmax",
        truncated=True,
        zero=float(np.float32(1e-35)),  # what is not larger is left out of a row, as zeros are
        unit=8 * DOUBLE,  # scales and averages are products more
    )


def _lightgbm_fields(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def _lightgbm_tree(facts: Mapping[str, str], column: int, columns: int, scale: float) -> Tree:
    def numbers(name: str, kind: Any = np.int64) -> NDArray[Any]:
        return np.array(facts[name].split(), kind) if facts.get(name) else np.empty(0, kind)

    if facts.get("is_linear", "0") != "0":
        raise _unsupported("linear_tree of LightGBM", "has linear functions as leaves")
    leaves = numbers("leaf_value", np.float64) * scale
    inner = leaves.size - 1
    kinds = numbers("decision_type")
    if ((kinds >> 2 & 3) == 1).any():
        raise _unsupported("zero_as_missing of LightGBM", "sends zeros where missing values go")
    threshold = numbers("threshold", np.float64)
    # Leaf k is node inner + k; in the text it is the child -1 - k.
    sides = (np.where(child < 0, inner - 1 - child, child) for child in (numbers("left_child"), numbers("right_child")))
    left, right = (np.concatenate([side, np.full(leaves.size, -1)]) for side in sides)
    by_category = (kinds & 1).astype(np.bool_)
    # Without a type of missing values a NaN counts as 0; of categories it goes right.
    missing = np.where(kinds >> 2 & 3 == 2, kinds & 2, threshold >= 0).astype(np.bool_) & ~by_category
    values = _in_column(np.concatenate([np.zeros(inner), leaves]), column, columns)
    part = _tree(
        np.concatenate([numbers("split_feature"), np.full(leaves.size, -1)]),
        np.concatenate([threshold, np.zeros(leaves.size)]),
        np.concatenate([missing, np.zeros(leaves.size, np.bool_)]),
        left,
        right,
        values,
    )
    words, ends = numbers("cat_threshold", np.uint32), numbers("cat_boundaries")
    for node in np.flatnonzero(by_category):
        which = int(threshold[node])
        chosen = np.flatnonzero(_bits(words[ends[which] : ends[which + 1]])).astype(np.float64)
        part["categories"][int(node)] = CategorySplit(chosen, np.empty(0), False)
    return part


_CONVERSIONS: dict[tuple[str, str], Callable[[Any], Ensemble]] = {
    **{
        ("sklearn", name): _convert_forest
        for name in ("RandomForestClassifier", "ExtraTreesClassifier", "DecisionTreeClassifier", "ExtraTreeClassifier")
    },
    ("sklearn", "GradientBoostingClassifier"): _gradient_boosting,
    ("sklearn", "HistGradientBoostingClassifier"): _hist_gradient_boosting,
    ("xgboost", "XGBClassifier"): _xgboost_estimator,
    ("xgboost", "XGBRFClassifier"): _xgboost_estimator,
    ("xgboost", "Booster"): _convert_xgboost,
    ("lightgbm", "LGBMClassifier"): lambda model: _convert_lightgbm(model.booster_),
    ("lightgbm", "Booster"): _convert_lightgbm,
}
