"""Whether a text can be written at all: Python's may hold halves of surrogate pairs."""

from __future__ import annotations

from .errors import SSDError


def is_unicode(text: str) -> bool:
    """Whether it can be encoded as UTF-8; half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_unicode(name: str, text: str) -> None:
    """Raise SSDError for a text that no file, page or terminal could hold."""
    if not is_unicode(text):
        place = next(i for i, one in enumerate(text) if "\ud800" <= one <= "\udfff")
        raise SSDError(f"{name}: character {place + 1} is half of one (U+{ord(text[place]):04X}): "
                       "delete it, or type the whole character")
