"""Chinese translations of the texts that the engine and the hosts write in English.

assets/chinese.json maps English templates, with {0}, {1} ... for values, to Chinese. `lines` are
errors (a test compares them with the source), `notes` sentences beside a picture, `report` lines of
reports, and `phrases` texts that may be values.
"""

from __future__ import annotations

import json
import re
from functools import cache

from ..files import ASSETS

CATALOGUE = ASSETS / "chinese.json"
SLOT, ANY = re.compile(r"\{\d+\}"), "(.*?)"
ANYWHERE = ("phrases", "notes", "lines")


def in_chinese(text: str) -> str:
    """A line or a phrase in Chinese; unchanged if there is no translation."""
    return next((chinese for kind in ANYWHERE if (chinese := _chinese(text, kind))), text)


def report_in_chinese(text: str) -> str:
    """A text of several lines in Chinese; lines without a translation are unchanged."""
    return "\n".join(_whole(line) or _chinese(line, "report") or in_chinese(line)
                     for line in text.split("\n"))


def _whole(line: str) -> str | None:
    """The Chinese of a line without values, which templates of the report may match too."""
    return next((catalogue()[kind][line] for kind in ("report", *ANYWHERE)
                 if line in catalogue()[kind]), None)


def _chinese(text: str, kind: str) -> str | None:
    """The Chinese of a text of this kind; None if there is no translation."""
    for english, pattern, chinese in _templates(kind):
        if match := pattern.fullmatch(text):
            values = [in_chinese(value) for value in match.groups()]
            if says_something(english) or values != list(match.groups()):
                return chinese.format(*values)
    return None


def says_something(english: str) -> bool:
    """Whether a template has words. "{0}: {1}" has none and matches nearly every line."""
    return not SLOT.search(english) or re.search("[a-z]{2}", SLOT.sub("", english)) is not None


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
