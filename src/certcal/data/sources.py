"""Where predictions come from: whatever a verb is given by position becomes Predictions, or a table that holds them."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, shortened, to_numpy
from certcal._base.outcomes import class_name
from certcal._base.text import counted
from certcal.data.formats import ENDINGS
from certcal.data.frames import is_table
from certcal.data.inputs import Inputs
from certcal.data.predictions import LoadedTable, load_table, split_by
from certcal.data.schema import OPTIONS, Layout
from certcal.predictions import Predictions

P = ParamSpec("P")
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)

# How many inputs a model is given at once.
_BATCH = 500


class FrameLike(Protocol):
    """A table in memory with named columns: pandas, polars, pyarrow and whatever looks like them."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""
        ...


class ArrowStream(Protocol):
    """A table in memory that speaks Arrow's protocol."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any:
        """The columns, for Arrow."""
        ...


class Estimator(Protocol):
    """A fitted classifier as scikit-learn has them."""

    @property
    def predict_proba(self) -> Any:
        """A function from inputs to one row of probabilities per sample, a column per class."""
        ...


class Indexed(Protocol):
    """A data set that gives a sample by its number, such as torch's."""

    def __getitem__(self, index: Any, /) -> Any:
        """The input and its label."""
        ...


class ArrayLike(Protocol):
    """An array of any library."""

    def __array__(self, *args: Any, **options: Any) -> Any:
        """The values as NumPy has them."""
        ...


Table = Predictions | str | os.PathLike[str] | Mapping[str, Any] | FrameLike | ArrowStream
Values = ArrayLike | Iterable[Any]
ModelLike = str | os.PathLike[str] | Estimator | Callable[..., Any]
DataLike = str | os.PathLike[str] | Inputs | Iterable[Any] | Indexed


@dataclass(frozen=True, eq=False)
class PredictionSource:
    """What a verb about predictions was given by position."""

    verb: str
    """Name of the verb, for sentences that say what to write."""
    given: tuple[Any, ...]
    """One table or Predictions; outcomes and probabilities; a model and data; or an estimator, inputs and outcomes."""

    def read(
        self, columns: Mapping[str, Any] | None, values: Mapping[str, Any]
    ) -> tuple[Any, Mapping[str, Any] | None]:
        """Predictions, or a table and its columns by role.

        Parameters
        ----------
        columns
            Columns by role, of a table.
        values
            The verb's keywords, such as its ``locals()``: those that are roles of columns are taken, each the name of a
            column or the values themselves.

        Examples
        --------
        >>> PredictionSource("measure", ([1, 0], [0.9, 0.2])).read(None, {})
        (Predictions(n=2, kind='score', base_rate=0.5), None)
        >>> PredictionSource("measure", ("t.csv",)).read(None, {"score": "pd", "outcome": None})
        ('t.csv', {'score': 'pd'})
        """
        roles = {role: values[role] for role in OPTIONS if values.get(role) is not None}
        self._refuse_two_tables()
        first: Any = self.given[0]
        rest = self.given[1:]
        if not rest:
            return self._read_table(first, columns, roles)
        if columns:
            raise InputError("it is for a table, and no table is given", argument="columns", remedy="leave it out")
        stray = next((role for role in roles if role not in ("weight", "positive")), None)
        if stray is not None:
            raise InputError(
                "it names a column of a table, and no table is given", argument=stray, remedy="leave it out"
            )
        weight, positive = roles.get("weight"), roles.get("positive")
        if isinstance(weight, str):
            raise InputError("no table is given", argument="weight", remedy="give the weight of each sample")
        if len(rest) == 2:
            if not hasattr(first, "predict_proba"):
                reason = f"three arguments are an estimator, X and y, and {shortened(first)} has no predict_proba"
                raise InputError(reason, remedy=f"write certcal.{self.verb}(y_true, y_prob, weight=…) for arrays")
            return from_estimator(first, rest[0], rest[1], weight, positive=positive), None
        if isinstance(first, str | os.PathLike) or callable(first) or hasattr(first, "predict_proba"):
            if positive is not None:
                raise InputError("it is for binary outcomes", argument="positive", remedy="leave it out")
            return from_model(first, rest[0], weight), None
        self._refuse_swapped()
        return from_arrays(first, rest[0], weight, positive=positive), None

    def load(self, columns: Mapping[str, Any] | None, values: Mapping[str, Any], by: Any = None) -> PredictionData:
        """All predictions, in memory; columns and values are those of :meth:`read`, ``by`` is what groups them."""
        table, columns = self.read(columns, values)
        if isinstance(table, Predictions):
            return PredictionData.of_predictions(table, by)
        return PredictionData.of_table(load_table(table, columns, by=column_name(by)), by)

    def _read_table(self, table: Any, columns: Mapping[str, Any] | None, roles: dict[str, Any]) -> tuple[Any, Any]:
        if isinstance(table, Predictions):
            if roles:
                raise InputError("predictions have no columns", argument=next(iter(roles)), remedy="leave it out")
            return table, None
        if not roles:
            return table, columns
        given = {role: name for role, name in (columns or {}).items() if name is not None}
        twice = next((role for role in roles if role in given), None)
        if twice is not None:
            raise InputError("it is also in columns", argument=twice, remedy="give it once")
        arrays = {role: value for role, value in roles.items() if role != "positive" and not _is_name(role, value)}
        if arrays:
            if not is_table(table):
                reason = "values stand beside a table in memory only"
                raise InputError(reason, argument=next(iter(arrays)), remedy="give the name of a column")
            named = _columns_of(table)
            rows = len(next(iter(named.values()), ()))
            for role, values in arrays.items():
                if (count := len(_array(values, role))) != rows and named:
                    raise InputError(f"it has {count} values for {rows} rows", argument=role, remedy="give one each")
            table = {**named, **arrays}
            roles |= {role: role for role in arrays}
        return table, {**given, **roles}

    def _refuse_two_tables(self) -> None:
        first: Any = self.given[0]
        path = str(cast("Any", first)).lower() if isinstance(first, str | os.PathLike) else ""
        file = path.endswith(ENDINGS) and not path.endswith(".txt")  # which LightGBM's models have
        if len(self.given) > 1 and (file or is_table(first) or isinstance(first, Predictions)) and not _is_array(first):
            raise InputError(
                f"{self.verb} takes one table and was given {len(self.given)} arguments by position",
                remedy=f"name the others: {self.verb}(data, name=value)",
            )

    def _refuse_swapped(self) -> None:
        outcomes, chances = map(_array, self.given, ("y_true", "y_prob"))
        whole = chances.dtype.kind != "f" or not np.mod(chances, 1).any()
        if chances.size and whole and (_are_fractions(outcomes) or outcomes.ndim > chances.ndim > 0):
            raise InputError(
                "y_true holds probabilities and y_prob holds outcomes: they are swapped",
                remedy=f"write certcal.{self.verb}(y_true, y_prob), the outcomes first",
            )


