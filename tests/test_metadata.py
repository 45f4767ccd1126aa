"""What the package says of itself: libraries that it needs, and where it runs."""

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import certcal
from tests.test_architecture import COMPUTED, SOURCE, imports

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
DECLARED = [
    *PROJECT["project"]["dependencies"],
    *(line for extra, lines in PROJECT["project"]["optional-dependencies"].items() if extra != "dev" for line in lines),
]
LEAST = dict(re.fullmatch(r"([a-z-]+)(?:>=([0-9.]+))?(?:\[.*\])?", line).groups() for line in DECLARED)
# Modules whose distribution has another name, or that a user brings along.
CALLED = {
    "PIL": "pillow",
    "google": "protobuf",
    "sklearn": "scikit-learn",
    "mlflow": "mlflow-skinny",
    "pytorch_lightning": "lightning",
}


def test_every_library_that_is_imported_is_declared():
    targets = {each.target for path in SOURCE.rglob("*.py") for each in imports(path, SOURCE)} - {COMPUTED}
    names = {name.partition(".")[0] for name in targets} - sys.stdlib_module_names - {"certcal"}
    assert {"torch", "numba", "sklearn", "onnxscript"} <= names
    assert {name for name in names if CALLED.get(name, name) not in LEAST} == set()


def test_no_library_is_admitted_that_lacks_what_is_promised():
    def least(name):
        return tuple(map(int, LEAST[name].split(".")))

    assert least("ray") >= (2, 52)  # a cluster of one's own asks for a token
    assert least("pillow") >= (13, 0)  # JPEG files do not write outside the decoder's memory
    assert least("onnx") >= (1, 21)  # links do not lead out of a model's folder
    pinned = dict(re.findall(r"^([a-z-]+)==(\d+\.\d+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    for name in ("ray", "pillow", "onnx", "threadpoolctl"):
        assert tuple(map(int, pinned[name].split("."))) >= least(name)


def test_it_is_said_where_it_runs_and_what_is_safe():
    systems = [line for line in PROJECT["project"]["classifiers"] if line.startswith("Operating System")]
    assert systems == ["Operating System :: MacOS", "Operating System :: POSIX :: Linux"]
    assert "/SECURITY.md" in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert len((ROOT / "SECURITY.md").read_text("utf-8").splitlines()) < 90
    assert "SECURITY.md" in (ROOT / "README.md").read_text("utf-8")


def test_every_public_name_is_listed_loaded_and_seen_by_pyright():
    assert {*certcal.__all__} < {*dir(certcal)}
    rooms = {name for name in certcal.__all__ if isinstance(getattr(certcal, name), ModuleType)}
    public = {path.stem for path in (ROOT / "src" / "certcal").iterdir() if not path.name.startswith(("_", "py.typed"))}
    # The command line is called in a shell; verbs, results, predictions and verdicts are named by the package itself.
    of_lab = {"study", "training"}
    assert rooms - of_lab == public - {"cli", "verbs", "result", "predictions", "verdict"}
    assert all(getattr(certcal, name) is import_module(f"certcal.{name}") for name in rooms - of_lab)
    assert all(getattr(certcal, name) is import_module(f"certcal.lab.{name}") for name in of_lab)
    checked = (ROOT / "tests" / "public_names.py").read_text("utf-8")
    assert re.findall(r"^number\(certcal\.(\w+)\)", checked, re.MULTILINE) == certcal.__all__
    assert "tests/public_names.py" in PROJECT["tool"]["pyright"]["include"]


def test_the_citation_has_the_version_and_what_the_readme_links_to_is_shipped():
    assert f"version: {certcal.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    shipped = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    readme = (ROOT / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)#]+)|src=\"([^\"]+)\"", readme)
    targets = {link or image for link, image in links if not (link or image).startswith(("https://", "http://"))}
    for target in targets:
        assert (ROOT / target).exists(), target
        assert f"/{Path(target).parts[0]}" in shipped, target
