"""Where predictions come from: whatever a verb is given by position becomes Predictions, or a table that holds them."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, as_array, probability_matrix, shortened, to_numpy
from certcal._base.outcomes import class_name, first_missing, outcome
from certcal._base.progress import SILENT, Progress
from certcal._base.text import counted
from certcal.data.formats import ENDINGS
from certcal.data.frames import collected, is_table
from certcal.data.grouping import GroupingColumns, PredictionGroup
from certcal.data.inputs import Inputs
from certcal.data.predictions import LoadedTable, load_table, split_by
from certcal.data.schema import OPTIONS, READING, Layout
from certcal.data.spellings import positions
from certcal.data.units import warn_of_odd_units
from certcal.predictions import Predictions

if TYPE_CHECKING:
    from certcal.models import Model

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
        roles = {role: _list_once(values[role], role) for role in OPTIONS if values.get(role) is not None}
        self._refuse_two_tables()
        first: Any = self.given[0]
        rest = self.given[1:]
        if not rest:
            return self._read_table(first, columns, roles)
        if columns:
            raise InputError("it is for a table, and no table is given", argument="columns", remedy="leave it out")
        stray = next((role for role in roles if role not in ("weight", "positive")), None)
        if stray is not None:
            raise InputError("it is for a table, and no table is given", argument=stray, remedy="leave it out")
        weight, positive = roles.get("weight"), roles.get("positive")
        if isinstance(weight, str):
            raise InputError("no table is given", argument="weight", remedy="give the weight of each sample")
        beside = {"weight": weight, "by": values.get("by")}
        if len(rest) == 1 and hasattr(first, "predict_proba") and isinstance(rest[0], tuple):
            rest = cast("tuple[Any, ...]", rest[0])
        if len(rest) == 2:
            if not hasattr(first, "predict_proba"):
                raise self._no_estimator(first, *rest)
            y = _list_once(rest[1], "y")
            if np.ndim(rest[0]) == 1 and np.ndim(y) == 2:
                raise InputError("X and y are swapped", remedy=f"write certcal.{self.verb}(estimator, X, y)")
            _refuse_other_order(y=y, X=rest[0], **beside)
            return from_estimator(first, rest[0], y, weight, positive=positive), None
        if _is_model(first):
            if positive is not None:
                raise InputError("it is for binary outcomes", argument="positive", remedy="leave it out")
            if hasattr(first, "predict_proba") and hasattr(rest[0], "__array__"):
                reason = "an estimator and inputs are given, and not what was true"
                raise InputError(reason, remedy=f"write certcal.{self.verb}(estimator, X, y)")
            return from_model(first, rest[0], weight, progress=values.get("progress", SILENT)), None
        y_true, y_prob = _list_once(first, "y_true"), _list_once(rest[0], "y_prob")
        for name, value in (("y_true", y_true), ("y_prob", y_prob)):
            if value is None:
                raise InputError(f"{name} is None", remedy="pass one value per sample")
        _refuse_other_order(y_true=y_true, y_prob=y_prob, **beside)
        try:
            outcomes, chances = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
            if chances.dtype == object and all(
                isinstance(each, Number) and not isinstance(each, complex) for each in chances.flat
            ):
                y_prob = chances = chances.astype(np.float64)  # as of Decimal, or a row of a frame with text
            self._refuse_other_shapes(outcomes, chances)
            self._refuse_swapped(outcomes, chances)
            self._refuse_text(outcomes, chances)
            if positive is None and _one_each(chances):
                self._refuse_classes(outcomes)
            return from_arrays(y_true, y_prob, weight, positive=positive), None
        except InputError as error:
            raise InputError(self._with_line(str(error))) from None

    def _with_line(self, said: str) -> str:
        """A sentence about arrays that ends with the line to write."""
        name = "y_true" if said.startswith("y_true") else "y_prob"
        kept, logits = f"{self.verb}(y_true[keep], y_prob[keep])", f"certcal.{self.verb}(label=y_true, logits=y_prob)"
        finite = f"write keep = numpy.isfinite({name}) and certcal.{kept}"
        if " is nan, neither" in said or "] is None, not a number" in said:
            said = f"{said.partition(',')[0]}; drop the sample"
        for old, line in {
            "(for logits use from_logits)": f"(for logits write {logits})",
            "or use from_logits for logits": f"or for logits write {logits}",
            "as positive": f"in certcal.{self.verb}(y_true, y_prob, positive=…)",
            "(positive)": f"in certcal.{self.verb}(y_true, y_prob, positive=…)",
            "divide them by 100": f"write certcal.{self.verb}(y_true, y_prob / 100)",
            "pass one class per sample (of one-hot rows, the argmax)": "pass one class per sample; for one-hot rows "
            f"write certcal.{self.verb}(y_true.argmax(1), y_prob)",
            "drop or fill them first": f"write keep = ~np.ma.getmaskarray({name}) and certcal.{kept}",
            "inf; drop the sample": f"inf; {finite}",
            "drop the sample": f"write keep = pandas.notna({name}) and certcal.{kept}",
        }.items():
            said = said.replace(old, line)
        return said

    def load(self, columns: Mapping[str, Any] | None, values: Mapping[str, Any], by: Any = None) -> PredictionData:
        """All predictions, in memory; columns and values are those of :meth:`read`, ``by`` is what groups them."""
        table, columns = self.read(columns, values)
        if isinstance(table, Predictions):
            return PredictionData.of_predictions(table, by)
        return PredictionData.of_table(load_table(table, columns, by=grouping_names(by)))

    def _read_table(self, table: Any, columns: Mapping[str, Any] | None, roles: dict[str, Any]) -> tuple[Any, Any]:
        if isinstance(table, Predictions):
            if roles:
                raise InputError("predictions have no columns", argument=next(iter(roles)), remedy="leave it out")
            return table, None
        plain = table is None or isinstance(table, list | tuple | int | float) or hasattr(table, "__array__")
        if plain and not is_table(table):
            kind = type(cast("Any", table)).__name__
            arrays = "label=y_true, logits=logits" if "logits" in roles else "y_true, y_prob"
            remedy = (
                f"name the columns, or write certcal.{self.verb}({arrays}) for arrays: what happened is needed, too"
            )
            raise InputError(f"a table is a file or columns by name ({_TABLES}), not {kind}", remedy=remedy)
        if not roles:
            return cast("Any", table), columns
        roles = {role: str(name) if type(name) is int else name for role, name in roles.items()}  # columns of arrays
        given = {role: name for role, name in (columns or {}).items() if name is not None}
        twice = next((role for role in roles if role in given), None)
        if twice is not None:
            raise InputError("it is also in columns", argument=twice, remedy="give it once")
        plain = ("positive", "negative", *READING)
        arrays = {role: value for role, value in roles.items() if role not in plain and not _is_name(role, value)}
        if arrays:
            texts: Any = arrays.get("score")
            if isinstance(texts, list | tuple) and all(isinstance(each, str) for each in cast("list[Any]", texts)):
                reason, remedy = "it is one column", f"write probabilities={shortened(cast('Any', texts))}, label=…"
                raise InputError(reason, argument="score", remedy=remedy)
            if not is_table(table):
                reason = "values stand beside a table in memory only"
                raise InputError(reason, argument=next(iter(arrays)), remedy="give the name of a column")
            named = _columns_of(table)
            rows = len(next(iter(named.values()), ()))
            _refuse_other_order(data=table, **arrays)
            for role, values in arrays.items():
                if (count := as_array(values, role).shape[:1]) != (rows,) and named:
                    count = count[0] if count else "no"
                    raise InputError(f"it has {count} values for {rows} rows", argument=role, remedy="give one each")
            table = {**named, **arrays}
            roles |= {role: role for role in arrays}
        return cast("Any", table), {**given, **roles}

    def _refuse_two_tables(self) -> None:
        first: Any = self.given[0]
        path = str(cast("Any", first)).lower() if isinstance(first, str | os.PathLike) else ""
        file = path.endswith(ENDINGS) and not path.endswith(".txt")  # which LightGBM's models have
        if len(self.given) > 1 and (file or is_table(first) or isinstance(first, Predictions)) and not _is_array(first):
            raise InputError(
                f"{self.verb} takes one table and was given {len(self.given)} arguments by position",
                remedy=f"name the others, as in certcal.{self.verb}(data, score=…, outcome=…, bins=15)",
            )

    def _no_estimator(self, first: Any, second: Any, third: Any) -> InputError:
        """What to write in place of three arguments of which the first is no estimator."""
        if hasattr(third, "predict_proba"):
            return InputError("the estimator stands first", remedy=f"write certcal.{self.verb}(estimator, X, y)")
        if hasattr(first, "fit"):
            remedy = "calibrate it first, for example with scikit-learn's CalibratedClassifierCV"
            return InputError(f"{type(first).__name__} has no predict_proba", remedy=remedy)
        if _is_model(first):
            reason = "a model, inputs and labels are given, and the last two are one argument"
            return InputError(reason, remedy=f"write certcal.{self.verb}(model, (X, y))")
        name = f"bins={third}" if isinstance(third, int) else "weight=…"
        reason = f"three arguments are an estimator, X and y, and {type(first).__name__} has no predict_proba"
        return InputError(reason, remedy=f"write certcal.{self.verb}(y_true, y_prob, {name}) for arrays")

    def _refuse_other_shapes(self, outcomes: NDArray[Any], chances: NDArray[Any]) -> None:
        """Refuse what is one row of all samples, and classes along another axis than the last of two."""
        shape, write = chances.shape, f"write certcal.{self.verb}"
        for name, array, count in (
            ("y_prob", chances, outcomes.size),
            ("y_true", outcomes, len(np.atleast_1d(chances))),
        ):
            if array.shape == (1, count) and count > 1:
                given = "y_true, y_prob".replace(name, f"{name}[0]")
                raise InputError(f"{name} has shape {array.shape}", remedy=f"{write}({given})")
        if chances.ndim > 2:
            axis = next(
                (each for each in (chances.ndim - 1, 1) if outcomes.shape == shape[:each] + shape[each + 1 :]), None
            )
            remedy = "pass one row per sample and one column per class"
            if axis is not None:
                moved = "y_prob" if axis > 1 else "numpy.moveaxis(y_prob, 1, -1)"
                remedy = f"{write}(y_true.ravel(), {moved}.reshape(-1, {shape[axis]}))"
            raise InputError(f"y_prob has shape {shape}", remedy=remedy)

    def _refuse_text(self, outcomes: NDArray[Any], chances: NDArray[Any]) -> None:
        texts = set(map(str, chances.flat)) if chances.dtype.kind in "OU" else set[str]()
        if not texts or not all(isinstance(each, str) for each in chances.flat):
            return
        first, write = next(iter(chances.flat)), f"write certcal.{self.verb}(y_true, "
        if not any(each.isdigit() for each in first) or texts <= set(map(str, outcomes.flat)):
            reason = f"y_prob holds classes, such as {str(first)!r}, in place of probabilities"
            raise InputError(reason, remedy="pass probabilities, such as predict_proba(X)")
        if all(each.endswith("%") for each in texts):
            remedy = f"{write}[float(p.rstrip('%')) / 100 for p in y_prob])"
            raise InputError("y_prob holds percentages as text", remedy=remedy)
        if all(map(_is_number, texts)):
            raise InputError("y_prob holds numbers as text", remedy=f"{write}numpy.asarray(y_prob, float))")

    def _refuse_classes(self, outcomes: NDArray[Any]) -> None:
        """Refuse one number per sample beside several classes: of which of them it is, nobody has said."""
        plain = outcomes.dtype.kind in "iu" and outcomes.min(initial=0) >= 0 and outcomes.max(initial=1) <= 1
        if not plain and outcomes.dtype.kind in "iuU" and (count := len(np.unique(outcomes))) > 2:
            line = f"certcal.{self.verb}(confidence=y_prob, correct=predicted == y_true)"
            reason = f"y_true has {count} classes and y_prob one number per sample"
            remedy = f"pass one column per class, or write {line} if it is that of the predicted class"
            raise InputError(reason, remedy=remedy)

    def _refuse_swapped(self, outcomes: NDArray[Any], chances: NDArray[Any]) -> None:
        whole = chances.dtype.kind != "f" or not (np.floor(chances) != chances).any()
        if chances.size and whole and (_are_fractions(outcomes) or outcomes.ndim > chances.ndim > 0):
            raise InputError(
                "y_true holds probabilities and y_prob holds outcomes: they are swapped",
                remedy=f"write certcal.{self.verb}(y_true, y_prob), the outcomes first",
            )
        if chances.size and chances.dtype.kind in "iub":
            reason = "y_prob holds whole numbers or true/false, as outcomes and predicted classes are"
            raise InputError(reason, remedy="pass probabilities, such as predict_proba(X); these as floats if they are")


@dataclass(frozen=True, eq=False)
class PredictionData:
    """Predictions in memory, their groups, and what a result says of where they come from."""

    predictions: Predictions
    """All of them."""
    name: str = "predictions"
    """Of the file, or what they are."""
    groupings: Sequence[GroupingColumns] = ()
    groups: Sequence[PredictionGroup] = ()
    """What they are grouped by, and the groups."""
    layout: Layout | None = None
    """Which columns of a table were used; None without a table."""
    rows: NDArray[np.int64] | None = None
    """Where they stand in the table, if rows of it were left out."""

    @classmethod
    def of_predictions(cls, predictions: Predictions, by: Any = None) -> PredictionData:
        """Those of arrays, with the group of each sample."""
        groupings, groups = ((), ()) if by is None else split_by(predictions, by)
        return cls(predictions, groupings=groupings, groups=groups)

    @classmethod
    def of_table(cls, loaded: LoadedTable) -> PredictionData:
        """Those of a table."""
        name = str(loaded.path)
        return cls(loaded.predictions, name, loaded.groupings, loaded.groups, loaded.layout, loaded.rows)

    @property
    def by(self) -> str | None:
        """What they are grouped by, in a text."""
        return ", ".join(each.by for each in self.groupings) or None

    @property
    def about(self) -> dict[str, Any]:
        """Task, kind, classes and columns, for machines."""
        kind = self.predictions.kind if self.layout is None else self.layout.kind
        found: dict[str, Any] = {"task": self.predictions.task, "kind": kind, "classes": self.predictions.classes}
        return found if self.layout is None else {**found, **columns_read(self.layout)}

    @property
    def description(self) -> str:
        """The same in a line for people, with what is assumed."""
        said = size_text(len(self.predictions), self.predictions.classes, self.layout)
        return "; assumed: ".join((said, *self.predictions.doubts))


def grouping_names(by: Any) -> tuple[str, ...]:
    """The columns, and crossings of columns, that a table is grouped by."""
    if hasattr(by, "shape"):
        name = getattr(by, "name", None)
        remedy = (
            f"write by={name!r}" if isinstance(name, str) else "put them into the table, and give the column's name"
        )
        raise InputError("groups of a table are columns of it, and values are given", argument="by", remedy=remedy)
    names: list[Any] = [] if by is None else [by] if isinstance(by, str) or not hasattr(by, "__iter__") else list(by)
    if isinstance(by, Mapping) or not all(isinstance(name, str) for name in names):
        raise InputError("groups of a table are columns; give their names", argument="by")
    return tuple(names)


def columns_read(layout: Layout) -> dict[str, Any]:
    """Which columns were used and what was read how, for machines."""
    return {"columns": layout.to_dict()} | ({"reading": list(layout.notes)} if layout.notes else {})


def size_text(n: int, classes: int | None, layout: Layout | None) -> str:
    """How many samples and classes there are, and which columns they were read from."""
    of_classes = "" if classes is None else f", {classes} classes"
    return f"{counted(n, 'sample')}{of_classes}{'' if layout is None else f'; {layout.description}'}"


class PredictionVerb(Protocol[P, Answer_co]):
    """A verb about predictions, from any source."""

    __name__: str

    @overload
    def __call__(self, data: Table, /, *args: P.args, **more: P.kwargs) -> Answer_co: ...
    @overload
    def __call__(self, y_true: Values, y_prob: Values, *args: P.args, **more: P.kwargs) -> Answer_co: ...
    @overload
    def __call__(self, estimator: Estimator, X: Any, y: Values, *args: P.args, **more: P.kwargs) -> Answer_co: ...
    @overload
    def __call__(self, model: ModelLike, data: DataLike, /, *args: P.args, **more: P.kwargs) -> Answer_co: ...


def about_predictions(verb: Callable[Concatenate[PredictionSource, P], Answer]) -> PredictionVerb[P, Answer]:
    """Let a verb take predictions from any source by position; it receives them as one :class:`PredictionSource`."""
    about = inspect.signature(verb)
    first, *others = about.parameters.values()
    name, keywords = getattr(verb, "__name__", ""), [each.name for each in others]

    @functools.wraps(verb)
    def call(*given: Any, **options: Any) -> Answer:
        given = tuple(map(collected, positions(name, given, options, keywords)))
        if not 1 <= len(given) <= 3:
            reason = f"takes 1 to 3 arguments by position and was given {len(given)}" if given else "was given no data"
            ways = f"{name}(data), {name}(y_true, y_prob) or {name}(estimator, X, y)"
            raise InputError(f"{name} {reason}", remedy=f"call it as {ways}")
        return cast("Any", verb)(PredictionSource(name, given), **options)

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
        Probabilities of outcome 1, or one row per sample and one column per class. The columns of a frame that are
        called as the classes are those of these classes. Of two columns the scores are that of outcome 1, or of
        ``positive``; of the second if no class says that it is 1.
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
    if chances.ndim != 2 or chances.shape[1] < 2:
        return _name_arguments(_ARRAYS, lambda: Predictions.from_scores(chances, y_true, weight, positive=positive))
    codes, names = _codes(y_true, chances.shape[1], _column_names(y_prob))
    return _of_classes(chances, codes, names, "y_true", weight, positive, _ARRAYS)


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
    what = type(estimator).__name__
    if isinstance(estimator, type):
        raise InputError(f"{estimator.__name__} is a class", remedy="pass a fitted one: fit an instance of it")
    try:
        chances: Any = estimator.predict_proba(X)
    except Exception as error:  # whatever a classifier of somebody else raises
        said = " ".join(str(error).split()).rstrip(".")
        raise InputError(
            f"{what} could not predict X: {said}", remedy="fit it, and pass inputs of that kind"
        ) from error
    if isinstance(chances, list):
        raise InputError(f"{what} predicts several outputs at once; pass one classifier for each")
    chances = to_numpy(chances, f"predict_proba of {what}")
    if chances.ndim != 2:
        raise InputError(f"predict_proba of {what} has shape {chances.shape}, not one row per sample and class")
    names = [class_name(each) for each in np.asarray(getattr(estimator, "classes_", range(chances.shape[1]))).tolist()]
    if len(names) != chances.shape[1]:
        raise InputError(f"{what} has {len(names)} classes and predict_proba {chances.shape[1]} columns; repair it")
    known, inverse = _distinct(y, "y")
    for place, name in enumerate(known):
        if name not in names:
            raise _no_class(f"y[{int(np.argmax(inverse == place))}]", name, names, what)
    codes = np.array([names.index(name) for name in known], np.int64)[inverse]
    return _of_classes(chances, codes, names, what, weight, positive, _ESTIMATOR)


def from_model(model: Any, data: Any, weight: Any = None, *, progress: Progress = SILENT) -> Predictions:
    """Predictions of a model on data with labels, whatever :mod:`certcal.models` and ``open_inputs`` take.

    Examples
    --------
    >>> from certcal.models import wrap
    >>> from_model(wrap(lambda batch: batch, "logits"), ([[2.0, 0.0], [0.0, 1.0]], [0, 0]))
    Predictions(n=2, classes=2, kind='logits', accuracy=0.5)
    """
    from certcal.data.opening import open_inputs
    from certcal.models import load, wrap
    from certcal.models.protocol import undeclared

    named = isinstance(model, str | os.PathLike)
    inputs = open_inputs(data).inputs
    warn_of_odd_units(inputs)
    try:
        network = undeclared(lambda outputs: (load if named else wrap)(model, outputs), None, inputs.inputs)
    except InputError as error:
        if error.argument != "outputs":
            raise
        reason, (first, second) = error.reason, ("probabilities", "logits")
        if reason.startswith("it is needed"):
            reason, first, second = "what the model returns is not known, and never guessed", second, first
        call = f"load({shortened(os.fspath(model))}" if named else "wrap(model"
        raise InputError(reason, remedy=f"pass certcal.models.{call}, {first!r}), or {second!r}") from None
    return predictions_of(network, inputs, weight, progress=progress)


def predictions_of(
    model: Model, inputs: Inputs, weight: Any = None, *, batch: int = _BATCH, progress: Progress = SILENT
) -> Predictions:
    """What a model says about inputs with labels, a batch at a time."""
    answers: list[NDArray[Any]] = []
    progress.stage("predicting", len(inputs), unit="inputs")
    for first in range(0, len(inputs), batch):
        answers.append(model(inputs.inputs[first : first + batch]))
        progress.advance(len(answers[-1]))
    made = Predictions.from_logits if model.outputs == "logits" else Predictions.from_probabilities
    try:
        return _name_arguments({}, lambda: made(np.concatenate(answers), inputs.labels, weight))
    except InputError as error:
        said, logits, _ = error.reason.partition(" (for logits use from_logits)")
        if not logits:
            raise
        reason = f"the model returns no probabilities: {said.partition(';')[0]}"
        raise InputError(reason, argument="outputs", remedy="give 'logits' if they are") from None


_TABLES = "pandas, polars, pyarrow, a mapping"
# How the arguments of Predictions are called by users of arrays and of estimators.
_ARRAYS = {"scores": "y_prob", "probabilities": "y_prob", "outcomes": "y_true", "labels": "y_true"}
_ESTIMATOR = {"scores": "predict_proba", "probabilities": "predict_proba", "outcomes": "y", "labels": "y"}


def _name_arguments(names: Mapping[str, str], make: Callable[[], Predictions]) -> Predictions:
    """Predictions, or an error that names the arguments as the user does."""
    try:
        return make()
    except InputError as error:
        words = r"\b(scores|probabilities|outcomes|labels)(?=\[| has | is )"
        said = re.sub(words, lambda word: names.get(word[0], word[0]), str(error)).replace("sample_weight", "weight")
        raise InputError(said) from None


def _of_classes(
    chances: NDArray[Any],
    codes: NDArray[Any],
    names: Sequence[str],
    what: str,
    weight: Any,
    positive: Any,
    called: Mapping[str, str],
) -> Predictions:
    """Predictions of a column per class; of two columns, binary scores of one of them."""
    if len(names) > 2 and positive is not None:
        raise InputError(f"{what} has {len(names)} classes", argument="positive", remedy="leave it out")
    if len(names) > 2:
        return _name_arguments(called, lambda: Predictions.from_probabilities(chances, codes, weight))
    said, wanted = [outcome(name) for name in names], 1 if positive is None else outcome(positive)
    if wanted is not None and said in ([0, 1], [1, 0]):
        chosen = said.index(wanted)
    elif positive is None:
        chosen = len(names) - 1
    elif class_name(positive) in names:
        chosen = names.index(class_name(positive))
    else:
        raise _no_class("positive", class_name(positive), names, what)
    matrix = chances if len(names) == 1 else probability_matrix(chances, called["probabilities"])
    return _name_arguments(called, lambda: Predictions.from_scores(matrix[:, chosen], codes == chosen, weight))


def _codes(y_true: Any, classes: int, columns: Sequence[str] | None) -> tuple[NDArray[Any], list[str]]:
    """Places of classes among the columns, and their names.

    By the names of columns where these are the classes; else whole numbers below their count as they are, and others in
    sorted order.
    """
    known, inverse = _distinct(y_true, "y_true")
    plain = [str(place) for place in range(classes)]
    unnamed = columns is None or columns in (plain, [f"column_{place}" for place in range(classes)])  # as in polars
    if columns is not None and set(known) <= set(columns):
        order = columns
    elif set(known) <= set(plain) and as_array(y_true, "y_true").dtype.kind in "iuf":
        order = plain
    elif classes == 2 and len(known) == 1 and outcome(known[0]) is not None:  # only one of yes and no
        return np.full(inverse.size, outcome(known[0]), np.int64), plain
    elif not unnamed:
        place = next(place for place, name in enumerate(known) if name not in (columns or ()))
        reason = f"y_true[{int(np.argmax(inverse == place))}] is {known[place]!r}, and no column of y_prob is called so"
        raise InputError(reason, remedy="name the columns as the classes, or pass y_prob.to_numpy() in sorted order")
    elif len(known) != classes:
        some = f"{len(known)} class{'' if len(known) == 1 else 'es'}"
        reason = f"y_true has {some} and y_prob {classes} columns, so which is which is not known"
        raise InputError(reason, remedy=f"give classes as whole numbers from 0 to {classes - 1}")
    elif all(map(_is_number, known)) and known != sorted(known, key=float):
        reason = f"the classes of y_true are numbers as text ({known[0]!r}, {known[1]!r}, …), whose order is another"
        raise InputError(reason, remedy="give them as numbers")
    else:
        order = known
    return np.array([order.index(name) for name in known], np.int64)[inverse], list(order)


def _distinct(values: Any, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """The names of the classes in sorted order of their values, and which of them each sample has."""
    array = as_array(values, name)
    if array.ndim == 0 or array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 1):
        reason = f"{name} has shape {array.shape}"
        raise InputError(reason, remedy="pass one class per sample (of one-hot rows, the argmax)")
    if not array.size:
        raise InputError(f"{name} is empty; pass at least one sample")
    array = array.reshape(-1)
    missing = first_missing(array.tolist()) if array.dtype.kind in "fO" else None
    if missing is not None:
        raise InputError(f"{name}[{missing}] is missing; drop the sample")
    try:
        found, inverse = np.unique(array, return_inverse=True)
    except TypeError:
        raise InputError(f"{name} mixes values that have no order; give classes of one kind") from None
    named = [class_name(each) for each in found.tolist()]
    known = list(dict.fromkeys(named))
    return known, np.array([known.index(each) for each in named], np.int64)[inverse]


def _no_class(where: str, name: str, names: Sequence[str], what: str) -> InputError:
    shown = ", ".join(map(repr, names[:5])) + (" and others" if len(names) > 5 else "")
    return InputError(f"{where} is {name!r}, which is no class of {what}; it knows {shown}")


def _list_once(values: Any, name: str) -> Any:
    """What can be gone through only once as a list; anything else as it is."""
    if isinstance(values, Set):
        raise InputError("a set has no order", argument=name, remedy="pass a list or an array")
    return list(cast("Any", values)) if isinstance(values, Iterator | ValuesView) else values


def _refuse_other_order(**given: Any) -> None:
    """Refuse series of pandas that have the same index in another order: by position they belong to other samples."""
    indexed = [(name, each.index) for name, each in given.items() if hasattr(getattr(each, "index", None), "equals")]
    for name, index in indexed[1:]:
        first, own = indexed[0]
        if len(own) != len(index) or own.equals(index):
            continue
        if set(own) == set(index):
            reason, remedy = f"its index is that of {first} in another order", f"write {name}.loc[{first}.index], or"
        elif any(list(each) == list(range(len(each))) for each in (own, index)):
            continue  # an array became a series: by position
        else:
            reason, remedy = f"its index is not that of {first}", "pass the same rows of both, or"
        raise InputError(reason, argument=name, remedy=f"{remedy} .to_numpy() to go by position")


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def _column_names(frame: Any) -> list[str] | None:
    if not is_table(frame) or _is_array(frame):
        return None
    names = list(map(class_name, _names_in(frame)))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"y_prob has two columns that are called {twice!r}; rename them apart")
    return names


def _are_fractions(values: NDArray[Any]) -> bool:
    inside = values.dtype.kind == "f" and bool(values.size) and bool(np.all((values >= 0) & (values <= 1)))
    return inside and bool(np.mod(values, 1).any())


def _is_model(value: Any) -> bool:
    if is_table(value) or isinstance(value, Mapping):
        return False
    return isinstance(value, str | os.PathLike) or callable(value) or hasattr(value, "predict")


def _one_each(values: NDArray[Any]) -> bool:
    return values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1)


def _is_array(value: Any) -> bool:
    """Whether it is a series, or a frame of one column, although it speaks Arrow as tables do."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return len(cast("Any", shape)) == 1 or shape[1:] == (1,)
    return hasattr(value, "to_numpy") and not hasattr(value, "column_names")


def _is_name(role: str, value: Any) -> bool:
    """Whether a column is named, or those of several classes are, rather than given."""
    listed = role in ("probabilities", "logits") and isinstance(value, list | tuple)
    return isinstance(value, str) or (listed and all(isinstance(each, str) for each in cast("Sequence[Any]", value)))


def _columns_of(table: Any) -> dict[str, Any]:
    return {str(name): table[name] for name in _names_in(table)}


def _names_in(table: Any) -> Any:
    names: Any = getattr(table, "column_names", None) or getattr(table, "columns", None)
    return table if names is None else names
