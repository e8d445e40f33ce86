"""Drafts that learn from the pictures of the history: what there is to learn from, and the jobs.

A lesson that somebody asks for is a job like any other. One that begins by itself, after a while in
which nothing ran, gives way to all other jobs. Both go on later where they were stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.engine.heads import stored_heads
from ssd_core.state_files import StateFile
from ssd_core.train import BOTH, KINDS, ROW
from ssd_core.train.checkpoints import Stopped
from ssd_core.train.expected import kind_that_fits, learning_bytes, learning_seconds
from ssd_core.train.heads import HeadsRecipe, Run, learn, prepare
from ssd_core.train.own_pictures import LEAST, OwnPictures, new_pictures, own_pictures
from ssd_core.weights.memory import is_out_of_memory

from .history import History
from .jobs import TO_ALL, TO_NOBODY, Cancelled, Job, Worker
from .library import Library, Loaded, free_memory

LEARN = "learn"  # the title of its jobs
NOTES = "learning.json"  # beside the pictures
ENOUGH_NEW = 16  # pictures since the last lesson, from which one begins by itself
OUT_OF_MEMORY = ("out of memory: draft heads cannot learn beside this backbone; load it in int8, "
                 "or close other programs")


@dataclass(frozen=True)
class Material:
    """What the drafts of a model can learn from. name: of the model, in the library.

    own: None if they cannot learn here, for the `problem`, which is the key of a text. new: how
    many pictures there were not yet at the last lesson. begun: whether a lesson was stopped.
    seconds: that a lesson takes; None while something runs. bytes: that it needs, where they are
    not free.
    """

    name: str
    own: OwnPictures | None
    new: int = 0
    begun: bool = False
    problem: str = ""
    seconds: float | None = None
    bytes: int = 0

    @property
    def enough(self) -> bool:
        return self.own is not None and len(self.own) >= LEAST


@dataclass(frozen=True)
class Learned:
    """What came of a lesson. judged: by kind, as `Judgement.to_json`. saved: the kinds now in use.
    """

    judged: Mapping[str, Mapping]
    saved: Sequence[str]


def fitting(backbone: Backbone, recipe: HeadsRecipe) -> HeadsRecipe | None:
    """The recipe for the kinds of drafts that have room to learn; None if none has."""
    kind = kind_that_fits(backbone, recipe)
    return None if kind is None else replace(recipe, kind=kind)


class Progress:
    """Tells a job how far its lesson is, and the lesson whether to go on."""

    def __init__(self, job: Job, steps: int) -> None:
        self.job, self.steps = job, steps
        self._first: tuple[float, int] | None = None  # when so many steps were done

    def __call__(self, done: int) -> bool:
        began, first = self._first = self._first or (time.monotonic(), done)
        if done > first:
            each = (time.monotonic() - began) / (done - first)
            self.job.seconds_left = each * (self.steps - done)
        self.job.progress = done / self.steps
        return not self.job.cancelled


class Learning:
    """The lessons of an app. latest: the last one that began by itself."""

    def __init__(self, worker: Worker, library: Library, history: History) -> None:
        self.worker, self.library, self.history = worker, library, history
        self.latest: Job | None = None
        self._notes = StateFile(history.folder / NOTES, lambda raw: dict(raw.items()), dict, dict)
        self._looked_at: tuple | None = None  # the pictures when there was nothing to do

    # What there is

    def material(self) -> Material:
        """What the drafts of the loaded model can learn from."""
        name, backbone = self.library.current.name, self.library.current.backbone
        if self.library.are_drafts_fixed:
            return Material(name, None, problem="learn_fixed")
        if backbone.sketch() is not None:
            return Material(name, None, problem="learn_sketch")
        whole = self._recipe(backbone)
        rests = self.worker.running is None  # else memory and time are taken
        recipe = fitting(backbone, whole) if rests else whole
        if recipe is None:
            return Material(name, None, problem="learn_no_room",
                            bytes=learning_bytes(backbone, replace(whole, kind=ROW), True))
        folder = self.history.folder
        own = own_pictures([folder] if folder.is_dir() else [], backbone)
        begun = any(recipe.file.with_suffix(end).exists() for end in (".ckpt", ".row.ckpt"))
        seconds = (learning_seconds(backbone, recipe, len(own))
                   if rests and len(own) >= LEAST else None)
        return Material(name, own, new_pictures(backbone, KINDS[recipe.kind], len(own)), begun,
                        seconds=seconds)

    def _recipe(self, backbone: Backbone) -> HeadsRecipe:
        path = self.library.registry.backbone_path(self.library.current.name)
        return HeadsRecipe(self.library.registry.drafts_file(path), str(path),
                           pictures_from=[str(self.history.folder)], kind=BOTH,
                           device=str(backbone.device))

    # What is kept between two starts of the app

    @property
    def while_idle(self) -> bool:
        """Whether lessons begin by themselves."""
        return self._notes.read().get("while_idle") is True

    def switch(self, on: bool) -> None:
        """Let lessons begin by themselves, or end the one that did."""
        self._notes.change(lambda notes: {**notes, "while_idle": on})
        self._looked_at = None
        if not on and self.latest is not None:
            self.latest.cancel()

    # Lessons

    def start(self, owner: str) -> Job:
        """Queue a lesson, or return the visitor's own that waits or runs; SSDError if there is too
        little to learn from.
        """
        going = [job for job in self.worker.of(owner, LEARN) if not job.over]
        if going:
            return going[0]
        material = self.material()
        if material.own is None:
            raise SSDError(f"the drafts of {material.name} cannot learn in this app: see "
                           "Models for the reason")
        if not material.enough:
            raise SSDError(f"{len(material.own)} pictures of {material.name} to learn from, at "
                           f"least {LEAST} are needed: draw some more")
        return self.worker.submit(LEARN, self._work(), owner, gives_way=TO_NOBODY)

    def when_rested(self) -> None:
        """Begin a lesson, if that is switched on and enough was drawn since the last one.

        Called by the worker when nothing has run for a while.
        """
        if not self.while_idle:
            return
        if self.latest is not None and self.latest.state == "cancelled":
            self._looked_at = None
        with suppress(SSDError):  # another model is being loaded, or no more jobs may wait
            if (pictures := self._stamp()) == self._looked_at:
                return
            self._looked_at = pictures
            material = self.material()
            if material.enough and material.new >= ENOUGH_NEW:
                self.latest = self.worker.submit(LEARN, self._work(), gives_way=TO_ALL)

    def _stamp(self) -> tuple:
        """Changes when a picture is saved or deleted, or another model is loaded."""
        folder = self.history.folder
        with suppress(OSError):
            return (self.library.current.identity[0],
                    *sorted(path.stat().st_mtime_ns for path in (folder, *folder.iterdir())
                            if path.is_dir()))
        return ()

    def _work(self) -> Callable[[Job], Learned]:
        loaded = self.library.as_now()

        def work(job: Job) -> Learned:
            learned = None
            with suppress(Stopped):
                learned = self._lesson(job, loaded())
            free_memory()  # now that nothing refers to the lesson
            if learned is None:
                raise Cancelled
            return learned

        return work

    def _lesson(self, job: Job, loaded: Loaded) -> Learned:
        backbone = loaded.backbone
        backbone.session.release()
        run = self._prepared(loaded)
        if job.cancelled:
            raise Stopped
        result = learn(run, Progress(job, run.steps))
        if result["saved"]:
            self.library.renew_drafts()
        return Learned(result["judged"], result["saved"])

    def _prepared(self, loaded: Loaded) -> Run:
        file, backbone = loaded.heads_file, loaded.backbone
        current = stored_heads(file, backbone).float() if file else None
        if (recipe := fitting(backbone, self._recipe(backbone))) is None:
            raise SSDError(OUT_OF_MEMORY)
        try:
            return prepare(recipe, backbone, current)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise SSDError(OUT_OF_MEMORY) from None
