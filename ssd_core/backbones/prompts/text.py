"""Tokenizers of downloaded backbones: the publisher's tokenizer.json, special ids by name.

The file's own pipeline does the work, without adding special tokens. Adapters add BOS themselves,
since libraries and versions differ in adding it. Knows no prompt template.

Tokenizers from elsewhere are tried in a process of their own first. The library ends its process
for some files, by a failed allocation, and takes memory without end for others. What passed is
remembered by its content.

The files of Qwen (byte-level BPE: vocab.json, merges.txt and added tokens) and .tiktoken files
(byte sequences by rank, merged pair by pair) are converted for the tokenizers library, so that
prompts need no further dependency.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from ...errors import SSDError, first_line, refusing
from ...files import MOST_TEXT, json_text, refuse_partial, small_text
from ...kept_entries import KeptEntries
from ..reading.checkpoint import read_json

SCRIPT = Path(__file__).with_name("read_one_tokenizer.py")
SECONDS = 120.0  # on a busy machine; the script has its own limit of processor time
SOUND, BEGUN, UNTRIED = "sound", "begun", ""
NEWER = ("did not match any variant", "unknown variant", "unknown tokenizer version")
QUIET = {"RAYON_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "PYTHONIOENCODING": "utf-8"}
passed: KeptEntries[str] = KeptEntries("tokenizers.json", str, str)
UNKNOWN = "<unk>"
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")  # how Qwen and Emu3 split text
VOCABULARY, MERGES, ADDED = "vocab.json", "merges.txt", "added_tokens.json"
PRINTABLE = (*range(33, 127), *range(161, 173), *range(174, 256))


def require_sound(path: Path) -> None:
    """Raise SSDError for a tokenizer.json that cannot be read, or ends the process that reads it.

    Where no process can be started, every file passes.
    """
    try:
        if path.stat().st_size > MOST_TEXT:
            raise SSDError(f"{path}: larger than any tokenizer: get it again")
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise SSDError(f"{path}: cannot be read ({error.strerror}): get it again") from error
    key = f"{content} {tokenizers.__version__}"
    if key in passed.read():
        return
    found = tried(path)
    if any(words in found.lower() for words in NEWER):
        raise SSDError(f"{path}: not a tokenizer.json that tokenizers {tokenizers.__version__} "
                       f"knows ({found}): pip install -U tokenizers, or get it again")
    if found not in (SOUND, UNTRIED):
        raise SSDError(f"{path}: not a tokenizer.json ({found}): get it again")
    if found == SOUND:
        passed.put(key, SOUND)


def tried(path: Path) -> str:
    """What the script says of a file: SOUND, what is wrong with it, or UNTRIED if it cannot run."""
    try:
        process = subprocess.run(
            [sys.executable, "-s", str(SCRIPT), str(path.absolute())], timeout=SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **QUIET}, check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0))
    except subprocess.TimeoutExpired:
        return "reading it takes too long"
    except (OSError, ValueError):  # no Python to start here
        return UNTRIED
    begun, _, said = process.stdout.decode("utf-8", "replace").partition("\n")
    if begun.strip() != BEGUN:  # the library is not found there
        return UNTRIED
    return said or "reading it takes too much memory, or ends the process that reads it"


class Text:
    """A tokenizer, and the file it came from for error messages."""

    def __init__(self, tokenizer: Tokenizer, source: Path) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if getattr(tokenizer.model, "dropout", None):  # of its training: it reads words by chance
            tokenizer.model.dropout = None
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
