"""Published certification logs: one line per sample with a printed radius, from which the votes can be recovered."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, failure_probability, noise_level, whole_number
from certcal._base.durable import open_regular
from certcal._base.files import path_of
from certcal._base.text import is_number
from certcal.data.layout import log_columns
from certcal.data.schema import LOG
from certcal.smoothing.robustness.votes import VoteRecord, certifying_probability, smallest_votes, vote_radii

COLUMNS = tuple(LOG)
# Columns in which some logs give the votes for the chosen class.
VOTES = ("count", "raw_count")
ABSTAINED = -1
MOST_BYTES = 1 << 28
# Radii are the work of somebody else's special functions; this much of them is left open besides the printed digits.
_SLACK = 1e-9
# Levels that people certify at: 0.05 and smaller, and 1, 2 or 5 times a power of ten.
_ROUND = tuple(float(f"{digit}e-{power}") for power in range(2, 11) for digit in (5, 2, 1))
# So many of the radii that tell most are tried first: they leave hardly any wrong level.
_TELLING = 64
_MOST_NAMED = 5
_ALONE = "no other round alpha up to 0.05 explains every radius"
# Levels and digits at which a noise level is looked for.
_SIGMA_FOUND = "sigma was found: at the noise level used, all votes certify the largest radius."
_USUAL = (0.05, 0.01, 0.001, 0.0001)
_SIGMA_DIGITS = 2


class LogWarning(UserWarning):
    """A log that contradicts what is said about it."""


@dataclass(frozen=True, eq=False)
class CertificationLog:
    """A certification log, with the votes that its radii stand for."""

    path: str
    """The file."""
    sigma: float
    n: int
    """As given."""
    alpha: float
    """The level the votes are recovered with: as claimed if it explains every radius, else the only round one that
    does."""
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    predicted: NDArray[np.int64]
    """As in the file; predicted is -1 where the log abstained."""
    radii: NDArray[np.float64]
    """As printed; NaN where abstained."""
    correct: NDArray[np.bool_]
    """Is the prediction right?"""
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    """Votes that fit: printed radii are rounded, so a few counts may. The same where the log gives the votes."""
    notes: tuple[str, ...] = ()
    """What a reader should know, among it every warning."""

    def __len__(self) -> int:
        return self.index.size

    def __repr__(self) -> str:
        setting = f"sigma={self.sigma:g}, n={self.n}, alpha={self.alpha:g}"
        return f"CertificationLog({self.path!r}, samples={len(self)}, {setting})"

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """Samples without a certificate."""
        return self.predicted == ABSTAINED

    def select(self, rows: Any) -> CertificationLog:
        """Some of the samples, by their places."""
        arrays = ("index", "label", "predicted", "radii", "correct", "lowest", "highest")
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    def record(self, name: str = "") -> VoteRecord:
        """The votes, for everything in :mod:`certcal.smoothing.robustness`.

        Parameters
        ----------
        name
            Default: the file's name without its ending.
        """
        name = name or Path(self.path).stem
        draws = np.full(len(self), self.n, np.int64)
        return VoteRecord(
            name, self.sigma, self.index, self.label, self.correct, draws, self.lowest, self.highest, self.abstained
        )


@names_wrong_types
def read_log(
    path: str | os.PathLike[str], *, sigma: float | None = None, n: int, alpha: float | None = None
) -> CertificationLog:
    r"""Read a log of ``idx label predict radius correct time`` lines, separated by tabs, and recover the votes.

    Other names are found as in any table: ``y_true`` for label, ``prediction`` for predict, ``exact_radius`` for
    radius, and so on. Where a column ``count`` or ``raw_count`` gives the votes for the chosen class, nothing is left
    open but the class of abstained samples; radii must be those that these votes certify.

    A radius is σΦ⁻¹ of the Clopper–Pearson lower bound of votes / n, so it names the votes as far as its digits go. The
    printed digits are taken as rounded to nearest; how many there are is read off the file. An α explains a printed
    radius if some number of votes certifies a radius that prints like it. Only an α that explains every radius is used:
    the claimed one, or else the only round one (1, 2 or 5 times a power of ten, up to 0.05), with a :class:`LogWarning`
    if another was claimed. Where no round α does, or several, the log is refused.

    A noise level that is not given is found where samples share the largest radius: that is the one which n of n votes
    certify, so σ is the number of at most two digits that makes it so, if every other radius fits as well.

    Parameters
    ----------
    path
        The file.
    sigma
        Standard deviation of the noise. Default: found from the radii, not from the file's name.
    n
        Draws per sample.
    alpha
        The level that the log claims. Default: the only round one that explains every radius.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "log.tsv"
    >>> lines = ["idx label predict radius correct time", "0 3 3 1.5 1 0:01", "1 8 1 0.757 0 0:01", "2 5 -1 0.0 0 0:01"]
    >>> _ = path.write_text("\n".join(lines).replace(" ", "\t"))
    >>> log = read_log(path, sigma=1.0, n=100, alpha=0.001)
    >>> log.lowest.tolist(), log.highest.tolist()
    ([100, 90, 0], [100, 90, 65])
    >>> _ = path.write_text("\n".join([*lines, "3 3 3 1.5 1 0:01"]).replace(" ", "\t"))
    >>> read_log(path, n=100, alpha=0.001).sigma
    1.0
    >>> folder.cleanup()
    """
    sigma = None if sigma is None else noise_level(sigma)
    n = whole_number(n, 1, 10**9, "n", "pass the number of draws per sample, from 1 to 1000000000")
    if alpha is not None:
        alpha = failure_probability(alpha, "alpha")
    columns = _parse_columns(path)
    known = columns["predict"] != ABSTAINED
    radii = np.where(known, columns["radius"], np.nan)
    distinct, first, back = np.unique(radii[known], return_index=True, return_inverse=True)
    half = columns["half"][known][first]
    found: tuple[str, ...] = ()
    if sigma is None:
        holders = int((back == distinct.size - 1).sum())
        sigma = _find_sigma(distinct, half, holders, n, alpha, os.fspath(path))
        found = (_SIGMA_FOUND,)
    printed = _PrintedIntervals(distinct - half, distinct + half, sigma, n)
    counts = columns.get("votes")
    if counts is not None:
        _check_votes(counts, n, os.fspath(path))
        fewest, most = np.full(distinct.size, n), np.zeros(distinct.size, np.int64)
        np.minimum.at(fewest, back, counts[known])
        np.maximum.at(most, back, counts[known])
        printed = replace(printed, counted=(fewest, most))
    try:
        used, notes = _infer_alpha(alpha, printed, distinct, columns["idx"][known][first])
    except InputError as error:
        told: dict[str, Any] = {"argument": error.argument, "remedy": error.remedy, "roles": error.roles}
        raise InputError(f"{os.fspath(path)}: {error.reason}", **told) from None
    lowest = np.zeros(known.size, np.int64)
    highest = np.full(known.size, smallest_votes(0.5, n, used) - 1)
    lowest[known], highest[known] = (votes[back] for votes in printed.votes(used))
    if counts is not None:
        beyond = ~known & (counts > highest)
        if beyond.any():
            row = int(np.argmax(beyond))
            raise InputError(
                f"{os.fspath(path)}: line {row + 2}, {counts[row]} votes abstain, which certify at {used:g}"
            )
        lowest, highest = np.where(known, counts, 0), counts
    return CertificationLog(
        path=os.fspath(path),
        sigma=sigma,
        n=n,
        alpha=used,
        index=columns["idx"],
        label=columns["label"],
        predicted=columns["predict"],
        radii=radii,
        correct=columns["correct"] == 1,
        lowest=lowest,
        highest=highest,
        notes=(*found, *notes),
    )


@dataclass(frozen=True, eq=False)
class _PrintedIntervals:
    """The intervals that distinct printed radii stand for, and which votes are inside at a level."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    sigma: float
    n: int
    # Fewest and most votes that the log counts for each, if it does.
    counted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @property
    def draws_text(self) -> str:
        return f"{self.n} draws" if self.counted is None else f"the votes given, of {self.n} draws,"

    def votes(self, alpha: float, some: Any = ...) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lowest and highest count whose radius is inside each interval; lowest above highest where none is."""
        # A certified radius is never below 0: what lies there abstains.
        ends = np.maximum(self.lower[some], 0.0), self.upper[some]
        # The second is the first count that certifies the upper end or more.
        lowest, beyond = (smallest_votes(certifying_probability(end, self.sigma), self.n, alpha) for end in ends)
        return lowest, beyond - 1

    def consistent_levels(self, alphas: Sequence[float]) -> list[float]:
        """Levels at which every interval holds a radius that some number of votes certifies."""
        # The fewer of the n + 1 possible radii an interval can hold, the more levels it excludes.
        width = np.subtract(*(certifying_probability(end, self.sigma) for end in (self.upper, self.lower)))
        order = np.argsort(width)
        parts = order[:_TELLING], order[_TELLING:]
        return [alpha for alpha in alphas if all(self.fit(alpha, part).all() for part in parts)]

    def fit(self, alpha: float, some: Any = ...) -> NDArray[np.bool_]:
        """Whether some number of votes, or those counted, certify a radius inside each interval."""
        lowest, highest = self.votes(alpha, some)
        if self.counted is None:
            return lowest <= highest
        fewest, most = self.counted
        return (lowest <= fewest[some]) & (most[some] <= highest)


def _find_sigma(
    radii: NDArray[np.float64], half: NDArray[np.float64], holders: int, n: int, alpha: float | None, place: str
) -> float:
    """The noise level at which n of n votes certify the largest radius and every other one fits."""
    found: set[float] = set()
    if holders > 1:
        for levels in ((alpha,) if alpha is not None else (), _USUAL):
            for level in levels:
                unit = float(vote_radii([n], n, 1.0, level)[0])
                sigma = _shortest_number((radii[-1] - half[-1]) / unit, (radii[-1] + half[-1]) / unit)
                if sigma and _PrintedIntervals(radii - half, radii + half, sigma, n).consistent_levels([level]):
                    found.add(sigma)
            if found:
                break
    if len(found) != 1:
        why = "fit" if found else "the largest radius is that of one sample" if holders < 2 else "no round one fits"
        several = f"sigma = {_levels_text(sorted(found))} " if found else ""
        reason = f"{place}: the noise level cannot be found ({several}{why})"
        raise InputError(reason, argument="sigma", remedy="give the noise level it was certified with")
    return found.pop()


def _shortest_number(lower: float, upper: float) -> float | None:
    """The number of fewest digits between two, if it has no more than a noise level has."""
    for digits in range(_SIGMA_DIGITS):
        unit = 10.0 ** (np.floor(np.log10(upper)) - digits) if upper > 0 else 1.0
        if lower <= (multiple := np.floor(upper / unit + _SLACK)) * unit * (1 + _SLACK) and multiple > 0:
            return float(f"{multiple * unit:.{digits + 1}g}")
    return None


def _infer_alpha(
    claimed: float | None, printed: _PrintedIntervals, radii: NDArray[np.float64], index: NDArray[np.int64]
) -> tuple[float, tuple[str, ...]]:
    """The α that explains every radius, and notes if it is not the one claimed."""
    if claimed is not None and printed.consistent_levels([claimed]):
        return claimed, ()
    likely = printed.consistent_levels(_ROUND)
    if len(likely) == 1 and claimed is None:
        return likely[0], (f"alpha = {likely[0]:g} was inferred: {_ALONE}.",)
    if len(likely) == 1:
        text = (
            f"the radii were not certified at alpha = {claimed:g} as claimed; alpha = {likely[0]:g} is used: {_ALONE}."
        )
        warnings.warn(text, LogWarning, stacklevel=3)
        return likely[0], (text,)
    found = f"alpha = {_levels_text(likely)} each explain" if likely else "no round alpha up to 0.05 explains"
    if claimed is None:
        raise InputError(
            f"{found} every radius with {printed.draws_text} and sigma = {printed.sigma:g}",
            remedy="give the level it was certified with as {alpha}, and check {sigma} and {n}",
            roles=("alpha", "sigma", "n"),
        )
    place = int(np.argmax(~printed.fit(claimed)))
    raise InputError(
        f"radius {radii[place]:g} of sample {index[place]} is none that {printed.draws_text} certify at alpha = "
        f"{claimed:g} and sigma = {printed.sigma:g}, and {found} every radius; check sigma, n and alpha"
    )


def _levels_text(levels: Sequence[float]) -> str:
    """Levels as they stand in a sentence, no more than a few of them."""
    texts = [f"{level:g}" for level in levels]
    if len(texts) > _MOST_NAMED:
        texts = [*texts[: _MOST_NAMED - 1], f"{len(texts) - _MOST_NAMED + 1} others"]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _parse_columns(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Columns of the file as numbers, and the half unit of each radius' last digit."""
    lines = tab_lines(path)
    place = os.fspath(path)
    header = lines[0].split("\t")
    if len(set(header)) < len(header):
        raise InputError(f"{place}: the first line names a column twice; name each once")
    try:
        known = log_columns(header)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    missing = [name for name in COLUMNS if name not in known]
    if missing:
        raise InputError(
            f"{place}: the first line names no column {', '.join(map(repr, missing))}; a log has "
            f"{' '.join(COLUMNS)}, separated by tabs{_other_reader_hint(header)}"
        )
    if len(lines) < 2:
        raise InputError(f"{place}: the log has no samples; it needs at least one line below the names")
    votes = next((name for name in VOTES if name in header), None)
    at = {name: header.index(known[name]) for name in COLUMNS}
    at |= {} if votes is None else {votes: header.index(votes)}
    cells: dict[str, list[str]] = {name: [] for name in at}
    for number, line in enumerate(lines[1:], start=2):
        parts = line.split("\t")
        if len(parts) != len(header):
            raise InputError(
                f"{place}: line {number} has {len(parts)} fields where the first has {len(header)}; the log is cut off "
                "or damaged there, so repair or delete the line"
            )
        for name, column in at.items():
            cells[name].append(parts[column].strip())
    columns: dict[str, NDArray[Any]] = {
        name: _whole_numbers(cells[name], name, place) for name in COLUMNS if name != "radius"
    }
    columns["radius"], columns["half"] = _radii(cells["radius"], columns["predict"], place)
    if votes is not None:
        columns["votes"] = _whole_numbers(cells[votes], votes, place)
    _check_lines(columns, place)
    return columns


