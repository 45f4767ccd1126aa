"""``certcal train``: a network whose confidences withstand attacks."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from certcal._training_methods import ALIASES, METHODS
from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import MOST_SEED, OUTPUT, json_option, number, option, quiet_option
from certcal.cli._parse import Choice, optional, parse_box, parse_epsilon, parse_pairs, parse_positive

_WHAT, _AGAINST, _LEARNING, _RUNNING = "What is trained", "Noise and adversaries", "Learning", "Running"
_MOST = 10_000_000


class _Command(ExampleCommand):
    """A command whose help says what each method is."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Methods, by what they train on"):
            formatter.write_dl(list(METHODS.items()))
        super().format_options(ctx, formatter)


@click.command(
    cls=_Command,
    examples=(
        (
            "certcal train --method gaussian --data digits --model mlp --sigma 0.25 --epochs 20 -o trained",
            "train with noise",
        ),
        ("certcal train --method at --data fashion-mnist --model lenet --sigma 0.5 --epsilon 0.5 -o at", "adversaries"),
        (
            "certcal train --method exact-act --data fashion-mnist --model lenet --from at/model.safetensors "
            "--sigma 0.5 --epsilon 0.5 -o act",
            "fine-tune it against adversaries of its calibration",
        ),
        (
            "certcal train --method acr --data fashion-mnist --model lenet --sigma 0.5 --epochs 15 --bias -o acr",
            "easy samples first, and a look at which samples move the weights",
        ),
        ("certcal train --method at --data cifar --model mine:Net --workers 2 --pieces 2 -o at", "a network of yours"),
        ("certcal train --method at --data cifar --model resnet20 --set weight_decay=0.0005 -o at", "other numbers"),
    ),
)
@option(
    _WHAT,
    "--method",
    required=True,
    metavar="METHOD",
    type=Choice([*METHODS, *ALIASES], case_sensitive=False),
    help="One of the above.",
)
@option(
    _WHAT,
    "--data",
    required=True,
    metavar="DATA",
    type=click.Path(),
    help="digits, fashion-mnist, a folder of images (idx, CIFAR, one folder per class), npz, or a table with a label.",
)
@option(
    _WHAT,
    "--model",
    required=True,
    metavar="MODEL",
    help="lenet, resnet20, resnet110, preact18, mlp, or module:name of what makes a torch module.",
)
@option(
    _WHAT,
    "--from",
    "start",
    metavar="WEIGHTS",
    type=click.Path(),
    help="Fine-tune: begin with these weights (.safetensors), and the schedule for it.",
)
@option(
    _WHAT,
    "--preset",
    metavar="NAME",
    help="Constants that were published for a data set, such as cifar-10, at this sigma.",
)
@number(_WHAT, "--limit", least=1, most=10**9, metavar="N", help="Only the first N samples to train on. Default: all.")
@option(
    _AGAINST,
    "--sigma",
    callback=optional(partial(parse_positive, zero=True)),
    metavar="S",
    help="Of the noise; 0 for adversaries of the network itself. Default: 0.5.",
)
@option(
    _AGAINST,
    "--epsilon",
    callback=optional(parse_epsilon),
    metavar="E",
    help="How far adversaries may move an input, such as 0.5 or 8/255. Default: 1.",
)
@option(_AGAINST, "--norm", type=Choice(["l2", "linf"]), help="How that is measured. Default: l2.")
@option(
    _AGAINST,
    "--box",
    callback=parse_box,
    default="auto",
    metavar="LOW,HIGH",
    help="Values that an input may have, or none. Default: 0,1 where all are pixels k/255, otherwise none.",
)
@number(
    _AGAINST,
    "--draws",
    least=1,
    most=100_000,
    metavar="N",
    help="Of noise per input. Default: 1 for gaussian, 2 with adversaries, or as published.",
)
@number(
    _AGAINST,
    "--attack-steps",
    least=1,
    most=100_000,
    metavar="N",
    help="Of adversaries. Default: 2, or 4 to fine-tune, or as published.",
)
@number(_LEARNING, "--epochs", least=1, most=100_000, metavar="N", help="Default: 150, or 10 to fine-tune.")
@number(
    _LEARNING, "--batch", least=1, most=_MOST, metavar="N", help="Inputs per step. Default: 256; acce and exact: 2048."
)
@number(_LEARNING, "--pieces", least=1, most=65_536, metavar="N", help="To cut a batch into, for memory or workers.")
@option(
    _LEARNING,
    "--learning-rate",
    callback=optional(parse_positive),
    metavar="R",
    help="Default: 0.1, or 0.01 to fine-tune.",
)
@option(_LEARNING, "--precision", type=Choice(["float32", "bfloat16"]), help="Default: float32.")
@number(_LEARNING, "--seed", least=0, most=MOST_SEED, default="0", metavar="N", help="Of all chance. Default: 0.")
@option(
    _LEARNING,
    "--set",
    "others",
    callback=parse_pairs,
    multiple=True,
    metavar="NAME=VALUE",
    help="Another number of the recipe or constant of the method, such as momentum=0.8, milestones=4,8 or weight=6; "
    "repeatable.",
)
@number(_RUNNING, "--workers", least=1, most=1024, default="1", metavar="N", help="Processes. Default: 1.")
@number(
    OUTPUT,
    "--bias",
    least=1,
    most=_MOST,
    is_flag=False,
    flag_value="500",
    metavar="[N]",
    help="Compare gradients of N easy and hard training samples; 500 if N is not said.",
)
@json_option
@option(
    OUTPUT,
    "-o",
    "--output",
    required=True,
    metavar="FOLDER",
    type=click.Path(),
    help="Where checkpoints, the log and the model go, new or begun before.",
)
@option(OUTPUT, "--events", metavar="FOLDER", type=click.Path(), help="Also write the log for TensorBoard.")
@quiet_option
def train(
    method: str,
    data: str,
    model: str,
    output: str,
    events: str | None,
    workers: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Train MODEL on DATA by METHOD, into FOLDER.

    The same command continues a training that was interrupted, to the same weights; anything else in the same folder
    is refused. What is not said has the numbers of the papers. In the end FOLDER holds model.safetensors for certcal
    sample, certcal attack and --from (of a network of your own weights.safetensors, for --weights and --from), and
    metrics.jsonl, a line per epoch.
    """
    from certcal.cli._show_trained import show_trained, to_json
    from certcal.cli._sources import needing_torch
    from certcal.cli._training import Asked, learn, write_events

    needing_torch("training and attacks")
    asked = Asked(method, data, model, output, workers, **options)
    trained, bias = learn(asked, events)
    if events is not None:
        write_events(trained, events)
    if as_json:
        click.echo(to_json(trained, bias), nl=False)
    else:
        show_trained(trained, asked, bias)
