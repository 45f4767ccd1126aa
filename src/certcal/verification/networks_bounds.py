"""Bounds on the margins of a ReLU network over a box or an ℓ2 ball: intervals, and linear bounds carried backwards.

What is claimed: for every input of the region each margin l_j − l_A is between its bounds, in exact arithmetic with the
network's own weights and as float32 evaluates it: products and sums, each rounded to float32, in any order, with or
without fused multiply-add. Every step of the network adds to its exact value an error of at most so many roundings of
the summands' sizes. This error is one more bounded perturbation, and the verifier's own rounding in float64 is another;
both are taken off the bounds. docs/verification-networks.md has the proof.

Importing this loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

import torch
from torch import Tensor, nn

from certcal.models.protocol import Outputs
from certcal.verification.networks_graph import TINY, Affine, MaxPool, Rectifier, Step, Sum, steps_of

# Unit roundoffs of the network's arithmetic and of the verifier's.
SINGLE, DOUBLE = 2.0**-24, 2.0**-53
# Entries of the rows that are carried backwards at a time (what fits a cache), and of a layer's matrix that is kept.
_AT_A_TIME, _KEPT = 1 << 18, 1 << 24
# Maps on the way to a value that is not affine in the input: more than any count.
_MIXED = 1 << 20


@dataclass(frozen=True, eq=False)
class _Set:
    """Inputs: a box, and within it a ball around centre if the radius is given."""

    lower: Tensor
    upper: Tensor
    centre: Tensor
    radius: float | None


@dataclass(frozen=True, eq=False)
class _Gradients:
    """A value that is affine in the input: at the centre of the ball, and the ℓ2 norms of its entries' gradients.

    ``drift`` is how far any evaluation may be from it; ``apart`` as long as its entries depend on different inputs.
    """

    middle: Tensor
    norms: Tensor
    drift: Tensor
    apart: bool


@dataclass(eq=False)
class _Range:
    """What is known about the value of a step for each sample: its ends, and how wrong its computation may be.

    ``mixed`` counts the maps on its way that were not diagonal: up to one, intervals of it are the best possible.
    """

    lower: Tensor
    upper: Tensor
    slack: Tensor
    gradients: _Gradients | None = None
    mixed: int = 0

    @property
    def size(self) -> Tensor:
        return torch.maximum(self.lower.abs(), self.upper.abs())


@dataclass(frozen=True, eq=False)
class _Relaxation:
    """Lines below and above the values of a rectifier or a max pool, for each sample.

    Below: ``below`` times the input, or the input at place ``picked``. Above: ``above`` times the input plus ``shift``.
    """

    above: Tensor
    shift: Tensor
    below: Tensor | None = None
    picked: Tensor | None = None


class MarginBounds:
    """The bounds of one network for samples of one shape.

    Parameters
    ----------
    module
        The network, in evaluation mode.
    shape
        Of one sample.

    Examples
    --------
    >>> network = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)).eval()
    >>> for layer in (network[0], network[2]):
    ...     _ = layer.weight.data.copy_(torch.tensor([[1.0, 1.0], [1.0, -1.0]])), layer.bias.data.zero_()
    >>> lower, upper = MarginBounds(network, (2,)).margins(
    ...     torch.zeros(1, 2), torch.ones(1, 2), torch.zeros(1, dtype=torch.int64)
    ... )
    >>> lower.round(decimals=3)[0, 1].item(), upper.round(decimals=3)[0, 1].item()  # of −2 relu(x − y)
    (-2.0, 0.0)
    """

    def __init__(self, module: nn.Module, shape: tuple[int, ...], outputs: Outputs = "logits") -> None:
        self.steps = steps_of(module, shape, outputs)
        self.classes = self.steps[-1].shape[0]
        # No sum here is longer; every slack covers that many roundings of the verifier.
        longest = max(max(prod(step.shape) for step in self.steps), max(_longest(step) for step in self.steps))
        self.own = 4 * DOUBLE * (longest + len(self.steps) + 64)
        self._matrices: dict[int, Tensor] = {}

    def margins(
        self,
        lower: Tensor,
        upper: Tensor,
        predicted: Tensor,
        *,
        centre: Tensor | None = None,
        radius: float | None = None,
        budget: int = 1 << 30,
    ) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds (n, classes) of l_j − l_A with A the predicted class, whose own column is zero.

        Parameters
        ----------
        lower, upper
            Ends of the box (n, …).
        predicted
            The class A of each sample.
        centre, radius
            Where inputs are also within an ℓ2 distance of some centre, it and the distance.
        budget
            0 for interval bounds alone; else margins are bounded by lines as well, and before that so many unstable
            neurons per sample and layer, those with the widest intervals first.
        """
        ends = (lower.double(), upper.double())
        region = _Set(*ends, (ends[0] + ends[1]) / 2 if centre is None else centre.double(), radius)
        with torch.no_grad():
            return _Propagation(self, region, budget).margins(predicted)

    def matrix(self, number: int) -> Tensor | None:
        """The matrix of an affine step (outputs, *inputs), if it is small enough to keep."""
        step = self.steps[number]
        if not isinstance(step, Affine):
            return None
        outputs = prod(step.shape)
        if outputs * prod(self.steps[step.inputs[0]].shape) > _KEPT:
            return None
        if number not in self._matrices:
            identity = torch.eye(outputs, dtype=torch.float64).reshape(outputs, *step.shape)
            self._matrices[number] = step.transposed(identity)
        return self._matrices[number]

    def slack(self, number: int, sizes: Tensor) -> Tensor:
        """How far a value may be from what its step makes of its inputs, in float32 and in the verifier together."""
        terms = self.steps[number].terms * SINGLE
        return (terms / (1 - terms) + self.own) * sizes