@dataclass(frozen=True, eq=False)
class PredictionData:
    """Predictions in memory, their groups, and what a result says of where they come from."""

    predictions: Predictions
    """All of them."""
    name: str = "predictions"
    """Of the file, or what they are."""
    by: str | None = None
    groups: Sequence[tuple[str, Predictions]] = ()
    """What the groups are, or None; and each of them by name."""
    layout: Layout | None = None
    """Which columns of a table were used; None without a table."""

    @classmethod
    def of_predictions(cls, predictions: Predictions, by: Any = None) -> PredictionData:
        """Those of arrays, with the group of each sample."""
        groups = [] if by is None else split_by(predictions, by)
        return cls(predictions, by="group" if groups else None, groups=groups)

    @classmethod
    def of_table(cls, loaded: LoadedTable, by: str | None = None) -> PredictionData:
        """Those of a table, with the column of the groups."""
        return cls(loaded.predictions, str(loaded.path), by, list(loaded.groups()), loaded.layout)

    @property
    def about(self) -> dict[str, Any]:
        """Task, kind, classes and columns, for machines."""
        kind = self.predictions.kind if self.layout is None else self.layout.kind
        found: dict[str, Any] = {"task": self.predictions.task, "kind": kind, "classes": self.predictions.classes}
        return found if self.layout is None else {**found, "columns": self.layout.to_dict()}

    @property
    def description(self) -> str:
        """The same in a line for people, with what is assumed."""
        said = size_text(len(self.predictions), self.predictions.classes, self.layout)
        return "; assumed: ".join((said, *self.predictions.doubts))


def column_name(by: Any) -> str | None:
    """The column of the groups of a table, or None."""
    if by is not None and not isinstance(by, str):
        raise InputError("groups of a table are a column; give its name", argument="by")
    return by


def size_text(n: int, classes: int | None, layout: Layout | None) -> str:
    """How many samples and classes there are, and which columns they were read from.

    Examples
    --------
    >>> size_text(20, 3, None)
    '20 samples, 3 classes'
    """
    of_classes = "" if classes is None else f", {classes} classes"
    return f"{counted(n, 'sample')}{of_classes}{'' if layout is None else f'; {layout.description}'}"


