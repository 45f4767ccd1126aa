"""Data sets of Python: torch's and any that gives an input and its label by number."""

import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils import data as torch_data

from certcal import InputError
from certcal.data import Inputs, Rows, open_inputs, read_split

RNG = np.random.default_rng(4)
VALUES = RNG.normal(size=(10, 2, 3)).astype(np.float32)
LABELS = RNG.integers(0, 3, 10)
HERE = Inputs.from_arrays(VALUES, LABELS)
TENSORS = torch_data.TensorDataset(torch.tensor(VALUES), torch.tensor(LABELS))


class Listed:
    """A data set as torchvision makes them: it lists its labels, and remembers which items were asked for."""

    def __init__(self, values=VALUES, labels=LABELS, targets=LABELS):
        self.values, self.labels, self.targets, self.asked = values, labels, targets, []

    def __len__(self):
        return len(self.values)

    def __getitem__(self, number):
        self.asked.append(number)
        return self.values[number], int(self.labels[number])


def made() -> Listed:
    return Listed()


named = Listed()


@pytest.mark.parametrize(
    "source",
    [
        TENSORS,
        torch_data.DataLoader(TENSORS, batch_size=4),
        torch_data.DataLoader(TENSORS, batch_size=4, shuffle=True, drop_last=True, num_workers=0),
        torch_data.Subset(torch_data.ConcatDataset([TENSORS, TENSORS]), range(10)),
        Listed(),
        [(list(map(list, value)), label) for value, label in zip(VALUES.astype(float), LABELS, strict=True)],
        "tests.data.test_datasets:made",
        "tests.data.test_datasets:named",
    ],
    ids=["tensors", "loader", "shuffled loader", "subset", "listed", "a list of pairs", "function", "name"],
)
def test_a_data_set_gives_its_inputs_in_its_own_order(source):
    found = open_inputs(source).inputs
    assert isinstance(found.inputs, Rows)
    np.testing.assert_array_equal(found.inputs[[7, 0]], VALUES[[7, 0]])
    assert found.fingerprint == HERE.fingerprint
    assert open_inputs(source, every=3, limit=2).inputs.labels.tolist() == LABELS[[0, 3]].tolist()


def test_only_the_items_that_are_asked_for_are_read_when_the_labels_are_listed():
    listed = Listed()
    found = open_inputs(listed, every=5).inputs
    found.inputs[1:]
    assert listed.asked == [0, 5]  # the first for its shape


def test_pixels_stay_pixels_and_images_of_pillow_are_channels_first():
    pixels = RNG.integers(0, 256, (2, 4, 3, 3), np.uint8)
    found = open_inputs([(Image.fromarray(each), 1) for each in (*pixels, pixels[0])]).inputs
    assert (found.inputs.shape, found.scale) == ((3, 3, 4, 3), "k/255")
    np.testing.assert_array_equal(np.rint(found.inputs[:2] * 255), pixels.transpose(0, 3, 1, 2))


def test_a_random_transform_is_noticed():
    class Cropped(Listed):
        def __getitem__(self, number):
            return RNG.normal(size=(2, 3)), 0

    found = open_inputs(Cropped(targets=np.zeros(10, int))).inputs
    found.inputs[:]
    with pytest.raises(InputError, match=r"sample 3 is not what it was when it was read first; .* is random"):
        found.inputs[3:5]


class Stream(torch_data.IterableDataset):
    def __iter__(self):
        return iter(TENSORS)


WEIGHTED = torch_data.WeightedRandomSampler([1.0] * 10, 10)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (Stream(), "data is a Stream; pass .* a data set that has a length and gives an input and its label by number"),
        (torch_data.DataLoader(Stream()), "the data set of this loader has no numbered samples"),
        (torch_data.DataLoader(TENSORS, sampler=WEIGHTED), "WeightedRandomSampler chooses among the samples"),
        (torch_data.DataLoader(TENSORS, sampler=torch_data.SubsetRandomSampler([1, 2])), "SubsetRandomSampler chooses"),
        (
            torch_data.DataLoader(TENSORS, sampler=torch_data.RandomSampler(TENSORS, replacement=True)),
            "RandomSampler chooses among the samples",
        ),
        (torch_data.DataLoader(TENSORS, collate_fn=lambda items: items), "a collate_fn of its own"),
        (Listed(VALUES, [0] * 10, [1] * 10), r"data\[0\] has label 0, and it was 1 at first"),
        ([(VALUES[0], 0), (VALUES[1, :1], 0), (VALUES[2], 0)], r"data\[1\] has shape \(1, 3\) and data\[0\] \(2, 3\)"),
        ([{"image": 1}, 2, 3], r"data\[0\] is a dict, not a pair of an input and its label"),
        ([(VALUES[0], 0.5)] * 3, r"data\[0\] has label 0.5; labels are whole numbers"),
        ([(VALUES[0], 0), (np.full((2, 3), np.inf), 0), (VALUES[2], 0)], r"inputs\[1, 0, 0\] is inf"),
        ([], "inputs has shape"),
        (5, "data is a int; pass inputs and labels as a pair of arrays"),
        ({"a": 1}, "data is a dict; pass inputs and labels"),
        ("tests.data.test_datasets:pytest", "tests.data.test_datasets:pytest is no data set"),
        ("tests.data.test_datasets:Image.new", r"Image\.new failed \(TypeError"),
        ("tests.data.test_datasets:missing", "has no 'missing'; check the spelling"),
    ],
)
def test_what_is_no_data_set_is_refused_in_a_sentence(source, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        np.asarray(open_inputs(source).inputs.inputs)
    assert "\n" not in str(caught.value)


def test_a_data_set_that_fails_is_named_with_the_sample():
    class Broken(Listed):
        def __getitem__(self, number):
            raise OSError("disk\nfull")

    with pytest.raises(InputError, match=r"data\[0\] failed \(OSError: disk\); mend the data set"):
        open_inputs(Broken())


def test_a_named_data_set_travels_as_its_name():
    rows = open_inputs("tests.data.test_datasets:made", every=2).inputs.inputs
    assert isinstance(rows, Rows)
    assert rows.source.portable
    there = pickle.loads(pickle.dumps(rows))
    assert "dataset" not in vars(there.source)
    np.testing.assert_array_equal(there[1:3], VALUES[2:5:2])


def test_a_named_data_set_can_be_trained_on_and_has_no_parts():
    assert len(read_split("tests.data.test_datasets:made").train) == 10
    with pytest.raises(InputError, match=r"split: .* has no training and test parts; leave it out"):
        open_inputs("tests.data.test_datasets:made", split="test")
