"""idx files: what is in them, and nothing that only their header promises."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.data import Inputs, read_idx

CODES = {"u1": 0x08, "i1": 0x09, ">i2": 0x0B, ">i4": 0x0C, ">f4": 0x0D, ">f8": 0x0E}


def idx(array: np.ndarray, dtype: str = "u1") -> bytes:
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, CODES[dtype], array.ndim]) + sizes + array.astype(dtype).tobytes()


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("shape", [(5,), (2, 3), (3, 2, 2), (1, 2, 1, 3)])
@pytest.mark.parametrize("packed", [False, True])
def test_the_array_comes_back_in_native_order_plain_and_zipped(tmp_path, dtype, shape, packed):
    array = np.arange(np.prod(shape)).reshape(shape)
    path = tmp_path / ("a.gz" if packed else "a")
    path.write_bytes(gzip.compress(idx(array, dtype)) if packed else idx(array, dtype))
    found = read_idx(path)
    np.testing.assert_array_equal(found, array)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    assert found.dtype.isnative


def test_images_and_labels_become_inputs(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 3))
    (tmp_path / "images").write_bytes(idx(images))
    (tmp_path / "labels").write_bytes(idx(np.array([1, 0, 9, 2])))
    data = Inputs.from_arrays(read_idx(tmp_path / "images")[:, None], read_idx(tmp_path / "labels"))
    assert (data.inputs.shape, data.scale, data.labels.tolist()) == ((4, 1, 3, 3), "k/255", [1, 0, 9, 2])


WHOLE = idx(np.arange(12).reshape(3, 4))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\0\0\x08", "this is not an idx file"),
        (b"\x93NUMPY" + WHOLE, "this is not an idx file"),
        (b"\0\0\x07\x01\0\0\0\x01a", "this is not an idx file"),
        (b"\0\0\x08\0a", "this is not an idx file"),
        (b"\0\0\x08\x09" + bytes(40), "this is not an idx file"),
        (WHOLE[:10], "this idx file is cut short"),
        (WHOLE[:-1], "the header says 12 bytes of numbers, more than the file can hold; copy it again"),
        (WHOLE + b"x", "does not end after the 12 bytes of numbers"),
        (b"\0\0\x08\x02\0\0\0\0\0\0\0\x04", r"shape \(0, 4\), so there is nothing in it"),
        (b"\0\0\x0e\x08" + b"\xff" * 32 + bytes(99), "more than the file can hold"),
        (gzip.compress(WHOLE, mtime=0)[:-9], "this idx file cannot be read|does not end after"),
        (gzip.compress(WHOLE[:-1], mtime=0), "does not end after the 12 bytes"),
        (gzip.compress(WHOLE + b"x", mtime=0), "does not end after the 12 bytes"),
        (gzip.compress(WHOLE, mtime=0) + b"rubbish", "this idx file cannot be read"),
        (b"\x1f\x8brubbish", "this idx file cannot be read"),
        (gzip.compress(b"\0\0\x0e\x08" + b"\xff" * 32, mtime=0), "more than the file can hold"),
        (gzip.compress(b"\0\0\x08\x01\0\x10\0\0", mtime=0), "more than the file can hold"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path, content, message):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_idx(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_small_file_that_unfolds_beyond_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("certcal.data.formats.physical_memory", lambda: 2**20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(idx(np.zeros(2**21))))
    assert path.stat().st_size < 2**12
    with pytest.raises(InputError, match=r"reading it needs .* GiB and this machine has"):
        read_idx(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_idx(tmp_path / "nothing")
    with pytest.raises(InputError, match="this is a folder"):
        read_idx(tmp_path)


@settings(max_examples=200, deadline=None)
@given(st.booleans(), st.data())
def test_a_changed_byte_gives_an_array_or_one_sentence(tmp_path_factory, packed, data):
    path = tmp_path_factory.mktemp("flips") / "flipped"
    content = bytearray(gzip.compress(WHOLE, mtime=0) if packed else WHOLE)
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    try:
        size, sentence = read_idx(path).nbytes, ""
    except InputError as error:
        size, sentence = 0, str(error)
    assert size in (0, 12)
    assert (size == 0) == sentence.startswith(f"{path}: ")
