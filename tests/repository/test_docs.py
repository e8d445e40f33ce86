"""Files that documents and docstrings name are there."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED, USERS = {"node_modules", "__pycache__"}, {"outputs", "runs"}
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
PLACE = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
NAMED = re.compile(r"(?<![\w./*\\{}<>-])((?:[\w-]+/)*[\w-]+\.(?:md|py|mjs|js|css|html))\b(?!\()")
OWN_TEXT = re.compile(r"(?<![\w./-])([A-Z]{3,}\.(?:md|txt)|memory\.\w+|(?:docs|lab|tests|"
                      r"studio|nodes|locales|web|workflows|ssd_core)/[\w./-]*\w\.\w+)")
PLACEHOLDERS = {"NAME.md", "FILE.md"}
# What the guides tell the reader to write; tests/repository/docs/test_guides.py does.
EXAMPLES = {"lookup.py", "sketch.py"}
# ComfyUI's own files.
FOREIGN = {"nodes.py", "server.py", "main.py", "app.py", "cuda_malloc.py", "folder_paths.py"}


@cache
def files() -> frozenset[str]:
    return frozenset(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")
                     if path.is_file() and not hidden(path))


@cache
def ends() -> frozenset[str]:
    """All files, and the ends of their paths: `tools/make.py` and `make.py`."""
    return frozenset("/".join(parts[n:]) for parts in (name.split("/") for name in files())
                     for n in range(len(parts)))


def hidden(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return parts[0] in USERS or any(
        p in SKIPPED or (p.startswith(".") and p != ".ci") for p in parts)


def sources(*endings: str) -> list[Path]:
    return sorted(ROOT / name for name in files() if name.endswith(endings))


def exists(name: str, source: Path) -> bool:
    """Below the root, beside the source, or as the end of a path: `checker.py` of a package."""
    if Path(name).name in PLACEHOLDERS | EXAMPLES:
        return True
    return name in ends() or name in FOREIGN or (ROOT / name).exists() or (
        source.parent / name).exists()


def prose(path: Path) -> Iterator[str]:
    """Docstrings and comments of a module; all of any other file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield text
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def test_links_of_documents_lead_somewhere():
    assert [(path, name) for path in sources(".md")
            for name in LINK.findall(path.read_text(encoding="utf-8"))
            if not (path.parent / name).exists()] == []


def places(path: Path) -> set[str]:
    """What a link to a heading of this page says behind #."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in HEADING.findall(path.read_text(encoding="utf-8"))}


def test_links_to_headings_lead_to_some():
    assert [(path, page, place) for path in sources(".md")
            for page, place in PLACE.findall(path.read_text(encoding="utf-8"))
            if place not in places(path.parent / page if page else path)] == []


def named_in_prose(path: Path) -> set[str]:
    return {name for text in prose(path) for pattern in (NAMED, OWN_TEXT)
            for name in pattern.findall(text)}


def test_files_named_in_prose_are_there():
    assert [(path, name) for path in sources(".md", ".py")
            for name in sorted(named_in_prose(path)) if not exists(name, path)] == []


def test_the_readers_see_names():
    text = "`memory.txt`, CONTRACT.md, tests/nowhere/x.json and [here](gone.md), METHODS.items()"
    assert set(NAMED.findall(text)) | set(OWN_TEXT.findall(text)) == {
        "memory.txt", "CONTRACT.md", "tests/nowhere/x.json", "gone.md"}
    assert LINK.findall(text) == ["gone.md"]
