"""The Race tab: two to six methods, one seed, a panel each; then a verdict or a table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from html import escape

import gradio as gr

from ssd_core.engine.methods import AR
from ssd_core.model.knobs import coerce

from .. import orders, runs
from ..jobs import Job
from ..services import Services
from ..settings import AS_CHOSEN, RACED_SPEEDS, Settings
from ..verdicts import race_rows, verdict
from ..words import say
from .common import (
    IDLE,
    Resumable,
    busy,
    empty_stage,
    line,
    method_choices,
    over,
    stop_button,
    trouble,
)
from .controls import Controls, takes_knobs
from .gradio_files import picture_file

NOBODY = ""


class Race(Resumable):
    """Method boxes beside the shared controls; one may be the controls' own method."""

    kind = orders.Race.title

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.running = gr.State([])
        with gr.Row(elem_classes="studio-start"):
            self.start = gr.Button(t("start_race"), variant="primary", elem_id="race")
            self.stop = stop_button(services, t, "race-stop", self.running)
        with gr.Accordion(t("racers"), elem_id="race-fold",
                          open=False) as self.fold:
            gr.Markdown(t("race_hint"))
            with gr.Row(elem_id="race-methods"):
                self.racers = [self._racer(t, n) for n in range(1, runs.MOST_RACERS + 1)]
        self.stage = empty_stage("race-stage")
        self.status = gr.HTML(elem_id="race-status", js_on_load=None)
        self.sheet = gr.DownloadButton(t("sheet"), visible=False, elem_id="race-sheet")
        self.outputs = [self.stage, self.status, controls.trouble, self.sheet,
                        self.running, self.stop, controls.note, self.fold]

    def _racer(self, t: gr.I18n, place: int) -> gr.Dropdown:
        """The first two always draw; the others may stay empty."""
        none = [] if place <= 2 else [(t("no_racer"), NOBODY)]
        usual = {1: AR.name, 2: AS_CHOSEN}.get(place, NOBODY)
        speeds = [(t(f"stop_{name}"), AR.name if name == "plain" else name)
                  for name in RACED_SPEEDS]
        # AR is a speed, too
        methods = [choice for choice in method_choices(t) if choice[1] != AR.name]
        return gr.Dropdown([*none, (t("as_chosen"), AS_CHOSEN), *speeds, *methods], value=usual,
                           label=t(f"racer_{place}"), elem_id=f"race-{place}", min_width=100)

    def wire(self) -> None:
        controls = self.controls
        self.start.click(
            self.run, [*self.racers, controls.lock, controls.metadata, *controls.inputs],
            [controls.parts["seed"], *self.outputs], api_name="race", show_progress="hidden")

    @takes_knobs
    async def run(self, request: gr.Request, method_1: str, method_2: str, method_3: str,
                  method_4: str, method_5: str, method_6: str, locked: bool, metadata: bool,
                  *values: object) -> AsyncIterator[dict]:
        """Race; the stage shows all growing pictures."""
        racers = (method_1, method_2, method_3, method_4, method_5, method_6)

        def order(settings: Settings) -> orders.Race:
            names = tuple(coerce("method", name, str) for name in racers if name != NOBODY)
            return orders.Race(settings, metadata, names)

        async for update in self.submitted(request, locked, values, order):
            yield update

    async def followed(self, job: Job, language: str) -> AsyncIterator[dict]:
        """Updates of the page until the race is over."""
        yield {self.status: "", self.controls.trouble: "", self.fold: gr.update(open=False),
               self.sheet: gr.update(visible=False),
               **busy(self.running, self.stop, job)}
        await over(job)
        outcome = await asyncio.to_thread(self.outcome, job, language)  # it copies the sheet
        yield {**busy(self.running, self.stop), **outcome}

    def outcome(self, job: Job, language: str) -> dict:
        if job.state == "failed":
            return {self.controls.trouble: trouble(self.services, language, job.error or "")}
        if job.state != "done":
            return {self.status: line(say(language, "halted")), self.stage: IDLE}
        raced: runs.Raced = job.result
        text = (figures(raced, language) if len(raced.labels) > 2
                else line(verdict(raced, language)))
        updates: dict = {}
        if raced.sheet is not None:
            updates[self.sheet] = gr.update(value=picture_file(raced.sheet), visible=True)
        if raced.saved.problem:
            updates[self.controls.trouble] = trouble(self.services, language,
                                                     raced.saved.problem)
        return {self.status: text, **updates}


def figures(raced: runs.Raced, language: str) -> str:
    """A table of what was measured, for more pictures than prose can compare."""
    head = say(language, "race_head").split(", ")
    lines = [row_of("th", head),
             *(row_of("td", row) for row in race_rows(raced, language))]
    return f'<table role="status" class="studio-figures">{"".join(lines)}</table>'


def row_of(kind: str, cells: Sequence[str]) -> str:
    """One row of a table, escaped."""
    return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"
