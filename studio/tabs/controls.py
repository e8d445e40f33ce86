"""What to draw and how: the controls beside all tabs, and their way to `Settings` and back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import fields, replace
from html import escape

import gradio as gr

from ssd_core import SSDError
from ssd_core.methods import METHODS

from ..services import Services
from ..settings import SPEEDS, Settings, from_dict, plan_of, stop_of, to_dict, with_preset
from ..words import language_of, say

EXAMPLES = [
    "a red house on the left , a yellow boat on the right , on a lake , at sunset",
    "a lighthouse in the middle , by the sea , at night",
    "two green trees on a meadow , at noon",
]
KNOBS = [f.name for f in fields(Settings)]
METHOD_KNOBS = ("method", "k_h", "k_v", "rounds", "incremental", "acceptance", "fused_commit",
                "draft_choice", "draft_temperature", "draft", "drafts", "window")
CHOICES = {"acceptance": ["residual", "coupled"], "draft_choice": ["sample", "argmax"],
           "draft": ["distribution", "copy"], "drafts": ["horizontal", "vertical"]}


class Controls:
    """The components by the name of the setting they hold; `metadata` is the PNG switch."""

    def __init__(self, services: Services, t: gr.I18n) -> None:
        self.services = services
        self.parts: dict[str, gr.components.Component] = {}
        start = with_preset(Settings(), services.library.current.backbone.preset)
        self._words(t, start)
        self._seed(t, start)
        self.speed = gr.Slider(0, len(SPEEDS) - 1, stop_of(start), step=1, elem_id="speed",
                               label=t("speed"), info=t("speed_hint"), buttons=[])
        self.plan = gr.HTML(elem_id="plan", js_on_load=None)
        with gr.Accordion(t("expert"), open=False, elem_id="expert"):
            self._expert(t, start)
        self.metadata = gr.Checkbox(True, label=t("metadata"), elem_id="metadata")
        self.remembered = gr.BrowserState(None, storage_key="ssd-studio", secret="ssd-studio")
        self._wire()

    def _add(self, name: str, component: gr.components.Component) -> gr.components.Component:
        self.parts[name] = component
        return component

    def _words(self, t: gr.I18n, start: Settings) -> None:
        prompt = self._add("prompt", gr.Textbox(
            EXAMPLES[0], lines=2, max_lines=6, label=t("prompt"), info=t("prompt_hint"),
            elem_id="prompt"))
        gr.Examples(EXAMPLES, prompt, label=t("examples"), elem_id="examples", cache_examples=False,
                    api_visibility="private")
        self._add("negative", gr.Textbox(start.negative, lines=1, label=t("negative"),
                                         info=t("negative_hint"), elem_id="negative"))

    def _seed(self, t: gr.I18n, start: Settings) -> None:
        with gr.Row(elem_id="seed-row"):
            # Text, because a browser's numbers end at 2^53 and seeds at 2^64.
            self._add("seed", gr.Textbox(str(start.seed), label=t("seed"), max_lines=1,
                                         elem_id="seed", scale=2, min_width=120))
            self._add("pictures", gr.Number(start.pictures, label=t("pictures"), precision=0,
                                            minimum=1, maximum=64, elem_id="pictures", scale=1,
                                            min_width=90))
        with gr.Row():
            self.dice = gr.Button(t("dice"), size="md", elem_id="dice", min_width=90)
            self.lock = gr.Checkbox(False, label=t("lock"), elem_id="lock", container=False,
                                    min_width=120)

    def _expert(self, t: gr.I18n, start: Settings) -> None:
        self._add("method", gr.Dropdown(list(METHODS), value=start.method, label=t("method"),
                                        elem_id="method"))
        with gr.Row():
            self._number(t, "k_h", start, 1, 64)
            self._number(t, "k_v", start, 1, 64)
        with gr.Row():
            self._number(t, "rounds", start, 0, 8192)
            self._number(t, "incremental", start, 0, 8192)
        for pair in (("acceptance", "draft_choice"), ("draft", "drafts")):
            with gr.Row():
                for name in pair:
                    self._add(name, gr.Dropdown(CHOICES[name], value=getattr(start, name),
                                                label=t(name), elem_id=name, min_width=110))
        with gr.Row():
            self._number(t, "draft_temperature", start, 0.05, 10, None)
            self._number(t, "window", start, 0, 8192)
        self._add("fused_commit", gr.Checkbox(start.fused_commit, label=t("fused_commit"),
                                              elem_id="fused_commit"))
        with gr.Row():
            self._number(t, "cfg", start, 0, 100, None)
            self._number(t, "temperature", start, 0, 100, None)
        with gr.Row():
            self._number(t, "top_k", start, 0, 1 << 20)
            self._number(t, "top_p", start, 0, 1, None)
        self.own_size = (t("own_size"), "")
        self._add("size", gr.Dropdown(self.sizes(), value="", label=t("size"), elem_id="size",
                                      allow_custom_value=True))

    def _number(self, t: gr.I18n, name: str, start: Settings, least: float, most: float,
                precision: int | None = 0) -> None:
        self._add(name, gr.Number(getattr(start, name) or 0, label=t(name), minimum=least,
                                  maximum=most, precision=precision, elem_id=name, min_width=110))

    def sizes(self) -> list[tuple[object, str]]:
        """Choices for `size`, of the backbone in use."""
        sizes = self.services.library.current.backbone.sizes
        return [self.own_size, *((text, text) for text in (f"{w}x{h}" for w, h in sizes))]

    # Values

    @property
    def inputs(self) -> list[gr.components.Component]:
        return [self.parts[name] for name in KNOBS]

    def read(self, values: Sequence[object]) -> Settings:
        """Settings from the inputs' values; SSDError with one line for what is wrong."""
        raw = dict(zip(KNOBS, values, strict=True))
        missing = [name for name, value in raw.items() if value is None]
        if missing:
            raise SSDError(f"{missing[0]}: is empty or out of its range; type a number")
        return from_dict(raw)

    def shown(self, settings: Settings) -> list[object]:
        """The inputs' values for settings, in the order of `inputs`."""
        raw = to_dict(settings)
        return [raw[name] for name in KNOBS]

    def adopted(self, values: Sequence[object]) -> list[object]:
        """The inputs for the backbone that is in use now: its own schedule, guidance and sizes."""
        preset = self.services.library.current.backbone.preset
        settings = replace(with_preset(self.read(values), preset), size=None)
        shown = dict(zip(KNOBS, self.shown(settings), strict=True))
        shown["size"] = gr.update(choices=self.sizes(), value="")
        return [shown[name] for name in KNOBS]

    # What moves when

    def _wire(self) -> None:
        private = {"api_visibility": "private", "show_progress": "hidden", "queue": False}
        moved = [part.change for part in self.inputs]
        gr.on(moved, self.tell, self.inputs, [self.plan, self.remembered], api_name="plan",
              show_progress="hidden", queue=False, trigger_mode="always_last")
        self.dice.click(lambda: str(random.getrandbits(32)), None, self.parts["seed"],
                        api_name="dice", show_progress="hidden", queue=False)
        knobs = [self.parts[name] for name in METHOD_KNOBS]
        self.speed.input(self._at_speed, [self.speed, *self.inputs], knobs, **private)
        gr.on([part.input for part in knobs], self._stop_at, self.inputs, self.speed, **private)

    def _at_speed(self, stop: int, *values: object) -> list[object]:
        """The knobs of a stop of the slider."""
        settings = replace(self.read(values), **SPEEDS[int(stop)].knobs)
        raw = to_dict(settings)
        return [raw[name] for name in METHOD_KNOBS]

    def _stop_at(self, *values: object) -> object:
        """The slider follows the knobs where they are one of its stops."""
        try:
            stop = stop_of(self.read(values))
        except SSDError:
            return gr.skip()
        return gr.skip() if stop is None else stop

    def tell(self, request: gr.Request, *values: object) -> tuple[str, dict | None]:
        """The plan as HTML, and the settings for this browser to remember."""
        language = language_of(request, self.services.language)
        try:
            settings = self.read(values)
            return self.plan_html(settings, language), to_dict(settings)
        except SSDError as error:
            return problem(str(error)), None

    def plan_html(self, settings: Settings, language: str) -> str:
        """Passes, and the words that say nothing to the backbone."""
        loaded = self.services.library.current
        plan = plan_of(settings, loaded)
        if plan.passes_max == plan.ar_passes and plan.passes is not None:
            line = say(language, "plan_same", passes=plan.passes)
        else:
            line = say(language, "plan_most" if plan.passes is None else "plan",
                       passes=plan.passes_max, ar=plan.ar_passes,
                       times=f"{plan.ar_passes / plan.passes_max:.1f}")
        unknown = loaded.backbone.unknown_words(f"{settings.prompt} {settings.negative}")
        told = say(language, "unknown", words=", ".join(unknown)) if unknown else ""
        return f"<p>{escape(line)}</p>" + (problem(told) if told else "")

    def drawn(self, locked: bool, values: Sequence[object]) -> Settings:
        """Settings for a run: a new seed where it is not locked, told in its box from then on."""
        settings = self.read(values)
        return settings if locked else replace(settings, seed=random.getrandbits(32))


def problem(line: str) -> str:
    """One line that wants attention."""
    return f'<p class="studio-problem" role="alert">{escape(line)}</p>'
