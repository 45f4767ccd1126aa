"""Who may call whom, who may use which library, and what may not be loaded."""

from __future__ import annotations

import ast
import gc
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from certcal.lab.study import StudyTable
from tests.smoothing.drawing import draw

SOURCE = Path(__file__).parent.parent / "src" / "certcal"

# Groups of rooms, top to bottom: a room may use any room of a lower group. Private modules (`_name`) are the lowest.
GROUPS = (
    ("cli", "lab", "report", "verbs"),
    ("verification", "attacks", "torchmetrics", "interop", "calibrators", "smoothing"),
    ("worst_case", "metrics", "bounds", "data", "models", "engines"),
    ("result", "verdict", "claims", "predictions", "binning"),
)
# The one way up: a result finds its view and its renderer, and a small value its card, by name, when it is shown.
UPWARDS = {("result", "report"), ("_base", "report")}
# Types alone, under TYPE_CHECKING: what a verb returns that the lab computes for it. The core never loads the lab.
TYPES = {("verbs", "lab")}
# Arrows between rooms of one group. They have no cycle.
SIDEWAYS = {
    ("cli", "report"),
    ("cli", "verbs"),
    ("cli", "lab"),
    ("report", "verbs"),
    ("lab", "report"),
    ("lab", "verbs"),
    ("verification", "attacks"),
    ("interop", "calibrators"),
    ("torchmetrics", "interop"),
    ("calibrators", "smoothing"),
    ("worst_case", "bounds"),
    ("worst_case", "metrics"),
    ("result", "verdict"),
    ("result", "claims"),
    ("verdict", "claims"),
    ("metrics", "bounds"),
    ("data", "models"),
    ("predictions", "binning"),
}

NUMERICS = {"worst_case", "bounds", "metrics", "claims", "predictions", "binning"}

# Rooms that may be imported for nothing: what they need beyond numpy loads when it is used.
LIGHT = NUMERICS | {
    "data",
    "engines",
    "models",
    "report",
    "calibrators",
    "smoothing",
    "verification",
    "interop",
    "result",
    "verdict",
}
LIGHT |= {"verbs"}
# Reads and writes the files that rooms keep: small, and needed where their forms are declared.
FORMS = {"msgspec", "typing_extensions"}

# What an import by a name that is not written down counts as.
COMPUTED = "a module by a computed name"

# Libraries beyond numpy, scipy and the standard library, and the rooms (or folders of rooms) that may import them.
LIBRARIES = {
    "numba": {"_kernels"},
    "llvmlite": {"_kernels"},
    "pyarrow": {"data", "smoothing", "lab", "result"},
    "rich": {"_base", "cli", "report"},  # in _base the bar of those who wait
    "click": {"cli"},
    "torch": {"attacks", "lab", "models", "interop", "verification"},
    "torchmetrics": {"interop"},
    "safetensors": {"lab", "models"},
    "onnx": {"models", "calibrators"},  # a map as a graph
    "onnxruntime": {"models"},
    "onnxscript": {"models"},
    "PIL": {"data"},
    "ray": {"engines"},
    "mlflow": {"interop"},
    "lightning": {"interop"},
    "pytorch_lightning": {"interop"},
    "matplotlib": {"report"},
    "plotly": set[str](),
    "xgboost": {"models"},
    "lightgbm": {"models"},
    "sklearn": {"calibrators", "interop", "models", "data"},
    "pandas": {"models", "result"},
    "polars": set[str](),
    "pickle": set[str](),
    "joblib": set[str](),
    COMPUTED: {"cli", "models", "report"},
}

# Numerics neither print nor touch files: these calls and modules have no place in them.
FORBIDDEN_CALLS = {"print", "open", "input", "breakpoint"}
FORBIDDEN_METHODS = {
    *("load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile", "tofile", "memmap"),
    *("read_text", "write_text", "read_bytes", "write_bytes", "open"),
}
FORBIDDEN_MODULES = {"io", "pathlib", "shutil", "tempfile", "subprocess", "socket", "urllib", "http", "logging"}


@dataclass(frozen=True)
class Import:
    """One import statement's target, seen from the room that makes it."""

    where: str
    room: str
    target: str
    names: tuple[str, ...]
    is_type: bool = False


@cache
def parsed(path: Path) -> ast.Module:
    gc.disable()  # all trees stay: they need not be looked through with each new one
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


def room_of(path: Path, root: Path) -> str:
    """The room a file belongs to: the first folder or module below the package."""
    first = path.relative_to(root).parts[0]
    return first.removesuffix(".py")


