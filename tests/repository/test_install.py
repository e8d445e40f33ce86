"""install.py and what it installs from: versions that agree, nothing changed unasked."""

import importlib.util
import re
import shutil
import subprocess
import sys
from http.client import InvalidURL
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"{name}_under_test", ROOT / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def install():
    return loaded("install")


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """environment.py with an empty place for .venv; install.py imports it."""
    module = loaded("environment")
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(module, "make_venv", lambda: None)
    monkeypatch.setitem(sys.modules, "environment", module)
    return module


@pytest.fixture
def commands(environment, monkeypatch):
    """The commands that it would run; torch is said to be missing."""
    ran = []

    def run(command, stderr=None, stdout=None):
        ran.append(command)
        return int("-c" in command)

    monkeypatch.setattr(environment, "run", run)
    monkeypatch.setattr(environment, "torch_index", list)
    return ran


def pip_calls(commands):
    return [command[command.index("install") + 1:] for command in commands if "pip" in command]


def test_the_documents_tell_the_downloads_and_the_methods_of_the_first_postcards(environment):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    app, tests = (f"{(size + environment.TORCH_MB) / 1000:.1f} GB"
                  for size in environment.SIZES.values())
    assert f"a download of {app}" in " ".join(readme.split()) and f"({tests})" in guide
    assert f"{(environment.TORCH_CUDA_MB - environment.TORCH_MB) / 1000:.1f} GB" in readme
    told = (ROOT / "docs" / "app.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert {f"`{name}`" for name in environment.FIRST_POSTCARDS.split(",")} <= set(
        re.findall(r"`\w+`", told))


def test_the_readme_begins_with_both_commands_and_the_minutes_of_the_tests():
    begin = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert len(begin.splitlines()) < 50
    assert re.findall(r"```bash\n(.*)\n```", begin) == [
        "python install.py app", "python install.py test"]
    minutes = re.search(r"takes (\d+ to \d+) minutes", begin.partition("install.py test")[2])
    guide = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    assert f"all of them {minutes[1]}." in " ".join(guide.split())


def test_the_app_asks_for_a_gradio_below_the_next_major_version_and_is_tested_with_it():
    gradio = pytest.importorskip("gradio", reason="gradio is not installed")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    least, minor, below = map(int, re.search(r'"gradio>=(\d+)\.(\d+),<(\d+)"', text).groups())
    installed = tuple(map(int, gradio.__version__.split(".")[:2]))
    assert (least, minor) <= installed < (below, 0) == (least + 1, 0)


def test_requirements_are_floors_without_torch(install):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)\]", text, re.S | re.M).group(1)
    floors = [tuple(line.split(">=")) for line in re.findall(r'"(.*?)"', listed)]
    assert floors == install.requirements()
    assert "torch" not in dict(floors)
    torch = re.search(r'"torch>=(.+?)"', text).group(1)
    assert f"torch {torch} or newer" in (ROOT / "docs" / "help.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["app", "--help"], ["test", "-h"]])
def test_help_names_every_command_and_starts_none(install, commands, capsys, arguments):
    assert install.main(arguments) == 0 and not commands
    said = capsys.readouterr()
    assert not said.err
    assert all(f"python install.py {command}" in said.out
               for command in ("app", "test", "download", "--help"))


def test_the_node_pack_alone_says_where_the_app_is(tmp_path):
    shutil.copy(ROOT / "install.py", tmp_path)
    done = subprocess.run([sys.executable, tmp_path / "install.py", "app"], capture_output=True,
                          text=True, check=False, env={"PYTHONSAFEPATH": "1"})
    assert done.returncode == 1 and "clone it" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_no_argument_looks_and_changes_nothing(install, commands, capsys):
    assert install.main([]) == 0 and not commands
    assert "nothing to do" in capsys.readouterr().out


def test_no_argument_names_what_is_missing_or_old(install, monkeypatch, capsys):
    monkeypatch.setattr(install, "requirements", lambda: [("numpy", "999.0"), ("no-such-pkg", "1")])
    assert install.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "numpy" in lines[0] and "999.0" in lines[0] and "no-such-pkg is missing" in lines[1]


def test_the_standard_library_is_enough():
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import install, environment"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", script], check=False)
    assert done.returncode == 0


def test_torch_comes_first_in_its_tested_version(environment, commands):
    environment.prepare("app")
    assert [call[-1].split("[")[0] for call in pip_calls(commands)] == [
        f"torch=={environment.TESTED_TORCH}", str(ROOT)]


def test_an_existing_torch_is_kept(environment, commands, monkeypatch):
    monkeypatch.setattr(environment, "has_torch", lambda: True)
    environment.prepare("app")
    assert len(pip_calls(commands)) == 1


def test_a_finished_set_up_calls_pip_no_more(environment, commands):
    environment.prepare("app")
    commands.clear()
    environment.prepare("app")
    assert commands == []
    environment.prepare("app,dev")
    assert pip_calls(commands)


def test_the_app_comes_after_the_first_postcard_with_its_arguments(install, commands):
    assert install.main(["app", "--port", "8000"]) == 0
    assert commands[-3] == [*commands[-1], "--check"] and "compare" in commands[-2]
    assert commands[-1][1:] == [str(ROOT / "gradio_app.py"), "--open", "--port", "8000"]


