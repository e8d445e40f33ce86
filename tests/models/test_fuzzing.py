"""Every kind of file that is read, cut, flipped, grown and nested: a result, or one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from support.layouts import LAYOUTS
from support.limits import limits
from support.mock_backbone import MockBackbone, mock_drafter, random_heads, tiny_postcard
from support.mutations import mutated
from support.tiny_checkpoints import write_emu3_words
from support.tiny_simplear import cosmos_archive, save_tokenizer

from ssd_core import Grid, SSDError, load_backbone
from ssd_core.backbones import drafter, emu3, glm_image, postcard
from ssd_core.backbones.codecs import colours
from ssd_core.backbones.estimates import StoredStepTimes
from ssd_core.backbones.prompts.text import read_vocabulary_files
from ssd_core.backbones.reading.checkpoint import open_checkpoint
from ssd_core.backbones.tar import read_codes
from ssd_core.engine.heads import FORMAT as HEADS_FORMAT
from ssd_core.engine.heads import read_heads, save_heads
from ssd_core.files import SUMS, json_of, known_sum, read_safetensors, write_safetensors, write_sums
from ssd_core.kept_entries import KeptEntries
from ssd_core.output import foreign, kept_rows, picture_files, recipe
from ssd_core.output.picture_files import pixels_of
from ssd_core.runs.batch.prompts import read_prompts
from ssd_core.runs.request import Request
from ssd_core.weights.find import backbones_in, family_of, metadata_of
from ssd_lab.evaluate.suites import coco, geneval
from studio import calls, entries, pictures, sharing
from studio.favourites import Favourites
from studio.settings import asked

PICTURES = ("png", "jpg", "gif", "webp", "tif", "bmp")
TENSORS = {"a": torch.arange(6.0).view(2, 3), "b.c": torch.ones(4, dtype=torch.int64)}
PROMPT = "a red house"


class Subject:
    """A file, or several of which one is changed at a time, and what reads them.

    No dataclass: hypothesis would write out all that it holds.
    """

    def __init__(self, files: list[Path], read: Callable[[], object]) -> None:
        self.files, self.read = files, read


def layout(folder: Path, name: str) -> Subject:
    """A checkpoint: its weights, index, config and tokenizer. Listed, loaded, and asked."""
    LAYOUTS[name](folder := folder / "Lumina-mGPT-7B-512")

    def read() -> None:
        backbones_in(folder)
        family_of(folder)
        backbone = load_backbone(folder, "cpu")
        lawful(lambda: backbone.embed_prompt(torch.tensor([backbone.tokenize(PROMPT)])))

    return Subject(sorted(path for path in folder.rglob("*") if path.is_file()), read)


def weights(file: Path, write: Callable[[Path], None]) -> Subject:
    def read() -> None:
        checkpoint = open_checkpoint(file)
        for name in checkpoint.shapes:
            checkpoint.tensor(name).float().sum()

    write(file)
    return Subject([file], read)


def text(file: Path, content: str | bytes, read: Callable[[Path], object]) -> Subject:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return Subject([file], partial(read, file))


def small_pickles(folder: Path) -> dict[str, Subject]:
    def save(file: Path, **options: object) -> None:
        torch.save({"model": TENSORS, "steps": 7}, file, **options)

    old = partial(save, _use_new_zipfile_serialization=False)
    return {"pt": weights(folder / "new.pt", save), "old pt": weights(folder / "old.bin", old),
            "jit": weights(folder / "a.jit", lambda file: file.write_bytes(cosmos_archive()))}


def tokenizer_files(folder: Path) -> dict[str, Subject]:
    write_emu3_words(folder)
    save_tokenizer(folder)
    words = [folder / "emu3.tiktoken", folder / "emu3_vision_tokens.txt"]
    old = [folder / name for name in ("vocab.json", "merges.txt", "added_tokens.json")]
    return {"tiktoken": Subject(words, lambda: emu3.original_words(*words, 600).encode(PROMPT)),
            "byte level": Subject(old, lambda: read_vocabulary_files(folder).encode(PROMPT))}


def sealed(folder: Path, source: Path, form: str, read: Callable[[Path], object]) -> Subject:
    """A file of ours whose metadata are changed and have a checksum again."""
    tensors, metadata = read_safetensors(source, form)
    file = folder / "again.safetensors"

    def again(changed: Path) -> None:
        try:
            values = dict(json_of(changed.read_bytes()))
        except (ValueError, TypeError):
            return
        if all(map(str.isprintable, values)):
            write_safetensors(tensors, file, {"format": form, **{
                name: json.dumps(value) if not isinstance(value, str) else
                value.encode("utf-8", "replace").decode() for name, value in values.items()}})
            read(file)

    return text(folder / f"{source.stem}.json", json.dumps(metadata), again)


def files_of_ours(folder: Path) -> dict[str, Subject]:
    backbone, target = MockBackbone(Grid(3, 4)), MockBackbone(Grid(4, 6))
    small = mock_drafter(target)
    places = {name: folder / f"{name}.safetensors" for name in ("heads", "samplers", "postcard")}
    save_heads(random_heads(backbone, 2, 1, row=True), places["heads"], backbone, {"steps": 3})
    drafter.save_samplers(small, target, places["samplers"], "small", {})
    postcard.save(tiny_postcard(), places["postcard"])
    readers = {
        "heads": (HEADS_FORMAT, lambda path: (metadata_of(path), read_heads(path, backbone))),
        "samplers": (drafter.FORMAT,
                     lambda path: drafter.read_drafter(path, small.backbone, target)),
        "postcard": (postcard.FORMAT, lambda path: load_backbone(path, "cpu"))}
    made = {}
    for name, (form, read) in readers.items():
        made[name] = Subject([places[name]], partial(read, places[name]))
        made[f"{name}, sealed"] = sealed(folder, places[name], form, read)
    return made


def read_everything_of(path: Path, backbone: postcard.Postcard) -> None:
    """What hosts read of a picture of ours, each with a refusal of its own."""
    def of_recipe() -> None:
        known = recipe.read_recipe(path)
        Request.of_recipe(known, backbone, None)

    for read in (of_recipe, lambda: recipe.tokens_from_png(path, backbone),
                 lambda: entries.read_entry("x", path), lambda: entries.restore(path),
                 lambda: entries.shrunk(path)):
        lawful(read)


def pictures_of_ours(folder: Path) -> dict[str, Subject]:
    from ssd_core.cli import main

    backbone, place, file = tiny_postcard(), folder / "tiny.safetensors", folder / "x.png"
    postcard.save(backbone, place)
    backbone = load_backbone(place, "cpu")
    assert main(["generate", PROMPT, "--out", str(file), "--backbone", str(place)]) == 0
    known = recipe.read_recipe(file)
    written = kept_rows.written({**known, "keep_rows": 2})
    return {"recipe": Subject([file], partial(read_everything_of, file, backbone)),
            "kept rows": text(folder / "rows.json", written, lambda path: kept_rows.read(
                path.read_text(errors="replace"))),
            "prompts": text(folder / "p.txt", "a sun\n# x\na red house\n",
                            lambda path: read_prompts(path, backbone)),
            "prompts in JSON": text(folder / "p.jsonl", '{"prompt": "a sun"}\n"a house"\n',
                                    lambda path: read_prompts(path, backbone))}


def photographs(folder: Path) -> dict[str, Subject]:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 50, 3), np.uint8))
    made = {}
    for kind in PICTURES:
        picture.save(file := folder / f"x.{kind}")

        def clear(file: Path = file) -> None:
            with picture_files.opened(file) as image:
                picture_files.transparent_part(image, (32, 32))

        def read(file: Path = file, clear: Callable = clear) -> None:
            for one in (partial(pixels_of, file),
                        lambda: picture_files.mask_of_file(file, (32, 32)),
                        clear,
                        lambda: pictures.as_png(file.read_bytes(), "x", [(32, 32)])):
                lawful(one)

        made[kind] = Subject([file], read)
    return made


def jsons(folder: Path) -> dict[str, Subject]:
    (folder / "favourites.json").write_text('["2026-01-01/a.png"]')
    kept = KeptEntries("kept.json", str, str)
    table = colours.write_table(torch.rand(8, 3), folder, "5" * 64, 3)
    graph = {"3": {"inputs": {"seed": 42, "positive": ["6", 0]}}, "6": {"inputs": {"text": "x"}}}
    line = '{"tag": "colors", "include": [{"class": "boat", "count": 1}], "prompt": "a boat"}'
    captions = {"annotations": [{"id": 1, "image_id": 2, "caption": "a boat"}],
                "images": [{"id": 2, "file_name": "x.jpg"}]}
    return {
        "graph": text(folder / "graph.json", json.dumps(graph), lambda path: foreign.told_by(
            {name: path.read_text(errors="replace") for name in ("prompt", "parameters")})),
        "request": text(folder / "request.json", '{"prompt": "a", "seed": "7", "cfg": 2.0}',
                        lambda path: asked(calls.values_in(path.read_bytes()))),
        "favourites": Subject([folder / "favourites.json"], lambda: Favourites(folder, {}).ids),
        "kept": text(folder / "kept.json", '{"a": "b"}', lambda path: kept.read()),
        "step_times": text(folder / StoredStepTimes.file, '{"a": [1.0, 2.0]}',
                           lambda path: StoredStepTimes(folder)),
        "colours": Subject([table], lambda: colours.read_table(folder, "5" * 64, 8)),
        "sides": text(folder / "sides.json", '{"min_pixels": 100, "size": {"longest_edge": 9}}',
                      glm_image.source_sides),
        "codes": text(folder / "codes.json", "[[1, 2], [3, 4]]", read_codes),
        "geneval": text(folder / "geneval.jsonl", f"{line}\n", geneval.read),
        "coco": text(folder / "coco.json", json.dumps(captions), coco.read)}


def others(folder: Path) -> dict[str, Subject]:
    np.save(folder / "codes.npy", np.arange(6).reshape(2, 3))
    write_sums(folder, {"x": "0" * 64})
    return {"codes in numpy": Subject([folder / "codes.npy"],
                                      lambda: read_codes(folder / "codes.npy")),
            "sums": Subject([folder / SUMS], lambda: known_sum(folder / "x")),
            "users": text(folder / "users", "ann:a\nbob:b\n", sharing.read_users)}


MAKERS = (small_pickles, tokenizer_files, files_of_ours, pictures_of_ours, photographs, jsons,
          others)
NAMES = ("pt", "old pt", "jit", "tiktoken", "byte level", "heads", "heads, sealed", "samplers",
         "samplers, sealed", "postcard", "postcard, sealed", "recipe", "kept rows", "prompts",
         "prompts in JSON", *PICTURES, "graph", "request", "favourites", "kept", "step_times",
         "colours", "sides", "codes", "geneval", "coco", "codes in numpy", "sums", "users")
AT_NIGHT = settings().max_examples > 100
CASES = 10_000 // (len(NAMES) + len(LAYOUTS)) + 1 if AT_NIGHT else 5  # 200 in all by day


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    made = {}
    for make in MAKERS:
        made |= make(tmp_path_factory.mktemp(make.__name__))
    assert set(made) == set(NAMES)
    return made


@pytest.fixture(scope="module")
def layouts(tmp_path_factory):
    return {name: layout(tmp_path_factory.mktemp(name), name) for name in LAYOUTS}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """`kept.json` lies in a folder of its own, as the user's cache does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSD_CACHE", str(tmp_path_factory.getbasetemp() / "jsons0"))
        yield


def lawful(read: Callable[[], object]) -> None:
    """What is read is a result, or a refusal in one line that can be shown."""
    try:
        read()
    except SSDError as error:
        assert str(error) and len(str(error).splitlines()) == 1, error


def check(subject: Subject, random: Random) -> None:
    file = random.choice(subject.files)
    whole = file.read_bytes()
    try:
        file.write_bytes(mutated(whole, random))
        with limits():
            lawful(subject.read)
    finally:
        file.write_bytes(whole)


SEEDS = st.integers(0, 2**32 - 1)
fuzzed = settings(max_examples=CASES, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", NAMES)
@fuzzed
@given(seed=SEEDS)
def test_a_changed_file_is_read_or_refused_in_one_line(subjects, name, seed):
    check(subjects[name], Random(seed))


@pytest.mark.by_day(4)
@pytest.mark.parametrize("name", LAYOUTS)
@fuzzed
@given(seed=SEEDS)
def test_a_changed_model_is_read_or_refused_in_one_line(layouts, name, seed):
    check(layouts[name], Random(seed))


def test_a_whole_file_of_every_kind_is_read(subjects, layouts):
    for name, subject in {**subjects, **layouts}.items():
        assert all(file.stat().st_size for file in subject.files), name
        subject.read()
