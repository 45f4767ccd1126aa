"""One entry and one objective are a method: everything else follows from them."""

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from torch.nn import functional

import certcal
from certcal import InputError
from certcal.cli import train as command
from certcal.lab.training import (
    METHODS,
    Judged,
    Recipe,
    View,
    constants_of,
    preset_grid,
    preset_sources,
    presets,
    recipe,
    train,
)
from certcal.lab.training.parts import Constants, GaussianNoise, TrainingParts
from certcal.lab.training_methods import Method, method_named
from certcal.lab.training_presets import DATA, PAPERS, PRESETS, Preset
from tests.training.digits import ROOT, data, network

GENTLE = Method(
    "gentle",
    "noise, gently",
    aliases=("mild",),
    needs_noise=True,
    unused=("epsilon", "norm", "attack_steps"),
    usual={"draws": 3},
    counts_epochs=("patience",),
)
PUBLISHED = Preset(
    "doe-2026",
    ("digits",),
    ("gentle",),
    (0.25,),
    {"Table 1": {"softness": 0.3, "patience": 60, "epochs": 120, "batch": 50}},
)


@pytest.fixture
def gentle(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A method that is there for one test: an entry and an objective."""
    monkeypatch.setattr(Constants, "of", dict(Constants.of))

    @dataclass(frozen=True)
    class Gentle(Constants, method="gentle"):
        softness: float = 0.1
        patience: int = 30

        def parts(self, recipe: Recipe) -> TrainingParts:
            return TrainingParts(GaussianNoise(recipe.draws), self)

        def __call__(self, view: View) -> Judged:
            logarithms = view.target.log_probabilities(view.found.inputs)
            return Judged(functional.cross_entropy(logarithms, view.labels, label_smoothing=self.softness), logarithms)

    monkeypatch.setitem(METHODS, "gentle", GENTLE)
    monkeypatch.setattr("certcal.lab.training_presets.PRESETS", [*PRESETS, PUBLISHED])
    yield
    monkeypatch.undo()
    importlib.reload(command)


@pytest.mark.usefixtures("gentle")
def test_an_entry_and_an_objective_are_all_that_a_method_takes():
    assert constants_of("gentle") == {"softness": 0.1, "patience": 30}
    assert presets("mild") == {"doe-2026:digits": (0.25,)}
    assert preset_sources("gentle", "doe-2026")["softness"] == "Table 1"
    made = recipe("gentle", sigma=0.25, preset="doe-2026", epochs=12)
    assert (made.method, made.draws, made.batch, made.own.softness, made.own.patience) == ("gentle", 3, 50, 0.3, 6)
    assert Recipe.from_dict(made.to_dict()) == made
    first, last = train(network(), data(200), recipe("mild", sigma=0.1, epochs=2, batch=50, softness=0.2)).history
    assert last["loss"] < first["loss"]
    for changes, sentence in (
        ({"sigma": 0}, "gentle training needs noise"),
        ({"epsilon": 1.0}, "gentle training has no use for epsilon"),
        ({"hardness": 1}, "'hardness' is no part of a recipe"),
    ):
        with pytest.raises(InputError, match=sentence):
            recipe("gentle", **changes)
    with pytest.raises(InputError, match="'softness' is a constant of gentle only"):
        recipe("gaussian", softness=0.2)
    with pytest.raises(InputError, match=r"pass one of standard, .*, gentle"):
        recipe("rough")
    with pytest.raises(InputError, match="it is not for gentle training"):
        certcal.train("mlp", "digits", "gentle", attack_steps=2)
    shown = importlib.reload(command).train
    assert {"gentle", "mild"} <= {word for each in shown.params if each.name == "method" for word in each.type.choices}
    assert "gentle noise, gently" in " ".join(CliRunner().invoke(shown, ["--help"]).output.split())


def test_every_objective_has_an_entry_and_what_was_published_are_its_numbers():
    assert set(Constants.of) <= set(METHODS)
    known = {each.name for each in fields(Recipe)}
    for name, entry in METHODS.items():
        own = set(constants_of(name))
        assert entry.name == name
        assert set(entry.counts_epochs) <= own
        assert {*entry.usual, *entry.unused} <= known
        assert all(method_named(alias) is entry for alias in entry.aliases)


def test_every_number_of_a_paper_is_in_its_recipe_and_has_a_place():
    names = [(each.paper, data, method) for each in PRESETS for data in each.data for method in each.methods]
    assert len(names) == len(set(names))
    assert {paper for paper, _, _ in names} == set(PAPERS)
    assert {data for _, data, _ in names} == set(DATA)
    for each in PRESETS:
        assert all(place and numbers for place, numbers in each.cited.items())
        for images, method, sigma in product(each.data, each.methods, each.sigmas):
            name, numbers = f"{each.paper}:{images}", each.numbers(sigma)
            assert set(preset_sources(method, name)) == set(numbers)
            made = recipe(method, preset=name, sigma=sigma)
            values = made.to_dict() | (made.to_dict()["own"] or {}) | {"passes": made.batch * made.draws}
            assert {each: values[each] for each in numbers} == {
                each: list(value) if isinstance(value, tuple) else value for each, value in numbers.items()
            }
    changes = [change for each in PRESETS for change in preset_grid(each.methods[0], f"{each.paper}:{each.data[0]}")]
    assert all(recipe("acce-act", **change) for change in changes)


def test_the_page_on_training_has_every_method():
    page = (Path(ROOT) / "docs" / "training.md").read_text("utf-8")
    named = set(re.findall(r"^\| `([a-z-]+)`", page, re.MULTILINE))
    assert named == set(METHODS)
