"""A verb's signature and docstring are the only source of its checks, its options and its help."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

import certcal
from certcal import InputError, study
from certcal._base.signature import (
    Option,
    Range,
    Takes,
    defaults_of,
    explanations,
    gather,
    settings_of,
    specs_of,
    verb,
)

if TYPE_CHECKING:
    from nowhere import Unknown  # pyright: ignore

VERBS: list[Any] = [
    *(certcal.measure, certcal.bound, certcal.recalibrate, certcal.apply_map, certcal.export_map),
    *(certcal.compare, certcal.certify),
    *(
        certcal.sample,
        certcal.decide,
        certcal.summarize,
        certcal.attack,
        certcal.verify,
        certcal.train,
        certcal.reproduce,
    ),
    *(study.measure, study.review, study.search, study.convert),
]


@dataclass(frozen=True)
class Brewing:
    cups: int
    minutes: tuple[float, ...]
    sort: Any


@verb(roles=("score",))
def brew(
    leaves: Unknown,
    *,
    cups: Annotated[int, Range(1, 12, zero=True)] = 4,
    minutes: Annotated[float | Iterable[float], Range(0.5), Option("--time", "MIN", ordered=True)] = 3,
    sort: Annotated[Literal["green", "black"] | Unknown | None, Option(metavar="SORT")] = None,
    milk: bool = False,
    name: Annotated[str | None, Takes("name")] = None,
    note: str = "",
) -> Brewing:
    """Brew tea.

    Parameters
    ----------
    leaves
        What is brewed.
    cups, minutes
        How many,
        and how long.

        In Python both are numbers.
    sort
        Which sort. Default: any.

    Returns
    -------
    Brewing
        What was asked.
    """
    return gather(Brewing, locals())


def test_values_arrive_as_one_type_each_defaults_too() -> None:
    assert brew("leaves") == Brewing(4, (3.0,), None)
    assert brew("leaves", cups=0, minutes=[2, 1], sort="green") == Brewing(0, (2.0, 1.0), "green")
    own = object()
    assert brew(leaves="leaves", sort=own).sort is own
    again = brew("leaves", minutes=(1, 2))
    assert brew("leaves", **vars(again)) == again == settings_of(brew, Brewing, minutes=(1, 2))
    assert defaults_of(brew) == {"cups": 4, "minutes": (3.0,), "sort": None, "milk": False, "name": None}


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((), {}, "brew was given no leaves; call it as brew(leaves)"),
        (
            ("a", 3),
            {},
            "brew takes leaves and was given 2 arguments by position; name the others: brew(leaves, name=value)",
        ),
        (("a",), {"cup": 3}, "unexpected argument 'cup'; did you mean 'cups'?"),
        (("a",), {"score": "x"}, "unexpected argument 'score'; name columns as in columns={'score': '…'}"),
        (("a",), {"settings": None}, "unexpected argument 'settings'; there are cups, minutes, sort, milk, name, note"),
        (("a",), {"cups": 13}, "cups: 13 is neither 0 nor a whole number from 1 to 12"),
        (("a",), {"cups": True}, "cups: True is not a whole number"),
        (("a",), {"cups": None}, "cups: None is not a whole number"),
        (("a",), {"minutes": [1, 0.1]}, "minutes: 0.1 is not a number of at least 0.5"),
        (("a",), {"minutes": "3"}, "minutes: '3' is not a number; write 3 without quotes"),
        (("a",), {"sort": "geen"}, "sort: 'geen' is not one of 'green', 'black'; did you mean 'green'?"),
        (("a",), {"milk": 1}, "milk: 1 is not True or False"),
        (("a",), {"name": 3}, "name: 3 is not a text"),
    ],
)
def test_what_does_not_fit_the_signature_is_one_sentence(given: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        brew(*given, **options)
    assert str(caught.value) == message


def test_options_follow_from_annotations_and_the_first_paragraph() -> None:
    specs = specs_of(brew)
    assert list(specs) == [
        "cups",
        "minutes",
        "sort",
        "milk",
        "name",
    ]  # nothing is known of the note, so it is no option
    assert specs["cups"].help == specs["minutes"].help == "How many, and how long."
    assert (specs["minutes"].flag, specs["minutes"].metavar, specs["minutes"].many) == ("--time", "MIN", True)
    assert (specs["sort"].choices, specs["sort"].own, specs["sort"].optional) == (("green", "black"), True, True)


@pytest.mark.parametrize("function", VERBS, ids=lambda each: each.__name__)
def test_every_argument_of_a_verb_is_explained_where_help_shows_it(function: Any) -> None:
    told = explanations(function.__doc__)
    assert {name for name, text in told.items() if text} == {*inspect.signature(function).parameters}
