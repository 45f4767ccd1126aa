"""A run on disk at a glance: the words and the layout of a RunSummary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certcal.claims import short_text
from certcal.report.document import Block, Facts, Listing, Report, Section, Text

if TYPE_CHECKING:
    from certcal.verbs.sample import RunSummary

_KINDS = {"gaussian": "Gaussian", "exact": "exact, for inputs on k/255"}
_AGAIN = "certcal.sample, called again with the same model and data"


def view(found: RunSummary) -> Report:
    """The report of a run."""
    m, state = found.run.manifest, found.state
    share = f"{state.finished:,} of {state.total:,}"
    done = f"All {share}" if state.complete else f"{share}, {100 * state.finished / state.total:.1f} %,"
    sections = [Section("Contents", [Facts(_facts(found))], brief=True)]
    if found.overview is not None:
        sections.append(Section("Votes", [Facts(_votes(found))], brief=True))
    if not state.complete:
        blocks: list[Block] = [Listing([f"Damaged: {unit.name}: {why}." for unit, why in state.damaged])]
        blocks = [*(blocks if state.damaged else []), Text("What is missing is sampled by:")]
        sections.append(Section("Missing", [*blocks, Text(found.resume or _AGAIN, "code")], brief=True))
    return Report(
        "What is in this run?",
        [Text(f"{done} noise samples are there.")],
        sections,
        [],
        str(found.run.path),
        f"{m.samples:,} samples of shape {'×'.join(map(str, m.data.shape))}, {m.model.classes:,} classes; begun "
        f"{m.created}",
    )


def _facts(found: RunSummary) -> list[tuple[str, str]]:
    m, aside = found.run.manifest, found.run.set_aside()
    facts = [
        ("noise", f"{_KINDS[m.noise]}, sigma {m.sigma:g}, seed {m.seed}"),
        ("noise samples per input", f"{m.n0:,} for class selection, {m.n:,} for estimation"),
        ("model", f"{m.model.description}, {m.model.outputs}, fingerprint {m.model.fingerprint[:12]}"),
        ("data", f"{m.data.source or 'arrays'}, fingerprint {m.data.inputs[:12]}"),
    ]
    if aside:
        facts.append(("set aside", f"{len(aside)} damaged {'shard' if len(aside) == 1 else 'shards'}, sampled again"))
    if not m.rows_independent:
        facts.append(("batches", f"of {m.batch:,}; the last bits of the model depend on that, so it is kept"))
    return facts


def _votes(found: RunSummary) -> list[tuple[str, str]]:
    seen, m = found.overview, found.run.manifest
    assert seen is not None
    invalid = "0"
    if seen.invalid:
        what = "NaN, below 0, or not adding up to 1; are they logits?"
        what = what if m.model.outputs == "probabilities" else "NaN or infinite"
        invalid = f"{seen.invalid:,}, {seen.invalid / (m.samples * m.n):.1%} of the noise samples, counted against the "
        invalid += f"class: {what}"
    return [
        ("correct", f"{seen.correct:.1%} of samples"),
        ("abstained", f"{seen.abstained:.1%} of samples, at alpha {short_text(seen.alpha, 'upper')}"),
        ("votes", f"{seen.votes:.1%} for the selected class, on average"),
        ("invalid outputs", invalid),
    ]
