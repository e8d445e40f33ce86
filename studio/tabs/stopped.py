"""How a run ends on its tab: finished, failed, or stopped with its top on offer."""

from __future__ import annotations

import gradio as gr

from ssd_core import SSDError

from .. import runs
from ..jobs import Job
from ..orders import keep_top
from ..services import Services
from ..words import language_of, say
from .common import IDLE, PRIVATE, line, saved_line, trouble
from .controls import Controls


class Stopped:
    """Two buttons for a stopped picture: continue with its top in Redo, or discard it.

    Added before the tab's own stage; prefix: of the buttons' ids on the page.
    """

    def __init__(self, services: Services, t: gr.I18n, prefix: str = "") -> None:
        self.services = services
        self.job = gr.State(None)  # id of the stopped job
        with gr.Row(visible=False, elem_id=f"{prefix}stopped") as self.row:
            self.keep = gr.Button(t("keep_top"), elem_id=f"{prefix}keep-top")
            self.discard = gr.Button(t("discard"), elem_id=f"{prefix}discard")
        self.outputs = [self.row, self.job]

    def wire(self, status: gr.HTML, controls: Controls, redo, tabs: gr.Tabs,
             stage: gr.HTML | None = None) -> None:
        """redo: the tab that continues; may be this tab itself. stage: cleared on discard."""
        self.status, self.redo, self.tabs, self.trouble = status, redo, tabs, controls.trouble
        self.emptied = {status: "", **({stage: IDLE} if stage else {})}
        self.discard.click(self.discarded, self.job, [*self.emptied, *self.outputs], **PRIVATE)
        box = [controls.parts["prompt"], controls.parts["negative"]]
        self.keep.click(self.keep_top, [self.job, controls.metadata, *box],
                        [status, self.trouble, tabs, *self.outputs, *redo.outputs], **PRIVATE)

    def hidden(self) -> dict:
        """Hide the buttons: there is nothing to keep."""
        return {self.row: gr.update(visible=False), self.job: None}

    def discarded(self, job_id: str | None) -> dict:
        """Forget the stopped run, so that a reload does not show it again."""
        if (job := self.services.worker.job(job_id)) is not None:
            self.services.worker.forget(job)
        return {**self.emptied, **self.hidden()}

    def keep_top(self, job_id: str, metadata: bool, prompt: str, negative: str,
                 request: gr.Request) -> dict:
        """Save the stopped run's finished rows, and open them in Redo."""
        services, language = self.services, language_of(request, self.services.language)
        try:
            job = services.worker.job(job_id)
            if job is None:
                raise SSDError(say(language, "stopped_gone"))
            entry = keep_top(services, job, metadata)
        except SSDError as error:
            return {self.trouble: trouble(self.services, language, str(error))}
        updates = dict(zip(self.redo.outputs, self.redo.show(entry.id, prompt, negative, request),
                           strict=True))
        return {self.status: "", self.trouble: "", self.tabs: gr.update(selected="redo"),
                **self.hidden(), **updates}

    def offered(self, job: Job, language: str) -> dict:
        """Where a cancelled job stopped; with the buttons if a row was finished."""
        drawn: runs.Drawn | None = job.result
        saved = ""
        if drawn is not None and drawn.entries:  # those that were done before the stopped one
            saved = saved_line(self.services, language, drawn.entries)
        if drawn is None or not drawn.stopped_rows:
            return {self.status: saved + line(say(language, "stopped_early"))}
        text = say(language, "stopped", row=drawn.stopped_rows, rows=drawn.tokens.shape[1])
        return {self.status: saved + line(text), self.row: gr.update(visible=True),
                self.job: job.id}

    def outcome(self, job: Job, language: str) -> dict:
        """What a tab shows of an ended job, beside its stage."""
        if job.state == "cancelled":
            return self.offered(job, language)
        if job.state == "failed":
            return {self.trouble: trouble(self.services, language, job.error or "")}
        updates = {self.status: saved_line(self.services, language, job.result.entries)}
        if problem := job.result.saved.problem:
            updates[self.trouble] = trouble(self.services, language, problem)
        return updates
