"""What a release holds, and what stops one: the version, the published archive, publish.yml."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import table

import ssd_core
from ssd_core.version import version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
VERSION = re.search(r'^version = "(.+)"$', PROJECT, re.M).group(1)

# The version


def test_the_version_is_written_once():
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    assert ssd_core.__version__ == VERSION
    again = [path.relative_to(ROOT) for path in (*(ROOT / "ssd_core").rglob("*.py"), *ROOT.glob(
        "*.py")) if f'"{VERSION}"' in path.read_text(encoding="utf-8")]
    assert again == []


def test_another_projects_file_beside_the_package_is_not_ours(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: f"{name} as installed")
    assert version(tmp_path / "pyproject.toml") == "ssd-decoding as installed"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\nversion = "9.9.9"\n')
    assert version(tmp_path / "pyproject.toml") == "ssd-decoding as installed"


def test_the_changelog_begins_with_this_version_and_has_one_heading_for_each():
    headings = re.findall(r"^## \[(.+?)\] - (unreleased|\d{4}-\d\d-\d\d)$", CHANGES, re.M)
    assert headings[0][0] == VERSION
    assert len(dict(headings)) == len(headings) == CHANGES.count("\n## ")
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", CHANGES, re.M)) <= kinds


# The archive


@pytest.fixture(scope="module")
def archive() -> set[str]:
    """Paths of what would be published: all that git tracks but for .comfyignore's lines."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("this is no clone: git knows what is published")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.splitlines()
    ignored = tuple((ROOT / ".comfyignore").read_text(encoding="utf-8").split())
    assert not set("*?[!#") & set("".join(ignored)), "names of files and folders alone"
    return {path for path in listed if path not in ignored
            and not path.startswith(tuple(name for name in ignored if name.endswith("/")))}


def test_the_archive_holds_the_nodes_and_what_they_run_on(archive):
    assert {path.partition("/")[0] for path in archive} == {
        "CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "__init__.py", "docs", "install.py",
        "locales", "nodes", "pyproject.toml", "requirements.txt", "ssd_core", "subgraphs", "web",
        "workflows"}


