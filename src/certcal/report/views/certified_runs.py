"""What stands behind the certificates of a run: samples, widths of intervals, p_A, failure probabilities, the run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from certcal._base.checks import InputError
from certcal._base.rounding import sure_text, times_text
from certcal._base.text import capital, counted
from certcal.claims import Ledger, round_outward, short_text
from certcal.data.units import described
from certcal.report.charts import Chart, curves
from certcal.report.document import NOTHING, Block, Column, Details, Facts, Figures, Picture, Table, Text, frames_of
from certcal.report.p_a import P_A, PaLine, p_a_chart, share_text
from certcal.report.views.worst_case import widths_chart

if TYPE_CHECKING:
    from certcal.verbs.certification import Certification, CertifiedAt

BETWEEN = (
    "A light line only leads the eye: its values are certified at the marked radii, and nothing is claimed between."
)
_INFLUENTIAL, _SHOWN = 12, 4
_LARGEST_SIDE = 96  # pixels of an image
# Kinds of certificates that nobody asked for are computed for a figure alone: at this many radii, and at fewer where
# that would take longer than the rest of the page.
_MOST_WIDTHS, _FEWER_WIDTHS, _MANY_SAMPLES = 13, 5, 2000
_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
_NOISE = {
    "gaussian": "The noise was drawn in floating point and is taken as exactly Gaussian; for inputs on k/255, exact "
    "noise needs no such assumption.",
    "exact": "The noise is discretised from integer thresholds, so the certificates hold in floating point: they are "
    "for the model applied to inputs rounded to k/255.",
}
_DRAWN = {"gaussian": "Gaussian, drawn in floating point", "exact": "exact: discretised, for inputs on k/255"}


def influential(found: Certification, one: CertifiedAt, images: Any) -> list[Block]:
    """The samples that add most to the worst case, with their images if there are any."""
    samples = found.influential(_INFLUENTIAL)
    inputs, note = _check_images(found, images)
    if not samples or one.worst is None:
        return [Text(f"No sample is certified at radius {one.radius_text}, so none adds to a worst case.")]
    columns = [
        *([Column("image")] if inputs is not None else []),
        Column("sample", "count"),
        Column("true class", "count"),
        Column("predicted"),
        Column("votes", "count"),
        Column("confidence (estimate)", "estimate"),
        Column("certified interval", "bound"),
        Column("in the worst case", "estimate"),
        Column("adds", "estimate"),
    ]
    rows: list[list[Any]] = []
    every = 1 if found.manifest is None else found.manifest.data.every
    for each in samples:
        wrong = "" if each.predicted == each.label else " (wrong)"
        row: list[Any] = [f"{each.index}", f"{each.label}", f"{each.predicted}{wrong}"]
        row += [f"{each.votes:,} of {each.draws:,}", each.confidence, each.interval_text, each.witness]
        if inputs is not None:
            said = f"sample {each.index}: class {each.label}, predicted {each.predicted}"
            row.insert(0, Picture(_shrink_image(inputs[each.index // every]), said))
        rows.append([*row, each.contribution])
    said = (
        f"Contributions add up to {one.worst.text}, where every certificate holds. A sample adds most when it is wrong "
        "and can be confident, or right and can be unsure."
    )
    first = Table(columns, rows[:_SHOWN], f"The samples that add most at radius {one.radius_text}", note)
    rest = rows[_SHOWN:]
    more = [Details(counted(len(rest), "further sample"), [Table(columns, rest)])] if rest else []
    return [Text(said), first, *more]


def _check_images(found: Certification, images: Any) -> tuple[Any, str]:
    """Checked images, or what to say instead of them."""
    from certcal.smoothing import check_inputs

    if images is None:
        return None, ""
    if found.manifest is None:
        raise InputError(
            "images cannot be checked for counts without a run", argument="images", remedy="leave them out"
        )
    checked = check_inputs(found.manifest, images)
    shape = tuple(checked.shape[1:])
    grey = len(shape) == 2 and min(shape) > 1
    coloured = len(shape) == 3 and (shape[0] in (1, 3) or shape[2] in (1, 3))
    return (
        (checked, "")
        if grey or coloured
        else (None, f"The inputs, of shape {shape}, are no images, so none are shown.")
    )


def _shrink_image(values: Any) -> Any:
    """Fewer pixels of a large image; values of 0 to 1 as bytes, so that dark images stay dark."""
    channels_first = values.ndim == 3 and values.shape[0] in (1, 3)
    sides = values.shape[1:] if channels_first else values.shape[:2]
    step = max(1, -(-max(sides) // _LARGEST_SIDE))
    small = values[:, ::step, ::step] if channels_first else values[::step, ::step]
    return np.rint(small * 255).astype(np.uint8) if small.min() >= 0 and small.max() <= 1 else small


def interval_widths(found: Certification) -> list[Block]:
    """How wide intervals of each kind are: at the headline's radius, and by radius."""
    from certcal.smoothing import CONFIDENCES, kind_explanation

    one, kinds = found.at(), list(dict.fromkeys((*CONFIDENCES, *found.kinds)))
    most = _MOST_WIDTHS if found.n <= _MANY_SAMPLES else _FEWER_WIDTHS
    places = frames_of(len(found.radii), found.place, most)
    radii = [radius for place in places if (radius := found.radii[place]) is not None]
    figures: list[Chart] = []
    said = f"No sample is certified at radius {one.radius_text}, so there is no interval to measure."
    at_one = {kind: widths for kind in kinds if (widths := found.widths(kind)) is not None}
    if at_one:
        said = (
            f"{'The headline' if len(found.kinds) > 1 else 'Every claim'} here is from {one.kind} certificates; "
            "the other kinds are for comparison. Choose the kind before looking."
        )
        figures.append(widths_chart(at_one, one.radius_text, kinds))
    by_radius = {kind: [found.widths(kind, radius) for radius in radii] for kind in kinds}
    if len(radii) > 1 and any(each is not None for row in by_radius.values() for each in row):
        thinned = f" {len(radii)} of {len(found.radii):,} radii." if len(radii) < len(found.radii) else ""
        texts = [found.at(radius).radius_text for radius in radii]
        rows = [[text, *(_quartiles(by_radius[kind][i]) for kind in kinds)] for i, text in enumerate(texts)]
        columns = [Column("radius", "level"), *(Column(kind, "bound") for kind in kinds)]
        ends = [[_median(row[i]) for i in (0, -1)] for row in by_radius.values()]
        figures.append(
            curves(
                "Median width by radius",
                radii,
                {k: [math.nan if each is None else each.median for each in row] for k, row in by_radius.items()},
                y_label="median width",
                description=" ".join(f"{kind}: {a} to {b}." for kind, (a, b) in zip(kinds, ends, strict=True)),
                most=1.0,
                guide=True,
                caption=f"The width that half of the certified samples do not exceed.{thinned} {BETWEEN}",
                numbers=Table(columns, rows, "Quartiles of the widths by radius: 25 %, median, 75 %"),
            )
        )
    columns = (Column("kind"), Column("how intervals are made"))
    asked = dict(zip(found.kinds, map(kind_explanation, found.settings.kind), strict=True))
    rows = list(({kind: kind_explanation(kind) for kind in CONFIDENCES} | asked).items())
    meaning = Details("Kinds of certificates", [Table(columns, rows)])
    return [Text(said), *([Figures(figures)] if figures else []), meaning]


