"""What tools/make.py compares is as it makes it, and the repository's pictures stay small."""

import subprocess
import sys

import pytest
import torch
from support.script_modules import script
from support.small_bundle import SIDE, small_bundle

LARGEST = 300_000  # bytes


@pytest.fixture(scope="module")
def make():
    return script("tools", "make")


@pytest.mark.parametrize("what", ["workflows", "blueprints", "pictures"])
def test_what_is_there_is_what_the_tables_name(make, what, capsys):
    assert make.main([what, "--check"]) == 0, capsys.readouterr().err


def test_a_name_that_is_not_in_the_table_is_refused(make):
    with pytest.raises(SystemExit, match="nowhere: choose of postcards, "):
        make.main(["pictures", "nowhere", "--check"])


def test_a_large_or_missing_picture_is_named(tmp_path):
    complaint = script("tools", "pictures").complaint
    (tmp_path / "a.webp").write_bytes(b"0" * (LARGEST + 1))
    assert complaint(tmp_path / "a.webp") == "has 300,001 bytes, more than 300,000"
    assert complaint(tmp_path / "b.webp") == "is missing"


def test_the_scripts_of_pictures_still_draw(small_assets, monkeypatch):
    from ssd_core import load_backbone, load_heads

    editing, examples = script("tools", "editing"), script("tools", "examples")
    monkeypatch.setattr(examples, "check", lambda pixels, claims: [True])
    with small_bundle(small_assets):
        backbone = load_backbone("postcard", "cpu", "fp32")
        heads = load_heads("postcard", backbone)
        seed, thumbnail = examples.first_obedient(backbone, heads, "a house")
        shown = script("tools", "short_prompt").drawn(backbone, heads, 1, expand=True)
        film = script("tools", "preview_film")
        told = film.record(film.parse(["--methods", "ar,ssd:rounds=1"]), film.EveryPass)
        parent = editing.Parent.of(backbone, editing.OLD)
        keep = torch.ones(SIDE, SIDE, dtype=torch.bool)
        keep[4:] = False
        drawn = [*editing.all_shown(parent.suggestions(keep)),
                 editing.shown(parent.by_words(editing.NEW)), editing.shown(parent.varied(0.5))]
    assert seed == 0 and shown.size[0] == shown.size[1] and len(drawn) == editing.SUGGESTED + 2
    assert {one.size for one in drawn} == {thumbnail.size}
    assert {timed.message["kind"] for timed in told} >= {"started", "pass", "finished"}


def test_without_torch_one_line_says_how_to_set_up(root):
    done = subprocess.run([sys.executable, "-S", "-I", root / "tools" / "make.py", "texts"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "has no torch: run python install.py test core once" in done.stderr


def test_a_stale_text_is_named_and_written(make, tmp_path, monkeypatch):
    class Maker:
        @staticmethod
        def pages():
            return {tmp_path / "page.md": "new"}

    monkeypatch.setattr(make, "TEXTS", (Maker,))
    monkeypatch.setattr(make, "ROOT", tmp_path)
    assert make.texts([], check=True) == ["page.md is stale: run python tools/make.py texts"]
    assert not (tmp_path / "page.md").exists()
    assert make.main(["texts"]) == 0 and make.main(["texts", "--check"]) == 0
    assert (tmp_path / "page.md").read_text() == "new"


def test_pictures_of_results_are_small(root):
    results = root / "lab" / "benchmarks" / "results"
    assert [path.name for path in results.iterdir()
            if path.suffix in (".jpg", ".png", ".webp") and path.stat().st_size > LARGEST] == []
    named = "".join(path.read_text(encoding="utf-8") for path in results.glob("*.md"))
    assert [path.name for path in results.glob("*.webp") if path.name not in named] == []


def test_the_repository_stays_small(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True)
    files = [root / name for name in listed.stdout.split("\0") if name]
    if listed.returncode or not files:
        pytest.skip("not a git checkout")
    assert sum(path.stat().st_size for path in files if path.exists()) < 45e6
