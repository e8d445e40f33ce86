"""Checks the first replay of a captured graph against the same call without it.

A graph that repeats old numbers or leaves out a write would draw a wrong picture without an error.
So the first replay of every kind of call is followed by the call itself, on the same input. What
both return, and what both write to buffers of the run, must agree. It costs one pass per kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

TOLERANCE = 0.05  # of a vector's mean size, for the mean difference between replay and call
ROOM = 1 << 25  # bytes of all buffers that are compared; of larger ones only a sample is
HUGE = 1e30  # replaces infinite values


class WrongReplay(RuntimeError):
    """The first replay of a graph disagreed with the call that it was captured from."""


class WrittenBuffers(TorchDispatchMode):
    """Collects the tensors that a call writes to but has not made itself."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing compiles this; torch would import its compiler, which takes seconds, to say so.
        """
        return False

    def __init__(self) -> None:
        super().__init__()
        self._made: set[int] = set()
        self._written: dict[tuple, torch.Tensor] = {}

    @property
    def tensors(self) -> list[torch.Tensor]:
        return list(self._written.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        for tensor in written(func, args, kwargs):
            if (place := storage(tensor)) not in self._made:
                key = (place, tensor.storage_offset(), tensor.shape, tensor.stride())
                self._written[key] = tensor
        before = {storage(tensor) for tensor in tensors_in((args, kwargs))}
        result = func(*args, **kwargs)
        self._made |= {storage(tensor) for tensor in tensors_in(result)} - before
        return result


def written(func: Any, args: tuple, kwargs: dict) -> Iterator[torch.Tensor]:
    """The tensors that an operation writes to, by its schema."""
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            yield from tensors_in(value)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The plain tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from tensors_in(part)
    elif type(value) in (torch.Tensor, torch.nn.Parameter):  # quantised tensors are never written
        yield value


def storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def checked(replay: Callable[[], Any], call: Callable[[], Any],
            buffers: Sequence[torch.Tensor]) -> Any:
    """Return the result of `call` after `replay`, with the call's own contents in all buffers.

    buffers: what the call writes to. Those larger than a share of ROOM are not restored between the
    two, so a call must not read there what it overwrites. Raises WrongReplay if the two disagree.
    """
    samples = [sample(buffer, ROOM // max(1, len(buffers))) for buffer in buffers]
    before = [part.clone() for part in samples]
    replayed = [*tensors_in(replay()), *(part.clone() for part in samples)]
    for part, contents in zip(samples, before, strict=True):
        part.copy_(contents)
    result = call()
    expected = [*tensors_in(result), *samples]
    worst = max(map(difference, replayed, expected), default=0.0)
    if not worst <= TOLERANCE:
        raise WrongReplay(f"the first replay of a graph differs by {worst:.2g} from the pass that "
                          f"it repeats, {TOLERANCE} is allowed")
    return result


def sample(buffer: torch.Tensor, most: int) -> torch.Tensor:
    """A view of at most about `most` bytes: every n-th number along the last dimension."""
    size = buffer.numel() * buffer.element_size()
    return buffer[..., :: -(-size // most)] if size > most and buffer.dim() else buffer


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest mean difference of two vectors, as a share of the expected one's mean size.

    Vectors lie along the last dimension. Whole numbers and booleans differ by infinity or not at
    all.
    """
    if found.shape != expected.shape:
        return float("inf")
    if not expected.is_floating_point():
        return 0.0 if torch.equal(found, expected) else float("inf")
    if not expected.numel():
        return 0.0
    a, b = (finite(tensor).view(-1, tensor.shape[-1] if tensor.dim() else 1)
            for tensor in (found, expected))
    apart, size = (a - b).abs().mean(-1), b.abs().mean(-1)
    return torch.where(apart == 0, 0.0, apart / size).max().item()


def finite(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers as float32; NaN becomes an even larger number than infinity."""
    return tensor.float().nan_to_num(2 * HUGE, HUGE, -HUGE).contiguous()
