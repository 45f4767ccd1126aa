"""Units of inputs: what looks like other units is said, with the remedy, before anything expensive begins."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import certcal
from certcal.data.units import UnitsWarning, feature_doubts, unit_doubts

PIXELS = (np.arange(30 * 64).reshape(30, 1, 8, 8) * 37 % 256).astype(np.float32)
LABELS = np.arange(30) % 2
# Three features whose ranges differ by factors of 100,000.
ROWS = np.random.default_rng(0).random((60, 3)) * [1.0, 90_000.0, 0.1]


def logits(batch):
    middle = batch.reshape(len(batch), -1)[:, 0]
    return np.stack([middle, -middle], axis=1)


@pytest.mark.parametrize(
    ("ends", "sizes", "said"),
    [
        ((0, 1), {"sigma": 0.5, "epsilon": [8 / 255]}, ()),
        ((0, 255), {}, ("pass uint8, or divide by 255",)),
        ((0, 16), {}, ()),
        ((-2.1, 2.6), {}, ()),  # fine for predictions
        ((-2.1, 2.6), {"sigma": 0.5}, ("sigma is in these units, not in pixels",)),
        ((-1, 1), {"sigma": 0.5, "epsilon": [0.1]}, ("sigma and epsilon are in these units",)),
        ((0, 1), {"epsilon": [8, 0.1]}, ("in pixels of 255 it is 8/255",)),
        ((0, 1), {"epsilon": [1.5], "norm": "l2"}, ()),
        ((0, 1), {"epsilon": [14], "norm": "l2"}, ("epsilon 14 is more than the whole range",)),
        ((0, 255), {"sigma": 0.25}, ("divide by 255", "less than a thousandth of the range", "63.75 for pixels")),
        ((0, 1), {"sigma": 300}, ("sigma 300 is more than the whole range",)),
    ],
)
def test_images_in_other_units_are_noticed(ends, sizes, said):
    found = unit_doubts(ends, (3, 8, 8), **sizes)
    assert (found == ()) == (said == ())
    assert all(any(each in one for one in found) for each in said)


def test_one_size_of_noise_for_features_of_other_ranges_is_noticed_and_deviations_are_named():
    large, small = feature_doubts(ROWS, 0.5)
    assert large.startswith("sigma 0.5 is more than the whole range of 1 of 3 features (feature 2 goes from")
    assert "less than a thousandth of the range of 1 of 3 features (feature 1" in small
    assert small.endswith("such as 0.1sd")
    assert feature_doubts(ROWS[:, :1], 0.5) == ()


def test_every_verb_about_a_model_says_so_before_it_begins(tmp_path: Path):
    calls = {
        "pass uint8": lambda: certcal.predict(logits, (PIXELS, LABELS), outputs="logits"),
        "8/255": lambda: certcal.decide(
            logits, (PIXELS / 255, LABELS), sigma=8, radius=0.1, n=20, n0=10, outputs="logits"
        ),
        "of 3 features": lambda: certcal.sample(
            logits, (ROWS, np.arange(60) % 2), sigma=500, n=20, n0=10, out=tmp_path / "run", outputs="logits"
        ),
    }
    for text, call in calls.items():
        with pytest.warns(UnitsWarning, match=text):
            call()


def test_an_attack_names_the_units_and_the_range_stands_in_its_settings():
    from certcal.models.networks import MLP

    network, data = MLP(64, hidden=(8,), classes=2).eval(), (PIXELS.reshape(30, 1, 8, 8) / 255, LABELS)
    with pytest.warns(UnitsWarning, match="epsilon 8 is more than the whole range"):
        found = certcal.attack(network, data, epsilon=8, steps=1, attacks="one-step")
    assert found.conventions["input_range"] == [0.0, 1.0]
    assert "input range" in str(found.report().to_text(full=True)).replace("_", " ")


def test_the_range_of_a_run_stands_on_its_summary_and_on_certificates_with_what_is_odd(tmp_path: Path):
    with pytest.warns(UnitsWarning):
        run = certcal.sample(logits, (PIXELS, LABELS), sigma=0.2, n=40, n0=10, out=tmp_path / "run", outputs="logits")
    for shown in (certcal.summarize(run), certcal.certify(run, radii=[0.01])):
        text = " ".join(shown.report().to_text(full=True).split())
        assert "from 0 to 255; inputs go from 0 to 255, as pixels do" in text
    assert certcal.certify(run, radii=[0.01]).to_dict()["run"]["input_range"] == [0.0, 255.0]


def test_noise_in_standard_deviations_is_noise_on_the_features_divided_by_them(tmp_path: Path):
    def model(rows):
        return np.stack([rows[:, 1] / 45_000 - 1, rows[:, 0] * 2 - 1 + rows[:, 2]], axis=1)

    labels, scale = np.arange(60) % 2, ROWS.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = certcal.sample(
            model, (ROWS, labels), sigma="0.5 sd", n=200, n0=20, out=tmp_path / "run", outputs="logits"
        )
    naive = certcal.sample(
        lambda rows: model(rows * scale.astype(np.float32)),
        ((ROWS / scale), labels),
        sigma=0.5,
        n=200,
        n0=20,
        out=tmp_path / "naive",
        outputs="logits",
    )
    np.testing.assert_array_equal(run.counts().votes, naive.counts().votes)
    assert run.manifest.sigma == 0.5
    assert len(set(run.counts().predicted.tolist())) == 2
    told = " ".join(certcal.certify(run, radii=[0.1]).report().to_text(full=True).split())
    assert "assumed: sigma and radii are in standard deviations of each feature" in told


@pytest.mark.parametrize(
    ("sigma", "said"),
    [("0.5", "'0.5' is not a number"), ("0sd", "0 is not a number above 0"), ("xsd", "is not a number")],
)
def test_a_deviation_that_is_none_is_refused(sigma, said, tmp_path):
    with pytest.raises(certcal.InputError, match=f"sigma: .*{said}"):
        certcal.sample(logits, (ROWS, LABELS), sigma=sigma, out=tmp_path / "run", outputs="logits")


def test_deviations_are_for_tables(tmp_path):
    with pytest.raises(certcal.InputError, match="standard deviations are those of features"):
        certcal.sample(logits, (PIXELS / 255, LABELS), sigma="1sd", out=tmp_path / "run", outputs="logits")
