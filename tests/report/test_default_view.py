"""An answer that declares its parts has a page, a text and a figure without a view of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from certcal import InputError
from certcal.claims import Estimate
from certcal.result import Command, Curves, Result


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Result):
    question: ClassVar[str] = "Has it drifted?"
    source: str = "<b>weeks.csv</b>"
    notes: tuple[str, ...] = ("Weeks begin on Monday.",)

    def claims(self) -> Sequence[Estimate]:
        return [Estimate("ece", 0.04, 90, {"bins": 15})]

    def contents(self) -> dict[str, Any]:
        return {"ece": 0.04}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        return {"week": [1, 2], "ece": [0.03, 0.04]}

    def parts(self) -> Mapping[str, Any]:
        weeks = {**self.columns(), "remark": ["first", None]}
        again = ["It is measured again by:", Command("certcal measure weeks.csv")]
        return {"Weeks": weeks, "Again": again, "Log": Curves("week", [1, 2], {"ECE": {"all": [0.03, 0.04]}}), "No": []}

    def appendix(self) -> Mapping[str, Any]:
        return {"Settings": {"bins": "15"}}


def test_every_declared_part_is_shown_in_the_page_and_in_the_text() -> None:
    found = Drift().report()
    assert [section.title for section in found.sections] == ["Weeks", "Again", "Log"]
    page, text = found.to_html(), found.to_text(full=True)
    for shown in ("Has it drifted?", "ECE is 4.00% on 90 samples", "0.0300", "first", "certcal measure weeks.csv"):
        assert shown.lower() in page.lower()
        assert shown.lower() in text.lower()
    assert "Weeks begin on Monday." in page
    assert "<b>weeks.csv" not in page


def test_its_curves_are_its_figure() -> None:
    assert [chart.title for chart in Drift().report().charts()] == ["ECE"]
    Drift().plot()


def test_an_answer_without_charts_says_so() -> None:
    class Bare(Drift):
        def parts(self) -> Mapping[str, Any]:
            return {}

    with pytest.raises(InputError, match="no chart"):
        Bare().plot()
