"""The page: a header, the controls, the tabs. Knows the layout, not what the parts do."""

from __future__ import annotations

import json
from html import escape

import gradio as gr

from ssd_core import __version__

from .orders import FINISHED, TOPS
from .services import Services
from .tabs.backbones import Backbones
from .tabs.common import PRIVATE, line, owner_of
from .tabs.controls import Controls
from .tabs.create import Create
from .tabs.doctor import Doctor
from .tabs.guard import guard_all
from .tabs.history import HistoryTab
from .tabs.race import Race
from .tabs.redo import Redo
from .tabs.seeds import Seeds
from .words import language_of, say, translations

TITLE = "SSD studio"
UPLOADS = (3600, 86400)  # s: how often uploads are checked, how long they are kept
LIVE = """() => document.querySelectorAll('#plan, #note, #trouble').forEach(
  (one) => one.setAttribute('aria-live', 'polite'))"""
# Kept per browser tab: a second tab of the same browser is another visitor.
TOKEN = """() => {
  const key = "ssd-studio-visit";
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  const fresh = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  sessionStorage.setItem(key, sessionStorage.getItem(key) ?? fresh);
  const left = JSON.parse(sessionStorage.getItem("ssd-studio-left") ?? "{}");
  return [sessionStorage.getItem(key), JSON.stringify(left.jobs ?? [])];
}"""
# The words that this tab's last page had in its boxes, which the server may not have heard of.
WORDS = """(settings) => {
  const left = JSON.parse(sessionStorage.getItem("ssd-studio-left") ?? "{}");
  return [settings && typeof settings === "object" ? { ...settings, ...left.words } : settings];
}"""
TABS = {"draw": "create", "race": "race", "redo": "redo", TOPS: "seeds", FINISHED: "seeds"}


def build(services: Services) -> gr.Blocks:
    """Build the whole app as Gradio blocks; nothing runs yet."""
    t = translations(services.language)
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True,
                   delete_cache=UPLOADS) as demo:
        with gr.Row(elem_id="studio"):
            with gr.Column(scale=2, min_width=320, elem_id="controls"):
                head = gr.HTML(elem_id="studio-head", js_on_load=None)
                controls = Controls(services, t)
            with gr.Column(scale=5, min_width=320, elem_id="work"), \
                    gr.Tabs(selected="create", elem_id="tabs") as tabs:
                going_on = fill(services, t, controls, tabs, demo)
        visit = Visit(services)
        token, left = gr.Textbox(visible=False), gr.Textbox(visible=False)
        attached = demo.load(visit.attach, [token, left], [tabs, controls.trouble], js=TOKEN,
                             **PRIVATE)
        for tab, outputs in going_on:
            attached.then(tab.resume, None, outputs, **PRIVATE)
        demo.load(visit.head_line, None, head, **PRIVATE)
        demo.load(controls.in_language, None, [controls.chips, controls.fold, controls.examples],
                  **PRIVATE)
        demo.load(controls.last_settings, controls.remembered, controls.inputs, js=WORDS,
                  **PRIVATE).then(
            controls.tell, controls.plan_inputs, controls.plan_outputs, **PRIVATE).then(
            controls.filled.tell, controls.word_inputs, controls.filled.element, **PRIVATE)
        demo.load(switched, controls.switches, [controls.lock, controls.metadata], **PRIVATE)
        demo.load(js=LIVE, **PRIVATE)
    guard_all(demo, services)
    return demo


class Visit:
    """What happens when a browser tab opens.

    Closing a tab ends nothing: runs finish and are saved, paused seeds stay for a while (see
    jobs.py).
    """

    def __init__(self, services: Services) -> None:
        self.services = services

    def head_line(self, request: gr.Request) -> str:
        language = language_of(request, self.services.language)
        tagline = say(language, "tagline" if self.services.local else "tagline_shared")
        return (f'<header class="studio-head"><h1>{TITLE}</h1>'
                f'<p class="studio-tagline">{escape(tagline)}</p>'
                f'<p class="studio-version">{__version__}</p></header>')

    def attach(self, token: str, left: str, request: gr.Request) -> tuple[dict, object]:
        """Assign this page to the visitor with this token; open the tab with an unfinished job.

        left: the jobs that went on when this tab's last page closed, as JSON. If the program
        no longer knows one of them, it was restarted since, and the page says so.
        """
        services = self.services
        services.visits.attach(request.session_hash, token)
        job = services.worker.latest(owner_of(services, request), *TABS)
        on = job is not None and (not job.over or job.state == "paused")
        lost = any(services.worker.job(id_) is None for id_ in ids_in(left))
        status = line(say(language_of(request, services.language), "restarted"))
        tab = gr.update(selected=TABS[job.title]) if job is not None and on else gr.skip()
        return tab, status if lost else gr.skip()


def ids_in(text: object) -> list[str]:
    """The ids in a JSON list; none in anything else."""
    try:
        ids = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        return []
    return [id_ for id_ in ids if isinstance(id_, str)] if isinstance(ids, list) else []


def fill(services: Services, t: gr.I18n, controls: Controls, tabs: gr.Tabs,
         demo: gr.Blocks) -> list[tuple]:
    """Add all tabs and connect them; return the tabs to resume, each with its outputs."""
    with gr.Tab(t("create"), id="create"):
        create = Create(services, t, controls)
    with gr.Tab(t("race"), id="race"):
        race = Race(services, t, controls)
    with gr.Tab(t("redo"), id="redo") as redo_tab:
        redo = Redo(services, t, controls)
    with gr.Tab(t("seeds"), id="seeds"):
        seeds = Seeds(services, t, controls)
    with gr.Tab(t("history"), id="history") as history_tab:
        history = HistoryTab(services, t, controls)
    with gr.Tab(t("backbones"), id="backbones") as backbones_tab:
        backbones = Backbones(services, t, controls)
    with gr.Tab(t("doctor"), id="doctor") as doctor_tab:
        doctor = Doctor(services, t)
    create.wire(redo, tabs)
    race.wire()
    redo.wire(redo_tab, tabs)
    seeds.wire(redo, tabs)
    history.wire(history_tab, tabs, redo, demo.load)
    backbones.wire(backbones_tab)
    demo.load(backbones.in_use, None, [
        backbones.name, controls.parts["size"], controls.parts["expand"]], **PRIVATE)
    doctor.wire(doctor_tab)
    return [(create, create.outputs), (race, race.outputs), (redo, redo.run_outputs),
            (seeds, seeds.outputs),
            *([(backbones, backbones.download_outputs)] if services.local else [])]


def switched(raw: list | None) -> list:
    """This browser's last state of the seed lock and the PNG switch."""
    if isinstance(raw, list) and len(raw) == 2 and all(isinstance(on, bool) for on in raw):
        return raw
    return [gr.skip()] * 2
