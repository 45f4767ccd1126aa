"""``certcal study search``: which search of a table finds an accurate or a calibrated architecture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import MOST_SEED, bin_count_option, file_options, number, option
from certcal.cli._parse import Choice, optional, parse_words

if TYPE_CHECKING:
    from certcal.study.search import SearchComparison

_TABLE, _SEARCHING, _JUDGING = "What is searched", "Searching", "Judging (by other measurements than those searched)"
_METHODS = ("evolution", "local", "random")
_MOST = 10**6


def _listed(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> tuple[str, ...]:
    """Turn ``accuracy,ece`` and repetitions of it into names, each once."""
    found = [part.strip() for value in values for part in value.split(",")]
    if not all(found):
        raise click.BadParameter("a name is empty; give objectives with commas between them", ctx, param)
    return tuple(dict.fromkeys(found))


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal study search study.parquet --data cifar10", "accuracy and HCS with beta 1, 2, 3; all methods"),
        ("certcal study search study.parquet --data cifar10 --objective ece,mmce", "for calibration alone"),
        ("certcal study search study.parquet --data cifar10 --objective min:params", "for a column of your own"),
        ("certcal study search study.parquet --data cifar10 --split early --judge-split test", "judged by others"),
        ("certcal study search study.parquet --space table --budget 50 -o found.csv", "models of any kind, at random"),
    ),
)
@click.argument("table", type=click.Path())
@option(_TABLE, "--data", metavar="NAME", help="Data set. Default: the only one.")
@option(_TABLE, "--split", metavar="NAME", help="Split. Default: the only one.")
@option(
    _TABLE,
    "--space",
    type=Choice(["auto", "topology", "size", "table"]),
    default="auto",
    metavar="SPACE",
    help="What the models are: topology (NATS-Bench's cells), size (widths such as 8:8:16:16:24), table (no structure, "
    "so only random search). Default: told by their names.",
)
@option(_TABLE, "--column", default="model", metavar="COLUMN", help="Column of the architectures. Default: model.")
@option(
    _SEARCHING,
    "--objective",
    "objectives",
    callback=_listed,
    multiple=True,
    default=("accuracy,hcs_1,hcs_2,hcs_3",),
    metavar="NAME[,NAME...]",
    help="accuracy, ece, hcs_B for any B, a measurement, or max:COLUMN and min:COLUMN. Default: accuracy, hcs_1, hcs_2 "
    "and hcs_3.",
)
@option(
    _SEARCHING,
    "--method",
    "methods",
    callback=optional(parse_words(_METHODS)),
    metavar="NAME[,NAME...]",
    help="evolution, local or random. Default: all that the space allows.",
)
@number(_SEARCHING, "--budget", least=1, most=_MOST, default="100", metavar="N", help="Evaluations. Default: 100.")
@number(_SEARCHING, "--repeats", least=1, most=_MOST, default="20", metavar="N", help="Of each search. Default: 20.")
@number(_SEARCHING, "--seed", least=0, most=MOST_SEED, default="0", metavar="N", help="Of all. Default: 0.")
@option(
    _SEARCHING,
    "--stage",
    type=Choice(["pre", "post"]),
    default="pre",
    help="Before or after temperature scaling. Default: pre.",
)
@option(_SEARCHING, "--metric", default="ece", metavar="NAME", help="The error that HCS uses. Default: ece.")
@bin_count_option(_SEARCHING)
@option(_JUDGING, "--judge", metavar="TABLE", type=click.Path(), help="Another table. Default: the same.")
@option(_JUDGING, "--judge-data", metavar="NAME", help="Another data set.")
@option(_JUDGING, "--judge-split", metavar="NAME", help="Another split.")
@file_options("Also write numbers (.json .csv)")
def search(table: str, as_json: bool, outputs: tuple[str, ...], force: bool, **settings: Any) -> None:
    """Search TABLE for an architecture, as if each look into it were a training.

    Each objective is searched for by each method several times, and the accuracy, ECE, harmonic calibration scores,
    MMCE and KS error of what is found are shown beside the best that exists. A budget counts distinct architectures.
    Searching and judging by the same measurements is optimistic; the options for judging choose others.
    """
    from certcal.cli._outputs import announce, check_outputs, write_outputs
    from certcal.cli._progress import Waiting
    from certcal.report.results import SearchedResults

    judge: str | None = settings.pop("judge")
    sources = [path for path in (table, judge) if path is not None]
    paths = check_outputs(outputs, (".json", ".csv"), force=force, sources=sources)
    with Waiting() as waiting:
        waiting.stage("searching")
        results = SearchedResults(table, _found(table, judge, **settings))
    write_outputs(results, paths, force=force, sources=sources)
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        from certcal.cli._show_searched import show_searched

        show_searched(results)
    announce(paths)


def _found(
    table: str,
    judge: str | None,
    *,
    data: str | None,
    split: str | None,
    judge_data: str | None,
    judge_split: str | None,
    objectives: tuple[str, ...],
    methods: tuple[str, ...] | None,
    budget: int,
    repeats: int,
    seed: int,
    **benchmark: Any,
) -> SearchComparison:
    from certcal.cli._reviewing import read_study
    from certcal.study.search import Benchmark, compare

    whole = read_study(table)
    searched = Benchmark(whole, data=data, split=split, **benchmark)
    judging = None
    if (judge, judge_data, judge_split) != (None, None, None):
        other = whole if judge is None else read_study(judge)
        benchmark["space"] = "table" if searched.space is None else searched.space
        judging = Benchmark(other, data=judge_data or searched.data, split=judge_split or searched.split, **benchmark)
    return compare(searched, objectives, methods, budget=budget, repeats=repeats, seed=seed, judge=judging)
