"""Tokenizers published as a .tiktoken file: byte sequences by rank, merged pair by pair.

Converted for the tokenizers library, so that prompts need no further dependency. Knows no model:
the caller gives the pattern that splits text, and the control tokens.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import models

from ...errors import SSDError, first_line
from ...files import refuse_partial
from .byte_level import byte_level
from .text import Text

PRINTABLE = (*range(33, 127), *range(161, 173), *range(174, 256))


def byte_letters() -> list[str]:
    """One printable letter per byte, as byte-level tokenizers write them."""
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in PRINTABLE else chr(next(hidden)) for byte in range(256)]


def read_ranks(path: Path) -> dict[bytes, int]:
    """{bytes: rank} from lines of base64 and a number. Raises SSDError for a malformed line."""
    refuse_partial(path)
    try:
        pairs = (line.split() for line in path.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(token, validate=True): int(rank) for token, rank in pairs}
    except (OSError, ValueError, binascii.Error) as error:
        raise SSDError(f"{path}: not a whole .tiktoken file ({first_line(error)}): get it "
                       "again") from error
    if sorted(ranks.values()) != list(range(len(ranks))) or not all(
            bytes([byte]) in ranks for byte in range(256)):
        raise SSDError(f"{path}: its ranks have gaps or bytes are missing: get it again")
    return ranks


def merges(ranks: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """All pairs that form a known sequence, in the order in which they are merged."""
    for token in sorted(ranks, key=ranks.__getitem__):
        pairs = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
        known = [pair for pair in pairs if pair[0] in ranks and pair[1] in ranks]
        yield from sorted(known, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))


def read_tiktoken(path: Path, pattern: str, control: Sequence[str]) -> Text:
    """Read a .tiktoken file; control tokens get the ids after the last rank."""
    ranks, letters = read_ranks(path), byte_letters()
    def spelled(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    model = models.BPE({spelled(token): rank for token, rank in ranks.items()},
                       [(spelled(left), spelled(right)) for left, right in merges(ranks)])
    return Text(byte_level(model, pattern, control), path)
