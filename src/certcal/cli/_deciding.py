"""``certcal sample --decide-radius``: draw for each sample only until one question is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from certcal._checks import InputError
from certcal._files import refuse_overwriting
from certcal.cli._progress import Waiting, tell
from certcal.cli._show_decisions import show_decisions, write_decisions
from certcal.models import Model
from certcal.smoothing import Decisions, decide

ENDINGS = (".json", ".parquet")


def check_decisions_file(output: str | None, *, force: bool, workers: int) -> Path | None:
    """Refuse what could not be done later, before the model is called.

    Examples
    --------
    >>> check_decisions_file("run", force=False, workers=1)
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: -o run: decisions are written to a file; choose one of the endings .json, .parquet
    """
    if workers > 1:
        raise InputError("--workers is for runs, and --decide-radius draws in this process; leave one of them out")
    if output is None:
        return None
    path = Path(output)
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"-o {path}: decisions are written to a file; choose one of the endings {', '.join(ENDINGS)}")
    refuse_overwriting(path, force=force)
    return path


def decided(model: Model, inputs: Any, labels: Any, waiting: Waiting, **settings: Any) -> Decisions:
    """Decide about every sample, with progress.

    Parameters
    ----------
    model, inputs, labels
        What is decided about.
    waiting
        Where progress shows.
    settings
        Of :func:`certcal.smoothing.decide`.
    """
    before = [0]

    def progress(finished: int, _: int) -> None:
        waiting.advance(finished - before[-1])
        before[:] = [finished]

    waiting.stage("deciding", len(labels))
    return decide(model, inputs, labels, progress=progress, **settings)


def hand_over(decisions: Decisions, source: str, path: Path | None, *, force: bool, as_json: bool) -> None:
    """Write decisions to their file, if there is one, and print them."""
    if path is not None:
        write_decisions(decisions, path, force=force)
    if as_json:
        click.echo(decisions.to_bytes(".json").decode(), nl=False)
    else:
        show_decisions(decisions, source)
    if path is not None:
        tell(f"wrote {path}")
