"""What every answer of the library has in common: claims, plain values, a table, a report, a figure."""

from __future__ import annotations

import io
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast, overload

from certcal._base.checks import InputError, choice
from certcal._base.csv import CsvWriter
from certcal._base.files import refuse_overwriting, write_bytes
from certcal._base.json import PlainValues, as_text, for_json
from certcal._base.rounding import claim_text, percent_text
from certcal._base.text import capital
from certcal._base.told import Named
from certcal.claims import NO_GUARANTEE, assumptions_of
from certcal.verdict import Candidate, Requirements, Verdict, judge

if TYPE_CHECKING:
    from certcal.report.document import Report
    from certcal.report.provenance import Provenance

PAGE, TEXT, PICTURES, NUMBERS = (".html",), (".txt",), (".png", ".svg", ".pdf"), (".json", ".csv")
MARKUP = (".md", ".tex")


class Curves(NamedTuple):
    """Lines over common places, by the title of their chart and their name."""

    x_label: str
    x: Sequence[float]
    charts: Mapping[str, Mapping[str, Sequence[float]]]


class Command(str):
    """A command line to be copied."""

    __slots__ = ()


@dataclass(frozen=True)
class Sentence:
    """One sentence of an :class:`Answer`."""

    kind: Literal["shown", "seen", "fact", "next"]
    """"shown" holds with the level of the answer, "seen" is so on these samples, "fact" is about no samples (how many
    jobs are done), "next" is what to do."""
    text: str
    """In plain words."""
    basis: Literal["proven", "asymptotic", ""] = ""
    """How a level is known: for any number of samples, or for many."""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The numbers behind it as plain values: quantity, value, interval, ranges of scores, limit, command."""

    @property
    def command(self) -> str:
        """A command, or a call, to be copied; empty where there is none."""
        return self.data.get("command", "")

    @property
    def remark(self) -> str:
        """What follows a sentence whose level holds for many samples only."""
        return "(asymptotic)" if self.basis == "asymptotic" else ""

    @property
    def word(self) -> str:
        """What stands before it; nothing before a fact."""
        return "" if self.kind == "fact" else self.kind

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"kind": self.kind, "text": self.text, **({"basis": self.basis} if self.basis else {}), **self.data}

    def __str__(self) -> str:
        return " ".join(filter(None, (self.word and f"{self.word}:", self.text, self.remark, self.command)))


@dataclass(frozen=True)
class Answer(Sequence[Sentence]):
    """What is the case, whether that is shown or only seen, and what to do next.

    All sentences that are shown hold together with probability ``level``, under the assumptions; ``docs/guarantees.md``
    has the rules and the reason.

    Examples
    --------
    >>> import certcal
    >>> found = certcal.measure([0, 0, 0, 1] * 100, [0.5] * 400).answer
    >>> print(found)
    shown: Not calibrated: all scores are overstated; in all 50% fewer events than predicted (36% to 62%).
    shown: 25% happen where 50% is predicted: 0.5 times as many (0.39 to 0.62).
    next: Fit a map, and judge it on rows that it has not seen. certcal.recalibrate(y_true, y_prob).save('map.json')
    Shown: 95% sure, all of it together.
    >>> found[0].data["value"]
    0.5
    """

    sentences: tuple[Sentence, ...]
    """Two to four, the most important first."""
    assumptions: tuple[str, ...] = ()
    """What the shown ones rest on."""
    unsaid: tuple[str, ...] = ()
    """What a reader might take it to say, and it does not."""
    level: float = 0.95
    """Probability with which all shown sentences hold together."""

    @overload
    def __getitem__(self, place: int) -> Sentence: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Sentence, ...]: ...
    def __getitem__(self, place: int | slice) -> Sentence | tuple[Sentence, ...]:
        return self.sentences[place]

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def key(self) -> str:
        """What the words before the sentences mean."""
        shown = [each for each in self if each.kind == "shown"]
        said = list[str]()
        if shown:
            sure = f"{percent_text(self.level)} sure" if self.level < 1 else "it follows from what is assumed"
            sure += ", all of it together" if len(shown) > 1 else ""
            asymptotic = any(each.basis == "asymptotic" for each in shown)
            said.append(f"Shown: {sure}{'; proven, but for what is asymptotic' if asymptotic else ''}.")
        if any(each.kind == "seen" for each in self):
            said.append("Seen: so on these samples.")
        return " ".join(said)

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain values for JSON, an object per sentence."""
        return [each.to_dict() for each in self.sentences]

    def __str__(self) -> str:
        return "\n".join(filter(None, (*map(str, self.sentences), self.key)))

    __repr__ = __str__


