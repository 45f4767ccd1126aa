"""Views turn answers into reports: one for all that declare their parts, and files for layouts of their own.

A file has a function ``view(result, **options)``, and may have ``charts(result)``: what ``result.plot()`` draws, by
default the charts of the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Any, cast

from certcal._base.checks import InputError
from certcal._base.signature import check_arguments
from certcal._base.text import capital, counted
from certcal.claims import Estimate
from certcal.report.charts import Chart, curves
from certcal.report.document import Block, Blocks, Claim, Column, Facts, Figures, Report, Section, Table, Text, flat
from certcal.report.provenance import Provenance
from certcal.result import Command, Curves, Result
from certcal.verdict import Judgement, Requirements, Verdict


def view(found: Result) -> Report:
    """The report of any answer, from what it declares; curves of one chart are its picture."""
    parts = {title: (part, flat(_as_blocks(part))) for title, part in found.parts().items()}
    drawn = [title for title, (part, _) in parts.items() if isinstance(part, Curves) and len(part.charts) == 1]
    first = drawn[0] if drawn else ""
    return Report(
        found.question or f"What does this {type(found).__name__} say?",
        flat(map(_as_blocks, found.top())),
        [
            Section(title, blocks, brief=not isinstance(part, Curves), pictured=title == first)
            for title, (part, blocks) in parts.items()
        ],
        [Section(title, _as_blocks(part)) for title, part in found.appendix().items()],
        notes=getattr(found, "notes", ()),
        picture=parts[first][1] if first else (),
    )


def _as_blocks(content: Any) -> Blocks:
    match content:
        case None:
            return None
        case Command():
            return Text(content, "code")
        case str():
            return Text(content)
        case Table() | Figures():
            return content
        case Curves():
            return Figures([_chart_of_curves(content, title) for title in content.charts])
        case Mapping():
            named = cast("Mapping[str, Any]", content)
            return (
                _table_of_columns(named)
                if any(isinstance(each, list) for each in named.values())
                else Facts([*named.items()])
            )
        case (claim, str(what), str(over)) if not isinstance(claim, str):
            return Claim.of(claim, what, over=over, settings=False)
        case tuple() | list():
            return [_as_blocks(each) for each in cast("Sequence[Any]", content)]
        case _:
            return Claim.of(content, capital(content.name), over=f"on {counted(content.n, 'sample')}")


def _table_of_columns(columns: Mapping[str, Sequence[Any]]) -> Table:
    def kind(values: Sequence[Any]) -> str:
        known: set[type] = {type(value) for value in values if value is not None}
        return "count" if known == {int} else "estimate" if known and known <= {int, float} else "text"

    heads = [Column(name, kind(values)) for name, values in columns.items()]
    return Table(heads, list(zip(*columns.values(), strict=True)))


def _chart_of_curves(drawn: Curves, title: str) -> Chart:
    series = drawn.charts[title]
    said = " ".join(f"{name}: {values[-1]:.4f} at the last {drawn.x_label}." for name, values in series.items())
    return curves(title, drawn.x, series, x_label=drawn.x_label, y_label=title.lower(), description=said)


def report(
    result: Result,
    *,
    title: str | None = None,
    require: Requirements = (),
    about: Mapping[str, str] | None = None,
    provenance: Provenance | None = None,
    **options: Any,
) -> Report:
    """The report of any result: its own view, with what all reports share."""
    own_view = import_module(result.view).view
    check_arguments(options, ["title", "require", "about", "provenance", *list(signature(own_view).parameters)[1:]])
    if about is not None and not hasattr(about, "items"):
        raise InputError(f"{about!r} has no names", argument="about", remedy="map names to texts, as in {'owner': '…'}")
    made: Report = own_view(result, **options)
    origin = result.provenance() if provenance is None else provenance
    own = {"title": title, "about": dict(about or {})} if title is not None or about else {}  # the author's words
    verdict = None
    if require:
        verdict = result.verdict(require)
        headline = _judged_first(made.headline, verdict.decisive, result.candidates()[0].claim)
        made = made.of(headline=headline, appendix=[_judged_groups(verdict), *made.appendix])
    return replace(
        made,
        source=made.source or getattr(result, "source", ""),
        description=made.description or getattr(result, "description", ""),
        title=made.title if title is None else title,
        about=dict(about or {}),
        verdict=verdict,
        provenance=origin,
        data={**(made.data or result.document(provenance=origin)), **({"page": own} if own else {})},
        answer=result.answer,
    )


def _judged_first(headline: Sequence[Block], one: Judgement, own: Any) -> list[Block]:
    """A headline with the claim that was judged; what stood there is a sentence below, if it was another number.

    An estimate is on the scale above, with all that is known of it.
    """
    first = next((block for block in headline if isinstance(block, Claim)), None)
    if first is None or own is not one.claim:
        judged: list[Block] = [] if isinstance(one.claim, Estimate) else [Claim.judged(one)]
        judged += [] if first is None else [Text(f"{first.sentence} {_why_numbers_differ(one, own)}".rstrip())]
    else:
        judged = [first.judged_as(one)]
    return [*(block for block in headline if block is not first), *judged]


def _judged_groups(verdict: Verdict) -> Section:
    """Every group of requirements on every group, of which the verdict names the worst."""
    rows = verdict.table(groups=True) if len(verdict.judgements) > len(verdict.worst_first) else ()
    columns = [Column("verdict"), *(Column(name, wrap=True) for name in ("requirement", "where", "found", "limit"))]
    told = [(row.verdict, row.requirement, row.where, row.found, row.limit) for row in rows]
    return Section("Requirements by group", Table(columns, told) if rows else None)


def _why_numbers_differ(one: Judgement, own: Any) -> str:
    """Why a number below the one that was judged differs from it."""
    if one.group is not None:
        return "This is about all samples, the requirement about groups."
    if own.name == one.claim.name:
        return "This is the same at other settings than those judged."
    if own.name == "calibration error" and "binned" in one.claim.name:
        return "This counts what averages out inside the bins, too; the requirement is about the bins."
    return ""


def plot(result: Result, ax: Any = None) -> Any:
    """The chart or charts of any result as a matplotlib figure."""
    from certcal.report.mpl import draw

    module = import_module(result.view)
    charts = module.charts(result) if hasattr(module, "charts") else report(result).charts()
    if not charts:
        raise InputError("this answer has no chart; save it as a page (.html), a text (.txt) or numbers (.json, .csv)")
    return draw(charts, ax=ax)
