"""``certcal demo``: a first look on data that is already here."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain, count
from typing import Any

import click

from certcal._checks import InputError
from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import OUTPUT, keep_option, measuring_options, option, output_options
from certcal.cli._parse import MOST_CERTIFIED_BINS, Choice

STORY = "What the story is about"


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal demo", "a first look; writes certcal-demo.html"),
        ("certcal demo -o digits.html", "the page under a name of its own"),
        ("certcal demo --no-page --bootstrap 1000", "no page; how much of the numbers may be chance"),
        ("certcal demo --keep run", "keep the draws, to certify them again"),
        ("certcal demo -o demo.svg", "also the diagram as a picture"),
        ("certcal demo --data fashion-mnist", "pictures of clothes, if they are installed"),
    ),
)
@option(
    STORY,
    "--data",
    type=Choice(["digits", "fashion-mnist"]),
    default="digits",
    help="Handwritten digits, or pictures of clothes where they are installed. Default: digits.",
)
@option(
    STORY,
    "--data-folder",
    metavar="FOLDER",
    type=click.Path(),
    help="Where the four idx files of Fashion-MNIST are. Default: where Debian's package puts them.",
)
@measuring_options
@output_options
@option(OUTPUT, "--no-page", is_flag=True, help="Write no page.")
@keep_option
def demo(
    data: str,
    data_folder: str | None,
    metrics: tuple[str, ...],
    explain: bool,
    no_diagram: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    no_page: bool,
    keep: str | None,
    **options: Any,
) -> None:
    """Measure a real model on real data, attack and certify another, and write a page about it.

    A naive Bayes classifier learns half of scikit-learn's handwritten digits and is measured on the other half. Then a
    small network learns them with Gaussian noise. What it says of the other half is attacked (with torch), certified
    against every perturbation up to a radius, and kinds of certificates are compared. It takes less than a minute and
    needs no network connection; with --data fashion-mnist, one or two.

    The page is certcal-demo.html in this folder, or the next free name; with --json there is none unless -o asks for
    it.
    """
    from certcal.cli._measuring import Settings, check_metrics, measured
    from certcal.cli._outputs import DRAWN, PAGE, announce, check_outputs, write_outputs
    from certcal.cli._progress import Waiting
    from certcal.report.results import MeasuredResults

    check_metrics(metrics)
    if data_folder is not None and data == "digits":
        raise InputError("--data-folder is for --data fashion-mnist; leave it out, since digits need none")
    if options["bins"][0] > MOST_CERTIFIED_BINS:
        raise InputError(f"--bins {options['bins'][0]}: certified values have at most {MOST_CERTIFIED_BINS:,} bins")
    named = [name for name in outputs if name.lower().endswith(PAGE)]
    if no_page and named:
        raise InputError(f"--no-page and -o {named[0]} contradict each other; leave one of them out")
    if not (named or no_page or as_json):
        outputs = (_free_name(force=force), *outputs)
    paths = check_outputs(outputs, DRAWN, force=force, sources=[] if keep is None else [keep])
    pages = [path for path in paths if path.suffix.lower() == PAGE]
    others = [path for path in paths if path not in pages]

    from certcal.cli._demo_certified import certified
    from certcal.cli._demo_shown import show_certified, show_ending, show_measured
    from certcal.cli._demo_subject import subject

    settings = Settings(**options)
    with Waiting() as waiting:
        waiting.stage("training")
        about = subject(data, data_folder)
        waiting.stage("measuring")
        first = about.measured
        whole = measured("all", first.predictions, settings, metrics)
    facts: dict[str, Any] = {"kind": first.predictions.kind, "classes": first.predictions.classes, "columns": None}
    results = MeasuredResults(f"demo: {first.name}", facts, first.description, whole, conventions=settings.conventions)
    if not as_json:
        show_measured(results, chosen=bool(metrics), diagram=not no_diagram, explain=explain)
    certifying = {"bins": settings.conventions["bins"][0], "closed": settings.conventions["closed"], "delta": 0.05}
    found = certified(about, keep, certifying)
    results = replace(results, about={**facts, **found.to_dict()})
    if not as_json:
        show_certified(found)
    sources = [] if keep is None else [keep]
    attack = found.attack
    remarks = () if attack is None else (f"{attack.sentence} {attack.comparison} {attack.what}",)
    write_outputs(found.results, pages, force=force, sources=sources, images=found.network.test, remarks=remarks)
    write_outputs(results, others, force=force)
    if as_json:
        click.echo(results.to_json(), nl=False)
        announce(paths)
        return
    show_ending(pages[0] if pages else None, keep, data=data, wrote=bool(others))
    announce([*pages[1:], *others])


def _free_name(*, force: bool) -> str:
    """The page's name when none is given: the first that is not taken, or that may be replaced."""
    if not os.access(os.curdir, os.W_OK):
        raise InputError("this folder cannot be written to; say with -o where the page goes, or give --no-page")
    names = chain(["certcal-demo.html"], (f"certcal-demo-{number}.html" for number in count(2)))
    return next(name for name in names if force or not os.path.lexists(name))