def imports(path: Path, root: Path) -> Iterator[Import]:
    """Every import of a file, also those inside functions and by name, with relative ones resolved."""
    place = path.relative_to(root)
    package = ["certcal", *place.parts[:-1]]
    room = room_of(path, root)
    branches = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.If)]
    types = {
        id(inner)
        for branch in branches
        if ast.unparse(branch.test) == "TYPE_CHECKING"
        for each in branch.body
        for inner in ast.walk(each)
    }
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            continue
        where = f"{place}:{node.lineno}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(where, room, alias.name, ())
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *(node.module.split(".") if node.module else [])])
            yield Import(where, room, target, tuple(alias.name for alias in node.names), id(node) in types)
        elif called(node) in ("import_module", "__import__"):
            first = node.args[0] if node.args else None
            known = isinstance(first, ast.Constant) and isinstance(first.value, str)
            yield Import(where, room, first.value if known else COMPUTED, ())


def called(node: ast.Call) -> str:
    """Last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def group_of(room: str) -> int:
    """Height of a room, the lowest being the highest number."""
    if room.startswith("_"):
        return len(GROUPS)
    return next(index for index, rooms in enumerate(GROUPS) if room in rooms)


def rooms_used(found: Import, rooms: set[str]) -> Iterator[str]:
    """Rooms of the package that an import reaches; "" is the package's own front."""
    parts = found.target.split(".")
    if parts[0] != "certcal":
        return
    if len(parts) > 1:
        yield parts[1]
        return
    yield from (name if name in rooms else "" for name in found.names or ("",))


def hidden_from(found: Import, room: str) -> Iterator[str]:
    """Private modules of other rooms that an import reaches; private modules beside the rooms are for all.

    The lab's folders are rooms of their own here.
    """
    parts = found.target.split(".")
    depth = 3 if parts[:2] == ["certcal", "lab"] == ["certcal", room] else 2
    own = ["certcal", *Path(found.where).parts[: depth - 1]]
    if parts[0] != "certcal" or len(parts) < 2 or parts[:depth] == own or parts[1].startswith("_"):
        return
    for path in [parts[2:], *([*parts[2:], name] for name in found.names)]:
        if any(part.startswith("_") for part in path):
            yield ".".join(["certcal", parts[1], *path])
            return


def may_use(room: str, other: str) -> bool:
    """Whether an arrow from one room to another goes down (or sideways where that is agreed)."""
    if room == other or (room, other) in SIDEWAYS | UPWARDS:
        return True
    if other == "":  # the front re-exports everything, so only the top may look at it
        return room in GROUPS[0]
    return group_of(room) < group_of(other) or (room.startswith("_") and other.startswith("_"))


def _numerics_violations(path: Path, root: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Call):
            continue
        where = f"{path.relative_to(root)}:{node.lineno}"
        if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            yield f"{where} calls {node.func.id}()"
        if isinstance(node.func, ast.Attribute) and node.func.attr in FORBIDDEN_METHODS:
            yield f"{where} calls .{node.func.attr}()"


def violations(root: Path) -> list[str]:
    """Every breach of the rules in a tree of modules, one line each."""
    files = sorted(root.rglob("*.py"))
    rooms = {room_of(path, root) for path in files}
    known = {room for group in GROUPS for room in group}
    found = [f"{room} is in no group; give it a place in GROUPS" for room in sorted(rooms - known) if room[0] != "_"]
    for path in files:
        room = room_of(path, root)
        if room in ("__init__", "__main__") or (room not in known and room[0] != "_"):
            continue
        for each in imports(path, root):
            library = each.target.split(".")[0]
            folder = path.relative_to(root).parent.as_posix()
            if not LIBRARIES.get(library, {room}) & {room, folder}:
                found.append(f"{each.where} imports {library}, which {room} may not")
            if room in NUMERICS and library in FORBIDDEN_MODULES:
                found.append(f"{each.where} imports {library}; numerics neither print nor touch files")
            found += [f"{each.where} uses {hidden}, which is private" for hidden in hidden_from(each, room)]
            found += [
                f"{each.where} uses {other or 'certcal'}; arrows go down only"
                for other in rooms_used(each, rooms)
                if not may_use(room, other) and not (each.is_type and (room, other) in TYPES)
            ]
        if room in NUMERICS:
            found += _numerics_violations(path, root)
    return found


# A command-line flag, unless it is of another program.
FLAG = re.compile(r"(?<!tensorboard )(?<![\w-])--(?:[a-z][a-z0-9-]*=?|\Z)")


