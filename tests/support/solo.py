"""The library of the app's tests, and what the engine itself draws with the app's settings."""

from __future__ import annotations

from ssd_core import generate

SIDE = 12  # cells: rows and columns of the backbones in the library
PIXELS = SIDE * 16


def solo(library, drawing, **options):
    """Tokens of the same drawing, straight from the engine."""
    loaded = library.current
    return list(generate(loaded.backbone, [drawing.prompt] * drawing.pictures, drawing.method,
                         loaded.heads, drawing.sampling, **options))[-1].tokens
