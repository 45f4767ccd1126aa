"""Folders of images: each kind gives the images in it, and what cannot be used is one sentence."""

import gzip
import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from certcal import InputError
from certcal.data import Inputs, Parts, Split, fashion_mnist, open_inputs, read_inputs, read_split
from tests.data.idx_files import idx, write_clothes

RNG = np.random.default_rng(11)


def write_pictures(place: Path, count: int = 2, shape: tuple[int, ...] = (3, 4), ending: str = ".png") -> np.ndarray:
    """Pictures of random pixels in a folder, in the order of their names."""
    place.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(zlib.crc32(place.name.encode())).integers(0, 256, (count, *shape), np.uint8)
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(place / f"{number}{ending}")
    return pixels


def refusal(path: Path, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        read_inputs(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert text.removeprefix("split: ").startswith(str(path))
    return text


# ----------------------------------------------------------------------------------------------------------- idx files


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_folder_of_idx_files_gives_the_part_that_is_asked_for(tmp_path, part):
    write_clothes(tmp_path, train=30, test=20)
    split, data = fashion_mnist(tmp_path), read_inputs(tmp_path, split=part)
    assert data.fingerprint == getattr(split, part).fingerprint
    assert data.inputs.shape[1:] == (1, 28, 28)
    assert split.train.class_names[9] == "Ankle boot"


def test_a_folder_with_both_parts_needs_a_choice_and_one_with_one_part_does_not(tmp_path):
    write_clothes(tmp_path, train=30, test=20)
    assert "it has a training and a test part; ask for split='train' or split='test'" in refusal(tmp_path)
    for file in tmp_path.glob("train-*"):
        file.unlink()
    assert len(read_inputs(tmp_path)) == 20
    assert "has no part 'train', only 'test'; ask for 'test', or leave it out" in refusal(tmp_path, split="train")
    with pytest.raises(InputError, match="there is no training data, only a test part; add a training part"):
        read_split(tmp_path)
    with pytest.raises(InputError, match="split: it is 'dev'; pass 'train' or 'test'"):
        read_inputs(tmp_path, split="dev")


@pytest.mark.parametrize(("start", "mark", "zipped"), [("test", "-", False), ("t10k", ".", True), ("test", ".", False)])
def test_other_spellings_of_the_files_are_found(tmp_path, start, mark, zipped):
    images, labels = RNG.integers(0, 256, (5, 3, 2), np.uint8), np.arange(5, dtype=np.uint8)
    for kind, axes, array in (("images", 3, images), ("labels", 1, labels)):
        content = gzip.compress(idx(array)) if zipped else idx(array)
        (tmp_path / f"{start}-{kind}{mark}idx{axes}-ubyte{'.gz' if zipped else ''}").write_bytes(content)
    assert read_inputs(tmp_path).fingerprint == Inputs.from_arrays(images[:, None], labels).fingerprint


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("train-images-idx3-ubyte", None, "there is no train-images-idx3-ubyte or train-images-idx3-ubyte.gz"),
        ("train-labels-idx1-ubyte", None, "there is no train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz"),
        ("train-images-idx3-ubyte", idx(np.zeros((4, 9), np.uint8)), "this holds no images of bytes"),
        ("train-labels-idx1-ubyte", idx(np.zeros(3, np.uint8)), "this holds no class from 0 to 255 for each image"),
        ("train-images-idx3-ubyte", b"\0\0\x08\x03" + b"\xff" * 12, "more than the file can hold"),
    ],
)
def test_idx_files_that_are_missing_or_do_not_fit_are_named(tmp_path, name, content, complaint):
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(np.zeros((4, 3, 3), np.uint8)))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(4, np.uint8)))
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert complaint in refusal(tmp_path)


# ----------------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 3)])
def test_pictures_become_pixels_and_the_sorted_folders_their_classes(tmp_path, shape):
    later, first = write_pictures(tmp_path / "dog", 3, shape), write_pictures(tmp_path / "cat", 2, shape)
    (tmp_path / "readme.txt").write_text("of animals")
    data = read_inputs(tmp_path)
    pixels = np.stack([first[0], later[0], first[1], later[1], later[2]])  # of each class one, so that few are of all
    channels_first = pixels[:, None] if len(shape) == 2 else pixels.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(np.rint(data.inputs * 255), channels_first)
    assert data.labels.tolist() == [0, 1, 0, 1, 1]
    assert (data.class_names, data.scale) == (("cat", "dog"), "k/255")


