"""Which files make up a model, wherever the user points; and one line where they do not."""

import argparse
import json
import os
import pickle

import pytest
import torch
from safetensors.torch import save_file
from support.tiny_checkpoints import write_folder

from ssd_core import SSDError
from ssd_core.backbones.reading.checkpoint import Checkpoint, open_checkpoint

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4), "c": torch.zeros(1, 2)}


def refused(path) -> str:
    with pytest.raises(SSDError) as caught:
        open_checkpoint(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    assert checkpoint.shapes == {name: tuple(value.shape) for name, value in TENSORS.items()}
    return {name: checkpoint.tensor(name) for name in checkpoint.shapes}


def same(checkpoint: Checkpoint) -> bool:
    return all(torch.equal(value, TENSORS[name]) for name, value in read(checkpoint).items())


@pytest.fixture
def sharded(tmp_path):
    return write_folder(tmp_path / "model", TENSORS, {"layers": 2}, shards=3)


def test_folder_parent_shard_and_index_mean_the_same(sharded):
    shard = sharded / "model-00002-of-00003.safetensors"
    index = sharded / "model.safetensors.index.json"
    for path in (sharded, sharded.parent, shard, index, str(sharded)):
        checkpoint = open_checkpoint(path)
        assert same(checkpoint) and len(checkpoint.files) == 3
        assert checkpoint.folder == sharded and checkpoint.config() == {"layers": 2}


def test_shards_are_known_by_their_names_where_no_index_lies(sharded):
    (sharded / "model.safetensors.index.json").unlink()
    assert same(open_checkpoint(sharded))
    (sharded / "model-00003-of-00003.safetensors").unlink()
    assert "model-00003-of-00003.safetensors: missing" in refused(sharded)


@pytest.mark.parametrize("wrap", [
    lambda t: t, lambda t: {"model": t, "steps": 3}, lambda t: {"module": t},
    lambda t: {"state_dict": t, "args": argparse.Namespace(lr=1)},
    lambda t: {"model": {"sd": t, "args": {"dim": 3}}}],
    ids=["bare", "model", "module", "state_dict", "sd"])
@pytest.mark.parametrize("name", ["m.pt", "m.pth", "m.bin", "m.ckpt"])
@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_saved_is_unwrapped(tmp_path, wrap, name, zipped):
    torch.save(wrap(TENSORS), tmp_path / name, _use_new_zipfile_serialization=zipped)
    assert same(open_checkpoint(tmp_path / name)) and same(open_checkpoint(tmp_path))


def test_shards_of_pickles(tmp_path):
    files = {"a": "pytorch_model-00001-of-00002.bin", "b": "pytorch_model-00002-of-00002.bin",
             "c": "pytorch_model-00002-of-00002.bin"}
    for file in set(files.values()):
        torch.save({name: TENSORS[name] for name in TENSORS if files[name] == file},
                   tmp_path / file)
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": files}))
    assert same(open_checkpoint(tmp_path)) and len(open_checkpoint(tmp_path).files) == 2


def test_safetensors_stand_in_for_the_pickle_of_their_name(tmp_path):
    torch.save({"old": torch.ones(1)}, tmp_path / "pytorch_model.bin")
    save_file(TENSORS, tmp_path / "model.safetensors")
    assert same(open_checkpoint(tmp_path))
    assert set(open_checkpoint(tmp_path / "pytorch_model.bin").shapes) == {"old"}


def test_a_file_with_more_behind_its_tensors_tells_how_much(tmp_path):
    save_file(TENSORS, tmp_path / "model.safetensors")
    with (tmp_path / "model.safetensors").open("ab") as file:
        file.write(b"12345")
    assert "model.safetensors: 5 bytes too long" in refused(tmp_path)


def test_several_models_are_named(tmp_path):
    for name in ("one.safetensors", "two.safetensors"):
        save_file(TENSORS, tmp_path / name)
    assert "one.safetensors, two.safetensors" in refused(tmp_path)
    assert same(open_checkpoint(tmp_path / "two.safetensors"))


def test_companions_lie_beside_below_and_under_the_named_root(tmp_path):
    model = write_folder(tmp_path / "decoder", TENSORS)
    for place, name in ((model / "codec", "x"), (tmp_path / "codec", "y"), (model, "z")):
        place.mkdir(exist_ok=True)
        save_file({name: torch.ones(1)}, place / f"{name}.safetensors")
    inner = Checkpoint((model / "model.safetensors",))
    outer = Checkpoint((model / "model.safetensors",), tmp_path)
    for name, found in (("x", True), ("z", True), ("y", False), ("a", False)):
        assert (inner.companion(lambda c, n=name: n in c.shapes) is not None) == found
    assert outer.companion(lambda c: "y" in c.shapes).folder == tmp_path / "codec"


def test_a_broken_companion_matters_only_where_no_whole_one_is_found(tmp_path):
    model = write_folder(tmp_path, TENSORS)
    (model / "broken.safetensors").write_bytes(b"no")
    save_file({"x": torch.ones(1)}, model / "codec.safetensors")
    checkpoint = open_checkpoint(model / "model.safetensors")
    assert checkpoint.companion(lambda c: "x" in c.shapes) is not None
    with pytest.raises(SSDError, match="broken.safetensors"):
        checkpoint.companion(lambda c: "y" in c.shapes)


def test_a_tensor_outlives_its_shard(sharded):
    checkpoint = open_checkpoint(sharded)
    tensors = read(checkpoint)  # each file was closed for the next
    checkpoint.close()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_a_copy_is_independent_of_the_file(tmp_path):
    path = write_folder(tmp_path, TENSORS) / "model.safetensors"
    checkpoint = open_checkpoint(path)
    kept = checkpoint.copied("a", torch.device("cpu"))
    assert kept.data_ptr() != checkpoint.tensor("a").data_ptr()
    assert torch.equal(kept, TENSORS["a"])


def test_missing_files_and_tensors_are_named(sharded):
    checkpoint = open_checkpoint(sharded)
    with pytest.raises(SSDError, match="tensor d is missing"):
        checkpoint.tensor("d")
    with pytest.raises(SSDError, match=r"tokenizer\.json: missing"):
        checkpoint.path("tokenizer.json")
    assert checkpoint.path("config.json") == sharded / "config.json"
    (sharded / "model-00002-of-00003.safetensors").unlink()
    assert "model-00002-of-00003.safetensors: missing, one of 3 files" in refused(sharded)


@pytest.mark.parametrize("ending", [".incomplete", ".aria2", ".part", ".crdownload"])
def test_a_download_under_way_is_told(sharded, ending):
    (sharded / f"model-00002-of-00003.safetensors{ending}").touch()
    assert "finish the download" in refused(sharded)


def test_the_hub_clients_own_leftovers_are_told(sharded):
    corner = sharded / ".cache" / "huggingface" / "download"
    corner.mkdir(parents=True)
    (corner / "x.incomplete").touch()
    assert same(open_checkpoint(sharded))
    for path in sharded.glob("*.safetensors"):
        path.unlink()
    assert "x.incomplete" in refused(sharded)
    (sharded / "model.safetensors.index.json").unlink()
    assert "x.incomplete" in refused(sharded)


def test_a_truncated_shard_is_told_its_sizes(sharded):
    path = sharded / "model-00001-of-00003.safetensors"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-5])
    assert f"{path}: truncated: it has {size - 5} bytes, its header says {size}" in refused(sharded)
    path.write_bytes(b"")
    assert f"{path}: not a safetensors file" in refused(sharded)


