"""A sketch of the next picture while its words are typed: by *Fast*, shown, and never saved.

It has the seed and the words that Draw will use. Its job gives way to all others.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

import torch

from ssd_core import SSDError
from ssd_core.output.choices import SPEEDS
from ssd_core.output.drawing import Drawing
from ssd_core.runs.live import LiveRun
from ssd_core.runs.request import Request, identity

from .alternatives import with_alternative
from .jobs import TO_RUNS, Job
from .library import Library
from .plans import time_text
from .running import advance, memory_errors
from .runs import Work
from .services import Services
from .settings import checked_words, request_of
from .words import say

SKETCH = "sketch"  # the title of its jobs
LONGEST = 1.5  # s that a sketch may take on this machine


@dataclass(frozen=True)
class SketchCost:
    """What a sketch takes. seconds: None if unknown. problem: why none is drawn, in one line."""

    seconds: float | None
    problem: str | None


def sketched(drawing: Drawing) -> Drawing:
    """The drawing of a sketch of the first picture of another one."""
    return replace(with_alternative(drawing), method=SPEEDS["fast"].method, pictures=1)


def cost_of(request: Request, language: str) -> SketchCost:
    """What a sketch takes, by the step times of this machine."""
    cost = request.tuning.cost
    if cost is None:
        return SketchCost(None, say(language, "sketch_unknown"))
    if cost.seconds > LONGEST:
        return SketchCost(cost.seconds, say(language, "sketch_slow",
                                            time=time_text(cost.seconds, language)))
    return SketchCost(cost.seconds, None)


def sketch_cost(services: Services, drawing: Drawing, language: str) -> SketchCost:
    """What a sketch of a drawing takes; its problem is empty if the drawing fits no model."""
    loaded = services.library.current
    try:
        return cost_of(request_of(sketched(drawing), loaded.backbone, loaded.heads), language)
    except SSDError:
        return SketchCost(None, "")


def sketch(services: Services, owner: str, drawing: Drawing, language: str) -> Job:
    """Queue a sketch in place of the visitor's earlier ones; or return the earlier one that shows
    the same picture.

    Raises SSDError for prompts that no method would take, and where it would take too long.
    """
    own, worker, loaded = sketched(drawing), services.worker, services.library.current
    request = request_of(own, loaded.backbone, loaded.heads)
    checked_words(own, loaded.backbone)
    if problem := cost_of(request, language).problem:
        raise SSDError(problem)
    key, earlier = identity(request), worker.of(owner, SKETCH)
    for job in earlier:
        if job.order == key and job.state in ("running", "done") and not job.cancelled:
            return job
    for job in earlier:
        job.cancel()
    worker.forget(*earlier)
    return worker.submit(SKETCH, drawn(services.library, own), owner, order=key, gives_way=TO_RUNS)


def drawn(library: Library, own: Drawing) -> Work:
    """Draw a sketch and show it; nothing is kept of it but the messages of its job."""
    loaded = library.as_now()

    def work(job: Job) -> None:
        now = loaded()
        run = LiveRun(request_of(own, now.backbone, now.heads), send=job.tell)
        with memory_errors(), closing(run):
            advance(job, run)
            run.finish(torch.stack([picture.pixels for picture in run.result.pictures()]))

    return work
