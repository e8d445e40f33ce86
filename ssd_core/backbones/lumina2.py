"""Lumina-mGPT 2.0 and 2.0-Omni: Chameleon's decoder, a Qwen vocabulary and SBER's MoVQGAN.

The prompt is Lumina-mGPT's; cells are 8 x 8 px. A picture may have two panels, one above the other,
such as a depth map and the picture that belongs to it (prompts/two_panels.py). A prompt that begins
with DUAL_PANEL asks for them. Only Omni was trained to draw the lower one for a given upper one.

Guidance is constant. The authors' code would lower it with every token, but never below 4; at
their own setting, 4, it is constant too.
"""

from __future__ import annotations

import torch

from ..errors import SSDError
from . import presets
from .chameleon import (
    EMBEDDING,
    EPS,
    ROW_END,
    THETA,
    VOCABULARY,
    Lumina,
    is_chameleon,
    shape_in,
    sources_of,
)
from .codecs.find import draws, read_codec
from .codecs.movq import movqgan_of
from .prompts.text import read_text
from .prompts.two_panels import CONTROLS, DUAL_PANEL
from .reading.checkpoint import Checkpoint, read_json
from .reading.decoder_config import read_constants
from .reading.weights import two_sizes
from .shared_vocabulary import Vocabulary
from .sizes import LUMINA_2, TWO_PANELS

FAMILY = "Lumina-mGPT 2.0"
FIRST_CODE, CODES = 155_000, 16_384  # of the published models; their code writes these numbers too
OMNI, PLAIN = "omni", "lumina-mgpt-2.0"  # in names; the files of the two are alike otherwise
CODEC = "put movqgan_270M.ckpt of ai-forever/MoVQGAN into its subfolder vq"


class Lumina2(Lumina):
    """A prompt for two panels is used as it is; any other gets the words for one picture."""

    name = "lumina-mgpt-2.0"
    patch = 8
    preset = presets.LUMINA_2
    sizes = LUMINA_2
    two_panels = TWO_PANELS

    def instruction(self, prompt: str) -> str:
        return prompt if prompt.startswith(DUAL_PANEL) else super().instruction(prompt)


def matches(checkpoint: Checkpoint) -> bool:
    """Whether these are a Chameleon's tensors, with a larger vocabulary than Chameleon's."""
    return is_chameleon(checkpoint) and checkpoint.shapes[EMBEDDING][:1] > (VOCABULARY,)


def begin_of(checkpoint: Checkpoint) -> str:
    """The token that begins every prompt: the tokenizer's first or, if it has none, its last."""
    path = checkpoint.path("tokenizer_config.json")
    config = read_json(path)
    for token in (config.get("bos_token"), config.get("eos_token")):
        name = token.get("content") if isinstance(token, dict) else token
        if isinstance(name, str):
            return name
    raise SSDError(f"{path}: names no bos_token and no eos_token, one of which begins each prompt: "
                   "get it again")


def read_vocabulary(checkpoint: Checkpoint) -> Vocabulary:
    """Read the tokenizer; all ids that prompts use come before the codes."""
    text = read_text(checkpoint.path("tokenizer.json"), two_sizes(checkpoint, EMBEDDING)[0])
    if text.id(ROW_END) >= FIRST_CODE:
        raise SSDError(f"{text.source}: has control tokens behind the words, from id {FIRST_CODE} "
                       "on: take the tokenizer that belongs to this model")
    return Vocabulary(text, FIRST_CODE, FIRST_CODE, CODES, text.id(ROW_END))


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Lumina2:
    """Read a model; SSDError names the file and what is wrong with it."""
    config = checkpoint.config()
    constants = read_constants(checkpoint, config, THETA, EPS)
    shape = shape_in(checkpoint, config, constants.eps)
    vocabulary, begin = read_vocabulary(checkpoint), begin_of(checkpoint)
    with torch.device("meta"):
        backbone = Lumina2(shape, vocabulary, constants.theta, begin)
    codec = read_codec(checkpoint, device, CODEC, draws(vocabulary.codes), movqgan_of)
    backbone.load(checkpoint, sources_of(checkpoint, vocabulary, shape), codec, device, dtype)
    if (checkpoint.variant((OMNI, PLAIN)) or checkpoint.made_from.lower()).count(OMNI):
        backbone.controls = CONTROLS
    return backbone
