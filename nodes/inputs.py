"""Inputs that several nodes share, each defined once.

Nodes that draw have prompt, negative, seed, size and method first, in this order; all other
widgets are advanced. A program need only give model and prompt.
"""

from __future__ import annotations

from functools import cache

from comfy_api.v0_0_2 import io

from ..ssd_core.backbones import sizes as known_sizes
from ..ssd_core.model.grid import LONGEST_SIDE
from ..ssd_core.output.choices import BY_SPEED, FAITHFUL, REFERENCE, SPEEDS, SSD_CHOICE
from ..ssd_core.output.knobs import MOST_PICTURES, sampling_knobs
from ..ssd_core.train import BOTH, HEADS, ROW
from ..ssd_core.weights.catalogue import CATALOGUE
from ..ssd_core.weights.diffusion import GUIDANCE, STEPS
from . import folders, widgets
from .types import ModelType, RunType
from .widgets import AUTO

SIDES = ("width", "height")
MOST_PIXELS = 8192  # of a side
DRAFTS = {"both": BOTH, "heads": HEADS, "row drafter": ROW}  # what Train Draft Heads teaches
GLM = "Only for GLM-Image: "


def model(optional: bool = False, tooltip: str = "From Load Model.") -> io.Input:
    return ModelType.Input("model", optional=optional, tooltip=tooltip)


def heads() -> io.Input:
    return io.Combo.Input("heads", options=folders.heads_choices(), default=folders.AUTO,
                          optional=True,
                          tooltip="Draft heads, small networks that draft rows for the model to "
                                  "check. auto = this model's own if there are any; the node says "
                                  "which. none = no heads: Faithful, Balanced and Fast need none, "
                                  "and SSD drafts rows without them. The other entries are files "
                                  "in the model folder ssd_heads, with their model in brackets; "
                                  "heads of another model are refused when the node runs.")


def method(name: str = "method", default: str = FAITHFUL, without: bool = False) -> io.Input:
    """The one list of methods; each shows its own knobs."""
    guarantees = "; ".join(f"{speed.title} = {speed.guarantee}" for speed in SPEEDS.values()
                           if speed.title in BY_SPEED)
    return widgets.method(name, default, f"{guarantees}. {SSD_CHOICE} = the paper's method, with "
                          f"its numbers below. The others are those of other papers; {REFERENCE} = "
                          "token by token, the slowest.", without)


def prompts() -> list[io.Input]:
    """prompt, negative."""
    return [
        io.String.Input("prompt", multiline=True, dynamic_prompts=True,
                        default="a red house by a river",
                        tooltip="What the picture should show. If the model knows only some "
                                "words, you can click them on the node; the help of SSD Sampler "
                                "lists them. The report names words that it does not know."),
        io.String.Input("negative", multiline=True, dynamic_prompts=True, default="",
                        optional=True,
                        tooltip="What should not appear. Needs cfg above 1. Empty = the model's "
                                "own words, if its authors have any, as the report says; none = no "
                                "words."),
    ]


def seed() -> io.Input:
    known = next(knob for knob in sampling_knobs() if knob.name == "seed")
    return widgets.widget(known, default=7, control_after_generate=True)


def sampling() -> list[io.Input]:
    """The other sampling knobs, all advanced."""
    known = [knob for knob in sampling_knobs() if knob.name != "seed"]
    return widgets.widgets(known, **{knob.name: {"folded": True} for knob in known})


def complete_prompt() -> io.Input:
    return io.Boolean.Input("complete_prompt", display_name="complete prompt", default=True,
                            optional=True,
                            tooltip="Says in words what the prompt leaves open: where things "
                                    "stand, the ground, the sky, the light. The seed decides; "
                                    "nothing contradicts what you wrote. The node shows the added "
                                    "words in a lighter colour. Off = nothing is added. postcard "
                                    "can do this; other models take the prompt as it is.")


def subject(own_size: str = "the model's own") -> list[io.Input]:
    """The first inputs of every node that draws: prompt, negative, seed, size."""
    return [*prompts(), seed(), *size(own_size), complete_prompt()]


@cache
def sizes() -> list[str]:
    """auto, then the known models' sizes: squares, then the shapes of Emu3, Lumina-mGPT ..."""
    postcards = [known_sizes.postcard(grid, scale) for scale in (1, 2)
                 for grid in known_sizes.POSTCARD_GRIDS]
    squares = sorted({postcards[0], *(row.size for row in CATALOGUE.values())})
    shapes = [*postcards, *known_sizes.emu3()]
    shapes += [size for side in (512, 768, 1024) for size in known_sizes.lumina(side)]
    shapes += [known_sizes.TWO_PANELS, *known_sizes.EMU3_5, *known_sizes.GLM_IMAGE]
    return [AUTO, *dict.fromkeys(f"{w}x{h}" for w, h in squares + shapes)]


