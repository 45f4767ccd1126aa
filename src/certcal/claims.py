"""What a number claims. Three frozen types that never convert into each other.

* :class:`Estimate`: a number from data. It may carry an interval for its value in the population.
* :class:`Bound`: holds with probability at least 1 - delta over the data, under the listed assumptions.
* :class:`Certificate`: holds for every perturbation up to a radius, except with the probability its ledger adds up to.

Each says in one sentence what it claims. Bounds and certificates are rounded outward, in memory and in print.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, NoReturn, cast

from certcal._base.checks import InputError, choice
from certcal._base.json import PlainValues
from certcal._base.notebook import Card, CardTable, NotebookCard
from certcal._base.rounding import SIDES, decimals, minus, percent_text, round_outward, short_text, sure_text
from certcal._base.rounding import move_outward as move_outward

# Assumed by every claim for which samples are split by their places: rows sorted by outcome are split in one fixed way,
# which makes the parts depend on each other.
ORDER = "the order of the samples does not depend on scores or outcomes (or the seed of the split was drawn at random)"

# What worst cases assume besides intervals, and how assumptions speak of a level.
NO_GUARANTEE = "; an estimate, not a guarantee."
SAME, _EXCEPT = "no certified prediction changes", " except with probability"

_SIDE_WORDS = {"upper": "below", "lower": "above"}


class Frozen(dict[str, Any]):
    """A mapping that does not change, and can be copied and sent to another process.

    Examples
    --------
    >>> Frozen({"bins": 15})["bins"]
    15
    """

    def _refuse_change(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a claim does not change; make a new one")

    __setitem__ = __delitem__ = __ior__ = _refuse_change  # pyright: ignore[reportAssignmentType]
    clear = pop = popitem = setdefault = update = _refuse_change  # pyright: ignore[reportAssignmentType]

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self))  # of the keys: values may be lists

    def __reduce__(self) -> tuple[Any, ...]:
        return Frozen, (dict(self),)


def _freeze(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    return Frozen({key: _as_python_value(value) for key, value in mapping.items()})


def _as_python_value(value: Any) -> Any:
    """Scalars and arrays of NumPy as Python's own, so that every claim can be written as JSON."""
    return value.tolist() if hasattr(value, "tolist") else value


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings one after the other.

    Examples
    --------
    >>> settings_text({"bins": 15, "closed": "left"})
    'bins=15, closed=left'
    """
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def settings_texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings by name as texts; levels are rounded to the safe side.

    Examples
    --------
    >>> settings_texts({"alpha_below": 0.00051, "radii": (0.25, 0.5)})
    {'alpha below': '0.00051', 'radii': '0.25, 0.5'}
    """
    texts: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, float):
            text = short_text(value, "upper") if key.startswith(("alpha", "delta")) else f"{value:.6g}"
        else:
            text = ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list | tuple) else str(value)
        texts[key.replace("_", " ")] = text if len(text) <= 200 else f"{text[:200]} …"
    return texts


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings as they stand in a sentence, right after the name of what they belong to.

    Examples
    --------
    >>> in_words({"bins": 15, "closed": "left"}), in_words({})
    (' (bins=15, closed=left)', '')
    """
    return f" ({settings_text(settings)})" if settings else ""


def these_samples(n: int) -> str:
    """So many samples, as a sentence points at them.

    Examples
    --------
    >>> these_samples(1), these_samples(200)
    ('this sample', 'these 200 samples')
    """
    return "this sample" if n == 1 else f"these {n} samples"


def full_statement(sentence: str, assumptions: Sequence[str], settings: Mapping[str, Any]) -> str:
    """A sentence, then its assumptions and settings, in one text."""
    assumed = f" Assumptions: {'; '.join(assumptions)}." if assumptions else ""
    return f"{sentence}{assumed}{f' Settings: {settings_text(settings)}.' if settings else ''}"


def in_full(claim: Any) -> str:
    """A claim in one text: its statement, or its sentence where there is nothing to add."""
    return getattr(claim, "statement", claim.sentence)


def assumptions_of(claim: Any) -> tuple[str, ...]:
    """What a claim rests on, one per entry; a level is told where it is named, so that it can be read alone."""
    if isinstance(claim, Estimate):
        return ()
    given = getattr(claim, "assumptions", None)
    if given is None:
        return "every confidence lies inside its given interval", SAME
    alpha = claim.settings.get("alpha")
    if alpha is None:
        return tuple(given)
    level = f"{_EXCEPT} {short_text(alpha, 'upper')}" if alpha else ""
    return tuple(each.replace(f"{_EXCEPT} alpha", level) for each in given)


def _in_lines(claim: Any) -> str:
    """A claim with a line for each assumption."""
    lines = [claim.sentence]
    lines += ["Assumptions:", *(f"- {each}" for each in claim.assumptions)] if claim.assumptions else []
    lines += [f"Settings: {settings_text(claim.settings)}"] if claim.settings else []
    return "\n".join(lines)


def _plain_number(other: Any) -> float | None:
    """A plain number, which claims are compared with; None for anything else."""
    return float(other) if isinstance(other, Real | Decimal) else None


class _OneSided(PlainValues, NotebookCard, ABC):
    """What bounds and certificates share: they hold on one side, and are printed rounded to that side.

    Compared with a number, they say what they show: an upper bound answers ``<`` and ``<=``, a lower one ``>`` and
    ``>=``, and False means "not shown". The other two comparisons are refused, and so is ``float``: that an upper bound
    is above 0.05 does not mean that the value is. ``==`` compares whole claims.
    """

    name: str
    value: float
    side: str
    assumptions: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The value as printed: rounded outward."""
        return round_outward(self.value, self.side)

    @property
    def sentence(self) -> str:
        """What is claimed, and with which probability. What it assumes is in ``assumptions`` and in ``statement``."""
        return f"{self._relation}{self._conditions}."

    @property
    def without_level(self) -> str:
        """The sentence for places that tell its probability apart."""
        return f"{self._relation} {self._scope}."

    @property
    def _relation(self) -> str:
        return f"{self.name} is {'at most' if self.side == 'upper' else 'at least'} {minus(self.text)}"

    @property
    def statement(self) -> str:
        """The sentence with all that it depends on, for places that hold one text only."""
        return full_statement(self.sentence, self.assumptions, self.settings)

    def _shows(self, limit: Any, side: str, holds: Callable[[float, float], bool]) -> bool:
        """Whether the claim puts the value on that side of a limit; a comparison with the other side is refused."""
        number = _plain_number(limit)
        if number is None:
            return NotImplemented
        if side != self.side:
            what, signs = ("most", "< and <=") if self.side == "upper" else ("least", "> and >=")
            raise TypeError(
                f"{self.name} is at {what} {self.text}, which cannot show that it is {_SIDE_WORDS[side]} a number; "
                f"compare this claim by {signs}, or its value"
            )
        return holds(self.value, number)

    def __lt__(self, limit: Any) -> bool:
        """Whether the claim shows a value below a limit. False means that it is not shown."""
        return self._shows(limit, "upper", operator.lt)

    def __le__(self, limit: Any) -> bool:
        return self._shows(limit, "upper", operator.le)

    def __gt__(self, limit: Any) -> bool:
        return self._shows(limit, "lower", operator.gt)

    def __ge__(self, limit: Any) -> bool:
        return self._shows(limit, "lower", operator.ge)

    def __str__(self) -> str:
        return _in_lines(self)

    @property
    @abstractmethod
    def _conditions(self) -> str: ...
    @property
    @abstractmethod
    def _scope(self) -> str: ...

    def card(self) -> Card:
        """What a notebook shows."""
        return Card(self.statement, kind=type(self).__name__, tables=self._tables)

    @property
    def _tables(self) -> Sequence[CardTable]:
        return ()


