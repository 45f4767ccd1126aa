"""Bounds on the true calibration error: the words and the layout of Bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from certcal._text import capital
from certcal.claims import Bound, in_full, short_text
from certcal.report.charts import MOST_SERIES, Chart, Stack, covering
from certcal.report.document import Block, Claim, Column, Figures, Listing, Report, Section, Table
from certcal.report.names import CALIBRATION_ERROR

if TYPE_CHECKING:
    from certcal.verbs.bound import Bounds

_CLASSWISE = "classwise_"
_NAMES = {"lipschitz": "Lipschitz", "binned_lower": "binned, from below"}
_PERTURBED = "These are bounds for the classifier that answers with perturbed scores: perturb those that are used, too."


def view(found: Bounds) -> Report:
    """The report of bounds."""
    level = short_text(found.conventions["delta"], "upper")
    several = len(found.bounds)
    notes = [
        "Numbers are rounded in the safe direction. The true error can be above the binned one, never below it.",
        f"Each bound fails with probability at most {level} on its own: choose one before looking, since the best of "
        f"these {several} fails with up to {several} times that probability.",
    ]
    if "perturb" in found.conventions:
        notes.append(_PERTURBED)
    first = next(iter(found.bounds.values()))
    named = {bound_name(method): bound for method, bound in found.bounds.items()}
    table = [_table(found.bounds)] if several > 1 else []
    return Report(
        "How large can the true calibration error be?",
        [bound_claim(first)],
        [Section("Bounds for the population", [*table, *bound_blocks(named)], brief=True)],
        [Section("Claims in full", [Listing([in_full(claim) for claim in found.claims()])])],
        found.source,
        found.description,
        notes,
    )


def charts(found: Bounds) -> Sequence[Chart]:
    """What the upper bounds add up to."""
    return terms_charts({bound_name(method): bound for method, bound in found.bounds.items()})[:1]


def bound_name(method: str) -> str:
    """What a method is called among people."""
    short = method.removeprefix(_CLASSWISE)
    name = _NAMES.get(short, short.replace("_", " "))
    return name if short == method else f"{name}, mean over classes"


def bound_claim(bound: Bound, meaning: str = CALIBRATION_ERROR) -> Claim:
    """The claim of a bound, for a headline."""
    over = "" if "the population" in bound.name else "in the population"
    if "bins" in bound.settings:  # a binned error says nothing without them
        over = f"with {bound.settings['bins']:,} bins"
    return Claim.of(bound, capital(bound.name), over=over, meaning=meaning)


def _table(bounds: Mapping[str, Bound]) -> Table:
    rows = [
        (bound_name(method), bound.name, f"{'≤' if bound.side == 'upper' else '≥'} {bound.text}")
        for method, bound in bounds.items()
    ]
    return Table((Column("method"), Column("quantity"), Column("bound")), rows)


def bound_blocks(bounds: Mapping[str, Bound]) -> list[Block]:
    """Bars of what upper bounds add up to, by their names, and the claims that follow the first, the headline's."""
    pictures = terms_charts(bounds)
    claims = [bound_claim(bound, "") for bound in list(bounds.values())[1:]]
    return [*([Figures(pictures)] if pictures else []), *claims]


def terms_charts(bounds: Mapping[str, Bound], title: str = "Terms of the bounds") -> list[Chart]:
    """Bars of what upper bounds add up to, in as many charts as keep their terms apart."""
    groups: list[dict[str, Bound]] = []
    terms: set[str] = set()
    for name, bound in bounds.items():
        if bound.side != "upper" or not bound.terms:
            continue
        if not groups or len(terms | bound.terms.keys()) > MOST_SERIES:
            groups.append({})
            terms = set()
        groups[-1][name] = bound
        terms |= bound.terms.keys()
    return [_stack(group, title) for group in groups]


def _stack(bounds: Mapping[str, Bound], title: str) -> Chart:
    sums = [math.fsum(bound.terms.values()) for bound in bounds.values()]
    axis = covering([*(bound.value for bound in bounds.values()), *sums], "value")
    said = "Each bar adds up the terms of one bound; the number at its end is the bound, rounded up."
    if any(total > 1 >= bound.value for total, bound in zip(sums, bounds.values(), strict=True)):
        said += " Where a bar goes beyond 1, the bound is 1."
    stack = Stack(
        list(bounds), [dict(each.terms) for each in bounds.values()], [each.text for each in bounds.values()], axis
    )
    described = " ".join(f"{name}: at most {bound.text}." for name, bound in bounds.items())
    return Chart(title, described, [stack], said)
