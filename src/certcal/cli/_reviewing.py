"""What ``certcal study review`` and ``certcal report`` find in the table of a study."""

from __future__ import annotations

from typing import Any

from certcal._checks import InputError
from certcal.cli._progress import Waiting
from certcal.cli._sources import existing
from certcal.report.results import StudiedResults

FEWEST_RESAMPLES = 20


def review_table(source: str, **settings: Any) -> StudiedResults:
    """Read the table of a study and review its models.

    Parameters
    ----------
    source
        Name of the file.
    settings
        Of :func:`certcal.study.review`.
    """
    from certcal.study import StudyTable, review

    path = existing(source, "table of a study")
    if path.is_dir():
        raise InputError(
            f"{source}: this is a folder; measure it first: certcal study measure {source} -o study.parquet"
        )
    with Waiting() as waiting:
        waiting.stage("reading")
        table = StudyTable.read(path)
        waiting.stage("reviewing")
        return StudiedResults(source, review(table, **settings))
