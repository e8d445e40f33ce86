"""Real backbones in the nodes: found, listed, loaded, moved, drawn; tiny ones of every family."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from support import tiny_checkpoints, tiny_image_models
from support.comfyui_stub import InterruptProcessingException

from ssd_core.weights.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[3]
TINY = {
    "Janus-Pro-1B": tiny_image_models.janus_original,
    "Janus-Pro-1B-hf": tiny_image_models.janus_port,
    "LlamaGen-c2i-B-256": tiny_image_models.llamagen_c2i,
    "LlamaGen-t2i-XL-256": tiny_image_models.llamagen_t2i,
    "Lumina-mGPT-7B-512": tiny_checkpoints.lumina,
    "Anole-7B": tiny_checkpoints.anole,
    "Emu3-Gen": tiny_checkpoints.emu3,
    "Tar-AR-DTok-256": tiny_image_models.tar,
}
FEW = {"method": {"method": "SSD (k_h, k_v, r, b/i)", "k_h": 5, "k_v": 8, "rounds": 0,
                  "incremental": 0}, "preview": True}


@pytest.fixture(scope="module")
def models(loaded):
    """ssd_backbones with one tiny backbone of every family; empty again afterwards."""
    root = Path(loaded.stubs.folders.paths("ssd_backbones")[-1])
    for name, write in TINY.items():
        write(root / name)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def weights(pack):
    """nodes/weights.py; what a test loads, no other test gets."""
    module = pack.module("nodes.weights")
    module.LOADED.clear()
    yield module
    module.LOADED.clear()


def load(pack, name, **options):
    return pack.run("SSD_LoadModel", model=name, **options)[0]


def without_pixels(pack, run):
    """The run with its tokens alone, which Finish decodes."""
    return pack.module("nodes.types").Run(replace(run.tokens, pixels=None))


def listed(pack) -> list[str]:
    schema = pack.nodes["SSD_LoadModel"].define_schema()
    return next(i.options for i in schema.inputs if i.id == "model")


def found(pack) -> dict[str, Path]:
    """A file of each backbone that is here, by name."""
    there = pack.module("nodes.folders").registry().backbones()
    return {name: one.path for name, one in there.items()}


def held(owner: object, seen: set[int]) -> list[torch.Tensor]:
    """Every tensor that can be reached from a module by its attributes, parts and containers."""
    if id(owner) in seen or isinstance(owner, str | int | float | Path):
        return []
    seen.add(id(owner))
    if isinstance(owner, torch.Tensor):
        return [owner]
    inner = owner.values() if isinstance(owner, dict) else owner if isinstance(
        owner, list | tuple) else vars(owner).values() if hasattr(owner, "__dict__") else ()
    return [tensor for one in list(inner) for tensor in held(one, seen)]


def test_every_family_is_found_under_the_name_of_its_folder(pack, models):
    assert set(TINY) <= set(found(pack))
    assert len(listed(pack)) == len(set(listed(pack)))
    report = pack.module("nodes.report").doctor()
    assert "Emu3-Gen" in report and "not read" not in report


def test_known_backbones_are_listed_before_they_are_there(pack):
    assert listed(pack)[0] == "postcard" and set(CATALOGUE) <= set(listed(pack))


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_is_not_here_says_how_to_get_it(pack, name, tmp_path):
    row = CATALOGUE[name]
    line = pack.module("ssd_core.weights.registry").download_hint(row, tmp_path / name, "it")
    assert "\n" not in line and row.licence.name in line and "is not here" in line
    for source in row.sources:
        wanted = {*source.files, *source.extras} - {"LICENSE*"}
        assert source.repo in line and all(pattern in line for pattern in wanted)


def test_a_terminal_downloads_with_the_packages_of_comfyui(tmp_path):
    without = tmp_path / "sitecustomize.py"  # ComfyUI has neither of these packages
    without.write_text("import sys\nsys.modules['typer'] = sys.modules['rich'] = None\n")
    command = [sys.executable, ROOT / "install.py", "download", "Janus-Pro-1B", "--models-dir", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(tmp_path), "HF_HUB_OFFLINE": "1"},
                         stdin=subprocess.DEVNULL, timeout=120)
    assert ran.returncode == 2 and "HF_HUB_OFFLINE is set" in ran.stderr, ran.stderr


def test_a_folder_that_lacks_files_names_every_one_of_them(pack, models):
    folder = models / "Emu3-Gen"
    there = [folder / "vq", *folder.glob("*.safetensors"), *folder.glob("tokenizer.json")]
    away = [(path, path.with_name(f"{path.name}.away")) for path in there]
    for path, aside in away:
        path.rename(aside)
    try:
        with pytest.raises(pack.error, match="lacks files") as told:
            load(pack, "Emu3-Gen")
        for name in ("*.safetensors of", "vq/*.safetensors", "tokenizer.json"):
            assert name in str(told.value)
        assert str(folder) in str(told.value)
    finally:
        for path, aside in away:
            aside.rename(path)


def test_several_in_a_folder_go_by_their_files(pack, models):
    for side in (256, 384):
        shutil.copytree(models / "LlamaGen-c2i-B-256", models / "many", dirs_exist_ok=True)
        shutil.copy(models / "LlamaGen-c2i-B-256" / "c2i_B_256.pt", models / "many" /
                    f"c2i_B_{side}.pt")
    try:
        names = found(pack)
        assert {"many/c2i_B_256.pt", "many/c2i_B_384.pt"} <= set(names) and "many" not in names
        assert load(pack, "many/c2i_B_384.pt").backbone.path.name == "c2i_B_384.pt"
    finally:
        shutil.rmtree(models / "many")


def test_a_folder_names_its_only_file_and_workflows_may_name_the_file(pack, models, root):
    bundled = root / "ssd_core" / "assets" / "postcard" / "backbone.safetensors"
    names = {"old/mine.safetensors": "old", "loose.safetensors":
             "loose.safetensors", "deep/er/backbone.safetensors": "deep/er"}
    for place in names:
        (models / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(bundled, models / place)
    try:
        there = found(pack)
        assert {name: there[name] for name in names.values()} == {
            name: models / place for place, name in names.items()}
        for place in names:
            assert pack.nodes["SSD_LoadModel"].validate_inputs(place) is True
            assert pack.module("nodes.folders").backbone_path(place) == models / place
    finally:
        for place in names:
            (models / place).unlink()


def test_a_second_root_is_searched_too_and_the_first_one_wins(pack, models, tmp_path):
    paths, _ = pack.stubs.folders.folder_names_and_paths["ssd_backbones"]
    tiny_image_models.janus_port(tmp_path / "elsewhere" / "Another")
    tiny_image_models.janus_port(tmp_path / "elsewhere" / "Anole-7B")
    paths.append(str(tmp_path / "elsewhere"))
    try:
        there = found(pack)
        assert there["Another"].is_relative_to(tmp_path)
        assert there["Anole-7B"].is_relative_to(models)
    finally:
        paths.pop()


def test_a_replaced_file_is_looked_at_again(pack, models):
    folder = tiny_image_models.janus_port(models / "fresh", shards=1)
    assert "fresh" in found(pack)
    (folder / "model.safetensors").write_bytes(b"nothing")
    assert "fresh" not in found(pack)
    assert "not read: fresh" in pack.module("nodes.report").doctor()
    shutil.rmtree(folder)


def test_a_damaged_one_is_refused_by_what_is_wrong_with_it(pack, models):
    shard = next((models / "Anole-7B").glob("*.safetensors"))
    kept = shard.read_bytes()
    shard.write_bytes(kept[:-100])
    try:
        with pytest.raises(pack.error, match=f"{shard.name}: truncated"):
            load(pack, "Anole-7B")
    finally:
        shard.write_bytes(kept)


@pytest.mark.parametrize("name", TINY)
@pytest.mark.by_day(4)
def test_all_that_a_backbone_holds_moves(pack, models, name):
    """To meta, where nothing else is; readers of prompts and the grid are the processor's."""
    loaded = load(pack, name, dtype="fp32")
    module = loaded.module
    others = (module.grid, getattr(getattr(module, "read", None), "__self__", None))
    readers = {id(tensor) for other in others for tensor in held(other, set())}
    assert loaded.backbone.patcher.size + loaded.backbone.codec.size == sum(
        tensor.nbytes for tensor in held(module, set()) if id(tensor) not in readers)
    pack.module("nodes.patchers").SSDWeights(module, module.picture_codec).to("meta")
    codec = {id(tensor) for tensor in held(module.picture_codec, set())}
    stayed = [t for t in held(module, set()) if not t.is_meta and id(t) not in readers]
    assert {id(t) for t in stayed} == codec
    pack.module("nodes.patchers").SSDWeights(module.picture_codec).to("meta")
    assert all(t.is_meta for t in held(module, set()) if id(t) not in readers)


