"""Does this page hold? Its numbers are computed again from the data, and its text is written again from the numbers.

The page is a stranger's file. It says what was asked, never where to read: data and model come from the caller alone.
"""

from __future__ import annotations

import html
import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from certcal._base.checks import InputError
from certcal._base.files import path_of, read_bytes, size_and_digest
from certcal._base.json import PlainValues, as_text, for_json
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import Option, Takes, specs_of, verb
from certcal._base.text import capital, counted
from certcal.result import Answer, Result, Sentence
from certcal.verbs.attack import attack
from certcal.verbs.bound import bound
from certcal.verbs.certify import certify, images_of
from certcal.verbs.changes import compare_tables
from certcal.verbs.compare import compare_runs
from certcal.verbs.measure import measure
from certcal.verbs.recalibrate import recalibrate
from certcal.verbs.verify import verify

_MOST_BYTES, _MOST_VALUES, _LONGEST_TEXT, _MOST_SHOWN = 64_000_000, 1_000, 1_000, 12
_BEGIN, _END = '<script type="application/json" id="data">', "</script>"
_VERBS: Mapping[str, Callable[..., Any]] = {
    **{"measure": measure, "bound": bound, "certify": certify, "recalibrate": recalibrate, "verify": verify},
    **{"attack": attack, "compare_tables": compare_tables, "compare_runs": compare_runs},
}
# Of a page's settings, those that say how work is done or where files are, which is the caller's business.
_CALLERS = {"verb", "not_recorded", "weights", "device", "threads", "batch", "save", "save_inputs", "keep_inputs"}
# Numbers agree to so many parts, or to so much; those of a network depend on the machine, and those of another version
# may have other last digits.
_TOLERANCE, _OF_NETWORKS, _PRINTED = (1e-9, 1e-12), (1e-5, 1e-8), (1e-4, 5e-5)
_AUTHORS = (
    "title, fields about the model, names of files, command, date, notes, times and versions are the author's words"
)
_DURATION = re.compile(r"\A[0-9.,]{1,12} (?:ms|s|min|h)\Z")
# What a browser runs, or draws by, and what allows it to: once each on a page.
_RUN = (("<style>", "</style>"), ("<script>", "</script>"), ("<meta http-equiv=", ">"))
_ABSENT = object()


