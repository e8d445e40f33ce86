"""Read files with one prompt per line: plain text, or JSON on every line (.jsonl).

A line may tell more: a seed, a negative prompt, and settings that all pictures of a run share. In
plain text it does so in the form of Automatic1111's web UI, as `--prompt "a house" --seed 5`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ...backbones.base import Backbone
from ...errors import SSDError, first_line
from ...files import require_file, require_unicode
from ...model.sampling import Sampling
from ...output.drawing import Drawing, text_or_none, whole
from ...output.outside import taken_in

T = TypeVar("T")
JSON_LINES, KEY = (".jsonl", ".ndjson"), "prompt"
OWN = ("seed", "negative")  # what every picture may have of its own
LINE = (KEY, *OWN, "size", *(name for name in Sampling.__dataclass_fields__ if name != "seed"))
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SEEDS = 1 << 64
OTHER_FORMATS = (".json", ".csv", ".tsv", ".yaml", ".yml", ".parquet")
LONGEST = 20_000  # characters of a prompt; longer ones take seconds to read, and draw nothing
WANTED = "give a text file in UTF-8, one prompt a line"


@dataclass(frozen=True)
class PromptLine:
    """A prompt, where it stands, and what its line tells besides it.

    settings: under the names of `Drawing`. notes: what of the line is not used.
    """

    prompt: str
    place: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def seed(self) -> int | None:
        """Its own seed; -1 leaves it to the run, as in other programs."""
        value = self.settings.get("seed")
        seed = None if value is None else self.checked(whole, "seed", value)
        return None if seed == -1 else seed

    @property
    def negative(self) -> str | None:
        """Its own negative prompt; None for that of the run."""
        return self.checked(text_or_none, "negative", self.settings.get("negative"))

    def checked(self, read: Callable[[str, Any], T], name: str, value: Any) -> T:
        try:
            return read(name, value)
        except SSDError as error:
            raise SSDError(f"{self.place}: {error}") from error

    def require_shared(self, drawing: Drawing) -> None:
        """Raise SSDError if this line wants another value for a setting that a run has once."""
        shared = {name: value for name, value in self.settings.items() if name not in OWN}
        wanted = self.checked(lambda _, raw: Drawing.from_json(raw, drawing), "", shared).to_json()
        have = drawing.to_json()
        for name in shared:
            if wanted[name] != have[name]:
                raise SSDError(f"{self.place}: {name} {wanted[name]}, the run draws all pictures "
                               f"with {have[name] if have[name] is not None else 'its default'}: "
                               f"give --{name.replace('_', '-')}, and put lines with other values "
                               "into a file of their own")


def read_prompts(path: Path, backbone: Backbone) -> list[PromptLine]:
    """The lines of a file. Raises SSDError with the number of a line that cannot be drawn."""
    lines = prompts_of(path)
    if not lines:
        raise SSDError(f"{path}: holds no prompts; write one a line")
    for line in lines:
        for text in (line.prompt, line.negative):
            if text is not None:
                require_drawable(backbone, text, line.place)
        require_seed(line)
    return lines


def require_seed(line: PromptLine) -> None:
    if line.seed is not None and not 0 <= line.seed < SEEDS:
        raise SSDError(f"{line.place}: seed {line.seed}: must be from 0 to 2^64 - 1")


def prompts_alone(lines: Sequence[PromptLine]) -> list[str]:
    """The prompts; SSDError for a line that tells more, where nothing would be done with it."""
    for line in lines:
        for name in line.settings:
            raise SSDError(f"{line.place}: {name} is not used here: remove it")
    return [line.prompt for line in lines]


def prompts_of(path: Path) -> list[PromptLine]:
    """The lines. Blank ones are skipped; in plain text # starts a comment."""
    if path.suffix.lower() in OTHER_FORMATS:
        raise SSDError(f"{path}: prompts are not read from {path.suffix} files: {WANTED}, or a "
                       f".jsonl file whose lines have the key {KEY}")
    require_file(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise SSDError(f"{path}: prompts cannot be read ({first_line(error)}): {WANTED}"
                       ) from error
    written = [(f"{path}, line {number}", line.strip())
               for number, line in enumerate(lines, 1) if line.strip()]
    if path.suffix.lower() in JSON_LINES:
        return [from_json(line, place) for place, line in written]
    return [from_flags(line, place) if line.startswith("--") else PromptLine(line, place)
            for place, line in written if not line.startswith("#")]


def from_json(line: str, place: str) -> PromptLine:
    """A line of a .jsonl file: a text, or an object with the key KEY."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SSDError(f"{place}: not JSON ({error}): write an object with the key {KEY}, or name "
                       "the file .txt if its lines are prompts") from error
    return with_settings(value if isinstance(value, dict) else {KEY: value}, place)


def from_flags(line: str, place: str) -> PromptLine:
    """A line of flags: each with a value, or without one if it says yes."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise SSDError(f"{place}: {error}: write --{KEY} \"a house\" --seed 5") from error
    raw: dict[str, Any] = {}
    while words:
        name = words.pop(0)
        if not name.startswith("--"):
            raise SSDError(f"{place}: {name[:40]!r} follows no flag: put the text of a flag into "
                           "quotes")
        raw[name[2:]] = True if not words or words[0].startswith("--") else words.pop(0)
    return with_settings(raw, place)


def with_settings(raw: Mapping[str, Any], place: str) -> PromptLine:
    """The line of named values; SSDError if none of them is a prompt."""
    try:
        found = taken_in(raw, LINE)
    except SSDError as error:
        raise SSDError(f"{place}: {error}") from error
    settings = dict(found.settings)
    prompt = settings.pop(KEY, None)
    if not isinstance(prompt, str) or not prompt.strip():
        raise SSDError(f"{place}: has no text under the key {KEY}: name each prompt so")
    notes = tuple(f"{place}: {words}" for words in found.words(LINE))
    return PromptLine(prompt.strip(), place, numbered(settings), notes)


def numbered(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with numbers in place of texts of numbers, as flags have them."""
    return {name: float(value) if isinstance(value, str) and NUMBER.fullmatch(value) and
            name not in (*OWN, "size") else value for name, value in settings.items()}


def require_drawable(backbone: Backbone, prompt: str, place: str) -> None:
    """Raise SSDError for a prompt that cannot be drawn, before a long run reaches it."""
    if len(prompt) > LONGEST:
        raise SSDError(f"{place}: {len(prompt)} characters, a prompt has at most {LONGEST}: "
                       "shorten it")
    try:
        require_unicode("prompt", prompt)
        backbone.tokenize(prompt)
    except SSDError as error:
        raise SSDError(f"{place}: {error}") from error
