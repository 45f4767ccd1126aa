"""The networks of NATS-Bench's two spaces."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from certcal import InputError
from certcal.lab.study import Cell, TopologySpace
from certcal.lab.study._spaces import OPERATIONS
from certcal.models.networks import CellNetwork, load_weights, save_weights
from certcal.models.networks._cell import OPERATIONS as BUILT

NONE, SKIP, CONV1, CONV3, POOL = OPERATIONS
MIXED = (CONV3, POOL, CONV1, SKIP, CONV1, CONV3)
IMAGES = torch.rand((5, 1, 9, 9), generator=torch.Generator().manual_seed(0))


def weights(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def small(operations: tuple[str, ...], widths: tuple[int, ...] = (2, 3, 4), cells: int = 1) -> CellNetwork:
    """A network that has seen images, so that its normalisations do something."""
    network = CellNetwork(operations, widths, cells, pixels=9, classes=3)
    network(IMAGES)
    return network.eval()


def test_the_operations_are_those_of_the_space() -> None:
    assert BUILT == OPERATIONS


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("widths", [(2, 3, 4), (3, 2, 4, 5, 2)])
def test_every_operation_takes_any_image_at_any_width(operation: str, widths: tuple[int, ...]) -> None:
    for pixels, stride in ((4, 1), (7, 1), (16, 2)):
        network = CellNetwork((operation,) * 6, widths, stride=stride, channels=3, pixels=pixels, classes=7)
        logits = network(torch.zeros(2, 3, pixels, pixels))
        assert logits.shape == (2, 7)
        assert network.sample_shape == (3, pixels, pixels)
        assert bool(torch.isfinite(logits).all())


def test_a_cell_computes_its_nodes_as_sums_over_edges() -> None:
    network = small(MIXED)
    cell = network.stages[0]
    x = torch.rand((2, 2, 5, 5), generator=torch.Generator().manual_seed(1))

    def edge(name: str, value: Tensor) -> Tensor:
        _, conv, normal = cell.edges[name]
        return normal(conv(value.clamp(min=0)))

    def pooled(value: Tensor) -> Tensor:
        ones = nn.functional.avg_pool2d(torch.ones_like(value), 3, 1, 1)
        return nn.functional.avg_pool2d(value, 3, 1, 1) / ones  # the frame of zeros does not count

    first = edge("0_1", x)
    second = pooled(x) + edge("1_2", first)
    third = x + edge("1_3", first) + edge("2_3", second)
    torch.testing.assert_close(cell(x), third)


def test_weights_are_counted_by_hand() -> None:
    # Two widths w: a normalisation has 2w weights. Stem, cells (1 × 1 and 3 × 3 convolutions), blocks, end.
    stem = 1 * 2 * 9 + 4
    cells = [10 * w * w + 2 * 2 * w for w in (2, 3, 4)]
    blocks = [9 * a * b + 2 * b + 9 * b * b + 2 * b + a * b for a, b in ((2, 3), (3, 4))]
    end = 2 * 4 + 4 * 3 + 3
    assert weights(small((CONV1, NONE, SKIP, POOL, NONE, CONV3))) == stem + sum(cells) + sum(blocks) + end
    assert weights(small((CONV1, NONE, SKIP, POOL, NONE, CONV3), cells=2)) == stem + 2 * sum(cells) + sum(blocks) + end


def test_a_cell_that_changes_the_width_does_so_on_the_edges_of_its_input() -> None:
    widths = (2, 3, 5, 4, 6)  # the second cell goes from 3 to 5, the third from 4 to 6
    base = weights(small((NONE,) * 6, widths))
    skipped = weights(small((NONE, NONE, NONE, SKIP, NONE, NONE), widths))
    assert skipped - base == (3 * 5 + 10) + (4 * 6 + 12)
    inside = weights(small((SKIP, NONE, NONE, NONE, CONV3, NONE), widths))
    assert inside - skipped == sum(9 * w * w + 2 * w for w in (2, 5, 6))


def test_a_cell_that_passes_nothing_on_gives_the_same_logits_for_every_image() -> None:
    for operations in ((NONE,) * 6, (CONV3, CONV3, CONV3, NONE, NONE, NONE), (NONE, NONE, CONV1, NONE, CONV3, POOL)):
        logits = small(operations)(IMAGES)
        assert bool((logits == logits[0]).all())
    logits = small((NONE, NONE, NONE, SKIP, NONE, NONE))(IMAGES)
    assert not bool((logits == logits[0]).all())


def test_edges_that_lead_nowhere_are_not_built() -> None:
    through = (CONV3, NONE, NONE, SKIP, CONV1, NONE)
    dead = (CONV3, CONV3, CONV1, SKIP, CONV1, NONE)  # node 2 is computed, and nothing comes of it
    orphan = (CONV3, NONE, NONE, SKIP, CONV1, CONV3)  # node 2 is always zero
    assert weights(small(dead)) == weights(small(orphan)) == weights(small(through))
    assert torch.equal(small(dead)(IMAGES), small(through)(IMAGES))


def test_cells_that_are_written_differently_and_mean_the_same_give_the_same_logits() -> None:
    pairs = [
        ((CONV3, NONE, SKIP, NONE, NONE, CONV1), (CONV3, NONE, NONE, NONE, CONV1, NONE)),
        ((SKIP, NONE, CONV3, POOL, NONE, SKIP), (NONE, CONV3, NONE, POOL, NONE, SKIP)),
        ((NONE, SKIP, POOL, NONE, CONV1, CONV3), (SKIP, NONE, NONE, NONE, CONV3, NONE)),
    ]
    for one, other in pairs:
        assert Cell(one).function == Cell(other).function
        first, second = small(one), CellNetwork(other, (2, 3, 4), pixels=9, classes=3).eval()
        values = dict(zip(second.state_dict(), first.state_dict().values(), strict=True))
        second.load_state_dict(values)
        torch.testing.assert_close(first(IMAGES), second(IMAGES))


def test_a_sample_of_the_space_trains() -> None:
    names = np.random.default_rng(3).permutation(np.array(TopologySpace().unique(), object))[:10]
    for name in names.tolist():
        network = CellNetwork(Cell.parse(name).operations, (2, 3, 4), pixels=9, classes=3)
        nn.functional.cross_entropy(network(IMAGES), torch.tensor([0, 1, 2, 0, 1])).backward()
        assert all(weight.grad is not None for weight in network.parameters())


def test_weights_on_disk_build_the_network_again(tmp_path: Path) -> None:
    network = small(MIXED, (3, 2, 4, 5, 2))
    save_weights(network, tmp_path / "cell.safetensors")
    again = load_weights(tmp_path / "cell.safetensors")
    assert again.settings == network.settings
    assert torch.equal(again(IMAGES), network(IMAGES))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"operations": MIXED[:5]}, "pass the names of 6 operations"),
        ({"operations": "|none~0|"}, "pass the names of 6 operations"),
        ({"operations": (*MIXED[:5], "conv")}, r"operations\[5\] is 'conv'"),
        ({"widths": (8, 16)}, "widths has 2 entries; pass 3, one per stack, or 5"),
        ({"widths": (8,) * 5, "cells": 2}, "or 8, one for each"),
        ({"widths": (8, 0, 8)}, "widths is 0"),
        ({"pixels": 3}, "pixels is 3"),
        ({"stride": 0}, "stride is 0"),
        ({"mean": (0.0, 1.0)}, "mean has 2 numbers"),
    ],
)
def test_what_cannot_be_built_is_refused_with_a_remedy(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        CellNetwork(**{"operations": MIXED, **given})  # pyright: ignore[reportArgumentType]
