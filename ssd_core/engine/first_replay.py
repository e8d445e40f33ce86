"""Checks the first replay of a captured graph against the same call without it.

A graph that repeats old numbers or leaves out a write would draw a wrong picture without an error.
So the first replay of every kind of call follows the call itself, on the same input. What
both return, and what both write to buffers of the run, must agree up to rounding. It costs one pass
per kind and a few operations for each shape of buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# The largest `difference` between replay and call. In bf16 sums in another order make up to 0.03,
# a position off by one makes 0.17, another token's input 1.
TOLERANCE = 0.1
ROOM = 1 << 25  # bytes of all buffers that are compared, about; of more, only some heads are
POISON = 7.0  # written where a call writes numbers, so that a replay that leaves them out is seen
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


def checked(replay: Callable[[], Any], call: Callable[[], Any], buffers: Sequence[torch.Tensor],
            few: bool = False) -> tuple[Any, float]:
    """Return the result of `call`, and the largest difference of `replay` from it.

    buffers: what the call writes to; afterwards they hold what it wrote. Those larger than a share
    of ROOM are not restored between the two, so a call must not read there what it overwrites.
    few: compare three buffers of each shape; the call may be repeated.
    """
    groups = alike([sample(buffer, ROOM // max(1, len(buffers))) for buffer in buffers])
    if few:
        groups = [[group[n] for n in sorted({0, len(group) // 2, len(group) - 1})]
                  for group in groups]
    before = [torch.stack(group) for group in groups]
    result = call()
    written = [torch.stack(group) for group in groups]
    for group, old, new in zip(groups, before, written, strict=True):
        fill(group, poisoned(old, new))
    found = [*tensors_in(replay()), *map(torch.stack, groups)]
    for group, new in zip(groups, written, strict=True):
        fill(group, new)
    apart = max(map(difference, found, [*tensors_in(result), *written]), default=0.0)
    if few and apart > TOLERANCE:  # then the other buffers may hold what the replay wrote
        result = call()
    return result, apart


def alike(buffers: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Group buffers by shape and dtype, so that one operation reads all layers of a cache."""
    groups: dict[tuple, list[torch.Tensor]] = {}
    for buffer in buffers:
        groups.setdefault((buffer.shape, buffer.dtype), []).append(buffer)
    return list(groups.values())


def fill(group: Sequence[torch.Tensor], contents: torch.Tensor) -> None:
    """Copy [number of buffers, ...] into the buffers."""
    torch._foreach_copy_(list(group), list(contents.unbind()))


def poisoned(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """The contents before a call, with POISON wherever the call wrote another vector.

    Only of keys, values and hidden states, float [..., vectors, numbers]: a call may read and
    overwrite single numbers.
    """
    if before.dim() < 4 or not before.is_floating_point():
        return before
    return before.masked_fill((before != after).any(-1, keepdim=True), POISON)


def sample(buffer: torch.Tensor, most: int) -> torch.Tensor:
    """A view of about `most` bytes: every n-th head of keys and values [..., heads, slots, D].

    Vectors stay whole, because rounding is small only beside the size of a whole one.
    """
    size = buffer.numel() * buffer.element_size()
    return buffer[..., :: -(-size // most), :, :] if size > most and buffer.dim() > 3 else buffer


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest mean difference of two vectors, as a share of the expected one's mean size.

    Vectors lie along the last dimension. Of whole numbers and booleans it is the share that is not
    equal: rounding makes a few of a hundred tokens other ones.
    """
    if found.shape != expected.shape:
        return float("inf")
    if not expected.is_floating_point():
        return (found != expected).float().mean().nan_to_num(0).item()
    if not expected.numel():
        return 0.0
    a, b = (finite(tensor).view(-1, tensor.shape[-1] if tensor.dim() else 1)
            for tensor in (found, expected))
    apart, size = (a - b).abs().mean(-1), b.abs().mean(-1)
    return torch.where(apart == 0, 0.0, apart / size).max().item()


def finite(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers as float32; NaN becomes an even larger number than infinity."""
    return tensor.float().nan_to_num(2 * HUGE, HUGE, -HUGE).contiguous()
