"""Pictures of other programs, and ours in JPEG and WebP: what the app takes from a dropped file."""

import io
import json
import zipfile
from threading import Event

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from studio.jobs import Job

A1111 = ("a lighthouse in a storm, (waves:1.2)\nNegative prompt: people, text\n"
         "Steps: 20, Sampler: Euler a, CFG scale: 7, Seed: 1234567890, Size: 512x512, Model: x")
GRAPH = {
    "3": {"class_type": "KSampler", "inputs": {
        "seed": 42, "steps": 20, "model": ["4", 0], "positive": ["9", 0], "negative": ["7", 0]}},
    "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "x.safetensors"}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red boat", "clip": ["4", 1]}},
    "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "people", "clip": ["4", 1]}},
    "9": {"class_type": "ConditioningSetArea", "inputs": {"conditioning": ["6", 0]}}}
OURS = {"1": {"class_type": "SSDSampler", "inputs": {
    "seed": ["2", 0], "prompt": ["5", 0], "backbone": ["3", 0]}},
    "2": {"class_type": "PrimitiveInt", "inputs": {"value": 7}},
    "5": {"class_type": "PrimitiveString", "inputs": {"value": "a green hill"}},
    "3": {"class_type": "LoadBackbone", "inputs": {"name": "postcard"}}}


def png(**texts):
    info, file = PngInfo(), io.BytesIO()
    for name, text in texts.items():
        info.add_text(name, text)
    Image.new("RGB", (64, 64), "teal").save(file, "PNG", pnginfo=info)
    return file.getvalue()


def a1111_jpeg():
    exif, file = Image.Exif(), io.BytesIO()
    exif.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + A1111.encode("utf-16-be")
    Image.new("RGB", (64, 64), "teal").save(file, "JPEG", exif=exif.tobytes())
    return file.getvalue()


def restored(client, body):
    answer = client.post("/api/restore?name=x.png", content=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(("body", "prompt", "negative", "seed"), [
    (png(parameters=A1111), "a lighthouse in a storm, (waves:1.2)", "people, text", "1234567890"),
    (a1111_jpeg(), "a lighthouse in a storm, (waves:1.2)", "people, text", "1234567890"),
    (png(prompt=json.dumps(GRAPH)), "a red boat", "people", "42"),
    (png(prompt=json.dumps(OURS)), "a green hill", "", "7")],
    ids=["a1111", "a1111-jpeg", "comfyui", "comfyui-ours"])
def test_prompt_negative_and_seed_of_other_programs_are_taken(
        client, body, prompt, negative, seed):
    told = restored(client, body)["settings"]
    assert (told["prompt"], told["negative"], told["seed"]) == (prompt, negative, seed)


@pytest.mark.parametrize("text", [
    "", "no steps here", "[1, 2]", '{"1": 3}', '{"1": {"inputs": {"seed": ["1", 0]}}}',
    '{"1": {"inputs": {"seed": 1, "positive": ["2", 0]}}, "2": {"inputs": {"a": ["2", 0]}}}',
    "[" * 100_000])
def test_texts_that_tell_nothing_are_no_settings_and_no_error(client, text):
    for name in ("prompt", "parameters"):
        assert restored(client, png(**{name: text}))["settings"] is None


@pytest.mark.parametrize("kind", ["jpeg", "webp", "png"])
def test_a_saved_picture_is_read_back_in_each_format(client, finished, services, kind):
    asked = {"prompt": "红色的房子, é", "seed": str(2**60), "method": "rolling", "negative": "fog"}
    saved = finished("/api/draw", settings={**asked, "expand": False})["saved"][0]
    answer = client.get(f"{saved['picture']}?format={kind}&scale=2")
    assert answer.status_code == 200
    told = restored(client, answer.content)["settings"]
    assert {name: told[name] for name in asked} == asked
    plain = client.get(f"{saved['picture']}?format={kind}")
    assert saved["called"] == "红色的房子-é-" + str(2**60)
    with Image.open(io.BytesIO(plain.content)) as image:
        assert image.format == kind.upper()


def test_a_picture_whose_settings_are_damaged_can_still_be_edited(client):
    answer = restored(client, png(ssd_recipe="{}"))
    assert answer["settings"] is None and "x.png" in answer["text"]
    refused = client.post("/api/restore?name=x.png", content=png()[:60])
    assert refused.status_code == 400


def test_pictures_of_a_zip_file_are_called_by_their_prompts(client, finished):
    ids = [finished("/api/draw", settings={"prompt": "a red house", "seed": "7"})["saved"][0]["id"]
           for _ in range(2)]
    packed = client.get("/api/history/zip", params=[("id", id_) for id_ in ids])
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        assert archive.namelist() == ["a-red-house-7.png", "a-red-house-7-2.png"]


def test_a_stopped_run_is_kept_although_another_waits(client, worker, services, stopped_at,
                                                      every_message, monkeypatch):
    """The page goes on to the next run; with nothing behind it, the stage offers the rows."""
    stopped_at(3)
    waits, tell = Event(), Job.tell
    monkeypatch.setattr(Job, "tell", lambda job, message: (waits.wait(30), tell(job, message)))
    asked = {"settings": {"prompt": "a red house", "method": "ar", "expand": False}}
    first, second = (client.post("/api/draw", json=asked).json()["id"] for _ in range(2))
    waits.set()
    assert worker.job(second).wait(30)
    kept = client.get(f"/api/jobs/{first}").json()["result"]["kept"]
    assert services.history.entry(kept).kind == "partial"
    assert client.get(f"/api/jobs/{second}").json()["result"]["kept"] is None
    entry = client.post(f"/api/jobs/{first}/keep", json={}).json()
    assert entry["id"] == kept, "it is not saved twice"


def test_an_uploaded_picture_is_called_as_its_file_was(client, services):
    for name, title in (("Beach photo, race.png", "beach photo race"), ("沙滩.png", "沙滩")):
        entry = client.post(f"/api/history/add?name={name}", content=png()).json()
        assert (entry["title"], entry["kind"]) == (title, "picture")
        found = client.get("/api/history", params={"search": title}).json()["entries"]
        assert [each["id"] for each in found] == [entry["id"]]
