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
from ..ssd_core.catalogue import CATALOGUE
from ..ssd_core.methods.base import ACCEPTANCES
from .schedules import CUSTOM, PRESETS
from .types import BackboneType, HeadsType, TokensType

LARGEST_SEED = 0xFFFFFFFFFFFFFFFF
AUTO_SIZE = "auto"
MOST_ROWS = 128  # no backbone here draws more rows of tokens
MOST = {"k_h": 64, "k_v": 16, "r": 64, "i": 64}  # of the schedule's widgets
ZERO_IS_PRESET = f"0 = the preset's own. With preset '{CUSTOM}' the number is taken as it stands."


def backbone(optional: bool = False, tooltip: str = "From Load Backbone.") -> io.Input:
    return BackboneType.Input("backbone", optional=optional, tooltip=tooltip)


def heads() -> io.Input:
    return HeadsType.Input(
        "heads", optional=True,
        tooltip="From Load Draft Heads. Without them the schedule runs as 'rows', which needs no "
                "heads, and the report says so.")


def schedule() -> list[io.Input]:
    """preset, k_h, k_v, r, i."""
    def count(name: str, text: str) -> io.Input:
        return io.Int.Input(name, default=0, min=0, max=MOST[name],
                            tooltip=f"{text} {ZERO_IS_PRESET}")

    return [
        io.Combo.Input("preset", options=list(PRESETS), default="postcard",
                       tooltip="Schedule of a backbone. 'custom' takes k_h, k_v, r and i as they "
                               "stand: choose it for r = 0, which only drafts."),
        count("k_h", "Cells a horizontal group drafts on the first row."),
        count("k_v", "Rows a block drafts at once."),
        count("r", "Verification rounds over a block (b in the paper when k_v is above 1): "
                       "more rounds, better pictures, more passes."),
        count("i", "Further rounds for each further row of a block; matters when k_v is above "
                       "1."),
    ]


def acceptance() -> io.Input:
    return io.Combo.Input(
        "acceptance", options=list(ACCEPTANCES), default="residual",
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
        io.Float.Input("cfg", default=0.0, min=0.0, max=100.0, step=0.1,
                       tooltip="Guidance. 0 = the backbone's own; 1 switches it off and halves "
                               "the work; values between 0 and 1 are refused."),
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


def complaint_about_text(prompt: str | None, negative: str | None,
                         cfg: float | None) -> str | None:
    """What is wrong with these widgets; None where nothing is, or where they are linked."""
    if prompt is not None and not prompt.strip():
        return "prompt: it is empty: say what the picture should show"
    if cfg == 1 and negative is not None and negative.strip():
        return "negative: it needs guidance: raise cfg above 1, or set it to 0 (the backbone's own)"
    return None


def complaint_about_sampling(cfg: float | None, size: str | None) -> str | None:
    """What is wrong with these widgets, None where nothing is or where they are linked.

    cfg between 0 (the backbone's own) and 1 (off) means nothing; 0.3.64 checks no combos itself.
    """
    if cfg is not None and cfg != 0 and not 1 <= cfg <= 100:
        return f"cfg {cfg}: 0 (the backbone's own), or 1 (no guidance) to 100"
    if size is not None and size not in sizes():
        return (f"size {size!r}: no backbone known here draws it: choose auto, or one of the list "
                f"such as {sizes()[1]}")
    return None
