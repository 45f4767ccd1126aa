"""The options that most people use, which ``--help`` shows; ``--help-all`` shows the others as well."""

from __future__ import annotations

from collections.abc import Mapping

_PAGE = "--require --output --json"
_COLUMNS = "--score --outcome --positive --confidence --correct --label"

# By command; one that is not named shows all it has.
COMMON: Mapping[str, str] = {
    "measure": f"--score --outcome --positive --by --model --data --bins --metric --level --bounds {_PAGE}",
    "bound": f"--score --outcome --positive --by --delta --bins --perturb --lipschitz --where {_PAGE}",
    "plan": "--score --delta --method --error --power --output --json",
    "compare": f"--score --outcome --by --key --metric --bounds --radius --sigma -n {_PAGE}",
    "recalibrate fit": f"--method --by --real-scores --fraction --radius {_COLUMNS} {_PAGE}",
    "recalibrate apply": f"{_COLUMNS} --all --output --json",
    "report": f"--score --outcome --positive --by --bins --radius --data --title --open {_PAGE}",
    "sample": "--model --weights --outputs --data --limit --sigma -n --device --workers --part --output",
    "decide": "--model --weights --outputs --data --limit --sigma --radius -n --alpha --device --part --output --json",
    "certify": f"--radius --alpha --kind --bins --delta --compare --lower --upper --correct --by {_PAGE}",
    "attack": f"--model --weights --outputs --data --limit --epsilon --attacks --norm --steps --device --save {_PAGE}",
    "verify": f"--model --data --label --limit --epsilon --norm --change --limits --effort {_PAGE}",
    "train": "--method --data --model --start --preset --sigma --epsilon --epochs --batch --set --device --output",
    "reproduce": "--set --data --shrink --checkpoints --logs --device --workers --part --dry-run --output --json",
    "study measure": "--probabilities --logits --label --layout --validation --workers --output --json",
    "study review": "--question --metric --dataset --top --matrix --resamples --output --json",
    "study search": "--dataset --objective --method --evaluations --repeats --judge-table --output --json",
}


def is_common(command: str, names: list[str]) -> bool:
    """Whether an option is among those that a command shows first.

    Examples
    --------
    >>> is_common("certcal measure", ["--bins"]), is_common("certcal measure", ["--memory"])
    (True, False)
    """
    chosen = COMMON.get(command.removeprefix("certcal "))
    return chosen is None or not set(names).isdisjoint(chosen.split())
