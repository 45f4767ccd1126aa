"""Requirements held against claims: which claim decides, on which side, and what that says in words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.rounding import is_share, number_text, round_outward, sure_text, times_text
from certcal._base.text import capital, did_you_mean, is_number
from certcal.claims import Certificate, Estimate, settings_text
from certcal.verdict.candidates import PREFIX, SEVERAL, Candidate, Vocabulary, comparable_value
from certcal.verdict.ends import SPREAD, DecisiveNumber, decisive_number, estimate_of, other_end, what_would_show
from certcal.verdict.requirement import EXAMPLE, Requirement, Requirements, plain, read_requirements

Outcome = Literal["met", "not shown", "not met"]
MET: Outcome = "met"
NOT_SHOWN: Outcome = "not shown"
NOT_MET: Outcome = "not met"
OUTCOMES: tuple[Outcome, ...] = (MET, NOT_SHOWN, NOT_MET)  # from good to bad


@dataclass(frozen=True)
class Judgement(
    PlainValues,
    keys="requirement outcome passed sentence name group settings judged_on value text limit limits failure "
    "settings_judged estimate interval samples_needed",
):
    """One requirement held against one claim."""

    requirement: str
    """As it was written."""
    outcome: Outcome
    """"met", "not met" (the opposite is shown, with a failure probability of its own) or "not shown"."""
    name: str
    group: str | None
    settings: Mapping[str, Any]
    """What was judged."""
    judged_on: str
    """"bound", "certificate", "worst case", "certified value", "interval" or "estimate"."""
    value: float
    text: str
    """The number that decided, with all digits and rounded to its side."""
    limit: float
    limits: tuple[float | None, float | None]
    """The limit that decided; the lower and the upper one, None where there is none."""
    failure: float
    """Probability with which the number may be wrong; 0 where nothing is random, and for estimates. Where the worst of
    several decided, the largest of theirs."""
    what: str
    """What was judged, in words."""
    where: str
    """The group and the settings that tell it from others; empty for the whole."""
    found: str
    """The number that decided as it is printed, with its side, as in "at most 4.84%"."""
    limit_text: str
    """What is required, as in "limit 5%"."""
    beyond: float
    """How far the number is beyond the limit."""
    remark: str = ""
    """What follows the sentence: how sure it is, and what would show it."""
    settings_judged: int = 1
    """Of how many values of settings that the requirement leaves open this is the worst."""
    estimate: float | None = None
    """Of what was judged, on these samples, where it is known."""
    interval: tuple[float | None, float | None] | None = None
    """Lower and upper limit of what was judged; None for one that is not known."""
    samples_needed: int | None = None
    """Of what is not shown: about how many samples would show that it is met in 4 of 5 tables, if the estimate is
    right."""
    claim: Any = field(default=None, repr=False, compare=False)
    """Behind the number."""

    @property
    def passed(self) -> bool:
        """Whether it is met."""
        return self.outcome == MET

    @property
    def number(self) -> str:
        """The number that decided as it is printed."""
        return re.sub("^at (most|least) ", "", self.found)

    @property
    def sentence(self) -> str:
        """The outcome, the number that decided, the limit, and how sure that is."""
        return f"{self.outcome}: {self.what}{self._place} is {self.found} ({self.limit_text}){self.remark}."

    @property
    def statement(self) -> str:
        """What the number is, without the limit."""
        return f"{capital(self.what)}{self._place} is {self.found}."

    @property
    def _place(self) -> str:
        return self.where and (" " if self.where.startswith("(") else " for ") + self.where

    @property
    def badness(self) -> tuple[int, bool, float]:
        """What judgements are ordered by: the largest is the worst."""
        return OUTCOMES.index(self.outcome), math.isnan(self.beyond), self.beyond

    def headline(self, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The number that decided as a headline for JSON; what a result's own headline says of that number stays."""
        judged = {"name": self.claim.name, "value": self.value, "text": self.text, "n": self.claim.n}
        same = own is not None and all(own[key] == judged[key] for key in ("name", "value", "n"))
        judged |= {"group": self.group, "settings": dict(self.settings), "sentence": self.statement}
        return {**own, **judged} if own is not None and same else judged


class VerdictRow(NamedTuple):
    """One requirement in the table of a verdict."""

    requirement: str
    where: str
    found: str
    limit: str
    """The number, as in "5%", "0.9 to 1.1" or "below 5%"."""
    verdict: Outcome
    remark: str
    """How sure it is, and what would show it."""


