"""Published certification logs: one line per sample with a printed radius, from which the votes can be recovered."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, positive, share, whole_number
from certcal._durable import open_regular
from certcal.smoothing._lattice import Range, fitting_alphas, holds, round_alphas
from certcal.smoothing.robustness._binomial import certifying_probability, smallest_votes, votes_tail
from certcal.smoothing.robustness._votes import VoteRecord

COLUMNS = ("idx", "label", "predict", "radius", "correct")
ABSTAINED = -1
MOST_BYTES = 1 << 28
# Radii are the work of somebody else's special functions; this much of them is left open besides the printed digits.
_SLACK = 1e-9


class LogWarning(UserWarning):
    """A log that contradicts what is said about it."""


@dataclass(frozen=True, eq=False)
class CertificationLog:
    """A certification log, with the votes that its radii stand for.

    Attributes
    ----------
    path
        The file.
    sigma, n
        As given.
    alpha
        The level the votes are recovered with: as claimed if the radii allow it, else the one that they fit.
    fitting
        All ranges of α that the printed radii allow.
    index, label, predicted
        As in the file; predicted is -1 where the log abstained.
    radii
        As printed; NaN where abstained.
    correct
        Is the prediction right?
    lowest, highest
        Votes that fit: printed radii are rounded, so a few counts may.
    notes
        What a reader should know, among it every warning.
    """

    path: str
    sigma: float
    n: int
    alpha: float
    fitting: tuple[Range, ...]
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    predicted: NDArray[np.int64]
    radii: NDArray[np.float64]
    correct: NDArray[np.bool_]
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.index.size

    def __repr__(self) -> str:
        setting = f"sigma={self.sigma:g}, n={self.n}, alpha={self.alpha:g}"
        return f"CertificationLog({self.path!r}, samples={len(self)}, {setting})"

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """Samples without a certificate."""
        return self.predicted == ABSTAINED

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


def read_log(path: str | os.PathLike[str], *, sigma: float, n: int, alpha: float | None = None) -> CertificationLog:
    r"""Read a log of ``idx label predict radius correct time`` lines, separated by tabs, and recover the votes.

    A radius is σΦ⁻¹ of the Clopper–Pearson lower bound of votes / n, so it names the votes as far as its digits go. The
    printed digits are taken as rounded to nearest; how many there are is read off the file. α is checked against the
    radii that n draws can give: a claim that does not fit is a :class:`LogWarning`.

    Parameters
    ----------
    path
        The file.
    sigma
        Standard deviation of the noise. Not guessed from the file's name.
    n
        Draws per sample.
    alpha
        The level that the log claims. Default: the one round number that its radii fit.

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
    >>> folder.cleanup()
    """
    sigma = positive(sigma, "sigma")
    n = whole_number(n, 1, 10**9, "n", "pass the number of draws per sample, from 1 to 1000000000")
    if alpha is not None:
        alpha = share(alpha, "alpha", "pass a probability between 0 and 1")
    columns = _parse(path)
    known = columns["predict"] != ABSTAINED
    radii = np.where(known, columns["radius"], np.nan)
    half = columns["half"]
    ends = radii - half, radii + half
    _, distinct = np.unique(radii[known], return_index=True)
    top = [np.maximum(end[known][distinct], 0.0) for end in ends]
    fitting = fitting_alphas(*top, sigma=sigma, n=n)
    try:
        used, notes = _settle(alpha, fitting, top, sigma, n)
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from None
    lowest, highest = _votes(np.where(known, ends[0], 0.0), np.where(known, ends[1], 0.0), sigma, n, used)
    hidden = known & (lowest > highest)
    if hidden.any():
        row = int(np.argmax(hidden))
        raise InputError(
            f"{os.fspath(path)}: radius {radii[row]:g} of sample {columns['idx'][row]} is none that {n} draws certify "
            f"at alpha = {used:g} and sigma = {sigma:g}; check sigma, n and alpha"
        )
    half_votes = int(smallest_votes(0.5, n, used))
    lowest, highest = np.where(known, lowest, 0), np.where(known, highest, half_votes - 1)
    return CertificationLog(
        path=os.fspath(path),
        sigma=sigma,
        n=n,
        alpha=used,
        fitting=fitting,
        index=columns["idx"],
        label=columns["label"],
        predicted=columns["predict"],
        radii=radii,
        correct=columns["correct"] == 1,
        lowest=lowest.astype(np.int64),
        highest=highest.astype(np.int64),
        notes=notes,
    )


def _settle(
    claimed: float | None, fitting: Sequence[Range], top: Sequence[NDArray[np.float64]], sigma: float, n: int
) -> tuple[float, tuple[str, ...]]:
    """The α to use, and what is to be said about it."""
    if not fitting:
        raise InputError(
            f"no alpha explains these radii with {n} draws and sigma = {sigma:g}; check sigma and n (or the log was "
            "not made with Clopper–Pearson bounds)"
        )
    full = _all_votes(fitting, top, sigma, n)
    likely = round_alphas(full)
    if claimed is None:
        if len(likely) != 1:
            raise InputError(
                "its radii do not tell alpha; give the one it was certified with (alpha=, --alpha), and check that "
                "sigma and n are those of the log: with others its radii cannot be those of any alpha"
            )
        return likely[0], (f"alpha = {likely[0]:g} was inferred: the radii fit alpha {_words(full)}.",)
    if holds(fitting, claimed):
        if likely and not holds(full, claimed):
            return claimed, (
                f"alpha = {claimed:g} fits the radii only if no sample had all votes; alpha = {likely[0]:g} fits with.",
            )
        return claimed, ()
    if len(likely) != 1:
        raise InputError(
            f"its radii do not fit alpha = {claimed:g}, but alpha {_words(fitting)}; check alpha, sigma and n"
        )
    text = (
        f"the radii were not certified at alpha = {claimed:g} as claimed: they fit alpha {_words(full)}; "
        f"alpha = {likely[0]:g} is used."
    )
    warnings.warn(text, LogWarning, stacklevel=3)
    return likely[0], (text,)


def _all_votes(fitting: Sequence[Range], top: Sequence[NDArray[np.float64]], sigma: float, n: int) -> tuple[Range, ...]:
    """The fitting α for which the largest radius is that of samples with all votes."""
    if top[0].size == 0:
        return ()
    low, high = (float(votes_tail(n, n, certifying_probability(end.max(), sigma))) for end in top)
    return tuple((max(a, low), min(b, high)) for a, b in fitting if max(a, low) <= min(b, high))


def _words(ranges: Sequence[Range]) -> str:
    """Ranges as they stand in a sentence; those that hang together as one."""
    if ranges[-1][1] < 1.5 * ranges[0][0]:
        ranges = [(ranges[0][0], ranges[-1][1])]
    return " or ".join(f"from {low:.3g} to {high:.3g}" for low, high in ranges[:3])


def _votes(
    lower: NDArray[np.float64], upper: NDArray[np.float64], sigma: float, n: int, alpha: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lowest and highest vote count whose radius is inside each interval; lowest above highest where none is."""
    # A certified radius is never below 0: what lies there abstains.
    lowest = smallest_votes(certifying_probability(np.maximum(lower, 0.0), sigma), n, alpha)
    beyond = smallest_votes(certifying_probability(upper, sigma), n, alpha)  # certifies the upper end or more
    return lowest, beyond - 1


