"""Checkpoints that were damaged or mixed up: one clear line, or the same model, never another."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from support.tiny_checkpoints import anole, emu3, lumina
from support.tiny_image_models import janus_original, janus_port

from ssd_core import SSDError, load_backbone

FOLDER = "Lumina-mGPT-7B-512"  # Lumina-mGPT's size is told by its folder alone
LAYOUTS = {"janus-original": janus_original, "janus-port": janus_port, "lumina": lumina,
           "anole": anole, "emu3": emu3}


class Whole:
    """A checkpoint as it was: its folder, its tensors by file, what its backbone computes.

    No dataclass: hypothesis would write out all its tensors.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, read_folder(folder)
        self.expected = said(load_backbone(folder, "cpu"))

    def copied(self, to: Path) -> Path:
        return Path(shutil.copytree(self.folder, to / FOLDER))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return {name: Whole(write(tmp_path_factory.mktemp(name) / FOLDER))
            for name, write in LAYOUTS.items()}


def read_folder(folder: Path) -> dict[Path, dict[str, torch.Tensor]]:
    files = sorted((*folder.rglob("*.safetensors"), *folder.rglob("*.bin")))
    return {path.relative_to(folder): load_file(path) if path.suffix == ".safetensors"
            else torch.load(path, weights_only=True) for path in files}


def save(tensors: dict[str, torch.Tensor], path: Path) -> None:
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)


@torch.inference_mode()
def said(backbone) -> tuple[torch.Tensor, ...]:
    """Logits behind a prompt and its first codes, and a strip of pixels."""
    ids = torch.tensor([backbone.tokenize("a sun")])
    codes = torch.arange(4)[None]
    x = torch.cat((backbone.embed_prompt(ids), backbone.embed(codes)), dim=1)
    return (backbone.logits(backbone(x)),
            backbone.picture_codec.decode(torch.arange(8).view(1, 2, 4)))


def loaded_or_refused(folder: Path):
    """What the backbone says, or None where it was refused in one line naming a file of it."""
    try:
        return said(load_backbone(folder, "cpu"))
    except SSDError as error:
        assert "\n" not in str(error) and str(folder) in str(error), error
        return None


def same(one, other, tolerance: float = 1e-6) -> bool:
    return all(a.shape == b.shape and (a - b).abs().max() <= tolerance * b.abs().max()
               for a, b in zip(one, other, strict=True))


def renamed(draw, tensors, name) -> None:
    tensors[draw(st.sampled_from(("x", "model.x", f"{name}.old", name.upper())))] = \
        tensors.pop(name)


def dropped(draw, tensors, name) -> None:
    del tensors[name]


def retyped(draw, tensors, name) -> None:
    dtype = draw(st.sampled_from((torch.int8, torch.int64, torch.bool, torch.float64)))
    tensors[name] = tensors[name].to(dtype)


def reshaped(draw, tensors, name) -> None:
    value = tensors[name]
    tensors[name] = draw(st.sampled_from((
        value.flatten(), value[None], value[:0], torch.cat((value, value)), value[:-1],
        value.new_zeros(3, *value.shape[1:]), value.new_zeros(()))))


CHANGES = {change.__name__: change for change in (renamed, dropped, retyped, reshaped)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", CHANGES)
@settings(max_examples=3)
@given(data=st.data())
@pytest.mark.by_day(5)
def test_a_changed_tensor_is_refused_or_changes_nothing(whole, tmp_path_factory, layout, change,
                                                        data):
    model = whole[layout]
    file = data.draw(st.sampled_from(sorted(model.files)))
    name = data.draw(st.sampled_from(sorted(model.files[file])))
    copy = model.copied(tmp_path_factory.mktemp("changed"))
    tensors = dict(model.files[file])
    CHANGES[change](data.draw, tensors, name)
    save(tensors, copy / file)
    found = loaded_or_refused(copy)
    assert found is None or same(found, model.expected), f"{name} of {file}"
    shutil.rmtree(copy)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=6)
@given(share=st.floats(0, 1, exclude_max=True), data=st.data())
def test_a_truncated_file_is_refused(whole, tmp_path_factory, layout, share, data):
    file = data.draw(st.sampled_from(sorted(whole[layout].files)))
    copy = whole[layout].copied(tmp_path_factory.mktemp("cut"))
    content = (copy / file).read_bytes()
    (copy / file).write_bytes(content[: int(share * len(content))])
    assert loaded_or_refused(copy) is None
    shutil.rmtree(copy)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_that_are_missing_are_refused(whole, tmp_path, layout):
    words = [Path(path.name) for path in whole[layout].folder.glob("*token*.*")]
    assert words
    for number, file in enumerate((*whole[layout].files, *words)):
        copy = whole[layout].copied(tmp_path / str(number))
        (copy / file).unlink()
        assert loaded_or_refused(copy) is None, file


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", [
    {"num_hidden_layers": 3}, {"hidden_size": 64}, {"num_attention_heads": 3},
    {"num_attention_heads": "two"}, {"num_attention_heads": 0},
    {"num_key_value_heads": 1}, {"intermediate_size": 25}], ids=str)
def test_a_config_of_another_model_is_refused(whole, tmp_path, layout, change):
    copy = whole[layout].copied(tmp_path)
    config = json.loads((copy / "config.json").read_text())
    next((config[part] for part in ("language_config", "text_config") if part in config),
         config).update(change)
    (copy / "config.json").write_text(json.dumps(config))
    assert loaded_or_refused(copy) is None


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "\xff"])
def test_a_config_that_is_no_object_is_refused(whole, tmp_path, text):
    copy = whole["janus-port"].copied(tmp_path)
    (copy / "config.json").write_text(text, encoding="latin-1")
    assert loaded_or_refused(copy) is None
