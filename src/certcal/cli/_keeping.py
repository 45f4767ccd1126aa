"""What ``certcal attack --save`` keeps: predictions as tables that ``certcal measure`` reads, inputs as npz."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._checks import InputError
from certcal._files import refuse_overwriting, write_bytes
from certcal.cli._sources import refuse_inside

if TYPE_CHECKING:
    from certcal.attacks import Attacked
    from certcal.predictions import Predictions

CLEAN = "clean"


@dataclass
class Keeping:
    """A folder for what attacks find.

    Parameters
    ----------
    folder
        Where files go; made if it is not there.
    inputs
        Whether perturbed inputs are kept as well.
    force
        Whether existing files may be replaced.
    """

    folder: Path
    inputs: bool
    force: bool
    written: list[Path] = field(default_factory=list[Path])

    def check(self, names: Iterable[str], sources: Iterable[str]) -> None:
        """Refuse what could not be written later, or into what is read, before anything is attacked."""
        refuse_inside("--save", self.folder, sources)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"--save {self.folder}: this is a file; give a folder")
        if not self.folder.exists():
            refuse_overwriting(self.folder)  # the folder around it must be there
            return
        for name in (CLEAN, *names):
            for path in self._paths(name):
                refuse_overwriting(path, force=self.force)

    def keep(self, clean: Predictions, found: Iterable[tuple[str, Attacked | None]]) -> None:
        """Write predictions before and after attacks.

        Parameters
        ----------
        clean
            Before.
        found
            Names of files, without endings, and what attacks found.
        """
        self.folder.mkdir(exist_ok=True)
        self._table(CLEAN, clean)
        for name, each in found:
            assert each is not None
            self._table(name, each.predictions)
            if self.inputs:
                stream = io.BytesIO()
                np.savez(stream, inputs=each.inputs, labels=each.labels)
                self._write(self.folder / f"{name}.npz", stream.getvalue())

    def _paths(self, name: str) -> list[Path]:
        endings = [".parquet", *([".npz"] if self.inputs and name != CLEAN else [])]
        return [self.folder / f"{name}{ending}" for ending in endings]

    def _table(self, name: str, predictions: Predictions) -> None:
        from certcal.data import intervals_as_parquet

        assert predictions.probabilities is not None
        assert predictions.labels is not None
        columns: dict[str, Any] = {"label": predictions.labels}
        columns |= {f"prob_{k}": column for k, column in enumerate(predictions.probabilities.T)}
        self._write(self.folder / f"{name}.parquet", intervals_as_parquet(columns))

    def _write(self, path: Path, content: bytes) -> None:
        write_bytes(path, content, force=self.force)
        self.written.append(path)


def kept_name(attack: str, epsilon: str) -> str:
    """The name of an attack's files.

    Examples
    --------
    >>> kept_name("plus-true", "8/255")
    'plus-true-8-255'
    """
    return f"{attack}-{epsilon.replace(' ', '').replace('/', '-')}"
