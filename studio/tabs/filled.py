"""What is filled into a prompt, shown below it before anything is drawn, and its switch."""

from __future__ import annotations

import json
from html import escape

import gradio as gr

from ssd_core import SSDError

from ..additions import expands, filled
from ..services import Services
from ..settings import from_dict
from ..words import CHINESE, language_of

# The settings that decide the words, by which page values are read.
WORD_SETTINGS = ("prompt", "negative", "pictures", "seed", "cfg", "expand", "open", "fixed")


class Filled:
    """The switch, and the additions as chips of web/filled.js, which writes `open` and `fixed`."""

    def __init__(self, services: Services, t: gr.I18n) -> None:
        self.services = services
        self.switch = gr.Checkbox(True, label=t("expand"), elem_id="expand", container=False,
                                  visible=expands(services.library.current.backbone))
        self.element = gr.HTML(elem_id="filled", js_on_load=None)
        self.open, self.fixed = (gr.Textbox("", visible="hidden", elem_id=name)
                                 for name in ("left-open", "fixed-words"))

    @property
    def parts(self) -> dict[str, gr.components.Component]:
        return {"expand": self.switch, "open": self.open, "fixed": self.fixed}

    def tell(self, request: gr.Request, locked: bool, *values: object) -> str:
        """The element with what will be drawn; empty if that is what was typed."""
        services = self.services
        raw = dict(zip(WORD_SETTINGS, values, strict=True))
        try:
            settings = from_dict({**raw, "seed": raw["seed"] if locked
                                  else services.next_seeds.of(request.session_hash)})
        except SSDError:
            return ""  # the plan shows the error
        content = filled(settings, services.library.current.backbone,
                         language_of(request, services.language) == CHINESE)
        if content is None:
            return ""
        return f"<ssd-filled filled=\"{escape(json.dumps(content))}\"></ssd-filled>"

    def available(self) -> dict:
        """The switch for the backbone in use."""
        return gr.update(visible=expands(self.services.library.current.backbone))
