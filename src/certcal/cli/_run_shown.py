"""A run on disk, for people and for machines."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

from rich.table import Table
from rich.text import Text

from certcal import __version__
from certcal._json import for_json
from certcal._text import printable
from certcal.claims import short_text
from certcal.cli._show import Output
from certcal.smoothing import Manifest, Run, State
from certcal.smoothing._overview import Overview, overview


def resume_command(run: Run) -> str | None:
    """The command that draws what is missing, if model and data can be named.

    Every part is quoted for the shell: what a manifest says is never more than an argument.
    """
    m = run.manifest
    if m.model.source is None or m.data.source is None:
        return None
    weights = [] if m.model.weights is None else [f"--weights={m.model.weights}"]
    words = ["certcal", "sample", f"--model={m.model.source}", *weights]
    words += ["--outputs", m.model.outputs, f"--data={m.data.source}"]
    words += ["--sigma", repr(m.sigma), "-n", str(m.n), "--n0", str(m.n0), "--seed", str(m.seed)]
    words += ["--limit", str(m.samples)] + (["--exact-noise"] if m.noise == "exact" else [])
    return shlex.join([*words, "-o", str(run.path)])


def glance(run: Run, state: State) -> Overview | None:
    """What the draws say, once all are there."""
    return overview(run.counts()) if state.complete else None


def to_json(run: Run, state: State) -> str:
    """Everything about a run, as JSON."""
    found = glance(run, state)
    content: dict[str, Any] = {
        "certcal": __version__,
        "path": str(run.path),
        "complete": state.complete,
        "finished_draws": state.finished,
        "total_draws": state.total,
        "missing_shards": [unit.name for unit in state.missing],
        "damaged_shards": [{"shard": unit.name, "reason": reason} for unit, reason in state.damaged],
        "set_aside": run.set_aside(),
        "overview": None if found is None else found.to_dict(),
        "resume": None if state.complete else resume_command(run),
        "manifest": run.manifest.to_dict(),
    }
    return json.dumps(for_json(content), indent=2, ensure_ascii=False) + "\n"


def show_run(run: Run, state: State) -> None:
    """Print what was drawn, with what, how complete it is, and what to do next."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(str(run.path)), style="bold"))
    console.print(Text(_description(run.manifest), style="dim"))
    console.print()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _lines(run, state):
        table.add_row(name, Text(printable(text)))
    console.print(table)
    for unit, reason in state.damaged:
        console.print()
        console.print(Text(printable(f"Damaged: {unit.name}: {reason}.")))
    if not state.complete:
        command = resume_command(run)
        console.print()
        console.print(Text("What is missing is drawn by", style="bold"))
        text = command or "certcal.smoothing.sample, called again with the same model and data"
        console.print(Text(printable(text)), soft_wrap=True)


def _description(m: Manifest) -> str:
    shape = "×".join(map(str, m.data.shape))
    return f"{m.samples:,} samples of shape {shape}, {m.model.classes:,} classes; begun {m.created}"


def _invalid(count: int, m: Manifest) -> str:
    """How many answers were no predictions, and what may be behind it."""
    if count == 0:
        return "0"
    what = "NaN or infinite"
    if m.model.outputs == "probabilities":
        what = "NaN, below 0, or not adding up to 1; are they logits?"
    return f"{count:,}, {count / (m.samples * m.n):.1%} of the draws, counted against the class: {what}"


def _lines(run: Run, state: State) -> list[tuple[str, str]]:
    m = run.manifest
    kind = {"gaussian": "Gaussian", "exact": "exact, for inputs on k/255"}[m.noise]
    share = f"{state.finished:,} of {state.total:,}"
    aside = run.set_aside()
    lines = [
        ("noise", f"{kind}, sigma {m.sigma:g}, seed {m.seed}"),
        ("draws per sample", f"{m.n0:,} choose the class, {m.n:,} count"),
        ("model", f"{m.model.description}, {m.model.outputs}, fingerprint {m.model.fingerprint[:12]}"),
        ("data", f"{m.data.source or 'arrays'}, fingerprint {m.data.inputs[:12]}"),
        ("draws", f"all {share}" if state.complete else f"{share}, {100 * state.finished / state.total:.1f} %"),
    ]
    if aside:
        lines.append(("set aside", f"{len(aside)} damaged {'shard' if len(aside) == 1 else 'shards'}, drawn again"))
    found = glance(run, state)
    if found is not None:
        lines += [
            ("correct", f"{found.correct:.1%} of samples"),
            ("abstained", f"{found.abstained:.1%} of samples, at alpha {short_text(found.alpha, 'upper')}"),
            ("votes", f"{found.votes:.1%} for the chosen class, on average"),
            ("invalid outputs", _invalid(found.invalid, run.manifest)),
        ]
    if not m.rows_independent:
        lines.append(("batches", f"of {m.batch:,}; the last bits of the model depend on that, so it is kept"))
    return lines
