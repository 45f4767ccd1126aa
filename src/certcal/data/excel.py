"""Excel workbooks (.xlsx): a sheet as a table, as named or the first of several columns."""

from __future__ import annotations

import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from certcal._base.checks import InputError
from certcal._base.text import counted, did_you_mean
from certcal.data.formats import Kind, OpenTable, TableColumn, check_column_count, check_memory, damaged
from certcal.data.reading import Reading, header_row
from certcal.data.text import MISSING, json_column, json_kind

_FIRST_ROWS, _SHOWN = 1000, 10


class ExcelTable(OpenTable):
    """A sheet of a workbook, by its name or the first of two columns or more; what formulas gave when saved counts."""

    def __init__(self, file: Path, path: Path, how: Reading) -> None:
        self.file, self.path, self.how = file, path, how
        if how.encoding is not None:
            raise InputError("it is for text files", argument="encoding", remedy="leave it out")
        self.rows = None
        with self._workbook() as book:
            self.sheets = tuple(sheet.title for sheet in book.worksheets)
            named = how.sheet is not None
            if named and how.sheet not in self.sheets:
                near = did_you_mean(how.sheet, self.sheets, f"the sheets are {names_of(self.sheets)}")
                raise InputError(f"there is no sheet {how.sheet!r} in {path}", argument="sheet", remedy=near)
            tables = (self.sheets.index(how.sheet),) if named else ()
            tables = tables or (place for place, sheet in enumerate(book.worksheets) if _is_table(sheet))
            self._sheet = next(iter(tables), 0)
        first = [row for _, row in zip(range(_FIRST_ROWS), self._cells(), strict=False)]
        filled = [place for place, row in enumerate(first) if any(cell is not None for cell in row)]
        if not filled:
            raise InputError(
                f"{path}: its sheet {self.sheets[self._sheet]!r} is empty; it needs column names and at least one row"
            )
        texts = [["" if cell is None else str(cell) for cell in _without_end(first[place])] for place in filled]
        self._above = filled[header_row(texts)] if how.skip is None else how.skip
        names = ["" if cell is None else str(cell).strip() for cell in first[self._above : self._above + 1][0]]
        check_column_count(path, len(names))
        kinds: list[Kind] = ["unknown"] * len(names)
        for row in first[self._above + 1 :]:
            for place, cell in enumerate(row[: len(names)]):
                if kinds[place] == "unknown" and cell is not None:
                    kinds[place] = json_kind(cell)
        self._places = {name: place for place, name in reversed(list(enumerate(names))) if name}
        self.columns = tuple(TableColumn(name, kind) for name, kind in zip(names, kinds, strict=True) if name)
        several = len(self.sheets) > 1
        self.sheet = self.sheets[self._sheet]
        said = [f"sheet {self.sheet!r} of {names_of(self.sheets)}" + (" (choose with sheet)" * (not named))] * several
        said += [f"{counted(self._above, 'line')} above the column names skipped"] if self._above else []
        self.notes = tuple(said)
        self.decimal = ","

    def read_as(self, how: Reading) -> OpenTable:
        """The file, read from another line on."""
        return self if how == self.how else ExcelTable(self.file, self.path, how)

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        from certcal.data.arrow import pa

        held: list[tuple[Any, ...]] = []
        rows = self._cells()
        for _ in range(self._above + 1):
            next(rows, None)
        for row in rows:
            if all(cell is None for cell in row):
                continue
            held.append(tuple(row[self._places[name]] if self._places[name] < len(row) else None for name in columns))
            if len(held) == size:
                yield pa.RecordBatch.from_arrays([json_column(list(each)) for each in zip(*held, strict=True)], columns)
                held.clear()
        if held:
            yield pa.RecordBatch.from_arrays([json_column(list(each)) for each in zip(*held, strict=True)], columns)

    def _cells(self) -> Iterator[tuple[Any, ...]]:
        with self._workbook() as book:
            for row in book.worksheets[self._sheet].iter_rows(values_only=True):
                yield tuple(None if isinstance(cell, str) and cell.strip() in MISSING else cell for cell in row)

    @contextmanager
    def _workbook(self) -> Generator[Any, None, None]:
        try:
            library: Any = import_module("openpyxl")
        except ImportError:
            raise InputError(f"{self.path}: Excel files need openpyxl; run: pip install 'certcal[excel]'") from None
        try:
            with zipfile.ZipFile(self.file) as archive:
                needed = sum(member.file_size for member in archive.infolist())
            check_memory(self.path, needed, "export it as CSV", limit=self.memory)
            book = library.load_workbook(self.file, read_only=True, data_only=True)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # whatever a damaged or hostile file makes the library raise
            raise InputError(damaged(self.path, "Excel file", error)) from error
        try:
            if not book.worksheets:
                raise InputError(f"{self.path}: the workbook has no sheet of cells; export it as CSV")
            yield book
        except (InputError, MemoryError, GeneratorExit):
            raise
        except Exception as error:
            raise InputError(damaged(self.path, "Excel file", error)) from error
        finally:
            book.close()


def names_of(sheets: Sequence[str]) -> str:
    """Names of sheets, the first of them where there are many."""
    more = f" and {len(sheets) - _SHOWN} more" if len(sheets) > _SHOWN else ""
    return f"{', '.join(map(repr, sheets[:_SHOWN]))}{more}"


def _is_table(sheet: Any) -> bool:
    """Whether one of its first rows has two cells."""
    first = sheet.iter_rows(max_row=_FIRST_ROWS, values_only=True)
    return any(sum(cell is not None for cell in row) > 1 for row in first)


def _without_end(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[: max(place for place, cell in enumerate(row) if cell is not None) + 1]
