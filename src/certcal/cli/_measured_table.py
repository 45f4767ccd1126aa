"""A table of predictions, measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from certcal._text import counted
from certcal.cli._measuring import Settings, measured, measured_in_pieces
from certcal.cli._progress import Waiting
from certcal.data import PredictionStream
from certcal.data._pieces import DoesNotFit
from certcal.data._table import physical_memory
from certcal.metrics._passes import check_bins
from certcal.report.results import MeasuredResults, Part


def measure_table(
    path: str,
    overrides: Mapping[str, Any],
    by: str | None,
    settings: Settings,
    metrics: tuple[str, ...] = (),
    *,
    memory: int | None = None,
    delta: float | None = None,
) -> MeasuredResults:
    """Read a table of predictions and measure it and its groups, in pieces when it is too large for memory.

    Parameters
    ----------
    path, overrides, by
        The file, which of its columns to use for what, and the column of groups.
    settings, metrics
        How to measure, and what; everything when that is empty.
    memory
        Bytes that a table in memory, or what is kept of one in pieces, may take; None for half of this machine's.
    delta
        Also bound the true calibration error, except with this probability; None not to. Weighted samples and tables
        in pieces have no bounds.
    """
    with Waiting() as waiting:
        waiting.stage("reading")
        limit = memory if memory is not None else (physical_memory() or 0) // 2 or None
        stream = PredictionStream(path, overrides, by=by, memory=limit)
        if limit is not None:
            classes = None if stream.layout.kind == "confidence" else stream.width
            check_bins(settings.bins, classes, limit, weighted=stream.layout.weight is not None)
        # The table and one copy of it.
        if limit is None or 2 * stream.bytes_in_memory() <= limit:
            try:
                return _at_once(stream, settings, metrics, waiting, delta)
            except DoesNotFit:  # text and what is compressed tell their size only as they are read
                pass
        return _in_pieces(stream, settings, metrics, waiting, limit)


def _at_once(
    stream: PredictionStream, settings: Settings, metrics: tuple[str, ...], waiting: Waiting, delta: float | None
) -> MeasuredResults:
    """Measure a table, and its groups when there are any, in memory."""
    waiting.stage("reading", stream.rows)
    loaded = stream.load(advance=waiting.advance)
    for_groups = settings.bootstrap is not None  # unasked, the metrics of groups are not resampled: it takes its time
    settings = settings.of(len(loaded.predictions))
    waiting.stage("measuring", 1 + len(loaded.group_names))
    whole = measured("all", loaded.predictions, settings, metrics)
    waiting.advance(1)
    parts: list[Part] = []
    for name, predictions in loaded.groups():
        parts.append(measured(name, predictions, settings, metrics, intervals=for_groups))
        waiting.advance(1)
    found = _results(stream, settings, whole, loaded.predictions.classes, parts)
    if delta is None:
        return found
    from certcal.cli._bounding import page_bounds

    waiting.stage("bounding")
    bounds = page_bounds(loaded.predictions, delta=delta, bins=settings.diagram_bins, closed=settings.closed)
    return replace(found, bounds=bounds, conventions={**found.conventions, "delta": delta})


def _in_pieces(
    stream: PredictionStream, settings: Settings, metrics: tuple[str, ...], waiting: Waiting, memory: int | None
) -> MeasuredResults:
    """Measure a table that is too large for memory."""
    passes = itertools.count(1)
    classes: set[int | None] = set()
    names: list[str] = []

    def pieces() -> Iterator[Any]:
        waiting.stage(f"pass {next(passes)}", stream.rows)
        for piece in stream if stream.by is None else stream.in_groups(names):
            predictions = piece[0] if isinstance(piece, tuple) else piece
            classes.add(predictions.classes)
            yield piece
            waiting.advance(len(predictions))

    settings = settings.of(stream.rows)
    whole, parts = measured_in_pieces(pieces, names, settings, metrics, memory)
    return _results(stream, settings, whole, classes.pop(), parts, streamed=True)


def _results(
    stream: PredictionStream,
    settings: Settings,
    whole: Part,
    classes: int | None,
    parts: Sequence[Part] = (),
    *,
    streamed: bool = False,
) -> MeasuredResults:
    told = "" if classes is None else f", {classes} classes"
    text = f"{counted(whole.n, 'sample')}{told}; {stream.layout.description}"
    if streamed:
        text += "; read in pieces, without the metrics that need all samples at once"
    conventions = settings.conventions | {"streamed": streamed}
    if settings.bootstrap and streamed:
        conventions["without_interval"] = list(dict.fromkeys(row.name for row in whole.rows if row.interval is None))
    return MeasuredResults(
        source=str(stream.table.path),
        about={"kind": stream.layout.kind, "classes": classes, "columns": stream.layout.to_dict()},
        description=text,
        whole=whole,
        by=stream.by,
        parts=parts,
        conventions=conventions,
    )
