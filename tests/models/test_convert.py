"""From pickles to safetensors: the same tensors, whole files only, and one line otherwise."""

import json

import pytest
import torch
from safetensors.torch import load_file
from support.tiny_image_models import janus_original

from ssd_core import SSDError, load_backbone
from ssd_core.backbones.reading.checkpoint import open_checkpoint
from ssd_core.cli import main
from ssd_core.weights.convert import convert

TENSORS = {name: torch.full((10, 10), float(i)) for i, name in enumerate("abcde")}


@pytest.fixture
def pickle(tmp_path):
    torch.save({"model": TENSORS, "steps": 3}, tmp_path / "m.pt")
    return tmp_path / "m.pt"


def read(path) -> dict[str, torch.Tensor]:
    checkpoint = open_checkpoint(path)
    return {name: checkpoint.tensor(name).clone() for name in checkpoint.shapes}


def same(found) -> bool:
    return set(found) == set(TENSORS) and all(torch.equal(found[n], TENSORS[n]) for n in TENSORS)


def refused(*arguments) -> str:
    with pytest.raises(SSDError) as caught:
        convert(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_one_file(pickle):
    assert convert(pickle) == [pickle.with_suffix(".safetensors")]
    assert same(load_file(pickle.with_suffix(".safetensors"))) and pickle.is_file()
    assert sorted(path.name for path in pickle.parent.iterdir()) == ["m.pt", "m.safetensors"]


@pytest.mark.parametrize("tensors_a_shard, files", [(1, 5), (2, 3), (4, 2), (5, 1)])
def test_shards_by_size_and_their_index(pickle, tmp_path, tensors_a_shard, files):
    told = []
    written = convert(pickle, tmp_path / "out", tensors_a_shard * 400 + 5,
                      lambda done, total: told.append((done, total)))
    shards = [path for path in written if path.suffix == ".safetensors"]
    assert len(shards) == files == len(told) and told[-1] == (2000, 2000)
    assert (files > 1) == (tmp_path / "out" / "m.safetensors.index.json").is_file()
    assert same(read(tmp_path / "out")) and same(read(shards[-1]))


def test_a_tensor_larger_than_a_shard_has_its_own(pickle):
    assert len(convert(pickle, None, 1)) == 6


def test_views_of_one_memory_become_independent(tmp_path):
    whole = torch.arange(12.0).view(3, 4)
    torch.save({"a": whole, "b": whole, "c": whole.T, "d": whole[1:]}, tmp_path / "m.bin")
    convert(tmp_path)
    found = load_file(tmp_path / "m.safetensors")
    assert torch.equal(found["a"], whole) and torch.equal(found["b"], whole)
    assert torch.equal(found["c"], whole.T) and torch.equal(found["d"], whole[1:])


def test_a_backbone_is_the_same_from_either(tmp_path):
    folder = janus_original(tmp_path / "original")
    convert(folder, tmp_path / "new", 300_000)
    assert {"config.json", "tokenizer.json", "model.safetensors.index.json"} < {
        path.name for path in (tmp_path / "new").iterdir()}
    one, other = load_backbone(folder, "cpu"), load_backbone(tmp_path / "new", "cpu")
    assert one.sha256 == other.sha256
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_what_is_there_is_not_overwritten(pickle):
    target = pickle.with_suffix(".safetensors")
    target.write_text("mine")
    assert f"{target}: there already" in refused(pickle)
    assert target.read_text() == "mine"


def test_two_models_of_one_name_are_refused_before_either_is_written(pickle, tmp_path):
    torch.save({"model": TENSORS}, pickle.with_suffix(".bin"))
    line = refused(pickle.parent, tmp_path / "out")
    assert "m.bin and m.pt: both would become m.safetensors" in line
    assert not (tmp_path / "out").exists()


def test_nothing_to_convert(pickle):
    convert(pickle)
    assert "safetensors already" in refused(pickle.parent)
    assert "no such file" in refused(pickle.parent / "gone")


def test_nothing_half_written_stays(pickle, tmp_path, monkeypatch):
    """A disk that fails at the second shard, and a Ctrl-C there."""
    for failure, seen in ((OSError("disk full"), SSDError), (KeyboardInterrupt(),) * 2):
        calls = []

        def save(tensors, path, metadata, failure=failure, calls=calls):
            calls.append(path)
            if len(calls) == 2:
                raise failure
            path.touch()

        monkeypatch.setattr("ssd_core.weights.convert.save_file", save)
        with pytest.raises(seen if isinstance(seen, type) else KeyboardInterrupt):
            convert(pickle, None, 400)
        assert [path.name for path in tmp_path.iterdir()] == ["m.pt"]


def test_a_disk_without_room_is_told_before(pickle, monkeypatch):
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr("ssd_core.weights.convert.shutil.disk_usage", lambda _: usage)
    assert "GB are needed" in refused(pickle)


def test_weights_of_several_folders_do_not_mix(tmp_path):
    for name in "xy":
        (tmp_path / "models" / name).mkdir(parents=True)
        torch.save(TENSORS, tmp_path / "models" / name / f"{name}.pt")
    assert "several folders" in refused(tmp_path / "models", tmp_path / "out")
    assert len(convert(tmp_path / "models")) == 2


def test_one_bad_file_in_a_folder_stops_before_anything_is_written(pickle):
    (pickle.parent / "training.bin").write_bytes(b"no")
    assert "training.bin" in refused(pickle.parent)
    assert not list(pickle.parent.glob("*.safetensors"))


def test_the_command(pickle, capsys):
    assert main(["convert", str(pickle), "--shard-gb", "0.000001", "--json"]) == 0
    told = capsys.readouterr()
    files = json.loads(told.out.splitlines()[-1])["files"]
    assert len(files) == 4 and files[-1].endswith("m.safetensors.index.json")
    assert same(read(files[0])) and files[0] in told.err
    assert main(["convert", str(pickle), "--shard-gb", "0"]) == 2
    assert "must be above 0" in capsys.readouterr().err
