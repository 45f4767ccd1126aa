"""What an engine is given: draw a unit, anywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.models import Model, Source
from certcal.models.protocol import PackedSource
from certcal.smoothing._sampler import Sampler, SamplingError, Selection, Tally
from certcal.smoothing._units import Unit

# Answers of one model to one input differ by less than this between machines and numbers of threads.
_SAME_ANSWER = 0.01


@dataclass(frozen=True, eq=False)
class Work:
    """A unit with the samples it needs; ``classes`` are those that are counted."""

    unit: Unit
    inputs: NDArray[np.float32]
    classes: NDArray[np.int64]

    def __str__(self) -> str:
        return str(self.unit)


@dataclass
class Drawing:
    """The task of drawing units. In another process the model is loaded again, and tried against the one here."""

    model: Model | None
    source: Source | PackedSource | None
    settings: dict[str, Any]
    probe: NDArray[np.float32]
    answers: NDArray[Any]
    identity: str | None

    @classmethod
    def of(cls, model: Model, settings: dict[str, Any], probe: NDArray[np.float32], *, packed: bool = False) -> Drawing:
        """The task of drawing from a model, which is asked what it says to the probe; packed, it brings its files."""
        source = model.source.packed() if packed and model.source is not None else model.source
        return cls(model, source, settings, probe, np.asarray(model(probe)), _identity(model, probe))

    def __getstate__(self) -> dict[str, Any]:
        return vars(replace(self, model=None))  # what travels: the model itself does not

    def prepare(self) -> None:
        """Load the model and make the sampler."""
        if self.model is None:
            if self.source is None:
                raise SamplingError("the model lives in the process that made it; load it by name or path instead")
            self.model = self.source.load()
            if not self._is_same(self.model):
                raise SamplingError(
                    f"{self.source.name} is another model in a worker process than here; "
                    "check that both load the same file and packages"
                )
        self._sampler = Sampler(self.model, **{name: _own(value) for name, value in self.settings.items()})

    def _is_same(self, model: Model) -> bool:
        """Whether it is made of the same, as far as that can be seen, and says about the same."""
        if _identity(model, self.probe) != self.identity:
            return False
        answers = np.asarray(model(self.probe))
        return answers.shape == self.answers.shape and np.allclose(
            answers, self.answers, rtol=_SAME_ANSWER, atol=_SAME_ANSWER, equal_nan=True
        )

    def __call__(self, work: Work) -> Selection | Tally:
        """Draw one unit."""
        unit = work.unit
        indices = np.arange(unit.first, unit.last)
        if unit.stage == "selection":
            return self._sampler.select(_own(work.inputs), indices, unit.stop)
        return self._sampler.count(_own(work.inputs), indices, _own(work.classes), unit.start, unit.stop)


def _own(value: Any) -> Any:
    """The value; an array as one that can be written to, as kernels are compiled for: those that travel cannot be."""
    flags = getattr(value, "flags", None)
    return value if flags is None or flags.writeable else value.copy()


def _identity(model: Model, probe: NDArray[np.float32]) -> str | None:
    """Digits of what a model is made of; None for one that does not say, which is known by its answers only."""
    look: Any = getattr(model, "identity", None)
    found: Any = look(probe) if look is not None else None
    return found
