"""Files are whole or not there, only what this package wrote is replaced or removed, and nothing is waited for."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from certcal import InputError
from certcal._base.durable import LOCK, only_writer, open_regular, remove_leftovers, write_durably


def test_a_lock_that_is_a_link_is_refused_and_what_it_points_to_stays(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("all of it")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / LOCK).symlink_to(thesis)
    with (
        pytest.raises(InputError, match=r"\.lock: this is a link, and a lock is a file"),
        only_writer(folder),
    ):
        pass
    assert thesis.read_text() == "all of it"


def test_a_lock_appears_nowhere_else_through_a_link_made_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(Path, "is_symlink", lambda _: False)
    with pytest.raises(InputError, match="cannot be written to"), only_writer(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("content", ["token of my own\n", "12 on host\nand more\n"])
def test_somebodys_own_file_of_that_name_is_locked_and_keeps_its_content(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK).write_text(content)
    with only_writer(tmp_path), pytest.raises(InputError, match="another process"), only_writer(tmp_path):
        pass
    assert (tmp_path / LOCK).read_text() == content


def test_a_lock_says_who_holds_it_now_and_a_pipe_is_none(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("123456789 on a machine with a long name\n")
    with only_writer(tmp_path):
        assert (tmp_path / LOCK).read_text().startswith(f"{os.getpid()} on ")
        assert (tmp_path / LOCK).read_text().count("\n") == 1
    (tmp_path / LOCK).unlink()
    os.mkfifo(tmp_path / LOCK)
    with pytest.raises(InputError, match="this is not a regular file"), only_writer(tmp_path):
        pass


def test_on_windows_a_byte_behind_the_text_is_locked_and_the_holder_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    def locking(descriptor: int, mode: str, size: int) -> None:
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        if place in taken:
            raise PermissionError(13, "Permission denied")
        assert (mode, size) == ("try once", 1)
        taken.append(place)

    monkeypatch.setattr("certcal._base.durable._WINDOWS", True)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK="try once", locking=locking))
    with only_writer(tmp_path):
        assert (tmp_path / LOCK).read_text().startswith(f"{os.getpid()} on ")
        assert taken[0] > (tmp_path / LOCK).stat().st_size
        write_durably(tmp_path / "note", b"new")
        with pytest.raises(InputError, match=rf"another process \({os.getpid()} on .*\)"), only_writer(tmp_path):
            pass
    assert (tmp_path / "note").read_bytes() == b"new"


def test_a_file_is_written_through_no_link_and_over_no_file_of_another_name(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    (tmp_path / ".note.tmp").write_text("kept")
    (tmp_path / f".note.{os.getpid()}.certcal-tmp").symlink_to(tmp_path / "mine")
    write_durably(tmp_path / "note", b"new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "mine": "kept",
        ".note.tmp": "kept",
        "note": "new",
    }


def test_only_our_own_leftovers_are_removed(tmp_path: Path) -> None:
    (tmp_path / "counting").mkdir()
    for name in (".notes.tmp", ".x.certcal-tmp", "y.certcal-tmp", "counting/.a.tmp", "counting/.b.12.certcal-tmp"):
        (tmp_path / name).write_text("content")
    remove_leftovers(tmp_path)
    left = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == dict.fromkeys([".notes.tmp", "y.certcal-tmp", "counting/.a.tmp"], "content")


# Each reader is given a named pipe to which nobody writes. Opened in the usual way, that waits for ever.
READERS = """
import sys
from pathlib import Path
from types import SimpleNamespace

from certcal import InputError, calibrators, data, models, smoothing
from certcal.smoothing._manifest import Unit
from certcal.smoothing._shards import read_shard, refuse_changed
from certcal.lab.study._entries import entries_in_manifest
from certcal.lab import logs
from certcal.lab.study import read_architectures

folder = Path(sys.argv[1])
unit = Unit("counting", 0, 1, 0, 5)
drawn = SimpleNamespace(run="", model=SimpleNamespace(classes=2), thresholds=(0.5,), version=3, histograms=1)
readers = {
    "manifest.json": lambda path: smoothing.open_run(folder),
    unit.name: lambda path: read_shard(folder, drawn, unit),
    "selection/other.parquet": lambda path: refuse_changed(path, drawn) or read_shard(folder, drawn, unit),
    "log.tsv": lambda path: logs.read_log(path, sigma=1.0, n=100),
    "decisions.json": smoothing.read_decisions,
    "study.jsonl": entries_in_manifest,
    "architectures.json": read_architectures,
    "table.csv": data.read_predictions,
    "table.npz": data.read_inputs,
    "model.onnx": models.load,
    "model.safetensors": models.load,
    "map.json": calibrators.load,
}
for name, read in readers.items():
    (folder / name).parent.mkdir(exist_ok=True)
    __import__("os").mkfifo(folder / name)
    try:
        print(name, read(folder / name))
    except InputError:
        print(name, "refused")
"""


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", READERS, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stderr == ""
    found = dict(line.rsplit(" ", 1) for line in ran.stdout.splitlines())
    assert len(found) == 12
    assert set(found.values()) == {"refused"}


def test_devices_and_folders_are_refused_and_what_the_shell_has_opened_is_read(tmp_path):
    with pytest.raises(InputError, match="/dev/zero: this is not a regular file; give one"):
        open_regular("/dev/zero")
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    read, write = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(write, b"given"), os.close(write)))
    writer.start()
    with open_regular(f"/dev/fd/{read}") as stream:
        assert stream.read() == b"given"
    writer.join()
    os.close(read)
