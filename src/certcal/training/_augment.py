"""Random crops and flips of the images of a batch.

What happens to a sample depends on the seed, the step and the sample's number only: not on the pieces, workers,
processes or devices that a batch is shared among, nor on interruptions.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from certcal.training._schedules import seed_of

AUGMENTATIONS = ("none", "flip", "crop", "crop+flip")
# Pixels added on every side before an image is cut back to its size: Cohen et al. (2019)'s code for CIFAR-10.
PADDING = 4


def augmented(images: Tensor, index: Tensor, augment: str, seed: int, step: int, fill: float = 0.0) -> Tensor:
    """Images (n, …, height, width) on any device, shifted by up to PADDING pixels and mirrored left to right.

    ``index`` has the numbers of the samples, on the CPU; what is shifted in has the value ``fill``.
    """
    if augment == "none":
        return images
    down, right, mirrored = moves(index.numpy(), seed, step)
    if "crop" in augment:
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


def moves(
    index: NDArray[np.int64], seed: int, step: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Where each sample's window begins, from 0 to 2·PADDING down and right, and whether it is mirrored."""
    # SplitMix64 of the sample's number, beginning at a place of the seed and the step.
    words = index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed_of("augment", seed, step))
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    places = [(words >> np.uint64(shift) & np.uint64(0xFFFFFF)) * np.uint64(2 * PADDING + 1) for shift in (0, 24)]
    down, right = ((place >> np.uint64(24)).astype(np.int64) for place in places)
    return down, right, words >> np.uint64(63) == 1
