"""A flag means one thing in every command, and says when it needs another one."""

import re
from collections import defaultdict
from collections.abc import Iterator

import click
import pytest

from certcal.cli import cli
from certcal.cli.common import COMMON

# What a flag means, as its help must say it wherever it is taken; of any other flag the first clause is the same.
MEANINGS = {
    "--alpha": r"^Failure probability of each (certificate|decision|sample's interval)",
    "--batch": r"^Inputs per (call of the model|optimisation step)",
    "--bins": r"^Numbers? of bins",
    "--bounds": r"^Also bound the (true calibration error|difference)",
    "--by": r"^Also \w+ each group of this column",
    "--column": r"^Column of the",
    "--data": r"^(digits, |Inputs of the run|Where the data are|What the page is about)",
    "--dataset": r"^Data sets?( to review)?\b",
    "--delta": r"^Failure probability of each (population )?bound",
    "--device": r"^Where (the model computes|to train|to compute)",
    "--draws": r"^Noise samples per input",
    "--drawn-only": r"^(Use|Certify) the finished samples of an incomplete run",
    "--epsilon": r"^(Largest|Sizes of the) perturbation",
    "--every": r"^Use samples 0, N, 2N, … of the data",
    "--force": r"^(Replace existing files|Replace an existing file|Measure everything anew, then replace the table)",
    "--kind": r"^Kind of certificate",
    "--label": r"^(True classes|Column of the labels)",
    "--level": r"^Confidence level of",
    "--limit": r"the first N (inputs|samples)",
    "--method": r"^(Bound to plan for|Calibrator|Training method|Search methods)",
    "--metric": r"^(Metric to report|Calibration metric)",
    "--model": r"module:name|^The model of",
    "--norm": r"^Norm of the (perturbation|change)",
    "--outcome": r"^Outcomes of (the|a) binary score",
    "--output": r"^(Also write|Write|Table to write|Folder)",
    "--part": r"part I of N|I-th of N parts",
    "--radius": r"^(Radius|Radii)",
    "--seed": r"^Random seed",
    "--set": r"hyperparameter|[Vv]alue for a field",
    "--sigma": r"standard deviation|Standard deviation|Noise level",
    "--split": r"^Split",
    "--weights": r"^(Weights of the network|Its weights)",
    "-n": r"^Noise samples",
}
MEANINGS["-o"] = MEANINGS["--output"]


def commands(group: click.Group = cli, path: str = "certcal") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def meanings() -> dict[str, dict[str, str]]:
    """By flag, what the help of each command says of it, without its default."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path, command in commands():
        for each in command.params:
            if isinstance(each, click.Option):
                for flag in each.opts:
                    found[flag][path] = re.sub(r" ?Default: .*$", "", each.help or "")
    return found


def test_a_flag_means_the_same_in_every_command():
    for flag, texts in meanings().items():
        if flag in MEANINGS:
            assert all(re.search(MEANINGS[flag], text) for text in texts.values()), (flag, texts)
            assert len(set(texts.values())) > 1, f"{flag} says the same everywhere and needs no pattern"
        else:
            assert len({re.split(r"[;.]", text)[0] for text in texts.values()}) == 1, (flag, texts)


def test_what_is_shown_first_is_there():
    known = {path.removeprefix("certcal "): {o for p in command.params for o in p.opts} for path, command in commands()}
    known["report"] |= known["measure"] | known["certify"]  # which it hands them on to
    for command, flags in COMMON.items():
        assert set(flags.split()) <= known[command], command


RUN, TABLE = ("--model", "m.onnx", "--data", "d.npz"), "scores.csv"
ALONE = [
    (("measure", TABLE, "--model", "m.onnx"), "--model"),
    (("measure", TABLE, "--outputs", "logits"), "--outputs"),
    (("measure", TABLE, "--limit", "3"), "--limit"),
    (("measure", "--model", "m.onnx"), "--data"),
    (("bound", TABLE, "--form", "repaired"), "perturb"),
    (("bound", TABLE, "--scale", "logit"), "perturb or lipschitz"),
    (("bound", TABLE, "--largest-weight", "2"), "the samples have no weights"),
    (("bound", TABLE, "--choose-bandwidth", "0.1", "--perturb", "0.1"), "leave --perturb and -o out"),
    (("bound", TABLE, "--where", "--by", "site"), "leave --by out"),
    (("recalibrate", "fit", TABLE, "--radius", "0.1"), "--radius"),
    (("recalibrate", "fit", TABLE, "--kind", "cdf"), "--kind"),
    (("recalibrate", "fit", TABLE, "--tradeoff", "0.1"), "--tradeoff"),
    (("recalibrate", "fit", TABLE, "--map-bins", "4"), "--map-bins"),
    (("compare", TABLE, TABLE, "--radius", "0.1"), "--radius"),
    (("compare", TABLE, TABLE, "--sigma", "0.1"), "--sigma"),
    (("compare", TABLE, TABLE, "--budget", "100,0.1"), "--budget"),
    (("certify", "intervals.csv", "--kind", "cdf"), "--kind: it is for runs"),
    (("certify", "intervals.csv", "--familywise"), "--familywise: it is for runs"),
    (("certify", "intervals.csv", "--grid"), "--grid: it is for the comparison with ADMM"),
    (("certify", "intervals.csv", "--data", "d.npz"), "--data: it is for runs"),
    (("attack", *RUN, "--epsilon", "0.1", "--draws", "4"), "--draws: it is for the smoothed classifier"),
    (("sample", *RUN, "--sigma", "1", "-o", "run", "--address", "h:1"), "--address is for --engine ray"),
    (("sample", *RUN, "--sigma", "1", "-o", "run", "--gpus", "1"), "--gpus is for --engine ray"),
    (("predict", *RUN, "-o", "p.csv", "--resize", "8"), "--resize"),
    (("predict", *RUN, "-o", "p.csv", "--split", "train"), "split"),
    (("report", TABLE, "--radius", "0.1"), "--radius"),
]


@pytest.mark.parametrize(("words", "said"), ALONE, ids=lambda each: " ".join(each) if isinstance(each, tuple) else "")
def test_an_option_that_needs_another_one_says_so(certcal_command, scores, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "intervals.csv").write_text("lower,upper,correct\n0.5,0.9,1\n0.4,0.8,0\n")
    import numpy as np

    np.savez(tmp_path / "d.npz", inputs=np.zeros((2, 1, 4, 4), np.float32), labels=[0, 1])
    ran = certcal_command(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) <= 2
