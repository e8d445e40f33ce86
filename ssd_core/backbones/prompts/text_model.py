"""Text models that transformers computes: flan-T5's encoder, and a cache of what such models give.

A file of the cache holds the outputs for one prompt. Its name is a hash of the text model and the
prompt's ids; processes and machines may share the folder.

flan-T5's encoder, which LlamaGen was trained on, is transformers' own, loaded for the first prompt.
It stays in main memory: prompts are short, and the card's memory is for the backbone.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import torch

from ...errors import SSDError, first_line
from ...files import read_safetensors, refuse_partial, write_safetensors
from ..reading.checkpoint import open_checkpoint, read_json
from .text import Text, read_text, require_length

FORMAT, NAME = "ssd-prompt/1", "prompt"
WEIGHTS = ("*.safetensors", "*.bin")
SAMPLE = 1 << 20  # bytes at each end of a file of weights
END = "</s>"
SLOTS = 120
DASHES = "[\u2010-\u2015\u00ad\u058a\u05be\u1400\u1806\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u301c\u3030" \
         "\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d]"
FILES = "png|jpe?g|bmp|webp|eps|pdf|apk|mp4"
# How captions were cleaned before training: (pattern, replacement), in this order.
BEFORE_ENTITIES = (
    (r"<person>", "person"),
    (r"\bhttps?:/{1,3}|\b[a-z0-9.\-]+\.(?:com?|ru|net|org|edu|gov|it)[\w/-]*\b/?(?!@)", ""),
    (r"<[^<>]*>", ""),  # HTML
    (r"@\w+\b", ""),  # names of accounts
    ("[\u31c0-\u31ef\u31f0-\u31ff\u3200-\u4dbf\u4dc0-\u4dff\u4e00-\u9fff]+", ""),
    (DASHES, "-"), ("[`\u00b4\u00ab\u00bb\u201c\u201d\u00a8]", '"'), ("[\u2018\u2019]", "'"),
    (r"&quot;?|&amp", ""), (r"\d{1,3}(?:\.\d{1,3}){3}", " "), (r"\d:\d\d\s+$", ""), (r"\\n", " "),
    (r"#(?:\d{1,3}|\d{5,})\b|\b\d{6,}\b", ""), (rf"\S+\.(?:{FILES})", ""),
    (r"[\"']{2,}", '"'), (r"\.{2,}", " "),
    (r"[#&@~()\[\]{}|\\/*\u00a1\u00a7\u00a9\u00ae\u00b7\u00ba\u00bd-\u00bf\u2022\u2122]+", " "),
    (r"\s+\.\s+", " "),
)
AFTER_ENTITIES = (
    (r"\b[a-z]{1,3}\d{3,15}\b|\b[a-z]+\d+[a-z]+\b|\b\d+[a-z]+\d+\b", ""),  # article numbers
    (r"(?:worldwide\s+)?(?:free\s+)?shipping|(?:free\s)?download(?:\sfree)?", ""),
    (r"\bclick\b\s(?:for|on)\s\w+", ""), (rf"\b(?:{FILES})(?:\simages?)?", ""),
    (r"\bpage\s+\d+\b", ""), (r"\b\d*[a-z]+\d+[a-z]+\d+[a-z\d]*\b", " "),
    (r"\b\d+\.?\d*[x\u0445\u00d7]\d+\.?\d*\b", ""), (r"\b\s+:\s+", ": "),
    (r"(\D[,./])\b", r"\1 "), (r"\s+", " "), (r"^[\"']([\w\W]+)[\"']$", r"\1"),
    (r"^['_,\-:;]", ""), (r"['_,\-:+]$", ""), (r"^\.\S+$", ""),
)


def read_text_model(kind: Any, folder: Path, dtype: torch.dtype, what: str,
                    unused: str) -> torch.nn.Module:
    """A model of transformers' class `kind`, frozen.

    unused: a regular expression of the tensors that it leaves out. Raises SSDError, which calls the
    model `what`, if files are damaged, quantised or beside an adapter, or if a tensor is missing or
    unknown: transformers would go on with random numbers, or without what it does not know.
    """
    if open_checkpoint(folder).has_scales:
        raise SSDError(f"{folder}: {what} is stored in 8 bits with scales, which is read for "
                       "backbones only: load the original")
    config = kind.config_class.from_dict(read_json(folder / "config.json"))
    try:
        model, found = kind.from_pretrained(folder, config=config, torch_dtype=dtype,
                                            local_files_only=True, output_loading_info=True)
    except Exception as error:  # the library raises many types for damaged files
        raise SSDError(f"{folder}: {what} cannot be read ({first_line(error)}): get it again"
                       ) from error
    if missing := sorted(found["missing_keys"]):
        raise SSDError(f"{folder}: tensor {missing[0]} of {what} is missing: get the complete "
                       "model")
    if strange := sorted(key for key in found["unexpected_keys"] if not re.fullmatch(unused, key)):
        raise SSDError(f"{folder}: tensor {strange[0]} has no place in {what}: another kind of "
                       "model, or an altered one")
    return model.requires_grad_(False).eval()


def fingerprint(folder: Path) -> str:
    """Hash names, sizes, times and ends of a model's files; all bytes would take too long."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in WEIGHTS for path in folder.glob(pattern)):
        size, changed = path.stat().st_size, path.stat().st_mtime_ns
        digest.update(f"{path.name} {size} {changed}".encode())
        with path.open("rb") as file:
            digest.update(file.read(SAMPLE))
            file.seek(max(0, size - SAMPLE))
            digest.update(file.read())
    return digest.hexdigest()


