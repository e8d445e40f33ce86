"""Drawings as a visitor of the app asks for them."""

from __future__ import annotations

from typing import Any

from ssd_core.output.drawing import Drawing
from studio.settings import asked


def wished(**values: Any) -> Drawing:
    """The drawing of these settings; all others have their default."""
    return asked(values)


def by_methods(drawing: Drawing, *names: str) -> list[Drawing]:
    """The drawing by each of these methods."""
    return [asked({"method": name}, drawing) for name in names]
