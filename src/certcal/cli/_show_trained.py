"""How a training looks in a terminal and as JSON, and what to do next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from certcal import __version__
from certcal._json import as_text, for_json
from certcal._text import counted, printable
from certcal.cli._progress import duration
from certcal.cli._show import Output

if TYPE_CHECKING:
    from certcal.cli._training import Asked
    from certcal.training import GradientNorms, Trained

_MOST_CLASSES = 10
_HELD_OUT = "TEST"


def to_json(trained: Trained, bias: GradientNorms | None = None) -> str:
    """Everything about a training, as JSON."""
    return as_text(
        for_json(
            {
                "certcal": __version__,
                "folder": str(trained.folder),
                "model": str(trained.file),
                "recipe": trained.recipe.to_dict(),
                "resumed_at_step": trained.resumed,
                "seconds": trained.seconds,
                "history": trained.history,
                **({} if bias is None else {"gradient_norms": bias.to_dict()}),
            }
        )
    )


def show_trained(trained: Trained, asked: Asked, bias: GradientNorms | None = None) -> None:
    """Print what was learnt, where it is, which samples it pulls at if asked for, and which commands come next."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(str(trained.folder)), style="bold"))
    console.print(Text(printable(f"{asked.model} trained on {asked.data} by {trained.recipe.method}"), style="dim"))
    console.print()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _lines(trained):
        table.add_row(name, Text(printable(text)))
    console.print(table)
    console.print()
    if bias is not None:
        _show_bias(console, bias)
    others = "" if _is_tested(trained) else f", with inputs that it was not trained on as {_HELD_OUT}"
    console.print(Text("What to try next", style="bold") + Text(others))
    for command in next_commands(trained, asked):
        console.print(Text(printable(command)), soft_wrap=True)


def _is_tested(trained: Trained) -> bool:
    return "test_accuracy" in trained.history[-1]


def _lines(trained: Trained) -> list[tuple[str, str]]:
    recipe, last = trained.recipe, trained.history[-1]
    against = [f"sigma {recipe.sigma:g}"] if recipe.sigma else []
    against += [f"epsilon {distance_text(recipe.epsilon)} ({recipe.norm})"] if recipe.epsilon else []
    took = duration(trained.seconds) + (f", resumed at step {trained.resumed:,}" if trained.resumed else "")
    took = "all done before" if trained.resumed == last["step"] else took
    seen = "in the last epoch, as perturbed" if against else "in the last epoch"
    lines = [
        ("length", f"{counted(len(trained.history), 'epoch')}, {counted(last['step'], 'step')}; {took}"),
        ("against", ", ".join(against) or "nothing"),
        ("training", f"loss {last['loss']:.4f}, accuracy {last['accuracy']:.4f} {seen}"),
    ]
    lines += _selected(last)
    if _is_tested(trained):
        clean = f"accuracy {last['test_accuracy']:.4f}, ECE {last['test_ece']:.4f}"
        lines.append(("test", clean))
    if recipe.sigma and "test_noisy_accuracy" in last:
        noisy = f"accuracy {last['test_noisy_accuracy']:.4f}, ECE {last['test_noisy_ece']:.4f}"
        lines.append(("test, noisy", noisy))
    return [*lines, ("model", str(trained.file)), ("log", str(Path(str(trained.folder)) / "metrics.jsonl"))]


def _selected(last: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How many samples a method that selects has kept, and classes of which none is left."""
    if "kept" not in last:
        return []
    weighed = f", drawn with weights up to {last['largest_weight']:.3g}" if last["largest_weight"] > 1 else ""
    lines = [("kept", f"{last['kept']:.1%} of the training samples{weighed}; {1 - last['kept']:.1%} discarded")]
    if last.get("lost_classes"):
        lines.append(("lost", f"every sample of {_classes_text(last['lost_classes'])}"))
    return lines


def _classes_text(classes: Sequence[int]) -> str:
    shown = ", ".join(map(str, classes[:_MOST_CLASSES]))
    more = f" and {len(classes) - _MOST_CLASSES:,} more" if len(classes) > _MOST_CLASSES else ""
    return f"{'class' if len(classes) == 1 else 'classes'} {shown}{more}"


def _show_bias(console: Output, bias: GradientNorms) -> None:
    """Mean gradient norms of easy and hard samples and their ratio, as in Table 2 of Sun et al. (2025)."""
    from certcal.training._gradient_norms import group_text, ratio_text

    console.print(Text("Gradient norms of training samples", style="bold"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for name in (f"easy ({bias.easy.count:,})", f"hard ({bias.hard.count:,})", "easy / hard"):
        table.add_column(Text(name), justify="right", header_style="")
    for name, easy, hard, ratio, interval in bias.rows():
        table.add_row(name, group_text(easy), group_text(hard), ratio_text(ratio, interval))
    console.print(table)
    console.print(Text(printable(bias.sentence), style="dim"))
    console.print()


def next_commands(trained: Trained, asked: Asked) -> list[str]:
    """Commands that attack and certify what was trained on the test part, every part quoted for the shell.

    Where the data have no test part, others are asked for: numbers on training data say nothing.
    """
    recipe = trained.recipe
    named = Path(str(trained.file)).name == "weights.safetensors"
    data = asked.data if _is_tested(trained) else _HELD_OUT
    model = ["--model", *([asked.model, "--weights"] if named else []), str(trained.file), "--data", data]
    epsilon = ["--epsilon", distance_text(recipe.epsilon or 0.5), "--norm", recipe.norm]
    noise = ["--sigma", f"{recipe.sigma:g}"] if recipe.sigma else []
    commands = [["certcal", "attack", *model, *epsilon, *noise]]
    if noise:
        run = f"{asked.output.rstrip('/')}-run"
        commands += [["certcal", "sample", *model, *noise, "-o", run], ["certcal", "certify", run]]
    return [shlex.join(words) for words in commands]


def distance_text(distance: float) -> str:
    """A distance as a person writes it, from which the same number is read: in 255ths where that is shorter.

    Examples
    --------
    >>> distance_text(0.5), distance_text(8 / 255), distance_text(1.0)
    ('0.5', '8/255', '1')
    """
    pixels = round(distance * 255)
    written = [f"{distance:g}", *([f"{pixels}/255"] if pixels and pixels / 255 == distance else []), repr(distance)]
    return min((text for text in written if _as_number(text) == distance), key=len)


def _as_number(text: str) -> float:
    over, _, under = text.partition("/")
    return float(over) / float(under or 1)
