"""Settings that hold only for the words that were typed for them, as text for a browser to keep.

Such a setting is stored together with those words; while others are in the boxes it is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ssd_core import SSDError
from ssd_core.output.words import Words
from ssd_core.unicode import require_unicode

LONGEST = 20_000  # characters of one setting


def to_text(typed: Sequence[str], value: Sequence[str]) -> str:
    """A value with the words that it belongs to; "" for nothing."""
    record = {"typed": [text.strip() for text in typed], "value": list(value)}
    return json.dumps(record, ensure_ascii=False) if value else ""


def open_text(prompt: str, names: Sequence[str]) -> str:
    """The additions that are left away from what is filled into a prompt."""
    return to_text([prompt], names)


def fixed_text(typed: Words, drawn: Words | None) -> str:
    """The words to draw for what was typed; "" to fill it in anew."""
    return to_text(texts(typed), texts(drawn) if drawn else ())


def texts(words: Words) -> list[str]:
    return [words.prompt, words.negative or ""]


def open_of(text: object, prompt: str) -> tuple[str, ...]:
    return tuple(value_of("open", text, [prompt]))


def fixed_of(text: object, prompt: str, negative: str) -> Words | None:
    """The words that were fixed for this prompt and negative prompt, if any were."""
    value = value_of("fixed", text, [prompt, negative])
    if value and len(value) != 2:
        raise unreadable("fixed")
    return Words(value[0], value[1] or None) if value else None


def value_of(name: str, text: object, typed: Sequence[str]) -> list[str]:
    """The value that is stored in a text, if it was stored for these words.

    Raises SSDError for a text that `to_text` did not write.
    """
    if not text:
        return []
    try:
        record = json.loads(text) if isinstance(text, str) and len(text) <= LONGEST else {}
        words = [*record["typed"], *record["value"]]
        right = isinstance(record["value"], list) and all(isinstance(word, str) for word in words)
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise unreadable(name) from error
    if not right:
        raise unreadable(name)
    for word in words:
        require_unicode(name, word)
    return record["value"] if record["typed"] == list(typed) else []


def unreadable(name: str) -> SSDError:
    return SSDError(f"{name}: cannot be read; leave it empty")
