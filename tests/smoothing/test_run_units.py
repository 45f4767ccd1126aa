"""The cut of a run into units: everything once, nothing twice, always the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.smoothing._manifest import Size, default_unit, number_of_units, plan


@st.composite
def growths(draw):
    """Sizes of a run that grows a few times."""
    pilot = draw(st.integers(1, 5))
    samples, n = draw(st.integers(1, 6)), pilot + draw(st.integers(0, 20))
    sizes = [Size(samples, n)]
    for _ in range(draw(st.integers(0, 3))):
        samples, n = samples + draw(st.integers(0, 5)), n + draw(st.integers(0, 15))
        sizes.append(Size(samples, n))
    return sizes, pilot


@given(growths(), st.integers(1, 9), st.integers(1, 60), st.integers(1, 4))
def test_every_draw_is_in_exactly_one_unit_and_every_sample_in_one_part(growth, n0, unit, parts):
    sizes, pilot = growth
    seen = {"selection": np.zeros((sizes[-1].samples, n0)), "counting": np.zeros(sizes[-1])}
    owners = [set() for _ in range(sizes[-1].samples)]
    for piece in plan(sizes, n0, pilot, unit, parts):
        seen[piece.stage][piece.first : piece.last, piece.start : piece.stop] += 1
        for sample in range(piece.first, piece.last):
            owners[sample].add(piece.part)
    assert np.all(seen["selection"] == 1)
    assert np.all(seen["counting"] == 1)
    assert all(len(each) == 1 for each in owners)


@given(growths(), st.integers(1, 9), st.integers(1, 60), st.integers(1, 4))
def test_units_are_counted_without_making_them(growth, n0, unit, parts):
    sizes, pilot = growth
    assert number_of_units(sizes, n0, pilot, unit, parts) == len(plan(sizes, n0, pilot, unit, parts))


@given(growths(), st.integers(1, 9), st.integers(1, 60), st.integers(1, 4))
def test_a_run_that_grows_keeps_its_units(growth, n0, unit, parts):
    sizes, pilot = growth
    assert set(plan(sizes[:1], n0, pilot, unit, parts)) <= set(plan(sizes, n0, pilot, unit, parts))


@given(growths(), st.integers(1, 9), st.integers(1, 60))
def test_units_keep_to_their_size_to_the_pilot_and_to_the_class_that_is_chosen(growth, n0, unit):
    sizes, pilot = growth
    for piece in plan(sizes, n0, pilot, unit):
        if piece.stage == "selection":
            assert (piece.start, piece.stop) == (0, n0)
            assert piece.passes <= max(unit, n0)
        else:
            assert piece.passes <= unit
            assert piece.stop <= pilot or piece.start >= pilot


def test_names_of_shards_are_unique_and_selection_comes_first():
    units = plan([Size(40, 90), Size(50, 120)], 7, 9, 64)
    assert len({unit.name for unit in units}) == len(units)
    stages = [unit.stage for unit in units]
    assert stages == sorted(stages, reverse=True)


@pytest.mark.parametrize("samples", [1, 100, 10_000, 10**6, 10**9])
@pytest.mark.parametrize("n", [1, 10_000, 10**6])
def test_a_run_of_any_size_has_some_thousands_of_shards_at_most(samples, n):
    unit = default_unit(samples, 100, n, 500)
    assert unit % 500 == 0
    assert number_of_units([Size(samples, n)], 100, max(1, n // 10), unit) < 20_000
