"""One file of tensors, opened without reading its values: safetensors, torch's or TorchScript.

Knows nothing about models, folders or shards. Pickles are only ever read with weights_only=True;
what describes a TorchScript archive is parsed, not unpickled.

What a file asks of its reader is checked before it is read. Headers and descriptions are small in
every published model; a file in which they are not would take all memory, or never end.

A TorchScript archive (.jit) is a zip: `data.pkl` describes the modules as a pickle, `data/` holds
the numbers. Here that pickle is only parsed, opcode by opcode, and the names of classes and
functions stay names; the archive's code is not read. `torch.jit.load` would run it.
"""

from __future__ import annotations

import argparse
import math
import pickle  # noqa: TID251  for the errors of torch.load
import pickletools
import re
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from safetensors import SafetensorError, safe_open

from ...errors import SSDError, first_line, refusing
from ...files import json_of, refuse_partial

MOST_HEADER = 32 << 20  # bytes: a third of a million tensors
MOST_UNPACKED = 64 << 20  # bytes that members of an archive may unpack to beyond its size
MOST_PICKLE = 16 << 20  # bytes of an archive's description
MOST_STEPS = 10_000_000  # of a pickle
MOST_INSIDE = 100_000  # values in a tuple, and in those within it
LONGEST_NAME = 1000  # of a class: torch looks for long at longer ones
DESCRIPTION = "data.pkl"
OLD_START = b"\x80\x02\x8a\x0a"  # of torch's files before they were zips
OLD_PICKLES = 4  # magic number, version, system, and what was saved
GROWING = ("bytearray",)  # makes as many bytes as a pickle says
REBUILD = "torch._utils _rebuild_tensor_v2"
DTYPES = {"torch FloatStorage": torch.float32, "torch HalfStorage": torch.float16,
          "torch BFloat16Storage": torch.bfloat16, "torch DoubleStorage": torch.float64,
          "torch LongStorage": torch.int64, "torch IntStorage": torch.int32,
          "torch ShortStorage": torch.int16, "torch CharStorage": torch.int8,
          "torch ByteStorage": torch.uint8, "torch BoolStorage": torch.bool}
UNREADABLE = (OSError, zipfile.BadZipFile, ValueError, KeyError, IndexError, TypeError,
              AttributeError, StopIteration, RuntimeError, NotImplementedError)
MOST_VALUES, LONGEST_PATH = 200_000, 1000  # of all modules
MARKED = {"TUPLE", "SETITEMS", "APPENDS"}  # opcodes that take everything since the last mark
SAFETENSORS = ".safetensors"
SCRIPT = ".jit"
TORCH = (".bin", ".pt", ".pth", ".ckpt", SCRIPT)
# Keys under which training scripts nest it; an average only where there is nothing else.
WRAPPERS = ("model", "module", "state_dict", "model_state_dict", "sd", "ema", "model_ema",
            "ema_model", "ema_state_dict", "state_dict_ema")
MOST_WRAPPERS = 8  # within each other
# TA-Tok pickled its arguments as this class; here they become a plain dict.
EASY_DICT = type("EasyDict", (), {"__module__": "easydict",
                                  "__new__": lambda cls: OrderedDict()})
ADAPTER_FILES = re.compile(r"adapter_(config\.json|model.*\.(safetensors|bin))"
                           r"|pytorch_lora_weights\.(safetensors|bin)")
ADAPTER_KEYS = re.compile(
    r"(^|[._])lora([._]|$)|(^|\.)adapters?([._]|$)|(^|\.)(loha_|lokr_|hada_|oft_|boft_|ia3_|vera_"
    r"|base_layer|dora_scale|modules_to_save|original_module|prompt_encoder)")

# LyCORIS' whole differences, GLoRA, and words that were learned
OTHER_ADAPTERS = re.compile(r"\.(diff(_b|_m)?|[ab][12]\.weight)$|^(emb_params|<[^<>]+>)$")
BESIDE = ("", "lora", "loras", "lycoris", "embeddings")  # folders of a model's folder


class AdapterError(SSDError):
    """A file or folder holds an adapter."""


def refuse_adapter_keys(names: Iterable[str], file: Path) -> None:
    """Raise AdapterError if a tensor belongs to an adapter."""
    if key := next((name for name in names if ADAPTER_KEYS.search(name)), None):
        raise AdapterError(f"{file}: tensor {key} belongs to an adapter (LoRA), not to a model: "
                           "load the model that it was made for, and name the adapter as its LoRA "
                           "(--lora)")


