"""The preview's modules: their own tests in bare Node, and the rules that a host lays on them."""

import json
import re
from pathlib import Path

import pytest
from support.scripts import faults, node, node_major

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
WEB = ROOT / "web"
MODULES = sorted(WEB.rglob("*.js"))
SAMPLES = sorted((HERE / "samples").glob("*.json"))
OLDEST_NODE = 18


needs_node = pytest.mark.skipif(node_major() < OLDEST_NODE,
                                reason=f"needs Node {OLDEST_NODE} or newer on the path")


@needs_node
def test_in_node():
    ran = node("--test", *map(str, sorted(HERE.glob("*.test.mjs"))))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass [1-9]|ℹ pass [1-9]", ran.stdout, re.MULTILINE), ran.stdout


# Compiles modules without what they import: those of ComfyUI's page are nowhere else.
COMPILE = """
const { SourceTextModule } = require("node:vm"), { readFileSync } = require("node:fs");
for (const path of process.argv.slice(1)) {
  try { new SourceTextModule(readFileSync(path, "utf8"), { identifier: path }); }
  catch (error) { console.log(`${path}: ${error.message}`); }
}"""


def uncompiled(paths) -> str:
    ran = node("--no-warnings", "--experimental-vm-modules", "-e", COMPILE, *map(str, paths))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@needs_node
def test_every_module_compiles(tmp_path):
    """Also the one that a host alone can run, and those of the app."""
    assert uncompiled([*MODULES, *(ROOT / "studio" / "web").rglob("*.js")]) == ""
    (tmp_path / "twice.js").write_text("const made = 1;\nfunction made() {}\n")
    assert "twice.js: Identifier 'made' has already been declared" in uncompiled(
        tmp_path.glob("*.js"))


@needs_node
def test_every_message_of_a_recorded_run_is_read():
    for path in SAMPLES:
        told = json.loads(node(str(HERE / "validate.mjs"),
                               given=path.read_text(encoding="utf-8")).stdout)
        assert told["refused"] == [] and told["ignored"] == [], path
        assert told["panels"] and all(panel["end"] for panel in told["panels"]), path


def test_there_are_recorded_runs():
    assert {path.stem for path in SAMPLES} >= {"sampler", "interrupted"}


def imports(path: Path) -> list[str]:
    return re.findall(r"^(?:import|export)\b[^;]*?\bfrom \"([^\"]+)\";",
                      path.read_text(encoding="utf-8"), re.MULTILINE)


def test_only_the_registration_imports_the_host():
    """ComfyUI imports every script below web/, so a helper must do nothing when it is loaded.

    The modules in preview/ serve the app too, so they import only each other.
    """
    own = {"preview": "./", "comfy": ("./", "../preview/")}
    host = {path.name: [name for name in imports(path) if not name.startswith(own[folder.name])]
            for folder in WEB.iterdir() if folder.name in own for path in folder.glob("*.js")}
    assert len(host) == len(MODULES)
    assert {name: imported for name, imported in host.items() if imported} == {
        "ssd.js": ["../../../scripts/app.js", "../../../scripts/api.js"]}


def test_every_imported_module_exists():
    missing = [(path.name, name) for path in MODULES for name in imports(path)
               if "scripts/" not in name and not (path.parent / name).is_file()]
    assert missing == []


LOADED = """const before = Object.keys(globalThis).length;
for (const address of %s) {
  await import(address);
  if (Object.keys(globalThis).length !== before) throw new Error(`side effect of ${address}`);
}"""


@needs_node
def test_a_helper_loads_where_there_is_no_page():
    helpers = [path.as_uri() for path in MODULES if path.name != "ssd.js"]
    ran = node("--input-type=module", "-e", LOADED % json.dumps(helpers))
    assert ran.returncode == 0 and ran.stdout == "", ran.stderr


def test_the_registration_is_never_told_twice():
    """[tool.comfy] web beside WEB_DIRECTORY would load every script twice."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.comfy]")[1]
    assert not re.search(r"^web\b", settings.split("\n[")[0], re.MULTILINE)


def test_files_are_narrow_and_fetch_nothing_from_elsewhere():
    assert faults([*MODULES, *WEB.rglob("*.css")]) == []
