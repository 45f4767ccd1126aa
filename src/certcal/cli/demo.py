"""``certcal demo``: a first look on data that is already here."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import keep_option, measuring_options, output_options

if TYPE_CHECKING:
    from certcal.report.results import Part


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal demo", "a first look"),
        ("certcal demo --bootstrap 1000", "how much of it may be chance"),
        ("certcal demo --keep run", "keep the draws, to certify them again"),
        ("certcal demo -o demo.svg", "the diagram as a picture"),
    ),
)
@measuring_options
@output_options
@keep_option
def demo(
    metrics: tuple[str, ...],
    explain: bool,
    no_diagram: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    keep: str | None,
    **options: Any,
) -> None:
    """Measure a real model on real data, certify another, and say what the numbers mean.

    A naive Bayes classifier learns half of scikit-learn's handwritten digits and is measured on the other half. Then a
    small network learns them with Gaussian noise, and what it says of the other half is certified against every
    perturbation up to a radius. It takes less than a minute, needs no network connection and writes nothing unless -o
    or --keep asks for it.
    """
    from certcal.cli._demo_certified import certified_digits, show_certified_digits
    from certcal.cli._measuring import Settings, check_metrics, measured
    from certcal.cli._outputs import check_outputs, write_outputs
    from certcal.cli._progress import Waiting
    from certcal.data import embedded
    from certcal.report.results import MeasuredResults

    check_metrics(metrics)
    paths = check_outputs(outputs, force=force)
    settings = Settings(**options)
    with Waiting() as waiting:
        waiting.stage("training")
        data = embedded()
        waiting.stage("measuring")
        whole = measured("all", data.predictions, settings, metrics)
    about: dict[str, Any] = {"kind": data.predictions.kind, "classes": data.predictions.classes, "columns": None}
    certifying = {"bins": settings.conventions["bins"][0], "closed": settings.conventions["closed"], "delta": 0.05}
    results = MeasuredResults(f"demo: {data.name}", about, data.description, whole, conventions=settings.conventions)
    if not as_json:
        from certcal.cli._show import show

        show(results, diagram=not no_diagram, explain=explain, closing=[("What this means", _story(whole))])
    network, certified = certified_digits(keep, certifying)
    results = replace(results, about={**about, "certified": certified.to_dict()})
    write_outputs(results, paths, force=force)
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        show_certified_digits(network, certified, keep, wrote=bool(paths))
    for path in paths:
        click.echo(f"wrote {path}", err=True)


def _story(whole: Part) -> str:
    """What the numbers mean, in a paragraph."""
    values = {row.name: row.value for row in whole.rows}
    meaning: list[str] = []
    if {"accuracy", "mean_confidence"} <= values.keys():
        sure, right = values["mean_confidence"], values["accuracy"]
        verdict = "It is overconfident." if sure > right else "It is not overconfident on average."
        meaning.append(f"On average the model is {sure:.1%} sure and {right:.1%} right. {verdict}")
    if "ece" in values:
        meaning.append(
            f"The expected calibration error, {values['ece']:.3f}, is the distance between being sure and being right, "
            "averaged over the bins of the diagram. SmoothECE and Kolmogorov–Smirnov say the same without bins."
        )
    if values.get("nll") == math.inf:
        meaning.append("The log loss is infinite: some true digit was given probability 0.")
    meaning.append(
        "In the diagram a bar is how often the model was right and the mark is how sure it was; the light part between "
        "them is what it promised and did not keep."
    )
    return " ".join(meaning)
