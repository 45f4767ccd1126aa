"""Which is better? Runs and published logs, training methods at several noise levels, or two tables."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, Protocol, cast, overload

from certcal._base.checks import InputError
from certcal._base.extensions import EXTENSIONS
from certcal._base.progress import ProgressLike, as_reporter
from certcal._base.signature import Option, Range, Takes, check_arguments, defaults_of, gather, verb
from certcal._base.text import counted
from certcal._base.told import Told
from certcal.data import open_table
from certcal.data.formats import existing
from certcal.data.frames import collected
from certcal.data.layout import log_columns
from certcal.data.sources import Table
from certcal.predictions import Predictions
from certcal.verbs.bound import Bounds
from certcal.verbs.changes import ChangeComparison, compare_results, compare_tables
from certcal.verbs.measure import Measurement

if TYPE_CHECKING:
    from certcal.lab.logs import CertificationLog, Comparison
    from certcal.smoothing import Counts, Run
    from certcal.smoothing.robustness import VoteRecord

    RunLike = str | os.PathLike[str] | Run | Counts | CertificationLog | VoteRecord

OfTables = ParamSpec("OfTables")
OfRuns = ParamSpec("OfRuns")

TABLE = "a table of predictions"
_LOG = {"idx", "predict", "radius"}


@dataclass(frozen=True)
class CompareSettings(Told):
    """How runs and logs are compared; ``compare(*sources, **vars(settings))`` does it again."""

    radii: tuple[float, ...]
    alpha: float | None
    budgets: tuple[Any, ...]
    samples: str
    sigma: tuple[float, ...]
    n: tuple[int, ...]


@verb()
def compare_runs(
    *sources: RunLike,
    radii: Annotated[float | Iterable[float], Range(0), Option("--radius", "R")] = (),
    alpha: Annotated[float | None, Takes("failure")] = None,
    budgets: Annotated[Iterable[tuple[int, float]], Takes("text"), Option("--budget", "N,ALPHA")] = (),
    samples: Literal["all", "common", "unpaired"] = "all",
    sigma: Annotated[float | Iterable[float], Takes("positive"), Option(metavar="S", ordered=True)] = (),
    n: Annotated[int | Iterable[int], Range(1, 10**9), Option("-n", ordered=True)] = (),
    progress: ProgressLike = True,
) -> Comparison:
    """Compare runs and logs, or one mapping of families of them; see :func:`compare`."""
    progress = as_reporter(progress)
    asked = gather(CompareSettings, locals())
    progress.stage("comparing")
    return EXTENSIONS["logs"]().compare_sources(sources, asked)


class CompareVerb(Protocol[OfTables, OfRuns]):
    """What can be compared, and what comes of it."""

    @overload
    def __call__(self, old: Measurement, new: Measurement, /) -> ChangeComparison: ...
    @overload
    def __call__(self, old: Bounds, new: Bounds, /) -> ChangeComparison: ...
    @overload
    def __call__(
        self, old: str | os.PathLike[str], new: str | os.PathLike[str], /
    ) -> ChangeComparison | Comparison: ...
    @overload
    def __call__(self, table: Table, /, *, score: str | Sequence[str], **options: Any) -> ChangeComparison: ...
    @overload
    def __call__(self, *args: OfTables.args, **options: OfTables.kwargs) -> ChangeComparison: ...
    @overload
    def __call__(self, *args: OfRuns.args, **options: OfRuns.kwargs) -> Comparison: ...
    @overload
    def __call__(
        self,
        families: Mapping[str, RunLike | Iterable[RunLike]] = ...,
        /,
        *,
        radii: float | Iterable[float] = ...,
        alpha: float | None = ...,
        budgets: Iterable[tuple[int, float]] = ...,
        samples: Literal["all", "common", "unpaired"] = ...,
        sigma: float | Iterable[float] = ...,
        n: int | Iterable[int] = ...,
        progress: ProgressLike = ...,
        **named: RunLike | Iterable[RunLike],
    ) -> Comparison: ...


def _of_either(
    tables: Callable[OfTables, ChangeComparison], runs: Callable[OfRuns, Any]
) -> Callable[[Callable[..., Any]], CompareVerb[OfTables, OfRuns]]:
    """Let a function be seen with the keywords of those that compare tables and runs."""

    def decorate(function: Callable[..., Any]) -> Any:
        own = inspect.signature(function)
        first = next(iter(own.parameters.values()))
        both = {**inspect.signature(tables).parameters, **inspect.signature(runs).parameters}
        keywords = [each for each in both.values() if each.kind is each.KEYWORD_ONLY]
        cast("Any", function).__signature__ = own.replace(parameters=[first, *keywords])
        return function

    return decorate


@_of_either(compare_tables, compare_runs)
def compare(*sources: Any, **options: Any) -> Comparison | ChangeComparison:
    """Compare two tables of predictions, or the certified robustness of runs, published logs and training methods.

    Of tables: better, worse or unclear by a proper score; old, new and the difference of each metric with an interval,
    row by row where rows are the same samples. One table with two columns of scores is compared with itself.

    Of runs: every keyword that is none of those below is a family, the runs of one training method at one or more noise
    levels. Several at one noise level are other seeds of the same training; their values are means over them, with
    standard deviations.

    Parameters
    ----------
    sources
        Two tables, as for :func:`certcal.measure`, or one, with two names as ``score``. Or two results of
        :func:`certcal.measure` or :func:`certcal.bound`, without keywords. Or folders of runs or of logs, files of
        logs, or what was read from them (:class:`~certcal.smoothing.Run`, its counts, a
        :class:`~certcal.lab.logs.CertificationLog`, a :class:`~certcal.smoothing.robustness.VoteRecord`). Or one
        mapping from names of families to such sources.
    key
        Of tables: a column of both that says which sample a row is. By default one called id or sample, where its
        values are different from row to row.
    by
        Of tables: compare each value of this column beside the whole; for Predictions, the group of each sample.
    score, outcome, positive, negative, confidence, correct, prediction, label, probabilities, logits, weight
        Columns of both tables by role, where their names do not say it.
    decimal, percent, encoding, missing, skip, sheet
        How tables are read; as for :func:`certcal.measure`.
    columns
        The same, as a dictionary.
    names
        What the two tables are called; by default the files' names.
    pair
        How rows are paired: by their order, not at all, or by the key, else by their order where what was true agrees
        row by row.
    bins
        Number of bins; give several to compare them.
    closed
        Closed end of each bin.
    metrics
        Metric to report, or all; repeatable. Default: as of :func:`certcal.measure`.
    level
        Confidence level of the intervals of differences.
    seed
        Random seed of resampling and of the bounds' split.
    bounds
        Also bound the difference of the binned errors and of the Brier scores.
    delta
        Failure probability of each bound.
    radii
        Radii at which certified accuracy and calibration are compared. Default: steps up to the largest certified
        radius.
    alpha
        Failure probability of each certificate of a run (default: 0.001); of a log, the level it claims (default:
        inferred).
    budgets
        Also certified accuracy as N noise samples at level ALPHA would give it; repeatable. Default: 100,0.01
        1000,0.001 and 100000,0.001.
    samples
        Which samples: all, which families must share, the common ones of all runs, or unpaired, those of each run.
    sigma
        Noise level of the logs: once for all, or once for each in order. Default: found from the radii.
    n
        Noise samples per input of the logs: once for all, or once for each in order.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> plain = VoteRecord.of([90, 90, 80], 100, [1, 1, 1], sigma=1.0)
    >>> sharp = VoteRecord.of([100, 100, 30], 100, [1, 1, 1], sigma=1.0)
    >>> certcal.compare(plain, sharp, radii=[0, 1]).best.names
    (('A',), ('B',))
    >>> certcal.compare(gaussian=plain, acr=sharp, radii=[0, 1])
    <Comparison of gaussian, acr at 2 radii>
    >>> old = {"id": [1, 2, 3], "score": [0.9, 0.8, 0.1], "outcome": [1, 0, 0]}
    >>> new = {"id": [3, 2, 1], "score": [0.2, 0.3, 0.9], "outcome": [0, 0, 1]}
    >>> found = certcal.compare(old, new)
    >>> found.pairing.why, round(found["ece"].difference, 3)
    ("rows are paired by 'id'", -0.133)
    >>> both = {"old": [0.9, 0.8, 0.1], "new": [0.9, 0.3, 0.2], "outcome": [1, 0, 0]}
    >>> print(certcal.compare(both, score=["old", "new"], outcome="outcome").answer[0].text)
    Which is better is unclear: the log loss falls from 0.6067 to 0.2284, within sampling error.
    """
    sources = tuple(map(collected, sources))
    if _are_results(sources):
        if options:
            raise InputError("two measurements or bounds are compared without settings; leave them out")
        return compare_results(*sources)
    if len(sources) == 2 and all(map(is_path, sources)) and len({*map(str, sources)}) == 1 and options.get("score"):
        sources = sources[:1]  # one file twice, with a score for each side
    if len(sources) == 1 and options.get("score") is not None:
        table = open_table(sources[0]) if is_path(sources[0]) else sources[0]
        return compare_tables(table, table, **options)
    if are_tables(sources):
        if len(sources) != 2:
            raise InputError(f"{counted(len(sources), 'table')} cannot be compared; tables are compared two at a time")
        return compare_tables(*sources, **options)
    refuse_lone_table(sources)
    known = [*defaults_of(compare_runs), "progress"]
    families = {name: options.pop(name) for name in list(options) if name not in known}
    if len(sources) == 1 and isinstance(sources[0], Mapping):
        families, sources = {**cast("Mapping[str, Any]", sources[0]), **families}, ()
    numbers = [
        name for name, given in families.items() if any(isinstance(each, int | float) for each in as_list(given))
    ]
    check_arguments(numbers, known[:-1])
    if families and sources:
        raise InputError("some sources belong to a family and some do not; name all of them, or none")
    return compare_runs(*([cast("Any", families)] if families else sources), **options)


def _are_results(sources: Sequence[Any]) -> bool:
    """Whether measurements or bounds are compared; beside anything else they are refused."""
    results = [isinstance(source, Measurement | Bounds) for source in sources]
    if any(results) and not all(results):
        place = results.index(False)
        raise InputError(
            f"source {place + 1} is {source_kind(sources[place])}, and source {results.index(True) + 1} a result; "
            "compare two of one kind"
        )
    return any(results)


def are_tables(sources: Sequence[Any]) -> bool:
    """Whether tables of predictions are compared; a table beside a run or a log is refused."""
    if len(sources) < 2:
        return False
    if [str(source) for source in sources if is_path(source)].count("-") > 1:
        raise InputError("standard input is given twice and can be read once; give a file for the other")
    kinds = [source_kind(source) for source in sources]
    if len(set(kinds)) > 1 and TABLE in kinds:
        other = next(place for place, kind in enumerate(kinds) if kind != TABLE)
        names = [str(source) if is_path(source) else f"source {place + 1}" for place, source in enumerate(sources)]
        for source in sources:
            if is_path(source) and str(source) != "-":
                existing(Path(source), "run, log or table")
        table = kinds.index(TABLE)
        raise InputError(f"{names[table]} is {TABLE} and {names[other]} is {kinds[other]}; compare two of one kind")
    return kinds[0] == TABLE


def refuse_lone_table(sources: Sequence[Any]) -> None:
    """Refuse one table of predictions, which there is nothing to compare with."""
    if len(sources) != 1 or not is_path(sources[0]) or source_kind(sources[0]) != TABLE:
        return
    if "radius" not in log_columns(open_table(sources[0]).names):
        reason = f"{sources[0]} is {TABLE}, and a second one is missing"
        raise InputError(reason, remedy="give the old and the new one, or two columns of this one", roles=("score",))


def source_kind(source: Any) -> str:
    """What a source is, as far as it says so without being read."""
    from certcal.smoothing import Run

    if isinstance(source, Run) or (is_path(source) and Path(source).is_dir()):
        return "a run"
    if not is_path(source):
        named = any(hasattr(source, name) for name in ("columns", "__arrow_c_stream__"))
        return TABLE if named or isinstance(source, Predictions | Mapping) else "a log"
    if not Path(source).exists() and str(source) != "-":
        return "a log"  # which will say that it is not there
    if str(source).endswith(".json") and Path(source).is_file():
        reason = f"{source} holds the numbers of a result, and its rows are not in it"
        raise InputError(reason, remedy="give the table that it was made from")
    try:
        names = open_table(source).names
    except InputError:
        return "a log"  # which has its own reader
    return "a log" if log_columns(names).keys() >= _LOG else TABLE


def as_list(sources: Any) -> Sequence[Any]:
    """One source or several as a list."""
    return cast("Sequence[Any]", sources) if isinstance(sources, list | tuple) else [sources]


def is_path(source: Any) -> bool:
    """Whether a source is the name of a file or folder."""
    return isinstance(source, str | os.PathLike)
