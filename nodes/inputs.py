"""Inputs that several nodes share, each defined once.

The order of a node's widgets is part of every saved workflow: append, never insert. Nodes that draw
have prompt, negative, seed, size and method first, in this order; all other inputs are advanced.
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
from ..ssd_core.engine.methods import SSD
from ..ssd_core.model.grid import LONGEST_SIDE
from ..ssd_core.output.knobs import MOST_PICTURES, sampling_knobs, visible_knobs
from ..ssd_core.weights.catalogue import CATALOGUE
from .newer import ADVANCED
from .schedules import CUSTOM, FAITHFUL, FASTER, OWN, PRESETS, QUALITIES
from .types import BackboneType, HeadsType, MethodType, TokensType
from .widgets import added_widgets, original_widgets

AUTO_SIZE = "auto"
SCHEDULE = ("k_h", "k_v", "rounds", "incremental")  # SSD's knobs on the sampler itself
PRESETS_OWN = {"none_means": f"the preset's own ({', '.join(FASTER)} do not use it)"}
CUSTOMS_OWN = {"none_means": f"the backbone's own; only quality {CUSTOM} uses it"}


def backbone(optional: bool = False, tooltip: str = "From Load Backbone.") -> io.Input:
    return BackboneType.Input("backbone", optional=optional, tooltip=tooltip)


def heads() -> io.Input:
    return HeadsType.Input(
        "heads", optional=True,
        tooltip=f"From Load Draft Heads. {', '.join(FASTER)} need none. Without them an SSD "
                "schedule runs as 'rows', which needs no heads, and the node says so.")


def method(node: str = "quality, k_h, k_v, r and i") -> io.Input:
    return MethodType.Input("method", optional=True,
                            tooltip="From SSD Schedule or Baseline Method. It is used instead of "
                                    f"{node}; the node names those that are set.")


def quality() -> io.Input:
    """The presets that suit every backbone, and `custom`."""
    promises = "; ".join(f"{title} = {speed.promise}" for title, speed in FASTER.items())
    return io.Combo.Input("quality", options=QUALITIES, default=FAITHFUL,
                          tooltip=f"{promises}. {CUSTOM} = SSD with k_h, k_v, r and i below, in "
                                  "the advanced inputs.")


def schedule() -> list[io.Input]:
    """k_h, k_v, r, i for the quality `custom`."""
    known = [knob for knob in visible_knobs(SSD) if knob.name in SCHEDULE]
    return original_widgets(known, **{name: {**CUSTOMS_OWN, **ADVANCED} for name in SCHEDULE})


def preset() -> io.Input:
    return io.Combo.Input("preset", options=PRESETS, default=FAITHFUL,
                          tooltip="; ".join(f"{title} = {speed.promise}"
                                            for title, speed in FASTER.items())
                                  + f". These suit every backbone. '{OWN}' = the connected "
                                  "backbone's own SSD schedule; the names below it = the "
                                  f"paper's; {CUSTOM} = your numbers; r and i may be 0.")


def ssd() -> list[io.Input]:
    """preset, then every knob of SSD."""
    return [preset(), *original_widgets(visible_knobs(SSD), **dict.fromkeys(SCHEDULE, PRESETS_OWN)),
            *added_widgets(visible_knobs(SSD))]


def prompts() -> list[io.Input]:
    """prompt, negative."""
    return [
        io.String.Input("prompt", multiline=True, dynamic_prompts=True,
                        default="a red house by a lake",
                        tooltip="What the picture should show. If the backbone knows only some "
                                "words, you can click them on the node; the help of SSD Sampler "
                                "lists them. The report names words that it does not know."),
        io.String.Input("negative", multiline=True, dynamic_prompts=True, default="",
                        tooltip="What should not appear. Needs cfg above 1. Empty = the backbone's "
                                "own unconditional prompt."),
    ]


def seed() -> list[io.Input]:
    return [widget for widget in original_widgets(sampling_knobs(), seed={"default": 7,
                                                         "control_after_generate": True})
            if widget.id == "seed"]


def sampling(*own: io.Input) -> list[io.Input]:
    """The sampling knobs and `expand`, all advanced, in the order in which they were added.

    own: widgets that only this node has; they were added after `expand`.
    """
    known = [knob for knob in sampling_knobs() if knob.name != "seed"]
    folded = {knob.name: ADVANCED for knob in known}
    min_p, *newer = added_widgets(known, **folded)
    return [*original_widgets(known, **folded), min_p, numerics(), expand(), *own, *newer]


def numerics() -> io.Input:
    """A widget of earlier versions that saved workflows and prompts still contain."""
    made = io.Combo.Input("numerics", options=["fast"], default="fast", optional=True,
                          tooltip="Has no effect any more; older workflows have it.", **ADVANCED)
    made.extra_dict = {"hidden": True}  # ComfyUI 0.3.64 accepts it only here
    return made


def expand() -> io.Input:
    """Optional: for prompts and workflows that were saved without it, nothing is added."""
    return io.Boolean.Input("expand", display_name="fill in what the prompt leaves open",
                            default=True, optional=True,
                            tooltip="Says in words what the prompt leaves open: where things "
                                    "stand, the ground, the sky, the light. The seed decides; "
                                    "nothing contradicts what you wrote. The node shows the added "
                                    "words in a lighter colour. Off = nothing is added. postcard "
                                    "can do this; other backbones take the prompt as it is.")


def subject() -> list[io.Input]:
    """The first inputs of every node that draws: prompt, negative, seed, size."""
    return [*prompts(), *seed(), size()]


@cache
def sizes() -> list[str]:
    """auto, then the known backbones' sizes: squares, then the shapes of Emu3, Lumina-mGPT ..."""
    postcards = [postcard.size_of(grid) for grid in postcard.GRIDS]
    squares = sorted({postcards[0], *(row.size for row in CATALOGUE.values())})
    shapes = [*postcards, *(size_for(ratio, AREA) for ratio in RATIOS)]
    shapes += [size for side in (512, 768, 1024) for size in sizes_for(side)]
    shapes += [TWO_PANELS, *EMU3_5_SIZES, *GLM_SIZES]
    return [AUTO_SIZE, *dict.fromkeys(f"{w}x{h}" for w, h in squares + shapes)]


