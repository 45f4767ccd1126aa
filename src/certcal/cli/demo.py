"""``certcal demo``: a first look on bundled data, with the verbs that anyone calls."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from certcal._base.checks import InputError
from certcal._base.progress import Progress
from certcal.cli.app import command
from certcal.cli.emit import DRAWN, OUTPUT, Output, output_options
from certcal.cli.options import option

if TYPE_CHECKING:
    from certcal.result import Result
    from certcal.verbs.attack import Attack
    from certcal.verbs.certification import Certification

# Enough noise for radii of three sigma, and for the attack to end where more would, in a matter of seconds.
EPOCHS, DRAWS = 30, 10_000
_ATTACK: dict[str, Any] = {"attacks": "plus-true", "norm": "l2", "box": None, "steps": 10, "draws": 16, "batch": 8192}
_OF_TABLES = {
    "certcal measure predictions.csv": "your table: score, outcome",
    "certcal recalibrate fit predictions.csv": "the best map for it",
    "certcal report predictions.csv": "a page about it",
}
_OF_EXTRAS = {"pip install 'certcal[sklearn,torch]'": "with these the demo attacks"}
_NO_TORCH = "With torch (pip install 'certcal[torch]') an attack on this network is shown here."
_NO_SCIKIT_LEARN = (
    "2,000 customers of a bank scored by XGBoost. scikit-learn is not installed, so no model is attacked and certified"
)


@command(
    ("certcal demo", "a first look; writes certcal-demo.html"),
    ("certcal demo -o digits.html", "the page under a name of its own"),
    ("certcal demo --keep run", "keep the run, to certify it again"),
    ("certcal demo -o demo.svg", "also the diagram as a picture"),
)
@option(OUTPUT, "--no-page", is_flag=True, help="Write no page.")
@option(OUTPUT, "--keep", metavar="RUN", type=click.Path(), help="Keep the run in this folder, for certcal certify.")
@output_options(DRAWN, judged=False, mlflow=False)
def demo(no_page: bool, keep: str | None, output: Output) -> None:
    """Run a demo on bundled data.

    A naive Bayes classifier is trained on half of scikit-learn's handwritten digits and measured on the other half.
    Then a small network is trained with Gaussian noise; its predictions are attacked (with torch), certified against
    every perturbation up to a radius, and recalibrated. It takes less than a minute and needs no network connection.
    Without scikit-learn a bundled table of scores is measured instead.

    The page and the files are those of the certified network. The page is certcal-demo.html in this folder, or the
    next free name; with --json there is none unless -o asks for it.
    """
    from certcal._base.progress import watching

    named = [name for name in output.files if name.lower().endswith(".html")]
    if no_page and named:
        raise InputError(f"--no-page and -o {named[0]} contradict each other; leave one of them out")
    if not (named or no_page or output.as_json):
        output.files = (_free_name(force=output.force), *output.files)
    output.check(*([] if keep is None else [keep]))
    is_table = find_spec("sklearn") is None and keep is None
    if is_table:
        _measure_table(output)
    else:
        with watching(True) as waiting:
            measured, attacked, certified, recalibrated, images = _try_digits(keep, waiting)
        _print_headline(measured, output)
        _print_headline(attacked, output)
        output.emit(certified, sources=[] if keep is None else [keep], images=images)
        if not output.as_json:
            click.echo()
            _print_attack_beside_certificate(attacked, certified)
        _print_headline(recalibrated, output)
    if not output.as_json:
        _print_next_steps(_OF_TABLES | (_OF_EXTRAS if is_table else _of_runs(keep)))


def _try_digits(keep: str | None, progress: Progress) -> tuple[Any, ...]:
    import certcal
    from certcal._base.threads import one_blas_thread
    from certcal.data import embedded, embedded_network

    progress.stage("training")
    digits = embedded()
    measured = certcal.measure(digits.predictions, source=f"demo: {digits.name}", progress=progress)
    progress.stage("training a network with noise", EPOCHS)
    network = embedded_network(epochs=EPOCHS, progress=lambda _: progress.advance(1))
    model, test, sigma = certcal.models.wrap(network.classifier), network.test, network.sigma
    name = f"demo: {network.name}"
    with tempfile.TemporaryDirectory() if keep is None else nullcontext(keep) as folder, one_blas_thread():
        out = Path(folder) / "run" if keep is None else Path(folder)
        run = certcal.sample(model, test, sigma=sigma, n=DRAWS, batch=2000, out=out, progress=progress)
        certified = certcal.certify(run, progress=progress)
        radius = certified.at().radius or 0.0
        recalibrated = certcal.recalibrate(run, radii=radius, tradeoffs=(), source=name, progress=progress)
    described = f"{network.description}. {certified.description}"
    has_torch = find_spec("torch") is not None
    return (
        replace(measured, description=digits.description),
        certcal.attack(model, test, epsilon=radius, sigma=sigma, progress=progress, **_ATTACK) if has_torch else None,
        replace(certified, source=name, description=described),
        recalibrated,
        test,
    )


def _measure_table(output: Output) -> None:
    import certcal

    measured = certcal.measure(certcal.data.example(), source="demo: credit default")
    output.emit(replace(measured, description=_NO_SCIKIT_LEARN), sources=[])
    if not output.as_json:
        click.echo()


def _print_headline(result: Result | None, output: Output) -> None:
    from certcal.report.terminal import make_console, render

    if output.as_json:
        return
    if result is None:
        click.echo(_NO_TORCH)
    else:
        render(result.report().of(sections=(), appendix=(), notes=()), make_console(sys.stdout))
    click.echo()


def _print_attack_beside_certificate(attacked: Attack | None, certified: Certification) -> None:
    import certcal
    from certcal._base.rounding import claim_text, share_text

    one, found = certified.at(), None if attacked is None else attacked.rows[0].attacked
    if found is None or one.certificates is None or not one.certificates.certified.any():
        return
    after = found.predictions.select(one.certificates.certified)
    reached = certcal.measure(after, metrics="ece", bootstrap=0)["ece"].value
    said = (
        f"On the samples that are certified at radius {one.radius_text} the attack reached an ECE of "
        f"{share_text(reached, 'lower')}; by the certificate, no attack exceeds {claim_text(one.headline)}."
    )
    click.echo("\n".join(wrap(said, min(80, get_terminal_size().columns))) + "\n")


def _free_name(*, force: bool) -> str:
    if not os.access(os.curdir, os.W_OK):
        raise InputError("this folder cannot be written to; say with -o where the page goes, or give --no-page")
    names = chain(["certcal-demo.html"], (f"certcal-demo-{number}.html" for number in count(2)))
    return next(name for name in names if force or not os.path.lexists(name))


def _of_runs(keep: str | None) -> dict[str, str]:
    run = "run" if keep is None else keep
    return {
        **({"certcal demo --keep run": "keep the run; then:"} if keep is None else {}),
        f"certcal certify {run}": "at other radii, in a moment",
        f"certcal recalibrate fit {run}": "recalibrate it",
        "certcal sample --help": "for a model of your own",
        "certcal attack --help": "attack it",
    }


def _print_next_steps(steps: Mapping[str, str]) -> None:
    from certcal._base.text import printable

    click.echo("Next steps")
    for line, what in steps.items():
        click.echo(printable(f"{line:<{max(map(len, steps))}}  # {what}"))
