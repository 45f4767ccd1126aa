"""Fit monotone maps to one part of certified samples, and judge them on the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from certcal._checks import InputError, choice
from certcal.calibrators._base import ConfidenceMap
from certcal.calibrators._judged import Judged, JudgedAt, judge
from certcal.calibrators._path import METHODS, TRADEOFFS, path_of_parts
from certcal.calibrators._points import Parts, check_tradeoff
from certcal.calibrators._samples import CertifiedSamples
from certcal.calibrators._split import sizes_in_words
from certcal.claims import ORDER, Frozen, short_text

IDENTITY = "as it is"
FEW = 10


@dataclass(frozen=True)
class FrontPoint:
    """Clean and certified Brier score of one map: on the samples it was fitted to, and on the others.

    Attributes
    ----------
    name, tradeoff
        Of the map.
    fitted, held_out
        (clean, certified) Brier score; clean is None when those confidences are not known, certified when nothing is
        certified. With several radii the certified one is their weighted mean, over those where something is certified.
    """

    name: str
    tradeoff: float | None
    fitted: tuple[float | None, float | None]
    held_out: tuple[float | None, float | None]


@dataclass(frozen=True, eq=False)
class Recalibration:
    """What recalibrating certified samples does. Made by :func:`recalibrate`.

    Attributes
    ----------
    source
        Where the samples come from.
    n_fit, n_held_out
        Numbers of samples: fitted to, and judged on. No sample is in both.
    radii, radius_weight
        At which the maps are fitted and judged, and the share of each.
    method, tradeoff
        Of the map that was asked for.
    lines
        The identity first, then the method at each trade-off, ascending.
    front
        The same maps' clean against certified Brier scores.
    before, after
        Held-out samples as they are, and after the map that was asked for.
    settings
        Bins, closed, delta, fraction and seed.
    notes
        What a reader should know, one sentence each.
    """

    source: str
    n_fit: int
    n_held_out: int
    radii: tuple[str, ...]
    radius_weight: tuple[float, ...]
    method: str
    tradeoff: float
    lines: tuple[Judged, ...]
    front: tuple[FrontPoint, ...]
    before: CertifiedSamples
    after: CertifiedSamples
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", Frozen(self.settings))

    def __repr__(self) -> str:
        return (
            f"Recalibration(source={self.source!r}, method={self.method!r}, tradeoff={self.tradeoff:g}, "
            f"radii={', '.join(self.radii)}, n_fit={self.n_fit}, n_held_out={self.n_held_out})"
        )

    def _repr_html_(self) -> str:
        from certcal.calibrators._shown import markup

        return markup(self)

    @property
    def identity(self) -> Judged:
        """The confidences as they are."""
        return self.lines[0]

    @property
    def chosen(self) -> Judged:
        """The map that was asked for."""
        return next(line for line in self.lines[1:] if line.tradeoff == self.tradeoff)

    @property
    def calibrator(self) -> ConfidenceMap:
        """The map that was asked for."""
        found = self.chosen.calibrator
        assert found is not None
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the samples."""
        return {
            "source": self.source,
            "n_fit": self.n_fit,
            "n_held_out": self.n_held_out,
            "radii": list(self.radii),
            "radius_weight": list(self.radius_weight),
            "method": self.method,
            "tradeoff": self.tradeoff,
            "lines": [line.to_dict() for line in self.lines],
            "front": [
                {"name": p.name, "tradeoff": p.tradeoff, "fitted": list(p.fitted), "held_out": list(p.held_out)}
                for p in self.front
            ],
            "settings": dict(self.settings),
            "notes": list(self.notes),
        }


