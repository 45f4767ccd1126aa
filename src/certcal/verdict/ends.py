"""The two ends of what a claim says of a number, and what they show of a requirement.

*Met*: the deciding end of the claim is as required. Wrong with at most the failure probability of the claim; of
resamples only where the metric is an average.

*Not met*: the opposite is shown. Of an interval its other end violates the requirement, of an extreme inside intervals
a value that some confidences reach, of an estimate the estimate itself. A bound needs a partner: a claim on the other
side of the same quantity, or of one that lies beyond it. The binned error is at most the true one, so a lower limit of
the binned error above an upper requirement shows that the true error is above it, but none of the true error says
anything of the binned one; for lower requirements the other way round. Which partner is asked does not depend on the
numbers, so a requirement that is met in truth is called not met with at most the partner's failure probability; with
several settings, of which one suffices, with at most the sum of theirs.

*Not shown*: neither. About how many samples would show it follows from the end's coming as near to the estimate as 1/√n
does to 0; bounds of the true error do so more slowly, about as n to the power of -0.37. With so many the end is
expected at the limit, and every other table shows it; about 4 of 5 do with 2.04 times as many, which is
((z₀.₉₇₅ + z₀.₈)/z₀.₉₇₅)².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from certcal._base.rounding import about, decimals, round_outward, sure_text
from certcal._base.text import counted
from certcal.claims import Bound, Certificate, Estimate
from certcal.verdict.candidates import Candidate
from certcal.verdict.requirement import Requirement, plain

# Kinds of numbers that leave room between the two sides.
SPREAD = ("bound", "interval")
# Beyond so many times the samples there are, no number of them is told.
_MOST_TIMES = 1000
# To what power of the distance the number of samples grows; bounds of the true error need 2.5 to 2.9 (docs/bounds.md).
_POWER, _POWER_OF_TRUE_ERROR = 2.0, 2.7
# How many times as many samples show in 4 of 5 tables what the expected end shows in every other one.
FOUR_OF_FIVE = 2.04


@dataclass(frozen=True)
class DecisiveNumber:
    """The number of a claim that decides: how strong it is, its words and its rounding."""

    order: int
    kind: str
    value: float
    text: str
    side: str | None
    remark: str
    failure: float = 0.0
    exact: bool = False  # the text is itself claimed


def decisive_number(claim: Any, side: str, *, estimate: bool) -> DecisiveNumber | None:
    """What a claim says on the side that is asked; None where it says nothing there."""
    if isinstance(claim, Estimate):
        if estimate:
            return DecisiveNumber(0, "estimate", float(claim.value), decimals(claim), None, "on these samples only")
        if claim.interval is None:
            return None
        end, failure = claim.end(side), _one_minus(claim.interval.level)
        sure = sure_text(failure) + (" if it is an average" if claim.interval.resampled else " (asymptotic)")
        return DecisiveNumber(1, "interval", end, round_outward(end, side), side, sure, failure)
    own = getattr(claim, "side", None) or {"highest": "upper", "lowest": "lower"}[claim.extreme]
    if estimate or own != side:
        return None
    proved = getattr(claim, "lower_end", None) if side == "lower" else None
    value = float(claim.value if proved is None else proved)
    if isinstance(claim, Bound | Certificate):
        kind, failure = ("bound", claim.delta) if isinstance(claim, Bound) else ("certificate", claim.ledger.spent)
        given = ", if the intervals hold" if any("each interval" in each for each in claim.assumptions) else ""
        sure = f"{sure_text(failure)} (proven{given})" if failure else "under its assumptions"
        return DecisiveNumber(0, kind, value, claim.text, side, sure, failure, exact=True)
    kind = "worst case" if hasattr(claim, "extreme") else "certified value"
    return DecisiveNumber(0, kind, value, claim.text, side, "inside the intervals", exact=True)


def other_end(
    candidate: Candidate, near: DecisiveNumber, known: Sequence[Candidate], asked: Requirement
) -> tuple[Candidate, DecisiveNumber | None]:
    """The number that shows the opposite of a requirement where it violates it, and whose it is."""
    claim, side = candidate.claim, "lower" if asked.side == "upper" else "upper"
    if near.kind == "estimate":
        return candidate, near
    if not isinstance(claim, Bound):
        return candidate, _opposite_number(claim, near, side)
    ladder, step = candidate.step
    partners: list[tuple[bool, int, Candidate, DecisiveNumber]] = []
    for each in known:
        number = decisive_number(each.claim, side, estimate=False)
        if number is None or number.kind not in SPREAD or each.group != candidate.group:
            continue
        other = each.step
        beyond = (step - other[1]) * (1 if asked.side == "upper" else -1)
        if other[0] == ladder and beyond >= 0 and (beyond > 0 or step > 0 or each.has_bins_of(candidate)):
            partners.append((isinstance(each.claim, Estimate), beyond, each, number))
    return min(partners, key=lambda each: each[:2], default=(False, 0, candidate, None))[2:]


def _opposite_number(claim: Any, near: DecisiveNumber, side: str) -> DecisiveNumber | None:
    """What a claim says on the other side: an estimate by its interval, an extreme by what is reached."""
    if isinstance(claim, Estimate) and claim.interval is not None:
        return decisive_number(claim, side, estimate=False)
    if isinstance(claim, Certificate):
        return None
    reached = getattr(claim, "reached", None)
    return replace(near, value=float(claim.value if reached is None else reached))


def estimate_of(candidate: Candidate, known: Sequence[Candidate]) -> float | None:
    """What was judged, on these samples: the estimate itself, or the one beside a bound."""
    claim = candidate.claim
    if isinstance(claim, Bound):
        ladder, step = candidate.step
        beside = (each for each in known if isinstance(each.claim, Estimate) and each.group == candidate.group)
        same = (each for each in beside if each.step[0] == ladder and (step > 0 or each.has_bins_of(candidate)))
        found = next((each.claim.value for each in same), claim.terms.get("error on the samples", math.nan))
    else:
        found = claim.value if isinstance(claim, Estimate) else math.nan
    return None if math.isnan(found) else float(found)


def what_would_show(
    candidate: Candidate, near: DecisiveNumber, far: DecisiveNumber | None, estimate: float | None, asked: Requirement
) -> tuple[int | None, str]:
    """About how many samples would show it, in 4 of 5 tables, and that in words.

    An error whose limits reach down to 0 is taken to be 0, for its estimate is as large as its noise.
    """
    claim = candidate.claim
    none = far is not None and far.value == 0 and asked.side == "upper"
    centre = 0.0 if none else estimate
    if centre is None or near.kind not in SPREAD or not math.isfinite(near.value):
        return None, ""
    if not asked.met_by(centre) or centre == asked.limit:
        return None, "the estimate itself is beyond the limit: more samples are more likely to show that it is not met"
    smooth = isinstance(claim, Bound) and plain(claim.name).endswith("calibration_error")
    power = _POWER_OF_TRUE_ERROR if smooth else _POWER
    exact = FOUR_OF_FIVE * claim.n * ((near.value - centre) / (asked.limit - centre)) ** power
    if not exact < _MOST_TIMES * claim.n:
        return None, "the estimate is too near to the limit"
    needed = about(exact)
    enough = counted(needed, "sample") + ("" if candidate.group is None else " of that group")
    return needed, f"about {enough} would show that it is met{' if there is no error' if none else ''}"


def _one_minus(level: float) -> float:
    return float(Decimal(1) - Decimal(repr(float(level))))
