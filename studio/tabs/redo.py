"""The Redo tab: rows above a line are kept, rows below it are drawn again, in the same place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from html import escape
from pathlib import Path
from urllib.parse import quote

import gradio as gr

from ssd_core import SSDError
from ssd_core.model.knobs import coerce
from ssd_core.output.words import Words

from .. import orders, runs
from ..errors import in_language
from ..jobs import Job
from ..payloads import action_value, at, uploaded
from ..services import Services
from ..settings import Settings, whole
from ..typed import fixed_text
from ..words import language_of, say
from .common import (
    PRIVATE,
    Resumable,
    busy,
    line,
    note_words,
    over,
    stop_button,
    trouble,
    typed_since,
)
from .controls import Controls
from .gradio_files import thumbnail_file
from .stopped import Stopped

RECENT = 12
SAME = ""  # the choice of size that extends nothing


class Redo(Resumable):
    """`source` is the path of the picture to redo, in the history or uploaded."""

    kind = orders.Redo.title

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.running, self.source, self.ids = gr.State([]), gr.State(None), gr.State([])
        self.box = [controls.parts["prompt"], controls.parts["negative"]]
        with gr.Row(elem_classes="studio-start"):
            self.start = gr.Button(t("start_redo"), variant="primary", elem_id="redo")
            self.stop = stop_button(services, t, "redo-stop", self.running)
        self.stopped = Stopped(services, t, "redo-")
        self.stage = gr.HTML(elem_id="redo-stage", js_on_load=None)
        with gr.Accordion(t("redo_pick"), elem_id="redo-pick") as self.fold, gr.Row():
            self.recent = gr.Gallery(label=t("recent"), elem_id="redo-recent", columns=6,
                                     height=150, allow_preview=False, fit_columns=False,
                                     interactive=False, buttons=[], scale=3)
            self.upload = gr.File(label=t("upload"), file_types=[".png"], elem_id="redo-upload",
                                  height=150, scale=1, min_width=180)
        self.summary = gr.HTML(elem_id="redo-told", js_on_load=None)
        rows = services.library.current.backbone.grid.rows
        with gr.Row():
            self.rows = gr.Slider(1, rows - 1, rows // 2, step=1, label=t("rows_kept"),
                                  elem_id="redo-rows", buttons=[], scale=3)
            self.size = gr.Dropdown([(t("same_size"), SAME)], value=SAME,
                                    label=t("extend"), elem_id="redo-size", visible=False,
                                    scale=1, min_width=160)
        gr.Markdown(t("redo_hint"))
        self.status = gr.HTML(elem_id="redo-status", js_on_load=None)
        self.outputs = [self.source, self.summary, self.stage, self.rows, self.size, self.fold,
                        *(controls.parts[name] for name in ("negative", "fixed", "prompt"))]
        self.run_outputs = [self.stage, self.status, controls.trouble, self.running,
                            self.stop, *self.stopped.outputs, controls.note]

    def wire(self, tab: gr.Tab, tabs: gr.Tabs) -> None:
        controls = self.controls
        action = controls.actions["redo"]
        box = self.box
        action.change(self.open_picture, [action, *box], [tabs, *self.outputs], **PRIVATE)
        self.size.input(self.resized, [self.source, self.size], self.rows, **PRIVATE)
        tab.select(self.refresh, None, [self.recent, self.ids], **PRIVATE)
        self.recent.select(self.pick, [self.ids, *box], self.outputs, **PRIVATE)
        self.upload.upload(self.show_upload, [self.upload, *box], self.outputs, **PRIVATE)
        self.start.click(
            self.run, [self.source, self.rows, self.size, controls.lock, controls.metadata,
                       *controls.inputs],
            [controls.parts["seed"], *self.run_outputs], **PRIVATE)
        self.stopped.wire(self.status, controls, self, tabs, self.stage)

    # Choosing a picture

    def refresh(self) -> tuple:
        history = self.services.history
        entries = history.entries(RECENT, wanted=lambda entry: entry.kind != "race")
        return ([thumbnail_file(entry, history) for entry in entries],
                [entry.id for entry in entries])

    def open_picture(self, action: str, prompt: str, negative: str, request: gr.Request) -> list:
        """A tool of a stage: open this tab with its picture, whose id is in the action."""
        return [gr.update(selected="redo"),
                *self.show(coerce("picture", action_value(action), str), prompt, negative, request)]

    def pick(self, ids: list[str], prompt: str, negative: str, event: gr.SelectData,
             request: gr.Request) -> list:
        return self.show(ids[at("picture", event.index, len(ids))], prompt, negative, request)

    def show(self, entry_id: str, prompt: str, negative: str, request: gr.Request) -> list:
        """Choose a saved picture as the source; prompt, negative: what is in the boxes."""
        box = words_in(prompt, negative)
        try:
            entry = self.services.history.entry(entry_id)
        except SSDError as error:
            return self._refused(str(error), request)
        return self._show_file(entry.path, f"/studio/picture/{quote(entry_id)}", box, request)

    def show_upload(self, path: str, prompt: str, negative: str, request: gr.Request) -> list:
        """Choose an uploaded picture as the source, or show why it cannot be used."""
        path = uploaded(path)
        return self._show_file(Path(path), f"/gradio_api/file={quote(path)}",
                               words_in(prompt, negative), request)

    def _show_file(self, path: Path, address: str, box: Words, request: gr.Request) -> list:
        language = language_of(request, self.services.language)
        try:
            backbone = self.services.library.current.backbone
            seen = runs.look(self.services.history, path, backbone)
        except SSDError as error:
            return self._refused(str(error).replace(str(path.parent) + "/", ""), request)
        slider = rows_to_keep(seen)
        html = (f'<ssd-keep-line src="{escape(address)}" rows="{seen.rows}" '
                f'row="{slider["value"]}" target="#redo-rows"></ssd-keep-line>')
        sizes = [(say(language, "same_size"), SAME), *((size, size) for size in seen.taller)]
        text = line(say(language, "picked", name=path.name, how=in_language(language, seen.how)))
        newer = box != seen.typed and typed_since(self.services, request, box)
        if newer:
            text += line(say(language, "typed_wins"))
        elif seen.typed is not None:
            note_words(self.services, request, seen.typed)
        return [str(path), text, html, slider,
                gr.update(choices=sizes, value=SAME, visible=bool(seen.taller)),
                gr.update(open=False), *([gr.skip()] * 3 if newer else word_values(seen))]

    def resized(self, source: str, size: str) -> dict:
        """Of a picture that is extended downward, all rows that were drawn can be kept."""
        seen = runs.look(self.services.history, Path(source),
                         self.services.library.current.backbone)
        return rows_to_keep(seen, extended=bool(size))

    def _refused(self, error: str, request: gr.Request) -> list:
        language = language_of(request, self.services.language)
        return [None, trouble(self.services, language, error), "", gr.skip(),
                gr.update(visible=False), gr.update(open=True), *[gr.skip()] * 3]

    # Running

    async def run(self, request: gr.Request, source: str | None, rows: int, size: str | None,
                  locked: bool, metadata: bool, *values: object) -> AsyncIterator[dict]:
        """Redraw the rows below the line; the stage shows the kept rows from the start."""
        def order(settings: Settings) -> orders.Redo:
            if source is None:
                raise SSDError(say(language_of(request, self.services.language), "pick_first"))
            return orders.Redo(settings, metadata, Path(source), whole("rows", rows), size or None)

        async for update in self.submitted(request, locked, values, order):
            yield update

    async def followed(self, job: Job, language: str) -> AsyncIterator[dict]:
        """Updates of the page until the redo is over."""
        yield {self.status: "", self.controls.trouble: "", **busy(self.running, self.stop, job),
               **self.stopped.hidden()}
        await over(job)
        updates = {**busy(self.running, self.stop), **self.stopped.outcome(job, language)}
        if job.state == "done" and job.result.unchanged:
            updates[self.status] += line(say(language, "redo_same"))
        yield updates


def words_in(prompt: object, negative: object) -> Words:
    """What is in the boxes, as settings have it."""
    return Words(coerce("prompt", prompt, str).strip(), coerce("negative", negative, str).strip()
                 or None)


def word_values(seen: runs.Source) -> list:
    """The negative prompt, the words to draw, and the prompt; unchanged without a recipe."""
    if seen.typed is None:
        return [gr.skip()] * 3
    return [seen.typed.negative or "", fixed_text(seen.typed, seen.drawn), seen.typed.prompt]


def rows_to_keep(seen: runs.Source, extended: bool = False) -> dict:
    """The slider's limit and value: rows that were drawn; all of them only if more rows follow."""
    most, usual = (seen.rows, seen.rows) if extended else (seen.rows - 1, seen.rows // 2)
    return gr.update(maximum=seen.finished or most, value=seen.finished or usual)
