# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The annotations of mlflow are incomplete.
"""Results in MLflow: numbers as metrics, settings as parameters, sentences and everything else as artifacts.

What kind of claim a number is stands in front of its name: ``estimate/``, ``bound/``, ``certificate/``,
``worst_case/`` (of given intervals) or ``certified_value/``; a bound or certificate ends in ``_at_most`` or
``_at_least``. Importing this module needs the extra ``certcal[mlflow]``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

from certcal._base.checks import InputError
from certcal._base.json import as_text, for_json
from certcal.interop._numbers import Number, check_prefix, found_in

try:
    import mlflow
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.tracking import MlflowClient
except ModuleNotFoundError as error:
    if error.name != "mlflow":
        raise
    raise ImportError(
        "certcal.interop.mlflow needs mlflow; install it with: pip install 'certcal[mlflow]'", name="mlflow"
    ) from error

Item = TypeVar("Item")

# What servers take at once, and the longest texts that all of them take.
_METRICS_AT_ONCE, _PARAMS_AT_ONCE = 1000, 100
_LONGEST_PARAM, _LONGEST_NOTE = 500, 5000
_NOTE = "mlflow.note.content"


@dataclass(frozen=True)
class Logged:
    """What is in MLflow now."""

    run_id: str
    experiment_id: str
    """Where it is."""
    metrics: Mapping[str, float]
    """Names and values."""
    params: Mapping[str, str]
    """Names and texts."""
    left_out: tuple[str, ...] = ()
    """Names of numbers that are undefined or infinite. They are in results.json only: a server may store others."""


def log(
    results: Any,
    *,
    run_id: str | None = None,
    prefix: str = "",
    step: int = 0,
    files: Iterable[str | Path] = (),
    params: bool = True,
) -> Logged:
    """Log claims to a run of MLflow: the one given, the active one, that of MLFLOW_RUN_ID, or a new one.

    Values are those in memory, all digits; bounds and certificates were moved outward when they were computed, and the
    texts in the sentences are rounded outward. MLflow's tables round to the nearest: the sentence is the claim.

    Parameters
    ----------
    results
        An estimate, bound, certificate, worst case, the result of ``measure`` or ``certify``, the results of a command,
        or lists and mappings of such; the keys of a mapping become names.
    run_id
        A run to log to. Its status does not change.
    prefix
        Comes before the names of metrics and parameters, and is the folder of the artifacts.
    step
        Of the metrics: an epoch, say.
    files
        Further artifacts, such as a page.
    params
        Whether settings are logged. MLflow allows one value per run, so that settings which change from step to step
        need False, or a prefix for each.

    Returns
    -------
    Logged
        Where it is, and under which names. Beside it are the artifacts ``results.json``, everything with all digits,
        and ``claims.txt``, the sentences; they become the run's description when it has none.

    Raises
    ------
    InputError
        When there is no claim in ``results`` and no file, or the run already has another value of a setting. Nothing is
        logged then.
    mlflow.exceptions.MlflowException
        What MLflow refuses or cannot reach.

    Examples
    --------
    ``log(certcal.measure(predictions), prefix="validation/")`` is all it takes. A plain number is no claim:

    >>> log(0.0398)
    Traceback (most recent call last):
        ...
    certcal.InputError: results holds a float, which claims nothing; pass what certcal's functions return, and
    log plain numbers with mlflow.log_metric
    """
    check_prefix(prefix)
    kept = _require_files(files)
    document = for_json(_as_document(results))
    found = found_in(document)
    if not found.numbers and not found.left_out and not kept:
        raise InputError("results holds no claim; pass what certcal's functions and commands return")
    settings = {prefix + name: text[:_LONGEST_PARAM] for name, text in found.settings.items()} if params else {}
    metrics = {prefix + number.name: number.value for number in found.numbers}
    with _run_to_log_to(run_id) as (client, run):
        _refuse_other_params(run, settings)
        now = int(time.time() * 1000)
        for some in _item_batches([Param(name, text) for name, text in settings.items()], _PARAMS_AT_ONCE):
            client.log_batch(run.info.run_id, params=some)
        for some in _item_batches(
            [Metric(name, value, now, step) for name, value in metrics.items()], _METRICS_AT_ONCE
        ):
            client.log_batch(run.info.run_id, metrics=some)
        claims = _claims_file(prefix, (*found.numbers, *found.left_out))
        _keep(client, run, prefix, {"results.json": as_text(document), "claims.txt": claims}, kept)
        client.log_batch(run.info.run_id, tags=_tags(run, claims))
        return Logged(
            run.info.run_id,
            run.info.experiment_id,
            metrics,
            settings,
            tuple(prefix + number.name for number in found.left_out),
        )


def _as_document(results: Any) -> Any:
    if hasattr(results, "to_dict"):
        return results.to_dict()
    if isinstance(results, Mapping):
        return {str(name): _as_document(each) for name, each in cast("Mapping[Any, Any]", results).items()}
    if isinstance(results, list | tuple):
        return [_as_document(each) for each in cast("Sequence[Any]", results)]
    raise InputError(
        f"results holds a {type(results).__name__}, which claims nothing; pass what certcal's functions return, "
        "and log plain numbers with mlflow.log_metric"
    )


def _require_files(files: Iterable[str | Path]) -> list[Path]:
    paths = [Path(file) for file in files]
    for path in paths:
        if not path.is_file():
            raise InputError(f"files has {path}, which is no file; write it first")
    return paths


@contextmanager
def _run_to_log_to(run_id: str | None) -> Generator[tuple[MlflowClient, Any]]:
    """A run to log to; only one that is started here is also ended here."""
    active = mlflow.active_run()
    chosen = run_id or (active.info.run_id if active is not None else os.environ.get("MLFLOW_RUN_ID"))
    client = MlflowClient()
    if chosen:
        yield client, client.get_run(chosen)
        return
    with mlflow.start_run() as started:
        yield client, client.get_run(started.info.run_id)


def _refuse_other_params(run: Any, settings: Mapping[str, str]) -> None:
    for name, text in settings.items():
        there = run.data.params.get(name, text)
        if there != text:
            raise InputError(
                f"run {run.info.run_id} has {name} = {there} already, and these results have {text}; give a prefix, "
                "another run, or params=False"
            )


def _item_batches(items: list[Item], size: int) -> Iterator[list[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _claims_file(prefix: str, numbers: Iterable[Number]) -> str:
    """Each claim under the name of its number."""
    return "\n".join(f"{prefix}{number.name}\n    {number.sentence}\n" for number in numbers if number.sentence)


def _keep(client: MlflowClient, run: Any, prefix: str, texts: Mapping[str, str], files: Iterable[Path]) -> None:
    folder = prefix.rstrip("/")
    for name, text in texts.items():
        client.log_text(run.info.run_id, text, f"{folder}/{name}" if folder else name)
    for path in files:
        client.log_artifact(run.info.run_id, str(path), folder or None)


def _tags(run: Any, claims: str) -> list[RunTag]:
    """The version, and the claims as the run's description unless it has one."""
    tags = [RunTag("certcal.version", version("certcal"))]
    if _NOTE not in run.data.tags:
        tags.append(RunTag(_NOTE, _in_markdown(claims)))
    return tags


def _in_markdown(claims: str) -> str:
    """As many claims as a description holds, as a list."""
    note = ""
    for claim in claims.split("\n\n"):
        name, _, sentence = claim.strip().partition("\n")
        line = f"- `{name}`: {sentence.strip()}\n"
        if len(note) + len(line) > _LONGEST_NOTE:
            return f"{note}- … (the rest is in claims.txt)\n"
        note += line
    return note
