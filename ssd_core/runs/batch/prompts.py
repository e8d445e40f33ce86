"""Read files with one prompt per line: plain text, or JSON on every line (.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path

from ...backbones.base import Backbone
from ...errors import SSDError, first_line
from ...files import require_file, require_unicode

JSON_LINES, KEY = (".jsonl", ".ndjson"), "prompt"
OTHER_FORMATS = (".json", ".csv", ".tsv", ".yaml", ".yml", ".parquet")
LONGEST = 20_000  # characters of a prompt; longer ones take seconds to read, and draw nothing
WANTED = "give a text file in UTF-8, one prompt a line"


def read_prompts(path: Path, backbone: Backbone) -> list[str]:
    """The prompts of a file. Raises SSDError with the number of a line that cannot be drawn."""
    numbered = prompts_of(path)
    if not numbered:
        raise SSDError(f"{path}: holds no prompts; write one a line")
    for number, prompt in numbered:
        require_drawable(backbone, prompt, f"{path}, line {number}")
    return [prompt for _, prompt in numbered]


def prompts_of(path: Path) -> list[tuple[int, str]]:
    """(line number, prompt). Blank lines are skipped; in plain text # starts a comment."""
    if path.suffix.lower() in OTHER_FORMATS:
        raise SSDError(f"{path}: prompts are not read from {path.suffix} files: {WANTED}, or a "
                       f".jsonl file whose lines have the key {KEY}")
    require_file(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise SSDError(f"{path}: prompts cannot be read ({first_line(error)}): {WANTED}"
                       ) from error
    written = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    if path.suffix.lower() in JSON_LINES:
        return [(number, from_json(line, f"{path}, line {number}")) for number, line in written]
    return [(number, line) for number, line in written if not line.startswith("#")]


def from_json(line: str, place: str) -> str:
    """The prompt of a line of a .jsonl file: a text, or an object with the key KEY."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SSDError(f"{place}: not JSON ({error}): write an object with the key {KEY}, or name "
                       "the file .txt if its lines are prompts") from error
    prompt = value.get(KEY) if isinstance(value, dict) else value
    if not isinstance(prompt, str) or not prompt.strip():
        raise SSDError(f"{place}: has no text under the key {KEY}: name each prompt so")
    return prompt.strip()


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
