"""``certcal recalibrate``: fit a map that repairs confidences, and apply it."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from certcal.cli._commands import ExampleCommand, Examples, LazyGroup
from certcal.cli._parameters import (
    CERTIFYING,
    FITTING,
    MOST_SEED,
    OUTPUT,
    alpha_option,
    bin_count_option,
    chosen_radii_option,
    closed_option,
    delta_option,
    familywise_options,
    file_options,
    number,
    option,
    recalibrated_column_options,
)
from certcal.cli._parse import MOST_BINS, Choice, optional, parse_numbers, parse_share

if TYPE_CHECKING:
    from certcal.cli._recalibrating import Fitted

_METHODS = ("isotonic", "temperature", "beta", "platt", "histogram", "equal-mass", "vector", "matrix")
_FIT: Examples = (
    ("certcal recalibrate fit run -o map.json", "a run of certcal sample, at half of sigma"),
    ("certcal recalibrate fit run --radius .25,.5 --tradeoff 1 -o map.json", "for the worst case alone"),
    ("certcal recalibrate fit run --radius .5 -o map.json -o page.html", "with a page about it"),
    ("certcal recalibrate fit intervals.parquet", "the intervals of any verifier"),
    ("certcal recalibrate fit logits.npz -o map.json", "predictions: temperature scaling"),
    ("certcal recalibrate fit scores.csv --method isotonic -o map.json", "another calibrator"),
)
_APPLY: Examples = (
    ("certcal recalibrate apply map.json run --radius .5 -o after.parquet", "then: certcal certify after.parquet"),
    ("certcal recalibrate apply map.json predictions.csv -o after.csv", "then: certcal measure after.csv"),
    ("certcal recalibrate apply map.json unlabelled.csv -o after.parquet", "scores alone: nothing to measure"),
)


def _one_tradeoff(ctx: click.Context | None, param: click.Parameter | None, value: str) -> float:
    found = parse_numbers(0, 1, "0.5")(ctx, param, value)
    if len(found) != 1:
        raise click.BadParameter(f"{value!r} is several; give one, and others to compare with --tradeoffs", ctx, param)
    return found[0]


@click.group(
    cls=LazyGroup,
    commands_from={
        "fit": ("certcal.cli.recalibrate", "Fit a map to one part of the samples, and judge it on the other."),
        "apply": ("certcal.cli.recalibrate", "Apply a map to a run or a table."),
    },
    examples=(_FIT[0], _FIT[4], *_APPLY),
)
def recalibrate() -> None:
    """Repair confidences with a map, also in the worst case."""


@click.command(cls=ExampleCommand, examples=_FIT)
@click.argument("source", metavar="RUN_OR_TABLE", type=click.Path())
@option(
    FITTING,
    "--method",
    type=Choice(_METHODS),
    metavar="METHOD",
    help="For certified samples isotonic, temperature or beta; for predictions also platt, histogram, equal-mass, "
    "vector or matrix. Default: isotonic for certified samples, temperature for logits and probabilities, platt "
    "for confidences.",
)
@option(
    FITTING,
    "--tradeoff",
    callback=optional(_one_tradeoff),
    metavar="L",
    help="From 0 (without a perturbation) to 1 (the worst case). Default: 0.5; 1 without clean confidences.",
)
@option(
    FITTING,
    "--tradeoffs",
    callback=optional(parse_numbers(0, 1, "0,0.5,1")),
    metavar="L[,L...]",
    help="Others to compare it with. Default: 0,0.25,0.5,0.75,1.",
)
@option(
    FITTING,
    "--fraction",
    callback=partial(parse_share, example="0.5"),
    default="0.5",
    metavar="P",
    help="Share of the samples to fit to. Default: 0.5.",
)
@number(FITTING, "--seed", least=0, most=MOST_SEED, default="0", metavar="N", help="Of the split. Default: 0.")
@option(FITTING, "--fit-on-all", is_flag=True, help="Fit to all samples; then nothing is said about the map.")
@number(FITTING, "--map-bins", least=1, most=MOST_BINS, metavar="N", help="Bins of a map: histogram or equal-mass.")
@bin_count_option(FITTING)
@closed_option(FITTING)
@chosen_radii_option
@option(
    CERTIFYING,
    "--radius-weight",
    "radius_weights",
    callback=optional(parse_numbers(0, math.inf, "1,2")),
    metavar="W[,W...]",
    help="Weights of the radii in the fit, in their order. Default: equal.",
)
@delta_option(CERTIFYING)
@alpha_option
@familywise_options
@recalibrated_column_options
@file_options("Also write the map (.json), a page (.html) or the numbers (.csv)")
@click.pass_context
def fit(ctx: click.Context, source: str, as_json: bool, outputs: tuple[str, ...], force: bool, **options: Any) -> None:
    """Fit a map to one part of the samples, and judge it on the others.

    A run or a table of intervals: a map that never turns the order of two confidences round keeps certificates, so it
    can be fitted to be best in the worst case, without a perturbation, or in between. A table of predictions: the
    calibrators that people expect. Which it is, the columns tell. What is printed is about samples that the map was not
    fitted to.
    """
    from certcal.cli._outputs import announce, check_outputs
    from certcal.cli._recalibrated_sources import refuse_unused, source_kind
    from certcal.cli._recalibrating import fitted, written
    from certcal.cli._show_recalibrated import show_fitted, to_json

    given = [name for name in options if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT]
    path, kind = source_kind(source, given)
    refuse_unused(kind, source, given)
    endings = (".json", *(() if options["fit_on_all"] else (".csv",) if kind == "predictions" else (".html", ".csv")))
    paths = check_outputs(outputs, endings, force=force, sources=[path])
    found: Fitted = fitted(kind, path, options)
    written(found, paths, force=force, sources=[path])
    if as_json:
        click.echo(to_json(found, source), nl=False)
    else:
        show_fitted(found, source)
    announce(paths)


@click.command(cls=ExampleCommand, examples=_APPLY)
@click.argument("map_file", metavar="MAP", type=click.Path())
@click.argument("source", metavar="RUN_OR_TABLE", type=click.Path())
@chosen_radii_option
@alpha_option
@familywise_options
@recalibrated_column_options
@option(OUTPUT, "--all", "everything", is_flag=True, help="Also write samples that the map was fitted to.")
@file_options("The table to write (.parquet .csv)")
@click.pass_context
def apply(
    ctx: click.Context,
    map_file: str,
    source: str,
    everything: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Apply the map in the file MAP to a run, to a table of intervals or to a table of predictions.

    What is written is a table of intervals for certcal certify, or a table of predictions for certcal measure. Samples
    that the map was fitted to are left out, where they can be told by the fingerprint of the data.

    Predictions need no labels. Without them all rows are written, in their order, with the columns id or sample if
    there are such, or else with row, from 0; which of them the map was fitted to cannot be told.
    """
    from certcal._checks import InputError
    from certcal._files import write_bytes
    from certcal.cli._applying import ENDINGS, applied
    from certcal.cli._outputs import announce, check_outputs
    from certcal.cli._recalibrated_sources import refuse_unused, source_kind
    from certcal.cli._show_recalibrated import show_applied
    from certcal.cli._sources import existing

    mapping = existing(map_file, "map")
    if mapping.suffix.lower() != ".json" and source.lower().endswith(".json"):
        raise InputError(f"{source} looks like a map, and {map_file} does not; give the map first, then what it is for")
    given = [name for name in options if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT]
    path, kind = source_kind(source, given)
    refuse_unused(kind, source, given)
    if not outputs:
        raise InputError("-o FILE is missing; say where the table goes, such as -o after.parquet")
    paths = check_outputs(outputs, ENDINGS, force=force, sources=[mapping, path])
    endings = [each.suffix.lower() for each in paths]
    done = applied(mapping, kind, path, options, everything=everything, endings=endings)
    for each in paths:
        write_bytes(each, done.content(each.suffix.lower()), force=force)
    if as_json:
        click.echo(done.to_json(), nl=False)
    else:
        show_applied(done, paths[0])
    announce(paths)
