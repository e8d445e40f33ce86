"""Saved pictures as Gradio may serve them: copies in its own folder, never the history's folder."""

from __future__ import annotations

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache, save_file_to_cache

from ..history import Entry, History


def shown(entry: Entry) -> str:
    """The path of an identical copy; the same path while the picture is unchanged."""
    return save_file_to_cache(entry.path, gr.utils.get_upload_folder())


def small(entry: Entry, history: History) -> str:
    """The path of a thumbnail; the same path while the picture is unchanged."""
    return save_bytes_to_cache(history.thumbnail(entry), f"{entry.path.stem}.jpg",
                               gr.utils.get_upload_folder())
