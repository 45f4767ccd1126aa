"""A torch module as a list of affine maps, sums, rectifiers and max pools; whatever else it does is refused by name.

Importing this loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_input  # pyright: ignore[reportUnknownVariableType]

from certcal._checks import InputError
from certcal._text import reason
from certcal.models.protocol import Outputs

Map = Callable[[Tensor], Tensor]

# Added to sizes, so that relative rounding errors also cover what underflows, even where it is flushed to zero.
TINY = 2.0**-100
# Samples in the batch that is traced.
_TRACED = 2
_SUPPORTED = (
    "a network may have Linear, Conv2d, BatchNorm, ReLU, AvgPool2d, MaxPool2d, sums, constant shifts and factors, and "
    "changes of shape"
)


@dataclass(frozen=True, eq=False)
class Step:
    """One value of the network.

    Attributes
    ----------
    name
        Of the operation, as torch calls it.
    inputs
        Numbers of the steps whose values it takes.
    shape
        Of its value for one sample.
    terms
        How many float32 roundings a summand of an entry goes through, at most; 0 if the operation is exact.
    """

    name: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    terms: int = 0


@dataclass(frozen=True, eq=False)
class Affine(Step):
    """L x + b.

    Attributes
    ----------
    apply, sizes, transposed
        x → L x, x → |L| x, and rows → rows L.
    squares
        x → L² x with the entries of L squared; None where only the triangle inequality is used.
    bias, bias_sizes
        b, and the sizes of the summands that it is made of.
    diagonal
        Whether every entry is made of one entry of x.
    """

    apply: Map = lambda x: x
    sizes: Map = lambda x: x
    transposed: Map = lambda rows: rows
    squares: Map | None = None
    bias: Tensor | None = None
    bias_sizes: Tensor | float = 0.0
    diagonal: bool = False


@dataclass(frozen=True, eq=False)
class Sum(Step):
    """The sum of two values, or the first minus the second."""

    sign: float = 1.0


@dataclass(frozen=True, eq=False)
class Rectifier(Step):
    """max(x, 0)."""


@dataclass(frozen=True, eq=False)
class MaxPool(Step):
    """The maximum of each window: ``windows`` (entries, size) are places in the flattened x."""

    windows: Tensor = torch.empty(0)  # noqa: RUF009


@dataclass(frozen=True, eq=False)
class _Softmax(Step):
    """Left out at the end."""


@dataclass(frozen=True)
class _Value:
    """A step, as an argument of another."""

    number: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Node:
    """What is to be read: its name, the shape of its value for one sample, and the function of torch."""

    name: str
    shape: tuple[int, ...]
    function: Callable[..., Any]

    def refuse(self, why: str = "has no bounds here") -> NoReturn:
        raise InputError(f"{self.name} {why}; {_SUPPORTED}")


def steps_of(module: nn.Module, shape: Sequence[int], outputs: Outputs = "logits") -> list[Step]:
    """What a module in evaluation mode computes of a sample: the first step is its input, the last its logits.

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
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), nn.Softmax(1)).eval()
    >>> [(step.name, step.shape) for step in steps_of(network, (2, 2), "probabilities")]
    [('input', (2, 2)), ('flatten', (4,)), ('linear', (3,)), ('relu', (3,)), ('linear', (2,))]
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
    reader = _Reader(tuple(shape))
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


