"""What else is published of smoothed classifiers: curves without samples, and logs of certified confidences."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, noise_level
from certcal.lab.logs._log import ABSTAINED, tab_lines
from certcal.smoothing.robustness import AccuracyCurve, PaPoints, certified_accuracy, from_curve
from certcal.smoothing.robustness.accuracy import check_at

_PREFIX, _PLAIN = "exp_cdf_", "exp_"


@names_wrong_types
def read_curve(
    path: str | os.PathLike[str], *, sigma: float, n: int | None = None, alpha: float | None = None
) -> PaPoints:
    r"""Read a published curve: P(p_A >= p) over p, or certified accuracy over the radius.

    The former has columns named ``x`` and ``y`` (Sun et al. 2025, ``data/ecdf``). The latter has two columns without
    names (the ``_acc`` files of Jeong and Shin), and needs the ``n`` and ``alpha`` that it was certified with. Lines
    where the share is the same as before add nothing and are left out.

    Parameters
    ----------
    path
        The file, with fields separated by tabs.
    sigma
        Standard deviation of the noise.
    n, alpha
        Draws per sample and level, of a curve over the radius.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "method_0.25.csv"
    >>> _ = path.write_text("x\ty\n0.5\t0.8\n0.9\t0.6\n1.0\t0.2\n")
    >>> read_curve(path, sigma=0.25).survival(0.95)
    (array(0.2), array(0.6))
    >>> folder.cleanup()
    """
    lines, place = tab_lines(path), os.fspath(path)
    over_p = lines[0].split("\t") == ["x", "y"]
    rows = [_pair(line, place, number) for number, line in enumerate(lines, 1) if not (over_p and number == 1)]
    if not rows:
        raise InputError(f"{place}: the curve has no points; it needs at least one line below the names")
    where, shares = np.array(rows).T
    if not over_p:
        if n is None or alpha is None:
            missing = "n" if n is None else "alpha"
            remedy = "give the draws per sample and the level it was certified with"
            raise InputError(f"{place}: a curve over the radius does not say how", argument=missing, remedy=remedy)
        try:
            return from_curve(where, shares, sigma=sigma, n=n, alpha=alpha)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    complaints = (
        (~((where >= 0) & (where <= 1)), "p is outside [0, 1]"),
        (~((shares >= 0) & (shares <= 1)), "the share is outside [0, 1]"),
        (np.diff(where, prepend=-1.0) <= 0, "p does not increase"),
        (np.diff(shares, prepend=1.0) > 0, "the share rises, and P(p_A >= p) cannot"),
    )
    for bad, text in complaints:
        if bad.any():
            raise InputError(f"{place}: line {int(np.argmax(bad)) + 2}, {text}; repair the line")
    return PaPoints(noise_level(sigma), where, shares)


def _pair(line: str, place: str, number: int) -> tuple[float, float]:
    parts = line.split("\t")
    try:
        first, second = map(float, parts)
    except ValueError:
        raise InputError(
            f"{place}: line {number} is {line[:40]!r}, not two numbers; a curve has two per line, separated by a tab"
        ) from None
    return first, second


@dataclass(frozen=True, eq=False)
class ConfidenceLog:
    """Certified lower bounds of confidences, as Kumar et al. (2020) publish them."""

    path: str
    """The file."""
    radii: tuple[float, ...]
    """At which the bounds hold."""
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    predicted: NDArray[np.int64]
    """As in the file; predicted is -1 where the log abstained."""
    correct: NDArray[np.bool_]
    """Is the prediction right?"""
    lower: NDArray[np.float64]
    plain: NDArray[np.float64]
    """Bounds of the mean confidence (samples, radii), by its distribution and by its mean alone. Printed digits were
    rounded to nearest, so half a unit of the last is taken off."""
    margins: bool
    """Whether these are margins between the two largest, from -1 to 1, rather than confidences."""

    def __len__(self) -> int:
        return self.index.size

    def certified_accuracy(self, at_least: float, at: Any = None, *, plain: bool = False) -> AccuracyCurve:
        """Share of samples that are right with a certified confidence (or margin) above a threshold, by radius.

        Parameters
        ----------
        at_least
            The threshold, which must be exceeded. Above 1/2 the class cannot change.
        at
            Some of the radii. Default: all.
        plain
            By the mean alone, as the paper compares it.
        """
        bounds = self.plain if plain else self.lower
        if not -1 <= at_least < 1:
            raise InputError(f"at_least is {at_least}; pass a confidence such as 0.5, or a margin such as 0")
        wanted = check_at(self.radii if at is None else at).tolist()
        missing = [radius for radius in wanted if radius not in self.radii]
        if missing:
            raise InputError(
                f"the log has no bounds at radius {missing[0]:g}; it has {', '.join(map(str, self.radii))}"
            )
        # The largest radius at which a sample still exceeds the threshold; bounds fall with the radius.
        above = (bounds > at_least) & (self.predicted != ABSTAINED)[:, None]
        reached = np.where(above, np.array(self.radii), np.nan)
        far = np.fmax.reduce(reached, axis=1)
        return certified_accuracy(far, self.correct, wanted, name=Path(self.path).name)

    def intervals(self) -> Mapping[str, NDArray[Any]]:
        """Certified intervals of confidences at every radius, as :func:`certcal.certify` takes them; 1 above.

        A sample is certified where its bound is above 1/2: below, another class may have the largest mean confidence.
        """
        if self.margins:
            raise InputError(f"{self.path}: these are margins, not confidences; certify a log of confidences")
        n, several = len(self), len(self.radii)
        known = np.tile(self.predicted != ABSTAINED, several)
        lower = np.where(known, self.lower.T.reshape(-1), 0.0)
        return {
            "sample": np.tile(self.index, several),
            "radius": np.repeat(self.radii, n),
            "lower": lower,
            "upper": np.ones(n * several),
            "correct": np.tile(self.correct.astype(np.int64), several),
            "certified": (lower > 0.5).astype(np.int64),
        }


@names_wrong_types
def read_confidence_log(path: str | os.PathLike[str]) -> ConfidenceLog:
    r"""Read a log with columns ``exp_cdf_00``, ``exp_cdf_25``, …: lower bounds of mean confidences at radii 0, 0.25, ….

    Parameters
    ----------
    path
        The file, with fields separated by tabs.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "log"
    >>> names = "idx label predict exp_cdf_00 exp_cdf_25 exp_00 exp_25 correct time"
    >>> lines = [names, "0 3 3 0.704 0.52 0.704 0.321 1 0:39", "20 7 -1 0.0 0.0 0.0 0.0 0 0:22"]
    >>> _ = path.write_text("\n".join(lines).replace(" ", "\t"))
    >>> read_confidence_log(path).certified_accuracy(0.5).certified
    (1, 1)
    >>> folder.cleanup()
    """
    lines, place = tab_lines(path), os.fspath(path)
    header = lines[0].split("\t")
    places = {name: i for i, name in enumerate(header)}
    ends = [name.removeprefix(_PREFIX) for name in header if name.startswith(_PREFIX)]
    needed = ["idx", "label", "predict", "correct", *(f"{_PLAIN}{end}" for end in ends)]
    missing = [name for name in needed if name not in places]
    if missing or not ends or not all(end.isdecimal() for end in ends):
        what = f"no column {missing[0]!r}" if missing else f"no columns such as {_PREFIX}25"
        raise InputError(f"{place}: the first line names {what}; pass a log of certified confidences")
    columns: dict[str, list[float]] = {name: [] for name in header}
    halves: dict[str, list[float]] = {name: [] for name in header}
    for number, line in enumerate(lines[1:], 2):
        parts = line.split("\t")
        if len(parts) != len(header):
            raise InputError(f"{place}: line {number} has {len(parts)} fields where the first has {len(header)}")
        for name in (*needed, *(f"{_PREFIX}{end}" for end in ends)):
            text = parts[places[name]]
            try:
                value = float(text)
            except ValueError:
                value = float("nan")
            if not -1 <= value <= (1 if name.startswith(_PLAIN) else 1e15):
                raise InputError(f"{place}: line {number}, {name} is {text[:40]!r}; repair or drop the line")
            columns[name].append(value)
            halves[name].append(_half_unit(value))
    if len(lines) < 2:
        raise InputError(f"{place}: the log has no samples; it needs at least one line below the names")
    order = sorted(ends, key=int)

    def bounds(prefix: str) -> NDArray[np.float64]:
        names = [f"{prefix}{end}" for end in order]
        return np.array([columns[name] for name in names]).T - np.array([halves[name] for name in names]).T

    index, label, predicted, correct = (np.array(columns[name]).astype(np.int64) for name in needed[:4])
    bad = (correct == 1) != (predicted == label)
    if bad.any():
        raise InputError(f"{place}: line {int(np.argmax(bad)) + 2}, correct contradicts predict and label")
    lower, plain = bounds(_PREFIX), bounds(_PLAIN)
    margins = bool(min(lower.min(), plain.min()) < -0.01)
    floor = -1.0 if margins else 0.0
    return ConfidenceLog(
        place,
        tuple(int(end) / 100 for end in order),
        index,
        label,
        predicted,
        correct == 1,
        np.maximum(lower, floor),
        np.maximum(plain, floor),
        margins,
    )


def _half_unit(value: float) -> float:
    """Half a unit of the third significant digit, which is the last that these logs print."""
    return 0.0 if value == 0 else 0.5 * 10.0 ** (np.floor(np.log10(abs(value))) - 2)
