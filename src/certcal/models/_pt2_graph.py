"""Running the graph of a torch.export file: a list of torch's own operators, called one after another.

Only operators that compute tensors from tensors are called. Nothing in the file becomes Python code: operators are
looked up by name among torch's ``aten`` operators, and names of values are only keys.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.models._adapter import Batch

if TYPE_CHECKING:
    from torch import Tensor

_ATEN = re.compile(r"torch\.ops\.aten\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
# Arithmetic on sizes.
_ON_SIZES: dict[str, Callable[..., Any]] = {
    **{
        f"_operator.{name}": getattr(operator, name)
        for name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "neg")
    },
    **{f"_operator.{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_")},
    **{"torch.sym_max": max, "torch.sym_min": min, "torch.sym_not": operator.not_},
    **{"torch.sym_float": float, "torch.sym_int": int, "math.trunc": int},
}
# Arguments of operators that behave differently in training, and the values that say "not in training".
_SWITCHES = ("train", "training", "dropout_p")
_OFF = ({"as_bool": False}, {"as_float": 0.0}, {"as_int": 0})
_CHECKS = ("_assert", "sym_constrain")  # beginnings of operators that return nothing and are of use
# Numbers of dtypes and memory formats in the file format.
DTYPES = {
    **{1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64"},
    **{12: "bool", 13: "bfloat16"},
}
_MEMORY_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_PLAIN = {
    **{"as_int": int, "as_float": (int, float), "as_bool": bool, "as_string": str},
    **{"as_ints": int, "as_floats": (int, float), "as_bools": bool, "as_strings": str},
}


@dataclass(frozen=True)
class _Ref:
    """A place in the list of values."""

    slot: int


@dataclass(frozen=True)
class _Step:
    """One call. ``writes`` are the positions and names of arguments that it changes; ``done`` the slots to forget."""

    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    writes: tuple[int | str, ...]
    results: tuple[Any, ...]
    done: tuple[int, ...]


class Graph:
    """A program with one input, one output and constant weights.

    Parameters
    ----------
    graph, signature
        As in the file.
    tensors
        Weights and constants by name.
    where
        The file, for messages.
    """

    least: int = 1
    most: int | None = None
    sample: tuple[int | None, ...] | None = None

    def __init__(self, graph: Any, signature: Any, tensors: dict[str, Tensor], where: str) -> None:
        self._where = where
        self._slots: dict[str, int] = {}
        self._constants: list[tuple[int, Tensor]] = []
        self.input_name = self._inputs(signature["input_specs"], tensors)
        self._input = self._slots[self.input_name]
        steps = [self._step(node) for node in graph["nodes"]]
        self._output = self._only_output(signature["output_specs"])
        self._steps = self._forgetting(steps)
        self._weights = {tensor.untyped_storage().data_ptr() for _, tensor in self._constants}
        self._changes_values = any(step.writes for step in steps)

    def _refuse(self, what: str) -> InputError:
        return InputError(f"{self._where}: {what}; export the model as ONNX instead")

    def _slot(self, name: Any) -> int:
        if not isinstance(name, str) or name in self._slots:
            raise ValueError(name)
        self._slots[name] = len(self._slots)
        return self._slots[name]

    def _inputs(self, specs: Any, tensors: dict[str, Tensor]) -> str:
        given: list[str] = []
        for spec in specs:
            ((kind, body),) = spec.items()
            if kind == "user_input" and "as_tensor" in body["arg"]:
                given.append(body["arg"]["as_tensor"]["name"])
                self._slot(given[-1])
            elif kind in ("parameter", "buffer", "tensor_constant"):
                tensor = tensors[body[f"{kind}_name"]]
                self._constants.append((self._slot(body["arg"]["name"]), tensor))
            elif kind in ("custom_obj", "token"):
                raise self._refuse("it needs objects that are stored as pickles, which are never loaded")
            else:
                raise self._refuse("it takes more than one tensor")
        if len(given) != 1:
            raise self._refuse(f"it takes {len(given)} tensors; a model takes one")
        return given[0]

    def _only_output(self, specs: Any) -> int:
        if any("user_output" not in spec for spec in specs):
            raise InputError(
                f"{self._where}: the network changes its own buffers or inputs; call .eval() before exporting it"
            )
        if len(specs) != 1 or "as_tensor" not in specs[0]["user_output"]["arg"]:
            raise self._refuse("it returns something else than one tensor")
        return self._slots[specs[0]["user_output"]["arg"]["as_tensor"]["name"]]

    def _step(self, node: Any) -> _Step:
        target = node["target"]
        sizes_only = _ON_SIZES.get(target)
        if sizes_only is not None:
            args = tuple(self._argument(each["arg"]) for each in node["inputs"])
            return _Step(sizes_only, args, {}, (), self._results(node["outputs"]), ())
        call = self._operator(target)
        schema: Any = call._schema
        known = {argument.name: argument for argument in schema.arguments}
        order = [argument.name for argument in schema.arguments if not argument.kwarg_only]
        positional: list[Any] = []
        named: dict[str, Any] = {}
        writes: list[int | str] = []
        for each in node["inputs"]:
            name, value = each["name"], self._argument(each["arg"])
            changes = known[name].alias_info is not None and known[name].alias_info.is_write
            if order[len(positional) : len(positional) + 1] == [name]:
                writes += [len(positional)] if changes else []
                positional.append(value)
            else:
                writes += [name] if changes else []
                named[name] = value
        self._refuse_training(call, target, {each["name"]: each["arg"] for each in node["inputs"]})
        return _Step(call, tuple(positional), named, tuple(writes), self._results(node["outputs"]), ())

    def _operator(self, target: Any) -> Any:
        torch: Any = import_module("torch")

        found = _ATEN.fullmatch(target)
        packet = getattr(torch.ops.aten, found[1], None) if found else None
        call: Any = getattr(packet, found[2], None) if found and _alike(packet, torch.ops.aten.add) else None
        if not _alike(call, torch.ops.aten.add.Tensor) or not _is_pure_computing(call):
            raise self._refuse(f"it uses the operator {target!r}, which is not run from a file")
        return call

    def _refuse_training(self, call: Any, target: str, arguments: dict[str, Any]) -> None:
        """Answers must depend on nothing but the sample: no dropout, no statistics of the batch, no random numbers."""
        torch: Any = import_module("torch")
        switches = [argument.name for argument in call._schema.arguments if argument.name in _SWITCHES]
        if any(arguments.get(name, _OFF[0]) not in _OFF for name in switches):
            raise InputError(
                f"{self._where}: it behaves as in training ({target} draws at random or mixes the samples of a batch); "
                "call .eval() before exporting it"
            )
        if torch.Tag.nondeterministic_seeded in call.tags and not switches:
            raise self._refuse(f"it draws random numbers ({target}), so its answers would differ from call to call")

    def _argument(self, arg: Any) -> Any:
        torch: Any = import_module("torch")

        ((kind, value),) = arg.items()
        if kind == "as_none":
            return None
        if kind in _PLAIN:
            values: list[Any] = value if kind.endswith("s") else [value]
            if not all(isinstance(each, _PLAIN[kind]) for each in values):
                raise ValueError(arg)
            return list(values) if kind.endswith("s") else value
        if kind == "as_tensor":
            return _Ref(self._slots[value["name"]])
        if kind == "as_tensors":
            return [_Ref(self._slots[each["name"]]) for each in value]
        if kind in ("as_optional_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._one(value)
        if kind in ("as_optional_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._one(each) for each in value]
        if kind == "as_scalar_type":
            return getattr(torch, DTYPES[value])
        if kind == "as_memory_format":
            return getattr(torch, _MEMORY_FORMATS[value])
        if kind == "as_layout" and value == 7:
            return torch.strided
        if kind == "as_device":
            return torch.device("cpu")
        raise self._refuse(f"it passes an argument of the kind {kind!r}")

    def _one(self, value: Any) -> Any:
        """A size, given as a number or by the name of a value; or a tensor that may be missing."""
        ((kind, inner),) = value.items()
        if kind == "as_none":
            return None
        if kind == "as_name":
            return _Ref(self._slots[inner])
        if kind == "as_tensor":
            return _Ref(self._slots[inner["name"]])
        if kind in ("as_int", "as_float", "as_bool") and isinstance(inner, int | float):
            return inner
        raise ValueError(value)

    def _results(self, outputs: Any) -> tuple[Any, ...]:
        """A slot for each result, a tuple of slots for a list of tensors, None for nothing."""
        found: list[Any] = []
        for output in outputs:
            ((kind, value),) = output.items()
            if kind == "as_tensor":
                found.append(self._slot(value["name"]))
            elif kind == "as_tensors":
                found.append(tuple(self._slot(each["name"]) for each in value))
            elif kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
                found.append(self._slot(value["as_name"]))
            elif kind == "as_none":
                found.append(None)
            else:
                raise self._refuse(f"an operator returns a value of the kind {kind!r}")
        return tuple(found)

    def _forgetting(self, steps: list[_Step]) -> list[_Step]:
        """Each step with the values that no later one needs, so that memory is given back as in the original."""
        needed = {self._output, *(slot for slot, _ in self._constants)}
        ready: list[_Step] = []
        for step in reversed(steps):
            touched = {*_slots_in(step.args), *_slots_in(tuple(step.kwargs.values())), *_flat(step.results)}
            ready.append(_Step(step.call, step.args, step.kwargs, step.writes, step.results, tuple(touched - needed)))
            needed |= touched
        return ready[::-1]

    def run(self, batch: Batch) -> NDArray[Any]:
        """The network's answer."""
        torch: Any = import_module("torch")

        with torch.inference_mode():
            answer = self.compute(torch.from_numpy(batch if batch.flags.writeable else batch.copy()))
            return (answer.float() if answer.dtype in (torch.bfloat16, torch.float16) else answer).numpy()

    def compute(self, inputs: Tensor) -> Tensor:
        """The network's answer as a tensor, with gradients where torch keeps them; the inputs stay as they are."""
        values: list[Any] = [None] * len(self._slots)
        values[self._input] = inputs.clone() if self._changes_values else inputs
        for slot, tensor in self._constants:
            values[slot] = tensor
        for step in self._steps:
            self._call(step, values)
        return values[self._output]

    def _call(self, step: _Step, values: list[Any]) -> None:
        args = [_filled(arg, values) for arg in step.args]
        kwargs = {name: _filled(arg, values) for name, arg in step.kwargs.items()}
        for place in step.writes:
            changed: Any = args[place] if isinstance(place, int) else kwargs[place]
            if changed.untyped_storage().data_ptr() in self._weights:
                raise InputError(
                    f"{self._where}: the network changes its own weights; call .eval() before exporting it"
                )
        result = step.call(*args, **kwargs)
        results: Sequence[Any] = (result,) if len(step.results) == 1 else result if step.results else ()
        for place, value in zip(step.results, results, strict=True):
            if isinstance(place, int):
                values[place] = value
            elif place is not None:
                for slot, each in zip(place, value, strict=True):
                    values[slot] = each
        for slot in step.done:
            values[slot] = None