def _quartiles(each: Any) -> str:
    return NOTHING if each is None else " · ".join(round_outward(value, "upper") for value in each.quantiles[1:4])


def _median(each: Any) -> str:
    return "undefined" if each is None else round_outward(each.median, "upper")


def distribution_of_p_a(found: Certification) -> list[Block]:
    """The distribution of p_A over the samples."""
    caption = (
        f"{P_A} A sample is certified at a radius when its p_A is large enough, so this curve decides certified "
        "accuracy at every radius."
    )
    rows = [(f"{p:g}", share_text(found.p_a, p)) for p in _SHARES]
    numbers = Table((Column("p", "level"), Column("share with p_A ≥ p", "estimate")), rows, "Shares of the samples")
    return [replace(p_a_chart("Distribution of p_A", [PaLine(0, "", found.p_a)], caption=caption), numbers=numbers)]


def failure_probabilities(one: CertifiedAt) -> list[Block]:
    """What alpha is spent on."""
    found = one.certificates
    assert found is not None
    assert one.claim is not None
    each = "its share of a probability for all samples together" if found.familywise else "a probability of its own"
    at_once = found.predictions == "together" and not found.familywise
    said = " The predictions of all certified samples hold at once: their part is shared among the samples."
    return [
        Text(
            f"The certificate of each sample may fail over the noise with {each}. It is spent on the votes for the "
            f"predicted class, and on the lower and the upper end of the confidence interval.{said if at_once else ''} "
            "The bound for the population may also fail over the draw of the samples; its share is its own."
        ),
        _ledger(found.ledger, "Certificate of one sample"),
        _ledger(one.claim.ledger, "Claim of the headline"),
    ]


