"""`python -m ssd_core` where the command line's own packages are missing, as inside ComfyUI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssd_core.cli import COMMANDS, command_named, main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_package_is_named_in_one_line(package, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] == {package!r}:\n"
        f"            raise ModuleNotFoundError('missing', name={package!r})\n"
        "sys.meta_path.insert(0, Missing())\n")
    done = subprocess.run([sys.executable, "-m", "ssd_core", "plan"], cwd=ROOT, text=True,
                          capture_output=True, check=False,
                          env={"PYTHONPATH": str(tmp_path), "PATH": "", "HOME": str(tmp_path)})
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert told.startswith(f"error: the commands need the package {package}")
    assert "Traceback" not in done.stderr


def test_the_help_has_every_commands_own_words_and_imports_none_of_them():
    assert {name: command_named(name).help.split("\n\n")[0].replace("\n", " ")
            for name in COMMANDS} == COMMANDS
    script = ("import sys; from ssd_core.cli import main; code = main(['--help'])\n"
              "print(code, *(name for name in sys.modules if name.startswith('ssd_core.cli.') "
              "or name == 'torch'))")
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, text=True,
                          capture_output=True)
    assert all(f" {name} " in done.stdout for name in COMMANDS)
    assert done.stdout.splitlines()[-1] == "0 ssd_core.cli.paths"


def test_transformers_is_imported_by_no_start_and_no_postcard():
    script = ("import sys, ssd_core, ssd_core.cli; backbone = ssd_core.load_backbone('postcard')\n"
              "heads = ssd_core.load_heads('postcard', backbone)\n"
              "for event in ssd_core.generate(backbone, ['a boat'], ssd_core.engine.methods.SSD(),"
              " heads):\n"
              "    break\n"
              "sys.exit('transformers' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_the_app_takes_its_options_from_the_command_line(capsys):
    pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
    with pytest.raises(SystemExit) as ended:
        main(["app", "--port", "0"])
    assert ended.value.code == 2 and "--port" in capsys.readouterr().err


# What no command but training may need: torch.optim.Muon came with torch 2.9, and the packages are
# those of the extras other than `app`.
OPTIONAL = ("accelerate", "av", "cleanfid", "diffusers", "gradio", "matplotlib", "ray", "scipy",
            "sklearn", "tiktoken", "torchao", "torchvision", "transformers")
POOR = f"""
import importlib, pkgutil, sys
import torch
del torch.optim.Muon

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError("missing", name=name)

sys.meta_path.insert(0, Missing())
from ssd_core.cli import main
"""
DRAW = """
for line in ("methods", "plan --grid 4x4", "generate boat --method rows --rounds 0 --out a.png",
             "edit a.png house --rows 20 --method rows --rounds 0"):
    assert main(line.split()) == 0, line
assert not [name for name in sys.modules if name.startswith("ssd_core.train")]
"""
IMPORT_ALL = """
import ssd_core
for module in pkgutil.walk_packages(ssd_core.__path__, "ssd_core."):
    if module.name not in ("ssd_core.__main__", "ssd_core.model.triton_int8"):
        importlib.import_module(module.name)
assert main(["train", "--help"]) == 0
assert main(["train", "backbone", "--out", "run", "--start-from", "postcard"]) == 2
"""


@pytest.mark.parametrize("script", [DRAW, IMPORT_ALL])
def test_no_command_needs_trainers_or_optional_packages(script, tmp_path):
    done = subprocess.run([sys.executable, "-c", POOR + script], cwd=tmp_path, text=True,
                          capture_output=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
