"""Maps in other languages: SQL, plain Python, Excel and ONNX, each written from the map's one formula.

All of them give what the map gives, to about 1e-12: logarithms and exponentials of other machines differ in their last
digits. A score that is missing, not a number or outside the range of the map gets NULL, #N/A, NaN or an error in
Python, and never a wrong number.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from certcal._base.checks import ABOVE_ONE, InputError
from certcal.calibrators._base import Calibrator, describe
from certcal.calibrators._formulas import ByGroup, ClassFormula, Floats, Formula, Piecewise, ScoreFormula, Term
from certcal.calibrators.scores import LEAST
from certcal.data.grouping import GroupColumn
from certcal.data.pieces import MISSING_GROUP

_SQL = {
    "ln": "LN({0})",
    "logistic": "(1e0 / (1e0 + EXP(-({0}))))",
    "clip": "CASE WHEN {0} < {1} THEN {1} WHEN {0} > {2} THEN {2} ELSE {0} END",
}
_PYTHON = {"ln": "log({0})", "logistic": "(1.0 / (1.0 + exp(-({0}))))", "clip": "min(max({0}, {1}), {2})"}
_EXCEL = {"ln": "LN({0})", "logistic": "(1/(1+EXP(-({0}))))", "clip": "MIN(MAX({0},{1}),{2})"}
_ONNX = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "ln": "Log", "logistic": "Sigmoid", "clip": "Clip"}
LARGEST = float(np.finfo(np.float64).max)
_LONGEST_FORMULA, _LONGEST_CELL, _MOST_CROSSED = 8_192, 32_767, 10_000_000  # of Excel; of a table in ONNX
_OPSET, _IR = 17, 8  # of 2022, with Softmax, Clip and comparisons of float64


def to_sql(calibrator: Any, column: str = "score") -> str:
    """An expression of one column, and of those of the groups, for a SELECT list in standard SQL; NULL in, NULL out.

    Spaces around the text of a group do not matter; whole numbers in a column of texts have no point.

    Examples
    --------
    >>> from certcal.calibrators import HistogramBinning
    >>> fitted = HistogramBinning(bins=2).fit([0.1, 0.3, 0.6, 0.8], [0, 1, 1, 1])
    >>> print(to_sql(fitted), end="")
    -- HistogramBinning(bins=2, closed='left'), written by certcal: 2 steps.
    -- NULL where the score is NULL or not from 0 to 1. SQL Server: LOG for LN.
    CASE WHEN "score" >= 0.0e0 AND "score" <= 1.0e0 THEN
    CASE
      WHEN "score" < 0.5e0 THEN 0.5e0
      ELSE 1.0e0
    END
    END AS "score_calibrated"
    """
    if not column or "\0" in column:
        raise InputError(f"column is {column!r}; pass the name of a column")
    found = _score_formula(calibrator)
    name, after = map(_identifier, (column, f"{column}_calibrated"))

    def groups(each: ByGroup) -> str:
        cases = "".join(
            f"\n  WHEN {' AND '.join(map(_sql_group, each.columns, places))} THEN {_sql(value)}"
            for places, value in zip(each.places, each.numbers, strict=True)
        )
        return f"CASE{cases}\n  ELSE 0e0\nEND" if cases else "0e0"

    def pieces(each: Piecewise, place: str) -> str:
        below = "<" if each.closed == "left" else "<="
        values = [
            _polynomial([*map(_sql, row if row[1:].any() else row[:1])], f"(({place} - {_sql(start)}) / {_sql(width)})")
            for start, width, row in zip(each.start, each.width, each.coefficients, strict=True)
        ]
        pairs = zip(each.edges, values, strict=False)
        cases = "".join(f"\n  WHEN {place} {below} {_sql(edge)} THEN {value}" for edge, value in pairs)
        return f"CASE{cases}\n  ELSE {values[-1]}\nEND"

    return (
        f"-- {_about(calibrator, found)}\n"
        f"-- NULL where the score is NULL or not from {found.least:g} to {found.most:g}. SQL Server: LOG for LN.\n"
        f"CASE WHEN {name} >= {_sql(found.least)} AND {name} <= {_sql(found.most)} THEN\n"
        f"{_render(found.value, _SQL, name, _sql, groups, pieces)}\nEND AS {after}\n"
    )


def to_python(calibrator: Any) -> str:
    """A module that needs the standard library alone: ``calibrate`` takes a score, or the scores of all classes.

    Of a map by group it takes the score and the values of the columns of the groups, in their order.

    Examples
    --------
    >>> from certcal.calibrators import PlattScaling
    >>> fitted, made = PlattScaling().fit([0.6, 0.7, 0.8, 0.9], [0, 1, 0, 1]), {}
    >>> exec(to_python(fitted), made)
    >>> abs(made["calibrate"](0.7) - fitted(0.7)) < 1e-12
    True
    """
    found = formula_of(calibrator)
    tables: list[str] = []

    columns = list(_group_columns(calibrator))

    def table(*parts: Any) -> str:
        tables.append(f"TABLE_{len(tables)} = {parts!r}")
        return f"*TABLE_{len(tables) - 1}"

    def groups(each: ByGroup) -> str:
        cuts = [(columns.index(own.name), list(own.names), list(own.starts)) for own in each.columns]
        return f"_of_group(groups, {table(cuts, dict(zip(each.places, each.numbers, strict=True)))})"

    def pieces(each: Piecewise, place: str) -> str:
        side = "right" if each.closed == "left" else "left"
        parts = (values.tolist() for values in (each.edges, each.start, each.width, each.coefficients))
        return f"_piece({place}, bisect_{side}, {table(*parts)})"

    tail = f"; expected one value each of {', '.join(map(repr, columns))}"
    wrong = f'raise ValueError("groups are " + repr(groups) + {tail!r})'
    check = f"    if len(groups) != {len(columns)}:\n        {wrong}\n" if columns else ""

    def function(name: str, each: ScoreFormula) -> str:
        value = _render(each.value, _PYTHON, "score", repr, groups, pieces)
        return _FUNCTION.format(name, float(each.least), float(each.most), value, ", *groups" if columns else "", check)

    if isinstance(found, ScoreFormula):
        body = function("calibrate", found)
    else:
        maps = {**dict(enumerate(found.each)), **found.tops, **({} if found.top is None else {-1: found.top})}
        body = "".join(function(f"_map_{key}".replace("-1", "top"), each) for key, each in maps.items())
        names = ", ".join(f"{key}: _map_{key}".replace(" _map_-1", " _map_top") for key in maps)
        linear, intercept = found.linear.tolist(), found.intercept.tolist()
        body += f"\nINPUTS, CLASSES, LEAST, ABOVE_ONE = {found.inputs!r}, {found.classes}, {LEAST!r}, {ABOVE_ONE!r}\n"
        body += f"LINEAR, INTERCEPT, FLOOR = {linear!r}, {intercept!r}, {found.floor!r}\nMAPS = {{{names}}}\n{_CLASSES}"
        body += _PER_CLASS if found.each else _AFFINE if found.top is None else _TOP
    return "\n".join([f"# {_about(calibrator, found)}", _HEAD, *([_OF_GROUP] if columns else []), *tables, body])


def to_excel(calibrator: Any) -> bytes:
    """A workbook: scores in column A, a formula in column B to be filled down, steps or lines in the sheet "map".

    Excel compares numbers by 15 digits, so a score closer than that to the edge of a step may be on its other side.
    """
    try:
        from openpyxl import Workbook
    except ImportError:
        raise InputError("workbooks need openpyxl; run: pip install 'certcal[excel]'") from None
    found = _score_formula(calibrator)
    book: Any = Workbook()
    sheet, table = book.active, book.create_sheet("map")

    columns = list(_group_columns(calibrator))

    def array(name: str, values: Sequence[Any] | Floats) -> str:
        column = table.max_column + (table.cell(1, 1).value is not None)
        for row, value in enumerate((name, *values), 1):
            cell = table.cell(row, column)
            if isinstance(value, str):
                _write_text(cell, value)
            else:  # as a number openpyxl would round it to 16 digits
                cell.value, cell.data_type = repr(float(value)), "n"
        return f"map!${_letter(column)}$2:${_letter(column)}${len(values) + 1}"

    def matches(own: GroupColumn, places: Sequence[int]) -> str:
        """Which of the rows have the value of a column: ranges by their number, all others by their exact text."""
        cell = f"{_letter(2 + columns.index(own.name))}2"
        names = array(own.name, [own.names[place] for place in places])
        text = cell if any("  " in name for name in own.names) else f"TRIM({cell})"
        blank = f'(EXACT({names},"{MISSING_GROUP}")*ISBLANK({cell}))'
        if not own.starts:
            numbers = f"(EXACT({names},{text})*(1-ISBLANK({cell})))"
            return f"({numbers}+{blank})"
        starts = array(f"{own.name} from", np.array([-1e300, *own.starts[1:]]))
        at = array(f"{own.name} range", np.array([place + 1.0 for place in places]))
        number = f"IF(ISNUMBER({cell}),MATCH({cell},{starts},1),0)"
        return f"(({at}={number})+EXACT({names},{text})*ISTEXT({cell})*({at}>{len(own.starts)})+{blank})"

    def groups(each: ByGroup) -> str:
        if not each.numbers:
            return "0"
        own = [matches(column, [one[k] for one in each.places]) for k, column in enumerate(each.columns)]
        return f"SUMPRODUCT({'*'.join(own)}*{array('number', np.array(each.numbers))})"

    def pieces(each: Piecewise, place: str) -> str:
        edges = each.edges if each.closed == "left" else np.nextafter(each.edges, np.inf)
        piece = f"MATCH({place},{array('from', np.append(-1e300, edges))},1)"
        powers = [f"INDEX({array(f'power {k}', column)},{piece})" for k, column in enumerate(each.coefficients.T)]
        ends = (f"INDEX({array(name, getattr(each, name))},{piece})" for name in ("start", "width"))
        return powers[0] if len(powers) == 1 else _polynomial(powers, "(({}-{})/{})".format(place, *ends))

    value = _render(found.value, _EXCEL, "A2", lambda number: repr(float(number)), groups, pieces)
    known = f"IF(ISNUMBER(A2),AND(A2>={float(found.least)!r},A2<={float(found.most)!r}),FALSE)"
    sheet.title = "scores"
    formula = f'=IF(ISBLANK(A2),"",IF({known},{value},NA()))'
    if len(formula) > _LONGEST_FORMULA:
        reason = f"the formula has {len(formula):,} characters, and Excel takes {_LONGEST_FORMULA:,}"
        raise InputError(reason, argument="to", remedy="choose sql, python or onnx")
    heads = ("score", *columns, "calibrated", _about(calibrator, found))
    for place, head in enumerate(heads, 1):
        _write_text(sheet.cell(1, place), head)
    sheet.cell(2, 1, 0.5)
    sheet.cell(2, 2 + len(columns), formula)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _letter(column: int) -> str:
    from openpyxl.utils import get_column_letter

    return get_column_letter(column)


def _write_text(cell: Any, value: str) -> None:
    """A text as it stands, also one that begins as a formula does."""
    from openpyxl.utils.exceptions import IllegalCharacterError

    try:
        cell.value = value
    except IllegalCharacterError:
        raise InputError(f"{value[:80]!r} holds a character that no workbook can hold", argument="to") from None
    if len(value) > _LONGEST_CELL:
        raise InputError(f"{value[:80]!r} … is longer than a cell of a workbook", argument="to")
    cell.data_type = "s"


def to_onnx(calibrator: Any) -> bytes:
    """An ONNX model in float64: "scores" of n rows (and one column per class), "calibrated" of the same shape.

    A map by group has one more input per column: "group_0" and so on, numbers where the column was cut into ranges and
    strings elsewhere; their documentation has the names of the columns. What is missing is NaN or an empty string.
    Strings have no spaces around them, and whole numbers no point.
    """
    try:
        from onnx import TensorProto, checker
        from onnx import helper as helpers
    except ImportError:
        raise InputError("ONNX models need the package onnx; run: pip install 'certcal[onnx]'") from None
    found, graph = formula_of(calibrator), _Graph(_group_columns(calibrator))
    if isinstance(found, ScoreFormula):
        value, shape = graph.score_map(found, "scores"), ["n"]
    else:
        value, shape = graph.class_map(found, "scores"), ["n", found.classes]
    graph.add("Identity", value, output="calibrated")
    helper, check = cast("Any", helpers), cast("Any", checker)
    ends = [[helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)] for name in ("scores", "calibrated")]
    for each in graph.columns.values():
        kind = TensorProto.DOUBLE if each.starts else TensorProto.STRING
        place = _group_columns(calibrator).index(each.name)
        ends[0].append(helper.make_tensor_value_info(f"group_{place}", kind, ["n"], f"column {each.name!r}"))
    used = {name for node in graph.nodes for name in node.input}
    constants = [each for each in graph.constants if each.name in used]
    made = helper.make_graph(graph.nodes, "map", *ends, constants, doc_string=_about(calibrator, found))
    opset = [helper.make_opsetid("", _OPSET), *([helper.make_opsetid("ai.onnx.ml", 2)] if graph.columns else [])]
    model = helper.make_model(made, producer_name="certcal", ir_version=_IR, opset_imports=opset)
    check.check_model(model, full_check=True)
    return model.SerializeToString()


WRITERS: Mapping[str, Callable[..., str | bytes]] = {
    "sql": to_sql,
    "python": to_python,
    "excel": to_excel,
    "onnx": to_onnx,
}


def formula_of(calibrator: Any) -> Formula:
    """What a fitted map computes."""
    if not isinstance(calibrator, Calibrator):
        raise InputError(f"a {type(calibrator).__name__} cannot be exported; pass a map of certcal.calibrators")
    calibrator._require_fitted()  # pyright: ignore[reportPrivateUsage]
    return calibrator._formula()  # pyright: ignore[reportPrivateUsage]


def _score_formula(calibrator: Any) -> ScoreFormula:
    found = formula_of(calibrator)
    if isinstance(found, ClassFormula):
        reason = f"a {type(calibrator).__name__} needs the scores of all classes, which are no single column"
        raise InputError(reason, argument="to", remedy="choose python or onnx")
    return found


def _render(
    term: Term,
    words: Mapping[str, str],
    score: str,
    number: Callable[[float], str],
    groups: Callable[[ByGroup], str],
    pieces: Callable[[Piecewise, str], str],
) -> str:
    """A term as text: an operation by its words, or as it is called between its parts."""
    if term.operation == "score":
        return score
    if isinstance(term, ByGroup):
        return groups(term)
    parts = [_render(part, words, score, number, groups, pieces) for part in term.parts]
    values = [number(value) for value in term.values]
    if isinstance(term, Piecewise):
        return pieces(term, parts[0])
    if term.operation in words:
        return words[term.operation].format(*parts, *values)
    return values[0] if term.operation == "number" else f"({parts[0]} {term.operation} {parts[1]})"


def _polynomial(coefficients: list[str], place: str) -> str:
    *lower, value = coefficients
    for each in reversed(lower):
        value = f"({each} + {place} * {value})"
    return value


def _group_columns(calibrator: Any) -> tuple[str, ...]:
    """The columns of groups that a map needs besides the score."""
    return getattr(calibrator, "group_columns", ())


def _identifier(name: str) -> str:
    if "\0" in name:
        raise InputError(f"{name!r} is no name of a column", argument="to", remedy="choose python")
    return '"' + name.replace('"', '""') + '"'


def _sql_group(own: GroupColumn, place: int) -> str:
    """A condition on the value of a column; texts are literals, whatever is in them."""
    column, name, last = _identifier(own.name), own.names[place], len(own.starts) - 1
    if place <= last:
        parts = [f"{column} >= {_sql(own.starts[place])}"] if place else []
        most = f"< {_sql(own.starts[place + 1])}" if place < last else f"<= {_sql(LARGEST)}"  # NaN is above all numbers
        return " AND ".join([*parts, f"{column} {most}"])
    numbers = {at: value for value, at in own.numbers.items()}
    words = [each for each in own.words if each != MISSING_GROUP]
    if name == MISSING_GROUP:
        same = [] if len(numbers) == len(words) or own.starts else [f"TRIM({column}) = '{MISSING_GROUP}'"]
        return f"({' OR '.join([f'{column} IS NULL', *same])})"
    if "\0" in name:
        raise InputError(f"the group {name!r} is no text in SQL", argument="to", remedy="choose python")
    if len(numbers) == len(words):
        return f"{column} = {_sql(numbers[place])}"
    text = name.replace("'", "''")
    return f"{column} = '{text}'" if name.lower() in ("true", "false") else f"TRIM({column}) = '{text}'"


def _sql(value: float) -> str:
    """A number that no dialect takes for a decimal of few digits."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _about(calibrator: Any, found: Formula) -> str:
    """What the map is, on one line, whatever is in its parameters."""
    return " ".join(f"{describe(calibrator)}, written by certcal: {found.words}.".split())


