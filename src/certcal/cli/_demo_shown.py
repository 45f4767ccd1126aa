"""How ``certcal demo`` tells its story in a terminal."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from certcal._text import printable
from certcal.claims import round_outward
from certcal.cli._demo_certified import ALPHA, Certified
from certcal.cli._show import Output, show
from certcal.report._old_terminal import frame
from certcal.report.certificates import CertifiedLines
from certcal.report.results import MeasuredResults
from certcal.smoothing import Review

# Half of sigma, sigma and twice sigma; the page has them all.
RADII = ("0.125", "0.25", "0.5")
# One for each thing that the story tells; everything else that was measured is in the JSON, and shown by --explain.
METRICS = ("accuracy", "mean_confidence", "ece", "smooth_ece", "brier_score", "nll")

_KINDS = {
    "tight": "binomial limits of the whole histogram",
    "tangent": "one mean made for this radius, by bets",
    "bernstein": "the mean confidence and its variance",
    "cdf": "the histogram, in a band of one width",
    "standard": "the mean confidence alone",
}


_NO_TORCH = (
    "With torch (pip install 'certcal[torch]') an attack on this network is shown here: how far it moves the "
    "confidences while every prediction stays."
)


def show_measured(results: MeasuredResults, *, chosen: bool, diagram: bool, explain: bool) -> None:
    """Print the first part: what was measured and what it means.

    Parameters
    ----------
    results
        All measurements.
    chosen
        Whether the metrics were asked for by name; if not, those of the story are shown.
    diagram, explain
        As for ``certcal measure``.
    """
    shown = results
    if not chosen and not explain:
        rows = [row for row in results.whole.rows if row.name in METRICS]
        shown = replace(results, whole=replace(results.whole, rows=rows))
    show(shown, diagram=diagram, explain=explain, closing=[("What this means", _measured_meaning(results))])


def show_certified(found: Certified) -> None:
    """Print the second part: what is certified, what it means, and what each kind of certificate makes of it."""
    console = _console()
    results = found.results
    console.print()
    console.print(Text("When somebody perturbs the inputs", style="bold"))
    console.print(Text(printable(f"{results.description}."), style="dim"))
    console.print()
    console.print(Text("An attack", style="bold"))
    if found.attack is None:
        console.print(Text(_NO_TORCH))
    else:
        console.print(Text(f"{found.attack.sentence} {found.attack.what}"))
    console.print()
    console.print(Text("What no attack can exceed", style="bold"))
    console.print(CertifiedLines([line for line in results.lines if line.radius in RADII]))
    console.print()
    console.print(Text("What is claimed", style="bold"))
    console.print(Text(printable(results.claims[0])))
    console.print()
    console.print(Text("What this means", style="bold"))
    console.print(Text(_certified_meaning(found.review)))
    if found.attack is not None:
        console.print()
        console.print(Text("The attack against the certificate", style="bold"))
        console.print(Text(found.attack.comparison))
    if found.repaired is not None:
        console.print()
        console.print(Text("What a map can repair", style="bold"))
        console.print(Text(found.repaired.sentence))
    console.print()
    console.print(Text("Certificates compared", style="bold"))
    console.print(_compared(found.kinds))
    console.print(
        Text(
            f"The same draws at radius {found.kinds.radii[0]} by each kind, which is to be chosen before looking.",
            style="dim",
        )
    )


def show_ending(page: Path | None, keep: str | None, *, data: str, wrote: bool) -> None:
    """Say where the page is and what to try next.

    Parameters
    ----------
    page
        The file, if one was written.
    keep
        Where the run is, if it was kept.
    data
        What the demo was about.
    wrote
        Whether other files were written.
    """
    console = _console()
    if page is not None:
        console.print()
        console.print(Text("The page", style="bold"))
        console.print(Text(printable(f"{page}  # open it in a browser")), soft_wrap=True)
        console.print(Text("Every radius, the images that matter most, and how each number was computed."))
    console.print()
    console.print(Text("What to try next", style="bold"))
    steps = _steps(keep, data, wrote=wrote)
    width = max(len(command) for command, _ in steps)
    for command, what in steps:
        console.print(Text(printable(f"{command:<{width}}  # {what}")), soft_wrap=True)


def _console() -> Output:
    return Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)


def _measured_meaning(results: MeasuredResults) -> str:
    values = {row.name: row.value for row in reversed(results.whole.rows)}
    meaning: list[str] = []
    if {"accuracy", "mean_confidence"} <= values.keys():
        sure, right = values["mean_confidence"], values["accuracy"]
        verdict = "It is overconfident." if sure > right else "It is not overconfident on average."
        meaning.append(f"On average the model is {sure:.1%} sure and {right:.1%} right. {verdict}")
    if "ece" in values:
        meaning.append(
            f"The expected calibration error, {values['ece']:.3f}, is the distance between being sure and being right, "
            "averaged over the bins of the diagram."
        )
    if values.get("nll") == math.inf:
        meaning.append("The log loss is infinite: some true class was given probability 0.")
    meaning.append(
        "The light part of a bar, between how often it was right and how sure it was, is what it promised and did not "
        "keep."
    )
    return " ".join(meaning)


def _certified_meaning(review: Review) -> str:
    one, clean = review.at(), review.clean_bins()
    share = int(1000 * one.summary.accuracy.value) / 10
    text = (
        "The smoothed classifier votes over noisy copies of an image. A radius is the Euclidean length of a change to "
        f"the image, whose pixels are from 0 to 1. At radius {one.radius}, {share:.1f}% of the images keep their right "
        f"class whatever the change is, each except with probability {ALPHA:g}."
    )
    if clean is not None:
        text += (
            f" The ECE of the certified ones is about {clean.ece:.3f} without a change, an estimate, and at most "
            f"{one.claim.text} with any."
        )
    return text + (
        " ECE is the worst that the certified intervals allow, exactly; claimed adds what intervals that fail can do; "
        "all counts every image; bound is for images that were not seen."
    )


def _compared(kinds: Review) -> Table:
    table = frame()
    table.add_column("certificate", no_wrap=True)
    table.add_column("mean width", justify="right", no_wrap=True)
    table.add_column("ECE ≤", justify="right", no_wrap=True)
    table.add_column("made from")
    for one in kinds.lines:
        width = "-" if one.width is None else round_outward(one.width, "upper")
        table.add_row(one.kind, width, "-" if one.worst is None else one.worst.text, _KINDS[one.kind])
    return table


def _steps(keep: str | None, data: str, *, wrote: bool) -> list[tuple[str, str]]:
    again = "run" if keep is None else keep
    steps = [
        ("certcal measure predictions.csv", "your table: confidence, correct"),
        ("certcal report predictions.csv", "a page about it"),
        ("certcal demo --explain", "every metric, in a sentence each"),
        ("certcal demo --bootstrap 1000", "intervals around every number"),
    ]
    steps += [] if wrote else [("certcal demo -o demo.svg", "the diagram as a picture")]
    option = "" if data == "digits" else f" --data {data}"
    steps += [(f"certcal demo{option} --keep run", "keep the draws; then:")] if keep is None else []
    return [
        *steps,
        (f"certcal certify {again}", "at other radii, in a moment"),
        (f"certcal recalibrate fit {again}", "repair its confidences"),
        ("certcal sample --help", "draw for a model of your own"),
        ("certcal attack --help", "attack it"),
    ]
