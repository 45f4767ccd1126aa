"""Which columns hold what: found by sensible names, or given; never by looking at the values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypedDict

from certcal._base.checks import InputError
from certcal.data.formats import TableColumn
from certcal.data.roles import (
    CORRECT,
    OPTIONS,
    OUTCOME,
    ROLES,
    SCORE,
    TOP_CONFIDENCE,
    Resolver,
    Role,
    by_role,
    plain_name,
)


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


def find_families(
    table: Sequence[TableColumn], kinds: Sequence[str] = ("probabilities", "logits")
) -> dict[str, Family]:
    """Columns of numbers per class, such as probabilities and logits, found by name.

    Examples
    --------
    >>> find_families([TableColumn("logit_0"), TableColumn("logit_1"), TableColumn("id")])["logits"].columns
    ('logit_0', 'logit_1')
    """
    found: dict[str, Family] = {}
    for kind in kinds:
        role = ROLES[kind]
        lists = [c.name for c in table if c.kind == "list" and plain_name(c.name) in role.names[0]]
        if len(lists) > 1:
            raise InputError(f"{' and '.join(map(repr, lists))} may each hold the {kind}; name one as {kind}")
        if lists:
            found[kind] = Family((lists[0],), is_list=True, is_ordered=True)
            continue
        family = _by_pattern(table, role, kind)
        if family is not None:
            found[kind] = family
    return found


def _by_pattern(table: Sequence[TableColumn], role: Role, kind: str) -> Family | None:
    letter = f"|{role.letter}" if role.letter else ""
    numbered = rf"(?P<word>{role.stems}{letter})[_.\- \[]?(?P<class>[0-9]{{1,6}})\]?"
    named = rf"(?P<word>{role.stems})[_.\- ](?P<class>.+)"
    for pattern in (numbered, named):
        by_word: dict[str, list[tuple[str, str]]] = {}
        named_so = re.compile(pattern, re.IGNORECASE | re.DOTALL)
        for column in table:
            match = named_so.fullmatch(column.name.strip())
            if match and column.speaks and (pattern is numbered or not match["class"].isdecimal()):
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
    """The family that an option names: a column of lists, names in class order, a pattern with ``*``, or a prefix."""
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
                "give all the columns separated by commas, or name a binary score as score"
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

    score: str | None
    outcome: str | None
    positive: str | None
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
        "score" (the probability that the outcome is 1), "confidence" (of the predicted class), "probabilities" or
        "logits" (one per class).
    confidence
        The column of binary scores or confidences.
    correct
        The column of outcomes, or of 0/1; None when correctness is the equality of ``prediction`` and ``label``.
    prediction, label
        Columns of classes. Without ``correct`` and ``label`` it is not known what was true.
    family
        The columns of probabilities or logits.
    weight
        The column of weights, or None.
    positive
        The outcome that counts as 1, or None where 1, true or yes does.

    Examples
    --------
    >>> layout = resolve_columns(["id", "score", "y"])
    >>> layout.kind, layout.confidence, layout.correct
    ('score', 'score', 'y')
    """

    kind: Literal["score", "confidence", "probabilities", "logits"]
    confidence: str | None = None
    correct: str | None = None
    prediction: str | None = None
    label: str | None = None
    family: Family | None = None
    weight: str | None = None
    positive: Any = None

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
        parts = [f"{self.kind} {self.family.description if self.family else repr(self.confidence)}"]
        if self.correct is not None:
            positive = "" if self.positive is None else f" ({self.positive!r} counts as 1)"
            parts.append(f"{'outcome' if self.kind == 'score' else 'correct'} {self.correct!r}{positive}")
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
        >>> resolve_columns(["p", "outcome"], {"positive": "won"}).to_dict()
        {'kind': 'score', 'score': 'p', 'outcome': 'outcome', 'positive': 'won'}
        """
        spelled = {"confidence": "score", "correct": "outcome"} if self.kind == "score" else {}
        names = ("confidence", "correct", "positive", "prediction", "label", "weight")
        roles = {spelled.get(name, name): getattr(self, name) for name in names}
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
        ``positive`` is not a column but the outcome that counts as 1.
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


# What is found by name, by what the name says.
_TOP, _SCORE, _CORRECT, _OUTCOME = (TOP_CONFIDENCE,), (SCORE,), (CORRECT,), (OUTCOME,)
_BINARY = ("score", "outcome", "positive")


class _PredictionResolver(Resolver):
    def __init__(self, table: Sequence[TableColumn | str], given: Mapping[str, Any], *, needs_labels: bool) -> None:
        super().__init__(table, given)
        self.needs_labels = needs_labels

    def layout(self) -> Layout:
        kinds = [role for role in ("probabilities", "logits", "confidence", "score") if role in self.given]
        if len(kinds) > 1:
            raise InputError(f"{kinds[0]} and {kinds[1]} were both given; give one of them")
        if kinds and kinds[0] in ("probabilities", "logits"):
            self.refuse_with(kinds[0], "correct", "prediction", "outcome", "positive")
            return self._by_class(kinds[0], given_family(self.table, self.given[kinds[0]], kinds[0], self.missing))
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

    def _by_class(self, kind: Any, family: Family) -> Layout:
        label = self.optional("label")
        if label is None and not self.needs_labels:
            self._refuse_several_scores()
        elif label is None:
            reason = f"there are {kind} ({family.description}) but no column of true classes"
            raise InputError(reason, remedy="name it as label", roles=("label",), more=self.listing("label"))
        return Layout(kind, label=label, family=family, weight=self.optional("weight"))

    def _by_confidence(self) -> Layout:
        """One number per sample: of the predicted class where a column says whether it is right, else of outcome 1."""
        self._refuse_ends()
        if "correct" in self.given or not {"prediction", "label"} & self.given.keys():
            correct = self.correctness(_CORRECT)
            if correct is not None:
                return self._top_label(correct)
        prediction = self.optional("prediction")
        if "prediction" in self.given or ("confidence" in self.given and prediction):
            return self._compared(prediction)
        if prediction is None:
            return self._by_score()
        # A prediction may be what a score becomes at a threshold.
        score, outcome, top = self.find("score", _SCORE), self.find("outcome", _OUTCOME), self.find("confidence", _TOP)
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
        return self._compared(prediction)

    def _top_label(self, correct: str | None = None) -> Layout:
        more = "name it as confidence, a binary score as score, or class probabilities as probabilities"
        confidence = self.needed("confidence", more, ("confidence", "score", "probabilities"))
        return Layout("confidence", confidence, correct, weight=self.optional("weight"))

    def _compared(self, prediction: str | None) -> Layout:
        """Correctness from a prediction and a label."""
        label, layout = self.optional("label"), self._top_label()
        if label is not None:
            return replace(layout, prediction=prediction, label=label)
        if not self.needs_labels and "prediction" not in self.given:
            self._refuse_several_scores()
            return layout
        raise self._without_truth(layout)

    def _by_score(self) -> Layout:
        """A binary score with an outcome; a label may be the outcome."""
        self._refuse_ends()
        if "outcome" in self.given:
            self.refuse_with("outcome", "label")
        if "confidence" not in self.given and not self.find("score") and "score" not in self.given:
            self._top_label()  # says what there is
        role = "confidence" if "confidence" in self.given else "score"
        layout = Layout(
            "score", self.optional(role), weight=self.optional("weight"), positive=self.given.get("positive")
        )
        outcome = None if "label" in self.given else self.optional("outcome")
        outcome = outcome or self.optional("label")
        if outcome is not None:
            return replace(layout, correct=outcome)
        # Without an outcome, the name alone tells a score from a confidence.
        named = role == "confidence" or plain_name(str(layout.confidence)) in TOP_CONFIDENCE
        layout = replace(layout, kind="confidence" if named and not self.given.keys() & set(_BINARY) else "score")
        if self.needs_labels:
            raise self._without_truth(layout)
        self._refuse_several_scores()
        return layout

    def _without_truth(self, layout: Layout) -> InputError:
        if layout.kind == "score":
            reason = f"scores are in {layout.confidence!r}, but no column of outcomes was found"
            return InputError(
                reason, remedy="name it as outcome", roles=("outcome",), more=self.listing("outcome", "label")
            )
        reason = f"confidences are in {layout.confidence!r}, but no column says which predictions are correct"
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
        named = {role: self.find(role, names)[:1] for role, names in (("confidence", _TOP), ("score", _SCORE))}
        found |= {role: repr(columns[0]) for role, columns in named.items() if columns}
        if len(found) > 1:
            there = " and ".join(f"{kind} ({columns})" for kind, columns in found.items())
            remedy = f"choose with {' or '.join(found)}"
            more = self.listing("label")
            raise InputError(f"there are {there}, and no labels", remedy=remedy, roles=tuple(found), more=more)