def _ledger(ledger: Ledger, caption: str) -> Table:
    entries: dict[str, float] = ledger.to_dict()["entries"]
    rows = [(name.replace("_", " "), short_text(alpha, "upper")) for name, alpha in entries.items()]
    rows += [("spent", short_text(ledger.spent, "upper")), ("budget", short_text(ledger.budget, "upper"))]
    return Table((Column("spent on"), Column("α", "level")), rows, caption)


def run_facts(found: Certification) -> Facts:
    """What the run was drawn with."""
    counts, m = cast("Any", found.counts), found.manifest
    one = found.at().certificates
    draws, samples = f"{int(counts.draws.min()):,}", f"{len(counts):,}"
    facts = {
        "Noise": f"{_DRAWN[counts.noise]}, sigma {counts.sigma:g}",
        "Noise samples for estimation (n)": draws,
        "Samples": samples,
        "Abstained": f"{0 if one is None else one.n_abstained:,}",
        "Invalid outputs": f"{int(counts.invalid.sum()):,}, counted against the class",
    }
    if m is None:
        return Facts(list(facts.items()))
    if len(counts) < m.samples:
        facts["Samples"] = f"{samples} of {m.samples:,}: those that were drawn completely"
    facts |= {
        "Noise samples for class selection (n0)": f"{m.n0:,}",
        "Seed": f"{m.seed}",
        "Model": m.model.description,
        "Fingerprint of the model": m.model.fingerprint,
        "Data": m.data.source or "arrays",
        "Fingerprint of the inputs": m.data.inputs,
        "Fingerprint of the labels": m.data.labels,
        "Drawn with": ", ".join(f"{name} {version}" for name, version in m.versions.items()),
        "Begun": m.created,
        "Sizes it had": "; ".join(f"{size.samples:,} samples, {size.n:,} draws" for size in m.sizes[-8:]),
    }
    if m.data.range is not None:
        facts["Input values"] = described(m.data.range, m.data.shape, m.sigma)
    if not m.rows_independent:
        facts["Batches"] = f"of {m.batch:,}; the last bits of the model depend on that, so it is kept"
    return Facts(list(facts.items()))


def run_notes(found: Certification) -> list[str]:
    """How often certificates fail, together and each."""
    from certcal.smoothing import holds_at_all_radii

    one, alpha = cast("Any", found.at().certificates), found.conventions["alpha"]
    kinds = found.settings.kind
    several = len(found.radii) > 1 and not found.settings.together
    apart = several and not all(map(holds_at_all_radii, kinds))
    notes: list[str] = []
    if found.settings.familywise:
        where = " at each radius" if apart else ""
        notes.append(f"All {one.n:,} certificates hold together{where}: {sure_text(alpha)}, over the noise.")
    elif found.at().averaged:
        notes.append(
            f"The claim averages the noise of the samples and fails {times_text(alpha)}. Other numbers take it that no "
            "certificate failed; each may, as often, and familywise pays for it."
        )
    else:
        failed = one.failures(alpha).count
        notes.append(
            f"Each certificate fails {times_text(alpha)}, over the noise. That more than {failed:,} of {one.n:,} fail "
            f"happens as rarely, and what {failed:,} can add to the ECE is in the claim. Other numbers on these "
            "samples take it that no certificate failed; familywise pays for it."
        )
    if len(kinds) > 1:
        notes.append(
            f"Choose a certificate before looking: that the best of these {len(kinds)} fails has up to {len(kinds)} "
            "times the probability."
        )
    claimed = several and found.at().averaged
    if apart or claimed:
        own = [name for name, kind in zip(found.kinds, kinds, strict=True) if not holds_at_all_radii(kind)]
        what = [*(["claims"] * claimed), *([f"certificates by {', '.join(own)}"] * bool(own))]
        notes.append(
            f"{capital(' and '.join(what))} fail at each radius on their own; with together they hold at all radii at "
            "once."
        )
    return [*notes, _NOISE[one.noise]]
