"""Which is better? Runs and published logs, training methods at several noise levels, or two measurements."""

from __future__ import annotations

import math
import os
import string
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast, overload

from certcal._checks import InputError
from certcal._progress import SILENT, Progress
from certcal._settings import Settings, check_arguments, setting
from certcal._text import counted
from certcal.claims import Bound, Estimate
from certcal.data import existing, open_table, resolve_columns
from certcal.result import Result
from certcal.verbs.bound import Bounds
from certcal.verbs.measure import Measurement

if TYPE_CHECKING:
    from certcal.smoothing.robustness import Comparison, FamilyComparison

_ALPHA = 0.001


@dataclass(frozen=True)
class CompareSettings(Settings):
    """Where runs and logs are compared, and what logs do not say of themselves.

    Examples
    --------
    >>> CompareSettings(radii=0.5).radii
    (0.5,)
    """

    radii: tuple[float, ...] = setting(
        (),
        "Radii at which certified accuracy is compared. Default: steps up to the largest certified radius.",
        "number",
        many=True,
        least=0,
        metavar="R",
        flag="--radius",
    )
    alpha: float | None = setting(
        None,
        "Failure probability of each certificate of a run (default: 0.001); of a log, the level it claims "
        "(default: inferred).",
        "failure",
    )
    budgets: tuple[Any, ...] = setting(
        (),
        "With families: also certified accuracy as N noise samples at level ALPHA would give it; repeatable. "
        "Default: 100,0.01 1000,0.001 and 100000,0.001.",
        "text",
        many=True,
        metavar="N,ALPHA",
        flag="--budget",
    )
    sigma: tuple[float, ...] = setting(
        (),
        "Noise level of the logs: once for all, or once for each in order.",
        "positive",
        many=True,
        ordered=True,
        metavar="S",
    )
    n: tuple[int, ...] = setting(
        (),
        "Noise samples per input of the logs: once for all, or once for each in order.",
        "whole",
        many=True,
        ordered=True,
        least=1,
        most=10**9,
        flag="-n",
    )

    sections: ClassVar[dict[str, tuple[str, ...]]] = {"Published logs (a run knows these itself)": ("sigma", "n")}


@dataclass(frozen=True)
class Change:
    """One number in two results.

    Attributes
    ----------
    name
        Of the metric or the bound's method.
    old, new
        The claims.
    """

    name: str
    old: Estimate | Bound
    new: Estimate | Bound

    @property
    def difference(self) -> float:
        """The new value minus the old."""
        return float(self.new.value) - float(self.old.value)

    @property
    def overlap(self) -> bool | None:
        """Whether the two intervals overlap; None unless both numbers have one."""
        one, other = (getattr(claim, "interval", None) for claim in (self.old, self.new))
        if one is None or other is None or math.isnan(one.lower + one.upper + other.lower + other.upper):
            return None
        return one.lower <= other.upper and other.lower <= one.upper


