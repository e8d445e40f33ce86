"""The page's modules: their own tests in bare Node, and rules of size and of loading."""

import json
import re
from pathlib import Path

import pytest
from support.scripts import faults, node, node_major

HERE = Path(__file__).parent
WEB = HERE.parents[3] / "studio" / "web"
FILES = sorted([*WEB.glob("*.js"), *WEB.glob("*.css")])
OLDEST_NODE = 20


@pytest.mark.skipif(node_major() < OLDEST_NODE,
                    reason=f"needs Node {OLDEST_NODE} or newer on the path")
def test_in_node():
    ran = node("--test", *map(str, sorted(HERE.glob("*.test.mjs"))))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass [1-9]|ℹ pass [1-9]", ran.stdout, re.MULTILINE), ran.stdout


OLD = """
const shown = [];
const element = { removeAttribute: (name) => shown.push(name) };
Object.assign(globalThis, { window: globalThis, document: { getElementById: () => element },
  CSS: { supports: () => true }, HTMLElement: class {} });
const known = () => new Function(require("fs").readFileSync(process.argv[1], "utf8"))();
Object.defineProperty(HTMLElement.prototype, "popover", { value: null, configurable: true });
known();
process.stdout.write(shown.length + " ");
delete HTMLElement.prototype.popover; known();
CSS.supports = () => false; known();
delete globalThis.CSS; known();
process.stdout.write(String(shown.length));
"""


@pytest.mark.skipif(node_major() < OLDEST_NODE,
                    reason=f"needs Node {OLDEST_NODE} or newer on the path")
def test_an_old_browser_is_told_so_by_a_script_without_modules():
    ran = node("-e", OLD, str(WEB / "old_browser.js"))
    assert ran.stdout == "0 3", ran.stderr
    page = (WEB / "page.html").read_text(encoding="utf-8")
    assert '<script defer src="studio/web/old_browser.js">' in page
    guide = (WEB.parents[1] / "docs" / "app.md").read_text(encoding="utf-8")
    assert all("Chrome or Edge 123, Firefox 125, Safari 17.5" in text for text in (page, guide))


def test_files_are_narrow_and_fetch_nothing_from_elsewhere():
    assert faults(FILES) == []


def test_modules_import_what_is_served_beside_them():
    imports = [(path.name, name) for path in sorted(WEB.glob("*.js"))
               for name in re.findall(r"\bfrom \"([^\"]+)\";", path.read_text(encoding="utf-8"))]
    assert [one for one in imports if not is_served(one[1])] == []


def is_served(name: str) -> bool:
    folder = WEB.parents[1] / "web" / "preview" if name.startswith("./core/") else WEB
    return name.startswith("./") and (folder / name.split("/")[-1]).is_file()


def test_every_style_sheet_is_used():
    users = "".join(path.read_text(encoding="utf-8") for path in
                    (WEB / "page.html", *WEB.glob("*.js")))
    assert [path.name for path in WEB.glob("*.css") if path.name not in users] == []


def test_every_module_is_used():
    users = "".join(path.read_text(encoding="utf-8") for path in
                    (WEB / "page.html", *WEB.glob("*.js")))
    named = re.findall(r"[\"/]([\w]+\.js)\"", users)
    assert [path.name for path in WEB.glob("*.js") if path.name not in named] == []


def texts():
    return [(f"{section}.{key}", *pair) for section, pairs in
            json.loads((WEB.parent / "texts.json").read_text(encoding="utf-8")).items()
            for key, pair in pairs.items()]


def test_both_languages_have_all_texts_with_the_same_values():
    def values(text):
        return sorted(re.findall(r"\{\w+\}", text))

    assert [name for name, english, chinese in texts() if values(english) != values(chinese)] == []
    assert [name for name, english, chinese in texts() if chinese != english
            and re.search("[a-z]{3}", re.sub(r"\{\w+\}", "", english))
            and not re.search("[\u4e00-\u9fff]", chinese)] == []


def test_every_text_of_the_page_is_used():
    """A key stands in a module, without `Hint` or a number that is added there, or the place of a
    shortcut.
    """
    def key(name: str) -> str:
        added = "^[a-z]+_" if name.startswith("keys.") else "(Hint|2)$"
        return re.sub(added, "", name.partition(".")[2])

    users = "".join(path.read_text(encoding="utf-8") for path in WEB.glob("*.js"))
    users += "".join(path.read_text(encoding="utf-8") for path in WEB.parent.glob("*.py"))
    assert [name for name, *_ in texts() if not name.startswith("server.")
            and not re.search(rf"\b{key(name)}\b", users)] == []
