"""Pictures that a backbone draws itself, on which its draft heads then learn (stage 3).

AR's pictures with the backbone's own guidance, in batches; every batch is a file of its own, so an
interrupted run goes on where it stopped, and several machines can share the work by --first.
`exact` draws the same pictures in fewer passes, each over more cells: cheaper in small batches.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from ..backbones.base import Backbone
from ..backbones.llamagen import ClassLlamaGen
from ..backbones.postcard import Postcard
from ..engine.decode import generate, plan
from ..engine.events import Finished
from ..engine.methods import AR, Exact, Resolved
from ..engine.plan import Plan
from ..errors import SSDError
from ..files import write_safetensors
from ..model.sampling import Sampling
from ..weights.fit import run_bytes
from ..weights.free import free_bytes
from ..weights.load import load_backbone
from .common import REQUIRED, Say, gigabytes, option, silent
from .data import fresh_caption
from .drawn import FORMAT, PROMPTS, drawn_already, gaps, of_prompts

PROMPT_SEED = 2_000_000_000  # captions for self-distillation come from scenes of their own
POSTCARDS, EACH_CLASS = 5184, 5  # pictures where no number is given
MOST_AT_ONCE = 64
ASSUMED_FREE = 8 << 30  # bytes, where the system does not tell
METHODS: dict[str, Resolved] = {method.name: method for method in (AR(), Exact())}


@dataclass(frozen=True)
class SelfDistillRecipe:
    """Pictures first .. pictures-1, so that several processes or machines can share the work."""

    out: Path = option(REQUIRED, "Folder; the pictures go to its self-distill.")
    backbone: str = option("", "Bundled name, file or folder. Default: --out.")
    prompts: str = option("", "Text file, one prompt a line. Default: captions of postcards, or "
                              "the classes of a backbone that draws classes.")
    pictures: int = option(0, "Picture i has prompt i and starts again behind the last. 0: one a "
                              f"prompt; {POSTCARDS} postcards; {EACH_CLASS} a class.")
    first: int = option(0, "Number of the first picture.")
    method: str = option(AR.name, "ar or exact, which draws AR's pictures in fewer but larger "
                                  "passes: faster in small batches. In half precision a token may "
                                  "differ by rounding.")
    batch: int = option(0, f"Pictures at once. 0: up to {MOST_AT_ONCE}, as memory allows.")
    size: str = option("", "WxH in pixels. Default: the backbone's own.")
    cfg: float = option(0.0, "Guidance. 0: the backbone's own.")
    seed: int = option(0, "Picture i uses seed + i.")
    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtype: str = option("auto", "auto, fp32, bf16, fp16, int8, int4.")


@dataclass(frozen=True)
class Prompts:
    """The prompt of picture i, and how many pictures there are where nobody says."""

    of: Callable[[int], str]
    pictures: int


def prompts_for(backbone: Backbone, path: str) -> Prompts:
    """Prompts from a file, or those that a backbone is known by."""
    if path:
        lines = read_prompts(Path(path).expanduser(), backbone)
        return Prompts(lambda i: lines[i % len(lines)], len(lines))
    if isinstance(backbone, Postcard):
        return Prompts(lambda i: fresh_caption(PROMPT_SEED + i, 0), POSTCARDS)
    if isinstance(backbone, ClassLlamaGen):
        return Prompts(lambda i: str(i % backbone.classes), EACH_CLASS * backbone.classes)
    raise SSDError(f"{backbone.name} needs prompts to draw from: give --prompts FILE.txt with one "
                   "a line, such as captions of the kind you will ask for")


def read_prompts(path: Path, backbone: Backbone) -> list[str]:
    """The lines of a file that are not blank; SSDError names the line that cannot be drawn."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise SSDError(f"{path}: prompts cannot be read ({str(error).splitlines()[0]}): give a "
                       "text file in UTF-8, one prompt a line") from error
    told = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    if not told:
        raise SSDError(f"{path}: holds no prompts; write one a line")
    for number, prompt in told:
        require_drawable(backbone, prompt, f"{path}, line {number}")
    return [prompt for _, prompt in told]


def require_drawable(backbone: Backbone, prompt: str, place: str) -> None:
    """Before a run of days, what it would end at."""
    try:
        backbone.tokenize(prompt)
    except SSDError as error:
        raise SSDError(f"{place}: {error}") from error


def draw(backbone: Backbone, prompts: list[str], method: Resolved, seed: int,
         cfg: float | None) -> Finished:
    """One run to its end: tokens [n, R, C] and statistics."""
    *_, last = generate(backbone, prompts, method, sampling=Sampling(seed=seed, cfg=cfg))
    assert isinstance(last, Finished)
    return last


