"""Which columns hold what: found by sensible names, or given; never by looking at the values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal, TypedDict, cast

from certcal._checks import InputError
from certcal.data.formats import Column
from certcal.data.roles import CORRECT, LABEL, LOWER, OUTCOME, PREDICTION, SCORE, TOP_CONFIDENCE, UPPER, WEIGHT

_WORDS = {
    "probabilities": "probability|probabilities|proba|probs|prob|softmax",
    "logits": "logits|logit",
}
_LIST_NAMES = {
    "probabilities": (
        "probabilities",
        "probability",
        "probs",
        "prob",
        "proba",
        "softmax",
        "p",
        "y_prob",
        "y_proba",
        "predictions",
    ),
    "logits": ("logits", "logit"),
}


@dataclass(frozen=True)
class Family:
    """Columns that together hold one number per class.

    Attributes
    ----------
    columns
        The columns in class order, or the one column of lists.
    classes
        What each column's name says its class is called, or None for a column of lists.
    is_list
        Whether it is one column of lists.
    is_ordered
        Whether the order of the columns is the order of the classes 0, 1, …, because they are numbered from 0 or were
        given in order.

    Examples
    --------
    >>> Family(("prob_cat", "prob_dog"), ("cat", "dog")).description
    "'prob_cat' … 'prob_dog'"
    """

    columns: tuple[str, ...]
    classes: tuple[str, ...] | None = None
    is_list: bool = False
    is_ordered: bool = False

    @property
    def description(self) -> str:
        """First and last column, for people."""
        return repr(self.columns[0]) if self.is_list else f"{self.columns[0]!r} … {self.columns[-1]!r}"


def find_families(table: Sequence[Column]) -> dict[str, Family]:
    """Probability and logit columns found by name.

    Examples
    --------
    >>> find_families([Column("logit_0"), Column("logit_1"), Column("id")])["logits"].columns
    ('logit_0', 'logit_1')
    """
    found: dict[str, Family] = {}
    for kind, words in _WORDS.items():
        lists = [c.name for c in table if c.kind == "list" and c.name.strip().lower() in _LIST_NAMES[kind]]
        if len(lists) > 1:
            raise InputError(f"{' and '.join(map(repr, lists))} may each hold the {kind}; name one as {kind}")
        if lists:
            found[kind] = Family((lists[0],), is_list=True, is_ordered=True)
            continue
        family = _by_pattern(table, words, kind)
        if family is not None:
            found[kind] = family
    return found


def _by_pattern(table: Sequence[Column], words: str, kind: str) -> Family | None:
    numbered = rf"(?P<word>{words}{'|p' if kind == 'probabilities' else '|z'})[_.\- \[]?(?P<class>[0-9]{{1,6}})\]?"
    named = rf"(?P<word>{words})[_.\- ](?P<class>.+)"
    for pattern in (numbered, named):
        by_word: dict[str, list[tuple[str, str]]] = {}
        named_so = re.compile(pattern, re.IGNORECASE | re.DOTALL)
        for column in table:
            match = named_so.fullmatch(column.name.strip())
            if match and column.kind != "list" and (pattern is numbered or not match["class"].isdecimal()):
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
            return _numbered(members) if pattern is numbered else _named(members)
    return None


def _numbered(members: list[tuple[str, str]]) -> Family:
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


def _named(members: list[tuple[str, str]]) -> Family:
    return Family(tuple(name for _, name in members), tuple(label for label, _ in members))


def given_family(table: Sequence[Column], given: Any, role: str, missing: Callable[[str, str], InputError]) -> Family:
    """The family that an option names: a column of lists, names in class order, a pattern with ``*``, or a prefix.

    Examples
    --------
    >>> columns = [Column("p_cat"), Column("p_dog"), Column("label")]
    >>> given_family(columns, "p_*", "probabilities", lambda role, name: InputError(name)).classes
    ('cat', 'dog')
    """
    kinds = {column.name: column.kind for column in table}
    words = [str(word) for word in ([given] if isinstance(given, str) else given)]
    if len(words) == 1 and words[0] not in kinds:
        text = words[0]
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            raise missing(role, text)
        if len(parts) == 1:
            return _matching(list(kinds), text if "*" in text else f"{text}*", role, missing(role, text))
        words = parts
    for word in words:
        if word not in kinds:
            raise missing(role, word)
    if len(words) == 1:
        if kinds[words[0]] not in ("list", "unknown"):
            raise InputError(
                f"{role} {words[0]}: this column holds one number per sample, not one per class; "
                "give all the columns separated by commas, or name a binary score as confidence"
            )
        return Family((words[0],), is_list=True, is_ordered=True)
    return Family(tuple(words), _without_common_prefix(words), is_ordered=True)


def _matching(names: list[str], pattern: str, role: str, missing: InputError) -> Family:
    """Columns that fit the pattern; what the star stands for is the name of the class."""
    before, _, after = pattern.partition("*")
    found = [name for name in names if fnmatchcase(name, pattern.replace("[", "[[]"))]
    members = [(name[len(before) : len(name) - len(after)].lstrip("_.- "), name) for name in found]
    if len(members) < 2 or "*" in after:
        raise missing
    numbered = all(re.fullmatch("[0-9]{1,6}", label) for label, _ in members)
    return _numbered(members) if numbered else _named(members)


def _without_common_prefix(names: Sequence[str]) -> tuple[str, ...]:
    """Class names from column names given in order: what is left after the part they share up to a separator."""
    shortest = min(map(len, names))
    common = next((i for i in range(shortest) if len({name[i] for name in names}) > 1), shortest)
    cut = max((names[0].rfind(mark, 0, common) + 1 for mark in "_.- "), default=0)
    return tuple(name[cut:] for name in names)


class Overrides(TypedDict, total=False):
    """Columns given by hand. In the command line the options have the same names."""

    confidence: str | None
    correct: str | None
    probabilities: str | Sequence[str] | None
    logits: str | Sequence[str] | None
    label: str | None
    prediction: str | None
    weight: str | None


_MOST_COMPARED, _LONGEST_COMPARED = 1000, 100

OPTIONS = ("confidence", "correct", "probabilities", "logits", "label", "prediction", "weight")


@dataclass(frozen=True)
class Layout:
    """Which columns of a table hold what.

    Attributes
    ----------
    kind
        "confidence" (one score per sample), "probabilities" or "logits" (one per class).
    confidence
        The column of scores, when kind is "confidence".
    correct
        The column of 0/1, or None when correctness is the equality of ``prediction`` and ``label``.
    prediction, label
        Columns of classes. Without ``correct`` and ``label`` it is not known what was true.
    family
        The columns of probabilities or logits.
    weight
        The column of weights, or None.

    Examples
    --------
    >>> resolve_columns(["id", "score", "y"])
    Layout(kind='confidence', confidence='score', correct='y', prediction=None, label=None, family=None, weight=None)
    """

    kind: Literal["confidence", "probabilities", "logits"]
    confidence: str | None = None
    correct: str | None = None
    prediction: str | None = None
    label: str | None = None
    family: Family | None = None
    weight: str | None = None

    @property
    def is_labelled(self) -> bool:
        """Whether a column says what was true."""
        return self.correct is not None or self.label is not None

    @property
    def scores(self) -> tuple[str, ...]:
        """Columns that hold numbers."""
        scores = self.family.columns if self.family else (self.confidence,)
        return tuple(name for name in (*scores, self.weight) if name is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column to read."""
        words = (self.correct, self.prediction, self.label)
        return tuple(dict.fromkeys((*self.scores, *(name for name in words if name is not None))))

    @property
    def description(self) -> str:
        """What was taken for what, for people.

        Examples
        --------
        >>> resolve_columns(["prob_0", "prob_1", "label"]).description
        "probabilities 'prob_0' … 'prob_1', label 'label'"
        """
        parts = [f"{self.kind} {self.family.description}" if self.family else f"confidence {self.confidence!r}"]
        if self.correct is not None:
            parts.append(f"correct {self.correct!r}")
        elif self.prediction is not None:
            parts.append(f"correct where {self.prediction!r} equals {self.label!r}")
        else:
            parts.append("no labels" if self.label is None else f"label {self.label!r}")
        if self.weight is not None:
            parts.append(f"weight {self.weight!r}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Roles and column names, for machines.

        Examples
        --------
        >>> resolve_columns(["conf", "correct"]).to_dict()
        {'kind': 'confidence', 'confidence': 'conf', 'correct': 'correct'}
        """
        roles = {name: getattr(self, name) for name in ("confidence", "correct", "prediction", "label", "weight")}
        if self.family:
            roles[self.kind] = list(self.family.columns)
        return {"kind": self.kind} | {role: name for role, name in roles.items() if name is not None}


def resolve_columns(
    columns: Sequence[Column | str],
    overrides: Mapping[str, Any] | None = None,
    *,
    labels: Literal["needed", "optional"] = "needed",
) -> Layout:
    """Find the columns that hold the predictions.

    Recognised without help, in this order: class probabilities (``prob_0, prob_1, …`` or ``prob_cat, prob_dog, …`` or
    one column of lists) with a label; logits (``logit_0, …``) with a label; a confidence or score with ``correct``,
    with a prediction and a label to compare, or with a 0/1 label. Anything ambiguous is an error that says which
    option to give.

    Parameters
    ----------
    columns
        The columns of the table, or only their names.
    overrides
        Column names by role: confidence, correct, probabilities, logits, label, prediction, weight. ``probabilities``
        and ``logits`` may be one column of lists, several names (a sequence, or separated by commas, in class order),
        a pattern such as ``"p_*"`` or a prefix.
    labels
        Whether a column must say what was true. Where it is optional and there is none, the scores alone are found.

    Examples
    --------
    >>> resolve_columns(["conf", "pred", "label"]).description
    "confidence 'conf', correct where 'pred' equals 'label'"
    >>> resolve_columns(["a", "b"], {"confidence": "a", "correct": "b"}).description
    "confidence 'a', correct 'b'"
    >>> resolve_columns(["id", "logit_0", "logit_1"], labels="optional").description
    "logits 'logit_0' … 'logit_1', no labels"
    """
    table = [column if isinstance(column, Column) else Column(column) for column in columns]
    return Resolver(table, by_role(overrides, OPTIONS), needs_labels=labels == "needed").layout()


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

    def __init__(self, table: list[Column], given: dict[str, Any], *, needs_labels: bool = True) -> None:
        self.table = table
        self.needs_labels = needs_labels
        self.names = [column.name for column in table]
        self.given = given

    def layout(self) -> Layout:
        """Where the predictions are."""
        kinds = [role for role in ("probabilities", "logits", "confidence") if role in self.given]
        if len(kinds) > 1:
            raise InputError(f"{kinds[0]} and {kinds[1]} were both given; give one of them")
        if kinds and kinds[0] != "confidence":
            self._refuse_with(kinds[0], "correct", "prediction")
            return self._by_class(kinds[0], given_family(self.table, self.given[kinds[0]], kinds[0], self._missing))
        if kinds or "correct" in self.given or "prediction" in self.given:
            return self._by_confidence()
        return self._by_names()

    def _by_names(self) -> Layout:
        families = find_families(self.table)
        label = self.given.get("label") or self._pick("label", LABEL, needed=bool(families))
        if len(families) == 2 and label:
            first, second = families.values()
            raise InputError(
                f"there are both probabilities ({first.description}) and logits ({second.description}); "
                f"name the columns as probabilities or logits{self.listing()}"
            )
        if families and (label or not self._find(TOP_CONFIDENCE, SCORE)):
            (kind, family), *_ = families.items()
            return self._by_class(kind, family)
        return self._by_confidence()

    def _by_class(self, kind: Any, family: Family) -> Layout:
        label = self.optional("label", LABEL)
        if label is None and not self.needs_labels:
            self._refuse_several_scores()
        elif label is None:
            raise InputError(
                f"there are {kind} ({family.description}) but no column of true classes; "
                f"name it as label{self.listing(*LABEL)}"
            )
        return Layout(kind, label=label, family=family, weight=self.optional("weight", WEIGHT))

    def _by_confidence(self) -> Layout:
        if "confidence" in self.given:
            confidence = self._column("confidence")
        else:
            confidence = self._pick("confidence", TOP_CONFIDENCE, SCORE)
        if confidence is None:
            lower, upper = self._find(LOWER), self._find(UPPER)
            if lower and upper:
                raise InputError(
                    f"no column of confidences was found, only ends of intervals ({lower[0]!r}, {upper[0]!r}); "
                    "use certify for those, or name a column as confidence"
                )
            raise InputError(
                "no column of confidences was found; "
                "name it as confidence, or class probabilities as probabilities"
                f"{self.listing(*TOP_CONFIDENCE, *SCORE)}"
            )
        weight = self.optional("weight", WEIGHT)
        if "correct" in self.given:
            self._refuse_with("correct", "prediction", "label")
            return Layout("confidence", confidence=confidence, correct=self._column("correct"), weight=weight)
        if "prediction" not in self.given and "label" not in self.given:
            correct = self._pick("correct", CORRECT, OUTCOME)
            if correct is not None:
                return Layout("confidence", confidence=confidence, correct=correct, weight=weight)
        return self._compared(confidence, weight)

    def _compared(self, confidence: str, weight: str | None) -> Layout:
        """Correctness from a label, with or without a prediction to compare it with."""
        label = self.optional("label", LABEL)
        if label is None and not self.needs_labels and "prediction" not in self.given:
            self._refuse_several_scores()
            return Layout("confidence", confidence=confidence, weight=weight)
        if label is None:
            raise InputError(
                f"confidences are in {confidence!r}, but no column says which predictions are correct; "
                f"name it as correct, or name prediction and label{self.listing(*CORRECT, *LABEL)}"
            )
        if "prediction" in self.given:
            return Layout(
                "confidence", confidence=confidence, prediction=self._column("prediction"), label=label, weight=weight
            )
        prediction = self._pick("prediction", PREDICTION)
        if prediction is None:
            return Layout("confidence", confidence=confidence, correct=label, weight=weight)
        if _plain(confidence) not in TOP_CONFIDENCE:
            raise InputError(
                f"{confidence!r} may be the confidence of the class in {prediction!r} "
                f"or the probability that {label!r} is 1; "
                f"name {prediction} as prediction, or {label} as correct"
            )
        return Layout("confidence", confidence=confidence, prediction=prediction, label=label, weight=weight)

    def _refuse_several_scores(self) -> None:
        """Without a label to tell which scores are meant, there must be one kind of them, or an option."""
        if self.given.keys() & {"probabilities", "logits", "confidence"}:
            return
        found = {kind: family.description for kind, family in find_families(self.table).items()}
        confidences = self._find(TOP_CONFIDENCE, SCORE)
        if confidences:
            found["confidence"] = repr(confidences[0])
        if len(found) > 1:
            there = " and ".join(f"{kind} ({columns})" for kind, columns in found.items())
            options = " or ".join(found)
            raise InputError(f"there are {there}, and no labels; choose with {options}{self.listing(*LABEL)}")

    def optional(self, role: str, names: Sequence[str]) -> str | None:
        """The column given for a role, else the one whose name says it, else None."""
        return self._column(role) if role in self.given else self._pick(role, names)

    def _column(self, role: str) -> str:
        name = str(self.given[role])
        if name not in self.names:
            raise self._missing(role, name)
        return name

    def _missing(self, role: str, name: str) -> InputError:
        return InputError(f"there is no column {name!r}{self.listing(name)}", argument=role)

    def _refuse_with(self, role: str, *others: str) -> None:
        for other in others:
            if other in self.given:
                remedy = "label" if role != "correct" else "only one of them"
                raise InputError(f"{other} does not go with {role}; give {remedy}")

    def _find(self, *ranks: Sequence[str]) -> list[str]:
        """Columns of the first rank that has any."""
        for rank in ranks:
            found = [column.name for column in self.table if _plain(column.name) in rank and column.kind != "list"]
            if found:
                return found
        return []

    def _pick(self, role: str, *ranks: Sequence[str], needed: bool = True) -> str | None:
        found = self._find(*ranks)
        if len(found) > 1 and needed:
            names = " and ".join(map(repr, found))
            raise InputError(f"{names} may each be the {role}; name one as {role}")
        return found[0] if len(found) == 1 else None

    def listing(self, *wanted: str) -> str:
        """What there is instead, with the nearest name when one is near."""
        # Looking for names that are near takes time in proportion to the lengths of all.
        plain = {_plain(name): name for name in self.names[:_MOST_COMPARED] if len(name) <= _LONGEST_COMPARED}
        near = [match for word in wanted for match in get_close_matches(_plain(word), plain, n=1, cutoff=0.75)]
        hint = f"; did you mean {plain[near[0]]!r}?" if near else ";"
        shown = ", ".join(repr(name[:_LONGEST_COMPARED]) for name in self.names[:20])
        more = f" and {len(self.names) - 20} more" if len(self.names) > 20 else ""
        text = f"{hint} the columns are {shown}{more}" if not near else f"{hint} The columns are {shown}{more}"
        if self.names and all(_is_number(name) for name in self.names):
            text += " (these look like data: does the file have a header line?)"
        return text


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
