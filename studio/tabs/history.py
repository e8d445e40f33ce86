"""History: every finished picture, from the folder itself; restoring settings from any PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gradio as gr

from ssd_core import SSDError

from ..services import Services
from ..words import language_of, say
from .common import PRIVATE, files, line, trouble
from .controls import Controls
from .redo import Redo

PAGE = 24


class HistoryTab:
    """`ids` are the entries on show, `selected` the one that the buttons mean."""

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.ids, self.selected, self.limit = gr.State([]), gr.State(None), gr.State(PAGE)
        self.hint = gr.HTML(elem_id="history-hint", js_on_load=None)
        self.gallery = gr.Gallery(label=t("history"), show_label=False, format="png", columns=6,
                                  height="auto", object_fit="contain", fit_columns=False,
                                  elem_id="history",
                                  interactive=False, buttons=["download", "fullscreen"])
        self.more = gr.Button(t("more"), size="sm", visible=False, elem_id="history-more")
        with gr.Row():
            self.restore = gr.Button(t("restore"), variant="primary", elem_id="history-restore")
            self.again = gr.Button(t("use_in_redo"), elem_id="history-redo")
            self.delete = gr.Button(t("delete"), variant="stop", elem_id="history-delete")
        self.status = gr.HTML(elem_id="history-status", js_on_load=None)
        self.drop = gr.File(label=t("drop"), file_types=[".png"], elem_id="history-drop",
                            height=120)

    def wire(self, tab: gr.Tab, tabs: gr.Tabs, redo: Redo, load) -> None:
        shown = [self.hint, self.gallery, self.ids, self.more]
        restored = [self.status, *self.controls.inputs]
        tab.select(self.show, self.limit, shown, **PRIVATE)
        load(self.show, self.limit, shown, **PRIVATE)
        self.more.click(lambda limit: limit + PAGE, self.limit, self.limit, **PRIVATE).then(
            self.show, self.limit, shown, **PRIVATE)
        self.gallery.select(self.select, self.ids, self.selected, **PRIVATE)
        self.restore.click(self.restore_selected, self.selected, restored, **PRIVATE)
        self.drop.upload(self.restore_file, self.drop, restored, api_name="restore",
                         show_progress="hidden")
        self.again.click(self.to_redo, self.selected, [tabs, self.status], **PRIVATE).success(
            redo.show, self.selected, redo.shown, **PRIVATE)
        self.delete.click(self.remove, self.selected, [self.status, self.selected],
                          **PRIVATE).then(self.show, self.limit, shown, **PRIVATE)

    def show(self, limit: int, request: gr.Request) -> tuple:
        history, language = self.services.history, language_of(request, self.services.language)
        entries = history.entries(limit + 1)
        words = say(language, "history_hint", where=history.folder)
        if not entries:
            words += " " + say(language, "nothing_yet")
        return (line(words), files(entries[:limit]), [entry.id for entry in entries[:limit]],
                gr.update(visible=len(entries) > limit))

    def select(self, ids: Sequence[str], event: gr.SelectData) -> str | None:
        return ids[event.index] if event.index < len(ids) else None

    # What to do with it

    def restore_selected(self, selected: str | None, request: gr.Request) -> list:
        language = language_of(request, self.services.language)
        if selected is None:
            return self._refused(line(say(language, "select_first")))
        try:
            return self._restored(self.services.history.entry(selected).path, language)
        except SSDError as error:
            return self._refused(trouble(language, str(error)))

    def restore_file(self, path: str, request: gr.Request) -> list:
        """Settings of a dropped PNG: first the status line, then one value a control."""
        language = language_of(request, self.services.language)
        try:
            return self._restored(Path(path), language)
        except SSDError as error:
            return self._refused(trouble(language, str(error).replace(f"{Path(path).parent}/", "")))

    def _restored(self, path: Path, language: str) -> list:
        settings, recipe = self.services.history.restore(path)
        told = say(language, "restored", name=path.name)
        now = self.services.library.current.backbone
        if recipe["backbone"]["sha256"] != now.sha256:
            told += say(language, "other_backbone", name=recipe["backbone"]["name"][:60],
                        now=now.name)
        return [line(told), *self.controls.shown(settings)]

    def _refused(self, told: str) -> list:
        return [told, *[gr.skip()] * len(self.controls.inputs)]

    def to_redo(self, selected: str | None, request: gr.Request) -> tuple:
        if selected is None:
            raise gr.Error(say(language_of(request, self.services.language), "select_first"))
        return gr.update(selected="redo"), ""

    def remove(self, selected: str | None, request: gr.Request) -> tuple:
        language = language_of(request, self.services.language)
        if selected is None:
            return line(say(language, "select_first")), None
        try:
            self.services.history.delete(selected)
        except SSDError as error:
            return trouble(language, str(error)), None
        return line(say(language, "deleted", name=Path(selected).name)), None
