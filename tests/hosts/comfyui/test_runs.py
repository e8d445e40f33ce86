"""The pack in a running ComfyUI: graphs by /prompt, as the page would queue them."""

from __future__ import annotations

import io
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.api_form import api_form
from support.comfyui_server import server_python, strip_pixels
from support.tiny_templates import LARGE_MODELS

from ssd_core.output.choices import REFERENCE, SSD_CHOICE

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TEMPLATES = sorted((ROOT / "workflows").glob("*.json"), key=lambda path: path.stem)
RUNNABLE = [path for path in TEMPLATES if path.stem != LARGE_MODELS]  # by test_backbones
UNTOUCHED = {"07_redo_a_region": "paint white what is to change"}  # waits for a painted mask
IDS = ["SSD_LoadModel", "SSD_LoadHeads", "SSD_LoadLora", "SSD_TrainHeads", "SSD_Sampler",
       "SSD_Finish", "SSD_LoadPicture", "SSD_EditByWords", "SSD_Encode", "SSD_Compare",
       "SSD_RunViewer", "SSD_RunInfo", "SSD_SaveImage"]
SSD_KNOBS = {"method.k_h": 5, "method.k_v": 1, "method.rounds": 2, "method.incremental": 0}


def graph(client, **sampler) -> dict:
    """Model 1, sampler 3, a PreviewImage 4 of its pictures, a PreviewAny 5 of its report."""
    knobs = SSD_KNOBS if sampler.get("method", SSD_CHOICE) == SSD_CHOICE else {}
    return {
        "1": client.node("SSD_LoadModel"),
        "3": client.node("SSD_Sampler", model=["1", 0],
                         **{"method": SSD_CHOICE, **knobs, **sampler}),
        "4": client.node("PreviewImage", images=["3", 0]),
        "2": client.node("SSD_RunInfo", run=["3", 1]),
        "5": client.node("PreviewAny", source=["2", 0])}


def by_ar(client, **sampler) -> dict:
    """The same graph by AR: slow enough to be looked at."""
    return graph(client, method=REFERENCE, **sampler)


def pictures(client, run, name: str = "4") -> list[np.ndarray]:
    return [shown(client.image(entry)) for entry in run.output(name)["images"]]


def shown(file: bytes) -> np.ndarray:
    """A picture; of a film its last frame, as the first one is still empty."""
    with Image.open(io.BytesIO(file)) as image:
        image.seek(getattr(image, "n_frames", 1) - 1)
        return np.asarray(image.convert("RGB"))


def test_all_nodes_are_there(client):
    assert {name for name in client.nodes if name.startswith("SSD_")} == set(IDS)
    assert "IMPORT FAILED" not in client.log.read_text()


def test_nodes_are_found_by_words_that_people_search_for(client):
    nodes = client.get("/object_info")
    assert {"img2img", "outpaint"} <= set(nodes["SSD_Encode"]["search_aliases"])
    assert [one for one in IDS if not nodes[one]["search_aliases"]] == []


def test_the_pack_adds_little_to_the_time_of_a_start(client, tmp_path):
    """In CPU seconds, and with its bytecode written, as from the second start on."""
    folder = client.log.parent
    command = [server_python(), str(HERE / "start_up.py"), "--cpu",
               "--base-directory", str(folder), "--user-directory", str(folder / "user")]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    for _ in ("compiles", "measures"):
        done = subprocess.run(command, cwd=os.environ["COMFYUI_PATH"], env=environment,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    comfyuis, packs = map(float, done.stdout.splitlines()[-1].split())
    assert packs <= 0.04 * comfyuis


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda p: p.stem)
def test_every_workflow_runs(client, path):
    run = client.run(api_form(json.loads(path.read_text())))
    if path.stem in UNTOUCHED:
        assert UNTOUCHED[path.stem] in run.error
        return
    assert run.end == "execution_success", run.error
    for output in run.history["outputs"].values():
        for entry in output.get("images", []):
            picture = shown(client.image(entry))
            assert min(picture.shape[:2]) >= 192 and picture.std() > 5


def test_the_template_of_large_models_says_how_to_get_the_weights(client):
    path = ROOT / "workflows" / f"{LARGE_MODELS}.json"
    said = client.refused(api_form(json.loads(path.read_text())))
    assert "is not here yet" in said and "press Download on Load Model" in said


