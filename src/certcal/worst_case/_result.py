"""What a worst case is: a value, and the confidences that reach it; and other numbers that follow from intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, whole_number
from certcal._base.json import PlainValues
from certcal._base.notebook import Card, NotebookCard
from certcal._base.rounding import minus
from certcal.binning import BinTable, bin_indices
from certcal.claims import Frozen, in_words, move_outward, round_outward, these_samples

if TYPE_CHECKING:
    from certcal.worst_case._gains import Limit

Attained = tuple[NDArray[Any], BinTable | None]


def outward(value: float, error: float, side: str = "upper", ceiling: float = 1.0) -> float:
    """A value known to within an error, moved to the safe side of the exact one and kept between 0 and the ceiling."""
    if error == 0 or not math.isfinite(value):
        return value
    moved = move_outward(value + (error if side == "upper" else -error), side)
    return min(ceiling, max(0.0, moved))


@dataclass(frozen=True, eq=False)
class WorstCase(
    PlainValues,
    NotebookCard,
    kind="worst case",
    keys="name value text n extreme lower_end signs all_samples settings reached? sentence",
):
    """The largest (or smallest) value of a metric over all confidences inside their intervals."""

    name: str
    """The metric."""
    value: float
    """The extreme value, rounded outward: never below the largest, nor above the smallest, in exact arithmetic; but
    where ``lower_end`` is given, that is rounded so, and this is the smallest that was found. Over the certified
    samples when a mask was given."""
    n: int
    """Number of samples the value is over."""
    signs: NDArray[np.int8] | None
    """+1 or -1 per bin for the calibration error (is the bin's accuracy above its confidence?), else None."""
    attain: Callable[[], Attained] | None = field(repr=False)
    """Makes the witness and its bins when they are first asked for; None when the samples are gone."""
    all_samples: WorstCase | None = None
    """The same with uncertified samples free to be anything, when a mask was given."""
    extreme: str = "highest"
    """"highest" or "lowest"."""
    lower_end: float | None = None
    """A proved lower end when the value is not known exactly; equal to the value when it is."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Bins and their closure."""
    stakes: Callable[[], Limit] | Limit | None = field(default=None, repr=False)
    """Makes what :func:`population_bound` bets on when it is first asked for, or is it; None for other metrics."""
    correct: Callable[[], NDArray[np.uint8]] | NDArray[np.uint8] | None = field(default=None, repr=False)
    """Makes the correctness that belongs to the witness when it is first asked for, or is it; None for metrics that
    have no ``contributions``."""
    reached: float | None = None
    """What the witness has, where the value is a proved bound and not known to be exact; else None."""
    of: str = "confidences"
    """What lies in the intervals: "confidences", or the "scores" of a binary task."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", Frozen(self.settings))

    @cached_property
    def _attained(self) -> Attained:
        if self.attain is None:
            raise InputError(
                f"this {self.name} has no witness and no bins, because a SignProgram keeps sums and not the samples; "
                "pass the samples to calibration_error at once"
            )
        return self.attain()

    @cached_property
    def gains(self) -> Limit | None:
        """The samples by the ends of their intervals, for :func:`population_bound`; None for other metrics."""
        return self.stakes() if callable(self.stakes) else self.stakes

    @property
    def witness(self) -> NDArray[Any]:
        """One confidence per sample, in the input order; NaN where a sample is not certified."""
        return self._attained[0]

    @property
    def bins(self) -> BinTable | None:
        """Per-bin sums of the witness for binned metrics, else None."""
        return self._attained[1]

    @cached_property
    def contributions(self) -> NDArray[np.float64]:
        """What each sample adds to the calibration error, in the input order; 0 where a sample is not certified.

        That of a sample in bin m of the witness is s_m (c - z) / n, with s_m the bin's sign. They add up to the value
        as closely as the witness reaches it, because the bin sums have the signs that the witness was made from. A
        sample whose own gap goes against the sign of its bin counts negative.

        Examples
        --------
        >>> from certcal.worst_case import calibration_error
        >>> worst = calibration_error([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3)
        >>> worst.contributions.round(12)
        array([0.45, 0.45])
        """
        correct, bins = self._own_correct, self.bins
        if correct is None or bins is None or self.signs is None:
            raise InputError(
                f"the {self.extreme} {self.name} has no contributions; ask for those of a worst calibration_error"
            )
        used = ~np.isnan(self.witness)
        z = self.witness[used]
        out = np.zeros(used.size)
        out[used] = (
            self.signs[bin_indices(z, bins.edges, bins.closed)] * (correct[used] - z.astype(np.float64)) / self.n
        )
        return out

    def with_failing(self, failing: int) -> float:
        """A bound of the calibration error where so many samples may be outside their intervals, and right or wrong.

        Samples that fail are chosen as badly as they can be. ``docs/worst-case.md`` has the proof.

        Parameters
        ----------
        failing
            How many of the samples that have intervals.

        Examples
        --------
        >>> from certcal.worst_case import calibration_error
        >>> worst = calibration_error([0.8] * 10, [0.9] * 10, [1] * 10, bins=1)
        >>> round(worst.value, 3), round(worst.with_failing(1), 3)  # one of ten brings 1 and not 0.2
        (0.2, 0.28)
        """
        from certcal.worst_case._gains import Gains

        k = whole_number(failing, 0, 2**62, "failing", "pass how many certificates may fail")
        gains = self.gains
        if not isinstance(gains, Gains):
            raise InputError(f"the {self.extreme} {self.name} has no such bound; ask for that of calibration_error")
        return outward(gains.largest(k) / self.n, 1e-15) if k else self.value

    @property
    def _own_correct(self) -> NDArray[np.uint8] | None:
        return self.correct() if callable(self.correct) else self.correct

    @property
    def text(self) -> str:
        """What is claimed, as printed: the value rounded up, or the proved lower end rounded down."""
        claimed = self.value if self.lower_end is None else self.lower_end
        return round_outward(claimed, "upper" if self.extreme == "highest" else "lower")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy or send with the witness made; the function that makes it stays behind."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "attain"}
        values["stakes"] = self.gains
        values["correct"] = self._own_correct
        return _restore, (values, None if self.attain is None else self._attained)

    @property
    def sentence(self) -> str:
        """What is claimed."""
        relation = "at most" if self.extreme == "highest" else "at least"
        return (
            f"{self.name}{in_words(self.settings)} is {relation} {minus(self.text)} on {these_samples(self.n)} "
            f"for all {self.of} inside the given intervals{self._also}."
        )

    @property
    def _also(self) -> str:
        return "" if self.reached is None else f"; some have {round_outward(self.reached, 'lower')}"

    def card(self) -> Card:
        """What a notebook shows."""
        name = "Worst case" if self.extreme == "highest" else "Best case"
        told = [self.sentence]
        if self.all_samples is not None and self.all_samples is not self:
            told.append(f"With samples that are not certified free to be anything: {self.all_samples.sentence}")
        return Card(" ".join(told), kind=name)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the witness."""
        return {**super().to_dict(), "lower_end": self.value if self.lower_end is None else self.lower_end}


def _restore(values: dict[str, Any], attained: Attained | None) -> WorstCase:
    return WorstCase(**values, attain=None if attained is None else lambda: attained)


@dataclass(frozen=True)
class CertifiedValue(PlainValues, kind="certified value", keys="name value text side n sentence"):
    """A number that follows from the intervals, with its text rounded to the safe side and its sentence.

    Examples
    --------
    >>> from certcal.worst_case import certify
    >>> certify([0.6, 0.2], [0.9, 0.5], [1, 0], certified=[1, 0]).accuracy.text
    '0.5000'
    """

    name: str
    value: float
    n: int
    text: str
    sentence: str
    side: str = "lower"
    """"lower" when the number is claimed as "at least", and rounded down; "upper" for "at most", rounded up."""
