"""What is filled into a prompt, shown below it before anything is drawn, and its switch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

import gradio as gr

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.output.words import Words, expansions
from ssd_core.postcards.expanded import Added, Expanded, pinned
from ssd_core.runs.request import Request

from ..services import Services
from ..settings import Settings, from_dict
from ..words import CHINESE, language_of

# The settings that decide the words, by which page values are read.
WORD_SETTINGS = ("prompt", "negative", "pictures", "seed", "cfg", "expand", "open", "fixed")


def expands(backbone: Backbone) -> bool:
    """Whether a backbone has words for what a prompt leaves open."""
    return backbone.expand("a house", None, 0) is not None


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


def filled(settings: Settings, backbone: Backbone, chinese: bool) -> dict | None:
    """What web/filled.js shows: additions, or the words of another picture; None for nothing."""
    names, made = settings.open, None
    if settings.expand and settings.fixed is None:
        made = filled_in(settings, backbone, names)
    elif settings.expand and settings.fixed is not None:
        names, made = as_fixed(settings, settings.fixed, backbone)
    if made is None:
        fixed = settings.fixed
        if fixed is None or fixed == Words(settings.prompt, settings.negative or None):
            return None
        return message(settings, text=text_of(fixed))
    chips = [chip(settings.prompt, added, chinese) for added in made.added]
    return message(settings, names, chips) if chips or names else None


def message(settings: Settings, names: Sequence[str] = (), chips: Sequence[dict] = (),
            text: str = "") -> dict:
    return {"prompt": settings.prompt, "open": list(names), "chips": list(chips), "text": text,
            "pictures": settings.pictures}


def chip(prompt: str, added: Added, chinese: bool) -> dict:
    """An addition: what it says, what it takes the place of, and the prompt with it."""
    return {"name": added.name, "text": added.chinese if chinese else added.text,
            "instead": added.replaced, "pinned": pinned(prompt, added)}


def filled_in(settings: Settings, backbone: Backbone, names: Sequence[str]) -> Expanded | None:
    return next(iter(expansions(backbone, settings.prompt, settings.negative or None,
                                [settings.knobs["seed"]], names)), None)


def as_fixed(settings: Settings, fixed: Words,
             backbone: Backbone) -> tuple[tuple[str, ...], Expanded | None]:
    """The additions, and those left open, by which the prompt becomes the words that are fixed.

    None if the seed or a newer version fills in others.
    """
    whole = filled_in(settings, backbone, ())
    names = tuple(added.name for added in whole.added
                  if added.written.strip(" ,，") not in fixed.prompt) if whole else ()
    made = filled_in(settings, backbone, names)
    same = made is not None and Words(made.prompt, made.negative) == fixed
    return (names, made) if same else ((), None)


def text_of(words: Words) -> str:
    return words.prompt if words.negative is None else f"{words.prompt} (− {words.negative})"


def moved(request: Request) -> tuple[str, ...]:
    """Negations that are drawn as part of the negative prompt."""
    return request.expansions[0].moved if request.expansions else ()
