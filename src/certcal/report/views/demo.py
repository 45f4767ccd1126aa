"""The story of the demo: a model measured, another attacked, certified and recalibrated."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from certcal.claims import round_outward
from certcal.report.document import Block, Column, Report, Section, Table, Text
from certcal.report.numbers import number
from certcal.report.views import certification, measurement
from certcal.report.views.certified_claims import values_table
from certcal.verbs.demo import ATTACK_DRAWS

if TYPE_CHECKING:
    from certcal.verbs.demo import Demo

# One for each thing that the story tells; everything else that was measured is in the appendix.
METRICS = ("accuracy", "mean_confidence", "ece", "smooth_ece", "brier_score", "nll")
# Half of sigma, sigma and twice sigma; the page has them all.
RADII = (0.125, 0.25, 0.375)
_KINDS = {
    "tangent": "one mean chosen for this radius, by betting",
    "tight": "binomial limits of the whole histogram",
    "bernstein": "the mean confidence and its variance",
    "cdf": "the histogram, in a band of one width",
    "standard": "the mean confidence alone",
}
_NO_TORCH = (
    "With torch (pip install 'certcal[torch]') an attack on this network is shown here: how far it moves the "
    "confidences while every prediction stays."
)


def view(found: Demo) -> Report:
    """The report of the demo: what is claimed of the network first, then how it came about."""
    measured = measurement.view(found.measurement)
    certified = certification.view(found.certification, images=found.network.test)
    sections = [
        Section("Measured: a naive Bayes classifier", _measured(found, measured), brief=True),
        Section("Attack", _attacked(found), brief=True),
        Section("Certified: what no attack can exceed", _certified(found), brief=True),
        *([Section("Recalibrated", [Text(_repaired(found))], brief=True)] if found.recalibration is not None else []),
        Section("Kinds of certificates", _kinds(found), brief=True),
        *[replace(section, brief=False) for section in certified.sections],
    ]
    appendix = [replace(section, brief=False) for section in (*certified.appendix, *measured.appendix)]
    return Report(
        "How wrong can a model's confidences be?",
        certified.headline,
        sections,
        appendix,
        found.certification.source,
        found.certification.description,
        [*certified.notes, *measured.notes],
    )


def charts(found: Demo) -> object:
    """The reliability diagram of what was measured."""
    return measurement.charts(found.measurement)


def _measured(found: Demo, report: Report) -> list[Block]:
    part = found.measurement
    rows = [row for row in part.whole.rows if row.name in METRICS] or list(part.whole.rows)
    shown = replace(part, whole=replace(part.whole, rows=rows), groups=())
    diagram = next(section for section in report.sections if section.title == "Reliability diagram")
    return [
        Text(part.description, "note"),
        measurement.metrics_table(shown.whole),
        *diagram.blocks,
        Text(_meaning(found)),
    ]


def _meaning(found: Demo) -> str:
    values = {row.name: row.value for row in reversed(found.measurement.whole.rows)}
    meaning: list[str] = []
    if {"accuracy", "mean_confidence"} <= values.keys():
        sure, right = values["mean_confidence"], values["accuracy"]
        verdict = "it is overconfident." if sure > right else "it is not overconfident on average."
        meaning.append(f"The model's mean confidence is {sure:.1%} and its accuracy {right:.1%}: {verdict}")
    if "ece" in values:
        meaning.append(
            f"The expected calibration error, {values['ece']:.3f}, is the gap between confidence and accuracy, "
            "averaged over the bins of the diagram."
        )
    if values.get("nll") == math.inf:
        meaning.append("The log loss is infinite: some true class was given probability 0.")
    return " ".join(meaning)


def _attacked(found: Demo) -> list[Block]:
    attack, one = found.attack, found.certification.at()
    if attack is None:
        return [Text(_NO_TORCH)]
    kept = "no predicted label changed" if attack.changed == 0 else f"{attack.changed} predicted labels changed"
    said = (
        f"{attack.name} perturbed every image by at most {one.radius_text}: {kept} and accuracy stayed at "
        f"{attack.accuracy:.1%}, but the ECE went from {attack.before:.3f} to {attack.after:.3f}."
    )
    compared = "No image is certified at this radius, so there is nothing to compare it with."
    if attack.certified_after is not None:
        compared = (
            "On the images that are certified at this radius it reached "
            f"{round_outward(attack.certified_after, 'lower', 3)}; by the certificate, no attack exceeds "
            f"{one.headline.text}."
        )
    what = (
        f"The attack is on the smoothed classifier, averaged over {ATTACK_DRAWS} fixed noise samples. It shows what is "
        "possible, not the worst case."
    )
    return [Text(said), Text(compared), Text(what, "note")]


def _certified(found: Demo) -> list[Block]:
    lines = [line for line in found.certification.lines if line.radius in RADII] or list(found.certification.lines)
    one, clean = found.certification.at(), found.certification.clean_bins()
    share = int(1000 * one.summary.accuracy.value) / 10
    text = (
        "The smoothed classifier votes over noisy copies of an image. A radius is the Euclidean length of a change to "
        f"the image, whose pixels are from 0 to 1. At radius {one.radius_text}, {share:.1f}% of the images are "
        "certified to keep their correct class under every change."
    )
    if clean is not None:
        text += (
            f" The ECE of the certified ones is about {clean.ece:.3f} without a change, an estimate, and at most "
            f"{one.headline.text} with any."
        )
    return [values_table(found.certification, lines), Text(text)]


def _repaired(found: Demo) -> str:
    assert found.recalibration is not None
    before, after = found.recalibration.identity, found.recalibration.chosen
    first, last = before.at[-1], after.at[-1]
    worst = [[at.summary[name].worst for at in (first, last)] for name in ("brier_score", "calibration_error")]
    brier, error = (["–" if each is None else each.text for each in pair] for pair in worst)
    clean = [number(line.clean["brier_score"].value) for line in (before, after)]
    return (
        "A monotone map, fitted to half of the images, preserves the certificates. On the "
        f"{last.summary.n_certified:,} certified images of the other half, the Brier score that no attack within "
        f"{found.certification.at().radius_text} exceeds goes from {brier[0]} to {brier[1]}, and the ECE from "
        f"{error[0]} to {error[1]}; without an attack the Brier score goes from {clean[0]} to {clean[1]}, an estimate."
    )


def _kinds(found: Demo) -> list[Block]:
    columns = [
        Column("certificate"),
        Column("mean width", "bound", "upper"),
        Column("ECE", "bound", "upper"),
        Column("made from", priority=1),
    ]
    rows = [(one.kind, one.width, one.headline, _KINDS[str(one.kind)]) for one in found.kinds.lines]
    radius = found.kinds.at().radius_text
    said = f"Every kind from the same noise samples, at radius {radius}; choose one before looking."
    return [Table(columns, rows, note=said)]
