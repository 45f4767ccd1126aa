"""The search spaces of NATS-Bench: how many cells there are, and which of them are the same."""

from itertools import permutations, product

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.study import Cell, SizeSpace, TopologySpace
from certcal.lab.study._spaces import OPERATIONS

SPACE = TopologySpace()
CELLS = list(SPACE.cells())
WIDTH = 5


def evaluate(cells, pooled, per_edge=None):
    """The outputs of many cells on one random input, edge by edge, with random maps for the operations.

    Every map takes zeros to zeros. ``pooled`` is the map of average pooling;
    ``per_edge`` holds further weights that are added to each edge's convolutions.
    """
    rng = np.random.default_rng(7)
    inputs = rng.normal(size=WIDTH)
    weights = {name: rng.normal(size=(2, WIDTH, WIDTH)) for name in ("nor_conv_1x1", "nor_conv_3x3")}

    def convolve(name, edge, x):
        first, second = weights[name] + (0 if per_edge is None else per_edge[edge])
        return np.tanh(x @ first) @ second

    choices = np.array([cell.operations for cell in cells])
    nodes = [np.tile(inputs, (len(cells), 1))]
    edge = 0
    for target in (1, 2, 3):
        total = np.zeros((len(cells), WIDTH))
        for source in range(target):
            x = nodes[source]
            made = {"skip_connect": x, "avg_pool_3x3": pooled(x)}
            made |= {name: convolve(name, edge, x) for name in weights}
            for name, values in made.items():
                total += np.where(choices[:, [edge]] == name, values, 0.0)
            edge += 1
        nodes.append(total)
    return nodes[3]


def linear(x):
    return x @ np.random.default_rng(8).normal(size=(WIDTH, WIDTH))


def labels(outputs):
    """The same number for outputs that are equal but for the order of summation."""
    _, found = np.unique(np.round(outputs, 5) + 0.0, axis=0, return_inverse=True)
    return found.reshape(-1)


def is_one_to_one(first, second):
    pairs = len(set(zip(first, second, strict=True)))
    return pairs == len(set(first)) == len(set(second))


def test_the_topology_space_has_as_many_cells_as_published():
    assert len(SPACE) == len(CELLS) == len(set(SPACE)) == 15_625
    assert len(SPACE.unique()) == 6_466


def families(cells):
    """The same number for cells whose outputs are the same, once the weights of their edges are put in some order."""
    own = np.random.default_rng(9).normal(size=(6, 2, WIDTH, WIDTH))
    outputs = np.stack([evaluate(cells, linear, own[list(order)]) for order in permutations(range(6))])
    outputs = np.round(outputs, 5) + 0.0
    first = np.array([min(map(tuple, outputs[:, cell].tolist())) for cell in range(len(cells))])
    return labels(first).tolist()


def test_the_number_of_functions_is_between_those_with_shared_weights_and_with_none_merged():
    assert len(SPACE.unique("function")) == len({cell.function for cell in CELLS}) == 5_044
    shared = labels(evaluate(CELLS, linear)).tolist()
    assert len(set(shared)) == 4_660
    # Cells of one function compute the same also when weights are shared.
    assert len(set(zip(shared, (cell.function for cell in CELLS), strict=True))) == 5_044


def test_cells_have_one_function_exactly_when_some_order_of_their_weights_makes_them_compute_the_same():
    shared = labels(evaluate(CELLS, linear)).tolist()
    kinds = {}
    for kind, cell in zip(shared, CELLS, strict=True):
        kinds.setdefault(kind, []).append(cell)
    # Where it is hard: groups that sharing weights makes one, and that have several functions. And some others.
    hard = [group for group in kinds.values() if len({cell.function for cell in group}) > 1]
    assert len(hard) > 100
    chosen = [cell for group in (*hard[::20], *list(kinds.values())[::300]) for cell in group[:8]]
    assert is_one_to_one(families(chosen), [cell.function for cell in chosen])


