"""Random crops, enlarged crops and flips of the images of a batch.

What happens to a sample depends on the seed, the step and the sample's number only: not on the pieces,
processes or devices that a batch is shared among, nor on interruptions.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from certcal.lab.training.schedules import seed_of

AUGMENTATIONS = ("none", "flip", "crop", "crop+flip", "resized-crop+flip")
# Pixels added on every side before an image is cut back to its size: Cohen et al. (2019)'s code for CIFAR-10.
PADDING = 4
# Area of the part that is enlarged, as a share of the image, and its width by its height: torchvision's defaults, with
# which Cohen et al. (2019) train on ImageNet. After so many draws that do not fit, the whole image is taken.
AREA, RATIO, ATTEMPTS = (0.08, 1.0), (3 / 4, 4 / 3), 10


def augment_images(images: Tensor, index: Tensor, augment: str, seed: int, step: int, fill: float = 0.0) -> Tensor:
    """Images (n, …, height, width) on any device, shifted by up to PADDING pixels or enlarged, and mirrored.

    ``index`` has the numbers of the samples, on the CPU; what is shifted in has the value ``fill``.
    """
    if augment == "none":
        return images
    down, right, mirrored = shifts_and_flips(index.numpy(), seed, step)
    if "resized" in augment:
        images = _enlarge(images, crop_windows(index.numpy(), seed, step, images.shape[-2], images.shape[-1]))
    elif "crop" in augment:
        rows, columns = (torch.as_tensor(each).to(images.device) for each in (down, right))
        height, width = images.shape[-2:]
        windows = functional.pad(images, (PADDING,) * 4, value=fill).unfold(-2, height, 1).unfold(-2, width, 1)
        # The image axes behind the sample's, then those that are left: any number of channel axes.
        places = windows.movedim((-4, -3), (1, 2))
        images = places[torch.arange(len(images), device=images.device), rows, columns]
    if "flip" in augment:
        chosen = torch.as_tensor(mirrored).to(images.device).reshape(-1, *(1,) * (images.ndim - 1))
        images = torch.where(chosen, images.flip(-1), images)
    return images


def shifts_and_flips(
    index: NDArray[np.int64], seed: int, step: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Start of each sample's window, from 0 to 2·PADDING down and right, and whether it is mirrored."""
    words = _splitmix64(index, seed_of("augment", seed, step))
    places = [(words >> np.uint64(shift) & np.uint64(0xFFFFFF)) * np.uint64(2 * PADDING + 1) for shift in (0, 24)]
    down, right = ((place >> np.uint64(24)).astype(np.int64) for place in places)
    return down, right, words >> np.uint64(63) == 1


def crop_windows(index: NDArray[np.int64], seed: int, step: int, height: int, width: int) -> NDArray[np.float64]:
    """Each sample's crop: top, left, height and width, as shares of the image's."""
    rounds = [seed_of("resize", seed, step, which) for which in range(4)]
    # A row of attempts per sample: area, shape, and where the part lies.
    each = index[:, None] * ATTEMPTS + np.arange(ATTEMPTS)
    area, shape, down, right = (_splitmix64(each, begun).astype(np.float64) / 2.0**64 for begun in rounds)
    low, high = (np.log(limit) for limit in RATIO)
    ratio = np.exp(low + (high - low) * shape) * (height / width)  # of the shares
    area = AREA[0] + (AREA[1] - AREA[0]) * area
    tall, wide = np.sqrt(area / ratio), np.sqrt(area * ratio)
    fits = (tall <= 1) & (wide <= 1)
    tall, wide = (np.where(fits, side, 1.0) for side in (tall, wide))
    found = np.stack([down * (1 - tall), right * (1 - wide), tall, wide], axis=-1)
    return found[np.arange(len(index)), fits.argmax(axis=1)]


def _enlarge(images: Tensor, chosen: NDArray[np.float64]) -> Tensor:
    """A part of each image at the size of the whole, bilinear between the centres of pixels."""
    top, left, tall, wide = torch.as_tensor(chosen, dtype=images.dtype).to(images.device).T
    flat = images.flatten(1, -3)
    zero = torch.zeros_like(top)
    rows = torch.stack([wide, zero, 2 * left + wide - 1, zero, tall, 2 * top + tall - 1], dim=1)
    places = functional.affine_grid(rows.reshape(-1, 2, 3), list(flat.shape), align_corners=False)
    return functional.grid_sample(flat, places, padding_mode="border", align_corners=False).reshape(images.shape)


def _splitmix64(index: NDArray[np.int64], begun: int) -> NDArray[np.uint64]:
    """SplitMix64 of numbers, beginning at a place."""
    words = index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(begun)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
