"""CI and pre-commit: the files can be read, and what they call is there and stays as it is."""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="pyyaml is not installed (the extra `dev`)")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What a step may call besides the files of this repository.
TOOLS = {"python", "bash"}


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(path: Path) -> list[dict]:
    return [step for job in read(path)["jobs"].values() for step in job.get("steps", ())]


def files_named(command: str) -> set[str]:
    """Paths in a command: words with a folder or an ending of ours."""
    return {word for word in command.split()
            if re.fullmatch(r"[\w.]+(?:/[\w.]+)+|\w+\.(?:py|toml|txt)", word)
            and not word.startswith(".venv/")}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_what_is_there(path):
    for step in steps(path):
        if command := step.get("run"):
            assert command.split()[0] in TOOLS
            named = files_named(command)
            assert named and all((ROOT / name).is_file() for name in named), command
        else:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), "a tag may move"


def test_every_supported_python_and_system_runs_core_and_hosts_and_one_runs_all():
    jobs = read(ROOT / ".github/workflows/ci.yml")["jobs"]
    matrix = jobs["hosts"]["strategy"]["matrix"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = re.search(r'requires-python = ">=(.+?)"', project).group(1)
    assert matrix["python"][0] == oldest
    assert {run["os"].split("-")[0] for run in matrix["include"]} == {"windows", "macos"}
    assert jobs["hosts"]["steps"][-1]["run"] == "python install.py test core models hosts"
    assert jobs["full"]["steps"][-1]["run"] == "bash .ci/run"
    threads = read(ROOT / ".github/workflows/ci.yml")["env"]["OMP_NUM_THREADS"]
    assert f"OMP_NUM_THREADS:-{threads}}}" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert 'install.py test "$@"\n' in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_night_runs_all_and_the_oldest_and_the_newest_comfyui():
    jobs = read(ROOT / ".github/workflows/nightly.yml")["jobs"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = re.search(r'requires-comfyui = ">=(.+?)"', project).group(1)
    assert jobs["comfyui"]["strategy"]["matrix"]["comfyui"] == [f"v{oldest}", "master"]
    assert {job["steps"][-1]["run"] for job in jobs.values()} == {"bash .ci/nightly"}
    assert ".ci/run --nightly\n" in (ROOT / ".ci/nightly").read_text(encoding="utf-8")


def test_pre_commit_runs_the_programs_of_the_environment():
    hooks = [hook for repo in read(ROOT / ".pre-commit-config.yaml")["repos"]
             for hook in repo["hooks"]]
    own = {hook["id"]: hook["entry"] for hook in hooks if "entry" in hook}
    assert {"ruff", "mypy"} <= set(own)
    for entry in own.values():
        assert entry.startswith(".venv/bin/python ")
        assert all((ROOT / name).is_file() for name in files_named(entry)), entry
