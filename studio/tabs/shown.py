"""Saved pictures as Gradio may serve them: copies in its own folder, never the history's folder."""

from __future__ import annotations

import gradio as gr
from gradio.processing_utils import save_file_to_cache

from ..history import Entry


def shown(entry: Entry) -> str:
    """The path of an identical copy; the same path while the picture is unchanged."""
    return save_file_to_cache(entry.path, gr.utils.get_upload_folder())
