"""Draft heads that learn inside ComfyUI: their pictures, memory, progress, interrupt and report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import comfy.model_management as mm
import torch
from comfy.utils import ProgressBar

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.engine.heads import stored_heads
from ..ssd_core.engine.tuning import duration
from ..ssd_core.errors import SSDError
from ..ssd_core.train import BOTH, ROW, heads
from ..ssd_core.train.checkpoints import Stopped
from ..ssd_core.train.expected import kind_that_fits, learning_bytes, learning_seconds
from ..ssd_core.train.own_pictures import (
    LEAST,
    PLAIN,
    OwnPictures,
    new_pictures,
    own_pictures,
)
from ..ssd_core.weights.find import is_heads
from . import folders, selftesting, weights
from .inputs import DRAFTS
from .language import show_text
from .patchers import READING
from .types import LoadedModel

CHECKPOINTS = (".ckpt", ".row.ckpt")
REMEDY = "choose kind 'row drafter', or dtype int8 in Load Model"


@dataclass(frozen=True)
class Lessons:
    """What drafts of a model are to learn: the recipe, and the pictures that there are."""

    model: LoadedModel
    recipe: heads.HeadsRecipe
    own: OwnPictures

    @classmethod
    def of(cls, model: LoadedModel, folder: str, kind: str, epochs: int) -> Lessons:
        recipe = with_room(recipe_of(model.backbone.path, folder, kind, epochs), model.backbone)
        return cls(model, recipe, own_pictures(recipe.pictures_from or (), model.module))

    @property
    def kinds(self) -> tuple[str, ...]:
        return heads.KINDS[self.recipe.kind]

    @property
    def too_few(self) -> str:
        """A line if there are too few pictures to learn from, else empty."""
        try:
            self.own.require_enough(self.model.module)
        except SSDError as error:
            return str(error)
        return ""

    @property
    def begun(self) -> bool:
        """Whether an interrupted run left a checkpoint."""
        return any(self.recipe.file.with_suffix(end).exists() for end in CHECKPOINTS)

    @property
    def new_pictures(self) -> int:
        """How many more there are than when these drafts last learned."""
        return new_pictures(self.model.module, self.kinds, len(self.own))

    def due(self, wanted: int) -> bool:
        """Whether a run was interrupted, or there are enough new pictures: any, without drafts."""
        enough = 1 if self.drafts().heads is None else max(1, min(wanted, len(self.own)))
        return self.begun or self.new_pictures >= enough

    def drafts(self) -> LoadedModel:
        """The model with the drafts that learned before, or as it came if there are none."""
        if not is_heads(self.recipe.file):
            return self.model
        try:
            return replace(self.model, heads=weights.heads(self.recipe.file, self.model.backbone))
        except SSDError:  # of other weights under the same name
            return self.model


def recipe_of(backbone: Path, folder: str, kind: str, epochs: int) -> heads.HeadsRecipe:
    return heads.HeadsRecipe(folders.registry().drafts_file(backbone), kind=DRAFTS[kind],
                             pictures_from=[str(folders.pictures_folder(folder))], epochs=epochs)


def with_room(recipe: heads.HeadsRecipe, backbone: weights.LoadedBackbone) -> heads.HeadsRecipe:
    """The recipe for both kinds of drafts, or for the row drafter if only that has room to learn.
    """
    if recipe.kind != BOTH:
        return recipe
    kind = kind_that_fits(backbone.module, recipe, room_beside(backbone))
    return replace(recipe, kind=kind or ROW)


def room_beside(backbone: weights.LoadedBackbone) -> int:
    """Bytes that are free beside a backbone's weights once ComfyUI has unloaded all other models.
    """
    device = mm.get_torch_device()
    there = backbone.patcher.model_size() if device.type != "cpu" else 0  # loaded already
    return int(weights.room_on(device)) - there


class Watch:
    """ComfyUI's progress bar and a line on the node, step by step; it also looks for interrupts.
    """

    def __init__(self, node: str | None, steps: int) -> None:
        self.node, self.steps = node, steps
        self.bar, self.started = ProgressBar(steps, node_id=node), time.monotonic()
        self.first: int | None = None
        self.interrupted = False  # ComfyUI tells it once

    def __call__(self, done: int) -> bool:
        """Note that so many steps are done; returns whether to go on."""
        if self.first is None:
            self.started, self.first = time.monotonic(), done
        try:
            mm.throw_exception_if_processing_interrupted()
            self.bar.update_absolute(done, self.steps)  # ComfyUI's own bar looks, too
        except mm.InterruptProcessingException:
            self.interrupted = True
        if self.interrupted:
            return False
        show_text(self.node, self.line(done, self.first))
        return True

    def line(self, done: int, first: int) -> str:
        """What the node says after so many steps; first: those before the first one here."""
        if done == self.steps:
            return "Measuring what the drafts learned"
        if done == first:
            return f"Step {done} of {self.steps}"
        left = (time.monotonic() - self.started) / (done - first) * (self.steps - done)
        return f"Step {done} of {self.steps}, about {duration(left)} left"


def learn_if_due(lessons: Lessons, wanted: int, node: str | None) -> str:
    """Let the drafts learn if there are so many new pictures; returns a report."""
    if lessons.too_few:
        return "\n".join([lessons.too_few, *left_out(lessons.own)])
    if lessons.due(wanted):
        return learn(lessons, node)
    return (f"{lessons.new_pictures} new pictures since these drafts last learned; they learn "
            f"again from {max(1, wanted)} on (new_pictures).")


def learn(lessons: Lessons, node: str | None) -> str:
    """Let the drafts learn, with ComfyUI's memory and progress bar; returns a report.

    After an interrupt the next run goes on where this one was.
    """
    loaded, begun = lessons.model.backbone, time.monotonic()
    loaded.module.session.release()  # what the last run left on the device
    room = learning_bytes(loaded.module, lessons.recipe)
    if room > room_beside(loaded):
        room = learning_bytes(loaded.module, lessons.recipe, one_by_one=True)
    with weights.moved([loaded.patcher], [loaded], room, REMEDY):  # not the codec
        result = learned(lessons, node)
    if result is None:
        show_text(node, "Interrupted. The next run goes on where this one was.")
        raise mm.InterruptProcessingException()
    return report(lessons, result, time.monotonic() - begun)


def learned(lessons: Lessons, node: str | None) -> dict | None:
    """The result of the training, None after an interrupt; its memory is free afterwards."""
    module, current = lessons.model.module, lessons.drafts().heads
    with torch.inference_mode(False), torch.enable_grad():  # ComfyUI's nodes run without
        before = stored_heads(current.path, module).float() if current else None
        run = heads.prepare(lessons.recipe, module, before)
        try:
            return heads.learn(run, Watch(node, run.steps))
        except Stopped:
            return None


# What the node says


def report(lessons: Lessons, result: dict, seconds: float) -> str:
    """What the drafts accept now, and what they learned from."""
    lines = list(result["sentences"])
    if result["saved"]:
        lines.append("Load Model finds them.")
    lines.append(f"Learned in {duration(seconds)} from {len(lessons.own) - result['held_out']:,} "
                 f"pictures; of all, {result['approximate']:,} are by approximate methods.")
    return "\n".join([*lines, *left_out(lessons.own)])


def left_out(own: OwnPictures) -> Iterator[str]:
    """A line for each reason why PNGs were left out."""
    for reason, count in own.left_out.items():
        remedy = ": Save Image (SSD) saves them with the picture" if reason == PLAIN else ""
        yield f"Left out: {count:,} {reason}{remedy}."


def outlook(name: str, folder: str, kind: str, epochs: int,
            described: Backbone | None) -> str:
    """How many pictures there are for the model of this name, and how long learning would take.

    described: the model without the values of its weights; only a loaded one knows its hash.
    """
    model = folders.registry().listed(name)
    loaded = next((each for each in list(weights.LOADED.values()) if model is not None and
                   isinstance(each, weights.LoadedBackbone) and each.path == model.file), None)
    if described is None or loaded is None:
        return "How many pictures there are to learn from is said here once the model is loaded."
    recipe = with_room(recipe_of(loaded.path, folder, kind, epochs), loaded)
    view = copy(described)  # the loaded one may be drawing
    view.sha256 = loaded.module.sha256
    own = own_pictures(recipe.pictures_from or (), view)
    if len(own) < LEAST:
        return f"{len(own)} pictures of {view.name}: drafts learn from {LEAST} or more."
    text = f"{len(own):,} pictures of {view.name}: drafts could learn from them"
    if not selftesting.is_quiet():  # it is measured how fast the device is
        return f"{text}."
    device = mm.get_torch_device()
    with READING:
        seconds = learning_seconds(loaded.module, recipe, len(own), device)
    where = "processor" if device.type == "cpu" else "card"
    return f"{text}, about {duration(seconds)} on this {where}."
