"""Help pages and locales say what the nodes' schemas say, in both languages."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.script_modules import script

from ssd_core.engine.methods import METHODS
from ssd_core.output.choices import SPEEDS

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
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


def names(texts):
    """Names of a node's inputs and outputs."""
    return [slot["name"] for part in ("inputs", "outputs") for slot in texts.get(part, {}).values()]


def told(page, pattern):
    """What the lines of a help page's inputs and outputs begin with."""
    sections = re.split("^## ", page, flags=re.MULTILINE)
    heads = [re.split(": |：(?!.*）：)", line)[0] for section in sections
             if re.match("Inputs|Outputs|输入|输出", section)
             for line in section.splitlines() if line.startswith("- ")]
    return [found for head in heads for found in re.findall(pattern, head)]


def is_told(slot):
    """Whether a page has it by name: method_1 to method_6 have one line, without their knobs."""
    return re.fullmatch(r"method_([2-5]|\d_\w+)", slot) is None


def as_told(slot):
    """The input's name in a page of help: method.k_h is a knob of the chosen method."""
    return re.sub("^method_(?=[a-z])", "method.", slot)


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_node_has_gets_its_line_in_its_place(generated, monkeypatch, tmp_path, language):
    whole = help_page(language, "SSD_Sampler")
    line = next(one for one in whole.splitlines(True) if re.match(r"- .*\bmin.p", one, re.I))
    rest = whole.replace(line, "").split("\n\n")[2:]  # without the title and the description
    (tmp_path / "page.md").write_text("\n\n".join(["# Old", "Old.", *rest]), encoding="utf-8")
    monkeypatch.setattr(generated, "page_file", lambda *_: tmp_path / "page.md")
    locales = {language: locale(language) for language in LANGUAGES}
    assert generated.page(language, "SSD_Sampler", locales) == whole


def test_chinese_tooltips_of_knobs_name_the_numbers_and_methods_of_the_english_ones(
        schemas, generated):
    """What auto or 0 or 1 means, and whose knob it is ("ssd, rows: ..."): each of them is told."""
    said = r"auto =|(?<![\w.])[01](?![\w.])"
    for node, texts in locale("zh").items():
        for slot, chinese in texts.get("inputs", {}).items():
            tooltip = schemas[node]["inputs"][slot]["tooltip"]
            if generated.knob_of(slot, tooltip) is None:
                continue
            ascii_only = re.sub(r"[^\x00-\x7f]", " ", chinese["tooltip"])
            assert set(re.findall(said, tooltip)) <= set(re.findall(said, ascii_only)), (node, slot)
            owners = METHODS.keys() & re.findall(r"\w+", tooltip.partition(":")[0])
            assert owners <= set(re.findall(r"\w+", ascii_only)), (node, slot)
            assert not re.search("auto = [a-z]", ascii_only), (
                f"{slot}: OWN_CHINESE lacks what auto means")


def test_every_text_of_a_schema_is_there_in_chinese(schemas):
    assert shape(locale("zh")) == shape(schemas)
    for node, texts in locale("zh").items():
        for text in (texts["display_name"], texts["description"],
                     *(slot["tooltip"] for part in ("inputs", "outputs")
                       for slot in texts.get(part, {}).values())):
            assert CHINESE.search(text), (node, text)


def test_slots_have_one_name_in_chinese_wherever_they_are(schemas):
    known = {}
    for node, texts in locale("zh").items():
        for slot, name in zip(slots(schemas[node]), names(texts), strict=True):
            known.setdefault(slot, set()).add(name)
    assert {slot: said for slot, said in known.items() if len(said) > 1} == {}


def test_qualities_have_the_chinese_names_that_they_have_elsewhere():
    table = (ROOT / "web" / "comfy" / "choices.js").read_text(encoding="utf-8")
    reference, *faster = SPEEDS.values()
    assert f'"{reference.chinese}（AR）"' in table
    assert all(f'{speed.title}: "{speed.chinese}"' in table for speed in faster)


def test_texts_of_workflows_are_in_both_languages():
    for path in sorted((ROOT / "workflows").glob("*.json")):
        workflow = json.loads(path.read_text(encoding="utf-8"))
        chinese = workflow["extra"]["ssd_texts"]["zh"]
        notes = {node["widgets_values"][0] for node in workflow["nodes"]
                 if node["type"] == "MarkdownNote"}
        assert notes <= set(chinese) and not any(map(CHINESE.search, chinese)), path
        assert all(map(CHINESE.search, map(chinese.get, notes))), path


def test_types_and_categories_are_named_in_both_languages():
    nodes = (ROOT / "nodes" / "types.py").read_text(encoding="utf-8")
    for language in LANGUAGES:
        main = locale(language, "main")
        assert set(main["dataTypes"]) == set(re.findall(r'io.Custom\("(\w+)"\)', nodes))
        assert list(main["nodeCategories"]) == ["SSD", "load", "draw", "edit", "compare", "tools"]


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
        found = told(help_page("en", node), r"\*\*([^*]+)\*\*")
        assert sorted(found) == sorted(
            name for name, slot in zip(names(texts), slots(texts), strict=True)
            if is_told(slot)), node


def test_chinese_pages_tell_of_the_same_under_their_chinese_names(schemas):
    for node, texts in locale("zh").items():
        found = told(help_page("zh", node), r"\*\*([^*]+)\*\*（`([\w.]+)`）")
        assert sorted(found) == sorted(
            (name, as_told(slot))
            for name, slot in zip(names(texts), slots(schemas[node]), strict=True)
            if is_told(slot)), node


@pytest.mark.parametrize("language, parts", [
    ("en", ("## Try this", "## What can go wrong")), ("zh", ("## 试试看", "## 可能的问题"))])
def test_pages_say_what_to_try_and_what_can_go_wrong(schemas, language, parts):
    for node in schemas:
        page = help_page(language, node)
        assert page.startswith("# ") and all(part in page for part in parts), node
        assert bool(CHINESE.search(page)) == (language == "zh")
