"""Error lines in the language of the page.

The engine and the app raise English lines. errors_zh.json has the Chinese of each by its English
template, in which {0}, {1} ... stand for the values; a test compares its templates with the source.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from .words import CHINESE

CATALOGUE = Path(__file__).with_name("errors_zh.json")
SLOT = re.compile(r"\{\d+\}")


def in_language(language: str, line: str) -> str:
    """An error line in this language; as it is where the catalogue does not have it."""
    return _chinese(line) if language == CHINESE else line


def _chinese(line: str) -> str:
    for pattern, chinese in _lines():
        found = pattern.fullmatch(line)
        if found is None:
            continue
        values = [_value(value) for value in found.groups()]
        if _says_something(pattern) or values != list(found.groups()):
            return chinese.format(*values)
    return line


def _value(value: str) -> str:
    """A value may be one of our own phrases, or another error line."""
    return _catalogue()["values"].get(value) or _chinese(value)


def _says_something(pattern: re.Pattern) -> bool:
    """ "{0}: {1}" fits nearly every line, so it alone proves nothing."""
    return re.search(r"\w{2}", pattern.pattern.replace(ANY, "")) is not None


ANY = "(.*?)"


@cache
def _catalogue() -> dict[str, dict[str, str]]:
    return json.loads(CATALOGUE.read_text(encoding="utf-8"))


@cache
def _lines() -> list[tuple[re.Pattern, str]]:
    """(pattern of the English template, Chinese template), those with the most words first."""
    lines = _catalogue()["lines"]
    ordered = sorted(lines, key=lambda english: len(SLOT.sub("", english)), reverse=True)
    return [(_pattern(english), lines[english]) for english in ordered]


def _pattern(english: str) -> re.Pattern:
    return re.compile(ANY.join(map(re.escape, SLOT.split(english))), re.DOTALL)
