"""What is known of a real model before one draws: its sizes, good prompts, weak points, sources.

Only what its authors or users report; figures are theirs. A host shows it where models are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..backbones import sizes
from .catalogue import KnownBackbone


@dataclass(frozen=True)
class Advice:
    """prompts, weak: a sentence each. sources: (name, link) of who reports it.

    oracle: the implementation that our tests compare the family with.
    """

    prompts: str
    weak: str
    sources: tuple[tuple[str, str], ...]
    oracle: str


JANUS_PAPER = ("arXiv 2501.17811", "https://arxiv.org/abs/2501.17811")
LUMINA_2_README = ("its README", "https://github.com/Alpha-VLLM/Lumina-mGPT-2.0")
LLAMAGEN_PAPER = ("arXiv 2406.06525", "https://arxiv.org/abs/2406.06525")
SMALL_FACES = ("384 x 384 pixels lack fine details; small faces suffer most. It writes simple text "
               "only.")
CHAMELEON, WRITTEN_OUT = "transformers' Chameleon", "its equations written out"
ADVICE = {
    "Janus-Pro": Advice(
        "Short prompts work, too: its authors report steadier pictures from them than from "
        "Janus.", SMALL_FACES,
        (JANUS_PAPER,), "transformers' Janus"),
    "SimpleAR": Advice(
        "Describe a photograph at length: every prompt is drawn as a highly realistic image, "
        "unless it says before a bar what else it is: an oil painting of | a fox.",
        "The 0.5B model scores 0.59 in GenEval, which asks for numbers, colours and places of "
        "things; the 1.5B model 0.63.",
        (("its README", "https://github.com/wdrink/SimpleAR"),),
        "transformers' Qwen2; its codec's equations written out"),
    "LlamaGen": Advice(
        "Captions as on the web and of aesthetic pictures, which it was trained on.",
        "775M parameters behind a frozen text encoder; its authors hope for more from larger "
        "models and more data.", (LLAMAGEN_PAPER,), WRITTEN_OUT),
    "LlamaGen-c2i": Advice(
        "A class of ImageNet by its name or number, such as goldfish.",
        "Other things than these 1000 classes cannot be drawn.", (LLAMAGEN_PAPER,), WRITTEN_OUT),
    "Lumina-mGPT": Advice(
        "Describe a photograph in detail; wide and tall sizes work as well as the square.",
        "Numbers, places and the colours of several things often come out wrong: 0.50 in GenEval, "
        "which asks for them.",
        (("arXiv 2408.02657", "https://arxiv.org/abs/2408.02657"),
         ("arXiv 2606.20543", "https://arxiv.org/abs/2606.20543")), CHAMELEON),
    "Lumina-mGPT 2.0": Advice(
        "Long, precise descriptions: its authors let a language model write them out first.",
        "Slow: 694 seconds and 80 GB on an A100 with its authors' code.",
        (LUMINA_2_README, ("arXiv 2507.17801", "https://arxiv.org/abs/2507.17801")), CHAMELEON),
    "Anole": Advice(
        "An instruction or a description in plain English.",
        "It learned to draw from about 6,000 pictures.",
        (("its card", "https://huggingface.co/GAIR/Anole-7b-v0.1"),), CHAMELEON),
    "Emu3": Advice(
        "Its authors' words for quality (masterpiece, film grained, best quality) and their "
        "negative prompt are added to yours; words behind a bar replace the first: a fox | in oil.",
        "Slow: 300 seconds on an H100, 600 on an A100 with its authors' code.",
        (("its repository", "https://github.com/baaivision/Emu3"),
         ("Emu3 issue 18", "https://github.com/baaivision/Emu3/issues/18")), "transformers' Emu3"),
    "Emu3.5": Advice(
        "Words to be written in the picture may be part of the prompt: its authors name pictures "
        "rich in text among its strengths.",
        "Slow: users report 410 seconds on two cards and 30 minutes on four L20.",
        (("its README", "https://github.com/baaivision/Emu3.5"),
         ("Emu3.5 issue 33", "https://github.com/baaivision/Emu3.5/issues/33"),
         ("Emu3.5 issue 46", "https://github.com/baaivision/Emu3.5/issues/46")),
        "transformers' Qwen3"),
    "GLM-Image": Advice(
        "Put words that are to be written in the picture in quotation marks, and describe at "
        "length: its authors let a language model write prompts out.",
        "More variety by a higher temperature costs stability; the authors take 0.9, and 0.75 as "
        "top-p.", (("its card", "https://huggingface.co/zai-org/GLM-Image"),),
        "transformers' GLM-Image"),
    "Tar": Advice(
        "Codes of TA-Tok, or text if csuhan/Tar-1.5B is beside it.",
        "It only turns such codes into pixels: what is drawn is decided by the model that wrote "
        "them.", (("its card", "https://huggingface.co/csuhan/TA-Tok"),), WRITTEN_OUT),
}


def advice_on(row: KnownBackbone) -> Advice:
    """What is known of a row of the catalogue."""
    return ADVICE["LlamaGen-c2i" if row.name.startswith("LlamaGen-c2i") else row.family]


def advice_lines(row: KnownBackbone) -> list[str]:
    """Sizes, good prompts and weak points, each in a line."""
    known = advice_on(row)
    return [sizes_text(row), known.prompts, known.weak]


def sizes_text(row: KnownBackbone) -> str:
    """The default size in pixels, and which others are allowed."""
    others = {"Lumina-mGPT": len(sizes.lumina(row.size[0])), "Emu3": len(sizes.EMU3_RATIOS),
              "Lumina-mGPT 2.0": len(sizes.LUMINA_2),
              "Emu3.5": len(sizes.EMU3_5)}.get(row.family, 1)
    if row.family == "GLM-Image":
        return "{}x{} and any sides of 256 to 2048 in steps of 32".format(*row.size)
    more = f" and {others - 1} other shapes" if others > 1 else ""
    return "{}x{}".format(*row.size) + more
