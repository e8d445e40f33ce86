"""Tiny backbones of every family in a running ComfyUI: listed, drawn, moved, refused."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support import tiny_checkpoints, tiny_image_models
from support.api_form import api_form
from support.comfyui_server import server_python
from support.tiny_templates import LARGE_MODELS, TINY_OF_MODEL

from ssd_core.output.choices import FAITHFUL, REFERENCE, SSD_CHOICE

HERE = Path(__file__).parent
TINY = {
    "Janus-Pro-1B": tiny_image_models.janus_original,
    "Janus-Pro-7B-hf": tiny_image_models.janus_port,
    "LlamaGen-c2i-B-256": tiny_image_models.llamagen_c2i,
    "LlamaGen-t2i-XL-256": tiny_image_models.llamagen_t2i,
    "Lumina-mGPT-7B-512": tiny_checkpoints.lumina,
    "Anole-7B": tiny_checkpoints.anole,
    "Emu3-Gen": tiny_checkpoints.emu3,
    "Tar-AR-DTok-256": tiny_image_models.tar,
}


@pytest.fixture(scope="module")
def models(client):
    """The server's ssd_backbones; names by family."""
    root = client.log.parent / "models" / "ssd_backbones"
    for name, write in TINY.items():
        write(root / name)
    np.save(root / "codes.npy", np.arange(81) % tiny_image_models.TA_TOK["codes"])
    yield root
    shutil.rmtree(root)  # other tests want them gone


ROWS = "Rows (SSD without heads)"


def graph(client, name: str, models: Path, load=(), method=(), **sampler) -> dict:
    """Model 1, sampler 3, its pictures 4, its report 5; with further widgets of each."""
    prompts = {"Tar": f"codes:{models / 'codes.npy'}", "LlamaGen-c2i": "goldfish"}
    prompt = next((p for start, p in prompts.items() if name.startswith(start)), "a red")
    rows = dict(method) or {"method": ROWS, "method.k_h": 5, "method.k_v": 8, "method.rounds": 0,
                            "method.incremental": 0}
    return {
        "1": client.node("SSD_LoadModel", model=name, **dict(load)),
        "2": client.node("SSD_RunInfo", run=["3", 1]),
        "3": client.node("SSD_Sampler", model=["1", 0], **{"prompt": prompt, "cfg": 1,
                                                           "temperature": 1, **rows, **sampler}),
        "4": client.node("PreviewImage", images=["3", 0]),
        "5": client.node("PreviewAny", source=["2", 0])}


def picture(client, run) -> np.ndarray:
    entry, = run.output("4")["images"]
    return np.asarray(Image.open(io.BytesIO(client.image(entry))).convert("RGB"))


def test_what_lies_in_the_folder_is_in_the_list(client, models):
    inputs = client.get("/object_info/SSD_LoadModel")["SSD_LoadModel"]["input"]
    kind = inputs["required"]["model"]
    options = kind[1]["options"] if kind[0] == "COMBO" else kind[0]
    assert options[0] == "postcard" and set(TINY) <= set(options)
    said = client.refused(graph(client, "nonsense", models))
    assert "Emu3-Gen" not in said.split("choose one of")[0]


@pytest.mark.parametrize(("name", "size"), [
    ("Janus-Pro-1B", (48, 48)), ("Janus-Pro-7B-hf", (48, 48)), ("LlamaGen-c2i-B-256", (32, 32)),
    ("LlamaGen-t2i-XL-256", (32, 32)), ("Lumina-mGPT-7B-512", (512, 512)), ("Anole-7B", (512, 512)),
    ("Emu3-Gen", (720, 720)), ("Tar-AR-DTok-256", (32, 32))])
def test_every_family_draws(client, models, name, size):
    run = client.run(graph(client, name, models))
    assert run.end == "execution_success", run.error
    drawn = picture(client, run)
    assert drawn.shape == (size[1], size[0], 3) and drawn.std() > 1
    kinds = [message["kind"] for message in run.preview]
    assert kinds[0] == "started" and "rows" in kinds and kinds[-1] == "finished"
    assert "rows" in run.text("5") and "passes (AR takes" in run.text("5")


