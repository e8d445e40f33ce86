"""The tensors of one model on disk: which files belong together, and their tensors by name.

A folder may hold several models (a decoder, its picture codec, a text encoder), each in one file or
many shards. All headers are read at once. Values are read one tensor at a time, with one shard
open. Knows nothing about what the tensors mean.

Wrappers of torch (DDP, FSDP, torch.compile) put a word of their own anywhere into a name. Others
put a prefix before all names, such as `base_model.model.` or `ema.`. Published names have a first
part in common, too (`model.`), so a family looks at the names with and without it.

In the cache of the Hub's client (models--ORG--NAME), `snapshots` has a folder of links into `blobs`
for each revision, and `refs/main` names the one in use. ModelScope's client names a repository
ORG--NAME and its revision `master`; an older one writes a dot in a name as `___`. Nothing is
downloaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from pathlib import Path
from typing import TypeVar

import torch

from ...errors import SSDError, first_line, refusing
from ...files import is_here, parse, refuse_partial, user_path
from ...model.products import Matrix
from .quantised import dequantised, is_beside, layers_in, refuse_quantiser, scales_of
from .tensor_files import (
    SAFETENSORS,
    TORCH,
    TensorFile,
    open_tensors,
    refuse_adapter_files,
    refuse_adapter_keys,
)

WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
COUNTERS = {"n_averaged", "num_updates", "decay", "initted", "step"}
START, SNAPSHOTS, BLOBS = "models--", "snapshots", "blobs"
USUAL = "master"  # the revision in use where `refs/main` is missing
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")
ENDINGS = (SAFETENSORS, *TORCH)
GGUF = ".gguf"
INDEX = ".index.json"
QUANTISATION = "quantization_config"
SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})")
ShardFiles = tuple[Path, ...]
Watch = Callable[[int], None]
T = TypeVar("T")
_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """{name in the file: name without wrappers}."""
    return {name: ".".join(part for part in name.split(".") if part not in WRAPPERS)
            for name in names}


def common_prefix(names: Iterable[str]) -> str:
    """The first part of all names, with its dot; empty if they differ or are that part alone."""
    first = {name.partition(".")[::2] for name in names}
    starts = {start for start, _ in first}
    return f"{starts.pop()}." if len(starts) == 1 and all(rest for _, rest in first) else ""


def letters(name: str) -> str:
    """A name's letters and digits, in lower case."""
    return "".join(filter(str.isalnum, name.lower()))


def ending(path: Path) -> str:
    """A file's suffix in lower case."""
    return path.suffix.lower()


def is_index(path: Path) -> bool:
    return path.name.lower().endswith(INDEX)


