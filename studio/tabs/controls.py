"""The controls beside all tabs, and their conversion to `Settings` and back."""

from __future__ import annotations

import inspect
import random
from collections.abc import Sequence
from html import escape
from typing import Any

import gradio as gr

from ssd_core import SSDError
from ssd_core.backbones.base import Preset
from ssd_core.model.knobs import KnobSpec
from ssd_core.output.knobs import UNSET_NUMBER, all_knobs, sampling_knobs
from ssd_core.output.words import Words, typed_words

from ..errors import in_language
from ..payloads import at
from ..plans import notes_of, plan_text
from ..prompts import EXAMPLES, example_prompts, examples
from ..services import Services
from ..settings import (
    NAMES,
    STOPS,
    TEXTS,
    Settings,
    from_dict,
    stop_of,
    to_dict,
    with_preset,
)
from ..words import CHINESE, ENGLISH, language_of, say
from .chips import chips_html
from .common import PRIVATE, begin_with, line, method_choices, note_words, trouble
from .filled import WORD_SETTINGS, Filled

METHOD_KNOBS = ("method", *all_knobs())


def takes_knobs(handler: Any) -> Any:
    """Name a handler's `*values` after the knobs, for Gradio's API."""
    signature = inspect.signature(handler)
    own = [parameter for parameter in signature.parameters.values()
           if parameter.kind is not parameter.VAR_POSITIONAL]
    knobs = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in NAMES]
    handler.__signature__ = signature.replace(parameters=own + knobs)
    return handler


