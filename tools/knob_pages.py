"""Texts made from the nodes' schemas and the knobs' descriptions: locales, help pages, inputs.

locales/en/nodeDefs.json has the schemas' own texts; locales/zh/nodeDefs.json is written by hand,
except for the knobs. In the help pages of web/docs the line of a knob is its tooltip in the page's
language and its allowed values. tests/nodes/golden_inputs.json lists all inputs that the nodes ever
had; new ones are appended, and nothing in it ever changes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from ssd_core.engine.methods import METHODS, SSD
from ssd_core.model.knobs import KnobSpec
from ssd_core.output.comfyui_workflow import WIDGETS
from ssd_core.output.guarantees import method_help
from ssd_core.output.knob_words import KNOB_WORDS, OWN_CHINESE
from ssd_core.output.knobs import UNSET_NUMBER, all_knobs, sampling_knobs

ROOT = Path(__file__).resolve().parents[1]

NODES = ("SSD_Schedule", "SSD_BaselineMethod", "SSD_Sampler", "SSD_StartSeeds", "SSD_Race",
         "SSD_CompareMethods")
# What lists of methods promise, in Chinese by the English; and the line of a page that says it.
PROMISES = dict(map(method_help, (METHODS, [name for name in METHODS if name != SSD.name])))
TOLD = {("SSD_BaselineMethod", "method")}
GOLDEN = ROOT / "tests" / "nodes" / "golden_inputs.json"
LINES = {"en": re.compile(r"^- \*\*(\w+)\*\*: .*$", re.MULTILINE),
         "zh": re.compile(r"^- \*\*[^*]+\*\*（`(\w+)`）：.*$", re.MULTILINE)}
CHINESE_RANGE = {"on, off": "开、关", " or more": " 或以上", "above ": "大于 ", " to ": " 至 ",
                 ", ": "、"}
KNOBS = {WIDGETS.get(knob.name, knob.name): knob
         for knob in [*all_knobs().values(), *sampling_knobs()]}


def locale_file(language: str) -> Path:
    return ROOT / "locales" / language / "nodeDefs.json"


def page_file(language: str, node: str) -> Path:
    return ROOT / "web" / "docs" / (f"{node}.md" if language == "en" else f"{node}/{language}.md")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def schemas() -> dict:
    """Texts, inputs and widgets of the nodes, from the pack as ComfyUI loads it."""
    ran = subprocess.run([sys.executable, str(ROOT / "tests" / "web" / "dump_schemas.py")],
                         capture_output=True, text=True, encoding="utf-8", check=True)
    return json.loads(ran.stdout)


# The Chinese locale


def chinese_locale(english: dict) -> dict:
    """The existing Chinese texts, with those of the knobs made anew."""
    locale = read(locale_file("zh"))
    for node, texts in locale.items():
        if node in NODES:
            known, slots = texts["inputs"], english[node]["inputs"]
            texts["inputs"] = {slot: chinese_knob(KNOBS[slot], slots[slot]["tooltip"])
                               if slot in KNOBS else promised(known[slot], slots[slot]["tooltip"])
                               for slot in slots if slot in KNOBS or slot in known}
    return locale


def promised(known: dict[str, str], tooltip: str) -> dict[str, str]:
    """The text of another widget; for a list of methods, what these promise."""
    return {**known, "tooltip": PROMISES.get(tooltip, known["tooltip"])}


def chinese_knob(knob: KnobSpec, tooltip: str) -> dict[str, str]:
    """The Chinese name and tooltip of a widget, with the parts of its English tooltip.

    These are, if present, the owning methods, the help, and the meaning of -1.
    """
    words = KNOB_WORDS.get(knob.name)
    if words is None:
        return {"name": knob.name, "tooltip": tooltip}
    owners, _, own = tooltip.partition(knob.help)
    owners = owners.strip().replace(", ", "、").replace(":", "：")
    own = own.removeprefix(f" {UNSET_NUMBER} = ").removesuffix(".")
    own = f"{UNSET_NUMBER} = {OWN_CHINESE.get(own, own)}。" if own else ""
    return {"name": words.name, "tooltip": owners + words.help + own}


# Help pages


def page(language: str, node: str, texts: dict) -> str:
    """The help page of a node with the lines of its knobs up to date."""
    before, inputs, after = re.split("^(?=## )", page_file(language, node).read_text(
        encoding="utf-8"), maxsplit=2, flags=re.MULTILINE)
    written = {match[1]: match[0] for match in LINES[language].finditer(inputs)}
    written |= {slot: line(language, slot, KNOBS[slot], said)
                for slot, said in texts.items() if slot in KNOBS}
    written |= {slot: list_line(language, slot, said) for slot, said in texts.items()
                if (node, slot) in TOLD}
    lines = (written[slot] for slot in texts if slot in written)
    return before + "\n".join([inputs.partition("\n")[0], *lines, "", after])


def line(language: str, widget: str, knob: KnobSpec, texts: dict) -> str:
    if language == "en":
        return f"- **{widget}**: {texts['tooltip']} Legal values: {knob.range_text}."
    legal = knob.range_text
    for english, chinese in CHINESE_RANGE.items():
        legal = legal.replace(english, chinese)
    return f"- **{texts['name']}**（`{widget}`）：{texts['tooltip']}取值：{legal}。"


def list_line(language: str, widget: str, texts: dict) -> str:
    """The line of a list of methods, with what they promise."""
    if language == "en":
        return f"- **{widget}**: {texts['tooltip']}"
    return f"- **{texts['name']}**（`{widget}`）：{texts['tooltip']}"


# What saved workflows rely on


def golden_inputs(inputs: dict) -> dict:
    """The inputs that nodes ever had, followed by the new ones."""
    golden = read(GOLDEN)
    for node, kinds in inputs.items():
        for kind, now in kinds.items():
            known = golden.setdefault(node, {}).setdefault(kind, [])
            if now[: len(known)] != known:
                raise SystemExit(f"{node}: its {kind} were {known}; saved workflows rely on that")
            golden[node][kind] = now
    return golden


def require_words() -> None:
    """Raise an error if a knob lacks its label in the app or its Chinese texts."""
    for name in sorted({knob.name for knob in KNOBS.values()} - set(KNOB_WORDS)):
        raise SystemExit(f"knob {name} has no words: add them at the end of KNOB_WORDS in "
                         "ssd_core/output/knob_words.py")


def pages() -> dict[Path, str]:
    """The contents of every file that this module writes."""
    require_words()
    known = schemas()
    locales = {"en": known["texts"], "zh": chinese_locale(known["texts"])}
    rows = (f"  {json.dumps(node)}: {json.dumps(row)}"
            for node, row in golden_inputs(known["inputs"]).items())
    return {
        GOLDEN: "{\n" + ",\n".join(rows) + "\n}\n",
        **{locale_file(language): json.dumps(texts, indent=2, ensure_ascii=False) + "\n"
           for language, texts in locales.items()},
        **{page_file(language, node): page(language, node, locales[language][node]["inputs"])
           for language in LINES for node in NODES}}
