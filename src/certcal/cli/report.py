"""``certcal report``: a page about a table, a run, several runs or a study, by the command that answers for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import click

from certcal._base.checks import InputError
from certcal._base.text import plain_name
from certcal.cli.app import ExampleCommand, SectionedOption, command
from certcal.cli.compare import family_names
from certcal.cli.emit import HEADLINE, OUTPUT
from certcal.cli.options import option
from certcal.cli.progress import tell
from certcal.data.formats import existing

# What a source can be, and the command that answers for it.
_KINDS = {
    "measure": "a table of predictions",
    "certify": "a run or a table of intervals",
    "compare": "runs, logs or tables to compare",
    "review": "a table of a study",
}
# Where the default differs from that of the command.
_HELP = {"bounds": "Also bound the true calibration error. Default for a table of predictions."}
_CERTIFIED = {"lower", "upper", "certified"}


@cache
def _commands() -> dict[str, ExampleCommand]:
    from certcal.cli.certify import certify
    from certcal.cli.compare import compare
    from certcal.cli.measure import measure
    from certcal.cli.study import review

    return cast("Any", {"measure": measure, "certify": certify, "compare": compare, "review": review})


class _AnyCommand(ExampleCommand):
    """A command that takes the options of several others and hands them on as they were written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, also with the options of the commands that it may call, each once."""
        known = _flags(self)
        for other in _commands().values():
            for each in other.params:
                if isinstance(each, SectionedOption) and known.isdisjoint(each.opts):
                    known |= set(each.opts)
                    taken = any(own.name == each.name for own in self.params)  # by another flag of another command
                    self.params.append(_option_as_text(each, None if taken else each.name))
        return super().parse_args(ctx, args)


def _flags(of: click.Command) -> set[str]:
    return {flag for each in of.params for flag in each.opts}


def _option_as_text(other: SectionedOption, name: str | None) -> SectionedOption:
    """An option of another command whose value stays a text; without a name, the flag names it."""
    value: dict[str, Any] = {"is_flag": True} if other.is_flag else {"multiple": True, "metavar": other.metavar}
    if isinstance(other.type, click.Path):
        value["type"] = click.Path()  # shells complete files
    elif isinstance(other.type, click.Choice):
        value["type"] = cast("Any", other.type)
    return SectionedOption(
        [*other.opts, *([name] if name else [])],
        section=other.section,
        help=_HELP.get(other.name or "", other.help),
        shell_complete=other._custom_shell_complete,  # pyright: ignore[reportPrivateUsage]
        **value,
    )


@command(
    ("certcal report predictions.csv", "a table of predictions: writes predictions.html"),
    ("certcal report predictions.csv --by hospital -o review.html", "with each group, under a name of its own"),
    ("certcal report intervals.parquet", "a table of certified intervals"),
    ("certcal report run --data test.npz", "a run of certcal sample, with its images"),
    ("certcal report run --radius .25,.5,1 --familywise", "at these radii, for all samples together"),
    ("certcal report old.csv new.csv", "two tables of predictions: writes comparison.html"),
    ("certcal report small-noise large-noise", "runs beside each other: writes comparison.html"),
    ("certcal report gaussian=g25 gaussian=g50 acr=a25 acr=a50", "training methods, each at two noise levels"),
    ("certcal report predictions.csv --title 'Triage model, July' --open", "open it in a browser"),
    cls=_AnyCommand,
)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path())
@option(OUTPUT, "--open", "open_it", is_flag=True, help="Open the page in a browser.")
@click.pass_context
def report(ctx: click.Context, sources: tuple[str, ...], open_it: bool, **options: Any) -> None:
    """Write a page about SOURCE that a colleague can read and a reviewer can check.

    SOURCE is a table of predictions (or an old and a new one) or of certified intervals, the folder of a run, several
    runs and published logs (NAME=SOURCE puts each into a family), or the table of a study. Its columns tell which. The
    page is what certcal measure, certify, compare or study review write with -o; their options are taken here, too.
    Tables of predictions get bounds unless told otherwise.
    """
    given = {name: value for name, value in options.items() if value}
    kind = _kind_of(sources, given)
    page_command = _commands()[kind]
    words = [*sources, *_options_as_written(ctx, page_command, kind, sources, given)]
    page = next((name for name in given.get("files", ()) if name.lower().endswith(".html")), None)
    if page is None:
        page = _default_name(sources)
        words += ["-o", page]
    ctx.meta[HEADLINE] = f"taken as {_taken_as(kind, sources)}"
    with page_command.make_context(ctx.info_name, words, parent=ctx.parent) as inner:
        if kind == "measure" and "bounds" not in given:  # where they can be had
            inner.params["bounds"] = None
        try:
            page_command.invoke(inner)
        finally:  # a page that says what is not met is worth reading, too
            if open_it and Path(page).exists() and click.launch(Path(page).resolve().as_uri()) != 0:
                tell(f"no browser could be started; open {page} in one")


def _kind_of(sources: Sequence[str], given: Iterable[str]) -> str:
    """Tell by folders, columns and options which command answers."""
    from certcal.data import open_table
    from certcal.data.layout import is_study, table_kind
    from certcal.smoothing import open_run

    families = family_names(sources)
    paths = [existing(each, "table, run or log") for each in (sources if families is None else dict(families).values())]
    if families is not None or len(paths) > 1:
        return "compare"
    if paths[0].is_dir():
        open_run(paths[0])  # or else it is some other folder
        return "certify"
    options = set(given)
    names = {plain_name(name) for name in open_table(paths[0]).names}
    if table_kind(names) == "log" or options & {"sigmas", "draws"}:
        return "compare"
    if options & _CERTIFIED:
        return "certify"
    if is_study(names):
        return "review"
    if options & {"score", "outcome", "positive", "confidence", "probabilities", "logits"}:
        return "measure"
    return "certify" if table_kind(names) == "intervals" else "measure"


def _taken_as(kind: str, sources: Sequence[str]) -> str:
    if kind != "certify":
        return _KINDS[kind]
    return "a run" if Path(sources[0]).is_dir() else "a table of intervals"


def _options_as_written(
    ctx: click.Context, page_command: click.Command, kind: str, sources: Sequence[str], given: dict[str, Any]
) -> list[str]:
    """The options as they were written, for a command that knows them; others are refused."""
    known = _flags(page_command)
    words: list[str] = []
    for each in ctx.command.params:
        if each.name not in given or each.name in ("sources", "open_it"):
            continue
        flag = max(each.opts, key=len)
        if known.isdisjoint(each.opts):
            owners = [name for name, other in _commands().items() if not _flags(other).isdisjoint(each.opts)]
            whose = " or ".join(_KINDS[name] for name in owners)
            what = f"{sources[0]} is {_taken_as(kind, sources)}" if len(sources) == 1 else f"these are {_KINDS[kind]}"
            raise InputError(f"{flag} is for {whose}, and {what}; leave it out")
        values: Any = given[each.name]
        words += [flag] if values is True else [word for value in values for word in (flag, value)]
    return words


def _default_name(sources: Sequence[str]) -> str:
    """The page's file when none is given: in the working folder, named after the source.

    Examples
    --------
    >>> _default_name(["data/scores.csv.gz"]), _default_name(["a", "b"]), _default_name(["gaussian=a"])
    ('scores.html', 'comparison.html', 'comparison.html')
    """
    if len(sources) > 1 or family_names(sources) is not None:
        return "comparison.html"
    path = Path(sources[0])
    name = path.name or path.resolve().name
    stem = name if path.is_dir() else name.split(".")[0]
    return f"{'report' if stem in ('', '-') else stem}.html"
