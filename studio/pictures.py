"""Pictures that come in and go out: PNG, JPEG and WebP, in memory. Knows no history."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence

from PIL import Image
from PIL.PngImagePlugin import PngImageFile, PngInfo

from ssd_core import SSDError
from ssd_core.output.recipe import CHUNK, UNREADABLE
from ssd_core.output.source_pictures import FORMATS as TAKEN
from ssd_core.output.source_pictures import Size, fitted, upright

from .entries import MOST_PIXELS

FORMATS = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}
SCALES, QUALITY = (1, 2), 92
KEPT = ("parameters", CHUNK)  # texts of a PNG that say how it was drawn


def read(body: bytes, name: str) -> Image.Image:
    """A picture that was sent, with its pixels; SSDError if it is none, or too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(body), formats=TAKEN)
            if image.width * image.height > MOST_PIXELS:
                raise SSDError(f"{name}: {image.width}x{image.height} pixels are too many, at most "
                               f"{MOST_PIXELS >> 20} million are read")
            image.load()
    except UNREADABLE as error:
        raise SSDError(f"{name}: not a whole PNG, JPEG or WebP picture: give one that other "
                       "programs open") from error
    return image


def as_png(body: bytes, name: str, sizes: Sequence[Size]) -> bytes:
    """A PNG of one of these sizes: as it was sent if it is one, else cropped and scaled."""
    image = read(body, name)
    if image.format == "PNG" and image.size in sizes:
        return body
    return encoded(fitted(upright(image), sizes), "png")


def converted(png: bytes, kind: str, scale: int, smooth: bool) -> bytes:
    """A saved picture in another format, or enlarged; a PNG keeps its recipe."""
    image = read(png, "picture")
    if image.width * image.height * scale**2 > MOST_PIXELS:
        raise SSDError(f"picture: {scale} times its size is too large: take it as it is")
    larger = image.convert("RGB").resize(
        (image.width * scale, image.height * scale),
        Image.Resampling.LANCZOS if smooth else Image.Resampling.NEAREST)
    return encoded(larger, kind, texts_of(image))


def texts_of(image: Image.Image) -> PngInfo:
    info = PngInfo()
    texts = image.text if isinstance(image, PngImageFile) else {}
    for name in KEPT:
        if name in texts:
            info.add_text(name, texts[name])
    return info


def encoded(image: Image.Image, kind: str, info: PngInfo | None = None) -> bytes:
    file = io.BytesIO()
    if kind == "png":
        image.save(file, "PNG", pnginfo=info)
    else:
        image.save(file, kind.upper(), quality=QUALITY)
    return file.getvalue()
