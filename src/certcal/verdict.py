"""Pass or fail: requirements such as "ece <= 0.05", held against what a result claims.

A requirement is ``[every] [estimate] NAME[(SETTING=VALUE, …)] RELATION NUMBER``; relations are <=, <, >= and >.

* It is judged on the claim: an upper requirement on an upper bound, certificate or worst case, else on the upper end of
  the estimate's interval; a lower one on the lower. With ``estimate`` it is judged on the estimate alone.
* ``every`` asks it of each group instead of the whole; settings choose one of several numbers of a name.
* Of a setting that it leaves open, such as the number of bins or the radius, every value must meet it that was asked
  for: the worst decides. Values that nobody asked for are refused until the requirement says which.
* ``headline`` is the name of the number that stands on top of a report.
* Where a result has an ECE of these samples and one of the population, ``ece`` is the headline's; ``samples ece`` and
  ``population ece`` say which.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.rounding import percent_text, round_outward, short_text
from certcal._base.text import capital, did_you_mean
from certcal.claims import Bound, Certificate, Estimate, settings_text

HEADLINE = "headline"
Outcome = Literal["met", "not shown", "not met"]
MET: Outcome = "met"
NOT_SHOWN: Outcome = "not shown"
NOT_MET: Outcome = "not met"
OUTCOMES: tuple[Outcome, ...] = (MET, NOT_SHOWN, NOT_MET)  # from good to bad
SAMPLES, POPULATION = " on these samples", " for the population"
_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
_SIGNS = {"≤": "<=", "≥": ">=", "=<": "<=", "=>": ">="}
_FORM = re.compile(r"\s*([^()<>=≤≥]*?)\s*(?:\(([^()]*)\))?\s*([<>=≤≥!]+)\s*(\S+)\s*")
_EXAMPLE = "write NAME, a relation and a number, as in 'ece <= 0.05'"
# Kinds of numbers that leave room between the two sides.
_SPREAD = ("bound", "interval")
# Settings of which a result can hold several values, each with claims of its own. A requirement on all of them needs no
# correction: if it is not met at one value, it passes only where the number at that value is wrong.
_SEVERAL = ("bins", "radius", "epsilon", "attack", "kind", "method")
# Claims that a metric's name means as well, nearest first. The binned error is below the true one, so an upper bound of
# that also bounds it.
_BINNED = "binned_calibration_error_of_the_population"
_ALSO = {
    "ece": (_BINNED, _BINNED.replace("the_", "the_weighted_"), "calibration_error"),
    "classwise_ece": (f"mean_over_classes_of_the_{_BINNED}", "mean_over_classes_of_the_calibration_error"),
    "mce": ("maximum_calibration_error",),
}


@dataclass(frozen=True)
class Requirement:
    """What a number must be.

    Examples
    --------
    >>> asked = Requirement.parse("every ECE(bins=10) <= 0.05")
    >>> asked.name, dict(asked.settings), asked.relation, asked.limit, asked.every
    ('ece', {'bins': '10'}, '<=', 0.05, True)
    """

    text: str
    words: str
    relation: str
    number: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    estimate: bool = False
    every: bool = False

    @classmethod
    def parse(cls, text: str | Requirement) -> Requirement:
        """Read a requirement, or say how it is written."""
        if isinstance(text, Requirement):
            return text
        found = _FORM.fullmatch(text) if isinstance(text, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if found is None:
            raise InputError(f"{text!r} is no requirement", argument="require", remedy=_EXAMPLE)
        words, inside, relation, number = found.groups()
        relation = _SIGNS.get(relation, relation)
        if relation not in _RELATIONS:
            reason = f"{text!r} has {relation!r}, and the relations are {', '.join(_RELATIONS)}"
            raise InputError(reason, argument="require", remedy=_EXAMPLE)
        try:
            finite = math.isfinite(float(number)) and Decimal(number).is_finite()
        except (ValueError, InvalidOperation):
            finite = False
        if not finite:
            raise InputError(f"{text!r} ends with {number!r}, no finite number", argument="require", remedy=_EXAMPLE)
        names = words.split()
        modes = {"estimate": False, "every": False}
        while len(names) > 1 and names[0].casefold() in modes:
            modes[names.pop(0).casefold()] = True
        if not names:
            raise InputError(f"{text!r} names no number", argument="require", remedy=_EXAMPLE)
        return cls(text.strip(), " ".join(names), relation, number, _parse_settings(text, inside or ""), **modes)

    @property
    def name(self) -> str:
        """In small letters, with underscores."""
        return plain(self.words)

    @property
    def limit(self) -> float:
        """What the number is compared with."""
        return float(self.number)

    @property
    def side(self) -> str:
        """Which end of a claim decides."""
        return "upper" if self.relation[0] == "<" else "lower"

    def worse(self, one: Judgement) -> tuple[int, bool, float]:
        """What judgements of this requirement are ordered by: the largest is the worst."""
        return OUTCOMES.index(one.outcome), math.isnan(one.value), one.value if self.side == "upper" else -one.value

    def met_by(self, value: float) -> bool:
        """Whether a number is as required; never so when it is undefined."""
        return _RELATIONS[self.relation](value, self.limit)


def plain(name: str) -> str:
    """A name in small letters, with underscores.

    Examples
    --------
    >>> plain("KS error"), plain("Worst-case ECE")
    ('ks_error', 'worst_case_ece')
    """
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")


def _parse_settings(text: str, inside: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, map(str.strip, inside.split(","))):
        name, equals, value = part.partition("=")
        if not (equals and name.strip() and value.strip()):
            reason = f"{text!r} has {part!r} between its brackets"
            raise InputError(reason, argument="require", remedy="write SETTING=VALUE, as in 'ece(bins=10) <= 0.05'")
        found[plain(name)] = value.strip()
    return found


@dataclass(frozen=True)
class Candidate:
    """A claim that requirements can name."""

    claim: Any
    """An estimate, a bound, a certificate or a worst case."""
    names: tuple[str, ...] = ()
    """Other names of the claim."""
    group: str | None = None
    """The group it is about; None for the whole."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What tells it from others of its name, beside its own settings."""
    about: str = ""
    """What it is about, where a result has the same of something else: " for the population", " on these samples"."""
    unasked: Mapping[str, str] = field(default_factory=dict[str, str])
    """The argument of a verb with which somebody could have asked for certain values of a setting and did not, by the
    setting: its values are examples then, and no requirement is about all of them."""

    @classmethod
    def certified(cls, claim: Any, key: str, settings: Mapping[str, Any], *names: str, **more: Any) -> Candidate:
        """One of the claims of intervals by its key: about these samples, or about the population."""
        also = key.removeprefix("claimed_")
        other = {"population_bound": "population_ece", "calibration_error": "samples_ece"}.get(also, also)
        about = POPULATION if also == "population_bound" else SAMPLES
        return cls(claim, (key, also, other, *names), settings=settings, about=about, **more)

    @property
    def known(self) -> dict[str, Any]:
        """All settings, and the group."""
        own = {**getattr(self.claim, "settings", {}), **self.settings}
        if isinstance(self.claim, Certificate):
            own.setdefault("radius", self.claim.radius)
        own |= {} if self.group is None else {"group": self.group}
        return {plain(str(name)): value for name, value in own.items()}

    def rank(self, name: str) -> int | None:
        """How near the claim's names are to the one that was asked for; None when it is another's."""
        own = {plain(each) for each in (self.claim.name, *self.names)}
        return next((place for place, each in enumerate((name, *_ALSO.get(name, ()))) if each in own), None)

    def fits(self, settings: Mapping[str, str]) -> bool:
        """Whether it has these settings."""
        known = self.known
        return all(
            name in known and _comparable_value(known[name]) == _comparable_value(value)
            for name, value in settings.items()
        )