class _Reader:
    """Values of a graph by the names of its nodes: steps, and tensors that do not depend on the input."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.steps: list[Step] = [Affine("input", (), shape, diagonal=True)]
        self.values: dict[str, _Value | Tensor] = {}

    def read(self, node: Any) -> None:
        name = str(getattr(node.target, "_schema", node.target)).removeprefix("aten::").partition("(")[0]
        name = name.partition(".")[0]
        if name.endswith("_"):
            _check_overwriting(node, name)
            name = name[:-1]
        args = [self._value(each) for each in node.args]
        keywords = {key: self._value(each) for key, each in node.kwargs.items()}
        if name in _CHANGES and not any(isinstance(each, _Value) for each in (*args, *keywords.values())):
            self.values[node.name] = node.target(*args, **keywords)
            return
        result: Any = node.meta.get("val")
        shape = tuple(getattr(result, "shape", ()))
        to = _Node(name, shape[1:], node.target)
        if name not in _OPERATIONS or not args or not isinstance(args[0], _Value | Tensor):
            to.refuse()
        if shape[:1] != (_TRACED,):
            to.refuse("changes the number of rows")
        try:
            step = _OPERATIONS[name](to, *args, **keywords)
        except TypeError:
            to.refuse("has settings without bounds here")
        if isinstance(step, Step):
            self.steps.append(step)
            step = _Value(len(self.steps) - 1, step.shape)
        self.values[node.name] = step

    def until(self, returned: Any, outputs: Outputs) -> list[Step]:
        last = self._value(returned[0])
        if len(returned) != 1 or not isinstance(last, _Value):
            raise InputError("the network must return one tensor of logits, which depends on its input")
        steps = self.steps[: last.number + 1]
        if outputs == "probabilities":
            if not isinstance(steps[-1], _Softmax):
                raise InputError(
                    f"the network's probabilities come from {steps[-1].name}; only a softmax has bounds here"
                )
            steps = steps[: steps[-1].inputs[0] + 1]
        for step in steps[:-1] if steps[-1].name == "log_softmax" else steps:
            if isinstance(step, _Softmax) or step.name == "log_softmax":
                raise InputError(f"{step.name} inside the network has no bounds here; {_SUPPORTED}")
        if len(steps[-1].shape) != 1 or steps[-1].shape[0] < 2:
            raise InputError(f"the network returns shape {steps[-1].shape} for a sample; it must return class scores")
        return steps

    def _value(self, given: Any) -> Any:
        return self.values[given.name] if hasattr(given, "users") else given


def _check_overwriting(node: Any, name: str) -> None:
    """Refuse to overwrite what is read again, or what may be another view of something else."""
    first = node.args[0]
    fresh = str(first.target).removeprefix("aten.").partition(".")[0].removesuffix("_")
    if len(first.users) > 1 or fresh not in ("conv2d", "linear", "batch_norm", "relu", "add", "sub", "mul", "div"):
        raise InputError(f"{name} overwrites a value that is used elsewhere; take inplace=True out of the network")


# ------------------------------------------------------------------------------------------------------------ affine


def _affine(
    to: _Node,
    x: Any,
    apply: Map,
    terms: int,
    *,
    sizes: Map | None = None,
    transposed: Map | None = None,
    squares: Map | None = None,
    bias: Tensor | None = None,
    bias_sizes: Tensor | float = 0.0,
    diagonal: bool = False,
) -> Affine:
    """An affine map with entries that are not negative, unless its sizes are given; its transpose by autograd."""
    if not isinstance(x, _Value):
        to.refuse("of constants has no bounds here")
    shape = x.shape

    def transpose(rows: Tensor) -> Tensor:
        with torch.enable_grad():
            at = torch.zeros((len(rows), *shape), dtype=rows.dtype, requires_grad=True)
            return torch.autograd.grad(apply(at), at, rows)[0]

    back = transposed or transpose
    given = (apply, sizes or apply, back, squares, bias, bias_sizes, diagonal)
    return Affine(to.name, (x.number,), to.shape, terms, *given)


def _constant(to: _Node, value: Any) -> Tensor:
    if isinstance(value, _Value):
        to.refuse("of two values that depend on the input has no bounds here")
    return torch.as_tensor(value).double()


def _linear(to: _Node, x: Any, weight: Any, bias: Any = None) -> Step:
    w = _constant(to, weight)
    return _affine(
        to,
        x,
        lambda v: F.linear(v, w),
        w.shape[1] + 1,
        sizes=lambda v: F.linear(v, w.abs() + TINY),
        squares=lambda v: F.linear(v, w.square()),
        transposed=lambda rows: rows @ w,
        bias=_shift(to, bias),
        bias_sizes=_shift_sizes(to, bias),
    )


def _conv2d(to: _Node, x: Any, weight: Any, bias: Any = None, *settings: Any) -> Step:
    w = _constant(to, weight)
    if len(x.shape) != 3:
        to.refuse("of anything but (channels, height, width) has no bounds here")
    names = dict(zip(("stride", "padding", "dilation", "groups"), settings, strict=False))
    shift = None if bias is None else _constant(to, bias)[:, None, None]

    def transposed(rows: Tensor) -> Tensor:
        return conv2d_input((len(rows), *x.shape), w, rows, **names)

    return _affine(
        to,
        x,
        lambda v: F.conv2d(v, w, None, **names),
        prod(w.shape[1:]) + 1,
        sizes=lambda v: F.conv2d(v, w.abs() + TINY, None, **names),
        squares=lambda v: F.conv2d(v, w.square(), None, **names),
        transposed=None if isinstance(names.get("padding"), str) else transposed,  # torch takes no words there
        bias=_shift(to, shift),
        bias_sizes=_shift_sizes(to, shift),
    )


def _shift(to: _Node, bias: Any) -> Tensor | None:
    return None if bias is None else _constant(to, bias).expand(to.shape)


def _shift_sizes(to: _Node, bias: Any) -> Tensor | float:
    return 0.0 if bias is None else _constant(to, bias).expand(to.shape).abs() + TINY


def _diagonal(to: _Node, x: Any, factor: Tensor, shift: Tensor | None = None, sizes: Any = 0.0, terms: int = 4) -> Step:
    if to.shape != x.shape:
        to.refuse("repeats values, which has no bounds here")
    factor = factor.expand(to.shape)
    return _affine(
        to,
        x,
        lambda v: v * factor,
        terms,
        sizes=lambda v: v * (factor.abs() + TINY),
        squares=lambda v: v * factor.square(),
        transposed=lambda rows: rows * factor,
        bias=None if shift is None else shift.expand(to.shape),
        bias_sizes=sizes,
        diagonal=True,
    )


def _batch_norm(to: _Node, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, *rest: Any) -> Step:
    training, _, epsilon, *_ = rest
    if training or mean is None:
        to.refuse("with the statistics of the batch has no bounds here")
    along = (-1, *(1,) * (len(to.shape) - 1))
    m, v = _constant(to, mean), _constant(to, variance)
    factor = (1.0 if weight is None else _constant(to, weight)) / (v + epsilon).sqrt()
    b = torch.zeros_like(m) if bias is None else _constant(to, bias)
    sizes = b.abs() + (m * factor).abs() + TINY
    return _diagonal(to, x, factor.view(along), (b - m * factor).view(along), sizes.view(along), 16)


def _per_sample(to: _Node, value: Any) -> Tensor:
    """A constant that is the same for all samples."""
    c = _constant(to, value)
    if c.ndim > len(to.shape):
        if c.shape[0] != 1:
            to.refuse("of a constant with rows of its own has no bounds here")
        c = c[0]
    return c


def _add(to: _Node, x: Any, y: Any, *, alpha: float = 1, sign: float = 1.0) -> Step:
    if alpha != 1:
        to.refuse("with alpha has no bounds here")
    if isinstance(x, _Value) and isinstance(y, _Value):
        if x.shape != y.shape:
            to.refuse("repeats values, which has no bounds here")
        return Sum(to.name, (x.number, y.number), to.shape, 2, sign)
    if isinstance(x, _Value):
        c = _per_sample(to, y)
        return _diagonal(to, x, torch.ones((), dtype=torch.float64), sign * c, c.abs() + TINY)
    c = _per_sample(to, x)
    return _diagonal(to, y, torch.full((), sign, dtype=torch.float64), c, c.abs() + TINY)


def _multiply(to: _Node, x: Any, y: Any) -> Step:
    value, factor = (x, y) if isinstance(x, _Value) else (y, x)
    return _diagonal(to, value, _per_sample(to, factor))


def _divide(to: _Node, x: Any, y: Any) -> Step:
    return _diagonal(to, x, 1 / _per_sample(to, y))


def _average(
    to: _Node, x: Any, size: Any, stride: Any = (), padding: Any = 0, ceil: bool = False, padded: bool = True
) -> Step:
    apply: Map = lambda v: F.avg_pool2d(v, size, stride or None, padding, ceil, padded)  # noqa: E731
    return _affine(to, x, apply, prod(_pair(size)) + 2, sizes=lambda v: apply(v + TINY))


def _adaptive(to: _Node, x: Any, size: Any) -> Step:
    apply: Map = lambda v: F.adaptive_avg_pool2d(v, size)  # noqa: E731
    return _affine(to, x, apply, prod(x.shape[1:]) + 2, sizes=lambda v: apply(v + TINY))


def _mean(to: _Node, x: Any, dims: Any = None, keep: bool = False) -> Step:
    if not dims or any(dim % (len(x.shape) + 1) == 0 for dim in dims):
        to.refuse("over samples has no bounds here")
    apply: Map = lambda v: v.mean(tuple(dims), keep)  # noqa: E731
    count = prod((_TRACED, *x.shape)[dim] for dim in dims)
    return _affine(to, x, apply, count + 2, sizes=lambda v: apply(v + TINY))


def _reshape(to: _Node, x: Any, *_: Any) -> Step:
    apply: Map = lambda v: v.reshape(len(v), *to.shape)  # noqa: E731
    back: Map = lambda rows: rows.reshape(len(rows), *x.shape)  # noqa: E731
    return _affine(to, x, apply, 0, squares=apply, transposed=back, diagonal=True)


def _select(to: _Node, x: Any, *args: Any) -> Step:
    """What picks or moves entries inside a sample, and fills with zeros."""
    apply: Map = lambda v: to.function(v, *args)  # noqa: E731
    probe = torch.arange(3.0 * prod(x.shape), dtype=torch.float64).reshape(3, *x.shape)
    found = apply(probe)
    if found.shape != (3, *to.shape) or not torch.equal(found, torch.cat([apply(row[None]) for row in probe])):
        to.refuse("mixes samples")
    return _affine(to, x, apply, 0, squares=apply, diagonal=True)


def _pad(to: _Node, x: Any, pads: Any, mode: str = "constant", value: Any = None) -> Step:
    if mode != "constant" or value or min(pads) < 0:
        to.refuse("with anything but zeros has no bounds here")
    return _select(to, x, pads)


def _pad_with(to: _Node, x: Any, pads: Any, value: Any = 0) -> Step:
    return _pad(to, x, pads, "constant", value)


def _subtract(to: _Node, x: Any, y: Any, *, alpha: float = 1) -> Step:
    return _add(to, x, y, alpha=alpha, sign=-1.0)


def _same(to: _Node, x: Any, *_: Any, **__: Any) -> _Value | Step:
    return x if isinstance(x, _Value) else to.refuse()


def _cast(to: _Node, x: Any, *_: Any, **__: Any) -> Step:
    return _diagonal(to, x, torch.ones((), dtype=torch.float64))


def _dropout(to: _Node, x: Any, chance: float, training: bool) -> Any:
    return to.refuse("in training mode has no bounds here") if training else x


# ------------------------------------------------------------------------------------------------------- non-linear


def _relu(to: _Node, x: Any) -> Step:
    return Rectifier(to.name, (x.number,), to.shape)


def _max_pool(to: _Node, x: Any, size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: Any = False):
    if len(x.shape) != 3 or any(_pair(padding)) or max(_pair(dilation)) > 1 or ceil:
        to.refuse("with padding, dilation or ceil_mode has no bounds here")
    places = torch.arange(prod(x.shape), dtype=torch.float64).reshape(x.shape[0], 1, *x.shape[1:])
    windows = F.unfold(places, _pair(size), stride=_pair(stride or size))  # (channels, size, places)
    return MaxPool(to.name, (x.number,), to.shape, windows=windows.transpose(1, 2).flatten(0, 1).long())


def _pair(value: Any) -> tuple[int, int]:
    several = [value] if isinstance(value, int) else list(value)
    return several[0], several[-1]


def _softmax(to: _Node, x: Any, dim: int, *_: Any) -> Step:
    if dim not in (1, -1) or len(x.shape) != 1:
        to.refuse("over anything but classes has no bounds here")
    return _Softmax(to.name, (x.number,), to.shape)


def _log_softmax(to: _Node, x: Any, dim: int, *_: Any) -> Step:
    """The logits, but for a shift that all of them share and the rounding of it."""
    _softmax(to, x, dim)
    (classes,) = x.shape
    # As a map it is the identity; its sizes only serve the rounding.
    largest: Map = lambda v: v + v.amax(1, keepdim=True)  # noqa: E731
    kept: Map = lambda v: v  # noqa: E731
    return _affine(to, x, kept, classes + 16, sizes=largest, transposed=kept, bias_sizes=float(classes))


# Operations that only change shapes, which are also done to constants.
_CHANGES = dict.fromkeys(("reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze"), _reshape)
_OPERATIONS: dict[str, Callable[..., Any]] = {
    **_CHANGES,
    "linear": _linear,
    "conv2d": _conv2d,
    "batch_norm": _batch_norm,
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "avg_pool2d": _average,
    "adaptive_avg_pool2d": _adaptive,
    "mean": _mean,
    "slice": _select,
    "select": _select,
    "permute": _select,
    "transpose": _select,
    "pad": _pad,
    "constant_pad_nd": _pad_with,
    "contiguous": _same,
    "clone": _same,
    "detach": _same,
    "alias": _same,
    "dropout": _dropout,
    "to": _cast,
    "_to_copy": _cast,
    "relu": _relu,
    "max_pool2d": _max_pool,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
}
