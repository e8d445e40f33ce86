"""Byte-level BPE tokenizers in the files of Qwen: vocab.json, merges.txt and added tokens.

Converted for the tokenizers library, so that prompts need no further dependency. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from ...errors import SSDError, first_line, refusing
from ...files import refuse_partial, small_text
from ..reading.checkpoint import read_json
from .text import Text

WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")  # how Qwen and Emu3 split text
VOCABULARY, MERGES, ADDED = "vocab.json", "merges.txt", "added_tokens.json"


def byte_level(model: models.BPE, pattern: str, control: Sequence[str]) -> Tokenizer:
    """A tokenizer that splits text by a pattern; control tokens get the ids after the model's."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in control])
    return tokenizer


def read_vocabulary_files(folder: Path) -> Text:
    """Read the three files of a folder; SSDError names one that is damaged."""
    path = folder / VOCABULARY
    added = read_json(folder / ADDED)
    refuse_partial(folder / MERGES)
    vocabulary = read_json(path)
    try:
        lines = small_text(folder / MERGES).split("\n")
        pairs = (line.split(" ") for line in lines if line and line[:8] != "#version")
        merges = [(left, right) for left, right in pairs]
        model = models.BPE(vocabulary, merges)
    except Exception as error:  # the library raises plain Exception for any bad file
        raise SSDError(f"{path}: does not fit {MERGES} ({first_line(error)}): get both again"
                       ) from error
    with refusing(folder / ADDED):
        control = sorted(added, key=lambda name: added[name])
        text = Text(byte_level(model, WORDS, control), path)
    if any(text.id(name) != added[name] for name in control):
        raise SSDError(f"{folder / ADDED}: its ids do not follow those of {VOCABULARY}: get both "
                       "again")
    return text