def test_jpeg_is_read_as_pillow_decodes_it(tmp_path):
    write_pictures(tmp_path / "a", 1, (16, 8, 3), ".jpg")
    write_pictures(tmp_path / "b", 1, (16, 8, 3), ".JPEG")
    data = read_inputs(tmp_path)
    decoded = np.asarray(Image.open(tmp_path / "b" / "0.JPEG")).transpose(2, 0, 1)
    np.testing.assert_array_equal(np.rint(data.inputs[1] * 255), decoded)


def test_both_parts_number_the_classes_as_the_one_to_train_on_does(tmp_path):
    for name in ("ant", "bee", "cow"):
        write_pictures(tmp_path / "train" / name)
    for name in ("bee", "cow"):
        write_pictures(tmp_path / "val" / name, 1)
    test = read_inputs(tmp_path, split="test")
    assert (test.labels.tolist(), test.class_names) == ([1, 2], ("ant", "bee", "cow"))
    split = read_split(tmp_path)
    assert isinstance(split, Split)
    assert (len(split.train), split.test.fingerprint) == (6, test.fingerprint)
    write_pictures(tmp_path / "test" / "ant", 1)
    assert read_inputs(tmp_path, split="test").labels.tolist() == [0]  # test goes before val
    write_pictures(tmp_path / "test" / "eel")
    assert "has no class 'eel'; rename the folder, or add one there" in refusal(tmp_path, split="test")


def test_a_class_may_be_called_train(tmp_path):
    for name in ("bus", "train"):
        write_pictures(tmp_path / name)
    assert read_inputs(tmp_path).class_names == ("bus", "train")
    assert "has no training and test parts; leave it out" in refusal(tmp_path, split="train")
    write_pictures(tmp_path / "train" / "steam")
    assert "'train' holds folders, so it is a part of the data, and 'bus' beside it is none" in refusal(tmp_path)


def test_pictures_without_folders_of_classes_are_not_taken_for_classes_called_train_and_test(tmp_path):
    write_pictures(tmp_path / "train")
    write_pictures(tmp_path / "test")
    assert "this folder holds no sub-folders; put the images into one for each class" in refusal(
        tmp_path, split="train"
    )


def test_hidden_files_and_litter_are_passed_over_and_links_followed(tmp_path):
    pixels = write_pictures(tmp_path / "elsewhere", 1)
    folder = tmp_path / "data"
    write_pictures(folder / "a", 1)
    (folder / "a" / ".DS_Store").write_bytes(b"x")
    (folder / "a" / "Thumbs.db").write_bytes(b"x")
    (folder / ".git").mkdir()
    (folder / "b").mkdir()
    (folder / "b" / "link.png").symlink_to(tmp_path / "elsewhere" / "0.png")
    (folder / "c").symlink_to(tmp_path / "elsewhere")
    data = read_inputs(folder)
    assert data.class_names == ("a", "b", "c")
    np.testing.assert_array_equal(np.rint(data.inputs[1:, 0] * 255), np.concatenate([pixels, pixels]))


def add_file(name: str, content: bytes):
    return lambda folder: (folder / "b" / name).write_bytes(content)


def add_picture(mode: str, size: tuple[int, int] = (4, 3), **options: object):
    return lambda folder: Image.new(mode, size).save(folder / "b" / "z.png", **options)


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, depth: int = 8, colour: int = 0) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (add_file("z.txt", b"x"), r"z\.txt: this is neither a PNG nor a JPEG file; convert it, or take it away"),
        (add_file("z.png", b""), r"z\.png: the file is empty"),
        (add_file("z.png", b"no picture"), r"z\.png: this image cannot be read \(cannot identify image"),
        (add_file("z.png", b"GIF89a" + bytes(40)), r"z\.png: this image cannot be read"),
        (add_file("z.png", png(4, 3)[:45]), r"z\.png: this image cannot be read"),
        (add_file("z.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF"), r"z\.jpg: this image cannot be read"),
        (add_file("z.png", png(60_000, 60_000)), r"z\.png: this image cannot be read \(.*decompression bomb"),
        (add_file("z.png", png(10_000, 10_000)), r"z\.png: this image cannot be read \(.*decompression bomb"),
        (add_file("z.png", png(9_000, 9_000)), r"z\.png: this image is grey, 9000 by 9000, and 0\.png is grey, 4 by"),
        (
            add_file("z.png", png(4, 3, 16, 2)),
            r"z\.png: this image has more than 8 bits per channel; save it as grey",
        ),
        (add_file("z.png", png(4, 3, 16, 0)), r"z\.png: this image has more than 8 bits per channel"),
        (
            add_picture("L", (4, 4)),
            r"4 by 4, and 0\.png is grey, 4 by 3; make all images alike, or set resize and crop",
        ),
        (add_picture("P"), r"z\.png: this image has a palette; save it as grey or RGB"),
        (add_picture("RGBA"), r"z\.png: this image has an alpha channel"),
        (add_picture("LA"), r"z\.png: this image has an alpha channel"),
        (add_picture("1"), r"z\.png: this image is black and white, one bit per pixel"),
        (add_picture("L", transparency=3), r"z\.png: this image has a transparent colour"),
        (lambda folder: (folder / "b" / "inner").mkdir(), r"inner: this is neither a PNG nor a JPEG file"),
        (lambda folder: (folder / "b" / "in.png").mkdir(), r"in\.png: this is a folder"),
        (lambda folder: os.mkfifo(folder / "b" / "z.png"), r"z\.png: this is not a regular file"),
        (lambda folder: (folder / "b" / "z.png").symlink_to("nowhere"), r"z\.png: there is no such file"),
        (lambda folder: (folder / "c").mkdir(), r"c: there is no image of this class; take the folder away"),
    ],
)
def test_a_picture_that_cannot_be_used_is_named_with_the_reason(tmp_path, spoil, complaint):
    for name in ("a", "b"):
        write_pictures(tmp_path / name)
    spoil(tmp_path)
    with pytest.raises(InputError, match=complaint) as caught:
        read_inputs(tmp_path)
    assert "\n" not in str(caught.value)


