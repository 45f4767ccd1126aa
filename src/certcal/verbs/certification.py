"""What is certified, at several radii: the result of :func:`certcal.certify`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.rounding import claim_text
from certcal._base.text import capital, counted
from certcal._base.told import Told
from certcal.claims import Bound, Certificate, in_full
from certcal.data import IntervalOrigin, intervals_as_parquet
from certcal.data.grouping import GroupingColumns
from certcal.result import Answer, NamedAsPrinted, Result, Sentence, answer_of_claims
from certcal.smoothing import (
    Certificates,
    Counts,
    InfluentialSample,
    Manifest,
    Widths,
    certificates,
    influential_samples,
)
from certcal.verbs.certified_samples import samples_of
from certcal.verbs.measure import BRACKETS
from certcal.verdict import Candidate

if TYPE_CHECKING:
    from certcal.metrics import Reliability
    from certcal.smoothing import ConfidenceEstimates
    from certcal.smoothing.robustness import PaDistribution
    from certcal.verbs.certify import CertifySettings
    from certcal.worst_case import CertifiedSummary, WorstCase

INTERVALS = ".parquet"
# Ends the keys of what is computed from the intervals of a run alone.
IF_ALL_HOLD = "_where_every_certificate_holds"


_SCORES_INSIDE = "every score lies inside its interval"
_LARGER = "what larger perturbations do, and samples that are drawn differently"
_OUTSIDE = "what confidences outside their intervals do, and samples that are drawn differently"
# Where the option of a column is not called like its role.
_COLUMN_OPTIONS = {"radius": "--radius-column"}


@dataclass(frozen=True)
class ComparedMethod(PlainValues, keys="method=name value text side seconds sentence"):
    """What one way of finding the worst calibration error found, and how long it took."""

    name: str
    """The method."""
    value: float
    """What it found."""
    text: str
    """The value, rounded up when no confidences exceed it and down when some reach it."""
    seconds: float
    """How long it took."""
    is_exact: bool
    """Whether no confidences inside the intervals exceed the value."""

    @property
    def sentence(self) -> str:
        """What is known of the worst case by this method."""
        if self.is_exact:
            return f"no confidences inside the given intervals have a calibration error above {self.text}."
        return f"some confidences inside the given intervals have a calibration error of at least {self.text}."

    @property
    def side(self) -> str:
        """On which side of the worst case the value lies."""
        return "upper" if self.is_exact else "lower"


@dataclass(frozen=True, eq=False)
class CertifiedAt(NamedAsPrinted, Told):
    """What is certified at one radius, of all samples or of one group, by one kind of certificate."""

    radius: float | None
    """Radius of the perturbations; None for a table without a column of radii."""
    group: str | None
    """Group of a table, or the kind of certificate where there are several; None for all samples."""
    summary: CertifiedSummary
    """What the intervals mean together."""
    certificates: Certificates | None = None
    """The intervals of a run's samples; None for a table."""
    claim: Certificate | None = None
    """Of a run: what no perturbation up to the radius can make the calibration error exceed
    (:meth:`certcal.smoothing.Certificates.claim`). Of the certified samples, or of all when none is."""
    methods: tuple[ComparedMethod, ...] = ()
    """The exact worst case and what the published methods reach, when a comparison was asked for."""
    where: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of a group its value of each column."""
    adaptive: Certificate | None = None
    """The claim of a run about equal-mass bins whose edges are recomputed after the attack, when that was asked for."""

    @property
    def radius_text(self) -> str:
        """The radius as the shortest text that means it; empty without one."""
        return "" if self.radius is None else radius_text(self.radius)

    @property
    def headline(self) -> Certificate | WorstCase:
        """The one number that is called the calibration error on these samples: of a table, its worst case."""
        return self.claim or self.worst or self.summary["calibration_error"].worst_all

    @property
    def averaged(self) -> bool:
        """Whether the claim averages the noise of the samples: it may then be below the worst case of the intervals."""
        return self.claim is not None and "noise" in self.claim.settings

    @property
    def worst_apart(self) -> WorstCase | None:
        """The worst case inside all intervals of a run, where it differs from the claim, which need not rest on all."""
        return None if self.claim is None or self.worst is None or self.worst.value == self.claim.value else self.worst

    @property
    def of_certified(self) -> bool:
        """Whether the headline is about certified samples; of all, where none is certified."""
        return bool(self.summary.n_certified)

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
        return Reliability(self.worst.bins, self.worst.value)

    @property
    def kind(self) -> str | None:
        """Kind of certificate; None for a table."""
        return None if self.certificates is None else self.certificates.confidence

    @property
    def width(self) -> float | None:
        """Mean width of the certified samples' intervals; None when there are none, and for a table."""
        return None if self.certificates is None else self.certificates.mean_width

    def named(self) -> Mapping[str, Any]:
        """The claims by their keys, about certified samples where there are some."""
        return {key: claim for key, _, claim in sorted(self.claims(), key=lambda each: each[1] != "all")}

    def claims(self) -> list[tuple[str, str, Any]]:
        """Every claim with its key and the samples it is over, "certified" or "all"."""
        found: list[tuple[str, str, Any]] = []
        for key, samples, claim in self.summary.claims():
            found.append((self._key_in_document(key), samples, claim))
        for key, claim in (("calibration_error", self.claim), ("equal_mass_error", self.adaptive)):
            if claim is not None:
                found.append((key, str(claim.settings["samples"]), claim))
        return found

    def _key_in_document(self, key: str) -> str:
        """The key of one of the summary's numbers; where a claim has the name, it says what it takes for granted."""
        taken = self.claim is not None and key in ("calibration_error", "equal_mass_error")
        return f"{key}{IF_ALL_HOLD}" if taken else key

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        document: dict[str, Any] = {"radius": self.radius, "group": self.group}
        document |= {self._key_in_document(key): value for key, value in self.summary.to_dict().items()}
        document["information"]["verdict"] = self.summary.information.verdict_at(self.radius_text)
        document["headline"] = self.headline.sentence
        if self.claim is not None:
            document |= {"mean_width": self.width, "claim": self.claim.to_dict()}
        if self.adaptive is not None:
            document["adaptive_claim"] = self.adaptive.to_dict()
        if self.methods:
            document["comparison"] = [method.to_dict() for method in self.methods]
        return document


