"""A visitor's settings: one record, made from the page or a recipe, turned into a request.

Knows methods and backbones, neither the page nor how anything is run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import torch

from ssd_core import Sampling, SSDError
from ssd_core.backbones.base import Backbone, Preset
from ssd_core.backbones.presets import resolve_sampling
from ssd_core.engine.edits.words import Edit
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import METHODS, Method, default_method
from ssd_core.engine.tuning import PLAIN_AR
from ssd_core.model.grid import size_of
from ssd_core.model.knobs import KnobSpec, coerce, derived
from ssd_core.model.sampling import NEW_SEED
from ssd_core.output.knobs import (
    UNSET_NUMBER,
    all_knobs,
    check_pictures,
    from_number,
    sampling_knobs,
    visible_knobs,
)
from ssd_core.output.packed import pack_mask, unpack, unpack_mask
from ssd_core.output.quality_presets import SPEEDS
from ssd_core.output.recipe import is_int, method_of
from ssd_core.output.words import Words, drawn_words, typed_words
from ssd_core.runs.request import Request
from ssd_core.unicode import require_unicode

from .stored_words import fixed_of, fixed_text, open_of, open_text

LONGEST_TEXT = 4000
KNOBS = {**all_knobs(), **{knob.name: knob for knob in sampling_knobs()}}


def first_value(knob: KnobSpec) -> Any:
    """Schedule knobs start at the preset's numbers, others at their default."""
    schedule = knob.methods and knob.default is None
    return getattr(Preset(), knob.name, None) if schedule else knob.default


@dataclass(frozen=True)
class Settings:
    """All settings. A method uses the knobs it has.

    size is "WIDTHxHEIGHT", None for the backbone's own. expand, open, fixed: as in `Request`; the
    last two hold only for the prompt that they were set for. tuned_window: of a restored picture,
    the window that was chosen for the machine that drew it; the settings keep the name of their
    speed with it. parent, keep_mask: the id of a picture to edit, and its cells that stay, packed
    as in recipes. old_prompt, reach, hold: those of an edit by words, as in `Edit`; "" for none.
    panel: the id of a picture to draw below, "" for none; control: what it is, one of the
    backbone's `controls`; subject: what it shows, if it is one.
    knobs: the values of all KNOBS by name; None is the method's or the backbone's own value.
    """

    prompt: str = ""
    negative: str = ""
    pictures: int = 1
    method: str = default_method().name
    size: str | None = None
    expand: bool = True
    open: tuple[str, ...] = ()
    fixed: Words | None = None
    tuned_window: int | None = None
    parent: str = ""
    keep_mask: Mapping[str, Any] | None = None
    old_prompt: str = ""
    reach: float = Edit.reach
    hold: bool = Edit.hold
    panel: str = ""
    control: str = ""
    subject: str = ""
    knobs: Mapping[str, Any] = field(
        default_factory=lambda: {name: first_value(knob) for name, knob in KNOBS.items()})

    @classmethod
    def of(cls, **values: Any) -> Settings:
        """These settings, knobs or not; all others have their default."""
        return cls().changed(**values)

    def values(self) -> dict[str, Any]:
        """Every setting by name, knobs last."""
        others = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "knobs"}
        return {**others, **self.knobs}

    def changed(self, **values: Any) -> Settings:
        """The same with other values of some settings, knobs or not."""
        knobs = {name: values.pop(name) for name in KNOBS if name in values}
        return replace(self, **values, knobs={**self.knobs, **knobs})

    def request(self, backbone: Backbone, heads: DraftHeads | None,
                keep: torch.Tensor | None = None, keep_rows: int = 0,
                named: bool = False, keep_pixels: torch.Tensor | None = None) -> Request:
        """The request for a loaded backbone. Raises SSDError if the settings do not fit it.

        named: no other method may take this one's place, as in a race. keep_pixels: see `Request`.
        """
        stays: dict[str, Any] = ({"keep_rows": keep_rows} if self.kept_cells is None
                                 else kept_by(self.kept_cells))
        return Request(backbone, heads, self.chosen_method(), self.sampling(), self.prompt,
                       self.negative, self.pixels(), self.pictures, keep, named=named,
                       keep_pixels=keep_pixels, **stays,
                       **(self.revision() if keep is not None else {}), **self.wording())

    def revision(self) -> dict[str, Any]:
        """What of a request tells of an edit by words."""
        names = ("old_prompt", "reach", "hold")
        return {name: getattr(self, name) for name in names} if self.old_prompt else {}

    @property
    def kept_cells(self) -> torch.Tensor | None:
        """The cells [R, C] of the parent that stay."""
        return None if self.keep_mask is None else unpack_mask(self.keep_mask)

    @property
    def anew(self) -> Settings:
        """The same without a picture to edit or to draw below."""
        return derived(self, parent="", keep_mask=None, old_prompt="", panel="", control="",
                       subject="")

    def wording(self) -> dict[str, Any]:
        """What of a request decides the words that are drawn for the prompt."""
        return {"expand": self.expand, "open": self.open,
                "fixed": (self.fixed,) if self.fixed else ()}

    def checked_words(self, backbone: Backbone) -> Request:
        """The request for one picture, by AR.

        Raises SSDError for prompts that no method would take, before a queue is waited for.
        """
        request = Request(backbone, None, PLAIN_AR, self.sampling(), self.prompt, self.negative,
                          self.pixels(), **self.wording())
        request.check_words()
        return request

    def chosen_method(self) -> Method:
        """The chosen method; the request decides which one runs."""
        return self._method

    @cached_property
    def _method(self) -> Method:
        kind = METHODS.get(self.method)
        if kind is None:
            raise SSDError(f"method {self.method!r}: choose one of {', '.join(METHODS)}")
        known = {knob.name: self.knobs[knob.name] for knob in visible_knobs(kind)}
        return kind(**{name: value for name, value in known.items() if value is not None})

    def sampling(self) -> Sampling:
        return self._sampling

    @cached_property
    def _sampling(self) -> Sampling:
        return Sampling(**{knob.name: self.knobs[knob.name] for knob in sampling_knobs()})

    def pixels(self) -> tuple[int, int] | None:
        """(width, height); None for the backbone's own."""
        return size_of(self.size)

    def guided(self, preset: Preset) -> bool:
        return resolve_sampling(Sampling(cfg=self.knobs["cfg"]), preset).cfg != 1


