"""Tables of certified values for a terminal, as rich renderables. All texts arrive rounded in the safe direction.

Everything reads without colour, in 80 columns, and in plain ASCII where the terminal cannot show more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from certcal._text import printable
from certcal.claims import Bound, round_outward, short_text
from certcal.report._old_terminal import frame
from certcal.report.results import Line, Method
from certcal.worst_case import CertifiedSummary, Information

UNDEFINED = "undefined"

# Terms of a population bound, and what they are for.
TERMS = {
    "empirical worst case": "on these samples",
    "deviation": "chance of the draw",
    "certificate failures": "intervals that fail",
}

_SECTIONS = (
    (
        "Proper scores",
        {
            "brier_score": "Brier score",
            "skill": "skill over one constant",
            "best_skill": "skill of the best monotone map",
            "nll": "log loss",
        },
    ),
    (
        "Calibration error",
        {
            "calibration_error": "ECE, {bins} bins, exactly",
            "mce": "MCE, the largest gap of a bin",
            "ks_error": "Kolmogorov–Smirnov, no bins",
        },
    ),
)


def summary_table(summary: CertifiedSummary) -> Table:
    """Everything that is certified about one set of samples.

    Parameters
    ----------
    summary
        From :func:`certcal.worst_case.certify`.

    Examples
    --------
    >>> from certcal.worst_case import certify
    >>> console = Console(width=80, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(summary_table(certify([0.513, 0.217], [0.771, 0.433], [1, 0])))
    >>> [" ".join(line.split()) for line in shown.get().splitlines() if "Brier" in line]
    ['Brier score 0.0497 0.2124']
    """
    both = summary.n_certified < summary.n
    table = frame()
    table.add_column("\nclaim" if both else "claim", min_width=33)
    for header in (
        ("certified\nat least", "\nat most", "all\nat least", "\nat most") if both else ("at least", "at most")
    ):
        table.add_column(header, justify="right", no_wrap=True)

    def row(name: str, lowest: str = "", highest: str = "", all_lowest: str = "", all_highest: str = "") -> None:
        table.add_row(f"  {name}", lowest, highest, *([all_lowest, all_highest] if both else []))

    table.add_row(Text("Accuracy", style="bold"))
    row("certified accuracy", *(["", "", summary.accuracy.text] if both else [summary.accuracy.text]))
    for title, members in _SECTIONS:
        table.add_section()
        table.add_row(Text(title, style="bold"))
        for key, name in members.items():
            if key in summary.information.values:
                row(name, summary.information.values[key].text)
                continue
            ranges = summary[key]
            highest = UNDEFINED if ranges.worst is None else ranges.worst.text
            row(name.format(**summary.settings), ranges.lowest_text or "", highest, "", ranges.worst_all.text)
    table.add_section()
    table.add_row(Text("The same ECE in the population", style="bold"))
    bounds = (summary.population, summary.population_all)
    certified, everything = (None if bound is None else bound.text for bound in bounds)
    level = short_text(summary.settings["delta"], "upper")
    row(f"each except with probability {level}", "", certified or UNDEFINED, "", everything or "")
    for sign, (term, name) in zip("=++", TERMS.items(), strict=True):
        row(f"  {sign} {name}", "", _term(summary.population, term), "", _term(summary.population_all, term))
    return table


def terms_text(bound: Bound) -> str:
    """The terms of a population bound in one line, each rounded up.

    Examples
    --------
    >>> terms = {"empirical worst case": 0.25, "deviation": 0.125, "certificate failures": 0.0}
    >>> terms_text(Bound("ece", 0.375, "upper", 0.05, 9, (), terms))
    '0.2500 on these samples + 0.1250 chance of the draw + 0.0000 intervals that fail'
    """
    return " + ".join(f"{_term(bound, term)} {name}" for term, name in TERMS.items())


def verdict_text(information: Information, radius: str | None) -> str:
    """What survives, in words, with the parts of the certified Brier score: each rounded to its safe side.

    Examples
    --------
    >>> from certcal.worst_case import information
    >>> print(verdict_text(information([0.75, 0.75, 0.25], [1, 1, 0.5], [1, 1, 0]), "0.5").split(". ")[-1])
    The certified Brier score is 0.1251 miscalibration - 0.2222 resolution + 0.2223 uncertainty.
    """
    verdict = information.verdict_at(radius)
    if not information.n:
        return verdict
    parts = (information.miscalibration, information.resolution, information.uncertainty)
    texts = (part.text for part in parts)
    return "{} The certified Brier score is {} miscalibration - {} resolution + {} uncertainty.".format(verdict, *texts)


def _term(bound: Bound | None, name: str) -> str:
    return "" if bound is None else round_outward(bound.terms[name], "upper")


@dataclass(frozen=True)
class _Column:
    """A column of the table with a line per radius and group.

    ``rank`` says how soon it is left out of a narrow terminal (the highest first).
    """

    header: tuple[str, str]
    relation: str
    rank: int
    text: Callable[[Line], str]


def _worst(metric: str) -> Callable[[Line], str]:
    def text(line: Line) -> str:
        worst = line.summary[metric].worst
        return "-" if worst is None else worst.text

    return text


def _claimed(line: Line) -> str:
    return "-" if line.claim is None else line.claim.text


def _width(line: Line) -> str:
    return "-" if line.width is None else round_outward(line.width, "upper")


# Only where certificates come with them; widths where kinds of certificates are compared.
_CLAIMED, _MEAN_WIDTH = ("ECE,", "claimed"), ("mean", "width")

_COLUMNS = (
    _Column(("", "samples"), "", 11, lambda line: f"{line.summary.n:,}"),
    _Column(("certified", "samples"), "", 10, lambda line: f"{line.summary.n_certified:,}"),
    _Column(("certified", "accuracy"), "least", 1, lambda line: line.summary.accuracy.text),
    _Column(_MEAN_WIDTH, "", 3, _width),
    _Column(("", "Brier"), "most", 7, _worst("brier_score")),
    _Column(("", "skill"), "least", 8, lambda line: _or_dash(line.summary.skill.text)),
    _Column(("", "KS"), "most", 9, _worst("ks_error")),
    _Column(("", "ECE"), "most", 2, _worst("calibration_error")),
    _Column(_CLAIMED, "most", 4, _claimed),
    _Column(("ECE,", "all"), "most", 5, lambda line: line.summary["calibration_error"].worst_all.text),
    _Column(("", "chance"), "most", 12, lambda line: _term(line.summary.population, "deviation") or "-"),
    _Column(("ECE,", "bound"), "most", 6, lambda line: _bound(line.summary.population)),
)
# Only of interest when some samples are not certified.
_WITH_UNCERTIFIED = (("certified", "samples"), ("ECE,", "all"))


def _or_dash(text: str) -> str:
    return "-" if text == UNDEFINED else text


def _bound(bound: Bound | None) -> str:
    return "-" if bound is None else bound.text


class CertifiedLines:
    """One line per radius and group, with as many columns as fit.

    Parameters
    ----------
    lines
        In the order in which they are shown.
    by
        What the groups are, a column name.

    Examples
    --------
    >>> from certcal.worst_case import certify
    >>> lines = [Line(str(radius), None, certify([0.5 - radius], [0.5 + radius], [1])) for radius in (0.13, 0.27)]
    >>> console = Console(width=80, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(CertifiedLines(lines))
    >>> [line.split()[:4] for line in shown.get().splitlines()[4:]]
    [['0.13', '1', '1.0000', '0.3970'], ['0.27', '1', '1.0000', '0.5930']]
    """

    def __init__(self, lines: Sequence[Line], by: str | None = None) -> None:
        self.lines = lines
        self.by = by

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        signs = {"least": ">=", "most": "<="} if options.ascii_only else {"least": "≥", "most": "≤"}
        has_radius = any(line.radius is not None for line in self.lines)
        groups = [printable(line.group or "all") for line in self.lines]
        grouped = any(line.group is not None for line in self.lines)
        table = frame()
        table.padding = (0, 1, 0, 0)
        room = options.max_width
        if has_radius:
            width = max(len("radius"), *(len(line.radius or "") for line in self.lines))
            table.add_column("\n\nradius", width=width, no_wrap=True, justify="right")
            room -= width + 2
        if grouped:
            width = max(min(24, cell_len(text)) for text in (printable(self.by or "group"), *groups))
            table.add_column(Text(f"\n\n{printable(self.by or 'group')}"), width=width, no_wrap=True)
            room -= width + 2
        shown = self._fitting(room)
        for column in shown:
            sign = signs.get(column.relation, "")
            table.add_column("\n".join((*column.header, sign)), justify="right", no_wrap=True)
        for index, (line, group) in enumerate(zip(self.lines, groups, strict=True)):
            new = index == 0 or self.lines[index - 1].radius != line.radius
            last = index + 1 == len(self.lines) or self.lines[index + 1].radius != line.radius
            names = [*([(line.radius or "") if new else ""] if has_radius else []), *([Text(group)] if grouped else [])]
            cells = [column.text(line) for column in shown]
            table.add_row(*names, *cells, end_section=grouped and (last or (line.group is None and not has_radius)))
        yield table

    def _fitting(self, room: int) -> list[_Column]:
        idle: set[tuple[str, str]] = set()
        if all(line.summary.n_certified == line.summary.n for line in self.lines):
            idle |= set(_WITH_UNCERTIFIED)
        if all(line.claim is None for line in self.lines):
            idle.add(_CLAIMED)
        if all(line.width is None or line.group is None for line in self.lines):
            idle.add(_MEAN_WIDTH)
        wanted = [column for column in _COLUMNS if column.header not in idle]
        shown: set[int] = set()
        for column in sorted(wanted, key=lambda column: column.rank):
            texts = (*column.header, *(column.text(line) for line in self.lines))
            room -= max(map(len, texts)) + 2
            if room < 0:
                break
            shown.add(column.rank)
        return [column for column in wanted if column.rank in shown]


class MethodsTable:
    """Ways of finding the worst calibration error with their values and times.

    Examples
    --------
    >>> exact = Method(None, "exact", 0.29853, "0.2986", 0.0015, True)
    >>> admm = Method(None, "ADMM", 0.27112, "0.2711", 2.31, False)
    >>> console = Console(width=60, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(MethodsTable([exact, admm]))
    >>> [" ".join(line.split()) for line in shown.get().splitlines()[2:]]
    ['exact at most 0.2986 1.5 ms', 'ADMM at least 0.2711 2.3 s']
    """

    def __init__(self, methods: Sequence[Method]) -> None:
        self.methods = methods

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        has_radius = any(method.radius is not None for method in self.methods)
        table = frame()
        if has_radius:
            table.add_column("radius", justify="right", no_wrap=True)
        table.add_column("method", no_wrap=True)
        table.add_column("the worst ECE is", justify="right", no_wrap=True)
        table.add_column("time", justify="right", no_wrap=True)
        for index, method in enumerate(self.methods):
            relation = "at most" if method.is_exact else "at least"
            name = [(method.radius or "") if method.is_exact else ""] if has_radius else []
            last = index + 1 < len(self.methods) and self.methods[index + 1].is_exact
            table.add_row(*name, method.name, f"{relation} {method.text}", duration(method.seconds), end_section=last)
        yield table


def duration(seconds: float) -> str:
    """A time for people.

    Examples
    --------
    >>> [duration(each) for each in (0.00004, 0.0015, 0.42, 2.31, 187.0)]
    ['0.04 ms', '1.5 ms', '420 ms', '2.3 s', '3 min 7 s']
    """
    if seconds < 1:
        return f"{seconds * 1000:.2g} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
