"""Tensors of a TorchScript archive (.jit), of which nothing is ever run.

The archive is a zip: `data.pkl` describes the modules as a pickle, `data/` holds the numbers. Here
that pickle is only parsed, opcode by opcode, and the names of classes and functions stay names; the
archive's code is not read. `torch.jit.load` would run it.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ...errors import SSDError
from .limits import DESCRIPTION, require_honest

REBUILD = "torch._utils _rebuild_tensor_v2"
DTYPES = {"torch FloatStorage": torch.float32, "torch HalfStorage": torch.float16,
          "torch BFloat16Storage": torch.bfloat16, "torch DoubleStorage": torch.float64,
          "torch LongStorage": torch.int64, "torch IntStorage": torch.int32,
          "torch ShortStorage": torch.int16, "torch CharStorage": torch.int8,
          "torch ByteStorage": torch.uint8, "torch BoolStorage": torch.bool}
UNREADABLE = (OSError, zipfile.BadZipFile, ValueError, KeyError, IndexError, TypeError,
              AttributeError, StopIteration, RuntimeError, NotImplementedError)
MOST_VALUES, LONGEST_NAME = 200_000, 1000  # of all modules
MARKED = {"TUPLE", "SETITEMS", "APPENDS"}  # opcodes that take everything since the last mark


class Stored(NamedTuple):
    """Where a tensor's numbers lie: an entry of the archive, and strides within it."""

    entry: str
    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class ScriptFile:
    """The parameters and buffers of an archive by their names, read one at a time."""

    metadata: Mapping[str, str] = {}

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
            self._root = next(name.removesuffix(DESCRIPTION) for name in self._zip.namelist()
                              if name.endswith(f"/{DESCRIPTION}"))
            require_honest(path, self._zip)
            modules = described(self._zip.read(self._root + DESCRIPTION))
            self._tensors = dict(named_tensors(modules))
        except UNREADABLE as error:
            raise SSDError(f"{path}: truncated or damaged, no TorchScript archive: get it again"
                           ) from error
        self.shapes = {name: stored.shape for name, stored in self._tensors.items()}

    def tensor(self, name: str) -> torch.Tensor:
        stored = self._tensors[name]
        try:
            numbers = bytearray(self._zip.read(f"{self._root}data/{stored.entry}"))
            flat = torch.frombuffer(numbers, dtype=stored.dtype)
            if math.prod(stored.shape) > len(flat):
                raise ValueError("fewer numbers than its shape says")
            return flat.as_strided(stored.shape, stored.strides, stored.offset)
        except UNREADABLE as error:
            raise SSDError(f"{self.path}: tensor {name} is truncated or damaged: get the file "
                           "again") from error


def named_tensors(modules: Mapping[str, Any]) -> Iterator[tuple[str, Stored]]:
    """Yield (name, tensor) of nested modules, which are dicts of their attributes.

    ValueError if they hold each other without end.
    """
    waiting: list[tuple[str, Any]] = [("", modules)]
    for _ in range(MOST_VALUES):
        if not waiting:
            return
        prefix, value = waiting.pop()
        if isinstance(value, Stored):
            yield prefix.removeprefix("."), value
        elif isinstance(value, dict) and len(prefix) < LONGEST_NAME:
            waiting.extend((f"{prefix}.{name}", inner) for name, inner in reversed(value.items()))
    raise ValueError("modules without end")


def described(pickle: bytes) -> dict[str, Any]:
    """Parse a pickle of modules, tensors and plain values; ValueError for anything else.

    Modules become dicts, tensors `Stored`, and classes and functions their names.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(pickle):
        name = opcode.name
        if name == "MARK":
            marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in MARKED:
            start = marks.pop()
            items = tuple(stack[start:])
            del stack[start:]
            together(name, items, stack)
        elif name not in ("PROTO", "STOP", "BINPERSID"):  # an id of a storage stays as it is
            stack.append(argument) if argument is not None else combine(name, stack)
    if len(stack) != 1 or not isinstance(stack[0], dict):
        raise ValueError("no module")
    return stack[0]


def together(name: str, items: tuple[Any, ...], stack: list[Any]) -> None:
    """Apply an opcode that takes many items."""
    if name == "TUPLE":
        stack.append(items)
    elif name == "APPENDS":
        stack[-1].extend(items)
    else:
        stack[-1].update((key, value) for key, value in zip(items[::2], items[1::2], strict=True)
                         if isinstance(key, str))


CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
EMPTY = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def combine(name: str, stack: list[Any]) -> None:
    """Apply an opcode that works on the top of the stack. ValueError for an unknown one."""
    if name in CONSTANTS:
        stack.append(CONSTANTS[name])
    elif name in EMPTY:
        stack.append(EMPTY[name]())
    elif name in TUPLES:
        stack[-TUPLES[name]:] = [tuple(stack[-TUPLES[name]:])]
    elif name == "NEWOBJ":  # a module: its attributes follow
        stack[-2:] = [{}]
    elif name == "REDUCE":
        stack[-2:] = [rebuilt(*stack[-2:])]
    elif name == "BUILD":
        attributes = stack.pop()
        if isinstance(attributes, dict):
            stack[-1].update(attributes)
    elif name == "APPEND":
        stack[-2].append(stack.pop())
    elif name == "SETITEM":
        key, value = stack[-2:]
        del stack[-2:]
        if isinstance(key, str):  # all others are no names, and may take long to compare
            stack[-1][key] = value
    else:
        raise ValueError(f"opcode {name}")


def rebuilt(function: str, arguments: tuple[Any, ...]) -> Stored | None:
    """A tensor, or None for what another function would make."""
    if function != REBUILD:
        return None
    (kind, storage, entry, _, _), offset, shape, strides = arguments[:4]
    if not all(isinstance(text, str) for text in (kind, storage, entry)) or kind != "storage":
        raise ValueError("no storage")
    if not all(isinstance(size, int) and size >= 0 for size in (offset, *shape, *strides)):
        raise ValueError("no shape")
    return Stored(entry, DTYPES[storage], offset, tuple(shape), tuple(strides))
