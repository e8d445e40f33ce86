"""Seeds: draw the first third of many, finish those that were ticked."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence

import gradio as gr

from ssd_core import SSDError

from ..jobs import Job
from ..services import Services
from ..words import language_of, say
from .common import files, line, owner_of, pictures, stop_button, trouble
from .controls import Controls

PART = 1 / 3


class Seeds:
    """`held` maps each seed on show to the id of the job that drew its first part."""

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.running, self.held = gr.State([]), gr.State({})
        gr.Markdown(t("seeds_hint"))
        with gr.Row():
            self.count = gr.Slider(2, 16, 8, step=1, label=t("how_many"), elem_id="seeds-count",
                                   buttons=[])
            self.start = gr.Button(t("start_seeds"), variant="primary", elem_id="seeds-start")
            self.stop = stop_button(services, t, "seeds-stop", self.running)
        self.status = gr.HTML(elem_id="seeds-status", js_on_load=None)
        self.grid = gr.HTML(elem_id="seeds-grid", js_on_load=None)
        self.ticks = gr.CheckboxGroup([], label=t("ticked"), visible=False, elem_id="seeds-ticks")
        self.finish = gr.Button(t("finish"), interactive=False, elem_id="seeds-finish")
        self.result = pictures(t, "seeds-result")

    def wire(self) -> None:
        controls = self.controls
        self.start.click(
            self.begin, [self.count, controls.lock, *controls.inputs],
            [controls.parts["seed"], self.status, self.grid, self.ticks, self.held, self.running,
             self.stop, self.start, self.finish], api_name="seeds_start", show_progress="hidden")
        self.finish.click(
            self.complete, [self.ticks, self.held, controls.metadata],
            [self.status, self.result, self.ticks, self.grid, self.held, self.running, self.stop,
             self.start, self.finish], api_name="seeds_finish", show_progress="hidden")

    async def begin(self, request: gr.Request, count: int, locked: bool,
                    *values: object) -> AsyncIterator[dict]:
        """Draw the first part of `count` seeds, one after the other, and leave them waiting."""
        services, language = self.services, language_of(request, self.services.language)
        owner = owner_of(request)
        try:
            settings = self.controls.drawn(locked, values)
            works = services.nursery.start(settings, int(count), PART, owner)
        except SSDError as error:
            yield {self.status: trouble(language, str(error))}
            return
        jobs = {seed: services.worker.submit("seeds", work, owner) for seed, work in works}
        held = {str(seed): job.id for seed, job in jobs.items()}
        yield {self.controls.parts["seed"]: str(settings.seed), self.grid: grid(held),
               self.ticks: gr.update(choices=list(held), value=[], visible=True), self.held: held,
               **self.busy(held.values())}
        async for told in self.progress(list(jobs.values()), language):
            yield {self.status: told}
        yield {self.status: self.waiting(list(jobs.values()), language), **self.ready()}

    async def progress(self, jobs: Sequence[Job], language: str) -> AsyncIterator[str]:
        """A status line whenever one more seed has come to rest."""
        begin, told = time.monotonic(), 0
        while (done := sum(map(at_rest, jobs))) < len(jobs):
            if done != told:
                told, each = done, (time.monotonic() - begin) / done
                yield line(say(language, "seeds_going", done=done, count=len(jobs),
                               seconds=math.ceil(each * (len(jobs) - done))))
            await asyncio.sleep(0.05)

    def waiting(self, jobs: Sequence[Job], language: str) -> str:
        parked = [job for job in jobs if job.state == "paused"]
        failed = next((job.error for job in jobs if job.state == "failed"), None)
        if failed or not parked:
            return (trouble(language, failed) if failed
                    else line(say(language, "stopped_early")))
        grid_ = self.services.library.current.backbone.grid
        return line(say(language, "seeds_wait", count=len(parked), rows=grid_.rows,
                        row=math.ceil(grid_.rows * PART),
                        seconds=f"{parked[0].seconds_left or 0:.1f}"))

    async def complete(self, ticked: list[str], held: dict[str, str], metadata: bool,
                       request: gr.Request) -> AsyncIterator[dict]:
        """Go on with the ticked seeds from where they wait."""
        services, language = self.services, language_of(request, self.services.language)
        owner = owner_of(request)
        try:
            if not ticked:
                raise SSDError(say(language, "tick_first"))
            works = services.nursery.finish([held[seed] for seed in ticked if seed in held], owner,
                                            metadata=metadata)
        except SSDError as error:
            yield {self.status: trouble(language, str(error))}
            return
        jobs = [services.worker.submit("seeds", work, owner) for work in works]
        shown = {**held, **dict(zip(ticked, (job.id for job in jobs), strict=True))}
        yield {self.grid: grid(shown), **self.busy(job.id for job in jobs)}
        async for told in self.progress(jobs, language):
            yield {self.status: told}
        entries = [entry for job in jobs if job.state == "done" for entry in job.result.entries]
        rest = {seed: job for seed, job in held.items() if seed not in ticked}
        told = (line(say(language, "seeds_done", count=len(entries), where=entries[0].path.parent))
                if entries else self.waiting(jobs, language))
        yield {self.status: told, self.result: files(entries), self.held: rest,
               self.ticks: gr.update(choices=list(rest), value=[]), **self.ready()}

    def busy(self, ids) -> dict:
        return {self.running: list(ids), self.stop: gr.update(interactive=True),
                self.start: gr.update(interactive=False), self.finish: gr.update(interactive=False)}

    def ready(self) -> dict:
        return {self.running: [], self.stop: gr.update(interactive=False),
                self.start: gr.update(interactive=True), self.finish: gr.update(interactive=True)}


def grid(held: dict[str, str]) -> str:
    """The small pictures with their ticks."""
    return (f'<ssd-seeds jobs="{",".join(held.values())}" seeds="{",".join(held)}" '
            'target="#seeds-ticks"></ssd-seeds>')


def at_rest(job: Job) -> bool:
    """Whether a job is over, or waits for somebody to go on with it."""
    return job.over or job.state == "paused"
