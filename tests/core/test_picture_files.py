"""Pictures of every mode and kind, against the values that a viewer shows on white."""

import struct
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from ssd_core import SSDError
from ssd_core.cli.edit import EditOptions
from ssd_core.cli.like import drawable
from ssd_core.model.grid import Grid
from ssd_core.output import picture_files
from ssd_core.output.picture_files import (
    MOST_PIXELS,
    layers,
    mask_of_file,
    opened,
    pixels_of,
    redrawn_cells,
    upright,
)
from ssd_lab.evaluate.scorers.gallery import loaded
from studio.entries import shrunk
from studio.panels import as_upper_panel
from studio.pictures import as_png, converted, decoded

ROOT = Path(__file__).resolve().parents[2]
RED, WHITE, HALF_RED = (255, 0, 0), (255, 255, 255), (255, 127, 127)
GREY = (100, 100, 100)


def palette(opacity: bytes | int | None = None) -> Image.Image:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 255, *RED])
    if opacity is not None:
        image.info["transparency"] = opacity
    return image


def half_clear_palette() -> Image.Image:
    image = palette().convert("PA")
    image.putalpha(128)
    return image


def deep(mode: str, value: float, dtype: str) -> Image.Image:
    return Image.frombytes(mode, (8, 8), np.full((8, 8), value, dtype).tobytes())


def over_white(value: int, opacity: int) -> tuple[int, ...]:
    return (round((value * opacity + 255 * (255 - opacity)) / 255),) * 3


