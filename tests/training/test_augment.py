"""Random crops and flips: small moves of the images, the same for a sample wherever and whenever a step is done."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from certcal import InputError
from certcal.data import Inputs
from certcal.lab.training import recipe, train
from certcal.lab.training._augment import (
    AREA,
    AUGMENTATIONS,
    PADDING,
    RATIO,
    augment_images,
    crop_windows,
    shifts_and_flips,
)
from tests.training.digits import Modern, Stopped, data, network, numbers, same_weights, small, stop_at

IMAGES = torch.arange(1, 1 + 50 * 2 * 5 * 7, dtype=torch.float32).reshape(50, 2, 5, 7)
INDEX = torch.arange(100, 150)


def slow(image, down, right, mirrored, fill):
    """One channel, pixel by pixel."""
    height, width = image.shape
    found = np.full((height, width), fill, np.float32)
    for row in range(height):
        for column in range(width):
            y, x = row + down - PADDING, column + right - PADDING
            if 0 <= y < height and 0 <= x < width:
                found[row, width - 1 - column if mirrored else column] = image[y, x]
    return found


@pytest.mark.parametrize("augment", [each for each in AUGMENTATIONS if "resized" not in each])
@pytest.mark.parametrize("fill", [0.0, 0.25])
def test_images_are_moved_as_a_slow_twin_moves_them(augment, fill):
    found = augment_images(IMAGES, INDEX, augment, seed=3, step=7, fill=fill).numpy()
    for image, before, down, right, mirrored in zip(
        found, IMAGES.numpy(), *shifts_and_flips(INDEX.numpy(), 3, 7), strict=True
    ):
        if "crop" not in augment:
            down = right = PADDING
        for channel, original in zip(image, before, strict=True):
            assert np.array_equal(channel, slow(original, down, right, mirrored and "flip" in augment, fill))


def enlarged(image, top, left, tall, wide):
    """One channel, pixel by pixel: between the centres of the four nearest pixels, those at the border repeated."""
    height, width = image.shape
    found = np.empty((height, width))
    for row in range(height):
        for column in range(width):
            y = min(max((top + tall * (row + 0.5) / height) * height - 0.5, 0), height - 1)
            x = min(max((left + wide * (column + 0.5) / width) * width - 0.5, 0), width - 1)
            a, b = int(y), int(x)
            c, d = min(a + 1, height - 1), min(b + 1, width - 1)
            upper = image[a, b] * (1 - x + b) + image[a, d] * (x - b)
            lower = image[c, b] * (1 - x + b) + image[c, d] * (x - b)
            found[row, column] = upper * (1 - y + a) + lower * (y - a)
    return found


def test_parts_are_enlarged_as_a_slow_twin_enlarges_them():
    found = augment_images(IMAGES, INDEX, "resized-crop+flip", seed=3, step=7).numpy()
    chosen, (_, _, mirrored) = crop_windows(INDEX.numpy(), 3, 7, 5, 7), shifts_and_flips(INDEX.numpy(), 3, 7)
    for image, before, part, mirror in zip(found, IMAGES.numpy(), chosen, mirrored, strict=True):
        for channel, original in zip(image, before, strict=True):
            expected = enlarged(original, *part)
            assert np.allclose(channel, expected[:, ::-1] if mirror else expected, rtol=1e-5, atol=1e-3)


def test_parts_lie_inside_the_image_with_the_published_areas_and_ratios():
    top, left, tall, wide = crop_windows(np.arange(20_000), 0, 0, 40, 60).T
    assert min(top.min(), left.min()) >= 0
    assert max((top + tall).max(), (left + wide).max()) <= 1 + 1e-12
    whole = (tall == 1) & (wide == 1)  # nothing fitted
    assert whole.mean() < 0.01
    area, ratio = (tall * wide)[~whole], (wide * 60 / (tall * 40))[~whole]
    assert AREA[0] <= area.min() < AREA[0] + 0.001
    assert area.max() > 0.8
    assert RATIO[0] - 1e-9 <= ratio.min() < 0.76
    assert 1.32 < ratio.max() <= RATIO[1] + 1e-9
    small = area < 0.3  # such a part fits in every shape, so it is drawn at once
    assert abs(np.log(ratio[small]).mean()) < 0.01
    assert abs(np.corrcoef([top / np.maximum(1 - tall, 1e-9), left / np.maximum(1 - wide, 1e-9)])[0, 1]) < 0.02
    assert crop_windows(np.arange(5), 0, 1, 40, 60).tolist() != crop_windows(np.arange(5), 0, 0, 40, 60).tolist()
    assert (crop_windows(np.arange(500), 0, 0, 4, 400)[:, 2:] == 1).all(axis=1).any()  # a strip, in which few parts fit


def test_every_shift_is_equally_likely_and_half_of_the_images_are_mirrored():
    down, right, mirrored = shifts_and_flips(np.arange(81_000), 0, 0)
    counts = np.bincount(down * 9 + right, minlength=81)
    assert counts.size == 81
    assert ((counts - 1000) ** 2 / 1000).sum() < 124.8  # the 99.9 % quantile of chi-squared with 80 degrees
    assert abs(mirrored.mean() - 0.5) < 0.006
    assert abs(np.corrcoef([down, right, mirrored]) - np.eye(3)).max() < 0.02


def test_a_sample_moves_otherwise_in_another_step_or_by_another_seed_and_alike_in_any_piece():
    here = shifts_and_flips(INDEX.numpy(), 3, 7)
    for other in (shifts_and_flips(INDEX.numpy(), 3, 8), shifts_and_flips(INDEX.numpy(), 4, 7)):
        assert all((one != another).mean() > 0.2 for one, another in zip(here, other, strict=True))
    for augment in ("crop+flip", "resized-crop+flip"):
        whole = augment_images(IMAGES, INDEX, augment, 3, 7)
        for piece in (slice(0, 20), slice(20, 50)):
            assert torch.equal(augment_images(IMAGES[piece], INDEX[piece], augment, 3, 7), whole[piece])


class Watcher(nn.Module):
    """Notes what it is trained on; in the class, because networks are copied."""

    outputs = "logits"
    seen: list[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(10))

    def forward(self, inputs):
        if self.training:
            type(self).seen.append(inputs.clone())
        return self.weight.expand(len(inputs), 10)


def test_training_flips_left_to_right_only_and_leaves_labels_and_test_data_alone():
    Watcher.seen = []
    image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3) / 8
    everything = Inputs.from_arrays(np.repeat(image, 40, 0), np.full(40, 3))
    trained = train(Watcher(), everything, recipe("standard", epochs=2, batch=20, augment="flip"), test=everything)
    drawn = torch.cat(Watcher.seen[-4:])
    kept, mirrored = (
        (drawn == torch.tensor(image)).all((1, 2, 3)),
        (drawn == torch.tensor(image).flip(-1)).all((1, 2, 3)),
    )
    assert bool((kept ^ mirrored).all())
    assert 20 < int(mirrored.sum()) < 60
    assert trained.network.weight.argmax() == 3
    assert trained.history[-1]["test_accuracy"] == 1


def test_augmented_training_resumes_to_the_same_bits(tmp_path):
    plan = small("gaussian", augment="crop+flip", pieces=2)
    whole = train(Modern(), data(300), plan)
    with pytest.raises(Stopped):
        train(Modern(), data(300), plan, out=tmp_path / "run", progress=stop_at(4), checkpoint_seconds=0)
    rest = train(Modern(), data(300), plan, out=tmp_path / "run")
    assert rest.resumed
    assert same_weights(whole, rest)
    assert numbers(whole) == numbers(rest)
    assert not same_weights(whole, train(Modern(), data(300), small("gaussian", pieces=2)))


def test_a_run_from_before_there_was_augmentation_goes_on_without_it_only(tmp_path):
    plan = small("gaussian")
    whole = train(network(), data(300), plan)
    with pytest.raises(Stopped):
        train(network(), data(300), plan, out=tmp_path, progress=stop_at(2), checkpoint_seconds=0)
    file = tmp_path / "recipe.json"
    written = json.loads(file.read_text())
    assert written["recipe"].pop("augment") == "none"
    file.write_text(json.dumps(written))
    with pytest.raises(InputError, match="another recipe \\(augment was 'none' and is now 'crop'\\)"):
        train(network(), data(300), small("gaussian", augment="crop"), out=tmp_path)
    assert same_weights(train(network(), data(300), plan, out=tmp_path), whole)


def test_what_is_no_image_cannot_be_augmented():
    flat = Inputs.from_arrays(np.zeros((8, 64), np.float32), np.zeros(8, int))
    with pytest.raises(
        InputError, match=r"augment: it is 'flip', but inputs have shape \(64,\), not \(channels, height"
    ):
        train(network(), flat, small("standard", batch=4, augment="flip"))
    with pytest.raises(InputError, match="augment is 'mirror'; pass one of"):
        small("standard", augment="mirror")
