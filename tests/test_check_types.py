"""mypy sees the nodes' imports as ComfyUI does, whatever the folder around them is called."""

import check_types
import pytest

ENGINE = "def passes() -> int:\n    return 3\n"
NODE = "from ..ssd_core.engine import passes\n\ncount: {kind} = passes()\n"


@pytest.fixture
def pack(tmp_path):
    root = tmp_path / "no-package name"
    for room in check_types.ROOMS:
        (root / room).mkdir(parents=True)
        (root / room / "__init__.py").touch()
    (root / "pyproject.toml").write_text("[tool.mypy]\n")
    (root / "ssd_core" / "engine.py").write_text(ENGINE)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("kind, code", [("int", 0), ("str", 1)])
def test_a_node_is_checked_against_the_engine(pack, capsys, kind, code):
    (pack / "nodes" / "node.py").write_text(NODE.format(kind=kind))
    assert check_types.check(pack, []) == code
    told = capsys.readouterr().out
    assert ('nodes/node.py:3: error: Incompatible types' in told.replace("\\", "/")) == bool(code)
