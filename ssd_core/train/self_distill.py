"""Draws pictures with a backbone, as training data for its draft heads (stage 3).

The pictures are AR's with the backbone's own guidance. Every batch is a file, so that an
interrupted run can continue, and several workers or machines can share the work. `exact` draws the
same pictures in fewer passes, each over more cells: cheaper in small batches.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ..backbones.base import Backbone
from ..backbones.llamagen import ClassLlamaGen
from ..backbones.postcard import Postcard
from ..backbones.postcard.words.captions import fresh_caption
from ..engine.decode import generate, plan
from ..engine.events import Finished, Plan, finished
from ..engine.methods import AR, Exact, Method
from ..engine.sketches import prompts_after
from ..errors import SSDError
from ..files import read_safetensors, safetensors_bytes, user_path
from ..model.grid import size_of
from ..model.knobs import flag
from ..model.sampling import Sampling
from ..output.knobs import check_pictures
from ..runs.batch.prompts import prompts_alone, read_prompts
from ..runs.batch.queue import work
from ..runs.batch.workers import (
    Exists,
    LoadedModels,
    ModelSpec,
    Place,
    WorkerOptions,
    crew_of,
    fitting_batch,
)
from ..weights.find import portable
from ..weights.fit import run_bytes
from .common import REQUIRED, Say, gigabytes, require_least, silent
from .picture_files import FORMAT, KEPT_PROMPTS, drawn_already, gaps, of_prompts

PROMPT_SEED = 2_000_000_000  # captions for self-distillation come from separate scenes
POSTCARDS, EACH_CLASS = 5184, 5  # default numbers of pictures
MOST_AT_ONCE = 64
ASSUMED_FREE = 8 << 30  # bytes, if the free memory is unknown
METHODS: dict[str, Method] = {method.name: method for method in (AR(), Exact())}


@dataclass(frozen=True)
class SelfDistillRecipe(WorkerOptions):
    """Pictures first .. pictures-1, so that several processes or machines can share the work."""

    out: Path = flag(REQUIRED, "Folder; the pictures go to its self-distill.")
    backbone: str = flag("", "Bundled name, file or folder. Default: --out.")
    prompts: str = flag("", "Text file, one prompt a line. Default: captions of postcards, or "
                            "the classes of a backbone that draws classes.")
    pictures: int = flag(0, "Picture i has prompt i and starts again behind the last. 0: one a "
                            f"prompt; {POSTCARDS} postcards; {EACH_CLASS} a class.")
    first: int = flag(0, "Number of the first picture.")
    method: str = flag(AR.name, "ar or exact, which draws AR's pictures in fewer but larger "
                                "passes: faster in small batches. In half precision a token may "
                                "differ by rounding.")
    batch: int = flag(0, f"Pictures at once. 0: up to {MOST_AT_ONCE}, as memory allows.")
    size: str = flag("", "WxH in pixels. Default: the backbone's own.")
    cfg: float = flag(0.0, "Guidance. 0: the backbone's own.")
    seed: int = flag(0, "Picture i uses seed + i.")
    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtype: str = flag("auto", "auto, fp32, bf16, fp16, int8, int4.")


@dataclass(frozen=True)
class Prompts:
    """The prompt of picture i, and the default number of pictures."""

    of: Callable[[int], str]
    pictures: int


def prompts_for(backbone: Backbone, path: str) -> Prompts:
    """Return prompts from a file, or the default prompts of a backbone."""
    if path:
        lines = prompts_alone(read_prompts(user_path(path), backbone))
        return Prompts(lambda i: lines[i % len(lines)], len(lines))
    if isinstance(backbone, Postcard):
        return Prompts(lambda i: fresh_caption(PROMPT_SEED + i, 0), POSTCARDS)
    if isinstance(backbone, ClassLlamaGen):
        return Prompts(lambda i: str(i % backbone.classes), EACH_CLASS * backbone.classes)
    raise SSDError(f"{backbone.name} needs prompts to draw from: give --prompts FILE.txt with one "
                   "a line, such as captions of the kind you will ask for")


def number_type(backbone: Backbone) -> torch.dtype:
    """Return the smallest integer type that holds the codes."""
    return torch.int16 if backbone.codes <= 1 << 15 else torch.int32


def at_once(recipe: SelfDistillRecipe, backbone: Backbone, place: Place) -> int:
    """Return the batch size: the recipe's, else a power of two that fits into free memory."""
    if recipe.batch:
        return recipe.batch
    free = place.free or ASSUMED_FREE
    guided = (recipe.cfg or backbone.preset.cfg) != 1
    method = METHODS[recipe.method].for_device(backbone.grid, place.device)
    cells = method.pass_width(backbone.grid)
    return fitting_batch(MOST_AT_ONCE, free, lambda n: run_bytes(backbone, n, guided, cells))


