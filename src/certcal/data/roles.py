"""Roles of columns: one table of what each is called, what it holds and how people are asked for it.

Names are compared in lower case with underscores. Where a role has several tuples of names, those in an earlier one win
over those in a later one; two names of one tuple in the same table are ambiguous, and the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, cast

from certcal._base.checks import InputError
from certcal._base.text import plain_name
from certcal.data.formats import TableColumn

_MOST_COMPARED, _LONGEST_COMPARED = 1000, 100


@dataclass(frozen=True)
class Role:
    """What a column can be.

    Attributes
    ----------
    help
        One line for whoever names the column.
    names
        How such columns are called, by rank.
    holds
        Kind of value, cast by the rules of :mod:`certcal.data.values`.
    plural
        What is in the column, in an error: "no column of lower ends was found".
    stems, letter
        Of several columns, one per class: what their names begin with, as a pattern; and before a number alone.
    """

    help: str
    names: tuple[tuple[str, ...], ...]
    holds: Literal["number", "outcome", "class", "text"] = "number"
    plural: str = ""
    stems: str = ""
    letter: str = ""


# Names that say more than "a number between 0 and 1" and "0 or 1"; see certcal.data.layout for what follows from them.
TOP_CONFIDENCE = ("confidence", "confidences", "conf", "max_prob", "max_probability", "top_prob", "top_probability")
SCORE = (
    *("score", "scores", "prob", "probs", "proba", "probability", "probabilities", "p", "p_hat"),
    *("y_prob", "y_proba", "y_score"),
)
CORRECT, OUTCOME = ("correct", "is_correct", "correctness", "hit"), ("outcome", "outcomes")

ROLES = {
    "confidence": Role("Confidences of the predicted class.", (TOP_CONFIDENCE, SCORE), plural="confidences"),
    "correct": Role("Whether the prediction is correct (0/1).", (CORRECT, OUTCOME), "outcome"),
    "score": Role("Binary scores: the probability that the outcome is 1.", (SCORE, TOP_CONFIDENCE), plural="scores"),
    "outcome": Role("Outcomes of the binary scores: 0/1, or text.", (OUTCOME,), "outcome", plural="outcomes"),
    # Not a column, but a value of one.
    "positive": Role("Value of the outcome that counts as 1, where it is not 1, true or yes.", ((),), "text"),
    "prediction": Role(
        "Predicted classes, to be compared with the labels.",
        (
            (
                *("prediction", "predictions", "predicted", "pred", "y_pred"),
                *("predicted_label", "predicted_class", "predict"),
            ),
        ),
        "class",
        plural="predicted classes",
    ),
    "label": Role(
        "True classes.",
        (
            (
                *("label", "labels", "y", "y_true", "target", "targets", "true_label", "true_class"),
                *("ground_truth", "truth", "class"),
            ),
        ),
        "class",
        plural="true classes",
    ),
    "probabilities": Role(
        "Class probabilities: a prefix, a pattern such as 'p_*', comma-separated names, or a list column.",
        (
            (
                *("probabilities", "probability", "probs", "prob", "proba", "softmax", "p", "y_prob", "y_proba"),
                "predictions",
            ),
        ),
        stems="probability|probabilities|proba|probs|prob|softmax",
        letter="p",
    ),
    "logits": Role("Class logits, named in the same way.", (("logits", "logit"),), stems="logits|logit", letter="z"),
    **{
        f"{of}_{side}": Role(
            f"{side.capitalize()} bounds of {what}, a column per class k.",
            ((f"{of}_{side}", f"{of}s_{side}"),),
            stems=rf"{of}s?[_.\- ]{side}",
        )
        for of, what in (("margin", "l_A − l_k, A the predicted class"), ("logit", "l_k"))
        for side in ("lower", "upper")
    },
    # A column called "weight" may be a patient's; it must be given.
    "weight": Role("Sample weights.", (("sample_weight", "sample_weights"),)),
    "lower": Role(
        "Lower ends of the intervals.",
        (("lower", "lower_bound", "lower_end", "lower_confidence", "confidence_lower", "lo", "low", "lb"),),
        plural="lower ends",
    ),
    "upper": Role(
        "Upper ends of the intervals.",
        (("upper", "upper_bound", "upper_end", "upper_confidence", "confidence_upper", "hi", "high", "ub"),),
        plural="upper ends",
    ),
    "certified": Role(
        "Whether the row is certified (0/1). Default: all rows are.",
        (("certified", "is_certified", "verified", "is_verified"),),
        "outcome",
    ),
    "radius": Role("Radius of each row of an interval table.", (("radius", "radii", "epsilon", "eps"),)),
    "alpha": Role("Probability with which the row's interval may fail.", (("alpha",),)),
    "by": Role("Groups.", (("group",),), "text"),
    "sample": Role(
        "Sample that each row of an interval table belongs to.", (("sample", "sample_id", "sample_index"),), "text"
    ),
}
CLASS_BOUNDS = ("margin_lower", "margin_upper", "logit_lower", "logit_upper")
LOWER, UPPER = ROLES["lower"].names[0], ROLES["upper"].names[0]
# Columns that say which sample a row is, kept where a table is written again.
IDENTIFIER = ("id", *ROLES["sample"].names[0])

# What each kind of table can hold; the roles that may be named for it.
OPTIONS = (
    *("score", "outcome", "positive", "confidence", "correct", "probabilities", "logits", "label", "prediction"),
    "weight",
)
INTERVAL_OPTIONS = ("lower", "upper", "correct", "outcome", "prediction", "label", "certified", "radius", "by")
# Further ones, where it matters which sample a row is of.
SAMPLE_OPTIONS = (*INTERVAL_OPTIONS, "confidence", "sample")
# A published log of certified radii has names of its own; others are found where these are not there.
LOG = {"idx": "sample", "label": "label", "predict": "prediction", "radius": "radius", "correct": "correct"}


def table_kind(names: Iterable[str]) -> Literal["intervals", "log", "inputs", "predictions"]:
    """What a table with such columns holds; predictions, unless its names say otherwise.

    Examples
    --------
    >>> table_kind(["lo", "hi", "correct"]), table_kind(["idx", "label", "predict", "radius"]), table_kind(["a"])
    ('intervals', 'log', 'predictions')
    """
    plain = {plain_name(name) for name in names}
    if plain.intersection(LOWER) and plain.intersection(UPPER):
        return "intervals"
    if any(re.match(ROLES[role].stems, name) for role in CLASS_BOUNDS for name in plain):
        return "intervals"
    if plain >= {"idx", "predict", "radius"}:
        return "log"
    return "inputs" if plain >= {"inputs", "labels"} else "predictions"


def log_columns(names: Sequence[str]) -> dict[str, str]:
    """Which columns of a log are those that every published one has, as far as they are there.

    Examples
    --------
    >>> log_columns(["index", "y_true", "predict", "radius", "prediction"])
    {'idx': 'index', 'label': 'y_true', 'predict': 'predict', 'radius': 'radius'}
    """
    resolver, found = Resolver(names, {}), dict[str, str | None]()
    for own, role in LOG.items():
        more = {"idx": [("index", "id")], "radius": [("exact_radius",)]}.get(own, [])
        found[own] = resolver.pick(role, ((own,), *ROLES[role].names, *more))
    return {own: name for own, name in found.items() if name is not None}


def by_role(columns: Any, known: Sequence[str]) -> dict[str, Any]:
    """Columns that were named, by role; anything but a mapping from known roles is refused."""
    if not isinstance(columns, Mapping | None):
        reason = f"{columns!r} does not say which column is which"
        raise InputError(reason, argument="columns", remedy=f"map roles to names, as in {{{known[0]!r}: 'name'}}")
    named = cast("Mapping[str, Any]", columns or {})
    given = {role: value for role, value in named.items() if value is not None and value != ()}
    for role in given:
        if role not in known:
            near = get_close_matches(str(role), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the roles are {', '.join(known)}"
            raise InputError(f"there is no role {role!r}", argument="columns", remedy=hint)
    return given


class Resolver:
    """Columns by role, from what was given and else from the names."""

    def __init__(self, table: Sequence[TableColumn | str], given: Mapping[str, Any]) -> None:
        self.table = [column if isinstance(column, TableColumn) else TableColumn(column) for column in table]
        self.names = [column.name for column in self.table]
        self.given = given

    def needed(self, role: str, remedy: str | None = None, roles: Sequence[str] = ()) -> str:
        """The column of a role, or an error with what there is instead."""
        found = self.optional(role)
        if found is None:
            what = f"no column of {ROLES[role].plural} was found"
            raise InputError(
                what, remedy=remedy or f"name it as {role}", roles=roles or (role,), more=self.listing(role)
            )
        return found

    def correctness(self, ranks: Sequence[Sequence[str]] | None = None) -> str | None:
        """The column that says what was correct; None where prediction and label may say it."""
        if "correct" in self.given:
            self.refuse_with("correct", "prediction", "label")
            return self.column("correct")
        return None if {"prediction", "label"} & self.given.keys() else self.pick("correct", ranks)

    def optional(self, role: str, ranks: Sequence[Sequence[str]] | None = None) -> str | None:
        """The column given for a role, else the one whose name says it, else None."""
        return self.column(role) if role in self.given else self.pick(role, ranks)

    def column(self, role: str) -> str:
        """The column given for a role."""
        name = str(self.given[role])
        if name not in self.names:
            raise self.missing(role, name)
        return name

    def missing(self, role: str, name: str) -> InputError:
        """The error for a column that is not there."""
        return InputError(f"there is no column {name!r}{self.listing(name)}", argument=role)

    def refuse_with(self, role: str, *others: str) -> None:
        """Refuse roles that were given beside another one that they do not go with."""
        for other in others:
            if other in self.given:
                remedy = "label" if role in ("probabilities", "logits") else "only one of them"
                raise InputError(f"{other} does not go with {role}", remedy=f"give {remedy}")

    def find(self, role: str, ranks: Sequence[Sequence[str]] | None = None) -> list[str]:
        """Columns of the first rank that has any."""
        for rank in ranks or ROLES[role].names:
            found = [each.name for each in self.table if plain_name(each.name) in rank and each.speaks]
            if found:
                return found
        return []

    def pick(self, role: str, ranks: Sequence[Sequence[str]] | None = None, *, needed: bool = True) -> str | None:
        """The one column whose name says it."""
        found = self.find(role, ranks)
        if len(found) > 1 and needed:
            names = " and ".join(map(repr, found))
            raise InputError(f"{names} may each be the {role}", remedy=f"name one as {role}", roles=(role,))
        return found[0] if len(found) == 1 else None

    def listing(self, *wanted: str) -> str:
        """What there is instead, with the name that is nearest to one of the words, or to those of a role."""
        # Looking for names that are near takes time in proportion to the lengths of all.
        plain = {plain_name(name): name for name in self.names[:_MOST_COMPARED] if len(name) <= _LONGEST_COMPARED}
        near: list[str] = []
        for word in wanted:
            # What was typed is taken for a name that is less near than one of many synonyms must be.
            names = sum(ROLES[word].names, ()) if word in ROLES else (plain_name(word),)
            near += [m for name in names for m in get_close_matches(name, plain, 1, 0.75 if word in ROLES else 0.6)]
        shown = ", ".join(repr(name[:_LONGEST_COMPARED]) for name in self.names[:20])
        more = f" and {len(self.names) - 20} more" if len(self.names) > 20 else ""
        text = f"; did you mean {plain[near[0]]!r}? The" if near else "; the"
        text += f" columns are {shown}{more}"
        if self.names and all(_is_number(name) for name in self.names):
            text += " (these look like data: does the file have a header line?)"
        return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
