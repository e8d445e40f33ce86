"""Picture files of every kind that is read, opened in one place for every host and use.

Of what moves the first frame; turned as its camera says; in the colours that a viewer shows. Files
are not trusted: sizes are read before pixels. Knows no model.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageCms, ImageFile, ImageOps

from ..errors import SSDError
from ..files import require_file
from ..model.grid import Grid

FORMATS = ("PNG", "JPEG", "WEBP", "AVIF", "HEIF", "GIF", "TIFF", "BMP")
ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".avif", ".heic", ".heif", ".gif", ".tif", ".tiff",
           ".bmp")
HEIC = (b"ftypheic", b"ftypheix", b"ftyphevc", b"ftypheim", b"ftypmif1")  # where a file begins
MOST_PIXELS = 64 << 20
BAND = 256  # rows that are scaled at once
ENOUGH = 4 << 20  # pixels that are left of a large picture before it is cropped and scaled
UNREADABLE = (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error, TypeError,
              LookupError, AttributeError, RuntimeError, MemoryError,
              Image.DecompressionBombError)
PHOTOMETRIC, WHITE_IS_ZERO = 0x0106, 0  # a tag of TIFF, and its value in scans
ORIENTATION = 0x0112  # the tag of EXIF; its values from 2 on are these turns
TURNS = dict(enumerate((Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.ROTATE_180,
                        Image.Transpose.FLIP_TOP_BOTTOM, Image.Transpose.TRANSPOSE,
                        Image.Transpose.ROTATE_270, Image.Transpose.TRANSVERSE,
                        Image.Transpose.ROTATE_90), 2))
Size = tuple[int, int]  # width, height
WHITES = {"I": (65535, 2**31 - 1), "F": (1, 255, 65535)}  # of deep modes; of all others 65535
WHITE = 0.5  # a pixel is white from here on
LEAST = 0.25  # a cell is redrawn if this share of its area is white


@contextmanager
def opened(source: Path | bytes, name: object = None) -> Iterator[Image.Image]:
    """Open a picture of FORMATS, a file or what was sent; only its header is read.

    Raises SSDError, which calls it `name`, if it has too many pixels or cannot be read, also for
    errors of the block.
    """
    name = name or source
    if not isinstance(source, bytes):
        require_file(source)
    try:
        with BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
            image = recognized(file, name)
            if image.width * image.height > MOST_PIXELS:
                raise SSDError(f"{name}: {image.width}x{image.height} pixels are too many, at most "
                               f"{MOST_PIXELS // 10**6} million are read")
            yield image
    except UNREADABLE as error:
        raise SSDError(f"{name}: not a whole picture: give a PNG, JPEG, WebP, AVIF, GIF, TIFF or "
                       "BMP that other programs open") from error


def recognized(file: BinaryIO, name: object) -> ImageFile.ImageFile:
    """The picture in a file, with its size but without pixels.

    As Image.open, which has a limit of its own and does not tell the size of what is beyond it.
    """
    start = file.read(16)
    for kind in kinds():
        factory, accepts = Image.OPEN[kind]
        if accepts is None or accepts(start) is True:
            file.seek(0)
            image = factory(file, "")
            scale_transparent_colour(image)
            return image
    if start[4:12] in HEIC:
        raise SSDError(f"{name}: HEIC pictures need a package: pip install pillow-heif")
    raise SyntaxError("of no kind that is read")


@cache
def kinds() -> tuple[str, ...]:
    """Those of FORMATS that this Pillow reads, HEIF with the package pillow-heif."""
    Image.init()
    with suppress(ImportError):
        import pillow_heif

        pillow_heif.register_heif_opener()
    return tuple(kind for kind in FORMATS if kind in Image.OPEN)


def scale_transparent_colour(image: ImageFile.ImageFile) -> None:
    """Bring the one colour that a PNG calls transparent to 8 bits, as Pillow brings its pixels."""
    if image.format != "PNG" or not image.tile:
        return
    key, raw = image.info.get("transparency"), image.tile[0][3]
    if raw in ("L;2", "L;4") and isinstance(key, int):
        image.info["transparency"] = key * (85 if raw == "L;2" else 17)
    elif raw == "RGB;16B" and isinstance(key, tuple):
        image.info["transparency"] = tuple(value >> 8 for value in key)


# Pixels


def pixels_of(path: Path) -> torch.Tensor:
    """The pixels [H, W, 3] of a picture, float 0..1; see `upright`."""
    with opened(path) as image:
        return torch.from_numpy(np.array(upright(image))).float() / 255


def upright(image: Image.Image, enough: int = MOST_PIXELS) -> Image.Image:
    """A picture as a viewer shows it on white, in RGB; itself if that is how it is stored. enough:
    see `reduced`.
    """
    colours, alpha = layers(image, enough)
    if alpha is None:
        return colours
    white = Image.new("RGB", colours.size, "white")
    white.paste(colours, mask=alpha)
    return white


def fitted(image: Image.Image, sizes: Sequence[Size]) -> Image.Image:
    """A picture at the size that cuts off least of it, cut to its middle and scaled."""
    size = min(sizes, key=lambda size: misfit(image.size, size))
    return ImageOps.fit(image, size, Image.Resampling.LANCZOS)


def misfit(own: Size, size: Size) -> tuple[float, int]:
    """How much of a picture a size cuts off; then how far its pixels are from the picture's."""
    ratio = own[0] * size[1] / (own[1] * size[0])
    return max(ratio, 1 / ratio), abs(own[0] * own[1] - size[0] * size[1])