class PromptCache:
    """Tensors in a folder, by the ids of prompts; without a folder nothing is cached."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.fingerprints: dict[Path, str] = {}

    def get(self, model: Path, ids: Sequence[int], dtype: torch.dtype,
            read: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Return `read()`, the output of the model in folder `model` for these ids, or its cached
        copy.

        An unreadable file is replaced. Raises SSDError if the folder cannot be written.
        """
        if self.folder is None:
            return read()
        key = hashlib.sha256(repr((self.fingerprint_of(model), tuple(ids), dtype)).encode())
        name = key.hexdigest()
        path = self.folder / name[:2] / f"{name}.safetensors"
        with suppress(SSDError, KeyError):
            return read_safetensors(path, FORMAT)[0][NAME]
        output = read().contiguous()
        write_safetensors({NAME: output}, path, {"format": FORMAT})
        return output

    def fingerprint_of(self, model: Path) -> str:
        """Return `fingerprint(model)`, computed once per folder."""
        if model not in self.fingerprints:
            self.fingerprints[model] = fingerprint(model)
        return self.fingerprints[model]


def clean(prompt: str) -> str:
    """Clean a prompt like the training captions: lower case, plain punctuation, no web remnants."""
    return clean_once(clean_once(prompt))


def clean_once(text: str) -> str:
    text = unicodedata.normalize("NFC", html.unescape(unquote_plus(text))).strip().lower()
    for pattern, replacement in BEFORE_ENTITIES:
        text = re.sub(pattern, replacement, text)
    if len(re.findall("[-_]", text)) > 3:  # words-joined-like-this
        text = re.sub("[-_]", " ", text)
    text = html.unescape(html.unescape(text)).strip()
    for pattern, replacement in AFTER_ENTITIES:
        text = re.sub(pattern, replacement, text)
    return text.strip()


class FlanT5:
    """The tokenizer and encoder in a folder such as flan-t5-xl, read on first use."""

    def __init__(self, root: Path, width: int) -> None:
        """root: where to look for the folder; width: the required size of the features."""
        self.root, self.width = root, width
        self.cache = PromptCache()

    @cached_property
    def folder(self) -> Path:
        """The T5 in `root`, below it or beside it. Raises SSDError if there is none."""
        beside = self.root.parent / "flan-t5-xl" / "config.json"
        for config in (*sorted(self.root.rglob("config.json")), beside):
            if config.is_file() and t5_width(config) == self.width:
                return config.parent
        raise SSDError("LlamaGen reads prompts with flan-T5: put google/flan-t5-xl (config.json, "
                       f"tokenizer.json, model*.safetensors) into {self.root / 'flan-t5-xl'}")

    @cached_property
    def text(self) -> Text:
        rows = read_json(self.folder / "config.json").get("vocab_size", 0)
        return read_text(self.folder / "tokenizer.json", rows)

    def tokenize(self, prompt: str, name: str) -> list[int]:
        """Ids of the cleaned prompt and the end token; SSDError if they exceed SLOTS."""
        self.text.require_plain(prompt)
        ids = [*self.text.encode(clean(prompt)), self.text.id(END)]
        require_length(name, ids, SLOTS)
        return ids

    @lru_cache(maxsize=64)  # noqa: B019  it lives as long as its backbone
    def features(self, ids: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """[n, width] on the CPU: the encoder's output for a prompt's n ids, cached.

        Computed in float32 if `dtype` is float32, else in bfloat16: T5 overflows in float16.
        """
        dtype = torch.float32 if dtype == torch.float32 else torch.bfloat16
        return self.cache.get(self.folder, ids, dtype, lambda: self.encoded(ids, dtype))

    @torch.no_grad()
    def encoded(self, ids: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """The encoder's output [n, width] for a prompt's n ids."""
        return self.encoder(dtype)(input_ids=torch.tensor([ids])).last_hidden_state[0]

    @lru_cache(maxsize=1)  # noqa: B019
    def encoder(self, dtype: torch.dtype) -> torch.nn.Module:
        try:
            from transformers import T5EncoderModel
        except ImportError as error:
            raise SSDError("LlamaGen reads prompts with flan-T5, which needs the library "
                           "transformers: pip install transformers") from error
        return read_text_model(T5EncoderModel, self.folder, dtype, "flan-T5",
                               r"(decoder|lm_head)\..*")


def t5_width(config: Path) -> int | None:
    """d_model of a T5's config.json; None for any other file."""
    refuse_partial(config)
    try:
        config_values = read_json(config)
    except SSDError:
        return None
    return config_values.get("d_model") if config_values.get("model_type") == "t5" else None