class PredictionVerb(Protocol[P, Answer_co]):
    """A verb about predictions, from any source."""

    __name__: str

    @overload
    def __call__(self, data: Table, /, *args: P.args, **more: P.kwargs) -> Answer_co: ...
    @overload
    def __call__(self, y_true: Values, y_prob: Values, /, *args: P.args, **more: P.kwargs) -> Answer_co: ...
    @overload
    def __call__(self, estimator: Estimator, X: Any, y: Values, /, *args: P.args, **more: P.kwargs) -> Answer_co: ...
    @overload
    def __call__(
        self,
        model: ModelLike,
        data: DataLike,
        /,
        *args: P.args,
        **more: P.kwargs,
    ) -> Answer_co: ...


def about_predictions(
    verb: Callable[Concatenate[PredictionSource, P], Answer],
) -> PredictionVerb[P, Answer]:
    """Let a verb take predictions from any source by position; it receives them as one :class:`PredictionSource`."""

    @functools.wraps(verb)
    def call(*given: Any, **options: Any) -> Answer:
        name = getattr(verb, "__name__", "")
        given = (options.pop("data"), *given) if "data" in options else given
        if not 1 <= len(given) <= 3:
            ways = f"{name}(data), {name}(y_true, y_prob) or {name}(estimator, X, y)"
            reason = f"takes 1 to 3 arguments by position and was given {len(given)}" if given else "was given no data"
            raise InputError(f"{name} {reason}", remedy=f"call it as {ways}")
        return cast("Any", verb)(PredictionSource(name, given), **options)

    about = inspect.signature(verb)
    first, *others = about.parameters.values()
    several = first.replace(kind=first.VAR_POSITIONAL, annotation=first.empty)
    cast("Any", call).__signature__ = about.replace(parameters=[several, *others])
    return cast("Any", call)


def from_arrays(y_true: Any, y_prob: Any, weight: Any = None, *, positive: Any = None) -> Predictions:
    """Predictions of outcomes and probabilities, in scikit-learn's order.

    Parameters
    ----------
    y_true
        What was true: 0/1, two other values of which ``positive`` counts as 1, or a class per sample. Classes other
        than 0, 1, … belong to the columns in their sorted order, as scikit-learn sorts them.
    y_prob
        Probabilities of outcome 1, or one row per sample and one column per class. Of two columns the second is the
        probability of outcome 1.
    weight
        Weights of the samples, or None.
    positive
        The outcome that counts as 1, where it is not 1, true or yes.

    Examples
    --------
    >>> from_arrays(["cat", "dog", "owl"], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.5, 0.2, 0.3]])
    Predictions(n=3, classes=3, kind='probabilities', accuracy=0.667)
    """
    chances = to_numpy(y_prob, "y_prob")
    if chances.ndim == 2 and chances.shape[1] > 2:
        return _name_as_scikit_learn(
            lambda: Predictions.from_probabilities(chances, _codes(y_true, chances.shape[1]), weight)
        )
    if chances.ndim == 2:
        chances = chances[:, -1]
        known = _distinct(y_true) if positive is None else []
        if len(known) == 2 and not {class_name(each).casefold() for each in known} <= _PLAIN_OUTCOMES:
            positive = known[1]
    return _name_as_scikit_learn(lambda: Predictions.from_scores(chances, y_true, weight, positive=positive))


def from_estimator(estimator: Any, X: Any, y: Any, weight: Any = None, *, positive: Any = None) -> Predictions:
    """Predictions of a fitted classifier: its ``predict_proba`` of X, and y.

    Of two classes they are binary scores of the second, or of ``positive``.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> from_estimator(GaussianNB().fit(X, y), X, y)
    Predictions(n=4, kind='score', base_rate=0.5)
    """
    chances: Any = estimator.predict_proba(X)
    what = type(estimator).__name__
    if isinstance(chances, list):
        raise InputError(f"{what} predicts several outputs at once; pass one classifier for each")
    chances = to_numpy(chances, f"predict_proba of {what}")
    if chances.ndim != 2:
        raise InputError(f"predict_proba of {what} has shape {chances.shape}, not one row per sample and class")
    names = [class_name(each) for each in np.asarray(getattr(estimator, "classes_", range(chances.shape[1]))).tolist()]
    codes = np.array([_place(name, names, what) for name in _class_names(y)], np.int64)
    if len(names) > 2:
        if positive is not None:
            raise InputError(f"{what} has {len(names)} classes", argument="positive", remedy="leave it out")
        return Predictions.from_probabilities(chances, codes, weight)
    chosen = len(names) - 1 if positive is None else _place(class_name(positive), names, what)
    return Predictions.from_scores(chances[:, chosen], codes == chosen, weight)