def is_large(image: Image.Image) -> bool:
    """Whether `reduced` takes something away from a picture where ENOUGH is."""
    return image.width * image.height >= 4 * ENOUGH


def reduced(image: Image.Image, enough: int) -> Image.Image:
    """A picture of at least four times `enough` pixels with fewer, but not fewer than these.

    Pixels are averaged band by band, so that no second copy of the whole is in memory.
    """
    factor = math.isqrt(image.width * image.height // enough)
    if factor < 2:
        return image
    across, down = min(factor, image.width), min(factor, image.height)
    small = None
    for top in range(0, image.height, BAND * down):
        band = image.crop((0, top, image.width, min(top + BAND * down, image.height)))
        if band.has_transparency_data:
            band = band.convert("RGBA")
        elif band.mode in ("1", "P"):
            band = band.convert("RGB")
        band = band.reduce((across, down))
        small = small or Image.new(band.mode, (band.width, -(-image.height // down)))
        small.paste(band, (0, top // down))
    assert small is not None
    small.info["icc_profile"] = image.info.get("icc_profile")
    return small


def layers(image: Image.Image,
           enough: int = MOST_PIXELS) -> tuple[Image.Image, Image.Image | None]:
    """The colours of a picture in RGB, those under transparent pixels among them, and its opacity
    in L, None if no pixel is transparent. Both are turned as the camera says, and `reduced`.
    """
    image.load()
    turn = TURNS.get(orientation(image))
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        image = in_eight_bits(image)
    image, alpha = reduced(image, enough), None
    if image.has_transparency_data:
        profile = image.info.get("icc_profile")
        image = image if image.mode == "RGBA" else image.convert("RGBA")
        alpha, image = image.getchannel("A"), image.convert("RGB")
        image.info["icc_profile"] = profile
    colours = in_srgb(image)
    if alpha and alpha.getextrema()[0] == 255:
        alpha = None
    if turn is None:
        return colours, alpha
    return colours.transpose(turn), alpha and alpha.transpose(turn)


def orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(ORIENTATION, 1))
    except UNREADABLE:  # damaged EXIF: viewers show such a picture as it is stored
        return 1


BELOW = 0.1  # of white: floats that reach less far below 0 do so by rounding or sharpening


def in_eight_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 or 32 bits as L, or as LA if one of its values is transparent.

    White is 65535; of larger whole numbers 2**31 - 1, of floats 1, or 255, or 65535. Where values
    are larger than the first and not near the others (within a factor of 4), the largest is white.
    Floats that reach well below 0 begin at minus white, such as those of -1..1, or at the least.
    """
    values = np.asarray(image)
    most = float(np.max(values, initial=0, where=np.isfinite(values)))
    first, *others = WHITES.get(image.mode, (65535,))
    white = first if most <= first else next(
        (other for other in others if other / 4 <= most <= other), most)
    least = float(np.min(values, initial=0, where=np.isfinite(values)))
    black = min(-white, least) if image.mode == "F" and least < -BELOW * white else 0
    scaled = np.empty(values.shape, np.uint8)
    for row in range(0, len(values), BAND):  # floats of a whole picture take much memory
        band = (values[row:row + BAND].astype(np.float32) - black) / (white - black)
        scaled[row:row + BAND] = (np.nan_to_num(band, nan=0).clip(0, 1) * 255).round()
    if getattr(image, "tag_v2", {}).get(PHOTOMETRIC) == WHITE_IS_ZERO:  # Pillow inverts 8 bits only
        scaled = 255 - scaled
    grey = Image.fromarray(scaled)
    if isinstance(key := image.info.get("transparency"), int):
        opaque = (values != key).astype(np.uint8) * 255
        grey = Image.merge("LA", (grey, Image.fromarray(opaque)))
    grey.info["icc_profile"] = image.info.get("icc_profile")
    return grey


def in_srgb(image: Image.Image) -> Image.Image:
    """A picture without transparency in RGB, by its colour profile if it has one that fits."""
    profile = image.info.get("icc_profile")
    if image.mode in ("1", "P"):
        image = image.convert("RGB")
    if profile:
        with suppress(ImageCms.PyCMSError, ImportError, *UNREADABLE):
            own = ImageCms.ImageCmsProfile(BytesIO(profile))
            if "sRGB" not in ImageCms.getProfileDescription(own):
                turned = ImageCms.profileToProfile(image, own, ImageCms.createProfile("sRGB"),
                                                   outputMode="RGB")
                assert turned is not None  # it is so only in place
                return turned
    return image if image.mode == "RGB" else image.convert("RGB")


def redrawn_cells(mask: torch.Tensor, grid: Grid) -> torch.Tensor:
    """The cells to redraw, bool [B, R, C], of masks [H, W], [B, H, W] or [B, 1, H, W] of any size,
    0..1.

    Raises SSDError for a mask that frees no cell.
    """
    white = mask.reshape(-1, *mask.shape[-2:]).float().cpu() >= WHITE
    area = F.interpolate(white[:, None].float(), (grid.rows, grid.columns), mode="area")[:, 0]
    cells = area >= LEAST
    if not white.numel() or not white.flatten(1).any(1).all():
        raise SSDError("mask: nothing in it is white, so nothing would be redrawn: paint white "
                       "what is to change")
    if not cells.flatten(1).any(1).all():
        raise SSDError(f"mask: what is white fills no quarter of any of the {grid} cells: paint a "
                       "larger area")
    return cells


def mask_of_file(path: Path, size: Size) -> torch.Tensor:
    """A mask [H, W] of a picture, scaled and cut to `size` (width, height) as a photograph is: what
    is transparent, or else what is bright, is white.
    """
    with opened(path) as image:
        colours, alpha = layers(image)
        return white_part(colours.convert("L") if alpha is None else inverted(alpha), size)


def mask_note(path: Path) -> str:
    """A line if a mask has transparent and white pixels, of which the first are taken; else ""."""
    with opened(path) as image:
        colours, alpha = layers(image)
        if alpha is None:
            return ""
        white = (np.asarray(colours.convert("L")) >= 128) & (np.asarray(alpha) >= 128)
    return (f"{path}: has transparent and white parts; what is transparent is redrawn, white stays"
            if white.any() else "")


def transparent_part(image: Image.Image, size: Size) -> torch.Tensor | None:
    """The same of what is transparent in a picture; None if nothing is."""
    if not image.has_transparency_data:  # pixels only if need be
        return None
    alpha = layers(image, ENOUGH)[1]
    return None if alpha is None else white_part(inverted(alpha), size)


def inverted(mask: Image.Image) -> Image.Image:
    return mask.point(lambda value: 255 - value)


def white_part(mask: Image.Image, size: Size) -> torch.Tensor:
    return torch.from_numpy(np.array(fitted(mask, [size]))).float() / 255


def mask_of_box(x: int, y: int, width: int, height: int, size: tuple[int, int]) -> torch.Tensor:
    """A mask [H, W] of a picture of `size` (width, height), white in a box in pixels."""
    if min(x, y) < 0 or min(width, height) < 1 or x + width > size[0] or y + height > size[1]:
        raise SSDError(f"box {x},{y},{width},{height}: it must lie within {size[0]}x{size[1]} "
                       "pixels; give x,y,width,height")
    mask = torch.zeros(size[1], size[0])
    mask[y : y + height, x : x + width] = 1
    return mask
