"""What ``certcal study review`` and ``certcal report`` find in the table of a study."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.cli._progress import Waiting
from certcal.cli._sources import existing
from certcal.report.results import StudiedResults

if TYPE_CHECKING:
    from certcal.study import StudyTable

FEWEST_RESAMPLES = 20


def read_study(source: str) -> StudyTable:
    """Read the table of a study; what is none says how to make one.

    Examples
    --------
    >>> read_study(".")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: .: this is a folder; measure it first: certcal study measure . -o study.parquet
    """
    from certcal.study import StudyTable

    path = existing(source, "table of a study")
    if path.is_dir():
        command = shlex.join(["certcal", "study", "measure", source, "-o", "study.parquet"])
        raise InputError(f"{source}: this is a folder; measure it first: {command}")
    return StudyTable.read(path)


def review_table(source: str, **settings: Any) -> StudiedResults:
    """Read the table of a study and review its models.

    Parameters
    ----------
    source
        Name of the file.
    settings
        Of :func:`certcal.study.review`.
    """
    from certcal.study import review

    with Waiting() as waiting:
        waiting.stage("reading")
        table = read_study(source)
        waiting.stage("reviewing")
        return StudiedResults(source, review(table, **settings))
