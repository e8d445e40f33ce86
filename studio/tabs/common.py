"""What tabs with runs share: stages, waiting, stopping, figures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

import gradio as gr

from ssd_core import SSDError
from ssd_core.engine.methods import METHODS
from ssd_core.output.animation import can_write_mp4
from ssd_core.output.words import Words

from ..errors import in_language
from ..history import Entry
from ..jobs import Job
from ..orders import Order, submit
from ..services import Services
from ..settings import Settings
from ..words import language_of, method_key, run_names, say
from .gradio_files import picture_file

if TYPE_CHECKING:
    from .controls import Controls

IDLE = "<ssd-stage></ssd-stage>"
PRIVATE = {"api_visibility": "private", "show_progress": "hidden"}


def owner_of(services: Services, request: gr.Request) -> str:
    """The visitor who sent a request, the same after a reload of the page."""
    return services.visits.owner(request.session_hash or "")


def begin_with(services: Services, request: gr.Request, words: Words) -> None:
    """A page opens with these words in its boxes."""
    services.last_words.note_first(owner_of(services, request), words)


def note_words(services: Services, request: gr.Request, words: Words) -> None:
    """These words were drawn or put into the boxes: what differs from them is typed."""
    services.last_words.note(owner_of(services, request), words)


def typed_since(services: Services, request: gr.Request, words: Words) -> bool:
    """Whether the words in the boxes were typed after the last ones that were noted."""
    return services.last_words.typed_since(owner_of(services, request), words)


def method_choices(t: gr.I18n) -> list[tuple[object, str]]:
    """All methods for a dropdown, each with what it promises."""
    return [(t(method_key(name)), name) for name in METHODS]


def busy(running: gr.State, stop: gr.Button, *jobs: Job) -> dict:
    """Enable the Stop button for these jobs; without jobs, disable it."""
    return {running: [job.id for job in jobs], stop: gr.update(interactive=bool(jobs))}


def stage(job: Job, language: str) -> str:
    """An element that shows the live pictures of a job."""
    names = escape(json.dumps(run_names(language)))
    mp4 = "mp4" if can_write_mp4() else ""
    return f'<ssd-stage jobs="{job.id}" names="{names}" {mp4}></ssd-stage>'


def empty_stage(elem_id: str) -> gr.HTML:
    return gr.HTML(IDLE, elem_id=elem_id, js_on_load=None)


def line(text: str) -> str:
    """A status line, escaped because its text may come from outside."""
    return f'<p class="studio-line" role="status">{escape(text)}</p>'


def trouble(services: Services, language: str, error: str) -> str:
    """A status line about an error, as visitors may read it."""
    text = say(language, "failed", error=services.for_visitors(in_language(language, error)))
    return f'<p class="studio-problem" role="alert">{escape(text)}</p>'


async def over(*jobs: Job) -> None:
    """Wait for jobs without blocking a thread."""
    while not all(job.over for job in jobs):
        await asyncio.sleep(0.05)


class Resumable:
    """A tab with one job at a time, shown on `stage`; a reloaded page resumes it.

    kind: the title of its jobs.
    """

    kind: str
    services: Services
    controls: Controls
    stage: gr.HTML
    status: gr.HTML

    def followed(self, job: Job, language: str) -> AsyncIterator[dict]:
        """Updates of the page until the job is over."""
        raise NotImplementedError

    async def submitted(self, request: gr.Request, locked: bool, values: Sequence[object],
                        order: Callable[[Settings], Order]) -> AsyncIterator[dict]:
        """Submit the order that these values make, and follow it until it is over."""
        services, language = self.services, language_of(request, self.services.language)
        try:
            settings = self.controls.drawn(request, locked, values)
            job = submit(services, owner_of(services, request), order(settings))
        except SSDError as error:
            yield self.controls.refused(error, language)
            return
        self.controls.drew(request, locked)
        yield {self.controls.parts["seed"]: str(settings.knobs["seed"]),
               self.stage: stage(job, language)}
        async for update in self.followed(job, language):
            yield update

    async def resume(self, request: gr.Request) -> AsyncIterator[dict]:
        """On a reloaded page: follow the visitor's last job of this kind."""
        services = self.services
        job = services.worker.latest(owner_of(services, request), self.kind)
        if job is None:
            yield {self.status: gr.skip()}
            return
        language = language_of(request, services.language)
        yield {self.stage: stage(job, language)}
        async for update in self.followed(job, language):
            yield update


def stop_button(services: Services, t: gr.I18n, elem_id: str, running: gr.State) -> gr.Button:
    """A button that cancels the jobs whose ids are in `running`; they end within one pass.

    Jobs that are already paused stay paused.
    """
    def stop(ids: Sequence[str]) -> None:
        for job in filter(None, map(services.worker.job, ids)):
            job.cancel(parked=False)

    button = gr.Button(t("stop"), variant="stop", interactive=False, elem_id=elem_id)
    button.click(stop, running, None, queue=False, **PRIVATE)
    return button


def files(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """(path, caption) for a gallery."""
    return [(picture_file(entry), entry.path.stem) for entry in entries]


def saved_line(services: Services, language: str, entries: Sequence[Entry]) -> str:
    """The status line of a finished run; empty if nothing was saved. Figures are on the stage."""
    if not entries:
        return ""
    if len(entries) == 1 and services.local:
        return line(say(language, "saved_as", where=entries[0].path))
    key = "saved_in" if services.local else "saved"
    return line(say(language, key, where=entries[0].path.parent, count=len(entries)))
