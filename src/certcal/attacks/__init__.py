"""Attacks on calibration. Importing this room needs torch: ``pip install 'certcal[torch]'``."""

from __future__ import annotations

try:
    from certcal.attacks._acce import AcceAdversary
    from certcal.attacks._ace import ace
    from certcal.attacks._attacked import Attacked
    from certcal.attacks._ball import Ball
    from certcal.attacks._brier import BrierAdversary
    from certcal.attacks._ece import EceAdversary
    from certcal.attacks._exact import ExactAdversary
    from certcal.attacks._one_step import one_step_ace
    from certcal.attacks._pgd import pgd
    from certcal.attacks._protocol import Adversary, Found
    from certcal.attacks._smoothadv import SmoothAdv
    from certcal.attacks._sphere import sphere_attack
    from certcal.attacks._table import ACE_ATTACKS, ATTACKS, AttackRow, AttackTable, attack_table
    from certcal.attacks._target import Target
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "certcal.attacks needs torch; install it with: pip install 'certcal[torch]'", name=error.name
    ) from error

__all__ = [
    "ACE_ATTACKS",
    "ATTACKS",
    "AcceAdversary",
    "Adversary",
    "AttackRow",
    "AttackTable",
    "Attacked",
    "Ball",
    "BrierAdversary",
    "EceAdversary",
    "ExactAdversary",
    "Found",
    "SmoothAdv",
    "Target",
    "ace",
    "attack_table",
    "one_step_ace",
    "pgd",
    "sphere_attack",
]
