"""What a visitor asks for: a `Drawing` made from the page or from a recipe, and the speeds.

Knows methods, neither the page nor how anything is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone, Preset
from ssd_core.engine.edits.words import Edit
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import METHODS, Method
from ssd_core.engine.methods.window import MIDDLE_CELLS, NARROW_CELLS
from ssd_core.engine.tuning import PLAIN_AR
from ssd_core.model.grid import Grid
from ssd_core.model.knobs import KnobSpec
from ssd_core.model.sampling import Sampling
from ssd_core.output.choices import SPEEDS
from ssd_core.output.drawing import DRAWN, READERS, Drawing, drawing_of
from ssd_core.output.knobs import all_knobs, check_pictures, sampling_knobs
from ssd_core.output.outside import taken_in
from ssd_core.output.words import drawn_words
from ssd_core.runs.request import Request

LONGEST_TEXT = 4000
KNOBS = {**all_knobs(), **{knob.name: knob for knob in sampling_knobs()}}
SEEDS = ("seed", "variation_seed")
# Beside a drawing: pictures that it starts from, and the drafts that draw it
BESIDE = ("parent", "panel", "control", "subject", "draft_hash")
NAMES = frozenset((*KNOBS, *READERS, *DRAWN, *BESIDE, "method", *(
    field.name for each in (*map(fields, METHODS.values()), fields(Edit), fields(Sampling))
    for field in each)))
START = Drawing(expand=True)
TEXTS = ("prompt", "negative", "old_prompt")
# What a drawing's JSON leaves out where the drawing has none
NOTHING = dict.fromkeys(("prompt_expanded", "negative_expanded", "keep_mask", "old_prompt"))


def named_settings(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a program sent, under our names; SSDError for one that nothing would read."""
    found = taken_in(raw, NAMES)
    for said in found.words(NAMES):
        raise SSDError(f"settings: {said}; leave it out (GET /api/schema lists all)")
    return found.settings


def asked(raw: Mapping[str, Any], over: Drawing = START) -> Drawing:
    """The drawing of JSON values; what is missing is as in `over`.

    Raises SSDError for values that no backbone could draw by, naming the first one.
    """
    typed = {name: raw[name].strip() for name in TEXTS if isinstance(raw.get(name), str)}
    drawing = Drawing.from_json({**raw, **typed}, over)
    drawing.method.resolve(Preset())
    for name, text in typed.items():
        if len(text) > LONGEST_TEXT:
            raise SSDError(f"{name}: {len(text):,} characters are too many, at most "
                           f"{LONGEST_TEXT:,}")
    check_pictures(drawing.pictures)
    return drawing


def as_json(drawing: Drawing) -> dict[str, Any]:
    """The drawing's JSON, null for what it has not; seeds as text, since browsers' numbers end at
    2^53.
    """
    raw = {**NOTHING, **drawing.to_json()}
    return {**raw, **{name: str(raw[name]) for name in SEEDS}}


def first_values(preset: Preset) -> dict[str, Any]:
    """The values with which the page's forms begin, of all methods' knobs."""
    knobs = {name: first_value(knob, preset) for name, knob in KNOBS.items()}
    edit = {"reach": Edit.reach, "hold": Edit.hold}
    return {**knobs, **{name: str(knobs[name]) for name in SEEDS}, **edit,
            **{name: value for name, value in as_json(START).items() if name not in knobs}}


def first_value(knob: KnobSpec, preset: Preset) -> Any:
    """Schedule knobs start at the preset's numbers, others at their default."""
    schedule = knob.methods and knob.default is None
    return getattr(preset, knob.name, None) if schedule else knob.default


def request_of(drawing: Drawing, backbone: Backbone, heads: DraftHeads | None,
               named: bool = False) -> Request:
    """The request for a loaded backbone; a mask of whole rows at the top counts them.

    named: no other method may take this one's place, as in a race. Raises SSDError if the drawing
    does not fit the backbone.
    """
    mask = drawing.keep_mask
    if mask is not None:
        rows = int(mask.all(1).sum())
        if mask[:rows].all() and not mask[rows:].any():
            drawing = replace(drawing, keep_rows=rows, keep_mask=None)
    return Request(backbone, heads, drawing, named=named)


def checked_words(drawing: Drawing, backbone: Backbone) -> Request:
    """The request for one picture, by AR.

    Raises SSDError for prompts that no method would take, before a queue is waited for.
    """
    drawing = replace(anew(drawing), method=PLAIN_AR, pictures=1)
    request = Request(backbone, None, drawing)
    request.check_words()
    return request


def anew(drawing: Drawing) -> Drawing:
    """The same without a picture of which a part is kept."""
    return replace(drawing, keep=None, keep_rows=0, keep_mask=None, keep_pixels=None, edit=None,
                   sources=())


def of_recipe(recipe: Mapping[str, Any]) -> Drawing:
    """The drawing of a checked recipe; SSDError if the app does not accept it.

    Its words are fixed. The cells that it kept are named by keep_mask alone: the picture that they
    are from is in the history, or else they are those of the recipe's own picture.
    """
    drawing = drawing_of(recipe)
    mask = drawing.keep_mask
    if drawing.keep_rows and drawing.keep is not None:
        mask = torch.zeros_like(drawing.keep[0], dtype=torch.bool)
        mask[: drawing.keep_rows] = True
    return asked({**replace(drawing, keep=None, keep_rows=0, keep_mask=mask).to_json(),
                  **dict(zip(("prompt_expanded", "negative_expanded"),
                             asdict(drawn_words(recipe)).values(), strict=True))})


# Speed


SPEED_KNOBS = ("window", "budget", "fewer")  # the knobs that a speed sets, of those its method has


@dataclass(frozen=True)
class Stop:
    """A choice of speed: its name, and the settings that it makes."""

    name: str
    knobs: Mapping[str, Any]


def stop(name: str, method: Method) -> Stop:
    speed = {f.name: getattr(method, f.name) for f in fields(method) if f.name in SPEED_KNOBS}
    return Stop(name, {"method": method.name, **speed})


# The kinds of devices that windows are chosen for.
KINDS = (("cpu", None), *(("cuda", cells) for cells in (None, MIDDLE_CELLS, NARROW_CELLS)))
# From slowest to fastest.
STOPS = tuple(stop(name, speed.method) for name, speed in SPEEDS.items())


def stop_of(drawing: Drawing, grid: Grid) -> int | None:
    """The index of the stop that draws by this method, or None.

    What the program chooses itself, on any kind of device, counts as its choice.
    """
    drawn = [stop("", drawing.method.for_device(grid, *kind)).knobs for kind in KINDS]
    return next((i for i, speed in enumerate(SPEEDS.values()) if any(
        own == stop("", speed.method.for_device(grid, *kind)).knobs
        for own, kind in zip(drawn, KINDS, strict=True))), None)


AS_CHOSEN = "the knobs on the left"  # a racer with the settings as they are
RACED_SPEEDS = {stop.name: stop.knobs for stop in STOPS}


def racing(raw: Mapping[str, Any], name: str) -> Drawing:
    """The drawing of a racer: as it is, at a speed, or by another method with its knobs in `raw`.
    """
    if name == AS_CHOSEN:
        return asked(raw)
    return asked({**raw, **RACED_SPEEDS.get(name, {"method": name})})
