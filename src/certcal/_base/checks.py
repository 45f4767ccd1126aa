"""The one place where arrays from outside are checked.

Every function returns arrays ready for the kernels or raises an :class:`InputError` whose text names the argument,
the offending index and what to do about it.
"""

from __future__ import annotations

import operator
import os
import reprlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.text import did_you_mean
from certcal._base.threads import map_blocks

Entry = TypeVar("Entry", bound=np.generic)
Called = TypeVar("Called")

# Rows of a probability matrix must sum to one within these tolerances. Softmax in float32 over 1000 classes is off by
# about 1e-6; tables written with four decimals by about 1e-4 times a few classes.
SUM_TOLERANCE = {np.dtype(np.float16): 2e-2, np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-3}
BFLOAT16_TOLERANCE = 2e-2

# A single entry of a probability matrix may exceed one by this much (rounding of a softmax) and is then taken as one.
ABOVE_ONE = 1e-6

# Probabilities of failing. Far below the least one logarithms and binomial tails lose their digits.
LEAST_FAILURE, MOST_FAILURE = 1e-200, 0.5

# A smaller weight counts as 0, since its square is 0 in a float; the largest is far above it.
LEAST_WEIGHT, LEAST_LARGEST_WEIGHT = 1e-150, 1e-100

# The largest level of an interval: four digits show that it is below 1.
MOST_LEVEL = 0.9999

# The largest variation or Lipschitz constant of an accuracy: a bound is trivial long before.
MOST_CHANGE = 1e12
# Of scores that are no probabilities.
LARGEST_REAL = 1e100


# Of a value that is shown in a sentence, and of a sentence as a whole: a whole array, or all names of a table, is none.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 80
_LONGEST = 800


def shortened(value: Any) -> str:
    """A value as a sentence shows it: in one line, and its beginning and end only if it is long.

    Examples
    --------
    >>> shortened([1, 2]), shortened(range(3)), len(shortened(np.zeros((90, 90)))) <= 80
    ('[1, 2]', 'range(0, 3)', True)
    """
    if isinstance(value, np.number | np.str_):
        value = cast("Any", value).item()  # 'a', not np.str_('a')
    try:
        return " ".join(_SHOWN.repr(value).split()) if not isinstance(value, str) else _SHOWN.repr(value)
    except Exception:  # a repr that fails
        return f"a {type(value).__name__}"


class InputError(ValueError):
    """An argument that cannot be used. The text says which, where, and what to do.

    Parameters
    ----------
    reason
        What is wrong; all of the text when nothing else is given.
    argument
        Name of the argument. The command line says its own option instead.
    index
        Where in the argument.
    remedy
        What to do.
    roles
        Arguments that the remedy asks for. The command line names its options: where ``{role}`` stands in the remedy,
        else behind it.
    more
        What follows the remedy, such as the columns that there are.
    add
        Arguments that would help, with their values; a list repeats its option. The command line prints the command to
        copy.

    Examples
    --------
    >>> import certcal
    >>> certcal.metrics.ece([0.5, 1.2], [1, 0])
    Traceback (most recent call last):
        ...
    certcal.InputError: confidence[1] is 1.2, outside [0, 1]; pass probabilities
    (for logits use Predictions.from_logits)
    """

    __module__ = "certcal"  # where users find it, and what a traceback names

    def __init__(
        self,
        reason: str,
        *,
        argument: str | None = None,
        index: int | None = None,
        remedy: str | None = None,
        roles: Sequence[str] = (),
        more: str = "",
        add: Mapping[str, Any] | None = None,
    ) -> None:
        self.reason, self.argument, self.index, self.remedy = reason, argument, index, remedy
        self.roles, self.more, self.add = roles, more, dict(add or {})
        super().__init__(self.said(argument))

    def said(self, argument: str | None, options: Mapping[str, str] | None = None, command: str = "") -> str:
        """The text with another name for the argument, such as that of an option, and with the options of roles.

        Of what would help, either all are options, which complete a command, or it is left out.
        """
        place = "" if self.index is None else f"[{self.index}]"
        name = "" if argument is None else f"{argument}{place}: "
        remedy, beside = f"; {self.remedy}" if self.remedy else "", list[str]()
        for role in self.roles:
            option = (options or {}).get(role)
            if f"{{{role}}}" in remedy:
                remedy = remedy.replace(f"{{{role}}}", option or role)
            elif option is not None:
                beside.append(option)
        given = f" ({', '.join(beside)})" if beside else ""
        text = f"{name}{self.reason}{remedy}{given}{self.more}{self._addition(options, command)}"
        path, colon, rest = text.partition(": ")  # a file must be found, however long its path is
        kept, rest = (path + colon, rest) if os.sep in path else ("", text)
        shown = rest if len(rest) <= _LONGEST else f"{rest[: _LONGEST // 2]} … {rest[-_LONGEST // 2 :]}"
        return kept + shown

    def _addition(self, options: Mapping[str, str] | None, command: str) -> str:
        if not self.add:
            return ""
        if options is None:
            return f"; add {', '.join(f'{name}={value!r}' for name, value in self.add.items())}"
        if not self.add.keys() <= options.keys():
            return ""
        each = [
            (options[name], one)
            for name, value in self.add.items()
            for one in (cast("list[Any]", value) if isinstance(value, list) else [value])
        ]
        words = [word for pair in each for word in pair if word is not True]
        return f"; run: {command} {shlex.join(map(str, words))}"


