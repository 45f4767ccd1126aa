"""Which samples runs are about: the same ones, or those that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certcal._base.checks import InputError, choice
from certcal._base.text import counted
from certcal.smoothing.robustness.votes import VoteRecord

SAMPLES = ("all", "common", "unpaired")
UNPAIRED = (
    "Samples are not paired: part of every difference may be that of the samples. Certified accuracies are tested as "
    "those of independent samples, and of nothing else is said what is beyond chance."
)
# How many runs a sentence names.
_FEW = 3


def find_different_samples(records: Sequence[VoteRecord]) -> tuple[str, str, str] | None:
    """Who, what and remedy for the first run about other samples than those of ``records[0]``; None if all agree."""
    if len(records) == 0:
        raise InputError("records is empty; pass at least one run")
    first = _labels(records[0])
    for other in records[1:]:
        labels, who = _labels(other), f"{records[0].name} and {other.name} are about different samples"
        if what := _contradiction(records[0], other):
            return who, f"{what}, so their numbers do not mean the same samples", "compare runs that number them alike"
        if unlike := sorted(first.keys() ^ labels.keys()):
            what = f"sample {unlike[0]} is in {records[0].name if unlike[0] in first else other.name} only"
            return who, what, "compare the common ones, or runs of the same samples"
    return None


def check_same_samples(records: Sequence[VoteRecord]) -> None:
    """Refuse runs over different samples: part of every difference would be theirs, and no sample would be a pair."""
    if found := find_different_samples(records):
        who, what, remedy = found
        raise InputError(f"{who} ({what})", argument="samples", remedy=remedy)


def on_common_samples(
    sources: Sequence[Any], records: Sequence[VoteRecord], samples: str
) -> tuple[list[Any], list[VoteRecord], list[str]]:
    """Runs and their records, cut to the samples that all have if that is asked for, and what was left out."""
    choice(samples, SAMPLES, "samples")
    if samples != "common" or find_different_samples(records) is None:
        return list(sources), list(records), []
    first = records[0]
    shared = set(first.index.tolist())
    for other in records[1:]:
        if what := _contradiction(first, other):
            raise InputError(
                f"{what}, so their numbers do not mean the same samples; compare runs that number them alike"
            )
        shared &= set(other.index.tolist())
        if not shared:
            raise InputError(f"{first.name} and {other.name} have no sample in common; there is nothing to compare")
    kept = np.array(sorted(shared))
    rows = [np.flatnonzero(np.isin(record.index, kept)) for record in records]
    left = [f"{r.name} ({len(r) - kept.size:,})" for r in records if len(r) > kept.size]
    listed = ", ".join(left[:_FEW]) + (f" and {len(left) - _FEW} more" if len(left) > _FEW else "")
    note = f"Compared on the {counted(kept.size, 'sample')} that all runs have; left out of {listed}."
    cut = [source.select(which) for source, which in zip(sources, rows, strict=True)]
    return cut, [record.select(which) for record, which in zip(records, rows, strict=True)], [note]


def _labels(record: VoteRecord) -> dict[int, int]:
    return dict(zip(record.index.tolist(), record.label.tolist(), strict=True))


def _contradiction(first: VoteRecord, other: VoteRecord) -> str:
    """The first sample to which two runs give different labels, as a clause; empty where there is none."""
    one, two = _labels(first), _labels(other)
    bad = [index for index in sorted(one.keys() & two.keys()) if one[index] != two[index]]
    named = f" has label {one[bad[0]]} in {first.name} and {two[bad[0]]} in {other.name}" if bad else ""
    return f"sample {bad[0]}{named}" if bad else ""
