"""Binary files of images, idx, CIFAR's and SVHN's: what is in them, and nothing that only a header promises."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat

import certcal
from certcal import InputError
from certcal.data import fashion_mnist, image_files, read_idx, read_inputs, read_split
from tests.data.idx_files import CODES, idx, write_clothes


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


@settings(max_examples=100)
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


# -------------------------------------------------------------------------------------------------------- Fashion-MNIST


def test_the_four_files_become_images_of_bytes_with_their_labels(tmp_path):
    write_clothes(tmp_path, train=30, test=20)
    split = fashion_mnist(tmp_path)
    assert (split.train.inputs.shape, split.test.inputs.shape) == ((30, 1, 28, 28), (20, 1, 28, 28))
    assert (split.train.scale, split.test.scale) == ("k/255", "k/255")
    stored = read_idx(tmp_path / "t10k-images-idx3-ubyte")
    np.testing.assert_array_equal(np.rint(split.test.inputs[:, 0] * 255), stored)
    np.testing.assert_array_equal(split.test.labels, read_idx(tmp_path / "t10k-labels-idx1-ubyte"))
    assert split.description == "Fashion-MNIST: 30 images of 28 by 28 to train on, 20 others to test on"


def test_the_first_images_to_test_on_can_be_asked_for(tmp_path):
    write_clothes(tmp_path, train=10, test=20)
    part, whole = fashion_mnist(tmp_path, test=7), fashion_mnist(tmp_path)
    np.testing.assert_array_equal(part.test.inputs, whole.test.inputs[:7])
    np.testing.assert_array_equal(part.test.labels, whole.test.labels[:7])
    with pytest.raises(InputError, match="test is 0; pass how many"):
        fashion_mnist(tmp_path, test=0)


def test_where_it_is_not_installed_the_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(image_files, "INSTALLED", tmp_path / "nothing")
    with pytest.raises(InputError, match="apt-get install dataset-fashion-mnist, or give a folder"):
        fashion_mnist()


def test_where_it_is_installed_no_folder_is_needed(tmp_path, monkeypatch):
    write_clothes(tmp_path, train=10, test=10)
    monkeypatch.setattr(image_files, "INSTALLED", tmp_path)
    assert len(fashion_mnist().train) == 10


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("t10k-images-idx3-ubyte", None, "there is no t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz"),
        ("t10k-images-idx3-ubyte", idx(np.zeros((10, 8, 8), np.uint8)), "no images of 28 by 28 bytes"),
        ("t10k-images-idx3-ubyte", idx(np.zeros(10, np.uint8)), "no images of 28 by 28 bytes"),
        ("t10k-images-idx3-ubyte", b"not an idx file", "not an idx file"),
        ("t10k-labels-idx1-ubyte", idx(np.zeros(9, np.uint8)), "no class from 0 to 9 for each image"),
        ("t10k-labels-idx1-ubyte", idx(np.full(10, 10, np.uint8)), "no class from 0 to 9 for each image"),
        ("t10k-labels-idx1-ubyte", idx(np.zeros((10, 1), np.uint8)), "no class from 0 to 9 for each image"),
    ],
)
def test_files_of_another_data_set_are_refused_with_their_name(tmp_path, name, content, complaint):
    write_clothes(tmp_path, train=10, test=10)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        fashion_mnist(tmp_path)
    assert str(caught.value).startswith(str(tmp_path))


# ---------------------------------------------------------------------------------------------------------------- CIFAR


TEN = {"train": [f"data_batch_{k}.bin" for k in range(1, 6)], "test": ["test_batch.bin"]}
HUNDRED = {"train": ["train.bin"], "test": ["test.bin"]}


def write_cifar(folder: Path, layout: dict[str, list[str]], count: int = 3) -> dict[str, tuple[np.ndarray, np.ndarray]]:
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
    written = write_cifar(tmp_path, layout)
    for part, (images, classes) in written.items():
        data = read_inputs(tmp_path, split=part)
        np.testing.assert_array_equal(np.rint(data.inputs * 255), images)
        assert data.labels.tolist() == classes.tolist()
        assert data.scale == "k/255"
    assert len(read_split(tmp_path).train) == 3 * len(layout["train"])
    with pytest.raises(InputError, match="ask for split='train' or split='test'"):
        read_inputs(tmp_path)


def test_every_verb_reads_the_folder_or_the_one_around_it(tmp_path):
    (tmp_path / "cifar-10-batches-bin").mkdir()
    _, classes = write_cifar(tmp_path / "cifar-10-batches-bin", TEN)["test"]
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)).eval()
    asked = {"outputs": "logits", "progress": False}
    for folder in (tmp_path, tmp_path / "cifar-10-batches-bin"):
        run = certcal.sample(
            network, folder, sigma=0.5, n=20, n0=5, batch=10, out=tmp_path / f"run-{folder.name}", **asked
        )
        assert run.counts().label.tolist() == classes.tolist()
        assert (run.manifest.data.split, run.manifest.data.range) == ("test", (0.0, 1.0))
        found = certcal.attack(network, folder, epsilon=8 / 255, attacks="one-step", split="train", **asked)
        assert (found.n, found.conventions["box"]) == (15, [0.0, 1.0])
        assert certcal.predict(network, folder, outputs="logits").labels.tolist() == classes.tolist()
        assert len(read_split(folder).train) == 15


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
    write_cifar(tmp_path, TEN, 1)
    path = tmp_path / "data_batch_3.bin"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_inputs(tmp_path, split="train")
    assert str(caught.value).startswith(f"{path}: ")
    assert len(read_inputs(tmp_path, split="test")) == 1


@pytest.mark.parametrize(("labels", "found"), [((20, 0), "class 20, .* from 0 to 19"), ((0, 100), "class 100, .* 99")])
def test_both_bytes_of_classes_of_the_hundred_are_checked(tmp_path, labels, found):
    (tmp_path / "test.bin").write_bytes(bytes(labels) + bytes(3072))
    with pytest.raises(InputError, match=f"image 1 has {found}"):
        read_inputs(tmp_path)


def test_files_that_do_not_fit_into_memory_are_refused(tmp_path, monkeypatch):
    write_cifar(tmp_path, HUNDRED, 4)
    monkeypatch.setattr("certcal.data.formats.physical_memory", lambda: 5 * 4 * 3072 - 1)
    with pytest.raises(InputError, match=r"reading it needs .* GiB and this machine has"):
        read_inputs(tmp_path, split="train")


@pytest.mark.parametrize(
    ("names", "title"),
    [(["data_batch_1", "test_batch", "batches.meta"], "cifar-10"), (["train", "test", "meta"], "cifar-100")],
)
def test_the_version_for_python_is_never_unpickled(tmp_path, names, title):
    around = tmp_path / "around"
    (around / {"cifar-10": "cifar-10-batches-py", "cifar-100": "cifar-100-python"}[title]).mkdir(parents=True)
    with pytest.raises(InputError, match=f"never loaded; get the binary version, {title}-binary.tar.gz"):
        read_inputs(around)
    for name in names:
        (tmp_path / name).write_bytes(b"cbuiltins\nexit\n(tR.")
    with pytest.raises(InputError, match=f"are pickles, which can run code .*; get the binary version, {title}-binary"):
        read_inputs(tmp_path)


# ------------------------------------------------------------------------------------------------------------- SVHN


DIGITS = np.random.default_rng(6).integers(0, 256, (32, 32, 3, 6), np.uint8)
CLASSES = np.array([[1], [10], [9], [2], [10], [5]])


def write_svhn(path: Path, *, compressed: bool = True, **arrays: np.ndarray) -> Path:
    savemat(path, {"X": DIGITS, "y": CLASSES} | arrays, do_compression=compressed)
    return path


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_house_numbers_are_images_with_channels_first_and_class_ten_is_the_digit_zero(tmp_path, compressed, kind):
    write_svhn(tmp_path / "train_32x32.mat", compressed=compressed, y=CLASSES.astype(kind))
    write_svhn(tmp_path / "test_32x32.mat", X=DIGITS[..., :2], y=CLASSES[:2])
    data = read_inputs(tmp_path, split="train")
    np.testing.assert_array_equal(np.rint(data.inputs * 255), DIGITS.transpose(3, 2, 0, 1))
    assert (data.labels.tolist(), data.class_names) == ([1, 0, 9, 2, 0, 5], tuple("0123456789"))
    assert read_inputs(tmp_path / "test_32x32.mat").fingerprint == read_inputs(tmp_path, split="test").fingerprint


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"y": CLASSES + 1}, "image 2 has class 11, and SVHN has a class from 1 to 10 for each image"),
        ({"y": CLASSES[:5]}, "there are 5 digits, and SVHN has"),
        ({"X": DIGITS[:31]}, "this holds no images X of 32 by 32 by 3 bytes"),
        ({"X": DIGITS / 255}, "this holds no images X of 32 by 32 by 3 bytes"),
        ({"X": np.array({"a": 1})}, "this holds no images X of 32 by 32 by 3 bytes"),
    ],
)
def test_other_arrays_of_matlab_are_refused(tmp_path, arrays, complaint):
    with pytest.raises(InputError, match=complaint):
        read_inputs(write_svhn(tmp_path / "x.mat", **arrays))


@settings(max_examples=75)
@given(st.booleans(), st.data())
def test_a_damaged_file_of_matlab_gives_images_or_one_sentence(tmp_path_factory, compressed, data):
    path = tmp_path_factory.mktemp("flips") / "x.mat"
    write_svhn(path, compressed=compressed, X=DIGITS[..., :1], y=CLASSES[:1])
    content = bytearray(path.read_bytes())
    place = data.draw(st.one_of(st.integers(120, 260), st.integers(-60, -1), st.integers(0, len(content) - 1)))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content[: data.draw(st.sampled_from([None, place]))] if place else content))
    try:
        found, sentence = read_inputs(path), ""
    except InputError as error:
        found, sentence = None, str(error)
    assert (found is None) == sentence.startswith(str(path))
    assert "\n" not in sentence