NAMES = tuple(Settings().values())


def kept_by(mask: torch.Tensor) -> dict[str, Any]:
    """The arguments of `Request` for the cells [R, C] that stay; whole rows at the top are counted.
    """
    rows = int(mask.all(1).sum())
    return {"keep_rows": rows} if mask[:rows].all() and not mask[rows:].any() else {
        "keep_mask": mask}


# Speed


SPEED_KNOBS = ("window", "budget", "fewer")  # the knobs that a speed sets, of those its method has


@dataclass(frozen=True)
class Stop:
    """A choice of speed: its name, and the knobs that it sets."""

    name: str
    knobs: Mapping[str, Any]


def stop(name: str, method: Method) -> Stop:
    speed = {f.name: getattr(method, f.name) for f in fields(method) if f.name in SPEED_KNOBS}
    return Stop(name, {"method": method.name, **speed})


# From slowest to fastest.
STOPS = tuple(stop(name, speed.method) for name, speed in SPEEDS.items())


def stop_of(settings: Settings) -> int | None:
    """The index of the stop that matches these settings, or None."""
    values = settings.values()
    if values["window"] == settings.tuned_window:
        values["window"] = None
    return next((i for i, stop in enumerate(STOPS)
                 if all(values[name] == value for name, value in stop.knobs.items())), None)



AS_CHOSEN = "the knobs on the left"  # a racer with the settings as they are
RACED_SPEEDS = {stop.name: stop.knobs for stop in STOPS}


def racing(settings: Settings, name: str) -> Settings:
    """The settings of a racer: as they are, at a speed, or with another method."""
    if name == AS_CHOSEN:
        return settings
    speed = RACED_SPEEDS.get(name)
    return settings.changed(**(speed if speed else {"method": name}))


def with_preset(settings: Settings, preset: Preset) -> Settings:
    """The settings with a backbone's own schedule and guidance."""
    own = {name: getattr(preset, name) for name in ("k_h", "k_v", "rounds", "incremental")}
    return settings.changed(**own, cfg=None)


# To and from JSON values

TEXTS = ("prompt", "negative", "parent", "old_prompt", "panel", "control", "subject")
SEEDS = ("seed", "variation_seed")
EMPTY = ("size", "keep_mask")  # "" for None
BOUND = ("open", "fixed")  # stored with the words that they were set for
WHOLE = re.compile(r"-?\d{1,40}")


def to_dict(settings: Settings) -> dict[str, Any]:
    """JSON without null: seeds as text (browsers' numbers end at 2^53), -1 or "" for None.

    `open` and `fixed` are stored together with the words that they were set for.
    """
    seeds = {name: str(settings.knobs[name]) for name in SEEDS}
    raw = {**settings.values(), **seeds,
           "open": open_text(settings.prompt, settings.open),
           "fixed": fixed_text(typed_words(vars(settings)), settings.fixed)}
    return {name: ("" if name in EMPTY else UNSET_NUMBER) if value is None else value
            for name, value in raw.items()}


