"""Bounds on the true calibration error: the words and the layout of Bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from certcal._base.rounding import claim_text, is_share, times_text
from certcal._base.text import capital
from certcal.claims import Bound, TwoSidedBound, in_full, sure_text
from certcal.report.charts import MOST_SERIES, Chart, Stack, covering, with_percent_ticks
from certcal.report.document import (
    Block,
    Claim,
    Column,
    Figures,
    Listing,
    Report,
    Section,
    Table,
    probability_of,
    settings_of,
)
from certcal.report.names import CALIBRATION_ERROR, calibration_error, per_group
from certcal.report.views.groups import bounded_groups, group_head
from certcal.verbs.bound import bound_in_words

if TYPE_CHECKING:
    from certcal.verbs.bound import Bounds

_CLASSWISE = "classwise_"
_NAMES = {
    "lipschitz": "Lipschitz",
    "binned_lower": "binned, from below",
    "ks": "KS",
    "kuiper": "Kuiper",
}
_PERTURBED = "These are bounds for the classifier that answers with perturbed scores: perturb those that are used, too."


def view(found: Bounds) -> Report:
    """The report of bounds."""
    first = next(iter(found.bounds.values()))
    named = {bound_name(method): bound for method, bound in found.bounds.items()}
    unproved = [Claim.of(each, capital(each.name)) for each in found.whole.unproved.values()]
    bounds = f"with {found.interval.settings['bins']:,} bins"
    return Report(
        "How large can the true calibration error be?",
        [bound_claim(first, calibration_error(found.about.get("task")))],
        [
            Section(
                "Bounds for the population",
                [_table_of_bounds(found), bound_blocks(named, 1), two_sided_claim(found.interval, bounds)],
                brief=True,
            ),
            Section("Published formula, not a bound", unproved, brief=True),
            Section("Groups", bounded_groups(found, _group_table(found)) if found.groups else None, brief=True),
        ],
        [claims_in_full(found.claims())],
        notes=_notes_of_bounds(found),
        picture=[Figures(charts(found))] if charts(found) else (),
    )


def _notes_of_bounds(found: Bounds) -> list[str]:
    sure, groups = sure_text(found.conventions["delta"]), len(found.groups)
    notes = ["Numbers are rounded in the safe direction. The true error can be above the binned one, never below it."]
    if found.conventions["joint"]:
        notes.append(f"All bounds here hold together ({sure}): they share what they may fail with.")
    else:
        several = len(found.bounds) + 1
        notes.append(
            f"Each bound is {sure} on its own: choose one before looking, since the "
            f"best of these {several} may be wrong {several} times as often."
        )
        if groups:
            share = times_text(next(iter(found.groups[0].bounds.values())).delta)
            notes.append(
                f"Bounds of one kind hold for all {groups:,} groups together ({sure}): each group's fails {share}."
            )
    if "largest weight" in next(iter(found.bounds.values())).settings:
        notes.append("Samples have weights: only the binned error of the weighted population has a bound.")
    return notes + ([_PERTURBED] if "perturb" in found.conventions else [])


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
    _, what, over = bound_in_words(bound)
    return Claim.of(bound, what, over=over, meaning=meaning)


def _table_of_bounds(found: Bounds) -> Table:
    rows = [(bound_name(method), bound.name, _relation(bound)) for method, bound in found.bounds.items()]
    rows.append(("binned, both sides", found.interval.name, claim_text(found.interval)))
    return Table((Column("method"), Column("quantity"), Column("bound")), rows)


def _relation(bound: Bound) -> str:
    return f"{'≤' if bound.side == 'upper' else '≥'} {claim_text(bound)}"


def two_sided_claim(bound: TwoSidedBound, over: str = "") -> Claim:
    """The claim of a bound on both sides."""
    value = f"between {claim_text(bound.lower)} and {claim_text(bound.upper)}"
    sentence = f"{capital(bound.name)} is {value} {over}".rstrip() + "."
    return Claim("Bound", sentence, value, probability_of(bound), bound.assumptions, settings_of(bound))


def claims_in_full(claims: Iterable[Any]) -> Section:
    """Every claim in one text, for an appendix."""
    return Section("Claims in full", Listing([in_full(claim) for claim in claims], 1000))


def _group_table(found: Bounds) -> Table:
    parts = (found.whole, *found.groups)
    methods = list(dict.fromkeys(method for part in parts for method in part.bounds))
    columns = {method: Column(bound_name(method), priority=place) for place, method in enumerate(methods)}
    columns["both"] = Column("binned, both sides", priority=len(methods))
    lines = [
        (
            part.name,
            part.n,
            dict.fromkeys(methods, "–")
            | {method: _relation(bound) for method, bound in part.bounds.items()}
            | {"both": claim_text(part.interval)},
        )
        for part in parts
    ]
    head = group_head(found.groupings, found.by)
    return per_group(head, columns, lines, "Bounds per group", fit="split")


# What each bound calls the error that is seen on the samples is one colour.
_SEEN = {"gap": "error on the samples", "largest error on the samples": "error on the samples"}


def bound_blocks(bounds: Mapping[str, Bound], drawn: int = 0) -> list[Block]:
    """Bars of what upper bounds add up to but for those drawn, and the claims that follow the first, the headline's."""
    pictures = terms_charts(bounds)[drawn:]
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
    return [_chart_of_terms(group, title) for group in groups]


def _chart_of_terms(bounds: Mapping[str, Bound], title: str) -> Chart:
    sums = [math.fsum(bound.terms.values()) for bound in bounds.values()]
    axis = covering([*(bound.value for bound in bounds.values()), *sums], "value")
    if all(is_share(bound.name) for bound in bounds.values()):
        axis = with_percent_ticks(axis)
    said = "Each bar adds up the terms of one bound; the number at its end is the bound, rounded up."
    if any(total > 1 >= bound.value for total, bound in zip(sums, bounds.values(), strict=True)):
        said += " Where a bar goes beyond 1, the bound is 1."
    stack = Stack(
        list(bounds),
        [{_SEEN.get(term, term): size for term, size in each.terms.items()} for each in bounds.values()],
        list(map(claim_text, bounds.values())),
        axis,
    )
    described = " ".join(f"{name}: at most {claim_text(bound)}." for name, bound in bounds.items())
    return Chart(title, described, [stack], said)
