"""The oldest versions that pyproject.toml declares draw by the command line, the app and Python."""

import importlib.util
import json
import os
import re
import socket
import subprocess
import time
import urllib.request
import venv
from pathlib import Path

import pytest
from PIL import Image

from ssd_core.output.recipe import read_recipe, recipe_tokens
from studio.calls import VISITOR

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
PROMPT, SEED = "a red house on the left, on a lake", 7
PATIENCE = 300  # seconds
BY_PYTHON = f"""
from ssd_core import Sampling, generate, load_backbone, load_heads, methods
backbone = load_backbone("postcard")
heads = load_heads("postcard", backbone)
for event in generate(backbone, [{PROMPT!r}], methods.SSD(), heads, Sampling(seed={SEED})):
    pass
assert event.tokens.shape == (1, 24, 24)
"""


def floors() -> list[str]:
    """Each requirement of the package and its app, at the oldest version that is declared."""
    tomllib = pytest.importorskip("tomllib", reason="tomllib comes with Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["app"]]
    return [re.fullmatch(r"([\w-]+)>=([\d.]+)(,<.*)?", each).expand(r"\1==\2")
            for each in declared]


def index() -> list[str]:
    """pip's options for torch without CUDA, where there is such an index."""
    spec = importlib.util.spec_from_file_location("environment", ROOT / "environment.py")
    environment = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(environment)
    return environment.torch_index()


@pytest.fixture(scope="module")
def oldest(tmp_path_factory):
    """Runs the Python of an environment with exactly the floors."""
    place = tmp_path_factory.mktemp("oldest")
    venv.create(place / "venv", with_pip=True)
    python = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *floors(), *index()], check=True)
    subprocess.run([python, "-m", "pip", "check"], check=True)

    def start(*arguments, **options):
        return subprocess.Popen(
            [python, *arguments], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SSD_CACHE": str(place / "cache")},
            **options)
    return start


def ended(process) -> None:
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err


def is_a_picture(path: Path) -> bool:
    """Whether a PNG has its recipe, as this environment reads it, and more than one colour."""
    recipe = read_recipe(path)
    with Image.open(path) as image:
        coloured = len(image.convert("RGB").getcolors(1 << 20)) > 100
    return coloured and recipe["prompt"] == PROMPT and recipe_tokens(recipe).shape == (24, 24)


def test_they_draw_by_the_command_line(oldest, tmp_path):
    ended(oldest("-m", "ssd_core", "generate", PROMPT, "--seed", str(SEED), "--out", "a.png",
                 cwd=tmp_path))
    ended(oldest("-m", "ssd_core", "compare", PROMPT, "--methods", "ssd,exact", cwd=tmp_path))
    assert is_a_picture(tmp_path / "a.png")


def test_they_draw_by_python(oldest, tmp_path):
    ended(oldest("-c", BY_PYTHON, cwd=tmp_path))


def test_they_draw_by_the_app(oldest, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = oldest(ROOT / "gradio_app.py", "--port", str(port), "--output-dir", tmp_path,
                 cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        assert b"<title>" in answer(app, port, "")
        answer(app, port, "api/draw", {"settings": {"prompt": PROMPT, "seed": str(SEED)}})
        assert is_a_picture(saved_in(tmp_path, app))
    finally:
        app.terminate()
        app.communicate(timeout=PATIENCE)


def answer(app, port: int, path: str, body: dict | None = None) -> bytes:
    """What the app answers, once it does."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", data, {
        "content-type": "application/json", VISITOR: "a" * 64})
    for _ in range(PATIENCE):
        assert app.poll() is None, app.stderr.read()
        try:
            with urllib.request.urlopen(request, timeout=60) as told:
                return told.read()
        except ConnectionError:
            time.sleep(1)
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionError):
                raise
            time.sleep(1)
    raise AssertionError("the app does not answer")


def saved_in(folder: Path, app) -> Path:
    """The picture that the app saves; its file is created empty first."""
    for _ in range(PATIENCE):
        if found := [path for path in folder.rglob("*.png") if path.stat().st_size]:
            return found[0]
        assert app.poll() is None, app.stderr.read()
        time.sleep(1)
    raise AssertionError("no picture was saved")
