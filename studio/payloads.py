"""Values that the page never sends but others may: each becomes an SSDError of one line."""

from __future__ import annotations

from collections.abc import Collection

from ssd_core import SSDError


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