def _longest(step: Step) -> int:
    return step.terms + (prod(step.windows.shape) if isinstance(step, MaxPool) else 0)


@dataclass(eq=False)
class _Propagation:
    """Ranges of all steps for some samples, found one after the other."""

    network: MarginBounds
    region: _Set
    budget: int
    ranges: list[_Range] = field(default_factory=list[_Range])
    relaxations: dict[int, _Relaxation] = field(default_factory=dict[int, _Relaxation])

    def margins(self, predicted: Tensor) -> tuple[Tensor, Tensor]:
        steps = self.network.steps
        self.ranges.append(self._input())
        for number in range(1, len(steps)):
            self._forward(number)
        samples, classes = len(predicted), self.network.classes
        own = torch.arange(classes) == predicted[:, None]
        which = torch.arange(samples).repeat_interleave(classes)
        rows = torch.eye(classes, dtype=torch.float64).repeat(samples, 1)
        rows[torch.arange(len(rows)), predicted[which]] -= 1.0
        below, above = (
            self._bounded(len(steps) - 1, sign * rows, which).reshape(samples, classes) for sign in (1.0, -1.0)
        )
        return below.masked_fill(own, 0.0), (-above).masked_fill(own, 0.0)

    # ------------------------------------------------------------------------------------------------- forwards

    def _input(self) -> _Range:
        lower, upper, centre = self.region.lower, self.region.upper, self.region.centre
        sizes = torch.maximum(lower.abs(), upper.abs()) + TINY + (self.region.radius or 0.0)
        # An input that is no float32 is rounded to one.
        slack = (SINGLE + self.network.own) * sizes
        ball = None
        if self.region.radius is not None:
            ball = _Gradients(centre, (lower < upper).double(), slack, True)
        return _Range(lower - slack, upper + slack, slack, ball)

    def _forward(self, number: int) -> None:
        step = self.network.steps[number]
        given = [self.ranges[each] for each in step.inputs]
        if isinstance(step, Affine):
            found = self._affine(step, number, given[0])
        elif isinstance(step, Sum):
            found = self._sum(step, number, *given)
        elif isinstance(step, Rectifier):
            x = self._refined(step.inputs[0], lambda x: (x.lower < 0) & (x.upper > 0))
            found = self._rectified(number, x)
        else:
            assert isinstance(step, MaxPool)
            x = self._refined(step.inputs[0], lambda x: _contested(x, step))
            found = self._pooled(number, step, x)
        self.ranges.append(self._within_ball(found))

    def _affine(self, step: Affine, number: int, x: _Range) -> _Range:
        centre, radius = step.apply((x.lower + x.upper) / 2), step.sizes((x.upper - x.lower) / 2)
        slack = self.network.slack(number, step.sizes(x.size + TINY) + step.bias_sizes)
        centre = centre if step.bias is None else centre + step.bias
        ball = x.gradients
        if ball is not None:
            middle = step.apply(ball.middle)
            squares = step.squares if ball.apart else None
            norms = step.sizes(ball.norms) if squares is None else squares(ball.norms.square()).sqrt()
            ball = _Gradients(
                middle if step.bias is None else middle + step.bias,
                norms,
                step.sizes(ball.drift) + slack,
                ball.apart and step.diagonal,
            )
        return _Range(centre - radius - slack, centre + radius + slack, slack, ball, x.mixed + (not step.diagonal))

    def _sum(self, step: Sum, number: int, x: _Range, y: _Range) -> _Range:
        slack = self.network.slack(number, x.size + y.size + TINY)
        low, high = (y.lower, y.upper) if step.sign > 0 else (-y.upper, -y.lower)
        ball, a, b = None, x.gradients, y.gradients
        if a is not None and b is not None:
            middle = a.middle + step.sign * b.middle
            ball = _Gradients(middle, a.norms + b.norms, a.drift + b.drift + slack, False)
        return _Range(x.lower + low - slack, x.upper + high + slack, slack, ball, max(x.mixed, y.mixed) + 1)

    def _within_ball(self, found: _Range) -> _Range:
        ball = found.gradients
        if ball is not None and self.region.radius is not None:
            reach = (self.region.radius * ball.norms + ball.drift) * (1 + self.network.own)
            found.lower = torch.maximum(found.lower, ball.middle - reach)
            found.upper = torch.minimum(found.upper, ball.middle + reach)
        return found

    def _rectified(self, number: int, x: _Range) -> _Range:
        active, dead = x.lower >= 0, x.upper <= 0
        above = torch.where(dead, 0.0, torch.where(active, 1.0, x.upper / (x.upper - x.lower)))
        # max(x, 0) − above · x is convex, so that it is largest at one of the ends.
        shift = torch.maximum(-above * x.lower, x.upper - above * x.upper).masked_fill(active | dead, 0.0)
        below = torch.where(active, 1.0, (x.upper > -x.lower).double()).masked_fill(dead, 0.0)
        self.relaxations[number] = _Relaxation(above, shift, below=below)
        slack = self.network.slack(number, x.size + TINY)
        return _Range(x.lower.clamp_min(0), x.upper.clamp_min(0), slack, mixed=_MIXED)

    def _pooled(self, number: int, step: MaxPool, x: _Range) -> _Range:
        low, high = _windows(x.lower, step), _windows(x.upper, step)
        least, most = low.amax(2), high.amax(2)
        gain = (high - least[..., None]).clamp_min(0)
        above = torch.where(gain > 0, gain / (high - low), 0.0)
        # Lines of several entries add up: where a constant is lower in the middle, it is taken.
        above = above * (gain.sum(2) <= 2 * (most - least))[..., None]
        # Whatever the slopes from 0 to 1, this is the smallest shift for which the plane is above the maximum.
        shift = (high - above * (high - low)).amax(2) - (above * low).sum(2)
        picked = step.windows[torch.arange(len(step.windows)), low.argmax(2)]
        self.relaxations[number] = _Relaxation(above, shift, picked=picked)
        slack = self.network.slack(number, _windows(x.size, step).sum(2) + TINY)
        shape = (len(low), *step.shape)
        return _Range(least.reshape(shape), most.reshape(shape), slack.reshape(shape), mixed=_MIXED)

    def _refined(self, number: int, wanted: Callable[[_Range], Tensor]) -> _Range:
        """The range of a step, with lines carried back to the input for the entries for which that matters."""
        found, step = self.ranges[number], self.network.steps[number]
        if not self.budget or found.mixed < 2 or not isinstance(step, Affine | Sum):
            return found
        width = torch.where(wanted(found), found.upper - found.lower, -1.0).flatten(1)
        most = min(self.budget, width.shape[1])
        best, places = width.topk(most, 1) if most < width.shape[1] else (width, torch.arange(most).expand_as(width))
        samples, kept = (best > 0).nonzero(as_tuple=True)
        places = places[samples, kept]
        for part in self._parts(len(samples)):
            which, entry = samples[part], places[part]
            for sign, ends in ((1.0, found.lower.flatten(1)), (-1.0, found.upper.flatten(1))):
                waiting, constant, error = self._one_hot(number, entry, which, sign)
                bound = sign * self._back(waiting, constant, error, which, early=False)
                old = ends[which, entry]
                ends[which, entry] = torch.maximum(old, bound) if sign > 0 else torch.minimum(old, bound)
        return found

    # ------------------------------------------------------------------------------------------------ backwards

    def _one_hot(
        self, number: int, entry: Tensor, which: Tensor, sign: float
    ) -> tuple[dict[int, Tensor], Tensor, Tensor]:
        """Rows that pick one entry each of a step's value, carried through its map already where that is a lookup."""
        step, matrix = self.network.steps[number], self.network.matrix(number)
        if matrix is not None:
            assert isinstance(step, Affine)
            constant = torch.zeros(len(which), dtype=torch.float64)
            if step.bias is not None:
                constant = sign * step.bias.flatten()[entry]
            return {step.inputs[0]: sign * matrix[entry]}, constant, self.ranges[number].slack.flatten(1)[which, entry]
        rows = torch.zeros((len(which), prod(step.shape)), dtype=torch.float64)
        rows[torch.arange(len(which)), entry] = sign
        nothing = torch.zeros(len(which), dtype=torch.float64)
        return {number: rows.reshape(-1, *step.shape)}, nothing, nothing

    def _bounded(self, number: int, rows: Tensor, which: Tensor) -> Tensor:
        """Lower bounds of rows · value, never below those that intervals of earlier values give."""
        found = torch.empty(len(rows), dtype=torch.float64)
        for part in self._parts(len(rows)):
            nothing = torch.zeros(len(rows[part]), dtype=torch.float64)
            found[part] = self._back({number: rows[part]}, nothing, nothing, which[part], early=True)
        return found

    def _back(
        self, waiting: dict[int, Tensor], constant: Tensor, error: Tensor, which: Tensor, *, early: bool
    ) -> Tensor:
        """Lower bounds of constant + Σ rows · value for the sample of each row, from lines carried to the input.

        With ``early`` also from the intervals of every value that all lines go through on the way; without a budget
        only from those before the first that is not affine.
        """
        best = torch.full_like(constant, -torch.inf)
        while waiting:
            number = max(waiting)
            step, here, rows = self.network.steps[number], self.ranges[number], waiting.pop(number)
            flat = rows.flatten(1)
            sizes = flat.abs()
            if early and number and not waiting:
                doubt = error + self.network.own * _dot(sizes, here.size, which)
                best = torch.maximum(best, _finished(constant + _least(flat, sizes, here, which), doubt))
            error = error + _dot(sizes, here.slack, which)
            if number == 0:
                constant = constant + self._at_input(flat, sizes, which)
            elif isinstance(step, Affine):
                constant = constant if step.bias is None else constant + flat @ step.bias.flatten()
                _give(waiting, step.inputs[0], step.transposed(rows))
            elif isinstance(step, Sum):
                _give(waiting, step.inputs[0], rows)
                _give(waiting, step.inputs[1], step.sign * rows)
            elif early and not self.budget:
                return best
            else:
                lines = self.relaxations[number]
                negative = flat.clamp_max(0)
                constant = constant + _dot(negative, lines.shift, which)
                given = _through(step, lines, flat.clamp_min(0), negative, which, prod(self._shape(step)))
                _give(waiting, step.inputs[0], given.reshape(len(rows), *self._shape(step)))
        return torch.maximum(best, _finished(constant, error))

    def _at_input(self, flat: Tensor, sizes: Tensor, which: Tensor) -> Tensor:
        region = self.region
        box = _Range(region.lower, region.upper, region.lower)
        found = _least(flat, sizes, box, which)
        if region.radius is None:
            return found
        moved = flat * _chosen(region.lower < region.upper, which)
        ball = _dot(flat, region.centre, which) - region.radius * moved.square().sum(1).sqrt()
        return torch.maximum(found, ball)

    def _shape(self, step: Step) -> tuple[int, ...]:
        return self.network.steps[step.inputs[0]].shape

    def _parts(self, rows: int) -> Iterator[slice]:
        size = max(1, _AT_A_TIME // max(prod(step.shape) for step in self.network.steps))
        return (slice(start, start + size) for start in range(0, rows, size))


def _through(step: Step, lines: _Relaxation, up: Tensor, down: Tensor, which: Tensor, entries: int) -> Tensor:
    """Rows of what a rectifier or a max pool takes: its line below where rows are positive, the one above elsewhere."""
    if lines.below is not None:
        return (up * _chosen(lines.below, which)).addcmul_(down, _chosen(lines.above, which))
    assert isinstance(step, MaxPool)
    assert lines.picked is not None
    found = torch.zeros((len(up), entries), dtype=torch.float64)
    found.scatter_add_(1, _chosen(lines.picked, which).expand_as(up), up)
    above = _chosen(lines.above, which).reshape(-1, *step.windows.shape)
    return found.index_add_(1, step.windows.flatten(), (down[..., None] * above).flatten(1))


def _finished(constant: Tensor, error: Tensor) -> Tensor:
    """The bound with all errors taken off; nothing is known where arithmetic overflowed."""
    return (constant - error * (1 + 2.0**-20)).nan_to_num(nan=-torch.inf, posinf=-torch.inf, neginf=-torch.inf)


def _least(flat: Tensor, sizes: Tensor, box: _Range, which: Tensor) -> Tensor:
    """The least of rows · value over a box."""
    return _dot(flat, (box.lower + box.upper) / 2, which) - _dot(sizes, (box.upper - box.lower) / 2, which)


def _dot(flat: Tensor, values: Tensor, which: Tensor) -> Tensor:
    found = _chosen(values, which)
    return flat @ found[0] if len(found) == 1 else (flat * found).sum(1)


def _chosen(values: Tensor, which: Tensor) -> Tensor:
    """The values of each row's sample, flat; one row of them where all rows are of one sample, in ascending order."""
    return values.flatten(1)[which if which[0] != which[-1] else which[:1]]


def _give(waiting: dict[int, Tensor], number: int, rows: Tensor) -> None:
    waiting[number] = waiting[number] + rows if number in waiting else rows


def _windows(values: Tensor, step: MaxPool) -> Tensor:
    """What each window holds: (n, windows, entries)."""
    return values.flatten(1)[:, step.windows]


def _contested(x: _Range, step: MaxPool) -> Tensor:
    """Entries that may be the maximum of a window where others may be it, too."""
    low, high = _windows(x.lower, step), _windows(x.upper, step)
    may = high > low.amax(2, keepdim=True)
    may &= may.sum(2, keepdim=True) > 1
    counts = torch.zeros_like(x.lower).flatten(1)
    counts.index_add_(1, step.windows.flatten(), may.double().flatten(1))
    return (counts > 0).reshape(x.lower.shape)
