"""Error lines in the language of the page.

The engine and the app raise English lines. errors_zh.json maps the English template of each, in
which {0}, {1} ... stand for values, to Chinese; a test compares the templates with the source. Its
phrases are texts that may appear as a value.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from .words import CHINESE

CATALOGUE = Path(__file__).with_name("errors_zh.json")
SLOT, ANY = re.compile(r"\{\d+\}"), "(.*?)"


def in_language(language: str, line: str) -> str:
    """An error line in this language; unchanged if there is no translation."""
    return _value(line) if language == CHINESE else line


def _chinese(text: str, kind: str) -> str | None:
    """The Chinese of a line or a phrase; None if there is no translation."""
    for english, pattern, chinese in _templates(kind):
        if found := pattern.fullmatch(text):
            values = [_value(value) for value in found.groups()]
            if says_something(english) or values != list(found.groups()):
                return chinese.format(*values)
    return None


def _value(value: str) -> str:
    """A text in Chinese, if it is one of our phrases or an error line."""
    return _chinese(value, "phrases") or _chinese(value, "lines") or value


def says_something(english: str) -> bool:
    """Whether a template has words. "{0}: {1}" has none and matches nearly every line."""
    return re.search("[a-z]{2}", SLOT.sub("", english)) is not None


@cache
def catalogue() -> dict[str, dict[str, str]]:
    return json.loads(CATALOGUE.read_text(encoding="utf-8"))


@cache
def _templates(kind: str) -> list[tuple[str, re.Pattern, str]]:
    """(English template, its pattern, Chinese template), longest English first."""
    ordered = sorted(catalogue()[kind].items(), key=lambda pair: -len(SLOT.sub("", pair[0])))
    return [(english, _pattern(english), chinese) for english, chinese in ordered]


def _pattern(english: str) -> re.Pattern:
    return re.compile(ANY.join(map(re.escape, SLOT.split(english))), re.DOTALL)