def test_the_preview_tells_a_whole_story_that_ends_in_the_picture(client):
    run = client.run(by_ar(client, seed=11))
    story = run.preview
    kinds = [message["kind"] for message in story]
    assert kinds[0] == "started" and kinds[-1] == "finished"
    assert kinds.count("rows") >= 3 and "pass" in kinds
    assert {m["node"] for m in story} == {"3"} and len({m["run"] for m in story}) == 1
    indexes = [m["index"] for m in story if m["kind"] == "pass"]
    assert indexes == sorted(indexes)
    canvas = np.zeros((768, 768, 3), np.uint8)
    for message in (m for m in story if m["kind"] == "rows"):
        band = np.asarray(strip_pixels(message["strips"][0]))
        times = len(canvas) // band.shape[1]  # unfinished rows are shown at the smaller size
        band = band.repeat(times, 0).repeat(times, 1)
        canvas[message["top"] : message["top"] + len(band)] = band
    picture, = pictures(client, run)
    assert np.abs(canvas.astype(int) - picture).max() <= 1
    order = [m["type"] for m in run.messages]
    last_row = max(n for n, m in enumerate(run.messages) if m["type"] == "ssd.preview")
    assert order.index("progress") < last_row < order.index("execution_success")


def test_an_interrupt_stops_within_one_pass_and_the_next_run_is_clean(client):
    told = []

    def stop(message):
        if not told:
            client.post("/interrupt", {})
        told.append(message)

    run = client.run(by_ar(client, seed=12, batch_size=4), at={"ssd.preview/rows": stop})
    assert run.end == "execution_interrupted"
    assert run.preview[-1] == {**run.preview[-1], "kind": "cancelled", "reason": "interrupted"}
    # One row was told; by the end of the request no whole further row can have come by many.
    assert max(m["row"] for m in run.preview if m["kind"] == "pass") <= 4
    rest = client.run({"1": client.node("SSD_LoadModel"),
                       "3": client.node("SSD_Finish", model=["1", 0]),
                       "4": client.node("PreviewImage", images=["3", 0])})
    assert rest.end == "execution_success" and len(pictures(client, rest)) == 4
    whole = client.run(by_ar(client, seed=12, batch_size=4))
    assert all(map(np.array_equal, pictures(client, rest), pictures(client, whole)))
    assert whole.preview[-1]["kind"] == "finished"


def test_a_second_run_comes_from_the_cache(client):
    first, second = client.run(graph(client, seed=13)), client.run(graph(client, seed=13))
    assert "3" in first.executed and "3" not in second.executed
    assert second.preview == []
    changed = client.run(graph(client, seed=14))
    assert "3" in changed.executed and "1" not in changed.executed


@pytest.mark.parametrize(("wrong", "words"), [
    ({"seed": -2}, "smaller than min"), ({"keep_rows": 10**9}, "bigger than max"),
    ({"prompt": " "}, "say what the picture should show"),
    ({"variation": 1.5}, "bigger than max"), ({"batch_size": 0}, "smaller than min")])
def test_one_fault_is_one_message_on_its_own_widget(client, wrong, words):
    errors = json.loads(client.refused(graph(client, **wrong)))["node_errors"]["3"]["errors"]
    assert [error["extra_info"]["input_name"] for error in errors] == list(wrong)
    assert words in errors[0]["message"] + errors[0]["details"]


@pytest.mark.parametrize(("wrong", "sentence"), [
    ({"width": 384}, "width 384: set height, too"),
    ({"width": 400, "height": 384}, "the nearest are 384x384"),
    ({"size": "512x512"}, "the nearest are 384x384")])
def test_a_wrong_number_in_a_field_is_one_sentence(client, wrong, sentence):
    run = client.run(graph(client, **wrong))
    assert run.end == "execution_error" and sentence in run.error


@pytest.mark.parametrize("legal", [
    {"method.k_h": 3, "method.k_v": 2, "method.rounds": 1}, {"cfg": 2.5, "top_p": 0.9},
    {"width": 512, "height": 288},
    {"method.rounds": ["7", 0], "width": ["9", 0], "height": ["8", 0]},
    {"cfg": ["10", 0], "temperature": ["10", 0]}])
