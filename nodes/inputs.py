"""Inputs that several nodes share, each written once.

The order of a node's widgets is part of every saved workflow: append, never insert. Arguments that
ComfyUI 0.3.64 does not know (`advanced`, `search_aliases` ...) are not passed.
"""

from __future__ import annotations

from functools import cache

from comfy_api.latest import io

from ..ssd_core.backbones.chameleon import sizes_for
from ..ssd_core.backbones.emu3 import AREA, RATIOS, size_for
from ..ssd_core.backbones.postcard import Postcard
from ..ssd_core.front.knobs import all_knobs
from ..ssd_core.weights.catalogue import CATALOGUE
from .schedules import AUTO, CUSTOM, OWN, PRESETS
from .types import BackboneType, HeadsType, TokensType

LARGEST_SEED = 0xFFFFFFFFFFFFFFFF
AUTO_SIZE = "auto"
MOST_ROWS = 128  # no backbone here draws more rows of tokens
MOST = {"k_h": 64, "k_v": 16, "r": 64, "i": 64}  # of the schedule's widgets
ZERO_IS_PRESET = f"0 = the preset's own. Preset '{AUTO}' does not use it."
ZERO_IS_ZERO = f"{ZERO_IS_PRESET} With preset '{CUSTOM}' 0 means none."


def backbone(optional: bool = False, tooltip: str = "From Load Backbone.") -> io.Input:
    return BackboneType.Input("backbone", optional=optional, tooltip=tooltip)


def heads() -> io.Input:
    return HeadsType.Input(
        "heads", optional=True,
        tooltip=f"From Load Draft Heads. Preset '{AUTO}' needs none. Without them an SSD schedule "
                "runs as 'rows', which needs no heads, and the node says so.")


def schedule() -> list[io.Input]:
    """preset, k_h, k_v, r, i."""
    def count(name: str, text: str, zero: str = ZERO_IS_PRESET) -> io.Input:
        return io.Int.Input(name, default=0, min=0, max=MOST[name], tooltip=f"{text} {zero}")

    return [
        io.Combo.Input("preset", options=PRESETS, default=AUTO,
                       tooltip=f"{AUTO} = the picture that AR draws, in fewer passes; right for "
                               f"every backbone. '{OWN}' = the connected backbone's own SSD "
                               "schedule; the names below it = those of the paper; "
                               f"{CUSTOM} = your numbers, where r = 0 only drafts."),
        count("k_h", "Cells a horizontal group drafts on the first row."),
        count("k_v", "Rows a block drafts at once."),
        count("r", "Verification rounds over a block (b in the paper when k_v is above 1): "
                   "more rounds, better pictures, more passes.", ZERO_IS_ZERO),
        count("i", "Further rounds for each further row of a block; matters when k_v is above 1.",
              ZERO_IS_ZERO),
    ]


def acceptance() -> io.Input:
    return io.Combo.Input(
        "acceptance", options=list(all_knobs()["acceptance"].knob.choices), default="residual",
        tooltip="residual: the paper's rule. coupled: chooses again with the seed's own noise. "
                "With both, rounds stop early once nothing changes.")


def prompts() -> list[io.Input]:
    """prompt, negative."""
    return [
        io.String.Input("prompt", multiline=True, dynamic_prompts=True,
                        default="a red house on the left , a lake , at sunset",
                        tooltip="What the picture shows. The report names words that the backbone "
                                "does not know."),
        io.String.Input("negative", multiline=True, dynamic_prompts=True, default="",
                        tooltip="What guidance leads away from; needs cfg above 1. Empty = the "
                                "backbone's own unconditional prompt."),
    ]


def sampling() -> list[io.Input]:
    """seed, cfg, temperature, top_k, top_p."""
    return [
        io.Int.Input("seed", default=7, min=0, max=LARGEST_SEED, control_after_generate=True,
                     tooltip="Taken literally. Picture n of a batch is the picture of seed + n."),
        io.Float.Input("cfg", default=0.0, min=0.0, max=100.0, step=0.5,
                       tooltip="Guidance. 0 = the backbone's own; 1 and anything between 0 and 1 "
                               "= none, which halves the work; more follows the prompt closer."),
        io.Float.Input("temperature", default=1.0, min=0.0, max=100.0, step=0.05,
                       tooltip="0 always takes the likeliest token; 1 samples as trained."),
        io.Int.Input("top_k", default=0, min=0, max=65536,
                     tooltip="Sample from the k likeliest tokens only. 0 = all."),
        io.Float.Input("top_p", default=1.0, min=0.01, max=1.0, step=0.01,
                       tooltip="Sample from the likeliest tokens that make up this share. "
                               "1 = all."),
    ]


@cache
def sizes() -> list[str]:
    """auto, then what the known backbones draw: squares, Emu3's shapes, Lumina-mGPT's by area."""
    squares = sorted({*Postcard.sizes, *(row.size for row in CATALOGUE.values())})
    shapes = [size_for(ratio, AREA) for ratio in RATIOS]
    shapes += [size for side in (512, 768, 1024) for size in sizes_for(side)]
    return [AUTO_SIZE, *dict.fromkeys(f"{w}x{h}" for w, h in squares + shapes)]


def size() -> io.Input:
    return io.Combo.Input("size", options=sizes(), default=AUTO_SIZE,
                          tooltip="Width x height in pixels. auto = the backbone's own; a size it "
                                  "cannot draw is refused with the sizes it can.")


def preview() -> io.Input:
    return io.Combo.Input("preview", options=["auto", "on", "off"], default="auto",
                          tooltip="Paint rows on the node while they are decoded, for about 3 % "
                                  "of the run's time. auto = on when a browser queued the run; "
                                  "ComfyUI's --preview-method does not matter here.")


def keep() -> list[io.Input]:
    """keep (a link) goes with the links, keep_rows with the widgets."""
    return [
        TokensType.Input("keep", optional=True,
                         tooltip="Tokens whose top rows stand: from a sampler or Encode Image."),
        io.Int.Input("keep_rows", default=0, min=0, max=MOST_ROWS,
                     tooltip="How many rows of 'keep' stand, token for token; the rest is drawn "
                             "anew below them. Pixels next to the seam may differ slightly: the "
                             "decoder looks around."),
    ]


def complaint_about_prompt(prompt: str | None) -> str | None:
    """What is wrong with it; None where nothing is, or where it is linked.

    ComfyUI tells a complaint once for every widget that validate_inputs takes, so it takes this one
    alone; ranges and lists are checked by ComfyUI, and what widgets mean together when it runs.
    """
    if prompt is not None and not prompt.strip():
        return "it is empty: say what the picture should show"
    return None
