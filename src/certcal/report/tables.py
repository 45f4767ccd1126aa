"""Tables of a report as Markdown and LaTeX, for papers and pages of others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from certcal._base.checks import InputError
from certcal.report.document import Heading, Table

_COMMANDS = {
    **{letter: f"\\{letter}" for letter in "%&#_$"},
    **{"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"–": "--", "—": "---", "…": r"\dots{}", "\u00a0": "~", "<": r"\textless{}", ">": r"\textgreater{}"},
}
_MATHS = {
    **{"−": "-", "±": r"\pm", "≤": r"\le", "≥": r"\ge", "×": r"\times", "∞": r"\infty", "ℓ": r"\ell", "→": r"\to"},
    **{"α": r"\alpha", "β": r"\beta", "δ": r"\delta", "ε": r"\epsilon", "η": r"\eta", "λ": r"\lambda", "τ": r"\tau"},
    **{"σ": r"\sigma", "ω": r"\omega", "ŷ": r"\hat y", "²": "^2", "₁": "_1", "₂": "_2", "√": r"\surd", "·": r"\cdot"},
}


def as_markdown(tables: Iterable[Table]) -> str:
    """Tables as Markdown, each below its caption.

    Examples
    --------
    >>> from certcal.report.document import Column
    >>> print(as_markdown([Table([Column("metric"), Column("value", "estimate")], [["ece", -0.5]], "All rows")]))
    All rows:
    <BLANKLINE>
    | metric | value |
    |---|---:|
    | ece | −0.5000 |
    <BLANKLINE>
    """
    lines: list[str] = []
    for table in tables:
        head = [column.title for column in table.columns]
        marks = ["---:" if column.is_number else "---" for column in table.columns]
        lines += [f"{table.caption}:", ""] if table.caption else []
        lines += [_row_of_markdown(head), f"|{'|'.join(marks)}|"]
        lines += [_row_of_markdown(row) for row in _rows(table)]
        lines += ["", *([table.rest, ""] if table.rest else [])]
    return "\n".join(lines)


def as_latex(tables: Iterable[Table]) -> str:
    r"""Tables as LaTeX with booktabs, each below its caption as a comment.

    Examples
    --------
    >>> from certcal.report.document import Column
    >>> print(as_latex([Table([Column("bound"), Column("ECE", "bound", "upper")], [["a_b", 0.03971]], "All rows")]))
    % \usepackage{booktabs}
    % All rows
    \begin{tabular}{lr}
    \toprule
    bound & ECE~$\le$ \\
    \midrule
    a\_b & 0.0398 \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    lines = [r"% \usepackage{booktabs}"]
    for table in tables:
        ends = "".join("r" if column.is_number else "l" for column in table.columns)
        lines += [f"% {' '.join(table.caption.split())}"] if table.caption else []
        lines += [rf"\begin{{tabular}}{{{ends}}}", r"\toprule", _row_of_latex(c.title for c in table.columns)]
        lines += [r"\midrule", *map(_row_of_latex, _rows(table)), r"\bottomrule", r"\end{tabular}"]
        lines += [f"% {table.rest}"] if table.rest else []
    return "\n".join(lines) + "\n"


def tex(text: str) -> str:
    r"""A text as LaTeX: letters that are commands are escaped, signs and Greek letters are mathematics.

    Examples
    --------
    >>> print(tex("σ = −0.5 at 5 % & {a_b}"))
    $\sigma$ = $-$0.5 at 5 \% \& \{a\_b\}
    """
    made = "".join(_COMMANDS.get(letter) or (f"${_MATHS[letter]}$" if letter in _MATHS else letter) for letter in text)
    return "".join(letter for letter in made if letter.isprintable())


def tables_as(form: str, tables: Sequence[Table]) -> str:
    """The content of a .md or .tex file."""
    if not tables:
        raise InputError("this answer has no table; save it as a page (.html), a text (.txt) or numbers (.json, .csv)")
    return as_markdown(tables) if form == ".md" else as_latex(tables)


def _rows(table: Table) -> list[list[str]]:
    """Cells as texts; a heading is a row of its own."""
    rest = [""] * (len(table.columns) - 1)
    return [[row.text, *rest] if isinstance(row, Heading) else row for row in table.texts()]


def _row_of_latex(cells: Iterable[str]) -> str:
    return rf"{' & '.join(map(tex, cells))} \\"


def _row_of_markdown(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escape, cells))} |"


def _escape(text: str) -> str:
    """Marks of Markdown and of HTML as letters."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\|`*\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", plain)