@pytest.mark.parametrize("model", TINY_OF_MODEL)
def test_the_template_of_large_models_draws_with_a_tiny_one(client, models, model):
    TINY_OF_MODEL[model](models / model)
    template = HERE.parents[2] / "workflows" / f"{LARGE_MODELS}.json"
    prompt = api_form(json.loads(template.read_text()))
    names = {node["class_type"]: name for name, node in prompt.items()}
    loader, sampler = names["SSD_LoadModel"], names["SSD_Sampler"]
    prompt[loader]["inputs"]["model"] = model
    # In few passes and without preview, for the 9216 cells of Lumina-mGPT 2.0
    prompt[sampler]["inputs"] |= {"method": ROWS, "method.k_h": 5, "method.k_v": 1,
                                  "method.rounds": 1, "method.incremental": 0, "preview": False}
    if model == "GLM-Image":  # as the template's note says
        prompt["painted"] = client.node("SSD_Finish", model=[loader, 0], run=[sampler, 1],
                                        steps=2)
        prompt[names["SSD_SaveImage"]]["inputs"]["images"] = ["painted", 0]
        has_diffusers = subprocess.run([server_python(), "-c", "import diffusers"],
                                       capture_output=True).returncode == 0
    run = client.run(prompt)
    if model == "GLM-Image" and not has_diffusers:
        assert "pip install diffusers" in run.error
        return
    assert run.end == "execution_success", run.error
    assert run.output(names["SSD_SaveImage"])["images"]


def test_faithful_needs_no_heads_to_draw_ars_picture(client, models):
    run = client.run(graph(client, "Janus-Pro-1B", models, method={"method": FAITHFUL}))
    assert run.end == "execution_success", run.error
    assert run.text("5").startswith("exact") and "there are no draft heads" not in run.text("5")
    ar = graph(client, "Janus-Pro-1B", models, method={"method": REFERENCE})
    assert np.array_equal(picture(client, run), picture(client, client.run(ar)))


def test_a_schedule_without_heads_is_drawn_by_rows_and_the_node_says_so(client, models):
    run = client.run(graph(client, "Janus-Pro-1B", models, method={
        "method": SSD_CHOICE, "method.k_h": 5, "method.k_v": 1, "method.rounds": 2,
        "method.incremental": 0}))
    assert run.end == "execution_success", run.error
    assert run.text("5").startswith("rows rounds=2") and "there are no draft heads" in run.text("5")
    note, = run.preview[0]["notes"]
    assert "there are no draft heads" in note


def test_another_size_is_drawn_and_one_of_another_family_refused(client, models):
    run = client.run(graph(client, "Lumina-mGPT-7B-512", models, size="1024x256"))
    assert run.end == "execution_success", run.error
    assert picture(client, run).shape == (256, 1024, 3)
    refused = client.run(graph(client, "Janus-Pro-1B", models, size="1024x256"))
    assert refused.end == "execution_error" and "nearest are 48x48" in refused.error


def test_memory_goes_back_and_the_same_picture_comes_again(client, models):
    first = picture(client, client.run(graph(client, "Janus-Pro-7B-hf", models)))
    client.free()
    again = client.run(graph(client, "Janus-Pro-7B-hf", models))
    assert "3" in again.executed and np.array_equal(picture(client, again), first)


def test_offload_on_a_cpu_is_a_note_on_the_node(client, models):
    run = client.run(graph(client, "Janus-Pro-1B", models, load={"offload": True}))
    assert run.end == "execution_success", run.error
    assert "Offload is not used" in run.said["1"]
    here = client.run(graph(client, "Janus-Pro-1B", models))
    assert np.array_equal(picture(client, run), picture(client, here))


def test_a_broken_file_ends_in_one_line(client, models):
    shard = next((models / "Anole-7B").glob("*.safetensors"))
    kept = shard.read_bytes()
    shard.write_bytes(kept[:-100])
    try:
        assert f"{shard.name}: truncated" in client.run(graph(client, "Anole-7B", models)).error
    finally:
        shard.write_bytes(kept)


def test_int8_draws_without_another_package(client, models):
    run = client.run(graph(client, "Janus-Pro-1B", models, load={"dtype": "int8"}))
    assert run.end == "execution_success", run.error
    assert ", int8" in run.text("5")


def by_comfyui(client, script: str, **environment: str) -> list[str]:
    """The lines that a script of this folder writes, run by ComfyUI's Python."""
    done = subprocess.run(
        [server_python(), str(HERE / script), "--cpu", "--base-directory", str(client.log.parent)],
        cwd=os.environ["COMFYUI_PATH"], capture_output=True, text=True,
        env={**os.environ, **environment, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_comfyuis_patcher_moves_all_of_every_family(client, models):
    """To meta, in a process of its own with ComfyUI's real patcher."""
    folders = os.pathsep.join(str(models / name) for name in TINY)
    lines = by_comfyui(client, "move_all.py", BACKBONES=folders)
    assert lines[-len(TINY):] == [f"{name}: all moved" for name in TINY]


@pytest.mark.parametrize("dtype", ["fp32", "int8", "int4"])
def test_comfyuis_manager_loads_and_frees_single_layers(client, dtype):
    """In a process of its own with ComfyUI's real patcher and manager."""
    lines = by_comfyui(client, "stream_layers.py", DTYPE=dtype)
    if "pip install torchao" in lines[-1]:
        pytest.skip("this ComfyUI has no torchao")
    assert lines[-1] == "layers were streamed"
