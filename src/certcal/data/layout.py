"""Which columns hold what: found by sensible names, or given; never by looking at the values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypedDict

from certcal._checks import InputError
from certcal.data.formats import TableColumn
from certcal.data.roles import OPTIONS, ROLES, TOP_CONFIDENCE, Resolver, by_role, plain_name


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


def find_families(table: Sequence[TableColumn]) -> dict[str, Family]:
    """Probability and logit columns found by name.

    Examples
    --------
    >>> find_families([TableColumn("logit_0"), TableColumn("logit_1"), TableColumn("id")])["logits"].columns
    ('logit_0', 'logit_1')
    """
    found: dict[str, Family] = {}
    for kind in ("probabilities", "logits"):
        role = ROLES[kind]
        lists = [c.name for c in table if c.kind == "list" and plain_name(c.name) in role.names[0]]
        if len(lists) > 1:
            raise InputError(f"{' and '.join(map(repr, lists))} may each hold the {kind}; name one as {kind}")
        if lists:
            found[kind] = Family((lists[0],), is_list=True, is_ordered=True)
            continue
        family = _by_pattern(table, role.stems, kind)
        if family is not None:
            found[kind] = family
    return found


def _by_pattern(table: Sequence[TableColumn], words: str, kind: str) -> Family | None:
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


def given_family(
    table: Sequence[TableColumn], given: Any, role: str, missing: Callable[[str, str], InputError]
) -> Family:
    """The family that an option names: a column of lists, names in class order, a pattern with ``*``, or a prefix.

    Examples
    --------
    >>> columns = [TableColumn("p_cat"), TableColumn("p_dog"), TableColumn("label")]
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
    columns: Sequence[TableColumn | str],
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
    return _PredictionResolver(columns, by_role(overrides, OPTIONS), needs_labels=labels == "needed").layout()


class _PredictionResolver(Resolver):
    def __init__(self, table: Sequence[TableColumn | str], given: Mapping[str, Any], *, needs_labels: bool) -> None:
        super().__init__(table, given)
        self.needs_labels = needs_labels

    def layout(self) -> Layout:
        kinds = [role for role in ("probabilities", "logits", "confidence") if role in self.given]
        if len(kinds) > 1:
            raise InputError(f"{kinds[0]} and {kinds[1]} were both given; give one of them")
        if kinds and kinds[0] != "confidence":
            self.refuse_with(kinds[0], "correct", "prediction")
            return self._by_class(kinds[0], given_family(self.table, self.given[kinds[0]], kinds[0], self.missing))
        if kinds or "correct" in self.given or "prediction" in self.given:
            return self._by_confidence()
        return self._by_names()

    def _by_names(self) -> Layout:
        families = find_families(self.table)
        label = self.given.get("label") or self.pick("label", needed=bool(families))
        if len(families) == 2 and label:
            first, second = families.values()
            raise InputError(
                f"there are both probabilities ({first.description}) and logits ({second.description}); "
                f"name the columns as probabilities or logits{self.listing()}"
            )
        if families and (label or not self.find("confidence")):
            (kind, family), *_ = families.items()
            return self._by_class(kind, family)
        return self._by_confidence()

    def _by_class(self, kind: Any, family: Family) -> Layout:
        label = self.optional("label")
        if label is None and not self.needs_labels:
            self._refuse_several_scores()
        elif label is None:
            raise InputError(
                f"there are {kind} ({family.description}) but no column of true classes; "
                f"name it as label{self.listing('label')}"
            )
        return Layout(kind, label=label, family=family, weight=self.optional("weight"))

    def _by_confidence(self) -> Layout:
        lower, upper = self.find("lower"), self.find("upper")
        if lower and upper and self.optional("confidence") is None:
            raise InputError(
                f"no column of confidences was found, only ends of intervals ({lower[0]!r}, {upper[0]!r}); "
                "use certify for those, or name a column as confidence"
            )
        confidence = self.needed("confidence", "name it as confidence, or class probabilities as probabilities")
        layout = Layout("confidence", confidence=confidence, weight=self.optional("weight"))
        correct = self.correctness()
        return self._compared(layout, confidence) if correct is None else replace(layout, correct=correct)

    def _compared(self, layout: Layout, confidence: str) -> Layout:
        """Correctness from a label, with or without a prediction to compare it with."""
        label = self.optional("label")
        if label is None and not self.needs_labels and "prediction" not in self.given:
            self._refuse_several_scores()
            return layout
        if label is None:
            raise InputError(
                f"confidences are in {confidence!r}, but no column says which predictions are correct; "
                f"name it as correct, or name prediction and label{self.listing('correct', 'label')}"
            )
        prediction = self.optional("prediction")
        if prediction is None:
            return replace(layout, correct=label)
        if "prediction" not in self.given and plain_name(confidence) not in TOP_CONFIDENCE:
            raise InputError(
                f"{confidence!r} may be the confidence of the class in {prediction!r} "
                f"or the probability that {label!r} is 1; "
                f"name {prediction} as prediction, or {label} as correct"
            )
        return replace(layout, prediction=prediction, label=label)

    def _refuse_several_scores(self) -> None:
        """Without a label to tell which scores are meant, there must be one kind of them, or an option."""
        if self.given.keys() & {"probabilities", "logits", "confidence"}:
            return
        found = {kind: family.description for kind, family in find_families(self.table).items()}
        confidences = self.find("confidence")
        if confidences:
            found["confidence"] = repr(confidences[0])
        if len(found) > 1:
            there = " and ".join(f"{kind} ({columns})" for kind, columns in found.items())
            options = f"{' or '.join(found)}{self.listing('label')}"
            raise InputError(f"there are {there}, and no labels; choose with {options}")
