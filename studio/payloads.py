"""Values that the page never sends but others may: each becomes an SSDError of one line."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from ssd_core import SSDError
from ssd_core.model.knobs import coerce
from ssd_core.unicode import require_unicode

from .settings import whole


def uploaded(path: object) -> str:
    """The path of an uploaded file."""
    if not isinstance(path, str) or not path:
        raise SSDError("no file was sent: drop a PNG")
    require_unicode("file", path)
    return path


def action_value(text: object) -> Any:
    """What a tool of a stage wants: an id, or a picture."""
    try:
        return json.loads(coerce("wish", text, str))["value"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SSDError("wish: cannot be read; use the button beside a picture") from error


def action_picture(text: object) -> tuple[str, int]:
    """Id and seed of the picture that a tool of a stage is about."""
    picture = action_value(text)
    if not isinstance(picture, dict) or not isinstance(picture.get("id"), str):
        raise SSDError("wish: cannot be read; use the button beside a picture")
    return picture["id"], whole("seed", picture.get("seed"))


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """A value that is one of these texts."""
    if not isinstance(value, str) or value not in choices:
        raise SSDError(f"{name} {str(value)[:40]!r}: choose one of {', '.join(choices)}")
    return value


def listed(name: str, value: object) -> list[str]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise SSDError(f"{name} {str(value)[:40]!r}: must be a list of texts")
    return value


def at(name: str, value: object, count: int) -> int:
    """A position in a list of so many."""
    place = whole(name, value)
    if not 0 <= place < count:
        raise SSDError(f"{name} {place}: must lie in 0 .. {count - 1}")
    return place
