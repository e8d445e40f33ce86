"""The Create tab: draw pictures and watch; stop, and keep the top or discard it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import gradio as gr

from ..jobs import Job
from ..orders import Draw
from ..services import Services
from ..settings import Settings
from .common import Resumable, busy, empty_stage, over, stop_button
from .controls import Controls, takes_knobs
from .redo import Redo
from .stopped import Stopped


class Create(Resumable):
    """The first tab; a stopped picture can continue in `redo`, a finished one by its tools."""

    kind = Draw.title

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.running = gr.State([])
        with gr.Row(elem_classes="studio-start"):
            self.draw = gr.Button(t("draw"), variant="primary", elem_id="draw")
            self.stop = stop_button(services, t, "stop", self.running)
        self.stopped = Stopped(services, t)
        self.stage = empty_stage("create-stage")
        self.status = gr.HTML(elem_id="create-status", js_on_load=None)
        self.outputs = [self.stage, self.status, controls.trouble, self.running, self.stop,
                        *self.stopped.outputs, controls.note]

    def wire(self, redo: Redo, tabs: gr.Tabs) -> None:
        controls = self.controls
        self.draw.click(
            self.run, [controls.lock, controls.metadata, *controls.inputs],
            [controls.parts["seed"], *self.outputs], api_name="draw", show_progress="hidden")
        self.stopped.wire(self.status, controls, redo, tabs, self.stage)

    @takes_knobs
    async def run(self, request: gr.Request, locked: bool, metadata: bool,
                  *values: object) -> AsyncIterator[dict]:
        """Draw; the stage shows the growing picture."""
        def order(settings: Settings) -> Draw:
            return Draw(settings, metadata)

        async for update in self.submitted(request, locked, values, order):
            yield update

    async def followed(self, job: Job, language: str) -> AsyncIterator[dict]:
        """Updates of the page until the run is over."""
        yield {self.status: "", self.controls.trouble: "", **busy(self.running, self.stop, job),
               **self.stopped.hidden()}
        await over(job)
        yield {**busy(self.running, self.stop), **self.stopped.outcome(job, language)}
