"""Networks for tables, affine layers and ReLU in sequence: bounds of their margins, and an attack beside them.

What is claimed: for every input of a box or an ℓ2 ball each margin l_j − l_A is between its bounds, in exact arithmetic
with the network's own weights and as float32 evaluates it: products and sums, each rounded to float32, in any order,
with or without fused multiply-add. Every layer adds to its exact value an error of at most so many roundings of the
summands' sizes. This error is one more bounded perturbation, and the verifier's own rounding in float64 is another;
both are taken off the bounds.

Proof. Number the layers of the network; v_k is the value of layer k, in exact arithmetic or as float32 gives it.
Rectifiers and changes of shape are exact in float32. An affine layer is a sum of at most n products, in some order.
With unit roundoff w = 2⁻²⁴ each summand goes through at most n + 1 roundings, so v_k = L v + b + δ with |δ| ≤ γ (|L|
|v| + |b|), γ = (n + 1) w / (1 − (n + 1) w) (Higham 2002, section 3.1). Exact arithmetic has δ = 0, so one statement
covers both. Underflow changes a product by less than 2⁻¹²⁵; γ times the 2⁻¹⁰⁰ that is added to every entry of |L|, |v|
and |b| is more than that. For batch normalisation |b| stands for |β| + |μ γ / σ|, which covers both ways in which torch
computes it, and γ counts 16 roundings. Write m_k for the bracket with the largest |v| that the interval of v allows.

The verifier computes in float64, unit roundoff 2⁻⁵³. Let M be the largest number of entries of any value or summands of
any sum, and K the number of layers; set κ = 4 · 2⁻⁵³ (M + K + 64) and s_k = (γ + κ) m_k. Forward: centre and radius of
an affine layer are sums of at most M terms of sizes that add up to m_k at most, so their rounding is at most κ m_k, and
widening by s_k covers it together with δ. Backward: assume that target ≥ A v_k + c with the floating-point matrix A at
hand. Then A v_k ≥ (A L) v + A b − |A| |δ|. The computed product differs from A L by at most 2⁻⁵³ M (1 + …) |A| |L|,
which moves the bound by at most κ/4 · |A| m_k, and so does the rounding of A b. For a rectifier the computed slope and
shift are wrong by a few roundings of the sizes of its inputs, which is what m_k is there. The last sum, over the box or
the ball, has the same form with m_0 = |x| + ε, and adding up the K contributions to c errs by K roundings of their
sizes, each at most |A_k| m_k. So subtracting Σ_k |A_k| s_k from the computed bound, enlarged by 2⁻²⁰ for the rounding
of this sum itself, covers everything. Where a number overflows, the bound is −∞ or ∞. ∎

Importing this loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certcal._base.checks import InputError
from certcal._base.margins import DOUBLE, SINGLE, predicted_intervals
from certcal._base.text import reason
from certcal.attacks import Target
from certcal.attacks.ascent import ascend, odds_against
from certcal.attacks.ball import LONGEST, Ball, Norm
from certcal.models import Model, wrap
from certcal.models.devices import torch_threads
from certcal.models.protocol import Outputs
from certcal.verification.boxes import BoxedRows
from certcal.verification.kinds import Verified

# Added to sizes, so that relative rounding errors also cover what underflows, even where it is flushed to zero.
TINY = 2.0**-100
# Samples in the batch that is traced.
_TRACED = 2
# Entries of the rows that are carried backwards at a time: what fits a cache.
_AT_A_TIME = 1 << 18
# Samples at a time, and steps of the attack in each direction.
_SAMPLES, _STEPS = 64, 20
# The smallest normal number of the network's arithmetic.
_LEAST_NORMAL = float(np.finfo(np.float32).tiny)
_REMEDY = (
    "verify takes Linear, BatchNorm, ReLU, constant shifts and factors, one after the other; bound the margins of any "
    "other network with auto_LiRPA and give them to certify, as the page 'Verification' shows"
)


# ------------------------------------------------------------------------------------------------- layers of a module


@dataclass(frozen=True, eq=False)
class Affine:
    """W x + b."""

    weight: Tensor
    """The matrix W, or the diagonal of a diagonal one."""
    sizes: Tensor
    """Of the summands' factors, entry by entry: at least |W|."""
    bias: Tensor
    bias_sizes: Tensor
    """b, and the sizes of the summands that it is made of."""
    terms: int
    """How many float32 roundings a summand of an entry goes through, at most."""

    def back(self, rows: Tensor) -> Tensor:
        """Rows · W."""
        return rows * self.weight if self.weight.ndim == 1 else rows @ self.weight


