"""Calibrators as files: JSON that is read as hostile. Nothing in a file is ever executed.

The schema, and the promise of what later versions read, is in :mod:`certcal.calibrators._schema`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError
from certcal._base.files import path_of, read_bytes, write_bytes
from certcal._base.told import Told
from certcal.calibrators._base import Calibrator, RemovedError
from certcal.calibrators._samples import split_positions

_MOST_BYTES = 64_000_000
_MOST_SPLIT = 10**8  # samples whose split is drawn again for a run that has another number of them
_REMEDY = "the file was damaged or edited: save the calibrator again"
_NO_MAP = "give a file that certcal recalibrate fit or certcal.calibrators.save wrote"


@dataclass(frozen=True)
class FittedOn(Told):
    """Which samples a calibrator was fitted to.

    Examples
    --------
    >>> about = FittedOn("run-1", "run", None, n=10, fraction=0.3, seed=1)
    >>> about.positions().tolist()
    [3, 6, 7]
    """

    source: str
    """Name of the file or folder they come from, without the folders above it."""
    kind: str
    """"run", "intervals" or "predictions"."""
    fingerprint: str | None
    """Fingerprint of all samples of the source (SHA-256, 64 hexadecimal digits), or None when it is not known."""
    n: int
    """Number of samples of the source."""
    fraction: float = 0.5
    """Share of them that the calibrator was fitted to; 1 for all."""
    seed: int = 0
    """Seed of the split."""
    classes: tuple[str, ...] | None = None
    """What the columns of scores were called, in their order, where they have names; None otherwise."""
    run: str | None = None
    """Name of the run that they are the first samples of, which it keeps when it is extended; None for others."""
    task: str | None = None
    """What predictions were (:attr:`certcal.Predictions.task`); None for others, and where it is not known."""

    def __post_init__(self) -> None:
        from certcal.calibrators._schema import FittedSamples, convert_to

        object.__setattr__(self, "classes", convert_to(asdict(self), FittedSamples).classes)

    def is_of(self, fingerprint: str | None, n: int) -> bool:
        """Whether samples with a fingerprint are those that the calibrator was fitted to a part of, as far as known."""
        return self.fingerprint is not None and self.fingerprint == fingerprint and self.n == n

    def among(self, fingerprint: str | None, n: int, run: str | None = None) -> NDArray[np.int64] | None:
        """Positions of the samples of the fit among n samples; None when it is not known whether they are the same.

        Parameters
        ----------
        fingerprint
            Of the n samples.
        n
            How many they are.
        run
            Name of the run whose first samples they are, if they are. One that was extended since, or of which a part
            is used, has another fingerprint, and its samples have the same positions.

        Examples
        --------
        >>> about = FittedOn("run-1", "run", None, n=10, fraction=0.3, seed=1, run="5eed5eed")
        >>> about.among(None, 20, "5eed5eed").tolist(), about.among(None, 20, "0ddba115")
        ([3, 6, 7], None)
        """
        if self.is_of(fingerprint, n):
            return self.positions()
        if self.run is None or self.run != run:
            return None
        if self.n > max(n, _MOST_SPLIT):
            raise InputError(f"n is {self.n}, more samples than a run of {n} ever had; fit the map again")
        fit = self.positions()
        return fit[fit < n]

    def positions(self) -> NDArray[np.int64]:
        """Positions of the samples that the calibrator was fitted to, ascending."""
        return np.arange(self.n) if self.fraction == 1 else split_positions(self.n, self.fraction, self.seed)[0]


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file holds."""

    calibrator: Calibrator
    """Fitted."""
    fitted_on: FittedOn | None = None
    """Which samples it was fitted to, if that was told."""

    def to_bytes(self) -> bytes:
        """The content of the file that :func:`save` writes."""
        from certcal.calibrators._schema import FORMAT, VERSION

        calibrator = self.calibrator
        if not isinstance(calibrator, Calibrator):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"a {type(calibrator).__name__} cannot be written as JSON; pass a calibrator of certcal.calibrators or "
                "a subclass, or keep it in a way of your own"
            )
        if not calibrator.__sklearn_is_fitted__():
            name = type(calibrator).__name__
            raise InputError(f"this {name} is not fitted, so there is nothing to save; call fit first")
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "calibrator": calibrator.to_dict(),
            "fitted_on": None if self.fitted_on is None else asdict(self.fitted_on),
        }
        try:
            content = (json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n").encode("utf-8")
        except (TypeError, ValueError) as error:
            raise InputError(f"the parameters of {calibrator!r} cannot be written as JSON: {error}") from error
        if len(content) > _MOST_BYTES:
            size = f"{len(content)} bytes, more than {_MOST_BYTES}"
            raise InputError(f"the calibrator needs {size}; use fewer bins or knots")
        Calibrator.from_dict(document["calibrator"])  # what could not be read again is refused now
        return content


@names_wrong_types
def save(
    calibrator: Calibrator, path: str | os.PathLike[str], *, fitted_on: FittedOn | None = None, force: bool = False
) -> None:
    """Write a fitted calibrator to a JSON file, whole or not at all.

    Parameters
    ----------
    calibrator
        Fitted. Its numbers come back bit for bit.
    path
        Where to. An existing file is kept unless forced.
    fitted_on
        Which samples it was fitted to, so that they can be left out when it is judged.
    force
        Replace an existing file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from certcal.calibrators import PlattScaling
    >>> folder = tempfile.TemporaryDirectory()
    >>> fitted = PlattScaling().fit([0.6, 0.7, 0.8, 0.9], [0, 1, 0, 1])
    >>> save(fitted, Path(folder.name) / "map.json")
    >>> load(Path(folder.name) / "map.json").calibrator.slope_ == fitted.slope_
    True
    >>> folder.cleanup()
    """
    write_bytes(path_of(path), Saved(calibrator, fitted_on).to_bytes(), force=force)


@names_wrong_types
def load(path: str | os.PathLike[str]) -> Saved:
    """Read a calibrator that :func:`save` wrote; whatever else is in the file is refused with a sentence.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> load("no-such-map.json")
    Traceback (most recent call last):
        ...
    certcal.InputError: no-such-map.json: there is no such file; check the path
    """
    place = path_of(path)
    content = read_bytes(place, _MOST_BYTES, "a calibrator")
    try:
        document = json.loads(content.decode("utf-8"), parse_constant=_refuse_nan, object_pairs_hook=_without_repeats)
        return _parse(document)
    except (_OtherFile, RemovedError) as error:
        raise InputError(f"{place}: {_short(str(error))}") from None
    except InputError as error:
        raise InputError(f"{place}: {_short(str(error))}; {_REMEDY}") from None
    except RecursionError:
        raise InputError(f"{place}: is nested too deeply; {_REMEDY}") from None
    except ValueError as error:
        raise InputError(f"{place}: not readable as JSON ({_short(str(error))}); {_NO_MAP}") from None


def _short(text: str) -> str:
    return text if len(text) <= 500 else f"{text[:500]} …"


def _refuse_nan(word: str) -> Any:
    raise InputError(f"{word} is not a number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that names nothing twice: readers would disagree about which counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError("a key appears twice in one object")
    return found


class _OtherFile(InputError):
    """The file is something else, and not damaged."""


def _parse(document: Any) -> Saved:
    from certcal.calibrators._schema import FORMAT, VERSION, CalibratorFile, convert_to

    top = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if top.get("format") != FORMAT:
        raise _OtherFile(f"this is not a calibrator; {_NO_MAP}")
    version = top.get("version")
    if type(version) is not int or version < 1:
        raise InputError(f"version is {version!r}; expected {VERSION}")
    if version > VERSION:
        raise _OtherFile(
            f"written by a newer certcal (schema {version}); this version reads up to {VERSION}: upgrade certcal"
        )
    found = convert_to(top, CalibratorFile)
    calibrator = Calibrator.from_dict(found.calibrator)
    if not calibrator.__sklearn_is_fitted__():
        raise InputError("the calibrator is not fitted")
    _nothing_left(found.calibrator, calibrator.to_dict())
    return Saved(calibrator, None if found.fitted_on is None else FittedOn(**top["fitted_on"]))


def _nothing_left(given: Any, understood: Any, place: str = "calibrator") -> None:
    """Raise if something stands in a file that the calibrator made of it would not write."""
    if isinstance(given, Mapping) and isinstance(understood, Mapping):
        for name, value in cast("Mapping[str, Any]", given).items():
            if name not in understood:
                raise InputError(f"{place} has an entry {name[:80]!r} that this version does not know")
            _nothing_left(value, cast("Mapping[str, Any]", understood)[name], f"{place}.{name}")
    elif isinstance(given, list) and isinstance(understood, list):
        pairs = zip(cast("list[Any]", given), cast("list[Any]", understood), strict=False)
        for index, (one, other) in enumerate(pairs):
            if isinstance(one, Mapping):
                _nothing_left(one, other, f"{place}[{index}]")
