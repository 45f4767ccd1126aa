"""Scripts behind the numbers of the documentation: each can still be imported, and the driver's cost be measured."""

import importlib
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@pytest.fixture(autouse=True)
def beside_the_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXPERIMENTS)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXPERIMENTS.glob("*.py")))
def test_a_script_finds_what_it_imports(name: str) -> None:
    assert importlib.import_module(name).__doc__


def test_the_driver_writes_shards_as_a_run_does(tmp_path: Path) -> None:
    cost = importlib.import_module("scale").of_the_driver(tmp_path, 10_000)
    assert cost.shard > 0
    assert len(list((tmp_path / "shards").rglob("*.parquet"))) == 40
    assert cost.bytes_per_sample > 100
