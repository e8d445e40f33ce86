"""Finished pictures on disk: saved before they are shown, found again after a restart.

The folder is the only record: one folder per day, one PNG per picture with its recipe inside. Knows
neither the page nor how pictures are made.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice, takewhile
from pathlib import Path

import torch

from ssd_core import SSDError
from ssd_core.files import answered, atomic_write, slug, user_path
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import png_bytes, save_png
from ssd_core.output.words import FIELDS as WORDS

from .entries import (
    DAY,
    MOST_LETTERS,
    Entry,
    key_of,
    name_of,
    order_of,
    pictures_in,
    read_entry,
    require_picture,
    restore,
    shrunk,
    stamp_of,
)
from .favourites import Favourites
from .unsaved import Pictures, Unsaved

BESIDE_PIXELS = 1 << 20  # bytes that a recipe takes at most
KEPT_THUMBNAILS, KEPT_ENTRIES = 256, 10_000
KEPT_UNWRITTEN = 256
MOST_NEWER = 500  # files that are searched for what was made from a picture
UNWRITTEN = ("backbone", "tokens", "stopped_rows", "prompt", "negative", *WORDS)


class History:
    """Pictures under `folder`, which is created when the first one is saved."""

    def __init__(self, folder: Path) -> None:
        self.folder = user_path(folder).absolute()
        self.problems: dict[str, str] = {}  # by id: why a file is not listed
        self.favourites, self.unsaved = Favourites(self.folder, self.problems), Unsaved()
        self._deleted = Pictures()
        self._saving, self._reading = threading.Lock(), threading.RLock()
        self._reserved_now: set[Path] = set()  # empty files whose pictures are being written
        self._known: dict[tuple[str, int], Entry] = {}
        self._thumbnails: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._unwritten: OrderedDict[tuple[str, int], dict] = OrderedDict()

    # Writing

    def require_writable(self) -> None:
        """Raise SSDError if pictures cannot be saved; creates the folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise not_writable(self.folder, error) from error

    def require_room(self, pictures: int, size: tuple[int, int]) -> None:
        """Raise SSDError unless so many pictures of `size` can be saved, however they compress."""
        self.require_writable()
        needed = pictures * (3 * size[0] * size[1] + BESIDE_PIXELS)
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise SSDError(f"{self.folder}: {free >> 20} MiB are free, {pictures} pictures take up "
                           f"to {(needed >> 20) + 1} MiB: make room, or start with another "
                           "--output-dir")

    def save(self, picture: torch.Tensor, recipe: Mapping | None, kind: str = "picture", *,
             metadata: bool = True) -> Entry:
        """Write picture [H, W, 3] float 0..1 to a new file; without metadata, no recipe is in it.

        Raises SSDError, and leaves no file, if that fails.
        """
        entry = self.write(partial(save_png, picture=picture,
                                   recipe=dict(recipe) if recipe and metadata else None),
                           recipe, kind)
        if recipe and not metadata:
            self._remember(entry, recipe)
        return entry

    def keep_unsaved(self, picture: torch.Tensor, recipe: Mapping | None,
                     metadata: bool = True) -> str:
        """Keep a picture that could not be saved in memory; the id to download it by."""
        png = png_bytes(picture, dict(recipe) if recipe and metadata else None)
        return self.unsaved.add(name_of(recipe, "picture"), png)

    def _remember(self, entry: Entry, recipe: Mapping) -> None:
        """Keep in memory what Redo needs: no seed, no knobs."""
        needed = {key: recipe[key] for key in UNWRITTEN if key in recipe}
        with self._reading:
            self._unwritten[key_of(entry.path)] = needed
            if len(self._unwritten) > KEPT_UNWRITTEN:
                self._unwritten.popitem(last=False)

    def write(self, saver, recipe: Mapping | None, kind: str, own: str = "") -> Entry:
        """Let saver(path) write a PNG named after the time, the seed and the method.

        own: name of a file that was sent, in words joined by "-".
        """
        with self._saving:
            path = self._reserved("_".join((name_of(recipe, kind), *own.split("-"))).strip("_"))
            try:
                saver(path)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            finally:
                self._reserved_now.clear()
        return self._read(path)

    def _reserved(self, stem: str) -> Path:
        """Create an empty file of that name, or of the first free numbered one."""
        folder = self.folder / time.strftime("%Y-%m-%d")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(1, 10_000):
                path = folder / f"{stem}{'' if number == 1 else f'-{number}'}.png"
                try:
                    self._reserved_now.add(path)  # no page lists it as a damaged picture
                    path.open("xb").close()
                    return path
                except FileExistsError:
                    self._reserved_now.discard(path)
        except OSError as error:
            raise not_writable(folder, error) from error
        raise SSDError(f"{folder}: no name is free for {stem}.png; move pictures elsewhere")

    def add(self, png: bytes, name: str) -> Entry:
        """Write a PNG that was sent, byte for byte; SSDError, by its name, if it is damaged."""
        def save(path: Path) -> None:
            with atomic_write(path) as temporary:
                temporary.write_bytes(png)
                try:
                    require_picture(temporary)
                except SSDError as error:
                    raise SSDError(str(error).replace(str(temporary), name)) from error
        self.require_writable()
        return self.write(save, None, "picture", slug(Path(name).stem, MOST_LETTERS))

    def id_of(self, path: Path) -> str:
        """The id of a picture; "" if it is none of this history."""
        path = Path(path)
        return path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else ""

    def delete(self, id_: str) -> None:
        """Delete a picture; for a while it stays in memory, from where `restore_deleted` takes it.
        """
        entry = self.entry(id_)
        png, stamp = self.png(entry.id), stamp_of(entry.path)
        try:
            entry.path.unlink()
        except OSError as error:
            raise SSDError(f"cannot delete {entry.path}: {error.strerror}") from error
        self._deleted.put(entry.id, png, stamp)

    def restore_deleted(self, id_: str) -> Entry:
        """Write a deleted picture again, as it was; SSDError if it is no longer in memory."""
        if (deleted := self._deleted.take(id_)) is None:
            raise SSDError(f"{id_[:100]}: cannot be brought back any more")
        path, (png, stamp) = self.folder / id_, deleted
        try:
            with atomic_write(path) as temporary:
                temporary.write_bytes(png)
                os.utime(temporary, ns=(stamp, stamp))
        except SSDError:
            self._deleted.put(id_, png, stamp)
            raise
        return self._read(path)

    # Reading

    def entries(self, limit: int = 50, before: str | None = None,
                wanted: Callable[[Entry], bool] = lambda entry: True) -> list[Entry]:
        """The newest `limit` wanted pictures (older than `before`).

        Those that cannot be read are in `problems`.
        """
        listed: list[Entry] = []
        for path in self._newest(before):
            if (entry := self._listed(path)) is not None and wanted(entry):
                listed.append(entry)
            if len(listed) == limit:
                break
        return listed

    def since(self, id_: str, most: int = MOST_NEWER) -> list[Entry]:
        """The pictures that are newer than this one, newest first: of the newest `most` files."""
        first = order_of(self.folder / id_)
        newer = takewhile(lambda path: order_of(path) > first, self._newest())
        listed = (self._listed(path) for path in islice(newer, most))
        return [entry for entry in listed if entry is not None]

    def _newest(self, before: str | None = None) -> Iterator[Path]:
        """All files, newest first: those that are older than `before`, if one is named."""
        last = order_of(self.folder / before) if before else None
        for day, pictures in self._days():
            if last and day > last[0]:
                continue
            for path in sorted(pictures(), key=order_of, reverse=True):
                if not (last and order_of(path) >= last):
                    yield path

    def entry(self, id_: str) -> Entry:
        """The picture with this id; SSDError if it is gone, unreadable, or outside the folder."""
        try:
            path = (self.folder / id_).resolve()
            inside = path.is_relative_to(self.folder.resolve()) and path.suffix == ".png"
            if not inside or not path.is_file():
                raise ValueError
        except (ValueError, OSError) as error:
            raise SSDError(f"{id_[:100]}: no such picture in the history") from error
        return self._read(self.folder / path.relative_to(self.folder.resolve()))

    def png(self, id_: str) -> bytes:
        """A picture, byte for byte: of this folder, or one that could not be saved to it."""
        if (unsaved := self.unsaved.get(id_)) is not None:
            return unsaved
        path = self.entry(id_).path
        try:
            return answered(path, path.read_bytes)
        except OSError as error:
            raise SSDError(f"{path}: cannot be read: {error.strerror}") from error

    def restore(self, path: Path) -> tuple[Drawing, dict]:
        return answered(path, partial(restore, path))

    def unwritten(self, path: Path) -> dict | None:
        """Backbone, tokens and words of a picture that was saved without its recipe.

        None if this process did not save it, or if the file has changed since.
        """
        with self._reading:
            return self._unwritten.get(key_of(Path(path)))

    def thumbnail(self, entry: Entry) -> bytes:
        """A JPEG of at most 256 pixels per side."""
        key = (entry.id, stamp_of(entry.path))
        with self._reading:
            known = self._thumbnails.pop(key, None)
        thumbnail = known or answered(entry.path, partial(shrunk, entry.path))
        with self._reading:
            self._thumbnails[key] = thumbnail
            if len(self._thumbnails) > KEPT_THUMBNAILS:
                self._thumbnails.popitem(last=False)
        return thumbnail

    def _days(self) -> list[tuple[str, Callable[[], list[Path]]]]:
        """(day, function that lists its pictures), newest first.

        Pictures lie in a folder per day, or directly in the history's folder, as `install.py app`
        once put them.
        """
        beside: dict[str, list[Path]] = {}
        for path in pictures_in(self.folder):
            beside.setdefault(order_of(path)[0], []).append(path)
        try:
            days = {day.name for day in self.folder.iterdir()
                    if DAY.fullmatch(day.name) and day.is_dir()}
        except OSError:  # nothing saved yet, or the folder is unreadable
            return []
        return [(day, partial(lambda day: pictures_in(self.folder / day) + beside.get(day, []),
                              day)) for day in sorted(days | beside.keys(), reverse=True)]

    def _listed(self, path: Path) -> Entry | None:
        id_ = path.relative_to(self.folder).as_posix()
        try:
            entry = self._read(path)
        except SSDError as error:
            if path not in self._reserved_now:
                self.problems[id_] = str(error)
            return None
        self.problems.pop(id_, None)
        return entry

    def _read(self, path: Path) -> Entry:
        """The entry of a file, cached until the file changes."""
        id_ = path.relative_to(self.folder).as_posix()
        key = (id_, stamp_of(path))
        if (entry := self._known.get(key)) is None:
            entry = answered(path, partial(read_entry, id_, path))
            with self._reading:
                if len(self._known) >= KEPT_ENTRIES:
                    self._known.clear()
                self._known[key] = entry
        return entry


def not_writable(folder: Path, error: OSError) -> SSDError:
    return SSDError(f"cannot write to {folder}: {error.strerror}; start with another --output-dir")