@dataclass(frozen=True)
class Interval(PlainValues):
    """An interval around an estimate."""

    lower: float
    upper: float
    """Its ends."""
    level: float
    """Its confidence level."""
    method: str
    """How it was made. "Clopper-Pearson", "score", "DeLong", "norm" and the other intervals of
    :func:`certcal.metrics.with_interval` are for the value in the population; their level is approximate, where that of
    a :class:`Bound` is proven. "percentile", of a metric of one's own, shows how the number varies under resampling:
    for calibration errors near zero it tends to lie above the population value, and may exclude the estimate."""

    @property
    def says_nothing(self) -> bool:
        """Whether both ends are infinite or undefined, as those of an infinite number are."""
        return not (math.isfinite(self.lower) or math.isfinite(self.upper))

    @property
    def resampled(self) -> bool:
        """Whether it comes from resamples."""
        return self.method == "percentile"

    def ends(self, digits: int = 4) -> tuple[str, str]:
        """Both ends as text, rounded outward.

        Parameters
        ----------
        digits
            Decimals.
        """
        return round_outward(self.lower, "lower", digits), round_outward(self.upper, "upper", digits)

    def excludes(self, value: float) -> bool:
        """Whether it does not contain a value, as a bootstrap interval of a biased estimate may not."""
        return value < self.lower or value > self.upper


