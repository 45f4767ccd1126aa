"""Data that is always at hand, and models that learn on the spot."""

import numpy as np
import pytest

from certcal import InputError
from certcal.data import digits_images, embedded, embedded_network


@pytest.mark.parametrize("bad", [{"sigma": 0}, {"epochs": 0}])
def test_settings_of_the_training_that_make_no_sense_are_named(bad):
    with pytest.raises(InputError, match=f"^{next(iter(bad))} is 0"):
        embedded_network(**bad)


def test_who_waits_for_the_network_hears_of_every_epoch():
    seen: list[int] = []
    assert embedded_network(epochs=2, progress=seen.append).classifier.t_ == 2 * 8 * 898
    assert seen == [1, 2]


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
