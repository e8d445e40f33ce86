"""Error lines in the language of the page."""

from __future__ import annotations

from ssd_core.output.chinese import in_chinese

from .words import CHINESE


def in_language(language: str, line: str) -> str:
    """An error line in this language; unchanged if there is no translation."""
    return in_chinese(line) if language == CHINESE else line