def size(auto: str = "the backbone's own", optional: bool = False) -> io.Input:
    return io.Combo.Input("size", options=sizes(), default=AUTO_SIZE, optional=optional,
                          tooltip=f"Width x height in pixels. auto = {auto}. On ComfyUI's page the "
                                  "list has the sizes of the connected backbone; if it cannot draw "
                                  "a size, the message lists those it can.")


def batch_size() -> io.Input:
    return io.Int.Input("batch_size", default=1, min=1, max=MOST_PICTURES, **ADVANCED,
                        tooltip="Pictures drawn together, with seeds seed, seed + 1 ...")


def preview() -> io.Input:
    return io.Combo.Input("preview", options=["auto", "on", "off"], default="auto", **ADVANCED,
                          tooltip="Shows rows on the node while they are decoded, which takes "
                                  "about 3 % of the run's time. auto = on if a browser queued the "
                                  "run; ComfyUI's --preview-method does not matter here.")


def keep() -> list[io.Input]:
    """keep, which belongs among the links, and keep_rows, which belongs among the widgets."""
    return [
        TokensType.Input("keep", optional=True,
                         tooltip="Tokens of a picture, a part of which is kept: what 'mask' leaves "
                                 "black, or the top rows. From a sampler, Load Picture or Encode "
                                 "Image."),
        io.Int.Input("keep_rows", default=0, min=0, max=LONGEST_SIDE, **ADVANCED,
                     tooltip="How many rows of tokens of 'keep' stay as they are. The rows below "
                             "them are drawn again. The last row that is kept blends into "
                             "them."),
    ]


def keep_picture() -> io.Input:
    return io.Int.Input("keep_picture", default=0, min=0, max=64, optional=True, **ADVANCED,
                        tooltip="Which picture of 'keep' to keep, by its number in the batch: 1 is "
                                "the first. 0 = all: the only one, or one for each picture of "
                                "batch_size.")


def mask() -> io.Input:
    return io.Mask.Input("mask", optional=True,
                         tooltip="What of 'keep' is redrawn: white. All else stays, to the pixel. "
                                 "Any size; a cell is redrawn if a quarter of it is white. From "
                                 "Load Picture, Load Image or another node with masks.")


def source() -> io.Input:
    return io.Image.Input("source", optional=True,
                          tooltip="Pictures to draw from besides the words, for GLM-Image: say in "
                                  "the prompt what becomes of them. They are scaled by "
                                  "themselves; all pictures of a batch are drawn from all of "
                                  "them.")
