"""The README's comparison: the picture that its command `compare` saves."""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image
from stills import save

from ssd_core.cli import main as ssd

OUT = Path(__file__).resolve().parents[1] / "docs" / "ar_vs_ssd.webp"
PROMPT = "a red house on the left, a blue boat on the right, a lake, at sunset"
SEED, METHODS = 4, "ar,ssd,exact"


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if code := ssd(["compare", PROMPT, "--seed", str(SEED), "--methods", METHODS,
                        "--out", folder]):
            raise SystemExit(code)
        with Image.open(Path(folder) / f"compare-{SEED}.png") as sheet:
            save(sheet, OUT)