def as_array(value: Any, name: str) -> NDArray[Any]:
    """View anything array-like as a NumPy array of any kind without importing the library it came from."""
    if np.any(getattr(value, "mask", False)) and hasattr(value, "filled"):  # a masked array of NumPy's
        raise InputError(f"{name} has masked entries; drop or fill them first")
    if hasattr(value, "detach"):  # a torch tensor, possibly with gradients or on a device
        value = value.detach()
        value = value.cpu() if hasattr(value, "cpu") else value
        value = value.float() if str(getattr(value, "dtype", "")) == "torch.bfloat16" else value  # exactly
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(value).__name__
        remedy = "pass numbers of equal shape"
        raise InputError(f"{name} ({kind}) cannot be read as an array: {error}; {remedy}") from error


def to_numpy(value: Any, name: str) -> NDArray[Any]:
    """The same of numbers only: anything else is refused."""
    array = as_array(value, name)
    if array.dtype.kind in "biuf" and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "biu" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8):
        return array
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    raise InputError(_not_numeric(array, name))


def _not_numeric(array: NDArray[Any], name: str) -> str:
    for index, entry in np.ndenumerate(array):
        if not isinstance(entry, int | float | np.number | np.bool_):
            place = f"{name}[{', '.join(map(str, index))}]" if index else name
            return f"{place} is {shortened(entry)}, not a number; convert or drop such entries"
    return f"{name} has dtype {array.dtype}, which is not numeric; convert it to float64"


def _one_dimensional(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}; pass one value per sample")
    if array.size == 0:
        raise InputError(f"{name} is empty; pass at least one sample")
    return np.ascontiguousarray(array)


def _first_true(bad: NDArray[np.bool_]) -> int:
    return int(np.argmax(bad))


def read_only(values: NDArray[Entry]) -> NDArray[Entry]:
    """The same numbers, not to be written to.

    Compiled code is made for one type of array, of which writing is a part: what only reads would be compiled again for
    every mixture of arrays that can be written to and arrays that cannot.

    Examples
    --------
    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = values.view()
    view.flags.writeable = False
    return view


def kernel_float(values: NDArray[Any]) -> NDArray[Any]:
    """The array as compiled code can read it: float16 becomes float32 (exactly), the others stay; read-only."""
    return read_only(values.astype(np.float32) if values.dtype == np.float16 else values)


def confidences(
    value: Any,
    name: str = "confidence",
    remedy: str = "pass probabilities (for logits use Predictions.from_logits)",
    *,
    of_log_odds: str | None = None,
) -> NDArray[Any]:
    """One-dimensional floats in [0, 1]; float16, float32 and float64 keep their type, integers become float64.

    Where some are negative, as log-odds are, the remedy is another if it is given.
    """
    array = _one_dimensional(to_numpy(value, name), name)
    if array.dtype == np.bool_:
        raise InputError(f"{name} holds true/false; pass probabilities (are confidence and correct swapped?)")
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    from certcal._kernels.checking import all_in_unit_interval

    readable = kernel_float(array)
    if all(map_blocks(lambda start, stop: bool(all_in_unit_interval(readable[start:stop])), array.size)):
        return array
    index = _first_true(~((array >= 0) & (array <= 1)))
    entry = array[index]
    if not np.isfinite(entry):
        raise InputError(f"{name}[{index}] is {entry}; drop the sample or repair the model's output")
    if of_log_odds is not None and bool((array < 0).any()):
        remedy = of_log_odds
    raise InputError(f"{name}[{index}] is {entry:.9g}, outside [0, 1]; {_remedy_of_scale(array) or remedy}")


def real_numbers(value: Any, name: str) -> NDArray[np.float64]:
    """One-dimensional numbers of any size, such as points of a scorecard, as float64."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} are not numbers; pass one real number per sample") from None
    if array.ndim != 1 or not array.size:
        raise InputError(f"{name} has shape {array.shape}; pass one real number per sample")
    bad = ~(np.abs(array) < LARGEST_REAL)
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"{name}[{index}] is {array[index]:g}; drop the sample or repair the model's output")
    return array


