"""Files of prompts: one a line. Blank lines and lines that begin with # do not count."""

from __future__ import annotations

from pathlib import Path

from ..backbones.base import Backbone
from ..errors import SSDError, first_line


def read_prompts(path: Path, backbone: Backbone) -> list[str]:
    """The lines of a file that are neither blank nor comments, which begin with #.

    SSDError names the line that cannot be drawn.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise SSDError(f"{path}: prompts cannot be read ({first_line(error)}): give a "
                       "text file in UTF-8, one prompt a line") from error
    told = [(number, line.strip()) for number, line in enumerate(lines, 1)
            if line.strip() and not line.strip().startswith("#")]
    if not told:
        raise SSDError(f"{path}: holds no prompts; write one a line")
    for number, prompt in told:
        require_drawable(backbone, prompt, f"{path}, line {number}")
    return [prompt for _, prompt in told]


def require_drawable(backbone: Backbone, prompt: str, place: str) -> None:
    """Raise SSDError now for a prompt that would end a long run later."""
    try:
        backbone.tokenize(prompt)
    except SSDError as error:
        raise SSDError(f"{place}: {error}") from error
