"""Data that is always at hand: scikit-learn's handwritten digits and a model that is sure of itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from certcal._checks import InputError, positive
from certcal.data._inputs import Inputs
from certcal.predictions import Predictions


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
        Of the held-out half.
    """

    name: str
    description: str
    predictions: Predictions


def embedded(seed: int = 0) -> Embedded:
    """Train Gaussian naive Bayes on half of scikit-learn's digits and predict the other half.

    Naive Bayes counts 64 correlated pixels as independent evidence, so it is far too sure of itself: a real model
    whose miscalibration is easy to see. Takes a fraction of a second, reads nothing but scikit-learn's own files and
    writes nothing.

    Parameters
    ----------
    seed
        Of the split.

    Examples
    --------
    >>> digits = embedded()
    >>> len(digits.predictions), digits.predictions.classes
    (899, 10)
    """
    train, test, train_digits, test_digits = _halves(seed)
    naive_bayes: Any = import_module("sklearn.naive_bayes")
    model = naive_bayes.GaussianNB().fit(train, train_digits)
    return Embedded(
        name="digits",
        description=(
            f"scikit-learn's handwritten digits: Gaussian naive Bayes trained on {len(train)} images, "
            f"measured on the {len(test)} others"
        ),
        predictions=Predictions.from_probabilities(model.predict_proba(test), test_digits),
    )


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs to train on and others to test on.

    Attributes
    ----------
    name
        A short name.
    description
        One sentence: the data and the split.
    train, test
        The two parts.
    """

    name: str
    description: str
    train: Inputs
    test: Inputs


def digits_images() -> Split:
    """scikit-learn's handwritten digits as images of shape (1, 8, 8) in [0, 1], split in halves, always the same.

    Pixels are k/16 for k from 0 to 16, exactly. Both halves have each digit about equally often, and the second is the
    one that :func:`embedded` predicts by default.

    Examples
    --------
    >>> digits = digits_images()
    >>> digits.train.inputs.shape, digits.test.inputs.shape, float(digits.test.inputs.max())
    ((898, 1, 8, 8), (899, 1, 8, 8), 1.0)
    """
    train, test, train_digits, test_digits = _halves(seed=0)
    parts = [
        Inputs.from_arrays((pixels / 16).reshape(-1, 1, 8, 8), digits)
        for pixels, digits in ((train, train_digits), (test, test_digits))
    ]
    text = (
        f"scikit-learn's handwritten digits: {len(train)} images of 8 by 8 to train on, {len(test)} others to test on"
    )
    return Split("digits", text, *parts)


@dataclass(frozen=True, eq=False)
class EmbeddedNetwork:
    """A network trained on the spot, with what it is and what to try it on.

    Attributes
    ----------
    description
        One sentence: the data, the network, the noise.
    classifier
        A scikit-learn classifier; :func:`certcal.models.wrap` takes it.
    test
        Images that it has not seen.
    sigma
        Standard deviation of the noise it was trained with.
    """

    description: str
    classifier: Any
    test: Inputs
    sigma: float


def embedded_network(
    sigma: float = 0.25, epochs: int = 30, seed: int = 0, progress: Callable[[int], None] | None = None
) -> EmbeddedNetwork:
    """Train a small network on half of scikit-learn's digits with Gaussian noise, new in every epoch.

    It has one hidden layer of 128 units, and sees each image eight times in an epoch. Takes a few seconds on one core,
    always with the same result on the same machine. Noise in training is what makes certificates of the smoothed
    classifier worth having.

    Parameters
    ----------
    sigma
        Standard deviation of the noise, where pixels are from 0 to 1.
    epochs
        How long to train.
    seed
        Of the weights and the noise.
    progress
        Called after each epoch with how many are done.

    Examples
    --------
    >>> network = embedded_network(epochs=1)
    >>> network.classifier.predict_proba(network.test.inputs.reshape(-1, 64)).shape
    (899, 10)
    """
    noise = positive(sigma, "sigma")
    digits = digits_images()
    neural_network: Any = import_module("sklearn.neural_network")
    copies = 8
    pixels = np.repeat(digits.train.inputs.reshape(-1, 64), copies, axis=0)
    labels = np.repeat(digits.train.labels, copies)
    rng = np.random.default_rng(seed)
    network = neural_network.MLPClassifier((128,), batch_size=128, learning_rate_init=0.002, random_state=seed)
    with one_blas_thread():
        for epoch in range(epochs):
            noisy = pixels + np.float32(noise) * rng.standard_normal(pixels.shape, dtype=np.float32)
            network.partial_fit(noisy, labels, classes=np.arange(10))
            if progress is not None:
                progress(epoch + 1)
    text = (
        f"scikit-learn's handwritten digits: a network of one hidden layer, trained on {len(digits.train)} images with "
        f"Gaussian noise of {noise:g}; the {len(digits.test)} others are certified"
    )
    return EmbeddedNetwork(text, network, digits.test, noise)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let matrix products inside use one thread each: small ones are faster so, and their bits are always the same."""
    threads: Any = import_module("threadpoolctl")  # comes with scikit-learn
    return threads.threadpool_limits(limits=1, user_api="blas")


def _halves(seed: int) -> Any:
    """Pixels (0 to 16) and digits of both halves: train, test, digits of train, digits of test."""
    try:
        datasets: Any = import_module("sklearn.datasets")
        selection: Any = import_module("sklearn.model_selection")
    except ImportError as error:
        raise InputError("the embedded data needs scikit-learn; run: pip install 'certcal[sklearn]'") from error
    pixels, digits = datasets.load_digits(return_X_y=True)
    return selection.train_test_split(pixels, digits, test_size=0.5, random_state=seed, stratify=digits)
