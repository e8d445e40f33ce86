"""The page: one head line, the controls, the tabs. Knows where things stand, not what they do."""

from __future__ import annotations

from html import escape

import gradio as gr

from ssd_core import __version__

from .services import Services
from .settings import from_dict, to_dict
from .tabs.backbones import Backbones
from .tabs.common import PRIVATE, owner_of
from .tabs.controls import KNOBS, Controls
from .tabs.create import Create
from .tabs.doctor import Doctor
from .tabs.history import HistoryTab
from .tabs.race import Race
from .tabs.redo import Redo
from .tabs.seeds import Seeds
from .words import language_of, say, translations

TITLE = "SSD studio"
UPLOADS = (3600, 86400)  # s: how often uploads are looked through, how long they are kept
LIVE = "() => document.querySelector('#plan').setAttribute('aria-live', 'polite')"


def build(services: Services) -> gr.Blocks:
    """The whole app as Gradio blocks; nothing runs yet."""
    t = translations(services.language)
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True,
                   delete_cache=UPLOADS) as demo:
        head = gr.HTML(elem_id="studio-head", js_on_load=None)
        with gr.Row(elem_id="studio"):
            with gr.Column(scale=2, min_width=320, elem_id="controls"):
                controls = Controls(services, t)
            with gr.Column(scale=5, min_width=320, elem_id="work"), \
                    gr.Tabs(selected="create", elem_id="tabs") as tabs:
                fill(services, t, controls, tabs, demo)
        visit = Visit(services)
        demo.load(visit.head_line, None, head, **PRIVATE)
        demo.load(remembered, controls.remembered, controls.inputs, **PRIVATE).then(
            controls.tell, controls.asked, controls.told, **PRIVATE)
        demo.load(switched, controls.switches, [controls.lock, controls.metadata], **PRIVATE)
        demo.load(js=LIVE, **PRIVATE)
        demo.unload(visit.leave)
    return demo


class Visit:
    """What happens when a browser tab comes and goes."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def head_line(self, request: gr.Request) -> str:
        language = language_of(request, self.services.language)
        tagline = say(language, "tagline" if self.services.local else "tagline_shared")
        return (f'<header class="studio-head"><h1>{TITLE}</h1><p>{escape(tagline)}</p>'
                f'<p class="studio-version">{__version__}</p></header>')

    def leave(self, request: gr.Request) -> None:
        """The tab was closed or reloaded: nothing goes on for it."""
        self.services.leave(owner_of(request))


def fill(services: Services, t: gr.I18n, controls: Controls, tabs: gr.Tabs,
         demo: gr.Blocks) -> None:
    """All tabs, then what leads from one to another."""
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
    doctor.wire(doctor_tab)


def remembered(raw: dict | None) -> list:
    """What this browser had last, one value a control; as they are where that is nothing."""
    try:
        settings = to_dict(from_dict(raw)) if raw else None
    except Exception:  # noqa: BLE001 - storage of the browser: whatever is wrong with it, start afresh
        settings = None
    return [settings[name] for name in KNOBS] if settings else [gr.skip()] * len(KNOBS)


def switched(raw: list | None) -> list:
    """Lock and PNG switch as this browser had them last."""
    known = isinstance(raw, list) and len(raw) == 2 and all(isinstance(on, bool) for on in raw)
    return raw if known else [gr.skip()] * 2
