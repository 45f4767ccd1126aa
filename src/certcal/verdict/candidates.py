"""Claims that requirements can name, and what they may be called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from certcal.claims import Certificate
from certcal.verdict.requirement import plain

SAMPLES, POPULATION = " on these samples", " for the population"
# Settings of which a result can hold several values, each with claims of its own. A requirement on all of them needs no
# correction: if it is not met at one value, it passes only where the number at that value is wrong.
SEVERAL = ("bins", "radius", "epsilon", "attack", "kind", "method")
# Claims that a metric's name means as well, nearest first. The binned error is below the true one, so an upper bound of
# that also bounds it.
_BINNED = "binned_calibration_error_of_the_population"
_ALSO = {
    "ece": (_BINNED, _BINNED.replace("the_", "the_weighted_"), "calibration_error"),
    "classwise_ece": (f"mean_over_classes_of_the_{_BINNED}", "mean_over_classes_of_the_calibration_error"),
    "mce": ("maximum_calibration_error",),
    "ks_error": ("ks_calibration_error_of_the_population",),
    "kuiper_error": ("kuiper_calibration_error_of_the_population",),
    "calibration_error": ("ece",),
}
# What stands before the name of a number where a result has several of it.
PREFIX = re.compile(r"(?:difference|old|new|clean|reached)_(?=.)")
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
CLAIM_NAMES = {name.partition("_of_the_population")[0] for family, above in _ALSO.items() for name in (family, *above)}


@dataclass(frozen=True)
class Vocabulary:
    """What numbers are called in print."""

    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Labels of names."""
    meanings: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names of what is called so in print, by its plain spelling."""

    def names(self, text: str) -> tuple[str, ...]:
        """The plain names that a text may mean, nearest first; "old" and the like stay before each.

        Examples
        --------
        >>> Vocabulary(meanings={"log_loss": ("nll",)}).names("old log loss")
        ('old_log_loss', 'old_nll')
        """
        name = plain(text)
        found = PREFIX.match(name)
        before = "" if found is None else found[0]
        own = name.removeprefix(before)
        meant = [each for one in (own, *self.meanings.get(own, ())) for each in (one, *_ALSO.get(one, ()))]
        return tuple(dict.fromkeys((name, *(before + each for each in meant))))


@dataclass(frozen=True)
class Candidate:
    """A claim that requirements can name."""

    claim: Any
    """An estimate, a bound, a certificate or a worst case."""
    names: tuple[str, ...] = ()
    """Other names of the claim."""
    group: str | None = None
    """The group it is about; None for the whole."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What tells it from others of its name, beside its own settings."""
    about: str = ""
    """What it is about, where a result has the same of something else: " for the population", " on these samples"."""
    unasked: Mapping[str, str] = field(default_factory=dict[str, str])
    """The argument of a verb with which somebody could have asked for certain values of a setting and did not, by the
    setting: its values are examples then, and no requirement is about all of them."""
    printed: str = ""
    """What tables call the group, where that is something else."""
    why: str = ""
    """Why its number is infinite or undefined, behind "because"."""

    @classmethod
    def certified(cls, claim: Any, key: str, settings: Mapping[str, Any], *names: str, **more: Any) -> Candidate:
        """One of the claims of intervals by its key: about these samples, or about the population."""
        also = key.removeprefix("claimed_")
        other = {"population_bound": "population_ece", "calibration_error": "samples_ece"}.get(also, also)
        about = POPULATION if also == "population_bound" else SAMPLES
        return cls(claim, (key, also, other, *names), settings=settings, about=about, **more)

    @classmethod
    def of_group(cls, claim: Any, names: tuple[str, ...], group: Any, by: object, **more: Any) -> Candidate:
        """A claim about a group, which its name chooses, and its value of each column."""
        values = group.where.values()
        printed = " × ".join(values) if len(values) > 1 else ""
        return cls(claim, names, group.name, {str(by): group.name, **group.where}, printed=printed, **more)

    @property
    def key(self) -> str:
        """Its name in a mapping."""
        return plain(self.names[0] if self.names else str(self.claim.name))

    @property
    def known(self) -> dict[str, Any]:
        """All settings, and the group."""
        own = {**getattr(self.claim, "settings", {}), **self.settings}
        if isinstance(self.claim, Certificate):
            own.setdefault("radius", self.claim.radius)
        if self.group is not None and self.group not in own.values():
            own["group"] = self.group
        return {plain(str(name)): value for name, value in own.items()}

    def rank(self, names: Iterable[str]) -> int | None:
        """How near the claim's names are to those asked for; None when it is another's."""
        own = {plain(each) for each in (self.claim.name, *self.names)}
        return next((place for place, each in enumerate(names) if each in own), None)

    def fits(self, settings: Mapping[str, str]) -> bool:
        """Whether it has these settings."""
        known = self.known
        return all(
            name in known and comparable_value(known[name]) == comparable_value(value)
            for name, value in settings.items()
        )

    @property
    def step(self) -> tuple[Any, int]:
        """Which quantity it is about: its ladder, and the step there. What is on a lower step is at most as large."""
        own, known = plain(self.claim.name), self.known
        several = tuple(comparable_value(known.get(name, "")) for name in SEVERAL if name != "bins")
        for metric, above in _ALSO.items():
            if own in (metric, *above):
                return (metric, several), int(own == above[-1])
        return (own, several), 0

    def has_bins_of(self, other: Candidate) -> bool:
        """Whether both have the same bins, or none."""
        return all(self.known.get(name) == other.known.get(name) for name in ("bins", "closed"))


def comparable_value(value: Any) -> float | str:
    """A setting as a number, if it is one, or in small letters, with one sign for all dashes and for crossings.

    Examples
    --------
    >>> comparable_value("15"), comparable_value("21–27"), comparable_value("North × gold")
    (15.0, '21-27', 'north*gold')
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        return re.sub(r"\s*[×*]\s*", "*", str(value)).casefold().translate(_DASHES)