def test_grey_pictures_among_coloured_ones_are_coloured_and_alone_they_stay_grey(tmp_path):
    grey, colour = write_pictures(tmp_path / "a", 2), write_pictures(tmp_path / "b", 1, (3, 4, 3))
    data = read_inputs(tmp_path)
    assert data.inputs.shape == (3, 3, 3, 4)
    np.testing.assert_array_equal(np.rint(data.inputs[1] * 255), colour[0].transpose(2, 0, 1))
    for channel in range(3):
        np.testing.assert_array_equal(np.rint(data.inputs[[0, 2], channel] * 255), grey)


def test_pictures_of_all_sizes_are_resized_by_their_shorter_side_and_cropped_in_the_middle(tmp_path):
    write_pictures(tmp_path / "a", 1, (8, 13, 3), ".jpg")
    tall = write_pictures(tmp_path / "b", 1, (21, 10, 3))
    data = read_inputs(tmp_path, resize=6, crop=4)
    assert data.inputs.shape == (2, 3, 4, 4)
    scaled = Image.open(tmp_path / "a" / "0.jpg").resize((9, 6), Image.Resampling.BILINEAR)  # int(6 · 13/8)
    np.testing.assert_array_equal(np.rint(data.inputs[0] * 255), np.asarray(scaled)[1:5, 2:6].transpose(2, 0, 1))
    scaled = Image.fromarray(tall[0]).resize((6, 12), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(np.rint(data.inputs[1] * 255), np.asarray(scaled)[4:8, 1:5].transpose(2, 0, 1))
    cropped = read_inputs(tmp_path, crop=8).inputs[1]
    np.testing.assert_array_equal(np.rint(cropped * 255), tall[0, 6:14, 1:9].transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, r"0\.png is colour, 13 by 8; make all images alike, or set resize and crop, such as 256 and 224"),
        ({"resize": 6}, r"0\.png is colour, 9 by 6; also crop them, so that all have one size"),
        ({"crop": 9}, r"this image is 13 by 8, smaller than the crop of 9; resize the images to at least that"),
        ({"crop": 9, "resize": 8}, r"crop: it is 9, more than the 8 pixels of the resized shorter side"),
        ({"resize": 0}, r"resize: 0 is not a whole number from 1 to 16384"),
    ],
)
def test_sizes_that_do_not_fit_say_which_setting_helps(tmp_path, options, complaint):
    write_pictures(tmp_path / "a", 1, (8, 13, 3))
    write_pictures(tmp_path / "b", 1, (21, 10, 3))
    with pytest.raises(InputError, match=complaint):
        read_inputs(tmp_path, **options)


def test_a_picture_that_is_resized_beyond_all_measure_is_refused(tmp_path):
    write_pictures(tmp_path / "a", 1, (1, 30_000))
    with pytest.raises(InputError, match=r"this image of 30000 by 1 becomes 7680000 by 256; take it away"):
        read_inputs(tmp_path, resize=256, crop=224)


def test_prepared_pictures_may_have_palettes_and_those_with_alpha_are_still_refused(tmp_path):
    pixels = write_pictures(tmp_path / "a", 1, (4, 4, 3))
    Image.fromarray(pixels[0]).convert("P").save(tmp_path / "a" / "1.png")
    Image.fromarray(pixels[0]).convert("CMYK").save(tmp_path / "a" / "2.jpg")
    assert read_inputs(tmp_path, crop=3).inputs.shape == (3, 3, 3, 3)
    Image.fromarray(pixels[0]).convert("RGBA").save(tmp_path / "a" / "3.png")
    with pytest.raises(InputError, match=r"3\.png: this image has an alpha channel"):
        read_inputs(tmp_path, crop=3)


