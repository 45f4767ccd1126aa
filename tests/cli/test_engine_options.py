"""Where a command's work runs: the options, and what is refused."""

import numpy as np
import pytest

from certcal.cli.engine import pop_engine
from certcal.engines import LocalProcesses, RayCluster
from tests.cli.conftest import with_defaults
from tests.engines.ray_for_tests import use_loopback
from tests.smoothing.drawing import HERE, X, Y


@pytest.fixture
def sampled(certcal_command, tmp_path):
    np.savez(tmp_path / "data.npz", inputs=X, labels=Y)
    named = ["--model", f"{HERE}:linear", "--outputs", "logits", "--data", tmp_path / "data.npz", "--sigma", 1]
    return lambda *more: certcal_command("sample", *with_defaults(more, [*named, "-n", 50]))


def engine_of(**given):
    """The engine of these options, which it takes away."""
    values = {"engine": "here", "address": None, "workers": None, "gpus": None, "other": 1, **given}
    engine = pop_engine(values)
    assert values == {"other": 1}
    return engine


def test_the_engine_is_the_one_that_is_asked_for():
    assert engine_of() is None
    assert engine_of(workers=1) is None
    local, ray = engine_of(workers=3), engine_of(engine="ray", address="head:6379", gpus=0.5)
    assert isinstance(local, LocalProcesses)
    assert local.workers == 3
    assert isinstance(ray, RayCluster)
    assert (ray.address, ray.workers, ray.gpus, ray.shares_files) == ("head:6379", None, 0.5, False)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--address", "head:6379"], "--address is for --engine ray; add that, or leave it out"),
        (["--gpus", "1"], "--gpus is for --engine ray; add that, or leave it out"),
        (["--engine", "ray", "--gpus", "-1"], "--gpus: -1 is not a number from 0"),
        (["--engine", "rey"], "did you mean 'ray'?"),
        (["--engine", "ray", "--workers", "0"], "--workers"),
        (["--engine", "ray", "--address", "6379"], "address is '6379'; pass 'host:port'"),
        (["--engine", "ray", "--address", "127.0.0.1:1"], "127.0.0.1:1: no cluster answers there"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_exit_code_two(sampled, tmp_path, monkeypatch, more, sentence):
    use_loopback(monkeypatch)
    ran = sampled("-o", tmp_path / "run", *more)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "run").exists()
