"""Find backbones and draft heads in model folders, with the same names in every host.

A backbone's name is its path below the model folder, without the file name if the folder has only
one model. ComfyUI saves these names in workflows. Only headers are read.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..backbones import BACKBONES
from ..backbones.reading.adapters import CONFIG as ADAPTER_CONFIG
from ..backbones.reading.adapters import hash_of as lora_hash
from ..backbones.reading.adapters import split as split_lora
from ..backbones.reading.checkpoint import ENDINGS, GGUF, ending, group_of, models_in
from ..backbones.reading.tensor_files import SAFETENSORS
from ..engine.heads import FORMAT as HEADS_FORMAT
from ..errors import SSDError
from ..files import read_safetensors, sha256_of, user_path
from .catalogue import (
    BACKBONES_FOLDER,
    CATALOGUE,
    GB,
    LICENCE,
    KnownBackbone,
    Source,
    nearest_names,
)
from .find import (
    HEADS_FILE,
    backbones_below,
    bundled,
    family_of,
    find_backbone,
    folders_below,
    heads_files_below,
    in_place,
    is_bundled,
    is_heads,
    metadata_of,
    portable,
    stamp,
    visible,
)

HEADS_FOLDER = "ssd_heads"
LORAS_FOLDER = "loras"
AUTO, BUNDLED, NONE = "auto", "bundled", "none"


@dataclass(frozen=True)
class LocalModel:
    """A local backbone; `path` is what `load_backbone` takes.

    heads: draft heads stored with it or under its name, None if there are none; whether they fit is
    known only after it is loaded. why_not: a line on why it cannot be read; empty if it can.
    """

    name: str
    family: str
    path: Path
    heads: Path | None = None
    licence: str = ""
    why_not: str = ""

    @property
    def readable(self) -> bool:
        return not self.why_not

    @property
    def bytes(self) -> int:
        """What its files take on the disk; what several links lead to counts once."""
        files = self.path.rglob("*") if self.path.is_dir() else files_of(self.path)
        return sum(file.stat().st_size for file in {file.resolve() for file in files}
                   if file.is_file())

    @property
    def file(self) -> Path:
        """The first file of the backbone; SSDError if it is not readable."""
        if not self.path.is_dir():
            return self.path
        return find_backbone(self.path)[0].files[0]


@dataclass(frozen=True)
class LocalHeads:
    """Draft heads in a heads folder; `backbone` and `sha256` identify their backbone."""

    name: str
    path: Path
    backbone: str
    sha256: str

    @property
    def label(self) -> str:
        return f"{self.name} [{self.backbone}]"


class ModelRegistry:
    """Backbones and draft heads in a host's folders; on equal names the first folder wins.

    remedy: says what to do in this host to download the known backbone of a name.
    """

    def __init__(self, backbone_folders: Iterable[str | Path], heads_folders: Iterable[str | Path],
                 remedy: Callable[[str], str], lora_folders: Iterable[str | Path] = ()) -> None:
        self.backbone_folders = [user_path(folder) for folder in backbone_folders]
        self.heads_folders = [user_path(folder) for folder in heads_folders]
        self.lora_folders = [user_path(folder) for folder in lora_folders]
        self.remedy = remedy

    @classmethod
    def below(cls, models_dir: str | Path) -> ModelRegistry:
        """The models of a single folder, without ComfyUI."""
        folder = user_path(models_dir)
        return cls([folder / BACKBONES_FOLDER], [folder / HEADS_FOLDER],
                   lambda name: (f"run python -m ssd_core download {name} --models-dir "
                                 f"{shlex.quote(str(models_dir))} in a terminal"),
                   [folder / LORAS_FOLDER])

    # Backbones

    def backbones(self) -> dict[str, LocalModel]:
        """Every readable backbone by name, bundled ones first."""
        result: dict[str, LocalModel] = {}
        for root in self.backbone_folders:
            for name, path, family in backbones_below(root):
                result.setdefault(name, self._found(name, family, path))
        return {**bundled_models(), **result}

    def unread(self) -> list[LocalModel]:
        """All other entries of the backbone folders, with the reason why each cannot be read."""
        read = [backbone.path for backbone in self.backbones().values()]
        entries = [entry for root in self.backbone_folders for entry in models_of(root)]
        return [LocalModel(entry.name, "", entry, why_not=family_of(entry)[1]) for entry in entries
                if not any(entry in (path, *path.parents) for path in read)]

    def choices(self) -> list[str]:
        """Names to choose from: local backbones, then known ones that can be downloaded."""
        return list(dict.fromkeys([*self.backbones(), *CATALOGUE]))

    def listed(self, name: str) -> LocalModel | None:
        """The listed backbone of a name, or of its file's path below the folder; None if absent.

        Saved workflows may name the file of a backbone that is alone in its folder.
        """
        backbones = self.backbones()
        files = {backbone.path.relative_to(root).as_posix(): backbone
                 for root in reversed(self.backbone_folders) for backbone in backbones.values()
                 if backbone.path.is_relative_to(root)}
        return {**files, **backbones}.get(name)

    def named(self, name: str) -> LocalModel:
        """The backbone with this name, or at this path to a file or folder.

        Raises SSDError with the way to get it, or the names to choose from.
        """
        user_path(name)  # may be no path at all
        if model := self.listed(name):
            return model
        folder = self.folder_of(name)
        whole = folder.exists() and not lacks_files(name, folder)
        path = folder if whole else in_place(name)
        if not name or not path.exists():
            raise SSDError(self.how_to_get(name))
        family, why_not = family_of(path)
        return self._found(name, family, path, why_not)

    def backbone_path(self, name: str) -> Path:
        """The path for `load_backbone` of a name or path; raises SSDError as `named` does."""
        return self.named(name).path

    def folder_of(self, name: str) -> Path:
        """The folder of a backbone, whether it exists or not."""
        places = [folder / name for folder in self.backbone_folders]
        return next((place for place in places if place.exists()), places[0])

    def how_to_get(self, name: str) -> str:
        """A line about a missing or damaged backbone, with the remedy."""
        if damage := self.damage(name):
            return damage
        if name in CATALOGUE:
            return download_hint(CATALOGUE[name], self.folder_of(name), self.remedy(name))
        return (f"backbone {name!r} is not here: put it into {places(self.backbone_folders)}, or "
                f"choose another, such as {nearest_names(name, self.choices())}")

    def damage(self, name: str) -> str | None:
        """A line if a local backbone cannot be read; None if it is absent or lacks files."""
        path = self.folder_of(name)
        below = not Path(name).is_absolute() and not {"..", "."} & set(Path(name).parts)
        if not name or not below or not path.exists() or lacks_files(name, path):
            return None
        why_not = family_of(path)[1]
        return f"backbone {name!r} is here but cannot be read: {why_not}" if why_not else None

    def _found(self, name: str, family: str, path: Path, why_not: str = "") -> LocalModel:
        licence = next((CATALOGUE[part].licence.name for part in reversed(name.split("/"))
                        if part in CATALOGUE), "")
        return LocalModel(name, family, path, self._own(path), licence, why_not)

    # Adapters

    def loras(self) -> dict[str, Path]:
        """What may be a LoRA in the folders for them, by its path below: PEFT's folders, files."""
        found: dict[str, Path] = {}
        for root in self.lora_folders:
            for folder in folders_below(root):
                peft = folder != root and (folder / ADAPTER_CONFIG).is_file()
                for path in (folder,) if peft else visible(folder):
                    if peft or (path.suffix == SAFETENSORS and path.is_file()):
                        found.setdefault(path.relative_to(root).as_posix(), path)
        return dict(sorted(found.items()))

    def lora(self, named: str) -> str:
        """FILE or FILE:STRENGTH with the path of a file that is named as in `loras`, with or
        without its ending; other files as they are.
        """
        path, strength = split_lora(named)
        known = self.loras()
        name = path.as_posix()
        found = known.get(name, known.get(name + SAFETENSORS))
        return named if path.exists() or found is None else f"{found}:{strength:g}"

    def loras_of(self, recipe: Mapping) -> list[str]:
        """The adapters of a checked recipe, as FILE:STRENGTH; SSDError if one is gone."""
        return [f"{self._lora_like(lora)}:{lora['strength']!r}" for lora in recipe.get("lora", ())]

    def _lora_like(self, wanted: Mapping) -> Path:
        known = list(self.loras().values())
        for path in sorted(known, key=lambda path: path.name != wanted["name"]):
            with suppress(SSDError):
                if lora_hash(path) == wanted["sha256"]:
                    return path
        raise SSDError(f"LoRA {wanted['name'][:80]!r} ({wanted['sha256'][:10]}), with which the "
                       f"picture was drawn, is not here: put it into {places(self.lora_folders)}")

    # Draft heads

    def heads(self) -> dict[str, LocalHeads]:
        """The draft heads in the heads folders, by label (name and backbone)."""
        result: dict[str, LocalHeads] = {}
        for root in self.heads_folders:
            for name, path in heads_files_below(root):
                if is_heads(path):
                    about = metadata_of(path)
                    heads = LocalHeads(name, path, about.get("backbone", "unknown"),
                                     about.get("backbone_sha256", ""))
                    result.setdefault(heads.label, heads)
        return dict(sorted(result.items()))

    def unread_heads(self) -> list[Path]:
        """Files in the heads folders that are not draft heads, or not of a readable version."""
        return [path for root in self.heads_folders for _, path in heads_files_below(root)
                if not is_heads(path)]

    def heads_for(self, backbone: Path, selection: str | None = AUTO,
                  hashes: str | Sequence[str] | None = None) -> Path | None:
        """The file with draft heads for a backbone; None for no heads.

        selection: auto (or None), bundled (must be beside the backbone), none, a name, a label or a
        path; SSDError if not found. hashes: of the loaded backbone; with them `auto` returns only
        heads made for it, or else for the model that a LoRA was merged into. Before loading, `auto`
        only finds heads stored with the backbone.
        """
        if selection in (AUTO, None):
            return self._own(backbone) if hashes is None else self._fitting(backbone, hashes)
        if selection == NONE:
            return None
        return self._beside(backbone) if selection == BUNDLED else self._heads_named(str(selection))

    def heads_mismatch(self, backbone: Path, hashes: str | Sequence[str]) -> str | None:
        """A line if a backbone has draft heads but none of them fits, else None."""
        if not (own := self._with(backbone)) or self._fitting(backbone, hashes):
            return None
        return (f"draft heads {own[0]} do not fit this backbone (made for another one, or "
                "damaged): get or train them again, or choose none")

    def _own(self, backbone: Path) -> Path | None:
        return next(filter(is_heads, self._with(backbone)), None)

    def _fitting(self, backbone: Path, hashes: str | Sequence[str]) -> Path | None:
        paths = [path for path in (*self._with(backbone), *(heads.path for heads in
                                                            self.heads().values()))
                 if is_heads(path)]
        return next((path for sha256 in ((hashes,) if isinstance(hashes, str) else hashes)
                     for path in paths
                     if metadata_of(path).get("backbone_sha256") == sha256), None)

    def _with(self, backbone: Path) -> list[Path]:
        """Files meant for this backbone: in a heads folder under its name, where drafts that
        learned from one's own pictures are, or beside it.
        """
        own = [root / file for root in self.heads_folders for name in self._names(backbone)
               for file in (name / HEADS_FILE, name.with_name(f"{name.name}.safetensors"))]
        return [path for path in (*own, *beside(backbone)) if path.is_file()]

    def _names(self, backbone: Path) -> list[Path]:
        """The names of a backbone below a model folder, or of a bundled one."""
        if is_bundled(backbone):
            return [Path(portable(backbone))]
        inside = [backbone.relative_to(root) for root in self.backbone_folders
                  if backbone.is_relative_to(root)]
        order = reversed if backbone.is_dir() else iter
        return [name for path in inside for name in order((path.parent, stem(path)))
                if name != Path()]

    def drafts_file(self, backbone: Path) -> Path:
        """Where drafts that learn from one's own pictures are saved for a backbone at this path."""
        name = next(iter(self._names(backbone)), Path(stem(backbone).name))
        return self.heads_folders[0] / name / HEADS_FILE

    def drafts_by_hash(self, sha256: str) -> Path | None:
        """The file of the drafts that a recipe names, also of an earlier version; None if gone."""
        bundled_ones = (path / HEADS_FILE for name in BACKBONES if (path := bundled(name)))
        beside_ones = (path for model in self.backbones().values() for path in beside(model.path))
        paths = (*(heads.path for heads in self.heads().values()), *beside_ones, *bundled_ones)
        return next((path for path in paths if is_heads(path) and hash_of(path) == sha256), None)

    def _beside(self, backbone: Path) -> Path:
        for path in beside(backbone):
            if path.is_file():
                return path
        raise SSDError(f"no {HEADS_FILE} lies beside {backbone}: choose '{AUTO}', which works "
                       f"without heads too, or heads from "
                       f"{places(self.heads_folders)}")

    def _heads_named(self, selection: str) -> Path:
        named = [heads.path for label, heads in self.heads().items()
                 if selection in (label, heads.name)]
        below = [root / selection for root in self.heads_folders]
        for path in (*named, *below, bundled(selection) or user_path(selection)):
            file = path / HEADS_FILE if path.is_dir() else path
            if selection and file.is_file():
                return file
        raise SSDError(self.no_heads(selection))

    def no_heads(self, selection: str) -> str:
        """A line about draft heads that were not found, or whose file holds none."""
        names = (selection, f"{selection}.safetensors")
        if path := next((path for path in self.unread_heads() if path.name in names), None):
            return (f"draft heads {selection!r}: {path} holds none that this version reads: get or "
                    f"train them again, or choose one of {', '.join((AUTO, NONE, *self.heads()))}")
        return (f"draft heads {selection!r} are not here: put them into "
                f"{places(self.heads_folders)}, or choose one of "
                f"{', '.join((AUTO, NONE, *self.heads()))}")


