"""``certcal attack``: how far an attacker can move the confidences while every prediction stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from certcal._base.attack_methods import ATTACKS, USUAL
from certcal._base.settings import Spec
from certcal.cli.app import ExampleCommand
from certcal.cli.emit import DRAWN, OUTPUT, Output, output_options
from certcal.cli.options import NamedChoice, Typed, collected, joined, model_options, option, settings_options
from certcal.verbs.attack import AttackSettings

_WHAT, _ATTACKING = "Model and data", "Attacking"
_DISTANCES = Spec("", "distance", many=True)
_WORDS = Spec("", "word", many=True, choices=tuple(ATTACKS))


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
@option(_WHAT, "--part", type=NamedChoice(["train", "test"]), help="Split of the data. Default: test.")
@option(_WHAT, "--limit", type=Typed(Spec("", "whole")), metavar="N", help="Attack the first N samples. Default: all.")
@option(
    _ATTACKING,
    "--epsilon",
    type=Typed(_DISTANCES),
    callback=joined(_DISTANCES),
    multiple=True,
    required=True,
    metavar="E[,E...]",
    help="Largest perturbation of an input, such as 0.5 or 8/255; repeatable.",
)
@option(
    _ATTACKING,
    "--attacks",
    type=Typed(_WORDS),
    callback=joined(_WORDS),
    multiple=True,
    default=USUAL,
    metavar="NAME[,NAME...]",
    help=f"Attacks: {', '.join(f'{each.name} ({each.help})' for each in ATTACKS.values())}. "
    f"Default: the first {len(USUAL)}.",
)
@settings_options(AttackSettings, _ATTACKING)
@option(
    OUTPUT,
    "--save",
    metavar="FOLDER",
    type=click.Path(),
    help="Save predictions before and after each attack, as tables for certcal measure.",
)
@option(OUTPUT, "--save-inputs", is_flag=True, help="Save the perturbed inputs as well (.npz).")
@output_options(DRAWN)
def attack(
    model: str,
    data: str,
    weights: str | None,
    outputs: str | None,
    save: str | None,
    save_inputs: bool,
    output: Output,
    **options: Any,
) -> None:
    """Move the confidences of MODEL on DATA as far as attacks can, while every predicted label stays.

    Each of the four (eta, omega)-ACE attacks perturbs every input by at most epsilon so that the model becomes less or
    more confident in the true or the predicted class. The accuracy stays what it was, which is verified; the
    calibration error may not. Attacks show what is possible; certcal certify bounds the worst case.

    MODEL needs gradients: a torch module by its name, perhaps with --weights, or a .safetensors file. An ONNX file has
    none.
    """
    from certcal._base.checks import InputError
    from certcal.cli.progress import Waiting
    from certcal.cli.sources import existing_files, needing_torch, refuse_inside
    from certcal.verbs.attack import attack as verb
    from certcal.verbs.attack import refuse_saving, saved_paths

    if save_inputs and save is None:
        raise InputError("--save-inputs says what --save keeps; say with --save FOLDER where it goes")
    settings = collected(AttackSettings, options)
    sources = existing_files(model, *([] if weights is None else [weights]), data)
    output.check(*sources)
    if save is not None:
        refuse_inside("--save", save, sources)
        pairs = [(name, epsilon) for epsilon in options["epsilon"] for name in options["attacks"]]
        refuse_saving(save, saved_paths(save, pairs, inputs=save_inputs), force=output.force)
    needing_torch("attacks")
    with Waiting(counted="inputs", wordy=True) as waiting:
        found = verb(model, data, weights=weights, outputs=outputs, progress=waiting, settings=settings, **options)
    saved = {} if save is None else found.predictions(save, inputs=save_inputs)
    output.emit(found, also=saved, folder=None if save is None else Path(save))
