"""How wrong can the confidences be when somebody perturbs the inputs? What a run or a table of intervals certifies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

import certcal
from certcal._checks import InputError
from certcal._progress import SILENT, Progress
from certcal._settings import Settings, setting, takes
from certcal._text import counted
from certcal.claims import Bound, Certificate, in_full
from certcal.data import IntervalOrigin, IntervalTable, intervals_as_parquet, read_intervals
from certcal.result import Result
from certcal.smoothing import (
    CONFIDENCES,
    Certificates,
    Counts,
    InfluentialSample,
    Manifest,
    Run,
    Widths,
    certificates,
    influential_samples,
    kind_name,
    open_run,
    usable_counts,
)
from certcal.verbs.certified_samples import ALPHA_OF_RUNS, ROLES, about_run, chosen_radii, describe_run, samples_of
from certcal.verbs.measure import BRACKETS

if TYPE_CHECKING:
    from certcal.metrics import Reliability
    from certcal.smoothing import ConfidenceEstimates
    from certcal.smoothing.robustness import PaDistribution
    from certcal.worst_case import CertifiedSummary, WorstCase
    from certcal.worst_case.baselines import ComparedMethod

MOST_RADII, MOST_BINS = 1000, 10_000
STEPS_PER_SIGMA = 4
HEADLINE_STEP = 2  # half of sigma
INTERVALS = ".parquet"


@dataclass(frozen=True)
class CertifySettings(Settings):
    """At which radii, how often certificates may fail, and how they are made from noise draws.

    Examples
    --------
    >>> CertifySettings(radii=[0.5, 0.25, 0.5], confidence="all").radii
    (0.25, 0.5)
    """

    radii: tuple[float, ...] | None = setting(
        None,
        "Radii to certify at. Default: quarters of sigma for a run, all radii of a table.",
        "number",
        many=True,
        least=0,
        flag="--radius",
        metavar="R",
    )
    bins: int = setting(15, "Number of bins of the calibration error.", "whole", least=1, most=MOST_BINS)
    closed: str = setting("left", "Closed end of each bin.", "word", choices=("left", "right"))
    delta: float = setting(0.05, "Failure probability of each population bound.", "failure")
    alpha: float | None = setting(
        None,
        "Failure probability of each sample's interval. Default: 0.001 for a run; for a table, what its column alpha "
        "says, or 0. Rows that the verifier abstained on must stay in the table, with certified = 0.",
        "failure",
        zero=True,
    )
    compare: bool = setting(False, "Also run ADMM and gradient ascent (needs torch; slow).", "flag")
    confidence: tuple[Any, ...] = setting(
        ("tight",),
        f"Kind of certificate: {', '.join(CONFIDENCES[:-1])} or {CONFIDENCES[-1]}; several, or all, side by side.",
        "word",
        many=True,
        choices=(*CONFIDENCES, "all"),
        own=True,
        metavar="KIND",
    )
    familywise: bool = setting(
        False, "Treat alpha as the family-wise error rate: the probability that any certificate fails.", "flag"
    )
    drawn_only: bool = setting(False, "Certify the finished samples of an incomplete run.", "flag")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radii is not None:
            radii = tuple(sorted({abs(radius) for radius in self.radii}))
            if not 1 <= len(radii) <= MOST_RADII:
                reason = f"{len(radii)} different radii were given"
                raise InputError(reason, argument="radii", remedy=f"give from 1 to {MOST_RADII}")
            object.__setattr__(self, "radii", radii)
        kinds = tuple(dict.fromkeys(CONFIDENCES if "all" in self.confidence else self.confidence))
        if not kinds:
            raise InputError("no kind was given", argument="confidence", remedy=f"give {', '.join(CONFIDENCES)} or all")
        if len(kinds) > 1 and self.compare:
            raise InputError("it needs one kind of certificate", argument="compare", remedy="choose one")
        object.__setattr__(self, "confidence", kinds)

    @property
    def binning(self) -> dict[str, Any]:
        """What the numerics are told about bins and the population."""
        return {"bins": self.bins, "closed": self.closed, "delta": self.delta}


@dataclass(frozen=True, eq=False)
class CertifiedAt:
    """What is certified at one radius, of all samples or of one group, by one kind of certificate.

    Attributes
    ----------
    radius
        Of the perturbations; None for a table without a column of radii.
    group
        Of a table, or the kind of certificate where there are several; None for all samples.
    summary
        What the intervals mean together.
    certificates
        The intervals of a run's samples; None for a table.
    claim
        Of a run: what no perturbation up to the radius can make the calibration error exceed, with what certificates
        that fail can add. Of the certified samples, or of all when none is certified.
    methods
        The exact worst case and what the published methods reach, when a comparison was asked for.
    """

    radius: float | None
    group: str | None
    summary: CertifiedSummary
    certificates: Certificates | None = None
    claim: Certificate | None = None
    methods: tuple[ComparedMethod, ...] = ()

    @property
    def radius_text(self) -> str:
        """The radius as the shortest text that means it; empty without one."""
        return "" if self.radius is None else radius_text(self.radius)

    @property
    def headline(self) -> Certificate | WorstCase:
        """The claim about the calibration error: of a run its certificate, of a table the worst case."""
        return self.claim or self.worst or self.summary["calibration_error"].worst_all

    @property
    def population(self) -> Bound:
        """The bound for the population behind the certified samples, or behind all when none is certified."""
        return self.summary.population or self.summary.population_all

    @property
    def worst(self) -> WorstCase | None:
        """The worst calibration error of the certified samples; None when there are none."""
        return self.summary["calibration_error"].worst

    @cached_property
    def worst_bins(self) -> Reliability | None:
        """The reliability diagram of the witness: confidences inside the intervals that reach the worst case."""
        from certcal.metrics import Reliability

        if self.worst is None or self.worst.bins is None:
            return None
        return Reliability(self.worst.bins, self.worst.value, None, None, 0.95)

    @property
    def kind(self) -> str | None:
        """Kind of certificate; None for a table."""
        return None if self.certificates is None else self.certificates.confidence

    @property
    def width(self) -> float | None:
        """Mean width of the certified samples' intervals; None when there are none, and for a table."""
        return None if self.certificates is None else self.certificates.mean_width

    def claims(self) -> list[tuple[str, str, Any]]:
        """Every claim with its key and the samples it is over, "certified" or "all"."""
        found = list[tuple[str, str, Any]](self.summary.claims())
        if self.claim is not None:
            found.append(("claimed_calibration_error", str(self.claim.settings["samples"]), self.claim))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        document: dict[str, Any] = {"radius": self.radius, "group": self.group, **self.summary.to_dict()}
        document["information"]["verdict"] = self.summary.information.verdict_at(self.radius_text)
        if self.claim is not None:
            document |= {"mean_width": self.width, "claim": self.claim.to_dict()}
        if self.methods:
            document["comparison"] = [method.to_dict() for method in self.methods]
        return document


