"""Janus-Pro-1B and -7B: a Llama with separate picture codes and an MLP image head.

Reads the original files, those of the transformers port, and finetunes of either. The prompt is a
chat turn that ends with the begin-of-image token. The unconditional branch replaces the turn by pad
tokens, which are attended to like any token.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from ..files import is_here
from ..model.products import product
from ..model.transformer import Decoder, DecoderShape, sequence_angles
from . import presets
from .base import Backbone, empty
from .codecs.find import draws, read_codec
from .prompts.text import Text, read_text, require_length
from .reading.checkpoint import Checkpoint, read_json
from .reading.decoder_config import number, read_constants, require_names, section
from .reading.weights import decoder_shape, decoder_sources, fill, require_known, two_sizes

FAMILY = "Janus-Pro"
GRID = presets.PAPER["Janus-Pro"].grid  # the only grid it was trained on
PROMPT_LIMIT = 1024
TEMPLATE, PLAIN = "<|User|>: {prompt}\n\n<|Assistant|>:", "User: {prompt}\n\nAssistant:"
BASE = "janus-pro"
# Chat turns by a part of the model's name, the base last. Those that plan in words before they
# draw, or judge their picture afterwards, are only asked to draw.
TURNS = {"janus-4o": TEMPLATE, "t2i-r1": PLAIN, "janus-pro-r1": TEMPLATE, "reasongen-r1": TEMPLATE,
         "janus-1.3b": PLAIN, BASE: TEMPLATE}
UNSURE = ("the files do not say which Janus they are, so the prompt has the chat turn of "
          "Janus-Pro: if it is another, such as T2I-R1 or Janus-1.3B, name its folder after it or "
          "give --family")
TEMPLATES = ("chat_template.json", "tokenizer_config.json", "processor_config.json")
SIZES = {2048: "janus-pro-1b", 4096: "janus-pro-7b"}
HEAD_DIM, THETA, EPS = 128, 10_000.0, 1e-6  # of both models, if config.json has none
# Of understanding pictures, of writing words, and of the codec, which checks its own.
UNUSED = (r"(model\.)?(vision_model|aligner|vqmodel)\..*", r"gen_vision_model\..*",
          r"(language_model\.)?lm_head\.weight")
BEGIN, PAD, IMAGE = "<｜begin▁of▁sentence｜>", "<｜▁pad▁｜>", "<begin_of_image>"


@dataclass(frozen=True)
class TensorNames:
    """Tensor names in a kind of file; aligner and head are Linear layers with biases."""

    config: str
    decoder: str
    codes: str
    aligner: tuple[str, str]
    projection: str
    head: str


LAYOUTS = (
    TensorNames("language_config", "language_model.model.", "gen_embed.weight",
                ("gen_aligner.layers.0", "gen_aligner.layers.2"), "gen_head.output_mlp_projector",
                "gen_head.vision_head"),
    TensorNames("text_config", "model.language_model.", "model.generation_embeddings.weight",
                ("model.generation_aligner.fc1", "model.generation_aligner.hidden_layers.0"),
                "model.generation_head.proj_out", "model.generation_head.vision_head"),
)


class Janus(Backbone):
    """`projection` and GELU lie between the final norm and the head; both layers have biases."""

    grid = GRID
    prompt_limit = PROMPT_LIMIT
    preset = presets.JANUS
    template = TEMPLATE
    text: Text

    def __init__(self, shape: DecoderShape, words: int, codes: int, head_width: int) -> None:
        super().__init__()
        self.codes = codes
        self.word_embedding, self.norm = empty(words, shape.hidden), empty(shape.hidden)
        self.decoder = Decoder(shape)
        self.projection, self.projection_bias = empty(head_width, shape.hidden), empty(head_width)
        self.head, self.head_bias = empty(codes, head_width), empty(codes)
        self.aligner: Aligner | None = None  # computes embeddings where no table of them is stored

    def read_with(self, text: Text) -> None:
        """Set the tokenizer and look up the control tokens, whose ids differ by model."""
        self.text = text
        self.begin, self.pad, self.image = map(text.id, (BEGIN, PAD, IMAGE))

    @property
    def word_reader(self) -> Text:
        return self.text

    def tokenize(self, prompt: str) -> list[int]:
        self.text.require_plain(prompt)
        turn = self.text.encode(self.template.format(prompt=prompt.strip()))
        ids = [self.begin, *turn, self.image]
        require_length(self.name, ids, self.prompt_limit)
        return ids

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        return [prompt_ids[0], *[self.pad] * (len(prompt_ids) - 2), prompt_ids[-1]]

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return super().embed(tokens) if self.aligner is None else self.aligner(tokens)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The MLP image head applied to the normalised state."""
        hidden = F.rms_norm(hidden, hidden.shape[-1:], self.norm, self.decoder.shape.eps)
        hidden = F.gelu(product(hidden, self.projection, self.projection_bias))
        return product(hidden, self.head, self.head_bias).float()