@pytest.mark.parametrize("name", ["Janus-Pro-1B", "Tar-AR-DTok-256"])
def test_int8_moves_and_counts_as_it_is_stored(pack, models, name, monkeypatch):
    monkeypatch.setattr(pack.module("ssd_core.model.products"), "has_kernel", lambda device: True)
    whole, small = load(pack, name, dtype="fp32"), load(pack, name, dtype="int8")
    matrix = small.module.decoder.layers[0].qkv
    assert small.backbone.patcher.size < whole.backbone.patcher.size - matrix.values.numel() * 2
    pack.module("nodes.patchers").SSDWeights(small.module).to("meta")
    assert matrix.values.is_meta and matrix.scales.is_meta


@pytest.fixture
def prompt(tmp_path):
    """A prompt for a backbone by name."""
    import numpy as np

    codes = tmp_path / "codes.npy"
    np.save(codes, np.arange(81) % tiny_image_models.TA_TOK["codes"])
    return {"Tar": f"codes:{codes}", "LlamaGen": "goldfish"}


@pytest.mark.parametrize("name", ["Janus-Pro-1B", "LlamaGen-c2i-B-256", "Tar-AR-DTok-256"])
def test_a_family_draws_previews_and_decodes_again(pack, models, prompt, name):
    """The small ones; all of them draw in a real ComfyUI (tests/hosts/comfyui)."""
    model = load(pack, name)
    images, run = pack.run("SSD_Sampler", model=model,
                           prompt=prompt.get(name.split("-")[0], "a red"), **FEW)
    width, height = model.module.size
    assert images.shape == (1, height, width, 3) and images.std() > 0
    assert run.recipe()["method"] == "rows" and "no draft heads" in run.report
    assert pack.preview()[-1]["kind"] == "finished"
    again, _ = pack.run("SSD_Finish", model=model, run=without_pixels(pack, run))
    assert torch.equal(again, images)
    assert pack.manager.loads[-1][0] == [model.backbone.codec]