@dataclass(frozen=True, eq=False, repr=False)
class Certification(Result):
    """What a run, or a table of intervals, certifies at several radii.

    Attributes
    ----------
    source
        Name of the file or folder.
    n
        Number of rows, or of samples of a run.
    about
        Where the intervals come from, for machines: the columns of a table, or the run.
    description
        The same in a line for people.
    lines
        Per radius: all samples and then each group, or each kind of certificate.
    by
        What the groups are; None without any.
    conventions
        Bins, closed, delta and alpha, and how a run was certified.
    place
        Of the headline's radius among ``radii``. It was fixed before looking: the largest that was asked for, or half
        of sigma. A radius that the results chose would not do, because population bounds and certificates of some kinds
        have an event for each radius.
    settings
        What was asked for.
    counts, manifest
        The draws behind a run, and what it was drawn with; None for a table (the manifest also for bare counts).
    origin
        What the intervals of a table rest on, if it says so.

    Examples
    --------
    >>> import certcal
    >>> c = certcal.certify({"lower": [0.5, 0.25], "upper": [0.75, 0.5], "correct": [1, 0]}, bins=5)
    >>> c
    <Certification of table: 2 samples, calibration error at most 0.4501>
    >>> c.at().summary.accuracy.text
    '0.5000'
    """

    view: ClassVar[str] = "certcal.report.views.certification"

    source: str
    n: int
    about: Mapping[str, Any]
    description: str
    lines: Sequence[CertifiedAt]
    by: str | None
    conventions: Mapping[str, Any]
    place: int
    settings: CertifySettings
    counts: Counts | None = None
    manifest: Manifest | None = None
    origin: IntervalOrigin | None = None
    _widths: dict[tuple[float | None, str], Widths | None] = field(default_factory=dict[Any, "Widths | None"])

    @property
    def radii(self) -> tuple[float | None, ...]:
        """Each radius once, ascending; None alone for a table without a column of radii."""
        return tuple(dict.fromkeys(line.radius for line in self.lines))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of certificates of a run, the headline's first; none for a table."""
        return tuple(dict.fromkeys(line.kind for line in self.lines if line.kind is not None))

    def at(self, radius: float | None = None, group: str | None = None) -> CertifiedAt:
        """What is certified at a radius.

        Parameters
        ----------
        radius
            One of ``radii``; the headline's when not given.
        group
            A group, or a kind of certificate; all samples, or the first kind, when not given.
        """
        where = self.radii[self.place] if radius is None else float(radius)
        found = [line for line in self.lines if line.radius == where]
        if not found:
            known = ", ".join(radius_text(each) for each in self.radii if each is not None)
            raise InputError(f"{radius_text(where or 0.0)} is not one of {known or 'none'}", argument="radius")
        chosen = [line for line in found if group in (None, line.group, line.kind)]
        if not chosen:
            names = ", ".join(repr(line.group) for line in found if line.group is not None)
            raise InputError(f"{group!r} is not one of {names or 'none'}", argument="group")
        return chosen[0]

    def whole(self) -> list[CertifiedAt]:
        """The line of each radius for all samples, by the first kind of certificate."""
        return [self.at(radius) for radius in self.radii]

    def __repr__(self) -> str:
        one = self.at()
        where = f" at radius {one.radius_text}" if one.radius_text else ""
        said = f"calibration error at most {one.headline.text}{where}"
        return f"<Certification of {self.source}: {counted(one.summary.n, 'sample')}, {said}>"

    @property
    def seeds(self) -> Mapping[str, int]:
        """Of the noise of a run."""
        return {} if self.manifest is None else {"noise of the run": self.manifest.seed}

    @property
    def sources(self) -> Sequence[str]:
        """The file or folder."""
        return (self.source,)

    def claims(self) -> Sequence[Any]:
        """The headline's claim, the bound for the population, and then every other claim at every radius."""
        one = self.at()
        first = (one.headline, one.population)
        rest = [claim for line in (one, *self.lines) for _, _, claim in line.claims()]
        return tuple({id(claim): claim for claim in (*first, *rest)}.values())

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "certcal": certcal.__version__,
            "source": self.source,
            "n": self.n,
            **self.about,
            "conventions": {**self.conventions, "bins_are": BRACKETS[str(self.conventions["closed"])]},
            "results": [line.to_dict() for line in self.lines],
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per radius, group and claim, with all digits; methods that were compared follow their radius."""
        rows: list[tuple[Any, ...]] = []
        for line in self.lines:
            # Whole numbers are written without a point.
            radius = int(line.radius) if line.radius is not None and line.radius.is_integer() else line.radius
            for key, samples, claim in line.claims():
                value = float(claim.value)
                rows.append((radius, line.group, key, samples, claim.n, value, claim.text, in_full(claim), None))
            for each in line.methods:
                found = (each.name, "certified", line.summary.n_certified, each.value, each.text, each.sentence)
                rows.append((radius, line.group, *found, float(f"{each.seconds:.6g}")))
        names = ("radius", "group", "claim", "samples", "n", "value", "text", "sentence", "seconds")
        columns: dict[str, Sequence[Any]] = dict(zip(names, zip(*rows, strict=True), strict=True))
        if not any(line.methods for line in self.lines):
            del columns["seconds"]
        return columns

    def save(self, path: str | os.PathLike[str], *, force: bool = False, **options: Any) -> Path:
        """Write the answer whole, or not at all: also .parquet, the intervals of a run, which can be certified again.

        Parameters
        ----------
        path, force, options
            As for :meth:`Result.save`.
        """
        from certcal._files import write_bytes

        target = Path(path)
        if target.suffix.lower() != INTERVALS:
            return super().save(target, force=force, **options)
        write_bytes(target, self._intervals(), force=force)
        return target

    def _intervals(self) -> bytes:
        """The intervals at each radius as a Parquet file, with what they rest on."""
        counts, found = self._drawn, [line.certificates for line in self.lines if line.certificates is not None]
        if len(self.kinds) > 1:
            raise InputError("a file of intervals needs one kind of certificate", argument="confidence")

        def column(values: Callable[[Certificates], Any]) -> Any:
            return np.concatenate([np.broadcast_to(values(one), len(one)) for one in found])

        return intervals_as_parquet(
            {
                "radius": column(lambda one: one.radius),
                "sample": column(lambda one: np.arange(len(one))),
                "lower": column(lambda one: one.lower),
                "upper": column(lambda one: one.upper),
                "correct": column(lambda one: one.correct),
                "certified": column(lambda one: one.certified),
                "alpha": column(lambda one: one.ledger.spent),
                "confidence": column(lambda _: self.clean.values),
            },
            IntervalOrigin(
                found[0].confidence,
                found[0].noise,
                found[0].assumptions,
                samples=samples_of(self.manifest, counts),
                run=None if self.manifest is None else self.manifest.run,
            ),
        )

    # What is behind the certificates of a run.

    @property
    def _drawn(self) -> Counts:
        if self.counts is None:
            raise InputError(f"{self.source}: a table has intervals and no draws; certify a run for this")
        return self.counts

    @cached_property
    def clean(self) -> ConfidenceEstimates:
        """Smoothed confidences of a run's samples without a perturbation: an estimate, from the histograms."""
        return self._drawn.confidence_estimates()

    def clean_bins(self, radius: float | None = None) -> Reliability | None:
        """The reliability diagram without a perturbation of the samples of a run that are certified at a radius.

        An estimate: each confidence is read off a histogram (see :meth:`Counts.confidence_estimates`). None when no
        sample is certified. All kinds of certificates certify the same samples.

        Parameters
        ----------
        radius
            The headline's when not given.
        """
        from certcal.metrics import reliability

        clean, one = self.clean, self.at(radius).certificates
        if one is None or not one.n_certified:
            return None
        shown, asked = one.certified, self.settings
        return reliability(clean.values[shown], one.correct[shown], bins=asked.bins, closed=asked.closed)

    def widths(self, kind: str, radius: float | None = None) -> Widths | None:
        """How wide the certified intervals of any kind are at a radius; None when there are none.

        Kinds that were not asked for are computed for this alone. Nothing is claimed by them: of several kinds, the one
        that is used must be chosen before looking.

        Parameters
        ----------
        kind
            One that was asked for, or any built-in one.
        radius
            The headline's when not given.
        """
        counts, first = self._drawn, self.at(radius)
        if (first.radius, kind) not in self._widths:
            one = next(
                (line.certificates for line in self.lines if (line.radius, line.kind) == (first.radius, kind)), None
            )
            if one is None and first.radius is not None:
                one = certificates(counts, first.radius, self.conventions["alpha"], kind, self.settings.familywise)
            self._widths[first.radius, kind] = None if one is None else one.widths()
        return self._widths[first.radius, kind]

    @cached_property
    def p_a(self) -> PaDistribution:
        """The distribution of p_A over the samples of a run: shares of votes for the true class."""
        from certcal.smoothing.robustness import PaDistribution

        return PaDistribution.of(self._drawn)

    def influential(self, k: int = 12) -> tuple[InfluentialSample, ...]:
        """The samples of a run that add most to the worst calibration error of the headline, most first.

        Parameters
        ----------
        k
            How many, at most. Samples that add nothing are left out.
        """
        counts, one = self._drawn, self.at()
        assert one.certificates is not None
        return influential_samples(counts, one.certificates, one.worst, self.clean, k)


