"""A question as data: statistics of columns, the charts beside them, and what is said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, ClassVar, Protocol

from certcal._base.text import counted
from certcal.lab.study._findings import TOLD, Chart, Finding, QuestionAnswer, range_sentence
from certcal.lab.study._population import Population, Sheet
from certcal.lab.study._resampling import LEAST

_CLAUSE = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, eq=False)
class SheetAnswer:
    """What a statistic says of one data set."""

    text: str
    findings: Sequence[Finding] = ()
    models: Sequence[int] = ()  # from how many models that is
    charts: Sequence[Chart] = ()  # as long as there is room
    always: Sequence[Chart] = ()  # in any case
    remarks: Sequence[tuple[float, str]] = ()  # what a caution may say, and how much it matters
    leading: Finding | None = None  # the number whose range over many data sets is told


class Statistic(Protocol):
    """What is computed of a data set, with the sentence about it."""

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        """What is found; None where the columns for it are missing."""
        ...

    def cautions(self, population: Population, parts: Sequence[SheetAnswer]) -> Iterator[str]:
        """Cautions on the statistic as a whole."""
        for part in parts:
            yield from (text for _, text in part.remarks)


class SheetChart(Protocol):
    """A chart of a data set."""

    always: ClassVar[bool] = False
    """Whether it is drawn of every data set, however many charts there are."""

    def of(self, population: Population, sheet: Sheet, tops: Sequence[int]) -> Iterable[Chart]:
        """The chart, once or several times; ``tops`` are the parts of the models, the last being all."""
        ...


@dataclass(frozen=True)
class Question:
    """One question."""

    name: str
    """What it is about, in a word or two."""
    title: str
    """As the benchmark study asks it."""
    statistics: tuple[Statistic, ...]
    """What is computed of each data set, in the order in which it is told."""
    published: str
    """What the benchmark study found."""
    charts: tuple[SheetChart, ...] = ()
    """What is drawn besides."""
    refusal: str = ""
    """Why there is no answer, where no statistic has its columns."""
    opening: str = ""
    """The leading number in words, of which many data sets have a range."""
    cautions: tuple[str, ...] = ()
    """What is to be said of every answer."""
    drawn: int = 6
    """No further data set is drawn once there are so many charts."""
    together: bool = False
    """Whether the statistics are of all data sets at once."""

    def answer(self, population: Population, number: int = 0) -> QuestionAnswer:
        """The answer for a population; one that cannot be given says why."""
        told: list[list[SheetAnswer]] = [[] for _ in self.statistics]
        texts: list[str] = []
        findings: list[Finding] = []
        charts: list[Chart] = []
        for sheet in population.sheets[:1] if self.together else population.sheets:
            said = [(several, each.on(population, sheet)) for several, each in zip(told, self.statistics, strict=True)]
            here = [part for _, part in said if part is not None]
            for several, part in said:
                several += [] if part is None else [part]
            texts += [" ".join(part.text for part in here)] if here else []
            findings += (each for part in here for each in part.findings)
            room, tops = len(charts) < self.drawn, population.sheet_tops(sheet)
            for each in self.charts if any(part.findings for part in here) else ():
                charts += each.of(population, sheet, tops) if room or each.always else ()
            for part in here:
                charts += (*(part.charts if room else ()), *part.always)
        if not texts:
            why = fill(self.refusal, **population.words, least=LEAST)
            return QuestionAnswer(number, self.title, why, published=self.published, name=self.name)
        parts = [part for several in told for part in several]
        models = [n for part in parts for n in part.models]
        cautions = list(population.resampling.small_sample_caution(min(models)) if models else ())
        for statistic, several in zip(self.statistics, told, strict=True):
            cautions += statistic.cautions(population, several)
        cautions += self.cautions
        leading = [part.leading for part in parts if part.leading is not None]
        text = _abridge(range_sentence(leading, fill(self.opening, **population.words)), texts)
        found = tuple(findings), tuple(charts), tuple(cautions)
        return QuestionAnswer(number, self.title, text, *found, self.published, self.name)


def _abridge(begin: str, texts: Sequence[str]) -> str:
    """The opening sentence, and those on the first few data sets."""
    shown, more = [begin, *texts[:TOLD]], len(texts) - TOLD
    if more > 0:
        shown.append(f"The other {counted(more, 'data set')} {'is' if more == 1 else 'are'} among the numbers below.")
    return " ".join(part for part in shown if part)


def fill(sentence: str, **words: Any) -> str:
    """A sentence with its words; a [clause] is left out where one of its words is None."""
    said: list[str] = []
    for place, piece in enumerate(_CLAUSE.split(sentence)):
        names = [name.partition(".")[0] for _, name, _, _ in Formatter().parse(piece) if name]
        if place % 2 == 0 or all(words[name] is not None for name in names):
            said.append(piece.format(**words))
    return "".join(said)
