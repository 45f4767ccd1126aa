"""Models that learn on the spot, in seconds, to have something to measure and to certify."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from certcal._checks import InputError, positive, whole_number
from certcal._threads import one_blas_thread
from certcal.data._inputs import Inputs
from certcal.data._split import Split
from certcal.predictions import Predictions

# Images that get their noise at a time: an epoch over a large set needs no second copy of it.
_AT_A_TIME = 10_000


@dataclass(frozen=True, eq=False)
class Embedded:
    """Predictions made on the spot, with what they are.

    Attributes
    ----------
    name
        A short name.
    description
        One sentence: the data, the model, the split.
    predictions
        Of inputs that the model has not seen.
    """

    name: str
    description: str
    predictions: Predictions


@dataclass(frozen=True, eq=False)
class EmbeddedNetwork:
    """A network trained on the spot, with what it is and what to try it on.

    Attributes
    ----------
    name
        A short name of the data.
    description
        One sentence: the data, the network, the noise.
    classifier
        A scikit-learn classifier; :func:`certcal.models.wrap` takes it.
    test
        Images that it has not seen.
    sigma
        Standard deviation of the noise it was trained with.
    """

    name: str
    description: str
    classifier: Any
    test: Inputs
    sigma: float


def naive_bayes(split: Split) -> Embedded:
    """Train Gaussian naive Bayes on one part of the data and predict the other.

    Naive Bayes counts correlated pixels as independent evidence, so it is far too sure of itself: a real model whose
    miscalibration is easy to see.

    Parameters
    ----------
    split
        The data.

    Examples
    --------
    >>> from certcal.data import digits_images
    >>> naive_bayes(digits_images()).description
    "scikit-learn's handwritten digits: Gaussian naive Bayes trained on 898 images, measured on 899 others"
    """
    train = split.train.inputs.reshape(len(split.train), -1)
    test = split.test.inputs.reshape(len(split.test), -1).astype(np.float64)  # sums of logarithms need the digits
    return naive_bayes_of(split.name, split.title, train, split.train.labels, test, split.test.labels)


def naive_bayes_of(name: str, title: str, train: Any, train_labels: Any, test: Any, test_labels: Any) -> Embedded:
    """The same for rows of features."""
    absent = np.flatnonzero(np.bincount(train_labels) == 0)
    if absent.size:
        raise InputError(f"the data to train on has no sample of class {absent[0]}; number the classes without gaps")
    with needing_scikit_learn():
        bayes: Any = import_module("sklearn.naive_bayes")
    model = bayes.GaussianNB().fit(train, train_labels)
    text = f"{title}: Gaussian naive Bayes trained on {len(train):,} images, measured on {len(test):,} others"
    return Embedded(name, text, Predictions.from_probabilities(model.predict_proba(test), test_labels))


def noisy_network(
    split: Split,
    sigma: float = 0.25,
    epochs: int = 30,
    seed: int = 0,
    *,
    copies: int = 1,
    batch: int = 128,
    progress: Callable[[int], None] | None = None,
) -> EmbeddedNetwork:
    """Train a network of one hidden layer, of 128 units, with Gaussian noise that is new in every epoch.

    The result is always the same on the same machine. Noise in training is what makes certificates of the smoothed
    classifier worth having.

    Parameters
    ----------
    split
        The data, with images or rows of features.
    sigma
        Standard deviation of the noise, in the units of the inputs.
    epochs
        How long to train.
    seed
        Of the weights and the noise.
    copies
        How often each input is seen in an epoch, each time with other noise.
    batch
        Inputs per step.
    progress
        Called after each epoch with how many are done.

    Examples
    --------
    >>> from certcal.data import digits_images
    >>> network = noisy_network(digits_images(), epochs=1)
    >>> network.classifier.predict_proba(network.test.inputs.reshape(-1, 64)).shape
    (899, 10)
    """
    noise = positive(sigma, "sigma")
    rounds = whole_number(epochs, 1, 1_000_000, "epochs", "pass how long to train, at least 1")
    times = whole_number(copies, 1, 1_000, "copies", "pass how often an input is seen in an epoch, from 1 to 1000")
    step = whole_number(batch, 1, 1 << 24, "batch", "pass a number of inputs per step, at least 1")
    pixels = np.repeat(split.train.inputs.reshape(len(split.train), -1), times, axis=0)
    labels = np.repeat(split.train.labels, times)
    classes = np.arange(int(max(labels.max(), split.test.labels.max())) + 1)
    rng = np.random.default_rng(seed)
    with needing_scikit_learn():
        neural: Any = import_module("sklearn.neural_network")
    parts = np.array_split(np.arange(len(pixels)), -(-len(pixels) // _AT_A_TIME))
    step = min(step, len(parts[-1]))
    network = neural.MLPClassifier((128,), batch_size=step, learning_rate_init=0.002, random_state=seed)
    with one_blas_thread():
        for epoch in range(rounds):
            for rows in parts:
                noisy = np.float32(noise) * rng.standard_normal((rows.size, pixels.shape[1]), dtype=np.float32)
                noisy += pixels[rows[0] : rows[-1] + 1]
                network.partial_fit(noisy, labels[rows], classes=classes)
            if progress is not None:
                progress(epoch + 1)
    text = (
        f"{split.title}: a network of one hidden layer, trained on {len(split.train):,} images with Gaussian noise of "
        f"{noise:g}"
    )
    return EmbeddedNetwork(split.name, text, network, split.test, noise)


@contextmanager
def needing_scikit_learn() -> Generator[None, None, None]:
    """Say how to get scikit-learn where it is missing."""
    try:
        yield
    except ImportError as error:
        raise InputError("the embedded data needs scikit-learn; run: pip install 'certcal[sklearn]'") from error
