"""The History tab: every finished picture on disk; restoring settings from any PNG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import gradio as gr

from ssd_core import SSDError

from ..facts import caption, hint_text, restored_text, wanted, why_empty
from ..payloads import uploaded
from ..services import Services
from ..words import label_in, language_of, say
from .common import PRIVATE, line, trouble
from .controls import Controls
from .details import details_html
from .gradio_files import picture_file, thumbnail_file
from .redo import Redo

PAGE = 24


class HistoryTab:
    """`ids` are the entries shown, `selected` is the one that the buttons act on.

    `delete` shows the button `sure`, which names the picture and deletes it.
    """

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.ids, self.selected, self.limit = gr.State([]), gr.State(None), gr.State(PAGE)
        self.status = gr.HTML(elem_id="history-status", js_on_load=None)
        with gr.Row(elem_id="history-find"):
            self.search = gr.Textbox("", label=t("search"), placeholder=t("search_hint"),
                                     show_label=False, max_lines=1, elem_id="history-search",
                                     scale=3)
            self.only = gr.Checkbox(False, label=t("favourites"), elem_id="history-only",
                                    min_width=140)
        with gr.Row(elem_id="history-row"):
            with gr.Column(scale=3, min_width=300):
                self.gallery = gr.Gallery(
                    label=t("history"), show_label=False, columns=6, height="auto",
                    object_fit="contain", fit_columns=False, elem_id="history",
                    interactive=False, allow_preview=False, buttons=[])
                self.more = gr.Button(t("more"), size="sm", visible=False, elem_id="history-more")
                self.hint = gr.HTML(elem_id="history-hint", js_on_load=None)
            with gr.Column(scale=2, min_width=280, elem_id="history-side"):
                self._side(t)
        self.drop = gr.File(label=t("drop"), file_types=[".png"], elem_id="history-drop",
                            height=120)

    def _side(self, t: gr.I18n) -> None:
        """The selected picture, and what can be done with it."""
        self.details = gr.HTML(elem_id="history-details", js_on_load=None)
        with gr.Row():
            self.restore = gr.Button(t("restore"), variant="primary", elem_id="history-restore",
                                     min_width=120)
            self.again = gr.Button(t("use_in_redo"), elem_id="history-redo", min_width=120)
            self.star = gr.Button(t("favourite"), elem_id="history-star", min_width=100)
            self.delete = gr.Button(t("delete"), variant="stop", elem_id="history-delete",
                                    visible=self.services.local, min_width=100)
            # In Delete's place, so that a double click deletes nothing.
            self.spare = gr.Button(t("keep"), visible=False, elem_id="history-keep", min_width=100)
        self.sure = gr.Button(variant="stop", visible=False, elem_id="history-sure")

    def wire(self, tab: gr.Tab, tabs: gr.Tabs, redo: Redo, load) -> None:
        self.asking = [self.delete, self.spare, self.sure]
        selected = [self.selected, *self.asking, self.details, self.star]
        listed = [self.hint, self.gallery, self.ids, self.more, *selected]
        filters = [self.limit, self.search, self.only]
        listing = [*filters, self.selected]
        restored = [self.status, self.controls.lock, *self.controls.inputs]
        tab.select(self.show, filters, listed, **PRIVATE)
        load(self.show, filters, listed, **PRIVATE)
        gr.on([self.search.change, self.only.change], self.keep, listing, listed,
              trigger_mode="always_last", **PRIVATE)
        self.star.click(self.mark, self.selected, [self.status, self.details, self.star],
                        **PRIVATE).then(self.listed, filters, listed[:4], **PRIVATE)
        self.more.click(lambda limit: limit + PAGE, self.limit, self.limit, **PRIVATE).then(
            self.keep, listing, listed, **PRIVATE)
        self.gallery.select(self.select, self.ids, selected, **PRIVATE)
        self.restore.click(self.restore_selected, self.selected, restored, **PRIVATE)
        self.drop.upload(self.restore_file, self.drop, restored, api_name="restore",
                         show_progress="hidden")
        self.redo = redo
        self.again.click(self.to_redo, [self.selected, *redo.box],
                         [self.status, tabs, *redo.outputs], **PRIVATE)
        if self.services.local:
            self.delete.click(self.ask, self.selected, [self.status, *self.asking], **PRIVATE)
            self.spare.click(self.settled, None, self.asking, **PRIVATE)
            self.sure.click(self.remove, self.selected, self.status, **PRIVATE).then(
                self.show, filters, listed, **PRIVATE)

    def show(self, limit: int, search: str, only: bool, request: gr.Request) -> tuple:
        """Refresh the list of pictures that match, with nothing selected."""
        return self.keep(limit, search, only, None, request)

    def keep(self, limit: int, search: str, only: bool, selected: str | None,
             request: gr.Request) -> tuple:
        """The same, but the selected picture stays so if it is listed."""
        language = language_of(request, self.services.language)
        hint, pictures, ids, more = self.listed(limit, search, only, request)
        current = selected if selected in ids else None
        marked = gr.update(value=pictures, selected_index=ids.index(current) if current else None)
        return hint, marked, ids, more, *self.chosen(current, language)

    def listed(self, limit: int, search: str, only: bool, request: gr.Request) -> tuple:
        """The pictures that match: hint, thumbnails with captions, ids, whether there are more."""
        services, language = self.services, language_of(request, self.services.language)
        entries = services.history.entries(
            limit + 1, wanted=wanted(services, search, only, language))
        marked = services.history.favourites.ids
        listed = [(thumbnail_file(entry, services.history),
                   "★ " * (entry.id in marked) + caption(entry, language))
                  for entry in entries[:limit]]
        hint = hint_text(services, why_empty(entries, search, only), language)
        return (line(hint), listed,
                [entry.id for entry in entries[:limit]], gr.update(visible=len(entries) > limit))

    def select(self, ids: Sequence[str], event: gr.SelectData, request: gr.Request) -> list:
        language = language_of(request, self.services.language)
        return self.chosen(ids[event.index] if event.index < len(ids) else None, language)

    def chosen(self, selected: str | None, language: str) -> list:
        """Set `selected`, show its details, and reset the delete buttons."""
        return [selected, *self.settled(),
                self.details_of(selected, language) if selected else pick_hint(language),
                self.star_now(selected, language)]

    def settled(self) -> tuple[dict, dict, dict]:
        """The delete buttons before Delete is pressed."""
        return gr.update(visible=self.services.local), gr.update(visible=False), gr.update(
            visible=False)

    def star_now(self, selected: str | None, language: str) -> dict:
        """The button that marks the selected picture, or takes the mark away."""
        marked = selected in self.services.history.favourites.ids
        return gr.update(value=label_in(language, "unfavourite" if marked else "favourite"))

    def details_of(self, id_: str, language: str) -> str:
        history = self.services.history
        try:
            return details_html(history.entry(id_), language, id_ in history.favourites.ids)
        except SSDError as error:
            return trouble(self.services, language, str(error))

    def mark(self, selected: str | None, request: gr.Request) -> tuple[str, object, object]:
        """Mark the selected picture as a favourite, or unmark it."""
        language = language_of(request, self.services.language)
        if selected is None:
            return line(say(language, "select_first")), gr.skip(), gr.skip()
        self.services.history.favourites.turn(selected)
        return "", self.details_of(selected, language), self.star_now(selected, language)

    # Actions on the selected picture

    def restore_selected(self, selected: str | None, request: gr.Request) -> list:
        language = language_of(request, self.services.language)
        if selected is None:
            return self._refused(line(say(language, "select_first")))
        try:
            return self._restored(self.services.history.entry(selected).path, request)
        except SSDError as error:
            return self._refused(trouble(self.services, language, str(error)))

    def restore_file(self, path: str, request: gr.Request) -> list:
        """Restore a dropped PNG: the status line, the seed's lock, then one value per control."""
        language, place = language_of(request, self.services.language), Path(uploaded(path))
        try:
            return self._restored(place, request)
        except SSDError as error:
            text = str(error).replace(f"{place.parent}/", "")
            return self._refused(trouble(self.services, language, text))

    def _restored(self, path: Path, request: gr.Request) -> list:
        language = language_of(request, self.services.language)
        settings, recipe = self.services.history.restore(path)
        text = restored_text(self.services, path.name, recipe, language)
        return [line(text), True, *self.controls.restored(settings, request)]

    def _refused(self, text: str) -> list:
        return [text, gr.skip(), *[gr.skip()] * len(self.controls.inputs)]

    def to_redo(self, selected: str | None, prompt: str, negative: str,
                request: gr.Request) -> list:
        if selected is None:
            text = say(language_of(request, self.services.language), "select_first")
            return [line(text), *[gr.skip()] * (1 + len(self.redo.outputs))]
        return ["", gr.update(selected="redo"),
                *self.redo.show(selected, prompt, negative, request)]

    def ask(self, selected: str | None, request: gr.Request) -> tuple:
        language = language_of(request, self.services.language)
        if selected is None:
            return line(say(language, "select_first")), *self.settled()
        name = say(language, "delete_sure", name=Path(selected).name)
        return ("", gr.update(visible=False), gr.update(visible=True),
                gr.update(visible=True, value=name))

    def remove(self, selected: str, request: gr.Request) -> str:
        """Delete the picture, and the copies of it and of its thumbnail that Gradio serves."""
        language, history = language_of(request, self.services.language), self.services.history
        try:
            entry = history.entry(selected)
            copies = [Path(picture_file(entry)), Path(thumbnail_file(entry, history))]
            history.delete(selected)
        except SSDError as error:
            return trouble(self.services, language, str(error))
        for copy in copies:
            copy.unlink()
        return line(say(language, "deleted", name=Path(selected).name))


def pick_hint(language: str) -> str:
    """Where the details will be: that a click on a picture shows them."""
    return f'<p class="studio-pick">{escape(say(language, "history_pick"))}</p>'
