"""``certcal measure``: the calibration of a table of predictions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import column_options, measuring_options, memory_option, output_options
from certcal.data._layout import OPTIONS

if TYPE_CHECKING:
    from certcal.cli._measuring import Settings
    from certcal.cli._progress import Waiting
    from certcal.data import PredictionStream
    from certcal.report.results import MeasuredResults, Part


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal measure predictions.csv", "every metric, with a reliability diagram"),
        ("certcal measure scores.parquet --confidence score --correct won", "say which columns to use"),
        ("certcal measure predictions.npz --bins 5,10,15,20", "several numbers of bins"),
        ("certcal measure predictions.csv --by hospital", "each group beside the whole"),
        ("certcal measure predictions.csv --bootstrap 1000 --method bca", "with intervals"),
        ("certcal measure predictions.csv -o diagram.svg -o numbers.json", "write files as well"),
        ("certcal measure predictions.csv --json | jq '.measurements[0].value'", "for scripts"),
    ),
)
@click.argument("table", type=click.Path())
@column_options
@measuring_options
@memory_option
@output_options
def measure(
    table: str,
    by: str | None,
    memory: int | None,
    metrics: tuple[str, ...],
    explain: bool,
    no_diagram: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Measure the calibration of the predictions in TABLE.

    TABLE is Parquet, CSV, TSV, npz or Arrow. Columns are found by their names: a confidence with whether it was
    correct (or with a prediction and a label, or a 0/1 outcome), or probabilities or logits per class with a label.
    Options name others.
    """
    from certcal.cli._measuring import Settings, check_metrics
    from certcal.cli._outputs import check_outputs, write_outputs
    from certcal.cli._progress import Waiting
    from certcal.data import PredictionStream

    check_metrics(metrics)
    paths = check_outputs(outputs, force=force, source=Path(table))
    overrides = {role: options.pop(role) for role in OPTIONS}
    settings = Settings(**options)
    with Waiting() as waiting:
        waiting.stage("reading")
        stream = PredictionStream(table, overrides, by=by)
        if _fits(stream, memory):
            results = _at_once(stream, settings, metrics, waiting)
        else:
            results = _in_pieces(stream, settings, metrics, waiting)
    write_outputs(results, paths, force=force)
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        from certcal.cli._show import show

        show(results, diagram=not no_diagram, explain=explain)
    for path in paths:
        click.echo(f"wrote {path}", err=True)


def _fits(stream: PredictionStream, memory: int | None) -> bool:
    """Whether the table and one copy of it stay below the limit, by default half of this machine's memory."""
    from certcal.data._table import physical_memory

    limit = memory if memory is not None else (physical_memory() or 0) // 2
    return limit == 0 or 2 * stream.bytes_in_memory() <= limit


def _at_once(
    stream: PredictionStream, settings: Settings, metrics: tuple[str, ...], waiting: Waiting
) -> MeasuredResults:
    """Measure a table, and its groups when there are any, in memory."""
    from certcal.cli._measuring import measured

    waiting.stage("reading", stream.rows)
    loaded = stream.load(advance=waiting.advance)
    waiting.stage("measuring", 1 + len(loaded.group_names))
    whole = measured("all", loaded.predictions, settings, metrics)
    waiting.advance(1)
    parts: list[Part] = []
    for name, predictions in loaded.groups():
        parts.append(measured(name, predictions, settings, metrics))
        waiting.advance(1)
    return _results(stream, settings, whole, loaded.predictions.classes, parts)


def _in_pieces(
    stream: PredictionStream, settings: Settings, metrics: tuple[str, ...], waiting: Waiting
) -> MeasuredResults:
    """Measure a table that is too large for memory."""
    from certcal.cli._measuring import measured_in_pieces

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

    whole, parts = measured_in_pieces(pieces, names, settings, metrics)
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
    from certcal.report.results import MeasuredResults

    text = f"{whole.n:,} samples{'' if classes is None else f', {classes} classes'}; {stream.layout.description}"
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
