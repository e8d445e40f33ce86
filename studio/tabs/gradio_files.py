"""Saved pictures as Gradio may serve them: copies in its own folder, never the history's folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import gradio as gr
from gradio.processing_utils import hash_bytes, save_file_to_cache

from ssd_core.files import atomic_write

from ..history import Entry, History
from ..reading import answered


def picture_file(entry: Entry) -> str:
    """The path of an identical copy; the same path while the picture is unchanged."""
    return answered(entry.path, partial(save_file_to_cache, entry.path,
                                        gr.utils.get_upload_folder()))


def thumbnail_file(entry: Entry, history: History) -> str:
    """The path of a thumbnail; the same path while the picture is unchanged.

    Another page may be reading the file, so it is replaced whole. (Gradio's `save_bytes_to_cache`
    empties it first, and the answer to that page is then too short.)
    """
    thumbnail = history.thumbnail(entry)
    path = Path(gr.utils.get_upload_folder(), hash_bytes(thumbnail), f"{entry.path.stem}.jpg")
    with atomic_write(path) as temporary:
        temporary.write_bytes(thumbnail)
    return str(path)
