"""Files are written whole or not at all, and never over others by accident."""

import errno
import os
import resource
import stat
from importlib import import_module
from pkgutil import walk_packages

import pytest

from certcal import InputError, verbs
from certcal._base.files import refuse_overwriting, write_bytes, write_together
from certcal.result import Result


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


# --- several files ---------------------------------------------------------------------------------------------------


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class FailsAt:
    """Makes the k-th of all flushes, links and moves fail as on a full disk."""

    def __init__(self, monkeypatch, k, without_links):
        self.left = k
        for name in ("fsync", "link", "replace"):
            monkeypatch.setattr(os, name, self.counted(getattr(os, name), without_links and name == "link"))

    def counted(self, real, refused):
        def call(*arguments, **options):
            self.left -= 1
            if self.left == -1:
                raise OSError(errno.ENOSPC, "No space left on device")
            if refused:
                raise OSError(errno.EPERM, "Operation not permitted")
            return real(*arguments, **options)

        return call


@pytest.mark.parametrize("without_links", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_wherever_writing_fails_all_files_are_there_or_none(tmp_path, force, without_links):
    new = {name: name.encode() for name in ("a.json", "b.html", "made/c.csv")}
    old = {"other.txt": b"other", **({"a.json": b"old a", "b.html": b"old b"} if force else {})}
    refusals = 0
    for k in range(30):
        folder = tmp_path / str(k)
        folder.mkdir()
        for name, each in old.items():
            (folder / name).write_bytes(each)
        with pytest.MonkeyPatch.context() as patch:
            failing = FailsAt(patch, k, without_links)
            files = {folder / name: each for name, each in new.items()}
            said = ""
            try:
                write_together(files, force=force, folder=folder / "made")
            except InputError as error:
                said = str(error)
        if failing.left >= 0:
            break
        if said:
            refusals += 1
            assert said.endswith("(No space left on device); none of the 3 files was written")
        assert content(folder) == (old if said else {**old, **new})
        assert (folder / "made").exists() == (not said)
    assert refusals >= 3  # every flush at least
    assert k >= 6


def test_a_file_too_large_for_the_disk_takes_the_one_before_it_along(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(InputError, match=r"m\.html: cannot be written \(File too large\); none of the 2 files"):
            write_together({tmp_path / "m.json": bytes(10), tmp_path / "m.html": bytes(1001)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == []


def test_one_that_appears_meanwhile_stays_and_none_of_ours_is_there(tmp_path, monkeypatch):
    real = os.fsync

    def intrude(descriptor):
        (tmp_path / "b").write_bytes(b"theirs")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", intrude)
    with pytest.raises(InputError, match="b exists and is not overwritten"):
        write_together({tmp_path / "a": b"ours", tmp_path / "b": b"ours"})
    assert content(tmp_path) == {"b": b"theirs"}


def test_no_answer_writes_its_files_in_a_way_of_its_own():
    for module in walk_packages(verbs.__path__, "certcal.verbs."):
        import_module(module.name)
    import_module("certcal.lab.study")
    answers = [Result]
    for kind in answers:
        answers += kind.__subclasses__()
    assert len(answers) > 15
    assert [kind.__name__ for kind in answers[1:] if "save" in vars(kind)] == []
