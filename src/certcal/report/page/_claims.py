"""Claims on a page: what is claimed, of which kind, with which probability, under which assumptions.

Numbers are written as the claims print them, rounded in the safe direction; nothing is rounded here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from certcal._html import Child, Raw, definition_list, element, join, table
from certcal.claims import Bound, Certificate, Estimate, Ledger, round_outward, short_text
from certcal.report.numbers import number
from certcal.report.page._pieces import clipped, details, shown
from certcal.worst_case import CertifiedValue, WorstCase

Claim: TypeAlias = "Estimate | Bound | Certificate | WorstCase | CertifiedValue"

_KINDS = {
    "Estimate": ("Estimate", "a number from these samples; it guarantees nothing about others"),
    "Bound": ("Bound", "holds for the population, except with a stated probability over the draw of the samples"),
    "Certificate": ("Certificate", "holds for every perturbation up to a radius, except with a stated probability"),
    "WorstCase": ("Worst case", "exact: no confidences inside the intervals exceed it, and some reach it"),
    "CertifiedValue": ("Worst case", "follows from the intervals, whatever the confidences inside them"),
}


def text_of(claim: Claim) -> str:
    """The claim's number as it is printed everywhere.

    Examples
    --------
    >>> text_of(Estimate("ece", 0.03978, 100)), text_of(Bound("ece", 0.08121, "upper", 0.05, 9, ()))
    ('0.0398', '0.0813')
    """
    return number(claim.value) if isinstance(claim, Estimate) else claim.text


def kind_of(claim: Claim) -> str:
    """What a claim is, in a word or two.

    Examples
    --------
    >>> kind_of(Estimate("ece", 0.1, 9))
    'Estimate'
    """
    return _KINDS[type(claim).__name__][0]


def badge(claim: Claim) -> Raw:
    """The kind of a claim as a mark: a word and a colour.

    Examples
    --------
    >>> badge(Estimate("ece", 0.1, 9))
    '<span class="badge estimate">Estimate</span>'
    """
    kind = kind_of(claim)
    return element("span", kind, class_=f"badge {kind.lower().replace(' ', '-')}")


def relation(claim: Claim) -> str:
    """How the number is to be read: "at most", "at least", or nothing for an estimate."""
    if isinstance(claim, Estimate):
        return ""
    if isinstance(claim, WorstCase):
        return "at most" if claim.extreme == "highest" else "at least"
    if isinstance(claim, CertifiedValue) and math.isnan(claim.value):
        return ""
    return "at most" if claim.side == "upper" else "at least"


def assumptions(claim: Claim) -> tuple[str, ...]:
    """What a claim rests on, one per entry."""
    if isinstance(claim, Bound | Certificate):
        return claim.assumptions
    if isinstance(claim, Estimate):
        return ()
    return ("every confidence lies inside its given interval",)


def probability(claim: Claim) -> str:
    """With which probability a claim may fail, as a sentence.

    Examples
    --------
    >>> print(probability(Bound("ece", 0.08, "upper", 0.05, 1000, ())))
    It may fail with probability at most 0.05 over the draw of the 1,000 samples.
    """
    if isinstance(claim, Bound):
        level = short_text(claim.delta, "upper")
        return f"It may fail with probability at most {level} over the draw of the {claim.n:,} samples."
    if isinstance(claim, Certificate):
        level = short_text(claim.ledger.spent, "upper")
        return f"It may fail with probability at most {level} over the noise that was drawn."
    if isinstance(claim, Estimate):
        if claim.interval is None:
            return "It describes these samples and says nothing about how it would vary on others."
        level = short_text(claim.interval.level, "lower")
        return f"Its {level} bootstrap interval shows how it varies under resampling; it is no guarantee."
    return "It is exact where the intervals hold; nothing about it is random."


def card(
    claim: Claim, *, lead: Child = None, meaning: str = "", numbers: Child = None, more: Sequence[Claim | str] = ()
) -> Raw:
    """The headline of a page: kind, number, sentence, probability and assumptions.

    Parameters
    ----------
    claim
        What is claimed.
    lead
        Words before the number, such as what is bounded, for people.
    meaning
        What is bounded, in words for those who do not know its name; may be empty.
    numbers
        A small table of numbers that belong to it.
    more
        Further claims, such as the bound for the population, or sentences.
    """
    return element(
        "div",
        _kind(claim),
        element(
            "p",
            element("span", lead) if lead is not None else None,
            element("span", relation(claim)) if relation(claim) else None,
            element("strong", text_of(claim)),
            class_="value",
        ),
        element("p", meaning, class_="note") if meaning else None,
        numbers,
        element("p", shown(claim.sentence, 2000), class_="sentence"),
        element("p", probability(claim)),
        _rests(claim),
        [element("div", _more(each), class_="more") for each in more],
        class_=f"card {kind_of(claim).lower().replace(' ', '-')}",
    )


def _more(each: Claim | str) -> Child:
    if isinstance(each, str):
        return element("p", shown(each, 2000))
    return (
        _kind(each),
        element("p", shown(each.sentence, 2000), class_="sentence"),
        element("p", probability(each)),
    )


def _kind(claim: Claim) -> Raw:
    return element("p", badge(claim), element("span", _KINDS[type(claim).__name__][1], class_="kind"), class_="kinds")


def _rests(claim: Claim) -> Child:
    rests = assumptions(claim)
    if not rests:
        return None
    entries = [element("li", shown(each, 600)) for each in rests]
    return element("p", "It rests on this:", class_="rests"), element("ul", entries, class_="assumptions")


def at_most(bound: Bound, over: str) -> str:
    """The remark beside a bound's number: over which samples, and how often it may fail.

    Examples
    --------
    >>> print(at_most(Bound("ece", 0.08, "upper", 0.05, 1000, ()), "all samples"))
    at most, over all samples
    except with probability 0.05
    """
    return f"at most, over {over}\nexcept with probability {short_text(bound.delta, 'upper')}"


def key_numbers(entries: Iterable[tuple[str, str, str]]) -> Raw:
    """A few numbers in large type: what each is, its text, and a remark (may be empty, or of several lines).

    Examples
    --------
    >>> "0.9310" in key_numbers([("accuracy", "0.9310", "of 1,000 samples")])
    True
    """
    return element(
        "dl",
        [
            element(
                "div",
                element("dt", name),
                element("dd", element("strong", text), [element("span", line) for line in remark.splitlines()]),
            )
            for name, text, remark in entries
        ],
        class_="key-numbers",
    )


def how_computed(claims: Iterable[tuple[str, Claim, Sequence[str]]]) -> Raw:
    """One part per claim that opens on demand: its sentence, settings, terms and remarks.

    Parameters
    ----------
    claims
        Name for people, the claim, and how it was computed in sentences of our own.
    """
    return join([_computed(name, claim, remarks) for name, claim, remarks in claims])


def _computed(name: str, claim: Claim, remarks: Sequence[str]) -> Raw:
    facts: list[tuple[Child, Child]] = [
        (clipped(key.replace("_", " "), 80), _setting(key, value))
        for key, value in getattr(claim, "settings", {}).items()
    ]
    facts.append(("samples", f"{claim.n:,}"))
    if isinstance(claim, Certificate):
        facts.append(("radius", short_text(claim.radius, "lower")))
    terms: Mapping[str, float] = claim.terms if isinstance(claim, Bound) else {}
    return details(
        join(
            badge(claim), " ", shown(name), " ", element("span", relation(claim), " ", text_of(claim), class_="brief")
        ),
        # The sentence of an estimate begins with the name of a function.
        element("p", shown(claim.sentence, 2000), class_="as-written" if isinstance(claim, Estimate) else None),
        [element("p", each) for each in remarks],
        definition_list(facts, class_="facts"),
        terms_table(claim) if terms and isinstance(claim, Bound) else None,
    )


def terms_table(bound: Bound) -> Raw:
    """What a bound adds up to, each term rounded in the bound's own direction."""
    rows = [(shown(name, 80), round_outward(value, bound.side)) for name, value in bound.terms.items()]
    return table(["term", "value"], rows, "What it adds up to", numeric=(1,), row_headers=True)


def _setting(key: str, value: Any) -> str:
    if isinstance(value, float):
        return short_text(value, "upper") if key.startswith(("alpha", "delta")) else f"{value:.6g}"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)  # pyright: ignore
    return text if len(text) <= 200 else f"{text[:200]} …"


def ledger_table(ledger: Ledger) -> Raw:
    """How a failure probability was spent: entries, their sum and the budget.

    Examples
    --------
    >>> "0.0005" in ledger_table(Ledger(0.001).spend("prediction", 0.0005))
    True
    """
    entries: dict[str, Any] = ledger.to_dict()["entries"]
    rows = [(name.replace("_", " "), short_text(alpha, "upper")) for name, alpha in entries.items()]
    rows += [("spent", short_text(ledger.spent, "upper")), ("budget", short_text(ledger.budget, "upper"))]
    return element(
        "div",
        table(["what for", "α"], rows, "How α was spent", numeric=(1,), row_headers=True, class_="ledger"),
        class_="narrow",
    )
