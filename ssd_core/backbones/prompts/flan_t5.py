"""Features of a prompt from flan-T5's encoder, which LlamaGen was trained on.

The encoder is transformers' own, loaded for the first prompt. It stays in main memory: prompts are
short, and the card's memory is for the backbone. Knows nothing about pictures.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import unquote_plus

import torch

from ...errors import SSDError
from ...files import refuse_partial
from ..reading.checkpoint import read_json
from .kept import PromptCache
from .text import Text, read_text, require_length
from .text_model import read_text_model

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
