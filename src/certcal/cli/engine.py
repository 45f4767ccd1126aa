"""Where the work of a command runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from certcal._base.signature import Spec
from certcal.cli.options import Decorated, NamedChoice, checked_option, option, options

if TYPE_CHECKING:
    from certcal.engines import Engine

MOST_WORKERS = 1024


def engine_options(section: str) -> Callable[[Decorated], Decorated]:
    """Options that :func:`pop_engine` takes, under a heading of the help."""
    workers = "Number of processes. Default: 1; with --engine ray all that fit."
    engine = "Where to run: here, or ray for a Ray cluster. Default: here."
    address = "Address of the Ray cluster, host:port or auto. Default: a new one on this machine."
    gpus = "GPUs of each Ray worker, such as 1 or 0.5. Default: 0, or 1 where the device is cuda."
    return options(
        checked_option(section, "--workers", Spec(workers, "whole", least=1, most=MOST_WORKERS)),
        option(section, "--engine", type=NamedChoice(["here", "ray"]), default="here", metavar="E", help=engine),
        option(section, "--address", metavar="A", help=address),
        checked_option(section, "--gpus", Spec(gpus, "positive", zero=True, metavar="G")),
    )


def pop_engine(given: dict[str, Any]) -> Engine | None:
    """The engine out of a command's values, from which its options are taken away; None for this process alone."""
    from certcal.engines import LocalProcesses, RayCluster

    engine, address, workers, gpus = (given.pop(name) for name in ("engine", "address", "workers", "gpus"))
    if engine == "ray":
        from certcal.cli.supervising import run_supervised

        run_supervised()
        usual = 1.0 if given.get("device") == "cuda" else 0.0
        return RayCluster(address, workers=workers, gpus=usual if gpus is None else gpus)
    for name, value in (("--address", address), ("--gpus", gpus)):
        if value is not None:
            raise click.UsageError(f"{name} is for --engine ray; add that, or leave it out")
    return None if workers is None or workers == 1 else LocalProcesses(workers)
