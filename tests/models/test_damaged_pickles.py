"""LlamaGen's and Tar's pickles, damaged or mixed up: one clear line, or the same model."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.tiny_image_models import llamagen_c2i, llamagen_t2i, tar
from test_damaged import CHANGES, same

from ssd_core import SSDError, load_backbone

LAYOUTS = {"c2i": (llamagen_c2i, "207"), "t2i": (llamagen_t2i, "a sun"), "tar": (tar, "codes:{}")}


class Whole:
    """A folder of pickles, their tensors, a prompt, and what the backbone computes from it."""

    def __init__(self, folder: Path, prompt: str) -> None:
        self.folder, self.prompt = folder, prompt
        self.files = {path.name: tensors_of(path) for path in folder.glob("*.pt*")}
        self.expected = said(load_backbone(folder, "cpu"), prompt)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, Whole]:
    pytest.importorskip("transformers", reason="flan-T5 is read with transformers")
    codes = tmp_path_factory.mktemp("codes") / "codes.json"
    codes.write_text(json.dumps(list(range(27)) * 3))
    made = {}
    for name, (write, prompt) in LAYOUTS.items():
        folder = tmp_path_factory.mktemp(name) / "model-256"
        write(folder)
        made[name] = Whole(folder, prompt.format(codes))
    return made


def tensors_of(path: Path) -> dict[str, torch.Tensor]:
    loaded = torch.load(path, weights_only=True)["model"]
    return loaded.get("sd", loaded)


@torch.inference_mode()
def said(backbone, prompt: str) -> tuple[torch.Tensor, ...]:
    """Logits behind a prompt and its first codes, and a strip of pixels."""
    ids = torch.tensor([backbone.tokenize(prompt)])
    x = torch.cat((backbone.embed_prompt(ids), backbone.embed(torch.arange(4)[None])), dim=1)
    return (backbone.logits(backbone(x)),
            backbone.picture_codec.decode(torch.arange(8).view(1, 2, 4)))


def said_or_refused(folder: Path, prompt: str):
    """What the backbone says, or None where it was refused in one line naming its folder."""
    try:
        return said(load_backbone(folder, "cpu"), prompt)
    except SSDError as error:
        assert "\n" not in str(error) and str(folder) in str(error), error
        return None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", CHANGES)
@settings(max_examples=3)
@given(data=st.data())
@pytest.mark.by_day(3)
def test_a_changed_tensor_is_refused_or_changes_nothing(whole, tmp_path_factory, layout, change,
                                                        data):
    model = whole[layout]
    file = data.draw(st.sampled_from(sorted(model.files)))
    name = data.draw(st.sampled_from(sorted(model.files[file])))
    copy = Path(shutil.copytree(model.folder, tmp_path_factory.mktemp("changed") / "model-256"))
    tensors = dict(model.files[file])
    CHANGES[change](data.draw, tensors, name)
    turned = change == "reshaped" and tensors[name].shape == model.files[file][name].shape
    assume(not turned)  # nothing tells a square matrix from its transpose
    torch.save({"model": tensors}, copy / file)
    found = said_or_refused(copy, model.prompt)
    assert found is None or same(found, model.expected), f"{name} of {file}"
    shutil.rmtree(copy)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_missing_or_cut_file_is_refused(whole, tmp_path, layout):
    model = whole[layout]
    for file in model.files:
        for share in (None, 0.0, 0.5, 0.99):
            copy = Path(shutil.copytree(model.folder, tmp_path / f"{file}-{share}" / "model-256"))
            content = (copy / file).read_bytes()
            (copy / file).unlink()
            if share is not None:
                (copy / file).write_bytes(content[: int(share * len(content))])
            assert said_or_refused(copy, model.prompt) is None, (file, share)
