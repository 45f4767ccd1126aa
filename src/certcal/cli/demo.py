"""``certcal demo``: a first look on data that is already here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import measuring_options, output_options

if TYPE_CHECKING:
    from certcal.cli._results import Part


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal demo", "a first look"),
        ("certcal demo --bootstrap 1000", "how much of it may be chance"),
        ("certcal demo -o demo.svg", "the diagram as a picture"),
    ),
)
@measuring_options
@output_options
def demo(
    metrics: tuple[str, ...],
    explain: bool,
    no_diagram: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Measure a real model on real data, and say what the numbers mean.

    A naive Bayes classifier learns half of scikit-learn's handwritten digits and is measured on the other half. It
    takes a few seconds, needs no network and writes nothing unless -o asks for it.
    """
    from certcal.cli._measuring import Settings, check_metrics, measured
    from certcal.cli._progress import Waiting
    from certcal.cli._results import Results, check_outputs, to_json, write_outputs
    from certcal.data import embedded

    check_metrics(metrics)
    paths = check_outputs(outputs, force=force)
    settings = Settings(**options)
    with Waiting() as waiting:
        waiting.stage("training")
        data = embedded()
        waiting.stage("measuring")
        whole = measured("all", data.predictions, settings, metrics)
    results = Results(
        source=f"demo: {data.name}",
        about={"kind": data.predictions.kind, "classes": data.predictions.classes, "columns": None},
        description=data.description,
        whole=whole,
        conventions=settings.conventions,
    )
    write_outputs(results, paths, force=force)
    if as_json:
        click.echo(to_json(results), nl=False)
    else:
        from certcal.cli._show import show

        show(results, diagram=not no_diagram, explain=explain, closing=_story(whole, wrote=bool(paths)))
    for path in paths:
        click.echo(f"wrote {path}", err=True)


def _story(whole: Part, *, wrote: bool) -> list[tuple[str, str]]:
    """What the numbers mean, as headings and paragraphs."""
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
    steps = [
        "certcal measure predictions.csv   # your own table: confidence and correct",
        "certcal measure predictions.npz   # or probabilities and labels",
        "certcal demo --bootstrap 1000     # intervals around every number",
    ]
    steps += [] if wrote else ["certcal demo -o demo.svg          # the diagram as a picture"]
    return [("What this means", " ".join(meaning)), ("What to try next", "\n".join(steps))]
