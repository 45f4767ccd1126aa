"""What may be changed about an input: amounts for each feature, directions, whole numbers, categories, how many."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.text import counted, did_you_mean
from certcal._base.told import Told

Floats = NDArray[np.float64]

_AMOUNT = re.compile(r"(?P<side>[+-]?)(?P<number>\d+(\.\d*)?|\.\d+)(?P<unit>%|sd|)")
_EVERY = "every feature"
_GIVE = (
    "give an amount such as 500, '5%', '0.5sd', '+500' (only up) or '-500' (only down), '@column', or allowed values"
)


@dataclass(frozen=True)
class Amount(Told):
    """How far one feature may move: down and up, in some unit, or to which values.

    Examples
    --------
    >>> Amount.of("+5%", "income")
    Amount(down=0.0, up=0.05, unit='relative', column=None, values=())
    >>> Amount.of(500, "income").text, Amount.of("@slack", "income").text, Amount.of([1, 2], "region").text
    ('±500', '± slack', 'one of 1, 2')
    """

    down: float = 0.0
    up: float = 0.0
    unit: str = "absolute"
    column: str | None = None
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, given: Any, name: str) -> Amount:
        """What was given for a feature: a number, a text or a list of values."""
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            text = given.strip()
            if text.startswith("@") and len(text) > 1:
                return cls(1.0, 1.0, column=text[1:])
            match = _AMOUNT.fullmatch(text)
            if match is None:
                raise InputError(f"{name}: {given!r} is no amount", argument="change", remedy=_GIVE)
            number = float(match["number"])
            unit = {"%": "relative", "sd": "sd", "": "absolute"}[match["unit"]]
            number = number / 100 if unit == "relative" else number
            return cls(0.0 if match["side"] == "+" else number, 0.0 if match["side"] == "-" else number, unit)
        if isinstance(given, Iterable):
            return cls(unit="values", values=_finite_numbers(cast("Iterable[Any]", given), name))
        number = _finite_number(given, name)
        if number < 0:
            raise InputError(f"{name}: {number:g} is below 0", argument="change", remedy="write '-500' for only down")
        return cls(number, number)

    @property
    def text(self) -> str:
        """For people."""
        return self.times()

    @property
    def asked(self) -> str | list[float]:
        """What :meth:`of` reads as this amount."""
        if self.unit == "values":
            return list(self.values)
        side = "" if self.down == self.up else "+" if self.down == 0 else "-"
        number = Decimal(repr(float(max(self.down, self.up)))) * (100 if self.unit == "relative" else 1)
        unit = {"relative": "%", "sd": "sd"}.get(self.unit, "")
        return f"{side}{number:f}{unit}" if self.column is None else f"@{self.column}"

    def times(self, epsilon: float = 1.0) -> str:
        """The same of a multiple of the amount."""
        if self.unit == "values":
            return f"one of {', '.join(f'{value:g}' for value in self.values)}"
        if self.column is not None:
            return f"± {'' if epsilon == 1 else f'{short(epsilon)} × '}{self.column}"
        factor, unit = {"relative": (100, " %"), "sd": (1, " sd"), "absolute": (1, "")}[self.unit]
        down, up = (f"{epsilon * side * factor:g}" for side in (self.down, self.up))
        if self.down == self.up:
            return f"±{up}{unit}"
        return f"+{up}{unit}" if self.down == 0 else f"−{down}{unit}"


@dataclass(frozen=True)
class InputBox(Told):
    """A perturbation set: how far each feature may be moved, at the same time and independently of the others.

    Examples
    --------
    >>> InputBox({"income": "+10%", "age": 0}).text
    'age ±0, income +10 %'
    >>> InputBox("0.1sd", fixed=["sex"], at_most=2).text
    '±0.1 sd of every feature but sex; at most 2 features at a time'
    """

    change: Any = "1sd"
    """One amount for all features, or amounts by feature; then the others stay. An amount is a number or a text: 500,
    "5%" (of the sample's own value), "0.5sd" (of the feature's standard deviation in the data), "+500" or "-500" (only
    up, only down), "@column" (the table says it for each sample), or the values that a category may take."""
    fixed: tuple[str, ...] = ()
    """Features that stay, of one amount for all."""
    integers: tuple[str, ...] = ()
    """Features that are whole numbers, before and after."""
    limits: Any = field(default_factory=dict[str, Any])
    """Smallest and largest value of a feature, or None for no such limit, by name; or one pair for all features, such
    as (0, 1) for pixels."""
    at_most: int | None = None
    """At most so many features differ at a time; None for all."""
    norm: str = "linf"
    """"linf", or "l2" for all features together within that distance; then the change is one number."""

    def __post_init__(self) -> None:
        for name in ("fixed", "integers"):
            given: Any = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(map(str, given)))
        change: Any = self.change
        if isinstance(change, Mapping):
            given = cast("Mapping[Any, Any]", change)
            change = {str(name): Amount.of(value, str(name)) for name, value in given.items()}
            if self.fixed:
                raise InputError("features that are not named stay", argument="fixed", remedy="leave it out")
        else:
            change = Amount.of(change, _EVERY)
            if change.unit == "values" or change.column is not None:
                raise InputError("values and columns are for single features", argument="change", remedy=_GIVE)
        object.__setattr__(self, "change", change)
        object.__setattr__(self, "limits", _limits(self.limits))
        if self.at_most is not None and (type(self.at_most) is not int or self.at_most < 1):
            reason = f"{self.at_most!r} features cannot change at a time"
            raise InputError(reason, argument="at_most", remedy="give a whole number from 1")
        if self.norm not in ("linf", "l2"):
            raise InputError(f"it is {self.norm!r}", argument="norm", remedy="give 'linf' or 'l2'")
        if self.norm == "l2" and (self.by_name or self.every.unit != "absolute" or self.integers or self.at_most):
            reason = "an l2 ball has one radius for all features"
            raise InputError(
                reason, argument="norm", remedy="give one number as the change, and nothing about features"
            )

    @classmethod
    def of_texts(cls, change: Sequence[str] = (), limits: Sequence[str] = (), **more: Any) -> InputBox:
        """A box from texts such as "income=+10%", "region=1|2|3", "0.1sd" and "age=18:".

        Examples
        --------
        >>> InputBox.of_texts(["age=2", "region=1|2"], ["age=18:"], integers=["age"]).text
        'age ±2, region one of 1, 2; age stays a whole number; age stays at least 18'
        """
        pairs = [_feature_and_amount(text) for text in change]
        amounts = {name: text.split("|") if "|" in text else text for name, text in pairs}
        if len(amounts) < len(pairs):
            raise InputError("a feature is named twice", argument="change", remedy="name each once")
        if _EVERY in amounts and len(amounts) > 1:
            reason = "there is an amount for all features and another for one"
            raise InputError(reason, argument="change", remedy="name all that may change, or none")
        ends: dict[str, Any] = {}
        for name, text in map(_feature_and_amount, limits):
            low, found, high = text.partition(":")
            if not found:
                raise InputError(f"{text!r} is no pair", argument="limits", remedy="write LOW:HIGH, such as 18: or 0:1")
            ends[name] = (low.strip() or None, high.strip() or None)
        return cls(amounts.get(_EVERY, amounts) if amounts else "1sd", limits=ends, **more)

    @property
    def every(self) -> Amount:
        """The amount of features that are not named."""
        return Amount() if self.by_name else cast("Amount", self.change)

    @property
    def by_name(self) -> Mapping[str, Amount]:
        """The amounts by feature; empty where one is for all."""
        found: Any = self.change
        return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that say amounts, and are no features."""
        return tuple(dict.fromkeys(each.column for each in self.by_name.values() if each.column is not None))

    @property
    def uses_deviations(self) -> bool:
        """Whether amounts are in units of standard deviations."""
        return any(each.unit == "sd" for each in (self.every, *self.by_name.values()))

    @property
    def text(self) -> str:
        """For people."""
        return self.times()

    def times(self, epsilon: float = 1.0) -> str:
        """The box whose amounts are multiplied by epsilon, for people.

        Examples
        --------
        >>> InputBox().times(0.1), InputBox({"age": 2, "income": "+5%"}).times(0.5)
        ('±0.1 sd of every feature', 'age ±1, income +2.5 %')
        """
        most = "" if self.at_most is None else f"; at most {counted(self.at_most, 'feature')} at a time"
        most += "".join(f"; {each}" for each in self.conditions)
        if self.norm == "l2":
            return f"ℓ2 distance {epsilon * self.every.up:g}{most}"
        if not self.by_name:
            but = f" but {', '.join(self.fixed)}" if self.fixed else ""
            return f"{self.every.times(epsilon)} of every feature{but}{most}"
        return ", ".join(f"{name} {self.by_name[name].times(epsilon)}" for name in sorted(self.by_name)) + most

    @property
    def conditions(self) -> tuple[str, ...]:
        """What features stay, whatever becomes of them: whole numbers, between their limits.

        Examples
        --------
        >>> InputBox(1, limits={"age": (18, None), "share": (0, 1)}, integers=["age"]).conditions
        ('age stays a whole number', 'age stays at least 18', 'share stays from 0 to 1')
        """
        found = [f"{name} stays a whole number" for name in self.integers]
        for name, (low, high) in self.limits.items():
            ends = f"from {low:g} to {high:g}" if math.isfinite(low) and math.isfinite(high) else ""
            ends = ends or (f"at least {low:g}" if math.isfinite(low) else f"at most {high:g}")
            found += [f"{name} stays {ends}"] if math.isfinite(low) or math.isfinite(high) else []
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        change = {name: each.text for name, each in self.by_name.items()} if self.by_name else self.every.text
        limits = {name: [None if math.isinf(end) else end for end in ends] for name, ends in self.limits.items()}
        found = {"change": change, "fixed": list(self.fixed), "integers": list(self.integers), "limits": limits}
        return {**found, "at_most": self.at_most, "norm": self.norm}

    @property
    def asked(self) -> dict[str, Any]:
        """Plain values from which this box is made again."""
        change = {name: each.asked for name, each in self.by_name.items()} if self.by_name else self.every.asked
        return {**self.to_dict(), "change": change}

    def on(
        self, rows: NDArray[Any], names: Sequence[str] = (), columns: Mapping[str, Floats] | None = None
    ) -> Perturbations:
        """The set around each of these rows."""
        return Perturbations(self, rows, tuple(names), dict(columns or {}))


