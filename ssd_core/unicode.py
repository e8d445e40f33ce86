"""Check that a text can be encoded: a Python string may hold half of a surrogate pair."""

from __future__ import annotations

from .errors import SSDError


def is_unicode(text: str) -> bool:
    """Whether `text` can be encoded as UTF-8; half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_unicode(name: str, text: str) -> None:
    """Raise SSDError for a text that cannot be encoded, and name the first bad character."""
    if not is_unicode(text):
        place = next(i for i, char in enumerate(text) if "\ud800" <= char <= "\udfff")
        raise SSDError(f"{name}: character {place + 1} is half of one (U+{ord(text[place]):04X}): "
                       "delete it, or type the whole character")
