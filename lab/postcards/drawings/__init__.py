"""What each kind looks like: several drawings a kind, of which a scene shows one."""

from __future__ import annotations

from collections.abc import Callable

from ..pen import Pen
from . import animals, boats, buildings, flying, garden, plants, vehicles

DRAWINGS: dict[str, tuple[Callable[[Pen], None], ...]] = {
    kind: drawings for module in (animals, boats, buildings, flying, garden, plants, vehicles)
    for kind, drawings in module.DRAWINGS.items()}
