"""Which methods have constants of their own, and of which class those are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from certcal.training._constants import Constants


def own_class(method: str) -> type[Constants] | None:
    """The class of a method's own constants; None if it has none.

    Examples
    --------
    >>> own_class("gaussian") is None, own_class("macer").__name__
    (True, 'Macer')
    """
    # Here, because the classes are the objectives, which need much that needs recipes.
    if method == "macer":
        from certcal.training._macer import Macer

        return Macer
    if method == "consistency":
        from certcal.training._consistency import Consistency

        return Consistency
    if method == "smoothmix":
        from certcal.training._smoothmix import SmoothMix

        return SmoothMix
    if method == "cat-rs":
        from certcal.training._catrs import CatRs

        return CatRs
    if method == "acr":
        from certcal.training._acr import EasyFirst

        return EasyFirst
    return None


def constants_of(method: str) -> dict[str, Any]:
    """The constants that only one method has, with their defaults.

    Examples
    --------
    >>> constants_of("standard")
    {}
    """
    from certcal.training._recipe import known_method

    kind = own_class(known_method(method))
    return {} if kind is None else asdict(kind())
