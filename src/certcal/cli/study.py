"""``certcal study``: measure many models, and ask what they say about calibration and about its metrics."""

from __future__ import annotations

import click

from certcal.cli._commands import LazyGroup


@click.group(
    cls=LazyGroup,
    commands_from={
        "measure": ("certcal.cli.study_measure", "Measure many models into one table, before and after scaling."),
        "review": ("certcal.cli.study_review", "Answer the benchmark study's seven questions for a table."),
        "search": ("certcal.cli.study_search", "Search a table for an architecture, by accuracy or calibration."),
        "convert": ("certcal.cli.study_convert", "Make a table of published results."),
    },
    examples=(
        ("certcal study measure predictions/ -o study.parquet", "predictions/DATA/MODEL.npz, one file per model"),
        ("certcal study measure models.csv -o study.parquet --workers 2", "a manifest, with columns of your own"),
        ("certcal study review study.parquet -o study.html", "what the metrics say about each other"),
        ("certcal study search study.parquet --objective hcs", "which search finds what"),
    ),
)
def study() -> None:
    """Measure many models, and ask what they say about calibration and about its metrics."""