class Rectifier:
    """max(x, 0)."""


Layer = Affine | Rectifier


def _scaled_product(weight: Tensor, values: Tensor) -> Tensor:
    return values * weight if weight.ndim == 1 else values @ weight.T


def layers_of(module: nn.Module, shape: Sequence[int], outputs: Outputs = "logits") -> list[Layer]:
    """What a module in evaluation mode computes of a sample, as layers from its input to its logits.

    The softmax of a module that returns probabilities is left out, and so are the shifts of a last logarithm of a
    softmax: differences of logits are the same without them.

    Parameters
    ----------
    module
        The network, in float32 or float64.
    shape
        Of one sample.
    outputs
        What the module returns, "logits" or "probabilities".

    Examples
    --------
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), nn.Softmax(1)).eval()
    >>> [type(layer).__name__ for layer in layers_of(network, (2, 2), "probabilities")]
    ['Affine', 'Rectifier', 'Affine']
    """
    name = type(module).__name__
    if any(part.training for part in module.modules()):
        raise InputError(f"{name} is in training mode; call .eval() on it first")
    given = next((each for each in module.parameters() if each.is_floating_point()), torch.zeros(1))
    kinds = {each.dtype for each in module.parameters() if each.is_floating_point()} - {torch.float32, torch.float64}
    if kinds:
        raise InputError(f"{name} has weights in {str(kinds.pop())[6:]}, whose rounding is not bounded; call .float()")
    probe = torch.zeros(_TRACED, *shape, device=given.device, dtype=given.dtype)
    try:
        with torch.no_grad():
            traced = torch.export.export(module, (probe,), strict=False)
    except Exception as error:
        raise InputError(
            f"{name} cannot be traced for samples of shape {tuple(shape)}: {reason(error)}; what it computes must not "
            "depend on values"
        ) from error
    reader = _Reader()
    constants: dict[str, Any] = {**traced.state_dict, **traced.constants}
    for spec in traced.graph_signature.input_specs:
        if spec.target is not None:
            reader.values[spec.arg.name] = constants[spec.target].detach().cpu()
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            reader.values.setdefault(node.name, _Value(0, tuple(shape)))
        elif node.op == "call_function":
            reader.read(node)
    return reader.until(next(node for node in traced.graph.nodes if node.op == "output").args[0], outputs)


@dataclass(frozen=True)
class _Value:
    """What depends on the input: the number of layers before it, and its shape for one sample."""

    after: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Node:
    """An operation of the graph: its name, and the shape of its value for one sample."""

    name: str
    shape: tuple[int, ...]

    def refuse(self, why: str = "has no bounds here") -> NoReturn:
        raise InputError(f"{self.name} {why}; {_REMEDY}")

    def constant(self, value: Any) -> Tensor:
        """A constant that is the same for all samples, for every entry of the value."""
        found = torch.as_tensor(value).double()
        if found.ndim > len(self.shape):
            if found.shape[0] != 1:
                self.refuse("of a constant with rows of its own has no bounds here")
            found = found[0]
        return found.expand(self.shape).flatten()


