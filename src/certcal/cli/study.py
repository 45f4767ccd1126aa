"""``certcal study``: measure many models, and ask what they say about calibration and about its metrics."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from certcal.cli.app import LazyGroup, command
from certcal.cli.emit import WRITTEN, Output, output_options
from certcal.cli.engine import engine_options, pop_engine
from certcal.cli.errors import leave_interrupted
from certcal.cli.options import column_options, option, pop_columns, verb_options
from certcal.cli.progress import tell
from certcal.lab import study as verbs

SOME_FAILED = 1
_ROLES = ("probabilities", "logits", "label", "weight")
_GIVEN = ("robustness", "sizes", "architecture")
_SEARCHED = ("data", "split", "space", "column")
_JUDGED = ("judge_data", "judge_split")
_JUDGING = "Evaluation on other measurements"
_TABLE: Any = {"required": "TABLE", "what": "Write", "files": {".parquet": "the table (.parquet)"}}


@click.group(
    cls=LazyGroup,
    commands_from={
        "measure": ("certcal.cli.study", "Measure many models into one table, before and after scaling."),
        "review": ("certcal.cli.study", "Answer the benchmark study's seven questions for a table."),
        "search": ("certcal.cli.study", "Search a table for an architecture, by accuracy or calibration."),
        "convert": ("certcal.cli.study", "Make a table of published results."),
    },
    examples=(
        ("certcal study measure predictions/ -o study.parquet", "predictions/DATA/MODEL.npz, one file per model"),
        ("certcal study measure models.csv -o study.parquet --workers 2", "a manifest, with columns of your own"),
        ("certcal study review study.parquet -o study.html", "what the metrics say about each other"),
        ("certcal study search study.parquet --objective hcs", "which search finds what"),
    ),
)
def study() -> None:
    """Measure many models, and ask what they say about calibration and about its metrics."""


@command(
    ("certcal study measure predictions -o study.parquet", "a folder: predictions/DATA/MODEL.npz"),
    ("certcal study measure predictions -o study.parquet --layout model/data", "the other way round"),
    ("certcal study measure models.csv -o study.parquet", "a manifest, with columns of your own"),
    ("certcal study measure models.csv -o study.parquet --workers 8", "on eight processes"),
    ("certcal study measure models.csv -o study.parquet --engine ray", "on Ray; see --address"),
    ("certcal study measure models.csv -o study.parquet --part 3/16", "in a job array"),
    one="some rows failed (the table says why)",
)
@click.argument("source", type=click.Path())
@column_options(*_ROLES)
@verb_options(verbs.measure, "Measuring", skip=("force",))
@engine_options("Running")
@output_options((".parquet",), detail=False, force="Measure everything anew, then replace the table.", **_TABLE)
def measure(source: str, output: Output, **options: Any) -> None:
    """Measure every model in SOURCE before and after temperature scaling, into one TABLE.

    SOURCE is a folder of prediction files, or a manifest (CSV, Parquet, JSON lines): a column 'predictions' of paths,
    a column 'model', perhaps 'data', 'split' and 'ood:NAME', and any columns of your own. Files hold logits or
    probabilities with labels. The same command continues after an interruption, adds new models, and measures files
    that have changed.
    """
    from certcal.cli.sources import existing

    place = pop_engine(options)
    existing(source, "folder or manifest")
    columns = pop_columns(options, _ROLES)
    (out,) = output.files
    try:
        found = verbs.measure(source, out=out, columns=columns, engine=place, force=output.force, **options)
    except KeyboardInterrupt:  # after the bar has gone, so that the sentence has a line of its own
        kept = verbs.unfinished(out)
        leave_interrupted(
            f"what was measured is kept in {kept}, the same command resumes" if kept else "nothing was measured"
        )
    output.emit(found, sources=[source] if Path(source).is_file() else [], written=[out])
    failed = len(found.failures)
    if failed < len(found.table) and not output.as_json:
        page = str(Path(out).with_suffix(".html"))
        click.echo(f"\nNext: {shlex.join(['certcal', 'study', 'review', out, '-o', page])}")
    for note in found.notes:
        tell(note)
    if failed:
        raise click.exceptions.Exit(SOME_FAILED)


@command(
    ("certcal study review study.parquet", "the seven questions, answered for these models"),
    ("certcal study review study.parquet -o study.html", "with all figures and matrices, as a page"),
    ("certcal study review study.parquet --metric ks_error --top 100,500", "another metric; the best 100 and 500"),
    ("certcal study review study.parquet --robustness fgsm,pgd --size params,flops", "what the columns are"),
    ("certcal study review study.parquet --json | jq '.answers[2].answer'", "for scripts"),
)
@click.argument("table", type=click.Path())
@verb_options(verbs.review, "Reviewing", skip=_GIVEN)
@verb_options(verbs.review, "Columns that came with the models", only=_GIVEN)
@output_options(WRITTEN, judged=False)
def review(table: str, output: Output, **options: Any) -> None:
    """Answer the benchmark study's seven questions for the models of a table.

    TABLE is what 'certcal study measure' or 'certcal study convert' wrote. Does calibration carry over to other data
    sets? Is robustness a proxy for it? Do the metrics agree? Does temperature scaling treat all models alike? How does
    it relate to accuracy, to the number of bins, to the architecture? Every number comes with a bootstrap interval
    over the models.
    """
    output.check(table)
    found = verbs.review(table, **options)
    output.emit(found)


@command(
    ("certcal study search study.parquet --dataset cifar10", "accuracy and HCS with beta 1, 2, 3; all methods"),
    ("certcal study search study.parquet --dataset cifar10 --objective ece,mmce", "for calibration alone"),
    ("certcal study search study.parquet --dataset cifar10 --objective min:params", "for a column of your own"),
    ("certcal study search study.parquet --dataset cifar10 --split early --judge-split test", "judged by others"),
    ("certcal study search study.parquet --space table --evaluations 50 -o found.csv", "models of any kind"),
)
@click.argument("table", type=click.Path())
@verb_options(verbs.search, "Table", only=_SEARCHED)
@verb_options(verbs.search, "Searching", skip=(*_SEARCHED, *_JUDGED))
@option(
    _JUDGING,
    "--judge-table",
    "judge",
    metavar="TABLE",
    type=click.Path(),
    help="Table of the evaluation. Default: TABLE.",
)
@verb_options(verbs.search, _JUDGING, only=_JUDGED)
@output_options(WRITTEN, judged=False)
def search(table: str, judge: str | None, output: Output, **options: Any) -> None:
    """Search TABLE for an architecture, treating each lookup as a training run.

    Each objective is searched for by each method several times, and the accuracy, ECE, harmonic calibration scores,
    MMCE and KS calibration error of what is found are shown beside the best that exists. Evaluations are of distinct
    architectures. Searching and judging by the same measurements is optimistic; the options for judging choose others.
    """
    output.check(*(path for path in (table, judge) if path is not None))
    found = verbs.search(table, judge=judge, **options)
    output.emit(found)


@command(
    ("certcal study convert cifar10_tss.csv -o tss.parquet --dataset cifar10", "columns such as acc, pre_ECE_15"),
    ("certcal study convert a.csv b.csv -o both.parquet --dataset cifar10 --dataset cifar100", "several data sets"),
    ("certcal study convert small.csv -o small.parquet --unit percent", "where it cannot be told"),
    ("certcal study convert by_index.csv -o tss.parquet --architectures tss.json", "models that are numbers"),
)
@click.argument("table", nargs=-1, required=True, type=click.Path())
@verb_options(verbs.convert, "Published tables")
@output_options((".parquet",), detail=False, mlflow=False, **_TABLE)
def convert(table: tuple[str, ...], output: Output, **options: Any) -> None:
    """Make the table of a study of published tables (CSV, Parquet).

    They have a column 'arch' or 'model', 'acc', and measurements such as pre_ECE_15 and post_KSCE. Where models are
    numbers (a column 'index'), --architectures names them: a JSON list such as ["8:8:8:8:8", "8:8:8:8:16"], the first
    of which is number 0.
    """
    output.check(*table, *([] if options["architectures"] is None else [options["architectures"]]))
    output.emit(replace(verbs.convert(table, **options), source=output.files[0]))