def test_a_size_of_its_own_is_drawn_kept_and_encoded(pack, models):
    model = load(pack, "Lumina-mGPT-7B-512")
    images, run = pack.run("SSD_Sampler", model=model, prompt="a red",
                           **{**FEW, "size": "1024x256", "preview": False})
    assert images.shape == (1, 256, 1024, 3)
    encoded, _, rows = pack.run("SSD_Encode", model=model, image=images, use="a picture")
    assert encoded.tokens.tokens.shape == run.tokens.tokens.shape
    assert rows == 16 and "as it is" in encoded.report


def test_a_size_of_another_family_is_refused_by_the_backbone(pack, models):
    model = load(pack, "Anole-7B")
    with pytest.raises(pack.error, match="anole-7b does not draw it; the nearest are 512x512"):
        pack.run("SSD_Sampler", model=model, prompt="a red", **{**FEW, "size": "720x720"})


def test_sizes_of_all_families_are_offered(pack):
    offered = next(i.options for i in pack.schemas["SSD_Sampler"].inputs if i.id == "size")
    assert offered[0] == "auto" and len(set(offered)) == len(offered)
    assert {"256x256", "384x384", "512x512", "768x768", "1024x1024", "720x720", "960x544",
            "1024x256"} <= set(offered)


def test_all_sizes_of_the_bundled_backbone_are_offered_on_every_node(pack):
    """ComfyUI refuses what is not in the list, and its page shows no more than that."""
    bundled = pack.module("ssd_core").load_backbone("postcard", "meta")
    sizes = {f"{width}x{height}" for width, height in bundled.sizes}
    assert len(sizes) == 6
    use, = (widget for widget in pack.schemas["SSD_Encode"].inputs if widget.id == "use")
    everywhere = [*(widget for schema in pack.schemas.values() for widget in schema.inputs),
                  *(widget for option in use.options for widget in option.inputs)]
    lists = [widget.options for widget in everywhere if widget.id == "size"]
    assert len(lists) == 3 and all(sizes <= set(offered) for offered in lists)


