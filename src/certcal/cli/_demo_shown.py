"""How ``certcal demo`` tells its story in a terminal."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from certcal._text import printable
from certcal.cli._demo_certified import ALPHA, Certified
from certcal.cli._show import Output, show
from certcal.report.document import Column, Report, Section, Table
from certcal.report.document import Text as Paragraph
from certcal.report.results import MeasuredResults
from certcal.report.terminal import make_console, render
from certcal.report.views.certification import values_table
from certcal.verbs.certify import Certification

# Half of sigma, sigma and twice sigma; the page has them all.
RADII = (0.125, 0.25, 0.5)
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
    results = found.results
    lines = [line for line in results.lines if line.radius in RADII]
    attack = _NO_TORCH if found.attack is None else f"{found.attack.sentence} {found.attack.what}"
    claim = results.at().headline.sentence
    sections = [
        Section("An attack", [Paragraph(attack)], brief=True),
        Section("What no attack can exceed", [values_table(results, lines)], brief=True),
        Section("What is claimed", [Paragraph(claim[:1].upper() + claim[1:])], brief=True),
        Section("What this means", [Paragraph(_certified_meaning(results))], brief=True),
    ]
    if found.attack is not None:
        comparison = Paragraph(found.attack.comparison)
        sections.append(Section("The attack against the certificate", [comparison], brief=True))
    if found.repaired is not None:
        sections.append(Section("What a map can repair", [Paragraph(found.repaired.sentence)], brief=True))
    sections.append(Section("Certificates compared", [_compared(found.kinds)], brief=True))
    title = "When somebody perturbs the inputs"
    console = make_console(sys.stdout)
    console.print()
    render(Report(title, (), sections, description=f"{results.description}."), console)


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


def _certified_meaning(review: Certification) -> str:
    one, clean = review.at(), review.clean_bins()
    share = int(1000 * one.summary.accuracy.value) / 10
    text = (
        "The smoothed classifier votes over noisy copies of an image. A radius is the Euclidean length of a change to "
        f"the image, whose pixels are from 0 to 1. At radius {one.radius_text}, {share:.1f}% of the images keep their "
        f"right class whatever the change is, each except with probability {ALPHA:g}."
    )
    if clean is not None:
        text += (
            f" The ECE of the certified ones is about {clean.ece:.3f} without a change, an estimate, and at most "
            f"{one.headline.text} with any."
        )
    return text + (
        " ECE is the worst that the certified intervals allow, exactly; claimed adds what intervals that fail can do; "
        "all counts every image; bound is for images that were not seen."
    )


def _compared(kinds: Certification) -> Table:
    columns = (Column("certificate"), Column("mean width", "bound", "upper"), Column("ECE", "bound", "upper"))
    rows = [(one.kind or "", one.width, one.worst, _KINDS.get(one.kind or "", "")) for one in kinds.lines]
    radius = kinds.at().radius_text
    note = f"The same draws at radius {radius} by each kind, which is to be chosen before looking."
    return Table((*columns, Column("made from")), rows, note=note)


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
