"""The schema of tables: roles of columns, how they are found by name or as given, and which column has which role.

Columns are never found by their values. Names are compared in lower case with underscores. Where a role has several
tuples of names, those in an earlier one win over those in a later one; two names of one tuple in the same table are
ambiguous, and the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

from certcal._base.checks import InputError
from certcal._base.text import is_number, plain_name
from certcal.data.formats import TableColumn

_MOST_COMPARED, _LONGEST_COMPARED = 1000, 100


@dataclass(frozen=True)
class Role:
    """What a column can be."""

    help: str  # one line for whoever names the column
    names: tuple[tuple[str, ...], ...]  # how such columns are called, by rank
    holds: Literal["number", "outcome", "class", "text"] = "number"  # cast by the rules of certcal.data.values
    plural: str = ""  # in an error: "no column of lower ends was found"
    stems: str = ""  # of several columns, one per class: what their names begin with, as a pattern
    letter: str = ""  # the same before a number alone


# Names that say more than "a number between 0 and 1" and "0 or 1"; see certcal.data.layout for what follows.
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
    "negative": Role(
        "Values of the outcome that count as 0, with commas; rows with others are left out.", ((),), "text"
    ),
    # How a table is read.
    "decimal": Role("Decimal mark of numbers, comma or point.", ((),), "text"),
    "percent": Role("Scores are percentages.", ((),), "text"),
    "encoding": Role(
        "Encoding of a text file, such as cp1252. Default: UTF-8, and Windows-1252 if that fails.", ((),), "text"
    ),
    "missing": Role("What to do with rows that have an empty cell: drop. Default: refuse them.", ((),), "text"),
    "skip": Role("Lines above the column names. Default: title lines are recognised.", ((),), "text"),
    "sheet": Role("Sheet of an Excel file. Default: the first one with two columns.", ((),), "text"),
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
READING = ("decimal", "percent", "encoding", "missing", "skip", "sheet")
OPTIONS = (
    *("score", "outcome", "positive", "negative", "confidence", "correct", "probabilities", "logits", "label"),
    *("prediction", "weight", *READING),
)
INTERVAL_OPTIONS = ("lower", "upper", "correct", "outcome", "prediction", "label", "certified", "radius")
# Further ones, where it matters which sample a row is of.
SAMPLE_OPTIONS = (*INTERVAL_OPTIONS, "confidence", "sample")
# A published log of certified radii has names of its own; others are found where these are not there.
LOG = {"idx": "sample", "label": "label", "predict": "prediction", "radius": "radius", "correct": "correct"}


@dataclass(frozen=True)
class Family:
    """Columns that together hold one number per class."""

    columns: tuple[str, ...]  # in class order, or the one column of lists
    classes: tuple[str, ...] | None = None  # what the columns' names call them; None for a column of lists
    is_list: bool = False
    is_ordered: bool = False  # whether column k is class k: numbered from 0, or given in order

    @property
    def description(self) -> str:
        """First and last column, for people."""
        return repr(self.columns[0]) if self.is_list else f"{self.columns[0]!r} … {self.columns[-1]!r}"


def find_families(
    table: Sequence[TableColumn], kinds: Sequence[str] = ("probabilities", "logits")
) -> dict[str, Family]:
    """Columns of numbers per class, such as probabilities and logits, found by name."""
    found: dict[str, Family] = {}
    for kind in kinds:
        lists = [c.name for c in table if c.kind == "list" and plain_name(c.name) in ROLES[kind].names[0]]
        if len(lists) > 1:
            raise InputError(f"{' and '.join(map(repr, lists))} may each hold the {kind}; name one as {kind}")
        family = Family((lists[0],), is_list=True, is_ordered=True) if lists else _family_by_stem(table, kind)
        if family is not None:
            found[kind] = family
    return found


def _family_by_stem(table: Sequence[TableColumn], kind: str) -> Family | None:
    role = ROLES[kind]
    letter = f"|{role.letter}" if role.letter else ""
    numbered = rf"(?P<word>{role.stems}{letter})[_.\- \[]?(?P<class>[0-9]{{1,6}})\]?"
    named = rf"(?P<word>{role.stems})[_.\- ](?P<class>.+)"
    for pattern in (numbered, named):
        by_word: dict[str, list[tuple[str, str]]] = {}
        compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
        for column in table:
            match = compiled.fullmatch(column.name.strip())
            if match and column.has_telling_name and (pattern is numbered or not match["class"].isdecimal()):
                by_word.setdefault(match["word"].lower(), []).append((match["class"], column.name))
        several = {word: members for word, members in by_word.items() if len(members) > 1}
        if len(several) > 1:
            first = [members[0][1] for members in several.values()]
            raise InputError(
                f"{' and '.join(repr(name) + ' …' for name in first)} may each be the {kind}; "
                f"name one as {kind} by its prefix, for example {first[0].rstrip('0123456789')!r}"
            )
        if several:
            (members,) = several.values()
            return _family_of(members)
    return None


def _family_of(members: list[tuple[str, str]]) -> Family:
    """Columns with their classes: by number where all classes are numbers, else in the order of the table."""
    if not all(re.fullmatch("[0-9]{1,6}", label) for label, _ in members):
        return Family(tuple(name for _, name in members), tuple(label for label, _ in members))
    by_number: dict[int, str] = {}
    for number, name in members:
        if int(number) in by_number:
            raise InputError(
                f"{by_number[int(number)]!r} and {name!r} are both class {int(number)}; drop or rename one"
            )
        by_number[int(number)] = name
    numbers = sorted(by_number)
    first = numbers[0]
    for expected, number in enumerate(numbers, start=min(first, 1)):
        if number != expected:
            raise InputError(
                f"the columns {by_number[first]!r} … {by_number[numbers[-1]]!r} have no class {expected}; "
                "number them consecutively from 0 or 1, or give them in order, separated by commas"
            )
    return Family(tuple(by_number[n] for n in numbers), tuple(str(n) for n in numbers), is_ordered=first == 0)


def _without_common_prefix(names: Sequence[str]) -> tuple[str, ...]:
    """Class names from column names given in order: what is left after the part they share up to a separator."""
    shortest = min(map(len, names))
    common = next((i for i in range(shortest) if len({name[i] for name in names}) > 1), shortest)
    cut = max((names[0].rfind(mark, 0, common) + 1 for mark in "_.- "), default=0)
    return tuple(name[cut:] for name in names)


@dataclass(frozen=True)
class Layout:
    """Which columns of a table hold what.

    Examples
    --------
    >>> from certcal.data import resolve_columns
    >>> layout = resolve_columns(["id", "score", "y"])
    >>> layout.kind, layout.get("score"), layout.get("outcome"), layout.get("weight")
    ('score', 'score', 'y', None)
    """

    # "score" (the probability that the outcome is 1), "confidence" (of the predicted class), "probabilities" or
    # "logits" (one per class), "intervals" of any of them, or "features" of a model.
    kind: Literal["score", "confidence", "probabilities", "logits", "intervals", "features"]
    roles: Mapping[str, str | Family]  # a column, or one per class; without correct, outcome and label truth is unknown
    positive: Any = None  # the outcome that counts as 1; None where 1, true or yes does
    negative: tuple[str, ...] = ()  # the outcomes that count as 0, where there are others beside them
    notes: tuple[str, ...] = ()  # what was read how

    def get(self, role: str) -> str | None:
        """The column of a role, None without one."""
        found = self.roles.get(role)
        return found if isinstance(found, str) else None

    @property
    def families(self) -> dict[str, Family]:
        """Columns per class, by role."""
        return {role: columns for role, columns in self.roles.items() if isinstance(columns, Family)}

    @property
    def family(self) -> Family | None:
        """The columns of probabilities or logits."""
        return next(iter(self.families.values()), None)

    @property
    def is_labelled(self) -> bool:
        """Whether a column says what was true."""
        return bool(self.roles.keys() & {"correct", "outcome", "label"})

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that hold numbers."""
        single = (name for role, name in self._single.items() if role in ROLES and ROLES[role].holds == "number")
        return (*(name for family in self.families.values() for name in family.columns), *single)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column to read."""
        return tuple(dict.fromkeys((*self.numbers, *self._single.values())))

    @property
    def _single(self) -> dict[str, str]:
        return {role: name for role, name in self.roles.items() if isinstance(name, str)}

    @property
    def description(self) -> str:
        """What was taken for what, for people.

        Examples
        --------
        >>> from certcal.data import resolve_columns
        >>> resolve_columns(["prob_0", "prob_1", "label"]).description
        "probabilities 'prob_0' … 'prob_1', label 'label'"
        """
        told = {role: f"{role} {family.description}" for role, family in self.families.items()}
        told |= {role: f"{role} {name!r}" for role, name in self._single.items()}
        if not self.families and "label" in told:
            told["prediction"] = f"correct where {self.roles['prediction']!r} equals {self.roles['label']!r}"
            del told["label"]
        if "outcome" in told and self.positive is not None:
            zero = f", {' and '.join(map(repr, self.negative))} as 0" if self.negative else ""
            told["outcome"] += f" ({self.positive!r} counts as 1{zero})"
        parts = list(told.values())
        if self.kind != "intervals" and not self.is_labelled:
            parts.insert(1, "no labels")
        return "; ".join((", ".join(parts), *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Roles and column names, for machines.

        Examples
        --------
        >>> from certcal.data import resolve_columns
        >>> resolve_columns(["conf", "correct"]).to_dict()
        {'kind': 'confidence', 'confidence': 'conf', 'correct': 'correct'}
        >>> resolve_columns(["p", "outcome"], {"positive": "won"}).to_dict()
        {'kind': 'score', 'score': 'p', 'outcome': 'outcome', 'positive': 'won'}
        """
        found: dict[str, Any] = {} if self.kind == "intervals" else {"kind": self.kind}
        for role, columns in self.roles.items():
            found[role] = list(columns.columns) if isinstance(columns, Family) else columns
            if role == "outcome" and self.positive is not None:
                found["positive"] = self.positive
                found |= {"negative": list(self.negative)} if self.negative else {}
        return found


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
        reason = f"there is no column {name!r}{self.listing(name)}"
        if role == "confidence" and is_number(name):
            level = "it takes a column's name, and the level of intervals is an argument of its own"
            return InputError(reason, argument=role, remedy=level, roles=("level",))
        return InputError(reason, argument=role)

    def family(self, role: str) -> Family:
        """The columns per class that were given: one of lists, names in class order, a pattern with *, or a prefix."""
        given, kinds = self.given[role], {column.name: column.kind for column in self.table}
        words = [str(word) for word in ([given] if isinstance(given, str) else given)]
        if len(words) == 1 and words[0] not in kinds:
            text = words[0]
            parts = [part.strip() for part in text.split(",") if part.strip()]
            if not parts:
                raise self.missing(role, text)
            if len(parts) == 1:
                return self._matching(text if "*" in text else f"{text}*", self.missing(role, text))
            words = parts
        for word in words:
            if word not in kinds:
                raise self.missing(role, word)
        if len(words) == 1:
            if kinds[words[0]] not in ("list", "unknown"):
                raise InputError(
                    f"{role} {words[0]}: this column holds one number per sample, not one per class; "
                    "give all the columns separated by commas, or name a binary score as score"
                )
            return Family((words[0],), is_list=True, is_ordered=True)
        return Family(tuple(words), _without_common_prefix(words), is_ordered=True)

    def _matching(self, pattern: str, missing: InputError) -> Family:
        """Columns that fit the pattern; what the star stands for is the name of the class."""
        before, _, after = pattern.partition("*")
        found = [name for name in dict.fromkeys(self.names) if fnmatchcase(name, pattern.replace("[", "[[]"))]
        if len(found) < 2 or "*" in after:
            raise missing
        return _family_of([(name[len(before) : len(name) - len(after)].lstrip("_.- "), name) for name in found])

    def refuse_with(self, role: str, *others: str) -> None:
        """Refuse roles that were given beside another one that they do not go with."""
        for other in others:
            if other in self.given:
                remedy = "label" if role in ("probabilities", "logits") else "only one of them"
                raise InputError(f"{other} does not go with {role}", remedy=f"give {remedy}")

    def find(self, role: str, ranks: Sequence[Sequence[str]] | None = None) -> list[str]:
        """Columns of the first rank that has any."""
        for rank in ranks or ROLES[role].names:
            found = [each.name for each in self.table if plain_name(each.name) in rank and each.has_telling_name]
            if found:
                return found
        return []

    def pick(self, role: str, ranks: Sequence[Sequence[str]] | None = None, *, needed: bool = True) -> str | None:
        """The one column whose name says it."""
        found = self.find(role, ranks)
        if len(found) > 1 and needed:
            if len(set(found)) == 1:
                raise InputError(f"{len(found)} columns are called {found[0]!r}", remedy="rename all but one")
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
        if are_data(self.names):
            text += " (these look like data: does the file have a header line?)"
        return text


def are_data(names: Sequence[str]) -> bool:
    """Whether names of columns are rather a row of numbers, and not those that an array gets as a frame."""
    return bool(names) and all(map(is_number, names)) and list(names) != list(map(str, range(len(names))))
