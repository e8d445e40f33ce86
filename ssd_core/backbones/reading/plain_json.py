"""JSON as people and editors leave it: with a byte order mark, comments and trailing commas."""

from __future__ import annotations

import json
import re

# Strings, which stay as they are, or what JSON has not; each match takes what it began with to its
# end, so that no text takes long.
STRING = r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))'
COMMENT = re.compile(STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
LAST_COMMA = re.compile(STRING + r"|,(?=\s*[\]}])", re.DOTALL)


def json_text(raw: bytes) -> str:
    """The text of a JSON file in any of Unicode's encodings. Raises ValueError for other bytes."""
    return raw.decode(json.detect_encoding(raw))


def without_extras(text: str) -> str:
    """The text without comments and trailing commas."""
    for pattern in (COMMENT, LAST_COMMA):
        text = pattern.sub(lambda match: match[1] or "", text)
    return text


def parse(raw: bytes) -> object:
    """What a JSON file holds. Raises ValueError if it is not JSON, even without extras."""
    text = json_text(raw)
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(without_extras(text))