@takes(CertifySettings, ROLES)
def certify(
    source: str | os.PathLike[str] | Run | Counts | IntervalTable | Any,
    *,
    by: str | None = None,
    columns: Mapping[str, Any] | None = None,
    progress: Progress = SILENT,
    settings: CertifySettings,
) -> Certification:
    """Certify the calibration of a smoothed classifier, or of any intervals of confidences.

    Certificates are made from the draws of a run at each radius. Each row of a table says that, whatever an attacker
    does, a sample's confidence stays between lower and upper, and whether its prediction is correct; any verifier's
    output will do. What is claimed holds for every choice of confidences inside the intervals: it is computed exactly,
    and rounded in the safe direction. Keywords beside those below are the fields of :class:`CertifySettings`: radii,
    bins, closed, delta, alpha, compare, confidence, familywise, drawn_only.

    What is random, assumed and claimed at one radius and by one kind of certificate is with
    :func:`certcal.smoothing.certificates` and :meth:`~certcal.smoothing.Certificates.claim`, and for the population
    with :func:`certcal.worst_case.certify`. Several of them together hold as follows. Kinds with ``all_radii`` have one
    event for all radii, so their certificates hold at all radii at once. Bounds on the population, claims of other
    kinds, and the kinds among each other have events of their own: choose the radius and the kind before looking.

    Parameters
    ----------
    source
        The folder of a run, an opened run or its counts; a file of intervals (Parquet, CSV, TSV, npz, Arrow), what
        :func:`certcal.data.read_intervals` returns, or a table in memory (pandas, polars, pyarrow, a mapping).
    by
        Certify each value of this column of a table beside the whole.
    columns
        Columns of a table by role where their names do not say it: lower, upper, correct, prediction, label, certified,
        radius.
    progress
        Where to report how far the work is.
    settings
        All settings at once. ``confidence`` takes names of kinds, several of them, or a
        :class:`~certcal.smoothing.CertificateKind` of your own.

    Examples
    --------
    >>> import certcal, numpy as np
    >>> from certcal.smoothing import Counts
    >>> draws = np.random.default_rng(0).beta(50, 0.5, (3, 4000))
    >>> counts = Counts.from_confidences(draws, np.linspace(0.01, 0.99, 99), votes=[4000, 3900, 2010], sigma=0.5)
    >>> c = certcal.certify(counts, familywise=True)
    >>> c.radii[-1], c.at().radius, c.at().claim.text
    (1.375, 0.25, '0.0381')
    """
    if settings.compare:
        from certcal.worst_case.baselines import prepare

        progress.stage("preparing the comparison")
        prepare()
    progress.stage("reading")
    given: Any = source
    if isinstance(given, str | os.PathLike) and Path(cast("str", given)).is_dir():
        given = open_run(cast("str", given))
    if isinstance(given, Run | Counts):
        name = str(given.path) if isinstance(given, Run) else "counts"
        for role, value in {"by": by, **(columns or {})}.items():
            if value is not None:
                reason = f"it is for tables of intervals, and {name} is a run"
                raise InputError(reason, argument=role, remedy="leave it out")
        if isinstance(given, Counts):
            return _of_counts(given, None, name, settings, progress)
        counts = usable_counts(given, drawn_only=settings.drawn_only)
        return _of_counts(counts, given.manifest, name, settings, progress)
    if isinstance(given, IntervalTable):
        if by is not None or columns:
            raise InputError("the columns of this table are known; leave them out", argument="by")
        return _of_table(given, settings, progress)
    named = columns if by is None else {**(columns or {}), "by": by}
    return _of_table(read_intervals(cast("str", source), named, alpha=settings.alpha is None), settings, progress)


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


