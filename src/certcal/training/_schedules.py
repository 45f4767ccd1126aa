"""What changes from epoch to epoch. Pure functions of the recipe and the epoch, counted from 0."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from certcal.training._recipe import Recipe


@dataclass(frozen=True)
class Moment:
    """The numbers in force during an epoch.

    Attributes
    ----------
    epoch
        Counted from 0.
    sigma, epsilon, learning_rate
        After warm-ups and decay.
    """

    epoch: int
    sigma: float
    epsilon: float
    learning_rate: float


def moment(recipe: Recipe, epoch: int) -> Moment:
    """The numbers of an epoch.

    Examples
    --------
    >>> fine = Recipe("brier-act", sigma=0.5, epsilon=0.75, epsilon_warmup=3, learning_rate=0.01, milestones=(4, 8))
    >>> [moment(fine, epoch).epsilon for epoch in range(4)]
    [0.25, 0.5, 0.75, 0.75]
    """
    return Moment(
        epoch,
        recipe.sigma * warmed(epoch, recipe.sigma_warmup),
        recipe.epsilon * warmed(epoch, recipe.epsilon_warmup, recipe.epsilon_delay),
        recipe.learning_rate * recipe.decay ** bisect_right(recipe.milestones, epoch),
    )


def warmed(epoch: int, warmup: int, delay: int = 0) -> float:
    """The share that an epoch has: 0 during the delay, then 1/W, 2/W, … up to 1 (Salman et al. 2019's code).

    Examples
    --------
    >>> [warmed(epoch, 4, delay=2) for epoch in range(7)]
    [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    """
    if epoch < delay:
        return 0.0
    return 1.0 if epoch - delay + 1 >= warmup else (epoch - delay + 1) / warmup
