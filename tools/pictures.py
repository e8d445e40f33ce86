"""The pictures of the documents and of the app's examples, and the scripts that make them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST, LARGEST_FILM = 300_000, 600_000  # bytes
APP = ("create", "race", "edit", "seeds", "history", "models", "doctor", "phone")


@dataclass(frozen=True)
class Picture:
    """A script of this folder, its arguments, and the files that it makes, of at most `most` bytes.
    """

    script: str
    arguments: tuple[str, ...]
    files: tuple[str, ...]
    most: int = LARGEST

    def make(self) -> None:
        import_module(self.script).main(list(self.arguments))


def film(file: str, *arguments: str) -> Picture:
    return Picture("preview_film", (*arguments, "--out", str(ROOT / file)), (file,), LARGEST_FILM)


PICTURES = {
    "postcards": Picture("contact_sheet", (), ("docs/postcards.webp", "docs/crops.webp")),
    "short_prompt": Picture("short_prompt", (), ("docs/short_prompt.webp",)),
    "editing": Picture("editing", (), tuple(
        f"docs/editing{end}.webp" for end in ("", "_words", "_region", "_variations"))),
    "comparison": Picture("comparison", (), ("docs/ar_vs_ssd.webp",)),
    "examples": Picture("examples", (), (*(f"studio/examples/{n}.jpg" for n in range(8)),
                                         "studio/examples/seeds.json")),
    "race": film("docs/race.webp", "--methods", "ar,ssd:rounds=2"),
    "mid_run": film("docs/mid_run.webp", "--methods", "ar,ssd:rounds=2", "--still", "0.22",
                    "--fps", "24", "--width", "640"),
    "app": Picture("app_pictures", (), tuple(f"docs/app/{name}.webp" for name in APP))}


def complaints(name: str) -> list[str]:
    """Files of a picture that are missing or too large for a repository."""
    return [f"{file} {wrong}: run python tools/make.py pictures {name}"
            for file in PICTURES[name].files
            if (wrong := complaint(ROOT / file, PICTURES[name].most))]


def complaint(path: Path, most: int = LARGEST) -> str:
    if not path.exists():
        return "is missing"
    size = path.stat().st_size
    return f"has {size:,} bytes, more than {most:,}" if size > most else ""
