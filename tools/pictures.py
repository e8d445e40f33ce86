"""The pictures of the documents and of the app's examples, and the scripts that make them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST = {".webp": 800_000}  # bytes of a film
LARGEST_STILL = 300_000
APP = ("create", "race", "redo", "seeds", "history", "backbones", "doctor", "phone")


@dataclass(frozen=True)
class Picture:
    """A script of this folder, its arguments, and the files that it makes."""

    script: str
    arguments: tuple[str, ...]
    files: tuple[str, ...]

    def make(self) -> None:
        import_module(self.script).main(list(self.arguments))


def film(file: str, *arguments: str) -> Picture:
    return Picture("preview_film", (*arguments, "--out", str(ROOT / file)), (file,))


PICTURES = {
    "postcards": Picture("contact_sheet", (), ("docs/postcards.jpg", "docs/crops.jpg")),
    "short_prompt": Picture("short_prompt", (), ("docs/short_prompt.jpg",)),
    "comparison": Picture("comparison", (), ("docs/ar_vs_ssd.png",)),
    "examples": Picture("examples", (), tuple(f"studio/examples/{n}.jpg" for n in range(8))),
    "race": film("docs/race.webp", "--methods", "ar,ssd:rounds=2"),
    "rows": film("docs/rows.webp", "--methods", "exact", "--overlay", "--speed", "0.125"),
    "app": Picture("app_pictures", (), tuple(f"docs/app/{name}.png" for name in APP))}


def complaints(name: str) -> list[str]:
    """Files of a picture that are missing or too large for a repository."""
    return [f"{file} {wrong}: run python tools/make.py pictures {name}"
            for file in PICTURES[name].files if (wrong := complaint(ROOT / file))]


def complaint(path: Path) -> str:
    if not path.exists():
        return "is missing"
    most = LARGEST.get(path.suffix, LARGEST_STILL)
    size = path.stat().st_size
    return f"has {size:,} bytes, more than {most:,}" if size > most else ""
