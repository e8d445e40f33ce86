"""The Race tab: two methods, one seed, two panels; then a divider and a verdict."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from html import escape

import gradio as gr

from ssd_core.engine.methods import METHODS

from .. import runs
from ..history import Entry
from ..jobs import Job
from ..runs import Work
from ..services import Services
from ..settings import Settings
from ..words import say
from .common import (
    IDLE,
    Resumable,
    busy,
    empty_stage,
    line,
    over,
    stop_button,
    trouble,
)
from .controls import Controls, takes_knobs
from .shown import shown

AS_CHOSEN = "the knobs on the left"


class Race(Resumable):
    """Two method boxes beside the shared controls; one may be the controls' own method."""

    kind = "race"

    def __init__(self, services: Services, t: gr.I18n, controls: Controls) -> None:
        self.services, self.controls = services, controls
        self.running = gr.State([])
        gr.Markdown(t("race_hint"))
        with gr.Row():
            self.left = gr.Dropdown(list(METHODS), value="ar", label=t("left"), elem_id="race-left")
            self.right = gr.Dropdown([(t("as_chosen"), AS_CHOSEN), *METHODS], value=AS_CHOSEN,
                                     label=t("right"), elem_id="race-right")
        with gr.Row():
            self.start = gr.Button(t("start_race"), variant="primary", elem_id="race")
            self.stop = stop_button(services, t, "race-stop", self.running)
        self.stage = empty_stage("race-stage")
        self.status = gr.HTML(elem_id="race-status", js_on_load=None)
        self.divider = gr.HTML(elem_id="race-divider", js_on_load=None)
        self.sheet = gr.DownloadButton(t("sheet"), visible=False, elem_id="race-sheet")
        self.shown = [self.stage, self.status, controls.trouble, self.divider, self.sheet,
                      self.running, self.stop]

    def wire(self) -> None:
        controls = self.controls
        self.start.click(
            self.run, [self.left, self.right, controls.lock, controls.metadata, *controls.inputs],
            [controls.parts["seed"], *self.shown], api_name="race", show_progress="hidden")

    @takes_knobs
    async def run(self, request: gr.Request, left: str, right: str, locked: bool,
                  metadata: bool, *values: object) -> AsyncIterator[dict]:
        """Race; the stage shows both growing pictures."""
        def work(settings: Settings) -> Work:
            names = [settings.method if name == AS_CHOSEN else name for name in (left, right)]
            return runs.race(self.services.library, self.services.history, settings, names,
                             metadata=metadata)

        async for told in self.submitted(request, locked, values, work):
            yield told

    async def followed(self, job: Job, language: str) -> AsyncIterator[dict]:
        """Updates of the page until the race is over."""
        yield {self.status: "", self.controls.trouble: "", self.divider: "",
               self.sheet: gr.update(visible=False), **busy(self.running, self.stop, job)}
        await over(job)
        yield {**busy(self.running, self.stop), **self.outcome(job, language)}

    def outcome(self, job: Job, language: str) -> dict:
        if job.state == "failed":
            return {self.controls.trouble: trouble(language, job.error)}
        if job.state != "done":
            return {self.status: line(say(language, "halted")), self.stage: IDLE}
        raced: runs.Raced = job.result
        sheet = gr.update(value=shown(raced.sheet), visible=True)
        return {self.status: line(verdict(raced, language)), self.divider: divider(raced),
                self.sheet: sheet}


def verdict(raced: runs.Raced, language: str) -> str:
    """Passes and seconds of both sides, and a verdict on the side that is not AR, or on both."""
    (left, right), (a, b) = raced.labels, raced.stats
    told = [say(language, "race_figures", left=left, right=right, left_passes=a["passes"],
                right_passes=b["passes"], left_seconds=f"{a['seconds']['total']:.2f}",
                right_seconds=f"{b['seconds']['total']:.2f}")]
    sides = (0, 1) if raced.judged is None else (raced.judged,)
    told += [judgement(raced, side, language) for side in sides]
    if raced.judged is None:
        told.append(say(language, "race_equal", share=percent(raced.equal)))
    return " ".join(told)


def judgement(raced: runs.Raced, side: int, language: str) -> str:
    """The verdict on one picture, with its share of AR's tokens if measured."""
    share = raced.identical[side]
    told = "" if share in (None, 1) else say(language, "race_share", share=percent(share))
    return say(language, "race_verdict", label=raced.labels[side],
               verdict=say(language, raced.verdicts[side]), share=told)


def percent(share: float) -> str:
    """Rounded down, so that "100%" means all."""
    return f"{math.floor(share * 1000) / 10:g}%"


def divider(raced: runs.Raced) -> str:
    """Both pictures on top of each other, with a movable divider."""
    left, right = map(escape, raced.labels)
    return (f'<ssd-divider left="{address(raced.left)}" right="{address(raced.right)}" '
            f'left-label="{left}" right-label="{right}"></ssd-divider>')


def address(entry: Entry) -> str:
    """The URL of a saved picture."""
    return f"/studio/picture/{escape(entry.id)}"