def refuse_adapter_files(*folders: Path) -> None:
    """Raise AdapterError if an adapter lies directly in one of these folders."""
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if ADAPTER_FILES.fullmatch(path.name):
                raise AdapterError(f"{path}: an adapter (LoRA) among a model's files: move it to "
                                   "the folder loras, and name it as the model's LoRA (--lora)")


def adapters_beside(folder: Path, read: Collection[Path]) -> list[Path]:
    """Files of adapters and learned words in a model's folder, or in one named so inside it.

    read: files that are the model's own.
    """
    own = {path.resolve() for path in read}
    files = [path for name in BESIDE if (folder / name).is_dir()
             for path in sorted((folder / name).glob(f"*{SAFETENSORS}"))]
    return [path for path in files if path.resolve() not in own and is_adapter(path)]


def is_adapter(path: Path) -> bool:
    """Whether a safetensors file holds an adapter or learned words, as its header tells."""
    with suppress(SSDError, SafetensorError, OSError):
        require_short_header(path)
        with safe_open(path, framework="pt") as file:
            return any(ADAPTER_KEYS.search(name) or OTHER_ADAPTERS.search(name)
                       for name in file.keys())  # noqa: SIM118  no dict
    return False


def require_short_header(path: Path) -> None:
    """Raise SSDError for a safetensors file whose header is larger than any model needs."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if MOST_HEADER < length < path.stat().st_size:
        raise SSDError(f"{path}: its header takes {length >> 20} MiB, at most {MOST_HEADER >> 20} "
                       "are read: get it again")


def require_plain(path: Path) -> None:
    """Raise SSDError for a torch file that unpacks to much more than it is, or whose description is
    damaged or never ends.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in require_honest(path, archive):
                    require_finite(path, BytesIO(archive.read(name)))
        else:
            with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
                old = content[: len(OLD_START)] == OLD_START
                for _ in range(OLD_PICKLES if old else 1):
                    require_finite(path, content)
    except (OSError, EOFError, ValueError, LookupError, zipfile.BadZipFile, zlib.error,
            RuntimeError) as error:
        raise SSDError(f"{path}: truncated or damaged, torch cannot read it: get it again"
                       ) from error


def require_honest(path: Path, archive: zipfile.ZipFile) -> list[str]:
    """The descriptions in a zip; SSDError if its members are much larger than it is."""
    members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    described = [member for member in members
                 if member.filename.rpartition("/")[2] == DESCRIPTION]
    if (unpacked > path.stat().st_size + MOST_UNPACKED
            or any(member.file_size > MOST_PICKLE for member in described)):
        raise SSDError(f"{path}: it would unpack to {unpacked >> 20} MiB, more than weights do: "
                       "get it as safetensors")
    return [member.filename for member in described]


def require_finite(path: Path, file: Any) -> None:
    """Raise SSDError for a pickle of too many steps, with tuples that hold each other over and
    over, or with names that no class or function of models has. ValueError if it is no pickle.
    """
    inside: list[int] = []  # of each value on the stack: how many it holds, as a tuple
    marks: list[int] = []
    memo: dict[object, int] = {}
    for step, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        name = opcode.name
        if name == "MARK":
            marks.append(len(inside))
        elif name.endswith("PUT") or name == "MEMOIZE":
            memo[len(memo) if argument is None else argument] = inside[-1]
        elif name.endswith("GET"):
            inside.append(memo[argument])
        else:
            start = (marks.pop() if pickletools.markobject in opcode.stack_before
                     else len(inside)) - others(opcode)
            within = 1 + sum(inside[start:]) if name.startswith(("TUPLE", "DUP")) else 1
            inside[start:] = [within] * len(opcode.stack_after)
        strange = name.endswith("GLOBAL") and (str(argument).endswith(GROWING)
                                               or len(str(argument)) > LONGEST_NAME)
        if strange or step > MOST_STEPS or inside[-1:] > [MOST_INSIDE]:
            raise SSDError(f"{path}: its description would take too much time or memory: get it "
                           "as safetensors")


def others(opcode: pickletools.OpcodeInfo) -> int:
    """How many values an opcode takes from the stack, but for those behind a mark."""
    before = opcode.stack_before
    mark = pickletools.markobject
    return before.index(mark) if mark in before else len(before)


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
        elif isinstance(value, dict) and len(prefix) < LONGEST_PATH:
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