@dataclass(frozen=True)
class CheckedClaim(PlainValues):
    """One thing that a page says, and what came of computing it again."""

    claim: str
    """What it is about."""
    on_page: str
    recomputed: str
    """What the page says, and what it should say."""
    holds: bool
    """Whether both are the same."""


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result, keys="source verb outcome rows not_recomputed"):
    """What a page says beside what its data say.

    Examples
    --------
    >>> import certcal, tempfile
    >>> data = {"score": [0.9, 0.6, 0.2, 0.1], "outcome": [1, 1, 0, 1]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = certcal.measure(data).save(f"{folder}/page.html")
    ...     certcal.check(page, data).outcome, certcal.check(page, {**data, "outcome": [1, 1, 0, 0]}).outcome
    ('holds', 'does not hold')
    """

    question: ClassVar[str] = "Does this page hold?"

    source: str
    """The page, or the file of JSON."""
    verb: str
    """The function that answered, as the page says."""
    rows: Sequence[CheckedClaim] = ()
    """Everything that was computed again, what does not hold first."""
    not_recomputed: Sequence[str] = ()
    """What could not be, in sentences."""

    @property
    def outcome(self) -> Literal["holds", "does not hold", "not recomputed"]:
        """Holds where all was recomputed and is the same; does not hold as soon as one thing differs."""
        if not all(row.holds for row in self.rows):
            return "does not hold"
        return "holds" if self.rows and not self.not_recomputed else "not recomputed"

    def __repr__(self) -> str:
        return f"<Check of {self.source}: {self.outcome}>"

    @property
    def answer(self) -> Answer:
        """Whether the page holds, what differs first, and what was not looked at."""
        wrong, what = self._rows(False), counted(len(self.rows), "claim")
        said: list[str] = []
        if wrong:
            said = [f"Does not hold: {len(wrong):,} of {what} came out otherwise.", *_first_sentences(wrong)]
        elif self.rows:
            said = [f"{'Holds' if not self.not_recomputed else 'Not recomputed in full'}: {what} came out the same."]
        return Answer(tuple(Sentence("fact", text) for text in (*said, *self.not_recomputed)), unsaid=(_AUTHORS,))

    def top(self) -> Sequence[str]:
        """The sentences of the answer."""
        return [each.text for each in self.answer]

    def parts(self) -> Mapping[str, Any]:
        """What does not hold, and what is not checked."""
        wrong = self._rows(False)
        more = f"{len(wrong) - _MOST_SHOWN} more are in the appendix." if len(wrong) > _MOST_SHOWN else None
        table = [_table(wrong[:_MOST_SHOWN]), more] if wrong else None
        return {"Does not hold": table, "Not checked": f"{capital(_AUTHORS)}."}

    def appendix(self) -> Mapping[str, Any]:
        """What holds."""
        parts = {"Does not hold, too": self._rows(False)[_MOST_SHOWN:], "Holds": self._rows(True)}
        return {title: _table(rows) for title, rows in parts.items() if rows}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per claim."""
        return {**_table(self.rows), "holds": [row.holds for row in self.rows]}

    def _rows(self, holds: bool) -> list[CheckedClaim]:
        return [row for row in self.rows if row.holds is holds]


def _table(rows: Sequence[CheckedClaim]) -> dict[str, list[Any]]:
    heads = {"claim": "claim", "on the page": "on_page", "recomputed": "recomputed"}
    return {head: [getattr(row, name) for row in rows] for head, name in heads.items()}


def _first_sentences(wrong: Sequence[CheckedClaim]) -> Iterator[str]:
    files = [row for row in wrong if row.claim.startswith("file ")]
    said = "The page is of another file: {} had {}, and {}."
    yield from (said.format(row.claim.removeprefix("file "), row.on_page, row.recomputed) for row in files[:1])
    others = [row for row in wrong if row not in files]
    yield from (f"{row.claim}: {row.on_page} on the page, {row.recomputed} recomputed." for row in others[:1])


@verb()
def check(
    page: str | os.PathLike[str],
    data: Any = None,
    *,
    model: object = None,
    weights: Annotated[str | os.PathLike[str] | None, Takes("file"), Option(metavar="FILE")] = None,
    progress: ProgressLike = True,
) -> Check:
    """Check a page, or a file of JSON, against its data: compute every claim again and write the page again.

    It holds if each number, sentence and verdict comes out the same, if the files have the digests that it names, and
    if nothing else stands on it.

    Parameters
    ----------
    page
        The file that certcal wrote: .html or .json.
    data
        What it is about, as the function took it: a table, a run, intervals; two tables or several runs as a list, and
        inputs of images behind their run. Of arrays: (y_true, y_prob).
    model
        The model of an attack, a verification or of predictions.
    weights
        Its weights, where they are a file of their own.
    progress
        Whether to show how far the work is; or a function or an object that is told.
    """
    path, progress = path_of(page, "page"), as_reporter(progress)
    told = _WrittenPage.read(path)
    origin = _mapping(told.document.get("provenance"))
    asked = _mapping(origin.get("asked"))
    name, listed = str(asked.get("verb", ""))[:80], isinstance(data, list | tuple)
    sources: list[Any] = [] if data is None else [*cast("list[Any]", data)] if listed else [data]
    recorded = _inputs(origin)
    if reasons := _why_not(name, asked, sources, model, len(recorded)):
        return Check(str(path), name, (), reasons)
    progress.stage("recomputing")
    try:
        found, options = _ask_again(name, asked, sources, model, weights, progress, told.document)
        again = told.written_again(found, _provenance(found, origin), **options)
    except InputError as error:
        return Check(str(path), name, (), (f"It cannot be recomputed: {error}.",))
    tolerance = _OF_NETWORKS if name in ("attack", "verify") else _TOLERANCE
    given = [model, weights, *(_flat(sources) if name == "compare_runs" else sources)]
    files = [path_of(each) for each in given if isinstance(each, str | os.PathLike)]
    files = [each for each in files if each.exists()]
    parts = [
        for_json({key: dict(_mapping(each.get(key))) for key in ("seeds", "fingerprints")})
        for each in (origin, found.provenance().to_dict())
    ]
    other = (its := told.document.get("certcal")) != (ours := version("certcal"))
    tolerance = _PRINTED if other else tolerance
    rows = [*_file_rows(recorded, files), *_claim_rows(told.document, again.document, tolerance, numbers=other)]
    rows += _claim_rows(parts[0], parts[1], tolerance)
    missing: list[str] = []
    if other:  # its text may say anything
        missing.append(f"It is of certcal {its!s:.40}, and this is {ours}: its numbers are compared, its text is not.")
    elif told.around is not None and again.around is not None:
        rows.append(_text_row(told.around, again.around))
    if len(recorded) > len(files):
        missing.append(f"{_fewer_given(len(recorded), len(files))}.")
    return Check(str(path), name, tuple(sorted(rows, key=lambda row: row.holds)), tuple(missing))


@dataclass(frozen=True)
class _WrittenPage:
    """The numbers of a page, and the text around them; of a file of JSON the numbers alone."""

    document: Mapping[str, Any]
    around: str | None = None

    @classmethod
    def read(cls, path: Path) -> _WrittenPage:
        content = read_bytes(path, _MOST_BYTES, "a page")
        try:
            return cls.of(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            reason = "its JSON is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise InputError(f"{path}: {reason}", remedy="give a page or JSON that certcal wrote") from None

    @classmethod
    def of(cls, text: str) -> _WrittenPage:
        around = None
        if not text.startswith("{"):
            before, begin, rest = text.partition(_BEGIN)
            text, end, after = rest.partition(_END)
            if not end or _BEGIN in after:
                raise InputError("this is no page of certcal")
            around = f"{before}{begin}{end}{after}"
        document = _mapping(json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant))
        if not str(document.get("schema", "")).startswith("certcal/"):
            raise InputError("this is no result of certcal")
        return cls(document, around)

    def written_again(self, found: Result, origin: Any, **options: Any) -> _WrittenPage:
        """What certcal writes of a result in this form, with the page's requirements, title and fields."""
        texts = (_mapping(each).get("requirement") for each in _as_sequence(self.document.get("verdict")))
        judged = {"require": [text for text in dict.fromkeys(map(str, texts)) if len(text) <= _LONGEST_TEXT]}
        if self.around is None:
            return _WrittenPage.of(as_text(found.document(provenance=origin, **judged)))
        page = _mapping(self.document.get("page"))
        title, about = page.get("title"), {name: str(text) for name, text in _mapping(page.get("about")).items()}
        title = title if isinstance(title, str) else None
        return _WrittenPage.of(found.report(title=title, about=about, provenance=origin, **judged, **options).to_html())


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise InputError("an object of its JSON has a key twice")
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    raise InputError(f"its JSON has {name}")


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _as_sequence(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list | tuple) else ()


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """Runs one by one, those of families as well."""
    for each in values:
        inner: Any = _mapping(each).values() or _as_sequence(each)
        yield from _flat(inner) if inner else (each,)