@dataclass(frozen=True, eq=False)
class BoxedRows:
    """Rows of a model's inputs and what may become of each of them."""

    rows: NDArray[Any]
    """The inputs, samples along the first axis."""
    lower: NDArray[Any]
    upper: NDArray[Any]
    """Ends of the box, of the same shape and type; a row lies inside its own box. NaN where a value is missing, and it
    stays missing."""
    l2: float | None = None
    """Within this distance of its row as well; None without such a limit."""
    at_most: int | None = None
    """At most so many features of a row differ from it."""
    integers: tuple[int, ...] = ()
    """Features that stay whole numbers."""
    choices: Mapping[int, Floats] = field(default_factory=dict[int, Floats])
    """Values that features may take instead of their own, whatever the ends of the box say."""

    def __len__(self) -> int:
        return self.rows.shape[0]


@dataclass(frozen=True, eq=False)
class Perturbations:
    """A :class:`InputBox` around given rows, with names found and units turned into numbers.

    Examples
    --------
    >>> rows = np.array([[20.0, 1.0], [30.0, 2.0]])
    >>> around = InputBox({"age": "10%"}, limits={"age": (18, 32)}, integers=["age"]).on(rows, ["age", "sex"])
    >>> around.region(0, 2).lower.tolist(), around.region(0, 2, epsilon=0.5).upper.tolist()
    ([[18.0, 1.0], [27.0, 2.0]], [[21.0, 1.0], [31.0, 2.0]])
    """

    box: InputBox
    rows: NDArray[Any]
    names: tuple[str, ...]
    columns: Mapping[str, Floats]

    def __post_init__(self) -> None:
        for argument, some in (
            ("change", self.box.by_name),
            ("fixed", self.box.fixed),
            ("integers", self.box.integers),
        ):
            for name in some:
                self._place(name, argument)
        for name, (low, high) in self.box.limits.items():
            column = self._column(name, "limits")
            self._refuse(name, "limits", column, (column < low) | (column > high), "outside its limits")
        for name in self.box.integers:
            column = self._column(name, "integers")
            self._refuse(name, "integers", column, column != np.floor(column), "no whole number")
        for place, values in self._choices.items():
            column = self.rows[:, place]
            self._refuse(self._name(place), "change", column, ~np.isin(column, values), "not among its values")
        for column in self.box.columns:
            if column not in self.columns:
                raise InputError(f"there is no column {column!r} of amounts", argument="change", remedy="name another")
            if not (self.columns[column] >= 0).all():
                row = int(np.argmin(self.columns[column] >= 0))
                raise InputError(f"column {column!r}, row {row + 1}: it is no amount from 0", argument="change")

    def __len__(self) -> int:
        return self.rows.shape[0]

    @cached_property
    def deviations(self) -> NDArray[Any]:
        """Standard deviation of each feature over the rows, without what is missing."""
        with np.errstate(invalid="ignore"):
            there = np.isfinite(self.rows)
            counts = np.maximum(there.sum(axis=0), 1)
            mean = np.where(there, self.rows, 0).sum(axis=0, dtype=np.float64) / counts
            return np.sqrt((np.where(there, self.rows - mean, 0) ** 2).sum(axis=0, dtype=np.float64) / counts)

    def region(self, start: int, stop: int, epsilon: float = 1.0) -> BoxedRows:
        """Rows from start to stop with every amount multiplied by epsilon.

        The ends are rounded outward where the amount has been computed, so that no allowed input is left out.
        """
        rows = self.rows[start:stop]
        low, high = rows.copy(), rows.copy()
        if self.box.by_name:
            for name, amount in self.box.by_name.items():
                place = self._place(name, "change")
                some = amount.column and self.columns[amount.column][start:stop]
                self._move(amount, rows[:, place], low[:, place], high[:, place], epsilon, place, some)
        else:
            self._move(self.box.every, rows, low, high, epsilon, slice(None), None)
            for name in self.box.fixed:
                place = self._place(name, "fixed")
                low[:, place] = high[:, place] = rows[:, place]
        for name in self.box.integers:
            place = self._place(name, "integers")
            low[:, place], high[:, place] = np.ceil(low[:, place]), np.floor(high[:, place])
        for name, (least, most) in self.box.limits.items():
            place = (slice(None), ...) if name == _EVERY else (slice(None), self._place(name, "limits"))
            low[place], high[place] = np.maximum(low[place], least), np.minimum(high[place], most)
        whole = tuple(self._place(name, "integers") for name in self.box.integers)
        ball = epsilon * self.box.every.up if self.box.norm == "l2" else None
        return BoxedRows(rows, low, high, ball, self.box.at_most, whole, self._choices)

    def _move(self, amount: Amount, rows: Any, low: Any, high: Any, epsilon: float, place: Any, some: Any) -> None:
        if amount.unit == "values":
            return
        # In double precision; float32 ends are then the nearest ones, between which the same float32 inputs lie.
        rows = np.asarray(rows, np.float64)
        size: Any = 1.0 if some is None else some
        if amount.unit == "sd":
            size = self.deviations[place]
        elif amount.unit == "relative":
            size = np.abs(rows)
        for end, side, step in ((low, amount.down, -np.inf), (high, amount.up, np.inf)):
            reach = epsilon * side * size * (1 + 2.0**-50)
            moved = np.nextafter(np.add(rows, -reach if step < 0 else reach), step)
            end[...] = np.where(np.isnan(rows) | (np.broadcast_to(reach, rows.shape) == 0), rows, moved)

    @cached_property
    def _choices(self) -> dict[int, Floats]:
        several = {name: each for name, each in self.box.by_name.items() if each.unit == "values"}
        return {self._place(name, "change"): np.unique(np.array(each.values)) for name, each in several.items()}

    def _name(self, place: int) -> str:
        return self.names[place] if self.names else str(place)

    def _place(self, name: str, argument: str) -> int:
        known = self.names or tuple(map(str, range(self.rows.shape[1] if self.rows.ndim == 2 else 0)))
        if name in known:
            return known.index(name)
        if not known:
            reason = f"these inputs have no features with names, such as {name!r}"
            raise InputError(reason, argument=argument, remedy="say the same of every feature")
        hint = did_you_mean(name, known)
        raise InputError(f"there is no feature {name!r}", argument=argument, remedy=hint or f"known: {_few(known)}")

    def _column(self, name: str, argument: str) -> NDArray[Any]:
        return self.rows if name == _EVERY else self.rows[:, self._place(name, argument)]

    def _refuse(self, name: str, argument: str, column: NDArray[Any], bad: NDArray[np.bool_], what: str) -> None:
        wrong = bad & ~np.isnan(column)
        if wrong.any():
            place = tuple(map(int, np.argwhere(wrong)[0]))
            reason = f"{name} of sample {place[0]} is {column[place]:g}, {what}"
            raise InputError(reason, argument=argument, remedy="repair the sample, or say otherwise what may change")


