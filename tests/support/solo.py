"""What the engine itself draws with the app's settings."""

from __future__ import annotations

from ssd_core import generate


def solo(library, settings, **options):
    """Tokens of the same settings, straight from the engine."""
    loaded = library.current
    method = settings.chosen_method()
    return list(generate(loaded.backbone, [settings.prompt] * settings.pictures, method,
                         loaded.heads, settings.sampling(), **options))[-1].tokens
