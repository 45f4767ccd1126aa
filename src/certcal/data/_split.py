"""Inputs in two parts: some to train on, others to test on."""

from __future__ import annotations

from dataclasses import dataclass

from certcal.data._inputs import Inputs


@dataclass(frozen=True, eq=False)
class Parts:
    """Inputs to train on, and perhaps others to test on.

    Attributes
    ----------
    name
        A short name.
    title
        What the data is called in a sentence.
    train, test
        The two parts; ``test`` is None where there is nothing to test on.

    Examples
    --------
    >>> Parts("rows", "Some rows", Inputs.from_arrays([[0.5, 1.5, 2.5]], [0]), None).description
    'Some rows: 1 samples of 3 features to train on'
    """

    name: str
    title: str
    train: Inputs
    test: Inputs | None

    @property
    def description(self) -> str:
        """One sentence: the data and the split."""
        sizes = list(map(str, self.train.inputs.shape[1:]))
        what = f"images of {' by '.join(sizes[-2:])}" if len(sizes) > 1 else f"samples of {sizes[0]} features"
        others = "" if self.test is None else f", {len(self.test):,} others to test on"
        return f"{self.title}: {len(self.train):,} {what} to train on{others}"


@dataclass(frozen=True, eq=False)
class Split(Parts):
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

    test: Inputs
