"""What is attacked: a network, or its average over noise that stays the same while the attack lasts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from certcal.models.protocol import Outputs


@dataclass(frozen=True, eq=False)
class Target:
    """A classifier with gradients.

    With noise it is the Monte Carlo estimate f̄(x) = mean over draws v of f(x + noise_v) of the smoothed classifier. The
    noise is drawn once, so that all steps of an attack climb the same function (Salman et al. 2019).

    Attributes
    ----------
    network
        From inputs (n, …) to a row per input.
    outputs
        What the rows are, ``"logits"`` or ``"probabilities"``.
    noise
        (draws, n, …), or None to attack the network itself.

    Examples
    --------
    >>> inputs = torch.tensor([[0.0, 0.0]])
    >>> noise = torch.tensor([[[1.0, 0.0]], [[-1.0, 0.0]]])
    >>> Target(lambda x: x, noise=noise).log_probabilities(inputs).exp()
    tensor([[0.5000, 0.5000]])
    """

    network: Callable[[Tensor], Tensor]
    outputs: Outputs = "logits"
    noise: Tensor | None = None

    @property
    def draws(self) -> int:
        """How many draws the average is over; 1 without noise."""
        return 1 if self.noise is None else self.noise.shape[0]

    def draw_log_probabilities(self, inputs: Tensor) -> Tensor:
        """Log probabilities (draws, n, classes) of every draw."""
        if self.noise is None:
            return self._logarithms(inputs).unsqueeze(0)
        noisy = (inputs.unsqueeze(0) + self.noise).flatten(0, 1)
        every = self._logarithms(noisy)
        return every.reshape(self.draws, inputs.shape[0], every.shape[1])

    def log_probabilities(self, inputs: Tensor) -> Tensor:
        """Log probabilities (n, classes) of the average over the draws."""
        every = self.draw_log_probabilities(inputs)
        return every[0] if self.draws == 1 else torch.logsumexp(every, 0) - math.log(self.draws)

    def rows(self, index: Tensor | slice) -> Target:
        """The same for some of the inputs, with their own noise."""
        return self if self.noise is None else Target(self.network, self.outputs, self.noise[:, index])

    def _logarithms(self, inputs: Tensor) -> Tensor:
        out = self.network(inputs)
        out = out if out.dtype == torch.float64 else out.float()
        if self.outputs == "logits":
            return functional.log_softmax(out, 1)
        return out.clamp_min(torch.finfo(out.dtype).tiny).log()
