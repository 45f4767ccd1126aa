"""Does a map help? The sentences of a recalibration: log loss first, then slope, then ranges that remain wrong.

What they fail with together: :mod:`certcal.verbs.group_changes`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certcal._base.text import capital, counted
from certcal.calibrators import PREDICTION_METHODS
from certcal.result import Answer, Sentence
from certcal.verbs.answers import Diagnosis, command_for
from certcal.verbs.group_changes import ERROR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certcal.verbs.changes import Change, ChangeComparison
    from certcal.verbs.recalibrate import PredictionRecalibration

_MOST_NAMED = 5  # groups in a sentence
_OF_OUTCOMES = ("outcome", "positive", "negative", "label", "correct", "weight")  # what new scores are without

# What decides whether a map helps: proper scores, the first whose change is known within finite limits.
_PROPER = {
    "nll": "log loss",
    "top_label_nll": "log loss of the confidences",
    "brier_score": "Brier score",
    "top_label_brier_score": "Brier score of the confidences",
}


def deciding_change(change: ChangeComparison) -> Change | None:
    """The difference that decides: that of the log loss or, where that or its interval is infinite, of the Brier score.

    The log loss of scores of 0 and 1 may become infinite with the next sample, whatever these samples say.
    """
    rows = {row.name: row for row in change.rows}
    found = (rows[name] for name in _PROPER if name in rows)
    return next((row for row in found if _is_finite(row)), None)


def _is_finite(row: Change) -> bool:
    ends = () if row.interval is None else (row.interval.lower, row.interval.upper)
    return len(ends) == 2 and all(map(math.isfinite, (row.difference, *ends)))


def map_answer(found: PredictionRecalibration, why: str | None) -> Answer:
    """The answer about a map and the samples it was judged on.

    Parameters
    ----------
    found
        Before and after.
    why
        How the map was chosen; None where it was given.
    """
    change, method = found.change, found.method
    row, told = deciding_change(change), list[Sentence]()
    helps = row is not None and bool(row.changed) and row.difference < 0
    if found.is_real:
        score = next(each for each in found.after.rows if each.name == "nll")
        data = {"quantity": score.name, "value": float(score.value)}
        told.append(
            Sentence("seen", f"The map makes the scores probabilities: log loss {float(score.value):.4f}.", data=data)
        )
    elif method == "none" and why is not None:
        told.append(Sentence("seen", why))
    elif row is not None:
        called = method.replace("venn-abers", "Venn-Abers")
        told.append(_about_change(row, called, f"{called} helps", f"{called} makes it worse"))
    pair = found.two_probabilities
    if pair is not None:
        apart = f"{pair.mean_width:.4f} apart on average, {pair.largest_width:.4f} at most"
        said = f"Its two probabilities of a score are {apart}."
        told.append(Sentence("seen", said, data={"quantity": "mean_width", "value": pair.mean_width}))
    told += _about_groups(found)
    told += _about_slope(found)
    left = _ranges_left(found)
    told += [] if left is None else [left]
    columns, more = found.about.get("columns", {}), [word for by in found.about.get("by", ()) for word in ("--by", by)]
    loses = found.by_group is not None and not (found.by_group.changed and found.by_group.difference < 0)
    if helps or found.is_real:
        unfit = any(each.verdict == "worse" or each.wrong_after for each in found.groups)
        harmed = unfit and getattr(found.settings, "common_map", False)
        more = more if harmed or not (loses or found.by_group is None) else []
        more += ["--method", method] if found.choice is None and method in PREDICTION_METHODS else []
        bins = getattr(found.settings, "map_bins", None)
        more += [] if bins is None else ["--map-bins", str(bins)]
        more += ["--real-scores"] if found.is_real else []
        command = command_for(["recalibrate", "fit"], "recalibrate", found.source, columns, *more, "-o", "map.json")
        keep = "Fit one map for all instead:" if loses else _CORRECT if harmed else _KEEP
        told.append(Sentence("next", keep, data={"command": command}))
    else:
        told.append(Sentence("next", "Use the scores as they are, or judge the map on more samples."))
    assumptions = ("these samples are independent draws from those that the map will see",)
    unsaid = ("anything about an attack, or about samples that are drawn differently",)
    return Answer(tuple(told), assumptions, unsaid)


def answer_of_written_map(found: PredictionRecalibration, path: str) -> Answer:
    """The answer where the map is in a file: a map to keep is applied next, and not fitted once more."""
    columns = {role: name for role, name in found.about.get("columns", {}).items() if role not in _OF_OUTCOMES}
    words, files = ["recalibrate", "apply", path], ("-o", "calibrated.csv")
    data = {"command": command_for(words, "apply_map", "NEW.csv", columns, *files)}
    return replace(
        found.answer, sentences=tuple(replace(each, data=data) if each.text == _KEEP else each for each in found.answer)
    )


_KEEP = "Keep the map in a file, and apply that to new scores (recalibrate apply)."
_CORRECT = "Correct the map by group: one for all does not suit some of them."


def _about_change(row: Change, what: str, better: str, worse: str, names: tuple[str, str] = ("", "")) -> Sentence:
    """Whether a proper score falls, beyond its interval."""
    spread = row.interval
    assert spread is not None
    moves = "falls" if row.difference < 0 else "rises"
    ends = f"from {float(row.old.value):.4f}{names[0]} to {float(row.new.value):.4f}{names[1]}"
    numbers = f"{_PROPER[row.name]} {moves} {ends}"
    data = {"quantity": f"difference_{row.name}", "value": row.difference, "interval": [spread.lower, spread.upper]}
    data["level"] = spread.level
    if not row.changed:
        return Sentence("seen", f"Whether {what} helps is unclear: the {numbers}, within sampling error.", data=data)
    word = better if row.difference < 0 else worse
    return Sentence("shown", f"{capital(word)}: the {numbers}.", "asymptotic", data)


def _about_groups(found: PredictionRecalibration) -> list[Sentence]:
    """Whether maps by group beat one for all, and which groups a map makes worse."""
    told = list[Sentence]()
    by = " and ".join(found.about.get("by", ()))
    if found.by_group is not None:
        unmoved = all(each.move == 0 for each in found.map.corrections_)
        if unmoved:
            told.append(
                Sentence("seen", f"All groups of {by} keep the common map: no correction beats it out of fold.")
            )
        else:
            what = f"a map by {by}"
            better, worse = f"a map by {by} beats one for all", f"one map for all beats a map by {by}"
            told.append(_about_change(found.by_group, what, better, worse, (" with one map", " by group")))
    judged = [each for each in found.groups if each.score is not None]
    if not judged:
        return told
    than = " than one map for all" if found.is_real else ""
    worse = [each.group for each in judged if each.verdict == "worse"]
    better = sum(each.verdict == "better" for each in judged)
    if worse:
        said = f"The map makes {len(worse)} of {len(judged)} groups worse{than}"
        data = {"groups": worse, "level": 1 - ERROR}
        told.append(Sentence("shown", f"{said}: {_first_names(worse)}.", "asymptotic", data))
    elif found.method != "none" or better:
        gets = "gets" if better == 1 else "get"
        said = f"No group is shown to get worse{than}; {better} of {len(judged)} {gets} better."
        told.append(Sentence("seen", said, data={"level": 1 - ERROR}))
    return told


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (
        f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    )


def _about_slope(found: PredictionRecalibration) -> list[Sentence]:
    new = next((each for each in found.after.rows if each.name == "calibration_slope"), None)
    old = next((each for each in found.before.rows if each.name == "calibration_slope"), None)
    if new is None or found.method == "none" or not math.isfinite(new.value):
        return []
    after = float(new.value)
    data: dict[str, Any] = {"quantity": "calibration_slope", "value": after, "ideal": 1.0}
    if old is None or not math.isfinite(old.value):
        said = f"The calibration slope is {after:.2f}"
    else:
        data["before"] = float(old.value)
        said = f"The calibration slope goes from {float(old.value):.2f} to {after:.2f}"
    return [Sentence("seen", f"{said}; ideal is 1.", data=data)]


def _ranges_left(found: PredictionRecalibration) -> Sentence | None:
    """Ranges of scores that remain wrong, of all samples and of groups."""
    diagnosis: Diagnosis | None = getattr(found.change.new, "diagnosis", None)
    if diagnosis is None:
        return None
    left, data = len(diagnosis.ranges), {"ranges": len(diagnosis.ranges)}
    groups = [each.group for each in found.groups if each.wrong_after]
    some = f"in {len(groups)} of {len(found.groups)} groups: {_first_names(groups)}"
    if left:
        said = f"{counted(left, 'range')} of scores {'is' if left == 1 else 'are'} still wrong"
        return Sentence("shown", f"{capital(said)}{', and some ' + some if groups else ''}.", "proven", data)
    if groups:
        said = f"Some range of scores is still wrong {some}; over all samples none is seen."
        return Sentence("shown", said, "proven", data)
    after = "After it no" if found.method != "none" or found.groups else "No"
    return Sentence("seen", f"{after} range of scores is shown to be wrong.", data=data)
