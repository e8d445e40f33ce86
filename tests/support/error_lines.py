"""The lines that code can raise, read from its source: templates with {0}, {1} ... for values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

# What takes a whole line, or one to put behind a path.
RAISERS = {"SSDError", "AdapterError", "Refusal", "refusal"}
# What returns a line for others to raise.
TELLERS = {"fault", "how_to_get", "download_hint", "heads_mismatch", "no_heads", "damage",
           "complaint_about_backbone",
           "overflowed"}


def templates(path: Path) -> Iterator[str]:
    """The templates of the lines that a file raises, in no particular order."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            for argument in node.args:
                if name_of(node.func) in RAISERS or rules(node, argument):
                    yield from texts(argument)
        elif isinstance(node, ast.FunctionDef) and node.name in TELLERS:
            for part in ast.walk(node):
                if isinstance(part, ast.Return) and part.value is not None:
                    yield from texts(part.value)


def rules(call: ast.Call, argument: ast.expr) -> bool:
    """Whether these are the (holds, line) of `require`."""
    return name_of(call.func) == "require" and isinstance(argument, ast.Tuple)


def name_of(called: ast.expr) -> str:
    return getattr(called, "id", getattr(called, "attr", ""))


def texts(node: ast.expr) -> Iterator[str]:
    """Templates among an argument: itself, its branches, the parts of a tuple of rules."""
    if isinstance(node, ast.JoinedStr):
        yield template(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*texts(node.body), *texts(node.orelse))
    elif isinstance(node, ast.Tuple):
        for part in node.elts:
            yield from texts(part)


def template(node: ast.JoinedStr) -> str:
    """ "{path}: no such file" as "{0}: no such file"; braces of the text itself stay doubled."""
    parts, count = [], 0
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(value.value.replace("{", "{{").replace("}", "}}"))
        else:
            parts.append(f"{{{count}}}")
            count += 1
    return "".join(parts)