class _Graph:
    """Nodes and constants of an ONNX graph; every method returns the name of what it computes."""

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.names = columns
        self.columns: dict[str, GroupColumn] = {}
        """Columns of groups that the graph uses."""

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = output or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, values: Any, kind: Any = np.float64) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def score_map(self, found: ScoreFormula, score: str) -> str:
        return self.inside(self.term(found.value, score), score, found.least, found.most)

    def inside(self, value: str, score: str, least: float, most: float) -> str:
        """A value, and NaN where the score is not in its range, as NaN never is."""
        above = self.add("GreaterOrEqual", score, self.constant(least))
        below = self.add("LessOrEqual", score, self.constant(most))
        return self.add("Where", self.add("And", above, below), value, self.constant(np.nan))

    def term(self, term: Term, score: str) -> str:
        if term.operation == "score":
            return score
        if term.operation == "number":
            return self.constant(term.values[0])
        if isinstance(term, ByGroup):
            return self.by_group(term)
        parts = [self.term(part, score) for part in term.parts]
        if isinstance(term, Piecewise):
            return self.pieces(term, parts[0])
        return self.add(_ONNX[term.operation], *parts, *map(self.constant, term.values))

    def pieces(self, term: Piecewise, place: str) -> str:
        axis = self.constant([1], np.int64)
        below = "LessOrEqual" if term.closed == "left" else "Less"
        passed = self.add(below, self.constant(term.edges[None, :]), self.add("Unsqueeze", place, axis))
        piece = self.add("ReduceSum", self.add("Cast", passed, to=7), axis, keepdims=0)  # 7: int64
        value, *others = (self.add("Gather", self.constant(each), piece) for each in term.coefficients.T[::-1])
        if others:
            start, width = (self.add("Gather", self.constant(each), piece) for each in (term.start, term.width))
            part = self.add("Div", self.add("Sub", place, start), width)
            for each in others:
                value = self.add("Add", each, self.add("Mul", part, value))
        return value

    def by_group(self, term: ByGroup) -> str:
        """The number of each row's group, found by the places of its values, and 0 where there is none."""
        code = self.constant(0, np.int64)
        size = 1
        for own in term.columns:
            known = self.constant(len(own.names) + 1, np.int64)
            code = self.add("Add", self.add("Mul", code, known), self.place(own))
            size *= len(own.names) + 1
        if size > _MOST_CROSSED:
            raise InputError(f"a crossing of {size:,} groups is too large for ONNX", argument="to", remedy="choose sql")
        table = np.zeros(size)
        for places, value in zip(term.places, term.numbers, strict=True):
            where = 0
            for own, place in zip(term.columns, places, strict=True):
                where = where * (len(own.names) + 1) + place + 1
            table[where] = value
        return self.add("Gather", self.constant(table), code)

    def place(self, own: GroupColumn) -> str:
        """One more than the place of each row's value among the names of a column; 0 for others."""
        self.columns[own.name] = own
        given = f"group_{self.names.index(own.name)}"
        if not own.starts:
            places = {name: place for place, name in enumerate(own.names, 1)}
            places |= {"": places[MISSING_GROUP]} if MISSING_GROUP in places and "" not in places else {}
            keys: Any = {"keys_strings": list(places), "values_int64s": list(places.values()), "default_int64": 0}
            return self.add("LabelEncoder", given, domain="ai.onnx.ml", **keys)
        axis, edges = self.constant([1], np.int64), self.constant(np.array(own.starts[1:])[None, :])
        passed = self.add("LessOrEqual", edges, self.add("Unsqueeze", given, axis))
        found = self.add("ReduceSum", self.add("Cast", passed, to=7), axis, keepdims=0)
        found = self.add("Add", found, self.constant(1, np.int64))
        missing = own.names.index(MISSING_GROUP) + 1 if MISSING_GROUP in own.words else 0
        return self.add("Where", self.add("IsNaN", given), self.constant(missing, np.int64), found)

    def class_map(self, found: ClassFormula, scores: str) -> str:
        logits, rows, least = found.inputs == "logits", self.constant([1], np.int64), self.constant(LEAST)
        one, nought = self.constant(1.0), self.constant(0.0)
        if not logits:
            scores = self.add("Min", self.inside(scores, scores, 0.0, 1.0 + ABOVE_ONE), one)
        if found.linear.size:
            if not logits:
                scores = self.add("Log", self.add("Max", scores, self.constant(found.floor)))
            by = self.constant(found.linear.T)
            moved = self.add("MatMul" if found.linear.ndim == 2 else "Mul", scores, by)
            moved = self.add("Add", moved, self.constant(found.intercept))
            return self.add("Max", self.add("Softmax", moved, axis=1), least)
        p = self.add("Softmax", scores, axis=1) if logits else scores
        if found.each:
            columns = [self.add("Gather", p, self.constant(k, np.int64), axis=1) for k in range(found.classes)]
            mapped = [self.score_map(each, column) for each, column in zip(found.each, columns, strict=True)]
            parts = self.add("Concat", *(self.add("Unsqueeze", each, rows) for each in mapped), axis=1)
            parts = self.add("Where", self.add("Equal", self.add("ReduceSum", parts, rows), nought), p, parts)
            return self.add("Div", parts, self.add("ReduceSum", parts, rows))
        assert found.top is not None
        top = self.add("ArgMax", scores, axis=1, keepdims=0)
        hot = self.add("Equal", self.add("Unsqueeze", top, rows), self.constant(np.arange(found.classes), np.int64))
        confidence = self.add("ReduceSum", self.add("Where", hot, p, nought), rows, keepdims=0)
        value = self.score_map(found.top, confidence)
        for k, each in found.tops.items():
            mine = self.add("Equal", top, self.constant(k, np.int64))
            value = self.add("Where", mine, self.score_map(each, confidence), value)
        others = self.add("Where", hot, nought, p)
        empty = self.add("Equal", self.add("ReduceSum", others, rows), nought)
        others = self.add("Where", empty, self.add("Where", hot, nought, one), others)
        known = self.add("Mul", self.add("ReduceSum", p, rows), nought)  # 0, or NaN where some score is
        value = self.add("Add", self.add("Unsqueeze", value, rows), known)
        share = self.add("Div", self.add("Sub", one, value), self.add("ReduceSum", others, rows))
        return self.add("Where", hot, value, self.add("Mul", others, share))


