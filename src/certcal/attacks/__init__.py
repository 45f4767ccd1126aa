"""Attacks on calibration. Importing this room needs torch: ``pip install 'certcal[torch]'``."""

from __future__ import annotations

try:
    from certcal.attacks._acce import AcceAdversary
    from certcal.attacks._ace import Ace
    from certcal.attacks._attacked import Attacked
    from certcal.attacks._brier import BrierAdversary
    from certcal.attacks._ece import EceAdversary
    from certcal.attacks._exact import ExactAdversary
    from certcal.attacks._one_step import OneStepAce
    from certcal.attacks._perturb import perturb, perturb_each
    from certcal.attacks._pgd import Pgd
    from certcal.attacks._protocol import Adversary, AttackedModel, AttackMethod, Found
    from certcal.attacks._smoothadv import SmoothAdv
    from certcal.attacks._target import Target
    from certcal.attacks.ball import Ball
    from certcal.attacks.sphere import sphere_attack
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "certcal.attacks needs torch; install it with: pip install 'certcal[torch]'", name=error.name
    ) from error

__all__ = [
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
    "SmoothAdv",
    "Target",
    "perturb",
    "perturb_each",
    "sphere_attack",
]