def number_type(backbone: Backbone) -> torch.dtype:
    """The smallest type that holds the codes."""
    return torch.int16 if backbone.codes <= 1 << 15 else torch.int32


def at_once(recipe: SelfDistillRecipe, backbone: Backbone) -> int:
    """Pictures of a batch: those asked for, else the power of two that free memory has room for."""
    if recipe.batch:
        return recipe.batch
    free = free_bytes(backbone.device) or ASSUMED_FREE
    guided, pictures = (recipe.cfg or backbone.preset.cfg) != 1, MOST_AT_ONCE
    cells = METHODS[recipe.method].widest_pass(backbone.grid, backbone.device.type)
    while pictures > 1 and run_bytes(backbone, pictures, guided, cells) > free:
        pictures //= 2
    return pictures


def check(recipe: SelfDistillRecipe) -> None:
    """SSDError for numbers that make no sense, before anything is loaded."""
    for name in ("pictures", "first", "batch"):
        if getattr(recipe, name) < 0:
            raise SSDError(f"{name} {getattr(recipe, name)}: must not be negative")
    if recipe.method not in METHODS:
        raise SSDError(f"method {recipe.method!r}: choose one of {', '.join(METHODS)}")
    Sampling(seed=recipe.seed, cfg=recipe.cfg or None)


def cost(backbone: Backbone, folder: Path, runs: list[range], method: Resolved) -> str:
    """One line on what is still to be drawn."""
    count, grid = sum(map(len, runs)), backbone.grid
    planned = plan(backbone, method)
    passes = len(runs) * (planned.passes or planned.usual or planned.passes_max)
    tokens = count * grid.cells
    width, height = backbone.size
    disk = gigabytes(tokens * number_type(backbone).itemsize)
    return (f"{backbone.name} draws {count:,} pictures of {width}x{height} px by {method.name}: "
            f"{tokens:,} tokens, {about(planned)}{passes:,} passes of up to "
            f"{max(map(len, runs), default=0)} pictures, about {disk} in {folder}")


def about(planned: Plan) -> str:
    """What stands before a number of passes that is no plan but an estimate or a limit."""
    return "" if planned.passes else "usually about " if planned.usual else "at most "


def train(recipe: SelfDistillRecipe, say: Say = silent) -> dict:
    """Draw the recipe's pictures into recipe.out/self-distill and say how long it took."""
    check(recipe)
    backbone = load_backbone(recipe.backbone or recipe.out, recipe.device, recipe.dtype)
    backbone = backbone.resized(pixels(recipe.size))
    backbone.keep_prompts(recipe.out / PROMPTS)
    prompts = prompts_for(backbone, recipe.prompts)
    stop, folder = recipe.pictures or prompts.pictures, recipe.out / "self-distill"
    runs = gaps(range(recipe.first, stop), drawn_already(folder, backbone),
                at_once(recipe, backbone))
    say(cost(backbone, folder, runs, METHODS[recipe.method]))
    started, passes = time.perf_counter(), 0
    with tqdm(total=sum(map(len, runs)), desc="self-distill", unit="picture") as bar:
        for run in runs:
            passes += draw_into(folder, run, backbone, prompts, recipe)
            bar.update(len(run))
    return {"stage": "self-distill", "backbone": backbone.name, "pictures": stop,
            "method": recipe.method, "drawn_now": sum(map(len, runs)), "passes": passes,
            "seconds": time.perf_counter() - started}


def draw_into(folder: Path, run: range, backbone: Backbone, prompts: Prompts,
              recipe: SelfDistillRecipe) -> int:
    """Draw and write the pictures of one file, with all that recomputing their branches takes.

    Returns the passes that took.
    """
    texts = [prompts.of(i) for i in run]
    drawn = draw(backbone, texts, METHODS[recipe.method], recipe.seed + run.start,
                 recipe.cfg or None)
    tokens = drawn.tokens.to("cpu", number_type(backbone))
    ids = of_prompts([backbone.tokenize(text) for text in texts])
    write_safetensors({"tokens": tokens, **ids}, folder / f"{run.start:06d}.safetensors", {
        "format": FORMAT, "backbone_sha256": backbone.sha256, "size": json.dumps(backbone.size),
        "captions": json.dumps(texts), "method": recipe.method})
    return drawn.stats["passes"]


def pixels(text: str) -> tuple[int, int] | None:
    """"512x768" as (width, height); None for nothing."""
    if not text:
        return None
    width, _, height = text.lower().partition("x")
    if not (text.isascii() and width.isdecimal() and height.isdecimal()):
        raise SSDError(f"size {text!r}: write width x height, for example 512x512")
    return int(width), int(height)
