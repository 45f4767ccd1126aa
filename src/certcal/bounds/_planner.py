"""How many samples are needed for a bound that is small enough? An estimate by simulation, before any are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, confidences, failure_probability, function, real, share, whole_number
from certcal._base.rounding import percent_text
from certcal._base.text import capital
from certcal._base.told import in_lines
from certcal.bounds._binned import binned
from certcal.bounds._bounded_variation import bounded_variation
from certcal.bounds._cumulative import ks, kuiper
from certcal.bounds._shared import Floats, check_seed
from certcal.claims import Bound, short_text
from certcal.result import Curves, Result

# Sizes that are tried, and how near the answer must be to the true crossing.
_LEAST, _MOST, _NEAR = 64, 10_000_000, 1.08


class PlannedSize(NamedTuple):
    """What is to be expected of so many samples: the median bound, and how often it is at most the target."""

    n: int
    bound: float
    chance: float

    def __str__(self) -> str:
        return in_lines(self)


@dataclass(frozen=True, repr=False)
class Plan(Result, kind="plan", more="sentence"):
    """How many samples are likely to be enough. An estimate: it depends on what was assumed, and on the simulation."""

    question: ClassVar[str] = "How many samples are enough?"
    stated = "fact"

    n: int
    """Number of samples, rounded up to two digits."""
    target: float
    """What the bound is to be at most."""
    name: str
    """What is bounded."""
    error: float
    """The true error that was assumed."""
    power: float
    """Chance with which the bound is to be at most the target."""
    delta: float
    """Probability with which the bound may fail."""
    curve: tuple[PlannedSize, ...]
    """The sizes that were tried, with their median bounds and how often these reached the target."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Method, scores, repetitions and seed of the simulation."""
    source: str | None = None
    """The table whose scores were used, if it has a name."""

    def __repr__(self) -> str:
        return f"<Plan: {self.n:,} samples for a {self.name} of at most {self.target:g}>"

    @property
    def sentence(self) -> str:
        """What was found."""
        delta, power = short_text(self.delta, "upper"), percent_text(self.power)
        return (
            f"about {self.n:,} samples bound the {self.name.removesuffix(' of the population')} by {self.target:g} at "
            f"delta {delta} with a chance of {power} if it is {self.error:g}; an estimate by simulation."
        )

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seed of the simulation."""
        return {"simulation": self.settings["seed"]}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The sizes that were tried."""
        return dict(zip(("n", "bound", "chance"), zip(*self.curve, strict=True), strict=True))

    def top(self) -> Sequence[str]:
        """What was found."""
        return [capital(self.sentence)]

    def parts(self) -> Mapping[str, Any]:
        """What other numbers of samples give, and what was assumed."""
        sizes, bounds, chances = (list(column) for column in zip(*self.curve, strict=True))
        drawn = Curves("number of samples", sizes, {"Typical bound": {"median of the simulated bounds": bounds}})
        return {
            "Other numbers of samples": {
                "samples": sizes,
                "typical bound": bounds,
                "chance": [percent_text(each) for each in chances],
            },
            "Bound by number of samples": drawn,
            "Assumptions": {name: str(value) for name, value in self.settings.items()},
        }


