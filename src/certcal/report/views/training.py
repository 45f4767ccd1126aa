"""What came of a training: the words and the layout of a Training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certcal._base.text import counted, distance_text, duration
from certcal.report.charts import Chart, curves
from certcal.report.document import Claim, Column, Facts, Figures, Report, Section, Table, settings_of

if TYPE_CHECKING:
    from certcal.verbs.train import Training

_MOST_CLASSES = 10
_EPOCH = {
    "epoch": Column("epoch", "count"),
    "loss": Column("loss", "estimate"),
    "accuracy": Column("accuracy", "estimate"),
    "test_accuracy": Column("test accuracy", "estimate"),
    "test_ece": Column("test ECE", "estimate"),
    "test_noisy_accuracy": Column("noisy test accuracy", "estimate"),
    "test_noisy_ece": Column("noisy test ECE", "estimate"),
    "sigma": Column("σ"),
    "epsilon": Column("ε"),
    "learning_rate": Column("learning rate"),
}


def view(found: Training) -> Report:
    """The report of a training."""
    claim = found.claims()[0]
    on = claim.settings["on"]
    what = "Accuracy after the last epoch"
    sections = [Section("Result", [Facts(_facts(found))], brief=True), Section("Log", [Figures(_curves(found))])]
    return Report(
        "How accurate and calibrated is the trained network?",
        [Claim.of(claim, what, over=f"on {counted(claim.n, 'sample')} ({on})", settings=False)],
        sections,
        [Section("Epochs", [_epochs(found)]), Section("Recipe", [Facts(list(_recipe(found).items()))])],
        found.source if found.trained.folder is None else str(found.trained.folder),
        "" if found.trained.folder is None else found.source,
    )


def charts(found: Training) -> Sequence[Chart]:
    """The log."""
    return _curves(found)


def _facts(found: Training) -> list[tuple[str, str]]:
    trained, recipe, last = found.trained, found.recipe, found.log[-1]
    against = [f"sigma {recipe.sigma:g}"] if recipe.sigma else []
    against += [f"epsilon {distance_text(recipe.epsilon)} ({recipe.norm})"] if recipe.epsilon else []
    took = duration(trained.seconds) + (f", resumed at step {trained.resumed:,}" if trained.resumed else "")
    took = "all done before" if trained.resumed == last["step"] else took
    seen = "in the last epoch, as perturbed" if against else "in the last epoch"
    lines = [
        ("length", f"{counted(len(found.log), 'epoch')}, {counted(last['step'], 'step')}; {took}"),
        ("against", ", ".join(against) or "nothing"),
        ("training", f"loss {last['loss']:.4f}, accuracy {last['accuracy']:.4f} {seen}"),
        *selected(last),
    ]
    if "test_accuracy" in last:
        lines.append(("test", f"accuracy {last['test_accuracy']:.4f}, ECE {last['test_ece']:.4f}"))
    if recipe.sigma and "test_noisy_accuracy" in last:
        noisy = f"accuracy {last['test_noisy_accuracy']:.4f}, ECE {last['test_noisy_ece']:.4f}"
        lines.append(("test, noisy", noisy))
    if trained.folder is not None:
        lines += [("model", str(trained.file)), ("log", str(Path(trained.folder) / "metrics.jsonl"))]
    return lines


def selected(last: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How many samples a method that selects has kept, and classes of which none is left."""
    if "kept" not in last:
        return []
    weighed = f", drawn with weights up to {last['largest_weight']:.3g}" if last["largest_weight"] > 1 else ""
    lines = [("kept", f"{last['kept']:.1%} of the training samples{weighed}; {1 - last['kept']:.1%} discarded")]
    classes: Sequence[int] = last.get("lost_classes") or ()
    if classes:
        shown = ", ".join(map(str, classes[:_MOST_CLASSES]))
        more = f" and {len(classes) - _MOST_CLASSES:,} more" if len(classes) > _MOST_CLASSES else ""
        lines.append(("lost", f"every sample of {'class' if len(classes) == 1 else 'classes'} {shown}{more}"))
    return lines


def _epochs(found: Training) -> Table:
    names = [name for name in _EPOCH if any(name in line for line in found.log)]
    rows = [[line.get(name) for name in names] for line in found.log]
    return Table([_EPOCH[name] for name in names], rows, "One line per epoch")


def _recipe(found: Training) -> dict[str, str]:
    from certcal.claims import Estimate

    given = {name: value for name, value in found.recipe.to_dict().items() if value is not None}
    own = given.pop("own", {})
    return settings_of(Estimate("recipe", 0.0, 1, {**given, **own}))


def _curves(found: Training) -> list[Chart]:
    """Loss, and accuracy and ECE on training and test data, by epoch."""
    epochs = [line["epoch"] + 1 for line in found.log]

    def of(names: Mapping[str, str]) -> dict[str, list[float]]:
        known = {label: [float(line.get(name, math.nan)) for line in found.log] for name, label in names.items()}
        return {label: values for label, values in known.items() if any(map(math.isfinite, values))}

    pictures = {
        "Loss": of({"loss": "training"}),
        "Accuracy": of({"accuracy": "training", "test_accuracy": "test", "test_noisy_accuracy": "test, noisy"}),
        "Calibration error": of({"test_ece": "test", "test_noisy_ece": "test, noisy"}),
    }
    return [
        curves(
            title,
            epochs,
            series,
            x_label="epoch",
            y_label=title.lower(),
            description=" ".join(f"{name}: {values[-1]:.4f} after the last epoch." for name, values in series.items()),
        )
        for title, series in pictures.items()
        if series
    ]
