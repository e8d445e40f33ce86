"""The words that postcard knows, by kind, on the sampler's help pages."""

from __future__ import annotations

import re
from pathlib import Path

from knob_pages import page_file

from ssd_core.backbones.postcard.words.short_prompts import KINDS
from ssd_core.backbones.prompt_guide import offered

NODE = "SSD_Sampler"
HEADS = {"en": "## Words that postcard knows", "zh": "## postcard 认识的词"}
COMMA, COLON = {"en": ", ", "zh": "、"}, {"en": ": ", "zh": "："}


def section(language: str) -> str:
    """A paragraph for each kind, with all synonyms in the language."""
    lines = [f"*{kind['name']}*{COLON[language]}{COMMA[language].join(own(kind, language))}"
             for kind in offered(KINDS, language == "zh")]
    return f"{HEADS[language]}\n" + "\n\n".join(lines) + "\n\n"


def own(kind: dict, language: str) -> list[str]:
    """A word's phrases in a language; English ones are ASCII."""
    every = [phrase for chip in kind["chips"] for phrase in chip["phrases"]]
    return [phrase for phrase in dict.fromkeys(every) if phrase.isascii() == (language == "en")]


def page(language: str) -> str:
    text = page_file(language, NODE).read_text(encoding="utf-8")
    match = re.search(f"^{HEADS[language]}\n.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    if match is None:
        raise SystemExit(f"the help of {NODE} has no heading {HEADS[language]!r}")
    return text[: match.start()] + section(language) + text[match.end():]


def pages() -> dict[Path, str]:
    return {page_file(language, NODE): page(language) for language in HEADS}
