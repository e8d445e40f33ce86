"""Help pages and locales say what the nodes' schemas say, in both languages."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.script_modules import script

from ssd_core.engine.methods import METHODS
from ssd_core.output.comfyui_workflow import WIDGETS
from ssd_core.output.knobs import all_knobs, sampling_knobs
from ssd_core.output.quality_presets import SPEEDS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LANGUAGES = ("en", "zh")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def schemas():
    ran = subprocess.run([sys.executable, str(HERE / "dump_schemas.py")], capture_output=True,
                         text=True, encoding="utf-8", timeout=120)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["texts"]


@pytest.fixture(scope="module")
def generated():
    return script("tools", "knob_pages")


def locale(language, name="nodeDefs"):
    return json.loads((ROOT / "locales" / language / f"{name}.json").read_text(encoding="utf-8"))


def help_page(language, node):
    path = f"{node}.md" if language == "en" else f"{node}/{language}.md"
    return (ROOT / "web" / "docs" / path).read_text(encoding="utf-8")


def slots(texts):
    """Ids of a node's inputs and names of its outputs, as its schema has them."""
    return [*texts.get("inputs", {}), *(o["name"] for o in texts.get("outputs", {}).values())]


def shape(value):
    """The keys of nested mappings, without their texts."""
    return {key: shape(inner) for key, inner in value.items()} if isinstance(value, dict) else None


def strings(value):
    return [text for inner in value.values() for text in strings(inner)] if isinstance(
        value, dict) else [value]


def test_the_english_locale_says_what_the_schemas_say(schemas):
    assert locale("en") == schemas


def test_texts_are_as_they_are_made():
    """Locales, help pages, inputs, workflows, tables of the documents."""
    assert script("tools", "make").texts([], check=True) == []


def test_a_knob_without_words_is_named(generated, monkeypatch):
    monkeypatch.delitem(generated.KNOB_WORDS, "min_p")
    with pytest.raises(SystemExit, match="knob min_p has no words: .*knob_words.py"):
        generated.pages()


def test_a_new_input_is_remembered_behind_the_others_and_no_other_change_is(generated):
    known = json.loads(generated.GOLDEN.read_text())
    widgets = known["SSD_Schedule"]["widgets"]

    def remembered(inputs):
        return generated.golden_inputs({"SSD_Schedule": {"widgets": inputs}})

    grown = [*widgets, ["guess", "COMBO"]]
    assert remembered(grown) == {**known, "SSD_Schedule": {**known["SSD_Schedule"],
                                                           "widgets": grown}}
    for broken in (widgets[::-1], widgets[1:], [["guess", "COMBO"], *widgets]):
        with pytest.raises(SystemExit, match="saved workflows rely on that"):
            remembered(broken)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_knob_gets_its_line_in_its_place(generated, monkeypatch, tmp_path, language):
    whole = help_page(language, "SSD_Schedule")
    line = next(one for one in whole.splitlines(True) if "acceptance" in one)
    (tmp_path / "page.md").write_text(whole.replace(line, ""), encoding="utf-8")
    monkeypatch.setattr(generated, "page_file", lambda *_: tmp_path / "page.md")
    texts = locale(language)["SSD_Schedule"]["inputs"]
    assert generated.page(language, "SSD_Schedule", texts) == whole


@pytest.mark.parametrize("node", [
    "SSD_Schedule", "SSD_BaselineMethod", "SSD_Sampler", "SSD_Race", "SSD_CompareMethods"])
def test_chinese_tooltips_of_knobs_name_the_numbers_and_methods_of_the_english_ones(schemas, node):
    """What -1 or 0 or 1 means, and whose knob it is: at least each of them is told."""
    knobs = {WIDGETS.get(one.name, one.name)
             for one in [*all_knobs().values(), *sampling_knobs()]}
    names = "|".join(METHODS)
    chinese = locale("zh")[node]["inputs"]
    told = rf"-1 =|(?<![\w.])[01](?![\w.])|\b(?:{names})\b"
    for name in knobs & set(chinese):
        english = set(re.findall(told, schemas[node]["inputs"][name]["tooltip"]))
        ascii_only = re.sub(r"[^\x00-\x7f]", " ", chinese[name]["tooltip"])
        assert english <= set(re.findall(told, ascii_only)), (node, name)
        assert not re.search("-1 = [a-z]", ascii_only), f"{name}: OWN_CHINESE lacks what -1 means"


