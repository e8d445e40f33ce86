"""Checkpoints of training stages, and steps that are counted from where one left off."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean

import torch
from tqdm import tqdm

from ..errors import SSDError, first_line
from ..files import atomic_write
from .interrupts import held_back
from .processes import ALONE, Team

EVERY = 120.0  # seconds between two checkpoints
RECENT = 100  # steps that a report is the mean of


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

    def resume(self) -> int:
        """Load the file where there is one; the step to go on from."""
        if not self.path.exists():
            return 0
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
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

    @property
    def mean(self) -> float:
        """Of the last steps."""
        return mean(map(float, self.recent))


def training_steps(name: str, steps: int, checkpoint: Checkpoint,
                   report: Callable[[], str] = str, start: int | None = None) -> Iterator[int]:
    """Count steps from where the checkpoint left off, with a progress bar.

    A checkpoint is written every EVERY seconds, at the end, and when Ctrl-C stops the training
    after the step that is under way. start: what the checkpoint's `resume` returned, where it was
    called before.
    """
    start = checkpoint.resume() if start is None else start
    saved = time.monotonic()
    with tqdm(total=steps, initial=start, desc=name, mininterval=2.0,
              disable=not checkpoint.team.first) as bar, held_back() as interrupts:
        for step in range(start, steps):
            yield step
            bar.update()
            stopped = checkpoint.team.any(interrupts.came)
            if stopped or step + 1 == steps or time.monotonic() - saved >= EVERY:
                bar.set_postfix_str(report())
                checkpoint.save(step + 1)
                saved = time.monotonic()
            if stopped:
                raise KeyboardInterrupt
