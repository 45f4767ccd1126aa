"""Names under which people know what they pass: those of our documentation are taken, others get the line to write."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from certcal._base.checks import InputError
from certcal.data.schema import OPTIONS, READING

# What is given by position, in the order of positions; by these names it may be given, too.
WAYS = (("y_true", "y_prob"), ("estimator", "X", "y"), ("model", "data"), ("data",))
_TRUTH = (
    *("y_true", "y", "y_test", "labels", "target", "targets", "ground_truth", "references", "labels_true", "outcomes"),
    *("true_labels", "y_labels"),
)
_CHANCES = (
    *("y_prob", "y_proba", "y_probs", "y_pred", "y_score", "y_scores", "probs", "proba", "probas", "preds"),
    *("predictions", "confidences", "scores", "f", "p", "pred_probs", "y_pred_proba"),
    *("y_hat", "pred_proba", "prediction_scores", "predicted_probabilities"),
)
_INPUTS = ("X", "X_test")
# What a keyword of scikit-learn, torchmetrics, netcal, MAPIE and others is called here.
_CALLED = {
    **dict.fromkeys(("n_bins", "num_bins", "nbins", "bin_count", "num_buckets"), "bins"),
    **dict.fromkeys(("sample_weight", "sample_weights", "weights"), "weight"),
    **dict.fromkeys(("groups", "group", "sensitive_features", "segment"), "by"),
    **dict.fromkeys(("confidence_level", "ci"), "level"),
    **dict.fromkeys(("n_bootstrap", "n_resamples", "n_boot"), "bootstrap"),
    **dict.fromkeys(("name", "title"), "source"),
    "pos_label": "positive",
    "random_state": "seed",
    "metric": "metrics",
}
# What the value of a keyword is here; another value, or a word that is none of these, is the default here.
_MEANT: Mapping[str, Mapping[Any, str]] = {
    **dict.fromkeys(
        ("strategy", "split_strategy", "binning", "scheme"),
        dict.fromkeys(("quantile", "mass", "equal_mass", "adaptive"), "metrics='equal_mass_ece'"),
    ),
    "equal_intervals": {False: "metrics='equal_mass_ece'"},
    "norm": {"l2": "metrics='lp_ece'", "max": "metrics='mce'"},
    **{name: {} for name in ("task", "num_classes", "n_classes", "classes", "labels", "normalize", "ax", "n_jobs")},
    **{name: {} for name in ("average", "ignore_index", "validate_args", "debias", "mode", "stratify", "kernel", "cv")},
    **{name: {} for name in ("scale_by_half", "eps", "ref_line", "data_source", "y_score_arg", "X_train", "y_train")},
    "uncertainty": {},
}


def positions(verb: str, given: Sequence[Any], options: dict[str, Any], known: Collection[str]) -> tuple[Any, ...]:
    """What a verb is about, from what was given by position and by name; its names are taken out of the options.

    Values by role without a table, such as ``score=…, outcome=…``, are a table.

    Examples
    --------
    >>> options = {"y_prob": [0.2, 0.7], "bins": 5}
    >>> positions("measure", [[0, 1]], options, ["bins"]), options
    (([0, 1], [0.2, 0.7]), {'bins': 5})
    >>> positions("measure", [], {"preds": [0.2], "target": [0], "n_bins": 5}, ["bins"])
    Traceback (most recent call last):
        ...
    certcal.InputError: unexpected argument 'preds'; write certcal.measure(target, preds, bins=5)
    """
    ours = {name for way in WAYS for name in way}
    others = (*_TRUTH, *_CHANCES, *_INPUTS, *_CALLED, *_MEANT)
    foreign = next((name for name in options if name not in known and name not in ours and name in others), None)
    if foreign is not None:
        raise InputError(f"unexpected argument {foreign!r}", remedy=f"write {_line(verb, given, options, known)}")
    named = [name for name in options if name in ours and name not in known]
    for way in WAYS if named else ():
        if set(named) == set(way[len(given) :]) and len(given) < len(way) and _begins(given, way):
            return (*given, *(options.pop(name) for name in way[len(given) :]))
    if named:
        twice = len(given) >= 1 and named == ["data"]
        reason = "it is given by position and by name" if twice else "it does not go with what else is given"
        remedy = "give it once" if twice else f"write {_line(verb, given, options, known)}"
        raise InputError(reason, argument=named[0], remedy=remedy)
    values = set(OPTIONS).difference(("positive", "negative", *READING))
    by_role = [name for name in values if options.get(name) is not None]
    if not given and by_role and not any(isinstance(options[name], str) for name in by_role):
        return ({},)
    return tuple(given)


def _begins(given: Sequence[Any], way: Sequence[str]) -> bool:
    """Whether what was given first can be what stands first in a way to call."""
    return not given or way[0] == "y_true" or _is_model(given[0])


def _is_model(value: Any) -> bool:
    return callable(value) or hasattr(value, "predict_proba")


def _line(verb: str, given: Sequence[Any], options: Mapping[str, Any], known: Collection[str]) -> str:
    """The call as it is written here, with the names that the user has for what is passed."""

    def first(names: Sequence[str], otherwise: str) -> str:
        return next((name for name in names if name in options), otherwise)

    truth, chances, inputs = first(_TRUTH, "y_true"), first(_CHANCES, "y_prob"), first(_INPUTS, "X")
    words = ["y_true", "y_prob"] if len(given) == 2 else ["estimator", "X", "y"][: len(given)]
    models = [options.get("estimator"), options.get("model"), *given[:1]]
    table = options.get("data") if not given else given[0]
    if any(map(_is_model, models)):
        words = ["estimator", inputs, "y" if truth == "y_true" else truth]
    elif "logits" in options:
        words = [f"label={truth}", "logits=logits"]
    elif isinstance(options.get(truth), str) or isinstance(options.get(chances), str):
        roles = ("outcome", options.get(truth, "…")), ("score", options.get(chances, "…"))
        words = ["data", *(f"{role}={name!r}" for role, name in roles if role not in options)]
    elif len(given) < 2 and (truth in options or chances in options):
        words = [truth, chances]
    elif table is not None and len(given) < 2:
        words = ["data"]
    return f"certcal.{verb}({', '.join((*words, *_keywords(options, known)))})"


def _keywords(options: Mapping[str, Any], known: Collection[str]) -> Iterator[str]:
    for name, value in options.items():
        own = name if name in known and name != "logits" else _CALLED.get(name)
        if own in known:
            yield f"{own}={value!r}" if isinstance(value, str | int | float) else f"{own}=…"
        elif name in _MEANT and isinstance(value, str | bool) and "metrics" in known and value in _MEANT[name]:
            yield _MEANT[name][value]
