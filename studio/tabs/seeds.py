"""The Seeds tab: draw the top of many seeds, then finish the ticked ones."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace

import gradio as gr

from ssd_core import SSDError
from ssd_core.output.words import typed_words

from .. import runs
from ..jobs import Job
from ..orders import FINISHED, PARTS, TOPS, finish_seeds, rows_kept_from, start_seeds
from ..payloads import action_picture, listed, one_of
from ..seeds import NOTHING, KeptRows
from ..services import Services
from ..settings import whole
from ..words import language_of, say
from .common import PRIVATE, files, line, owner_of, stop_button, trouble, typed_since
from .controls import Controls, takes_knobs
from .redo import Redo
from .stopped import Stopped

# In the browser: by the time the server answered, the ticks would be others.
FINISHABLE = """(ticked, idle) => (
  {__type__: "update", interactive: idle && ticked.length > 0})"""


class Seeds:
    """`job_ids` maps each seed shown to the id of the job that drew its top."""

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.running, self.job_ids = gr.State([]), gr.State({})
        with gr.Row(elem_classes="studio-start"):
            self.start = gr.Button(t("start_seeds"), variant="primary", elem_id="seeds-start")
            self.stop = stop_button(services, t, "seeds-stop", self.running)
        with gr.Row(elem_id="seeds-wish"):
            self.count = gr.Slider(2, 16, 8, step=1, label=t("how_many"), info=t("seeds_hint"),
                                   elem_id="seeds-count", buttons=[], scale=3)
            self.part = gr.Radio([(t(f"part_{part}"), part) for part in PARTS], value="third",
                                 label=t("part"), elem_id="seeds-part", scale=2)
        self.status = gr.HTML(elem_id="seeds-status", js_on_load=None)
        self.grid = gr.HTML(elem_id="seeds-grid", js_on_load=None)
        self.ticks = gr.CheckboxGroup([], label=t("ticked"), visible=False, elem_id="seeds-ticks")
        self.idle = gr.Checkbox(True, visible="hidden")  # nothing runs; the browser reads it
        self.finish = gr.Button(t("finish"), interactive=False, elem_id="seeds-finish")
        self.stopped = Stopped(services, t, "seeds-")
        # For API callers; on the page a finished picture stays where its seed is.
        self.result = gr.Gallery(label=t("result"), format="png", visible=False)
        self.outputs = [self.status, controls.trouble, self.grid, self.ticks, self.job_ids,
                        self.running, self.idle, self.stop, self.start, self.result,
                        *self.stopped.outputs, controls.note]

    def wire(self, redo: Redo, tabs: gr.Tabs) -> None:
        controls, self.tabs = self.controls, tabs
        self.start.click(
            self.begin, [self.count, self.part, self.job_ids, controls.lock, *controls.inputs],
            [controls.parts["seed"], *self.outputs], api_name="seeds_start",
            show_progress="hidden")
        action = controls.actions["vary"]
        action.change(
            self.vary, [action, self.count, self.part, self.job_ids, *controls.inputs],
            [tabs, *controls.inputs, *self.outputs], **PRIVATE)
        gr.on([self.ticks.change, self.idle.change], None, [self.ticks, self.idle], self.finish,
              js=FINISHABLE, **PRIVATE)
        self.finish.click(
            self.complete, [self.ticks, self.job_ids, controls.metadata],
            self.outputs, api_name="seeds_finish", show_progress="hidden")
        self.stopped.wire(self.status, controls, redo, tabs)

    @takes_knobs
    async def begin(self, request: gr.Request, count: int, part: str, job_ids: dict[str, str],
                    locked: bool, *values: object) -> AsyncIterator[dict]:
        """Draw the top of `count` seeds, one after the other, and pause each."""
        async for update in self.started(request, count, part, job_ids, locked, values):
            yield update

    async def started(self, request: gr.Request, count: int, part: str, job_ids: dict[str, str],
                      locked: bool, values: Sequence[object],
                      top: KeptRows = NOTHING, about: str = "") -> AsyncIterator[dict]:
        """Updates of the page while tops are drawn, below the rows that all of them keep.

        about: a line to show above the status.
        """
        services, language = self.services, language_of(request, self.services.language)
        owner = owner_of(services, request)
        try:
            settings = self.controls.drawn(request, locked, values)
            jobs = start_seeds(services, owner, settings, whole("count", count),
                               one_of("part", part, PARTS), top)
        except SSDError as error:
            yield {**self.controls.refused(error, language), **self.left(job_ids)}
            return
        self.controls.drew(request, locked)
        yield {self.controls.parts["seed"]: str(settings.knobs["seed"])}
        async for update in self.drawing_tops(jobs, language):
            if self.status in update:
                update = {**update, self.status: about + update[self.status]}
            yield update

    async def vary(self, request: gr.Request, action: str, count: int, part: str,
                   job_ids: dict[str, str], *values: object) -> AsyncIterator[dict]:
        """A tool of a stage: start the seeds around a picture's own, with its settings.

        A prompt that was typed since takes the place of the picture's.
        """
        picture, seed = action_picture(action)
        first = (seed - whole("count", count) // 2) % 2**64
        own, typed = await asyncio.to_thread(self.settings_of, picture, values, request)
        about = line(say(language_of(request, self.services.language), "typed_wins"))
        around = self.controls.with_seed(own, first)
        top = await asyncio.to_thread(rows_kept_from, self.services, picture)
        yield {self.tabs: gr.update(selected="seeds"),
               **dict(zip(self.controls.inputs, around, strict=True))}
        async for update in self.started(request, count, part, job_ids, True, around, top,
                                         about if typed else ""):
            yield update

    def settings_of(self, picture: str, values: Sequence[object],
                    request: gr.Request) -> tuple[Sequence[object], bool]:
        """The inputs' values for a saved picture, with the words that it was drawn from; and
        whether other words, typed since, take their place.

        Without a recipe in its PNG all others are as they are now.
        """
        history, controls = self.services.history, self.controls
        try:
            path = history.entry(picture).path
            now = controls.read(values)
        except SSDError:
            return values, False
        try:
            own = replace(history.restore(path)[0], expand=now.expand)
        except SSDError:
            return controls.values_of(runs.with_words_of(history, path, now)), False
        words = typed_words(vars(now))
        typed = words != typed_words(vars(own)) and typed_since(self.services, request, words)
        if typed:
            own = replace(own, prompt=now.prompt, negative=now.negative, open=now.open,
                          fixed=now.fixed)
        return controls.values_of(own), typed

    async def drawing_tops(self, jobs: Sequence[Job], language: str) -> AsyncIterator[dict]:
        """Updates of the page until all tops are drawn."""
        job_ids = ids_by_seed(jobs)
        yield {self.controls.trouble: "", self.grid: grid(job_ids), self.job_ids: job_ids,
               self.ticks: gr.update(choices=list(job_ids), value=[], visible=True),
               **self.busy(job_ids.values())}
        async for status in self.progress(jobs, language):
            yield {self.status: status}
        yield {**self.waiting(jobs, language), **self.left(job_ids)}

    async def resume(self, request: gr.Request) -> AsyncIterator[dict]:
        """On a reloaded page: the visitor's seeds, whether paused, running or finished."""
        services, language = self.services, language_of(request, self.services.language)
        owner = owner_of(services, request)
        tops, finishing = services.worker.of(owner, TOPS), services.worker.of(owner, FINISHED)
        if not (tops or finishing):
            yield {self.status: gr.skip()}
            return
        if tops:
            async for update in self.drawing_tops(tops, language):
                yield update
        if finishing:
            async for update in self.finishing(finishing, ids_by_seed(tops), language):
                yield update

    async def progress(self, jobs: Sequence[Job], language: str) -> AsyncIterator[str]:
        """A status line whenever another seed is drawn."""
        begin, reported = time.monotonic(), 0
        while (done := sum(job.over for job in jobs)) < len(jobs):
            if done != reported:
                reported, each = done, (time.monotonic() - begin) / done
                yield line(say(language, "seeds_going", done=done, count=len(jobs),
                               seconds=math.ceil(each * (len(jobs) - done))))
            await asyncio.sleep(0.05)

    def waiting(self, jobs: Sequence[Job], language: str) -> dict:
        """How many seeds are paused, and at which row; the first error of the others."""
        lines = []
        parked = [job for job in jobs if job.state == "paused"]
        rows = self.services.parked_seeds.rows([job.id for job in parked])
        if rows:
            lines.append(line(say(
                language, "seeds_wait", count=len(rows), row=rows[0][0], rows=rows[0][1],
                seconds=f"{parked[0].seconds_left or 0:.1f}")))
        elif any(job.freed for job in jobs):
            lines.append(line(say(language, "seeds_gone")))
        return {self.status: "".join(lines) or line(say(language, "halted")),
                **self.failed(jobs, language)}

    def failed(self, jobs: Sequence[Job], language: str) -> dict:
        """The error of the first seed that failed or could not be saved."""
        errors = [job.error or "" for job in jobs if job.state == "failed"]
        errors += [job.result.saved.problem for job in jobs
                   if job.result and job.result.saved.problem]
        messages = [trouble(self.services, language, error) for error in errors]
        return {self.controls.trouble: messages[0]} if messages else {}

    async def complete(self, ticked: list[str], job_ids: dict[str, str], metadata: bool,
                       request: gr.Request) -> AsyncIterator[dict]:
        """Finish the ticked seeds from where they are paused."""
        services, language = self.services, language_of(request, self.services.language)
        owner = owner_of(services, request)
        ticked = [seed for seed in listed("ticked", ticked) if seed in job_ids]
        try:
            if not ticked:
                raise SSDError(say(language, "tick_first"))
            jobs = finish_seeds(services, owner, [job_ids[seed] for seed in ticked], metadata)
        except SSDError as error:
            yield {self.status: trouble(services, language, str(error)), **self.left(job_ids)}
            return
        async for update in self.finishing(jobs, job_ids, language):
            yield update

    async def finishing(self, jobs: Sequence[Job], job_ids: dict[str, str],
                        language: str) -> AsyncIterator[dict]:
        """Updates of the page until all chosen seeds are over."""
        displayed = {**job_ids, **ids_by_seed(jobs)}
        yield {self.controls.trouble: "", self.grid: grid(displayed), **self.stopped.hidden(),
               **self.busy(job.id for job in jobs)}
        async for status in self.progress(jobs, language):
            yield {self.status: status}
        rest = self.parked(job_ids)
        done = await asyncio.to_thread(self.finished, jobs, language)
        yield {self.grid: grid({**displayed, **rest}), **done, **self.left(job_ids)}

    def finished(self, jobs: Sequence[Job], language: str) -> dict:
        """The finished seeds, and the top of a stopped one."""
        entries = [entry for job in jobs if job.result for entry in job.result.entries]
        lines = [line(say(language, "seeds_done", count=len(entries),
                          where=self.services.place(entries[0].path.parent)))] if entries else []
        stopped = [job for job in jobs if job.state == "cancelled"]
        offer = next((job for job in stopped if job.result and job.result.stopped_rows), None)
        offered = self.stopped.offered(offer, language) if offer else {}
        if stopped:
            lines.append(offered.get(self.status) or line(say(language, "halted")))
        return {**offered, self.status: "".join(lines), self.result: files(entries),
                **self.failed(jobs, language)}

    def parked(self, job_ids: dict[str, str]) -> dict[str, str]:
        """Those seeds that are still paused."""
        jobs = {seed: self.services.worker.job(id_) for seed, id_ in job_ids.items()}
        return {seed: job.id for seed, job in jobs.items() if job and job.state == "paused"}

    def busy(self, ids: Iterable[str]) -> dict:
        return {self.running: list(ids), self.idle: False,
                self.stop: gr.update(interactive=True), self.start: gr.update(interactive=False)}

    def left(self, job_ids: dict[str, str]) -> dict:
        """Nothing runs now: update ticks and buttons. Ticks stay if all seeds are still paused."""
        rest = self.parked(job_ids)
        ticks = gr.skip() if rest == job_ids else gr.update(choices=list(rest), value=[])
        return {self.job_ids: rest, self.ticks: ticks, self.running: [], self.idle: True,
                self.stop: gr.update(interactive=False), self.start: gr.update(interactive=True)}


def ids_by_seed(jobs: Iterable[Job]) -> dict[str, str]:
    return {job.tag: job.id for job in jobs}


def grid(job_ids: dict[str, str]) -> str:
    """An element with the small pictures and their ticks."""
    return (f'<ssd-seeds jobs="{",".join(job_ids.values())}" seeds="{",".join(job_ids)}" '
            'target="#seeds-ticks"></ssd-seeds>')
