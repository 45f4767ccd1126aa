"""What ``certcal report`` is about: which kind of source, which options are for it, and what is found."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rich.text import Text

from certcal._checks import InputError
from certcal._text import printable
from certcal.cli._measuring import MOST_RESAMPLED, Settings
from certcal.cli._parse import MOST_CERTIFIED_BINS, nearest
from certcal.cli._show import Output
from certcal.cli._sources import existing, model_inputs, plain_names, refuse_number
from certcal.data import open_table
from certcal.data._interval_layout import INTERVAL_OPTIONS
from certcal.data._layout import OPTIONS
from certcal.data._roles import LOWER, UPPER
from certcal.report.bounds import bound_sentences
from certcal.report.results import CertifiedResults, MeasuredResults, StudiedResults
from certcal.smoothing import open_run

Results: TypeAlias = MeasuredResults | CertifiedResults | StudiedResults

# What a source can be, and in how many words.
KINDS = {
    "predictions": "a table of predictions",
    "intervals": "a table of intervals",
    "run": "a run",
    "comparison": "runs or logs to compare",
    "families": "families to compare",
    "study": "a table of a study",
}
_ALPHA_OF_RUNS = 0.001
_LOG = {"idx", "predict", "radius"}
_MEASURED = ("bootstrap", "method", "level", "seed", "memory", "probabilities", "logits", "weight")
_CERTIFIED = ("lower", "upper", "certified")
_BOTH = ("correct", "prediction", "label", "by")
# Which kinds an option is for; one that is not here is for all but comparisons.
_FOR = {
    **dict.fromkeys(_MEASURED, ("predictions",)),
    **dict.fromkeys(("bootstrap", "level", "seed"), ("predictions", "study")),
    "bins": ("predictions", "intervals", "run", "study"),
    **dict.fromkeys(_CERTIFIED, ("intervals",)),
    **dict.fromkeys(_BOTH, ("predictions", "intervals")),
    "confidence": ("predictions", "run"),
    "radius": ("intervals", "run", "comparison", "families"),
    "alpha": ("intervals", "run", "comparison", "families"),
    **dict.fromkeys(("familywise", "drawn_only", "data"), ("run",)),
    **dict.fromkeys(("sigma", "n"), ("comparison", "families")),
}
_SPELLED = {"n": "-n"}


@dataclass(frozen=True)
class Reported:
    """What was found, what the page needs beside it, and what is to be said in the terminal only."""

    results: Results
    page_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: Sequence[str] = ()


def kind_of(sources: Sequence[str], given: Iterable[str]) -> str:
    """Tell by folders, columns and options what is given.

    Parameters
    ----------
    sources
        Files and folders, or NAME=PATH for the runs of families.
    given
        Names of the options that were given.
    """
    paths = [existing(source, "table, run or log") for source in paths_of(sources)]
    if families_of(sources) is not None:
        _refuse_tables(paths)
        return "families"
    if len(paths) > 1:
        _refuse_tables(paths)
        return "comparison"
    if paths[0].is_dir():
        open_run(paths[0])  # or else it is some other folder
        return "run"
    options = set(given)
    if options & {"sigma", "n"}:
        return "comparison"
    names = plain_names(open_table(paths[0]).names)
    if names >= _LOG:
        return "comparison"
    if options & set(_CERTIFIED):
        return "intervals"
    if _is_study(names):
        return "study"
    if options & {"confidence", "probabilities", "logits"}:
        return "predictions"
    return "intervals" if names & set(LOWER) and names & set(UPPER) else "predictions"


def families_of(sources: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    """Names and paths where the sources are named, else None."""
    from certcal.cli.compare import family_names

    return family_names(sources)


def paths_of(sources: Sequence[str]) -> list[str]:
    """The files and folders of the sources, without the names of families.

    Examples
    --------
    >>> paths_of(["gaussian=runs/a", "acr=runs/b"]), paths_of(["a", "b"])
    (['runs/a', 'runs/b'], ['a', 'b'])
    """
    named = families_of(sources)
    return list(sources) if named is None else [path for _, path in named]


def _is_study(names: Iterable[str]) -> bool:
    """Whether columns are those of a study: all that every one has, or models and measurements."""
    from certcal.study import Measurement
    from certcal.study._table import KEYS, STATE

    known = set(names)
    return known >= {*KEYS, *STATE} or ("model" in known and any(Measurement.parse(name) for name in known))


def _refuse_tables(paths: Iterable[Path]) -> None:
    """Tables where runs and logs are compared; what cannot be read as a table may be a log all the same."""
    for path in paths:
        if path.is_file():
            try:
                names = plain_names(open_table(path).names)
            except InputError:
                continue
            if not names & _LOG:
                raise InputError(f"{path}: this is a table, and only runs and logs are compared; report on each alone")


def unused(kind: str, sources: Sequence[str], given: Iterable[str]) -> None:
    """Refuse options that are for another kind of source.

    Examples
    --------
    >>> unused("run", ["run"], ["weight"])
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: --weight is for a table of predictions, and run is a run; leave it out
    """
    for name in given:
        kinds = _FOR.get(name, ("predictions", "intervals", "run"))
        if kind not in kinds:
            whose = " or ".join(KINDS[each] for each in kinds)
            what = f"{sources[0]} is {KINDS[kind]}" if len(sources) == 1 else f"these are {KINDS[kind]}"
            option = _SPELLED.get(name, f"--{name.replace('_', '-')}")
            raise InputError(f"{option} is for {whose}, and {what}; leave it out")


def default_name(sources: Sequence[str]) -> str:
    """The page's file when none is given: in the working folder, named after the source.

    Examples
    --------
    >>> default_name(["data/scores.csv.gz"]), default_name(["a", "b"]), default_name(["gaussian=a"])
    ('scores.html', 'comparison.html', 'comparison.html')
    """
    if len(sources) > 1 or families_of(sources) is not None:
        return "comparison.html"
    path = Path(sources[0])
    name = path.name or path.resolve().name
    stem = name if path.is_dir() else name.split(".")[0]
    return f"{stem or 'report'}.html"


def reported(kind: str, sources: Sequence[str], options: Mapping[str, Any]) -> Reported:
    """Find what the page is about.

    Parameters
    ----------
    kind
        Of the sources.
    sources
        Files and folders.
    options
        Those of the command.
    """
    if kind == "predictions":
        return _predictions(sources[0], options)
    if kind == "study":
        return _study(sources[0], options)
    return _run(Path(sources[0]), options) if kind == "run" else _intervals(Path(sources[0]), options)


def _predictions(source: str, options: Mapping[str, Any]) -> Reported:
    from certcal.cli._measured_table import measure_table

    settings = Settings(**{name: options[name] for name in ("bins", "closed", "bootstrap", "method", "level", "seed")})
    overrides = {role: options[role] for role in OPTIONS}
    results = measure_table(
        source, overrides, options["by"], settings, memory=options["memory"], delta=options["delta"]
    )
    notes: list[str] = []
    drawn, pieces = results.conventions.get("bootstrap"), results.conventions["streamed"]
    if options["bootstrap"] is None and drawn:
        groups = ", and those of groups too" if results.parts else ""
        notes.append(f"Intervals are from {drawn:,} resamples; --bootstrap 1000 makes them steadier{groups}.")
    elif options["bootstrap"] is None:
        large = results.whole.n > MOST_RESAMPLED
        why = f"has more than {MOST_RESAMPLED:,} rows" if large else "is read in pieces"
        notes.append(f"Without intervals, since the table {why}; --bootstrap N draws N resamples.")
    if not results.bounds:
        why = "the table is read in pieces" if pieces else "the samples are weighted"
        notes.append(f"Without bounds on the true calibration error, since {why}.")
    return Reported(results, notes=notes)


def _study(source: str, options: Mapping[str, Any]) -> Reported:
    from certcal.cli._reviewing import FEWEST_RESAMPLES, review_table

    if len(options["bins"]) > 1:
        raise InputError("--bins: models are ordered by one number of bins; give one")
    asked = {"bins": options["bins"][0], "level": options["level"], "seed": options["seed"]}
    if options["bootstrap"] is not None and options["bootstrap"] < FEWEST_RESAMPLES:
        raise InputError(f"--bootstrap: intervals over models need at least {FEWEST_RESAMPLES} resamples")
    resamples = {} if options["bootstrap"] is None else {"resamples": options["bootstrap"]}
    results = review_table(source, **asked, **resamples)
    return Reported(results, notes=["certcal study review asks for other metrics, columns and parts of the models."])


def _intervals(source: Path, options: Mapping[str, Any]) -> Reported:
    from certcal.cli._certified_table import certify_table

    refuse_number(options["radius"], str(source))
    columns = {role: options[role] for role in INTERVAL_OPTIONS}
    return Reported(certify_table(source, columns, {**_certifying(options), "alpha": options["alpha"]}, compare=False))


def _run(folder: Path, options: Mapping[str, Any]) -> Reported:
    from certcal.cli._certified_run import Request, certify_run, kinds_of, parse_radii
    from certcal.cli._parameters import KINDS as CERTIFICATES

    word = options["confidence"] or "tight"
    if word not in CERTIFICATES:
        raise InputError(
            f"--confidence: {word!r} is not one of {', '.join(map(repr, CERTIFICATES))}, the kinds of intervals of a "
            f"run{nearest(word, CERTIFICATES)}"
        )
    alpha = _ALPHA_OF_RUNS if options["alpha"] is None else options["alpha"]
    if alpha == 0:
        raise InputError("--alpha is 0, and certificates from noise may fail; give a probability such as 0.001")
    radii = None if options["radius"] is None else parse_radii(options["radius"])
    more = {} if options["data"] is None else {"inputs": _images(folder, options["data"])}
    asked = Request(
        radii,
        kinds_of(word),
        alpha,
        familywise=options["familywise"],
        drawn_only=options["drawn_only"],
        compare=False,
    )
    results, _ = certify_run(folder, asked, _certifying(options))
    return Reported(results, more)


def _images(folder: Path, data: str) -> Any:
    """The inputs of a run, once it is sure that they are."""
    from certcal.smoothing._usable import check_inputs

    manifest = open_run(folder).manifest
    inputs = model_inputs(data)
    try:
        check_inputs(manifest, inputs)
    except InputError as error:
        raise InputError(f"--data {data}: {error}") from None
    return inputs


def _certifying(options: Mapping[str, Any]) -> dict[str, Any]:
    bins = options["bins"]
    if len(bins) > 1 or bins[0] > MOST_CERTIFIED_BINS:
        given = ",".join(map(str, bins))
        raise InputError(f"--bins {given}: certified values need one number of bins, at most {MOST_CERTIFIED_BINS:,}")
    return {"bins": bins[0], "closed": options["closed"], "delta": options["delta"]}


def headline(results: Results) -> list[str]:
    """The sentences that the page is about."""
    if isinstance(results, CertifiedResults):
        return list(results.claims)
    if isinstance(results, StudiedResults):
        return [f"{each.number}  {each.answer}" for each in results.review]
    rows = {row.name: row for row in reversed(results.whole.rows)}
    return [*bound_sentences(results.bounds), rows.get("ece", results.whole.rows[0]).sentence]


def show_reported(results: Results, what: str, notes: Sequence[str]) -> None:
    """Print what the source was taken for, the headline, and what else is good to know."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(results.source), style="bold"))
    console.print(Text(printable(f"taken as {what}: {results.description}"), style="dim"))
    sentences = headline(results)
    if sentences:
        console.print()
        heading = "What was found" if isinstance(results, StudiedResults) else "What is claimed"
        console.print(Text(heading, style="bold"))
        for sentence in sentences:
            console.print(Text(printable(sentence)))
    if notes:
        console.print()
        console.print(Text(printable(" ".join(notes)), style="dim"))
