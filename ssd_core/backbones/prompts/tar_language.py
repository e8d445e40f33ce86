"""Tar's language model: turns text into the TA-Tok codes that condition AR-DTok.

It is transformers' Qwen2, loaded for the first prompt in words. Its sampling is seeded by the
prompt alone: the same words give the same codes, whatever the picture's seed. Knows nothing about
pictures.

TA-Tok's decoder makes the features that AR-DTok, Tar's de-tokenizer, was trained on: three layers
in SigLIP2's shape over a square of codes, in float32 on the CPU, once per prompt.
"""

from __future__ import annotations

import hashlib
from functools import cached_property, lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError
from ...files import refuse_partial
from ...model.sampling import Sampling, probabilities
from ...model.surroundings import scaled_dot_product_attention
from ..reading.checkpoint import Checkpoint, read_json
from ..reading.weights import fill, require_known, two_sizes
from .text import Text, read_text
from .text_model import PromptCache, read_text_model

COUNT = 729  # codes per picture at the finest scale, <S0>
SAMPLING = Sampling(temperature=1.0, top_k=1200, top_p=0.95)
TEMPLATE = ("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{prompt}"
            "<|im_end|>\n<|im_start|>assistant\n<im_start><S0>")
HEADS, EPS = 12, 1e-6  # Siglip2VisionConfig's defaults, which the published decoder uses
BODY = "decoder.vision_model."
CODEBOOK = "bottleneck.regularizer.embedding.weight"
NAMES = {  # (own name, the file's)
    "project": "bottleneck.regularizer.embedding_proj", "widen": "bottleneck.out_linear",
    "embed": f"{BODY}embeddings.patch_embedding", "norm": f"{BODY}post_layernorm",
    "task_in": "decode_task_layer.0", "task_out": "decode_task_layer.2"}
LAYER_NAMES = {
    "norm1": "layer_norm1", "norm2": "layer_norm2", "query": "self_attn.q_proj",
    "key": "self_attn.k_proj", "value": "self_attn.v_proj", "out": "self_attn.out_proj",
    "ffn_in": "mlp.fc1", "ffn_out": "mlp.fc2"}
# Of reading pictures, and SigLIP's pooled head, which the features do not pass.
UNUSED = (r"(encoder|teacher)\..*", r"(encode_task_layer|bottleneck\.in_linear|scale_layer)\..*",
          r"decoder\.vision_model\.head\..*")
POSITIONS = f"{BODY}embeddings.position_embedding.weight"


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


class Layer(nn.Module):
    """Pre-norm attention over all codes, then a GELU feed-forward network; biases everywhere."""

    def __init__(self, width: int, ffn: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, EPS), nn.LayerNorm(width, EPS)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.ffn_in, self.ffn_out = nn.Linear(width, ffn), nn.Linear(ffn, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        q, k, v = (project(y).unflatten(-1, (HEADS, -1)).transpose(0, 1)
                   for project in (self.query, self.key, self.value))  # [heads, n, D]
        x = x + self.out(scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1))
        y = F.gelu(self.ffn_in(self.norm2(x)), approximate="tanh")
        return x + self.ffn_out(y)


class TaTok(nn.Module):
    """Turns a square of codes into features; codebook rows are read from the file when needed."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        self.codes, dim = two_sizes(checkpoint, CODEBOOK)
        width, channels = two_sizes(checkpoint, f"{NAMES['embed']}.weight")
        ffn = two_sizes(checkpoint, f"{BODY}encoder.layers.0.{LAYER_NAMES['ffn_in']}.weight")[0]
        layers = len({key.split(".")[4] for key in checkpoint.shapes
                      if key.startswith(f"{BODY}encoder.layers.")})
        self.width = width
        self.project, self.widen = nn.Linear(dim, dim), nn.Linear(dim, channels)
        self.embed, self.norm = nn.Linear(channels, width), nn.LayerNorm(width, EPS)
        self.positions = nn.Parameter(torch.empty(two_sizes(checkpoint, POSITIONS)))
        self.layers = nn.ModuleList(Layer(width, ffn) for _ in range(layers))
        self.task_in, self.task_out = nn.Linear(width, width), nn.Linear(width, width)

    def sources(self) -> dict[str, str]:
        """{own parameter: the file's tensor}."""
        names = {**NAMES, **{f"layers.{i}.{own}": f"{BODY}encoder.layers.{i}.{theirs}"
                             for i in range(len(self.layers))
                             for own, theirs in LAYER_NAMES.items()}}
        parts = {f"{own}.{kind}": f"{theirs}.{kind}" for own, theirs in names.items()
                 for kind in ("weight", "bias")}
        return {**parts, "positions": POSITIONS}

    @lru_cache(maxsize=64)  # noqa: B019  it lives as long as its backbone
    def features(self, codes: tuple[int, ...]) -> torch.Tensor:
        """[n, width] of n codes, which form a square, row by row."""
        with torch.no_grad():
            rows = self.checkpoint.floating(CODEBOOK)[list(codes)].float()
            return self(F.normalize(self.project(rows), dim=-1))

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Quantised vectors [n, dim] of unit length -> features [n, width]."""
        side = round(len(codes) ** 0.5)
        x = self.embed(self.widen(codes)) + self.resized_positions(side)
        for layer in self.layers:
            x = layer(x)
        return self.task_out(torch.tanh(self.task_in(self.norm(x))))

    def resized_positions(self, side: int) -> torch.Tensor:
        """[side * side, width]: the learned square of positions, resized."""
        learned = round(len(self.positions) ** 0.5)
        square = self.positions.T.unflatten(1, (learned, learned))[None]
        square = F.interpolate(square, (side, side), mode="bilinear", antialias=True)
        return square[0].flatten(1).T


def matches(checkpoint: Checkpoint) -> bool:
    """Whether this is a TA-Tok that includes its decoder."""
    return CODEBOOK in checkpoint.shapes and POSITIONS in checkpoint.shapes


def read_ta_tok(checkpoint: Checkpoint) -> TaTok:
    """Read TA-Tok's decoder from a ta_tok.pth; SSDError names a missing or misshapen tensor."""
    with torch.device("meta"):
        reader = TaTok(checkpoint)
    require_known(checkpoint, {**reader.sources(), "codebook": CODEBOOK}, UNUSED)
    fill(reader, reader.sources(), checkpoint, torch.device("cpu"), torch.float32)
    return reader.requires_grad_(False).eval()
