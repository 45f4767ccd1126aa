"""Views: one file per answer, with a function ``view(result, **options)`` that turns it into a report.

The words and the layout of an answer live there and nowhere else. A view may also have ``chart(result)``: the chart, or
charts, that ``result.plot()`` draws; by default those of the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal._settings import Spec, check_arguments, check_setting
from certcal.report.document import Report, verdict
from certcal.report.provenance import Provenance

if TYPE_CHECKING:
    from certcal.result import Result

# A limit says what must not be exceeded, which nobody wants of these.
_MORE_IS_BETTER = frozenset(("accuracy", "auroc", "brier_resolution", "harmonic_calibration_score"))


def report(
    result: Result,
    *,
    title: str | None = None,
    limit: float | None = None,
    about: Mapping[str, str] | None = None,
    provenance: Provenance | None = None,
    **options: Any,
) -> Report:
    """The report of any result: its own view, with what all reports share."""
    view = import_module(result.view).view
    check_arguments(options, ["title", "limit", "about", "provenance", *list(signature(view).parameters)[1:]])
    if limit is not None:
        limit = check_setting("limit", limit, Spec("", "number"))
    if about is not None and not hasattr(about, "items"):
        raise InputError(f"{about!r} has no names", argument="about", remedy="map names to texts, as in {'owner': '…'}")
    made: Report = view(result, **options)
    claims = result.claims()
    if limit is not None and not (claims and hasattr(claims[0], "value") and hasattr(claims[0], "to_dict")):
        raise InputError("this answer has no number that a limit can be held against", argument="limit")
    if limit is not None and claims[0].name in _MORE_IS_BETTER:
        raise InputError(f"it is what {claims[0].name} must not exceed, and more of that is better", argument="limit")
    return replace(
        made,
        title=made.title if title is None else title,
        about=dict(about or {}),
        verdict=None if limit is None else verdict(claims[0], limit),
        provenance=Provenance.here(seeds=result.seeds) if provenance is None else provenance,
        data=made.data or result.document(),
    )


def plot(result: Result, ax: Any = None) -> Any:
    """The chart or charts of any result as a matplotlib figure."""
    from certcal.report.mpl import draw

    module = import_module(result.view)
    charts = module.charts(result) if hasattr(module, "charts") else report(result).charts()
    if not charts:
        raise InputError("this answer has no chart; save it as a page (.html), a text (.txt) or numbers (.json, .csv)")
    return draw(charts, ax=ax)
