"""The second part of ``certcal demo``: a network trained with noise, sampled and certified on the spot."""

from __future__ import annotations

import sys
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.text import Text

from certcal.cli._certified_run import Request, certify_run
from certcal.cli._progress import Waiting
from certcal.cli._show import Output
from certcal.data import EmbeddedNetwork, embedded_network
from certcal.data._embedded import one_blas_thread
from certcal.report._text import printable
from certcal.report.certificates import CertifiedLines
from certcal.report.results import CertifiedResults

# Enough for radii of three sigma, and a matter of seconds.
DRAWS = 10_000
EPOCHS = 30
RADII = ("0.1", "0.25", "0.5")
ALPHA = 0.001
BATCH = 2000


def certified_digits(keep: str | None, settings: dict[str, Any]) -> tuple[EmbeddedNetwork, CertifiedResults]:
    """Train, draw, certify.

    Parameters
    ----------
    keep
        Where to leave the run, or None to leave nothing.
    settings
        Bins, closed and delta.
    """
    with Waiting() as waiting:
        waiting.stage("training a network with noise", EPOCHS)
        network = embedded_network(epochs=EPOCHS, progress=lambda _: waiting.advance(1))
    place = tempfile.TemporaryDirectory() if keep is None else nullcontext(keep)
    with place as folder:
        run = Path(folder) / "run" if keep is None else Path(folder)
        _draw(network, run)
        asked = Request(RADII, ("tight",), ALPHA, familywise=False, drawn_only=False, compare=False)
        results, _ = certify_run(run, asked, settings)
    return network, replace(results, source="demo: digits")


def _draw(network: EmbeddedNetwork, run: Path) -> None:
    from certcal.models import wrap
    from certcal.smoothing import sample

    with Waiting(counted="draws") as waiting, one_blas_thread():
        before: list[int] = []

        def progress(finished: int, total: int) -> None:
            if before:
                waiting.advance(finished - before[-1])
            else:
                waiting.stage("drawing noise", total, finished)
            before[:] = [finished]

        sample(
            wrap(network.classifier),
            network.test.inputs,
            network.test.labels,
            sigma=network.sigma,
            n=DRAWS,
            batch=BATCH,
            out=run,
            progress=progress,
            data_source="scikit-learn's digits",
        )


def show_certified_digits(
    network: EmbeddedNetwork, results: CertifiedResults, keep: str | None, *, wrote: bool
) -> None:
    """Print what is certified, what it means, and what to try next."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print()
    console.print(Text("When somebody perturbs the inputs", style="bold"))
    console.print(Text(f"{network.description}. {results.description}.", style="dim"))
    console.print()
    console.print(CertifiedLines(results.lines))
    console.print()
    console.print(Text("What is claimed", style="bold"))
    console.print(Text(printable(results.claims[0])))
    console.print()
    console.print(Text("What this means", style="bold"))
    console.print(Text(_meaning(results)))
    console.print()
    console.print(Text("What to try next", style="bold"))
    steps = _steps(keep, wrote=wrote)
    width = max(len(command) for command, _ in steps)
    for command, what in steps:
        console.print(Text(printable(f"{command:<{width}}  # {what}")), soft_wrap=True)


def _meaning(results: CertifiedResults) -> str:
    line = results.lines[1]
    share = int(1000 * line.summary.accuracy.value) / 10
    text = (
        "The smoothed classifier votes over noisy copies of an image. A radius is the Euclidean length of a change to "
        f"the image, whose pixels are from 0 to 1. At radius {line.radius}, {share:.1f}% of the images keep their "
        f"right digit whatever the change is, each except with probability {ALPHA:g}"
    )
    if line.claim is not None:
        text += f", and the ECE of the certified ones stays at most {line.claim.text}"
    return text + (
        ". This is about every change there is, not about those that an attack has tried. ECE is the worst that the "
        "certified intervals allow, exactly; claimed adds what intervals that fail can do; all counts every image; "
        "bound is for images that were not seen."
    )


def _steps(keep: str | None, *, wrote: bool) -> list[tuple[str, str]]:
    again = "run" if keep is None else keep
    steps = [
        ("certcal measure predictions.csv", "your own table: confidence and correct"),
        ("certcal measure predictions.npz", "or probabilities and labels"),
        ("certcal demo --bootstrap 1000", "intervals around every number"),
    ]
    steps += [] if wrote else [("certcal demo -o demo.svg", "the diagram as a picture")]
    steps += [("certcal demo --keep run", "keep the draws; then:")] if keep is None else []
    return [
        *steps,
        (f"certcal certify {again}", "at other radii, in a moment"),
        (f"certcal certify {again} --confidence all", "kinds of certificates side by side"),
        ("certcal sample --help", "draw for a model of your own"),
    ]