class Aligner(nn.Module):
    """Maps codes to input embeddings; a model from files keeps a table of all of them."""

    def __init__(self, codes: int, dim: int, hidden: int) -> None:
        super().__init__()
        self.codes = empty(codes, dim)
        self.first, self.second = nn.Linear(dim, hidden), nn.Linear(hidden, hidden)

    def sources(self, names: TensorNames) -> dict[str, str]:
        first, second = names.aligner
        return {"codes": names.codes, "first.weight": f"{first}.weight",
                "first.bias": f"{first}.bias", "second.weight": f"{second}.weight",
                "second.bias": f"{second}.bias"}

    def forward(self, tokens: torch.Tensor | None = None) -> torch.Tensor:
        """Codes [N, n] -> [N, n, d]; without any, the embeddings [codes, d] of all."""
        codes = self.codes if tokens is None else F.embedding(tokens, self.codes)
        return self.second(F.gelu(self.first(codes)))


def matches(checkpoint: Checkpoint) -> bool:
    """Whether these are Janus-Pro's tensors, in either layout."""
    return layout_of(checkpoint) is not None


def layout_of(checkpoint: Checkpoint) -> TensorNames | None:
    """The names in these files."""
    return next((names for names in LAYOUTS if names.codes in checkpoint.shapes), None)


def model_of(checkpoint: Checkpoint) -> str | None:
    """The known model that these files are: by their names, or by what config.json says that they
    were made from, which for the base says nothing. None if nothing tells.
    """
    made_from = checkpoint.made_from.lower()
    return checkpoint.variant(TURNS) or next(
        (model for model in TURNS if model in made_from and model != BASE), None)


def turn_in(checkpoint: Checkpoint) -> str | None:
    """The turn of a chat template beside the weights, or None."""
    paths = [checkpoint.folder / name for name in TEMPLATES]
    texts = [str(read_json(path).get("chat_template")) for path in paths if is_here(path)]
    jinja = checkpoint.folder / "chat_template.jinja"
    texts += [jinja.read_text("utf-8", errors="replace")] if is_here(jinja) else []
    return next((turn for turn in (TEMPLATE, PLAIN) for text in texts
                 if turn.partition("{")[0].strip() in text), None)


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Janus:
    """Read a Janus-Pro; SSDError names the file and what is wrong with it."""
    names = require_names(layout_of(checkpoint), checkpoint, FAMILY)
    config = section(checkpoint, names.config)
    constants = read_constants(checkpoint, config, THETA, EPS)
    own = parameter_sources(names)
    words, hidden = two_sizes(checkpoint, own["word_embedding"])
    heads = number(checkpoint, config, "num_attention_heads", hidden // HEAD_DIM or 1)
    shape = decoder_shape(checkpoint, names.decoder, int(heads), config=config, eps=constants.eps)
    codes, width = two_sizes(checkpoint, own["head"])
    with torch.device("meta"):
        backbone = Janus(shape, words, codes, width)
    model = model_of(checkpoint)
    turn = None if model else turn_in(checkpoint)
    backbone.name = model if model and model != BASE else SIZES.get(hidden, BASE)
    backbone.template = TURNS[model] if model else turn or TEMPLATE
    backbone.doubts = () if model or turn else (UNSURE,)
    backbone.read_with(read_text(checkpoint.path("tokenizer.json"), words))
    sources = {**own, **decoder_sources(names.decoder, shape.layers)}
    with torch.device("meta"):
        aligner = Aligner(codes, two_sizes(checkpoint, names.codes)[1], hidden)
    require_known(checkpoint, {**sources, **aligner.sources(names)}, UNUSED)
    prints = fill(backbone, sources, checkpoint, device, dtype)
    aligner_prints = fill(aligner, aligner.sources(names), checkpoint, device, torch.float32)
    if checkpoint.adopted:
        backbone.aligner = aligner
    else:
        backbone.code_embedding = nn.Parameter(aligner().to(dtype), requires_grad=False)
    digests = prints.hexdigest() + aligner_prints.hexdigest()
    backbone.sha256 = hashlib.sha256(digests.encode()).hexdigest() if digests else ""
    backbone.picture_codec = read_codec(
        checkpoint, device, f"get the complete model, its codec of {codes} codes too",
        draws(codes))
    patch = backbone.picture_codec.patch
    backbone.sizes = ((GRID.columns * patch, GRID.rows * patch),)
    slots = PROMPT_LIMIT + GRID.slots
    backbone.angles = sequence_angles(slots, shape.head_dim, constants.theta).to(device)
    return backbone.eval()


def parameter_sources(names: TensorNames) -> dict[str, str]:
    """{own parameter: file key} of all parameters outside the decoder's layers."""
    return {"word_embedding": f"{names.decoder}embed_tokens.weight",
            "norm": f"{names.decoder}norm.weight",
            "projection": f"{names.projection}.weight",
            "projection_bias": f"{names.projection}.bias",
            "head": f"{names.head}.weight", "head_bias": f"{names.head}.bias"}


