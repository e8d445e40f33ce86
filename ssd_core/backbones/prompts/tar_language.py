"""Tar's language model: turns text into the TA-Tok codes that condition AR-DTok.

It is transformers' Qwen2, loaded for the first prompt in words. Its sampling is seeded by the
prompt alone: the same words give the same codes, whatever the picture's seed. Knows nothing about
pictures.
"""

from __future__ import annotations

import hashlib
from functools import cached_property, lru_cache
from pathlib import Path

import torch

from ...errors import SSDError
from ...files import refuse_partial
from ...model.sampling import Sampling, probabilities
from ..reading.checkpoint import read_json
from .kept import PromptCache
from .text import Text, read_text
from .text_model import read_text_model

COUNT = 729  # codes per picture at the finest scale, <S0>
SAMPLING = Sampling(temperature=1.0, top_k=1200, top_p=0.95)
TEMPLATE = ("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{prompt}"
            "<|im_end|>\n<|im_start|>assistant\n<im_start><S0>")


class TarLanguage:
    """The tokenizer and model in a folder such as Tar-1.5B, read on first use."""

    def __init__(self, root: Path, codes: int) -> None:
        """root: where to look for the folder; codes: the size of TA-Tok's codebook."""
        self.root, self.codes = root, codes
        self.cache = PromptCache()

    @cached_property
    def folder(self) -> Path | None:
        """The Qwen2 in `root`, below it or in a Tar-* folder beside it; None if there is none."""
        beside = sorted(self.root.parent.glob("Tar-*/config.json"))
        return next((config.parent for config in (*sorted(self.root.rglob("config.json")), *beside)
                     if is_qwen(config)), None)

    @cached_property
    def text(self) -> Text:
        folder = self.required_folder()
        rows = read_json(folder / "config.json").get("vocab_size", 0)
        return read_text(folder / "tokenizer.json", rows)

    def required_folder(self) -> Path:
        """Return `folder`; SSDError if there is none."""
        if self.folder is None:
            raise SSDError(f"{self.root}: Tar's language model is missing: put csuhan/Tar-1.5B "
                           "into its subfolder Tar-1.5B")
        return self.folder

    @cached_property
    def code_ids(self) -> torch.Tensor:
        """[codes] int64: the token ids of TA-Tok's codes, in order."""
        return torch.tensor([self.text.id(f"<I{code}>") for code in range(self.codes)])

    def tokenize(self, prompt: str) -> list[int]:
        """Ids of the chat that requests a picture, up to the first code."""
        self.text.require_plain(prompt)
        for token in ("<im_start>", "<S0>"):  # each must be one token
            self.text.id(token)
        return self.text.encode(TEMPLATE.format(prompt=prompt.strip()))

    @lru_cache(maxsize=64)  # noqa: B019  it lives as long as its backbone
    def draw(self, ids: tuple[int, ...], device: torch.device,
             dtype: torch.dtype) -> tuple[int, ...]:
        """Return COUNT codes for a prompt's ids, cached."""
        return tuple(self.cache.get(self.required_folder(), ids, dtype, lambda: torch.tensor(
            self.sampled(ids, device, dtype), dtype=torch.int32)).tolist())

    def sampled(self, ids: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> list[int]:
        """Sample COUNT codes; afterwards the model is on the CPU again."""
        key = hashlib.sha256(repr(ids).encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(key[:8], "little") >> 1)
        model, x, cache, codes = self.model(dtype).to(device), torch.tensor([ids]), None, []
        try:
            for _ in range(COUNT):
                out = model(input_ids=x.to(device), past_key_values=cache, use_cache=True)
                logits = out.logits[0, -1].float().cpu()[self.code_ids]
                probs = probabilities(logits, SAMPLING)
                code = torch.multinomial(probs, 1, generator=generator)
                codes.append(int(code))
                x, cache = self.code_ids[code][None], out.past_key_values
        finally:
            model.to("cpu")
        return codes

    @lru_cache(maxsize=1)  # noqa: B019
    def model(self, dtype: torch.dtype) -> torch.nn.Module:
        try:
            from transformers import Qwen2ForCausalLM
        except ImportError as error:
            raise SSDError("Tar's language model needs the library transformers: "
                           "pip install transformers") from error
        return read_text_model(Qwen2ForCausalLM, self.required_folder(), dtype,
                               "Tar's language model", r".*\.rotary_emb\.inv_freq")


def is_qwen(config: Path) -> bool:
    """Whether a config.json is a Qwen2's, under its own name or LLaVA's."""
    refuse_partial(config)
    try:
        return "qwen" in str(read_json(config).get("model_type"))
    except SSDError:
        return False
