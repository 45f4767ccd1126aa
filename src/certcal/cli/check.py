"""``certcal check``: a page, computed again from its data."""

from __future__ import annotations

from typing import Any

import click

from certcal.cli.app import command
from certcal.cli.compare import family_names
from certcal.cli.emit import NOT_MET, WRITTEN, Output, output_options
from certcal.cli.options import option, verb_options
from certcal.cli.sources import existing, existing_files
from certcal.data.opening import NAMED
from certcal.verbs.check import check as verb

_CHECKING = "What the page is about"


@command(
    ("certcal check page.html --data predictions.csv", "a page of certcal measure, bound or report"),
    ("certcal check numbers.json --data predictions.csv", "its JSON"),
    ("certcal check page.html --data old.csv --data new.csv", "a comparison"),
    ("certcal check page.html --data run", "a run of certcal sample; or --data intervals.parquet"),
    ("certcal check page.html --model net.safetensors --data test.npz", "an attack"),
    one="something does not hold or was not recomputed",
)
@click.argument("page", type=click.Path())
@option(
    _CHECKING,
    "--data",
    multiple=True,
    metavar="DATA",
    type=click.Path(),
    help="What the page is about: table, run, intervals or inputs; repeat it for several, in the page's order.",
)
@option(_CHECKING, "--model", metavar="MODEL", type=click.Path(), help="The model of an attack or a verification.")
@verb_options(verb, _CHECKING, only=("weights",))
@output_options(WRITTEN, judged=False, mlflow=False)
def check(page: str, data: tuple[str, ...], model: str | None, weights: str | None, output: Output) -> None:
    """Check PAGE, an .html or .json file of certcal, against its data.

    The page says what was asked. It is asked again of the data given here: every number, sentence and verdict must come
    out the same, the files must have the digests on the page, and nothing else may stand on it. No file that the page
    names is opened.
    """
    families = family_names(data) if data else None
    paths = list(data) if families is None else [path for _, path in families]
    for each in paths:
        if each not in NAMED and ":" not in each:
            existing(each, "table, run or inputs")
    read = [str(existing(page, "page")), *existing_files(model, weights, *paths)]
    output.check(*read)
    named: dict[str, Any] = {}
    for name, path in families or ():
        named.setdefault(name, []).append(path)
    found = verb(page, [named] if named else list(data), model=model, weights=weights)
    output.emit(found)
    if found.outcome != "holds":
        raise click.exceptions.Exit(NOT_MET)