def is_counter(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor only counts steps of training, as beside an average of weights."""
    return name.rpartition(".")[2] in COUNTERS and shape in ((), (1,))


def cache_folder() -> Path:
    """Where the client keeps models, as its own variables say."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if place := os.environ.get(name):
            return Path(place).expanduser()
    home = os.environ.get("HF_HOME") or Path(
        os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home, "hub").expanduser()


def cached(repository: str) -> Path | None:
    """The folder of a repository ("org/name") in the client's cache, or None."""
    if not REPOSITORY.fullmatch(repository):
        return None
    folder = cache_folder() / (START + repository.replace("/", "--"))
    return folder if folder.is_dir() else None


def snapshot_in(folder: Path) -> Path:
    """The snapshot in use of a repository's folder; any other folder itself."""
    snapshots = folder / SNAPSHOTS
    if not is_repository(folder) or not snapshots.is_dir():
        return folder
    found = {path.name: path for path in sorted(snapshots.iterdir()) if path.is_dir()}
    ref = folder / "refs" / "main"
    named = ref.read_text("utf-8", "replace").strip() if ref.is_file() else USUAL
    if len(found) != 1 and named not in found:
        raise SSDError(f"{folder}: holds {len(found)} snapshots, and refs/main names none of them: "
                       f"name one of the folders in {SNAPSHOTS}")
    return found.get(named) or next(iter(found.values()))


def is_repository(folder: Path) -> bool:
    """Whether a folder, or what a link leads to, is called models--ORG--NAME or ORG--NAME."""
    return "--" in folder.resolve().name


def home_of(snapshot: Path) -> Path | None:
    """The repository's folder that a snapshot belongs to; None for any other folder."""
    home = snapshot.absolute().parent.parent
    return home if snapshot.parent.name == SNAPSHOTS and is_repository(home) else None


def own_name(folder: Path) -> str:
    """The name of a model's folder; of a snapshot, that of its repository."""
    home = home_of(folder)
    return home.resolve().name.rpartition("--")[2] if home else folder.absolute().name


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Inside the block, `watch` is called with the bytes of each tensor that is read.

    What it raises ends the reading.
    """
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


class Checkpoint:
    """Tensors by name, over one file or many.

    shapes: of every tensor, but for those that say how a layer is quantised. metadata: from
    safetensors headers. root: the folder that the user named, which may also hold companions.
    adapt: applied by `fill`; maps the name and the value of a tensor to the value that is used.
    transform: applied by `fill`; maps our name and the value of a parameter to the tensor to store.
    as_stored: False drops prefixes of training programs from names, and refuses what is not a
    whole model: adapters, files of other quantisers.
    """

    adopted = False  # True: the tensors are a loaded model's own (`LoadedModel`)
    called = ""  # the model's name in the catalogue, if the user gives it
    hashed = True  # whether values that no module takes are read for the fingerprint

    def __init__(self, files: ShardFiles, root: Path | None = None,
                 as_stored: bool = False) -> None:
        self.files, self.folder = files, files[0].parent
        self.root = root or self.folder
        self.adapt: Callable[[str, torch.Tensor], torch.Tensor] = lambda name, value: value
        self.transform: Callable[[str, torch.Tensor], Matrix] = lambda name, value: value
        self._open: tuple[Path, TensorFile] | None = None
        self._file_of: dict[str, Path] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.metadata: dict[str, str] = {}
        for path in files:
            file = self._opened(path)
            self._take_in(path, file.shapes)
            self.metadata |= file.metadata
        self._require_indexed()
        self._in_file = {name: name for name in self.shapes}
        self._scale_of: dict[str, str] = {}
        if not as_stored:
            self._interpret()
        self.close()

    def _interpret(self) -> None:
        """Name the tensors as families do, and find their scales; SSDError if they are no model."""
        refuse_adapter_files(self.folder)
        refuse_adapter_keys(self.shapes, self.files[0])
        refuse_quantiser(self.shapes, self._quantisation(), self.files[0], self.metadata)
        layers = layers_in(self.shapes, self.metadata, self._unwatched, self.files[0])
        self._scale_of = scales_of(self.shapes, layers)
        names = plain_names(self.shapes)
        self.shapes = {name: shape for name, shape in self.shapes.items()
                       if not is_beside(name, self._scale_of) and not is_counter(name, shape)}
        self._rename(names)

    def _quantisation(self) -> object:
        """quantization_config of config.json or of a part of it; None if there is none, and if
        config.json cannot be read, which whoever needs it says.
        """
        with suppress(SSDError):
            config = self.config()
            parts = [config, *(part for part in config.values() if isinstance(part, dict))]
            return next((part[QUANTISATION] for part in parts if QUANTISATION in part), None)
        return None

    def _rename(self, names: Mapping[str, str]) -> None:
        """Give tensors other names; names: {the present one: the new one}."""
        if len(set(names.values())) < len(names):
            raise SSDError(f"{self.files[0]}: holds tensors with and without a prefix of a "
                           "training program: keep one of the two")
        def renamed(by_name: Mapping[str, T]) -> dict[str, T]:
            return {names.get(name, name): value for name, value in by_name.items()}

        self.shapes, self._file_of = renamed(self.shapes), renamed(self._file_of)
        self._in_file = renamed(self._in_file)
        self._scale_of = {names.get(name, name): names.get(scale, scale)
                          for name, scale in self._scale_of.items()}

    def views(self) -> Iterator[Checkpoint]:
        """This checkpoint, then without the first part of its names if all share it, and so on."""
        yield self
        if prefix := common_prefix(self.shapes):
            view = copy(self)
            view._rename({name: name.removeprefix(prefix) for name in self._in_file})
            yield from view.views()

    def _take_in(self, path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
        for name, shape in shapes.items():
            if name in self.shapes:
                raise SSDError(f"{path}: tensor {name} lies in {self._file_of[name].name} too: "
                               "keep the files of one model in one folder")
            self.shapes[name], self._file_of[name] = shape, path

    def _require_indexed(self) -> None:
        if (index := index_of(self.files[0])) is None:
            return
        for name, file in weight_map(index).items():
            if (holder := self._file_of.get(name)) is None or holder.name != file:
                raise SSDError(f"{self.folder / file}: tensor {name} is not in it, though "
                               f"{index.name} says so: get the file again")

    def _opened(self, path: Path) -> TensorFile:
        if self._open is None or self._open[0] != path:
            self._open = None  # close the previous shard first
            self._open = path, open_tensors(path)
        return self._open[1]

    def file_of(self, name: str) -> Path:
        """The file that holds a tensor. Raises SSDError if no file does."""
        if name not in self._file_of:
            where = self.files[0] if len(self.files) == 1 else self.folder
            raise SSDError(f"{where}: tensor {name} is missing: get the complete model")
        return self._file_of[name]

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor on the CPU in the file's dtype; a view into the file, so copy to keep it."""
        tensor = self._unwatched(name)
        if (watch := _watch.get()) is not None:
            watch(tensor.nbytes)
        return tensor

    def _unwatched(self, name: str) -> torch.Tensor:
        return self._opened(self.file_of(name)).tensor(self._in_file[name])

    def floating(self, name: str) -> torch.Tensor:
        """`tensor`, or SSDError if it does not hold floating-point numbers.

        A quantised one (quantised.py) is returned in float32.
        """
        tensor = self.tensor(name)
        if scale := self._scale_of.get(name):
            tensor = tensor.clone()  # the scale may be in another shard
            return dequantised(tensor, self.tensor(scale), name, self.file_of(name))
        if not tensor.is_floating_point():
            raise SSDError(f"{self.file_of(name)}: tensor {name} holds {str(tensor.dtype)[6:]}, "
                           "expected floating-point numbers: files quantised in this way are not "
                           "read")
        return tensor

    @property
    def has_scales(self) -> bool:
        """Whether a tensor is stored in 8 bits with scales."""
        return bool(self._scale_of)

    def copied(self, name: str, device: torch.device,
               dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """A copy of a tensor on a device, independent of the file."""
        return self.floating(name).to(device, dtype, copy=True)

    def close(self) -> None:
        """Close the open file; reading the next tensor opens it again."""
        self._open = None

    def config(self) -> dict:
        """config.json, or {} if there is none."""
        path = self.folder / "config.json"
        if is_here(path):
            return read_json(path)
        refuse_started_downloads(self.folder)
        return {}

    def names(self) -> list[str]:
        """What the model is called, the nearest first: by the user, its file, its folder or
        repository. Folders above its own say nothing.
        """
        names = (self.called, self.files[0].stem, own_name(self.folder))
        return [name.replace("___", ".") for name in names if name]

    @property
    def made_from(self) -> str:
        """The name in config.json, which may be that of the model it was trained from."""
        return Path(str(self.config().get("_name_or_path") or "")).name.replace("___", ".")

    def variant(self, variants: Iterable[str]) -> str | None:
        """The first of several names that the nearest name mentions, or None; what stands between
        their letters and digits does not matter.
        """
        plain = {each: letters(each) for each in variants}
        return next((each for name in self.names() for each in plain
                     if plain[each] in letters(name)), None)

    def path(self, name: str) -> Path:
        """A companion file such as tokenizer.json. Raises SSDError if it is missing."""
        path = self.folder / name
        if not is_here(path):
            refuse_started_downloads(self.folder)
            raise SSDError(f"{path}: missing; put the model's {name} into this folder")
        return path

    def companion(self, matches: Callable[[Checkpoint], bool]) -> Checkpoint | None:
        """Return the first other model that `matches` accepts, or None.

        Searches this folder, its root and one level below. Skips models that cannot be opened; if
        no model matches, raises the first such error.
        """
        opened = [attempt(path, self.root) for path in companions(self)]
        for other in opened:
            if isinstance(other, Checkpoint):
                for view in filter(matches, other.views()):
                    return view
        for failure in opened:
            if isinstance(failure, SSDError):
                raise failure
        return None


def open_checkpoint(path: Path) -> Checkpoint:
    """The only model in a file, a folder, or the folder's subfolders.

    Raises SSDError naming the file if there is none, if there are several, or if one is incomplete.
    """
    path = user_path(path)
    models = models_at(path)
    if len(models) > 1:
        names = ", ".join(str(model.relative_to(path)) for model in models)
        raise SSDError(f"{path}: holds several models ({names}): name one of these files")
    return Checkpoint(group_of(models[0]), path if path.is_dir() else path.parent)


def attempt(path: Path, root: Path) -> Checkpoint | SSDError:
    """The model that a file belongs to, or the error that opening it raised."""
    try:
        with refusing(path):
            return Checkpoint(group_of(path), root)
    except SSDError as error:
        return error


def models_at(path: Path) -> list[Path]:
    """Return one file of each model at a path. Raises SSDError if there is none."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SSDError(f"{path}: no such file or folder")
    models = models_in(path) or [m for folder in subfolders(path) for m in models_in(folder)]
    if not models:
        refuse_started_downloads(path)
        for file in filter(lambda file: ending(file) == GGUF, entries(path)):
            group_of(file)
        raise SSDError(f"{path}: no weights in this folder or right below it (files that end with "
                       f"{', '.join(ENDINGS)})")
    return models


def models_in(folder: Path, loose: bool = False) -> list[Path]:
    """One file of each model directly in this folder.

    Of one name, safetensors are preferred to pickles, and a single file to shards without an index;
    two whole models of one name are both there. What an index lists is no model of its own.
    loose: all other files are models of their own.
    """
    models: dict[str, list[Path]] = {}
    listed = shards_in(folder)
    files = [path for path in entries(folder) if path.name not in listed and path.is_file()]
    for endings in ((SAFETENSORS,), TORCH):
        named: dict[tuple[str, str], list[Path]] = {}
        for path in files:
            kind = ending(path.with_name(path.name[: -len(INDEX)]) if is_index(path) else path)
            if kind in endings:
                named.setdefault((model_name(path), kind), []).append(path)
        better = set() if loose else set(models)
        for (name, _), paths in named.items():
            if name not in better:
                models.setdefault(name, []).extend(whole_models(paths, loose))
    return [path for _, paths in sorted(models.items()) for path in paths]


def whole_models(paths: Sequence[Path], loose: bool = False) -> list[Path]:
    """Of files of one name and ending, one of each whole model; the first if none is whole."""
    index = [path for path in paths if is_index(path)]
    single = [path for path in paths if path not in index and not SHARD.fullmatch(path.stem)]
    sets = {match["count"]: path for path in reversed(paths)
            if (match := SHARD.fullmatch(path.stem))}
    shards = index or ([] if single and not loose else sorted(sets.values()))
    whole: dict[ShardFiles, Path] = {}
    for path in (*single, *shards):
        with suppress(SSDError):
            whole.setdefault(group_of(path), path)
    return list(whole.values()) or [*single, *shards][:1]


def model_name(path: Path) -> str:
    """The name that all files of a model share; `pytorch_model` is an older name for `model`."""
    stem = Path(path.name[: -len(INDEX)] if is_index(path) else path).stem
    match = SHARD.fullmatch(stem)
    stem = match["stem"] if match else stem
    return "model" if stem == "pytorch_model" else stem


def group_of(path: Path) -> ShardFiles:
    """All files of the model that a file belongs to. Raises SSDError naming a missing one."""
    if ending(path) == GGUF:
        raise SSDError(f"{path}: a GGUF file, quantised for llama.cpp, which is not read: load the "
                       "original, and choose dtype int8 or int4 here")
    index = path if is_index(path) else index_of(path)
    if index is None and ending(path) not in ENDINGS:
        raise SSDError(f"{path}: not a file of weights (they end with {', '.join(ENDINGS)})")
    if index is not None:
        names = sorted(set(weight_map(index).values()))
    elif match := SHARD.fullmatch(path.stem):
        count = int(match["count"])
        names = [f"{match['stem']}-{i + 1:05}-of-{count:05}{path.suffix}" for i in range(count)]
    else:
        names = [path.name]
    files = tuple(path.with_name(name) for name in names)
    for file in files:
        if not os.path.isfile(file):  # Path.is_file raises for a name that is too long
            refuse_started_downloads(file.parent)
            raise SSDError(f"{file}: missing, one of {len(files)} files of this model: get it")
    return files


def index_of(path: Path) -> Path | None:
    """The index that lists this file as one of several, or None."""
    match = SHARD.fullmatch(path.stem)
    index = path.with_name((match["stem"] if match else path.stem) + path.suffix + INDEX)
    if not path.is_file() and os.path.isfile(index):
        return index
    return shards_in(path.parent).get(path.name)


def shards_in(folder: Path) -> dict[str, Path]:
    """{file: the index that lists it, but for a single file of its name}; damaged ones list none.
    """
    listed: dict[str, Path] = {}
    for index in filter(is_index, entries(folder)):
        with suppress(SSDError):
            if (names := set(weight_map(index).values())) != {index.name[: -len(INDEX)]}:
                listed = dict.fromkeys(names, index) | listed
    return listed


def weight_map(index: Path) -> dict[str, str]:
    """{tensor: file} of an index; the files lie beside it. Raises SSDError if it is damaged."""
    files = read_json(index).get("weight_map")
    if not isinstance(files, dict) or not files or not all(
            isinstance(file, str) and file == Path(file).name and ending(Path(file)) in ENDINGS
            for file in files.values()):
        raise SSDError(f"{index}: no weight_map that says which file holds which tensor: get it "
                       "again")
    return files


def read_json(path: Path) -> dict:
    """A JSON object from a file. Raises SSDError if the file holds anything else."""
    refuse_partial(path)
    try:
        data = parse(path)
    except (OSError, ValueError) as error:
        raise SSDError(f"{path}: not readable as JSON ({first_line(error)}): get it again"
                       ) from error
    if not isinstance(data, dict):
        raise SSDError(f"{path}: expected a JSON object, found {type(data).__name__}")
    return data


def refuse_started_downloads(folder: Path) -> None:
    """Raise SSDError if the folder, or the Hub client's cache of it, has unfinished downloads."""
    cache = folder / ".cache" / "huggingface" / "download"
    blobs = home / BLOBS if (home := home_of(folder)) else folder
    for path in (*folder.glob("*.incomplete"), *cache.rglob("*.incomplete"),
                 *blobs.glob("*.incomplete")):
        raise SSDError(f"{folder}: a download into this folder was cut off or still runs "
                       f"({path.name}): finish it")


def companions(checkpoint: Checkpoint) -> Iterator[Path]:
    """One file of each other model in the checkpoint's folder, its root, and one level below."""
    folders = dict.fromkeys(
        folder for top in (checkpoint.folder, checkpoint.root)
        for folder in (top, *subfolders(top)))
    own = model_name(index_of(checkpoint.files[0]) or checkpoint.files[0])
    for folder in folders:
        yield from (path for path in models_in(folder)
                    if folder != checkpoint.folder or model_name(path) != own)


def subfolders(folder: Path) -> list[Path]:
    return [path for path in entries(folder) if path.is_dir()]


def entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise SSDError(f"{folder}: cannot be read ({error.strerror})") from error
