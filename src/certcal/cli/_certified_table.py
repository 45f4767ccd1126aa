"""A table of intervals, certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from certcal.claims import short_text
from certcal.cli._progress import Waiting
from certcal.cli._rivals import prepare_rivals, run_methods
from certcal.data import IntervalTable, read_intervals
from certcal.report.certificates import terms_text, verdict_text
from certcal.report.results import BRACKETS, CertifiedResults, Line, Method
from certcal.worst_case import certify


def certify_table(
    table: Path, columns: Mapping[str, str | None], settings: Mapping[str, Any], *, compare: bool
) -> CertifiedResults:
    """Read a table and certify each of its radii and groups.

    Parameters
    ----------
    table, columns
        The file, and which of its columns to use for what.
    settings
        Bins, closed, delta and alpha; alpha is None to take what the table says, or else 0.
    compare
        Whether to run the published methods too.
    """
    lines: list[Line] = []
    methods: list[Method] = []
    with Waiting() as waiting:
        if compare:
            waiting.stage("preparing the comparison")
            prepare_rivals()
        waiting.stage("reading")
        loaded = read_intervals(table, columns, alpha=settings["alpha"] is None)
        settings = {**settings, "alpha": (loaded.alpha or 0.0) if settings["alpha"] is None else settings["alpha"]}
        waiting.stage("certifying")
        for part in loaded.parts():
            summary = certify(part.lower, part.upper, part.correct, certified=part.certified, **settings)
            lines.append(Line(part.radius, part.group, summary))
            if compare and part.group is None and summary.n_certified:
                methods += run_methods(part, settings["bins"], settings["closed"], waiting)
    last = [line for line in lines if line.group is None][-1]
    return CertifiedResults(
        source=str(loaded.path),
        n=len(loaded),
        about={
            "columns": loaded.layout.to_dict(),
            **({} if loaded.origin is None else {"certificates": loaded.origin.to_dict()}),
        },
        description=_description(loaded, lines),
        lines=lines,
        by=loaded.layout.group,
        methods=methods,
        conventions=settings,
        claims=_claims(last, with_terms=len(lines) > 1),
        notes=_notes(loaded, lines, settings),
    )


def _description(loaded: IntervalTable, lines: Sequence[Line]) -> str:
    count = f"{len(loaded):,} {'row' if len(loaded) == 1 else 'rows'}"
    if len(lines) == 1:
        summary, radius = lines[0].summary, lines[0].radius
        count += "" if radius is None else f" at radius {radius}"
        count += ", all certified" if summary.n_certified == summary.n else f", {summary.n_certified:,} certified"
    made = "" if loaded.origin is None else f"; {loaded.origin.description}"
    return f"{count}; {loaded.layout.description}{made}"


def _claims(line: Line, *, with_terms: bool) -> list[str]:
    """The headline claim of a line, that about the population (its terms where no table shows them), and a verdict."""
    bound = line.summary.population or line.summary.population_all
    start = "" if line.radius is None else f"At radius {line.radius}, "
    terms = [f"Its terms: {terms_text(bound)}."] if with_terms else []
    verdict = verdict_text(line.summary.information, line.radius)
    return [f"{start}{line.summary.headline}", f"{start}{bound.sentence}", *terms, verdict]


def _notes(loaded: IntervalTable, lines: Sequence[Line], settings: Mapping[str, Any]) -> str:
    text = common_notes(lines, settings)
    if settings["alpha"] == 0:
        text += " The intervals are taken as certain; if each may fail with some probability, give it with --alpha."
    else:
        column = loaded.layout.alpha
        said = "" if column is None else f", the largest in column {column!r}"
        text += " Numbers on these samples hold where their intervals do; each may fail with probability "
        text += f"{float(short_text(settings['alpha'], 'upper')):g}{said}."
        text += " Rows that the verifier abstained on belong in the table, with certified = 0."
    if loaded.origin is not None:
        text += f" The intervals are {loaded.origin.sentence}."
    return text


def common_notes(lines: Sequence[Line], settings: Mapping[str, Any]) -> str:
    """What is to be known of certified values wherever their intervals come from."""
    text = f"Bins are {BRACKETS[str(settings['closed'])]}. Numbers are rounded in the safe direction."
    if len(lines) > 1:
        text += f" ECE has {settings['bins']} bins; its bound is for the population, and each line's may fail with "
        text += f"probability {short_text(settings['delta'], 'upper')} of its own: choose a line before looking."
    if any(line.summary.n_certified < line.summary.n for line in lines):
        text += " Over all samples, those that are not certified may have any confidence and be right or wrong."
    return text
