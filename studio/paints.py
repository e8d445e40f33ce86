"""Work for the Worker: paint the pixels of GLM-Image's pictures by the diffusion model beside it.

The picture in the history shows one colour for each code. The painted one is saved beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from ssd_core import SSDError
from ssd_core.backbones.glm_image import GlmImage
from ssd_core.output.drawing import method_of
from ssd_core.output.labels import label
from ssd_core.output.recipe import read_recipe, recipe_tokens
from ssd_core.output.words import drawn_words
from ssd_core.weights.diffusion import GUIDANCE, STEPS, load_painter, pipeline_folder
from ssd_core.weights.load import pick_dtype

from .history import Entry, History
from .jobs import Job
from .library import Library
from .results import DrawResult, Facts, Saved
from .runs import Work

PAINT = "paint"  # the title of its jobs


def is_paintable(recipe: Mapping | None) -> bool:
    """Whether a picture shows codes whose pixels can be painted."""
    return (recipe is not None and recipe["backbone"]["name"] == GlmImage.name
            and not {"painted", "stopped_rows"} & set(recipe))


def paint(library: Library, history: History, entry: Entry, metadata: bool = True) -> Work:
    """Paint a picture of the loaded GLM-Image, whose memory is freed first.

    The work returns a DrawResult. Raises SSDError for a picture that has no codes to paint.
    """
    recipe = read_recipe(entry.path)
    if not is_paintable(recipe):
        raise SSDError(f"{entry.path.name}: only whole pictures that GLM-Image drew can be "
                       "painted, and each only where it is not painted yet")
    if "sources" in recipe:
        raise SSDError(f"{entry.path.name}: it was drawn from source pictures, which the app does "
                       "not have: paint it by Finish in ComfyUI")
    loaded = library.as_now()
    pipeline_folder(weights_of(library, recipe))  # refused before the queue if it is incomplete

    def work(job: Job) -> DrawResult:
        loaded()
        path = weights_of(library, recipe)
        history.require_room(1, (entry.width, entry.height))
        with library.put_away():
            picture = painted(job, path, library.device, recipe)
        saved, method = Saved(), label(method_of(recipe))
        painting = {"seed": recipe["seed"], "steps": STEPS, "guidance": GUIDANCE}
        saved.take(history, picture, {**recipe, "painted": painting, "source": entry.id}, metadata,
                   Facts(method, recipe["seed"]))
        return DrawResult(method, recipe_tokens(recipe)[None], {}, saved)

    return work


def weights_of(library: Library, recipe: Mapping) -> Path:
    """A file of the loaded backbone; SSDError if another one drew the picture."""
    loaded = library.current
    if recipe["backbone"]["sha256"] != loaded.backbone.sha256:
        raise SSDError(f"the picture was drawn by another backbone, but {loaded.name} is loaded: "
                       "load the other one first")
    return loaded.backbone.files[0]


def painted(job: Job, path: Path, device: torch.device, recipe: Mapping) -> torch.Tensor:
    """The picture [H, W, 3]; sets the job's progress, and stops with it."""
    def on_step(done: int, total: int) -> None:
        job.progress = done / total
        job.check()

    dtype = pick_dtype("auto", device, small=False)
    painter = load_painter(path, str(device), dtype)
    return painter.paint(recipe_tokens(recipe)[None], [drawn_words(recipe).prompt],
                         recipe["seed"], STEPS, GUIDANCE, on_step)[0].cpu()
