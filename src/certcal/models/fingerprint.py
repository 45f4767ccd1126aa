"""What a Python object is made of, as digits: its code, and the values that its code uses.

Nothing is called and nothing is unpickled. Code of installed packages is known by its name only; an object whose inside
Python does not show (a handle of a C library, say) makes the look incomplete, which is said.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import re
import sys
import sysconfig
import types
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

_PLAIN = (bool, int, float, complex, str, bytes, types.EllipsisType, types.NoneType)
_PACKAGES = {"site-packages", "dist-packages"}
_MOST = 1_000_000  # values looked at
_SETTINGS = (bool, int, float, str)
_NUMBERED = re.compile(r"___torch_mangle_[0-9]+\.")


class ObjectDigest:
    """Digits of what an object is made of."""

    def __init__(self, home: str, values: bool = True) -> None:
        self.complete = True
        self._home, self._values = home.partition(".")[0], values
        self._digest = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no identity is used twice

    @property
    def digits(self) -> str:
        """64 hexadecimal digits."""
        return self._digest.hexdigest()

    def add(self, value: Any) -> None:
        """Look at one more object."""
        try:
            self._add(value)
        except RecursionError:
            self._note_hidden("nested too deeply")

    def _note(self, *words: str) -> None:
        for word in words:
            content = word.encode("utf-8", "surrogatepass")
            self._digest.update(f"{len(content)}:".encode())
            self._digest.update(content)

    def _note_hidden(self, what: str) -> None:
        self.complete = False
        self._note("hidden", what)

    def _add(self, value: Any) -> None:
        if isinstance(value, _PLAIN):
            self._note(type(value).__name__, repr(value))
            return
        if id(value) in self._seen:
            self._note("again", str(self._seen[id(value)]))
            return
        if len(self._seen) >= _MOST:
            self._note_hidden("too large")
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        self._add_new(value)

    def _add_new(self, value: Any) -> None:
        if isinstance(value, types.CodeType):
            self._add_code(value)
        elif isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, types.MethodType):
            self._add_several(value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            some = cast("functools.partial[Any]", value)
            self._add_several(some.func, some.args, some.keywords)
        elif isinstance(value, type):
            self._add_class(cast("type[Any]", value))
        elif isinstance(value, types.ModuleType):
            self._add_module(value)
        elif isinstance(value, types.BuiltinFunctionType | np.ufunc):
            self._note("builtin", str(getattr(value, "__module__", "")), value.__name__)
            owner: Any = getattr(value, "__self__", None)
            self._add(None if isinstance(owner, types.ModuleType) else owner)
        elif self._values:
            self._add_value(value)
        else:
            self._add(cast("type[Any]", type(value)))

    def _add_several(self, *values: Any) -> None:
        self._note(str(len(values)))
        for value in values:
            self._add(value)

    def _is_user_code(self, module: str) -> bool:
        top = module.partition(".")[0]
        if top in (self._home, "__main__"):
            return True
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None or top == "certcal":
            return False
        path = Path(file)
        return not _PACKAGES.intersection(path.parts) and not path.is_relative_to(sysconfig.get_path("stdlib"))

    def _add_code(self, code: types.CodeType) -> None:
        self._note("code", code.co_code.hex(), *code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, frozenset):
                self._note("set", *sorted(map(repr, cast("frozenset[Any]", constant))))
            elif isinstance(constant, tuple):
                self._note("tuple", repr(cast("tuple[Any, ...]", constant)))
            else:
                self._add(constant)

    def _add_function(self, function: types.FunctionType) -> None:
        home = str(function.__module__)  # a function that was made from a text may have none
        self._note("function", home, function.__qualname__)
        if not self._is_user_code(home):
            return
        self._add(function.__code__)
        self._add_several(function.__defaults__, function.__kwdefaults__, getattr(function, "__wrapped__", None))
        for cell in function.__closure__ or ():
            try:
                self._add(cell.cell_contents)
            except ValueError:
                self._note("empty")
        for name in sorted(_global_names(function.__code__)):
            if name in function.__globals__:
                self._note(name)
                self._add(function.__globals__[name])

    def _add_class(self, kind: type[Any]) -> None:
        self._note("class", kind.__module__, kind.__qualname__)
        if not self._is_user_code(kind.__module__):
            return
        self._add_several(*kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(inner, types.FunctionType) or (isinstance(inner, _PLAIN) and not name.startswith("__")):
                self._note(name)
                self._add(inner)

    def _add_module(self, module: types.ModuleType) -> None:
        self._note("module", module.__name__)
        if self._is_user_code(module.__name__):
            self.complete = False  # which of its parts are used is not followed: all of its text counts
            try:
                self._note(hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest())
            except OSError:
                self._note("no file")

    def _add_value(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self._add_array(np.asarray(cast("NDArray[Any]", value)))
        elif isinstance(value, np.generic):
            self._add_array(np.asarray(cast("Any", value)))
        elif isinstance(value, list | tuple):
            self._note(type(cast("Any", value)).__name__)
            self._add_several(*cast("list[Any]", value))
        elif isinstance(value, Mapping):
            self._add_mapping(cast("Mapping[Any, Any]", value))
        elif isinstance(value, set | frozenset):
            some = cast("set[Any]", value)
            self._note("set", *sorted(map(repr, some)))
            self.complete &= all(isinstance(each, _PLAIN) for each in some)
        elif is_instance(value, "torch", "Tensor") or is_instance(value, "torch.nn", "Module"):
            self._note((tensor_digest if is_instance(value, "torch", "Tensor") else weights_digest)(value))
        else:
            self._add_object(value)

    def _add_array(self, array: NDArray[Any]) -> None:
        self._note("array", str(array.dtype), str(array.shape))
        if array.dtype.names is not None:
            for name in array.dtype.names:  # the bytes between fields may be anything
                self._add_array(array[name])
        elif array.dtype.hasobject:
            self._add_several(*array.reshape(-1).tolist())
        else:
            self._note(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest())

    def _add_mapping(self, mapping: Mapping[Any, Any]) -> None:
        self._note("mapping", str(len(mapping)))
        keys = list(mapping)
        for key in sorted(keys) if all(isinstance(key, str) for key in keys) else keys:
            self._add(key)
            self._add(mapping[key])

    def _add_object(self, value: Any) -> None:
        """Any other object: its class, and its attributes or what it would be copied from."""
        kind = cast("type[Any]", type(value))
        self._add(kind)
        if kind.__reduce_ex__ is not object.__reduce_ex__ or kind.__reduce__ is not object.__reduce__:
            try:
                parts: Any = value.__reduce_ex__(4)
            except Exception:  # whatever a library says when it cannot
                self._note_hidden("not to be copied")
                return
            self._add_several(
                *(list(p) if hasattr(p, "__next__") else p for p in ((parts,) if isinstance(parts, str) else parts))
            )
            return
        named: list[Any] = [base.__dict__.get("__slots__", ()) for base in kind.__mro__]
        slots = [name for each in named for name in ([each] if isinstance(each, str) else each)]
        state = {name: getattr(value, name) for name in slots if name != "__dict__" and hasattr(value, name)}
        state |= getattr(value, "__dict__", {})
        if not state and not hasattr(value, "__dict__") and kind is not object:
            self._note_hidden("no attributes")
            return
        self._add_mapping(state)


def weights_digest(module: Any) -> str:
    """Digits of a module: the classes of its layers (with their code, unless they are installed), settings, weights."""
    torch: Any = import_module("torch")

    inside = ObjectDigest("")
    digest = hashlib.sha256()
    scripts: list[str] = []
    for path, part in module.named_modules():
        if any(f"{path}.".startswith(script) for script in scripts):
            continue  # the graph of the whole has it
        if isinstance(part, torch.jit.ScriptModule):
            scripts.append(f"{path}." if path else "")
            _add_script(inside, part)
            continue
        inside.add((path, type(part), getattr(part, "code", None)))  # graphs carry their code as a text
        attributes = cast("dict[str, Any]", part.__dict__)
        inside.add({name: value for name, value in attributes.items() if isinstance(value, _SETTINGS)})
    digest.update(inside.digits.encode())
    # Also the buffers that are not saved: a normalisation's mean is often one of them.
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor_digest(tensor)}\n".encode())
    return digest.hexdigest()


def _add_script(inside: ObjectDigest, module: Any) -> None:
    """TorchScript: what its graph computes, with all constants, and the attributes that it uses.

    Its classes have numbers that depend on what was compiled before; these do not count.
    """
    torch: Any = import_module("torch")

    graph = module.inlined_graph
    inside.add(_NUMBERED.sub("", graph.str(False)))  # without the places in its source
    for node in graph.findAllNodes("prim::Constant"):
        inside.add(node.output().toIValue())  # the text has a few digits of numbers, and none of tensors
    used = sorted({node.s("name") for node in graph.findAllNodes("prim::GetAttr")})
    for path, part in module.named_modules():
        found = {name: getattr(part, name) for name in used if hasattr(part, name)}
        inside.add((path, {name: value for name, value in found.items() if not isinstance(value, torch.nn.Module)}))


def tensor_digest(tensor: Any) -> str:
    """Digits of a tensor's type, shape and values."""
    torch: Any = import_module("torch")

    plain = tensor.detach().cpu().contiguous()
    digest = hashlib.sha256(f"{plain.dtype} {tuple(plain.shape)}\n".encode())
    digest.update(np.ascontiguousarray(plain.reshape(-1).view(torch.uint8).numpy()).tobytes())
    return digest.hexdigest()


def is_instance(value: object, module: str, name: str) -> bool:
    """Whether it is of a library's class, without importing the library: an object of it has done so."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def _global_names(code: types.CodeType) -> set[str]:
    """Names that code and the functions inside it look up globally."""
    names = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names
