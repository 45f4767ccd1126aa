"""All files of a command are there in the end, or none of them; those from before, and those that are read, stay."""

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
    "attack": ("csv", "json"),
    "study-search": ("json", "csv"),
    "study-review": ("html", "csv"),
    "decide": ("json",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outputs")


def prepared(folder: Path, name: str) -> list[str]:
    """The words of a case without its outputs, with its inputs made and an empty folder ``out``."""
    words = [each for each in BY_NAME[name].words("out") if (each != "-o" and not each.startswith("out/"))]
    for each in inputs_of(words):
        ensure(folder, each)
    fresh(folder, "out")
    return words


@pytest.mark.parametrize("name", SEVERAL)
def test_no_file_is_replaced_without_force_and_none_that_is_read_at_all(folder: Path, name: str) -> None:
    words, place = prepared(folder, name), f"out/x.{SEVERAL[name][0]}"
    (folder / place).write_text("mine")
    ran = command(folder, [*words, "-o", place])
    assert (ran.code, ran.out, (folder / place).read_text()) == (2, "", "mine")
    assert f"{place} exists and is not overwritten; choose another name, or add --force" in ran.err
    ran = command(folder, [*words, "-o", place, "--force"])
    assert (ran.code, (folder / place).read_text(errors="replace") == "mine") == (0, False)
    for source in [folder / each for each in inputs_of(words) if (folder / each).is_file()]:
        before = source.read_bytes()
        ran = command(folder, [*words, "-o", source.name, "--force"])
        assert (ran.code, ran.out, source.read_bytes()) == (2, "", before)


@pytest.mark.parametrize("name", SEVERAL)
def test_a_disk_that_is_full_at_the_last_file_leaves_none(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, out, real = prepared(folder, name), folder / "out", os.fsync
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