def hash_of(heads: Path) -> str:
    """The hash of a file of heads, by which recipes name it; computed once where it is not told."""
    return metadata_of(heads).get("sha256") or _hash_of(heads, stamp(heads.parent))


@cache
def _hash_of(heads: Path, _stamp: tuple) -> str:
    try:
        return sha256_of(read_safetensors(heads, HEADS_FORMAT)[0])
    except SSDError:
        return ""


def models_of(root: Path) -> list[Path]:
    """What may be a model in a backbone folder: its folders, and one file of each loose model."""
    inside = visible(root)
    loose = (files_of(path)[0] for path in (models_in(root, loose=True) if inside else ()))
    return sorted({*loose, *(path for path in inside if path.is_dir() or ending(path) == GGUF)})


def files_of(path: Path) -> tuple[Path, ...]:
    """All files of the model that a file belongs to; itself alone if others are missing."""
    try:
        return group_of(path)
    except SSDError:
        return (path,)


def places(folders: Iterable[Path]) -> str:
    return " or ".join(map(str, folders))


def named(path: Path) -> str:
    """A heads file as folder name and file name."""
    return f"{path.parent.name}/{path.name}"


def bundled_models() -> dict[str, LocalModel]:
    """The backbones that come with the program, by name; a folder may hold two dtypes of one."""
    return {name: LocalModel(name, name, path, path / HEADS_FILE, "Apache-2.0")
            for name in BACKBONES if (path := bundled(name))}


