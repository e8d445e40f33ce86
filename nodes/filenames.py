"""File names with the patterns of ComfyUI's own save nodes.

ComfyUI's page fills in %date:...% and %Node.widget% before it queues a run
(web/comfy/page.js). Its server fills in %width%, %height% and %year% to %second%. The page's
patterns arrive here unfilled if a program without a page queued the run, or if another node gives
the name.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import folder_paths

from ..ssd_core.files import not_written

PATTERN = re.compile(r"%([^%]+)%")
DATE = re.compile(r"yyy?y?|dd?|MM?|hh?|mm?|ss?")
YEARS = {"yy": "%y", "yyyy": "%Y"}
PARTS = {"d": "day", "M": "month", "h": "hour", "m": "minute", "s": "second"}
REFUSED = re.compile(r'[<>:"|?*\x00-\x1f\x7f]')  # by Windows, in names of files and folders
SEPARATORS = re.compile(r"[/\\]")
MOST_BYTES = 200  # of a name without its number and suffix; file systems take 255


def place_for(prefix: str, width: int, height: int,
              prompt: Mapping[str, Any] | None) -> tuple[str, str, int, str]:
    """The folder, name, next number and subfolder of a new file in the output folder.

    prompt: the run's nodes in API form; the prefix may name their widgets.
    """
    folder, name, counter, subfolder, _ = folder_paths.get_save_image_path(
        filled_in(prefix, prompt or {}, datetime.now()), folder_paths.get_output_directory(),
        width, height)
    return folder, name, counter, subfolder


@contextmanager
def new_file(folder: str, name: str, counter: int, suffix: str) -> Iterator[tuple[Path, int]]:
    """Yield a new file with the first number from `counter` on that is free, and the next number.

    It is there, and empty, so that no other ComfyUI with this folder takes its name. It is removed
    if the block fails.
    """
    for number in itertools.count(counter):
        path = Path(folder, f"{name}_{number:05}_.{suffix}")
        try:
            path.open("xb").close()
        except FileExistsError:
            continue
        except OSError as error:
            raise not_written(path, error) from error
        try:
            yield path, number + 1
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return


def filled_in(prefix: str, prompt: Mapping[str, Any], now: datetime) -> str:
    """The prefix with its dates and widgets, free of characters that Windows refuses."""
    filled = PATTERN.sub(lambda match: value_of(match[1], prompt, now) or match[0], prefix)
    drive, path = os.path.splitdrive(filled)  # of a whole path on Windows, with its colon
    folder, name = os.path.split(REFUSED.sub("_", path))
    return drive + os.path.join(folder, name.encode()[:MOST_BYTES].decode(errors="ignore"))


def value_of(pattern: str, prompt: Mapping[str, Any], now: datetime) -> str | None:
    """The value of a pattern; None for the server's own patterns and for unknown ones."""
    if pattern.startswith("date:"):
        return DATE.sub(lambda match: dated(match[0], now), pattern.removeprefix("date:"))
    node, dot, widget = pattern.partition(".")
    return widget_of(prompt, node, widget) if dot else None


def dated(part: str, now: datetime) -> str:
    if part in YEARS:
        return now.strftime(YEARS[part])
    return str(getattr(now, PARTS[part[0]])).zfill(len(part)) if part[0] in PARTS else part


def widget_of(prompt: Mapping[str, Any], node: str, widget: str) -> str | None:
    """The value of a widget, fit for a file name; None if the widget is missing or linked.

    node: a node's type or title, in this order, as on ComfyUI's page.
    """
    entries = ([entry for entry in prompt.values() if entry.get("class_type") == node]
               or [entry for entry in prompt.values()
                   if entry.get("_meta", {}).get("title") == node])
    value = entries[0]["inputs"].get(widget) if entries else None
    if value is None or isinstance(value, list):
        return None
    return SEPARATORS.sub("_", str(value).lower() if isinstance(value, bool) else str(value))
