"""Pictures that come in and go out, in memory. Knows no history."""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.output.foreign import exif_of, texts_of
from ssd_core.output.letter import letter
from ssd_core.output.packed import pack_mask
from ssd_core.output.picture_files import (
    ENOUGH,
    MOST_PIXELS,
    Size,
    fitted,
    is_large,
    opened,
    redrawn_cells,
    transparent_part,
    upright,
)
from ssd_core.output.recipe import CHUNK
from ssd_core.weights.memory import trim

FORMATS = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}
SCALES, QUALITY = (1, 2), 92
KEPT = ("parameters", CHUNK)  # texts of a picture that say how it was drawn
DECODING = threading.BoundedSemaphore(2)
LARGE = threading.Lock()  # of these one at a time: its pixels alone may take 256 MiB


@contextmanager
def decoded(source: Path | bytes, name: str = "") -> Iterator[Image.Image]:
    """A picture with its pixels, while few others are in memory; see `opened`.

    A large one is gone after the block, and its memory is given back; a large JPEG is smaller.
    """
    with opened(source, name or source) as image:
        large = is_large(image)
        with LARGE if large else DECODING:
            if large:
                factor = math.isqrt(image.width * image.height // ENOUGH)
                image.draft(None, (image.width // factor, image.height // factor))
            try:
                image.load()
                yield image
            finally:
                if large:
                    image.close()
                    trim()


def as_png(body: bytes, name: str, sizes: Sequence[Size]) -> bytes:
    """A PNG of one of these sizes: as it was sent if it is one and looks as it is stored, else
    cropped and scaled.
    """
    with decoded(body, name) as image:
        shown = upright(image, ENOUGH)
        if shown.size not in sizes:
            return encoded(fitted(shown, sizes), "png")
        if image.format == "PNG" and shown is image:
            return body
        return encoded(shown, "png", texts_of(image))


def opaque_cells(body: bytes, name: str, backbone: Backbone) -> dict | None:
    """The cells of a sent picture that are not transparent, packed, at the backbone's size; None if
    those are all.
    """
    with opened(body, name) as image:
        if not image.has_transparency_data:
            return None
    with decoded(body, name) as image:
        clear = transparent_part(image, backbone.size)
    if clear is None:
        return None
    with suppress(SSDError):  # too small for a cell
        return pack_mask(~redrawn_cells(clear, backbone.grid)[0])
    return None


def converted(png: bytes, kind: str, scale: int, smooth: bool) -> bytes:
    """A saved picture in another format, or enlarged; it keeps its recipe."""
    with decoded(png, "picture") as image:
        if image.width * image.height * scale**2 > MOST_PIXELS:
            raise SSDError(f"picture: {scale} times its size is too large: take it as it is")
        shown, texts = upright(image), texts_of(image)
        larger = shown.resize(
            (shown.width * scale, shown.height * scale),
            Image.Resampling.LANCZOS if smooth else Image.Resampling.NEAREST)
        return encoded(larger, kind, {name: texts[name] for name in KEPT if name in texts})


def as_letter(png: bytes, name: str, drawn: datetime, chinese: bool) -> str:
    """A picture as a postcard in one HTML file, made while few others are in memory."""
    with DECODING:
        return letter(png, name, drawn, chinese)


def encoded(image: Image.Image, kind: str, texts: Mapping[str, str] | None = None) -> bytes:
    file, texts = io.BytesIO(), texts or {}
    if kind == "png":
        info = PngInfo()
        for name, text in texts.items():
            info.add_text(name, text)
        image.save(file, "PNG", pnginfo=info)
    else:
        image.save(file, kind.upper(), quality=QUALITY, exif=exif_of(texts))
    return file.getvalue()