def short(number: float) -> str:
    """A multiple of a box with few digits."""
    return f"{number:.4g}"


def _feature_and_amount(text: str) -> tuple[str, str]:
    """Feature and amount of "income=500"; without a name every feature."""
    name, found, amount = text.rpartition("=")
    return (name.strip(), amount.strip()) if found else (_EVERY, text.strip())


def _finite_number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise InputError(f"{name}: {value!r} is no amount", argument="change", remedy=_GIVE)
    return number


def _finite_numbers(values: Iterable[Any], name: str) -> tuple[float, ...]:
    numbers = tuple(_finite_number(each, name) for each in values)
    if not numbers:
        raise InputError(f"{name}: there are no values", argument="change", remedy=_GIVE)
    return numbers


def _limits(given: Any) -> dict[str, tuple[float, float]]:
    """Smallest and largest value by feature, infinite where there is none."""
    pairs: Mapping[Any, Any] = cast("Any", given) if isinstance(given, Mapping) else {_EVERY: given}
    limits: dict[str, tuple[float, float]] = {}
    for name, pair in pairs.items():
        try:
            low, high = pair
            ends = -math.inf if low is None else float(low), math.inf if high is None else float(high)
        except (TypeError, ValueError):
            ends = math.nan, math.nan
        if ends[0] > ends[1]:
            reason = f"{name}: the smallest value, {ends[0]:g}, is above the largest, {ends[1]:g}"
            raise InputError(reason, argument="limits", remedy="give the smallest first")
        if not ends[0] <= ends[1]:
            reason = f"{name}: {pair!r} is no pair of a smallest and a largest value"
            raise InputError(reason, argument="limits", remedy="give both, or None for no limit")
        limits[str(name)] = ends
    return limits


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
