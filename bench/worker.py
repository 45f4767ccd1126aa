"""One library in a process of its own: load the data, warm up, then run once per line of standard input.

Usage: ``worker.py METRIC LIBRARY FOLDER time|memory``. Each answer is a line of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from cases import OURS, first, load_data
from memory import peak_extra
from peers import DISTRIBUTIONS, PEERS

WARM_UP = 1000
COMPILED = 2_000_000  # certcal compiles nothing for few


def version_of(library: str) -> str:
    """Installed version, by the library's name in the tables."""
    if library == OURS:
        import certcal

        return certcal.__version__
    from importlib.metadata import version

    return version(DISTRIBUTIONS.get(library, library))


def serve(metric: str, library: str, folder: Path, measures: str, answer: Any) -> None:
    """Answer each request until there are none left."""

    def say(**fields: Any) -> None:
        answer.write(json.dumps(fields) + "\n")
        answer.flush()

    try:
        version = version_of(library)
        if library == OURS:
            import ours  # noqa: F401  (registers certcal)
        prepare = PEERS[metric, library]
        data = load_data(folder)
        prepare(
            first(data, COMPILED if library == OURS else WARM_UP)
        )()  # imports, just-in-time compilation, thread pools
        run = prepare(data)
        say(ready=True, version=version, input_bytes=sum(array.nbytes for array in used(data, metric)))
        for _ in sys.stdin:
            gc.collect()
            if measures == "memory":
                extra, value = peak_extra(run)
                say(bytes=extra, value=value)
            else:
                start = time.perf_counter()
                value = run()
                say(seconds=time.perf_counter() - start, value=value)
    except ImportError as missing:
        say(error=f"not installed ({missing})" if missing.name else str(missing))
    except Exception as problem:
        say(error=f"{type(problem).__name__}: {problem}"[:200])


def used(data: Any, metric: str) -> list[Any]:
    """The arrays a metric reads."""
    unused = {"bins"} if metric.startswith("weighted_") else {"bins", "weight"}
    return [array for name, array in vars(data).items() if name not in unused]


def main() -> None:
    """Keep the answers apart from anything a library prints."""
    metric, library, folder, measures = sys.argv[1:]
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")
    serve(metric, library, Path(folder), measures, answer)


if __name__ == "__main__":
    main()
