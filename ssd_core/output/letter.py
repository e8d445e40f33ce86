"""A picture to send: one HTML file that opens anywhere, without a network.

It is a postcard. The front is the picture, whose rows first appear as they do in a live preview;
the back has its words by hand and what drew it. Everything is inside as `data:` addresses, the
picture byte for byte where it is not too large: saved from the file, it still holds its recipe.
Without scripts the card turns over, too.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from html import escape
from string import Template

import numpy as np
from PIL import Image

from ..errors import SSDError
from ..files import ASSETS
from .foreign import exif_of, texts_of, told_by
from .picture_files import opened, upright
from .recipe import CHUNK, parsed, recipe_tokens
from .replay import FilmFrame, webp

SHOWN_BY_BROWSERS = {kind: f"image/{kind.lower()}" for kind in (
    "PNG", "JPEG", "WEBP", "AVIF", "GIF")}
MOST_BYTES = 8 << 20  # of a picture that is taken byte for byte
MOST_SIDE, QUALITY = 4096, 92  # px and quality of WebP, of one that is larger
FILM_SIDE, STAMP_SIDE = 512, 160  # px
FILM_SECONDS, FILM_FRAMES, AHEAD = 3.0, 36, (235, 150, 70)  # AHEAD: opacity of the rows in draft
CELL = 16  # px, of pictures that do not say how many cells they have
NARROWEST, WIDEST = 0.62, 1.7  # width / height of a card
UPRIGHT = 0.9  # from here down the address is below the words, not beside them
SMALLEST, LEGIBLE, LARGEST = 2.2, 3.6, 7.5  # letters, in percent of the card's width
LATIN, HAN = "U+0-FF, U+131, U+152-153, U+2000-206F, U+20AC", "U+2E80-9FFF, U+FF00-FFEF"
FONTS = (  # file, the characters it is for, what finds one of them, scale
    ("caveat-latin", LATIN, "", 118),
    ("caveat-latin-ext", "U+100-2BA, U+1E00-1EFF", "[\u0100-\u02ba\u1e00-\u1eff]", 118),
    ("caveat-cyrillic", "U+301, U+400-45F, U+490-491, U+2116", "[\u0400-\u045f\u0490\u0491]", 118),
    ("long-cang", HAN, "[\u2e80-\u9fff]", 128))
MONTHS = ("January February March April May June July August September October November "
          "December").split()
TEXTS = {
    "en": {"turn": "Turn over", "play": "▶ Play", "model": "Drawn by {}", "seed": "Seed {}",
           "title": "A picture"},
    "zh": {"turn": "翻面", "play": "▶ 播放", "model": "由 {} 绘制", "seed": "种子 {}",
           "title": "一幅图片"}}


@dataclass(frozen=True)
class PictureFacts:
    """What a picture tells of itself; cells: (rows, columns) of its tokens."""

    words: str = ""
    model: str = ""
    seed: str = ""
    cells: tuple[int, int] | None = None


def letter(picture: bytes, name: str, drawn: datetime, chinese: bool = False) -> str:
    """The HTML file of a picture of any kind, see `picture_files.FORMATS`.

    name: what errors call it. drawn: the date on the card. chinese: of its few own words.
    """
    with opened(picture, name) as image:
        image.load()
        texts, shown = texts_of(image), upright(image)
        mime = SHOWN_BY_BROWSERS.get(image.format or "")
    facts = facts_in(name, texts)
    if mime is None or len(picture) > MOST_BYTES:
        picture, mime = as_webp(shown, MOST_SIDE, texts), "image/webp"
    ratio = min(max(shown.width / shown.height, NARROWEST), WIDEST)
    script = asset("letter.js")
    style = fonts_for(facts.words) + asset("letter.css") + shape(facts.words, ratio)
    return Template(asset("letter.html")).substitute(
        texts_on_it(facts, drawn, chinese), style=style, script=script,
        policy=policy(style, script), layout=layout(facts.words, ratio),
        picture=as_data(picture, mime),
        film=as_data(film(shown, facts.cells), "image/webp"),
        thumbnail=as_data(as_webp(shown, STAMP_SIDE), "image/webp"))


def facts_in(name: str, texts: Mapping[str, str]) -> PictureFacts:
    """What the texts of a picture tell; a damaged recipe tells nothing."""
    try:
        recipe = parsed(name, texts[CHUNK])
    except (KeyError, SSDError):
        foreign = told_by(texts)
        words = foreign.get("prompt", "").encode(errors="replace").decode()  # no half characters
        return PictureFacts(words, "", foreign.get("seed", ""))
    rows, columns = recipe_tokens(recipe).shape
    return PictureFacts(recipe["prompt"], recipe["backbone"]["name"], str(recipe["seed"]),
                        (rows, columns))


def as_webp(picture: Image.Image, side: int, texts: Mapping[str, str] | None = None) -> bytes:
    """A picture of at most `side` px a side as WebP, with its recipe if that is among the texts."""
    small, file = picture.copy(), io.BytesIO()
    small.thumbnail((side, side))
    small.save(file, "WEBP", quality=QUALITY, exif=exif_of(texts or {}))
    return file.getvalue()


# The film of its rows


def film(picture: Image.Image, cells: tuple[int, int] | None) -> bytes:
    """A finished picture, revealed row by row as a WebP that plays once."""
    rows, columns = cells or (max(1, picture.height // CELL), max(1, picture.width // CELL))
    small = picture.copy()
    small.thumbnail((FILM_SIDE, FILM_SIDE))
    return webp(revealed(small, rows, columns), loop=1)


def revealed(picture: Image.Image, rows: int, columns: int) -> Iterator[FilmFrame]:
    """Frames [H, W, 4]: below the rows that are drawn some in draft, each cell in one colour."""
    draft = picture.resize((columns, rows), Image.Resampling.BOX).resize(
        picture.size, Image.Resampling.NEAREST)
    row_of = np.arange(picture.height) * rows // picture.height
    for place in np.linspace(-len(AHEAD), rows, FILM_FRAMES + 1):
        ahead = np.floor(row_of - place).astype(int).clip(-1, len(AHEAD))  # -1: drawn
        frame = np.where((ahead < 0)[:, None, None], np.asarray(picture), np.asarray(draft))
        opacity = np.array([*AHEAD, 0, 255], np.uint8)[ahead]
        alpha = np.broadcast_to(opacity[:, None, None], (*frame.shape[:2], 1))
        yield FilmFrame(np.concatenate((frame, alpha), -1), FILM_SECONDS / FILM_FRAMES)


# The file


def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def as_data(content: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode('ascii')}"


def policy(style: str, script: str) -> str:
    """The content policy: nothing from elsewhere, and of styles and scripts only these."""
    style, script = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
                     for text in (style, script))
    return (f"default-src 'none'; img-src data: blob:; font-src data:; style-src 'sha256-{style}';"
            f" script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'")


def fonts_for(words: str) -> str:
    """The fonts that have the letters of these words."""
    return "".join(
        f'@font-face {{ font-family: Hand; src: url("{as_data(font_file(name), "font/woff2")}") '
        f'format("woff2"); unicode-range: {letters}; size-adjust: {scale}%; }}\n'
        for name, letters, pattern, scale in FONTS if re.search(pattern, words))


def font_file(name: str) -> bytes:
    return (ASSETS / "fonts" / f"{name}.woff2").read_bytes()


def layout(words: str, ratio: float) -> str:
    """The classes of the card; long words, which may have to be scrolled, are not tilted."""
    long = written_size(words, ratio) < LEGIBLE
    return ("upright " if ratio < UPRIGHT else "") + ("long" if long else "tilted")


def shape(words: str, ratio: float) -> str:
    """The shape of the card, and how large its words are written."""
    return (f":root {{ --ratio: {ratio:.4f}; --wide: {math.sqrt(ratio):.4f}; "
            f"--hand: {written_size(words, ratio):.2f}; }}\n")


def written_size(words: str, ratio: float) -> float:
    """The size of letters, in percent of the card's width, that lets the words fill their place."""
    wide, tall = (86, 47 / ratio) if ratio < UPRIGHT else (46, 100 / ratio - 12)
    letters = sum(1.0 if letter > "\u2e80" else 0.46 for letter in words) + 1  # in widths
    size = math.sqrt(0.8 * wide * tall / (letters * 1.22))
    return min(max(size, SMALLEST), LARGEST * (1.5 if ratio < UPRIGHT else 1))


def texts_on_it(facts: PictureFacts, drawn: datetime, chinese: bool) -> dict[str, str]:
    """What is written on the card, escaped."""
    texts = TEXTS["zh" if chinese else "en"]
    day, date = days(drawn, chinese)
    lines = (texts["model"].format(facts.model) if facts.model else "", date,
             texts["seed"].format(facts.seed) if facts.seed else "")
    return {"words": escape(facts.words), "title": escape(facts.words[:80] or texts["title"]),
            "turn": texts["turn"], "play": texts["play"], "day": day, "year": str(drawn.year),
            "facts": "".join(f"<span>{escape(line)}</span>" for line in lines if line),
            "town": escape((facts.model or "SSD").upper()[:20]),
            "language": "zh-CN" if chinese else "en"}


def days(drawn: datetime, chinese: bool) -> tuple[str, str]:
    """A date as in a postmark, where the year is below it, and as in a letter."""
    if chinese:
        day = f"{drawn.month}月{drawn.day}日"
        return day, f"{drawn.year}年{day}"
    month = MONTHS[drawn.month - 1]
    return f"{drawn.day} {month[:3].upper()}", f"{drawn.day} {month} {drawn.year}"
