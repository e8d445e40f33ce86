"""Create: draw pictures and watch; stop, and keep the top or discard it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import gradio as gr

from ssd_core import SSDError

from .. import runs
from ..services import Services
from ..words import language_of, say
from .common import (
    IDLE,
    PRIVATE,
    empty_stage,
    figures,
    files,
    line,
    over,
    owner_of,
    pictures,
    stage,
    stop_button,
    trouble,
)
from .controls import Controls
from .redo import Redo


class Create:
    """The first tab; `redo` is where stopped and finished pictures can go on."""

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.running = gr.State([])
        self.stopped = gr.State(None)  # what a stopped run left
        with gr.Row():
            self.draw = gr.Button(t("draw"), variant="primary", elem_id="draw")
            self.stop = stop_button(services, t, "stop", self.running)
        self.stage = empty_stage("create-stage")
        self.status = gr.HTML(elem_id="create-status", js_on_load=None)
        with gr.Row(visible=False, elem_id="stopped") as self.choice:
            self.keep = gr.Button(t("keep_top"), elem_id="keep-top")
            self.discard = gr.Button(t("discard"), elem_id="discard")
        self.result = pictures(t, "create-result")
        self.again = gr.Button(t("to_redo"), visible=False, size="md",
                               elem_id="create-to-redo")
        self.last = gr.State(None)  # entry id of the first finished picture

    def wire(self, redo: Redo, tabs: gr.Tabs) -> None:
        controls = self.controls
        self.draw.click(
            self.run, [controls.lock, controls.metadata, *controls.inputs],
            [controls.parts["seed"], self.stage, self.status, self.result, self.running, self.stop,
             self.choice, self.stopped, self.again, self.last],
            api_name="draw", show_progress="hidden")
        self.discard.click(lambda: (IDLE, "", gr.update(visible=False), None), None,
                           [self.stage, self.status, self.choice, self.stopped], **PRIVATE)
        self.keep.click(self.kept, self.stopped, [self.choice, self.last, tabs], **PRIVATE).then(
            redo.show, self.last, redo.shown, **PRIVATE)
        self.again.click(lambda: gr.update(selected="redo"), None, tabs, **PRIVATE).then(
            redo.show, self.last, redo.shown, **PRIVATE)

    async def run(self, request: gr.Request, locked: bool, metadata: bool,
                  *values: object) -> AsyncIterator[dict]:
        """Draw; the picture grows on the stage meanwhile."""
        services, language = self.services, language_of(request, self.services.language)
        try:
            settings = self.controls.drawn(locked, values)
        except SSDError as error:
            yield {self.status: trouble(language, str(error))}
            return
        work = runs.draw(services.library, services.history, settings, metadata=metadata)
        job = services.worker.submit("draw", work, owner_of(request))
        yield {self.controls.parts["seed"]: str(settings.seed), self.stage: stage(job),
               self.status: "", self.running: [job.id], self.stop: gr.update(interactive=True),
               self.choice: gr.update(visible=False), self.again: gr.update(visible=False)}
        await over(job)
        yield {self.running: [], self.stop: gr.update(interactive=False),
               **self.outcome(job, language)}

    def outcome(self, job, language: str) -> dict:
        """What the page shows of a job that is over."""
        drawn: runs.Drawn | None = job.result
        if job.state == "failed":
            return {self.status: trouble(language, job.error)}
        if job.state == "done":
            return {self.status: figures(language, drawn.label, drawn.stats, drawn.entries),
                    self.result: files(drawn.entries), self.last: drawn.entries[0].id,
                    self.again: gr.update(visible=True)}
        row = drawn.stopped_rows if drawn else 0
        if not row:
            return {self.status: line(say(language, "stopped_early"))}
        return {self.status: line(say(language, "stopped", row=row, rows=drawn.tokens.shape[1])),
                self.choice: gr.update(visible=True), self.stopped: job.id}

    def kept(self, job_id: str) -> tuple:
        """Save what a stopped run had finished, and go on with it in Redo."""
        job = self.services.worker.job(job_id)
        if job is None:
            raise gr.Error("the stopped picture is no longer held: draw again")
        entry = runs.save_partial(self.services.history, self.services.library, job.result)
        return gr.update(visible=False), entry.id, gr.update(selected="redo")
