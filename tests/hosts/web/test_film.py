"""The film of a real run, and its messages, as the README's command makes them."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageChops

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[3]


def film(*arguments):
    """Run the tool in a process of its own: it has its own browser."""
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "preview_film.py"), "--methods",
         "ssd:rounds=0", *map(str, arguments)],
        capture_output=True, text=True, encoding="utf-8", timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_film_shows_rows_appear(chromium, tmp_path):
    out = tmp_path / "rows.webp"
    said = film("--out", out, "--width", 220, "--fps", 8, "--speed", 0.5, "--overlay")
    with Image.open(out) as moving:
        frames = []
        for n in range(moving.n_frames):
            moving.seek(n)
            frames.append(moving.convert("RGB"))
    assert len(frames) >= 3 and f"{moving.width}" == "220"
    changed = [ImageChops.difference(a, b).getbbox() for a, b in itertools.pairwise(frames)]
    assert sum(box is not None for box in changed) >= 2
    assert "0.5 times the real pace" in said


def test_the_messages_of_a_run_can_be_kept(tmp_path):
    out = tmp_path / "run.json"
    film("--messages", out)
    messages = json.loads(out.read_text())
    assert [messages[0]["kind"], messages[-1]["kind"]] == ["started", "finished"]
    assert messages[0]["label"] == "ssd:rounds=0"