@dataclass(frozen=True)
class Estimate(PlainValues, NotebookCard, kind="estimate", more="sentence"):
    """A number computed from the samples at hand. It guarantees nothing about other samples.

    It orders, converts, rounds and formats like its value: ``m["ece"] < 0.05`` is about these samples, and a
    :class:`Bound` is what shows it of the population. ``==`` and ``hash`` are those of the whole claim: two estimates
    are equal if name, value, samples and settings are, and none equals a plain number.

    Examples
    --------
    >>> found = Estimate("ece", 0.0398, 10_000)
    >>> found < 0.05, float(found), round(found, 2), f"{found:.1%}"
    (True, 0.0398, 0.04, '4.0%')
    >>> print(Estimate("ece", 0.0398, 10_000, {"bins": 15}).sentence)
    ece (bins=15) is 0.03980 on these 10000 samples; an estimate, not a guarantee.
    """

    name: str
    value: float
    n: int
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    interval: Interval | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", _freeze(self.settings))

    @property
    def sentence(self) -> str:
        """What is claimed."""
        text = f"{self.name}{in_words(self.settings)} is {minus(decimals(self, 5))} on {these_samples(self.n)}"
        spread = self.interval
        if spread is not None and not spread.says_nothing:
            kind = f"{spread.method} bootstrap interval" if spread.resampled else "interval"
            lower, upper = map(minus, spread.ends(5))
            text += f", {percent_text(spread.level)} {kind} {lower} to {upper}"
            remarks = ["resampling variability"] if spread.resampled else []
            remarks += ["it excludes the estimate"] if spread.excludes(self.value) else []
            text += f" ({'; '.join(remarks)})" if remarks else ""
        return f"{text}{NO_GUARANTEE}"

    def end(self, side: str) -> float:
        """The end of the interval that decides; undefined without one.

        Percentiles of a metric that is biased lie on one side of what it is in the population, their mirror image (the
        basic interval) on the other: of the two ends it is the farther one.

        Parameters
        ----------
        side
            "upper" or "lower".
        """
        spread = self.interval
        if spread is None:
            return math.nan
        own, other = (spread.lower, spread.upper) if side == "lower" else (spread.upper, spread.lower)
        return float((min if side == "lower" else max)(own, 2 * self.value - other) if spread.resampled else own)

    def __float__(self) -> float:
        return float(self.value)

    def __lt__(self, other: Any) -> bool:
        return self._compare_values(other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compare_values(other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compare_values(other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compare_values(other, operator.ge)

    def _compare_values(self, other: Any, holds: Callable[[float, float], bool]) -> bool:
        number = other.value if isinstance(other, Estimate) else _plain_number(other)
        return NotImplemented if number is None else holds(self.value, number)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self.value), digits)

    def __format__(self, form: str) -> str:
        return format(float(self.value), form) if form else str(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The value, for NumPy."""
        import numpy as np

        return np.array(self.value, dtype or np.float64)

    def card(self) -> Card:
        """What a notebook shows."""
        return Card(self.sentence, kind="Estimate")


@dataclass(frozen=True)
class Bound(_OneSided, kind="bound", keys="name value text side delta n assumptions terms settings sentence"):
    """A number that the true value does not exceed (or fall below), except with probability ``delta`` over the data.

    Examples
    --------
    >>> bound = Bound("ece", 0.08121, "upper", 0.05, 1000, ("samples are independent",), {"deviation": 0.04})
    >>> print(bound)
    ece is at most 0.0813: 95% sure, for samples drawn like these 1,000.
    Assumptions:
    - samples are independent
    """

    name: str
    value: float
    side: str
    delta: float
    n: int
    assumptions: tuple[str, ...]
    terms: Mapping[str, float] = field(default_factory=dict[str, float])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        choice(self.side, SIDES, "side")
        _probability(self.delta, "delta")
        if math.isnan(self.value):
            raise InputError(f"the bound on {self.name} is NaN; a bound must be a number")
        object.__setattr__(self, "terms", _freeze(self.terms))
        object.__setattr__(self, "settings", _freeze(self.settings))

    @property
    def _conditions(self) -> str:
        return f": {like_these(self.delta, self.n)}"

    @property
    def _scope(self) -> str:
        return f"for samples drawn like these {self.n:,}"

    @property
    def _tables(self) -> Sequence[CardTable]:
        rows = [(name, round_outward(value, self.side)) for name, value in self.terms.items()]
        return [CardTable(rows, ("term", self.name))] if rows else ()


@dataclass(frozen=True)
class TwoSidedBound(
    PlainValues,
    NotebookCard,
    kind="two-sided bound",
    keys="name lower=lower.value upper=upper.value text delta n assumptions settings sentence",
):
    """A lower and an upper bound on one number that hold together, except with the sum of their probabilities.

    Examples
    --------
    >>> lower = Bound("ece", 0.02135, "lower", 0.025, 1000, ("samples are independent",))
    >>> pair = TwoSidedBound(lower, Bound("ece", 0.0638, "upper", 0.025, 1000, ("samples are independent",)))
    >>> print(pair)
    ece is between 0.0213 and 0.0638: 95% sure, for samples drawn like these 1,000.
    Assumptions:
    - samples are independent
    """

    lower: Bound
    upper: Bound

    def __post_init__(self) -> None:
        ends = self.lower, self.upper
        if tuple(each.side for each in ends) != ("lower", "upper") or self.lower.name != self.upper.name:
            raise InputError("these are not a lower and an upper bound on one number; pass them in this order")

    @property
    def name(self) -> str:
        """Name of the bounded quantity."""
        return self.upper.name

    @property
    def delta(self) -> float:
        """Probability with which either side may fail: the sum of theirs, rounded up."""
        total = Fraction(self.lower.delta) + Fraction(self.upper.delta)
        value = float(total)
        return value if Fraction(value) >= total else math.nextafter(value, math.inf)

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.upper.n

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What either side assumes."""
        return tuple(dict.fromkeys((*self.upper.assumptions, *self.lower.assumptions)))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of both sides, without those of one side's terms."""
        both = {**self.lower.settings, **self.upper.settings}
        return _freeze({key: value for key, value in both.items() if key != "sum of the terms"})

    @property
    def text(self) -> str:
        """Both ends as printed: rounded outward."""
        return f"{self.lower.text} to {self.upper.text}"

    @property
    def sentence(self) -> str:
        """What is claimed, and with which probability."""
        ends = " and ".join(minus(end.text) for end in (self.lower, self.upper))
        return f"{self.name} is between {ends}: {like_these(self.delta, self.n)}."

    @property
    def statement(self) -> str:
        """The sentence with all that it depends on."""
        return full_statement(self.sentence, self.assumptions, self.settings)

    def __str__(self) -> str:
        return _in_lines(self)

    def card(self) -> Card:
        """What a notebook shows."""
        return Card(self.statement, kind="Bounds")


@dataclass(frozen=True)
class Ledger(NotebookCard):
    """How a failure probability was spent. The entries never add up to more than the budget, exactly.

    Examples
    --------
    >>> ledger = Ledger(0.001).spend("prediction", 0.0005).split(lower=1, upper=1)
    >>> [name for name, alpha in ledger.entries]
    ['prediction', 'lower', 'upper']
    >>> ledger.spent <= 0.001
    True
    """

    budget: float
    entries: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        _probability(self.budget, "budget")
        for name, alpha in self.entries:
            _probability(alpha, f"alpha of {name!r}")
        if self._exact > Fraction(self.budget):
            raise InputError(f"the ledger spends {float(self._exact):g} of a budget of {self.budget:g}; spend less")

    @property
    def _exact(self) -> Fraction:
        return sum((Fraction(alpha) for _, alpha in self.entries), Fraction(0))

    @property
    def spent(self) -> float:
        """Sum of the entries, rounded up."""
        total = float(self._exact)
        return total if Fraction(total) >= self._exact else math.nextafter(total, math.inf)

    @property
    def remaining(self) -> float:
        """What is left of the budget, rounded down."""
        rest = Fraction(self.budget) - self._exact
        value = float(rest)
        return value if Fraction(value) <= rest else math.nextafter(value, 0.0)

    def spend(self, name: str, alpha: float) -> Ledger:
        """A ledger with one more entry; an error when the budget does not allow it."""
        return Ledger(self.budget, (*self.entries, (name, alpha)))

    def split(self, **shares: float) -> Ledger:
        """A ledger that spends all that remains in the given proportions, each entry rounded down."""
        whole = sum((Fraction(share) for share in shares.values()), Fraction(0))
        rest = Fraction(self.budget) - self._exact
        if whole <= 0 or rest <= 0:
            raise InputError("nothing can be split; give positive shares and leave some of the budget")
        added: list[tuple[str, float]] = []
        for name, share in shares.items():
            part = rest * Fraction(share) / whole
            value = float(part)
            added.append((name, value if Fraction(value) <= part else math.nextafter(value, 0.0)))
        return Ledger(self.budget, (*self.entries, *added))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = dict.fromkeys(name for name, _ in self.entries)
        entries = {name: math.fsum(alpha for other, alpha in self.entries if other == name) for name in names}
        return {"budget": self.budget, "spent": self.spent, "entries": entries}

    def card(self) -> Card:
        """What a notebook shows."""
        entries = [*self.entries, ("together", self.spent), ("of a budget of", self.budget)]
        rows = [(name, short_text(alpha, "upper")) for name, alpha in entries]
        return Card(tables=(CardTable(rows, ("spent on", "alpha")),))


@dataclass(frozen=True)
class Certificate(
    _OneSided, kind="certificate", keys="name value text side radius ledger n assumptions settings sentence"
):
    """A number that no perturbation up to ``radius`` can exceed, except with the probability in the ledger.

    Examples
    --------
    >>> certificate = Certificate(
    ...     "calibration error",
    ...     0.29853,
    ...     "upper",
    ...     0.5,
    ...     Ledger(0.001).split(prediction=1, band=1),
    ...     500,
    ...     ("noise is exactly Gaussian",),
    ... )
    >>> print(certificate.sentence)
    calibration error is at most 0.2986 on these 500 samples under every perturbation of norm up to 0.5, 99.9% sure.
    """

    name: str
    value: float
    side: str
    radius: float
    ledger: Ledger
    n: int
    assumptions: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        choice(self.side, SIDES, "side")
        if math.isnan(self.value) or not self.radius >= 0:
            raise InputError(f"a certificate needs a number and a radius >= 0, not {self.value} at {self.radius}")
        object.__setattr__(self, "settings", _freeze(self.settings))

    @property
    def _conditions(self) -> str:
        return f" {self._scope}{f', {sure_text(self.ledger.spent)}' if self.ledger.spent else ''}"

    @property
    def _scope(self) -> str:
        return f"on {these_samples(self.n)} under every perturbation of norm up to {short_text(self.radius, 'lower')}"

    @property
    def _tables(self) -> Sequence[CardTable]:
        return self.ledger.card().tables


def _probability(value: float, name: str) -> None:
    if not 0 < value < 1:
        raise InputError(f"{name} is {value}; pass a probability between 0 and 1")


def like_these(delta: float, n: int) -> str:
    """How sure a bound is, and of which samples."""
    return f"{sure_text(delta)}, for samples drawn like {'this one' if n == 1 else f'these {n:,}'}"
