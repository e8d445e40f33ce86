"""Checkpoints of training stages, and steps that are counted from where one left off.

After Ctrl-C the step under way is finished first, so that a checkpoint is whole.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean

import torch
from tqdm import tqdm

from ..errors import SSDError, first_line
from ..files import atomic_write
from ..launched import is_first
from .processes import ALONE, Team

FINISHING = b"\nfinishing the step and writing a checkpoint; Ctrl-C again ends at once\n"
EVERY = 120.0  # seconds between two checkpoints
RECENT = 100  # steps that a report is the mean of
Watch = Callable[[int], bool]  # told how many steps are done; whether to go on


class Stopped(Exception):
    """A host stopped the training; its checkpoint is written."""


class Interrupts:
    """Whether Ctrl-C was pressed; a second one raises KeyboardInterrupt at once."""

    def __init__(self) -> None:
        self.came = False

    def note(self, *_: object) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
        if is_first():
            # Without Python's buffers, which may be in use.
            with suppress(OSError, ValueError, AttributeError):
                os.write(sys.stderr.fileno(), FINISHING)


@contextmanager
def held_back() -> Iterator[Interrupts]:
    """Ctrl-C only sets `came` during the block.

    A program that ignores Ctrl-C, and a thread, which gets no signals, stay as they are.
    """
    found = Interrupts()
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return
    signal.signal(signal.SIGINT, found.note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Checkpoint:
    """Model, optimizers, generator and step in one file, written whole, read weights-only.

    Every process reads it, the first one writes it. `recent` has the loss, or whatever a stage
    reports, of the last steps, as numbers or as tensors that a card may still compute; `wrote` is
    how many processes wrote what was resumed, 0 where there was nothing.
    """

    def __init__(self, path: Path, model: torch.nn.Module, optimizers: list[torch.optim.Optimizer],
                 generator: torch.Generator, team: Team = ALONE) -> None:
        self.path, self.model = Path(path), model
        self.optimizers, self.generator = optimizers, generator
        self.team = team
        self.recent: deque[float | torch.Tensor] = deque(maxlen=RECENT)
        self.wrote = 0

    def save(self, step: int) -> None:
        if not self.team.first:
            return
        state = {"step": step, "model": self.model.state_dict(),
                 "optimizers": [o.state_dict() for o in self.optimizers],
                 "generator": self.generator.get_state(), "recent": list(map(float, self.recent)),
                 "processes": self.team.size}
        with atomic_write(self.path) as temporary:
            torch.save(state, temporary)

    def resume(self, or_afresh: bool = False) -> int:
        """Load the file where there is one; the step to go on from.

        or_afresh: a file of a model of other shapes is left aside; the next one replaces it.
        """
        if not self.path.exists():
            return 0
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
            if or_afresh and shapes_of(state["model"]) != shapes_of(self.model.state_dict()):
                return 0
            self.model.load_state_dict(state["model"])
            for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(saved)
            self.generator.set_state(state["generator"])
            self.recent.extend(state["recent"])
            self.wrote = state["processes"]
        except Exception as error:  # any damage ends in the same advice
            raise SSDError(f"{self.path}: this checkpoint does not fit "
                           f"({first_line(error)}): remove it to start afresh") from error
        return state["step"]

    def let_go(self) -> None:
        """Free the optimizers' memory: no further step follows."""
        for optimizer in self.optimizers:
            optimizer.state.clear()

    def remove(self) -> None:
        if self.team.first:
            self.path.unlink(missing_ok=True)

    @property
    def mean(self) -> float:
        """Of the last steps."""
        return mean(map(float, self.recent))


def shapes_of(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in state.items()}


def training_steps(name: str, steps: int, checkpoint: Checkpoint,
                   report: Callable[[], str] = str, start: int | None = None,
                   watch: Watch | None = None) -> Iterator[int]:
    """Count steps from where the checkpoint left off, with a progress bar.

    A checkpoint is written every EVERY seconds, at the end, and when Ctrl-C stops the training
    after the step that is under way. start: what the checkpoint's `resume` returned, where it was
    called before. watch: takes the place of the bar; told how many steps are done after each, it
    returns whether to go on, else the checkpoint is written and Stopped raised.
    """
    start = checkpoint.resume() if start is None else start
    saved = time.monotonic()
    with tqdm(total=steps, initial=start, desc=name, mininterval=2.0,
              disable=watch is not None or not checkpoint.team.first) as bar, \
            held_back() as interrupts:
        for step in range(start, steps):
            yield step
            bar.update()
            goes_on = watch is None or watch(step + 1)
            ends = not goes_on and step + 1 < steps
            stopped = checkpoint.team.any(interrupts.came)
            if ends or stopped or step + 1 == steps or time.monotonic() - saved >= EVERY:
                bar.set_postfix_str(report())
                checkpoint.save(step + 1)
                saved = time.monotonic()
            if stopped:
                raise KeyboardInterrupt
            if ends:
                raise Stopped
