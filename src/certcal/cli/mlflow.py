"""``--mlflow``: what a command has found, in MLflow as well; where, MLflow's own environment says."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from certcal._base.checks import InputError
from certcal._base.progress import watching
from certcal.cli.options import OUTPUT, option
from certcal.cli.progress import is_quiet, tell

_SECRET = re.compile(r"//[^/@\s]*@")


def _needing_mlflow(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value and find_spec("mlflow") is None:
        raise InputError("--mlflow needs mlflow; run: pip install 'certcal[mlflow]'")
    return value


mlflow_option = option(
    OUTPUT,
    "--mlflow",
    is_flag=True,
    callback=_needing_mlflow,
    help="Also log numbers, settings and files to MLflow (see MLFLOW_TRACKING_URI).",
)


def log_to_mlflow(results: Any, paths: Iterable[Path]) -> None:
    """Log results and files of the command that is running; the last thing it does."""
    prefix = "_".join(click.get_current_context().command_path.split()[1:]) + "/"
    with watching(True) as waiting:
        waiting.stage("logging to MLflow")
        logged = _log_quietly(results, prefix, paths)
    what = f"{len(logged.metrics)} numbers" if logged.metrics else "the table"
    tell(f"logged {what} to MLflow: run {logged.run_id} of experiment {logged.experiment_id}")
    if logged.left_out:
        tell(f"infinite or undefined, and in results.json only: {', '.join(logged.left_out)}")


def _log_quietly(results: Any, prefix: str, paths: Iterable[Path]) -> Any:
    try:
        # MLflow greets on standard output, which may be JSON, and tells about the tables of its database.
        logging.getLogger("mlflow").setLevel(logging.ERROR if is_quiet() else logging.WARNING)
        with redirect_stdout(io.StringIO() if is_quiet() else sys.stderr):
            from certcal.interop.mlflow import log

            return log(results, prefix=prefix, files=paths)
    except (InputError, KeyboardInterrupt):
        raise
    except Exception as error:  # servers and stores fail in many ways, plugins in more
        reason = _SECRET.sub("//", (str(error).strip() or type(error).__name__).splitlines()[0])
        raise InputError(f"MLflow did not take the results, which are complete here ({reason})") from None