def ranks_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks between 0 and 1 in the place of numbers; equal ones share theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2)[place] / values.size, np.float64)


def _remedy_of_scale(array: NDArray[Any]) -> str:
    """What to do about numbers that are plainly per cent or points; nothing about others, such as logits."""
    finite = array[np.isfinite(array)]
    least, most = finite.min(initial=0), finite.max(initial=0)
    if least >= -ABOVE_ONE and most <= 1 + ABOVE_ONE:
        return "pass probabilities; numpy.clip(…, 0, 1) takes off what rounding has added"
    if least < 0 or most <= 2:
        return ""
    if most <= 100:
        return "if these are per cent, divide them by 100"
    return "points of a scorecard become probabilities by certcal recalibrate fit with real_scores"


def correctness(
    value: Any,
    name: str = "correct",
    remedy: str = "pass whether each prediction is correct (for class labels use Predictions.from_probabilities)",
) -> NDArray[np.uint8]:
    """One-dimensional bytes, 1 where the prediction is correct (binary task: the outcome), else 0."""
    array = _one_dimensional(to_numpy(value, name), name)
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    from certcal._kernels.checking import all_zero_or_one, bytes_are_zero_or_one

    if array.dtype == np.uint8:
        out, good = array, bool(bytes_are_zero_or_one(read_only(array)))
    else:
        readable = kernel_float(array)
        out = np.empty(array.size, np.uint8)
        good = all(
            map_blocks(lambda start, stop: bool(all_zero_or_one(readable[start:stop], out[start:stop])), array.size)
        )
    if good:
        return out
    index = _first_true((array != 0) & (array != 1))
    raise InputError(f"{name}[{index}] is {array[index]}, neither 0 nor 1; {remedy}")


def weights(value: Any, n: int, name: str = "sample_weight", partner: str = "confidence") -> NDArray[np.float64] | None:
    """Finite weights >= 0 with a positive sum as float64, or None for none; ``partner`` has n entries.

    Weights that are almost 0 become 0.
    """
    if value is None:
        return None
    array = _one_dimensional(to_numpy(value, name), name).astype(np.float64, copy=False)
    same_length(**{partner: n, name: array.size})
    from certcal._kernels.checking import all_finite_and_not_negative

    readable = read_only(array)
    if not all(map_blocks(lambda start, stop: bool(all_finite_and_not_negative(readable[start:stop])), n)):
        index = _first_true(~((array >= 0) & (array < np.inf)))
        raise InputError(f"{name}[{index}] is {array[index]}; weights must be finite and not negative")
    largest = float(array.max())
    if largest == 0:
        raise InputError(f"{name} is zero for every sample; at least one weight must be positive")
    if not LEAST_LARGEST_WEIGHT < largest < 1e100:
        raise InputError(f"the largest {name} is {largest:g}; rescale the weights to ordinary sizes (around 1)")
    if array.min() < LEAST_WEIGHT and (tiny := (array > 0) & (array < LEAST_WEIGHT)).any():
        array = np.where(tiny, 0.0, array)
    return array


def same_length(**sizes: int) -> None:
    """Raise unless all the named sizes are equal."""
    if len(set(sizes.values())) > 1:
        text = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InputError(f"lengths differ: {text}; pass one entry per sample in each")


def score_pair(
    confidence: Any, correct: Any, sample_weight: Any = None
) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.float64] | None]:
    """Check confidences, correctness and weights together."""
    z = confidences(confidence)
    c = correctness(correct)
    same_length(confidence=z.size, correct=c.size)
    return z, c, weights(sample_weight, z.size)


