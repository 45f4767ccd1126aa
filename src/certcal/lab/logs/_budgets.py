"""Certified accuracy at budgets and levels that nobody drew: read off the distribution of p_A, one table each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from certcal._base.checks import InputError, failure_probability, whole_number
from certcal._base.json import PlainValues
from certcal._base.told import Told
from certcal.claims import short_text
from certcal.smoothing.robustness.distribution import MOST_DRAWS, ConvertedAccuracy

if TYPE_CHECKING:
    from certcal.lab.logs._comparison import Compared

DEFAULT_BUDGETS = ((100, 0.01), (1_000, 0.001), (100_000, 0.001))


@dataclass(frozen=True)
class Budget(PlainValues):
    """A budget and a level: draws per sample, and the probability that a sample's radius may fail.

    Examples
    --------
    >>> Budget(100, 0.01).text
    'N = 100, alpha = 0.01'
    """

    draws: int
    alpha: float

    @property
    def text(self) -> str:
        """In words."""
        return f"N = {self.draws:,}, alpha = {short_text(self.alpha, 'upper')}"


@dataclass(frozen=True, eq=False)
class SettingTable(Told):
    """Certified accuracy of several runs at one σ, as it would be at another budget and level.

    An estimate: the shares of votes seen are taken for p_A (Sun et al. 2025, appendix B.1). With n draws they come in
    steps of 1/n, so a radius that needs more than 1 - 1/n is certified here for exactly those samples all of whose
    draws agreed, of which some would not be with more draws: such values are too high rather than too low, and
    ``resolved`` is False for them.

    Examples
    --------
    >>> from certcal.lab.logs import compare
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> run = compare([VoteRecord.of([100, 85, 40], 100, [1, 1, 1], sigma=1.0, name="a")], at=[0.5, 2.5]).runs
    >>> few, many = setting_tables({1.0: [("a", run[0])]}, [(100, 0.01), (100_000, 0.001)])
    >>> few.rows[0][1].p.tolist(), few.rows[0][1].lower.round(4).tolist(), few.resolved
    ([0.81, 1.01], [0.6667, 0.0], ((True, True),))
    >>> many.rows[0][1].lower.round(4).tolist(), many.resolved
    ([0.6667, 0.3333], ((True, False),))
    """

    setting: Budget
    """Draws and alpha."""
    sigma: float
    """Standard deviation of the noise."""
    rows: tuple[tuple[str, ConvertedAccuracy], ...]
    """Name, and the values at all radii."""
    own_draws: tuple[int, ...] = ()
    """How many draws each was seen with."""

    @property
    def resolved(self) -> tuple[tuple[bool, ...], ...]:
        """Per row and radius, whether the run's own draws can tell a p_A that certifies it from one that does not."""
        return tuple(
            tuple(bool(self.setting.draws <= own or p <= 1 - 1 / own or p > 1) for p in values.p)
            for (_, values), own in zip(self.rows, self.own_draws, strict=True)
        )

    @property
    def note(self) -> str | None:
        """Caution on values that a run's own draws cannot resolve; None where there are none."""
        fewer = sorted({own for own, row in zip(self.own_draws, self.resolved, strict=True) if not all(row)})
        if not fewer:
            return None
        draws = f"{fewer[0]:,}" if len(fewer) == 1 else f"{fewer[0]:,} to {fewer[-1]:,}"
        return (
            f"{self.setting.text} is more than the {draws} draws there are: p_A near 1 is known in steps of "
            f"1/{fewer[0]:,} only, and values marked ~ count every sample all of whose draws agreed, so they are "
            "likely too high."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "certified accuracy at a setting",
            **self.setting.to_dict(),
            "sigma": self.sigma,
            "rows": [
                {"name": name, "own_draws": own, "resolved": list(resolved)} | values.to_dict()
                for (name, values), own, resolved in zip(self.rows, self.own_draws, self.resolved, strict=True)
            ],
            "note": self.note,
        }


def check_budgets(budgets: Iterable[Any]) -> tuple[Budget, ...]:
    """Draws and levels, each once, in the order given."""
    if isinstance(budgets, str) or not isinstance(budgets, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"budgets is {budgets!r}; pass pairs of draws and alpha such as [(1000, 0.001)]")
    found: list[Budget] = []
    for i, each in enumerate(budgets):
        pair: Any = (each.draws, each.alpha) if isinstance(each, Budget) else each
        if not isinstance(pair, tuple | list) or len(cast("Sequence[Any]", pair)) != 2:
            raise InputError(f"budgets[{i}] is {each!r}; pass pairs of draws and alpha such as (1000, 0.001)")
        draws = whole_number(pair[0], 1, MOST_DRAWS, f"budgets[{i}] draws", "pass the number of draws per sample")
        found.append(Budget(draws, failure_probability(pair[1], f"budgets[{i}] alpha")))
    return tuple(dict.fromkeys(found))


def setting_tables(
    runs: Mapping[float, Sequence[tuple[str, Compared]]], budgets: Iterable[Any] = DEFAULT_BUDGETS
) -> tuple[SettingTable, ...]:
    """One table per budget and σ."""
    tables: list[SettingTable] = []
    for setting in check_budgets(budgets):
        for sigma, several in runs.items():
            rows = tuple(
                (name, run.distribution.certified_accuracy(run.curve.at, n=setting.draws, alpha=setting.alpha))
                for name, run in several
            )
            tables.append(SettingTable(setting, sigma, rows, tuple(run.draws[0] for _, run in several)))
    return tuple(tables)
