"""Which columns a table of predictions, of intervals, of features or of certified radii has for what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict

from certcal._base.checks import InputError
from certcal._base.signature import several
from certcal._base.text import plain_name
from certcal.data.formats import TableColumn
from certcal.data.pieces import CellError
from certcal.data.schema import (
    CLASS_BOUNDS,
    CORRECT,
    INTERVAL_OPTIONS,
    LOG,
    LOWER,
    OPTIONS,
    OUTCOME,
    ROLES,
    SAMPLE_OPTIONS,
    SCORE,
    TOP_CONFIDENCE,
    UPPER,
    Family,
    Layout,
    Resolver,
    by_role,
    find_families,
)

Labels = Literal["needed", "optional"]


class Overrides(TypedDict, total=False):
    """Columns given by hand. In the command line the options have the same names."""

    score: str | None
    outcome: str | None
    positive: str | None
    negative: str | Sequence[str] | None
    confidence: str | None
    correct: str | None
    probabilities: str | Sequence[str] | None
    logits: str | Sequence[str] | None
    label: str | None
    prediction: str | None
    weight: str | None
    decimal: str | None
    percent: bool | None
    encoding: str | None
    missing: str | None
    skip: int | None
    sheet: str | None


def resolve_columns(
    columns: Sequence[TableColumn | str], overrides: Mapping[str, Any] | None = None, *, labels: Labels = "needed"
) -> Layout:
    """Find the columns that hold the predictions.

    Recognised without help, in this order: class probabilities (``prob_0, prob_1, …`` or ``prob_cat, prob_dog, …`` or
    one column of lists) with a label; logits (``logit_0, …``) with a label; a confidence with ``correct``, or with a
    prediction and a label to compare; a binary score, or a confidence without a prediction, with an outcome or a label.
    Anything ambiguous is an error that says which role to name.

    Parameters
    ----------
    columns
        The columns of the table, or only their names.
    overrides
        Column names by role: score and outcome for a binary score; confidence with correct, or with prediction and
        label; probabilities or logits with label; weight. ``probabilities`` and ``logits`` may be one column of lists,
        several names (a sequence, or separated by commas, in class order), a pattern such as ``"p_*"`` or a prefix.
        ``positive`` is not a column but the outcome that counts as 1, ``negative`` those that count as 0. ``decimal``,
        ``percent``, ``encoding``, ``missing``, ``skip`` and ``sheet`` say how the table is read; see
        :func:`certcal.measure`.
    labels
        Whether a column must say what was true. Where it is optional and there is none, the scores alone are found.

    Examples
    --------
    >>> resolve_columns(["conf", "pred", "label"]).description
    "confidence 'conf', correct where 'pred' equals 'label'"
    >>> resolve_columns(["a", "b"], {"confidence": "a", "correct": "b"}).description
    "confidence 'a', correct 'b'"
    >>> resolve_columns(["score", "won"], {"outcome": "won"}).description
    "score 'score', outcome 'won'"
    >>> resolve_columns(["id", "logit_0", "logit_1"], labels="optional").description
    "logits 'logit_0' … 'logit_1', no labels"
    """
    return _PredictionResolver(columns, by_role(overrides, OPTIONS), needs_labels=labels == "needed").layout()


def _layout(kind: Any, positive: Any = None, **columns: str | Family | None) -> Layout:
    return Layout(kind, {role: each for role, each in columns.items() if each is not None}, positive)


_BINARY = ("score", "outcome", "positive", "negative")


class _PredictionResolver(Resolver):
    def __init__(self, table: Sequence[TableColumn | str], given: Mapping[str, Any], *, needs_labels: bool) -> None:
        super().__init__(table, given)
        self.needs_labels = needs_labels

    def layout(self) -> Layout:
        kinds = [role for role in ("probabilities", "logits", "confidence", "score") if role in self.given]
        if len(kinds) > 1:
            raise InputError(f"{kinds[0]} and {kinds[1]} were both given; give one of them")
        if kinds and kinds[0] in ("probabilities", "logits"):
            self.refuse_with(kinds[0], "correct", "prediction", "outcome", "positive", "negative")
            return self._by_class(kinds[0], self.family(kinds[0]))
        binary, top_label = (
            [role for role in roles if role in self.given]
            for roles in (_BINARY, ("confidence", "correct", "prediction"))
        )
        if binary and top_label:
            raise InputError(
                f"{binary[0]} and {top_label[0]} do not go together; give score and outcome for a binary score, or "
                "confidence and correct for the predicted class"
            )
        if binary:
            return self._by_score()
        return self._by_confidence() if top_label else self._by_names()

    def _by_names(self) -> Layout:
        families = find_families(self.table)
        label = self.given.get("label") or self.pick("label", needed=bool(families))
        if len(families) == 2 and label:
            first, second = families.values()
            raise InputError(
                f"there are both probabilities ({first.description}) and logits ({second.description})",
                remedy="name the columns as probabilities or logits",
                roles=("probabilities", "logits"),
                more=self.listing(),
            )
        if families and (label or not self.find("confidence")):
            (kind, family), *_ = families.items()
            return self._by_class(kind, family)
        return self._by_confidence()

    def _by_class(self, kind: str, family: Family) -> Layout:
        label = self.optional("label")
        if label is None and not self.needs_labels:
            self._refuse_several_scores()
        elif label is None:
            reason = f"there are {kind} ({family.description}) but no column of true classes"
            raise InputError(reason, remedy="name it as label", roles=("label",), more=self.listing("label"))
        return _layout(kind, label=label, weight=self.optional("weight"), **{kind: family})

    def _by_confidence(self) -> Layout:
        """One number per sample: of the predicted class where a column says whether it is right, else of outcome 1."""
        self._refuse_ends()
        if "correct" in self.given or not {"prediction", "label"} & self.given.keys():
            correct = self.correctness((CORRECT,))
            if correct is not None:
                confidence = self._top_confidence()
                return _layout("confidence", confidence=confidence, correct=correct, weight=self.optional("weight"))
        prediction = self.optional("prediction")
        if "prediction" in self.given or ("confidence" in self.given and prediction):
            return self._by_comparison(prediction)
        if prediction is None:
            return self._by_score()
        # A prediction may be what a score becomes at a threshold.
        score, outcome = self.find("score", (SCORE,)), self.find("outcome", (OUTCOME,))
        top = self.find("confidence", (TOP_CONFIDENCE,))
        if score and outcome and not top:
            return self._by_score()
        truth = self.optional("label") or (outcome[0] if outcome else None)
        if truth is not None and (score or (outcome and top)):
            found = (top or score)[0]
            also = f"or {score[0]!r} " if top and score else "or it is "
            raise InputError(
                f"{found!r} may be the confidence of the class in {prediction!r}, {also}the probability that {truth!r} "
                "is 1",
                remedy=f"name {prediction} as prediction and {truth} as label, or {truth} as outcome",
                roles=("prediction", "label", "outcome"),
            )
        return self._by_comparison(prediction)

    def _top_confidence(self) -> str:
        more = "name it as confidence, a binary score as score, or class probabilities as probabilities"
        return self.needed("confidence", more, ("confidence", "score", "probabilities"))

    def _by_comparison(self, prediction: str | None) -> Layout:
        label, confidence, weight = self.optional("label"), self._top_confidence(), self.optional("weight")
        if label is None and (self.needs_labels or "prediction" in self.given):
            raise self._without_truth("confidence", confidence)
        if label is None:
            self._refuse_several_scores()
            prediction = None
        return _layout("confidence", confidence=confidence, prediction=prediction, label=label, weight=weight)

    def _by_score(self) -> Layout:
        self._refuse_ends()
        if "outcome" in self.given:
            self.refuse_with("outcome", "label")
        if "confidence" not in self.given and not self.find("score") and "score" not in self.given:
            self._top_confidence()  # says what there is
        role = "confidence" if "confidence" in self.given else "score"
        score, weight, positive = self.optional(role), self.optional("weight"), self.given.get("positive")
        outcome = None if "label" in self.given else self.optional("outcome")
        outcome = outcome or self.optional("label")
        if outcome is not None:
            found = _layout("score", positive, score=score, outcome=outcome, weight=weight)
            zero: Any = self.given.get("negative", ())
            zeros = zero.split(",") if isinstance(zero, str) else several(zero)
            return replace(found, negative=tuple(str(each).strip() for each in zeros))
        # Without an outcome, the name alone tells a score from a confidence.
        named = role == "confidence" or plain_name(str(score)) in TOP_CONFIDENCE
        kind = "confidence" if named and not self.given.keys() & set(_BINARY) else "score"
        if self.needs_labels:
            raise self._without_truth(kind, score)
        self._refuse_several_scores()
        return _layout(kind, positive, **{kind: score}, weight=weight)

    def _without_truth(self, kind: str, column: str | None) -> InputError:
        if kind == "score":
            reason = f"scores are in {column!r}, but no column of outcomes was found"
            return InputError(
                reason, remedy="name it as outcome", roles=("outcome",), more=self.listing("outcome", "label")
            )
        reason = f"confidences are in {column!r}, but no column says which predictions are correct"
        remedy = "name it as correct, or name prediction and label; for a binary score, name the outcome"
        roles = ("correct", "prediction", "label", "outcome")
        return InputError(reason, remedy=remedy, roles=roles, more=self.listing("correct", "label"))

    def _refuse_ends(self) -> None:
        lower, upper = self.find("lower"), self.find("upper")
        if lower and upper and not {"confidence", "score"} & self.given.keys() and not self.find("confidence"):
            raise InputError(
                f"no column of confidences was found, only ends of intervals ({lower[0]!r}, {upper[0]!r})",
                remedy="use certify for those, or name a column as confidence or score",
                roles=("confidence", "score"),
            )

    def _refuse_several_scores(self) -> None:
        """Without a label to tell which scores are meant, there must be one kind of them, or an option."""
        if self.given.keys() & {"probabilities", "logits", "confidence", "score"}:
            return
        found = {kind: family.description for kind, family in find_families(self.table).items()}
        named = {
            role: self.find(role, (names,))[:1] for role, names in (("confidence", TOP_CONFIDENCE), ("score", SCORE))
        }
        found |= {role: repr(columns[0]) for role, columns in named.items() if columns}
        if len(found) > 1:
            there = " and ".join(f"{kind} ({columns})" for kind, columns in found.items())
            remedy = f"choose with {' or '.join(found)}"
            more = self.listing("label")
            raise InputError(f"there are {there}, and no labels", remedy=remedy, roles=tuple(found), more=more)


# Tables that are easily mistaken for intervals.
_OTHERS = {
    "log": "this looks like a log of certified radii, which certcal compare reads",
    "inputs": "these are inputs of a model, around which certcal sample draws noise",
}


def resolve_interval_columns(
    columns: Sequence[TableColumn | str], overrides: Mapping[str, Any] | None = None, *, samples: bool = False
) -> Layout:
    """Find the columns that hold intervals of confidences.

    Parameters
    ----------
    columns
        The columns of the table, or only their names.
    overrides
        Column names by role: lower, upper, correct, outcome, prediction, label, certified, radius.
    samples
        Whether to look for two more roles: confidence, without a perturbation, and sample, which says of rows at
        several radii that they are of the same sample.

    Examples
    --------
    >>> resolve_interval_columns(["lo", "hi", "pred", "label", "eps"]).description
    "lower 'lo', upper 'hi', correct where 'pred' equals 'label', radius 'eps'"
    >>> resolve_interval_columns(["lower", "upper", "outcome"]).to_dict()
    {'lower': 'lower', 'upper': 'upper', 'outcome': 'outcome'}
    >>> resolve_interval_columns(["lowr", "upper", "correct"])
    Traceback (most recent call last):
        ...
    certcal.InputError: no column of lower ends was found; name it as lower; did you mean 'lowr'?
    The columns are 'lowr', 'upper', 'correct'
    """
    given = by_role(overrides, SAMPLE_OPTIONS if samples else INTERVAL_OPTIONS)
    return _IntervalResolver(columns, given).layout(samples=samples)


class _IntervalResolver(Resolver):
    def layout(self, *, samples: bool) -> Layout:
        has_ends = {"lower", "upper"} & self.given.keys() or self.find("lower") or self.find("upper")
        bounds = {} if has_ends else self._class_bounds()
        if not bounds:
            if not has_ends:
                self._refuse_confidences()
            self._refuse_lists()
        return _layout(
            "intervals",
            **bounds,
            lower=None if bounds else self.needed("lower"),
            upper=None if bounds else self.needed("upper"),
            **(self._truth_of_classes() if bounds else self._truth()),
            certified=self.optional("certified"),
            radius=self.optional("radius"),
            alpha=self.pick("alpha"),
            confidence=self.optional("confidence") if samples else None,
            sample=self.optional("sample") if samples else None,
        )

    def _class_bounds(self) -> dict[str, Family]:
        """Bounds per class by role: lower ones, and upper ones, which margins can do without."""
        found = find_families(self.table, CLASS_BOUNDS)
        kinds = dict.fromkeys(role.partition("_")[0] for role in found)
        if not kinds:
            return {}
        if len(kinds) > 1:
            raise InputError("there are bounds of margins and bounds of logits; leave one of them out")
        (of,) = kinds
        lower, upper = found.get(f"{of}_lower"), found.get(f"{of}_upper")
        if lower is None or (upper is None and of == "logit"):
            missing = "lower" if lower is None else "upper"
            raise InputError(f"there are columns of {of} bounds, and none of the {missing} ones ({of}_{missing}_0, …)")
        if upper is not None and upper.classes != lower.classes:
            first, second = lower.description, upper.description
            raise InputError(f"the bounds {first} and {second} are not of the same classes; give both of every class")
        return found

    def _truth(self) -> dict[str, str | None]:
        """What was true of the confidences: of a binary score its outcome, else what was correct."""
        if "outcome" in self.given:
            self.refuse_with("outcome", "correct", "prediction", "label", "certified")
            return {"outcome": self.column("outcome")}
        correct = self.correctness()
        if correct is not None and "correct" not in self.given and plain_name(correct) in OUTCOME:
            # The outcome of a score is no class that could change, and nobody certifies that it does not.
            return {"correct" if self.optional("certified") else "outcome": correct}
        prediction, label = (None, None) if correct else (self.optional("prediction"), self.optional("label"))
        if correct is None and (prediction is None or label is None):
            remedy, roles = "name it as correct, or name both prediction and label", ("correct", "prediction", "label")
            reason = "no column says which predictions are correct"
            raise InputError(reason, remedy=remedy, roles=roles, more=self.listing("correct"))
        return {"correct": correct, "prediction": prediction, "label": label}

    def _truth_of_classes(self) -> dict[str, str | None]:
        """The predicted class, which bounds per class are about, and the true one or whether it was predicted."""
        prediction, label = self.needed("prediction"), self.optional("label")
        if "correct" in self.given:
            self.refuse_with("correct", "label")
            return {"correct": self.column("correct"), "prediction": prediction}
        if label is None and (label := self.optional("outcome")) is None:
            correct = self.pick("correct", (CORRECT,))
            return {"correct": correct or self.needed("label"), "prediction": prediction}
        return {"prediction": prediction, "label": label}

    def _refuse_confidences(self) -> None:
        """Send a table that holds confidences, and no ends at all, to the command for it."""
        kind = table_kind(self.names)
        if kind in _OTHERS:
            raise InputError(f"no columns of lower and upper ends were found; {_OTHERS[kind]}")
        try:
            found = [family.description for family in find_families(self.table).values()]
        except InputError:  # several families: which one is the other command's question
            found = ["of several kinds"]
        found += map(repr, self.find("confidence"))
        if found:
            raise InputError(
                f"no columns of lower and upper ends were found, only confidences ({found[0]}); use measure for "
                "those, or name the ends as lower and upper"
            )

    def _refuse_lists(self) -> None:
        for role in ("lower", "upper"):
            for each in self.table:
                if each.kind == "list" and role not in self.given and plain_name(each.name) in ROLES[role].names[0]:
                    raise InputError(
                        f"column {each.name!r} holds lists; give {ROLES[role].plural} one by one, a row per sample and "
                        "radius"
                    )


def resolve_feature_columns(
    columns: Sequence[TableColumn],
    given: str | None,
    names: Sequence[Sequence[str]],
    remedy: str,
    beside: Sequence[str] = (),
) -> Layout:
    """The column of labels, as given or by its name; every other one is a feature, but for those beside them."""
    resolver = Resolver(columns, {} if given is None else {"label": given})
    label = resolver.optional("label", names)
    if label is None:
        raise InputError(f"no column of true classes was found; name it label{resolver.listing('label')}")
    others = {column.name: column.kind for column in columns if column.name != label}
    for name in beside:
        if name not in others:
            raise InputError(f"there is no column {name!r}; the table must have it beside the features")
    features = tuple(name for name in others if name not in beside)
    if not features:
        raise InputError(f"there is no column but {label!r}; the other columns are the features")
    for name, kind in others.items():
        if kind not in ("number", "boolean", "unknown"):
            raise CellError(name, None, "does not hold numbers", remedy)
    extra = Family(tuple(beside)) if beside else None
    return _layout("features", features=Family(features), beside=extra, label=label)


def table_kind(names: Iterable[str]) -> Literal["intervals", "log", "inputs", "predictions"]:
    """What a table with such columns holds; predictions, unless its names say otherwise."""
    plain = {plain_name(name) for name in names}
    if plain.intersection(LOWER) and plain.intersection(UPPER):
        return "intervals"
    if any(re.match(ROLES[role].stems, name) for role in CLASS_BOUNDS for name in plain):
        return "intervals"
    if plain >= {"idx", "predict", "radius"}:
        return "log"
    return "inputs" if plain >= {"inputs", "labels"} else "predictions"


# Columns of a study's measurements: a metric before or after temperature scaling, with its number of bins.
_MEASURED = re.compile(
    r"(pre|post)_(((classwise_)?(equal_mass_)?ece|mce)_\d+|ks_error|kde_ece|mmce|nll|brier_score)", re.ASCII
)


def is_study(names: Iterable[str]) -> bool:
    """Whether a table with such columns is that of a study: models, and what was measured of them."""
    plain = {plain_name(name) for name in names}
    return plain >= {"model", "data", "split", "status", "reason"} or (
        "model" in plain and any(map(_MEASURED.fullmatch, plain))
    )


def log_columns(names: Sequence[str]) -> dict[str, str]:
    """Which columns of a log are those that every published one has, as far as they are there."""
    resolver, found = Resolver(names, {}), dict[str, str | None]()
    for own, role in LOG.items():
        more = {"idx": [("index", "id")], "radius": [("exact_radius",)]}.get(own, [])
        found[own] = resolver.pick(role, ((own,), *ROLES[role].names, *more))
    return {own: name for own, name in found.items() if name is not None}
