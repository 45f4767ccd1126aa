"""Attacks on calibration. Importing this room needs torch: ``pip install 'certcal[torch]'``."""

from __future__ import annotations

try:
    from certcal.attacks._acce import AcceAdversary
    from certcal.attacks._ace import Ace, OneStepAce, StoppingAce
    from certcal.attacks._attacked import Attacked, outputs_of, perturb, perturb_each
    from certcal.attacks._exact import ExactAdversary
    from certcal.attacks._protocol import Adversary, AttackedModel, AttackMethod, Found, Target
    from certcal.attacks.ascent import Pgd, SmoothAdv
    from certcal.attacks.ball import Ball
    from certcal.attacks.confidence import BrierAdversary, EceAdversary, SignAdversary
    from certcal.attacks.subject import Subject
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "certcal.attacks needs torch; install it with: pip install 'certcal[torch]'", name=error.name
    ) from error

# The adversaries that a network can be trained against, by name.
ADVERSARIES = {
    "smoothadv": SmoothAdv,
    "brier": BrierAdversary,
    "acce": AcceAdversary,
    "ece": EceAdversary,
    "exact": ExactAdversary,
    "sign": SignAdversary,
}

__all__ = [
    "ADVERSARIES",
    "AcceAdversary",
    "Ace",
    "Adversary",
    "AttackMethod",
    "Attacked",
    "AttackedModel",
    "Ball",
    "BrierAdversary",
    "EceAdversary",
    "ExactAdversary",
    "Found",
    "OneStepAce",
    "Pgd",
    "SignAdversary",
    "SmoothAdv",
    "StoppingAce",
    "Subject",
    "Target",
    "outputs_of",
    "perturb",
    "perturb_each",
]