@dataclass(frozen=True, eq=False, repr=False)
class Certification(Result):
    """What a run, or a table of intervals, certifies at several radii.

    Examples
    --------
    >>> import certcal
    >>> c = certcal.certify({"lower": [0.5, 0.25], "upper": [0.75, 0.5], "correct": [1, 0]}, bins=5)
    >>> c
    <Certification of table: 2 samples, certified accuracy 0.5000, calibration error at most 0.4501>
    >>> c.at().summary.accuracy.text
    '0.5000'
    """

    view: ClassVar[str] = "certcal.report.views.certification"
    schema_version: ClassVar[int] = 2
    forms: ClassVar[Sequence[str]] = (*Result.forms, INTERVALS)

    source: str
    """Name of the file or folder."""
    n: int
    """Number of rows, or of samples of a run."""
    about: Mapping[str, Any]
    """Where the intervals come from, for machines: the columns of a table, or the run."""
    description: str
    """What was read, in a line for people."""
    lines: Sequence[CertifiedAt]
    """Per radius: all samples and then each group, or each kind of certificate."""
    by: str | None
    """What the groups are; None without any."""
    conventions: Mapping[str, Any]
    """Bins, closed, delta and alpha, and how a run was certified."""
    place: int
    """Place of the headline's radius among ``radii``. It was fixed before looking: the largest that was asked for, or
    half of sigma. A radius that the results chose would not do, because population bounds and certificates of some
    kinds have an event for each radius."""
    settings: CertifySettings
    """What was asked for."""
    counts: Counts | None = None
    manifest: Manifest | None = None
    """The draws behind a run, and what it was drawn with; None for a table (the manifest also for bare counts)."""
    origin: IntervalOrigin | None = None
    """What the intervals of a table rest on, if it says so."""
    groupings: Sequence[GroupingColumns] = ()
    """What the groups of a table are made of, and how columns were cut."""
    _widths: dict[tuple[float | None, str], Widths | None] = field(default_factory=dict[Any, "Widths | None"])

    @property
    def binary(self) -> bool:
        """Whether the intervals are of a binary score, all of whose samples count."""
        return self.lines[0].summary.binary

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
        share = "" if self.binary else f"certified accuracy {one.summary.accuracy.text}, "
        over = "" if one.summary.n_certified in (0, one.summary.n) else f" on {one.summary.n_certified:,} certified"
        said = f"{share}calibration error at most {one.headline.text}{over}{where}"
        return f"<Certification of {self.source}: {counted(one.summary.n, 'sample')}, {said}>"

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seed of the noise of a run."""
        return {} if self.manifest is None else {"noise of the run": self.manifest.seed}

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Fingerprints of the model and of the data of a run."""
        return {} if self.manifest is None else self.manifest.fingerprints

    def claims(self) -> Sequence[Any]:
        """The headline's claim, the bound for the population, and then every other claim at every radius."""
        one = self.at()
        first = (one.headline, one.population)
        rest = [claim for line in (one, *self.lines) for _, _, claim in line.claims()]
        return tuple({id(claim): claim for claim in (*first, *rest)}.values())

    def top(self) -> Sequence[Any]:
        """What is claimed at the headline's radius, and how many samples keep their correct class."""
        one, what = self.at(), "the calibration error"
        what = f"At radius {one.radius_text}, {what}" if one.radius_text else capital(what)
        what += " (alpha as papers count it)" if self.settings.accounting == "published" else ""
        if one.claim is not None:
            what += " of the smoothed classifier"
        elif self.origin is not None and self.conventions["alpha"]:
            what += " where every certificate holds"
        summary = one.summary
        over = f"on all {summary.n:,} samples"
        if self.binary:
            over = f"on these {counted(summary.n, 'sample')}"
        elif one.of_certified:
            over = f"on the {counted(summary.n_certified, 'certified sample')}"
        kept, left = summary.accuracy, summary.n - summary.n_certified
        said = capital(kept.sentence).replace(kept.text, claim_text(kept), 1)
        # Without it, few samples that are certified look like a good model.
        said += (
            f" The calibration error leaves out {left:,} that {'is' if left == 1 else 'are'} not certified."
            if left and one.of_certified
            else ""
        )
        return [(one.headline, what, over), *([] if self.binary else [said])]

    @property
    def answer(self) -> Answer:
        """The claim of the headline's radius, what it leaves out, and what to do next."""
        unsaid = [_LARGER if self.at().radius_text else _OUTSIDE]
        found = answer_of_claims(self.top(), self._next_step(), unsaid)
        return replace(found, assumptions=(_SCORES_INSIDE,)) if self.binary and self.at().claim is None else found

    def _next_step(self) -> Sentence | None:
        """A map for the worst case, where a sample is certified."""
        one, given = self.at(), self.about.get("columns", {})
        margins = any(isinstance(name, list) for name in given.values())
        if margins or not (self.binary or one.summary.n_certified) or self.source.startswith("demo: "):
            return None
        columns = {role: name for role, name in given.items() if name != role}
        options = [word for role, name in columns.items() for word in (_COLUMN_OPTIONS.get(role, f"--{role}"), name)]
        options += ["--radius", repr(one.radius)] if one.radius is not None else []
        source = "-" if self.source == "standard input" else self.source
        command = shlex.join(["certcal", "recalibrate", "fit", source, *options, "-o", "map.json"])
        if self.manifest is None and source != "-" and "." not in source.rpartition("/")[2]:  # in memory
            named = [f"columns={columns}"] if columns else []
            named += [f"radii=[{one.radius!r}]"] if one.radius is not None else []
            command = f"certcal.recalibrate({', '.join(['data', *named])}).save('map.json')"
        said = "Fit the map that is best in this worst case, and judge it on samples that it has not seen."
        return Sentence("next", said, data={"command": command})

    def candidates(self) -> Sequence[Candidate]:
        """The claims of the headline's radius, then of the others; also of each group, or kind of certificate."""
        found: list[Candidate] = []
        # Those of a run go on to where nothing is certified; those of a table are its own.
        unasked = {"radius": "radii"} if self.counts is not None and self.settings.radii is None else {}
        for line in dict.fromkeys((self.at(), *self.lines)):
            group = None if self.by is None else line.group
            told = {"radius": line.radius, "kind": line.kind, str(self.by): group, **line.where}
            where = {name: value for name, value in told.items() if value is not None}
            for key, samples, claim in sorted(line.claims(), key=lambda claim: claim[2] is not line.headline):
                told = {**where, "samples": samples}
                found.append(Candidate.certified(claim, key, told, group=group, unasked=unasked))
        return found

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "source": self.source,
            "n": self.n,
            **self.about,
            "headline": self._headline_document(),
            "conventions": {**self.conventions, "bins_are": BRACKETS[str(self.conventions["closed"])]},
            **({"groupings": [each.to_dict() for each in self.groupings]} if self.groupings else {}),
            "results": [line.to_dict() for line in self.lines],
        }

    def _headline_document(self) -> dict[str, Any]:
        """The calibration error and what it must be read beside, at the headline's radius, for machines."""
        one = self.at()
        return {
            "name": one.headline.name,
            "value": one.headline.value,
            "text": one.headline.text,
            "samples": "certified" if one.of_certified else "all",
            "n": one.headline.n,
            one.summary.accuracy.name.replace(" ", "_"): one.summary.accuracy.value,
            "radius": one.radius,
            "sentence": one.headline.sentence,
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

    def to_bytes(self, form: str, **options: Any) -> bytes:
        """The content of a file of the answer; of .parquet the intervals of a run, which can be certified again."""
        return self._intervals_file() if form == INTERVALS else super().to_bytes(form, **options)

    def _intervals_file(self) -> bytes:
        """The intervals at each radius as a Parquet file, with what they rest on."""
        counts, found = (
            self._require_counts,
            [line.certificates for line in self.lines if line.certificates is not None],
        )
        if len(self.kinds) > 1:
            raise InputError("a file of intervals needs one kind of certificate", argument="kind")

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
    def _require_counts(self) -> Counts:
        if self.counts is None:
            raise InputError(f"{self.source}: a table has intervals and no draws; certify a run for this")
        return self.counts

    @cached_property
    def clean(self) -> ConfidenceEstimates:
        """Smoothed confidences of a run's samples without a perturbation: an estimate, from the histograms."""
        return self._require_counts.confidence_estimates()

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
        edges = asked.binning_with_edges(clean.values).get("edges")
        return reliability(clean.values[shown], one.correct[shown], bins=asked.bins, edges=edges, closed=asked.closed)

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
        counts, first = self._require_counts, self.at(radius)
        if (first.radius, kind) not in self._widths:
            one = next(
                (line.certificates for line in self.lines if (line.radius, line.kind) == (first.radius, kind)), None
            )
            if one is None and first.radius is not None:
                given = (counts, first.radius, self.conventions["alpha"], kind, self.settings.familywise)
                one = certificates(*given, **self.settings.accounting_of(len(self.radii)))
            self._widths[first.radius, kind] = None if one is None else one.widths()
        return self._widths[first.radius, kind]

    @cached_property
    def p_a(self) -> PaDistribution:
        """The distribution of p_A over the samples of a run: shares of votes for the true class."""
        from certcal.smoothing.robustness import PaDistribution

        return PaDistribution.of(self._require_counts)

    def influential(self, k: int = 12) -> tuple[InfluentialSample, ...]:
        """The samples of a run that add most to the worst calibration error of the headline, most first.

        Parameters
        ----------
        k
            How many, at most. Samples that add nothing are left out.
        """
        counts, one = self._require_counts, self.at()
        assert one.certificates is not None
        return influential_samples(counts, one.certificates, one.worst, self.clean, k)


def radius_text(value: float) -> str:
    """The shortest text of a number.

    Examples
    --------
    >>> radius_text(0.5), radius_text(1.0)
    ('0.5', '1')
    """
    return repr(float(value)).removesuffix(".0")