def test_a_pointer_of_git_lfs_is_told(sharded):
    (sharded / "model-00001-of-00003.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
    assert "git lfs pull" in refused(sharded)


class Harmful:
    def __reduce__(self):
        return (print, ("run!",))


@pytest.mark.parametrize("content", [
    pickle.dumps(Harmful()), b"", b"no pickle", pickle.dumps([1, 2]), b"PK\x03\x04 no zip"],
    ids=["code", "empty", "text", "list", "zip"])
def test_pickles_that_are_no_plain_tensors_are_refused(tmp_path, content, capsys):
    (tmp_path / "m.pt").write_bytes(content)
    assert "m.pt" in refused(tmp_path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("saved", [Harmful(), {"a": Harmful()}, [torch.ones(1)], {}, {"a": 1}],
                         ids=["code", "code inside", "list", "nothing", "no tensors"])
def test_code_in_what_torch_saved_is_never_run(tmp_path, saved, capsys):
    torch.save(saved, tmp_path / "m.pt")
    assert "m.pt" in refused(tmp_path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("weight_map", [
    {"a": "gone.safetensors"}, {"a": f"{'9' * 300}.safetensors"},
    {"a": "../model-00001-of-00003.safetensors"}, {"a": 7}, {}, None,
    {"a": "config.json"}, {"d": "model-00001-of-00003.safetensors"},
    {"a": "model-00002-of-00003.safetensors", "b": "model-00001-of-00003.safetensors"}], ids=str)
def test_an_index_that_lies_is_refused(sharded, weight_map):
    index = sharded / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    assert str(sharded) in refused(sharded)


@pytest.mark.skipif(os.name == "nt", reason="Windows limits the whole path to 260 letters")
def test_a_file_with_the_longest_name_is_read(tmp_path):
    save_file(TENSORS, tmp_path / f"{'m' * 243}.safetensors")  # its index's would be too long
    assert same(open_checkpoint(tmp_path))


def test_a_tensor_in_two_files_is_refused(sharded):
    (sharded / "model.safetensors.index.json").unlink()
    save_file({"a": TENSORS["a"]}, sharded / "model-00002-of-00003.safetensors")
    assert "tensor a lies in" in refused(sharded)


def test_nothing_there_is_told(tmp_path):
    assert "no weights" in refused(tmp_path)
    assert "no such file" in refused(tmp_path / "gone")
    (tmp_path / "notes.txt").touch()
    assert "not a file of weights" in refused(tmp_path / "notes.txt")
