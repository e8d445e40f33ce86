"""install.py and what it installs from: versions that agree, nothing changed unasked."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ssd_core

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def install(monkeypatch):
    spec = importlib.util.spec_from_file_location("install_under_test", ROOT / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def commands(install, monkeypatch, tmp_path):
    """The commands that install.py would run, in an empty place; torch is said to be missing."""
    ran = []

    def run(command, stderr=None):
        ran.append(command)
        return int("-c" in command)

    monkeypatch.setattr(install, "run", run)
    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(install, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(install, "make_venv", lambda: None)
    monkeypatch.setattr(install, "torch_index", list)
    return ran


def pip_calls(commands):
    return [command[command.index("install") + 1:] for command in commands if "pip" in command]


def test_one_version_everywhere():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{ssd_core.__version__}"' in text


def test_requirements_are_floors_without_torch(install):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)\]", text, re.S | re.M).group(1)
    floors = [tuple(line.split(">=")) for line in re.findall(r'"(.*?)"', listed)]
    assert floors == install.requirements()
    assert "torch" not in dict(floors)


def test_no_argument_looks_and_changes_nothing(install, monkeypatch, capsys):
    monkeypatch.setattr(install, "run", lambda *a: pytest.fail("nothing may run"))
    assert install.main([]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_no_argument_names_what_is_missing_or_old(install, monkeypatch, capsys):
    monkeypatch.setattr(install, "requirements", lambda: [("numpy", "999.0"), ("no-such-pkg", "1")])
    assert install.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "numpy" in lines[0] and "999.0" in lines[0] and "no-such-pkg is missing" in lines[1]


def test_the_standard_library_is_enough():
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import install"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", script], check=False)
    assert done.returncode == 0


def test_torch_comes_first_in_its_tested_version(install, commands):
    install.prepare("app")
    assert [call[-1].split("[")[0] for call in pip_calls(commands)] == [
        f"torch=={install.TESTED_TORCH}", str(ROOT)]


def test_an_existing_torch_is_kept(install, commands, monkeypatch):
    monkeypatch.setattr(install, "has_torch", lambda: True)
    install.prepare("app")
    assert len(pip_calls(commands)) == 1


def test_a_finished_set_up_calls_pip_no_more(install, commands):
    install.prepare("app")
    commands.clear()
    install.prepare("app")
    assert commands == []
    install.prepare("app,dev")
    assert pip_calls(commands)


def test_the_app_comes_after_the_first_postcard_with_its_arguments(install, commands):
    assert install.main(["app", "--port", "8000"]) == 0
    assert "compare" in commands[-2]
    assert commands[-1][1:] == [str(ROOT / "gradio_app.py"), "--open", "--port", "8000"]


def test_further_arguments_go_to_pytest(install, commands):
    assert install.main(["test", "-k", "plan"]) == 0
    assert commands[-2][1:] == ["check", "."] and commands[-1][1:] == ["-q", "-k", "plan"]


def test_failures_are_one_line(install, commands, monkeypatch, capsys):
    monkeypatch.setattr(install, "run", lambda *a, **k: 1)
    assert install.main(["app"]) == 1
    assert install.main(["fly"]) == 1
    monkeypatch.setattr(install, "OLDEST_PYTHON", (99, 0))
    assert install.main(["test"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "Python" in lines[2]


def test_versions_compare_as_numbers(install):
    assert install.numbers("2.13.0+cpu") == (2, 13, 0) > install.numbers("2.4")
