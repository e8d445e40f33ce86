"""mypy sees the imports of nodes and app, whatever the folder around them is called."""

import check_types
import pytest

ENGINE = "def passes() -> int:\n    return 3\n"
CALLERS = {"nodes": "from ..ssd_core.engine import passes\n\ncount: {kind} = passes()\n",
           "studio": "from ssd_core.engine import passes\n\ncount: {kind} = passes()\n"}


@pytest.fixture
def pack(tmp_path):
    root = tmp_path / "no-package name"
    for room in check_types.ROOMS:
        (root / room).mkdir(parents=True)
        (root / room / "__init__.py").touch()
    (root / "pyproject.toml").write_text("[tool.mypy]\n")
    (root / "ssd_core" / "engine.py").write_text(ENGINE)
    return root


@pytest.mark.parametrize("kind, code", [("int", 0), ("str", 1)])
def test_nodes_and_app_are_checked_against_the_engine(pack, capsys, kind, code):
    for room, source in CALLERS.items():
        (pack / room / "caller.py").write_text(source.format(kind=kind))
    assert check_types.check(pack, []) == code
    errors = capsys.readouterr().out.replace("\\", "/")
    assert [f"{room}/caller.py:3: error: Incompatible types" in errors
            for room in CALLERS] == [bool(code)] * 2
