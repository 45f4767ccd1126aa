"""Small models to measure, and engines that misbehave."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from certcal import Predictions
from certcal.engines import EngineError

SMALL = {"bins": [5, 15]}


class Counted:
    """Progress that tells how much is done, and of how much."""

    def __init__(self, told):
        self.told, self.done, self.total = told, 0, None

    def stage(self, text, total=None, done=0, unit=""):
        self.done, self.total = done, total
        if text != "looking at the files":
            self.told(done, total)

    def say(self, text):
        """Nothing."""

    def advance(self, steps):
        self.done += steps
        self.told(self.done, self.total)


def arrays(seed, n=60, classes=3):
    """Logits of an overconfident model, and labels."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return (2 * logits).astype(np.float32), labels


def predictions(seed, **sizes):
    return Predictions.from_logits(*arrays(seed, **sizes))


def save(path, seed, changed=None, **sizes):
    """A prediction file, changed at a time that is always the same."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    logits, labels = arrays(seed, **sizes)
    np.savez(path, logits=logits, labels=labels)
    touch(path, changed or seed + 1)


def touch(path, second):
    os.utime(path, (second, second))


def zoo(folder, models=3, datasets=("easy", "hard")):
    """Files DATA/MODEL.npz."""
    for place, data in enumerate(datasets):
        for model in range(models):
            save(Path(folder, data, f"net{model}.npz"), 10 * place + model)
    return Path(folder)


class Recorder:
    """The engine of this process, which remembers what it did and may stop in the middle.

    ``order`` sorts the pieces before they are worked on; after ``stop_after`` results comes Ctrl-C.
    """

    remote = False
    shares_files = True

    def __init__(self, stop_after=None, order=None):
        self.stop_after, self.order, self.done = stop_after, order, []

    def run(self, task, pieces):
        for piece in pieces if self.order is None else sorted(pieces, key=lambda piece: self.order(piece.number)):
            if len(self.done) == self.stop_after:
                raise KeyboardInterrupt
            self.done.append(piece.key)
            yield piece, task(piece)


class Deadly:
    """Workers die of some models; results come in groups, as from several workers."""

    remote = True
    shares_files = True

    def __init__(self, *models, group=3, broken=False):
        self.models, self.group, self.broken = models, group, broken

    def run(self, task, pieces):
        if self.broken:
            next(iter(pieces), None)
            raise EngineError("no worker could begin; see above")
        pieces = iter(pieces)
        while some := [piece for _, piece in zip(range(self.group), pieces, strict=False)]:
            for piece in some:
                if piece.key[0] in self.models:
                    raise EngineError(f"a worker process ended at {piece}, and so did a second one")
                yield piece, task(piece)


class FarAway:
    """An engine whose workers see none of the files of this machine."""

    remote = True
    shares_files = False

    def run(self, task, pieces):
        for piece in pieces:
            yield piece, task(replace(piece, predictions=_gone(piece.predictions), others=_all_gone(piece.others)))


def _all_gone(others):
    return {name: _gone(value) for name, value in others.items()}


def _gone(value):
    return replace(value, path=Path("/nowhere", value.path.name)) if hasattr(value, "path") else value


class Poison:
    """Ends the process that unpacks it."""

    def __reduce__(self):
        return os._exit, (1,)
