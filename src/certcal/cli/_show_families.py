"""How a comparison of families looks in a terminal: families are rows, radii columns, one block per noise level."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.table import Table
from rich.text import Text

from certcal._text import printable
from certcal.claims import short_text
from certcal.cli._show import Output
from certcal.report._old_terminal import frame
from certcal.report.results import FamilyResults
from certcal.report.results._families import AT_P
from certcal.smoothing.robustness import WARNING, CertifiedCalibration, Compared, Families, SettingTable
from certcal.worst_case import CertifiedSummary

_MOST_NAME = 24
_NONE = "-"
_EXPLAINED = (
    "error, Brier: calibration error and Brier score of the certified samples, at most. all: calibration error of all "
    "samples, those not certified being free. skill: at least; above 0 the confidences beat the best constant one. "
    "-: undefined."
)
# Between two columns.
_GAP = 2


@dataclass(frozen=True)
class Block:
    """Rows under a heading; a row is a name and one text per column."""

    heading: str
    rows: Sequence[tuple[str, Sequence[str]]]


def show_families(results: FamilyResults) -> None:
    """Print what is compared, the tables, who is better than whom, and what limits the comparison."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    found = results.families
    _legend(console, results)
    _title(console, "Certified accuracy in per cent, at least, by radius")
    _blocks(console, *_accuracies(found))
    if len(found.families) > 1:
        console.print(Text(_highest(found)))
    _title(console, "Share of samples with p_A >= p in per cent (p_A: share of votes for the label, 0 where wrong)")
    _blocks(console, [f"{p:g}" for p in AT_P], _shares(found))
    for setting in dict.fromkeys(table.setting for table in found.settings):
        tables = [table for table in found.settings if table.setting == setting]
        _title(console, f"Certified accuracy in per cent as it would be with {setting.text}: an estimate")
        _blocks(console, _radii(found.at), [Block(f"sigma {each.sigma:g}", _converted(each)) for each in tables])
        for note in dict.fromkeys(each.note for each in tables if each.note):
            console.print(Text(_capital(note), style="dim"))
    if found.calibration:
        _title(console, "Certified calibration by radius: exact worst cases, where certificates hold")
        console.print(Text(_EXPLAINED, style="dim"))
        _blocks(console, *_calibrated(found), together=len(found.calibration[0].radii))
    if found.graphs:
        _title(console, "Better whatever the setting?")
        for place, graph in enumerate(found.graphs):
            if place:
                console.print()
            for sentence in (graph.sentence, graph.contradiction, graph.beyond_chance):
                if sentence is not None:
                    console.print(Text(printable(_capital(sentence))))
    console.print()
    console.print(Text(f"* The average certified radius is shown because others print it; {WARNING}."))
    if found.notes:
        console.print()
        for note in found.notes:
            console.print(Text(printable(note), style="dim"))


def _legend(console: Output, results: FamilyResults) -> None:
    """Which run is where, and how they were certified: once where all are alike."""
    runs = results.runs
    width = min(_MOST_NAME, max(len(printable(run.name)) for _, _, run in runs))
    settings = [_setting(run) for _, _, run in runs]
    alike = len(set(settings)) == 1
    for (_, source, run), setting in zip(runs, settings, strict=True):
        console.print(Text(f"{printable(run.name):<{width}}  {printable(source)}"))
        if not alike:
            console.print(Text(f"{'':<{width}}  {setting}", style="dim"))
    if alike:
        console.print(Text(settings[0] if len(runs) == 1 else f"{settings[0]} each", style="dim"))


def _setting(run: Compared) -> str:
    low, high = run.draws
    draws = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{run.n:,} samples; {draws} draws, alpha {short_text(run.alpha, 'upper')}"


