"""Sequential decisions about a radius: the words and the layout of Decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certcal._base.rounding import times_text
from certcal.claims import short_text
from certcal.report.charts import Chart, Stack, counts
from certcal.report.document import Cell, Claim, Column, Facts, Report, Section, Table, Text

if TYPE_CHECKING:
    from certcal.smoothing import Decisions

_ROWS = (("above", "R > {low}"), ("below", "R ≤ {high}"), ("undecided", "UNDECIDED"))


def view(found: Decisions) -> Report:
    """The report of decisions."""
    s = found.setting
    radius, level = short_text(s.radius, "lower"), short_text(s.alpha, "upper")
    right, n = int(np.count_nonzero(found.certified & found.correct)), len(found)
    claim = Claim(
        "Certificate",
        found.sentence,
        f"{right:,} of {n:,}",
        f"Each of them fails {times_text(s.alpha)}, over the noise.",
        found.assumptions,
    )
    used, most = int(found.draws.sum()), s.budget * n
    saved = f"{used:,} noise samples, {most / used:.1f} times fewer than {s.budget:,} for each input."
    chart = verdicts_chart(found)
    facts = [("model", s.model), ("sigma", f"{s.sigma:g}"), ("noise", s.noise), ("alpha", level)]
    facts += [("alpha below", short_text(s.alpha_below, "upper")), ("budget", f"{s.budget:,}"), ("n0", f"{s.n0:,}")]
    facts += [("looks at multiples of", f"{s.block:,}"), ("seed", str(s.seed))]
    return Report(
        f"Is the certified radius above {radius}?",
        [claim],
        [
            Section("Samples by verdict", chart, pictured=True),
            Section("Verdicts", [_verdicts(found), Text(saved, "note")], brief=True),
        ],
        [Section("Settings", [Facts(facts)])],
        found.source,
        f"{n:,} samples; sigma {s.sigma:g}, alpha {level}",
        [
            f"Undecided samples count as not certified: they used up the budget of {s.budget} noise samples. "
            "Deciding them again with a larger budget spends alpha again."
        ],
        picture=[chart],
    )


def verdicts_chart(found: Decisions) -> Chart:
    """How many samples got each verdict, and how many of them are predicted correctly."""
    names, terms, totals = list[str](), list[dict[str, float]](), list[str]()
    for name, chosen in _chosen(found).items():
        right, several = int(np.count_nonzero(found.correct & chosen)), int(np.count_nonzero(chosen))
        names.append(name)
        terms.append({"predicted correctly": right, "predicted wrongly": several - right})
        totals.append(f"{several:,} of {len(found):,}")
    said = " ".join(f"{name}: {total}." for name, total in zip(names, totals, strict=True))
    return Chart("Samples by verdict", said, [Stack(names, terms, totals, counts([len(found)]))])


def _chosen(found: Decisions) -> dict[str, NDArray[np.bool_]]:
    """Which samples got a verdict, by its words."""
    low, high = (short_text(found.setting.radius, end) for end in ("lower", "upper"))
    return {text.format(low=low, high=high): found.decision == verdict for verdict, text in _ROWS}


def _verdicts(found: Decisions) -> Table:
    names = ("samples", "correct", "median noise samples", "noise samples")
    rows: list[list[Cell]] = []
    for name, chosen in _chosen(found).items():
        own = found.draws[chosen]
        median = int(np.median(own)) if own.size else None
        rows.append([name, own.size, int(np.count_nonzero(found.correct & chosen)), median, int(own.sum())])
    return Table([Column("verdict"), *(Column(each, "count") for each in names)], rows)
