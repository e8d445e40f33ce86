"""The README's comparison: the picture that its command `compare` saves, with fewer colours."""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from ssd_core.cli import main as ssd
from ssd_core.files import atomic_write

OUT = Path(__file__).resolve().parents[1] / "docs" / "ar_vs_ssd.png"
PROMPT = "two things, a blue tower and a yellow tent, in the snow, at night"
SEED, METHODS, COLOURS = 9, "ar,ssd,exact", 256


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if code := ssd(["compare", PROMPT, "--seed", str(SEED), "--methods", METHODS,
                        "--out", folder]):
            raise SystemExit(code)
        with Image.open(Path(folder) / f"compare-{SEED}.png") as sheet:
            save(sheet.convert("RGB"), OUT)


def save(picture: Image.Image, path: Path) -> None:
    with atomic_write(path) as temporary:
        picture.quantize(COLOURS).save(temporary, format="PNG", optimize=True)