_HEAD = """from bisect import bisect_left, bisect_right
from math import exp, log


def _piece(place, bisect, edges, start, width, coefficients):
    k = bisect(edges, place)
    part, value = (place - start[k]) / width[k], 0.0
    for each in reversed(coefficients[k]):
        value = value * part + each
    return value

"""
_OF_GROUP = """from re import fullmatch

_NUMBER = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?"


def _place(value, names, starts):
    missing = value is None or value != value or (value == "" and "" not in names)
    name = "(missing)" if missing else str(value).strip()
    if isinstance(value, bool):
        names, name = [each.lower() for each in names], name.lower()
    elif not missing and (isinstance(value, float) or fullmatch(_NUMBER, name)):
        number = float(value)
        if starts:
            return max(bisect_right(starts, number) - 1, 0)
        if abs(number) < 2**53 and number == int(number) and (isinstance(value, float) or "." in name):
            name = str(int(number))
    return names.index(name, len(starts)) if name in names[len(starts):] else -1


def _of_group(values, cuts, numbers):
    return numbers.get(tuple(_place(values[k], names, starts) for k, names, starts in cuts), 0.0)

"""
_FUNCTION = """
def {0}(score{4}):
{5}    if not {1!r} <= score <= {2!r}:
        raise ValueError(f"score is {{score!r}}; expected a number from {1:g} to {2:g}")
    return {3}

"""
_CLASSES = """

def _softmax(logits):
    most = max(logits)
    powers = [exp(each - most) for each in logits]
    total = sum(powers)
    return [each / total for each in powers]


def _checked(scores):
    least, most = (0.0, 1.0 + ABOVE_ONE) if INPUTS == "probabilities" else (-1e308, 1e308)
    if len(scores) != CLASSES or not all(least <= each <= most for each in scores):
        raise ValueError(f"scores are {scores!r}; expected {CLASSES} {INPUTS}")
    return [min(float(each), 1.0) if INPUTS == "probabilities" else float(each) for each in scores]

"""
_AFFINE = """
def calibrate(scores):
    x = _checked(scores)
    if INPUTS == "probabilities":
        x = [log(max(each, FLOOR)) for each in x]
    if isinstance(LINEAR[0], list):
        x = [sum(factor * each for factor, each in zip(row, x)) for row in LINEAR]
    else:
        x = [factor * each for factor, each in zip(LINEAR, x)]
    return [max(each, LEAST) for each in _softmax([each + shift for each, shift in zip(x, INTERCEPT)])]
"""
_PER_CLASS = """
def calibrate(scores):
    p = _checked(scores)
    p = _softmax(p) if INPUTS == "logits" else p
    mapped = [MAPS[k](each) for k, each in enumerate(p)]
    mapped = mapped if sum(mapped) else p
    total = sum(mapped)
    return [each / total for each in mapped]
"""
_TOP = """
def calibrate(scores):
    p = _checked(scores)
    top = p.index(max(p))
    p = _softmax(p) if INPUTS == "logits" else p
    value = MAPS.get(top, MAPS[-1])(p[top])
    others = [0.0 if k == top else each for k, each in enumerate(p)]
    others = others if sum(others) else [float(k != top) for k in range(CLASSES)]
    share = (1 - value) / sum(others)
    return [value if k == top else each * share for k, each in enumerate(others)]
"""
