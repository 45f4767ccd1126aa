"""What a table of a study holds: the words and the layout of a StudyOverview."""

from __future__ import annotations

from collections.abc import Sequence

from certcal.lab.study import StudyOverview
from certcal.report.charts import Chart, Line, Panel, covering, named_axis
from certcal.report.document import Block, Column, Facts, Listing, Report, Section, Table, Text

_MOST_NAMED, _MOST_FAILURES = 10, 10


def view(found: StudyOverview) -> Report:
    """The report of a table."""
    sections = [Section("Data sets", [_medians(found)], brief=True)]
    failures = [f"{model} on {data} ({split}): {reason}" for model, data, split, reason in found.failures]
    if failures:
        shown = failures[:_MOST_FAILURES]
        rest = f"and {len(failures) - len(shown):,} more; the table's column 'reason' has them all"
        blocks: list[Block] = [Listing(shown), *([Text(rest)] if len(shown) < len(failures) else [])]
        sections.append(Section(f"Failed rows: {len(failures):,}", blocks, brief=True))
    sections.append(Section("Columns and settings", [Facts(_facts(found))], brief=True))
    return Report(
        "What is in this table?",
        [],  # what was measured is the description of every report
        sections,
        source=found.source,
        notes=["Estimates from these samples, not guarantees.", *found.notes],
    )


def charts(found: StudyOverview) -> Sequence[Chart]:
    """Median ECE before and after scaling, data set by data set."""
    names = [f"{each.data} ({each.split})" for each in found.medians]
    places = [place + 0.5 for place in range(len(names))]
    before, after = [each.before for each in found.medians], [each.after for each in found.medians]
    lines = [Line(places, before, 0, "before scaling"), Line(places, after, 1, "after scaling")]
    panel = Panel(named_axis(names, "data set"), covering([*before, *after], "median ECE"), lines)
    return [Chart("Median ECE by data set", "Before and after temperature scaling.", [panel])]


def _medians(found: StudyOverview) -> Table:
    several = len({each.split for each in found.medians}) > 1
    bins = found.medians[0].bins if found.medians else None
    columns = [Column("data"), *([Column("split")] if several else []), Column("models", "count")]
    columns += [Column("failed", "count")]
    columns += [Column(head, "estimate") for head in ("accuracy", "ECE", "after scaling")]
    rows = [
        [
            each.data,
            *([each.split] if several else []),
            each.models,
            each.failed,
            *(None if value != value else value for value in (each.accuracy, each.before, each.after)),
        ]
        for each in found.medians
    ]
    return Table(columns, rows, f"Medians over models{'' if bins is None else f'; ECE with {bins} bins'}", most=1000)


def _facts(found: StudyOverview) -> list[tuple[str, str]]:
    table, settings = found.table, found.table.settings
    own = [name for name in ("accuracy",) if name in table]
    facts = [
        ("splits", _names_text(table.splits)),
        ("measurements", _names_text([str(name) for name in table.measurements])),
        ("other columns", _names_text([*own, *table.given])),
    ]
    if "validation" in settings:
        share = f"on {settings['validation']:.4g} of the samples, seed {settings['seed']}; the rest was measured"
        facts.append(("temperature fitted", share))
    if scale := settings.get("scale"):
        facts.append(("read as", f"accuracies: {scale['accuracy']}, calibration errors: {scale['errors']}"))
    return facts


def _names_text(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more if names else "none"
