"""``certcal attack``: how far an attacker can move the confidences while every prediction stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from certcal._base.signature import settings_of
from certcal.cli.app import command
from certcal.cli.emit import DRAWN, OUTPUT, Output, output_options
from certcal.cli.options import MODEL_AND_DATA, model_options, verb_options
from certcal.verbs.attack import AttackSettings
from certcal.verbs.attack import attack as verb

_WHAT, _ATTACKING = "Model and data", "Attacking"
_SMOOTHED = ("sigma", "draws")
_SAVING = ("save", "save_inputs", "part")


@command(
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
    ("certcal attack --model n.safetensors --data t.npz --epsilon 8/255 --save found", "keep the predictions; then:"),
    ("certcal measure found/plus-true-8-255.parquet", "the metrics of what an attack has made of them"),
)
@model_options(verb, _WHAT)
@verb_options(verb, _ATTACKING, skip=(*MODEL_AND_DATA, *_SMOOTHED, *_SAVING, "keep_inputs", "force"))
@verb_options(verb, "Attacking the smoothed classifier", only=_SMOOTHED)
@verb_options(verb, OUTPUT, only=_SAVING)
@output_options(DRAWN)
def attack(model: str, data: str, save: str | None, output: Output, **options: Any) -> None:
    """Move the confidences of MODEL on DATA as far as attacks can, while every predicted label stays.

    Each of the four (eta, omega)-ACE attacks perturbs every input by at most epsilon so that the model becomes less or
    more confident in the true or the predicted class. The accuracy stays what it was, which is verified; the
    calibration error may not. Attacks show what is possible; certcal certify bounds the worst case.

    MODEL needs gradients: a torch module by its name, perhaps with --weights, or a .safetensors file. An ONNX file has
    none.
    """
    from certcal.cli.progress import tell
    from certcal.cli.sources import existing_files, needing_torch, refuse_inside
    from certcal.verbs.attack import refuse_saving, saved_paths

    asked = settings_of(verb, AttackSettings, **options)
    sources = existing_files(model, options["weights"], data)
    output.check(*sources)
    saved: list[Path] = []
    if save is not None:
        refuse_inside("--save", save, sources)
        saved = saved_paths(save, [(name, epsilon) for epsilon in asked.epsilon for name in asked.attacks])
        refuse_saving(save, saved, force=output.force)
    needing_torch("attacks")
    found = verb(model, data, save=save, force=output.force, **options)
    output.emit(found)
    for path in saved:
        tell(f"wrote {path}")