def size(auto: str = "the model's own") -> list[io.Input]:
    """A list of sizes, and width and height for numbers of one's own or from other nodes."""
    return [
        io.Combo.Input("size", options=sizes(), default=AUTO, optional=True,
                       tooltip=f"Width x height in pixels. {AUTO} = {auto}. On ComfyUI's page the "
                               "list has the sizes of the connected model; if it cannot draw a "
                               "size, the message names the nearest one that it can."),
        *(io.Int.Input(side, default=0, min=0, max=MOST_PIXELS, optional=True, advanced=True,
                       tooltip=f"{side.capitalize()} in pixels, typed or from another node; with "
                               "the other side it takes the place of 'size'. 0 = 'size' decides.")
          for side in SIDES)]


def batch_size() -> io.Input:
    return io.Int.Input(
        "batch_size", default=1, min=1, max=MOST_PICTURES, optional=True, advanced=True,
        tooltip="Pictures drawn together, with seeds seed, seed + 1 ...")


def part() -> io.Input:
    return io.Float.Input(
        "part", default=1.0, min=0.05, max=1.0, step=0.05, optional=True, advanced=True,
        tooltip="How much of each picture to draw, from the top: 0.35 is about a third. Finish "
                "draws the rest of those that you like. 1 = all.")


def preview() -> io.Input:
    return io.Boolean.Input(
        "preview", default=True, optional=True, advanced=True,
        tooltip="Shows rows on the node while they are decoded, which takes about 3 % of the run's "
                "time. ComfyUI's own preview method does not matter here.")


def known_part() -> list[io.Input]:
    """Links: a picture and a mask of what is redrawn."""
    return [
        RunType.Input("picture", optional=True,
                      tooltip="A picture of which a part stays: what 'mask' leaves black, or the "
                              "top rows. From 'run' of a sampler, Load Picture or Encode."),
        io.Mask.Input("mask", optional=True,
                      tooltip="What of 'picture' is redrawn: white. All else stays, to the pixel. "
                              "Any size; a cell is redrawn if a quarter of it is white. From "
                              "Load Picture, Load Image or another node with masks.")]


def known_rows() -> list[io.Input]:
    """Widgets: how many top rows stay, and of which picture of a batch."""
    return [
        io.Int.Input(
            "keep_rows", default=0, min=0, max=LONGEST_SIDE, optional=True, advanced=True,
            tooltip="How many rows of tokens of 'picture' stay as they are. The rows below them "
                    "are drawn again. The last row that stays blends into them."),
        io.Int.Input(
            "picture_number", default=0, min=0, max=MOST_PICTURES, optional=True, advanced=True,
            tooltip="Which picture of the batch of 'picture' to use: 1 is the first. 0 = the only "
                    "one, or one for each picture of batch_size.")]


def source() -> io.Input:
    return io.Image.Input("source", optional=True,
                          tooltip="Pictures to draw from besides the words, for GLM-Image: say in "
                                  "the prompt what becomes of them. They are scaled by "
                                  "themselves; all pictures of a batch are drawn from all of "
                                  "them.")


def painting() -> list[io.Input]:
    """What the diffusion model of GLM-Image needs."""
    return [
        io.Image.Input("source", optional=True,
                       tooltip=f"{GLM}the source pictures that the tokens were drawn from, as SSD "
                               "Sampler had them."),
        io.String.Input("prompt", default="", multiline=True, optional=True, advanced=True,
                        tooltip=f"{GLM}what the pictures show. Empty = the prompts that the "
                                "tokens were drawn from."),
        io.Int.Input("seed", default=0, min=0, max=(1 << 64) - 1, control_after_generate=True,
                     optional=True, advanced=True, tooltip=f"{GLM}the seed of the painting."),
        io.Int.Input("steps", default=STEPS, min=1, max=200, optional=True, advanced=True,
                     tooltip=f"{GLM}steps of the diffusion model; more take longer."),
        io.Float.Input("guidance", default=GUIDANCE, min=1.0, max=20.0, step=0.1, optional=True,
                       advanced=True,
                       tooltip=f"{GLM}guidance of the diffusion model; 1 switches it off and "
                               "halves the work.")]