def _title(console: Output, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _blocks(console: Output, columns: Sequence[str], blocks: Sequence[Block], together: int = 1) -> None:
    """One table, or several below each other where the columns do not fit; so many columns stay together."""
    first = min(_MOST_NAME, max(len(text) for each in blocks for text in (each.heading, *_names(each))))
    cells = [row[1] for each in blocks for row in each.rows]
    widths = [max(map(len, (*head.split("\n"), *(row[i] for row in cells)))) for i, head in enumerate(columns)]
    groups = [range(i, min(i + together, len(columns))) for i in range(0, len(columns), together)]
    sizes = [sum(widths[i] + _GAP for i in group) for group in groups]
    for place, several in enumerate(_packed(sizes, console.width - first)):
        if place:
            console.print()
        console.print(_table(columns, blocks, [i for group in several for i in groups[group]], first))


def _packed(sizes: Sequence[int], room: int) -> list[range]:
    """Neighbours that fit side by side, in as few tables as possible, and about as many in each.

    Examples
    --------
    >>> _packed([7, 7, 7, 7], 22), _packed([30, 5], 22)
    ([range(0, 2), range(2, 4)], [range(0, 1), range(1, 2)])
    """
    for count in range(1, len(sizes)):
        ends = [round(i * len(sizes) / count) for i in range(count + 1)]
        parts = [range(a, b) for a, b in pairwise(ends)]
        if all(sum(sizes[i] for i in part) <= room for part in parts):
            return parts
    return [range(i, i + 1) for i in range(len(sizes))]


def _names(block: Block) -> list[str]:
    return [f"  {_clipped(printable(name))}" for name, _ in block.rows]


def _clipped(name: str) -> str:
    """A name that fits, without its middle: names of runs often differ at the end.

    Examples
    --------
    >>> _clipped("gaussian"), _clipped("gaussian-with-long-warm-up-2")
    ('gaussian', 'gaussian-w…-warm-up-2')
    """
    most = _MOST_NAME - 2
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-(most // 2 - 1) :]}"


def _table(columns: Sequence[str], blocks: Sequence[Block], shown: Sequence[int], width: int) -> Table:
    table = frame()
    table.padding = (0, 1, 0, 0)
    table.add_column("", width=width, overflow="ellipsis", no_wrap=True)
    for i in shown:
        table.add_column(columns[i], justify="right", no_wrap=True)
    for block in blocks:
        table.add_row(Text(block.heading, style="bold"))
        for name, (_, cells) in zip(_names(block), block.rows, strict=True):
            table.add_row(name, *(cells[i] for i in shown))
    return table


def _accuracies(found: Families) -> tuple[list[str], list[Block]]:
    columns = ["average*", *_radii(found.at)]
    blocks = [
        Block(
            f"sigma {sigma:g}",
            [
                (name, [f"{run.average.value:.4f}", *map(_percent_of, run.curve.texts)])
                for name, run in found.at_sigma(sigma)
            ],
        )
        for sigma in found.sigmas
    ]
    if len(found.sigmas) > 1:
        rows = [(family.name, ["", *map(_percent_of, family.best.texts)]) for family in found.families]
        blocks.append(Block("best over sigma", rows))
    return columns, blocks


def _highest(found: Families) -> str:
    """Whose best over σ is highest, in stretches of radii."""
    texts: list[str] = []
    place = 0
    while place < len(found.at):
        names = found.best.names[place]
        last = place
        while last + 1 < len(found.at) and found.best.names[last + 1] == names:
            last += 1
        who = "all" if len(names) == len(found.families) else ", ".join(map(printable, names))
        radii = [short_text(found.at[i], "lower") for i in dict.fromkeys((place, last))]
        texts.append(f"{who} at {' to '.join(radii)}")
        place = last + 1
    return f"Highest: {'; '.join(texts)}."


def _shares(found: Families) -> list[Block]:
    blocks: list[Block] = []
    for sigma in found.sigmas:
        rows: list[tuple[str, list[str]]] = []
        for name, run in found.at_sigma(sigma):
            lower, upper = run.distribution.survival(AT_P)
            rows.append((name, [_between(a, b) for a, b in zip(lower.tolist(), upper.tolist(), strict=True)]))
        blocks.append(Block(f"sigma {sigma:g}", rows))
    return blocks


def _converted(table: SettingTable) -> list[tuple[str, list[str]]]:
    return [
        (
            name,
            [
                f"{'' if sure else '~'}{_between(low, high)}"
                for low, high, sure in zip(values.lower.tolist(), values.upper.tolist(), resolved, strict=True)
            ],
        )
        for (name, values), resolved in zip(table.rows, table.resolved, strict=True)
    ]


def _calibrated(found: Families) -> tuple[list[str], list[Block]]:
    quantities: list[tuple[str, Callable[[CertifiedSummary], str]]] = [
        ("error", lambda each: _worst(each, "calibration_error")),
        ("all", lambda each: each["calibration_error"].worst_all.text),
        ("Brier", lambda each: _worst(each, "brier_score")),
        ("skill", lambda each: each.skill.text if each.skill.value == each.skill.value else _NONE),
    ]
    radii = found.calibration[0].radii
    columns = [f"{name}\n{short_text(radius, 'lower')}" for name, _ in quantities for radius in radii]

    def row(one: CertifiedCalibration) -> tuple[str, list[str]]:
        return one.family, [text(each) for _, text in quantities for each in one.summaries]

    sigmas = sorted({one.sigma for one in found.calibration})
    return columns, [
        Block(f"sigma {sigma:g}", [row(one) for one in found.calibration if one.sigma == sigma]) for sigma in sigmas
    ]


def _worst(summary: CertifiedSummary, metric: str) -> str:
    worst = summary[metric].worst
    return _NONE if worst is None else worst.text


def _radii(at: Sequence[float]) -> list[str]:
    return [short_text(radius, "lower") for radius in at]


def _percent_of(text: str) -> str:
    """A share with four decimals, rounded down, in per cent with one.

    Examples
    --------
    >>> _percent_of("0.8136"), _percent_of("1.0000"), _percent_of("0.0059")
    ('81.3', '100.0', '0.5')
    """
    tenths = int(text.replace(".", "")) // 10
    return f"{tenths // 10}.{tenths % 10}"


def _between(low: float, high: float) -> str:
    texts = [f"{100 * value:.1f}" for value in (low, high)]
    return texts[0] if texts[0] == texts[1] else "-".join(texts)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
