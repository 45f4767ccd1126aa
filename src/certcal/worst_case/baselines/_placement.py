"""Where the baselines compute: device and precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from certcal._checks import InputError, choice

PRECISIONS = {"float64": torch.float64, "float32": torch.float32}


class Placement:
    """Puts arrays on the device in the wanted precision."""

    def __init__(self, device: str, precision: str) -> None:
        self.dtype = PRECISIONS[choice(precision, tuple(PRECISIONS), "precision")]
        try:
            self.device = torch.device(device)
            torch.zeros(1, dtype=self.dtype, device=self.device)
        except (AssertionError, RuntimeError, TypeError) as error:
            first = str(error).splitlines()[0]
            raise InputError(f"device {device!r} cannot be used in {precision}: {first}") from error

    def __call__(self, values: Any) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=self.dtype, device=self.device)
