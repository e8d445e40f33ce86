"""Tokenizers of downloaded backbones: the publisher's tokenizer.json, special ids by name.

The file's own pipeline does the work, without adding special tokens. Adapters add BOS themselves,
since libraries and versions differ in adding it. Knows no prompt template.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from ...errors import SSDError, refusing
from ...files import refuse_partial
from ..reading.plain_json import json_text
from .trial import require_sound

UNKNOWN = "<unk>"


class Text:
    """A tokenizer, and the file it came from for error messages."""

    def __init__(self, tokenizer: Tokenizer, source: Path) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self.tokenizer, self.source = tokenizer, source
        self.control = [token.content for token in tokenizer.get_added_tokens_decoder().values()
                        if token.special]

    @property
    def entries(self) -> int:
        """The id after the largest one."""
        return 1 + max(self.tokenizer.get_vocab(with_added_tokens=True).values(), default=0)

    def id(self, token: str) -> int:
        """Id of a token by name; SSDError if this tokenizer does not know it."""
        if (number := self.tokenizer.token_to_id(token)) is None:
            raise SSDError(f"{self.source}: knows no token {token}: take the tokenizer that "
                           "belongs to this model")
        return number

    def require_ids(self, vocabulary: int) -> None:
        """Raise SSDError if the tokenizer has ids beyond a model's `vocabulary`."""
        if self.entries > vocabulary:
            raise SSDError(f"{self.source}: its ids reach {self.entries - 1}, the model's "
                           f"vocabulary has {vocabulary}: take the tokenizer that belongs to this "
                           "model")

    def encode(self, text: str) -> list[int]:
        """Ids of a text; special tokens appear only where the text spells them out."""
        with refusing(self.source):
            return self.tokenizer.encode(text, add_special_tokens=False).ids

    def unknown_spans(self, text: str) -> list[tuple[int, int]]:
        """[start, end) of each stretch of letters, digits or pictures in a text that no token
        stands for, but the one for all that is unknown.
        """
        name = getattr(self.tokenizer.model, "unk_token", UNKNOWN)  # a Unigram does not say
        unknown = self.tokenizer.token_to_id(name) if name else None
        with refusing(self.source):
            found = self.tokenizer.encode(text, add_special_tokens=False)
        known = {at for number, span in zip(found.ids, found.offsets, strict=True)
                 if number != unknown for at in range(*span)}
        return joined([(at, at + 1) for at, character in enumerate(text)
                       if at not in known and says_something(character)])

    def require_plain(self, prompt: str) -> None:
        """Raise SSDError if a prompt spells a control token, which would break the template."""
        for token in self.control:
            if token in prompt:
                raise SSDError(f"the prompt holds the control token {token}: leave it out")


def joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that touch as one."""
    whole: list[tuple[int, int]] = []
    for start, end in spans:
        if whole and whole[-1][1] >= start:
            start = whole.pop()[0]
        whole.append((start, end))
    return whole


def says_something(character: str) -> bool:
    """Whether a character is a letter, a digit or a picture, such as an emoji."""
    kind = unicodedata.category(character)
    return kind[0] in "LN" or kind == "So"


def read_text(path: Path, vocabulary: int) -> Text:
    """Read the tokenizer.json of a model whose text embedding has `vocabulary` rows.

    Raises SSDError if the file is not a tokenizer, or has ids beyond the model's.
    """
    refuse_partial(path)
    require_sound(path)
    with refusing(path):
        text = Text(Tokenizer.from_str(json_text(path)), path)
    text.require_ids(vocabulary)
    return text


def require_length(name: str, ids: Sequence[int], limit: int) -> None:
    """Raise SSDError if a prompt with its template is longer than the backbone accepts."""
    if len(ids) > limit:
        raise SSDError(f"the prompt takes {len(ids)} tokens, {name} takes at most {limit}: "
                       "shorten it")