def radius_text(value: float) -> str:
    """The shortest text of a number.

    Examples
    --------
    >>> radius_text(0.5), radius_text(1.0)
    ('0.5', '1')
    """
    return repr(float(value)).removesuffix(".0")


# --- runs ----------------------------------------------------------------------------------------------------------


def _of_counts(
    counts: Counts, manifest: Manifest | None, source: str, settings: CertifySettings, progress: Progress
) -> Certification:
    if settings.alpha == 0:
        reason = "it is 0, and certificates from noise may fail"
        raise InputError(reason, argument="alpha", remedy="give a probability such as 0.001")
    alpha = ALPHA_OF_RUNS if settings.alpha is None else settings.alpha
    kinds, several = settings.confidence, len(settings.confidence) > 1
    radii = settings.radii or default_radii(counts, alpha, settings.familywise)
    lines: list[CertifiedAt] = []
    progress.stage("certifying", len(radii) * len(kinds))
    for radius in radii:
        for kind in kinds:
            one = certificates(counts, radius, alpha, kind, settings.familywise)
            samples = "certified" if one.n_certified else "all"
            claim = one.claim(bins=settings.bins, closed=settings.closed, samples=samples, delta=alpha)
            group = one.confidence if several else None
            lines.append(CertifiedAt(radius, group, one.summary(**settings.binning), one, claim))
            progress.advance(1)
    if settings.compare:
        lines = [_compared(line, settings, progress, line.certificates) for line in lines]
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
            **settings.binning,
            "alpha": alpha,
            "familywise": settings.familywise,
            "confidence": names[0] if not several else "all" if kinds == CONFIDENCES else names,
            "ledger": first.ledger.to_dict(),
        },
        place=HEADLINE_STEP if settings.radii is None else len(radii) - 1,
        settings=settings,
        counts=counts,
        manifest=manifest,
    )


