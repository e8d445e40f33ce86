"""Endpoints of drafts that learn from one's own pictures: what there is, lessons, passes over time.
"""

from __future__ import annotations

import torch

from ssd_core.backbones.base import Backbone
from ssd_core.engine.methods import AR
from ssd_core.engine.own_runs import place_of, series_of
from ssd_core.train.own_pictures import COPY, LEAST, OTHER, PARTLY, PLAIN, WORDS
from ssd_core.train.versions import SHOWN
from ssd_core.weights.fit import gib

from .calls import Call
from .learning import Material
from .plans import time_text
from .views import job_view
from .words import method_title, say

REASONS = {OTHER: "learn_other", PLAIN: "learn_plain", PARTLY: "learn_partly", COPY: "learn_copy",
           WORDS: "learn_words"}


def learning(call: Call) -> dict:
    """What the drafts of the loaded model can learn from, and what its last pictures took."""
    call.require_local()
    services, language = call.services, call.language
    material = services.learning.material()
    own, loaded = material.own, services.library.current
    text = material_text(material, loaded.backbone.device, language)
    return {"name": material.name, "text": text,
            "blocked": own is None, "can": material.enough, "begun": material.begun,
            "pictures": 0 if own is None else len(own), "new": material.new,
            "left_out": [] if own is None else [
                {"why": say(language, REASONS[reason]), "count": count}
                for reason, count in own.left_out.items()],
            "drafts": loaded.heads and loaded.heads.sha256,
            "passes": passes(loaded.backbone, language), **idle(call)}


def material_text(material: Material, device: torch.device, language: str) -> str:
    """What there is to learn from in a sentence or two, or why drafts cannot learn."""
    name, own = material.name, material.own
    if own is None:
        return say(language, material.problem, name=name, bytes=gib(material.bytes))
    if not material.enough:
        return say(language, "learn_few", name=name, least=LEAST, count=len(own),
                   more=LEAST - len(own))
    key = "learn_from" if material.new == len(own) else (
        "learn_new" if material.new else "learn_none_new")
    return say(language, key, name=name, count=len(own), new=material.new,
               time=learning_time(material.seconds, device, language))


def learning_time(seconds: float | None, device: torch.device, language: str) -> str:
    if seconds is None:
        return ""
    return say(language, "learn_time_cpu" if device.type == "cpu" else "learn_time",
               time=time_text(seconds, language))


def passes(backbone: Backbone, language: str) -> list[dict]:
    """What the last pictures took on this device, the latest last, without the reference's."""
    here = place_of(backbone)
    return [{"quality": method_title(method, language), "passes": drawn.passes,
             "seconds": drawn.seconds, "drafts": drawn.heads[:SHOWN]}
            for method, drawn in series_of(backbone)
            if drawn.place == here and method != AR.name]


def start(call: Call) -> dict:
    """Queue a lesson, which goes on where the last one was stopped."""
    call.require_local()
    return job_view(call.services, call.services.learning.start(call.owner), call.language)


def idle(call: Call) -> dict:
    """Whether lessons begin by themselves, and the last one that did."""
    call.require_local()
    learning = call.services.learning
    return {"while_idle": learning.while_idle, "latest": None if learning.latest is None else
            job_view(call.services, learning.latest, call.language)}


def switch(call: Call) -> dict:
    """Let lessons begin by themselves, or not."""
    call.require_local()
    call.services.learning.switch(call.flag("on", True))
    return idle(call)