def check(recipe: SelfDistillRecipe) -> None:
    """Raise SSDError for invalid values, before anything is loaded."""
    require_least(recipe, pictures=0, first=0, batch=0, seed=0)
    if recipe.batch:
        check_pictures(recipe.batch, "batch")
    if recipe.method not in METHODS:
        raise SSDError(f"method {recipe.method!r}: choose one of {', '.join(METHODS)}")
    sampling_of(recipe)


def sampling_of(recipe: SelfDistillRecipe) -> Sampling:
    """Return the sampling of picture 0; guidance 0 is the backbone's own."""
    sampling = Sampling(seed=recipe.seed)
    return replace(sampling, cfg=recipe.cfg) if recipe.cfg else sampling


def cost(backbone: Backbone, folder: Path, runs: list[range], method: Method) -> str:
    """Describe in one line what remains to be drawn."""
    count, grid = sum(map(len, runs)), backbone.grid
    planned = plan(backbone, method)
    passes = len(runs) * (planned.passes or planned.prior_passes or planned.passes_max)
    tokens = count * grid.cells
    width, height = backbone.smallest.size
    disk = gigabytes(tokens * number_type(backbone).itemsize)
    return (f"{backbone.name} draws {count:,} pictures of {width}x{height} px by {method.name}: "
            f"{tokens:,} tokens, {about(planned)}{passes:,} passes of up to "
            f"{max(map(len, runs), default=0)} pictures, about {disk} in {folder}")


def about(planned: Plan) -> str:
    """Return the words before a number of passes that is an estimate or an upper limit."""
    return "" if planned.passes else "usually about " if planned.prior_passes else "at most "


@dataclass(frozen=True)
class DistillTask:
    """The pictures of one file, with everything needed to draw them."""

    first: int
    texts: tuple[str, ...]
    method: Method
    sampling: Sampling

    @property
    def name(self) -> str:
        return f"{self.first:06d}.safetensors"

    @property
    def count(self) -> int:
        return len(self.texts)

    def left(self, exists: Exists) -> DistillTask | None:
        return None if exists(self.name) else self

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
        backbone = loaded.backbone
        drawn = finished(generate(backbone, self.texts, self.method, sampling=self.sampling))
        tokens = drawn.tokens.to("cpu", number_type(backbone))
        ids = of_prompts(prompts_with(backbone, self.texts, drawn))
        return {self.name: safetensors_bytes({"tokens": tokens, **ids}, {
            "format": FORMAT, "backbone_sha256": backbone.sha256,
            "size": json.dumps(backbone.smallest.size), "captions": json.dumps(self.texts),
            "method": self.method.name, "passes": str(drawn.stats["passes"])})}


def prompts_with(backbone: Backbone, texts: Sequence[str], drawn: Finished) -> list[list[int]]:
    """The ids of the prompts, each with the picture's sketch if the backbone draws one first."""
    prompts = [backbone.tokenize(text) for text in texts]
    return prompts if drawn.sketch is None else prompts_after(backbone, prompts, drawn.sketch)


def tasks(recipe: SelfDistillRecipe, runs: Sequence[range], prompts: Prompts) -> list[DistillTask]:
    """Return one task for each range of picture numbers."""
    first = sampling_of(recipe)
    return [DistillTask(run.start, tuple(prompts.of(i) for i in run), METHODS[recipe.method],
                        first.offset_seed(run.start)) for run in runs]


def train(recipe: SelfDistillRecipe, say: Say = silent) -> dict:
    """Draw the recipe's pictures into recipe.out/self-distill and return counts and seconds."""
    check(recipe)
    models = models_of(recipe)
    loaded = (replace(models, device="meta") if recipe.apart else models).load()
    backbone, prompts = loaded.backbone, prompts_for(loaded.backbone, recipe.prompts)
    stop, folder = recipe.pictures or prompts.pictures, recipe.out / "self-distill"
    drawn = drawn_already(folder, backbone)
    with crew_of(recipe, loaded, models, say) as crew:
        runs = gaps(range(recipe.first, stop), drawn, at_once(recipe, backbone, crew.place))
        say(cost(backbone, folder, runs, METHODS[recipe.method]))
        started, mine = time.perf_counter(), tasks(recipe, runs, prompts)
        count, seconds = work(mine, folder, crew, "self-distill"), time.perf_counter() - started
    return {"stage": "self-distill", "backbone": backbone.name, "pictures": stop,
            "method": recipe.method, "drawn_now": count,
            "passes": sum(passes_of(folder / task.name) for task in mine), "seconds": seconds}


def models_of(recipe: SelfDistillRecipe) -> ModelSpec:
    return ModelSpec(portable(recipe.backbone or recipe.out), None, size_of(recipe.size),
                     str((recipe.out / KEPT_PROMPTS).absolute()), device=recipe.device,
                     dtype=recipe.dtype)


def passes_of(path: Path) -> int:
    """Forward passes that a file of pictures took."""
    return int(read_safetensors(path, FORMAT)[1]["passes"])