def _other_reader_hint(header: Sequence[str]) -> str:
    """End of an error that names the function for a published file of another format; empty if unknown."""
    if header == ["x", "y"] or (len(header) == 2 and all(is_number(each) for each in header)):
        return "; this is a curve, which certcal.lab.logs.read_curve reads"
    if any(name.startswith("exp_cdf_") for name in header):
        return "; these are certified confidences, which certcal.lab.logs.read_confidence_log reads"
    return ""


def tab_lines(path: str | os.PathLike[str]) -> list[str]:
    """The lines of a text file of fields separated by tabs; at least one."""
    file = path_of(path)
    try:
        with open_regular(file) as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(
                f"{file}: larger than {MOST_BYTES >> 20} MiB, which no certification log is; check the file"
            )
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file}: not a text file; a log is lines of fields separated by tabs") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{file}: cannot be read ({reason}); check the path") from error
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError(f"{file}: the file is empty; a log has {' '.join(COLUMNS)}, separated by tabs")
    return lines


def _whole_numbers(texts: Sequence[str], name: str, place: str) -> NDArray[np.int64]:
    values = np.empty(len(texts), np.int64)
    for row, text in enumerate(texts):
        if not (text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= 18):
            raise InputError(f"{place}: line {row + 2}, {name} is {text[:40]!r}, not a whole number; repair the line")
        values[row] = int(text)
    return values