class TensorFile(Protocol):
    """An open file; its tensors may be views into it, so copy them to keep them."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    @property
    def metadata(self) -> Mapping[str, str]: ...

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor on the CPU, in the file's dtype."""


class SafetensorsFile:
    def __init__(self, path: Path) -> None:
        require_short_header(path)
        try:
            self._file = safe_open(path, framework="pt")
            self.metadata = self._file.metadata() or {}
            self.shapes = {name: tuple(self._file.get_slice(name).get_shape())
                           for name in self._file.keys()}  # noqa: SIM118  no dict
        except (SafetensorError, OSError) as error:
            raise SSDError(f"{path}: {damage(path, error)}: get it again") from error

    def tensor(self, name: str) -> torch.Tensor:
        return self._file.get_tensor(name)


class TorchFile:
    metadata: Mapping[str, str] = {}

    def __init__(self, path: Path) -> None:
        require_plain(path)
        loaded = load_pickle(path)
        refuse_adapter_keys(map(str, loaded) if isinstance(loaded, dict) else (), path)
        self._tensors = state_dict(loaded)
        for name, value in self._tensors.items():
            require_stored(path, name, value)
        self.shapes = {name: tuple(value.shape) for name, value in self._tensors.items()}
        if not self.shapes:
            raise SSDError(f"{path}: holds no tensors by name: name the file with the weights")

    def tensor(self, name: str) -> torch.Tensor:
        return self._tensors[name]


def open_tensors(path: Path) -> TensorFile:
    """Open a file by its suffix. Raises SSDError if it is damaged, incomplete or unreadable."""
    refuse_partial(path)
    kinds: dict[str, Callable[[Path], TensorFile]] = {
        SAFETENSORS: SafetensorsFile, SCRIPT: ScriptFile}
    with refusing(path):
        return kinds.get(path.suffix.lower(), TorchFile)(path)


def damage(path: Path, error: Exception) -> str:
    """Describe what is wrong with a safetensors file that did not open."""
    size, declared = path.stat().st_size, declared_size(path)
    if declared is None:
        return f"not a safetensors file, or damaged ({first_line(error)})"
    if size < declared:
        return f"truncated: it has {size} bytes, its header says {declared}"
    if size > declared:
        return (f"{size - declared} bytes too long, its header says {declared} (if it was "
                "published so, take another copy)")
    return f"damaged ({first_line(error)})"


def declared_size(path: Path) -> int | None:
    """File size in bytes according to the safetensors header; None if it is unreadable."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or length > 100_000_000:
                return None
            header = json_of(file.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
        return 8 + length + max(ends, default=0)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def load_pickle(path: Path) -> object:
    """Load torch's file, memory-mapped if it is a zip; only plain data and tensors are allowed."""
    try:
        with torch.serialization.safe_globals([argparse.Namespace, EASY_DICT]):  # arguments
            return torch.load(path, map_location="cpu", weights_only=True,
                              mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise SSDError(f"{path}: damaged, or it holds more than tensors and plain data, and code "
                       "from files is never run: get it as safetensors") from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, TypeError, IndexError,
            AttributeError, UnicodeDecodeError) as error:
        raise SSDError(f"{path}: truncated or damaged, torch cannot read it: get it again"
                       ) from error


def require_stored(path: Path, name: str, value: torch.Tensor) -> None:
    """Raise SSDError for a tensor whose numbers do not all lie in the file: sparse, on meta,
    repeated by its strides, or in torch's own quantised formats.
    """
    plain = (value.layout == torch.strided and value.device.type == "cpu"
             and not value.is_quantized and not value.is_nested)
    if not plain or value.nbytes > value.untyped_storage().nbytes():
        raise SSDError(f"{path}: tensor {name} is not stored number by number (sparse, quantised, "
                       "or without values): get the model as safetensors")


def state_dict(loaded: object) -> dict[str, torch.Tensor]:
    """The tensors by name, taken out of the dicts that a training script nested them in."""
    for _ in range(MOST_WRAPPERS):
        if not isinstance(loaded, dict):
            break
        inner = next((loaded[key] for key in WRAPPERS if isinstance(loaded.get(key), dict)), None)
        if inner is None:
            return {name: value for name, value in loaded.items()
                    if isinstance(name, str) and isinstance(value, torch.Tensor)}
        loaded = inner
    return {}