class Controls:
    """The input components, by the name of the setting they hold.

    Below the prompt, `trouble` shows why the last run failed, `note` what is wrong with the words,
    and `filled` what is filled in. `metadata` is the PNG switch, `lock` keeps the seed. `tell`
    computes `plan_outputs` from `plan_inputs`.
    """

    def __init__(self, services: Services, t: gr.I18n) -> None:
        self.services = services
        self.parts: dict[str, gr.components.Component] = {}
        start = with_preset(Settings(), self.preset)
        self._words(t)
        self.fold = gr.HTML(elem_id="settings-fold", js_on_load=None)  # seen on phones only
        with gr.Column(elem_id="settings"):
            names = [(t(f"stop_{stop.name}"), i) for i, stop in enumerate(STOPS)][::-1]
            self.speed = gr.Radio(names, value=stop_of(start), elem_id="speed",
                                  label=t("speed"))
            self.plan = gr.HTML(elem_id="plan", js_on_load=None)
            self._seed(t, start)
            self._examples(t)
            with gr.Accordion(t("more_settings"), open=False, elem_id="more"):
                self._more(t, start)
            with gr.Accordion(t("expert"), open=False, elem_id="expert"):
                self._expert(t, start)
        # The tools of web/tools.js write here what another tab should do.
        self.actions = {name: gr.Textbox(visible="hidden", elem_id=f"wish-{name}")
                        for name in ("redo", "vary")}
        self.remembered, self.switches = (
            gr.BrowserState(None, storage_key=key, secret="ssd-studio")
            for key in ("ssd-studio", "ssd-studio-switches"))
        self.plan_inputs = [self.speed, *self.inputs]
        self.plan_outputs = [self.plan, self.speed, self.remembered, self.note]
        self.word_inputs = [self.lock, *(self.parts[name] for name in WORD_SETTINGS)]
        self._wire()

    @property
    def preset(self) -> Preset:
        """The preset of the loaded backbone."""
        return self.services.library.current.backbone.preset

    def _add(self, name: str, component: gr.components.Component) -> gr.components.Component:
        self.parts[name] = component
        return component

    def _words(self, t: gr.I18n) -> None:
        with gr.Column(elem_id="prompt-box"):
            self._add("prompt", gr.Textbox(
                EXAMPLES[0], lines=2, max_lines=6, label=t("prompt"),
                placeholder=t("prompt_hint"), elem_id="prompt"))
            self.surprise = gr.Button(t("surprise"), size="sm", elem_id="surprise")
            self.trouble = gr.HTML(elem_id="trouble", js_on_load=None)
            self.note = gr.HTML(elem_id="note", js_on_load=None)
            self.filled = Filled(self.services, t)
            self.parts.update(self.filled.parts)
            self.chips = gr.HTML(elem_id="chips", js_on_load=None)

    def _examples(self, t: gr.I18n) -> None:
        thumbnails = [gr.Image(visible=False), gr.Textbox(visible=False)]
        with gr.Accordion(t("examples"), open=False, elem_id="examples-fold"):
            self.examples = gr.Dataset(components=thumbnails, samples=examples(ENGLISH),
                                       type="index", show_label=False,
                                       elem_id="examples", samples_per_page=len(EXAMPLES))

    def _seed(self, t: gr.I18n, start: Settings) -> None:
        with gr.Row(elem_id="seed-row"):
            # Text, because browsers' numbers end at 2^53 and seeds at 2^64.
            self._add("seed", gr.Textbox(str(start.knobs["seed"]), label=t("seed"), max_lines=1,
                                         elem_id="seed", scale=2, min_width=120))
            self.dice = gr.Button(t("dice"), size="md", elem_id="dice", min_width=60, scale=0)
            self.lock = gr.Checkbox(False, label=t("lock"), elem_id="lock", container=False,
                                    min_width=60, scale=1)

    def _more(self, t: gr.I18n, start: Settings) -> None:
        self._add("negative", gr.Textbox(start.negative, lines=1, label=t("negative"),
                                         placeholder=t("negative_hint"), elem_id="negative"))
        with gr.Row():
            self._add("pictures", gr.Number(start.pictures, label=t("pictures"), precision=0,
                                            elem_id="pictures", scale=1, min_width=90))
            self.own_size = (t("own_size"), "")
            sizes = self.sizes(self.services.library.current.backbone.sizes)
            self._add("size", gr.Dropdown(sizes, value="", label=t("size"), elem_id="size",
                                          allow_custom_value=True, scale=2, min_width=120))
        self.metadata = gr.Checkbox(True, label=t("metadata"), elem_id="metadata")

    def _expert(self, t: gr.I18n, start: Settings) -> None:
        self._add("method", gr.Dropdown(method_choices(t), value=start.method, label=t("method"),
                                        elem_id="method"))
        with gr.Row(elem_id="knobs"):
            for knob in (*all_knobs().values(), *sampling_knobs()):
                if knob.name != "seed":
                    self._add(knob.name, self._knob(t, knob, start))

    def _knob(self, t: gr.I18n, knob: KnobSpec, start: Settings) -> gr.components.Component:
        """A component without limits: Gradio's limit errors do not name the knob, `read` does."""
        value = start.knobs[knob.name]
        own = {"label": t(knob.name), "elem_id": knob.name, "visible": applies(knob, start.method)}
        if knob.kind is bool:
            return gr.Checkbox(value, **own)
        if knob.choices:
            return gr.Dropdown(list(knob.choices), value=value, **own)
        return gr.Number(UNSET_NUMBER if value is None else value,
                         precision=0 if knob.kind is int else None, **own)

    def sizes(self, sizes: Sequence[tuple[int, int]]) -> list[tuple[object, str]]:
        """Choices of `size` for a backbone with these sizes (width, height)."""
        return [self.own_size, *((text, text) for text in (f"{w}x{h}" for w, h in sizes))]

    # Values

    @property
    def inputs(self) -> list[gr.components.Component]:
        return [self.parts[name] for name in NAMES]

    def read(self, values: Sequence[object]) -> Settings:
        """Settings from the inputs' values; SSDError with one line about a wrong value."""
        raw = dict(zip(NAMES, values, strict=True))
        missing = [name for name, value in raw.items() if value is None]
        if missing:
            raise SSDError(f"{missing[0]}: is empty; type a number")
        return from_dict(raw)

    def values_of(self, settings: Settings) -> list[object]:
        """The inputs' values for settings, in the order of `inputs`."""
        raw = to_dict(settings)
        return [raw[name] for name in NAMES]

    def restored(self, settings: Settings, request: gr.Request) -> list[object]:
        """The same for those of a picture: the switch of what is filled in stays as it is."""
        note_words(self.services, request, typed_words(vars(settings)))
        return [gr.skip() if name == "expand" else value
                for name, value in zip(NAMES, self.values_of(settings), strict=True)]

    def adopted(self, preset: Preset, sizes: Sequence[tuple[int, int]]) -> list[object]:
        """Inputs for the loaded backbone: its schedule, guidance and sizes; the rest is unchanged.
        """
        raw = to_dict(with_preset(Settings(), preset))
        changes = {name: raw[name] for name in ("k_h", "k_v", "rounds", "incremental", "cfg")}
        changes["size"] = gr.update(choices=self.sizes(sizes), value="")
        changes["expand"] = self.filled.available()
        return [changes.get(name, gr.skip()) for name in NAMES]

    # Events

    def _wire(self) -> None:
        private = {"api_visibility": "private", "show_progress": "hidden", "queue": False}
        changed = [part.change for part in self.inputs]
        # Queued one by one, so that the last answer belongs to the last values.
        gr.on(changed, self.tell, self.plan_inputs, self.plan_outputs, api_name="plan",
              show_progress="hidden", concurrency_limit=1, trigger_mode="always_last")
        gr.on([component.change for component in self.word_inputs], self.filled.tell,
              self.word_inputs, self.filled.element, concurrency_limit=1,
              trigger_mode="always_last", **PRIVATE)
        gr.on([part.input for part in (self.speed, *self.inputs)], None, None, self.trouble,
              js="() => ''", **private)  # what was wrong with the last run is being mended
        knobs = all_knobs().values()
        self.parts["method"].change(
            lambda method: [gr.update(visible=applies(knob, method)) for knob in knobs],
            self.parts["method"], [self.parts[knob.name] for knob in knobs], **private)
        self.dice.click(lambda: (str(random.getrandbits(32)), True), None,
                        [self.parts["seed"], self.lock],
                        api_name="dice", show_progress="hidden", queue=False)
        self.surprise.click(self.fresh_prompt, None, self.parts["prompt"], api_name="surprise",
                            show_progress="hidden", queue=False)
        self.examples.click(self.example, self.examples, self.parts["prompt"], **private)
        both = [self.lock, self.metadata]
        gr.on([component.change for component in both], lambda *on: list(on), both,
              self.switches, **private)
        self.speed.input(self.at_speed, self.speed, [self.parts[name] for name in METHOD_KNOBS],
                         trigger_mode="always_last", **private).then(
            self.tell, self.plan_inputs, self.plan_outputs, **private)  # after all knobs are set

    def in_language(self, request: gr.Request) -> tuple[str, str, dict]:
        """Words to click, the button that unfolds the settings, and the examples."""
        language = language_of(request, self.services.language)
        fold = (f'<button type="button" class="studio-fold" aria-expanded="false" '
                f'aria-controls="settings">{escape(say(language, "settings"))}</button>')
        return (chips_html(self.services.library.current.backbone, language), fold,
                gr.update(samples=examples(language)))

    def last_settings(self, raw: dict | None, request: gr.Request) -> list:
        """This browser's last settings, one value per control; unchanged if there are none.

        A Chinese page then begins with the first example in Chinese.
        """
        try:
            if not raw:
                return self.first_example(request)
            settings = from_dict(raw)
            begin_with(self.services, request, typed_words(vars(settings)))
            return self.values_of(settings)
        except Exception:  # noqa: BLE001 - the browser's storage may hold anything
            return self.first_example(request)

    def first_example(self, request: gr.Request) -> list:
        first = self.example(0, request)
        begin_with(self.services, request, Words(first))
        fresh = {"prompt": first} if first != EXAMPLES[0] else {}
        return [fresh.get(name, gr.skip()) for name in NAMES]

    def example(self, chosen: int, request: gr.Request) -> str:
        prompts = example_prompts(language_of(request, self.services.language))
        return prompts[at("example", chosen, len(prompts))]

    def fresh_prompt(self, request: gr.Request) -> str:
        """What the dice of the prompt box say: words that the loaded backbone can draw."""
        chinese = language_of(request, self.services.language) == CHINESE
        backbone = self.services.library.current.backbone
        return backbone.fresh_prompt(random.getrandbits(32), chinese)

    @takes_knobs
    def tell(self, request: gr.Request, speed: int, *values: object) -> tuple:
        """The plan as HTML, the matching `speed`, the settings to remember, and the note."""
        language = language_of(request, self.services.language)
        try:
            settings = self.read(values)
        except SSDError as error:
            about_words = str(error).startswith(TEXTS)
            html = refusal(language, error)
            return ((gr.skip(),) * 3 + (html,) if about_words
                    else (html, gr.skip(), gr.skip(), gr.skip()))
        try:
            html = self.plan_html(settings, language)
        except SSDError as error:
            html = refusal(language, error)
        return (html, at_stop(settings, speed), to_dict(settings),
                self.note_html(settings, language))

    def plan_html(self, settings: Settings, language: str) -> str:
        """How many passes a run takes."""
        return f"<p>{escape(plan_text(self.services.library.current, settings, language))}</p>"

    def refused(self, error: SSDError, language: str) -> dict:
        """Updates of the page after a run was refused: why, and not below the prompt once more."""
        return {self.trouble: trouble(self.services, language, str(error)), self.note: ""}

    def note_html(self, settings: Settings, language: str) -> str:
        """What is wrong with the prompts, as HTML; empty if nothing is."""
        notes = notes_of(settings, self.services.library.current.backbone, language)
        return "".join((line if note.kind == "moved" else problem)(note.text) for note in notes)

    def at_speed(self, stop: int) -> list[object]:
        """The knobs that a stop sets; the others are unchanged."""
        knobs = STOPS[at("speed", stop, len(STOPS))].knobs
        raw = to_dict(Settings.of(**knobs))
        return [raw[name] if name in knobs else gr.skip() for name in METHOD_KNOBS]

    def with_seed(self, values: Sequence[object], seed: int) -> list[object]:
        """The inputs' values with another seed."""
        return [str(seed) if name == "seed" else value
                for name, value in zip(NAMES, values, strict=True)]

    def drawn(self, request: gr.Request, locked: bool, values: Sequence[object]) -> Settings:
        """Settings for a run, with the page's next seed unless the seed is locked."""
        settings = self.read(values)
        if locked:
            return settings
        seed = self.services.next_seeds.of(request.session_hash)
        return settings.changed(seed=seed)

    def drew(self, request: gr.Request, locked: bool) -> None:
        """A run took the page's next seed, unless its own was locked."""
        if not locked:
            self.services.next_seeds.renew(request.session_hash)


def applies(knob: KnobSpec, method: str) -> bool:
    """Whether a knob matters with this method; those of sampling matter with each."""
    return not knob.methods or method in knob.methods


def at_stop(settings: Settings, now: int) -> object:
    """The speed to show in place of `now`, or no update.

    There is no update if it is right already, or if no stop matches: an update could undo a choice
    that the user makes meanwhile.
    """
    stop = stop_of(settings)
    return gr.skip() if stop in (None, now) else stop


def refusal(language: str, error: SSDError) -> str:
    """An engine error in the language of the page."""
    return problem(in_language(language, str(error)))


def problem(line: str) -> str:
    """One line that needs attention; #plan is a live region."""
    return f'<p class="studio-problem">{escape(line)}</p>'
