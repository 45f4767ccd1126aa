"""Bounds on the true calibration error: the words and the layout of Bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from certcal._base.text import capital
from certcal.claims import Bound, TwoSidedBound, in_full, short_text
from certcal.report.charts import MOST_SERIES, Chart, Stack, covering
from certcal.report.document import (
    Block,
    Cell,
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
from certcal.report.names import CALIBRATION_ERROR, calibration_error

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
    blocks = [_table(found), *bound_blocks(named), _both_sides(found.interval)]
    sections = [Section("Bounds for the population", blocks, brief=True)]
    if found.whole.unproved:
        claims: list[Block] = [Claim.of(each, capital(each.name)) for each in found.whole.unproved.values()]
        sections.append(Section("Published formula, not a bound", claims, brief=True))
    if found.groups:
        sections.append(Section("Groups", [_group_table(found)], brief=True))
    return Report(
        "How large can the true calibration error be?",
        [bound_claim(first, calibration_error(found.about.get("task")))],
        sections,
        [Section("Claims in full", [Listing([in_full(claim) for claim in found.claims()], 1000)])],
        found.source,
        found.description,
        _notes(found),
    )


def _notes(found: Bounds) -> list[str]:
    """How numbers are rounded, and which of them hold together."""
    level, groups = short_text(found.conventions["delta"], "upper"), len(found.groups)
    notes = ["Numbers are rounded in the safe direction. The true error can be above the binned one, never below it."]
    if found.conventions["joint"]:
        notes.append(f"All bounds here hold together, except with probability at most {level}: each has a share of it.")
    else:
        several = len(found.bounds) + 1
        notes.append(
            f"Each bound fails with probability at most {level} on its own: choose one before looking, since the best "
            f"of these {several} fails with up to {several} times that probability."
        )
        if groups:
            share = short_text(next(iter(found.groups[0].bounds.values())).delta, "upper")
            notes.append(
                f"Bounds of one kind hold together for all {groups:,} groups, except with probability at most {level}: "
                f"each group's fails with probability at most {share}."
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
    over = "" if "the population" in bound.name else "in the population"
    if "bins" in bound.settings:  # a binned error says nothing without them
        over = f"with {bound.settings['bins']:,} bins"
    return Claim.of(bound, capital(bound.name), over=over, meaning=meaning)


def _table(found: Bounds) -> Table:
    rows = [(bound_name(method), bound.name, _relation(bound)) for method, bound in found.bounds.items()]
    rows.append(("binned, both sides", found.interval.name, found.interval.text))
    return Table((Column("method"), Column("quantity"), Column("bound")), rows)


def _relation(bound: Bound) -> str:
    return f"{'≤' if bound.side == 'upper' else '≥'} {bound.text}"


def _both_sides(found: TwoSidedBound) -> Claim:
    """Both sides at once as a claim of their own."""
    value = f"between {found.lower.text} and {found.upper.text}"
    sentence = f"{capital(found.name)} is {value} with {found.settings['bins']:,} bins."
    settings = settings_of(found)
    return Claim("Bound", sentence, value, probability_of(found), found.assumptions, settings)


def _group_table(found: Bounds) -> Table:
    """A line per group with all its bounds."""
    parts = (found.whole, *found.groups)
    methods = list(dict.fromkeys(method for part in parts for method in part.bounds))
    columns = [Column(found.by or "group"), Column("samples", "count", priority=1)]
    columns += [Column(bound_name(method), priority=place) for place, method in enumerate(methods)]
    columns.append(Column("binned, both sides", priority=len(methods)))
    rows: list[list[Cell]] = []
    for part in parts:
        texts = [_relation(part.bounds[method]) if method in part.bounds else "–" for method in methods]
        rows.append([part.name, part.n, *texts, part.interval.text])
    return Table(columns, rows, "Bounds per group", fit="split")


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
