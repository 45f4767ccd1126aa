"""What ``certcal demo`` is about: the data, the model that is measured, and the network that is certified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from certcal._checks import InputError
from certcal.data import (
    Embedded,
    EmbeddedNetwork,
    embedded,
    embedded_network,
    fashion_mnist,
    naive_bayes,
    noisy_network,
)

DIGITS, FASHION = "digits", "fashion-mnist"

# Digits: enough draws for radii of three sigma, in a matter of seconds. Fashion-MNIST: what takes about a minute.
EPOCHS = {DIGITS: 30, FASHION: 10}
DRAWS = {DIGITS: 10_000, FASHION: 4_000}
_IMAGES = 1_000
_BATCH = 256


@dataclass(frozen=True)
class Subject:
    """One set of data and its two models.

    Attributes
    ----------
    measured
        Predictions of the first one.
    train
        Trains the second, calling what it is given after each epoch.
    epochs, draws
        How long it learns, and how much noise is drawn around each image.
    source
        The data's name in the record of the run.
    """

    measured: Embedded
    train: Callable[[Callable[[int], None]], EmbeddedNetwork]
    epochs: int
    draws: int
    source: str


def subject(name: str, folder: str | None) -> Subject:
    """Read the data and make the predictions of the first model.

    Parameters
    ----------
    name
        ``DIGITS`` or ``FASHION``.
    folder
        Where Fashion-MNIST is, if it is not installed.
    """
    epochs, draws = EPOCHS[name], DRAWS[name]
    if name == DIGITS:
        return Subject(
            embedded(),
            lambda progress: embedded_network(epochs=epochs, progress=progress),
            epochs,
            draws,
            "scikit-learn's digits",
        )
    try:
        split = fashion_mnist(folder, test=_IMAGES)
    except InputError as error:
        raise InputError(f"--data {name}: {error}{'' if folder else ' with --data-folder'}") from None
    return Subject(
        naive_bayes(split),
        lambda progress: noisy_network(split, epochs=epochs, batch=_BATCH, progress=progress),
        epochs,
        draws,
        f"Fashion-MNIST, the first {len(split.test):,} images to test on",
    )