# What it is, the picture, the format it is saved in, the colour of its pixels.
MODES = [
    ("1", Image.new("1", (8, 8), 1), "PNG", WHITE),
    ("L", Image.new("L", (8, 8), 100), "PNG", GREY),
    ("LA", Image.new("LA", (8, 8), (100, 51)), "PNG", over_white(100, 51)),
    ("LA clear", Image.new("LA", (8, 8), (0, 0)), "TIFF", WHITE),
    ("P", palette(), "PNG", RED),
    ("P half clear", palette(b"\xff\x80"), "PNG", HALF_RED),
    ("P clear", palette(1), "GIF", WHITE),
    ("PA", half_clear_palette(), "TIFF", HALF_RED),
    ("RGB", Image.new("RGB", (8, 8), RED), "BMP", RED),
    ("RGBA", Image.new("RGBA", (8, 8), (*RED, 128)), "PNG", HALF_RED),
    ("RGBA clear", Image.new("RGBA", (8, 8), (0, 0, 0, 0)), "WEBP", WHITE),
    ("RGBX", Image.new("RGBX", (8, 8), (*RED, 0)), "TIFF", RED),
    ("CMYK", Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "TIFF", RED),
    ("CMYK of a JPEG", Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", RED),
    ("YCbCr", Image.new("RGB", (8, 8), RED).convert("YCbCr"), "JPEG", RED),
    ("LAB", Image.new("LAB", (8, 8), (255, 128, 128)), "TIFF", WHITE),
    ("I;16", deep("I;16", 25700, "<u2"), "PNG", GREY),
    ("I;16 dark", deep("I;16", 257, "<u2"), "PNG", (1, 1, 1)),
    ("I;16B", deep("I;16B", 25700, ">u2"), "TIFF", GREY),
    ("I of 16 bits", deep("I", 25700, "<i4"), "TIFF", GREY),
    ("I of 32 bits", deep("I", (2**31 - 1) * 100 // 255, "<i4"), "TIFF", GREY),
    ("F to 1", deep("F", 100 / 255, "<f4"), "TIFF", GREY),
    ("F from -1 to 1", deep("F", 200 / 255 - 1, "<f4"), "TIFF", GREY),
    ("F to 255", deep("F", 100, "<f4"), "TIFF", GREY),
    ("F to 65535", deep("F", 25700, "<f4"), "TIFF", GREY),
    ("RGB of AVIF", Image.new("RGB", (8, 8), RED), "AVIF", RED),
]


def saved(image: Image.Image, kind: str, **options) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def colour(body: bytes | Path) -> np.ndarray:
    with opened(body, "x") as image:
        return np.array(upright(image))[3, 3].astype(int)


@pytest.mark.parametrize(("image", "kind", "expected"), [case[1:] for case in MODES],
                         ids=[case[0] for case in MODES])
def test_every_mode_has_the_colours_that_a_viewer_shows(image, kind, expected):
    if kind == "AVIF" and "AVIF" not in picture_files.kinds():
        pytest.skip("this Pillow reads no AVIF")
    assert abs(colour(saved(image, kind)) - expected).max() <= 2


@pytest.mark.parametrize(("mode", "pixel"), [("HSV", (0, 255, 255)), ("RGBa", (128, 0, 0, 128)),
                                             ("I;16L", 65535), ("YCbCr", (76, 85, 255))])
def test_modes_that_no_file_has_are_shown_too(mode, pixel):
    image = (deep("I;16L", pixel, "<u2") if mode == "I;16L"
             else Image.merge(mode, [Image.new("L", (8, 8), value) for value in pixel])
             if mode != "RGBa" else Image.new("RGBA", (8, 8), (*RED, 128)).convert("RGBa"))
    shown = {"RGBa": HALF_RED, "I;16L": WHITE}.get(mode, RED)
    assert abs(np.array(upright(image))[0, 0].astype(int) - shown).max() <= 2


@pytest.mark.parametrize("most", [65535, 40000])
def test_deep_grey_has_all_its_shades(most):
    ramp = np.linspace(0, most, 64, dtype=np.uint16).reshape(8, 8)
    with opened(saved(Image.fromarray(ramp), "PNG"), "x") as image:
        shown = np.array(upright(image))[..., 0]
    assert abs(shown - ramp / 257.0).max() <= 1


def test_in_scans_that_say_so_zero_is_white():
    for depth in (np.uint8, np.uint16):
        grey = Image.fromarray(np.full((8, 8), 0.9 * np.iinfo(depth).max, depth))
        data = bytearray(saved(grey, "TIFF"))
        entry = struct.pack("<HHI", 262, 3, 1)  # Pillow writes that zero is black
        at = data.index(entry) + len(entry)
        data[at:at + 2] = b"\0\0"
        assert abs(colour(bytes(data)) - np.array([25, 25, 25])).max() <= 1


def test_floats_have_all_their_shades_whatever_their_unit():
    """Metres of a depth map, with a sky that is infinitely far."""
    metres = np.linspace(0, 10, 64, dtype=np.float32).reshape(8, 8)
    metres[0, 0], metres[7, 7] = np.nan, np.inf
    with opened(saved(Image.fromarray(metres), "TIFF"), "x") as image:
        shown = np.array(upright(image))[..., 0]
    assert shown[0, 0] == 0 and shown[7, 7] == 255
    assert np.diff(shown.reshape(-1)[:-1].astype(int)).min() > 0


def png(depth: int, kind: int, pixels: bytes, clear: bytes) -> bytes:
    """A PNG of 8 x 1 pixels, one colour of which is transparent, of any depth."""
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(
            ">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 1, depth, kind, 0, 0, 0))
            + chunk(b"tRNS", clear) + chunk(b"IDAT", zlib.compress(b"\0" + pixels))
            + chunk(b"IEND", b""))


@pytest.mark.parametrize(("depth", "kind", "pixels", "clear"), [
    (1, 0, b"\x40", b"\0\0"), (2, 0, b"\x1b\x1b", b"\0\1"), (4, 0, b"\x41\x41\x41\x41", b"\0\4"),
    (8, 0, bytes([9, 200] * 4), b"\0\x09"), (16, 0, b"\x12\x34\x00\x00" * 4, b"\x12\x34"),
    (8, 2, bytes([9, 8, 7, 0, 0, 0] * 4), b"\0\x09\0\x08\0\x07"),
    (16, 2, b"\x12\x34\x56\x78\x9a\xbc\0\0\0\0\0\0" * 4, b"\x12\x34\x56\x78\x9a\xbc")])
def test_the_one_transparent_colour_of_a_png_is_white_at_every_depth(depth, kind, pixels, clear):
    with opened(png(depth, kind, pixels, clear), "x") as image:
        colours, alpha = layers(image)
        assert alpha is not None
        shown, opaque = np.array(upright(image)), np.array(alpha) == 255
    assert 0 < opaque.sum() < 8 and (shown[~opaque] == 255).all()
    assert (shown[opaque] == np.array(colours)[opaque]).all()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_stand_as_the_camera_held_it(kind, orientation):
    """Shown, the left upper part is white in every one."""
    shown = np.zeros((32, 48), np.uint8)
    shown[:16, :16] = 255
    back = {6: 8, 8: 6}.get(orientation, orientation)  # the turn that undoes it
    turn, exif = picture_files.TURNS.get(back), Image.Exif()
    image = Image.fromarray(shown).convert("RGB")
    exif[picture_files.ORIENTATION] = orientation
    body = saved(image.transpose(turn) if turn is not None else image, kind, exif=exif)
    with opened(body, "x") as picture:
        assert abs(np.array(upright(picture))[..., 0].astype(int) - shown).mean() < 3


def test_of_a_moving_picture_the_first_frame_is_taken():
    frames = [Image.new("RGB", (8, 8), shade) for shade in (RED, "blue", "lime")]
    for kind in ("GIF", "WEBP", "PNG"):
        body = saved(frames[0], kind, save_all=True, append_images=frames[1:])
        assert abs(colour(body) - RED).max() <= 2, kind


def test_a_colour_profile_is_followed_where_it_fits_and_srgb_changes_nothing():
    lab, srgb = (ImageCms.ImageCmsProfile(ImageCms.createProfile(name)).tobytes()
                 for name in ("LAB", "sRGB"))
    noise = Image.effect_noise((8, 8), 90).convert("RGB")
    for profile in (srgb, b"no profile", lab):
        with opened(saved(noise, "PNG", icc_profile=profile), "x") as image:
            assert upright(image).tobytes() == noise.tobytes()
    lightness = Image.new("LAB", (8, 8), (136, 128 + 80, 128 + 67))  # sRGB's red
    assert abs(np.array(picture_files.in_srgb(lightness))[0, 0].astype(int) - RED).max() < 12


# Where pictures come in


def as_uploaded(path: Path) -> Image.Image:
    return Image.open(BytesIO(as_png(path.read_bytes(), "x", [(8, 8)])))


def as_typed(path: Path) -> Image.Image:
    with drawable(path, [(8, 8)]) as (picture, _):
        return Image.fromarray((pixels_of(picture) * 255).byte().numpy())


def as_control(path: Path) -> Image.Image:
    return Image.fromarray((as_upper_panel(path, (8, 16))[0] * 255).byte().numpy())


ENTRIES = {"upload": as_uploaded, "command line": as_typed, "control": as_control,
           "thumbnail": lambda path: Image.open(BytesIO(shrunk(path))), "scorer": loaded,
           "save as": lambda path: Image.open(BytesIO(converted(path.read_bytes(), "png", 1,
                                                                False)))}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(("image", "kind", "expected"),
                         [case[1:] for case in MODES if case[2] == "PNG"],
                         ids=[case[0] for case in MODES if case[2] == "PNG"])
def test_every_entry_sees_the_same_colours(tmp_path, entry, image, kind, expected):
    (tmp_path / "x.png").write_bytes(saved(image, kind))
    shown = ENTRIES[entry](tmp_path / "x.png").convert("RGB").getpixel((3, 3))
    assert np.abs(np.subtract(shown, expected)).max() <= 3


def test_no_other_module_opens_pictures():
    """But those that read what they wrote themselves."""
    own = {"ssd_core/output/replay.py", "lab/evaluate/plots.py"}
    files = [path for folder in ("ssd_core", "nodes", "studio", "lab/evaluate") for path in
             (ROOT / folder).rglob("*.py")]
    assert {path.relative_to(ROOT).as_posix() for path in files
            if "Image.open(" in path.read_text(encoding="utf-8")} == own


def test_what_an_upload_shows_is_what_the_app_keeps_with_its_texts():
    info = PngInfo()
    info.add_text("parameters", "a house")
    body = saved(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), "PNG", pnginfo=info)
    with Image.open(BytesIO(as_png(body, "x", [(8, 8)]))) as kept:
        assert (kept.mode, kept.info["parameters"]) == ("RGB", "a house")
    plain = saved(Image.new("RGB", (8, 8)), "PNG")
    assert as_png(plain, "x", [(8, 8)]) == plain


def test_two_uploads_are_decoded_at_once_and_no_more():
    body, most, now, lock = saved(Image.new("RGB", (8, 8)), "PNG"), 0, 0, threading.Lock()

    def decode(_: int) -> None:
        nonlocal most, now
        with decoded(body, "x"):
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.01)
            with lock:
                now -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(decode, range(12)))
    assert most == 2