def _radii(
    texts: Sequence[str], predicted: NDArray[np.int64], place: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Printed radii, and half a unit of the last digit that was printed of each.

    A log keeps a number of significant digits or of decimals, and may drop trailing zeros. The most that any radius
    shows of each tells the unit both ways; the larger is right whichever was kept.
    """
    numbers: list[Decimal] = []
    for row, text in enumerate(texts):
        try:
            number = Decimal(text) if len(text) <= 40 and text.isascii() and "_" not in text else None
        except InvalidOperation:
            number = None
        if number is None or not number.is_finite() or number < 0 or (number and not -300 < number.adjusted() < 300):
            raise InputError(f"{place}: line {row + 2}, radius is {text[:40]!r}, not a number >= 0; repair the line")
        numbers.append(number)
    counted = [number for number, p in zip(numbers, predicted.tolist(), strict=True) if number and p != ABSTAINED]
    digits = max((len(number.as_tuple().digits) for number in counted), default=1)
    decimals = max((-int(number.as_tuple().exponent) for number in counted), default=1)
    radii = np.array([float(number) for number in numbers])
    size = np.array([float(number.adjusted()) if number else -np.inf for number in numbers])
    unit = np.maximum(10.0**-decimals, 10.0 ** (size - digits + 1))
    return radii, 0.5 * unit + _SLACK * radii


def _check_votes(votes: NDArray[np.int64], n: int, place: str) -> None:
    """Refuse counts that so many draws cannot give."""
    bad = (votes < 0) | (votes > n)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{place}: line {row + 2}, {votes[row]} votes out of {n} draws; check n")


def _check_lines(columns: dict[str, NDArray[Any]], place: str) -> None:
    """Refuse lines that contradict themselves."""
    label, predict, correct, radius = (columns[name] for name in ("label", "predict", "correct", "radius"))
    complaints = (
        (label < 0, "label is negative; labels are whole numbers from 0"),
        (predict < ABSTAINED, "predict is below -1; it is a class, or -1 for an abstention"),
        ((correct != 0) & (correct != 1), "correct is neither 0 nor 1; it says whether predict is the label"),
        ((correct == 1) != (predict == label), "correct contradicts predict and label; repair the line"),
        ((predict == ABSTAINED) & (radius > 0), "an abstention has a radius above 0; repair the line"),
    )
    for bad, text in complaints:
        if bad.any():
            raise InputError(f"{place}: line {int(np.argmax(bad)) + 2}, {text}")
    index = columns["idx"]
    values, counts = np.unique(index, return_counts=True)
    if (counts > 1).any():
        twice = values[np.argmax(counts > 1)]
        row = int(np.flatnonzero(index == twice)[1])
        raise InputError(f"{place}: line {row + 2}, sample {twice} comes a second time; keep one line per sample")
