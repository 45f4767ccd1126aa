"""What every class of a method's own constants offers the loop and the recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from certcal.training._methods import Parts
    from certcal.training._recipe import Recipe


class Constants(Protocol):
    """Base of the classes of own constants, one per method: frozen dataclasses whose fields have defaults."""

    RECIPE: ClassVar[dict[str, Any]] = {}
    EPOCHS: ClassVar[tuple[str, ...]] = ()
    PUBLISHED: ClassVar[dict[str, dict[float, dict[str, Any]]]] = {}

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def parts(self, recipe: Recipe) -> Parts:
        """What the loop is made of."""
        ...

    def fits(self, recipe: Recipe) -> None:
        """Raise unless the constants go together with the rest of a recipe."""

    def can_begin(self, recipe: Recipe, started: bool) -> None:
        """Raise unless training can begin; ``started`` if it does so with weights that were trained before."""