def _parse(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Columns of the file as numbers, and the half unit of each radius' last digit."""
    lines = _lines(path)
    place = os.fspath(path)
    header = lines[0].split("\t")
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise InputError(
            f"{place}: the first line names no column {', '.join(map(repr, missing))}; a log has "
            f"{' '.join(COLUMNS)}, separated by tabs"
        )
    if len(set(header)) < len(header):
        raise InputError(f"{place}: the first line names a column twice; name each once")
    if len(lines) < 2:
        raise InputError(f"{place}: the log has no samples; it needs at least one line below the names")
    cells: dict[str, list[str]] = {name: [] for name in COLUMNS}
    at = {name: header.index(name) for name in COLUMNS}
    for number, line in enumerate(lines[1:], start=2):
        parts = line.split("\t")
        if len(parts) != len(header):
            raise InputError(
                f"{place}: line {number} has {len(parts)} fields where the first has {len(header)}; the log is cut off "
                "or damaged there, so repair or delete the line"
            )
        for name in COLUMNS:
            cells[name].append(parts[at[name]].strip())
    columns: dict[str, NDArray[Any]] = {
        name: _whole_numbers(cells[name], name, place) for name in COLUMNS if name != "radius"
    }
    columns["radius"], columns["half"] = _radii(cells["radius"], columns["predict"], place)
    _check(columns, place)
    return columns


def _lines(path: str | os.PathLike[str]) -> list[str]:
    file = Path(path)
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


def _check(columns: dict[str, NDArray[Any]], place: str) -> None:
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