def _is_pure_computing(call: Any) -> bool:
    """Whether an operator computes with tensors and does nothing else: no files, no strings, no global state."""
    schema: Any = call._schema
    if any("file" in argument.name for argument in schema.arguments):
        return False
    kinds = [str(value.type) for value in (*schema.arguments, *schema.returns)]
    if not any("Tensor" in kind for kind in kinds) or any("Storage" in kind or "Stream" in kind for kind in kinds):
        return schema.name.removeprefix("aten::").startswith(_CHECKS)
    return bool(schema.returns) or schema.name.removeprefix("aten::").startswith(_CHECKS)


def _alike(value: Any, other: Any) -> bool:
    return type(value) is type(other)


def _filled(arg: Any, values: list[Any]) -> Any:
    if isinstance(arg, _Ref):
        return values[arg.slot]
    if isinstance(arg, list):
        return [values[each.slot] if isinstance(each, _Ref) else each for each in _listed(arg)]
    return arg


def _slots_in(args: tuple[Any, ...]) -> set[int]:
    every = [each for arg in args for each in (_listed(arg) if isinstance(arg, list) else [arg])]
    return {each.slot for each in every if isinstance(each, _Ref)}


def _listed(value: Any) -> list[Any]:
    return value


def _flat(results: tuple[Any, ...]) -> set[int]:
    found: set[int] = set()
    for place in results:
        found |= {place} if isinstance(place, int) else set(place or ())
    return found
