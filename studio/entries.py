"""Picture files of the history: what one is, how they are named, ordered and read."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ssd_core import SSDError
from ssd_core.files import is_unicode, require_file, require_regular, slug
from ssd_core.output.drawing import Drawing, method_of
from ssd_core.output.labels import label
from ssd_core.output.picture_files import ENOUGH, opened, upright
from ssd_core.output.recipe import read_recipe, recipe_of

from .pictures import decoded
from .settings import of_recipe

MOST_BYTES = 64 << 20
DAY = re.compile(r"\d{4}-\d\d-\d\d")
END = b"IEND\xaeB`\x82"  # the last bytes of every complete PNG
UPLOADED = re.compile(r"\d{6}_.")  # time and own name
THUMBNAIL = 256  # px
MOST_LETTERS = 48  # of a prompt in the name of a file


@dataclass(frozen=True)
class Entry:
    """A saved picture; `id` is its path below the history's folder.

    seed, method and label are None if the file has no recipe. kind: picture, race (two pictures
    side by side) or partial (stopped before its last row).
    """

    id: str
    path: Path
    kind: str
    width: int
    height: int
    prompt: str | None = None
    seed: int | None = None
    method: str | None = None
    label: str | None = None  # of the method with its knobs, see output/labels.py
    source: str | None = None  # id of the picture that it was redone from


def key_of(path: Path) -> tuple[str, int]:
    """A key that changes when the file does."""
    return str(path), stamp_of(path)


def name_of(recipe: Mapping | None, kind: str) -> str:
    """HHMMSS-SEED-METHOD, with the kind unless it is a plain picture; of an upload HHMMSS_NAME."""
    parts = [time.strftime("%H%M%S")]
    parts += [str(recipe["seed"]), recipe["method"]] if recipe else []
    return "-".join(parts + ([kind] if kind != "picture" else []))


def own_name(stem: str) -> str:
    """What a picture without a prompt is called: an uploaded one as its file was."""
    return stem[7:].replace("_", " ") if UPLOADED.match(stem) else stem


def called(prompt: str | None, seed: object, stem: str) -> str:
    """What a picture is called when it is taken elsewhere: by its prompt, if that is known."""
    words = slug(prompt or "", MOST_LETTERS)
    return f"{words}-{seed}" if words and seed is not None else stem


def pictures_in(folder: Path) -> list[Path]:
    """PNG files with names that a page can show; files being written begin with a dot."""
    try:
        return [path for path in folder.iterdir() if path.suffix == ".png"
                and not path.name.startswith(".") and is_unicode(path.name)]
    except OSError:
        return []


def order_of(path: Path) -> tuple[str, str, int, str]:
    """Sort key: day and time from the names of folder and file, else from the file's time."""
    stamp = stamp_of(path)
    day, at = path.parent.name, path.name[:6]
    if not DAY.fullmatch(day):
        day, at = time.strftime("%Y-%m-%d %H%M%S", time.localtime(stamp / 1e9)).split()
    return day, at, stamp, path.name


def saved_at(path: Path) -> str:
    """When a picture was saved, by its name or else by its file: "2026-01-31T12:00:59"."""
    day, at, stamp, _ = order_of(path)
    try:
        return datetime.strptime(f"{day} {at}", "%Y-%m-%d %H%M%S").isoformat()
    except ValueError:
        return datetime.fromtimestamp(stamp // 10**9).isoformat()


def stamp_of(path: Path) -> int:
    """When a file was last changed, in ns; 0 if it is gone."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def read_entry(id_: str, path: Path) -> Entry:
    """The entry of a PNG; SSDError if it is incomplete. A damaged recipe is ignored."""
    require_whole(path)
    with opened(path) as image:
        width, height = image.size
        try:
            recipe = recipe_of(path, image) or {}
        except SSDError:
            recipe = {}
    kind = next((kind for kind in ("race", "partial") if f"-{kind}" in path.stem), "picture")
    entry = Entry(id_, path, kind, width, height)
    if not recipe:
        return entry
    return replace(entry, prompt=recipe["prompt"], seed=recipe["seed"],
                   method=recipe["method"], label=label(method_of(recipe)),
                   source=recipe.get("source"))


def require_whole(path: Path) -> None:
    """Raise SSDError if a file is too large, incomplete or no file at all."""
    require_regular(path)
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - len(END)))
            end = file.read()
    except OSError as error:
        raise SSDError(f"{path}: cannot be read: {error.strerror}") from error
    if size > MOST_BYTES:
        raise SSDError(f"{path}: has {size >> 20} MiB, pictures of at most {MOST_BYTES >> 20} MiB "
                       "are read")
    if end != END:
        raise SSDError(f"{path}: not a whole PNG picture: give a PNG that other programs open")


def shrunk(path: Path) -> bytes:
    buffer = io.BytesIO()
    with decoded(path) as image:
        small = upright(image, ENOUGH)
        small.thumbnail((THUMBNAIL, THUMBNAIL))
        small.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def restore(path: Path) -> tuple[Drawing, dict]:
    """Drawing and recipe of any PNG that has one, whichever program saved it.

    Raises SSDError if the picture is incomplete or too large, or has no valid recipe.
    """
    path = Path(path)
    require_picture(path)
    recipe = read_recipe(path)
    return restored(path, recipe), recipe


def restored(path: Path | str, recipe: Mapping) -> Drawing:
    """The drawing of a checked recipe; errors call its picture `path`."""
    if "sources" in recipe:
        raise SSDError(f"{path}: it was drawn from source pictures, which the app does not take: "
                       "draw it by SSD Sampler in ComfyUI, or by 'ssd generate --like'")
    try:
        return of_recipe(recipe)
    except SSDError as error:
        raise SSDError(f"{path}: its recipe is damaged ({error}): use another picture") from error


def require_picture(path: Path) -> None:
    """Raise SSDError unless this is a PNG of acceptable size whose pixels can all be read."""
    require_regular(path)
    require_file(path)
    require_whole(path)
    with decoded(path):
        pass
