"""Inputs that several nodes share, each defined once.

The order of a node's widgets is part of every saved workflow: append, never insert. Arguments that
ComfyUI 0.3.64 does not know (`advanced`, `search_aliases` ...) are not passed.
"""

from __future__ import annotations

from functools import cache

from comfy_api.latest import io

from ..ssd_core.backbones.chameleon import sizes_for
from ..ssd_core.backbones.emu3 import AREA, RATIOS, size_for
from ..ssd_core.backbones.postcard import Postcard
from ..ssd_core.engine.methods import SSD
from ..ssd_core.front.knobs import described, sampling_knobs
from ..ssd_core.model.grid import LONGEST_SIDE
from ..ssd_core.weights.catalogue import CATALOGUE
from .schedules import CUSTOM, FAITHFUL, FASTER, OWN, PRESETS
from .types import BackboneType, HeadsType, TokensType
from .widgets import first, later

AUTO_SIZE = "auto"
SCHEDULE = ("k_h", "k_v", "rounds", "incremental")  # SSD's knobs on the sampler itself
PRESETS_OWN = {"own": f"the preset's own ({', '.join(FASTER)} do not use it)"}


def backbone(optional: bool = False, tooltip: str = "From Load Backbone.") -> io.Input:
    return BackboneType.Input("backbone", optional=optional, tooltip=tooltip)


def heads() -> io.Input:
    return HeadsType.Input(
        "heads", optional=True,
        tooltip=f"From Load Draft Heads. {', '.join(FASTER)} need none. Without them an SSD "
                "schedule runs as 'rows', which needs no heads, and the node says so.")


def preset() -> io.Input:
    return io.Combo.Input("preset", options=PRESETS, default=FAITHFUL,
                          tooltip="; ".join(f"{title} = {speed.promise}"
                                            for title, speed in FASTER.items())
                                  + f". These suit every backbone. '{OWN}' = the connected "
                                  "backbone's own SSD schedule; the names below it = the "
                                  f"paper's; {CUSTOM} = your numbers; r and i may be 0.")


def schedule() -> list[io.Input]:
    """preset, k_h, k_v, r, i."""
    return [preset(), *first((one for one in described(SSD) if one.name in SCHEDULE),
                             **dict.fromkeys(SCHEDULE, PRESETS_OWN))]


def ssd() -> list[io.Input]:
    """preset, then every knob of SSD."""
    return [preset(), *first(described(SSD), **dict.fromkeys(SCHEDULE, PRESETS_OWN)),
            *later(described(SSD))]


def prompts() -> list[io.Input]:
    """prompt, negative."""
    return [
        io.String.Input("prompt", multiline=True, dynamic_prompts=True,
                        default="a red house on the left , a lake , at sunset",
                        tooltip="What the picture should show. The report lists words that the "
                                "backbone does not know."),
        io.String.Input("negative", multiline=True, dynamic_prompts=True, default="",
                        tooltip="What should not appear. Needs cfg above 1. Empty = the backbone's "
                                "own unconditional prompt."),
    ]


def sampling() -> list[io.Input]:
    """seed, cfg, temperature, top_k, top_p."""
    return first(sampling_knobs(), seed={"default": 7, "control_after_generate": True})


def more_sampling() -> list[io.Input]:
    """The other sampling knobs, as the last widgets of a node."""
    return later(sampling_knobs())


@cache
def sizes() -> list[str]:
    """auto, then the known backbones' sizes: squares, Emu3's shapes, Lumina-mGPT's by area."""
    squares = sorted({*Postcard.sizes, *(row.size for row in CATALOGUE.values())})
    shapes = [size_for(ratio, AREA) for ratio in RATIOS]
    shapes += [size for side in (512, 768, 1024) for size in sizes_for(side)]
    return [AUTO_SIZE, *dict.fromkeys(f"{w}x{h}" for w, h in squares + shapes)]


def size() -> io.Input:
    return io.Combo.Input("size", options=sizes(), default=AUTO_SIZE,
                          tooltip="Width x height in pixels. auto = the backbone's own. If it "
                                  "cannot draw a size, the message lists those it can.")


def preview() -> io.Input:
    return io.Combo.Input("preview", options=["auto", "on", "off"], default="auto",
                          tooltip="Shows rows on the node while they are decoded, which takes "
                                  "about 3 % of the run's time. auto = on if a browser queued the "
                                  "run; ComfyUI's --preview-method does not matter here.")


def keep() -> list[io.Input]:
    """keep (a link) belongs among the links, keep_rows among the widgets."""
    return [
        TokensType.Input("keep", optional=True,
                         tooltip="Tokens whose top rows are kept, from a sampler or Encode Image."),
        io.Int.Input("keep_rows", default=0, min=0, max=LONGEST_SIDE,
                     tooltip="How many rows of tokens of 'keep' stay as they are. The rows below "
                             "them are drawn again. Pixels next to the seam may differ slightly, "
                             "because the decoder also uses the cells around them."),
    ]


def complaint_about_prompt(prompt: str | None) -> str | None:
    """What is wrong with a prompt; None if nothing is, or if it is linked.

    validate_inputs takes only the prompt, because ComfyUI repeats a complaint for every widget it
    takes. ComfyUI checks ranges and lists; combinations are checked when the node runs.
    """
    if prompt is not None and not prompt.strip():
        return "it is empty: say what the picture should show"
    return None