def from_dict(raw: Mapping[str, Any]) -> Settings:
    """Settings from JSON values; missing ones take their default.

    Raises SSDError naming the first value of a wrong type or out of range.
    """
    settings = Settings.of(**{name: value_of(name, value) for name, value in raw.items()
                              if name in NAMES and name not in BOUND})
    settings = replace(settings, open=open_of(raw.get("open"), settings.prompt),
                       fixed=fixed_of(raw.get("fixed"), settings.prompt, settings.negative))
    check(settings)
    return settings


def value_of(name: str, value: Any) -> Any:
    """A value converted to its field's type."""
    if name == "seed" and str(value).strip() == str(NEW_SEED):
        return Sampling(NEW_SEED).seed
    if name in KNOBS:
        return knob_value(KNOBS[name], value)
    if name == "pictures":
        return whole(name, value)
    if name == "tuned_window":
        return max(0, whole(name, value)) or None
    if name in ("expand", "hold"):
        return coerce(name, value, bool)
    if name == "reach":
        return float(coerce(name, value, float))
    if name in EMPTY and not value:
        return None
    if name == "keep_mask":
        return checked_mask(value)
    text = coerce(name, value, str)
    return text.strip() if name in TEXTS else text


def checked_mask(value: Any) -> dict[str, Any]:
    """A packed mask; SSDError if it is damaged."""
    try:
        return pack_mask(unpack_mask(value))
    except ValueError as error:
        raise SSDError(f"keep_mask: cannot be read ({error}): send shape and data as in a recipe"
                       ) from error


def knob_value(knob: KnobSpec, value: Any) -> Any:
    """A knob's value; SSDError with the legal range if it is illegal."""
    value = whole(knob.name, value) if knob.kind is int else coerce(knob.name, value, knob.kind)
    if knob.kind is float:
        value = float(value)  # browsers send 12 for 12.0, and labels tell the two apart
    return knob.checked(from_number(knob, value))


def whole(name: str, value: Any) -> int:
    """An integer; also accepts text, and floats without a fraction."""
    if isinstance(value, str) and WHOLE.fullmatch(value.strip()):
        return int(value)
    if is_int(value) or isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    raise SSDError(f"{name} {str(value)[:20]!r}: must be a whole number")


def check(settings: Settings) -> None:
    """Raise SSDError for settings that no backbone could run."""
    settings.sampling()
    settings.pixels()
    settings.chosen_method().resolve(Preset())
    if settings.old_prompt:
        Edit(**settings.revision())
    for name in TEXTS:
        require_unicode(name, getattr(settings, name))
        if len(getattr(settings, name)) > LONGEST_TEXT:
            raise SSDError(f"{name}: {len(getattr(settings, name)):,} characters are too many, "
                           f"at most {LONGEST_TEXT:,}")
    check_pictures(settings.pictures)


def from_recipe(recipe: Mapping[str, Any]) -> Settings:
    """The settings of a checked recipe; SSDError if the app does not accept them.

    The words are those that the picture was drawn from. A recipe tells the window of every run
    whose picture depends on it, whoever chose it: it counts as chosen for the machine. keep_mask:
    its cells that stayed those of another picture.
    """
    width, height = recipe["size"]
    drawn = (knob.name for knob in sampling_knobs())
    own = {name: recipe[name] for name in ("prompt", "method", *drawn) if name in recipe}
    method = method_of(recipe)
    offered = {knob.name: getattr(method, knob.name) for knob in visible_knobs(type(method))}
    knobs = {name: value for name, value in offered.items() if value is not None}
    if type(method).guarantee != "identical" and "window" in knobs:
        own["tuned_window"] = knobs["window"]
    return from_dict({**knobs, **own, **recipe.get("edit", {}),
                      "negative": recipe["negative"] or "",
                      "size": f"{width}x{height}", "keep_mask": mask_of(recipe),
                      "fixed": fixed_text(typed_words(recipe), drawn_words(recipe))})


def mask_of(recipe: Mapping[str, Any]) -> Any:
    """The cells that a picture kept from another one, packed; "" if it kept none."""
    if not recipe.get("keep_rows"):
        return recipe.get("keep_mask", "")
    tokens = unpack(recipe["tokens"])
    mask = unpack_mask(recipe["keep_mask"]) if "keep_mask" in recipe else tokens < 0
    mask[: recipe["keep_rows"]] = True
    return pack_mask(mask)
