"""What the four training stages share: schedule, checkpoints, resume, progress."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from tqdm import tqdm

from ..errors import SSDError
from ..files import written_whole


def cosine(step: int, steps: int, warmup: int, floor: float = 0.0) -> float:
    """Factor on the peak learning rate: linear warm-up, then a half cosine down to `floor`."""
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def set_rate(optimizers: list[torch.optim.Optimizer], factor: float) -> None:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor


def remember_rates(optimizers: list[torch.optim.Optimizer]) -> list[torch.optim.Optimizer]:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
    return optimizers


class Checkpoint:
    """Model, optimizers, generator and step in one file, written whole, read weights-only."""

    def __init__(self, path: Path, model: torch.nn.Module, optimizers: list[torch.optim.Optimizer],
                 generator: torch.Generator) -> None:
        self.path, self.model = Path(path), model
        self.optimizers, self.generator = optimizers, generator

    def save(self, step: int) -> None:
        state = {"step": step, "model": self.model.state_dict(),
                 "optimizers": [o.state_dict() for o in self.optimizers],
                 "generator": self.generator.get_state()}
        with written_whole(self.path) as temporary:
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
        except Exception as error:  # any damage ends in the same advice
            raise SSDError(f"{self.path}: this checkpoint does not fit "
                           f"({str(error).splitlines()[0]}): remove it to start afresh") from error
        return state["step"]


def training_steps(name: str, steps: int, checkpoint: Checkpoint, every: int = 200,
                   report: Callable[[], str] = str) -> Iterator[int]:
    """Count steps from where the checkpoint left off, with a progress bar and saves on the way."""
    start = checkpoint.resume()
    with tqdm(total=steps, initial=start, desc=name, mininterval=2.0) as bar:
        for step in range(start, steps):
            yield step
            bar.update()
            if (step + 1) % every == 0 or step + 1 == steps:
                bar.set_postfix_str(report())
                checkpoint.save(step + 1)
