"""``certcal recalibrate``: fit a map that repairs confidences, and apply it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from certcal._base.checks import InputError
from certcal._base.files import write_bytes
from certcal.cli.app import Examples, LazyGroup, command
from certcal.cli.emit import DRAWN, Output, force_option, output_option, output_options, quiet_option
from certcal.cli.options import column_options, pop_columns, verb_options
from certcal.cli.progress import tell
from certcal.data.schema import OPTIONS
from certcal.result import PICTURES
from certcal.verbs.apply_map import ENDINGS, apply_map
from certcal.verbs.export_map import ENDINGS as EXPORTED
from certcal.verbs.export_map import export_map
from certcal.verbs.map_answer import answer_of_written_map
from certcal.verbs.recalibrate import PredictionRecalibration, has_figure
from certcal.verbs.recalibrate import recalibrate as verb

FITTING, CERTIFYING = "Fitting and judging", "Certifying"
_CERTIFIED = ("radii", "alpha", "kind", "familywise", "drawn_only")
_ROLES = (*OPTIONS, "lower", "upper", "certified", "radius_column", "sample")
_columns, _columns_to_fit = column_options(*_ROLES), column_options(*_ROLES, by="Recalibrate")
_FIT: Examples = (
    ("certcal recalibrate fit run -o map.json", "a run of certcal sample, at half of sigma"),
    ("certcal recalibrate fit run --radius .25,.5 --tradeoff 1 -o map.json", "for the worst case alone"),
    ("certcal recalibrate fit run --radius .5 -o map.json -o page.html", "with a page about it"),
    ("certcal recalibrate fit intervals.parquet", "the intervals of any verifier"),
    ("certcal recalibrate fit logits.npz -o map.json", "predictions: the best of several maps"),
    ("certcal recalibrate fit scores.csv --method isotonic -o map.json", "another calibrator"),
    ("certcal recalibrate fit scores.csv --by region -o map.json", "corrected in each region that has enough rows"),
    ("certcal recalibrate fit points.csv --real-scores -o map.json", "points of a scorecard, as probabilities"),
)
_APPLY: Examples = (
    ("certcal recalibrate apply map.json run --radius .5 -o after.parquet", "then: certcal certify after.parquet"),
    ("certcal recalibrate apply map.json predictions.csv -o after.csv", "then: certcal measure after.csv"),
    ("certcal recalibrate apply map.json unlabelled.csv -o after.parquet", "scores alone: nothing to measure"),
)
_EXPORT: Examples = (
    ("certcal recalibrate export map.json --to sql --column pd", "an expression for a SELECT list"),
    ("certcal recalibrate export map.json --to python -o calibrate.py", "a module that needs nothing else"),
    ("certcal recalibrate export map.json --to excel -o map.xlsx", "scores in column A, a formula in B"),
    ("certcal recalibrate export map.json --to onnx -o map.onnx", "float64, also of all classes"),
)


@click.group(
    cls=LazyGroup,
    commands_from={
        "fit": ("certcal.cli.recalibrate", "Fit a map, and judge it on samples that it was not fitted to."),
        "apply": ("certcal.cli.recalibrate", "Apply a map to a run or a table."),
        "export": ("certcal.cli.recalibrate", "Write a map as SQL, Python, Excel or ONNX."),
    },
    examples=(_FIT[0], _FIT[4], *_APPLY, _EXPORT[0]),
)
def recalibrate() -> None:
    """Recalibrate scores or confidences, also in the worst case."""


@command(*_FIT)
@click.argument("source", metavar="RUN_OR_TABLE", type=click.Path())
@verb_options(verb, FITTING, skip=_CERTIFIED)
@verb_options(verb, CERTIFYING, only=_CERTIFIED)
@_columns_to_fit
@output_options(DRAWN, mlflow=False, files={".json": "the map (.json)", ".csv": "numbers (.csv)"})
def fit(source: str, output: Output, **options: Any) -> None:
    """Fit a map, and judge it on samples that it was not fitted to.

    For a run or a table of intervals: a monotone map preserves certificates, so it can be fitted for the worst case,
    for clean inputs, or in between. For a table of predictions: the best of several maps, or none, fitted to all of
    them; each is judged by a map that was fitted without it. The columns decide which.
    """
    columns = _columns_by_role(source, options)
    if options["fit_on_all"]:
        output.endings = (".json",)
    output.check(source)
    picture = next((path for path in output.paths if path.suffix.lower() in PICTURES), None)
    if picture is not None and not has_figure(source, columns, **options):
        raise InputError(f"-o {picture}: a map of all classes has no figure; write a page (.html) or numbers (.csv)")
    found = verb(source, columns=columns, **options)
    written = next((path for path in output.files if path.lower().endswith(".json")), None)
    of_map = None
    if written is not None and isinstance(found, PredictionRecalibration):
        of_map = answer_of_written_map(found, written)
    output.emit(found, answer=of_map)


@command(*_APPLY)
@click.argument("map_file", metavar="MAP", type=click.Path())
@click.argument("source", metavar="RUN_OR_TABLE", type=click.Path())
@verb_options(apply_map, CERTIFYING, only=_CERTIFIED)
@_columns
@verb_options(apply_map, "Output", only=("everything",))
@output_options(ENDINGS, detail=False, mlflow=False, what="Write", files={".parquet": "the table (.parquet .csv)"})
def apply(map_file: str, source: str, output: Output, **options: Any) -> None:
    """Apply the map in the file MAP to a run, to a table of intervals or to a table of predictions.

    Writes a table of intervals for certcal certify, or a table of predictions for certcal measure. Samples that the
    map was fitted to are left out, if the fingerprint of the data tells them.

    A table of predictions keeps its other columns; where none is called id or sample, the number of the row is added.
    Predictions need no labels: without them all rows are written, in their order, and which of them the map was fitted
    to is unknown.
    """
    from certcal.cli.sources import existing

    existing(map_file, "map")
    if not map_file.lower().endswith(".json") and source.lower().endswith(".json"):
        raise InputError(f"{source} looks like a map, and {map_file} does not; give the map first, then what it is for")
    columns = _columns_by_role(source, options)
    if not output.files:
        raise InputError("-o FILE is missing; say where the table goes, such as -o after.parquet")
    output.check(map_file, source)
    done = apply_map(map_file, source, columns=columns, **options)
    output.emit(done, files=output.paths)


@command(*_EXPORT)
@click.argument("map_file", metavar="MAP", type=click.Path())
@verb_options(export_map, "Language")
@output_option("FILE", "Write .sql .py .xlsx or .onnx.", required=False)
@force_option
@quiet_option
def export(map_file: str, to: Any, column: str | None, out: str | None, force: bool) -> None:
    """Write the map in the file MAP in a language that needs no certcal.

    SQL and Python are printed, or written with -o. Maps of one score go to all languages, maps of all classes to Python
    and ONNX. A score that is missing or outside the range of the map gets NULL, #N/A, NaN or an error in Python.
    """
    from certcal.cli.sources import existing

    existing(map_file, "map")
    content = export_map(map_file, to=to, column=column)
    ending = EXPORTED[to]
    if out is None and to in ("excel", "onnx"):
        raise InputError(f"-o FILE is missing; say where the file goes, such as -o map{ending}")
    Output((ending,), as_json=False, files=() if out is None else (out,), force=force).check(map_file)
    if out is None:
        click.echo(content, nl=False)
        return
    write_bytes(Path(out), content.encode() if isinstance(content, str) else content, force=force)
    tell(f"wrote {out}")


def _columns_by_role(source: str, options: dict[str, Any]) -> dict[str, Any]:
    from certcal.cli.sources import existing

    existing(source, "run or table")
    return {{"radius_column": "radius"}.get(role, role): name for role, name in pop_columns(options, _ROLES).items()}
