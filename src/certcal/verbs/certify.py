"""How wrong can the confidences be when somebody perturbs the inputs? What a run or a table of intervals certifies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np

from certcal._base.checks import InputError
from certcal._base.extensions import EXTENSIONS
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import Option, Range, Takes, defaults_of, gather, verb
from certcal._base.told import Told
from certcal.binning import check_edges, equal_mass_edges
from certcal.data import IntervalTable, read_intervals
from certcal.data.sources import ArrowStream, FrameLike, grouping_names
from certcal.predictions import Predictions
from certcal.smoothing import (
    CONFIDENCES,
    IF_ALL_HOLD,
    CertificateKind,
    CertificateName,
    Counts,
    Manifest,
    Run,
    certificates,
    kind_name,
    open_run,
    usable_counts,
)
from certcal.verbs.certification import Certification, CertifiedAt, ComparedMethod
from certcal.verbs.certified_samples import ALPHA_OF_RUNS, ROLES, about_run, alpha_of_run, chosen_radii, describe_run
from certcal.verbs.verify import Verification

MOST_RADII, MOST_BINS = 1000, 10_000
STEPS_PER_SIGMA = 4
HEADLINE_STEP = 2  # half of sigma


@dataclass(frozen=True)
class CertifySettings(Told):
    """What :func:`certify` was asked; ``certify(source, **vars(settings))`` asks it again."""

    radii: tuple[float, ...] | None
    bins: int
    closed: str
    edges: str | tuple[float, ...]
    adaptive: bool
    delta: float
    alpha: float | None
    compare: bool
    grid: bool
    kind: tuple[Any, ...]
    familywise: bool
    together: bool
    accounting: str
    drawn_only: bool

    def __post_init__(self) -> None:
        if self.radii is not None:
            radii = tuple(sorted({abs(radius) for radius in self.radii}))
            if not 1 <= len(radii) <= MOST_RADII:
                reason = f"{len(radii)} different radii were given"
                raise InputError(reason, argument="radii", remedy=f"give from 1 to {MOST_RADII}")
            object.__setattr__(self, "radii", radii)
        kinds = tuple(dict.fromkeys(CONFIDENCES if "all" in self.kind else self.kind))
        if not kinds:
            raise InputError("no kind was given", argument="kind", remedy=f"give {', '.join(CONFIDENCES)} or all")
        if len(kinds) > 1 and self.compare:
            raise InputError("it needs one kind of certificate", argument="compare", remedy="choose one")
        object.__setattr__(self, "kind", kinds)
        if self.grid and not self.compare:
            raise InputError("it is for the comparison with ADMM", argument="grid", remedy="set compare, too")
        if not isinstance(self.edges, str):
            try:
                check_edges(self.edges)
            except InputError as error:
                raise InputError(str(error), argument="edges") from None
            count = len(self.edges) - 1
            if self.bins not in (defaults_of(certify)["bins"], count):
                reason = f"it is {self.bins}, and the edges make {count} bin{'' if count == 1 else 's'}"
                raise InputError(reason, argument="bins", remedy="leave it out, or give as many edges")
            object.__setattr__(self, "bins", count)

    @property
    def binning(self) -> dict[str, Any]:
        """What the numerics are told about bins and the population."""
        return {"bins": self.bins, "closed": self.closed, "delta": self.delta}

    def binning_with_edges(self, clean: Any) -> dict[str, Any]:
        """``binning`` with the edges that were given, or quantiles of the clean confidences (None: unknown)."""
        placed: dict[str, Any] = {} if self.edges == "equal-width" else {"edges": self.edges}
        if self.edges == "equal-mass":
            placed = {"edges": equal_mass_edges(clean, self.bins, self.closed), "chosen": True}
        return {**self.binning, **placed, **({"adaptive": True} if self.adaptive else {})}

    def accounting_of(self, radii: int) -> dict[str, Any]:
        """What certificates at so many radii are told about how alpha is counted."""
        return {"accounting": self.accounting, "together": radii if self.together else 1}

    @property
    def conventions(self) -> dict[str, Any]:
        """What is said about them: more than bins, closed and delta only where it was asked for."""
        more: dict[str, Any] = {} if self.edges == "equal-width" else {"edges": self.edges}
        return {**self.binning, **more, **({"adaptive": True} if self.adaptive else {})}


@verb(roles=ROLES)
def certify(
    source: str
    | os.PathLike[str]
    | Run
    | Counts
    | IntervalTable
    | Verification
    | Mapping[str, Any]
    | FrameLike
    | ArrowStream,
    *,
    by: str | Iterable[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    radii: Annotated[float | Iterable[float] | None, Range(0), Option("--radius", "R")] = None,
    bins: Annotated[int, Range(1, MOST_BINS)] = 15,
    closed: Literal["left", "right"] = "left",
    edges: Annotated[
        Literal["equal-width", "equal-mass"] | Iterable[float], Takes("edges"), Option(metavar="EDGES")
    ] = "equal-width",
    adaptive: bool = False,
    delta: Annotated[float, Takes("failure")] = 0.05,
    alpha: Annotated[float | None, Takes("failure", zero=True)] = None,
    compare: bool = False,
    grid: bool = False,
    kind: Annotated[
        CertificateName | Literal["all"] | CertificateKind | Iterable[CertificateName | CertificateKind],
        Option(metavar="KIND"),
    ] = "tangent",
    familywise: bool = False,
    together: bool = False,
    accounting: Literal["ledger", "published"] = "ledger",
    drawn_only: bool = False,
    progress: ProgressLike = True,
) -> Certification:
    """Certify the calibration of a smoothed classifier, or of any intervals of confidences.

    Certificates are made from the draws of a run at each radius. Each row of a table says that, whatever an attacker
    does, a sample's confidence stays between lower and upper, and whether its prediction is correct; any verifier's
    output will do. What is claimed holds for every choice of confidences inside the intervals: it is computed exactly,
    and rounded in the safe direction.

    What is random, assumed and claimed at one radius and by one kind of certificate is with
    :func:`certcal.smoothing.certificates` and :meth:`~certcal.smoothing.Certificates.claim`, and for the population
    with :func:`certcal.worst_case.certify`. Several of them together hold as follows. Kinds with ``all_radii`` have one
    event for all radii, so their certificates hold at all radii at once; with ``together`` those of every kind do (at
    radii that nobody asked for, alpha is shared among all that the votes might have reached).
    Otherwise certificates of different radii, and always bounds on the population and the kinds among each other, have
    events of their own: choose the radius and the kind before looking.

    Parameters
    ----------
    source
        The folder of a run, an opened run or its counts; a file of intervals (Parquet, CSV, TSV, npz, Arrow), what
        :func:`certcal.data.read_intervals` returns, a table in memory (pandas, polars, pyarrow, a mapping), or the
        :class:`~certcal.Verification` of a model.
    by
        Certify each group of a table beside the whole: those of a column, or of a crossing such as product*channel;
        several as a list. The population bounds of k groups fail with probability at most delta/k each, so that those
        of one radius hold together with probability 1 - delta; that of the whole has delta for itself.
    columns
        Columns of a table by role where their names do not say it: lower, upper, correct, outcome, prediction, label,
        certified, radius.
    radii
        Radii to certify at. Default: quarters of sigma for a run, all radii of a table.
    bins
        Number of bins of the calibration error.
    closed
        Closed end of each bin.
    edges
        Edges of the bins: equal-width; equal-mass, frozen at the confidences without an attack; or numbers from 0 to
        1, with commas.
    adaptive
        Also bracket AdaECE: equal-mass bins whose edges are recomputed after the attack.
    delta
        Failure probability of each population bound; groups share it.
    alpha
        Failure probability of each sample's interval. Default: 0.001 for a run; for a table, what its column alpha
        says, or 0. Rows that the verifier abstained on must stay in the table, with certified = 0.
    compare
        Also run ADMM and gradient ascent (needs torch; slow).
    grid
        With compare: ADMM by its published grid of 16 runs, the largest counting.
    kind
        Kind of certificate: tangent, tight, bernstein, cdf or standard; several, or all, side by side.

        Also a :class:`~certcal.smoothing.CertificateKind` of your own.
    familywise
        Treat alpha as the family-wise error rate: the probability that any certificate fails.
    together
        Make certificates hold at all radii asked for at once: kinds with an event for each radius share alpha among
        them.
    accounting
        How alpha is counted: ledger (shared among a sample's bounds), or published (given wholly to each of the
        three, as papers do; the claim says three times alpha).
    drawn_only
        Certify the finished samples of an incomplete run.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal, numpy as np
    >>> from certcal.smoothing import Counts
    >>> draws = np.random.default_rng(0).beta(50, 0.5, (3, 4000))
    >>> counts = Counts.from_confidences(draws, np.linspace(0.01, 0.99, 99), votes=[4000, 3900, 2010], sigma=0.5)
    >>> c = certcal.certify(counts, familywise=True)
    >>> c.radii[-1], c.at().radius, c.at().claim.text
    (1.375, 0.25, '0.0322')
    """
    progress = as_reporter(progress)
    asked = gather(CertifySettings, locals())
    if asked.compare:
        progress.stage("preparing the comparison")
        EXTENSIONS["baselines"]().prepare()
    progress.stage("reading")
    given: Any = cast("Any", source)
    given = given.table() if isinstance(given, Verification) else given
    if isinstance(given, str | os.PathLike) and Path(cast("str", given)).is_dir():
        given = open_run(cast("str", given))
    if isinstance(given, Run | Counts):
        name = str(given.path) if isinstance(given, Run) else "counts"
        for role, value in {"by": by, **(columns or {})}.items():
            if value is not None:
                reason = f"it is for tables of intervals, and {name} is a run"
                raise InputError(reason, argument=role, remedy="leave it out")
        if isinstance(given, Counts):
            return _of_counts(given, None, name, asked, progress)
        counts = usable_counts(given, drawn_only=asked.drawn_only)
        return _of_counts(counts, given.manifest, name, asked, progress)
    if isinstance(given, Predictions):
        raise InputError(
            "predictions alone say nothing about perturbed inputs; pass a run of sample(), what verify() returns, or a "
            "table with lower and upper ends of each confidence, or ask measure() and bound() about the predictions"
        )
    if isinstance(given, IntervalTable):
        if by is not None or columns:
            raise InputError("the columns of this table are known; leave them out", argument="by")
        return _certify_table(given, asked, progress)
    clean = asked.edges == "equal-mass"
    table = read_intervals(cast("str", given), columns, by=grouping_names(by), alpha=asked.alpha is None, samples=clean)
    return _certify_table(table, asked, progress)


def images_of(found: Certification, data: str | os.PathLike[str]) -> dict[str, Any]:
    """The inputs of a run as an option of its report, once it is sure that they are."""
    from certcal.data import open_inputs
    from certcal.smoothing import check_inputs

    if found.manifest is None:
        raise InputError(f"it is for runs, and {found.source} is a table", argument="data", remedy="leave it out")
    drawn = found.manifest.data
    prepared: dict[str, Any] = {"resize": drawn.resize, "crop": drawn.crop} if Path(data).is_dir() else {}
    inputs = open_inputs(data, **prepared).inputs
    try:
        check_inputs(found.manifest, inputs)
    except InputError as error:
        raise InputError(f"{data}: {error}", argument="data") from None
    return {"images": inputs}


def default_radii(counts: Counts, alpha: float = ALPHA_OF_RUNS, familywise: bool = False) -> tuple[float, ...]:
    """Quarters of sigma, from 0 to the largest radius that is certified for any sample, and half of sigma at least.

    Examples
    --------
    >>> counts = Counts.from_confidences([[0.9] * 100], [0.5], votes=[100], sigma=1.0)
    >>> default_radii(counts)
    (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
    """
    reached = certificates(counts, 0.0, alpha, "standard", familywise).radii
    largest = float(np.nan_to_num(reached).max()) / counts.sigma  # NaN where a sample abstained
    steps = range(max(math.floor(largest * STEPS_PER_SIGMA), HEADLINE_STEP) + 1)
    return tuple(float(f"{step * counts.sigma / STEPS_PER_SIGMA:.6g}") for step in steps)


# --- runs ----------------------------------------------------------------------------------------------------------


def _of_counts(
    counts: Counts, manifest: Manifest | None, source: str, settings: CertifySettings, progress: Progress
) -> Certification:
    alpha = alpha_of_run(settings.alpha)
    kinds, several = settings.kind, len(settings.kind) > 1
    radii = settings.radii or default_radii(counts, alpha, settings.familywise)
    # How far the unasked radii go depends on the votes: alpha is shared among all that the most votes would reach.
    reached = 1
    if settings.together:
        most = replace(counts, votes=counts.draws)
        reached = len(settings.radii or default_radii(most, alpha, settings.familywise))
    placed = settings.binning_with_edges(
        counts.confidence_estimates().values if settings.edges == "equal-mass" else None
    )
    lines: list[CertifiedAt] = []
    progress.stage("certifying", len(radii) * len(kinds))
    for radius in radii:
        for kind in kinds:
            one = certificates(counts, radius, alpha, kind, settings.familywise, **settings.accounting_of(reached))
            claim = one.claim(settings.bins, settings.closed, edges=placed.get("edges"))
            line = CertifiedAt(radius, one.confidence if several else None, one.summary(**placed), one, claim)
            if settings.adaptive:
                recomputed = one.claim_of_intervals(settings.bins, settings.closed, adaptive=True)
                line = replace(line, adaptive=recomputed)
            lines.append(line)
            progress.advance(1)
    if settings.compare:
        clean = counts.confidence_estimates().values if settings.grid else None
        lines = [_add_published_methods(line, settings, progress, line.certificates, placed, clean) for line in lines]
    first = lines[0].certificates
    assert first is not None
    names = [kind_name(kind) for kind in kinds]
    return Certification(
        source=source,
        n=len(counts),
        about={"run": about_run(manifest, counts, first)},
        description=describe_run(manifest, counts, first, several=several),
        lines=lines,
        by="certificate" if several else None,
        conventions={
            **settings.conventions,
            "alpha": alpha,
            **({} if settings.accounting == "ledger" else {"accounting": settings.accounting}),
            "familywise": settings.familywise,
            **({"together": True} if settings.together else {}),
            "confidence": names[0] if not several else "all" if kinds == CONFIDENCES else names,
            "ledger": first.ledger.to_dict(),
        },
        place=HEADLINE_STEP if settings.radii is None else len(radii) - 1,
        settings=settings,
        counts=counts,
        manifest=manifest,
    )


# --- tables --------------------------------------------------------------------------------------------------------


def _certify_table(table: IntervalTable, settings: CertifySettings, progress: Progress) -> Certification:
    from certcal.bounds import equal_share
    from certcal.worst_case import certify as certified

    for name in ("kind", "familywise", "together", "accounting", "drawn_only"):
        if getattr(settings, name) != defaults_of(certify)[name]:
            raise InputError(f"it is for runs, and {table.path} is a table", argument=name, remedy="leave it out")
    alpha = (table.alpha or 0.0) if settings.alpha is None else settings.alpha
    wanted = {table.radii[k] for k in chosen_radii(str(table.path), table.radii, settings.radii) if table.radii}
    if settings.edges == "equal-mass" and table.confidence is None:
        reason = f"{table.path} has no column of confidences without an attack, of which the edges are quantiles"
        remedy = "add one named confidence, or give the edges as numbers"
        raise InputError(reason, argument="edges", remedy=remedy)
    placed = settings.binning_with_edges(table.confidence)
    # As certcal.bound does: all groups of a radius hold together, and the whole has a level of its own.
    share: dict[str, Any] = {}
    if table.groups:
        share["delta"] = equal_share(settings.delta, len(table.groups))
    lines: list[CertifiedAt] = []
    progress.stage("certifying")
    for part in table.parts():
        if part.radius is not None and part.radius not in wanted:
            continue
        arrays = (part.lower, part.upper, part.correct)
        shared = placed if part.group is None else placed | share
        summary = certified(*arrays, certified=part.certified, alpha=alpha, binary=table.binary, **shared)
        summary = summary if table.origin is None or not alpha else summary.with_name("calibration_error", IF_ALL_HOLD)
        group, where = (None, dict[str, str]()) if part.group is None else (part.group.name, part.group.where)
        line = CertifiedAt(None if part.radius is None else float(part.radius), group, summary, where=where)
        compared = settings.compare and part.group is None
        lines.append(_add_published_methods(line, settings, progress, part, placed) if compared else line)
    made = {} if table.origin is None else {"certificates": table.origin.to_dict()}
    radii = dict.fromkeys(line.radius for line in lines)
    return Certification(
        source=str(table.path),
        n=len(table),
        about={"columns": table.layout.to_dict(), **made},
        description=_describe_table(table, lines),
        lines=lines,
        by=", ".join(each.by for each in table.groupings) or None,
        conventions={**settings.conventions, "alpha": alpha},
        place=len(radii) - 1,
        settings=settings,
        origin=table.origin,
        groupings=table.groupings,
    )


def _describe_table(table: IntervalTable, lines: Sequence[CertifiedAt]) -> str:
    count = f"{len(table):,} {'row' if len(table) == 1 else 'rows'}"
    if len(lines) == 1:
        summary = lines[0].summary
        count += f" at radius {lines[0].radius_text}" if lines[0].radius_text else ""
        some = "all" if summary.n_certified == summary.n else f"{summary.n_certified:,}"
        count += "" if table.binary else f", {some} certified"
    made = "" if table.origin is None else f"; {table.origin.description}"
    return f"{count}; {table.layout.description}{made}"


def _add_published_methods(
    line: CertifiedAt,
    settings: CertifySettings,
    progress: Progress,
    part: Any,
    placed: Mapping[str, Any],
    clean: Any = None,
) -> CertifiedAt:
    """A line with what the published methods make of its certified samples."""
    if not line.summary.n_certified:
        return line
    keep = slice(None) if part.certified is None else part.certified
    arrays = (part.lower[keep], part.upper[keep], part.correct[keep].astype(np.uint8))
    where = f", radius {line.radius_text}" if line.radius_text else ""

    def say(name: str) -> None:
        progress.stage(f"{name}{where}")

    compare: Callable[..., tuple[ComparedMethod, ...]] = EXTENSIONS["baselines"]().compare
    found = compare(
        *arrays,
        settings.bins,
        edges=placed.get("edges"),
        closed=settings.closed,
        confidence=None if clean is None else np.clip(clean[keep], *arrays[:2]),
        grid=settings.grid,
        say=say,
    )
    return replace(line, methods=found)
