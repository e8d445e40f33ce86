"""Scores of finished suites: the local checker, CLIP, and the packages that others install."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from ssd_core import SSDError
from ssd_core.cli import main
from ssd_lab.evaluate.scorers import Gallery, Scoring, score
from ssd_lab.evaluate.scorers.claims import in_own_words
from ssd_lab.evaluate.scorers.gallery import loaded
from ssd_lab.evaluate.suites import COCO, Item
from ssd_lab.evaluate.suites.record import Record
from ssd_lab.postcards import postcard
from ssd_lab.postcards.claims import claims as postcard_claims
from ssd_lab.train.features import frechet_distance, moments

CPU = torch.device("cpu")


def finished(folder: Path, pictures: list[tuple[np.ndarray, str]]) -> Gallery:
    """A suite's folder with these pictures and prompts."""
    items = [Item(f"{i:05d}", prompt) for i, (_, prompt) in enumerate(pictures)]
    Record(COCO, 1, items, {}).write(folder)
    (folder / "images").mkdir()
    for item, (picture, _) in zip(items, pictures, strict=True):
        Image.fromarray(picture).save(folder / COCO.picture(item, 0))
    return Gallery.of(folder)


@pytest.fixture(scope="module")
def painted():
    return [postcard(seed)[:2] for seed in range(2)]


def plain(*colours: str, side: int = 40) -> list[tuple[np.ndarray, str]]:
    return [(np.array(Image.new("RGB", (side, side), colour)), f"a {colour} boat")
            for colour in colours]


def test_claims_of_painted_postcards_hold_and_those_of_others_do_not(painted, tmp_path, capsys):
    finished(tmp_path / "right", painted)
    captions = [caption for _, caption in painted]
    swapped = [(picture, captions[i - 1]) for i, (picture, _) in enumerate(painted)]
    finished(tmp_path / "wrong", swapped)
    found = {}
    for name in ("right", "wrong"):
        assert main(["evaluate", "score", str(tmp_path / name), "--with", "claims", "--batch", "1",
                     "--json"]) == 0
        found[name] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["right"]["caption_accuracy"] > 0.95 > 0.8 > found["wrong"]["caption_accuracy"]
    assert found["right"]["frechet"] == pytest.approx(found["wrong"]["frechet"])
    assert found["right"]["pictures"] == 2 and found["right"]["caption_accuracy_se"] >= 0


def test_what_is_no_postcard_is_not_checked(tmp_path):
    zebra = [(plain("red", side=384)[0][0], "a zebra")]
    with pytest.raises(SSDError, match="pictures of 40x40 px"):
        score("claims", finished(tmp_path / "a", plain("red")), Scoring(CPU))
    with pytest.raises(SSDError, match=r"no prompt claims anything .* \('a zebra'\)"):
        score("claims", finished(tmp_path / "b", zebra), Scoring(CPU))


@pytest.mark.parametrize(("prompt", "claimed"), [
    ("一座红色的房子在左边，湖上，黄昏", ["lake", "dusk", "house", "red", "left"]),
    ("a scarlet hut on a pond", ["lake", "house", "red"]),
    ("草地上没有树", ["meadow"]), ("a meadow, no trees", ["meadow"])])
def test_claims_are_read_as_the_backbone_reads_a_prompt(prompt, claimed):
    assert [one.value for one in postcard_claims(in_own_words(prompt))] == claimed


def test_pictures_that_cannot_be_judged_are_counted_and_named(painted, tmp_path, capsys):
    pictures = [painted[0], (painted[1][0], "一只斑马"), (painted[1][0], "一座红色的房子")]
    finished(tmp_path / "a", pictures)
    assert main(["evaluate", "score", str(tmp_path / "a"), "--with", "claims", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out.splitlines()[-1])
    assert found["unjudged"] == 1 and found["pictures"] == 3 and found["caption_accuracy"] > 0.4
    assert "1 of 3 pictures cannot be judged: '一只斑马'" in err


def test_an_unfinished_suite_is_not_scored(tmp_path):
    gallery = finished(tmp_path / "a", plain("red", "blue"))
    gallery.pictures[1][0].unlink()
    with pytest.raises(SSDError, match="1 of 2 pictures are missing: run 'evaluate --suite'"):
        Gallery.of(tmp_path / "a")
    with pytest.raises(SSDError, match="holds no suite.json"):
        Gallery.of(tmp_path / "b")


@pytest.mark.parametrize("name", ["../x", "a/b", ""])
def test_a_record_that_leads_elsewhere_is_refused(tmp_path, name):
    finished(tmp_path / "a", plain("red"))
    path = tmp_path / "a/suite.json"
    path.write_text(path.read_text().replace('"00000"', json.dumps(name)))
    with pytest.raises(SSDError, match="suite.json: damaged .*cannot name a picture"):
        Gallery.of(tmp_path / "a")


# CLIP


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory):
    """A random CLIP of 8 dimensions for 32 x 32 px, saved as transformers does; letters as words.
    """
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    folder = tmp_path_factory.mktemp("clip")
    letters = [chr(letter) for letter in range(97, 123)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{one}</w>" for one in letters)]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
             "num_attention_heads": 2}
    config = CLIPConfig(
        text_config={**sizes, "vocab_size": len(words), "max_position_embeddings": 12,
                     "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1},
        vision_config={**sizes, "image_size": 32, "patch_size": 16}, projection_dim=8)
    with torch.random.fork_rng():
        torch.manual_seed(4)  # one of the test's three cosines is negative
        CLIPModel(config).save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
                       ).save_pretrained(folder)
    return folder


