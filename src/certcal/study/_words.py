"""Numbers and correlations in words."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable, Sequence

from certcal._text import counted
from certcal.claims import round_outward
from certcal.study._findings import Finding

# Data sets that an answer goes through.
_TOLD = 3
_PRINTED = 0.01
# Correlations below these are called so.
_STRENGTHS = ((0.1, "negligible"), (0.3, "weak"), (0.6, "moderate"), (1.1, "strong"))


def signed(finding: Finding) -> str:
    """A correlation with its interval, whose ends are rounded outward."""
    return _with_interval(finding, "+.2f", 2)


def plain(finding: Finding) -> str:
    """A number without a sign, with its interval."""
    return _with_interval(finding, ".2f", 2)


def percent(finding: Finding) -> str:
    """A share as a percentage, with its interval."""
    ends = (round_outward(100 * finding.low, "lower", 1), round_outward(100 * finding.high, "upper", 1))
    return f"{100 * finding.value:.1f} % [{ends[0]} %, {ends[1]} %]"


def _with_interval(finding: Finding, form: str, digits: int) -> str:
    if math.isnan(finding.value):
        return "undefined"
    value = format(0.0 if abs(finding.value) < 0.5 * 10**-digits else finding.value, form)
    if math.isnan(finding.low) or math.isnan(finding.high):
        return f"{value} (no interval)"
    ends = (round_outward(finding.low, "lower", digits), round_outward(finding.high, "upper", digits))
    sign = "+" if form.startswith("+") else ""
    low, high = (end if end.startswith("-") else sign + end for end in ends)
    return f"{value} [{low}, {high}]"


def size(value: float) -> str:
    """A measured error: four decimals."""
    return f"{value:.4f}"


def excludes_zero(finding: Finding) -> bool:
    """Whether the interval is on one side of zero, as it is printed; False without one.

    Examples
    --------
    >>> excludes_zero(Finding("tau", 0.2, 0.012, 0.4, 90)), excludes_zero(Finding("tau", 0.2, 0.008, 0.4, 90))
    (True, False)
    """
    return finding.low >= _PRINTED or finding.high <= -_PRINTED


def strength(finding: Finding) -> str:
    """How strong a correlation is, as far as its interval tells: at most one word above that of its weaker end.

    Examples
    --------
    >>> strength(Finding("tau", 0.65, 0.58, 0.7, 200)), strength(Finding("tau", 0.65, 0.15, 0.9, 12))
    ('strong positive', 'moderate positive')
    >>> strength(Finding("tau", 0.42, 0.31, 0.52, 90)), strength(Finding("tau", 0.1, -0.2, 0.4, 20))
    ('moderate positive', 'no clear')
    >>> strength(Finding("tau", 0.01, -0.03, 0.05, 900))
    'practically no'
    """
    if math.isnan(finding.value):
        return "an undefined"
    if not excludes_zero(finding):
        return "practically no" if max(abs(finding.low), abs(finding.high)) <= _STRENGTHS[0][0] else "no clear"
    weaker = min(abs(finding.low), abs(finding.high))
    limits = [limit for limit, _ in _STRENGTHS]
    word = _STRENGTHS[min(bisect(limits, abs(finding.value)), bisect(limits, weaker) + 1)][1]
    return f"{word} {'positive' if finding.value > 0 else 'negative'}"


def listed(words: Iterable[str]) -> str:
    """Words as a list in a sentence."""
    found = list(words)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def first(words: Sequence[str], most: int) -> str:
    """Words as a list in a sentence, those beyond ``most`` only counted."""
    return listed([*words[:most], counted(len(words) - most, "other")] if len(words) > most else words)


def go(names: Sequence[str]) -> str:
    """The verb for one thing or several."""
    return "goes" if len(names) == 1 else "go"


def overview(findings: Sequence[Finding], subject: str) -> str:
    """Where a number lies on several data sets; nothing for one. Names of findings start with that of the data set.

    Examples
    --------
    >>> findings = [Finding("a: tau", 0.1, 0.0, 0.2, 9), Finding("b: tau", -0.2, -0.3, -0.1, 9)]
    >>> overview(findings, "The correlation")
    'The correlation lies between -0.20 (b) and +0.10 (a) on 2 data sets.'
    >>> overview([findings[0], findings[0]], "The correlation")
    'The correlation is +0.10 on all 2 data sets.'
    """
    known = [finding for finding in findings if not math.isnan(finding.value)]
    if len(known) < 2:
        return ""
    least, most = (choose(known, key=lambda finding: finding.value) for choose in (min, max))
    if f"{least.value:+.2f}" == f"{most.value:+.2f}":
        return f"{subject} is {least.value:+.2f} on all {len(known)} data sets."
    ends = [f"{each.value:+.2f} ({each.name.partition(': ')[0]})" for each in (least, most)]
    return f"{subject} lies between {ends[0]} and {ends[1]} on {len(known)} data sets."


def told(parts: Sequence[str], begin: str = "") -> str:
    """An overview and what is said of the first few data sets, as one text."""
    shown = [begin, *parts[:_TOLD]]
    if len(parts) > _TOLD:
        verb = "is" if len(parts) == _TOLD + 1 else "are"
        shown.append(f"The other {counted(len(parts) - _TOLD, 'data set')} {verb} among the numbers below.")
    return " ".join(part for part in shown if part)
