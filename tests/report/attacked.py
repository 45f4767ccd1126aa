"""Results of attacks as ``certcal attack`` would find them, without a model: confidences that somebody has moved."""

from __future__ import annotations

from typing import Any

import numpy as np

import certcal
from certcal.metrics import reliability
from certcal.report.results import AttackedResults, AttackLine, Part

METRICS = ("accuracy", "mean_confidence", "ece", "equal_mass_ece", "top_label_brier_score", "nll")
ATTACKS = {
    "minus-true": ("(-1, y)-ACE", "true class, up", 0.2),
    "plus-true": ("(+1, y)-ACE", "true class, down", -1.0),
    "minus-predicted": ("(-1, ŷ)-ACE", "prediction, up", 0.3),
    "plus-predicted": ("(+1, ŷ)-ACE", "prediction, down", -0.8),
}


def attacked_results(source: str = "net.safetensors on test.npz", n: int = 300, bins: int = 15, **changes: Any) -> Any:
    """Two distances, four attacks each, the stronger the farther; every prediction stays."""
    rng = np.random.default_rng(4)
    confidence = rng.beta(9, 1, n).clip(0.5, 1.0)
    labels = (rng.random(n) > 0.92).astype(int)

    def part(name: str, shift: float) -> Part:
        top = (confidence + shift).clip(0.5, 1.0)
        predictions = certcal.Predictions.from_probabilities(np.stack([top, 1 - top], axis=1), labels)
        found = certcal.measure(predictions, bins=(bins,), metrics=METRICS)
        return Part(name, n, found.rows, reliability(predictions.confidence, predictions.correct, bins=bins))

    lines = [
        AttackLine(key, name, aim, epsilon, text, part(name, sign * 8 * epsilon), n - 5)
        for text, epsilon in (("2/255", 2 / 255), ("8/255", 8 / 255))
        for key, (name, aim, sign) in ATTACKS.items()
    ]
    settings: dict[str, Any] = {
        "source": source,
        "about": {"model": "a network", "data": "test.npz", "n": n},
        "description": f"{n} samples of shape 1×8×8, values from 0 to 1",
        "clean": part("unattacked", 0.0),
        "lines": tuple(lines),
        "conventions": {"norm": "linf", "sigma": None, "seed": 0, "bins": bins, "in_words": ["It moves inputs."]},
        "claims": ("It went up.", "No predicted label changed."),
        "notes": "y is the true class.",
    }
    return AttackedResults(**{**settings, **changes})
