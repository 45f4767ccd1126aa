"""``certcal attack``: how far an attacker can move the confidences while every prediction stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import (
    MOST_SEED,
    OUTPUT,
    bin_count_option,
    file_options,
    model_options,
    number,
    option,
)
from certcal.cli._parse import Choice, optional, parse_box, parse_epsilons, parse_positive, parse_words

_WHAT, _ATTACKING, _SMOOTHED = "What is attacked", "Attacking", "Attacking the smoothed classifier"
_ATTACKS = ("minus-true", "plus-true", "minus-predicted", "plus-predicted", "one-step")


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal attack --model net.safetensors --data test.npz --epsilon 8/255", "no pixel moves further"),
        ("certcal attack --model net.safetensors --data images --epsilon 2/255,8/255 -o attacks.html", "and a page"),
        (
            "certcal attack --model net.safetensors --data images --epsilon 0.5 --norm l2 --sigma 0.25",
            "the smoothed classifier",
        ),
        ("certcal attack --model mine:net --outputs logits --data t.npz --epsilon 0.1", "a torch module of yours"),
        (
            "certcal attack --model mine:Net --weights at/weights.safetensors --data t.npz --epsilon 0.1",
            "a network of yours that was trained",
        ),
        (
            "certcal attack --model n.safetensors --data t.npz --epsilon 8/255 --save found",
            "keep the predictions; then:",
        ),
        ("certcal measure found/plus-true-8-255.parquet", "all metrics of what an attack has made of them"),
    ),
)
@model_options(_WHAT)
@option(_WHAT, "--part", type=Choice(["train", "test"]), help="Of data in two parts. Default: test.")
@number(_WHAT, "--limit", least=1, most=10**9, metavar="N", help="Only the first N samples. Default: all.")
@option(
    _ATTACKING,
    "--epsilon",
    "epsilons",
    callback=parse_epsilons,
    multiple=True,
    required=True,
    metavar="E[,E...]",
    help="How far an input may be moved, such as 0.5 or 8/255; repeatable.",
)
@option(
    _ATTACKING,
    "--norm",
    type=Choice(["linf", "l2"]),
    default="linf",
    help="How that is measured: by the largest change of a value, or the Euclidean length. Default: linf.",
)
@option(
    _ATTACKING,
    "--attacks",
    callback=parse_words(_ATTACKS),
    default=",".join(_ATTACKS[:4]),
    metavar="NAME[,NAME...]",
    help="minus-true, plus-true, minus-predicted, plus-predicted (more or less confidence in the true or the "
    "predicted class) or one-step. Default: the first four.",
)
@number(_ATTACKING, "--steps", least=1, most=1_000_000, default="100", metavar="N", help="At most. Default: 100.")
@option(
    _ATTACKING,
    "--box",
    callback=parse_box,
    default="auto",
    metavar="LOW,HIGH",
    help="Values that an input may have, or none. Default: 0,1 where all are pixels k/255, otherwise none.",
)
@number(_ATTACKING, "--seed", least=0, most=MOST_SEED, default="0", metavar="N", help="Of noise. Default: 0.")
@number(_ATTACKING, "--batch", least=1, most=1 << 24, default="500", metavar="N", help="Rows per call. Default: 500.")
@number(
    _ATTACKING,
    "--threads",
    least=1,
    most=4096,
    default="1",
    metavar="N",
    help="Of torch. More than one may change the last digits. Default: 1.",
)
@bin_count_option(_ATTACKING)
@option(
    _SMOOTHED,
    "--sigma",
    callback=optional(parse_positive),
    metavar="S",
    help="Attack the mean over Gaussian noise of this standard deviation. Default: the model itself.",
)
@number(_SMOOTHED, "--draws", least=1, most=1 << 20, metavar="N", help="Draws of noise per input. Default: 16.")
@option(
    OUTPUT,
    "--save",
    metavar="FOLDER",
    type=click.Path(),
    help="Keep predictions before and after each attack, as tables for certcal measure.",
)
@option(OUTPUT, "--save-inputs", is_flag=True, help="Keep the perturbed inputs there too (.npz).")
@option(OUTPUT, "--no-diagram", is_flag=True, help="Leave out the reliability diagrams.")
@file_options("Also write a page (.html), diagrams (.png .svg .pdf) or numbers (.json .csv)", "-o and --save")
def attack(
    model: str,
    weights: str | None,
    kind: Any,
    data: str,
    part: Any,
    limit: int | None,
    sigma: float | None,
    draws: int | None,
    save: str | None,
    save_inputs: bool,
    no_diagram: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Move the confidences of MODEL on DATA as far as attacks can, while every predicted label stays.

    Each of the four (eta, omega)-ACE attacks perturbs every input by at most epsilon so that the model becomes less or
    more sure of the true or the predicted class. The accuracy stays what it was, which is verified; the calibration
    error may not. What an attack reaches is possible; what no attack can exceed is for certcal certify to say.

    MODEL needs gradients: a torch module by its name, perhaps with --weights, or a .safetensors file. An ONNX file has
    none.
    """
    from certcal._checks import InputError
    from certcal.cli._attacking import Question, attacked, results_of
    from certcal.cli._keeping import Keeping, kept_name
    from certcal.cli._outputs import DRAWN, announce, check_outputs, write_outputs
    from certcal.cli._progress import Waiting
    from certcal.cli._show_attacked import show_attacked
    from certcal.cli._sources import existing_files, loaded, needing_torch, part_of

    if save_inputs and save is None:
        raise InputError("--save-inputs says what --save keeps; say with --save FOLDER where it goes")
    if draws is not None and sigma is None:
        raise InputError("--draws is for the smoothed classifier; give its --sigma as well, or leave it out")
    sources = existing_files(model, *([] if weights is None else [weights]), data)
    paths = check_outputs(outputs, DRAWN, force=force, sources=sources)
    asked = Question(sigma=sigma, draws=16 if draws is None else draws, **options)
    folder = None if save is None else Keeping(Path(save), save_inputs, force)
    if folder is not None:
        folder.check([kept_name(name, text) for text, _ in asked.epsilons for name in asked.attacks], sources)
    needing_torch("attacks")
    with Waiting(counted="inputs", wordy=True) as waiting:
        network, inputs = loaded(model, weights, kind, data, part, limit, waiting)
        about = {"model": network.description, "data": data, "part": part_of(data, part), "n": len(inputs)}
        table = attacked(network, inputs, asked, waiting)
    results = results_of(f"{model} on {data}", about, inputs, table, asked)
    try:
        if folder is not None:
            names = [kept_name(line.key, line.epsilon_text) for line in results.lines]
            folder.keep(table.clean.predictions, zip(names, (row.attacked for row in table), strict=True))
        write_outputs(results, paths, force=force, sources=sources)
    finally:  # the numbers took long to find, and a full disk is no reason to lose them
        if as_json:
            click.echo(results.to_json(), nl=False)
        else:
            show_attacked(results, diagram=not no_diagram)
    announce([*paths, *(folder.written if folder is not None else ())])