@names_wrong_types
def plan(
    target: float,
    delta: float = 0.05,
    *,
    method: str | Callable[..., Bound] = "binned",
    scores: Any = None,
    error: float = 0.0,
    power: float = 0.9,
    bins: int = 15,
    repetitions: int = 40,
    seed: int = 0,
) -> Plan:
    """How many samples it takes until a bound on the calibration error is at most the target, most of the time.

    Samples are simulated: scores are drawn from those given (or evenly from 0 to 1), and outcomes from a classifier
    that is too sure everywhere by the same share, such that its error is ``error``. The size grows fourfold until the
    bound is at most the target in the share ``power`` of the repetitions, and is then narrowed down to within 8 %. The
    bounds get smaller as samples are added, which makes the search meaningful; nothing is guaranteed: other scores,
    another miscalibration or another draw need other numbers.

    Parameters
    ----------
    target
        What the bound is to be at most.
    delta
        Probability with which the bound may fail.
    method
        "binned", "ks", "kuiper", "bounded_variation", or a function of scores, outcomes and ``delta`` that returns a
        bound.
    scores
        Scores like those that are to come; outcomes are not needed.
    error
        The true error that is assumed, below the target. A classifier is never perfectly calibrated: 0 is the least
        number of samples.
    power
        Chance with which the target is to be reached.
    bins
        Of :func:`binned`.
    repetitions
        Simulated data sets per size.
    seed
        Of the simulation.

    Examples
    --------
    >>> found = plan(0.1, error=0.02)
    >>> found.n
    790
    >>> print(found.sentence)
    about 790 samples bound the binned calibration error by 0.1 at delta 0.05 with a chance of 90% if it is 0.02; an estimate by simulation.
    """  # noqa: E501
    goal = share(target, "target", "pass an error between 0 and 1")
    level, chance = failure_probability(delta, "delta"), share(power, "power", "pass a chance between 0 and 1")
    count = whole_number(repetitions, 5, 10_000, "repetitions", "pass a whole number from 5 to 10000")
    if not 0 <= real(error, "error", "pass an error from 0 to below the target") < goal:
        raise InputError(f"error is {error}; pass an error from 0 to below the target {goal:g}")
    bound, called = _method(method, bins), method if isinstance(method, str) else getattr(method, "__name__", "own")
    draw = _classifier(None if scores is None else confidences(scores, "scores").astype(np.float64), float(error))
    start, found, name = check_seed(seed), dict[int, PlannedSize](), ""

    def reached(n: int) -> bool:
        nonlocal name
        values: list[float] = []
        for k in range(count):
            each = _bound_of(bound, called, *draw(n, np.random.default_rng([start, k])), level)
            values.append(each.value)
            name = each.name
        found[n] = PlannedSize(n, float(np.median(values)), sum(value <= goal for value in values) / count)
        return found[n].chance >= chance

    few, many = 0, _LEAST
    while not reached(many):
        few, many = many, 4 * many
        if many > _MOST:
            raise InputError(
                f"{few:,} samples are not enough for a target of {goal:g}; pass a larger target or a smaller error"
            )
    while few and many / few > _NEAR:
        middle = round(math.sqrt(few * many))
        few, many = (few, middle) if reached(middle) else (middle, many)
    curve = tuple(found[n] for n in sorted(found))
    settings: dict[str, Any] = {"method": called} | ({"bins": bins} if called == "binned" else {})
    settings |= {"scores": "evenly from 0 to 1" if scores is None else "given", "repetitions": count, "seed": start}
    return Plan(_round_up_to_two_digits(many), goal, name, float(error), chance, level, curve, settings)


def _method(method: str | Callable[..., Bound], bins: int) -> Callable[..., Bound]:
    known: dict[str, Callable[..., Bound]] = {
        "binned": partial(binned, bins=bins),
        "ks": ks,
        "kuiper": kuiper,
        "bounded_variation": bounded_variation,
    }
    if isinstance(method, str) and method not in known:
        raise InputError(f"method is {method!r}; pass one of {', '.join(known)}, or a function")
    return known[method] if isinstance(method, str) else function(method, "method", f"pass one of {', '.join(known)}")


def _bound_of(bound: Callable[..., Bound], called: str, scores: Floats, outcomes: Any, delta: float) -> Bound:
    try:
        result: Any = bound(scores, outcomes, delta=delta)
    except (TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"method {called} failed: {said}; it is called with scores, outcomes and delta=…") from error
    if not (hasattr(result, "value") and hasattr(result, "name")):
        raise InputError(f"method {called} returned a {type(result).__name__}; it must return a Bound")
    return result


def _classifier(scores: Floats | None, error: float) -> Callable[[int, np.random.Generator], tuple[Floats, Any]]:
    """Draws scores with outcomes whose probability is too low (or too high) by one share of it everywhere."""
    mean = 0.5 if scores is None else float(scores.mean())
    if error > max(mean, 1 - mean):
        raise InputError(f"error is {error:g}, more than scores with a mean of {mean:g} can have; pass a smaller one")
    over, part = error <= mean, error / max(mean if error <= mean else 1 - mean, 1e-300)

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Any]:
        both = rng.random((n, 2))  # samples that are added leave the first ones as they are
        z = both[:, 0] if scores is None else scores[(both[:, 0] * scores.size).astype(np.int64)]
        eta = z - part * z if over else z + part * (1 - z)
        return z, (both[:, 1] < eta).astype(np.uint8)

    return draw


def _round_up_to_two_digits(n: int) -> int:
    step = 10 ** max(0, len(str(n)) - 2)
    return -(-n // step) * step
