# pyright: reportUnknownMemberType=false
# The annotations of torch.random and torch.autograd.Function are incomplete.
"""Whole batches at any size: adversary and loss see all samples, the network one piece at a time.

The log probabilities of a batch are gathered from its pieces, in all processes. What is climbed or descended on is a
function of all of them, and its gradient goes back through one piece at a time, which is computed a second time for
that. So the adversary is that of the whole batch to rounding (a near tie of signs can flip), because the network is in
evaluation mode while it is attacked, as in Salman et al. (2019)'s code, and no layer couples samples then.

In training mode batch normalisation has the means of each piece, as if that were a batch, and running means take the
mean of what the pieces make of them, call by call; dropout has its own draws in each piece. So a loss that is descended
on depends on the pieces where the network has such layers, and otherwise does not. There are no second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from certcal._base.checks import InputError
from certcal.attacks import Target

Sum = Callable[[Sequence[Tensor]], list[Tensor]]


@dataclass(eq=False)
class BatchInPieces:
    """How a batch is cut, and which of its pieces are worked on in this process."""

    rows: Sequence[slice]
    seeds: Sequence[int]  # of dropout, for each piece
    mine: Sequence[int]
    total: Sum  # over the processes
    autocast: Callable[[], AbstractContextManager[Any]]
    buffers: Sequence[Tensor]  # of the network
    changes: list[Tensor] = field(default_factory=list[Tensor])  # of the buffers, by all calls of the network

    def gather(self, pieces: Sequence[Tensor], axis: int = 0) -> Tensor:
        """The whole from the pieces of this process, and of the others."""
        shape = list(pieces[0].shape)
        shape[axis] = self.rows[-1].stop
        whole = pieces[0].new_zeros(shape)
        for number, piece in zip(self.mine, pieces, strict=True):
            whole.movedim(axis, 0)[self.rows[number]] = piece.movedim(axis, 0)
        return self.total([whole])[0]


@dataclass(frozen=True, eq=False)
class PiecewiseTarget(Target):
    """A target whose network sees one piece of a batch at a time."""

    pieces: BatchInPieces | None = None

    def draw_log_probabilities(self, inputs: Tensor) -> Tensor:
        """Log probabilities (draws, n, classes) of every draw; their gradients go back piece by piece."""
        weights = [weight for weight in self._parameters() if weight.requires_grad]
        return cast("Tensor", _GatheredPieces.apply(self, inputs, *weights))

    def piece(self, number: int, inputs: Tensor) -> Tensor:
        """Log probabilities (draws, n, classes) of a piece; the buffers stay as they were."""
        pieces = self.in_pieces
        torch.manual_seed(pieces.seeds[number])
        noise = None if self.noise is None else self.noise[:, pieces.rows[number]]
        with pieces.autocast():
            return Target(self.network, self.outputs, noise).draw_log_probabilities(inputs)

    @property
    def in_pieces(self) -> BatchInPieces:
        """How the batch is cut."""
        assert self.pieces is not None
        return self.pieces

    def _parameters(self) -> list[Tensor]:
        return list(self.network.parameters()) if isinstance(self.network, torch.nn.Module) else []


def _restore_values(pieces: BatchInPieces, values: Sequence[Tensor]) -> None:
    for buffer, value in zip(pieces.buffers, values, strict=True):
        buffer.detach().copy_(value)


class _GatheredPieces(torch.autograd.Function):
    """From a target, inputs of a batch and the weights that are trained to the batch's log probabilities."""

    @staticmethod
    def forward(ctx: Any, target: PiecewiseTarget, inputs: Tensor, *weights: Tensor) -> Tensor:
        ctx.target, pieces = target, target.in_pieces
        ctx.save_for_backward(inputs, *weights)
        before, found = [buffer.clone() for buffer in pieces.buffers], list[Tensor]()
        earlier = pieces.changes or [torch.zeros_like(buffer) for buffer in before]
        start = [buffer + change for buffer, change in zip(before, earlier, strict=True)]
        changes = [torch.zeros_like(buffer) for buffer in before]
        for number in pieces.mine:
            _restore_values(pieces, start)
            rows = pieces.rows[number]
            found.append(target.piece(number, inputs[rows]))
            share = (rows.stop - rows.start) / inputs.shape[0]
            for change, buffer, begun in zip(changes, pieces.buffers, start, strict=True):
                if change.is_floating_point():
                    change.add_((buffer - begun) * share)
                elif number == 0:
                    change.add_(buffer - begun)
        _restore_values(pieces, before)
        if getattr(target.network, "training", True):
            pieces.changes = [one + more for one, more in zip(earlier, pieces.total(changes), strict=True)]
        return pieces.gather(found, axis=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        if torch.is_grad_enabled():
            raise InputError(
                "the loss asks for a gradient that can be differentiated again (create_graph=True), and there is none "
                "of a batch in pieces; pass pieces=1, or a loss without it"
            )
        target, (inputs, *weights) = ctx.target, ctx.saved_tensors
        pieces: BatchInPieces = target.in_pieces
        moves = ctx.needs_input_grad[1]
        start = [buffer.clone() for buffer in pieces.buffers]
        along, slopes = list[Tensor](), [torch.zeros_like(weight) for weight in weights]
        for number in pieces.mine:
            rows = pieces.rows[number]
            with torch.enable_grad():
                at = inputs[rows].detach().requires_grad_(moves)
                found = target.piece(number, at)
                wanted = [*([at] if moves else []), *weights]
                got = torch.autograd.grad(
                    found, wanted, gradients[0][:, rows], allow_unused=True, materialize_grads=True
                )
            along += got[: len(got) - len(weights)]
            for slope, each in zip(slopes, got[len(got) - len(weights) :], strict=True):
                slope.add_(each)
            _restore_values(pieces, start)
        slopes = pieces.total(slopes) if slopes else []
        return (None, pieces.gather(along) if moves else None, *slopes)
