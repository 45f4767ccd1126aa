"""Views: one file per answer, with a function ``view(result, **options)`` that turns it into a report.

The words and the layout of an answer live there and nowhere else. A view may also have ``chart(result)``: the chart, or
charts, that ``result.plot()`` draws; by default those of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from certcal._base.checks import InputError
from certcal._base.settings import check_arguments
from certcal.report.document import Block, Claim, Report, Text
from certcal.report.provenance import Provenance
from certcal.verdict import Judgement, judge

if TYPE_CHECKING:
    from certcal.result import Result


def report(
    result: Result,
    *,
    title: str | None = None,
    require: str | Iterable[str] = (),
    about: Mapping[str, str] | None = None,
    provenance: Provenance | None = None,
    **options: Any,
) -> Report:
    """The report of any result: its own view, with what all reports share."""
    view = import_module(result.view).view
    check_arguments(options, ["title", "require", "about", "provenance", *list(signature(view).parameters)[1:]])
    if about is not None and not hasattr(about, "items"):
        raise InputError(f"{about!r} has no names", argument="about", remedy="map names to texts, as in {'owner': '…'}")
    made: Report = view(result, **options)
    origin = result.provenance() if provenance is None else provenance
    verdict = None
    if require:
        candidates = result.candidates()
        verdict = judge(candidates, require)
        made = made.of(headline=_judged_first(made.headline, verdict.decisive, candidates[0].claim))
    return replace(
        made,
        title=made.title if title is None else title,
        about=dict(about or {}),
        verdict=verdict,
        provenance=origin,
        data=made.data or result.document(provenance=origin),
    )


def _judged_first(headline: Sequence[Block], one: Judgement, own: Any) -> list[Block]:
    """A headline with the number that was judged; what stood there is a sentence below, if it was another number."""
    first = next((block for block in headline if isinstance(block, Claim)), None)
    rest = [block for block in headline if block is not first]
    if first is None or own is not one.claim:
        below = [] if first is None else [Text(f"{first.sentence} {_apart(one, own)}")]
        return [Claim.judged(one), *below, *rest]
    return [first.judged_as(one), *rest]


def _apart(one: Judgement, own: Any) -> str:
    """Why a number below the one that was judged differs from it."""
    if own.name == one.claim.name:
        return "This is the same at other settings than those judged."
    if own.name == "calibration error" and "binned" in one.claim.name:
        return "This counts what averages out inside the bins, too; the requirement is about the bins."
    return "The requirement is about another number."


def plot(result: Result, ax: Any = None) -> Any:
    """The chart or charts of any result as a matplotlib figure."""
    from certcal.report.mpl import draw

    module = import_module(result.view)
    charts = module.charts(result) if hasattr(module, "charts") else report(result).charts()
    if not charts:
        raise InputError("this answer has no chart; save it as a page (.html), a text (.txt) or numbers (.json, .csv)")
    return draw(charts, ax=ax)
