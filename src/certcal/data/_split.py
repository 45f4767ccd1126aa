"""Inputs in two parts: some to train on, others to test on."""

from __future__ import annotations

from dataclasses import dataclass

from certcal.data._inputs import Inputs


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs to train on and others to test on.

    Attributes
    ----------
    name
        A short name.
    title
        What the data is called in a sentence.
    train, test
        The two parts.

    Examples
    --------
    >>> part = Inputs.from_arrays([[[[0.0, 1.0]]]], [0])
    >>> Split("dots", "Two dots", part, part).description
    'Two dots: 1 images of 1 by 2 to train on, 1 others to test on'
    """

    name: str
    title: str
    train: Inputs
    test: Inputs

    @property
    def description(self) -> str:
        """One sentence: the data and the split."""
        size = " by ".join(map(str, self.train.inputs.shape[-2:]))
        return f"{self.title}: {len(self.train):,} images of {size} to train on, {len(self.test):,} others to test on"
