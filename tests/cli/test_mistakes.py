"""Mistakes on the command line: one sentence in one form, with what was probably meant; and one style of help."""

import re
from itertools import chain

import click
import pytest

from certcal.cli import cli

COMMANDS = [
    ("measure",),
    ("bound",),
    ("certify",),
    ("sample",),
    ("runs",),
    ("runs", "show"),
    ("compare",),
    ("report",),
    ("demo",),
    ("completion",),
]


def command_of(words):
    found = cli
    for word in words:
        found = found.get_command(click.Context(found), word)
    return found


def options_of(words):
    return [each for each in command_of(words).params if isinstance(each, click.Option)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["mesure"], "there is no command 'mesure'; did you mean 'measure'?"),
        (["what"], "there is no command 'what'; the commands are measure, bound, plan, compare, "),
        (["measure", "x.csv", "--bin", "5"], "there is no option '--bin'; did you mean '--bins'?"),
        (["measure", "x.csv", "--zzz"], "there is no option '--zzz'\n"),
        (["measure", "--table", "x.csv"], "there is no option '--table'; did you mean '--title'?"),
        (["measure", "x.csv", "--html", "page.html"], "there is no option '--html'; write -o page.html\n"),
        (["measure", "{scores}", "--confidence", "0.95"], "the level of intervals is an argument of its own (--level)"),
        (["measure", "x.csv", "--bins"], "--bins needs a value\n"),
        (["measure", "x.csv", "--force=yes"], "--force"),
        (["measure", "x.csv", "--closed", "lefft"], "--closed: 'lefft' is not one of 'left', 'right'; did you mean"),
        (
            ["measure", "x.csv", "--metric", "smoth_ece"],
            "--metric: there is no 'smoth_ece'; did you mean 'smooth_ece'?",
        ),
        (
            ["sample", "--model", "net.pth", "--data", "digits", "--sigma", "1", "-o", "x"],
            "net.pth: there is no such file; check the path\n",
        ),
        (["measure", "{scores}", "--by", "sit"], "there is no column 'sit'; did you mean 'site'?"),
        (["measure", "{folder}/score.csv"], "there is no such file; did you mean '{folder}/scores.csv'?"),
        (["certify", "{folder}/score.csv"], "there is no such run or table; did you mean '{folder}/scores.csv'?"),
        (["compare", "{folder}/score.csv"], "there is no such run or log; did you mean '{folder}/scores.csv'?"),
        (["report", "{folder}/score.csv"], "there is no such table, run or log; did you mean '{folder}/scores.csv'?"),
        (["runs", "show", "{folder}/score"], "there is no such run; did you mean '{folder}/scores.csv'?"),
        (["measure", "{folder}"], "this is a folder; give one file, or a run to certcal certify or certcal report\n"),
        (["bound", "{folder}"], "this is a folder; give one file, or a run to certcal certify or certcal report\n"),
        (["report", "{folder}"], "there is no run here (no manifest.json); check the path\n"),
        (["measure", "a.csv", "b.csv"], "unexpected argument 'b.csv'; certcal measure takes TABLE\n"),
        (["sample", "a.csv"], "--model MODEL is missing\n"),
        (
            ["sample", "--model", "m", "--data", "d", "--sigma", "x"],
            "--sigma: 'x' is not a number, such as 0.5",
        ),
        (
            ["bound", "x.csv", "--delta", "95%"],
            "--delta: 0.95 is not a probability of failing below 0.5; did you mean 0.05?",
        ),
        (
            ["bound", "x.csv", "--delta", "5"],
            "--delta: 5 is not a probability of failing below 0.5; did you mean 0.05?",
        ),
        (
            ["bound", "x.csv", "--delta", "0.95"],
            "--delta: 0.95 is not a probability of failing below 0.5; did you",
        ),
        (["bound", "x.csv", "--delta", "1e-308"], "--delta: 1e-308 is too small; give at least 1e-200"),
        (["bound", "x.csv", "--variation", "1e308"], "--variation: 1e+308 is too large; give at most 1e+12"),
        (["bound", "x.csv", "--lipschitz", "1e308"], "--lipschitz: 1e+308 is too large; give at most 1e+12"),
        (
            ["certify", "x.csv", "--alpha", "99.9%"],
            "--alpha: 0.999 is not a probability of failing below",
        ),
        (
            ["certify", "x.csv", "--alpha", "0.5"],
            "--alpha: 0.5 is not a probability of failing below 0.5; pass a smaller one, such as 0.05",
        ),
        (
            ["compare", "x", "--budget", "100,0.99"],
            "--budget: 0.99 is not a probability of failing below 0.5",
        ),
        (
            ["measure", "x.csv", "--level", "0.9999999999999999"],
            "--level: 0.9999999999999999 is too close to 1; give at most 0.9999",
        ),
        (["measure"], "TABLE is missing; give one, or --model and --data\n"),
        (["measure", "x.csv", "--require", "ece = 0.1"], "--require: 'ece = 0.1' has '=', and the relations are <=, <"),
        (["report"], "SOURCE is missing\n"),
        (["measure", "x.csv", "--bootstrap", "5"], "there is no option '--bootstrap'"),
    ],
)
def test_a_mistake_is_a_sentence_with_what_was_meant(certcal_command, scores, arguments, sentence):
    folder = scores.parent
    ran = certcal_command(*(word.format(scores=scores, folder=folder) for word in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("certcal: error: ")
    assert sentence.format(folder=folder) in ran.err
    assert len(ran.err.splitlines()) <= 2
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_examples_in_a_help_are_command_lines_that_parse(words):
    for line, _ in command_of(words).examples:
        for first in re.findall(r"certcal ([a-z]+(?: show)?(?: [^|>)]*)?)", line):
            given = [word.strip("'\"") for word in re.findall(r"'[^']*'|\S+", first)]
            found = cli.get_command(click.Context(cli), given[0])
            assert found is not None
            if given[0] == "runs":
                found, given = found.get_command(click.Context(found), given[1]), given[1:]
            context = found.make_context(given[0], given[1:])
            assert context.params is not None


def leaves(group, *words):
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        yield from leaves(found, *words, name) if isinstance(found, click.Group) else [((*words, name), found)]


def test_an_option_of_one_value_is_refused_when_it_is_given_twice(certcal_command, scores):
    seen = set()
    for words, command in leaves(cli):
        for option in command.params:
            if isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                name = max(option.opts, key=len)
                seen.add(name)
                ran = certcal_command(*words, name, "a", f"{name}=b" if name[:2] == "--" else f"{name}b")
                assert ran.code == 2
                assert ran.err.startswith(f"certcal: error: {name}: it is given 2 times and takes one value; give it")
    assert {"--key", "--level", "--memory", "--title"} <= seen
    # The command that hands options on refuses them as well, and so do fields of a page.
    for repeated in (("--level", "0.9", "--level", "0.8"), ("--about", "owner=a", "--about", "owner=b")):
        ran = certcal_command("report", scores, *repeated)
        assert ran.code == 2
        assert "give it once" in ran.err
    assert certcal_command("measure", scores, "--json", "--json", "--metric", "ece", "--metric", "auroc").code == 0


def test_an_option_has_the_same_metavar_and_kind_in_every_command():
    seen = {}
    for option in chain.from_iterable(map(options_of, COMMANDS)):
        for name in option.opts:
            if name.startswith("--"):
                seen.setdefault(name, set()).add(option.metavar if not option.is_flag else "flag")
    # One number or several, a file or a folder; the two splits of data, or whatever a study calls its own.
    assert seen.pop("--bins") == {"N", "N[,N...]"}
    assert seen.pop("--sigma") == {"S", "S[,S...]"}
    assert seen.pop("--output") == {"FILE", "RUN"}
    assert seen.pop("--split") == {None, "NAME"}
    assert {name: found for name, found in seen.items() if len(found) > 1} == {}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_option_with_a_default_says_it(words):
    for option in options_of(words):
        if isinstance(option.default, str | tuple) and option.default not in ("", ()):
            default = option.default if isinstance(option.default, str) else option.default[0]
            assert f"Default: {default}" in (option.help or ""), option.opts
