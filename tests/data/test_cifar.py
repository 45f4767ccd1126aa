"""CIFAR's binary files: every image and class in its place, and nothing else taken for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certcal import InputError
from certcal.data import read_inputs, read_split

TEN = {"train": [f"data_batch_{k}.bin" for k in range(1, 6)], "test": ["test_batch.bin"]}
HUNDRED = {"train": ["train.bin"], "test": ["test.bin"]}


def write(folder: Path, layout: dict[str, list[str]], count: int = 3) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Random images and classes, by part."""
    rng = np.random.default_rng(2)
    written = {}
    for part, names in layout.items():
        images = rng.integers(0, 256, (count * len(names), 3, 32, 32), np.uint8)
        classes = rng.integers(0, 10 if layout is TEN else 100, count * len(names), np.uint8)
        coarse = classes[:, None] // 5 if layout is HUNDRED else np.empty((len(classes), 0), np.uint8)
        records = np.concatenate([coarse, classes[:, None], images.reshape(len(images), -1)], axis=1)
        for name, some in zip(names, np.split(records, len(names)), strict=True):
            (folder / name).write_bytes(some.tobytes())
        written[part] = images, classes
    return written


@pytest.mark.parametrize("layout", [TEN, HUNDRED], ids=["CIFAR-10", "CIFAR-100"])
def test_images_and_classes_come_back_by_part_in_the_order_of_the_files(tmp_path, layout):
    written = write(tmp_path, layout)
    for part, (images, classes) in written.items():
        data = read_inputs(tmp_path, part=part)
        np.testing.assert_array_equal(np.rint(data.inputs * 255), images)
        assert data.labels.tolist() == classes.tolist()
        assert data.scale == "k/255"
    assert len(read_split(tmp_path).train) == 3 * len(layout["train"])
    with pytest.raises(InputError, match="ask for part='train' or part='test'"):
        read_inputs(tmp_path)


def record(label: int, length: int = 3073) -> bytes:
    return bytes([label]) + bytes(length - 1)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, r"no such file, but .* is 5 files \(data_batch_1.bin to data_batch_5.bin\); copy all of them"),
        (b"", "the file is empty"),
        (record(0)[:-1], r"3072 bytes are no whole number of images of CIFAR-10 \(3073 bytes each\); copy it again"),
        (record(0, 3074), "3074 bytes are no whole number"),
        (record(9) + record(10), "image 2 has class 10, and CIFAR-10 has classes from 0 to 9; check which file it is"),
    ],
)
def test_a_file_that_is_missing_or_other_than_it_should_be_is_named(tmp_path, content, complaint):
    write(tmp_path, TEN, 1)
    path = tmp_path / "data_batch_3.bin"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_inputs(tmp_path, part="train")
    assert str(caught.value).startswith(f"{path}: ")
    assert len(read_inputs(tmp_path, part="test")) == 1


@pytest.mark.parametrize(("labels", "found"), [((20, 0), "class 20, .* from 0 to 19"), ((0, 100), "class 100, .* 99")])
def test_both_bytes_of_classes_of_the_hundred_are_checked(tmp_path, labels, found):
    (tmp_path / "test.bin").write_bytes(bytes(labels) + bytes(3072))
    with pytest.raises(InputError, match=f"image 1 has {found}"):
        read_inputs(tmp_path)


def test_files_that_do_not_fit_into_memory_are_refused(tmp_path, monkeypatch):
    write(tmp_path, HUNDRED, 4)
    monkeypatch.setattr("certcal.data.formats.physical_memory", lambda: 5 * 4 * 3072 - 1)
    with pytest.raises(InputError, match=r"reading it needs .* GiB and this machine has"):
        read_inputs(tmp_path, part="train")


@pytest.mark.parametrize(
    ("names", "title"),
    [(["data_batch_1", "test_batch", "batches.meta"], "cifar-10"), (["train", "test", "meta"], "cifar-100")],
)
def test_the_version_for_python_is_never_unpickled(tmp_path, names, title):
    for name in names:
        (tmp_path / name).write_bytes(b"cbuiltins\nexit\n(tR.")
    with pytest.raises(InputError, match=f"are pickles, which can run code .*; get the binary version, {title}-binary"):
        read_inputs(tmp_path)