# Masks


def test_what_is_transparent_is_drawn_anew_unless_words_or_a_region_say_what(tmp_path):
    image = Image.new("RGBA", (384, 384), "white")
    image.paste((0, 0, 0, 0), (0, 0, 384, 192))
    image.save(tmp_path / "x.png")
    backbone = SimpleNamespace(grid=Grid(24, 24), size=(384, 384))
    keep = EditOptions().keep_mask(backbone, tmp_path / "x.png")
    assert not keep[:12].any() and keep[12:].all()
    boxed = EditOptions(box="0,0,16,16").keep_mask(backbone, tmp_path / "x.png")
    assert (~boxed).sum() == 1
    assert EditOptions(old="a house").keep_mask(backbone, tmp_path / "x.png") is None
    image.putalpha(250)
    image.save(tmp_path / "x.png")
    assert EditOptions().keep_mask(backbone, tmp_path / "x.png") is None


def test_a_mask_of_sixteen_bits_frees_what_it_frees_in_eight(tmp_path):
    values = np.full((384, 384), 655, np.uint16)
    values[200:280, 200:280] = 65535
    Image.fromarray(values).save(tmp_path / "deep.png")
    Image.fromarray((values // 257).astype(np.uint8)).save(tmp_path / "plain.png")
    cells = [redrawn_cells(mask_of_file(tmp_path / name, (384, 384)), Grid(24, 24))
             for name in ("deep.png", "plain.png")]
    assert cells[0].equal(cells[1]) and cells[0].sum() == 36


@pytest.mark.parametrize(("mode", "kind"), [("RGBA", "PNG"), ("LA", "PNG"), ("RGBA", "WEBP"),
                                            ("P", "GIF"), ("P", "PNG")])
def test_transparency_is_a_mask_in_every_mode(tmp_path, mode, kind):
    alpha = np.full((32, 32), 255, np.uint8)
    alpha[:16] = 0
    image = Image.new("RGBA", (32, 32), "white")
    image.putalpha(Image.fromarray(alpha))
    if mode == "P":
        image = Image.frombytes("P", (32, 32), (alpha == 0).astype(np.uint8).tobytes())
        image.putpalette([200, 200, 200, 9, 9, 9])
        image.info["transparency"] = 1
    (tmp_path / "x").write_bytes(saved(image.convert(mode), kind, **(
        {"lossless": True} if kind == "WEBP" else {})))
    mask = mask_of_file(tmp_path / "x", (32, 32))
    assert mask[:15].min() > 0.9 and mask[17:].max() < 0.1


def test_a_mask_is_cut_as_the_photograph_that_it_was_painted_on(tmp_path):
    wide = np.zeros((64, 128), np.uint8)
    wide[:, 32:64] = 255
    Image.fromarray(wide).save(tmp_path / "x.png")
    mask = mask_of_file(tmp_path / "x.png", (32, 32))
    assert mask[:, :15].min() > 0.9 and mask[:, 17:].max() < 0.1


# Limits


@pytest.mark.parametrize("side", [8193, 20_000])
def test_too_many_pixels_are_counted_before_any_is_decoded(tmp_path, side):
    """Also where Pillow refuses them itself, without their number. A file of a header alone."""
    body = saved(Image.new("1", (8, 8)), "PNG")
    size = struct.pack(">II", side, side)
    header = b"IHDR" + size + body[24:29]
    (tmp_path / "x.png").write_bytes(
        body[:12] + header + struct.pack(">I", zlib.crc32(header)) + body[33:])
    with pytest.raises(SSDError, match=rf"x.png: {side}x{side} pixels are too many, at most 67 "):
        pixels_of(tmp_path / "x.png")
    assert side**2 > MOST_PIXELS


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, of damaged TIFF
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "AVIF"])
def test_damaged_pictures_of_every_kind_give_one_line(kind):
    if kind not in picture_files.kinds():
        pytest.skip(f"this Pillow reads no {kind}")
    body = saved(Image.effect_noise((24, 24), 60).convert("RGB"), kind)
    rng, refused = np.random.default_rng(0), 0
    for _ in range(60):
        bad = bytearray(body)
        for place in rng.integers(0, min(len(bad), 200), 3):
            bad[place] = rng.integers(0, 256)
        try:
            with opened(bytes(bad[: rng.integers(1, len(bad) + 1)]), "x.png") as image:
                upright(image)
        except SSDError as error:
            refused += 1
            assert str(error).startswith("x.png: ") and "\n" not in str(error)
    assert refused


def test_heic_without_its_package_says_which_one(monkeypatch):
    monkeypatch.setattr(picture_files, "kinds", lambda: ("PNG",))
    with pytest.raises(SSDError, match="pip install pillow-heif"):
        colour(b"\0\0\0\x18ftypheic" + bytes(40))
