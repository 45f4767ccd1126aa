"""What came of a training: the words and the layout of a Training, and charts of gradient norms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certcal._base.checks import InputError
from certcal._base.text import counted, distance_text, duration, three_digits
from certcal.report.charts import Axis, Boxes, Chart, Panel, Segments, Words, curves, named
from certcal.report.document import Block, Claim, Column, Facts, Figures, Report, Section, Table, Text, settings_of

if TYPE_CHECKING:
    from certcal.lab.training import GradientNorms
    from certcal.verbs.train import Training

_MOST_CLASSES = 10
# A norm of 0 has no place on a logarithmic axis: it is drawn at its end, so many times below the least of the others.
_BELOW = 0.3
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
    if found.bias is not None:
        sections.append(Section("Gradient norms of training samples", _bias(found.bias), brief=True))
    return Report(
        "How accurate and calibrated is the trained network?",
        [Claim.of(claim, what, over=f"on {counted(claim.n, 'sample')} ({on})", settings=False)],
        sections,
        [Section("Epochs", [_epochs(found)]), Section("Recipe", [Facts(list(_recipe(found).items()))])],
        found.source if found.trained.folder is None else str(found.trained.folder),
        "" if found.trained.folder is None else found.source,
    )


def charts(found: Training) -> Sequence[Chart]:
    """The log, and gradient norms where they were compared."""
    return [*_curves(found), *(norm_charts(found.bias) if found.bias is not None else ())]


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


def _bias(bias: GradientNorms) -> list[Block]:
    """Mean gradient norms of easy and hard samples and their ratio, as in Table 2 of Sun et al. (2025), and boxes."""
    heads = ("", f"easy ({bias.easy.count:,})", f"hard ({bias.hard.count:,})", "easy / hard")
    rows = [[name, each.easy, each.hard, each.ratio_text] for name, each in bias.ways.items()]
    made: list[Block] = [Table([Column(head) for head in heads], rows), Text(bias.statement, "note")]
    if any(value > 0 for each in bias.ways.values() for box in each.bins for value in box.quantiles or ()):
        made.append(Figures(norm_charts(bias)))
    return made


def norm_charts(found: GradientNorms) -> list[Chart]:
    """Gradient norms of single samples by their p_A, on a logarithmic axis.

    Boxes hold the middle half with the median as a line, lines reach from 5 to 95 per cent; the number of samples is
    below each. A method that attacks its noise has two charts on one scale, before and after the attack: Figure 5 of
    Sun et al. (2025). Norms of 0 are drawn at the lower edge.
    """
    series = list(found.ways.values())
    values = [each for one in series for box in one.bins for each in box.quantiles or ()]
    positive = [each for each in values if each > 0]
    if not positive:
        raise InputError(
            "every gradient norm is 0, so that a logarithmic axis has nothing to show; look at the numbers"
        )
    low = _BELOW * min(positive) if len(positive) < len(values) else min(positive)
    axis = _decades(low, max(positive))
    zero = " Norms of 0 are drawn at the lower edge." if len(positive) < len(values) else ""
    titles = [""] if len(series) == 1 else [", noise as drawn", ", noise after its attack"]
    return [_boxes(one, title, axis, zero) for one, title in zip(series, titles, strict=True)]


def _decades(low: float, high: float) -> Axis:
    """A logarithmic axis with a tick at every power of ten, or at both ends."""
    start, end = low / 1.1, high * 1.1
    powers = range(math.ceil(math.log10(start)), math.floor(math.log10(end)) + 1)
    step = max(1, len(powers) // 5)
    ticks = tuple((10.0**power, f"{10.0**power:g}") for power in powers[::step])
    if len(ticks) < 2:
        ticks = ((low, f"{low:.2g}"), (high, f"{high:.2g}"))
    return Axis(start, end, ticks, "gradient norm", log=True)


def _boxes(found: GradientNorms, title: str, axis: Axis, note: str) -> Chart:
    bins = found.bins
    quantiles = [
        tuple(max(each, axis.low) for each in box.quantiles) if box.quantiles else (math.nan,) * 5 for box in bins
    ]
    across = named([f"{box.low:g}–{box.high:g}" for box in bins], "p_A, share of noisy copies with the true label")
    middle = len(bins) / 2
    marks = [
        Segments([(middle, axis.low, middle, axis.high)], "ideal"),
        Boxes(*zip(*quantiles, strict=True)),
        Words([middle - 0.7, middle + 0.7], [axis.low * (axis.high / axis.low) ** 0.92] * 2, ["hard", "easy"]),
    ]
    columns = [Column("p_A"), Column("samples", "count"), *(Column(f"{share} %") for share in (5, 25, 50, 75, 95))]
    rows = [
        [f"{box.low:g}–{box.high:g}", box.count, *(map(three_digits, box.quantiles) if box.quantiles else [None] * 5)]
        for box in bins
    ]
    name = f"{found.method}, σ = {found.sigma:g}{title}"
    caption = f"Boxes: middle half and median of the norms of single samples; lines: 5 to 95 %.{note}"
    numbers = Table(columns, rows, f"Gradient norms: {name}")
    return Chart(name, found.statement, [Panel(across, axis, marks)], caption, numbers, "medium")
