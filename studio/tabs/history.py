"""The History tab: every finished picture on disk; restoring settings from any PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gradio as gr

from ssd_core import SSDError

from ..errors import in_language
from ..services import Services
from ..words import language_of, say
from .common import PRIVATE, files, line, trouble
from .controls import Controls
from .redo import Redo
from .shown import shown

PAGE = 24
# Gradio keeps a preview open by index, which may be another picture after an update.
CLOSE = """(...asked) => {
  document.querySelector('#history .preview button[aria-label=Close]')?.click();
  return asked;
}"""


class HistoryTab:
    """`ids` are the entries shown, `selected` is the one that the buttons act on.

    `delete` shows the button `sure`, which names the picture and deletes it.
    """

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
            self.delete = gr.Button(t("delete"), variant="stop", elem_id="history-delete",
                                    visible=services.local)
            self.sure = gr.Button(variant="stop", visible=False, elem_id="history-sure")
        self.status = gr.HTML(elem_id="history-status", js_on_load=None)
        self.drop = gr.File(label=t("drop"), file_types=[".png"], elem_id="history-drop",
                            height=120)

    def wire(self, tab: gr.Tab, tabs: gr.Tabs, redo: Redo, load) -> None:
        selected = [self.selected, self.delete, self.sure]
        listed = [self.hint, self.gallery, self.ids, self.more, *selected]
        restored = [self.status, self.controls.lock, *self.controls.inputs]
        tab.select(self.show, self.limit, listed, js=CLOSE, **PRIVATE)
        load(self.show, self.limit, listed, **PRIVATE)
        self.more.click(lambda limit: limit + PAGE, self.limit, self.limit, **PRIVATE).then(
            self.show, self.limit, listed, js=CLOSE, **PRIVATE)
        self.gallery.select(self.select, self.ids, selected, **PRIVATE)
        self.restore.click(self.restore_selected, self.selected, restored, **PRIVATE)
        self.drop.upload(self.restore_file, self.drop, restored, api_name="restore",
                         show_progress="hidden")
        self.redo = redo
        self.again.click(self.to_redo, self.selected, [self.status, tabs, *redo.shown], **PRIVATE)
        if self.services.local:
            self.delete.click(self.ask, self.selected, [self.status, self.delete, self.sure],
                              **PRIVATE)
            self.sure.click(self.remove, self.selected, self.status, **PRIVATE).then(
                self.show, self.limit, listed, js=CLOSE, **PRIVATE)

    def show(self, limit: int, request: gr.Request) -> tuple:
        """Refresh the list, with nothing selected; see CLOSE."""
        language = language_of(request, self.services.language)
        entries = self.services.history.entries(limit + 1)
        return (line(self.hint_text(bool(entries), language)), files(entries[:limit]),
                [entry.id for entry in entries[:limit]], gr.update(visible=len(entries) > limit),
                *self.chosen(None))

    def hint_text(self, any_: bool, language: str) -> str:
        """Where pictures are saved, and how many files there cannot be listed."""
        history = self.services.history
        words = say(language, "history_hint", where=history.folder)
        if not any_:
            words += " " + say(language, "nothing_yet")
        problems = [problem for id_, problem in history.problems.items()
                    if (history.folder / id_).exists()]
        if problems:
            words += say(language, "not_listed", count=len(problems),
                         problem=in_language(language, problems[0]))
        return words

    def select(self, ids: Sequence[str], event: gr.SelectData) -> list:
        return self.chosen(ids[event.index] if event.index < len(ids) else None)

    def chosen(self, selected: str | None) -> list:
        """Set `selected`, and reset the delete buttons."""
        return [selected, gr.update(visible=self.services.local), gr.update(visible=False)]

    # Actions on the selected picture

    def restore_selected(self, selected: str | None, request: gr.Request) -> list:
        language = language_of(request, self.services.language)
        if selected is None:
            return self._refused(line(say(language, "select_first")))
        try:
            return self._restored(self.services.history.entry(selected).path, language)
        except SSDError as error:
            return self._refused(trouble(language, str(error)))

    def restore_file(self, path: str, request: gr.Request) -> list:
        """Restore a dropped PNG: the status line, the seed's lock, then one value per control."""
        language = language_of(request, self.services.language)
        try:
            return self._restored(Path(path), language)
        except SSDError as error:
            return self._refused(trouble(language, str(error).replace(f"{Path(path).parent}/", "")))

    def _restored(self, path: Path, language: str) -> list:
        settings, recipe = self.services.history.restore(path)
        told = say(language, "restored", name=path.name)
        if recipe["keep_rows"]:
            told += say(language, "redone_below", rows=recipe["keep_rows"])
        now = self.services.library.current.backbone
        if recipe["backbone"]["sha256"] != now.sha256:
            told += say(language, "other_backbone", name=recipe["backbone"]["name"][:60],
                        now=now.name)
        return [line(told), True, *self.controls.shown(settings)]

    def _refused(self, told: str) -> list:
        return [told, gr.skip(), *[gr.skip()] * len(self.controls.inputs)]

    def to_redo(self, selected: str | None, request: gr.Request) -> list:
        if selected is None:
            told = say(language_of(request, self.services.language), "select_first")
            return [line(told), *[gr.skip()] * (1 + len(self.redo.shown))]
        return ["", gr.update(selected="redo"), *self.redo.show(selected, request)]

    def ask(self, selected: str | None, request: gr.Request) -> tuple:
        language = language_of(request, self.services.language)
        if selected is None:
            return line(say(language, "select_first")), gr.skip(), gr.skip()
        name = say(language, "delete_sure", name=Path(selected).name)
        return "", gr.update(visible=False), gr.update(visible=True, value=name)

    def remove(self, selected: str, request: gr.Request) -> str:
        """Delete the picture, and the copy that Gradio serves."""
        language, history = language_of(request, self.services.language), self.services.history
        try:
            copy = Path(shown(history.entry(selected)))
            history.delete(selected)
        except SSDError as error:
            return trouble(language, str(error))
        copy.unlink()
        return line(say(language, "deleted", name=Path(selected).name))
