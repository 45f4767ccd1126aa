"""Inputs that are read when they are asked for: the same numbers and fingerprints as in memory, and few at a time."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from certcal import InputError
from certcal.data import Inputs, Rows, open_inputs, read_inputs, read_split
from certcal.data.inputs import ArraySource, FileSource, npy_source

RNG = np.random.default_rng(2)
PIXELS = RNG.integers(0, 256, (9, 3, 2, 2), np.uint8)
LABELS = RNG.integers(0, 4, 9)


def saved(folder: Path, inputs: np.ndarray = PIXELS, labels: np.ndarray = LABELS, prefix: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{prefix}inputs.npy", inputs)
    np.save(folder / f"{prefix}labels.npy", labels)
    return folder


@pytest.fixture(params=["folder", "archive", "map", "part of a map"])
def lazy(request, tmp_path, monkeypatch):
    """The same inputs, each time from another source that is read in pieces."""
    monkeypatch.setattr("certcal.data.opening.HELD", 0)
    if request.param == "folder":
        return open_inputs(saved(tmp_path / "data")).inputs
    if request.param == "archive":
        np.savez(tmp_path / "a.npz", labels=LABELS, inputs=PIXELS)
        return open_inputs(tmp_path / "a.npz").inputs
    np.save(tmp_path / "x.npy", PIXELS if request.param == "map" else np.concatenate([PIXELS[:2], PIXELS]))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    return open_inputs((mapped if request.param == "map" else mapped[2:], LABELS)).inputs


def test_every_source_gives_the_numbers_and_the_fingerprint_of_the_arrays(lazy):
    here = Inputs.from_arrays(PIXELS, LABELS)
    assert isinstance(lazy.inputs, Rows)
    assert (lazy.inputs.shape, lazy.inputs.ndim, lazy.inputs.nbytes) == (PIXELS.shape, 4, here.inputs.nbytes)
    for rows in (slice(2, 7, 3), slice(None), 4, -1, [8, 0, 0], np.arange(9) % 2 == 0):
        np.testing.assert_array_equal(lazy.inputs[rows], here.inputs[rows])
    np.testing.assert_array_equal(lazy.inputs, here.inputs)
    assert (lazy.fingerprint, lazy.scale) == (here.fingerprint, here.scale)
    some = lazy.subset(every=3, limit=2)
    assert some.fingerprint == Inputs.from_arrays(PIXELS[:6:3], LABELS[:6:3]).fingerprint
    assert some.subset(every=2).in_memory().fingerprint == Inputs.from_arrays(PIXELS[:1], LABELS[:1]).fingerprint
    assert repr(lazy).startswith("Inputs(n=9, shape=(3, 2, 2), from ")


def test_a_whole_map_travels_as_its_path_and_a_part_of_one_or_a_changed_one_does_not(tmp_path):
    np.save(tmp_path / "x.npy", PIXELS)
    whole, part = (np.load(tmp_path / "x.npy", mmap_mode=mode) for mode in ("r", "c"))
    rows = Inputs.from_arrays(whole, LABELS).inputs
    assert isinstance(rows, Rows)
    assert rows.source.portable
    assert len(pickle.dumps(rows)) < 2_000
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows))[3:5], rows[3:5])
    part[0] = 0
    for stays in (whole[1:], part, whole[:, ::-1]):
        found = Inputs.from_arrays(stays, LABELS[: len(stays)]).inputs
        assert isinstance(found, Rows)
        assert not found.source.portable
        np.testing.assert_array_equal(np.rint(found[:] * 255), stays)


def test_no_more_than_a_block_of_rows_is_read_at_a_time(monkeypatch):
    monkeypatch.setattr("certcal.data.inputs.CHUNK_NUMBERS", 24)
    read: list[int] = []

    class Counted(ArraySource):
        def read(self, rows):
            read.append(len(rows))
            return super().read(rows)

    data = Inputs.from_arrays(Rows(Counted(PIXELS)), LABELS)
    assert read == []
    assert data.fingerprint == Inputs.from_arrays(PIXELS, LABELS).fingerprint
    assert (max(read), sum(read)) == (2, 9)


def test_a_row_that_changed_since_it_was_read_is_refused(tmp_path):
    rows = open_inputs(saved(tmp_path / "data"), every=2).inputs.inputs
    rows[:]
    changed = PIXELS.copy()
    changed[4, 0, 0, 0] ^= 1
    saved(tmp_path / "data", changed)
    np.testing.assert_array_equal(np.rint(rows[:2] * 255), PIXELS[:4:2])
    with pytest.raises(InputError, match=r"inputs\.npy: sample 4 is not what it was when it was read first"):
        rows[1:3]


def test_a_number_that_is_not_finite_is_named_when_its_row_is_read(tmp_path):
    bad = PIXELS.astype(np.float64)
    bad[5, 1, 0, 1], bad[7, 0, 0, 0] = np.nan, 1e300
    rows = open_inputs(saved(tmp_path / "data", bad)).inputs.inputs
    assert rows[:5].shape == (5, 3, 2, 2)
    with pytest.raises(InputError, match=r"inputs\.npy: inputs\[5, 1, 0, 1\] is nan; drop the sample or repair it"):
        rows[4:6]
    with pytest.raises(InputError, match=r"inputs\[7, 0, 0, 0\] is 1e\+300, too large for float32"):
        rows[7]


def test_a_folder_of_arrays_may_have_both_parts(tmp_path):
    saved(saved(tmp_path / "data", prefix="train_"), PIXELS[:2], LABELS[:2], "test_")
    assert len(open_inputs(tmp_path / "data").inputs) == 2
    assert isinstance(read_inputs(tmp_path / "data", split="train").inputs, np.ndarray)
    assert read_split(tmp_path / "data").description == "data: 9 images of 2 by 2 to train on, 2 others to test on"


def spoilt(tmp_path: Path, file: str, change) -> str:
    path = saved(tmp_path / "data") / file
    change(path)
    with pytest.raises(InputError) as caught:
        np.asarray(open_inputs(tmp_path / "data").inputs.inputs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "change", "complaint"),
    [
        ("inputs.npy", lambda p: p.write_bytes(p.read_bytes()[:-1]), "bytes are not those of shape (9, 3, 2, 2)"),
        ("inputs.npy", lambda p: p.write_bytes(b"\x93NUMPY"), "this array cannot be read"),
        ("inputs.npy", lambda p: np.save(p, PIXELS.astype(object), allow_pickle=True), "holds object, not numbers"),
        ("inputs.npy", lambda p: np.save(p, np.asfortranarray(PIXELS)), "lies column by column"),
        ("inputs.npy", lambda p: np.save(p, PIXELS[:8]), "lengths differ: inputs has 8, labels has 9"),
        ("inputs.npy", lambda p: np.save(p, PIXELS[:, 0, 0, 0]), "pass one row (or one image) per sample"),
        ("labels.npy", lambda p: p.unlink(), "there is inputs.npy and no labels.npy"),
        ("labels.npy", lambda p: np.save(p, PIXELS), "labels has shape (9, 3, 2, 2); pass one value per sample"),
        ("labels.npy", lambda p: np.save(p, np.full(9, -1)), "labels[0] is -1; labels are whole numbers"),
    ],
)
def test_files_of_arrays_that_cannot_be_used_are_one_sentence(tmp_path, file, change, complaint):
    assert complaint in spoilt(tmp_path, file, change)


def test_a_file_that_is_cut_short_meanwhile_is_a_sentence_and_not_a_crash(tmp_path):
    np.save(tmp_path / "x.npy", PIXELS)
    source = npy_source(tmp_path / "x.npy")
    assert isinstance(source, FileSource)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-5])
    with pytest.raises(InputError, match=r"x\.npy: this array cannot be read \(an array is cut short\)"):
        Rows(source)[8]


def test_every_and_limit_choose_among_the_samples_and_say_when_there_are_too_few():
    opened = open_inputs((PIXELS, LABELS), every=4, limit=3)
    assert opened.settings.every == 4
    assert opened.inputs.fingerprint == Inputs.from_arrays(PIXELS[::4], LABELS[::4]).fingerprint
    with pytest.raises(InputError, match=r"limit: it is 4, but data holds 3 samples \(every 4 of 9\)"):
        open_inputs((PIXELS, LABELS), every=4, limit=4)
    with pytest.raises(InputError, match="every: 0 is not a whole number from 1"):
        open_inputs((PIXELS, LABELS), every=0)
    with pytest.raises(InputError, match="resize: it is for folders of PNG or JPEG files; leave it out"):
        open_inputs("digits", resize=8)
