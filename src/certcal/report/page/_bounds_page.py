"""The page of bounds on the calibration error: what each claims and assumes, and what it adds up to."""

from __future__ import annotations

from collections.abc import Sequence

from certcal._html import Raw, element, join
from certcal.claims import Bound, short_text
from certcal.report.bounds import bound_name
from certcal.report.explained import CALIBRATION_ERROR
from certcal.report.page._claims import Claim, card, how_computed, relation
from certcal.report.page._curves import STACK, terms_figure
from certcal.report.page._pieces import beside, clipped, note, shown, unbroken
from certcal.report.page._skeleton import Page, Section, document
from certcal.report.provenance import Provenance
from certcal.report.results import BoundedResults

_TITLE = "How large can the true calibration error be?"


def bounds_page(results: BoundedResults, provenance: Provenance | None = None, *, title: str | None = None) -> Page:
    """The page of what ``certcal bound`` has found.

    Parameters
    ----------
    results
        Bounds by method, the one that the page is about first.
    provenance, title
        As for :func:`certcal.report.page.page`.
    """
    first = next(iter(results.bounds.values()))
    named = [(_named(method, bound), bound) for method, bound in results.bounds.items()]
    short = [bound_name(method) for method in results.bounds]
    sections = [
        Section("bounds", "Bounds for the population", join(bounds_part(named, short), note(unbroken(results.notes)))),
        Section("computed", "How each number was computed", how_computed([(*each, ()) for each in named])),
    ]
    return document(
        _TITLE if title is None else title,
        sections,
        results.to_dict(),
        headline=card(first, lead=lead_of(first), meaning=CALIBRATION_ERROR),
        source=results.source,
        description=results.description,
        provenance=provenance,
    )


def _named(method: str, bound: Bound) -> str:
    """What is bounded, and how."""
    name = clipped(bound.name)
    return f"{name[:1].upper()}{name[1:]} ({bound_name(method)})"


def lead_of(claim: Claim) -> str:
    """The words before the number of a claim.

    Examples
    --------
    >>> lead_of(Bound("calibration error", 0.25, "upper", 0.05, 9, ()))
    'Calibration error is'
    """
    name = clipped(claim.name)
    return f"{name[:1].upper()}{name[1:]} is"


def bounds_part(bounds: Sequence[tuple[str, Bound]], short: Sequence[str] | None = None) -> Raw:
    """Bounds with what they assume, beside bars of what the upper ones add up to.

    Parameters
    ----------
    bounds
        What each is called, for people, and the bound.
    short
        What each is called in the figure; by default the same.
    """
    said = "Each bound holds for the population that the samples were drawn from, under its assumptions. "
    level = short_text(max(bound.delta for _, bound in bounds), "upper")
    said += f"Each may fail with a probability of its own, at most {level}"
    said += ": choose one before looking." if len(bounds) > 1 else "."
    entries = [
        element("li", element("strong", shown(name), f": {relation(bound)} {bound.text}."), f" {_assumed(bound)}")
        for name, bound in bounds
    ]
    names = short or [name for name, _ in bounds]
    upper = [(name, bound) for name, (_, bound) in zip(names, bounds, strict=True) if bound.side == "upper"]
    listing = element("ul", entries, class_="assumptions")
    pictures = [
        terms_figure(f"terms-{place}", [bound for _, bound in group], [name for name, _ in group])
        for place, group in enumerate(_told_apart(upper))
    ]
    return join(element("p", said), beside(element("div", pictures), listing) if pictures else listing)


def _told_apart(bounds: Sequence[tuple[str, Bound]]) -> list[list[tuple[str, Bound]]]:
    """Bounds in groups, in their order, none with more terms than there are hatchings."""
    groups: list[list[tuple[str, Bound]]] = []
    terms: set[str] = set()
    for name, bound in bounds:
        if not groups or len(terms | bound.terms.keys()) > len(STACK):
            groups.append([])
            terms = set()
        groups[-1].append((name, bound))
        terms |= bound.terms.keys()
    return groups


def _assumed(bound: Bound) -> str:
    if not bound.assumptions:
        return "It assumes nothing else."
    return f"It assumes that {'; that '.join(clipped(each, 600) for each in bound.assumptions)}."
