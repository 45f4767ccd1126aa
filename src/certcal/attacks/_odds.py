"""The cross entropy of one class per sample, on a scale whose gradient never vanishes."""

from __future__ import annotations

import torch
from torch import Tensor


def odds_against(log_probabilities: Tensor, classes: Tensor) -> Tensor:
    """log((1 - p) / p) of the probability p of one class per sample.

    The cross entropy -log p is log(1 + exp(this)), which grows with it: the two have the same maxima, and their
    gradients the same direction, which is all that a normalised step takes from a gradient. But where p is within a
    rounding of 0 or 1, as that of a network that is sure of itself, the cross entropy is flat in float32 and this is
    not.
    """
    chosen = classes.unsqueeze(1)
    others = log_probabilities.scatter(1, chosen, -torch.inf)
    return torch.logsumexp(others, 1) - log_probabilities.gather(1, chosen).squeeze(1)


def lead(log_probabilities: Tensor, classes: Tensor) -> Tensor:
    """By how much the logarithm of one class's probability exceeds the largest of the others; NaN if any is NaN."""
    chosen = classes.unsqueeze(1)
    others = log_probabilities.scatter(1, chosen, -torch.inf)
    return log_probabilities.gather(1, chosen).squeeze(1) - others.amax(1)