def test_the_published_rule_counts_some_cells_twice_and_takes_others_for_the_same():
    functions, texts = {}, {}
    for cell in CELLS:
        functions.setdefault(cell.published, set()).add(cell.function)
        texts.setdefault(cell.function, set()).add(cell.published)
    assert any(len(found) > 1 for found in texts.values())
    twice = Cell(("nor_conv_1x1", "none", "skip_connect", "none", "skip_connect", "skip_connect"))
    two = Cell(("nor_conv_1x1", "nor_conv_1x1", "none", "none", "skip_connect", "skip_connect"))
    assert twice.published == two.published
    assert functions[twice.published] == {twice.function, two.function}
    assert twice.function == "nor_conv_1x1#1(x) + nor_conv_1x1#1(x)"
    assert two.function == "nor_conv_1x1#1(x) + nor_conv_1x1#2(x)"


def test_a_cell_is_written_and_read_as_nats_bench_does():
    for text in list(SPACE)[::97]:
        assert str(Cell.parse(text)) == text
        assert text in SPACE
    assert f" {next(iter(SPACE))}" not in SPACE
    assert 3 not in SPACE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "|none~0|",
        "|none~0|+|none~0|none~1|+|none~0|none~1|none~3|",
        "|none~0|+|none~0|none~1|+|none~0|none~1|",
        "|none|+|none~0|none~1|+|none~0|none~1|none~2|",
        "none~0|+|none~0|none~1|+|none~0|none~1|none~2|",
    ],
)
def test_what_is_no_cell_is_refused_with_how_one_is_written(text):
    with pytest.raises(InputError, match="is not a cell; write it as NATS-Bench does"):
        Cell.parse(text)
    assert text not in SPACE


def test_an_unknown_operation_is_refused_with_its_edge():
    with pytest.raises(InputError, match=r"operations\[2\] is 'max_pool'; use one of none"):
        Cell.parse("|none~0|+|none~0|max_pool~1|+|none~0|none~1|none~2|")
    with pytest.raises(InputError, match="has 5 entries; a cell has 6 edges"):
        Cell(("none",) * 5)


@pytest.mark.parametrize(("space", "names"), [(SPACE, list(SPACE)[::1500]), (SizeSpace([1, 2, 3]), None)])
def test_neighbours_differ_in_one_choice_and_are_mutual(space, names):
    for name in names or space:
        around = space.neighbours(name)
        assert len(set(around)) == len(around)
        assert name not in around
        for other in around:
            assert other in space
            assert name in space.neighbours(other)
    one = Cell(("none",) * 6).operations
    for other in SPACE.neighbours(str(Cell(one))):
        assert sum(a != b for a, b in zip(one, Cell.parse(other).operations, strict=True)) == 1


def test_unique_cells_are_the_first_of_their_kind():
    assert set(SPACE.unique()) <= set(SPACE)
    assert SPACE.unique()[0] == next(iter(SPACE))
    with pytest.raises(InputError, match="rule is 'isomorphic'; use 'published' or 'function'"):
        SPACE.unique("isomorphic")


def test_the_size_space_has_as_many_architectures_as_published():
    space = SizeSpace()
    assert len(space) == 32_768
    assert len(set(SizeSpace([2, 4]))) == 32
    assert len(space.neighbours("8:16:24:32:64")) == 35
    assert list(SizeSpace([2, 4]))[:2] == ["2:2:2:2:2", "2:2:2:2:4"]


@pytest.mark.parametrize("name", ["8:8:8:8", "8:8:8:8:9", "08:8:8:8:8", "8:8:8:8:8:8", "a", "8:8:8:8:-8", 8])
def test_what_is_no_size_is_not_in_the_space(name):
    assert name not in SizeSpace()


def test_bad_widths_and_names_of_sizes_are_refused():
    for channels in ([], [0, 1], [2, 2]):
        with pytest.raises(InputError, match="pass different widths of at least 1"):
            SizeSpace(channels)
    with pytest.raises(InputError, match="'8:8' is not a size; write 5 of 8, 16"):
        SizeSpace().neighbours("8:8")


def test_every_choice_of_operations_is_a_cell():
    assert [cell.operations for cell in CELLS] == list(product(OPERATIONS, repeat=6))