def probability_matrix(value: Any, name: str = "probabilities", for_logits: str = "from_logits") -> NDArray[Any]:
    """One row per sample and one column per class, each row a distribution within the stated tolerance.

    float16, float32 and float64 keep their type, others become float64. ``for_logits`` is what a user of logits wants.
    """
    array = to_numpy(value, name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(
            f"{name} has shape {array.shape}; pass one row per sample and one column per class "
            "(for a binary score use Predictions.from_scores)"
        )
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty; pass at least one sample")
    tolerance = SUM_TOLERANCE.get(array.dtype, 1e-3)
    array = np.ascontiguousarray(array if array.dtype.kind == "f" else array.astype(np.float64))
    tolerance = max(tolerance, BFLOAT16_TOLERANCE) if _are_bfloat16(array) else tolerance
    readable = kernel_float(array)
    from certcal._kernels.checking import check_rows

    for row, column, total in map_blocks(
        lambda start, stop: _shift_row(check_rows(readable[start:stop], ABOVE_ONE, tolerance), start),
        array.shape[0],
        small=1 + 2_000_000 // array.shape[1],
    ):
        if column >= 0:
            # Logits of a row may all be positive, and do not sum to 100.
            percent = _remedy_of_scale(array) if abs(float(array[row].sum()) - 100) < 1 else ""
            raise InputError(
                f"{name}[{row}, {column}] is {array[row, column]:.9g}, outside [0, 1]; "
                f"{percent or f'pass probabilities (for logits use {for_logits})'}"
            )
        if row >= 0:
            raise InputError(
                f"{name}[{row}] sums to {total:.9g}, not to 1 within {tolerance:g}; "
                f"normalise the rows, or use {for_logits} for logits"
            )
    return array


def _are_bfloat16(array: NDArray[Any]) -> bool:
    """Whether these are float32 that were bfloat16: the lower half of their bits is empty."""
    if array.dtype != np.float32:
        return False
    return not any((part.view(np.uint32) & 0xFFFF).any() for part in (array[:1], array))


def _shift_row(found: tuple[int, int, float], start: int) -> tuple[int, int, float]:
    row, column, total = found
    return (row + start, column, total) if row >= 0 else found


def logit_matrix(value: Any, name: str = "logits") -> NDArray[Any]:
    """One row per sample and one column per class of finite numbers (float32 or float64)."""
    array = to_numpy(value, name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(f"{name} has shape {array.shape}; pass one row per sample and one column per class")
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty; pass at least one sample")
    array = np.ascontiguousarray(array, np.result_type(array, np.float32) if array.dtype.kind == "f" else np.float64)
    from certcal._kernels.checking import all_finite

    flat = read_only(array.reshape(-1))
    if not all(map_blocks(lambda start, stop: bool(all_finite(flat[start:stop])), flat.size)):
        row, column = np.unravel_index(_first_true(~np.isfinite(flat)), array.shape)
        raise InputError(
            f"{name}[{row}, {column}] is {array[row, column]}; drop the sample or repair the model's output"
        )
    return array


def labels(value: Any, classes: int, name: str = "labels") -> NDArray[np.int64]:
    """Whole numbers from 0 to ``classes - 1``, one per sample."""
    array = _one_dimensional(to_numpy(value, name), name)
    bad = ~((array >= 0) & (array < classes))
    if array.dtype.kind == "f":
        bad |= np.floor(array) != array
    if bad.any():
        index = _first_true(bad)
        raise InputError(f"{name}[{index}] is {array[index]}; labels are whole numbers from 0 to {classes - 1}")
    return array.astype(np.int64)


def class_pair(
    probabilities: Any, labels_given: Any, sample_weight: Any = None
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64] | None]:
    """Check a probability matrix, its labels and weights together."""
    p = probability_matrix(probabilities)
    y = labels(labels_given, p.shape[1])
    same_length(probabilities=p.shape[0], labels=y.size)
    return p, y, weights(sample_weight, y.size, partner="labels")


def bin_count(bins: Any, name: str = "bins") -> int:
    """A whole number of bins from 1 to 10 million."""
    try:
        count = operator.index(bins)
    except TypeError:
        raise InputError(
            f"{name} is {shortened(bins)}; pass a whole number of bins, or edges=… for your own edges"
        ) from None
    if not 1 <= count <= 10_000_000:
        raise InputError(f"{name} is {count}; pass a number from 1 to 10000000")
    return count


def bin_counts(bins: Any, name: str = "bins") -> tuple[int, ...]:
    """One number of bins or several, without repetition."""
    try:
        several = [bins] if isinstance(bins, str) else list(bins)
    except TypeError:  # one number, or an array without dimensions
        several = [bins]
    if not several:
        raise InputError(f"{name} is empty; pass at least one number of bins")
    return tuple(dict.fromkeys(bin_count(count, name) for count in several))


def whole_number(value: Any, least: int, most: int, name: str, remedy: str) -> int:
    """A whole number in a range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {shortened(value)}; {remedy}") from None
    if not least <= number <= most:
        raise InputError(f"{name} is {number}; {remedy}")
    return number


def _number(value: Any, name: str, remedy: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {shortened(value)}; {remedy}") from None


def share(value: Any, name: str, remedy: str) -> float:
    """A number strictly between 0 and 1."""
    number = _number(value, name, remedy)
    if not 0 < number < 1:
        raise InputError(f"{name} is {value}; {remedy}")
    return number


def real(value: Any, name: str, remedy: str) -> float:
    """A number; NaN and infinities are some."""
    if isinstance(value, str | bytes):
        raise InputError(f"{name} is {shortened(value)}; {remedy}")
    return _number(value, name, remedy)


def flag(value: Any, name: str) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {shortened(value)}; pass True or False")
    return value is True or value is np.True_


def function(value: Called, name: str, remedy: str) -> Called:
    """Something that can be called."""
    if not callable(value):
        raise InputError(f"{name} is {shortened(value)}; {remedy}")
    return value


def failure_hint(number: float) -> str:
    """What was meant by a number too large for a probability of failing: 0.95, 95 and 5 (per cent) mean 0.05."""
    share = number / 100 if 1 < number < 100 else number
    meant = min(share, 1 - share)
    return f"did you mean {meant:.12g}?" if 0 < meant < MOST_FAILURE else "pass a smaller one, such as 0.05"


def failure_probability(value: Any, name: str, *, zero: bool = False) -> float:
    """A probability of failing: below a half, since 0.95 is a level and means 0.05; and 0 where that is allowed."""
    remedy = f"pass a probability {'from 0 to below' if zero else 'between 0 and'} {MOST_FAILURE:g}"
    number = _number(value, name, remedy)
    if zero and number == 0 and not isinstance(value, str):
        return 0.0
    if MOST_FAILURE <= number < 100:
        wrong = f"{name} is {value}; it is the probability of failing, below {MOST_FAILURE:g}"
        raise InputError(f"{wrong}: {failure_hint(number)}")
    number = share(value, name, remedy)
    if number < LEAST_FAILURE:
        raise InputError(f"{name} is {number}; pass {'0 or ' if zero else ''}at least {LEAST_FAILURE:g}")
    return number


def confidence_level(value: Any, name: str = "level") -> float:
    """The level of an interval."""
    level = share(value, name, "pass a confidence level between 0 and 1, such as 0.95")
    if level > MOST_LEVEL:
        raise InputError(f"{name} is {level}; pass at most {MOST_LEVEL}")
    return level


def positive(value: Any, name: str, most: float = float("inf")) -> float:
    """A finite number above zero, up to the largest that is useful."""
    number = _number(value, name, "pass a positive number")
    if not 0 < number < float("inf"):
        raise InputError(f"{name} is {number}; pass a positive finite number")
    if number > most:
        raise InputError(f"{name} is {number}; pass a number up to {most:g}")
    return number


def noise_level(value: Any, name: str = "sigma") -> float:
    """The standard deviation of noise: a number above zero that a float32 can hold."""
    return positive(value, name, float(np.finfo(np.float32).max))


def random_seed(value: Any, name: str = "seed") -> int:
    """A seed of 64 bits."""
    return whole_number(value, 0, 2**64 - 1, name, "pass a whole number from 0 to 2**64 - 1")


def norm_order(value: Any, name: str = "p") -> float:
    """The order of an L_p norm, from 1 to infinity."""
    remedy = "pass an order of at least 1 (1 is the usual calibration error, 2 its RMS form)"
    order = _number(value, name, remedy)
    if not order >= 1:
        raise InputError(f"{name} is {shortened(value)}; {remedy}")
    return order


class LogitsWarning(UserWarning):
    """Numbers that are said to be logits look like probabilities."""


def look_like_probabilities(logits: NDArray[Any], rows: int = 4096) -> bool:
    """Whether every row lies in [0, 1] and sums to 1, which logits all but never do.

    Examples
    --------
    >>> look_like_probabilities(np.array([[0.2, 0.8], [1.0, 0.0]])), look_like_probabilities(np.array([[0.2, 0.9]]))
    (True, False)
    """
    tolerance = SUM_TOLERANCE.get(logits.dtype, 1e-3)
    for start in range(0, len(logits), rows):
        block = logits[start : start + rows].astype(np.float64)
        if not ((block >= 0).all() and (np.abs(block.sum(axis=1) - 1) <= tolerance).all()):
            return False
    return logits.size > 0


def choice(value: Any, allowed: tuple[str, ...], name: str) -> str:
    """One of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        hint = did_you_mean(value, allowed)
        raise InputError(
            f"{name} is {shortened(value)}; pass one of {', '.join(map(repr, allowed))}{hint and f'; {hint}'}"
        )
    return str(value)