def test_fields_take_numbers_typed_or_from_a_link(client, legal):
    values = {"7": 1, "8": 288, "9": 512}
    numbers = {name: client.node("PrimitiveInt", value=value) for name, value in values.items()}
    numbers["10"] = client.node("PrimitiveFloat", value=1.5)
    run = client.run(graph(client, seed=15, **legal) | numbers)
    assert run.end == "execution_success", run.error
    (height, width, _), = {picture.shape for picture in pictures(client, run)}
    sides = [legal.get(side, 768) for side in ("width", "height")]
    assert [width, height] == [values[side[0]] if isinstance(side, list) else int(side)
                               for side in sides]
    assert ("rounds 1," in run.text("5")) == ("method.rounds" in legal), run.text("5")


def test_a_refusal_shows_no_path(client):
    run = client.run(graph(client, size="512x512"))
    failure = next(m["data"] for m in run.messages if m["type"] == "execution_error")
    assert failure["exception_type"] == "SSD"
    assert "nearest are 384x384" in failure["exception_message"]
    assert str(client.log.parent) not in failure["exception_message"]


def test_a_missing_backbone_is_refused_with_its_folder(client):
    prompt = graph(client)
    prompt["1"]["inputs"]["model"] = "gone"
    assert "ssd_backbones" in client.refused(prompt)


def test_picture_n_of_a_batch_is_that_of_its_seed_alone(client):
    both = pictures(client, client.run(graph(client, seed=20, batch_size=2)))
    alone, = pictures(client, client.run(graph(client, seed=21)))
    assert np.array_equal(both[1], alone) and not np.array_equal(both[0], alone)


def test_saved_pictures_restore(client, tmp_path):
    """`prompt` queues again as it is; `parameters` and `ssd_recipe` are there."""
    from ssd_core import load_backbone
    from ssd_core.output.recipe import tokens_from_png

    prompt = graph(client, seed=30)
    prompt["6"] = client.node("SSD_SaveImage", images=["3", 0], run=["3", 1],
                              filename_prefix="tests/kept")
    entry, = client.run(prompt).output("6")["images"]
    path = tmp_path / "kept.png"
    path.write_bytes(client.image(entry))
    info = Image.open(path).info
    assert json.loads(info["prompt"])["3"]["inputs"]["seed"] == 30
    assert info["parameters"].startswith("a red house") and "Seed: 30" in info["parameters"]
    tokens, how = tokens_from_png(path, load_backbone("postcard"))
    assert how == "tokens from its recipe" and tokens.shape == (1, 24, 24)
    assert client.run(json.loads(info["prompt"])).end == "execution_success"


def test_memory_goes_back_when_asked_and_the_next_run_loads_again(client):
    client.run(graph(client, seed=40))
    client.free()
    run = client.run(graph(client, seed=40))
    assert run.end == "execution_success" and "1" in run.executed


def test_kept_rows_and_encoded_pictures(client):
    prompt = graph(client, seed=50)
    prompt["6"] = client.node("SSD_Sampler", model=["1", 0], picture=["3", 1], keep_rows=12,
                              prompt="a blue tent")
    prompt["7"] = client.node("PreviewImage", images=["6", 0])
    prompt["8"] = client.node("SSD_Encode", model=["1", 0], image=["3", 0],
                              **{"use.fit": "refuse"})
    prompt["9"] = client.node("SSD_Finish", model=["1", 0], run=["8", 0])
    prompt["10"] = client.node("PreviewImage", images=["9", 0])
    run = client.run(prompt)
    assert run.end == "execution_success"
    first, = pictures(client, run)
    redone, = pictures(client, run, "7")
    seam = 12 * 32
    # The decoder looks around: rows far above the seam are the same to within a rounding.
    assert np.abs(first[: seam - 96].astype(int) - redone[: seam - 96]).mean() < 3
    assert np.abs(first[seam:].astype(int) - redone[seam:]).mean() > 3
    assert pictures(client, run, "10")[0].shape == (768, 768, 3)


def test_doctor_reports(client):
    text = client.get("/ssd/doctor")["report"]
    assert "ssd-decoding" in text and "ssd_backbones" in text and "attention" in text


def test_templates_locales_and_help_are_served(client):
    listed = client.get("/workflow_templates")["ssd-decoding"]
    assert sorted(listed) == [path.stem for path in TEMPLATES]
    assert client.read("/api/workflow_templates/ssd-decoding/01_quick_start.jpg")[:2] == b"\xff\xd8"
    assert "SSD_Sampler" in json.dumps(client.get("/i18n"))
    for name in IDS:
        assert len(client.read(f"/extensions/ssd-decoding/docs/{name}.md")) > 100
