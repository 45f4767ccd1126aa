"""``certcal verify``: bounds on a model's scores over everything that its inputs may become."""

from __future__ import annotations

from typing import Any

from certcal._base.signature import Spec, counted_from_one, settings_of
from certcal.cli.app import command
from certcal.cli.emit import DRAWN, Output, output_options
from certcal.cli.options import MODEL_AND_DATA, NamedChoice, Typed, join_values, model_options, option, verb_options
from certcal.verbs.certification import INTERVALS
from certcal.verbs.verify import VerifySettings
from certcal.verbs.verify import verify as verb

_WHAT, _BOX, _VERIFYING = "Model and data", "What may change", "Verifying"
_NAMES = Spec("", "name", many=True, ordered=True)
_SEVERAL: Any = {"type": Typed(_NAMES), "callback": join_values(_NAMES), "multiple": True, "metavar": "NAME[,NAME...]"}


@command(
    ("certcal verify --model model.json --data loans.csv --epsilon 0.05,0.1", "tenths of standard deviations"),
    (
        "certcal verify --model model.txt --data loans.csv --change income=+10% --change age=1 --integer age",
        "what applicants can change",
    ),
    ("certcal verify --model mine:forest --data t.csv --epsilon 0.1 --at-once 2", "two features at a time"),
    ("certcal verify --model model.json --data loans.csv --epsilon 0.1 -o intervals.parquet", "keep; then:"),
    ("certcal certify intervals.parquet", "everything that the intervals certify"),
    ("certcal verify --model mine:network --data loans.csv --epsilon 0.1", "a network of linear layers and ReLU"),
)
@model_options(verb, _WHAT)
@option(
    _BOX,
    "--change",
    multiple=True,
    metavar="[FEATURE=]AMOUNT",
    help="How far a feature may move, as income=500, income=5%, income=0.5sd, income=+500 (only up), income=@column, "
    "or its allowed values, as region=1|2|3; repeatable. Without a name: every feature. Default: 1sd.",
)
@option(_BOX, "--fixed", help="Features that stay as they are.", **_SEVERAL)
@option(_BOX, "--integer", "integers", help="Features that are whole numbers.", **_SEVERAL)
@option(
    _BOX,
    "--limits",
    multiple=True,
    metavar="[FEATURE=]LOW:HIGH",
    help="Smallest and largest value, as age=18: or 0:1; repeatable.",
)
@option(
    _BOX,
    "--at-once",
    "at_once",
    type=Typed(Spec("", "whole")),
    metavar="K",
    help="At most K features change at a time.",
)
@option(_BOX, "--norm", type=NamedChoice(["linf", "l2"]), default="linf", help="Norm of the change. Default: linf.")
@verb_options(verb, _VERIFYING, skip=(*MODEL_AND_DATA, "attack"))
@option(_VERIFYING, "--no-attack", is_flag=True, help="Do not search the box for scores that are reached.")
@output_options((*DRAWN, INTERVALS))
def verify(
    model: str,
    data: str,
    change: tuple[str, ...],
    fixed: tuple[str, ...],
    integers: tuple[str, ...],
    limits: tuple[str, ...],
    at_once: int | None,
    norm: str,
    no_attack: bool,
    output: Output,
    **options: Any,
) -> None:
    """Bound the scores of MODEL on DATA over all inputs that the box allows, and certify their calibration.

    No noise is drawn: the bounds hold for the model itself and for certain. MODEL is a tree ensemble that XGBoost
    (.json, .ubj) or LightGBM (.txt) has saved, module:name of one or of a scikit-learn ensemble, or a network of linear
    layers and ReLU. In a table every column but the labels is a feature: by the model's own names, in any order, where
    it has any, else by position. Empty cells are missing values, which trees take, and stay missing.
    """
    from certcal.cli.sources import existing_files
    from certcal.verification import InputBox

    settings_of(verb, VerifySettings, **options)  # what is wrong with them is said before the box is made
    more = {"fixed": fixed, "integers": integers, "at_most": counted_from_one("at_once", at_once), "norm": norm}
    box = InputBox.of_texts(change, limits, **more) if change or limits or any(more.values()) else None
    sources = existing_files(model, options["weights"], data)
    output.check(*sources)
    found = verb(model, data, box, attack=not no_attack, **options)
    output.emit(found)
