"""Create: draw pictures and watch; stop, and keep the top or discard it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import gradio as gr

from ssd_core import SSDError

from .. import runs
from ..jobs import Job
from ..services import Services
from ..words import language_of
from .common import (
    PRIVATE,
    empty_stage,
    over,
    owner_of,
    pictures,
    stage,
    stop_button,
    trouble,
)
from .controls import Controls, takes_knobs
from .redo import Redo
from .stopped import Stopped


class Create:
    """The first tab; `redo` is where stopped and finished pictures can go on."""

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.running = gr.State([])
        with gr.Row():
            self.draw = gr.Button(t("draw"), variant="primary", elem_id="draw")
            self.stop = stop_button(services, t, "stop", self.running)
        self.stage = empty_stage("create-stage")
        self.status = gr.HTML(elem_id="create-status", js_on_load=None)
        self.stopped = Stopped(services, t)
        self.result = pictures(t, "create-result")
        self.again = gr.Button(t("to_redo"), visible=False, size="md",
                               elem_id="create-to-redo")
        self.last = gr.State(None)  # entry id of the first finished picture

    def wire(self, redo: Redo, tabs: gr.Tabs) -> None:
        controls = self.controls
        self.draw.click(
            self.run, [controls.lock, controls.metadata, *controls.inputs],
            [controls.parts["seed"], self.stage, self.status, self.result, self.running, self.stop,
             *self.stopped.shown, self.again, self.last],
            api_name="draw", show_progress="hidden")
        self.stopped.wire(self.status, controls.metadata, redo, tabs, self.stage)
        self.again.click(lambda: gr.update(selected="redo"), None, tabs, **PRIVATE).then(
            redo.show, self.last, redo.shown, **PRIVATE)

    @takes_knobs
    async def run(self, request: gr.Request, locked: bool, metadata: bool,
                  *values: object) -> AsyncIterator[dict]:
        """Draw; the picture grows on the stage meanwhile."""
        services, language = self.services, language_of(request, self.services.language)
        try:
            settings = self.controls.drawn(locked, values)
            work = runs.draw(services.library, services.history, settings, metadata=metadata)
            job = services.worker.submit("draw", work, owner_of(request))
        except SSDError as error:
            yield {self.status: trouble(language, str(error))}
            return
        yield {self.controls.parts["seed"]: str(settings.seed), self.stage: stage(job),
               self.status: "", self.running: [job.id], self.stop: gr.update(interactive=True),
               **self.stopped.hidden(), self.again: gr.update(visible=False)}
        await over(job)
        yield {self.running: [], self.stop: gr.update(interactive=False),
               **self.outcome(job, language)}

    def outcome(self, job: Job, language: str) -> dict:
        """What the page shows of a job that is over."""
        shown = self.stopped.outcome(job, language, self.result)
        if job.state == "done":
            shown |= {self.last: job.result.entries[0].id, self.again: gr.update(visible=True)}
        return shown
