"""The second part of ``certcal demo``: a network trained with noise, sampled and certified on the spot."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from certcal._threads import one_blas_thread
from certcal.cli._demo_attacked import DemoAttack, demo_attack
from certcal.cli._demo_recalibrated import DemoRecalibration, demo_recalibration
from certcal.cli._demo_subject import Subject
from certcal.cli._progress import Waiting
from certcal.data import EmbeddedNetwork
from certcal.models import wrap
from certcal.smoothing import sample
from certcal.verbs.certify import Certification, certify

ALPHA = 0.001
BATCH = 2000


@dataclass(frozen=True)
class Certified:
    """What the second part has found.

    Attributes
    ----------
    network
        Trained with noise.
    results
        What is certified at radii in quarters of sigma.
    kinds
        Every kind of certificate at the radius of the headline.
    attack
        What an attack did within that radius; None where there is no torch.
    repaired
        What a map of the confidences does at that radius; None when too few images are certified.
    """

    network: EmbeddedNetwork
    results: Certification
    kinds: Certification
    attack: DemoAttack | None
    repaired: DemoRecalibration | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        compared: list[dict[str, Any]] = []
        for one in self.kinds.lines:
            value = one.worst or one.summary["calibration_error"].worst_all
            entry = {"certificate": one.kind, "radius": one.radius, "mean_width": one.width}
            compared.append({**entry, "calibration_error": value.to_dict()})
        attack = None if self.attack is None else self.attack.to_dict()
        return {
            "attacked": attack,
            "certified": self.results.to_dict(),
            "compared": compared,
            "recalibrated": None if self.repaired is None else self.repaired.to_dict(),
        }


def certified(subject: Subject, keep: str | None, settings: Mapping[str, Any]) -> Certified:
    """Train, draw, certify, attack.

    Parameters
    ----------
    subject
        The data and how to train on it.
    keep
        Where to leave the run, or None to leave nothing.
    settings
        Bins, closed and delta.
    """
    with Waiting() as waiting:
        waiting.stage("training a network with noise", subject.epochs)
        network = subject.train(lambda _: waiting.advance(1))
    place = tempfile.TemporaryDirectory() if keep is None else nullcontext(keep)
    with place as folder:
        run = Path(folder) / "run" if keep is None else Path(folder)
        _draw(subject, network, run)
        with Waiting() as waiting:
            results = certify(run, alpha=ALPHA, progress=waiting, **settings)
    assert results.counts is not None
    kinds = certify(results.counts, radii=[results.at().radius], confidence="all", alpha=ALPHA, **settings)
    description = f"{network.description}. {results.description}"
    named = replace(results, source=f"demo: {network.name}", description=description)
    repaired = demo_recalibration(results, settings)
    return Certified(network, named, kinds, demo_attack(network, results), repaired)


def _draw(subject: Subject, network: EmbeddedNetwork, run: Path) -> None:
    with Waiting(counted="draws") as waiting, one_blas_thread():
        before: list[int] = []

        def progress(finished: int, total: int) -> None:
            if before:
                waiting.advance(finished - before[-1])
            else:
                waiting.stage("drawing noise", total, finished)
            before[:] = [finished]

        sample(
            wrap(network.classifier),
            network.test.inputs,
            network.test.labels,
            sigma=network.sigma,
            n=subject.draws,
            batch=BATCH,
            out=run,
            progress=progress,
            data_source=subject.source,
        )