def stem(path: Path) -> Path:
    """A path without the suffix of a weights file."""
    return path.with_suffix("") if ending(path) in ENDINGS else path


def beside(backbone: Path) -> list[Path]:
    """Where heads of a backbone would be stored. backbone: a file, its folder or the parent."""
    if not backbone.is_dir():
        return [backbone.with_name(HEADS_FILE)]
    try:
        inner = find_backbone(backbone)[0].folder
    except SSDError:
        inner = backbone
    return [folder / HEADS_FILE for folder in dict.fromkeys((backbone, inner))]


# Known backbones whose files are missing


def patterns(source: Source) -> list[str]:
    """Required files of a source, as patterns below the backbone's folder; without licences."""
    wanted = (pattern for pattern in (*source.files, *source.extras) if pattern != LICENCE)
    return [f"{source.folder}/{pattern}" if source.folder else pattern for pattern in wanted]


def lacks_files(name: str, folder: Path) -> bool:
    """Whether a folder lacks files of a known backbone."""
    return name in CATALOGUE and bool(missing_files(CATALOGUE[name], folder))


def missing_files(row: KnownBackbone, folder: Path) -> dict[Source, list[str]]:
    """Patterns of each source that match no file in the folder; empty if nothing is missing."""
    absent = {source: [pattern for pattern in patterns(source)
                       if not any(folder.glob(pattern))] for source in row.sources}
    return {source: names for source, names in absent.items() if names}


def download_hint(row: KnownBackbone, folder: Path, remedy: str) -> str:
    """One line: the missing files, how to download them, and where to put them."""
    size = f"about {row.about_bytes / GB:.1f} GB, " if row.about_bytes else ""
    absent = missing_files(row, folder)
    files = "; ".join(f"{', '.join(names)} of https://huggingface.co/{source.repo}"
                      for source, names in absent.items())
    state = "lacks files" if folder.is_dir() else "is not here"
    return (f"backbone {row.name} {state} ({size}licence: {row.licence.name}): {remedy}, "
            f"or put all of these into {folder}: {files}; postcard needs no download")