def _fewer_given(recorded: int, given: int) -> str:
    return f"{counted(recorded, 'file')} went into it and {given:,} {'was' if given == 1 else 'were'} given"


def _why_not(name: str, asked: Mapping[str, Any], sources: Sequence[Any], model: object, recorded: int) -> list[str]:
    """Why nothing can be recomputed, in a sentence; nothing if it can."""
    if not name:
        return ["It does not say what was asked, as the pages of demos, of results alone and of older versions do not."]
    if name not in _VERBS:
        work = {"train": "A training", "sample": "Sampling", "apply_map": "Applying a map"}
        return [f"{work.get(name, f'The work of {name!r}')} is not repeated."]
    if not sources:
        return ["Its data are not given; add the file that it was made from."]
    given = len([*_flat(sources)]) if name == "compare_runs" else len(sources)
    if name in ("compare_tables", "compare_runs") and given < recorded:
        return [f"{_fewer_given(recorded, given)}; give all that are compared, in the order of the page."]
    if model is None and name in ("attack", "verify"):
        return [f"Its model is not given, and {name} needs it; add it."]
    lost = ", ".join(each for each in map(str, _as_sequence(asked.get("not_recorded"))) if each not in _CALLERS)
    return [f"{name} was also given {lost[:200]}, as objects or values that the page does not hold."] if lost else []


def _ask_again(
    name: str,
    asked: Mapping[str, Any],
    sources: Sequence[Any],
    model: object,
    weights: Any,
    progress: Progress,
    document: Mapping[str, Any],
) -> tuple[Result, dict[str, Any]]:
    """The result of asking again, under the names that the page gives to its sources; and options of its report."""
    function = _VERBS[name]
    known, specs = inspect.signature(function).parameters, specs_of(function)
    settings = {key: _tuples(value) for key, value in asked.items() if key not in _CALLERS}
    for key, value in settings.items():
        is_file = key in specs and specs[key].kind == "file"
        if key not in known or key in ("progress", "source") or is_file or not _is_modest(value):
            raise InputError(f"its setting {key[:80]!r} is none that certcal writes")
    if settings.get("part") is not None:
        raise InputError("it is of one part of the inputs")
    if "names" in known and settings.get("names") is None:
        settings["names"] = str(document.get("old")), str(document.get("new"))
    if "change" in (box := _mapping(settings.get("box"))):
        from certcal.verification import InputBox

        settings["box"] = InputBox(**box)
    settings |= {"weights": weights} if weights is not None and "weights" in known else {}
    images = sources[1] if name == "certify" and len(sources) == 2 else None
    given = [*([] if model is None else [model]), *(sources if images is None else sources[:1])]
    if name == "compare_tables" and len(given) == 1:
        given *= 2  # two scores of one table
    found = function(*given, **settings, progress=progress)
    if isinstance(told := document.get("source"), str) and "source" in {each.name for each in fields(found)}:
        found = replace(found, source=told)
    return found, {} if images is None else images_of(found, images)


