"""Perturbed scores as they are served: the noise, its bandwidth in a file, and the bound on what is served."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from certcal import InputError
from certcal.bounds import choose_bandwidth, smooth
from certcal.calibrators import NotFittedError, PerturbedModel, PerturbedScores, load, save
from certcal.interop.sklearn import CalibratedModel
from certcal.models import Model

RNG = np.random.default_rng(0)
S = RNG.random(4_000)
Y = (RNG.random(S.size) < S).astype(int)


@pytest.mark.parametrize(("scale", "given"), [("probability", None), ("logit", 0.2)])
def test_the_bandwidth_is_chosen_kept_and_that_of_noise_and_bound(scale, given, tmp_path):
    noise = PerturbedScores(given, tolerance=0.002, scale=scale, seed=3).fit(S[:1000], Y[:1000])
    assert noise.bandwidth_ == (given or choose_bandwidth(S[:1000], Y[:1000], 0.002).bandwidth)
    save(noise, tmp_path / "noise.json")
    again = load(tmp_path / "noise.json").calibrator
    assert (again.bandwidth_, again.scale) == (noise.bandwidth_, scale)
    first, second = noise.predict(S[:200]), noise.predict(S[:200])
    assert np.array_equal(first, again.predict(S[:200]))  # the same seed, from its beginning
    assert not np.array_equal(first, second)
    found = again.bound(S[1000:], Y[1000:], 0.1)
    assert found == smooth(S[1000:], Y[1000:], noise.bandwidth_, 0.1, perturb=True, scale=scale)
    assert noise.bandwidth_ == found.settings["bandwidth"]


def test_noise_is_that_of_the_kernel_and_nobody_foresees_it():
    noise = PerturbedScores(0.01).fit([0.5], [1])
    served = noise.predict(np.full(20_000, 0.5)) - 0.5
    assert np.abs(served).mean() == pytest.approx(0.01 * 1.1662, rel=0.03)  # E|x| of sech(x)/π is 4·Catalan/π
    assert not np.array_equal(served, PerturbedScores(0.01).fit([0.5], [1]).predict(np.full(20_000, 0.5)) - 0.5)


def test_it_joins_a_classifier_of_scikit_learn_and_any_model():
    x = RNG.normal(size=(400, 2))
    y = (x[:, 0] + 0.3 * RNG.normal(size=400) > 0).astype(int)
    classifier = LogisticRegression().fit(x, y)
    joined = CalibratedModel(classifier, PerturbedScores(0.05), cv="prefit").fit(x, y)
    before = classifier.predict_proba(x)[:, 1]
    assert 0.02 < np.abs(joined.predict_proba(x)[:, 1] - before).mean() < 0.1
    served = PerturbedModel(classifier, joined.calibrator_)
    assert isinstance(served, Model)
    assert np.allclose(served.scores(x), before, atol=1e-6)
    assert np.allclose(served(x).sum(axis=1), 1)
    probe = x[:4].astype(np.float32)
    assert served.fingerprint(probe) == PerturbedModel(classifier, 0.05).fingerprint(probe)
    assert served.fingerprint(probe) != PerturbedModel(classifier, 0.06).fingerprint(probe)
    logits = PerturbedModel(lambda batch: np.array([[1.0, 3.0]] * len(batch)), 1e-9, "logits")
    assert logits(probe)[:, 1] == pytest.approx(1 / (1 + np.exp(-2)), abs=1e-6)


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(NotFittedError, match="call fit first"):
        PerturbedScores().predict([0.5])
    with pytest.raises(NotFittedError):
        PerturbedModel(lambda batch: batch, PerturbedScores(), "logits")
    with pytest.raises(InputError, match="bandwidth is"):
        PerturbedScores(0).fit([0.5], [1])
    with pytest.raises(InputError, match="scale is 'odds'"):
        PerturbedScores(0.1, scale="odds").fit([0.5], [1])
    with pytest.raises(InputError, match="equal weight"):
        PerturbedScores(0.1).fit([0.5, 0.5], [1, 0], [1.0, 2.0])
    with pytest.raises(InputError, match="two columns"):
        PerturbedModel(lambda batch: np.zeros((len(batch), 3)), 0.1, "logits")(np.zeros((2, 1), np.float32))
    save(PerturbedScores(0.1, seed=1).fit([0.5], [1]), tmp_path / "noise.json")
    document = json.loads((tmp_path / "noise.json").read_text())
    for part, value in (("params", {"seed": -1}), ("params", {"bandwidth": "wide"}), ("fitted", {"bandwidth": 0})):
        broken = {**document, "calibrator": {**document["calibrator"], part: value}}
        (tmp_path / "broken.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match="expected a"):
            load(tmp_path / "broken.json")