def _comparable_value(value: Any) -> float | str:
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value).casefold()


@dataclass(frozen=True)
class Judgement(PlainValues, without="statement found limit_text where claim", more="passed"):
    """One requirement held against one claim."""

    requirement: str
    """As it was written."""
    outcome: Outcome
    """"met", "not met" (the opposite is shown, with a failure probability of its own) or "not shown"."""
    sentence: str
    """The number that decided, and by how much."""
    name: str
    group: str | None
    settings: Mapping[str, Any]
    """What was judged."""
    judged_on: str
    """"bound", "certificate", "worst case", "certified value", "interval" or "estimate"."""
    value: float
    text: str
    """The number that decided, with all digits and as it is printed."""
    limit: float
    """The required limit."""
    failure: float
    """Probability with which the number may be wrong; 0 where nothing is random, and for estimates. Where the worst of
    several decided, the largest of theirs."""
    settings_judged: int = 1
    """Of how many values of settings that the requirement leaves open this is the worst."""
    estimate: float | None = None
    """Of what was judged, on these samples, where it is known."""
    interval: tuple[float | None, float | None] | None = None
    """Lower and upper limit of what was judged; None for one that is not known."""
    samples_needed: int | None = None
    """Of what is not shown: about how many samples would show that it is met, if the estimate stays where it is."""
    statement: str = ""
    """What the number is, without the limit."""
    where: str = ""
    """What it is about: the group and the settings that tell it from others; empty for the whole."""
    found: str = ""
    """The number that decided with its side, as in "at most 0.0484"."""
    limit_text: str = ""
    """What is required, as in "≤ 0.05"."""
    claim: Any = field(default=None, repr=False, compare=False)
    """Behind the number."""

    @property
    def passed(self) -> bool:
        """Whether it is met."""
        return self.outcome == MET

    def headline(self, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The number that decided as a headline for JSON; what a result's own headline says of that number stays."""
        judged = {"name": self.claim.name, "value": self.value, "text": self.text, "n": self.claim.n}
        same = own is not None and all(own[key] == judged[key] for key in ("name", "value", "n"))
        judged |= {"group": self.group, "settings": dict(self.settings), "sentence": self.statement}
        return {**own, **judged} if own is not None and same else judged


@dataclass(frozen=True)
class Verdict:
    """Whether all requirements are met; true or false where a condition is asked for.

    Examples
    --------
    >>> import certcal
    >>> found = certcal.bound({"confidence": [0.75] * 400, "correct": [1, 1, 1, 0] * 100})
    >>> print(found.verdict("ece <= 0.1"))
    PASS ece: the upper bound (delta 0.05) is 0.0643, 0.0357 below the required 0.1.
    >>> bool(found.verdict("ece <= 0.1", "ece < 0.05"))
    False
    """

    judgements: tuple[Judgement, ...]

    @property
    def passed(self) -> bool:
        """Whether every requirement is met."""
        return all(each.passed for each in self.judgements)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def outcome(self) -> Outcome:
        """Of all requirements together: "not met" where one is not met, else "not shown" where one is not shown."""
        return OUTCOMES[max(OUTCOMES.index(each.outcome) for each in self.judgements)]

    def table(self) -> list[tuple[str, str, str, str, str]]:
        """Rows of (requirement, where, found, limit, verdict), the worst verdicts first."""
        worst = self._failures_first
        return [(each.requirement, each.where, each.found, each.limit_text, each.outcome) for each in worst]

    @property
    def _failures_first(self) -> list[Judgement]:
        return sorted(self.judgements, key=lambda each: -OUTCOMES.index(each.outcome))

    @property
    def lines(self) -> tuple[str, ...]:
        """One sentence each, those that are not met first."""
        return tuple(each.sentence for each in self._failures_first)

    @property
    def decisive(self) -> Judgement:
        """What decides the first requirement that is not met, or the first of all; of groups the worst.

        Its number is the headline wherever the verdict is shown.
        """
        asked = Requirement.parse(self._failures_first[0].requirement)
        return max((one for one in self.judgements if one.requirement == asked.text), key=asked.worse)

    @property
    def summary(self) -> str:
        """How many are met, where there are several."""
        met, every = sum(each.passed for each in self.judgements), len(self.judgements)
        if every < 2:
            return ""
        return f"PASS: all {every} requirements are met." if met == every else f"FAIL: {met} of {every} are met."

    @property
    def note(self) -> str:
        """What chance can do to several requirements at once.

        Why: if one of them is not met in truth, all pass only where the number behind that one is wrong, which has its
        failure probability. That numbers hold together, the union bound says; of those without a failure probability it
        says nothing: estimates, and what is computed inside intervals that have one each.
        """
        chances = [each.failure for each in self.judgements if each.failure]
        if len(chances) < 2:
            return ""
        nominal = any(each.judged_on == "interval" for each in self.judgements)
        said = "If one that is judged on a bound or an interval is not met in truth, all pass with probability at most "
        said += f"{short_text(max(chances), 'upper')}{' (as far as intervals reach their level)' if nominal else ''}."
        together = Decimal(1) - sum(Decimal(repr(each.failure)) * each.settings_judged for each in self.judgements)
        if together > 0:
            who = "All" if len(chances) == len(self.judgements) else "Those"
            said += f" {who} numbers hold together with probability at least {short_text(float(together), 'lower')}."
        if any(each.judged_on in ("worst case", "certified value") for each in self.judgements):
            said += " A worst case or a certified value holds where the intervals of its samples do."
        return said

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.summary, *self.lines, self.note)))

    __repr__ = __str__

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain values for JSON, one entry per requirement and group."""
        return [each.to_dict() for each in self.judgements]


def read_requirements(require: str | Requirement | Iterable[str | Requirement]) -> tuple[Requirement, ...]:
    """One requirement or several, read."""
    several = (require,) if isinstance(require, str | Requirement) else tuple(require)
    return tuple(map(Requirement.parse, several))


def judge(candidates: Iterable[Candidate], require: str | Requirement | Iterable[str | Requirement]) -> Verdict:
    """Hold requirements against claims.

    Parameters
    ----------
    candidates
        The claims of a result, the headline's first.
    require
        One requirement or several.

    Examples
    --------
    >>> print(judge([Candidate(Estimate("accuracy", 0.91, 1000))], "estimate accuracy >= 0.9"))
    PASS accuracy: the estimate is 0.9100, 0.0100 above the required 0.9.
    """
    known, requirements = tuple(candidates), read_requirements(require)
    if not requirements:
        raise InputError("no requirement is given", argument="require", remedy=_EXAMPLE)
    if not known:
        raise InputError("this result claims no number that a requirement could be about", argument="require")
    return Verdict(tuple(made for each in requirements for made in _judgements(known, each)))


def _judgements(known: Sequence[Candidate], asked: Requirement) -> Iterable[Judgement]:
    found = [each for each in known if each.rank(asked.name) is not None]
    if asked.name == HEADLINE:
        first = known[0]
        found = [each for each in known if (each.claim.name, each.names) == (first.claim.name, first.names)]
        found = found if asked.every else [first]
    if not found:
        names = list(dict.fromkeys(name for each in known for name in map(plain, (*each.names, each.claim.name))))
        hint = did_you_mean(asked.name, names, f"there is {', '.join(names)}")
        raise InputError(f"there is no {asked.words!r} here", argument="require", remedy=hint)
    fitting = [each for each in found if each.fits(asked.settings)]
    if not fitting:
        told = [{key: each.known[key] for key in asked.settings if key in each.known} for each in found]
        there = list(dict.fromkeys(settings_text(each) for each in told if each)) or list(found[0].known)
        what = f"{asked.words} has no {settings_text(asked.settings)}"
        raise InputError(what, argument="require", remedy=f"there is {' or '.join(there[:8]) or 'no setting'}")
    if asked.every:
        groups = dict.fromkeys(each.group for each in fitting if each.group is not None)
        if not groups:
            raise InputError(
                f"{asked.text!r} asks every group, and there are none",
                argument="require",
                remedy="leave 'every' out, or say which groups there are",
                roles=("by",),
            )
        return [
            _judge_worst_setting([each for each in fitting if each.group == group], known, asked) for group in groups
        ]
    whole = [each for each in fitting if each.group is None]
    return [_judge_worst_setting(whole or fitting, known, asked)]


def _judge_worst_setting(found: Sequence[Candidate], known: Sequence[Candidate], asked: Requirement) -> Judgement:
    """Hold a requirement against the claims at each value of the settings that it leaves open: the worst decides."""
    parts = _by_setting(found, asked)
    judged = [_judge(each, found, known, asked, len(parts)) for each in parts]
    return replace(
        max(judged, key=asked.worse), failure=max(one.failure for one in judged), settings_judged=len(judged)
    )


def _by_setting(found: Sequence[Candidate], asked: Requirement) -> list[list[Candidate]]:
    """The claims at each combination of values of the settings of which the strongest claim has several.

    Claims that lack such a setting, as a bound on the true error lacks bins, are about something else.
    """
    own = _strongest(found, found, asked)[0].known
    values = {name: {_comparable_value(each.known[name]) for each in found if name in each.known} for name in _SEVERAL}
    several = [name for name in _SEVERAL if name in own and len(values[name]) > 1]
    for each in found:
        for name in several if each.unasked else ():
            if name in each.unasked:
                one = f"{asked.words}({name}={each.known[name]}) {asked.relation} {asked.number}"
                raise InputError(
                    f"{asked.words} is given for {len(values[name])} values of the {name}, and none was asked for",
                    argument="require",
                    remedy=f"ask for one, or say which, as in {one!r}",
                    roles=(each.unasked[name],),
                )
    parts: dict[tuple[Any, ...], list[Candidate]] = {}
    for each in found:
        known = each.known
        if known.keys() >= set(several):
            parts.setdefault(tuple(_comparable_value(known[name]) for name in several), []).append(each)
    return list(parts.values())


def _strongest(
    found: Sequence[Candidate], every: Sequence[Candidate], asked: Requirement
) -> tuple[Candidate, _DecisiveNumber]:
    """The first of the strongest claims, and its number."""
    shown = [(each, _decisive_number(each.claim, asked.side, estimate=asked.estimate)) for each in found]
    usable = [(each, number) for each, number in shown if number is not None]
    if not usable:
        what = "".join(_name_with_settings(found[0], every if len(found) < len(every) else (), asked))
        raise _unusable(found, what, asked)
    return min(usable, key=lambda pair: (pair[1].order, pair[0].rank(asked.name) or 0))


def _judge(
    found: Sequence[Candidate], every: Sequence[Candidate], known: Sequence[Candidate], asked: Requirement, parts: int
) -> Judgement:
    """Hold a requirement against the strongest of its claims; ``every`` has those of all parts, one per setting."""
    candidate, number = first, near = _strongest(found, every, asked)
    defined = math.isfinite(near.value)
    passed = asked.met_by(near.value) or (near.exact and defined and asked.met_by(float(near.text)))
    end, far = _other_end(first, near, known, asked)
    outcome = MET if passed else NOT_SHOWN
    if not passed and far is not None and not math.isnan(far.value) and not asked.met_by(far.value):
        outcome = NOT_MET
        if far.kind in _SPREAD:
            candidate, number = end, far
    text = _text_on_its_side(number, asked, outcome)
    name, inside = _name_with_settings(candidate, every, asked, parts)
    claim = candidate.claim
    estimate = _estimate(first, known)
    beside = "" if number.kind != "interval" or estimate is None else f" (estimate {_with_sign(f'{estimate:.4f}')})"
    said = f"{name}{inside}: {number.said}{candidate.about} is"
    statement = f"{said} {_with_sign(text)}{beside}."
    if not isinstance(claim, Estimate) and defined:  # it says of what it is a bound
        about = "" if "population" in claim.name else candidate.about
        most = "at most" if number.side == "upper" else "at least"
        statement = f"{capital(claim.name)}{inside} is {most} {_with_sign(text)}{about}."
    opposite = None if far is None else far.value
    limits = (opposite, near.value) if asked.side == "upper" else (near.value, opposite)
    return Judgement(
        asked.text,
        outcome,
        f"{'PASS' if passed else 'FAIL'} {said} {_margin(text, asked, passed)}{beside}.",
        asked.name if asked.name != HEADLINE else plain(first.claim.name),
        candidate.group,
        {key: value for key, value in candidate.known.items() if key != "group"},
        number.kind,
        number.value,
        text,
        asked.limit,
        number.failure,
        estimate=estimate,
        interval=limits if near.kind in _SPREAD else None,
        samples_needed=_samples_needed(first.claim, near, far, estimate, asked) if outcome == NOT_SHOWN else None,
        statement=statement,
        where=inside.removeprefix(" for "),
        found=f"{ {'upper': 'at most ', 'lower': 'at least '}.get(number.side or '', '') }{_with_sign(text)}".strip(),
        limit_text=f"{asked.relation} {asked.number}",
        claim=claim,
    )


def _other_end(
    candidate: Candidate, near: _DecisiveNumber, known: Sequence[Candidate], asked: Requirement
) -> tuple[Candidate, _DecisiveNumber | None]:
    """The number that shows the opposite of a requirement where it violates it, and whose it is.

    Of an estimate it is the other end of the interval, of an extreme inside intervals the value that some confidences
    in them reach. A bound needs a partner: a claim on the other side of the same quantity, or of one that lies beyond
    it. The binned error is at most the true one, so a lower limit of the binned error above an upper requirement shows
    that the true error is above it, but none of the true error says anything of the binned one; for lower requirements
    the other way round. Which partner is asked does not depend on the numbers, so that the level is its own.
    """
    claim, side = candidate.claim, "lower" if asked.side == "upper" else "upper"
    if near.kind == "estimate":
        return candidate, near
    if not isinstance(claim, Bound):
        return candidate, _opposite_number(claim, side)
    ladder, step = _step(candidate)
    partners: list[tuple[bool, int, Candidate, _DecisiveNumber]] = []
    for each in known:
        other, number = _step(each), _decisive_number(each.claim, side, estimate=False)
        beyond = (step - other[1]) * (1 if asked.side == "upper" else -1)
        fitting = other[0] == ladder and beyond >= 0 and (beyond > 0 or step > 0 or _same_bins(each, candidate))
        known_kind = isinstance(each.claim, Bound | Estimate) and each.group == candidate.group
        if number is not None and fitting and known_kind:
            partners.append((isinstance(each.claim, Estimate), beyond, each, number))
    if not partners:
        return candidate, None
    return min(partners, key=lambda each: each[:2])[2:]


def _opposite_number(claim: Any, side: str) -> _DecisiveNumber | None:
    """What a claim says on the other side: an estimate by its interval, an extreme by what is reached."""
    if isinstance(claim, Estimate):
        number, spread = _decisive_number(claim, side, estimate=False), claim.interval
        if number is None or spread is None or not spread.resampled:
            return number
        # Percentiles of a metric that is biased lie on one side of what it is in the population: its mirror image, the
        # basic interval, lies on the other, and both must show it.
        mirrored = 2 * claim.value - (spread.upper if side == "lower" else spread.lower)
        end = (min if side == "lower" else max)(number.value, mirrored)
        return replace(number, value=end, text=round_outward(end, side))
    if isinstance(claim, Certificate):
        return None
    reached = getattr(claim, "reached", None)
    value = float(claim.value if reached is None else reached)
    kind = "worst case" if hasattr(claim, "extreme") else "certified value"
    case = ("worst" if side == "lower" else "best") + " case inside the intervals"
    said = f"the {case if kind == 'worst case' else 'certified value'}"
    return _DecisiveNumber(0, kind, value, round_outward(value, side), side, said)


def _step(candidate: Candidate) -> tuple[Any, int]:
    """Which quantity a claim is about: its ladder, and the step there. What is on a lower step is at most as large."""
    own = plain(candidate.claim.name)
    several = tuple(_comparable_value(candidate.known.get(name, "")) for name in _SEVERAL if name != "bins")
    for metric, above in _ALSO.items():
        if own in (metric, *above):
            return (metric, several), int(own == above[-1])
    return (own, several), 0


def _same_bins(one: Candidate, other: Candidate) -> bool:
    return all(one.known.get(name) == other.known.get(name) for name in ("bins", "closed"))


def _estimate(candidate: Candidate, known: Sequence[Candidate]) -> float | None:
    """What was judged, on these samples: the estimate itself, or the one beside a bound."""
    claim = candidate.claim
    if isinstance(claim, Bound):
        step = _step(candidate)
        beside = (each for each in known if isinstance(each.claim, Estimate) and each.group == candidate.group)
        same = (each for each in beside if _step(each)[0] == step[0] and (step[1] or _same_bins(each, candidate)))
        found = next((each.claim.value for each in same), claim.terms.get("error on the samples", math.nan))
    else:
        found = claim.value if isinstance(claim, Estimate) else math.nan
    return None if math.isnan(found) else float(found)


def _samples_needed(
    claim: Any, near: _DecisiveNumber, far: _DecisiveNumber | None, estimate: float | None, asked: Requirement
) -> int | None:
    """About how many samples would show it: the end that decides comes as near to the estimate as 1/√n does to 0.

    An error whose limits reach down to 0 is taken to be 0, for its estimate is as large as its noise.
    """
    centre = 0.0 if far is not None and far.value == 0 and asked.side == "upper" else estimate
    if centre is None or near.kind not in _SPREAD or not math.isfinite(near.value) or centre == asked.limit:
        return None
    if not asked.met_by(centre):
        return None
    exact = claim.n * ((near.value - centre) / (asked.limit - centre)) ** 2
    if not exact < 1e15:
        return None
    unit = 10 ** max(0, math.floor(math.log10(exact)) - 1)
    return math.ceil(exact / unit) * unit


@dataclass(frozen=True)
class _DecisiveNumber:
    """The number of a claim that decides: how strong it is, its words and its rounding."""

    order: int
    kind: str
    value: float
    text: str
    side: str | None
    said: str
    failure: float = 0.0
    exact: bool = False  # the text is itself claimed


def _decisive_number(claim: Any, side: str, *, estimate: bool) -> _DecisiveNumber | None:
    """What a claim says on the side that is asked; None where it says nothing there."""
    if isinstance(claim, Estimate):
        if estimate:
            return _DecisiveNumber(0, "estimate", float(claim.value), f"{claim.value:.4f}", None, "the estimate")
        spread = claim.interval
        if spread is None:
            return None
        end = float(spread.upper if side == "upper" else spread.lower)
        said = f"the {side} end of the {percent_text(spread.level)} interval"
        return _DecisiveNumber(1, "interval", end, round_outward(end, side), side, said, _one_minus(spread.level))
    own = getattr(claim, "side", None) or {"highest": "upper", "lowest": "lower"}[claim.extreme]
    if estimate or own != side:
        return None
    proved = getattr(claim, "lower_end", None) if side == "lower" else None
    value = float(claim.value if proved is None else proved)
    if isinstance(claim, Bound):
        said = f"the {side} bound (delta {short_text(claim.delta, 'upper')})"
        return _DecisiveNumber(0, "bound", value, claim.text, side, said, claim.delta, exact=True)
    if isinstance(claim, Certificate):
        said = f"the certified {side} bound at radius {short_text(claim.radius, 'lower')}"
        return _DecisiveNumber(0, "certificate", value, claim.text, side, said, claim.ledger.spent, exact=True)
    if hasattr(claim, "extreme"):
        said = f"the {'worst' if side == 'upper' else 'best'} case inside the intervals"
        return _DecisiveNumber(0, "worst case", value, claim.text, side, said, exact=True)
    return _DecisiveNumber(0, "certified value", value, claim.text, side, f"the certified {side} value", exact=True)


def _unusable(found: Sequence[Candidate], what: str, asked: Requirement) -> InputError:
    """Why none of the claims can decide, and what to do."""
    claims = [each.claim for each in found]
    estimates = any(isinstance(claim, Estimate) for claim in claims)
    if asked.estimate:
        reason, remedy = f"{what} is no estimate here", f"leave 'estimate' out of {asked.text!r}"
    elif estimates:
        attacked = any("attack" in getattr(claim, "settings", {}) for claim in claims)
        reason = f"{what} is an estimate " + (
            "of what these attacks reach, and others may reach more" if attacked else "without an interval or a bound"
        )
        ask = "" if attacked else "ask for intervals or bounds, or "
        remedy = f"{ask}judge the estimate with 'estimate {asked.text}'"
    else:
        below = "below" if asked.side == "lower" else "above"
        reason = f"nothing bounds {what} from {below} here"
        remedy = f"ask for {'<=' if below == 'below' else '>='}"
    return InputError(reason, argument="require", remedy=remedy)


def _name_with_settings(
    candidate: Candidate, every: Sequence[Candidate], asked: Requirement, parts: int = 1
) -> tuple[str, str]:
    """The name as it was asked for, and the settings that tell it from others with its group."""
    name = candidate.claim.name if asked.name == HEADLINE else asked.words
    known = {key: value for key, value in candidate.known.items() if value != candidate.group}
    told = {key: known[key] for key in asked.settings if key in known}
    for key in (*_SEVERAL, "samples"):
        if key in known and any(key in each.known and each.known[key] != known[key] for each in every):
            told[key] = known[key]
    whole = {
        key: int(value) if isinstance(value, float) and value.is_integer() else value for key, value in told.items()
    }
    inside = ", ".join(filter(None, (settings_text(whole), f"worst of {parts}" if parts > 1 else "")))
    where = "" if candidate.group is None else f" for {candidate.group}"
    return name, f"{f' ({inside})' if inside else ''}{where}"


def _text_on_its_side(number: _DecisiveNumber, asked: Requirement, outcome: Outcome) -> str:
    """The number in as many digits as show on which side of the limit it is."""
    text, passed = number.text, outcome == MET
    for digits in range(5, 18):
        if not math.isfinite(number.value) or asked.met_by(float(text)) == passed:
            return text
        side = number.side
        text = f"{number.value:.{digits}f}" if side is None else round_outward(number.value, side, digits)
    return text if asked.met_by(float(text)) == passed else repr(number.value)


def _margin(text: str, asked: Requirement, passed: bool) -> str:
    """The number that decided, and how far it is from what is required."""
    limit = _with_sign(f"{Decimal(asked.number).normalize():f}")
    if text in ("nan", "undefined"):
        return f"undefined, so it does not meet {limit}"
    margin = Decimal(text) - Decimal(asked.number)
    if not margin.is_finite():
        return f"{_with_sign(text)}, against {limit}"
    if margin == 0:
        return f"{_with_sign(text)}, exactly the required {limit}{'' if passed else ', which must not be reached'}"
    return f"{_with_sign(text)}, {abs(margin):f} {'above' if margin > 0 else 'below'} the required {limit}"


def _one_minus(level: float) -> float:
    return float(Decimal(1) - Decimal(repr(float(level))))


def _with_sign(text: str) -> str:
    return f"−{text[1:]}" if text.startswith("-") else text