def sentences_with_flags(root: Path) -> list[str]:
    """Places outside the command line where a text names a flag; a text that is the flag itself is no sentence."""
    return [
        f"{path.relative_to(root)}:{node.lineno} names {found[0]}"
        for path in sorted(root.rglob("*.py"))
        if room_of(path, root) != "cli"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if (found := FLAG.search(node.value)) and found[0] != node.value
    ]


# The one place that reads files of torch.save, in the one mode that runs nothing of theirs.
CHECKPOINTS = "models/_checkpoint.py"
UNPICKLES = {"Unpickler", "read_pickle", "add_safe_globals", "safe_globals"}


def unpickling(root: Path) -> list[str]:
    """Places that could unpickle something: any call of torch.load but the one, and what loosens or replaces it."""
    found: list[str] = []
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Call) or not (
                called(node) in {"load", *UNPICKLES} or any(word.arg == "allow_pickle" for word in node.keywords)
            ):
                continue
            name = ast.unparse(node.func)
            given = {word.arg: ast.unparse(word.value) for word in node.keywords}
            if name == "torch.load" and (place, given.get("weights_only")) != (CHECKPOINTS, "True"):
                found.append(f"{place}:{node.lineno} calls torch.load")
            if called(node) in UNPICKLES or name == "torch.jit.load" or given.get("allow_pickle") == "True":
                found.append(f"{place}:{node.lineno} calls {name}")
    return found


def test_nothing_is_unpickled_but_the_weights_in_checkpoints() -> None:
    assert unpickling(SOURCE) == []
    assert (SOURCE / CHECKPOINTS).read_text("utf-8").count("torch.load(io") == 1


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("data/read.py", "torch.load(x, weights_only=True)", ["data/read.py:1 calls torch.load"]),
        (CHECKPOINTS, "torch.load(x, weights_only=True)", []),
        (CHECKPOINTS, "torch.load(x)", [f"{CHECKPOINTS}:1 calls torch.load"]),
        (CHECKPOINTS, "torch.load(x, weights_only=safe)", [f"{CHECKPOINTS}:1 calls torch.load"]),
        ("models/x.py", "torch.jit.load(x)", ["models/x.py:1 calls torch.jit.load"]),
        ("models/x.py", "np.load(x, allow_pickle=True)", ["models/x.py:1 calls np.load"]),
        (
            CHECKPOINTS,
            "torch.serialization.add_safe_globals([x])",
            [f"{CHECKPOINTS}:1 calls torch.serialization.add_safe_globals"],
        ),
    ],
)
def test_unpickling_is_found(tmp_path: Path, file: str, text: str, complaint: list[str]) -> None:
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_text(text)
    assert unpickling(tmp_path) == complaint


def test_only_the_command_line_names_flags() -> None:
    assert sentences_with_flags(SOURCE) == []


@pytest.mark.parametrize(
    ("file", "text", "complaints"),
    [
        ("data/read.py", "raise ValueError('give --labels')", ["data/read.py:1 names --labels"]),
        ("data/read.py", "x = f'bins is {n} (--n-bins {m})'", ["data/read.py:1 names --n-bins"]),
        ("data/read.py", "x = f'choose with --{role}'", ["data/read.py:1 names --"]),
        ("data.py", "def f():\n    'As ``--by``.'", ["data.py:2 names --by"]),
        ("data/read.py", "x = setting(0.1, 'The radius.', flag='--radius')", []),
        ("data/read.py", "x = ['certcal', f'--model={m}']", []),
        ("data/read.py", "x = 'see: tensorboard --logdir runs'\ny = 'a\\n-------\\nb -- c'", []),
        ("cli/main.py", "x = 'give --labels'", []),
    ],
)
def test_a_flag_in_a_sentence_is_found(tmp_path: Path, file: str, text: str, complaints: list[str]) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert sentences_with_flags(tmp_path) == complaints


