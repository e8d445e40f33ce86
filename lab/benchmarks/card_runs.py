"""Parts of card_session.py about whole pictures: graphs that stay, their memory and their captures.

Graphs are captured as in any run. Only the result of the check of first replays is not acted on,
because it must not stop what is timed here; the worst difference is in the table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from card_kernels import Row
from card_rules import NOT_BACK
from card_tools import Card

from ssd_core import Sampling
from ssd_core.backbones.base import Backbone
from ssd_core.engine import decode, graphs
from ssd_core.engine.decode import PreparedRun, prepare
from ssd_core.engine.events import Finished, Pass
from ssd_core.engine.graphs import CudaRecorder, GraphRunner, Recorder, Work
from ssd_core.engine.methods import AR, SSD, Exact, Method, Rolling
from ssd_core.measure.launches import CountedGraphs, Launches
from ssd_core.measure.machine import read_bytes

SUBJECTS: dict[str, tuple[Method, ...]] = {
    "Janus-Pro-7B": (AR(), SSD(), Exact(48), Rolling()),
    "Lumina-mGPT-7B-768": (SSD(), Rolling()),
    "Janus-Pro-1B": (AR(), SSD(), Rolling()),
    "Emu3-Gen": (SSD(),)}
PICTURES = ((50, 1), (12, 2), (30, 3))  # words of the prompt, and seed
EAGER, ANEW, STAY = "eager", "graphs of the run", "graphs that stay"
WAYS = {EAGER: 1, ANEW: 2, STAY: 3}  # pictures of each, the last ones of PICTURES
CAUSES = ("first call", "record", "call again", "check")  # of the seconds of a capture
VARIABLE, ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"


class Captures:
    """Adds up the seconds of captures by cause, and notes the worst first replay.

    CAUSES: the first call of a kind, under a dispatch mode that notes what it writes to; recording;
    the call beside which a replay is checked; the check around it, with the replay.
    """

    def __init__(self, card: Card) -> None:
        self.card, self.seconds, self.worst = card, Counter[str](), 0.0
        self._check = graphs.checked

    def again(self) -> None:
        self.seconds, self.worst = Counter[str](), 0.0

    def timed(self, cause: str, work: Work) -> Any:
        began = self.card.now()
        result = work()
        self.seconds[cause] += self.card.now() - began
        return result

    def runner(self, backbone: Backbone) -> GraphRunner:
        """In place of `graphs.runner`; on a CPU a replay repeats the call."""
        recorder: Recorder = (CudaRecorder(backbone.device) if self.card.real
                              else CountedGraphs(Launches()))
        return GraphRunner(TimedRecorder(self, recorder))

    def checked(self, replay: Work, call: Work, buffers: Sequence[torch.Tensor], few: bool = False
                ) -> tuple[Any, float]:
        """In place of `first_replay.checked`: its result, and no difference."""
        before = self.seconds["call again"]
        result, apart = self.timed("check", lambda: self._check(
            replay, lambda: self.timed("call again", call), buffers, few))
        self.seconds["check"] -= self.seconds["call again"] - before
        self.worst = max(self.worst, apart)
        return result, 0.0


@dataclass
class TimedRecorder:
    """A recorder whose seconds are counted."""

    captures: Captures
    recorder: Recorder

    @property
    def nbytes(self) -> int:
        return self.recorder.nbytes

    def warm_up(self, work: Work) -> Any:
        return self.captures.timed("first call", lambda: self.recorder.warm_up(work))

    def record(self, work: Work) -> Work:
        return self.captures.timed("record", lambda: self.recorder.record(work))

    def close(self) -> None:
        self.recorder.close()


@contextmanager
def watched(card: Card) -> Iterator[Captures]:
    """Lets all runs have graphs, and watches their captures."""
    captures = Captures(card)
    with (patch.object(decode, "runner", captures.runner),
          patch.object(graphs, "checked", captures.checked)):
        yield captures


def runs(card: Card, subjects: Sequence[str] = tuple(SUBJECTS)) -> Iterator[Row]:
    """What do graphs that stay bring: seconds of the first and later pictures, memory, captures?

    Decides whether sessions stay as they are: if SSD's later pictures on Janus-Pro-7B take less
    than 0.6 of the seconds that they take with graphs of their run, and memory comes back.
    """
    for name in subjects:
        yield from runs_of(card, name)
        card.tidy()


def runs_of(card: Card, name: str) -> Iterator[Row]:
    """The rows of one backbone."""
    backbone, heads = card.backbone(name)
    with watched(card) as captures:
        for method in SUBJECTS[name]:
            runs = [prepare(backbone, "a " * words, method, heads, Sampling(seed=seed))
                    for words, seed in PICTURES]
            yield from pictures(card, runs, captures)


def pictures(card: Card, runs: Sequence[PreparedRun], captures: Captures) -> Iterator[Row]:
    """The rows of one method in all ways; the last picture is the same in each."""
    expected = None
    for way, count in WAYS.items():
        card.tidy()
        before = reserved(card)
        for number, run in enumerate(runs[-count:], 1):
            if way == ANEW:
                run.backbone.session.release()
            row, tokens = picture(card, replace(run, graphs=way != EAGER), captures)
            if way == EAGER:
                expected = tokens
            elif number == count:
                row |= {"same tokens as eager, %": 100 * alike(tokens, expected),
                        **released(card, run.backbone, before)}
            yield {"backbone": run.backbone.name, "method": run.method.name, "way": way,
                   "picture": number, **row}


def released(card: Card, backbone: Backbone, before: float) -> Row:
    """What a session holds, and what is still reserved once it is released, at once and after
    Python and PyTorch have freed what nothing uses.
    """
    size = backbone.session.nbytes / 2**30
    backbone.session.release()
    left = reserved(card) - before
    card.tidy()
    return {"session, GiB": size, NOT_BACK: left, "after collection, GiB": reserved(card) - before}


def picture(card: Card, run: PreparedRun, captures: Captures) -> tuple[Row, torch.Tensor]:
    """A picture's row, and its tokens [B, R, C]. Seconds are all, `ms a pass` is without prefill.
    """
    captures.again()
    if card.real:
        torch.cuda.reset_peak_memory_stats()
    began, filled = card.now(), 0.0
    for event in run.events():
        if isinstance(event, Pass) and event.stage == "prefill":
            filled = card.now()
    assert isinstance(event, Finished)
    ended, passes = card.now(), event.stats["passes"]
    each = (ended - filled) / (passes - 1)
    slots = max(map(len, run.branches)) + run.backbone.grid.slots // 2  # in the mean
    capture = sum(captures.seconds.values())
    return {"passes": passes, "seconds": ended - began, "ms a pass": 1e3 * each,
            "% of read": card.share(read_bytes(run.backbone, run.sequences, slots), 1e6 * each),
            "captured": event.stats["captured"],
            **{f"{cause}, s": captures.seconds[cause] for cause in CAUSES},
            "check, % of captures": 100 * captures.seconds["check"] / capture if capture else 0.0,
            "worst first replay": captures.worst, "peak, GiB": peak(card),
            "reserved, GiB": reserved(card)}, event.tokens


def alike(tokens: torch.Tensor, expected: torch.Tensor | None) -> float:
    """The share of equal tokens."""
    return 0.0 if expected is None else (tokens == expected).float().mean().item()


def reserved(card: Card) -> float:
    """GiB that PyTorch has reserved on the card."""
    return torch.cuda.memory_reserved() / 2**30 if card.real else 0.0


def peak(card: Card) -> float:
    return torch.cuda.max_memory_allocated() / 2**30 if card.real else 0.0


def other_allocator(card: Card, seconds: float) -> Iterator[Row]:
    """Do graphs work with cudaMallocAsync, ComfyUI's default? `runs` of Janus-Pro-1B with it.

    Decides whether graphs are switched off there.
    """
    script = Path(__file__).with_name("card_session.py")
    command = [sys.executable, script, "--only", "runs", "--backbones", "Janus-Pro-1B",
               "--seconds", seconds, *(["--tiny"] if card.tiny else [])]
    with subprocess.Popen(list(map(str, command)), env=os.environ | {VARIABLE: ALLOCATOR},
                          stdout=subprocess.PIPE, text=True) as child:
        try:
            for line in child.stdout or ():
                said = json.loads(line)
                if said["part"] == "runs":
                    yield {key: value for key, value in said.items() if key not in ("t", "part")}
        except GeneratorExit:  # the seconds are over
            child.kill()
            raise
    if child.returncode:
        raise RuntimeError(f"the other process ended with {child.returncode}")
