"""The library of the app's tests, and what the engine itself draws with the app's settings."""

from __future__ import annotations

from ssd_core import generate

SIDE = 12  # cells: rows and columns of the backbones in the library
PIXELS = SIDE * 16


def solo(library, settings, **options):
    """Tokens of the same settings, straight from the engine."""
    loaded = library.current
    method = settings.chosen_method()
    return list(generate(loaded.backbone, [settings.prompt] * settings.pictures, method,
                         loaded.heads, settings.sampling(), **options))[-1].tokens
