"""Newcomers, each with what they have: the first line that the documentation leads to gives a number."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

import certcal as cc
from certcal.data.units import UnitsWarning

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


@pytest.mark.parametrize(
    ("names", "command"),
    [
        (["p_no", "p_yes", "label"], "--probabilities p_no,p_yes --label label"),
        (["no", "yes", "what was it"], "--probabilities no,yes --label 'what was it'"),
    ],
)
def test_columns_that_sum_to_one_are_classes(names, command, certcal_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(dict(zip(names, (1 - P, P, np.where(Y == 1, "yes", "no")), strict=True))).to_csv("p.csv", index=False)
    refused = certcal_command("measure", "p.csv").err.strip()
    assert refused.endswith(
        f"sum to 1 in every row; name them as probabilities (--probabilities); run: certcal measure p.csv {command}"
    )
    assert "ECE" in certcal_command("measure", "p.csv", *shlex.split(command)).out


def test_a_command_to_copy_replaces_what_was_wrong_and_never_takes_a_row_for_names(
    certcal_command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("loans.csv", index=False)
    swapped = certcal_command("measure", "loans.csv", "--score=default", "--outcome", "pd", "--bins", "9").err
    assert swapped.strip().endswith("; run: certcal measure loans.csv --bins 9 --score pd --outcome default")
    FRAME[["pd", "default"]].to_csv("bare.csv", index=False, header=False)
    bare = certcal_command("measure", "bare.csv").err.strip()
    assert bare.endswith("(these look like data: does the file have a header line?)")
    assert "run:" in certcal_command("measure", _named_by_number(tmp_path)).err


def _named_by_number(folder: Path) -> str:
    pd.DataFrame(np.column_stack([Y, P])).to_csv(folder / "numbered.csv", index=False)
    return "numbered.csv"


def test_a_network_is_predicted_attacked_sampled_and_certified_without_saying_what_it_returns(tmp_path: Path) -> None:
    assert cc.predict(NET, LOADER).kind == "logits"
    assert cc.attack(NET, LOADER, epsilon=0.1, steps=2).n == len(Y)
    run = cc.sample(NET, LOADER, sigma=0.5, n=100, n0=10, limit=20, out=tmp_path / "run")
    assert "ECE" in str(cc.certify(run, radii=0.1))
    assert cc.decide(NET, LOADER, sigma=0.5, radius=0.1, n=200, limit=5).decision.size == 5
    softmax = torch.nn.Sequential(NET, torch.nn.Softmax(1)).eval()
    said = (
        r"^outputs: what the model returns lies between 0 and 1, as probabilities do; give 'probabilities' if they are"
    )
    for call in (cc.predict, lambda *given: cc.attack(*given, epsilon=0.1)):
        with pytest.raises(cc.InputError, match=said):
            call(softmax, LOADER)
    assert cc.attack(softmax, LOADER, epsilon=0.1, steps=2, outputs="probabilities").n == len(Y)
    undefined = torch.nn.Sequential(NET, torch.nn.Threshold(torch.inf, torch.nan)).eval()
    with pytest.raises(cc.InputError, match=r"logits\[0, 0\] is nan"):
        cc.predict(undefined, LOADER)


def test_a_device_that_is_not_there_is_refused_also_where_outputs_are_not_declared() -> None:
    with pytest.raises(cc.InputError, match=r"^device: there is no 'gpu' here"):
        cc.predict(NET, LOADER, device="gpu")


def test_pixels_up_to_255_are_doubted_wherever_a_model_sees_them() -> None:
    images = np.random.default_rng(0).uniform(0, 255, (40, 1, 2, 2)).astype(np.float32)
    with pytest.warns(UnitsWarning, match="pass uint8, or divide by 255"):
        cc.measure(torch.nn.Sequential(torch.nn.Flatten(), NET).eval(), (images, Y[:40]))


def test_a_forest_is_recalibrated_and_verified() -> None:
    found = cc.recalibrate(FOREST, X, Y)
    assert found.apply({"score": P}).written == len(P)
    with pytest.raises(cc.InputError, match=r"^data: scores have no names here; pass \{'score': scores\}, or "):
        found.apply(P)
    with pytest.raises(cc.InputError, match=r"; pass one number from 0 to 1, or several to transform$"):
        found.map(P)
    assert cc.verify(FOREST, (X, Y), epsilon=0.1).answer
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X, Y)
    for model, data, line in (
        (FOREST, [X], r"^data: features stand beside their labels; pass both, as \(X, y\)$"),
        (FOREST, [X, Y], r"^inputs and labels are one argument; write certcal\.verify\(model, \(X, y\)\)$"),
        (pipe, [(X, Y)], r"verify\(pipe\[-1\], \(pipe\[:-1\]\.transform\(X\), y\)\)$"),
    ):
        with pytest.raises(cc.InputError, match=line):
            cc.verify(model, *data, epsilon=0.1)
    assert cc.verify(pipe[-1], (pipe[:-1].transform(X), Y), epsilon=0.1).answer


@pytest.mark.parametrize("verb", [cc.predict, cc.attack, cc.sample])
def test_inputs_and_labels_are_one_argument(verb: Any) -> None:
    with pytest.raises(cc.InputError, match=rf"one argument: {verb.__name__}\(model, \(X, y\)\)$"):
        verb(NET, X, Y)
    with pytest.raises(cc.InputError, match="'8/255' is not a number; write 8/255 without quotes"):
        cc.attack(NET, LOADER, epsilon="8/255")


def test_groups_of_a_frame_are_named() -> None:
    with pytest.raises(cc.InputError, match=r"^by: groups of a table are columns of it.*; write by='region'$"):
        cc.measure(FRAME, score="pd", outcome="default", by=FRAME["region"])


def test_at_a_prompt_and_in_a_cell_groups_are_a_table_and_answers_sentences() -> None:
    found = CALLS["a frame"]()
    assert repr(found.groups) == str(found.groups)
    assert repr(found.groups).splitlines()[1].startswith("north ")
    assert repr(found.answer) == str(found.answer)
    assert "by this sample." in repr(cc.measure([1], [0.7]).answer)
