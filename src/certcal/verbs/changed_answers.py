"""From two sets of numbers to an answer: better, worse or unclear, by what, and what to do next.

*The same samples.* What decides is a proper score, a mean over samples: no calibration error tells a better model from
one that says less. The calibration error and, of binary scores, the slope follow.

*Other samples*, such as next month's. Their scores also depend on how hard they are, so nothing is said about which
model is better; the calibration error decides, and O/E and slope follow.

*Together.* A shown sentence claims a direction, and is wrong where the truth has the other one: one end of a 95 %
interval, 2.5 %. Of O/E and slope, whose distance from 1 takes both ends of two intervals, it is all of what the two
leave. By the union bound all shown sentences hold together with probability 95 % if these shares add up to 5 %: so
sentences are shown in their order while they do, which leaves the slope to be seen. Results whose rows are gone have
wider intervals, and fewer sentences that are shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certcal._base.rounding import about
from certcal._base.text import counted
from certcal.metrics.differences import proper_scores
from certcal.result import Answer, Sentence
from certcal.verbs.answers import command_for
from certcal.verdict.ends import FOUR_OF_FIVE

if TYPE_CHECKING:
    from certcal.verbs.changes import Change, ChangeComparison

_FAILURE, _ROOM = 0.05, 1e-9
_SCORES = {"nll": "log loss", "top_label_nll": "log loss"}
_OTHERS = {
    "ece": "The calibration error",
    "observed_expected_ratio": "Observed / expected",
    "calibration_slope": "The calibration slope",
}
_MOST_ROWS = 10**9


def judged_names(task: str, *, paired: bool) -> dict[str, float]:
    """Names of what an answer is about, the first of which decides, and the levels of their intervals."""
    first = [proper_scores(task)[0], "ece"] if paired else ["ece"]
    risks = {} if paired else {"observed_expected_ratio": 0.975}
    return dict.fromkeys(first, 0.95) | (risks | {"calibration_slope": 0.95} if task == "binary" else {})


def change_answer(found: ChangeComparison) -> Answer:
    """The answer about two tables, or about two results."""
    sentences, spent = list[Sentence](), 0.0
    for change in found.judged:
        spent += _failure_of(change)
        shown = change.verdict in ("better", "worse") and spent <= _FAILURE + _ROOM
        text = _text_of_score(found, change, shown=shown) if change.name not in _OTHERS else _text(change, shown=shown)
        sentences.append(Sentence("shown" if shown else "seen", text, "asymptotic" if shown else "", _numbers(change)))
    if not found.paired and all(each.kind == "seen" for each in sentences):
        first = sentences[0]
        sentences[0] = replace(first, text=f"No change is shown: {first.text[0].lower()}{first.text[1:]}")
    n = counted(found.new.n, "sample") if found.paired else f"these {found.old.n:,} and {found.new.n:,} samples"
    assumptions = (
        f"{f'these {n}' if found.paired else n} are independent draws from those the models will see",
        "none of them was used to train, choose or recalibrate a model",
    )
    unsaid = ["anything about samples that are drawn differently, or later"]
    if not found.paired:
        unsaid = ["which model is better: rows that are not the same samples may be harder or easier"]
    return Answer((*sentences[:3], _next_step(found, sentences)), assumptions, tuple(unsaid))


def _failure_of(change: Change) -> float:
    """Probability that a sentence has the wrong direction."""
    spread, entry = change.interval, change.entry
    if spread is None or entry is None:
        return 0.0
    return (1 - spread.level) / (2 if isinstance(entry.better, str) else 1)


def _text_of_score(found: ChangeComparison, change: Change, *, shown: bool) -> str:
    name = _SCORES.get(change.name, "Brier score")
    instead = "" if name == "log loss" else ", which stands for the log loss that scores of exactly 0 or 1 leave open,"
    moved = _moved(change, *(f"{float(each.value):.4f}" for each in (change.old, change.new)), shown=shown)
    if change.difference == 0:
        return f"Neither is better: the {name}{instead} {moved}."
    if not shown:
        return f"Which is better is unclear: the {name}{instead} {moved}."
    return f"{found.new.source} is {change.verdict} than {found.old.source}: the {name}{instead} {moved}."


def _moved(change: Change, old: str, new: str, *, shown: bool) -> str:
    if change.difference == 0:
        return f"stays at {new}"
    said = f"{'rises' if change.difference > 0 else 'falls'} from {old} to {new}"
    return said if shown else f"{said}, within sampling error"


def _text(change: Change, *, shown: bool) -> str:
    values = [float(each.value) for each in (change.old, change.new)]
    what = _OTHERS[change.name]
    if change.name == "ece":
        moved = _moved(change, *(f"{100 * value:.2f}%" for value in values), shown=shown)
        return f"{what} in {change.new.settings['bins']} bins {moved}."
    if any(map(math.isnan, values)):
        return f"{what} is undefined."
    near = "nearer to" if abs(values[1] - 1) < abs(values[0] - 1) else "no nearer to"
    return f"{what} is {near} 1: {values[0]:.2f} before, now {values[1]:.2f}."


def _numbers(change: Change) -> dict[str, Any]:
    found = {"quantity": change.name, "old": float(change.old.value), "value": float(change.new.value)}
    spread = change.interval
    if spread is None:
        return found
    return {**found, "difference": change.difference, "interval": [spread.lower, spread.upper], "level": spread.level}


def _next_step(found: ChangeComparison, told: Sequence[Sentence]) -> Sentence:
    """What to do: see where the new one is still wrong, keep the old one, or bring more rows."""
    first, key = found.judged[0], None if found.pairing is None else found.pairing.suggested
    if key is not None:
        said = f"{key!r} says each value once in both tables. If it says which sample a row is, pair the rows by it."
        return Sentence("next", said, data={"command": _paired_by(found, key)})
    if found.paired and told[0].kind == "shown" and first.verdict == "worse":
        return Sentence("next", f"Keep {found.old.source}.")
    if not found.paired or any(each.kind == "shown" for each in told):
        about = found.new.about
        table = about.get("table", found.new.source), about.get("columns", {})
        command = command_for(["measure"], "measure", *table)
        return Sentence("next", "See where the new one is wrong:", data={"command": command})
    if all(each.difference == 0 for each in found.judged):
        return Sentence("next", "See whether these are two tables: every number judged is the same in both.")
    if (rows := _rows_needed(first)) is None:
        return Sentence("next", "Bring more rows, or take the simpler one.")
    said = f"Bring more rows, or take the simpler one: about {rows:,} would show a difference of this size."
    return Sentence("next", said, data={"rows": rows})


def _paired_by(found: ChangeComparison, key: str) -> str:
    """The same comparison with a key."""
    old, new = (str(side.about.get("table", side.source)) for side in (found.old, found.new))
    if any("." not in name.rpartition("/")[2] for name in (old, new)):
        return f"certcal.compare(old, new, key={key!r})"
    return command_for(["compare", old], "compare", new, found.new.about.get("columns", {}), "--key", key)


def _rows_needed(change: Change) -> int | None:
    """About how many rows make an interval of a mean exclude 0 in 4 of 5 tables, to two digits."""
    spread, step = change.interval, abs(change.difference)
    if spread is None or not step > 0 or not math.isfinite(spread.upper - spread.lower):
        return None
    rows = FOUR_OF_FIVE * change.new.n * ((spread.upper - spread.lower) / (2 * step)) ** 2
    return about(rows) if rows <= _MOST_ROWS else None
