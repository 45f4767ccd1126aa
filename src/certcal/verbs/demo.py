"""What does it do? A real model measured, and another attacked, certified and recalibrated, on bundled data."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from certcal._base.checks import InputError
from certcal._base.progress import SILENT, Progress
from certcal._base.threads import one_blas_thread
from certcal.data import (
    Embedded,
    EmbeddedNetwork,
    embedded,
    embedded_network,
    fashion_mnist,
    naive_bayes,
    noisy_network,
)
from certcal.result import Result
from certcal.verbs.certify import ALPHA_OF_RUNS, Certification, CertifySettings, certify
from certcal.verbs.measure import Measurement, MeasureSettings, measure

if TYPE_CHECKING:
    from certcal.verbs.certified_recalibration import CertifiedRecalibration

# Digits: enough draws for radii of three sigma, in a matter of seconds. Fashion-MNIST: what takes about a minute.
EPOCHS = {"digits": 30, "fashion-mnist": 10}
DRAWS = {"digits": 10_000, "fashion-mnist": 4_000}
# Enough for the attack to end where many more would: seconds.
ATTACK_DRAWS, ATTACK_STEPS, _ATTACK_BATCH = 16, 10, 8192
_IMAGES, _TRAINED_AT_ONCE, _DRAWN_AT_ONCE = 1_000, 256, 2000
_FEW = 40  # certified images; with fewer, half of them would say little


@dataclass(frozen=True)
class DemoAttack:
    """What an attack has done to the smoothed classifier's confidences.

    Attributes
    ----------
    name
        Of the attack.
    radius
        The Euclidean length that perturbations have at most.
    before, after
        ECE over all images.
    accuracy, changed
        The accuracy before, and how many predicted labels changed.
    certified_after
        ECE after the attack of the images that are certified at the radius; None when none is.
    """

    name: str
    radius: float
    before: float
    after: float
    accuracy: float
    changed: int
    certified_after: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "attack": self.name,
            "norm": "l2",
            "epsilon": self.radius,
            "draws": ATTACK_DRAWS,
            "steps": ATTACK_STEPS,
            "accuracy": self.accuracy,
            "labels_changed": self.changed,
            "ece_before": self.before,
            "ece_after": self.after,
            "ece_of_certified_after": self.certified_after,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Demo(Result):
    """A story in four parts.

    Attributes
    ----------
    measurement
        A naive Bayes classifier, measured.
    network
        A network trained with noise, and the images it is tried on.
    certification
        What is certified about it at radii in quarters of sigma.
    kinds
        Every kind of certificate at the radius of the headline.
    attack
        What an attack did within that radius; None where there is no torch.
    recalibration
        What a map of the confidences does at that radius; None when too few images are certified.
    """

    view: ClassVar[str] = "certcal.report.views.demo"

    measurement: Measurement
    network: EmbeddedNetwork
    certification: Certification
    kinds: Certification
    attack: DemoAttack | None
    recalibration: CertifiedRecalibration | None

    def __repr__(self) -> str:
        return f"<Demo: {self.measurement!r}, {self.certification!r}>"

    def claims(self) -> Sequence[Any]:
        """What is claimed of the network, then what was measured of the other model."""
        return (*self.certification.claims(), *self.measurement.claims())

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        compared: list[dict[str, Any]] = []
        for one in self.kinds.lines:
            entry = {"certificate": one.kind, "radius": one.radius, "mean_width": one.width}
            compared.append({**entry, "calibration_error": one.headline.to_dict()})
        found = {
            "attacked": None if self.attack is None else self.attack.to_dict(),
            "certified": self.certification.to_dict(),
            "compared": compared,
            "recalibrated": None if self.recalibration is None else self.recalibration.to_dict(),
        }
        return replace(self.measurement, about={**self.measurement.about, **found}).contents()

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """What was measured."""
        return self.measurement.columns()

    @property
    def seeds(self) -> Mapping[str, int]:
        """Of both parts."""
        return {**self.measurement.seeds, **self.certification.seeds}


@dataclass(frozen=True)
class _Subject:
    """One set of data and its two models: predictions of the first, and how to train the second."""

    measured: Embedded
    train: Callable[[Callable[[int], None]], EmbeddedNetwork]
    source: str


def demo(
    data: str = "digits",
    *,
    folder: str | os.PathLike[str] | None = None,
    keep: str | os.PathLike[str] | None = None,
    measuring: MeasureSettings | None = None,
    progress: Progress = SILENT,
) -> Demo:
    """Measure a real model on real data, attack, certify and recalibrate another.

    Parameters
    ----------
    data
        "digits" (bundled with scikit-learn) or "fashion-mnist" (where it is installed).
    folder
        Where the four idx files of Fashion-MNIST are; by default where Debian's package puts them.
    keep
        A folder to keep the draws in; by default they are not kept.
    measuring
        How the first model is measured; bins and closed are those of the certified values, too.
    progress
        Where to report how far the work is.
    """
    asked = MeasureSettings() if measuring is None else measuring
    certifying = CertifySettings(bins=asked.bins[0], closed=asked.closed)
    progress.stage("training")
    about = _subject(data, folder)
    progress.stage("measuring")
    first = about.measured
    measured = measure(first.predictions, settings=asked, source=f"demo: {first.name}")
    measured = replace(measured, description=first.description, about={**measured.about, "columns": None})
    progress.stage("training a network with noise", EPOCHS[data])
    network = about.train(lambda _: progress.advance(1))
    place = tempfile.TemporaryDirectory() if keep is None else nullcontext(keep)
    with place as where:
        run = Path(where) / "run" if keep is None else Path(where)
        _draw(about, network, run, DRAWS[data], progress)
        certified = certify(run, settings=certifying)
    certified = replace(
        certified,
        source=f"demo: {network.name}",
        description=f"{network.description}. {certified.description}",
    )
    assert certified.counts is not None
    one = certified.at()
    kinds = certify(certified.counts, settings=replace(certifying, radii=(one.radius,), confidence=("all",)))
    progress.stage("recalibrating")
    repaired = _recalibrated(certified, certifying)
    progress.stage("attacking")
    return Demo(measured, network, certified, kinds, _attacked(network, certified), repaired)


def _subject(name: str, folder: str | os.PathLike[str] | None) -> _Subject:
    if name not in EPOCHS:
        raise InputError(f"{name!r} is not one of {', '.join(map(repr, EPOCHS))}", argument="data")
    epochs = EPOCHS[name]
    if name == "digits":
        if folder is not None:
            raise InputError("it is for fashion-mnist; digits need none", argument="folder", remedy="leave it out")
        return _Subject(
            embedded(),
            lambda progress: embedded_network(epochs=epochs, progress=progress),
            "scikit-learn's digits",
        )
    try:
        split = fashion_mnist(folder, test=_IMAGES)
    except InputError as error:
        raise InputError(str(error), argument="data") from None
    return _Subject(
        naive_bayes(split),
        lambda progress: noisy_network(split, epochs=epochs, batch=_TRAINED_AT_ONCE, progress=progress),
        f"Fashion-MNIST, the first {len(split.test):,} images to test on",
    )


def _draw(about: _Subject, network: EmbeddedNetwork, run: Path, draws: int, progress: Progress) -> None:
    from certcal.models import wrap
    from certcal.smoothing import sample

    before: list[int] = []

    def advance(finished: int, total: int) -> None:
        if before:
            progress.advance(finished - before[-1])
        else:
            progress.stage("drawing noise", total, finished)
        before[:] = [finished]

    with one_blas_thread():
        sample(
            wrap(network.classifier),
            network.test.inputs,
            network.test.labels,
            sigma=network.sigma,
            n=draws,
            batch=_DRAWN_AT_ONCE,
            out=run,
            progress=advance,
            data_source=about.source,
        )


def _attacked(network: EmbeddedNetwork, certified: Certification) -> DemoAttack | None:
    """An attack on the smoothed classifier within the radius of the headline; None where there is no torch."""
    if find_spec("torch") is None:
        return None
    from certcal.attacks import Ace, perturb
    from certcal.metrics import ece
    from certcal.models import wrap

    one, settings = certified.at(), certified.settings
    assert one.certificates is not None
    assert one.radius is not None
    found = perturb(
        wrap(network.classifier),
        network.test.inputs,
        network.test.labels,
        Ace(steps=ATTACK_STEPS),
        epsilon=one.radius,
        norm="l2",
        box=None,
        sigma=network.sigma,
        draws=ATTACK_DRAWS,
        batch=_ATTACK_BATCH,
    )

    def error(predictions: Any, rows: Any = slice(None)) -> float:
        pair = predictions.confidence[rows], predictions.correct[rows]
        return ece(*pair, settings.bins, closed=settings.closed)

    rows = one.certificates.certified
    return DemoAttack(
        found.name,
        one.radius,
        error(found.clean_predictions),
        error(found.predictions),
        found.clean_accuracy,
        found.changed,
        error(found.predictions, rows) if rows.any() else None,
    )


def _recalibrated(certified: Certification, settings: CertifySettings) -> CertifiedRecalibration | None:
    """The map that trades the worst case off against no attack evenly; None when too few images are certified."""
    from certcal.calibrators import CertifiedSamples
    from certcal.verbs.recalibrate import recalibrate

    one = certified.at().certificates
    assert one is not None
    assert certified.counts is not None
    if one.n_certified < _FEW:
        return None
    samples = CertifiedSamples.from_counts(
        certified.counts, [one.radius], alpha=ALPHA_OF_RUNS, confidence=one.confidence, familywise=one.familywise
    )
    found: Any = recalibrate(samples, tradeoffs=(), **settings.binning)
    return found
