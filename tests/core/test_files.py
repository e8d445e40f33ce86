"""Writing: whole or not at all. Reading: one line that names the file."""

import os

import pytest
import torch
from safetensors.torch import save_file

from ssd_core import SSDError
from ssd_core.files import (
    atomic_write,
    read_safetensors,
    sha256_of,
    write_safetensors,
    write_text,
)


def test_a_file_is_written_as_utf8_and_replaced(tmp_path):
    path = tmp_path / "a" / "b.txt"
    write_text(path, "first")
    write_text(path, "± 红")
    assert path.read_text(encoding="utf-8") == "± 红"
    assert os.listdir(path.parent) == ["b.txt"]


def test_the_file_is_not_there_before_it_is_whole(tmp_path):
    path = tmp_path / "b.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("half")
        assert not path.exists() and temporary.parent == tmp_path


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "b.txt"
    write_text(path, "old")
    with pytest.raises(error), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise error
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["b.txt"]


def test_a_full_disk_is_one_line(tmp_path):
    path = tmp_path / "b.txt"
    with pytest.raises(SSDError, match="b.txt.*No space") as refused, atomic_write(path):
        raise OSError(28, "No space left on device")
    assert "\n" not in str(refused.value) and os.listdir(tmp_path) == []


def test_an_unwritable_place_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    for path in (tmp_path / "file" / "b.txt", tmp_path / "folder"):
        with pytest.raises(SSDError) as refused:
            write_text(path, "text")
        assert str(path) in str(refused.value) and "\n" not in str(refused.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_safetensors_round_trip(tmp_path):
    path, tensors = tmp_path / "t.safetensors", {"a": torch.arange(6).view(2, 3)}
    write_safetensors(tensors, path, {"format": "f/1", "note": "x"})
    read, metadata = read_safetensors(path, "f/1")
    assert read["a"].equal(tensors["a"]) and metadata == {"format": "f/1", "note": "x"}


def test_what_is_not_as_it_was_saved_is_refused(tmp_path):
    """Bits of a value, a value of the metadata, and files that name no checksum."""
    path, tensors = tmp_path / "t.safetensors", {"a": torch.arange(6).view(2, 3)}
    write_safetensors(tensors, path, {"format": "f/1", "note": "10.0"})
    content = path.read_bytes()
    save_file(tensors, path, {"format": "f/1"})
    for changed in (content[:-3] + b"\x01" + content[-2:], content.replace(b"10.0", b"18.0"),
                    path.read_bytes()):
        path.write_bytes(changed)
        with pytest.raises(SSDError, match=r"t.safetensors: damaged, .*checksum"):
            read_safetensors(path, "f/1")


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"not a tensor file", b"\xff" * 64])
def test_foreign_content_is_refused(tmp_path, content):
    path = tmp_path / "t.safetensors"
    path.write_bytes(content)
    with pytest.raises(SSDError, match="t.safetensors") as refused:
        read_safetensors(path, "f/1")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("metadata, found", [(None, "none"), ({"format": "f/2"}, "f/2")])
def test_another_format_is_refused_by_name(tmp_path, metadata, found):
    path = tmp_path / "t.safetensors"
    save_file({"a": torch.zeros(1)}, path, metadata)
    with pytest.raises(SSDError, match=f"t.safetensors.*{found}.*f/1"):
        read_safetensors(path, "f/1")


def test_missing_files_and_folders_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "gone.safetensors"):
        with pytest.raises(SSDError, match=path.name):
            read_safetensors(path, "f/1")


def test_sha256_is_of_the_tensors_and_not_of_the_file():
    tensors = {"a": torch.arange(4.0), "b": torch.ones(2, 2)}
    assert sha256_of(tensors) == sha256_of(dict(reversed(tensors.items())))
    for changed in ({**tensors, "a": torch.arange(4.0) + 1}, {**tensors, "b": torch.ones(4)},
                    {"a": tensors["a"]}):
        assert sha256_of(changed) != sha256_of(tensors)