@dataclass(frozen=True)
class Verdict:
    """Whether all requirements are met; true or false where a condition is asked for.

    Examples
    --------
    >>> import certcal
    >>> found = certcal.bound({"confidence": [0.75] * 400, "correct": [1, 1, 1, 0] * 100})
    >>> print(found.verdict("ece <= 10%"))
    met: calibration error in 15 bins is at most 6.43% (limit 10%), 95% sure (proven).
    >>> print(found.verdict("ece <= 5%"))
    not shown: calibration error in 15 bins is at most 6.43% (limit 5%), 95% sure (proven); about 1,400 samples would show that it is met if there is no error.
    >>> bool(found.verdict("ece <= 10%", "ece < 5%"))
    False
    """  # noqa: E501

    judgements: tuple[Judgement, ...]

    @property
    def passed(self) -> bool:
        """Whether every requirement is met."""
        return all(each.passed for each in self.judgements)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def worst_first(self) -> list[Judgement]:
        """One judgement per requirement, those that are not met first; of a requirement on every group the worst."""
        parts: dict[str, list[Judgement]] = {}
        for each in self.judgements:
            parts.setdefault(each.requirement, []).append(each)
        return _ordered(map(_worst_group, parts.values()))

    @property
    def outcome(self) -> Outcome:
        """Of all requirements together: "not met" where one is not met, else "not shown" where one is not shown."""
        return self.decisive.outcome

    def table(self, *, groups: bool = False) -> list[VerdictRow]:
        """A row per requirement, or with ``groups`` per requirement and group; the worst verdicts first."""
        return [
            VerdictRow(
                *(each.requirement, each.where, f"{each.what} {each.found}"),
                re.sub("^(limits?|must be) ", "", each.limit_text),
                *(each.outcome, each.remark.removeprefix(", ")),
            )
            for each in (_ordered(self.judgements) if groups else self.worst_first)
        ]

    @property
    def sure(self) -> str:
        """How sure the numbers are, where it is the same of all."""
        said = {each.remark.removeprefix(", ").partition(";")[0] for each in self.judgements}
        return said.pop() if len(said) == 1 and all(math.isfinite(each.value) for each in self.judgements) else ""

    def beside(self, row: VerdictRow) -> str:
        """What is said of a row below a table whose head says how sure all are; empty where that is all."""
        said = row.remark.removeprefix(self.sure).lstrip("; ")
        return f"{capital(said)}." if said else ""

    @property
    def lines(self) -> tuple[str, ...]:
        """One sentence each, those that are not met first."""
        return tuple(each.sentence for each in self.worst_first)

    @property
    def decisive(self) -> Judgement:
        """What decides the first requirement that is not met, or the first of all; of groups the worst.

        Its number is the headline wherever the verdict is shown.
        """
        return self.worst_first[0]

    @property
    def summary(self) -> str:
        """How many are met, where there are several."""
        found = self.worst_first
        return f"{len(found)} requirements: {_counts(found)}." if len(found) > 1 else ""

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
        shown = (
            "one of these" if len(chances) == len(self.judgements) else "one that is judged on a bound or an interval"
        )
        level = " (as far as intervals reach their level)" if nominal else ""
        said = f"A model that breaks {shown} passes all of them {times_text(max(chances))}{level}."
        together = Decimal(1) - sum(Decimal(repr(each.failure)) * each.settings_judged for each in self.judgements)
        if together > 0:
            who = "All" if len(chances) == len(self.judgements) else "Those"
            said += f" {who} numbers hold together: {sure_text(1 - together)}."
        if any(each.judged_on in ("worst case", "certified value") for each in self.judgements):
            said += " A worst case or a certified value holds where the intervals of its samples do."
        return said

    def __str__(self) -> str:
        lines = self.lines
        if len(lines) > 1:
            rows = [
                (each.verdict, each.requirement, each.where, each.found, each.limit, each.remark)
                for each in self.table()
            ]
            sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines = tuple(
                "  ".join(text.ljust(size) for text, size in zip(row, sizes, strict=True) if size).rstrip()
                for row in rows
            )
        return "\n".join(filter(None, (self.summary, *lines, self.note)))

    __repr__ = __str__

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain values for JSON, one entry per requirement and group."""
        return [each.to_dict() for each in self.judgements]


def _ordered(judgements: Iterable[Judgement]) -> list[Judgement]:
    return sorted(judgements, key=lambda each: -OUTCOMES.index(each.outcome))


def _worst_group(parts: Sequence[Judgement]) -> Judgement:
    """The worst of several groups, which says of how many, and how many of them do not meet the requirement."""
    worst, failed = max(parts, key=lambda one: one.badness), [one for one in parts if not one.passed]
    if len(parts) == 1:
        return worst
    counts = f", {_counts(failed)}" if failed else ""
    worst = replace(worst, where=f"{worst.where} (worst of {len(parts)} groups{counts})")
    if worst.outcome != NOT_MET or not worst.failure:
        return worst
    # The worst was chosen after looking: that some group is called not met and is not so fails with their sum.
    any_fails = sum(Decimal(repr(one.failure)) for one in parts)
    own = sure_text(worst.failure)
    sure = sure_text(any_fails) if any_fails < 1 else f"{own} of one group alone, not of the worst of {len(parts)}"
    remark = worst.remark.replace(own, sure, 1)
    return replace(worst, failure=float(min(Decimal(1), any_fails)), remark=remark)


def _counts(judgements: Sequence[Judgement]) -> str:
    outcomes = [each.outcome for each in judgements]
    return ", ".join(f"{outcomes.count(each)} {each}" for each in reversed(OUTCOMES) if each in outcomes)


def judge(
    candidates: Iterable[Candidate],
    require: Requirements | Iterable[Requirements],
    vocabulary: Vocabulary | None = None,
) -> Verdict:
    """Hold requirements against claims.

    Parameters
    ----------
    candidates
        The claims of a result, the headline's first.
    require
        One requirement or several.
    vocabulary
        What the numbers are called in print.

    Examples
    --------
    >>> print(judge([Candidate(Estimate("accuracy", 0.91, 1000))], "estimate accuracy >= 90%"))
    met: the estimate of accuracy is 91.00% (limit 90%), on these samples only.
    """
    known, requirements = tuple(candidates), {each.text: each for each in read_requirements(require)}.values()
    if not requirements:
        raise InputError("no requirement is given", argument="require", remedy=EXAMPLE)
    if not known:
        raise InputError("this result claims no number that a requirement could be about", argument="require")
    words = Vocabulary() if vocabulary is None else vocabulary
    return Verdict(tuple(made for each in requirements for made in _judgements(known, each, words)))


def _judgements(known: Sequence[Candidate], asked: Requirement, words: Vocabulary) -> Iterable[Judgement]:
    names = words.names(asked.words)
    found = [each for each in known if each.rank(names) is not None]
    if not found:
        names = list(dict.fromkeys(name for each in known for name in map(plain, (*each.names, each.claim.name))))
        hint = did_you_mean(asked.name, names, f"there is {', '.join(names)}")
        raise InputError(f"there is no {asked.words!r} here", argument="require", remedy=hint)
    fitting = [each for each in found if each.fits(asked.settings)]
    if not fitting:
        raise _no_such_setting(found, asked)
    parts = [[each for each in fitting if each.group is None] or fitting]
    if asked.every:
        groups = dict.fromkeys(each.group for each in fitting if each.group is not None)
        if not groups:
            raise InputError(
                f"{asked.text!r} asks every group, and there are none",
                argument="require",
                remedy="leave 'every' out, or say which groups there are",
                roles=("by",),
            )
        parts = [[each for each in fitting if each.group == group] for group in groups]
    return [_judge_sides(_Question(asked, names, part, known, words)) for part in parts]


def _no_such_setting(found: Sequence[Candidate], asked: Requirement) -> InputError:
    """What claims of that name have instead of a setting."""
    known = [each.known for each in found]
    name = next((name for name in asked.settings if not any(name in each for each in known)), None)
    if name is not None:
        names = list(dict.fromkeys(each for one in known for each in one))
        groups = "" if any(each.group for each in found) else ", and groups with {by}"
        remedy = did_you_mean(name, names, f"there is {' or '.join(names) or 'no setting'}{groups}")
        return InputError(f"{asked.words} has no {name!r} here", argument="require", remedy=remedy, roles=("by",))
    told = [{name: each[name] for name in asked.settings if name in each} for each in known]
    there = f"there is {' or '.join(list(dict.fromkeys(map(settings_text, filter(None, told))))[:8])}"
    values = {name: {str(each[name]): None for each in told if name in each} for name in asked.settings}
    near = (did_you_mean(value, values[name]) for name, value in asked.settings.items() if not is_number(value))
    what = f"{asked.words} has no {settings_text(asked.settings)}"
    return InputError(what, argument="require", remedy=next(filter(None, near), there))


@dataclass(frozen=True)
class _Question:
    """A requirement, or one side of it, and what there is to answer it."""

    asked: Requirement
    names: tuple[str, ...]
    """What the number may be called."""
    found: Sequence[Candidate]
    """Claims that the requirement is about."""
    known: Sequence[Candidate]
    """All claims."""
    words: Vocabulary


def _judge_sides(question: _Question) -> Judgement:
    """Both sides of a range: the worst decides, and where both have the same outcome, both ends are said."""
    sides = sorted(question.asked.sides, key=lambda side: side.side)
    judged = [_judge_worst_setting(replace(question, asked=side)) for side in sides]
    worst = max(judged, key=lambda one: one.badness)
    if len(sides) == 1:
        return worst
    limits = " to ".join(_limit_text(side, one.found) for side, one in zip(sides, judged, strict=True))
    low, high = judged
    one_quantity = all(
        low.settings[key] == high.settings[key] for key in SEVERAL if key in low.settings.keys() & high.settings
    )
    if low.outcome == high.outcome != NOT_MET and low.text != high.text and one_quantity:
        needed = max(one.samples_needed or 0 for one in judged) or None
        # Two claims fail with the sum of their probabilities, the two ends of one interval with that of the interval.
        both = worst.failure
        if low.claim is not high.claim:
            both = float(min(Decimal(1), sum(Decimal(repr(one.failure)) for one in judged)))
        worst = replace(
            worst,
            found=f"between {low.number} and {high.number}",
            failure=both,
            remark=worst.remark.replace(sure_text(worst.failure), sure_text(both), 1),
            settings_judged=max(one.settings_judged for one in judged),
            samples_needed=needed,
        )
    return replace(worst, limits=(low.limit, high.limit), limit_text=f"limits {limits}")


def _judge_worst_setting(question: _Question) -> Judgement:
    """Hold a requirement against the claims at each value of the settings that it leaves open: the worst decides."""
    parts = _by_setting(question)
    judged = [_judge(each, question, len(parts)) for each in parts]
    worst = max(judged, key=lambda one: one.badness)
    return replace(worst, failure=max(one.failure for one in judged), settings_judged=len(judged))


def _by_setting(question: _Question) -> list[list[Candidate]]:
    """The claims of each group, at each combination of values of the settings of which the strongest claim has several.

    Claims that lack such a setting, as a bound on the true error lacks bins, are about something else.
    """
    found, asked = question.found, question.asked
    own = _strongest(found, question)[0].known
    values = {name: {comparable_value(each.known[name]) for each in found if name in each.known} for name in SEVERAL}
    several = [name for name in SEVERAL if name in own and len(values[name]) > 1]
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
            parts.setdefault((each.group, *(comparable_value(known[name]) for name in several)), []).append(each)
    return list(parts.values())


def _strongest(found: Sequence[Candidate], question: _Question) -> tuple[Candidate, DecisiveNumber]:
    """The first of the strongest claims, and its number."""
    asked = question.asked
    shown = [(each, decisive_number(each.claim, asked.side, estimate=asked.estimate)) for each in found]
    usable = [(each, number) for each, number in shown if number is not None]
    if not usable:
        several = question.found if len(found) < len(question.found) else ()
        raise _unusable(found, " ".join(filter(None, (asked.words, _where(found[0], several, asked)))), asked)
    return min(usable, key=lambda pair: (pair[1].order, pair[0].rank(question.names) or 0))


def _judge(found: Sequence[Candidate], question: _Question, parts: int) -> Judgement:
    """Hold a requirement against the strongest of its claims; ``question.found`` has those of all parts."""
    asked, known = question.asked, question.known
    candidate, number = first, near = _strongest(found, question)
    passed = asked.met_by(near.value) or (near.exact and math.isfinite(near.value) and asked.met_by(float(near.text)))
    end, far = other_end(first, near, known, asked)
    outcome = MET if passed else NOT_SHOWN
    if not passed and far is not None and not math.isnan(far.value) and not asked.met_by(far.value):
        outcome = NOT_MET
        if far.kind in SPREAD:
            candidate, number = end, far
    claim, estimate = candidate.claim, estimate_of(first, known)
    percent = asked.percent or (is_share(plain(claim.name)) and not abs(number.value) > 1)
    text = _text_on_its_side(number, asked, passed)
    printed = _in_words(number_text(text, percent=percent), claim)
    what, where = _what(candidate, number, question.words.labels), _where(candidate, question.found, asked, parts)
    opposite = None if far is None else far.value
    needed, remark = None, f", {number.remark}" if number.remark else ""
    finite = not math.isnan(number.value) and (not isinstance(claim, Estimate) or math.isfinite(claim.value))
    if not finite and (candidate.why or number.kind in SPREAD):
        remark = f", because {candidate.why}" if candidate.why else ""
    if outcome == NOT_SHOWN:
        needed, hope = what_would_show(first, near, far, estimate, asked)
        remark += f"; {hope}" if hope else ""
    sided = finite and printed != "undefined" and (passed or number.kind in SPREAD or isinstance(claim, Certificate))
    side = {"upper": "at most ", "lower": "at least "}.get(number.side or "", "") if sided else ""
    limit = asked.limit
    return Judgement(
        asked.text,
        outcome,
        asked.name,
        candidate.group,
        {key: value for key, value in candidate.known.items() if key != "group"},
        number.kind,
        number.value,
        text,
        limit,
        (None, limit) if asked.side == "upper" else (limit, None),
        number.failure if finite else 0.0,
        what,
        where.replace(f"(bins={candidate.known.get('bins')}, ", "(") if " bins" in what else where,
        side + printed,
        {"<=": "limit ", ">=": "limit ", "<": "must be below ", ">": "must be above "}[asked.relation]
        + _limit_text(asked, printed),
        number.value - limit if asked.side == "upper" else limit - number.value,
        remark,
        estimate=estimate,
        interval=((opposite, near.value) if asked.side == "upper" else (near.value, opposite))
        if near.kind in SPREAD
        else None,
        samples_needed=needed,
        claim=claim,
    )


def _unusable(found: Sequence[Candidate], what: str, asked: Requirement) -> InputError:
    """Why none of the claims can decide, and what to do."""
    claims = [each.claim for each in found]
    if asked.estimate:
        reason, remedy = f"{what} is no estimate here", f"leave 'estimate' out of {asked.text!r}"
    elif any(isinstance(claim, Estimate) for claim in claims):
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


def _what(candidate: Candidate, number: DecisiveNumber, labels: Mapping[str, str]) -> str:
    """What a claim is about, as a person says it."""
    name = str(candidate.claim.name)
    found, bins = PREFIX.match(name.replace(" ", "_")), candidate.known.get("bins")
    before, name = ("", name) if found is None else (name[: found.end() - 1], name[found.end() :])
    what = labels.get(name, name.replace("_", " ").replace(" of the population", ""))
    if name == "ece" or "binned" in name or name == "calibration error":
        where = "calibration error" if bins is None else f"calibration error in {bins} bins"
        what = where if name == "ece" else what.replace("binned ", "").replace("calibration error", where, 1)
    kinds = {"estimate": "the estimate of ", "worst case": "best-case " if number.side == "lower" else "worst-case "}
    before += " in " if before == "difference" else " " if before else ""
    return kinds.get(number.kind, "") + before + what + ("" if "population" in name else candidate.about)


def _where(candidate: Candidate, every: Sequence[Candidate], asked: Requirement, parts: int = 1) -> str:
    """The settings that tell a claim from others, and its group."""
    of_group = () if candidate.group is None else {*map(plain, candidate.settings)}.difference((*SEVERAL, "samples"))
    known = {key: value for key, value in candidate.known.items() if key not in of_group and value != candidate.group}
    told = {key: known[key] for key in asked.settings if key in known}
    for key in (*SEVERAL, "samples"):
        if key in known and any(key in each.known and each.known[key] != known[key] for each in every):
            told[key] = known[key]
    if isinstance(candidate.claim, Certificate):
        told["radius"] = known["radius"]
    whole = {
        key: int(value) if isinstance(value, float) and value.is_integer() else value for key, value in told.items()
    }
    inside = ", ".join(filter(None, (settings_text(whole), f"worst of {parts}" if parts > 1 else "")))
    group = candidate.printed or candidate.group or ""
    return " for ".join(filter(None, (f"({inside})" if inside else "", group)))


def _text_on_its_side(number: DecisiveNumber, asked: Requirement, passed: bool) -> str:
    """The number in as many digits as show on which side of the limit it is."""
    text = number.text
    for digits in range(5, 18):
        if not math.isfinite(number.value) or asked.met_by(float(text)) == passed:
            return text
        side = number.side
        text = f"{number.value:.{digits}f}" if side is None else round_outward(number.value, side, digits)
    return text if asked.met_by(float(text)) == passed else repr(number.value)


def _in_words(printed: str, claim: Any) -> str:
    """A number as it is printed; an estimate that is infinite itself is not a limit."""
    return "infinite" if isinstance(claim, Estimate) and math.isinf(claim.value) and printed == "inf" else printed


def _limit_text(asked: Requirement, text: str) -> str:
    """A limit, in percent where the number is."""
    return number_text(f"{Decimal(asked.number).normalize():f}", percent=text.endswith("%"))
