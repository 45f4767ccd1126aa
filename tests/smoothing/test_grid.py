"""Thresholds: fixed, symmetric, dense near 0 and 1."""

import hashlib
from decimal import Decimal
from typing import Any

import mpmath
import numpy as np
import pytest

from certcal import InputError
from certcal.smoothing import default_thresholds
from certcal.smoothing._counts import check_thresholds


def test_the_grid_is_evenly_spaced_in_the_arcsine_and_symmetric() -> None:
    t = default_thresholds()
    assert t.shape == (255,)
    assert t.dtype == np.float64
    assert np.all(np.diff(t) > 0)
    np.testing.assert_array_equal(t[::-1][:127], 1 - t[:127])
    np.testing.assert_allclose(np.diff(np.arcsin(np.sqrt(np.concatenate([[0], t, [1]])))), np.pi / 512, rtol=1e-4)


def test_the_grid_is_dense_near_0_and_1() -> None:
    gaps = np.diff(np.concatenate([[0], default_thresholds(), [1]]))
    assert np.all(np.diff(gaps[:128]) > 0)
    assert gaps[0] < gaps[127] / 100


def test_the_grid_is_the_same_on_every_machine() -> None:
    with mpmath.workdps(50):
        for step, t in zip(range(1, 128), default_thresholds(), strict=False):
            share = mpmath.sin(mpmath.pi * step / 512) ** 2
            decimals = Decimal(mpmath.nstr(share, 30)) * 10**12
            error = float(decimals) * 8 * 2.0**-52  # of any sensible sine in float64
            assert abs(float(decimals % 1) - 0.5) > error, "so near to a midpoint that machines could differ"
            assert float(t) == float(Decimal(round(decimals)).scaleb(-12))
    digest = hashlib.sha256(default_thresholds().tobytes()).hexdigest()
    assert digest == "62eb132e7f1c25a96cce8fffb481f87c128f4694ba9a5ccf885f08a1fe8bcf0f"


@pytest.mark.parametrize(
    ("thresholds", "complaint"),
    [
        ([], "thresholds has shape (0,); pass from 1 to 65535 numbers between 0 and 1"),
        ([[0.5]], "thresholds has shape (1, 1); pass from 1 to 65535 numbers between 0 and 1"),
        ([0.0, 0.5], "thresholds[0] is 0.0; pass numbers strictly between 0 and 1"),
        ([0.5, 1.0], "thresholds[1] is 1.0; pass numbers strictly between 0 and 1"),
        ([0.5, np.nan], "thresholds[1] is nan; pass numbers strictly between 0 and 1"),
        ([0.2, 0.2], "thresholds[1] is 0.2, not above thresholds[0] = 0.2; sort them and drop repetitions"),
    ],
)
def test_thresholds_that_make_no_grid_are_refused(thresholds: Any, complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        check_thresholds(thresholds)
    assert str(caught.value) == complaint
