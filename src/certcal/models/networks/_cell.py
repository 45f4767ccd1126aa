"""The networks of NATS-Bench (Dong et al. 2021): one small cell, repeated, at any width."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from certcal._base.checks import InputError
from certcal.models.networks._network import Network, Normalize, check_channels, fixed_seed, size, to_list
from certcal.models.networks._resnet import conv, initialise

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")

_EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
_OUTPUT = 3


class CellNetwork(Network):
    """Three stacks of equal cells with residual blocks of stride 2 between them.

    A cell has four nodes. Each is the sum of what an operation on each edge makes of earlier nodes; the first is the
    input and the last is the output. An edge that lies on no path from the input to the output is not built and has
    no weights. A cell without such a path gives zeros, and its network the same logits for every image.

    NATS-Bench has five cells per stack and pools 2 × 2 pixels beside its blocks; here an odd image keeps its last row
    and column there.

    Parameters
    ----------
    operations
        One per edge, in the order 0→1, 0→2, 1→2, 0→3, 1→3, 2→3: ``"none"``, ``"skip_connect"``, ``"nor_conv_1x1"``,
        ``"nor_conv_3x3"`` (ReLU, convolution, batch normalisation) or ``"avg_pool_3x3"``.
    widths
        Channels of the three stacks, such as (16, 32, 64); or one for each cell and block from the first to the last,
        such as five for one cell per stack (the size space). A cell that changes the width does so on the edges that
        leave its input, where skipping and pooling then take a 1 × 1 convolution along.
    cells
        In each stack.
    stride
        Stride of the first convolution; 2 halves the image before the first stack, which large images can afford.
    channels
        Channels of the images.
    pixels
        Along each side, at least 4.
    classes
        Number of classes.
    mean, std
        Mean and standard deviation for the normalisation: one number, or one per channel.
    seed
        Random seed of the initial weights.

    Examples
    --------
    >>> import torch
    >>> operations = ("nor_conv_3x3", "none", "skip_connect", "skip_connect", "none", "nor_conv_1x1")
    >>> network = CellNetwork(operations, widths=(4, 8, 16), pixels=14).eval()
    >>> network(torch.zeros(2, 1, 14, 14)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        operations: Sequence[str],
        widths: Sequence[int] = (16, 32, 64),
        cells: int = 1,
        stride: int = 1,
        channels: int = 1,
        pixels: int = 28,
        classes: int = 10,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        seed: int = 0,
    ) -> None:
        names, cells, stride = (
            _check_operations(operations),
            size(cells, "cells", most=100),
            size(stride, "stride", most=16),
        )
        wide = _layer_widths([size(width, "widths") for width in widths], cells)
        channels, pixels = size(channels, "channels"), size(pixels, "pixels", least=4, most=4096)
        classes = size(classes, "classes", least=2)
        check_channels(channels, mean=mean, std=std)
        cell = {"operations": names, "widths": list(widths), "cells": cells, "stride": stride}
        images = {"channels": channels, "pixels": pixels, "classes": classes}
        normalisation = {"mean": to_list(mean), "std": to_list(std)}
        super().__init__((channels, pixels, pixels), {**cell, **images, **normalisation})
        self.normalize = Normalize(**normalisation)
        with fixed_seed(seed):
            self.first = nn.Sequential(conv(channels, wide[0], stride), nn.BatchNorm2d(wide[0]))
            stages: list[nn.Module] = []
            for layer, (before, after) in enumerate(zip((wide[0], *wide), wide, strict=False)):
                reduces = layer % (cells + 1) == cells
                stages.append(_Reduction(before, after) if reduces else _Cell(names, before, after))
            self.stages = nn.Sequential(*stages)
            self.last = nn.Sequential(nn.BatchNorm2d(wide[-1]), nn.ReLU())
            self.classifier = nn.Linear(wide[-1], classes)
            initialise(self)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.classifier(self.last(self.stages(self.first(self.normalize(inputs)))).mean((2, 3)))


class _Cell(nn.Module):
    """The sum of what the edges make of earlier nodes, node by node."""

    def __init__(self, operations: Sequence[str], before: int, after: int) -> None:
        super().__init__()
        self.after = after
        live = _used_edges(operations)
        self.edges = nn.ModuleDict(
            {
                f"{source}_{target}": _operation(name, after if source else before, after)
                for (source, target), name in zip(_EDGES, operations, strict=True)
                if (source, target) in live
            }
        )
        self.order = live

    def forward(self, inputs: Tensor) -> Tensor:
        nodes = {0: inputs}
        for source, target in self.order:
            value = self.edges[f"{source}_{target}"](nodes[source])
            nodes[target] = nodes[target] + value if target in nodes else value
        if _OUTPUT in nodes:
            return nodes[_OUTPUT]
        return inputs.new_zeros((inputs.shape[0], self.after, *inputs.shape[2:]))


class _Reduction(nn.Module):
    """Half the pixels: two convolutions, beside an average of 2 × 2 pixels and a 1 × 1 convolution."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(_relu_conv_norm(before, after, 3, stride=2), _relu_conv_norm(after, after, 3))
        self.shortcut = nn.Sequential(nn.AvgPool2d(2, ceil_mode=True), conv(before, after, side=1))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.inner(inputs) + self.shortcut(inputs)


def _relu_conv_norm(before: int, after: int, side: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.ReLU(), conv(before, after, stride, side), nn.BatchNorm2d(after))


def _operation(name: str, before: int, after: int) -> nn.Module:
    if name == "nor_conv_1x1":
        return _relu_conv_norm(before, after, 1)
    if name == "nor_conv_3x3":
        return _relu_conv_norm(before, after, 3)
    if name == "skip_connect":
        if before == after:
            return nn.Identity()
        return nn.Sequential(conv(before, after, side=1), nn.BatchNorm2d(after))
    pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
    return pool if before == after else nn.Sequential(_relu_conv_norm(before, after, 1), pool)


def _used_edges(operations: Sequence[str]) -> list[tuple[int, int]]:
    """The edges on a path from the input to the output, in an order in which every node is complete when it is used."""
    there = [edge for edge, name in zip(_EDGES, operations, strict=True) if name != "none"]
    reached, needed = {0}, {_OUTPUT}
    for source, target in there:  # in the order of their targets
        if source in reached:
            reached.add(target)
    for source, target in sorted(there, key=lambda edge: -edge[1]):
        if target in needed:
            needed.add(source)
    return [(source, target) for source, target in there if source in reached and target in needed]


def _check_operations(operations: Sequence[str]) -> list[str]:
    if isinstance(operations, str) or len(operations) != len(_EDGES):
        raise InputError(f"operations is {operations!r}; pass the names of {len(_EDGES)} operations, one per edge")
    for index, name in enumerate(operations):
        if name not in OPERATIONS:
            raise InputError(f"operations[{index}] is {name!r}; use one of {', '.join(OPERATIONS)}")
    return list(operations)


def _layer_widths(widths: list[int], cells: int) -> list[int]:
    layers = 3 * cells + 2
    if len(widths) == 3:
        return [width for stack, width in enumerate(widths) for _ in range(cells + (stack > 0))]
    if len(widths) != layers:
        raise InputError(
            f"widths has {len(widths)} entries; pass 3, one per stack, or {layers}, one for each cell and block"
        )
    return widths
