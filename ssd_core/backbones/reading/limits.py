"""What a file of weights may ask of its reader: checked before it is read.

Headers and descriptions are small in every published model; a file in which they are not would take
all memory, or never end. Knows nothing about tensors.
"""

from __future__ import annotations

import pickletools
import zipfile
import zlib
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from ...errors import SSDError

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