def test_every_text_of_a_schema_is_there_in_chinese(schemas):
    assert shape(locale("zh")) == shape(schemas)
    for node, texts in locale("zh").items():
        for text in (texts["display_name"], texts["description"],
                     *(slot["tooltip"] for part in ("inputs", "outputs")
                       for slot in texts.get(part, {}).values())):
            assert CHINESE.search(text), (node, text)


def test_slots_have_one_name_in_chinese_wherever_they_are(schemas):
    names = {}
    for node, texts in locale("zh").items():
        ids = slots(schemas[node])
        told = [slot["name"] for part in ("inputs", "outputs")
                for slot in texts.get(part, {}).values()]
        for slot, name in zip(ids, told, strict=True):
            names.setdefault(slot, set()).add(name)
    assert {slot: said for slot, said in names.items() if len(said) > 1} == {}


def test_qualities_have_the_chinese_names_that_they_have_elsewhere():
    table = (ROOT / "web" / "comfy" / "choices.js").read_text(encoding="utf-8")
    faster = [speed for speed in SPEEDS.values() if speed.title in table]
    assert len(faster) == 3
    assert all(f'{speed.title}: "{speed.chinese}"' in table for speed in faster)


def test_notes_of_workflows_are_in_both_languages():
    for path in sorted((ROOT / "workflows").glob("*.json")):
        note = next(node for node in json.loads(path.read_text(encoding="utf-8"))["nodes"]
                    if node["type"] == "MarkdownNote")
        english, chinese = note["widgets_values"][0].split("\n\n---\n\n")
        assert CHINESE.search(chinese) and not CHINESE.search(english), path


def test_types_and_category_are_named_in_both_languages():
    for language in LANGUAGES:
        told = locale(language, "main")
        assert set(told["dataTypes"]) == {f"SSD_{name}" for name in (
            "BACKBONE", "HEADS", "METHOD", "TOKENS", "STATS", "STARTED")}
        assert set(told["nodeCategories"]) == {"SSD"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_locales_hold_nothing_that_the_frontend_would_read_as_a_pattern(language):
    """vue-i18n takes {name}, @:link and one|many for its own."""
    for name in ("nodeDefs", "main"):
        assert [text for text in strings(locale(language, name)) if re.search("[{}@|]", text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_node_has_a_help_page_and_no_page_is_without_a_node(schemas, language):
    docs = ROOT / "web" / "docs"
    pages = docs.glob("*.md") if language == "en" else docs.glob(f"*/{language}.md")
    nodes = {page.stem if language == "en" else page.parent.name for page in pages}
    assert nodes == set(schemas)


def test_english_pages_tell_of_every_input_and_output_and_of_no_other(schemas):
    for node, texts in schemas.items():
        told = re.findall(r"^- \*\*(\w+)\*\*:", help_page("en", node), re.MULTILINE)
        assert told == slots(texts), node


def test_chinese_pages_tell_of_the_same_under_their_chinese_names(schemas):
    for node, texts in locale("zh").items():
        told = re.findall(r"^- \*\*([^*]+)\*\*（`(\w+)`）：", help_page("zh", node), re.MULTILINE)
        assert [slot for _, slot in told] == slots(schemas[node]), node
        assert [name for name, _ in told] == slots({"inputs": {
            slot["name"]: 0 for slot in texts.get("inputs", {}).values()},
            "outputs": texts.get("outputs", {})}), node


@pytest.mark.parametrize("language, parts", [
    ("en", ("## Try this", "## What can go wrong")), ("zh", ("## 试试看", "## 可能的问题"))])
def test_pages_say_what_to_try_and_what_can_go_wrong(schemas, language, parts):
    for node in schemas:
        page = help_page(language, node)
        assert page.startswith("# ") and all(part in page for part in parts), node
        assert bool(CHINESE.search(page)) == (language == "zh")