class NamedAsPrinted(Named):
    """Numbers that go by every name that is printed of them."""

    def meanings(self, text: str) -> Sequence[str]:
        """The names of rows and claims that are printed so."""
        return import_module("certcal.report.names").vocabulary().names(text)


class Result(NamedAsPrinted, PlainValues, ABC):
    """One answer. Everything that is printed, written or drawn of it is derived from here.

    A result is frozen. ``print(result)`` shows it as a terminal does, notebooks show its page, ``save`` writes it in
    the form that a file's ending names.
    """

    # Module with a function ``view(result, **options) -> Report``, where an answer needs a layout of its own.
    view: ClassVar[str] = "certcal.report.views"
    # What was asked: the title of a page.
    question: ClassVar[str] = ""
    # What the plain sentences on top are: "seen" on samples, or a "fact" about none.
    stated: ClassVar[Literal["seen", "fact"]] = "seen"
    # Name and version of the JSON's layout. The version rises when a key goes away or changes its meaning.
    schema: ClassVar[str]
    schema_version: ClassVar[int] = 1
    # The verb and its arguments but for the sources, where they are plain values; the verb sets it.
    asked: Mapping[str, Any] = MappingProxyType({})
    # Endings of the files that :meth:`save` writes.
    forms: ClassVar[Sequence[str]] = (*PAGE, *TEXT, *PICTURES, *NUMBERS, *MARKUP)

    def __init_subclass__(cls, **declared: str) -> None:
        super().__init_subclass__(**declared)
        words = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        cls.schema = f"certcal/{words}/{cls.schema_version}"

    def claims(self) -> Sequence[Any]:
        """The estimates, bounds and certificates behind the answer, each with its sentence."""
        return ()

    @property
    def answer(self) -> Answer:
        """What is the case, whether that is shown or only seen, and what to do next; by default what stands on top."""
        return answer_of_claims((each for each in self.top() if not isinstance(each, Command)), stated=self.stated)

    def contents(self) -> dict[str, Any]:
        """The answer as plain values, without the name of its schema; by default what the class declares."""
        return super().to_dict()

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The numbers as a table: values by column, one line per claim or sample."""

    def top(self) -> Sequence[Any]:
        """What stands on top of a page: sentences and claims; a claim may be told as (claim, "what", "over what")."""
        return self.claims()[:1]

    def parts(self) -> Mapping[str, Any]:
        """What a reader looks at next, by title.

        Names and texts are facts, names and columns a table; also sentences, :class:`Command`, :class:`Curves`, claims,
        and lists of these.
        """
        return {}

    def appendix(self) -> Mapping[str, Any]:
        """Sections that are folded on a page, such as settings."""
        return {}

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seeds behind the numbers, by what they were for."""
        return {}

    @property
    def sources(self) -> Sequence[str]:
        """Files and folders that were read."""
        source = getattr(self, "source", "")
        return (source,) if source else ()

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """SHA-256 of the model and of the data in memory, where they were there, by what they are of."""
        return {}

    def provenance(
        self, command: Iterable[str] | None = None, *, inputs: Iterable[tuple[str, int, str]] = (), **notes: Any
    ) -> Provenance:
        """How the answer came about, as pages and JSON tell it: this process, its command and the files it read."""
        kind: type[Provenance] = import_module("certcal.report.provenance").Provenance
        own = {"seeds": self.seeds, "fingerprints": self.fingerprints, "asked": self.asked}
        return kind.here(command, inputs=inputs, **own, **notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the name and version of their schema first."""
        told = {"answer": self.answer.to_dict(), **self.contents()}
        return {"schema": self.schema, "certcal": version("certcal"), **told}

    def named(self) -> Mapping[str, Any]:
        """The claims about all samples by the names that requirements use; the headline's where several have one."""
        found: dict[str, Any] = {}
        for each in self.candidates():
            if each.group is None:
                found.setdefault(each.key, each.claim)
        return found

    def further_names(self) -> Iterable[tuple[Sequence[str], Any]]:
        """All that a requirement can name of the whole."""
        return [((*each.names, each.claim.name), each.claim) for each in self.candidates() if each.group is None]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.claims())

    def candidates(self) -> Sequence[Candidate]:
        """The claims that requirements can name, the headline's first."""
        return [Candidate(claim) for claim in self.claims() if hasattr(claim, "value") and hasattr(claim, "to_dict")]

    def verdict(self, *require: Requirements) -> Verdict:
        """Whether requirements such as "ece <= 5%" are met, with a sentence for each; true if all are.

        Each is met, not met, or not shown by so few samples. It is judged on the bound or certificate, else on the
        interval; with "estimate ece <= 5%" on the estimate, with "every ece <= 5%" in each group. See
        :mod:`certcal.verdict.requirement`.

        Parameters
        ----------
        require
            One requirement or several, also as a list, all of which must be met.
        """
        return judge(self.candidates(), require, import_module("certcal.report.names").vocabulary())

    def to_json(self, *, require: Requirements = (), provenance: Provenance | None = None) -> str:
        """Indented JSON: null for what is undefined, the word for what is infinite.

        Parameters
        ----------
        require
            Requirements whose verdict is written as well.
        provenance
            How the answer came about; by default this process, without a command.
        """
        return as_text(self.document(require=require, provenance=provenance))

    def document(self, *, require: Requirements = (), provenance: Provenance | None = None) -> dict[str, Any]:
        """What JSON files and pages hold: the plain values, how they came about, and the verdict if asked.

        With a verdict, the headline is the number that decided.
        """
        origin = self.provenance() if provenance is None else provenance
        found: dict[str, Any] = {"schema": self.schema, "certcal": version("certcal"), "provenance": origin.to_dict()}
        found |= {"answer": self.answer.to_dict(), **self.contents()}
        if require:
            verdict = self.verdict(require)
            found |= {"headline": verdict.decisive.headline(found.get("headline")), "verdict": verdict.to_dict()}
        return for_json(found)

    def to_csv(self) -> str:
        """The table as CSV with all digits; empty for what is undefined."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        columns = self.columns()
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(map(_csv_cell, row))
        return buffer.getvalue()

    def to_table(self) -> dict[str, list[Any]]:
        """The table wide, for papers and frames: one line per group and a column per metric, where it has metrics."""
        columns = {name: list(values) for name, values in self.columns().items()}
        if not {"metric", "value"} <= columns.keys():
            return columns
        heads = list(columns)[: list(columns).index("metric")]
        lines: dict[tuple[Any, ...], dict[str, Any]] = {}
        for place, metric in enumerate(columns["metric"]):
            key = tuple(columns[name][place] for name in heads)
            lines.setdefault(key, dict(zip(heads, key, strict=True)))[metric] = columns["value"][place]
        names = dict.fromkeys(name for line in lines.values() for name in line)
        return {name: [line.get(name) for line in lines.values()] for name in names}

    def to_arrow(self) -> Any:
        """The table as a pyarrow Table; a column of numbers and words becomes text."""
        pa = import_module("pyarrow")

        def column(values: Sequence[Any]) -> Any:
            try:
                return pa.array(list(values), from_pandas=True)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                return pa.array([None if value is None else str(value) for value in values])

        return pa.table({name: column(values) for name, values in self.columns().items()})

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            return import_module("pandas").DataFrame({name: list(values) for name, values in self.columns().items()})
        except ImportError:
            raise InputError("to_pandas needs pandas; run: pip install 'certcal[pandas]'") from None

    def report(
        self,
        *,
        title: str | None = None,
        require: Requirements = (),
        about: Mapping[str, str] | None = None,
        provenance: Provenance | None = None,
        **options: Any,
    ) -> Report:
        """The answer as a report: a page, a text or a figure, whichever it is saved or shown as.

        Parameters
        ----------
        title
            What is written on top; by default what was asked.
        require
            Requirements such as "ece <= 5%" whose verdict stands on top.
        about
            Who and what it is about: model, version, owner, data, period, intended use, limit set by, or others.
        provenance
            How the answer came about; by default this process, without a command.
        options
            Of this kind of answer.
        """
        return import_module("certcal.report.views").report(
            self, title=title, require=require, about=about, provenance=provenance, **options
        )

    def plot(self, ax: Any = None) -> Any:
        """The main chart as a matplotlib figure, or drawn into given axes."""
        return import_module("certcal.report.views").plot(self, ax)

    def save(self, path: str | os.PathLike[str], *, force: bool = False, **options: Any) -> Path:
        """Write the answer whole, or not at all: .html, .txt, .md, .tex, .json, .csv, .png, .svg, .pdf.

        Tables of papers are .tex (booktabs) and .md; some answers have further ``forms``.

        Parameters
        ----------
        path
            Where to; its ending decides the form.
        force
            Replace an existing file.
        options
            Of :meth:`report`, for a page; JSON takes ``require`` and ``provenance``.
        """
        target = Path(path)
        form = {".htm": ".html"}.get(target.suffix.lower(), target.suffix.lower())
        if form not in self.forms:
            raise InputError(f"{target}: choose one of the endings {', '.join(self.forms)}")
        refuse_overwriting(target, force=force)
        write_bytes(target, self.to_bytes(form, **options), force=force)
        return target

    def to_bytes(self, form: str, **options: Any) -> bytes:
        """The content of a file of the answer.

        Parameters
        ----------
        form
            The file's ending, one of ``forms``.
        options
            As for :meth:`save`.
        """
        choice(form, tuple(self.forms), "form")
        if form in PICTURES:
            return import_module("certcal.report.mpl").figure_bytes(self.plot(), form.lstrip("."))
        if form not in NUMBERS:
            return self.report(**options).to_bytes(form)
        told = {name: options[name] for name in ("require", "provenance") if name in options}
        text = self.to_json(**told) if form == ".json" else self.to_csv()
        return text.encode(errors="backslashreplace")

    def __str__(self) -> str:
        return self.report().to_text()

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()  # pyright: ignore[reportPrivateUsage]


def answer_of_claims(
    told: Iterable[Any],
    next_step: Sentence | None = None,
    unsaid: Sequence[str] = (),
    stated: Literal["seen", "fact"] = "seen",
) -> Answer:
    """An answer of sentences and claims: bounds, certificates and worst cases are shown, other claims seen.

    A claim may be told as (claim, "its sentence") or as (claim, "what", "over what").
    """
    sentences, assumptions, failure = list[Sentence](), list[str](), Decimal(0)
    for each in told:
        claim, *words = cast("tuple[Any, ...]", each) if isinstance(each, tuple) else (each,)
        if isinstance(claim, str):
            sentences.append(Sentence(stated, claim))
            continue
        data = {"quantity": claim.name, "value": float(claim.value)} if hasattr(claim, "value") else {}
        sure = hasattr(claim, "delta") or hasattr(claim, "ledger") or hasattr(claim, "extreme")
        text = _in_words(claim, *words) if len(words) == 2 else words[0] if words else _own_sentence(claim)
        sentences.append(Sentence("shown" if sure else "seen", text, "proven" if sure else "", data))
        if sure:
            assumptions += assumptions_of(claim)
            spent = claim.ledger.spent if hasattr(claim, "ledger") else getattr(claim, "delta", 0.0)
            failure += Decimal(repr(float(spent)))
    whole = (*sentences, *([] if next_step is None else [next_step]))
    return Answer(whole, tuple(dict.fromkeys(assumptions)), tuple(unsaid), float(1 - failure))


def _own_sentence(claim: Any) -> str:
    """A claim's sentence without what the word before it says."""
    return capital(getattr(claim, "without_level", claim.sentence).replace(NO_GUARANTEE, "."))


def _in_words(claim: Any, what: str, over: str) -> str:
    side = getattr(claim, "side", None) or getattr(claim, "extreme", "")
    relation = "at most " if side in ("upper", "highest") else "at least " if side else ""
    return f"{what} is {relation}{claim_text(claim)} {over}."


def _csv_cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else value