def test_of_wrong_options_of_the_app_no_postcard_is_drawn(
        install, environment, commands, monkeypatch):
    run = environment.run
    monkeypatch.setattr(environment, "run", lambda command, *streams: run(command, *streams)
                        or 2 * ("--check" in command))
    assert install.main(["app", "--port", "abc"]) == 2
    assert not any("compare" in command for command in commands)


def test_the_app_opens_also_where_the_first_postcard_fails(
        install, environment, commands, monkeypatch, capsys):
    run = environment.run
    monkeypatch.setattr(environment, "run", lambda command, *streams: run(command, *streams)
                        or int("compare" in command))
    assert install.main(["app"]) == 0
    assert commands[-1][1:] == [str(ROOT / "gradio_app.py"), "--open"]
    assert "first postcard failed" in capsys.readouterr().out


def printing(environment, monkeypatch, code):
    """Whatever pip is asked, a program runs that prints and exits with this code."""
    run = environment.run
    script = f"import sys; print('what pip says'); sys.exit({code})"
    monkeypatch.setattr(environment, "has_torch", lambda: True)
    monkeypatch.setattr(environment, "run", lambda command, *streams: run(
        [sys.executable, "-c", script] if "pip" in command else command, *streams))


@pytest.mark.parametrize(("verbose", "shown"), [(False, 0), (True, 1)])
def test_what_pip_prints_is_shown_only_when_asked_for(
        environment, monkeypatch, capfd, verbose, shown):
    printing(environment, monkeypatch, 0)
    environment.prepare("app", verbose)
    out, err = capfd.readouterr()
    assert (out + err).count("what pip says") == shown


def test_what_pip_prints_is_shown_where_it_fails(environment, monkeypatch, capfd):
    printing(environment, monkeypatch, 1)
    with pytest.raises(environment.SetUpError, match="pip could not install"):
        environment.prepare("app")
    assert "what pip says" in capfd.readouterr().err


def test_verbose_is_not_handed_on(install, commands):
    assert install.main(["app", "--verbose", "--port", "1"]) == 0
    assert commands[-1][2:] == ["--open", "--port", "1"]


@pytest.mark.parametrize(("torch", "index", "told"), [
    (False, [], ["torch 2.13.0 with CUDA", "3.6 GB"]),
    (False, ["--extra-index-url", "x"], ["torch 2.13.0,", "pytorch.org", "0.3 GB"]),
    (True, [], ["0.1 GB"])])
def test_what_will_be_downloaded_is_told_before_it_starts(
        environment, commands, monkeypatch, capsys, torch, index, told):
    before = []
    monkeypatch.setattr(environment, "python", lambda: sys.executable)
    monkeypatch.setattr(environment, "has_torch", lambda: torch)
    monkeypatch.setattr(environment, "torch_index", lambda: index)
    monkeypatch.setattr(environment.platform, "system", lambda: "Linux")
    monkeypatch.setattr(environment, "make_venv", lambda: before.append(capsys.readouterr().out))
    environment.prepare("app")
    assert all(text in before[0] for text in [*told, str(environment.VENV), "Gradio"])
    assert ("torch" in before[0]) != torch
    environment.prepare("app")
    assert "downloads" not in capsys.readouterr().out, "nothing is left to be downloaded"


@pytest.mark.parametrize("error", [OSError, InvalidURL], ids=["no network", "no proxy"])
def test_a_larger_download_says_why(environment, monkeypatch, capsys, error):
    def unreachable(*_, **__):
        raise error

    monkeypatch.setattr(environment.platform, "system", lambda: "Linux")
    monkeypatch.setattr(environment.shutil, "which", lambda _: None)
    monkeypatch.setattr(environment.urllib.request, "urlopen", unreachable)
    assert environment.torch_index() == []
    assert "cannot be reached" in capsys.readouterr().out


WORKERS = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")


def test_further_arguments_go_to_pytest(install, commands):
    assert install.main(["test", "-k", "plan"]) == 0
    assert commands[-3][1:] == ["check", "."] and commands[-1][1:] == ["-q", *WORKERS, "-k", "plan"]
    assert commands[-2][1:] == [str(install.ROOT / "tests" / "check_types.py")]


def test_lanes_are_folders_of_tests(install, environment, commands):
    assert install.main(["test", "core", "hosts", "-k", "plan", "-n", "0"]) == 0
    assert commands[-1][1:] == ["-q", *WORKERS, "tests/core", "tests/hosts", "-k", "plan",
                                "-n", "0"]
    assert all((install.ROOT / "tests" / lane).is_dir() for lane in environment.LANES)


def test_failures_are_one_line(install, environment, monkeypatch, capsys):
    monkeypatch.setattr(environment, "run", lambda *a, **k: 1)
    assert install.main(["app"]) == 1
    assert install.main(["fly"]) == 1
    monkeypatch.setattr(install, "OLDEST_PYTHON", (99, 0))
    assert install.main(["test"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "Python" in lines[2]


def test_versions_compare_as_numbers(install):
    assert install.numbers("2.13.0+cpu") == (2, 13, 0) > install.numbers("2.4")
