"""Files are written whole or not at all, and never over others by accident."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from certcal import InputError
from certcal._files import refuse_overwriting, write_bytes


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_existing_file_stays_unless_forced(tmp_path):
    path = tmp_path / "numbers.json"
    path.write_bytes(b"old")
    with pytest.raises(InputError, match=r"numbers\.json exists and is not overwritten; .*force it"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    write_bytes(path, b"new", force=True)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["numbers.json"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "numbers.json"
    real = os.fsync

    def intrude(descriptor):
        path.write_bytes(b"theirs")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", intrude)
    with pytest.raises(InputError, match=r"exists and is not overwritten"):
        write_bytes(path, b"ours")
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["numbers.json"]


def test_without_hard_links_the_file_still_arrives(tmp_path, monkeypatch):
    def refuse(*_args):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_bytes(tmp_path / "a.json", b"{}")
    assert (tmp_path / "a.json").read_bytes() == b"{}"
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("force", [False, True])
def test_a_full_disk_leaves_nothing_behind_and_the_old_file_whole(tmp_path, monkeypatch, force):
    path = tmp_path / "a.json"
    if force:
        path.write_bytes(b"old")

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        InputError, match=r"a\.json: cannot be written \(No space left on device\); nothing was changed"
    ):
        write_bytes(path, b"new", force=force)
    assert names(tmp_path) == (["a.json"] if force else [])
    assert not force or path.read_bytes() == b"old"


def test_permissions_are_those_of_any_new_file(tmp_path):
    write_bytes(tmp_path / "ours", b"")
    (tmp_path / "plain").write_bytes(b"")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "plain")}
    assert len(modes) == 1


def test_long_names_are_written(tmp_path):
    path = tmp_path / ("n" * 240 + ".json")
    write_bytes(path, b"{}")
    assert path.read_bytes() == b"{}"


@pytest.mark.parametrize(
    ("place", "message"),
    [("", r"this is a folder; give a file name"), ("missing/a.json", r"the folder does not exist; create it first")],
)
def test_impossible_places_are_refused_early(tmp_path, place, message):
    with pytest.raises(InputError, match=message):
        refuse_overwriting(tmp_path / place)


def test_a_folder_that_cannot_be_written_to_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match=r"page\.html: the folder cannot be written to; choose another"):
        refuse_overwriting(tmp_path / "page.html", force=True)
