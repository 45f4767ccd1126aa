"""One result of every verb, and all that is public in it: how it prints, and how its numbers are asked for by name."""

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import getattr_static
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier

import certcal
from certcal._base.told import Named
from certcal.calibrators import Calibrator
from certcal.models.networks import MLP
from certcal.result import Result
from certcal.smoothing.robustness import VoteRecord
from tests.report.attacked import attack_result
from tests.report.recalibrated import run_samples
from tests.report.studied import review

RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, 90)
Y = (RNG.random(90) < P).astype(int)
G = np.where(np.arange(90) % 2, "north", "south")
X = RNG.random((24, 6)).astype(np.float32)
C = (X[:, 0] > 0.5).astype(int)
NET = MLP(6, (4,), classes=2).eval()
VOTES = [VoteRecord.of(RNG.integers(55, 100, 20), 100, [1] * 20, sigma=s, name=f"s{s:g}") for s in (0.5, 1.0)]
# What is no answer: what numbers are made by, and what a user brought.
MADE_BY = "MetricEntry MeanOf IntervalRule BandKind MLP"


@cache
def run(folder: str) -> Any:
    return certcal.sample(NET, (X, C), sigma=0.25, n=60, n0=10, seed=1, out=f"{folder}/run", outputs="logits")


VERBS: dict[str, Callable[[str], Any]] = {
    "measure": lambda _: certcal.measure(Y, P, by=G, bounds=True, bins=[10, 15]),
    "bound": lambda _: certcal.bound(Y, P, by=G),
    "compare": lambda _: certcal.compare(*(certcal.Predictions.from_scores(P**k, Y) for k in (1, 2)), bounds=True),
    "compare votes": lambda _: certcal.compare(*VOTES),
    "recalibrate": lambda _: certcal.recalibrate(Y, P),
    "recalibrate a run": lambda _: certcal.recalibrate(run_samples(60)),
    "predict": lambda _: certcal.predict(NET, (X, C), outputs="logits"),
    "attack": lambda _: attack_result(),
    "verify": lambda _: certcal.verify(DecisionTreeClassifier(max_depth=2).fit(X, C), (X, C), epsilon=0.1),
    "sample": lambda folder: certcal.summarize(run(folder)),
    "certify": lambda folder: certcal.certify(run(folder), radii=[0, 0.05]),
    "decide": lambda _: certcal.decide(NET, (X, C), radius=0.01, sigma=0.25, n=60, n0=10, outputs="logits"),
    "plan": lambda _: certcal.plan(0.3),
    "band": lambda _: certcal.bounds.surrogate(P, Y, 2**-2, perturb=True),
    "train": lambda _: certcal.train(NET, (X, C), "gaussian", sigma=0.25, epochs=1, batch=8, outputs="logits"),
    "study": lambda _: review(),
    "reproduce": lambda folder: certcal.reproduce("acr-theorem1", out=folder),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("results"))


def parts(value: Any) -> Iterator[Any]:
    """What is public in a value."""
    kind: type = type(value)
    names = [name for name in dir(kind) if isinstance(getattr_static(kind, name), property)]
    names += [each.name for each in fields(value)] if is_dataclass(value) else []
    for name in dict.fromkeys(names):
        if not name.startswith("_"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield getattr(value, name, None)


def walk(value: Any, seen: dict[type, Any]) -> None:
    if isinstance(value, dict | MappingProxyType):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for each in value[:3]:
            walk(each, seen)
    if not type(value).__module__.startswith("certcal") or type(value) in seen:
        return
    seen[type(value)] = value
    for each in parts(value):
        walk(each, seen)


@pytest.mark.parametrize("verb", VERBS)
def test_everything_in_a_result_prints_sentences_or_tables_and_has_its_numbers_by_name(verb: str, folder: str) -> None:
    seen: dict[type, Any] = {}
    walk(VERBS[verb](folder), seen)
    assert len(seen) > (0 if verb == "predict" else 2)
    for kind, value in seen.items():
        if kind.__name__ in MADE_BY.split() or isinstance(value, Calibrator | torch.nn.Module):
            continue
        text, kinds = str(value), "|".join(each.__name__ for each in seen if not issubclass(each, Calibrator))
        assert text.strip(), kind
        assert not re.search(rf"\b({kinds})\(|<\w+(\.\w+)* |array\(|object at 0x", text), f"{kind}: {text[:300]}"
        if not isinstance(value, Named):
            assert not isinstance(value, Result), kind
            continue
        names = list(value.keys())
        assert len(set(names)) == len(names)
        assert list(dict(value)) == [name for name, _ in value.items()] == names
        for name in names:
            assert name in value
            assert value.get(name) is not None
        assert "no such number" not in value
        assert value.get("no such number", 7) == 7
        for error in (KeyError, certcal.InputError):
            with pytest.raises(error, match=r"no such number"):
                value["no such number"]


def test_groups_are_a_table_and_numbers_are_found_however_they_are_spelled() -> None:
    m = certcal.measure(Y, P, by=G, metrics=["ece", "brier_score"], bootstrap=0)
    head, north, south = str(m.groups).splitlines()
    assert head.split() == ["name", "n", "by", "ece", "brier_score"]
    values = (f"{m.groups['north'][name].value:.4f}" for name in ("ece", "brier_score"))
    assert north.split() == ["north", "45", "group", *values]
    assert south.startswith("south")
    bounds = certcal.bound(Y, P)
    assert bounds["Bounded variation"] is bounds["bounded_variation"]
    with pytest.raises(certcal.InputError, match=r"there is no 'binnd'; did you mean 'binned'\?"):
        bounds["binnd"]
