"""The attacks of this room as functions, with the parameters of the attack among those of the call."""

from __future__ import annotations

from typing import Any

from certcal.attacks import Ace, Attacked, OneStepAce, Pgd, perturb


def _call(kind: Any, names: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    def call(model: Any, inputs: Any, labels: Any, **given: Any) -> Attacked:
        own = {name: given.pop(name) for name in names if name in given}
        return perturb(model, inputs, labels, kind(**own), **{**defaults, **given})

    return call


ace = _call(Ace, ("eta", "omega", "steps", "step"), {})
one_step_ace = _call(OneStepAce, ("decay", "attempts"), {})
pgd = _call(Pgd, ("steps", "scale"), {"norm": "l2", "draws": 1})