def recalibrate(
    samples: CertifiedSamples,
    *,
    method: str = "isotonic",
    tradeoff: float = 0.5,
    tradeoffs: float | Sequence[float] = TRADEOFFS,
    radius_weight: Sequence[float] | None = None,
    fraction: float = 0.5,
    seed: int = 0,
    bins: int = 15,
    closed: str = "left",
    delta: float = 0.05,
) -> Recalibration:
    """Split certified samples, fit monotone maps to one part, and judge them on the other.

    What is claimed is with :func:`certcal.worst_case.certify` and :func:`certcal.calibrators.gain_over`: the maps are
    fitted to other samples than those they are judged on, so given the map, the held-out samples are fresh draws, and
    bounds on the population hold. Each map and radius has bounds of its own, each of which may fail with probability
    delta. Choose the trade-off before looking; for the best of k that were looked at, pass delta / k.

    Parameters
    ----------
    samples
        Certified at one radius or more; all of them are used, with weights.
    method
        "isotonic" (all monotone maps), "temperature" or "beta" (families with one and two parameters).
    tradeoff
        λ of the map that is wanted.
    tradeoffs
        Others to compare it with. 0 is the map that ignores the attack. Without clean confidences only 1 can be fitted,
        and others are left out.
    radius_weight
        Weights of the radii in the certified Brier score, equal when not given.
    fraction, seed
        Of the split: see :meth:`CertifiedSamples.split`.
    bins, closed, delta
        As for :func:`certcal.worst_case.certify`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(0.3, 1, 2000)
    >>> correct = rng.random(2000) < z**2
    >>> samples = CertifiedSamples.from_intervals(np.maximum(z - 0.1, 0), np.minimum(z + 0.1, 1), correct, z)
    >>> found = recalibrate(samples)
    >>> worst = [line.at[0].summary["brier_score"].worst.value for line in (found.identity, found.chosen)]
    >>> worst[1] < worst[0]
    True
    """
    if not isinstance(samples, CertifiedSamples):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"samples is a {type(samples).__name__}; pass CertifiedSamples.from_run(run, radii) or .from_intervals(…)"
        )
    choice(method, METHODS, "method")
    wanted = check_tradeoff(tradeoff)
    others = [check_tradeoff(level) for level in ([tradeoffs] if isinstance(tradeoffs, int | float) else tradeoffs)]
    known = samples.confidence is not None
    if wanted < 1 and not known:
        raise InputError(
            f"tradeoff is {wanted:g}, and confidences without a perturbation are not known; pass them, or tradeoff=1"
        )
    fit, rest = samples.split(fraction, seed)
    parts, held_out = Parts.of(fit, radius_weight), Parts.of(rest, radius_weight)
    levels = sorted({wanted, *(level for level in others if known or level == 1)})
    if not parts.share.any() and wanted == 0:
        levels = [0.0]
    constant = tuple(float(c.mean()) if c.size else None for _, c in parts.worst)
    options: dict[str, Any] = {"bins": bins, "closed": closed, "delta": delta}
    judging: dict[str, Any] = {**options, "assumptions": (ORDER,)}
    lines = [judge(rest, None, constant, name=IDENTITY, **judging)]
    for level, fitted in zip(levels, path_of_parts(parts, levels, method), strict=True):
        name = f"{method}, λ = {level:g}"
        lines.append(judge(rest, fitted, constant, name=name, method=method, tradeoff=level, **judging))
    front = tuple(
        FrontPoint(line.name, line.tradeoff, _scores(parts, line.calibrator), _scores(held_out, line.calibrator))
        for line in lines
    )
    chosen = next(line for line in lines[1:] if line.tradeoff == wanted)
    return Recalibration(
        samples.source,
        len(fit),
        len(rest),
        samples.radii,
        tuple(float(weight) for weight in parts.share),
        method,
        wanted,
        tuple(lines),
        front,
        rest,
        rest.mapped(chosen.calibrator),
        {**options, "fraction": fraction, "seed": seed},
        tuple(_notes(fit, rest, len(levels) * len(samples.radii), delta)),
    )


def _scores(parts: Parts, calibrator: ConfidenceMap | None) -> tuple[float | None, float | None]:
    """Clean and certified Brier score of a map."""

    def score(level: float) -> float:
        points = parts.at(level)
        return points.score(points.x if calibrator is None else calibrator.transform(points.x))

    return None if parts.clean is None else score(0.0), score(1.0) if parts.share.any() else None


def _notes(fit: CertifiedSamples, rest: CertifiedSamples, looks: int, delta: float) -> list[str]:
    fitted, others = sizes_in_words(len(fit), len(rest))
    notes = [f"Maps were fitted to {fitted} and judged on {others}; no sample is in both parts."]
    if looks > 1:
        level = short_text(delta, "upper")
        notes.append(
            f"Each bound on the population may fail with probability {level} of its own. To report the best of the "
            f"{looks} (maps times radii) as if it had been chosen before, divide delta by {looks} first."
        )
    if len(fit) < FEW:
        few = "1 sample is" if len(fit) == 1 else f"{len(fit)} samples are"
        notes.append(f"{few} very few to fit a map to: expect it to be far from the best one.")
    right = int(fit.correct.sum())
    if right in (0, len(fit)):
        what = "correct" if right else "wrong"
        notes.append(f"All samples of the fit are {what}: they do not tell which confidences to trust.")
    wide = fit.certified & (fit.lower <= 0) & (fit.upper >= 1)
    if fit.certified.any() and (wide == fit.certified).all():
        notes.append("Every certified interval of the fit is [0, 1]: no map beats a constant in the worst case.")
    return notes


__all__ = ["METHODS", "TRADEOFFS", "FrontPoint", "Judged", "JudgedAt", "Recalibration", "recalibrate"]
