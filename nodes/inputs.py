"""Inputs that several nodes share, each defined once.

Nodes that draw have prompt, negative, seed, size and quality first, in this order; all other
widgets are advanced.
"""

from __future__ import annotations

from functools import cache

from comfy_api.v0_0_2 import io

from ..ssd_core.backbones import postcard
from ..ssd_core.backbones.chameleon import sizes_for
from ..ssd_core.backbones.emu3 import AREA, RATIOS, size_for
from ..ssd_core.backbones.emu3_5 import SIZES as EMU3_5_SIZES
from ..ssd_core.backbones.glm_image import SIZES as GLM_SIZES
from ..ssd_core.backbones.lumina2 import TWO_PANELS
from ..ssd_core.model.grid import LONGEST_SIDE
from ..ssd_core.output.knobs import MOST_PICTURES, sampling_knobs
from ..ssd_core.weights.catalogue import CATALOGUE
from .schedules import CUSTOM, FAITHFUL, FASTER, QUALITIES, SCHEDULE, schedule_knobs
from .types import MethodType, ModelType, TokensType
from .widgets import AUTO, advanced, number_or_auto, widget, widgets

SIDES = ("width", "height")
ALL = "all"
CUSTOMS_OWN = {"none_means": f"the model's own; only quality {CUSTOM} uses it"}


def model(optional: bool = False, tooltip: str = "From Load Model.") -> io.Input:
    return ModelType.Input("model", optional=optional, tooltip=tooltip)


def method() -> io.Input:
    return MethodType.Input("method", optional=True,
                            tooltip="From Method. It is used instead of quality, k_h, k_v, r / b "
                                    "and i; the node names those that are set.")


def quality() -> io.Input:
    """The presets that suit every model, and `custom`."""
    guarantees = "; ".join(f"{title} = {speed.guarantee}" for title, speed in FASTER.items())
    return io.Combo.Input("quality", options=QUALITIES, default=FAITHFUL,
                          tooltip=f"{guarantees}. {CUSTOM} = SSD with k_h, k_v, r / b and i below, "
                                  "in the advanced inputs.")


def schedule() -> list[io.Input]:
    """k_h, k_v, rounds and incremental for the quality `custom`."""
    return widgets(schedule_knobs(), **dict.fromkeys(SCHEDULE, {**CUSTOMS_OWN, "folded": True}))


def prompts() -> list[io.Input]:
    """prompt, negative."""
    return [
        io.String.Input("prompt", multiline=True, dynamic_prompts=True,
                        default="a red house by a lake",
                        tooltip="What the picture should show. If the model knows only some "
                                "words, you can click them on the node; the help of SSD Sampler "
                                "lists them. The report names words that it does not know."),
        io.String.Input("negative", multiline=True, dynamic_prompts=True, default="",
                        tooltip="What should not appear. Needs cfg above 1. Empty = the model's "
                                "own words, if its authors have any, as the report says; none = no "
                                "words."),
    ]


def seed() -> io.Input:
    known = next(knob for knob in sampling_knobs() if knob.name == "seed")
    return widget(known, default=7, control_after_generate=True)


def sampling() -> list[io.Input]:
    """The other sampling knobs and `complete_prompt`, all advanced."""
    known = [knob for knob in sampling_knobs() if knob.name != "seed"]
    return [complete_prompt(), *widgets(known, **{knob.name: {"folded": True} for knob in known})]


def complete_prompt() -> io.Input:
    return io.Boolean.Input("complete_prompt", display_name="complete prompt", default=True,
                            tooltip="Says in words what the prompt leaves open: where things "
                                    "stand, the ground, the sky, the light. The seed decides; "
                                    "nothing contradicts what you wrote. The node shows the added "
                                    "words in a lighter colour. Off = nothing is added. postcard "
                                    "can do this; other models take the prompt as it is.")


def subject(own_size: str = "the model's own") -> list[io.Input]:
    """The first inputs of every node that draws: prompt, negative, seed, size."""
    return [*prompts(), seed(), *size(own_size)]


@cache
def sizes() -> list[str]:
    """auto, then the known models' sizes: squares, then the shapes of Emu3, Lumina-mGPT ..."""
    postcards = [postcard.size_of(grid, scale) for scale in (1, 2) for grid in postcard.GRIDS]
    squares = sorted({postcards[0], *(row.size for row in CATALOGUE.values())})
    shapes = [*postcards, *(size_for(ratio, AREA) for ratio in RATIOS)]
    shapes += [size for side in (512, 768, 1024) for size in sizes_for(side)]
    shapes += [TWO_PANELS, *EMU3_5_SIZES, *GLM_SIZES]
    return [AUTO, *dict.fromkeys(f"{w}x{h}" for w, h in squares + shapes)]


def size(auto: str = "the model's own") -> list[io.Input]:
    """A list of sizes, and width and height for numbers of one's own or from other nodes."""
    return [
        io.Combo.Input("size", options=sizes(), default=AUTO,
                       tooltip=f"Width x height in pixels. {AUTO} = {auto}. On ComfyUI's page the "
                               "list has the sizes of the connected model; if it cannot draw a "
                               "size, the message names the nearest one that it can."),
        *(advanced(number_or_auto(
            side, tooltip=f"{side.capitalize()} in pixels, typed or from another node; with the "
                          f"other side it takes the place of 'size'. {AUTO} = 'size' decides."))
          for side in SIDES)]


def batch_size() -> io.Input:
    return advanced(io.Int.Input(
        "batch_size", default=1, min=1, max=MOST_PICTURES,
        tooltip="Pictures drawn together, with seeds seed, seed + 1 ..."))


def preview() -> io.Input:
    return advanced(io.Boolean.Input(
        "preview", default=True,
        tooltip="Shows rows on the node while they are decoded, which takes about 3 % of the run's "
                "time. ComfyUI's own preview method does not matter here."))


def known_part() -> list[io.Input]:
    """Links: a picture and a mask of what is redrawn."""
    return [
        TokensType.Input("picture", optional=True,
                         tooltip="The tokens of a picture, a part of which stays: what 'mask' "
                                 "leaves black, or the top rows. From a sampler, Load Picture or "
                                 "Image to Tokens."),
        io.Mask.Input("mask", optional=True,
                      tooltip="What of 'picture' is redrawn: white. All else stays, to the pixel. "
                              "Any size; a cell is redrawn if a quarter of it is white. From "
                              "Load Picture, Load Image or another node with masks.")]


def known_rows() -> list[io.Input]:
    """Widgets: how many top rows stay, and of which picture of a batch."""
    return [
        advanced(io.Int.Input(
            "keep_rows", default=0, min=0, max=LONGEST_SIDE,
            tooltip="How many rows of tokens of 'picture' stay as they are. The rows below them "
                    "are drawn again. The last row that stays blends into them.")),
        advanced(number_or_auto(
            "picture_number", default=ALL,
            tooltip="Which picture of the batch of 'picture' to use: 1 is the first. "
                    f"{ALL} = the only one, or one for each picture of batch_size."))]


def source() -> io.Input:
    return io.Image.Input("source", optional=True,
                          tooltip="Pictures to draw from besides the words, for GLM-Image: say in "
                                  "the prompt what becomes of them. They are scaled by "
                                  "themselves; all pictures of a batch are drawn from all of "
                                  "them.")
