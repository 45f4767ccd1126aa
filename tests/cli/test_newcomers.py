"""Newcomers, each with what they have: the first line that the documentation leads to gives a number."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from torch.utils.data import DataLoader, TensorDataset

import certcal as cc

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4)).astype(np.float32)
Y = (X[:, 0] + 0.5 * RNG.normal(size=200) > 0).astype(int)
P = 1 / (1 + np.exp(-2.0 * X[:, 0]))
FRAME = pd.DataFrame({"region": ["north", "south"] * 100, "default": Y, "pd": P})
torch.manual_seed(0)
NET = torch.nn.Sequential(torch.nn.Linear(4, 2)).eval()
LOADER = DataLoader(TensorDataset(torch.tensor(X), torch.tensor(Y)), batch_size=64)
FOREST = RandomForestClassifier(5, random_state=0).fit(X, Y)
CALLS: dict[str, Any] = {
    "arrays": lambda: cc.measure(Y, P),
    "a frame": lambda: cc.measure(FRAME, score="pd", outcome="default", by="region"),
    "two columns": lambda: cc.measure(FRAME["default"], FRAME["pd"]),
    "a network and a loader": lambda: cc.measure(NET, LOADER),
    "a forest": lambda: cc.measure(FOREST, X, Y),
}


@pytest.mark.parametrize("who", CALLS)
def test_the_first_line_gives_a_number_and_a_card(who: str) -> None:
    found = CALLS[who]()
    assert 0 <= found["ece"].value < 1
    assert found.answer[0].text.split()[0] in str(found)
    assert "<iframe" in found._repr_html_()


def test_a_table_is_measured_in_a_shell_at_once_or_by_the_command_that_is_printed(
    certcal_command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    FRAME.rename(columns={"default": "y_true", "pd": "y_prob"}).to_csv("predictions.csv", index=False)
    FRAME.to_csv("loans.csv", index=False)
    assert "ECE" in certcal_command("measure", "predictions.csv").out
    refused = certcal_command("measure", "loans.csv")
    _, command = refused.err.strip().split("; run: certcal ")
    assert command == "measure loans.csv --score pd --outcome default"
    assert "ECE" in certcal_command(*command.split()).out