def test_a_class_name_is_used_once() -> None:
    places: dict[str, list[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in parsed(file).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(file.relative_to(SOURCE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_every_arrow_between_rooms_goes_down() -> None:
    assert len(list(SOURCE.rglob("*.py"))) > 10
    assert violations(SOURCE) == []


def test_torch_is_at_home_in_the_baselines_of_worst_cases(tmp_path: Path) -> None:
    (tmp_path / "lab" / "baselines").mkdir(parents=True)
    (tmp_path / "lab" / "baselines" / "admm.py").write_text("import torch")
    assert violations(tmp_path) == []


def test_sideways_arrows_stay_within_a_group_and_have_no_cycle() -> None:
    assert all(group_of(a) == group_of(b) for a, b in SIDEWAYS)
    order = {room: place for group in GROUPS for place, room in enumerate(group)}
    assert all(order[a] < order[b] for a, b in SIDEWAYS), "list the using room before the used one in GROUPS"


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("metrics/ece.py", "from certcal.cli import main", "metrics/ece.py:1 uses cli; arrows go down only"),
        (
            "metrics/ece.py",
            "def f():\n    import certcal.report.html",
            "metrics/ece.py:2 uses report; arrows go down only",
        ),
        ("metrics/ece.py", "from certcal import smoothing", "metrics/ece.py:1 uses smoothing; arrows go down only"),
        ("metrics/ece.py", "from ..smoothing import draw", "metrics/ece.py:1 uses smoothing; arrows go down only"),
        ("metrics/ece.py", "from .. import smoothing", "metrics/ece.py:1 uses smoothing; arrows go down only"),
        ("metrics/ece.py", "from certcal import measure", "metrics/ece.py:1 uses certcal; arrows go down only"),
        ("metrics/ece.py", "import certcal", "metrics/ece.py:1 uses certcal; arrows go down only"),
        (
            "lab/study/x.py",
            "from certcal.lab.logs._graph import reduction",
            "lab/study/x.py:1 uses certcal.lab.logs._graph, which is private",
        ),
        ("verbs/certify.py", "from certcal.lab import baselines", "verbs/certify.py:1 uses lab; arrows go down only"),
        (
            "report/x.py",
            "if TYPE_CHECKING:\n    from certcal.lab.study import Answer",
            "report/x.py:2 uses lab; arrows go down only",
        ),
        ("metrics/ece.py", "from certcal.data import read", "metrics/ece.py:1 uses data; arrows go down only"),
        ("binning.py", "from certcal.predictions import P", "binning.py:1 uses predictions; arrows go down only"),
        ("claims.py", "from certcal.metrics import ece", "claims.py:1 uses metrics; arrows go down only"),
        (
            "_base/checks.py",
            "from certcal.binning import assign",
            "_base/checks.py:1 uses binning; arrows go down only",
        ),
        ("report/html.py", "from certcal.cli import main", "report/html.py:1 uses cli; arrows go down only"),
        ("metrics/ece.py", "def f():\n    import torch.nn", "metrics/ece.py:2 imports torch, which metrics may not"),
        ("worst_case/exact.py", "import torch", "worst_case/exact.py:1 imports torch, which worst_case may not"),
        ("cli/main.py", "from torch import nn", "cli/main.py:1 imports torch, which cli may not"),
        ("report/html.py", "import torch", "report/html.py:1 imports torch, which report may not"),
        ("lab/training/loop.py", "import matplotlib", "lab/training/loop.py:1 imports matplotlib, which lab may not"),
        ("metrics/ece.py", "import numba", "metrics/ece.py:1 imports numba, which metrics may not"),
        ("data/npz.py", "import pickle", "data/npz.py:1 imports pickle, which data may not"),
        (
            "metrics/ece.py",
            "import importlib\nimportlib.import_module('torch.nn')",
            "metrics/ece.py:2 imports torch, which metrics may not",
        ),
        ("metrics/ece.py", "__import__('certcal.cli')", "metrics/ece.py:1 uses cli; arrows go down only"),
        (
            "metrics/ece.py",
            "import_module(f())",
            "metrics/ece.py:1 imports a module by a computed name, which metrics may not",
        ),
        ("metrics/ece.py", "print(1)", "metrics/ece.py:1 calls print()"),
        ("binning.py", "def f():\n    return open('x')", "binning.py:2 calls open()"),
        ("predictions.py", "import numpy as np\nnp.load('x')", "predictions.py:2 calls .load()"),
        ("bounds/dkw.py", "import pathlib", "bounds/dkw.py:1 imports pathlib; numerics neither print nor touch files"),
        ("cellar/x.py", "", "cellar is in no group; give it a place in GROUPS"),
        (
            "cli/main.py",
            "from certcal.report._text import shown",
            "cli/main.py:1 uses certcal.report._text, which is private",
        ),
        (
            "cli/main.py",
            "def f():\n    from certcal.report import _text",
            "cli/main.py:2 uses certcal.report._text, which is private",
        ),
    ],
)
def test_a_breach_is_found_and_named(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    for room in ("cli", "report", "smoothing", "metrics"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("")
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert violations(tmp_path) == [complaint]


def test_arrows_that_go_down_are_no_breach(tmp_path: Path) -> None:
    allowed = {
        "__init__.py": "from certcal.cli import main",
        "__main__.py": "from certcal.cli import main",
        "cli.py": "import click, rich\nfrom certcal import __version__, report, metrics\nprint(1)",
        "report.py": "import matplotlib.pyplot\nfrom certcal.claims import Estimate",
        "interop.py": "import torch, torchmetrics\nfrom .metrics import ece",
        "metrics.py": "import numpy, scipy\nfrom certcal import _kernels\nfrom .predictions import Predictions",
        "predictions.py": "from certcal._base import checks\nfrom certcal.binning import assign",
        "binning.py": "from . import _kernels",
        "_kernels.py": "import numba",
        "_base.py": "from certcal._kernels import check",
    }
    for name, text in allowed.items():
        (tmp_path / name).write_text(text)
    assert violations(tmp_path) == []


PROBE = """
import contextlib, io, json, os, sys
for code in json.loads(sys.argv[2]):
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    before = set(sys.modules)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        exec(code)
    print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before})), flush=True)
    os._exit(0)
"""


def loaded_by(*codes: str, first: str = "") -> list[set[str]]:
    """Top-level names of modules that a fresh interpreter loads while it runs each code, alone after the first one."""
    command = [sys.executable, "-c", f"{first}\n{PROBE}", "", json.dumps(codes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


def outside(modules: set[str]) -> set[str]:
    """Those of other projects."""
    return modules - set(sys.stdlib_module_names) - {"certcal"}


def test_the_list_of_loaded_modules_sees_what_is_loaded_by_each_alone() -> None:
    first, second = loaded_by("import numpy", "import wave")
    assert "numpy" in first
    assert "json" not in first  # loaded by the probe itself, before it looks
    assert ("wave" in second, "numpy" in second) == (True, False)


def test_importing_certcal_or_a_room_loads_numpy_and_nothing_else_from_outside() -> None:
    rooms = sorted({room_of(path, SOURCE) for path in SOURCE.rglob("*.py")} & LIGHT)
    (alone,), each = (
        loaded_by("import certcal"),
        loaded_by(*(f"import certcal.{room}" for room in rooms), first="import numpy"),
    )
    assert outside(alone) == {"numpy"}
    more = {room: outside(modules) - {"numpy", *FORMS} for room, modules in zip(rooms, each, strict=True)}
    assert {room: modules for room, modules in more.items() if modules} == {}


def test_asking_the_command_line_for_help_loads_no_numerics() -> None:
    asked = (
        "--help",
        "--version",
        "measure --help",
        "certify --help",
        "demo --help",
        "report --help",
        "completion bash",
        "recalibrate fit --help",
        "train --help",
    )
    code = "import sys\nsys.argv = ['certcal', *{!r}.split()]\nfrom certcal.cli import main\nmain()"
    for words, modules in zip(asked, loaded_by(*map(code.format, asked)), strict=True):
        assert "click" in modules, words
        assert outside(modules) <= {"numpy", "click", "rich", *FORMS}, words


CHART = """
import sys
import certcal.report.mpl as mpl
from certcal.report.charts import curves
mpl.figure_bytes(curves("t", [0, 1], {"a": [0, 1]}, y_label="y", description="").figure(), "png")
assert "matplotlib.pyplot" not in sys.modules
"""


CERTIFY = """
import sys
from certcal.cli import main
def certify(run):
    sys.argv = ["certcal", "certify", run, "--radius", ".25"]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0
"""


def test_what_is_called_loads_no_library_that_it_does_without(tmp_path: Path) -> None:
    run, table = draw(tmp_path / "run").path, tmp_path / "study.parquet"
    StudyTable.of({"model": ["a"]}).write(table)
    without = {
        CHART: {"torch", "pandas"},
        "import certcal.report.mpl": {"matplotlib"},
        "from certcal.models.devices import resolve\nassert resolve('cpu') == 'cpu'": {"torch"},
        "from certcal.lab import baselines\nbaselines.brier_confidences([0.5], [0.6], [1])": {"torch"},
        f"from certcal.lab.study import StudyTable as T\npath = {str(table)!r}\nT.read(path).write(path)": {"pandas"},
        f"{CERTIFY}certify({str(run)!r})": {"torch", "sklearn", "onnxruntime", "onnx", "pandas", "matplotlib"},
    }
    for (code, libraries), modules in zip(without.items(), loaded_by(*without), strict=True):
        assert "certcal" in modules, code
        assert not modules & libraries, code
