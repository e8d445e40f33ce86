"""The one list of methods that ComfyUI's nodes offer, and the knobs that each choice shows.

The three speeds come first, then SSD with its schedule, the other methods under their papers'
names, and AR last. A choice shows its own knobs alone, as numbers, lists and switches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from ..backbones.presets import Preset
from ..engine.methods import AR, METHODS, SSD, Exact, Method, Rolling, default_method
from ..engine.methods.rolling import USUAL_FEWER
from ..errors import SSDError
from ..model.knobs import KnobSpec
from .knobs import visible_knobs


@dataclass(frozen=True)
class QualityPreset:
    """A choice of speed: its names in English and Chinese, its method, and what it guarantees."""

    title: str
    chinese: str
    method: Method
    guarantee: str


# From slowest to fastest; none needs draft heads. The budgets are the same for every model: they do
# as well on stand-ins that are as hard as Janus-Pro and Lumina-mGPT. Of `rolling` on real weights
# nothing is known (lab/benchmarks/results/budgets.md).
SPEEDS = {
    "plain": QualityPreset("Reference", "参考", AR(), "token by token, the slowest"),
    "faithful": QualityPreset("Faithful", "忠实", Exact(),
                      "the picture of normal decoding in fewer forward passes; the report "
                      "says if it is identical"),
    "balanced": QualityPreset("Balanced", "均衡", Rolling(),
                      "a similar picture in at most an eighth of the passes, on slow cards a "
                      "sixth"),
    "fast": QualityPreset("Fast", "快速", Rolling(fewer=12.0),
                  "at most a twelfth of the passes; details suffer"),
}
FAITHFUL = next(speed.title for speed in SPEEDS.values() if speed.method == default_method())
SSD_CHOICE = "SSD (k_h, k_v, r, b/i)"
REFERENCE = "Reference (AR)"
BY_SPEED = {speed.title: speed.method for speed in SPEEDS.values() if speed.method != AR()}
PAPERS = {"Rows (SSD without heads)": "rows", "MTP": "mtp", "Leviathan (strict)": "strict",
          "SJD": "sjd", "GSD": "gsd", "Jacobi": "jacobi", "Wave (ZipAR)": "wave", "Hawk": "hawk",
          "MuLo-SD": "mulo", "LANTERN": "lantern"}
SHOWN_OF_SPEEDS = ("fewer",)  # the other knobs of a speed are advanced


@cache
def choices() -> dict[str, Method]:
    """Every choice by its title, in order, with the knobs that it starts from."""
    others = {title: METHODS[name]() for title, name in PAPERS.items()}
    listed = {SSD.name, AR.name, *PAPERS.values(), *(each.name for each in BY_SPEED.values())}
    new = {name: kind() for name, kind in METHODS.items() if name not in listed}
    return {**BY_SPEED, SSD_CHOICE: SSD(), **others, **new, REFERENCE: AR()}


def choice(title: object) -> Method:
    """The choice of this title; raises SSDError for any other value."""
    if not isinstance(title, str) or title not in choices():
        raise SSDError(f"method {str(title)[:40]!r}: choose one of {', '.join(choices())}")
    return choices()[title]


def knobs_of(title: str) -> list[KnobSpec]:
    """The knobs that a choice shows, those for experts last, with the values it starts from."""
    method = choice(title)
    hidden = [] if title not in BY_SPEED else [
        spec.name for spec in visible_knobs(type(method)) if spec.name not in SHOWN_OF_SPEEDS]
    own = [replace(spec, default=getattr(method, spec.name),
                   visibility="expert" if spec.name in hidden else spec.visibility)
           for spec in visible_knobs(type(method))]
    return sorted(own, key=lambda spec: spec.visibility == "expert")


def own_values(title: str, preset: Preset) -> dict[str, Any]:
    """What a choice uses of a model's preset, by knob."""
    return {spec.name: getattr(preset, spec.name) for spec in knobs_of(title)
            if spec.default is None and hasattr(preset, spec.name)}


def method_of(title: object, values: Mapping[str, Any]) -> Method:
    """The method of a choice with these values of its knobs; None leaves one as it is.

    Raises SSDError for another title, for a knob that it lacks and for an illegal value.
    """
    method = choice(title)
    own = {spec.name: spec for spec in knobs_of(str(title))}
    if unknown := [name for name in values if name not in own]:
        raise SSDError(f"method {title} has no knob {unknown[0]}: it has "
                       f"{', '.join(own) or 'none'}")
    set_ = {name: own[name].checked(value) for name, value in values.items() if value is not None}
    return replace(method, **set_)


def title_of(name: str, knobs: Mapping[str, Any]) -> str:
    """The choice that draws by this method: a speed if its knobs are the speed's, else its own."""
    wanted = {knob: value for knob, value in knobs.items() if value is not None}
    if name == Rolling.name and wanted.get("fewer") in USUAL_FEWER:
        del wanted["fewer"]  # what Balanced takes on one machine or another
    for title, method in choices().items():
        own = {knob: value for knob, value in asdict(method).items() if value is not None}
        if method.name == name and (title not in BY_SPEED or own == {**own, **wanted}):
            return title
    return next(title for title, method in choices().items() if method.name == name)
