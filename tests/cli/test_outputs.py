"""All files of a command are there in the end, or none of them, and those from before are as they were."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.pinned.inputs import ensure, inputs_of
from tests.pinned.making import BY_NAME
from tests.pinned.reading import command, fresh

# A case of tests/pinned per command that writes several files, with the files that it writes here.
SEVERAL = {
    "measure-groups": ("json", "html", "csv"),
    "bound": ("txt", "html"),
    "certify-groups": ("csv", "json"),
    "certify-run": ("html", "parquet"),
    "report-groups": ("json", "html"),
    "compare-logs": ("html", "json"),
    "recalibrate-scores": ("json", "csv"),
    "apply-to-scores": ("parquet", "csv"),
    "study-search": ("json", "csv"),
    "sample-deciding": ("json",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outputs")


@pytest.mark.parametrize("name", SEVERAL)
def test_a_disk_that_is_full_at_the_last_file_leaves_none(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, real = BY_NAME[name], os.fsync
    words = [each for each in case.words("out") if (each != "-o" and not each.startswith("out/"))]
    for each in inputs_of(words):
        ensure(folder, each)
    out = fresh(folder, "out")
    asked = [f"x.{ending}" for ending in SEVERAL[name]]
    (out / asked[0]).write_text("old")
    flushed = []

    def full_in_the_end(descriptor: int) -> None:
        flushed.append(descriptor)
        if len(flushed) == len(asked):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full_in_the_end)
    ran = command(folder, [*words, *(word for each in asked for word in ("-o", f"out/{each}")), "--json", "--force"])
    assert (ran.code, len(flushed)) == (2, len(asked)), ran.err
    assert "cannot be written (No space left on device); no" in ran.err  # nothing was changed, none was written
    assert ran.out.startswith("{")  # numbers that took long to find are printed all the same
    assert {path.name: path.read_text() for path in out.iterdir()} == {asked[0]: "old"}
