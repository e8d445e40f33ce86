"""The Create tab: draw pictures and watch; stop, and keep the top or discard it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import gradio as gr

from .. import runs
from ..jobs import Job
from ..runs import Work
from ..services import Services
from ..settings import Settings
from .common import (
    PRIVATE,
    Resumable,
    busy,
    empty_stage,
    over,
    pictures,
    stop_button,
)
from .controls import Controls, takes_knobs
from .redo import Redo
from .stopped import Stopped


class Create(Resumable):
    """The first tab; stopped and finished pictures can continue in `redo`."""

    kind = "draw"

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
        self.last = gr.State([])  # ids of the finished pictures
        self.selected = gr.State(0)  # index of the selected one
        self.shown = [self.stage, self.status, controls.trouble, self.result, self.running,
                      self.stop, *self.stopped.shown, self.again, self.last, self.selected]

    def wire(self, redo: Redo, tabs: gr.Tabs) -> None:
        controls = self.controls
        self.draw.click(
            self.run, [controls.lock, controls.metadata, *controls.inputs],
            [controls.parts["seed"], *self.shown], api_name="draw", show_progress="hidden")
        self.stopped.wire(self.status, controls, redo, tabs, self.stage)
        self.result.select(chosen, None, self.selected, **PRIVATE)
        self.again.click(self.to_redo, [self.last, self.selected], [tabs, *redo.shown], **PRIVATE)
        self.redo = redo

    @takes_knobs
    async def run(self, request: gr.Request, locked: bool, metadata: bool,
                  *values: object) -> AsyncIterator[dict]:
        """Draw; the stage shows the growing picture."""
        def work(settings: Settings) -> Work:
            return runs.draw(self.services.library, self.services.history, settings,
                             metadata=metadata)

        async for told in self.submitted(request, locked, values, work):
            yield told

    async def followed(self, job: Job, language: str) -> AsyncIterator[dict]:
        """Updates of the page until the run is over."""
        yield {self.status: "", self.controls.trouble: "", **busy(self.running, self.stop, job),
               **self.stopped.hidden(), self.again: gr.update(visible=False)}
        await over(job)
        yield {**busy(self.running, self.stop), **self.outcome(job, language)}

    def outcome(self, job: Job, language: str) -> dict:
        """What the page shows of an ended job."""
        shown = self.stopped.outcome(job, language, self.result)
        if job.state == "done":
            shown |= {self.last: [entry.id for entry in job.result.entries], self.selected: 0,
                      self.again: gr.update(visible=True)}
        return shown

    def to_redo(self, ids: list[str], selected: int, request: gr.Request) -> list:
        """Open the selected picture in Redo, the first one if none is selected."""
        entry = ids[selected] if selected < len(ids) else ids[0]
        return [gr.update(selected="redo"), *self.redo.show(entry, request)]


def chosen(event: gr.SelectData) -> int:
    return event.index