def from_model(model: Any, data: Any, weight: Any = None) -> Predictions:
    """Predictions of a model on data with labels, whatever :mod:`certcal.models` and ``open_inputs`` take.

    Examples
    --------
    >>> from certcal.models import wrap
    >>> from_model(wrap(lambda batch: batch, "logits"), ([[2.0, 0.0], [0.0, 1.0]], [0, 0]))
    Predictions(n=2, classes=2, kind='logits', accuracy=0.5)
    """
    from certcal.data.opening import open_inputs
    from certcal.models import load, wrap

    try:
        network = load(os.fspath(model)) if isinstance(model, str | os.PathLike) else wrap(model)  # pyright: ignore
    except InputError as error:
        if error.argument != "outputs":
            raise
        what = shortened(model) if isinstance(model, str) else "model"
        call = (
            f"certcal.models.load({what}, 'logits')"
            if isinstance(model, str)
            else "certcal.models.wrap(model, 'logits')"
        )
        remedy = f"pass {call}, or 'probabilities'"
        raise InputError("what the model returns is not known, and never guessed", remedy=remedy) from None
    inputs = open_inputs(data).inputs
    rows = range(0, len(inputs), _BATCH)
    answers = np.concatenate([network(inputs.inputs[first : first + _BATCH]) for first in rows])
    made = Predictions.from_logits if network.outputs == "logits" else Predictions.from_probabilities
    return made(answers, inputs.labels, weight)


# What outcomes are called that need no explanation.
_PLAIN_OUTCOMES = {"0", "1", "true", "false", "yes", "no"}
_NAMES = {"scores": "y_prob", "probabilities": "y_prob", "outcomes": "y_true", "labels": "y_true"}


def _name_as_scikit_learn(make: Callable[[], Predictions]) -> Predictions:
    """Predictions, or an error that names the arguments as scikit-learn does."""
    try:
        return make()
    except InputError as error:
        said = re.sub(
            r"\b(scores|probabilities|outcomes|labels)(?=\[| has | is )", lambda name: _NAMES[name[0]], str(error)
        )
        raise InputError(said) from None


def _codes(y_true: Any, classes: int) -> Any:
    """Places of classes among the columns: whole numbers below their count as they are, others in sorted order."""
    values = _array(y_true, "y_true")
    if values.dtype.kind in "iub" and values.size and values.min() >= 0 and values.max() < classes:
        return values
    known = _distinct(values)
    if len(known) != classes:
        reason = f"y_true has {len(known)} classes and y_prob {classes} columns, so which is which is not known"
        raise InputError(reason, remedy=f"give classes as whole numbers from 0 to {classes - 1}")
    places = {name: place for place, name in enumerate(known)}
    return np.array([places[each] for each in values.reshape(-1).tolist()], np.int64)


def _array(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} cannot be read as an array: {error}; pass one value per sample") from None


def _distinct(y_true: Any) -> list[Any]:
    try:
        return np.unique(_array(y_true, "y_true")).tolist()
    except TypeError:
        raise InputError("y_true mixes values that have no order; give classes of one kind") from None


def _class_names(y: Any) -> list[str]:
    return [class_name(each) for each in _array(y, "y").reshape(-1).tolist()]


def _place(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        shown = ", ".join(map(repr, names[:5]))
        raise InputError(f"{name!r} is no class of {what}; it knows {shown}{' and others' if len(names) > 5 else ''}")
    return names.index(name)


def _are_fractions(values: NDArray[Any]) -> bool:
    inside = values.dtype.kind == "f" and bool(values.size) and bool(np.all((values >= 0) & (values <= 1)))
    return inside and bool(np.mod(values, 1).any())


def _is_array(value: Any) -> bool:
    return getattr(value, "ndim", None) == 1


def _is_name(role: str, value: Any) -> bool:
    """Whether a column is named, or those of several classes are, rather than given."""
    listed = role in ("probabilities", "logits") and isinstance(value, list | tuple)
    return isinstance(value, str) or (listed and all(isinstance(each, str) for each in cast("Sequence[Any]", value)))


def _columns_of(table: Any) -> dict[str, Any]:
    names: Any = getattr(table, "column_names", None) or getattr(table, "columns", None)
    return {str(name): table[name] for name in (table if names is None else names)}