def test_clip_score_is_the_cosine_of_the_two_embeddings(tiny_clip, tmp_path):
    """In batches, one prompt longer than the text encoder takes; compared one by one."""
    from transformers import CLIPModel, CLIPProcessor

    pictures = plain("red", "green", "blue")
    pictures[1] = (pictures[1][0], "a green boat on a very long river")
    gallery = finished(tmp_path / "a", pictures)
    found = score("clip", gallery, Scoring(CPU, 2, tiny_clip))
    model, processor = (kind.from_pretrained(tiny_clip) for kind in (CLIPModel, CLIPProcessor))
    cosines = []
    for path, prompt in gallery.pictures:
        text = processor.tokenizer(prompt, truncation=True, max_length=12, return_tensors="pt")
        image = processor.image_processor(images=loaded(path), return_tensors="pt")
        with torch.no_grad():
            out = model(**text, **image)
        cosines.append(torch.cosine_similarity(out.text_embeds, out.image_embeds).clamp(0).item())
    assert found["clip_score"] == pytest.approx(100 * np.mean(cosines), rel=1e-4)
    assert len(set(cosines)) == 3 and found["clip_score_se"] > 0


    (tmp_path / "b").mkdir()
    with pytest.raises(SSDError, match="cannot load them as CLIP") as refused:
        score("clip", gallery, Scoring(CPU, weights=tmp_path / "b"))
    assert len(str(refused.value).splitlines()) == 1


def test_weights_come_from_the_user_alone(tmp_path):
    gallery = finished(tmp_path / "a", plain("red"))
    with pytest.raises(SSDError, match="--weights is missing: give a folder of a CLIP"):
        score("clip", gallery, Scoring(CPU))
    with pytest.raises(SSDError, match="weights .*: no such file or folder"):
        score("clip", gallery, Scoring(CPU, weights=tmp_path / "b"))


# Packages that others install


@pytest.mark.parametrize("name, package, told", [
    ("clean-fid", "cleanfid", "pip install clean-fid, which is the extra fid"),
    ("hpsv2", "hpsv2", "pip install git")])
def test_a_missing_package_is_named_with_how_to_get_it(monkeypatch, tmp_path, name, package, told):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SSDError, match=f"cannot be imported .*{told}"):
        score(name, finished(tmp_path / "a", plain("red")), Scoring(CPU))
    with pytest.raises(SSDError, match="scorer 'fit': choose one of clean-fid"):
        score("fit", Gallery(tmp_path, []), Scoring(CPU))


@pytest.fixture
def clean_fid(monkeypatch):
    """A stand-in for clean-fid with its names: the features of a picture are its mean colours."""
    def features(files, model, num_workers, mode, batch_size, device, verbose):
        assert (num_workers, mode, str(model)) == (0, "clean", "network")
        return np.stack([np.array(Image.open(path)).mean((0, 1)) for path in files])

    def network(path, download, resize_inside):
        assert not download  # never by itself
        own = SimpleNamespace(to=lambda device: own, eval=lambda: "network")
        return own

    for name, values in {"cleanfid": {}, "cleanfid.fid": {"get_files_features": features},
                         "cleanfid.utils": {"EXTENSIONS": {"png", "JPG"}},
                         "cleanfid.inception_torchscript": {"InceptionV3W": network}}.items():
        module = ModuleType(name)
        module.__dict__.update(values)
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["cleanfid"].fid = sys.modules["cleanfid.fid"]


def test_fid_compares_the_suites_pictures_with_real_ones(clean_fid, tmp_path):
    gallery = finished(tmp_path / "a", plain("red", "green", "blue"))
    (tmp_path / "real").mkdir()
    for i, (picture, _) in enumerate(plain("white", "black", "gray")):
        Image.fromarray(picture).save(tmp_path / "real" / f"{i}.png")
    (tmp_path / "real/notes.txt").write_text("no picture")
    how = Scoring(CPU, 2, tmp_path, tmp_path / "real")
    with pytest.raises(SSDError, match="holds no inception-2015-12-05.pt"):
        score("clean-fid", gallery, how)
    (tmp_path / "inception-2015-12-05.pt").write_bytes(b"")
    found = score("clean-fid", gallery, how)
    own = torch.tensor([[255.0, 0, 0], [0, 128, 0], [0, 0, 255]]).double()
    real = torch.tensor([[255.0] * 3, [0] * 3, [128] * 3]).double()
    assert found == {"fid": pytest.approx(frechet_distance(moments(own), moments(real))),
                     "real_pictures": 3}
    with pytest.raises(SSDError, match="--reference is missing"):
        score("clean-fid", gallery, Scoring(CPU, 2, tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SSDError, match="holds 0 pictures"):
        score("clean-fid", gallery, Scoring(CPU, 2, tmp_path, tmp_path / "empty"))
