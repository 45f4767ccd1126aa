"""Data that is always at hand, and models that learn on the spot."""

from __future__ import annotations

import numpy as np
import pytest

from certcal import InputError
from certcal.data import Inputs, Split, bundled, digits_images, embedded, fashion_mnist, naive_bayes, noisy_network
from tests.data.idx_files import write_clothes


@pytest.fixture(scope="module")
def clothes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clothes")
    write_clothes(folder)
    return fashion_mnist(folder)


def test_naive_bayes_predicts_the_other_part_with_probabilities_that_add_up(clothes):
    made = naive_bayes(clothes)
    assert (len(made.predictions), made.predictions.classes) == (40, 10)
    np.testing.assert_array_equal(made.predictions.labels, clothes.test.labels)
    np.testing.assert_allclose(made.predictions.probabilities.sum(axis=1), 1, rtol=1e-12)
    assert made.predictions.correct.mean() == 1
    assert made.description == "Fashion-MNIST: Gaussian naive Bayes trained on 300 images, measured on 40 others"


def test_naive_bayes_wants_every_class_among_what_it_learns(clothes):
    part = Inputs.from_arrays(np.random.default_rng(0).random((4, 2)), [0, 2, 2, 0])
    with pytest.raises(InputError, match="no sample of class 1; number the classes without gaps"):
        naive_bayes(Split("gap", "A gap", part, part))


def test_a_noisy_network_learns_and_is_the_same_every_time(clothes):
    pixels = clothes.test.inputs.reshape(len(clothes.test), -1)
    first, second = (noisy_network(clothes, epochs=8, batch=32).classifier.predict_proba(pixels) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert np.mean(first.argmax(axis=1) == clothes.test.labels) > 0.8
    other = noisy_network(clothes, epochs=8, batch=32, seed=1).classifier.predict_proba(pixels)
    assert other.tobytes() != first.tobytes()


def test_a_set_that_gets_its_noise_in_parts_is_learned_to_the_end(clothes, monkeypatch):
    monkeypatch.setattr(bundled, "_AT_A_TIME", 70)
    seen: list[int] = []
    made = noisy_network(clothes, epochs=8, batch=32, progress=seen.append)
    pixels = clothes.test.inputs.reshape(len(clothes.test), -1)
    assert np.mean(made.classifier.predict(pixels) == clothes.test.labels) > 0.8
    assert seen == list(range(1, 9))
    assert made.classifier.t_ == 8 * len(clothes.train)


@pytest.mark.parametrize("bad", [{"sigma": 0}, {"epochs": 0}, {"copies": 0}, {"batch": 0}])
def test_settings_of_the_training_that_make_no_sense_are_named(clothes, bad):
    with pytest.raises(InputError, match=f"^{next(iter(bad))} is 0"):
        noisy_network(clothes, **bad)


def test_the_digits_are_images_in_the_unit_interval_with_a_split_that_never_changes():
    digits = digits_images()
    assert (digits.train.inputs.shape, digits.test.inputs.shape) == ((898, 1, 8, 8), (899, 1, 8, 8))
    assert np.abs(np.bincount(digits.train.labels) - np.bincount(digits.test.labels)).max() <= 1
    pixels = np.concatenate([digits.train.inputs, digits.test.inputs])
    assert set(np.unique(pixels * 16)) == set(range(17))
    assert digits.train.fingerprint[:16] == "2dc449ef581ef459"
    assert digits.test.fingerprint[:16] == "0bd506998ee57e21"


def test_the_images_to_test_on_are_those_that_the_embedded_model_predicts():
    np.testing.assert_array_equal(digits_images().test.labels, embedded().predictions.labels)