def _is_modest(value: Any, depth: int = 3) -> bool:
    if isinstance(value, dict | tuple):
        inner: Any = [*value, *_mapping(value).values()]  # pyright: ignore
        return depth > 0 and len(inner) <= _MOST_VALUES and all(_is_modest(each, depth - 1) for each in inner)
    return not isinstance(value, str) or len(value) <= _LONGEST_TEXT


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, _as_sequence(value))) if isinstance(value, list) else value


def _provenance(found: Result, told: Mapping[str, Any]) -> Any:
    """How the page says that it came about, to be printed as it stands."""
    texts = {
        key: {name: str(value) for name, value in _mapping(told.get(key)).items()}
        for key in ("versions", "fingerprints")
    }
    plain = {key: dict(_mapping(told.get(key))) for key in ("seeds", "asked")}
    command = None if told.get("command") is None else tuple(map(str, _as_sequence(told.get("command"))))
    more = {"created": str(told.get("created", "")), "notes": tuple(map(str, _as_sequence(told.get("notes"))))}
    return replace(found.provenance(), command=command, inputs=tuple(_inputs(told)), **texts, **plain, **more)


def _inputs(told: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Names, sizes and digests of the files that went into the page."""
    each = [_mapping(one) for one in _as_sequence(told.get("inputs"))]
    sizes = [size if isinstance(size := one.get("bytes"), int) else 0 for one in each]
    return [(str(one.get("name")), size, str(one.get("sha256"))) for one, size in zip(each, sizes, strict=True)]


def _file_rows(recorded: Sequence[tuple[str, int, str]], files: Sequence[Path]) -> Iterator[CheckedClaim]:
    """The files given beside those of the page: by digest, and what is left in their order."""
    given = [(str(each), size_and_digest(each)[1]) for each in files]
    there = {digest for _, digest in given}
    others = iter([each for each in given if each[1] not in {digest for *_, digest in recorded}])
    for name, _, digest in recorded:
        same = digest in there
        path, own = (name, digest) if same else next(others, ("", ""))
        if path:
            said = f"SHA-256 {own[:12]}" if same else f"{path} has {own[:12]}"
            yield CheckedClaim(f"file {name}", f"SHA-256 {digest[:12]}", said, same)


def _text_row(page: str, again: str) -> CheckedClaim:
    """The page around its numbers, all of it but for times that something took; what is read before what is run."""
    what = "text, pictures and script"
    if (one := _pieces(page)) == (other := _pieces(again)):
        return CheckedClaim(what, "as certcal writes them", "the same", True)
    if (one := _pieces(_without_what_is_run(page))) == (other := _pieces(_without_what_is_run(again))):
        return CheckedClaim(what, "a style sheet or a script of its own", "those of this certcal", False)
    changed = [pair for pair in zip_longest(one, other, fillvalue="") if pair[0] != pair[1]]
    if len(one) == len(other):  # the first text rather than the first tag
        changed = [pair for pair in zip(one[::2], other[::2], strict=True) if pair[0] != pair[1]] or changed
    before, after = (f"“{_clip(html.unescape(' '.join(each.split())))}”" for each in changed[0])
    return CheckedClaim(what, before, after, False)


def _without_what_is_run(text: str) -> str:
    for begin, end in _RUN:
        before, found, rest = text.partition(begin)
        text = before + rest.partition(end)[2] if found else text
    return text


def _pieces(text: str) -> list[str]:
    return [_DURATION.sub("a time", each) for each in re.split("[<>]", text)]


def _clip(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _claim_rows(
    page: Mapping[str, Any], again: Mapping[str, Any], tolerance: tuple[float, float], *, numbers: bool = False
) -> Iterator[CheckedClaim]:
    """Every claim of two documents, and of the rest a line for each key; sentences after the numbers behind them.

    Or of claims that both have the ``numbers`` and outcomes alone, whatever versions call the rest.
    """
    found: dict[str, list[tuple[str, Any, Any]]] = {}
    keys = [key for key in {**again, **page} if key not in ("page", "provenance", "certcal")]
    for key in sorted(keys, key=lambda key: key == "answer"):
        for claim, *values in _leaves(page.get(key), again.get(key), key, "", ()):
            if not numbers or _is_in_both(str(values[0]), *values[1:]):
                found.setdefault(claim, []).append(cast("tuple[str, Any, Any]", tuple(values)))
    for claim, entries in found.items():
        wrong = next((each for each in entries if not _agree(each[1], each[2], tolerance)), None)
        if wrong is not None:
            place, one, other = wrong
            texts = (_value_text(one), _value_text(other))
            texts = texts if texts[0] != texts[1] else (repr(one), repr(other))
            before, after = (f"{place} {text}".removeprefix("value ").strip() for text in texts)
            yield CheckedClaim(claim, before, after, False)
            continue
        values = {place: value for place, value, _ in entries}
        shown = values.get("text") or values.get("value", entries[0][1] if len(entries) == 1 else None)
        yield CheckedClaim(
            claim, counted(len(entries), "value") if shown is None else _value_text(shown), "the same", True
        )


def _leaves(one: Any, other: Any, claim: str, place: str, about: Sequence[str]) -> Iterator[tuple[str, str, Any, Any]]:
    """All values of two documents side by side, each with the claim that it belongs to and its place in it."""
    if isinstance(one, dict) and isinstance(other, dict):
        theirs, ours = _mapping(one), _mapping(other)
        named = {key: ours.get(key) for key in ("group", "radius", "attack", "epsilon", "kind")}
        about = (*about, *(f"{key} {value}" for key, value in named.items() if isinstance(value, str | int | float)))
        if name := _name_of(ours):
            claim, place = _clip(f"{name} ({', '.join(about)})" if about else name), ""
        pairs = {key: f"{place}.{key}" if place else key for key in {**ours, **theirs}}
        if all(isinstance(each.get("seconds"), int | float) for each in (ours, theirs)):  # another time today
            del pairs["seconds"]
    elif isinstance(one, list) and isinstance(other, list):
        theirs, ours = _entries(_as_sequence(one)), _entries(_as_sequence(other))
        pairs = {key: f"{place}[{key}]" for key in {**ours, **theirs}}
    else:
        if one is not None or other is not None:
            yield claim, place, one, other
        return
    for key, spot in pairs.items():
        if (key in ours and key in theirs) or isinstance(key, str):
            yield from _leaves(theirs.get(key), ours.get(key), claim, spot, about)
        else:
            yield claim, spot, theirs.get(key, _ABSENT), ours.get(key, _ABSENT)


def _name_of(claim: Mapping[str, Any]) -> str:
    """What a part of a document is a claim about; empty where it is none."""
    if isinstance(claim.get("requirement"), str):
        return claim["requirement"]
    settings = {key: value for key, value in _mapping(claim.get("settings")).items() if key != "closed"}
    name = claim.get("name") if "value" in claim or "old" in claim else None
    return ", ".join((name, *(f"{key} {value}" for key, value in settings.items()))) if isinstance(name, str) else ""


def _entries(values: Sequence[Any]) -> dict[Any, Any]:
    """The entries of a list by what they are claims about, else by their places."""
    names = [_name_of(_mapping(each)) for each in values]
    return dict(zip(names if all(names) and len({*names}) == len(names) else range(len(values)), values, strict=True))


def _is_in_both(place: str, one: Any, other: Any) -> bool:
    """Whether two documents have a number, or an outcome, at a place."""
    if place.endswith("outcome"):
        return isinstance(one, str) and isinstance(other, str)
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other))


def _agree(one: Any, other: Any, tolerance: tuple[float, float]) -> bool:
    """Whether two values are the same; numbers to so many parts of them, or to so much."""
    if isinstance(one, bool) or isinstance(other, bool) or not all(isinstance(x, int | float) for x in (one, other)):
        return type(one) is type(other) and not isinstance(one, dict | list) and one == other
    try:
        return math.isclose(one, other, rel_tol=tolerance[0], abs_tol=tolerance[1])
    except OverflowError:  # a whole number that no float holds
        return one == other


def _value_text(value: Any) -> str:
    if value is None or value is _ABSENT:
        return "nothing"
    if isinstance(value, dict | list):
        value = _mapping(value).get("value", f"{len(cast('Any', value)):,} values")
    return f"{value:.6g}" if isinstance(value, float) else _clip(str(value))
