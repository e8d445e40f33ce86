"""The road of docs/first_large_model.md by the command line, on a tiny model in Janus-Pro's layout.
"""

import json

import pytest
from support import tiny_image_models

from ssd_core.cli import main
from ssd_core.train import heads, judging

NAME = "Janus-Pro-1B"


@pytest.fixture
def ssd(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "is_less", lambda own, other: True)  # random drafts may win
    monkeypatch.setattr(heads, "LEAST_STEPS", dict.fromkeys(heads.LEAST_STEPS, 2))
    tiny_image_models.janus_port(tmp_path / "models" / "ssd_backbones" / NAME)

    def run(*arguments):
        assert main([*map(str, arguments)]) == 0, capsys.readouterr().err
        printed = capsys.readouterr()
        return json.loads(printed.out.splitlines()[-1]), printed.err

    return run


def test_from_a_folder_to_drafts_that_learned_from_ones_own_pictures(ssd, tmp_path):
    told, said = ssd("fit", NAME, "--device", "cpu", "--learn", "--json")
    assert told["fits"] and told["needed"] > 0
    assert told["learning"]["fits"] == "both" and "from your own pictures" in said
    first, _ = ssd("generate", "a fox", "--backbone", NAME, "--out", "outputs/fox.png", "--json")
    assert first["method"] == "exact"
    ssd("generate", "a fox in the snow", "--backbone", NAME, "--method", "rolling", "--batch",
        8, "--seed", 10, "--out", "outputs/snow.png", "--json")
    assert len(list((tmp_path / "outputs").glob("*.png"))) == 9
    learned, said = ssd("train", "heads", "--backbone", NAME, "--pictures-from", "outputs",
                        "--kind", "both", "--batch", 1)
    assert learned["saved"] == ["heads", "row"] and learned["pictures"] == 7
    assert "9 pictures to learn from, 2 of them only measure" in said
    assert (tmp_path / "models" / "ssd_heads" / NAME / "heads.safetensors").is_file()
    drawn, _ = ssd("generate", "a fox", "--backbone", NAME, "--method", "ssd", "--out", "ssd.png",
                   "--json")
    assert drawn["method"] == "ssd" and drawn["passes"] < drawn["ar_passes"] / 7
    again, _ = ssd("generate", "a fox", "--backbone", NAME, "--out", "again.png", "--json")
    assert again["tokens_sha256"] == first["tokens_sha256"], "AR's picture needs no drafts"
