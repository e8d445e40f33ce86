"""The Race tab: two to six methods, one seed, a panel each; then a verdict or a table."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from html import escape

import gradio as gr

from ssd_core.engine.methods import AR
from ssd_core.model.knobs import coerce

from .. import runs
from ..jobs import Job
from ..runs import Work
from ..services import Services
from ..settings import STOPS, Settings
from ..words import run_title, say
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

AS_CHOSEN, NOBODY = "the knobs on the left", ""
SPEEDS = {stop.name: stop.knobs for stop in STOPS}


class Race(Resumable):
    """Method boxes beside the shared controls; one may be the controls' own method."""

    kind = "race"

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
        speeds = [(t(f"stop_{name}"), AR.name if name == "plain" else name) for name in SPEEDS]
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

        def work(settings: Settings) -> Work:
            chosen = [racing(settings, coerce("method", name, str)) for name in racers
                      if name != NOBODY]
            return runs.race(self.services.library, self.services.history, settings, chosen,
                             metadata=metadata)

        async for update in self.submitted(request, locked, values, work):
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


def racing(settings: Settings, name: str) -> Settings:
    """The settings of a racer: as they are, at a speed, or with another method."""
    if name == AS_CHOSEN:
        return settings
    speed = SPEEDS.get(name)
    return settings.changed(**(speed if speed else {"method": name}))


def figures(raced: runs.Raced, language: str) -> str:
    """A table of what was measured, for more pictures than prose can compare."""
    rows = [(run_title(label, language), str(stats["passes"]), f"{stats['seconds']['total']:.2f}",
             in_short(raced, n, language))
            for n, (label, stats) in enumerate(zip(raced.labels, raced.stats, strict=True))]
    head = say(language, "race_head").split(", ")
    lines = [row_of("th", head), *(row_of("td", row) for row in rows)]
    return f'<table role="status" class="studio-figures">{"".join(lines)}</table>'


def row_of(kind: str, cells: Sequence[str]) -> str:
    """One row of a table, escaped."""
    return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"


def in_short(raced: runs.Raced, n: int, language: str) -> str:
    """The verdict on one picture, with its share of AR's tokens if measured."""
    if n not in raced.judged:
        return say(language, "race_ar")
    return say(language, raced.verdicts[n]) + shared(raced, n, language)


def shared(raced: runs.Raced, n: int, language: str) -> str:
    """The share of AR's tokens; empty if not measured, or if they are all equal."""
    share = raced.identical[n]
    return "" if share in (None, 1) else say(language, "race_share", share=percent(share))


def verdict(raced: runs.Raced, language: str) -> str:
    """A verdict on each side that is not AR's own; the figures stand below the pictures."""
    sentences = [judgement(raced, n, language) for n in raced.judged]
    if None in raced.identical:
        sentences.append(say(language, "race_equal", share=percent(raced.equal)))
    return " ".join(sentences)


def judgement(raced: runs.Raced, n: int, language: str) -> str:
    """`in_short` as a sentence."""
    return say(language, "race_verdict", label=run_title(raced.labels[n], language),
               verdict=say(language, raced.verdicts[n]), share=shared(raced, n, language))


def percent(share: float) -> str:
    """Rounded down, so that "100%" means all."""
    return f"{math.floor(share * 1000) / 10:g}%"
