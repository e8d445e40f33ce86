"""Tokenizers from elsewhere: one that ends its process, or takes all memory, is a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from ssd_core import SSDError
from ssd_core.backbones.prompts import read_one_tokenizer, text
from ssd_core.backbones.prompts.text import read_text

SOUND = {"version": "1.0", "added_tokens": [],
         "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}
PANICS = {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}
GROWS = {"normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}] * 4}}


def test_a_tokenizer_reads_a_text_alike_each_time_whatever_its_training_dropped(tmp_path):
    merges = {"vocab": {"a": 0, "b": 1, "ab": 2, "abab": 3}, "merges": [["a", "b"], ["ab", "ab"]]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(
        {**SOUND, "model": {**SOUND["model"], **merges, "dropout": 0.5}}))
    reader = read_text(tmp_path / "tokenizer.json", 4)
    assert {tuple(reader.encode("abab" * 8)) for _ in range(8)} == {(3,) * 8}


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch):
    monkeypatch.setattr(text.passed, "in_memory", {})


@pytest.fixture
def written(tmp_path):
    def write(**changes):
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps({**SOUND, **changes}))
        return path

    return write


@pytest.fixture
def trials(monkeypatch):
    """Files that were tried."""
    seen = []
    monkeypatch.setattr(text, "tried", lambda path, real=text.tried: seen.append(path)
                        or real(path))
    return seen


def refused(path) -> str:
    with pytest.raises(SSDError) as caught:
        read_text(path, 10)
    line = str(caught.value)
    assert str(path) in line and "\n" not in line
    return line


def test_a_sound_one_is_tried_once(written, trials, monkeypatch, tmp_path):
    monkeypatch.setenv("SSD_CACHE", str(tmp_path / "cache"))
    path = written()
    assert read_text(path, 10).encode("ab") == [0, 1] == read_text(path, 10).encode("ab")
    assert trials == [path]
    other = written(added_tokens=[{"id": 2, "content": "<x>", "single_word": False,
                                   "lstrip": False, "rstrip": False, "normalized": False,
                                   "special": True}])
    assert read_text(other, 10).control == ["<x>"] and len(trials) == 2


def test_a_panic_is_a_line(written, capfd):
    assert "charsmap" in refused(written(**PANICS))
    assert capfd.readouterr() == ("", ""), "nor does the library write beside it"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="no limit of memory there")
def test_one_that_takes_all_memory_ends_a_process_of_its_own(written):
    assert "memory" in refused(written(**GROWS))


def test_one_that_never_ends_is_given_up(written, monkeypatch):
    monkeypatch.setattr(text, "SECONDS", 0.01)
    begun = time.monotonic()
    assert "too long" in refused(written())
    assert time.monotonic() - begun < 10


def test_without_a_process_the_file_is_read_here_and_a_panic_is_a_line_too(written, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert read_text(written(), 10).encode("b") == [1]
    assert "PanicException" in refused(written(**PANICS))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"a":' * 10_000, b"[]", b"null"])
def test_what_is_none_is_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    assert "not a tokenizer.json" in refused(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("changes", [
    {"version": "2.0"}, {"model": {"type": "Newer", "vocab": {}}},
    {"normalizer": {"type": "Newer"}}])
def test_a_newer_kind_asks_for_a_newer_library(written, changes):
    assert "pip install -U tokenizers" in refused(written(**changes))


def test_the_script_imports_nothing_of_ours():
    """It would take seconds, and modules beside it have names of others."""
    code = ("import sys, runpy; sys.argv = sys.argv[1:]; sys.modules['ssd_core'] = None\n"
            "runpy.run_path(sys.argv[0], run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code, read_one_tokenizer.__file__, os.devnull],
                          capture_output=True, text=True, check=False)
    assert done.stdout.startswith("begun\n") and "sound" not in done.stdout
