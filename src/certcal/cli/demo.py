"""``certcal demo``: a first look on bundled data."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain, count
from typing import Any

import click

from certcal._base.checks import InputError
from certcal.cli.app import ExampleCommand
from certcal.cli.emit import DRAWN, OUTPUT, Output, output_options
from certcal.cli.options import NamedChoice, collected, option, settings_options
from certcal.verbs.measure import Measurement, MeasureSettings

_STORY = "Data"


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal demo", "a first look; writes certcal-demo.html"),
        ("certcal demo -o digits.html", "the page under a name of its own"),
        ("certcal demo --no-page --level 0.99", "no page; with wider intervals"),
        ("certcal demo --keep run", "keep the run, to certify it again"),
        ("certcal demo -o demo.svg", "also the diagram as a picture"),
        ("certcal demo --data fashion-mnist", "Fashion-MNIST, if it is installed"),
    ),
)
@option(
    _STORY,
    "--data",
    type=NamedChoice(["digits", "fashion-mnist"]),
    default="digits",
    help="Handwritten digits, or Fashion-MNIST where it is installed. Default: digits.",
)
@option(
    _STORY,
    "--data-folder",
    "folder",
    metavar="FOLDER",
    type=click.Path(),
    help="Folder of the four idx files of Fashion-MNIST. Default: where Debian's package puts them.",
)
@settings_options(MeasureSettings, "Measuring", skip=("bounds", "delta"))
@option(OUTPUT, "--no-page", is_flag=True, help="Write no page.")
@option(OUTPUT, "--keep", metavar="RUN", type=click.Path(), help="Keep the run in this folder, for certcal certify.")
@output_options(DRAWN, judged=False, mlflow=False)
def demo(data: str, folder: str | None, no_page: bool, keep: str | None, output: Output, **options: Any) -> None:
    """Run a demo on bundled data.

    A naive Bayes classifier is trained on half of scikit-learn's handwritten digits and measured on the other half.
    Then a small network is trained with Gaussian noise; its predictions are attacked (with torch), certified against
    every perturbation up to a radius, and recalibrated. It takes less than a minute and needs no network connection;
    with --data fashion-mnist, one or two minutes. Without scikit-learn a bundled table of scores is measured instead.

    The page is certcal-demo.html in this folder, or the next free name; with --json there is none unless -o asks for
    it.
    """
    from certcal.cli.progress import Waiting
    from certcal.verbs.certify import CertifySettings
    from certcal.verbs.demo import demo as verb

    settings = collected(MeasureSettings, options)
    CertifySettings(bins=settings.bins[0])
    named = [name for name in output.files if name.lower().endswith(".html")]
    if no_page and named:
        raise InputError(f"--no-page and -o {named[0]} contradict each other; leave one of them out")
    if not (named or no_page or output.as_json):
        output.files = (_free_name(force=output.force), *output.files)
    output.check(*([] if keep is None else [keep]))
    whole = find_spec("sklearn") is not None or data != "digits" or keep is not None
    with Waiting(counted="draws") as waiting:
        found = (
            verb(data, folder=folder, keep=keep, measuring=settings, progress=waiting) if whole else _table(settings)
        )
    output.emit(found, sources=[] if keep is None else [keep])
    if not output.as_json:
        from certcal._base.text import printable

        click.echo("\nNext steps")
        steps = _steps(keep, data)[: None if whole else 2]
        steps += [] if whole else [("pip install 'certcal[sklearn,torch]'", "then: certcal demo, on images")]
        width = max(len(command) for command, _ in steps)
        for command, what in steps:
            click.echo(printable(f"{command:<{width}}  # {what}"))


def _table(settings: MeasureSettings) -> Measurement:
    """The bundled table measured: what a demo can show where scikit-learn is not installed."""
    from certcal.data import example
    from certcal.verbs.measure import measure

    found = measure(example(), settings=settings, source="demo: credit default")
    said = "2,000 customers of a bank scored by XGBoost. scikit-learn is not installed, so no model is attacked and "
    return replace(found, description=f"{said}certified", about={**found.about, "columns": None})


def _free_name(*, force: bool) -> str:
    """The page's name when none is given: the first that is not taken, or that may be replaced."""
    if not os.access(os.curdir, os.W_OK):
        raise InputError("this folder cannot be written to; say with -o where the page goes, or give --no-page")
    names = chain(["certcal-demo.html"], (f"certcal-demo-{number}.html" for number in count(2)))
    return next(name for name in names if force or not os.path.lexists(name))


def _steps(keep: str | None, data: str) -> list[tuple[str, str]]:
    """What to try next."""
    again = "run" if keep is None else keep
    chosen = "" if data == "digits" else f" --data {data}"
    kept = [(f"certcal demo{chosen} --keep run", "keep the run; then:")] if keep is None else []
    return [
        ("certcal measure predictions.csv", "your table: confidence, correct"),
        ("certcal report predictions.csv", "a page about it"),
        *kept,
        (f"certcal certify {again}", "at other radii, in a moment"),
        (f"certcal recalibrate fit {again}", "recalibrate it"),
        ("certcal sample --help", "for a model of your own"),
        ("certcal attack --help", "attack it"),
    ]