def test_pictures_are_decoded_when_they_are_asked_for(tmp_path):
    pixels = write_pictures(tmp_path / "a", 5)
    rows = open_inputs(tmp_path, every=2).inputs.inputs
    (tmp_path / "a" / "0.png").unlink()
    np.testing.assert_array_equal(np.rint(rows[1:] * 255)[:, 0], pixels[2::2])
    with pytest.raises(InputError, match=r"0\.png: there is no such file"):
        rows[:1]


def test_pictures_that_do_not_fit_into_memory_are_refused_before_any_is_decoded(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    for name in ("0.png", "1.png"):
        (tmp_path / "a" / name).write_bytes(png(9_000, 9_000))
    monkeypatch.setattr("certcal.data.formats.physical_memory", lambda: 2**29)
    assert "reading it needs 0.6 GiB and this machine has 0.5 GiB; make the inputs smaller" in refusal(tmp_path)


def test_without_pillow_the_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    write_pictures(tmp_path / "a")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match=r"images need Pillow; run: pip install 'certcal\[images\]'"):
        read_inputs(tmp_path)


@given(st.booleans(), st.data())
def test_a_changed_byte_of_a_picture_gives_pixels_or_one_sentence(tmp_path_factory, as_jpeg, data):
    folder = tmp_path_factory.mktemp("flips")
    ending = ".jpg" if as_jpeg else ".png"
    write_pictures(folder / "a", 1, (4, 4), ending)
    path = folder / "a" / f"0{ending}"
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    try:
        found, sentence = read_inputs(folder), ""
    except InputError as error:
        found, sentence = None, str(error)
    assert (found is None) == sentence.startswith(str(folder))
    assert "\n" not in sentence


def test_a_folder_without_data_says_what_is_read(tmp_path):
    assert "this folder holds no data; it needs idx files" in refusal(tmp_path)
    assert "a folder has no column 'y'; leave label out" in refusal(tmp_path, label="y")


# ------------------------------------------------------------------------------------------------- archives, sources


def test_an_archive_may_hold_both_parts(tmp_path):
    path = tmp_path / "data.npz"
    images = RNG.integers(0, 256, (5, 1, 2, 2), np.uint8)
    np.savez(path, train_inputs=images, train_labels=range(5), test_inputs=images[:2], test_labels=[1, 0])
    assert read_inputs(path, split="train").fingerprint == Inputs.from_arrays(images, range(5)).fingerprint
    assert read_inputs(path, split="test").labels.tolist() == [1, 0]
    assert "ask for split='train' or split='test'" in refusal(path)
    split = read_split(path)
    assert split.description == "data.npz: 5 images of 2 by 2 to train on, 2 others to test on"
    np.savez(path, train_inputs=images, train_kind=range(5))
    assert read_inputs(path, label="kind").labels.tolist() == [0, 1, 2, 3, 4]
    assert "there is no array 'train_labels'; the arrays train_inputs and train_labels are needed" in refusal(path)


def test_arrays_that_are_not_divided_are_read_without_asking_for_a_part(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, inputs=np.ones((2, 3)), labels=[0, 1], test_inputs=np.zeros((1, 3)), test_labels=[0])
    assert len(read_inputs(path)) == 2
    assert len(read_inputs(path, split="test")) == 1


def test_a_file_without_parts_is_all_to_train_on(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,label\n1,2,0\n3,4,1\n")
    split = read_split(path)
    assert type(split) is Parts
    assert split.test is None
    assert split.description == "rows.csv: 2 samples of 2 features to train on"
    assert "has no training and test parts; leave it out" in refusal(path, split="test")


def test_parts_of_different_shapes_are_refused(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(
        path, train_inputs=np.ones((2, 3)), train_labels=[0, 1], test_inputs=np.ones((1, 4)), test_labels=np.zeros(1)
    )
    with pytest.raises(
        InputError, match=r"training samples have shape \(3,\) and test samples \(4,\); give them the same shape"
    ):
        read_split(path)


def test_class_names_are_one_for_each_class():
    with pytest.raises(InputError, match=r"labels\[1\] is 2; labels are whole numbers from 0 to 1"):
        Inputs.from_arrays([[0.0], [1.0]], [0, 2], ("cat", "dog"))
    assert Inputs.from_arrays([[0.0], [1.0]], [0, 1], ["cat", "dog"]).class_names == ("cat", "dog")