# --- tables --------------------------------------------------------------------------------------------------------


def _of_table(table: IntervalTable, settings: CertifySettings, progress: Progress) -> Certification:
    from certcal.worst_case import certify as certified

    for name in ("confidence", "familywise", "drawn_only"):
        if getattr(settings, name) != getattr(CertifySettings, name):
            raise InputError(f"it is for runs, and {table.path} is a table", argument=name, remedy="leave it out")
    alpha = (table.alpha or 0.0) if settings.alpha is None else settings.alpha
    wanted = {table.radii[k] for k in chosen_radii(str(table.path), table.radii, settings.radii) if table.radii}
    lines: list[CertifiedAt] = []
    progress.stage("certifying")
    for part in table.parts():
        if part.radius is not None and part.radius not in wanted:
            continue
        summary = certified(
            part.lower, part.upper, part.correct, certified=part.certified, alpha=alpha, **settings.binning
        )
        line = CertifiedAt(None if part.radius is None else float(part.radius), part.group, summary)
        lines.append(_compared(line, settings, progress, part) if settings.compare and part.group is None else line)
    made = {} if table.origin is None else {"certificates": table.origin.to_dict()}
    radii = dict.fromkeys(line.radius for line in lines)
    return Certification(
        source=str(table.path),
        n=len(table),
        about={"columns": table.layout.to_dict(), **made},
        description=_describe_table(table, lines),
        lines=lines,
        by=table.layout.group,
        conventions={**settings.binning, "alpha": alpha},
        place=len(radii) - 1,
        settings=settings,
        origin=table.origin,
    )


def _describe_table(table: IntervalTable, lines: Sequence[CertifiedAt]) -> str:
    count = f"{len(table):,} {'row' if len(table) == 1 else 'rows'}"
    if len(lines) == 1:
        summary = lines[0].summary
        count += f" at radius {lines[0].radius_text}" if lines[0].radius_text else ""
        count += ", all certified" if summary.n_certified == summary.n else f", {summary.n_certified:,} certified"
    made = "" if table.origin is None else f"; {table.origin.description}"
    return f"{count}; {table.layout.description}{made}"


def _compared(line: CertifiedAt, settings: CertifySettings, progress: Progress, part: Any) -> CertifiedAt:
    """A line with what the published methods make of its certified samples."""
    from certcal.worst_case.baselines import compare

    if not line.summary.n_certified:
        return line
    keep = slice(None) if part.certified is None else part.certified
    arrays = (part.lower[keep], part.upper[keep], part.correct[keep].astype(np.uint8))
    where = f", radius {line.radius_text}" if line.radius_text else ""
    found = compare(*arrays, settings.bins, closed=settings.closed, say=lambda name: progress.stage(f"{name}{where}"))
    return replace(line, methods=found)
