"""How pictures of the documents are stored: as WebP, half as large as PNG or JPEG."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from ssd_core.files import atomic_write

QUALITY = 85


def save(picture: Image.Image, path: Path) -> None:
    with atomic_write(path) as temporary:
        picture.convert("RGB").save(temporary, format="WEBP", quality=QUALITY, method=6)
