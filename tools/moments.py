"""All moments of the app as one contact sheet, to be looked at after a change to a page.

Takes the visits of tests/support/moments.py in a headless Chromium, in every language, size and
colour, and writes build/moments/sheet.webp and each picture in full beside it.
"""

from __future__ import annotations

import argparse
import io
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

import stills  # noqa: E402
from preview_page import browser  # noqa: E402
from support import moments as visits  # noqa: E402
from support.studio_visit import App, Visitor, begin_history  # noqa: E402

OUT = ROOT / "build" / "moments"
VISITS = {f"{language}-{name}": (language, screens) for language in visits.LANGUAGES
          for name, screens in (
              ("desk", visits.DESK), ("tablet", visits.TABLET), ("phone", visits.PHONE))}
TALL, GAP, HEAD = 288, 8, 36  # px of a picture in the sheet, between two, and of its name
Shot = tuple[str, str, Image.Image]  # moment, look, picture


def shots(chromium, app: App, folder: Path, name: str) -> Iterator[Shot]:
    """The pictures of one visit."""
    language, screens = VISITS[name]
    begin_history(app, folder / name)
    page = chromium.new_context(**visits.context(language, screens[0])).new_page()
    visitor = Visitor(page, app.address)
    for moment in visits.moments(visitor, app, language, screens[0].touch):
        for look in visits.looks(page, screens, visits.SCHEMES):
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            yield moment.name, f"{language} {look}", picture
    page.context.close()
    app.drop_all()


def sheet(pictures: list[Shot]) -> Image.Image:
    """A strip for each moment, all of its looks side by side; the strips fill a square."""
    strips = [strip([shot for shot in pictures if shot[0] == moment])
              for moment in dict.fromkeys(moment for moment, _, _ in pictures)]
    wide, tall = max(image.width for image in strips) + GAP, TALL + HEAD + GAP
    across = max(1, round(math.sqrt(len(strips) * tall / wide)))
    made = Image.new("RGB", (across * wide, math.ceil(len(strips) / across) * tall), "white")
    for n, image in enumerate(strips):
        made.paste(image, (n % across * wide, n // across * tall))
    return made


def strip(pictures: list[Shot]) -> Image.Image:
    small = [picture.resize((picture.width * TALL // picture.height, TALL), Image.LANCZOS)
             for _, _, picture in pictures]
    made = Image.new("RGB", (sum(image.width + GAP for image in small), TALL + HEAD), "white")
    pen, font, left = ImageDraw.Draw(made), ImageFont.load_default(12), 0
    for (moment, look, _), image in zip(pictures, small, strict=True):
        for n, line in enumerate((moment, look)):
            pen.text((left, 16 * n), line, "black", font)
        made.paste(image, (left, HEAD))
        left += image.width + GAP
    return made


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="VISIT", help=f"of {', '.join(VISITS)}")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    pictures = []
    with tempfile.TemporaryDirectory() as folder, visits.as_shipped(Path(folder)) as app, \
            browser() as chromium:
        for name in args.names or VISITS:
            for moment, look, picture in shots(chromium, app, Path(folder), name):
                stills.save(picture, args.out / f"{moment}, {look}.webp")
                pictures.append((moment, look, picture))
    path = args.out / "sheet.webp"
    stills.save(sheet(pictures), path)
    print(f"{path}: {len(pictures)} pictures")


if __name__ == "__main__":
    main()
