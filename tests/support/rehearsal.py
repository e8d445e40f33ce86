"""A stand-in for capturing on a CPU: it proves that work is static by doing it again and watching.

A CUDA graph repeats the very same kernels with the same numbers at the same addresses. So does this
recorder, or it fails: every replay must call the same operations, with the same values, shapes and
strides, on the same memory where that was there before. Nothing may be read by the host, no tensor
may be made from the host's numbers, and none that is made may outlive the work.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ssd_core.engine.first_replay import WrittenBuffers

READS = {"item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__",
         "is_nonzero", "equal", "allclose", "nonzero", "masked_select", "unique"}
MAKES = {"tensor", "as_tensor", "from_numpy", "lift_fresh", "_local_scalar_dense"}


class NotStatic(AssertionError):
    """Work that a CUDA graph could not repeat."""


def refuse(name: str) -> None:
    if name in READS | MAKES:
        raise NotStatic(f"{name} inside work that graphs replay")


class Calls(TorchFunctionMode):
    """Refuses what the host reads or makes, by the names that Python sees."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        refuse(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


class Watch(TorchDispatchMode):
    """The operations of a work, with all that two replays must have in common."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:  # it would import torch's compiler, which takes seconds
        return False

    def __init__(self) -> None:
        super().__init__()
        self.trace: list[tuple] = []
        self.made: dict[int, int] = {}  # the number of each new piece of memory, by its address
        self.kept: list[torch.UntypedStorage] = []  # so that no address is used twice
        self.there: set[int] = set()  # addresses of memory that was there before
        self.tensors: list[weakref.ref[torch.Tensor]] = []  # in new memory

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name, kwargs = func.overloadpacket.__name__, kwargs or {}
        refuse(name)
        if name.startswith("index") and name != "index_select" and any(
                one is not None and one.dtype == torch.bool for one in args[1]):
            raise NotStatic("an index of unknown size")
        self.trace.append((name, *map(self.told, args), *map(self.told, kwargs.items())))
        result = func(*args, **kwargs)
        for one in result if isinstance(result, list | tuple) else (result,):
            if isinstance(one, torch.Tensor) and module_device(one) not in self.there:
                self.kept.append(one.untyped_storage())
                self.tensors.append(weakref.ref(one))
                self.made.setdefault(module_device(one), len(self.made))
        return result

    def told(self, one: Any) -> Any:
        """A value as it is, a tensor by shape, strides and where it lies."""
        if isinstance(one, list | tuple):
            return tuple(map(self.told, one))
        if not isinstance(one, torch.Tensor):
            return one
        number = self.made.get(module_device(one), -1)
        if number < 0:
            self.there.add(module_device(one))
        where = one.data_ptr() if number < 0 else one.storage_offset()
        return tuple(one.shape), one.stride(), one.dtype, number, where


def module_device(one: torch.Tensor) -> int:
    return one.untyped_storage().data_ptr()


def tensors(given: Any) -> list[torch.Tensor]:
    """The tensors of what a work returns."""
    every = given if isinstance(given, tuple) else (given,)
    return [one for one in every if isinstance(one, torch.Tensor)]


class Rehearsal:
    """A `Recorder` for CPUs."""

    nbytes = 0

    def __init__(self) -> None:
        self.warmed = self.recorded = self.replayed = 0
        self.closed = False

    def warm_up(self, work):
        self.warmed += 1
        return work()

    def record(self, work):
        self.recorded += 1
        first: list[Any] = []  # the trace and the tensors that the first replay returned

        def replay():
            self.replayed += 1
            watch = Watch()
            with Calls(), watch:
                found = work()
            results = set(map(id, tensors(found)))
            if any(made() is not None and id(made()) not in results for made in watch.tensors):
                raise NotStatic("a tensor outlives the work that graphs replay")
            if not first:
                first.extend((watch.trace, found))
            compare(watch.trace, first[0])
            for own, new in zip(tensors(first[1]), tensors(found), strict=True):
                own.copy_(new)
            return first[1]

        return replay

    def close(self) -> None:
        self.closed = True


def compare(found: list[tuple], expected: list[tuple]) -> None:
    for one, other in zip(found, expected, strict=False):
        if one != other:
            raise NotStatic(f"{one} instead of {other}")
    if len(found) != len(expected):
        raise NotStatic(f"{len(found)} operations instead of {len(expected)}")


def clearing(work):
    """A faulty replay: it returns the right numbers, and clears the buffers that it should fill."""
    def replay():
        with WrittenBuffers() as written:
            result = work()
        for buffer in written.tensors:
            buffer.zero_()
        return result

    return replay
