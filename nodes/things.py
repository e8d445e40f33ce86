"""The things of pictures that nodes drew, for ComfyUI's page: what glows, and what a click offers.

They are read when the page asks for them, while nothing is queued and the weights are on the device
that draws. What is kept of a run is small, and refers to its backbone weakly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import torch
from server import PromptServer

from ..ssd_core.engine.edits.words import require_editable
from ..ssd_core.errors import SSDError
from .patchers import READING
from .running import NodeRun
from .weights import LoadedBackbone

MOST = 32  # pictures that are remembered
BUSY = {"busy": True}
NOTHING: dict[str, Any] = {"things": [], "scene": []}


class Queued(Exception):
    """A prompt asks for the machine."""


@dataclass(eq=False)
class DrawnPicture:
    """A finished picture: tokens [R, C] on the CPU, and what it was drawn from.

    old_prompt: its own words, or of an edit those of the picture that was edited. seeds: by node
    and widget, of its node and of all that it depends on.
    """

    backbone: ref[LoadedBackbone]
    tokens: torch.Tensor
    size: tuple[int, int]
    prompt: str
    old_prompt: str
    cfg: float
    seeds: Mapping[str, Mapping[str, int]]
    answers: dict[bool, dict] = field(default_factory=dict)  # in English and in Chinese

    def things(self, chinese: bool) -> dict:
        """What `touchable` tells of it, and what an edit needs to know; raises Queued."""
        loaded = self.backbone()
        if chinese not in self.answers and loaded is not None and is_at_hand(loaded):
            from ..ssd_core.output.touchable import touchable  # not at ComfyUI's start

            give_way()
            found = touchable(loaded.module.resized(self.size), self.tokens, self.prompt,
                              chinese=chinese, guidance=self.cfg, before_pass=give_way)
            self.answers[chinese] = {"prompt": self.prompt, "old_prompt": self.old_prompt,
                                  "seeds": self.seeds, **found}
        return self.answers.get(chinese, NOTHING)


_drawn: OrderedDict[str, DrawnPicture] = OrderedDict()  # by the run's id in its messages


def remember(runs: Sequence[NodeRun], hidden: Any) -> None:
    """Remember the picture of a node's run, if it drew one and its words can be changed.

    hidden: the node's hidden inputs.
    """
    run, request = runs[0], runs[0].request
    if len(runs) > 1 or request.pictures > 1 or run.preview is None or not run.result.finished:
        return
    try:
        require_editable(request.sized)
    except SSDError:
        return
    prompt, edit = request.words[0].prompt, request.drawing.edit
    _drawn[run.preview.run] = DrawnPicture(
        ref(run.model.backbone), run.result.tokens[0].cpu(), request.sized.size, prompt,
        edit.old_prompt if edit else prompt, request.sampling.cfg,
        seeds_before(hidden.prompt or {}, hidden.unique_id))
    while len(_drawn) > MOST:
        _drawn.popitem(last=False)


def seeds_before(prompt: Mapping[str, Any], node: str | None) -> dict[str, dict[str, int]]:
    """The seeds of a node and of all that it depends on, by node and widget, in a queued prompt."""
    seeds: dict[str, dict[str, int]] = {}
    left = [node]
    while left:
        each = left.pop()
        if each is None or each in seeds or each not in prompt:
            continue
        inputs = prompt[each].get("inputs", {})
        seeds[each] = {name: value for name, value in inputs.items()
                       if name.endswith("seed") and isinstance(value, int)}
        left += [value[0] for value in inputs.values() if isinstance(value, list) and value]
    return {each: found for each, found in seeds.items() if found}


def of(run: str, chinese: bool) -> dict:
    """The things of the picture of a run; `BUSY` while prompts wait, `NOTHING` if it is unknown or
    its weights are elsewhere.
    """
    if run not in _drawn:
        return NOTHING
    try:
        with READING:
            return _drawn[run].things(chinese)
    except Queued:
        return BUSY


def give_way() -> None:
    if PromptServer.instance.prompt_queue.get_tasks_remaining():
        raise Queued


def is_at_hand(loaded: LoadedBackbone) -> bool:
    """Whether all weights are on the device that draws, and stay there."""
    return loaded.module.offloader is None and not loaded.patcher.waiting and all(
        patcher.model.device == patcher.load_device for patcher in loaded.patchers)