@dataclass(frozen=True, eq=False, repr=False)
class ChangeComparison(Result):
    """Two measurements, or two results of bounds, side by side.

    Attributes
    ----------
    kind
        "estimates" or "bounds".
    old, new
        What they are of.
    rows
        Every number that both have.
    unmatched
        Names of those that only one has.

    Examples
    --------
    >>> import certcal
    >>> old = certcal.measure({"confidence": [0.9, 0.8], "correct": [1, 0]}, source="old")
    >>> new = certcal.measure({"confidence": [0.9, 0.6], "correct": [1, 0]}, source="new")
    >>> round(certcal.compare(old, new)["ece"].difference, 3)
    -0.1
    """

    view: ClassVar[str] = "certcal.report.views.changes"

    kind: str
    old: str
    new: str
    rows: tuple[Change, ...]
    unmatched: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Change:
        found = next((row for row in self.rows if row.name == name), None)
        if found is None:
            raise InputError(f"{name!r} is not among what both have: {', '.join(row.name for row in self.rows)}")
        return found

    def __repr__(self) -> str:
        return f"<ChangeComparison of {counted(len(self.rows), self.kind[:-1])}: {self.old} → {self.new}>"

    @property
    def sources(self) -> Sequence[str]:
        """What was compared."""
        return (self.old, self.new)

    @property
    def headline(self) -> Change | None:
        """The calibration error, or whatever both have first; None when they have nothing in common."""
        return next((row for row in self.rows if row.name == "ece"), next(iter(self.rows), None))

    def claims(self) -> Sequence[Estimate | Bound]:
        """The new numbers, that of the headline first, then the old ones."""
        rows = sorted(self.rows, key=lambda row: row is not self.headline)
        return (*(row.new for row in rows), *(row.old for row in rows))

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": f"comparison of {self.kind}",
            "old": self.old,
            "new": self.new,
            "rows": [
                {
                    "name": row.name,
                    "old": row.old.to_dict(),
                    "new": row.new.to_dict(),
                    "difference": row.difference,
                    "intervals_overlap": row.overlap,
                }
                for row in self.rows
            ],
            "unmatched": list(self.unmatched),
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per number."""
        return {
            "name": [row.name for row in self.rows],
            "bins": [row.old.settings.get("bins") for row in self.rows],
            "old": [float(row.old.value) for row in self.rows],
            "new": [float(row.new.value) for row in self.rows],
            "difference": [row.difference for row in self.rows],
            "intervals_overlap": [row.overlap for row in self.rows],
        }


@overload
def compare(old: Measurement, new: Measurement, /) -> ChangeComparison: ...
@overload
def compare(old: Bounds, new: Bounds, /) -> ChangeComparison: ...
@overload
def compare(*sources: Any, **families: Any) -> Comparison | FamilyComparison: ...
def compare(
    *sources: Any, settings: CompareSettings | None = None, progress: Progress = SILENT, **families: Any
) -> Comparison | FamilyComparison | ChangeComparison:
    """Compare the certified robustness of runs, published logs or training methods; or two measurements.

    Keywords that are fields of :class:`CompareSettings` are settings: radii, alpha, budgets, sigma, n. Every other
    keyword is a family: the runs of one training method, each at another noise level.

    Parameters
    ----------
    sources
        Folders of runs, files of logs, or what was read from them (:class:`~certcal.smoothing.Run`, its counts, a
        :class:`~certcal.smoothing.CertificationLog`, a :class:`~certcal.smoothing.robustness.VoteRecord`). Or one
        mapping from names of families to such sources. Or two results of :func:`certcal.measure` or
        :func:`certcal.bound`.
    settings
        All settings at once.
    progress
        Where to report how far the work is.
    families
        One source or several of each family.

    Examples
    --------
    >>> import certcal
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> plain = VoteRecord.of([90, 90, 80], 100, [1, 1, 1], sigma=1.0)
    >>> sharp = VoteRecord.of([100, 100, 30], 100, [1, 1, 1], sigma=1.0)
    >>> certcal.compare(plain, sharp, radii=[0, 1]).best.names
    (('A',), ('B',))
    >>> certcal.compare(gaussian=plain, acr=sharp, radii=[0, 1])
    <FamilyComparison of gaussian, acr at sigma 1>
    """
    given = {each.name: families.pop(each.name) for each in fields(CompareSettings) if each.name in families}
    if settings is not None and given:
        raise InputError(f"settings and {next(iter(given))} are both given; choose one")
    if any(isinstance(source, Measurement | Bounds) for source in sources):
        if given or families or settings is not None:
            raise InputError("two measurements or bounds are compared without settings; leave them out")
        return _changes(*sources)
    asked = CompareSettings(**given) if settings is None else settings
    if len(sources) == 1 and isinstance(sources[0], Mapping):
        families, sources = {**cast("Mapping[str, Any]", sources[0]), **families}, ()
    numbers = [
        name for name, given in families.items() if any(isinstance(each, int | float) for each in _several(given))
    ]
    check_arguments(numbers, [each.name for each in fields(CompareSettings)])
    if families and sources:
        raise InputError("some sources belong to a family and some do not; name all of them, or none")
    progress.stage("comparing")
    return _families(families, asked) if families else _runs(sources, asked)


def _changes(*results: Any) -> ChangeComparison:
    if len(results) != 2 or type(results[0]) is not type(results[1]):
        raise InputError("measurements and bounds are compared in pairs of one kind; pass two of the same kind")
    old, new = results
    if isinstance(old, Bounds):
        kind, before, after = "bounds", dict(old.bounds), dict(cast("Bounds", new).bounds)
    else:
        kind, before, after = "estimates", *(_by_setting(each) for each in results)
    both = [key for key in before if key in after]
    rows = tuple(Change(_name(key), before[key], after[key]) for key in both)
    rest = dict.fromkeys(_name(key) for key in (*before, *after) if not (key in before and key in after))
    return ChangeComparison(kind, old.source, new.source, rows, tuple(rest))


def _by_setting(found: Measurement) -> dict[Any, Estimate]:
    return {(row.name, repr(sorted(row.settings.items()))): row for row in found.rows}


def _name(key: Any) -> str:
    return key if isinstance(key, str) else key[0]


def _runs(sources: Sequence[Any], asked: CompareSettings) -> Comparison:
    from certcal.smoothing.robustness import compare as compare_runs

    if not sources:
        raise InputError("there is nothing to compare; pass at least one run or log")
    if asked.budgets:
        raise InputError("other budgets are for families", argument="budgets", remedy="name the runs, as in NAME=RUN")
    read, origins = _read(sources, asked)
    named = [_named(source, letter) for source, letter in zip(read, letters(len(read)), strict=True)]
    found = compare_runs(named, asked.radii or None, alpha=_ALPHA if asked.alpha is None else asked.alpha)
    return replace(found, origins=dict(zip((run.name for run in found.runs), origins, strict=True)))


def _families(families: Mapping[str, Any], asked: CompareSettings) -> FamilyComparison:
    from certcal.smoothing.robustness import DEFAULT_BUDGETS, compare_families

    listed = [(name, each) for name, several in families.items() for each in _several(several)]
    read, origins = _read([source for _, source in listed], asked)
    members: dict[str, list[Any]] = {name: [] for name in families}
    paths: dict[tuple[str, float], str] = {}
    for (name, _), source, origin in zip(listed, read, origins, strict=True):
        sigma = float(source.sigma)
        if (name, sigma) in paths and origin:
            raise InputError(
                f"{name}={origin} and {name}={paths[name, sigma]} have the same sigma {sigma:g}, and a family has one "
                "run per noise level; give one of them another name"
            )
        members[name].append(source)
        paths[name, sigma] = origin
    alpha = _ALPHA if asked.alpha is None else asked.alpha
    found = compare_families(members, asked.radii or None, alpha=alpha, settings=asked.budgets or DEFAULT_BUDGETS)
    return replace(
        found, origins={run.name: paths[family.name, run.sigma] for family in found.families for run in family.runs}
    )


def _several(sources: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", sources) if isinstance(sources, list | tuple) else [sources]


def letters(count: int) -> list[str]:
    """Names for runs: A to Z, then A2, B2 and so on.

    Examples
    --------
    >>> letters(3), letters(28)[-2:]
    (['A', 'B', 'C'], ['A2', 'B2'])
    """
    alphabet = string.ascii_uppercase
    return [alphabet[i % 26] + (str(i // 26 + 1) if i >= 26 else "") for i in range(count)]


def _named(source: Any, letter: str) -> Any:
    from certcal.smoothing.robustness import named

    return source if getattr(source, "name", "") else named(source, letter)


def _read(sources: Sequence[Any], asked: CompareSettings) -> tuple[list[Any], list[str]]:
    """What holds votes, and the path of each; empty for what was in memory."""
    from certcal.smoothing import Run, open_run

    logs = sum(_is_path(source) and not Path(source).is_dir() for source in sources)
    said = zip(_spread(asked.sigma, logs, "sigma"), _spread(asked.n, logs, "n"), strict=True)
    read: list[Any] = []
    for place, source in enumerate(sources):
        if isinstance(source, Run):
            read.append(source.counts())
        elif not _is_path(source):
            if not hasattr(source, "sigma"):
                raise InputError(f"source {place + 1} is {type(source).__name__}; pass a run, a log or a VoteRecord")
            read.append(source)
        else:
            read.append(open_run(source).counts() if Path(source).is_dir() else _log(Path(source), said, asked.alpha))
    return read, [str(getattr(each, "path", "")) if not _is_path(each) else os.fspath(each) for each in sources]


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _spread(values: Sequence[Any], logs: int, argument: str) -> list[Any]:
    """One value for all logs, or one for each in their order."""
    if not values:
        return [None] * logs
    if not logs:
        raise InputError("it is for logs, and runs know their own", argument=argument, remedy="leave it out")
    if len(values) not in (1, logs):
        reason = f"{len(values)} values are given for {counted(logs, 'log')}"
        raise InputError(reason, argument=argument, remedy="give one for all, or one for each in order")
    return list(values) * (logs if len(values) == 1 else 1)


def _refuse_predictions(path: Path) -> None:
    """Say what compares tables of predictions, before anybody looks for their noise level."""
    try:
        resolve_columns(open_table(path).columns)
    except InputError:
        return
    raise InputError(f"{path}: this is a table of predictions; in Python compare what measure returns for each")


def _log(path: Path, said: Iterator[tuple[float | None, int | None]], alpha: float | None) -> Any:
    from certcal.smoothing import LogWarning, read_log

    sigma, n = next(said)
    existing(path, "run or log")
    for argument, value in (("sigma", sigma), ("n", n)):
        if value is None:
            _refuse_predictions(path)
            reason = f"{path}: a log does not say how it was certified"
            raise InputError(reason, argument=argument, remedy="give its noise level and noise samples per input")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # it is in the log's notes, which are shown
        return read_log(path, sigma=cast("float", sigma), n=cast("int", n), alpha=alpha)
