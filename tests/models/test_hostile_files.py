"""Files of weights that ask for all time or memory: one line each, and the models beside them."""

import json
import struct
import zipfile
from pathlib import Path
from threading import Event

import pytest
import torch
from safetensors.torch import save_file
from support.limits import limits
from support.mock_backbone import tiny_postcard

from ssd_core import SSDError
from ssd_core.backbones import emu3, postcard
from ssd_core.backbones.reading import tensor_files as reading
from ssd_core.backbones.reading.checkpoint import open_checkpoint
from ssd_core.files import DEEPEST, json_of
from ssd_core.weights import find
from ssd_core.weights.convert import convert
from ssd_core.weights.registry import ModelRegistry

DEEP = b'{"a":' * 200_000
# A dict whose key holds itself twice, sixty times over: 2 ** 60 values to compare.
TUPLES = b"\x80\x02})q\x01" + b"".join(
    b"h%ch%c\x86q%c0" % (n, n, n + 1) for n in range(1, 61)) + b"h\x3dK\x01s."
BYTES = b"\x80\x02}X\x01\x00\x00\x00ac__builtin__\nbytearray\n\x8a\x05\0\0\0\0\x03\x85Rs."


def header(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def archive(path: Path, described: bytes, packed: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", packed) as file:
        file.writestr("m/data.pkl", described)
        file.writestr("m/version", "3\n")


def holding_itself(path: Path) -> None:
    loop: dict = {}
    loop["model"] = loop
    torch.save(loop, path)


def with_config(path: Path) -> None:
    save_file({"model.embed_tokens.weight": torch.ones(4, 4)}, path)
    path.with_name("config.json").write_bytes(DEEP)


def large_header(path: Path) -> None:
    with path.open("wb") as file:
        file.write(header(b'{"__metadata__":{"a":"'))
        file.seek(0)
        file.write(struct.pack("<Q", reading.MOST_HEADER + 1))
        file.truncate(reading.MOST_HEADER + 100)


def saved(value: torch.Tensor):
    return lambda path: torch.save({"a": value, "b": torch.ones(1)}, path)


HOSTILE = {
    "holds itself.pt": holding_itself,
    "deep.safetensors": lambda path: path.write_bytes(header(b"[" * 200_000)),
    "deeper.safetensors": lambda path: path.write_bytes(header(DEEP)),
    "config.safetensors": with_config, "header.safetensors": large_header,
    "packed.pt": lambda path: archive(path, bytes(reading.MOST_PICKLE + 1), zipfile.ZIP_DEFLATED),
    "packed.jit": lambda path: archive(path, bytes(reading.MOST_PICKLE + 1), zipfile.ZIP_DEFLATED),
    "tuples.pt": lambda path: path.write_bytes(TUPLES),
    "tuples.bin": lambda path: archive(path, TUPLES),
    "bytes.pt": lambda path: archive(path, BYTES),
    "sparse.pt": saved(torch.ones(3).to_sparse()), "meta.pt": saved(torch.ones(3, device="meta")),
    "expanded.pt": saved(torch.ones(1).expand(10**6, 10**6))}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_asks_for_everything_is_one_line(tmp_path, name):
    """Of listing, of loading and of converting; what lies beside it is listed."""
    folder = tmp_path / "ssd_backbones" / "bad"
    folder.mkdir(parents=True)
    HOSTILE[name](folder / name)
    (tmp_path / "ssd_backbones" / "good").mkdir()
    postcard.save(tiny_postcard(), tmp_path / "ssd_backbones" / "good" / "backbone.safetensors")
    registry = ModelRegistry.below(tmp_path)
    with limits(10, 1 << 30):
        assert {"postcard", "good"} == set(registry.backbones())
        (bad,) = registry.unread()
    assert bad.name == "bad" and str(folder) in bad.why_not and "\n" not in bad.why_not
    if not name.startswith("config"):
        for read in (open_checkpoint, convert):
            with pytest.raises(SSDError) as refused, limits(10, 1 << 30):
                read(folder / name)
            assert name in str(refused.value)


def test_whatever_goes_wrong_in_one_file_is_said_of_that_file(tmp_path, monkeypatch):
    """Faults and panics of libraries, and drives that do not answer."""
    for name in ("bad", "good"):
        (tmp_path / "ssd_backbones" / name).mkdir(parents=True)
        postcard.save(tiny_postcard(), tmp_path / "ssd_backbones" / name / "b.safetensors")

    class Panic(BaseException):
        pass

    def broken(checkpoint, real=postcard.matches):
        if checkpoint.folder.name == "bad":
            raise Panic("out of luck")
        return real(checkpoint)

    monkeypatch.setattr(postcard, "matches", broken)
    registry = ModelRegistry.below(tmp_path)
    assert {"postcard", "good"} == set(registry.backbones())
    (bad,) = registry.unread()
    assert "Panic: out of luck" in bad.why_not
    answers = Event()
    monkeypatch.setattr(postcard, "matches", lambda checkpoint: answers.wait(60))
    monkeypatch.setattr(find, "SECONDS", 0.01)
    assert "did not answer" in find.family_of(tmp_path / "ssd_backbones" / "good")[1]
    answers.set()


def test_a_vision_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "vision.txt").write_bytes(b"<|image token|>\n\xff\n")
    with pytest.raises(SSDError, match=r"vision.txt: not a text of tokens"):
        emu3.original_words(tmp_path / "ranks", tmp_path / "vision.txt", 9)


def test_json_is_read_to_some_depth_and_no_deeper():
    for text in (b"7", b"[]", b"[" * DEEPEST + b"]" * DEEPEST, json.dumps({"a": [1, {"b": 2}]})):
        assert json_of(text) == json.loads(text)
    for text in (b"[" * 1000 + b"]" * 1000, b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), DEEP):
        with pytest.raises(ValueError, match="levels|Expecting"):
            json_of(text)