class _Reader:
    """Layers of a graph in which every operation takes the value of the one before it."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.values: dict[str, Any] = {}
        self.last = ""  # the name of a softmax, which nothing may follow

    def read(self, node: Any) -> None:
        name = str(getattr(node.target, "_schema", node.target)).removeprefix("aten::").partition("(")[0]
        name = name.partition(".")[0]
        overwrites, name = name.endswith("_"), name.removesuffix("_")
        result: Any = node.meta.get("val")
        if result is None:  # an assertion
            return
        args = [self._value(each) for each in node.args]
        keywords = {key: self._value(each) for key, each in node.kwargs.items()}
        taken = [each for each in (*args, *keywords.values()) if isinstance(each, _Value)]
        shape = tuple(getattr(result, "shape", ()))
        to = _Node(name, shape[1:])
        if name not in _OPERATIONS and name not in _SAME:
            to.refuse()
        if overwrites and not (isinstance(args[0], _Value) and args[0].after):
            to.refuse("overwrites its input or a constant, and has no bounds here")
        if not taken:
            self.values[node.name] = node.target(*args, **keywords)
            return
        # In a sequence no value is read twice, so that one which is overwritten is not read again.
        if len(taken) != 1 or taken[0].after != len(self.layers):
            to.refuse("takes a value that is not the one before it, as residual networks do, and has no bounds here")
        if shape[:1] != (_TRACED,) or result.dtype not in (torch.float32, torch.float64):
            to.refuse("changes the number of rows, or the type of numbers, and has no bounds here")
        if self.last and name not in _SAME:
            raise InputError(f"{self.last} inside the network has no bounds here; {_REMEDY}")
        if name in ("softmax", "log_softmax"):
            self.last = name
        if name in _SAME:
            if prod(to.shape) != prod(taken[0].shape) or (name == "dropout" and args[-1]):
                to.refuse("repeats or drops values, and has no bounds here")
        else:
            if name != "linear" and to.shape != taken[0].shape:
                to.refuse("repeats values, and has no bounds here")
            try:
                layer = _OPERATIONS[name](to, *args, **keywords)
            except (TypeError, AttributeError):
                to.refuse("has settings without bounds here")
            self.layers += [] if layer is None else [layer]
        self.values[node.name] = _Value(len(self.layers), to.shape)

    def until(self, returned: Any, outputs: Outputs) -> list[Layer]:
        last = self._value(returned[0])
        if len(returned) != 1 or not isinstance(last, _Value) or last.after != len(self.layers):
            raise InputError("the network must return one tensor, the scores of the classes, of its last layer")
        if (outputs == "probabilities") != (self.last == "softmax"):
            what = f"end with {self.last}" if self.last else "do not end with a softmax"
            raise InputError(f"the network returns {outputs}, and its layers {what}; {_REMEDY}")
        if len(last.shape) != 1 or last.shape[0] < 2:
            raise InputError(f"the network returns shape {last.shape} for a sample; it must return class scores")
        return self.layers

    def _value(self, given: Any) -> Any:
        return self.values[given.name] if hasattr(given, "users") else given


def _linear_layer(to: _Node, x: _Value, weight: Tensor, bias: Tensor | None = None) -> Layer:
    if len(x.shape) != 1:
        to.refuse("of anything but rows of features has no bounds here")
    w, b = weight.double(), to.constant(0.0 if bias is None else bias)
    return Affine(w, w.abs() + TINY, b, b.abs() + TINY, w.shape[1] + 1)


def _diagonal(factor: Tensor, shift: Tensor, sizes: Tensor, terms: int = 4) -> Layer:
    return Affine(factor, factor.abs() + TINY, shift, sizes + TINY, terms)


def _batch_norm(to: _Node, x: _Value, weight: Any, bias: Any, mean: Any, variance: Any, *rest: Any) -> Layer:
    training, _, epsilon, *_ = rest
    if training or mean is None:
        to.refuse("with the statistics of the batch has no bounds here")
    one, none = torch.ones_like(mean), torch.zeros_like(mean)
    parts = (mean, variance, one if weight is None else weight, none if bias is None else bias)
    m, v, w, b = (to.constant(each.view(-1, *(1,) * (len(to.shape) - 1))) for each in parts)
    factor = w / (v + epsilon).sqrt()
    return _diagonal(factor, b - m * factor, b.abs() + (m * factor).abs(), 16)


def _adder(sign: float) -> Callable[..., Layer]:
    def add(to: _Node, x: Any, y: Any, *, alpha: float = 1) -> Layer:
        if alpha != 1:
            to.refuse("with alpha has no bounds here")
        first = isinstance(x, _Value)
        shift = to.constant(y if first else x)
        factor = torch.full_like(shift, 1.0 if first else sign)
        return _diagonal(factor, sign * shift if first else shift, shift.abs())

    return add


def _multiply(to: _Node, x: Any, y: Any) -> Layer:
    factor = to.constant(y if isinstance(x, _Value) else x)
    nothing = torch.zeros_like(factor)
    return _diagonal(factor, nothing, nothing)


def _divide(to: _Node, x: Any, y: Any) -> Layer:
    if not isinstance(x, _Value):
        to.refuse("by what depends on the input has no bounds here")
    return _multiply(to, x, 1 / torch.as_tensor(y).double())


def _cast(to: _Node, *_: Any, **__: Any) -> Layer:
    return _multiply(to, _Value(0, to.shape), 1.0)


def _rectify(*_: Any) -> Layer:
    return Rectifier()


def _softmax_layer(to: _Node, x: _Value, dim: int, *_: Any) -> None:
    if dim not in (1, -1) or len(x.shape) != 1:
        to.refuse("over anything but classes has no bounds here")


def _log_softmax(to: _Node, x: _Value, dim: int, *_: Any) -> Layer:
    """The logits, but for a shift that all of them share and the rounding of it."""
    _softmax_layer(to, x, dim)
    one = torch.ones(x.shape[0], dtype=torch.float64)
    # As a map it is the identity; its sizes, |l_j| + Σ |l_i| + the number of classes, only serve the rounding.
    return Affine(one, one.diag() + 1.0, 0.0 * one, len(one) * one, len(one) + 16)


_OPERATIONS: dict[str, Callable[..., Layer | None]] = {
    "linear": _linear_layer,
    "batch_norm": _batch_norm,
    "add": _adder(1.0),
    "sub": _adder(-1.0),
    "mul": _multiply,
    "div": _divide,
    "to": _cast,
    "_to_copy": _cast,
    "relu": _rectify,
    "softmax": _softmax_layer,
    "log_softmax": _log_softmax,
}
# Operations that keep all entries of a sample in their order; they are also done to constants.
_SAME = frozenset(
    "reshape view flatten unflatten squeeze unsqueeze contiguous clone detach alias dropout".split()  # noqa: SIM905
)


# --------------------------------------------------------------------------------------------------- bounds of margins


@dataclass(frozen=True, eq=False)
class _Set:
    """Inputs: a box, and within it a ball around centre if the radius is given."""

    lower: Tensor
    upper: Tensor
    centre: Tensor
    radius: float | None


@dataclass(eq=False)
class _Range:
    """What is known about a value for each sample: its ends, and how wrong its computation may be.

    ``matrices`` counts those on its way from the input; None where it is not affine in the input.
    """

    lower: Tensor
    upper: Tensor
    slack: Tensor
    matrices: int | None = None

    @property
    def size(self) -> Tensor:
        return torch.maximum(self.lower.abs(), self.upper.abs())


@dataclass(frozen=True, eq=False)
class _Lines:
    """Of a rectifier: ``below`` times its input is below its value, ``above`` times it plus ``shift`` above."""

    below: Tensor
    above: Tensor
    shift: Tensor


class MarginBounds:
    """The bounds of one network for samples of one shape.

    Parameters
    ----------
    module
        The network, in evaluation mode.
    shape
        Of one sample.
    outputs
        What it returns, "logits" or "probabilities".

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
        self.layers = layers_of(module, shape, outputs)
        affine = [layer for layer in self.layers if isinstance(layer, Affine)]
        self.widest = max(prod(shape), *(len(layer.bias) for layer in affine), 1)
        self.classes = len(affine[-1].bias) if affine else prod(shape)
        # No sum here is longer; every slack covers that many roundings of the verifier.
        longest = max(self.widest, *(layer.terms for layer in affine), 1)
        self.own = 4 * DOUBLE * (longest + len(self.layers) + 64)

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
            Unstable neurons per sample and layer that are bounded by lines before the margins are, those with the
            widest intervals first.
        """
        low, high = lower.double().flatten(1), upper.double().flatten(1)
        middle = (low + high) / 2 if centre is None else centre.double().flatten(1)
        with torch.no_grad():
            return _Propagation(self, _Set(low, high, middle, radius), budget).margins(predicted)

    def slack(self, terms: int, sizes: Tensor) -> Tensor:
        """How far a value may be from what its layer makes of its input, in float32 and in the verifier together."""
        single = terms * SINGLE
        return (single / (1 - single) + self.own) * sizes


@dataclass(eq=False)
class _Propagation:
    """Ranges of the input and of every layer's value for some samples, found one after the other."""

    network: MarginBounds
    region: _Set
    budget: int
    ranges: list[_Range] = field(default_factory=list[_Range])
    lines: dict[int, _Lines] = field(default_factory=dict[int, _Lines])

    def margins(self, predicted: Tensor) -> tuple[Tensor, Tensor]:
        layers = self.network.layers
        self.ranges.append(self._input())
        for number, layer in enumerate(layers, 1):
            given = self.ranges[-1]
            found = self._affine(layer, given) if isinstance(layer, Affine) else self._relax_relu(number, given)
            self.ranges.append(found)
        samples, classes = len(predicted), self.network.classes
        own = torch.arange(classes) == predicted[:, None]
        which = torch.arange(samples).repeat_interleave(classes)
        rows = torch.eye(classes, dtype=torch.float64).repeat(samples, 1)
        rows[torch.arange(len(rows)), predicted[which]] -= 1.0
        nothing = torch.zeros(len(rows), dtype=torch.float64)
        below, above = (
            self._back(len(layers), sign * rows, which, nothing, nothing).reshape(samples, classes)
            for sign in (1.0, -1.0)
        )
        return below.masked_fill(own, 0.0), (-above).masked_fill(own, 0.0)

    # ------------------------------------------------------------------------------------------------- forwards

    def _input(self) -> _Range:
        lower, upper = self.region.lower, self.region.upper
        sizes = torch.maximum(lower.abs(), upper.abs()) + TINY + (self.region.radius or 0.0)
        # An input that is no float32 is rounded to one.
        slack = (SINGLE + self.network.own) * sizes
        return _Range(lower - slack, upper + slack, slack, 0)

    def _affine(self, layer: Affine, x: _Range) -> _Range:
        centre = _scaled_product(layer.weight, (x.lower + x.upper) / 2) + layer.bias
        radius = _scaled_product(layer.sizes, (x.upper - x.lower) / 2)
        slack = self.network.slack(layer.terms, _scaled_product(layer.sizes, x.size + TINY) + layer.bias_sizes)
        matrices = None if x.matrices is None else x.matrices + layer.weight.ndim - 1
        return _Range(centre - radius - slack, centre + radius + slack, slack, matrices)

    def _relax_relu(self, number: int, x: _Range) -> _Range:
        self._refine(number - 1, x)
        active, dead = x.lower >= 0, x.upper <= 0
        above = torch.where(dead, 0.0, torch.where(active, 1.0, x.upper / (x.upper - x.lower)))
        # max(x, 0) − above · x is convex, so that it is largest at one of the ends.
        shift = torch.maximum(-above * x.lower, x.upper - above * x.upper).masked_fill(active | dead, 0.0)
        below = torch.where(active, 1.0, (x.upper > -x.lower).double()).masked_fill(dead, 0.0)
        self.lines[number] = _Lines(below, above, shift)
        return _Range(x.lower.clamp_min(0), x.upper.clamp_min(0), self.network.slack(0, x.size + TINY))

    def _refine(self, number: int, result: _Range) -> None:
        """Bound entries by lines: all where lines are exact, else as many unstable ones as the budget says.

        After one matrix at most the interval of an entry over a box is the best possible.
        """
        layer = self.network.layers[number - 1] if number else None
        affine = result.matrices is not None
        enough = affine and (result.matrices == 0 or (result.matrices == 1 and self.region.radius is None))
        if enough or not isinstance(layer, Affine):
            return
        unstable = (result.lower < 0) & (result.upper > 0)
        width = torch.where(unstable | affine, result.upper - result.lower, -1.0)
        best, places = width.topk(width.shape[1] if affine else min(self.budget, width.shape[1]), 1)
        samples, kept = (best > 0).nonzero(as_tuple=True)
        places = places[samples, kept]
        matrix = layer.back(torch.eye(len(layer.bias), dtype=torch.float64))
        for sign, ends in ((1.0, result.lower), (-1.0, result.upper)):
            rows, shift, error = sign * matrix[places], sign * layer.bias[places], result.slack[samples, places]
            bound = sign * self._back(number - 1, rows, samples, shift, error)
            old = ends[samples, places]
            ends[samples, places] = torch.maximum(old, bound) if sign > 0 else torch.minimum(old, bound)

    # ------------------------------------------------------------------------------------------------ backwards

    def _back(self, number: int, rows: Tensor, which: Tensor, constant: Tensor, error: Tensor) -> Tensor:
        """Lower bounds of constant ± error + rows · value for the sample of each row.

        They are the best of those that lines carried back to the input give and the intervals of each value on the way.
        """
        result = torch.empty_like(constant)
        for part in self._parts(len(rows)):
            result[part] = self._propagate(number, rows[part], which[part], constant[part], error[part])
        return result

    def _propagate(self, number: int, rows: Tensor, which: Tensor, constant: Tensor, error: Tensor) -> Tensor:
        best = torch.full_like(constant, -torch.inf)
        for here in range(number, 0, -1):
            value, layer, sizes = self.ranges[here], self.network.layers[here - 1], rows.abs()
            doubt = error + self.network.own * _dot(sizes, value.size[which])
            best = torch.maximum(best, _minus_errors(constant + _least_product(rows, sizes, value, which), doubt))
            error = error + _dot(sizes, value.slack[which])
            if isinstance(layer, Affine):
                constant, rows = constant + rows @ layer.bias, layer.back(rows)
            else:
                lines, negative = self.lines[here], rows.clamp_max(0)
                constant = constant + _dot(negative, lines.shift[which])
                rows = rows.clamp_min(0) * lines.below[which] + negative * lines.above[which]
        sizes, region = rows.abs(), self.region
        error = error + _dot(sizes, self.ranges[0].slack[which])
        least = _least_product(rows, sizes, region, which)
        if region.radius is not None:
            moved = rows * (region.lower < region.upper)[which]
            ball = _dot(rows, region.centre[which]) - region.radius * moved.square().sum(1).sqrt()
            least = torch.maximum(least, ball)
        return torch.maximum(best, _minus_errors(constant + least, error))

    def _parts(self, rows: int) -> Iterator[slice]:
        size = max(1, _AT_A_TIME // self.network.widest)
        return (slice(start, start + size) for start in range(0, rows, size))


def _minus_errors(constant: Tensor, error: Tensor) -> Tensor:
    """The bound with all errors taken off; nothing is known where arithmetic overflowed."""
    return (constant - error * (1 + 2.0**-20)).nan_to_num(nan=-torch.inf, posinf=-torch.inf, neginf=-torch.inf)


def _least_product(rows: Tensor, sizes: Tensor, box: _Range | _Set, which: Tensor) -> Tensor:
    """The least of rows · value over a box."""
    middle, reach = (box.lower + box.upper) / 2, (box.upper - box.lower) / 2
    return _dot(rows, middle[which]) - _dot(sizes, reach[which])


def _dot(rows: Tensor, values: Tensor) -> Tensor:
    return (rows * values).sum(1)


# ------------------------------------------------------------------------------------------------------- the verifier


def network_verifier(model: Any) -> NetworkVerifier:
    """The verifier of a torch module in evaluation mode, or of what ``certcal.models`` makes of one."""
    adapted: Any = wrap(model) if isinstance(model, nn.Module) else model
    module: Any = getattr(adapted, "module", None)
    if not isinstance(module, nn.Module):
        raise InputError(f"{adapted.description} is no torch module", argument="model", remedy="give one")
    for part in module.modules():
        if isinstance(part, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            reason = f"{adapted.description} has convolutions, which have no bounds here"
            raise InputError(reason, argument="model", remedy=_REMEDY)
    return NetworkVerifier(adapted, module)


class NetworkVerifier:
    """A torch network whose margins are bounded.

    Margins are bounded by lines (CROWN), and before that as many unstable neurons per sample and layer as the budget
    allows.

    Parameters
    ----------
    model, module
        The network as a model, and its module.
    """

    method = "linear bounds of the network (CROWN)"
    names: tuple[str, ...] = ()  # a module stores none: columns of a table go by position

    def __init__(self, model: Model, module: nn.Module) -> None:
        self.model, self.module = model, module
        self.description = model.description
        self._bounds: dict[tuple[int, ...], MarginBounds] = {}

    @property
    def classes(self) -> int:
        """Number of classes: what the last linear layer gives."""
        widths = [part.out_features for part in self.module.modules() if isinstance(part, nn.Linear)]
        if not widths:
            raise InputError(f"{self.description} has no Linear layer, which its classes are counted by")
        return widths[-1]

    def predict(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The network's own probabilities."""
        result = self._probabilities(self.model(_single(rows)))
        if result.shape[1] != self.classes:
            raise InputError(
                f"{self.description} returns {result.shape[1]} columns, its last Linear layer {self.classes}"
            )
        return result

    def verify(self, region: BoxedRows, predicted: NDArray[np.int64], *, budget: int, attack: bool) -> Verified:
        """Bound the answers over a region, and attack inside it."""
        if region.at_most is not None or region.integers or region.choices:
            raise InputError(
                "numbers of features, whole numbers and categories are for tree ensembles",
                argument="box",
                remedy="give amounts, or an l2 radius",
            )
        if not (np.isfinite(region.lower).all() and np.isfinite(region.upper).all()):
            raise InputError("inputs or amounts are not finite", argument="box", remedy="give finite ones")
        region = replace(
            region,
            rows=_single(region.rows),
            lower=_single(region.lower, -np.inf),
            upper=_single(region.upper, np.inf),
        )
        with torch_threads():
            parts = [slice(start, start + _SAMPLES) for start in range(0, len(region), _SAMPLES)]
            found = [self._verify(_part(region, part), predicted[part], budget, attack) for part in parts]
        joined = (np.concatenate([getattr(each, name) for each in found]) for name in Verified.__dataclass_fields__)
        return Verified(*joined)

    def _verify(self, region: BoxedRows, predicted: NDArray[np.int64], budget: int, attack: bool) -> Verified:
        rows, lower, upper = (torch.tensor(each) for each in (region.rows, region.lower, region.upper))
        classes = torch.tensor(predicted)
        bounds = self._of(tuple(rows.shape[1:]))
        self._check(bounds, rows, classes)
        ends = bounds.margins(lower, upper, classes, centre=rows, radius=region.l2, budget=budget)
        least, most = (each.numpy() for each in ends)
        unit = SINGLE if self.model.outputs == "probabilities" else DOUBLE
        low, high, certified = predicted_intervals(least, most, predicted, unit=unit)
        reached = [self.predict(region.rows)]
        if attack:
            reached += [self.predict(self._attack(region, rows, lower, upper, classes, sign)) for sign in (1.0, -1.0)]
        two = reached[0].shape[1] == 2
        own = np.stack([each[:, 1] if two else each[np.arange(len(each)), predicted] for each in reached])
        flipped = np.stack([(each.argmax(axis=1) != predicted) & (not two) for each in reached]).any(axis=0)
        return Verified(low, high, certified, own.min(axis=0), own.max(axis=0), np.asarray(flipped))

    def _of(self, shape: tuple[int, ...]) -> MarginBounds:
        if shape not in self._bounds:
            self._bounds[shape] = MarginBounds(self.module, shape, self.model.outputs)
        return self._bounds[shape]

    def _check(self, bounds: MarginBounds, rows: Tensor, predicted: Tensor) -> None:
        """Refuse a network that, as it was traced, does not compute what its module computes of these samples."""
        answers = torch.tensor(self.model(rows.numpy()), dtype=torch.float64)
        lower, upper = bounds.margins(rows, rows, predicted, budget=0)
        least = most = answers
        if self.model.outputs == "probabilities":
            # Below its smallest normal number float32 has few digits or none.
            least, most = (answers - _LEAST_NORMAL).clamp_min(0).log(), (answers + _LEAST_NORMAL).log()
            lower, upper = lower - 1e-5 * (1 + lower.abs()), upper + 1e-5 * (1 + upper.abs())
        own = predicted[:, None]
        wrong = (most - least.gather(1, own) < lower) | (least - most.gather(1, own) > upper)
        finite = answers.isfinite()
        wrong &= finite & finite.gather(1, own) & (own != torch.arange(answers.shape[1]))
        if bool(wrong.any()):
            sample = int(wrong.any(1).nonzero()[0])
            raise InputError(
                f"{self.description} answers sample {sample} outside of what its layers can make of it; its forward "
                "must be the same for every batch, in float32 without reduced precision"
            )

    def _attack(
        self, region: BoxedRows, rows: Tensor, lower: Tensor, upper: Tensor, predicted: Tensor, sign: float
    ) -> NDArray[Any]:
        """Inputs of the region where the odds of the predicted class are low (sign 1) or high (−1)."""
        distance: tuple[float, Norm] = (LONGEST, "linf") if region.l2 is None else (region.l2, "l2")
        ball = _BoxBall(*distance, None, lower, upper)

        def gain(log_probabilities: Tensor, _: int = 0) -> Tensor:
            return sign * odds_against(log_probabilities, predicted)

        def move(gradient: Tensor, moved: Tensor, step: int) -> Tensor:
            if region.l2 is None:
                return gradient.nan_to_num(0.0).sign() * (upper - lower) * (1.25 / _STEPS)
            return ball.step(gradient, 2.5 * region.l2 / _STEPS)

        target = Target(self.module, self.model.outputs)
        return ascend(target, rows, ball, _STEPS, move, gain, gain).numpy()

    def _probabilities(self, answers: NDArray[Any]) -> NDArray[np.float64]:
        wide = answers.astype(np.float64)
        if self.model.outputs == "probabilities":
            return wide
        powers = np.exp(wide - wide.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class _BoxBall(Ball):
    """A ball cut by a box with ends of its own for every entry; clean inputs are inside."""

    lower: Tensor | None = None
    upper: Tensor | None = None

    def project(self, clean: Tensor, moved: Tensor) -> Tensor:
        return super().project(clean, moved).clamp(self.lower, self.upper)

    def seal(self, clean: Tensor, moved: Tensor) -> Tensor:
        return super().seal(clean, moved).clamp(self.lower, self.upper)


def _single(values: NDArray[Any], side: float | None = None) -> NDArray[Any]:
    """Numbers of a table as the network is given them, in float32; ends of a box on the outer side."""
    if values.dtype != np.float64:
        return values
    nearest = values.astype(np.float32)
    if side is None:
        return nearest
    inward = nearest > values if side < 0 else nearest < values
    return np.where(inward, np.nextafter(nearest, np.float32(side)), nearest)


def _part(region: BoxedRows, part: slice) -> BoxedRows:
    return replace(region, rows=region.rows[part], lower=region.lower[part], upper=region.upper[part])
