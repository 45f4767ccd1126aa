"""Does ACCE-ACT's gain need ADMM? The plan for it, and how networks of several seeds are compared."""

from statistics import fmean, stdev

import pytest

from certcal.lab.plans.certified_layouts import CertifiedNetwork
from certcal.lab.plans.outcome import MISSING
from certcal.lab.plans.paired import paired_over_seeds
from certcal.lab.plans.plan import open_plan


def test_differences_are_paired_by_seed_and_averaged_over_baselines() -> None:
    plan = open_plan("cc-sign-ablation")
    gains = [0.01, 0.02, 0.06, 0.03, 0.03]
    networks: list[CertifiedNetwork] = []
    for place, baseline in enumerate(plan.baselines):
        for row in ("AT", "ACCE-ACT", "Sign-ACT"):
            for seed in range(1 if row == "AT" else 5):
                exact = 0.2 + 0.1 * seed + 0.2 * place + (gains[seed] if row == "Sign-ACT" else 0.0)
                line = {"accuracy": 0.5, "exact": exact, "recalibrated": 0.1}
                networks.append(CertifiedNetwork(row, "", baseline, "cdf", None, [line, line, None], {}))
    rows = paired_over_seeds(plan, networks).tables[0].rows
    assert rows["exact | AT"] == [pytest.approx(30.0), pytest.approx(30.0), MISSING]
    assert rows["exact | ACCE-ACT"][0] == pytest.approx(50.0)
    half = 2.7764451 * stdev(gains) / 5**0.5  # Student's quantile of four degrees of freedom
    low, high = 100 * (fmean(gains) - half), 100 * (fmean(gains) + half)
    assert rows["exact − ACCE-ACT | Sign-ACT"] == [f"3.00 [{low:.2f}, {high:.2f}]"] * 2 + [MISSING]
    assert rows["recalibrated − ACCE-ACT | Sign-ACT"][0] == "0.00 [0.00, 0.00]"
    assert rows["exact − ACCE-ACT | Brier-ACT"] == [MISSING] * 3
