"""The processes that train one model together, as `accelerate launch` or torchrun started them.

Every process computes its share of a batch; summed gradients keep their weights equal; only the
first process writes files and prints. A single process is a team of size 1, with the same calls.
Knows nothing about models.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import torch

from ..errors import SSDError, first_line
from ..launched import launched
from .common import mixed_precision

if TYPE_CHECKING:
    from accelerate import Accelerator

PRECISION = "ACCELERATE_MIXED_PRECISION"
PRECISIONS = ("no", "bf16")


class Team:
    """This process and those it trains with; without an accelerator, only this process.

    rank: number of this process; size: number of processes; device: of this process.
    """

    def __init__(self, device: str = "auto", accelerator: Accelerator | None = None) -> None:
        self.accelerator = accelerator
        self.rank = accelerator.process_index if accelerator else 0
        self.size = accelerator.num_processes if accelerator else 1
        self.device = str(accelerator.device) if accelerator and self.size > 1 else device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, count: int) -> range:
        """Return this process's share of the numbers 0 .. count-1; shares are about equal."""
        return range(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def autocast(self, device: torch.device) -> AbstractContextManager:
        """Precision of products: as `accelerate launch` sets it, else bf16 if that is faster."""
        if self.accelerator is None or PRECISION not in os.environ:
            return mixed_precision(str(device))
        return self.accelerator.autocast()

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum of all processes' tensors, the same in each."""
        if self.accelerator is None:
            return tensor
        return self.accelerator.reduce(tensor, reduction="sum")

    def sum_gradients(self, weights: Sequence[torch.nn.Parameter]) -> None:
        """Sum the gradients of all processes, which gives those of the whole batch."""
        for weight in weights:
            if weight.grad is not None:
                weight.grad = self.sum(weight.grad)

    def total(self, value: float, device: torch.device) -> float:
        """The sum of all processes' numbers."""
        if self.accelerator is None:
            return value
        return self.sum(torch.tensor(value, device=device)).item()

    def any(self, value: bool) -> bool:
        """Whether it is so in any process, so that all of them stop after the same step."""
        if self.accelerator is None or self.size == 1:
            return value
        return self.total(float(value), self.accelerator.device) > 0

    def gathered(self, value: Any) -> list[Any]:
        """Every process's value, by rank."""
        if self.accelerator is None:
            return [value]
        from accelerate.utils import gather_object

        return gather_object([value])

    @contextmanager
    def agreeing(self) -> Iterator[dict[str, Any]]:
        """Wrap the preparation of training: an SSDError in one process ends all with its message.

        Yields a dict {name: value} of facts that must be equal in all processes.
        """
        facts: dict[str, Any] = {}
        fault: SSDError | None = None
        try:
            yield facts
        except SSDError as error:
            fault = error
        results = self.gathered((str(fault) if fault else "", facts))
        for rank, (line, _) in enumerate(results):
            if line:
                raise SSDError(f"process {rank}: {line}" if rank else line) from fault
        for rank, (_, theirs) in enumerate(results):
            for name, value in results[0][1].items():
                if theirs[name] != value:
                    raise SSDError(f"processes 0 and {rank} differ in {name}: {value} and "
                                   f"{theirs[name]}; give every machine the same files")


ALONE = Team()


@contextmanager
def joined(device: str) -> Iterator[Team]:
    """Join the team that this process was launched into, and leave it at the end.

    device: the user's choice; several processes each take their own card.
    """
    if launched() == 1 and PRECISION not in os.environ:
        yield Team(device)
        return
    precision = os.environ.get(PRECISION, "no")
    if precision not in PRECISIONS:
        raise SSDError(f"mixed precision {precision}: heads learn in fp32 with products in "
                       f"{' or '.join(PRECISIONS)}; give accelerate one of these")
    if launched() > 1 and ":" in device:
        raise SSDError(f"device {device}: {launched()} processes cannot share it; leave --device "
                       "out, so that each takes a card of its own")
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise SSDError("training in several processes needs the library accelerate: "
                       "pip install accelerate") from error
    try:
        accelerator = Accelerator(cpu=device == "cpu", mixed_precision=precision)
    except (ValueError, RuntimeError) as error:
        raise SSDError(f"accelerate cannot start ({first_line(error)}): check its "
                       "settings and that every process has a device") from error
    try:
        yield Team(device, accelerator)
    finally:
        accelerator.end_training()
