"""What every command does with its result: files, JSON or a view in the terminal, and MLflow."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from certcal._base.checks import InputError
from certcal._base.files import refuse_overwriting, size_and_digest, write_together
from certcal._base.text import did_you_mean
from certcal.cli.app import ExampleCommand
from certcal.cli.errors import BAD_INPUT, complain
from certcal.cli.mlflow import log_to_mlflow, mlflow_option
from certcal.cli.options import OUTPUT, option, options
from certcal.cli.progress import be_quiet, tell
from certcal.result import MARKUP, NUMBERS, PAGE, PICTURES, TEXT, Answer, Result
from certcal.verdict import PREFIX, Requirement, Verdict, plain

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

# Set where only the headline is printed, since the page has the rest: what the source was taken as.
HEADLINE = "certcal.headline"
# The exit code of a requirement that is not met.
NOT_MET = 1
DRAWN = (*PAGE, *TEXT, *PICTURES, *NUMBERS, *MARKUP)
WRITTEN = (*PAGE, *TEXT, *NUMBERS, *MARKUP)
_KINDS = {
    ".html": "a page (.html)",
    ".txt": "a text (.txt)",
    ".png": "a figure (.png .svg .pdf)",
    ".json": "numbers (.json .csv)",
    ".md": "tables (.md .tex)",
    ".parquet": "intervals (.parquet)",
}


# What stands beside the name of a number that is certified, or about a population.
_BESIDE = re.compile(r"^(population|samples|claimed)_|_(of|for)_the_(weighted_)?population$|_in_the_population$")
_DIGEST_OF_FOLDERS = (
    "The SHA-256 of a run or folder is that of the list of its files with theirs. Inside its folder: "
    "find * -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
)


@dataclass
class Output:
    """Where a command's result goes."""

    endings: Sequence[str]
    as_json: bool
    files: tuple[str, ...]
    force: bool
    full: bool = False
    diagrams: bool = True
    mlflow: bool = False
    require: tuple[Requirement, ...] = ()
    page: dict[str, Any] = field(default_factory=dict[str, Any])
    paths: list[Path] = field(default_factory=list[Path])
    _sources: list[Path] = field(default_factory=list[Path])

    def check(self, *sources: str | Path) -> None:
        """Refuse what could not be written later, before anything is computed."""
        self._refuse_unknown_names()
        self._sources = [Path(each) for each in sources]
        self.paths = [Path(name) for name in self.files]
        for path in self.paths:
            ending = path.suffix.lower()
            if ending not in self.endings:
                raise InputError(f"-o {path}: choose one of the endings {', '.join(self.endings)}")
            if ending in PICTURES and find_spec("matplotlib") is None:
                raise InputError(f"-o {path}: pictures need matplotlib; run: pip install 'certcal[report]'")
            for source in self._sources:
                if source.is_dir() and path.resolve().is_relative_to(source.resolve()):
                    what = "the run" if (source / "manifest.json").exists() else f"{source}, which is read"
                    raise InputError(f"-o {path}: this is inside {what}; choose another folder")
                if path.exists() and source.exists() and path.samefile(source):
                    raise InputError(f"-o {path}: this is the file being read; choose another name")
            if path.is_file() and not self.force:
                raise InputError(f"{path} exists and is not overwritten; choose another name, or add --force")
            refuse_overwriting(path, force=self.force)
        if len({path.resolve() for path in self.paths}) < len(self.paths):
            raise InputError("-o names the same file twice; give each file once")

    def _refuse_unknown_names(self) -> None:
        """Refuse requirements on what no result has; what only this one lacks is told when it is there."""
        if not self.require:
            return
        from certcal.report.names import requirement_names

        metrics = click.get_current_context().params.get("metrics") or ()
        known = {*requirement_names()} | {plain(each.__name__) for each in metrics if callable(each)}
        for each in self.require:
            name = _BESIDE.sub("", PREFIX.sub("", each.name, count=1))
            if name not in known:
                hint = did_you_mean(name, known, "certcal measure --help and docs/reports.md have the names")
                raise InputError(f"there is no number called {each.words!r}", argument="require", remedy=hint)

    def with_required(self, metrics: Iterable[Any]) -> tuple[Any, ...]:
        """Metrics that were asked for, or the default, and those that requirements are about."""
        from certcal.metrics.registry import DEFAULT, TASK_KINDS, metric_name, named_rows, row_names
        from certcal.report.names import vocabulary

        found = tuple(metrics)
        for each in self.require:
            name = PREFIX.sub("", each.name, count=1)
            meant = (metric_name(name), *vocabulary().names(name))
            lacking = [row_names(task) for task in TASK_KINDS if {*named_rows(found, task)}.isdisjoint(meant)]
            required = [one for one in meant if any(one in rows for rows in lacking)]
            found = (*(found or (DEFAULT,)), *required[:1]) if required else found
        return found

    def emit(
        self,
        result: Result,
        *,
        sources: Iterable[str | Path] | None = None,
        written: Iterable[str | Path] = (),
        also: Mapping[Path, bytes] | None = None,
        folder: Path | None = None,
        answer: Answer | None = None,
        **report: Any,
    ) -> None:
        """Write the files, print the result, say what was written, and log to MLflow if that was asked.

        All files are there in the end or none of them; ``also`` are more of them, in a ``folder`` that is made. An
        ``answer`` is what a terminal shows in place of the result's. Leaves with exit code 1 when a requirement is not
        met, after all of that.
        """
        read = self._sources if sources is None else [Path(each) for each in sources]
        verdict = self._verdict(result)
        judged = {"require": self.require} if verdict is not None else {}
        # Files that were read are digested once, and only for those who are told.
        told = {"provenance": provenance(result, read)} if self.as_json or self.paths else {}
        try:
            files = dict(also or {})
            for path in self.paths:
                files[path] = result.to_bytes(path.suffix.lower(), **self.page, **report, **judged, **told)
            write_together(files, force=self.force, folder=folder)
        finally:  # a full disk is no reason to lose numbers that took long to find
            self._print_result(result, verdict, answer, **judged, **report, **told)
        for path in files:
            tell(f"wrote {path}")
        if self.mlflow:
            log_to_mlflow(result, [*map(Path, written), *self.paths])
        if self.require and verdict is None:
            raise click.exceptions.Exit(BAD_INPUT)
        if verdict is not None and not verdict.passed:
            raise click.exceptions.Exit(NOT_MET)

    def _verdict(self, result: Result) -> Verdict | None:
        """The verdict; why there is none is said at once, for that must not lose numbers that took long to find."""
        if not self.require:
            return None
        try:
            return result.verdict(*self.require)
        except InputError as error:
            context = click.get_current_context()
            own = context.command
            said = own.in_options(context, error) if isinstance(own, ExampleCommand) else str(error)
            complain(f"{said}{'' if said.endswith('?') else '.'} The numbers follow, without a verdict.")
            return None

    def _print_result(self, result: Result, verdict: Verdict | None, answer: Answer | None, **report: Any) -> None:
        if self.as_json:
            click.echo(result.to_json(require=report.get("require", ()), provenance=report["provenance"]), nl=False)
            for line in () if verdict is None else str(verdict).splitlines():
                tell(line)
            return
        from certcal.report.terminal import make_console, render

        made = result.report(**self.page, **report)
        made = made if answer is None else made.of(answer=answer)
        taken = click.get_current_context().meta.get(HEADLINE)
        if taken is not None:
            made = made.of(sections=(), appendix=(), description=f"{taken}: {made.description}")
        render(made, make_console(sys.stdout), full=self.full, diagrams=self.diagrams)


