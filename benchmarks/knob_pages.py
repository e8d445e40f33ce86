"""Write what follows from the nodes' schemas and the knobs' descriptions; run it after a change.

    python benchmarks/knob_pages.py

locales/en/nodeDefs.json is the schemas' own texts. In the help pages of web/docs the line of every
knob is its tooltip in the page's language, and its legal values. Chinese tooltips are written by
hand in locales/zh/nodeDefs.json.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from ssd_core.front.knobs import Described, all_knobs, sampling_knobs  # noqa: E402
from ssd_core.front.workflow import WIDGETS  # noqa: E402

NODES = ("SSD_Schedule", "SSD_BaselineMethod", "SSD_Sampler", "SSD_Race")
LINES = {"en": re.compile(r"^- \*\*(\w+)\*\*: .*$", re.MULTILINE),
         "zh": re.compile(r"^- \*\*[^*]+\*\*（`(\w+)`）：.*$", re.MULTILINE)}
CHINESE_RANGE = {"on, off": "开、关", " or more": " 或以上", "above ": "大于 ", " to ": " 至 ",
                 ", ": "、"}


def locale_file(language: str) -> Path:
    return ROOT / "locales" / language / "nodeDefs.json"


def page_file(language: str, node: str) -> Path:
    return ROOT / "web" / "docs" / (f"{node}.md" if language == "en" else f"{node}/{language}.md")


def english_locale() -> str:
    """The schemas' texts, from the pack as ComfyUI loads it."""
    ran = subprocess.run([sys.executable, str(ROOT / "tests" / "web" / "dump_schemas.py")],
                         capture_output=True, text=True, encoding="utf-8", check=True)
    return json.dumps(json.loads(ran.stdout), indent=2, ensure_ascii=False) + "\n"


def page(language: str, node: str, inputs: dict) -> str:
    """The help page of a node with the lines of its knobs as they should be."""
    knobs = {WIDGETS.get(one.name, one.name): one
             for one in [*all_knobs().values(), *sampling_knobs()]}
    text = page_file(language, node).read_text(encoding="utf-8")

    def written(found: re.Match) -> str:
        one = knobs.get(found[1])
        if one is None or found[1] not in inputs:
            return found[0]
        return line(language, found[1], one, inputs[found[1]])

    return LINES[language].sub(written, text)


def line(language: str, widget: str, one: Described, texts: dict) -> str:
    if language == "en":
        return f"- **{widget}**: {texts['tooltip']} Legal values: {one.range}."
    legal = one.range
    for english, chinese in CHINESE_RANGE.items():
        legal = legal.replace(english, chinese)
    return f"- **{texts['name']}**（`{widget}`）：{texts['tooltip']}取值：{legal}。"


def pages() -> dict[Path, str]:
    """Every file that this writes, as it should be."""
    made = {locale_file("en"): english_locale()}
    told = {"en": json.loads(made[locale_file("en")]),
            "zh": json.loads(locale_file("zh").read_text(encoding="utf-8"))}
    return made | {page_file(language, node): page(language, node, told[language][node]["inputs"])
                   for language in LINES for node in NODES}


def main() -> None:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
