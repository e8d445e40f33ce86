"""The pictures that somebody has drawn, as training data: the recipes in their PNGs.

A recipe holds a picture's tokens and the words it was drawn from, which is all that draft heads
learn from. Only text chunks are read, no pixels.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from ..backbones.base import Backbone
from ..engine.methods import METHODS
from ..errors import SSDError
from ..files import user_path
from ..kept_entries import KeptEntries
from ..model.grid import size_of
from ..output.picture_files import opened
from ..output.recipe import recipe_of, recipe_tokens
from ..output.words import drawn_words
from .picture_files import Pictures

LEAST = 8  # pictures from which drafts can learn
# One picture in so many only measures, in four below FEW; at least and at most so many.
HELD_OUT, FEW_HELD_OUT, FEW = 8, 4, 64
LEAST_HELD_OUT, MOST_HELD_OUT = 2, 64
MOST_KNOWN = 1 << 14  # recipes that stay in memory
OTHER, PLAIN, PARTLY, COPY, WORDS = (
    "of other models", "without settings", "edited or stopped", "copies", "with words or a size "
    "that this model does not read")
# How many pictures there were when drafts last learned, by backbone and kind of drafts
LAST_LESSON = KeptEntries("last_lesson.json", int, int)


@dataclass(frozen=True)
class Known:
    """What a PNG says of itself. tokens: little-endian int32 in raster order; None: not usable,
    for the `reason`.
    """

    reason: str = ""
    sha256: str = ""
    prompt: str = ""
    size: tuple[int, int] = (0, 0)
    method: str = ""
    tokens: bytes | None = None


@dataclass(frozen=True)
class OwnPictures:
    """Pictures of one backbone, by size. approximate: how many of them are not AR's picture.

    left_out: the number of other PNGs by reason.
    """

    shown: tuple[Pictures, ...]
    held_out: tuple[Pictures, ...]
    approximate: int
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return sum(map(len, (*self.shown, *self.held_out)))

    @property
    def line(self) -> str:
        """What was found, in one sentence."""
        others = "; ".join(f"{count:,} {reason}" for reason, count in self.left_out.items())
        return (f"{len(self):,} pictures to learn from, {sum(map(len, self.held_out)):,} of them "
                f"only measure, {self.approximate:,} were drawn by approximate methods"
                f"{f'; left out: {others}' if others else ''}")

    def require_enough(self, backbone: Backbone) -> None:
        """Raise SSDError if there are too few pictures to learn anything from."""
        if len(self) < LEAST:
            raise SSDError(f"{len(self)} pictures of {backbone.name} to learn from, at least "
                           f"{LEAST} are needed: draw some more, or name their folder")

    def require_new(self, backbone: Backbone, kinds: Iterable[str], file: Path) -> None:
        """Raise SSDError if drafts of these kinds have learned from all of them already."""
        begun = any(file.with_suffix(suffix).exists() for suffix in (".ckpt", ".row.ckpt"))
        if not begun and file.exists() and not new_pictures(backbone, kinds, len(self)):
            raise SSDError(f"no new pictures of {backbone.name} since its drafts last learned: "
                           "draw some first, or name drafts to begin with by start_from")


def note_lesson(backbone: Backbone, kinds: Iterable[str], pictures: int) -> None:
    """Note that drafts of these kinds have learned from so many pictures, kept or not."""
    for kind in kinds:
        LAST_LESSON.put(f"{backbone.sha256[:16]} {kind}", pictures)


def new_pictures(backbone: Backbone, kinds: Iterable[str], pictures: int) -> int:
    """How many of so many pictures are new to drafts of one of these kinds."""
    noted = LAST_LESSON.read()
    earlier = min(noted.get(f"{backbone.sha256[:16]} {kind}", 0) for kind in kinds)
    return pictures - earlier if earlier <= pictures else pictures  # others are there now


def own_pictures(folders: Iterable[str | Path], backbone: Backbone) -> OwnPictures:
    """The PNGs below these folders that were drawn by exactly this backbone.

    Which of them only measure depends on their tokens alone, so it stays the same as more are
    drawn. Raises SSDError for a folder that is missing, and for a backbone whose pictures do not
    hold all that it was fed.
    """
    if backbone.sketch() is not None:
        raise SSDError(f"{backbone.name} draws a sketch first, which its PNGs do not hold: let "
                       "'train self-distill' draw pictures for its draft heads")
    left_out: Counter[str] = Counter()
    found: dict[bytes, tuple[Known, torch.Tensor]] = {}
    for path in pngs_below(folders):
        known = known_of(path)
        reason = known.reason or (OTHER if known.sha256 != backbone.sha256 else "")
        key = hashlib.sha256(known.tokens or b"").digest()
        if not reason and key in found:
            reason = COPY
        ids = None if reason else prompt_ids(known, backbone)
        if ids is None:
            left_out[reason or WORDS] += 1
        else:
            found[key] = known, ids
    ordered = [found[key] for key in sorted(found)]
    measuring = {id(each) for each in held_out_of(sorted(found), ordered)}
    shown = [each for each in ordered if id(each) not in measuring]
    held_out = [each for each in ordered if id(each) in measuring]
    approximate = sum(METHODS[known.method].guarantee == "approximate" for known, _ in ordered)
    return OwnPictures(by_size(shown, backbone), by_size(held_out, backbone), approximate,
                       dict(left_out))


def held_out_of(keys: list[bytes], ordered: list) -> list:
    """The pictures that only measure, chosen by their hashes; see `share_held_out`."""
    marked = [(key[-1] % share_held_out(len(keys)), each)
              for key, each in zip(keys, ordered, strict=True)]
    chosen = [each for rest, each in marked if not rest]
    others = [each for rest, each in marked if rest]
    lacking = min(max(0, LEAST_HELD_OUT - len(chosen)), max(0, len(others) - 1))
    return (chosen + others[:lacking])[:MOST_HELD_OUT]


def share_held_out(pictures: int) -> int:
    """Of so many pictures one in how many only measures."""
    return HELD_OUT if pictures >= FEW else FEW_HELD_OUT


def pngs_below(folders: Iterable[str | Path]) -> Iterator[Path]:
    """Every PNG in these folders and their subfolders, once; hidden ones are left out."""
    seen: set[Path] = set()
    for name in folders:
        if not (folder := user_path(name)).is_dir():
            raise SSDError(f"{name}: no folder of pictures here; name the one that they were "
                           "saved in")
        for path in sorted(folder.rglob("*.png")):
            hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
            if not hidden and path.resolve() not in seen:
                seen.add(path.resolve())
                yield path


def known_of(path: Path) -> Known:
    try:
        changed = path.stat()
    except OSError:  # deleted since it was listed
        return Known(PLAIN)
    return _known_of(path, changed.st_mtime_ns, changed.st_size)


@lru_cache(maxsize=MOST_KNOWN)
def _known_of(path: Path, _changed: int, _size: int) -> Known:
    try:
        with opened(path) as image:
            recipe = recipe_of(path, image)
    except SSDError:
        return Known(PLAIN)
    if recipe is None:
        return Known(PLAIN)
    if "keep" in recipe or "stopped_rows" in recipe:  # cells of another picture, or none at all
        return Known(PARTLY, recipe["backbone"]["sha256"])
    tokens = recipe_tokens(recipe).numpy().astype("<i4").tobytes()
    return Known("", recipe["backbone"]["sha256"], drawn_words(recipe).prompt,
                 size_of(recipe["size"]) or (0, 0), recipe["method"], tokens)


def prompt_ids(known: Known, backbone: Backbone) -> torch.Tensor | None:
    """The ids of a picture's prompt; None if prompt or tokens do not fit the backbone."""
    try:
        grid = backbone.resized(known.size).grid
        ids = backbone.tokenize(known.prompt)
    except SSDError:
        return None
    tokens = tokens_of(known)
    fits = len(tokens) == grid.cells and 0 <= int(tokens.min()) <= int(tokens.max())
    return torch.tensor(ids) if fits and int(tokens.max()) < backbone.codes else None


def tokens_of(known: Known) -> torch.Tensor:
    return torch.frombuffer(bytearray(known.tokens or b""), dtype=torch.int32).long()


def by_size(pictures: list[tuple[Known, torch.Tensor]], backbone: Backbone) -> tuple[Pictures, ...]:
    """The pictures of each grid together, in their order."""
    groups = []
    views = [backbone.resized(known.size).smallest for known, _ in pictures]
    for size in dict.fromkeys(view.size for view in views):
        grid = backbone.resized(size).grid
        same = [pair for pair, view in zip(pictures, views, strict=True) if view.size == size]
        tokens = torch.stack([tokens_of(known).view(grid.rows, grid.columns) for known, _ in same])
        groups.append(Pictures(tokens, tuple(ids for _, ids in same), size))
    return tuple(groups)
