"""Texts made from the nodes' schemas and the knobs' descriptions: locales and help pages.

locales/en/nodeDefs.json has the schemas' own texts; locales/zh/nodeDefs.json is written by hand,
except for the knobs. The title, the first paragraph, the inputs and the outputs of a help page in
web/docs are the locale's; the rest of it is written by hand.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path

from ssd_core.engine.edits.words import Edit
from ssd_core.model.knobs import KnobSpec, specs
from ssd_core.output.knob_words import KNOB_WORDS, OWN_CHINESE
from ssd_core.output.knobs import all_knobs, sampling_knobs

ROOT = Path(__file__).resolve().parents[1]

HEADS = {"en": {"inputs": "## Inputs", "outputs": "## Outputs"},
         "zh": {"inputs": "## 输入", "outputs": "## 输出"}}
TOLD = {"en": "- {}: {}", "zh": "- {}：{}"}
LEGAL = {"en": " Legal values: {}.", "zh": "取值：{}。"}
SHARED = {"en": "as on SSD Sampler.", "zh": "与“SSD 采样器”相同。"}
COMMA, TO = {"en": ", ", "zh": "、"}, {"en": " to ", "zh": " 至 "}
SAMPLER = "SSD_Sampler"
FIRST = ("model", "method", "prompt", "negative", "seed", "size")  # told on every page
UNSET = "-1 = "
OF_CHOICE = re.compile(r"method_(\d_)?(?=[a-z])")  # before the name of a knob, in a locale
CHINESE_RANGE = {" or more": " 或以上", "above ": "大于 ", " to ": " 至 ", ", ": "、"}
CHINESE_LABELS = {"rounds": "r / b（轮数）", "incremental": "i（分级轮数）"}
KNOBS = {knob.name: knob for knob in [*all_knobs().values(), *sampling_knobs()]}
EDITS = {knob.name: knob for knob in specs(Edit)}  # whose Chinese is written by hand


def locale_file(language: str) -> Path:
    return ROOT / "locales" / language / "nodeDefs.json"


def page_file(language: str, node: str) -> Path:
    return ROOT / "web" / "docs" / (f"{node}.md" if language == "en" else f"{node}/{language}.md")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def schemas() -> dict:
    """Texts and widgets of the nodes, from the pack as ComfyUI loads it."""
    script = ROOT / "tests" / "hosts" / "web" / "dump_schemas.py"
    ran = subprocess.run([sys.executable, str(script)],
                         capture_output=True, text=True, encoding="utf-8", check=True)
    return json.loads(ran.stdout)


def is_of_choice(slot: str) -> bool:
    """Whether a list of methods shows this input for some of its choices."""
    return OF_CHOICE.match(slot) is not None


def knob_of(slot: str, tooltip: str) -> KnobSpec | None:
    """The knob that a widget sets; None for another widget, even if it has a knob's name."""
    knob = (KNOBS | EDITS).get(OF_CHOICE.sub("", slot))
    return knob if knob is not None and knob.help in tooltip else None


# The Chinese locale


def chinese_locale(english: Mapping) -> dict:
    """The existing Chinese texts, with those of the knobs made anew."""
    locale = read(locale_file("zh"))
    for node, texts in locale.items():
        known = texts.get("inputs", {})
        for slot, said in english[node].get("inputs", {}).items():
            knob = knob_of(slot, said["tooltip"])
            if knob is not None and knob.name in KNOBS:
                known[slot] = chinese_knob(knob, said["tooltip"])
        if known:
            texts["inputs"] = {slot: known[slot] for slot in english[node]["inputs"]}
    return locale


def chinese_knob(knob: KnobSpec, tooltip: str) -> dict[str, str]:
    """The Chinese name and tooltip of a widget: its help, and the meaning of -1 if it has one."""
    words = KNOB_WORDS[knob.name]
    own = tooltip.partition(knob.help)[2].removeprefix(f" {UNSET}").removesuffix(".")
    own = f"{UNSET}{OWN_CHINESE.get(own, own)}。" if own else ""
    return {"name": CHINESE_LABELS.get(knob.name, words.name), "tooltip": words.help + own}


# Help pages


def page(language: str, node: str, locales: Mapping) -> str:
    """The help page of a node, with what the locales say of it up to date."""
    texts, heads = locales[language][node], HEADS[language]
    before, *parts = re.split("^(?=## )", page_file(language, node).read_text(encoding="utf-8"),
                              flags=re.MULTILINE)
    own = before.strip().split("\n\n")[2:]  # after the title and the description
    made = [f"# {texts['display_name'].removesuffix(' (SSD)')}", texts["description"], *own]
    made += ["\n".join([heads[part], *lines(language, part, node, locales)])
             for part in heads if part in texts]
    made += [part.strip() for part in parts if part.partition("\n")[0] not in heads.values()]
    return "\n\n".join(made) + "\n"


def lines(language: str, part: str, node: str, locales: Mapping) -> Iterator[str]:
    """A line for each input or output; settings that are as on the sampler have one together."""
    english, texts = locales["en"][node][part], locales[language][node][part]
    sampler = locales["en"][SAMPLER]["inputs"] if node != SAMPLER else {}
    shared = [slot for slot in english if slot not in FIRST and english[slot] == sampler.get(slot)
              and not is_of_choice(slot)]
    shared = shared if len(shared) > 1 else []
    names = {slot: bold(language, texts[slot]["name"],
                        OF_CHOICE.sub("method.", slot) if part == "inputs"
                        else english[slot]["name"]) for slot in english}
    others = (slot for slot in english if slot not in shared
              and (node == SAMPLER or not is_of_choice(slot)))
    for _, alike in groupby(others, lambda slot: of_any(english[slot]["tooltip"], slot)):
        first, *later = alike
        said = texts[first]["tooltip"] if not later else of_any(texts[first]["tooltip"])[0]
        yield TOLD[language].format(
            TO[language].join(names[slot] for slot in [first, *later[-1:]]),
            said + legal_values(language, knob_of(first, english[first]["tooltip"])))
    if shared:
        yield TOLD[language].format(COMMA[language].join(names[slot] for slot in shared),
                                    SHARED[language])


def of_any(*texts: str) -> list[str]:
    """Texts of method_1, method_2 ... without their numbers: they are the same for all."""
    return [re.sub(r"_\d\b", "_n", text) for text in texts]


def bold(language: str, name: str, slot: str) -> str:
    return f"**{name}**" if language == "en" else f"**{name}**（`{slot}`）"


def legal_values(language: str, knob: KnobSpec | None) -> str:
    """The sentence on a knob's values; "" for a switch and for what is no knob."""
    if knob is None or knob.kind is bool:
        return ""
    legal = knob.range_text
    for english, chinese in CHINESE_RANGE.items() if language == "zh" else ():
        legal = legal.replace(english, chinese)
    return LEGAL[language].format(legal)


def require_words() -> None:
    """Raise an error if a knob lacks its label in the app or its Chinese texts."""
    for name in sorted(KNOBS.keys() - set(KNOB_WORDS)):
        raise SystemExit(f"knob {name} has no words: add them at the end of KNOB_WORDS in "
                         "ssd_core/output/knob_words.py")


def pages() -> dict[Path, str]:
    """The contents of every file that this module writes."""
    require_words()
    english = schemas()["texts"]
    locales = {"en": english, "zh": chinese_locale(english)}
    return {
        **{locale_file(language): json.dumps(texts, indent=2, ensure_ascii=False) + "\n"
           for language, texts in locales.items()},
        **{page_file(language, node): page(language, node, locales)
           for language in HEADS for node in english}}
