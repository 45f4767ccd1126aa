"""Noise samples until a requirement is certified: the words and the layout of SampledUntil."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certcal.claims import short_text
from certcal.report.document import Claim, Facts, Report, Section, Table, Text
from certcal.report.views.decisions import draws_table

if TYPE_CHECKING:
    from certcal.smoothing import SampledUntil

_OUTCOMES = {
    "holds": "The requirement is met.",
    "cannot": "The requirement cannot be met: with any number of noise samples the certified bound stays above it.",
    "spent": "The requirement is not met, and every input that could help has all its noise samples.",
}


def view(found: SampledUntil) -> Report:
    """The report of a requirement and its draws."""
    s, one = found.setting, found.certificates
    radius, level = short_text(s.radius, "lower"), short_text(s.alpha, "upper")
    over = f"on {found.claim.n:,} {found.claim.settings['samples']} samples at radius {radius}"
    claim = Claim.of(found.claim, "The calibration error of the smoothed classifier", over=over)
    text = Text(f"{_OUTCOMES[found.outcome]} {found.comparison}", "note")
    facts = [("requirement", s.require), ("model", s.model), ("sigma", f"{s.sigma:g}"), ("noise", s.noise)]
    facts += [("radius", radius), ("alpha", level), ("intervals", s.confidence), ("samples", s.samples)]
    facts += [("bins", f"{s.bins}, closed on the {s.closed}"), ("n, at most", f"{s.n:,}"), ("n0", f"{s.n0:,}")]
    facts += [("looks, at most", str(found.looks)), ("stakes on sums", str(found.stakes)), ("seed", str(s.seed))]
    known = {"model": s.model_fingerprint, "data": s.data_fingerprint}
    facts += [(f"fingerprint of the {what}", digits) for what, digits in known.items() if digits]
    return Report(
        f"Is {s.require} certified at radius {radius}?",
        [claim],
        [Section("Noise samples", [_states(found), text], brief=True)],
        [Section("Settings", [Facts(facts)])],
        found.source,
        f"{len(found):,} samples, {one.n_certified:,} certified; sigma {s.sigma:g}, alpha {level} in all",
        ["Open samples are neither certified nor refuted; the requirement is also held against them as worst cases."],
    )


def _states(found: SampledUntil) -> Table:
    certified = found.certificates.certified
    states = {"certified": certified, "refuted": found.refuted, "neither": ~certified & ~found.refuted}
    return draws_table("samples are", states, found.draws, found.predicted == found.label)