def is_given(name: str) -> bool:
    """Whether an option of the running command was written, and not left at its default."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def provenance(result: Result, sources: Iterable[Path]) -> Any:
    """How the running command came to its result: the words as typed, seeds, and the files and runs that were read."""
    return result.provenance(_command_words(), **_describe_inputs(sources))


def origin(*sources: str | Path) -> dict[str, Any]:
    """Provenance as JSON, for commands whose output is not a result."""
    from certcal.report.provenance import Provenance

    return Provenance.here(_command_words(), **_describe_inputs(sources)).to_dict()


def _command_words() -> tuple[str, ...] | None:
    words = click.get_current_context().find_root().obj
    return None if words is None else ("certcal", *words)


def _describe_inputs(sources: Iterable[str | Path]) -> dict[str, Any]:
    """Files and runs that were read, each once, with their digests."""
    from certcal.data.formats import local_file

    files = {str(Path(source)): local_file(source) for source in dict.fromkeys(map(str, sources))}
    there = {name: file for name, file in files.items() if file.exists()}
    notes = [_DIGEST_OF_FOLDERS] if any(file.is_dir() for file in there.values()) else []
    return {"inputs": ((name, *size_and_digest(file)) for name, file in there.items()), "notes": notes}


def _parse_about(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> dict[str, str]:
    """Turn ``owner=Risk team`` into a field of the page."""
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise click.BadParameter(f"{text!r} is not NAME=TEXT, such as owner='Risk team'", ctx, param)
        if name.strip() in found:
            raise click.BadParameter(f"{name.strip()} is given twice; give it once", ctx, param)
        found[name.strip()] = value.strip()
    return found


def _requirements(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> tuple[Requirement, ...]:
    """Read requirements, before anything is computed."""
    try:
        return tuple(map(Requirement.parse, values))
    except InputError as error:
        raise click.BadParameter(error.said("").removeprefix(": "), ctx, param) from None


def output_option(metavar: str, text: str, *, required: bool = True) -> Callable[[Decorated], Decorated]:
    """Where a command that writes one file or folder puts it: ``out``."""
    return option(OUTPUT, "-o", "--output", "out", required=required, metavar=metavar, type=click.Path(), help=text)


explain_option = option(OUTPUT, "--explain", is_flag=True, help="Show all sections, with definitions.")
json_option = option(OUTPUT, "--json", "as_json", is_flag=True, help="Print JSON, with all digits.")
force_option = option(OUTPUT, "--force", is_flag=True, help="Replace an existing file.")
quiet_option = option(
    OUTPUT,
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=be_quiet,
    help="Print only the result and errors, no progress or notes.",
)


def output_options(
    endings: Sequence[str] = WRITTEN,
    *,
    detail: bool = True,
    judged: bool = True,
    mlflow: bool = True,
    what: str = "Also write",
    files: Mapping[str, str] | None = None,
    required: str | None = None,
    force: str = "Replace existing files.",
) -> Callable[[Decorated], Decorated]:
    """Options of what a command writes and prints; its function gets them as one argument, ``output``."""
    named = {**_KINDS, **(files or {})}
    kinds = [text for ending, text in named.items() if ending in endings]
    listed = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
    decorators: list[Callable[[Any], Any]] = []
    if detail:
        decorators.append(explain_option)
        decorators.append(option(OUTPUT, "--no-diagram", is_flag=True, help="Print no diagrams here; pages have them."))
    if PAGE[0] in endings:
        if judged:
            decorators += [
                option(
                    OUTPUT,
                    "--require",
                    multiple=True,
                    callback=_requirements,
                    metavar="TEXT",
                    help="Requirement such as 'ece <= 5%' or '0.9 <= calibration slope <= 1.1', judged on the bound or "
                    "the interval: met, not met, or not shown by so few samples. Exit code 1 for the last two; "
                    "repeatable.",
                )
            ]
        decorators += [
            option(OUTPUT, "--title", metavar="TEXT", help="Title of the page."),
            option(
                OUTPUT,
                "--about",
                multiple=True,
                callback=_parse_about,
                metavar="NAME=TEXT",
                help="Field of the page: model, version, owner, period, intended use, limit set by, or others.",
            ),
        ]
    decorators += [
        json_option,
        option(
            OUTPUT,
            "-o",
            "--output",
            "files",
            multiple=required is None,
            required=required is not None,
            metavar=required or "FILE",
            type=click.Path(),
            help=f"{what} {listed}{'; repeatable' if required is None else ''}.",
        ),
        option(OUTPUT, "--force", is_flag=True, help=force),
        quiet_option,
    ]
    if mlflow:
        decorators.append(mlflow_option)

    def decorate(command: Decorated) -> Decorated:
        @functools.wraps(command)
        def call(**given: Any) -> Any:
            page = {name: given.pop(name) for name in ("title", "about") if name in given}
            named = given.pop("files")
            output = Output(
                endings,
                given.pop("as_json"),
                named if required is None else (named,),
                given.pop("force"),
                full=given.pop("explain", False),
                diagrams=not given.pop("no_diagram", False),
                mlflow=given.pop("mlflow", False),
                require=given.pop("require", ()),
                page={name: value for name, value in page.items() if value not in (None, {})},
            )
            return command(output=output, **given)

        return options(*decorators)(call)  # pyright: ignore[reportReturnType]

    return decorate
