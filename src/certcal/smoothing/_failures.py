"""How many certificates of a data set may be wrong at once."""

from __future__ import annotations

from dataclasses import dataclass

from certcal.claims import move_outward


@dataclass(frozen=True)
class Failures:
    """How many certificates may be wrong at once, and what that does to a calibration error.

    Attributes
    ----------
    count
        K: more than K certificates fail with probability at most ``delta``.
    delta
        That probability.
    n
        Number of samples in the error.
    term
        2K/n: what K wrong samples can add to a worst-case calibration error, rounded up.

    Examples
    --------
    >>> failing(1000, 0.001, 1e-6)
    Failures(count=9, delta=1e-06, n=1000, term=0.018000000000000006)
    """

    count: int
    delta: float
    n: int
    term: float


def failing(n: int, level: float, delta: float, size: int | None = None) -> Failures:
    """The least K that Binomial(n, level) exceeds with probability at most delta, and 2K/size."""
    from scipy.special import betainc

    # P(Bin > K) = I_level(K + 1, n - K), evaluated with room for its rounding. It falls in K: bisection.
    low, high = -1, n
    while high - low > 1:
        k = (low + high) // 2
        if betainc(k + 1, n - k, level) * (1 + 1e-9) <= delta:
            high = k
        else:
            low = k
    over = n if size is None else size
    return Failures(high, delta, over, move_outward(2 * high / over, "upper") if high and over else 0.0)
