"""JSON as people and editors leave it: with a byte order mark, comments and trailing commas."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...files import MOST_TEXT, json_of

# Strings, which stay as they are, or what JSON has not; each match takes what it began with to its
# end, so that no text takes long.
STRING = r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))'
COMMENT = re.compile(STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
LAST_COMMA = re.compile(STRING + r"|,(?=\s*[\]}])", re.DOTALL)


def json_text(path: Path) -> str:
    """The text of a JSON file in any of Unicode's encodings. Raises OSError, or ValueError for
    other bytes and for a file that is too long.
    """
    if (size := path.stat().st_size) > MOST_TEXT:
        raise ValueError(f"{size >> 20} MiB long, at most {MOST_TEXT >> 20} are read")
    raw = path.read_bytes()
    return raw.decode(json.detect_encoding(raw))


def without_extras(text: str) -> str:
    """The text without comments and trailing commas."""
    for pattern in (COMMENT, LAST_COMMA):
        text = pattern.sub(lambda match: match[1] or "", text)
    return text


def parse(path: Path) -> object:
    """What a JSON file holds. Raises OSError, or ValueError if it is not JSON even so."""
    text = json_text(path)
    try:
        return json_of(text)
    except ValueError:
        return json_of(without_extras(text))