def test_the_pictures_and_documents_of_the_published_readme_are_published(archive):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((docs/[^)#]+)", readme))
    assert {"docs/graph.webp", "docs/comfyui.md"} <= linked <= archive


def test_the_notice_names_every_font_list_and_icon_by_others(archive):
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    named = list(re.findall(r"(?:ssd_core|studio)/[\w./*-]+\w", notice))
    assert all(list(ROOT.glob(pattern)) for pattern in named)
    covered = {path.relative_to(ROOT).as_posix()
               for pattern in named for path in ROOT.glob(pattern)}
    shipped = {path for path in archive if re.search(r"\.(woff2?|ttf|otf|svg|ico|txt)$", path)}
    assert shipped - covered == {"requirements.txt"}
    assert "NOTICE" in archive


# What the registry's standards refuse, or what lets a program run or load another.
REFUSED_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "Popen", "spawn"}
REFUSED_IMPORTS = {"subprocess", "pip", "pty", "marshal", "shelve", "runpy", "ensurepip", "venv",
                   "urllib.request", "requests", "paramiko", "telnetlib", "ftplib"}


def calls_and_imports(path: Path) -> set[str]:
    """Names called as functions (of modules: `os`), and modules imported."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                found.add(f"{node.func.id}()")
            elif isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in (
                    "os", "builtins"):
                found.add(f"{node.func.attr}()")
    return found


# A tokenizer from elsewhere is first read in a process of its own, by this Python: docs say so.
ALLOWED = {("ssd_core/backbones/prompts/text.py", "subprocess")}
REFUSED = REFUSED_IMPORTS | {f"{name}()" for name in REFUSED_CALLS}


def test_nothing_in_the_archive_does_what_the_registry_refuses(archive):
    assert [(path, found) for path in sorted(archive) if path.endswith(".py")
            for found in sorted(calls_and_imports(ROOT / path) & REFUSED)
            if (path, found) not in ALLOWED] == []
    assert [path for path in sorted(archive) if path.endswith((".js", ".html")) and re.search(
        r"(?<![\w.])(eval|Function)\(", (ROOT / path).read_text(encoding="utf-8"))] == []


def test_the_check_of_the_archive_sees_what_it_looks_for(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("import os\nfrom urllib import request\nimport subprocess as s\n"
                   "os.system('x')\neval('1')\nmodel.eval()\n")
    assert calls_and_imports(bad) & REFUSED == {"urllib.request", "subprocess", "system()",
                                                "eval()"}
    assert calls_and_imports(ROOT / "environment.py") & REFUSED, "pip is outside the archive"


# The program where app and laboratory are not installed either, as these tests may have them.
ALONE = """
import sys
class Without:
    def find_spec(self, name, *_):
        if name in ("ssd_studio", "ssd_lab"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Without())
from ssd_core.__main__ import run
run()
"""


@pytest.mark.nightly
def test_the_archive_alone_has_an_engine_and_says_where_the_rest_is(archive, tmp_path):
    for path in archive:
        if path.endswith((".py", ".json", ".toml", ".txt")):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tmp_path / path)

    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments):
        return subprocess.run([sys.executable, *arguments], cwd=tmp_path, text=True, check=False,
                              capture_output=True, env=alone)

    assert run("-m", "ssd_core", "--version").stdout.strip() == VERSION
    assert "nothing to do" in run("install.py").stdout
    assert "clone" in run("-c", ALONE, "app").stderr
    assert "clone" in run("-c", ALONE, "train", "tokenizer", "--out", "run").stderr
    assert run("install.py", "test").returncode == 1


# Publishing


@pytest.fixture
def complaints():
    spec = importlib.util.spec_from_file_location("release", ROOT / ".github" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.complaints


FILLED = {"PublisherId": "somebody", "Icon": "https://example.org/icon.png",
          "Repository": "https://example.org/repository"}


def filled_in(**values: str) -> str:
    """This project with what only the owner can fill in."""
    lines = re.sub(r"^(PublisherId|Icon|Repository) = .*\n", "", PROJECT, flags=re.M)
    for key, value in values.items():
        section = "[project.urls]" if key == "Repository" else "[tool.comfy]"
        lines = lines.replace(f"\n{section}\n", f'\n{section}\n{key} = "{value}"\n')
    return lines


DATED = re.sub(r"\] - unreleased$", "] - 2030-01-31", CHANGES, flags=re.M)


def test_a_complete_release_passes(complaints):
    assert complaints(f"v{VERSION}", filled_in(**FILLED), DATED) == []


@pytest.mark.parametrize("key", FILLED)
def test_a_release_without_what_its_owner_fills_in_is_refused(complaints, key):
    for project in (filled_in(**FILLED | {key: ""}),
                    filled_in(**{k: v for k, v in FILLED.items() if k != key})):
        found, = complaints(f"v{VERSION}", project, DATED)
        assert key in found


def test_a_release_of_another_version_or_without_a_date_is_refused(complaints):
    found, = complaints("v99.0.0", filled_in(**FILLED), DATED)
    assert VERSION in found
    undated = re.sub(r"\] - \S+$", "] - unreleased", CHANGES, flags=re.M)
    found, = complaints(f"v{VERSION}", filled_in(**FILLED), undated)
    assert "CHANGELOG.md" in found


def test_contributing_lists_what_the_owner_fills_in():
    listed = {row[0].strip("`") for row in table(ROOT / "docs/contributing.md", "the owner's")}
    assert set(FILLED) <= listed


def test_a_tag_publishes_what_was_complete_and_passed():
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed (the extra `dev`)")
    workflows = ROOT / ".github" / "workflows"
    publish = yaml.safe_load((workflows / "publish.yml").read_text(encoding="utf-8"))
    assert publish[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    jobs = publish["jobs"]
    assert "release.py" in jobs["ready"]["steps"][-1]["run"]
    assert jobs["tests"] == {"needs": "ready", "uses": "./.github/workflows/ci.yml"}
    assert jobs["publish"]["needs"] == "tests"
    called = yaml.safe_load((workflows / "ci.yml").read_text(encoding="utf-8"))
    assert "workflow_call" in called[True] and "full" in called["jobs"]
    last = jobs["publish"]["steps"][-1]
    assert last["uses"].startswith("Comfy-Org/publish-node-action@")
    assert "secrets." in last["with"]["personal_access_token"]