# Memory

def test_reading_shows_progress_and_can_be_interrupted(pack, models, weights):
    load(pack, "Janus-Pro-1B", dtype="fp32")
    values, totals = zip(*pack.stubs.bars, strict=True)
    assert len(values) > 9 and list(values) == sorted(values) and len(set(totals)) == 1
    assert 0.5 * totals[0] < values[-1] <= totals[0]
    weights.LOADED.clear()
    pack.manager.checks, pack.manager.interrupt_at = 0, 3
    with pytest.raises(InterruptProcessingException):
        load(pack, "Janus-Pro-1B", dtype="fp32")
    assert not weights.LOADED and load(pack, "Janus-Pro-1B", dtype="fp32")


@pytest.fixture
def card(pack, monkeypatch):
    """A device of so many bytes, seen through the manager; weights stay where they are."""
    def of(count: int) -> None:
        monkeypatch.setattr(pack.module("nodes.weights").mm, "get_free_memory", lambda _: count)

    return of


def test_what_cannot_fit_is_refused_before_it_is_loaded(pack, models, weights, card, monkeypatch):
    card(1000)
    real = weights.load_backbone
    read = []
    monkeypatch.setattr(weights, "load_backbone",
                        lambda path, device, dtype, **options: read.append(device) or real(
                            path, device, dtype, **options))
    with pytest.raises(pack.error, match=r"janus-pro in fp32 does not fit on cpu.* are needed"):
        load(pack, "Janus-Pro-1B", dtype="fp32")
    assert read == ["meta"]


def test_the_refusal_names_a_dtype_that_would_fit(pack, models, weights, card):
    module = load(pack, "Anole-7B", dtype="fp32").module
    told = pack.module("ssd_core.weights.fit").fit
    method = pack.module("ssd_core.engine.methods").AR()
    small, large = (told(module, method, dtype=dtype, guided=False, device="cpu").needed
                    for dtype in ("bf16", "fp32"))
    assert small < large
    card((small + large) // 2)
    weights.LOADED.clear()
    with pytest.raises(pack.error, match="dtype bf16 would fit"):
        load(pack, "Anole-7B", dtype="fp32")
    assert load(pack, "Anole-7B", dtype="bf16").module.dtype == torch.bfloat16


def test_offload_without_a_card_is_a_note_and_changes_nothing(pack, models):
    loaded = load(pack, "Janus-Pro-1B", offload=True)
    assert loaded == load(pack, "Janus-Pro-1B") and loaded.module.offloader is None
    told = [text for text in pack.server.texts if text[0]]  # an empty one clears the last
    (text, node, _), (later, *_) = told
    assert "Offload is not used" in text and "Offload" not in later and node == "5"
    assert all(line in text for line in ("384x384", "Short prompts", "small faces suffer most"))


def test_with_offload_decoder_and_codec_are_asked_for_in_turn(pack, models, monkeypatch, weights):
    """The card is the CPU under the name of another, since there is none here."""
    named = type("Card", (), {"type": "cuda", "__str__": lambda _: "cpu"})()
    monkeypatch.setattr(weights.mm, "get_torch_device", lambda: named)
    monkeypatch.setattr(weights, "checked", lambda *_: SimpleNamespace(fits=True, weights=0))
    model = load(pack, "Janus-Pro-1B", dtype="fp32", offload=True)
    pack.manager.loads.clear()
    present, decode = [], pack.module("ssd_core.engine.decode")
    state = decode.DecodeState
    monkeypatch.setattr(decode, "DecodeState", lambda module, *rest: present.append(
        module.offloader.present is module.decoder) or state(module, *rest))
    images, run = pack.run("SSD_Sampler", model=model, prompt="a red", **FEW)
    assert present == [True]  # a run asks where its weights are before anything else
    asked = [patchers for patchers, *_ in pack.manager.loads]
    assert asked == 2 * [[model.backbone.patcher], [model.backbone.codec]]
    pack.manager.loads.clear()
    again, _ = pack.run("SSD_Finish", model=model, run=without_pixels(pack, run))
    assert torch.equal(again, images)
    assert all(patchers == [model.backbone.codec] for patchers, *_ in pack.manager.loads)
