"""Fashion-MNIST from a folder: found, checked, refused with a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from certcal import InputError
from certcal.data import fashion_mnist, image_files, read_idx
from tests.data.idx_files import idx, write_clothes


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
def test_other_files_are_refused_with_their_name(tmp_path, name, content, complaint):
    write_clothes(tmp_path, train=10, test=10)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        fashion_mnist(tmp_path)
    assert str(caught.value).startswith(str(tmp_path))
