"""The registry of certificate kinds: how intervals are made from noise draws. One entry per kind, one function each.

Names, help, explanations and errors of every other place are read from here. A kind of somebody's own is any callable
like :class:`CertificateKind`; the same is read from it as from a built-in entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice
from certcal.smoothing._bands import HistogramRows, Side, bernstein, cdf, standard, tight
from certcal.smoothing._counts import Counts
from certcal.smoothing._tangent import tangent

Floats = NDArray[np.float64]


class CertificateKind(Protocol):
    """How certified intervals are made from noise draws; built-in kinds and those of a user alike.

    A kind is called with the counts of samples whose predictions are certified, the radius in the units of the input,
    and the probability alpha with which it may be wrong about a sample. It returns lower and upper ends, one each per
    sample: whatever the sample, with probability at least 1 - alpha over its draws the smoothed confidence
    E f_A(x + γ + δ) lies between them for every perturbation γ with ‖γ‖₂ <= radius. Prediction and votes have shares of
    their own and are not its business.

    Three attributes are read where they are there. ``name`` is what the kind is called; by default that of the function
    or class. ``explanation`` says in a sentence how it makes intervals. ``all_radii`` says that the event with which it
    is wrong about a sample is the same at all radii, so that its intervals hold at all of them at once; by default each
    radius has an event of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.smoothing import Counts, certificates
    >>> def vacuous(counts, radius, alpha):
    ...     return np.zeros(len(counts)), np.ones(len(counts))
    >>> counts = Counts.from_confidences([[0.9] * 100], [0.5], votes=[100], sigma=0.5)
    >>> certificates(counts, 0.25, confidence=vacuous)
    Certificates(n=1, radius=0.25, confidence='vacuous', certified=1, abstained=0)
    """

    def __call__(self, counts: Counts, radius: float, alpha: float, /) -> tuple[Any, Any]:
        """Lower and upper ends of the confidences of all samples."""
        ...


@dataclass(frozen=True)
class BandKind:
    """A built-in kind: it bounds X and 1 - X from below, with half of alpha each."""

    name: str
    """As in settings and claims."""
    bound: Callable[[HistogramRows], Floats]
    """The function that proves it."""
    explanation: str
    """How intervals are made, in a sentence."""
    all_radii: bool = True
    """Whether its intervals hold at all radii at once."""
    pooled: bool = False
    """Whether claims about a data set average the noise of its samples: :func:`certcal.smoothing.pooled_claim`."""

    def __call__(self, counts: Counts, radius: float, alpha: float, /) -> tuple[Floats, Floats]:
        """Lower and upper ends of the confidences of all samples."""
        # Rounded to nearest: r is below 9 where a sample is certified, so that the half unit in its last place moves an
        # end by less than 1e-15, and every kind gives 1e-12 away.
        r = radius / counts.sigma
        below, above = (self._lower(counts, r, alpha / 2, flip) for flip in (False, True))
        return below, 1 - above

    def _lower(self, counts: Counts, r: float, level: float, flip: bool) -> Floats:
        side, keys, out = Side.of(counts.thresholds, flip), counts.keys, np.zeros(len(counts))
        for _, rows in equal_draws(counts):
            sums = None if counts.sums is None else counts.sums[rows]
            out[rows] = self.bound(HistogramRows(counts.histogram[rows], keys[rows], side, r, level, sums))
        return out


KINDS: dict[str, BandKind] = {
    kind.name: kind
    for kind in (
        BandKind(
            "tangent",
            tangent,
            "One mean instead of a band, by convexity and bets on draws, each chosen by the draws before; the default.",
            all_radii=False,
            pooled=True,
        ),
        BandKind(
            "tight", tight, "A Clopper-Pearson limit at each threshold of the histogram; at all radii.", pooled=True
        ),
        BandKind("bernstein", bernstein, "The empirical Bernstein limit of the mean confidence."),
        BandKind("cdf", cdf, "A band of constant width (Dvoretzky, Kiefer, Wolfowitz), as published."),
        BandKind("standard", standard, "Hoeffding's limit of the mean confidence, as published."),
    )
}
CONFIDENCES = tuple(KINDS)
# The same for signatures, of which type checkers know the words.
CertificateName = Literal["tangent", "tight", "bernstein", "cdf", "standard"]
DEFAULT_KIND = "tangent"


def kind_of(confidence: str | CertificateKind) -> CertificateKind:
    """The kind of a name, or the kind itself."""
    if not callable(confidence):
        return KINDS[choice(confidence, CONFIDENCES, "confidence")]
    name = _name(confidence)
    if name in KINDS and confidence is not KINDS[name]:  # its claims would not say whose intervals they are
        raise InputError(f"{name} is the name of a built-in kind", argument="confidence", remedy="give yours another")
    return confidence


@names_wrong_types
def kind_name(confidence: str | CertificateKind) -> str:
    """What a kind is called.

    Examples
    --------
    >>> kind_name("tight"), kind_name(lambda counts, radius, alpha: (0, 1))
    ('tight', '<lambda>')
    """
    return _name(kind_of(confidence))


@names_wrong_types
def holds_at_all_radii(confidence: str | CertificateKind) -> bool:
    """Whether the intervals of a kind hold at all radii at once.

    Examples
    --------
    >>> holds_at_all_radii("tight"), holds_at_all_radii("tangent")
    (True, False)
    """
    return bool(getattr(kind_of(confidence), "all_radii", False))


@names_wrong_types
def pools_noise(confidence: str | CertificateKind) -> bool:
    """Whether claims about a data set with a kind of certificate average the noise of its samples.

    Examples
    --------
    >>> pools_noise("tight"), pools_noise("cdf")
    (True, False)
    """
    return bool(getattr(kind_of(confidence), "pooled", False))


@names_wrong_types
def kind_explanation(confidence: str | CertificateKind) -> str:
    """How a kind makes intervals, in a sentence; of one's own kind, its attribute ``explanation``, if it has one.

    Examples
    --------
    >>> kind_explanation("standard")
    "Hoeffding's limit of the mean confidence, as published."
    """
    return str(getattr(kind_of(confidence), "explanation", ""))


def equal_draws(counts: Counts) -> list[tuple[int, NDArray[np.int64]]]:
    """Rows with equally many draws: they share their tables."""
    values, group = np.unique(counts.draws, return_inverse=True)
    return [(int(n), np.flatnonzero(group == g)) for g, n in enumerate(values)]


def _name(kind: Any) -> str:
    return str(getattr(kind, "name", None) or getattr(kind, "__name__", None) or type(kind).__name__)
