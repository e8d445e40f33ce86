"""What the catalogue fetches is what the loader reads: tiny checkpoints by way of a Hub."""

import pytest
from support import tiny_checkpoints, tiny_image_models, tiny_simplear
from support.fake_hub import FakeHub

from ssd_core import load_backbone
from ssd_core.engine.methods import Rows
from ssd_core.weights import hub
from ssd_core.weights.catalogue import CATALOGUE
from ssd_core.weights.fit import fit
from ssd_core.weights.hub import fits

TINY = {
    "Janus-Pro-1B": tiny_image_models.janus_original,
    "Janus-Pro-1B-hf": tiny_image_models.janus_port,
    "LlamaGen-c2i-B-256": tiny_image_models.llamagen_c2i,
    "LlamaGen-t2i-XL-256": tiny_image_models.llamagen_t2i,
    "Lumina-mGPT-7B-768": tiny_checkpoints.lumina,
    "Anole-7B": tiny_checkpoints.anole,
    "Emu3-Gen": tiny_checkpoints.emu3,
    "Emu3.5-Image": tiny_checkpoints.emu3_5,
    "Lumina-mGPT-2.0": tiny_checkpoints.lumina2,
    "Tar-AR-DTok-256": tiny_image_models.tar,
    "SimpleAR-0.5B-RL": tiny_simplear.simplear,
}


def published(row, folder) -> dict[str, dict[str, bytes]]:
    """A folder's files as the row's repositories hold them, with some that nobody asks for."""
    repos = {source.repo: {"README.md": b"card", "samples/a.json": b"{}", "LICENSE": b"terms"}
             for source in row.sources}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        below = path.parent.relative_to(folder).as_posix()
        place = "" if below == "." else "vq" if below.startswith("vq") else below
        source = next(one for one in row.sources if one.folder == place and any(
            fits(path.name, pattern) for pattern in (*one.files, *one.extras)))
        repos[source.repo][path.name] = path.read_bytes()
    return repos


@pytest.mark.parametrize("name", TINY)
@pytest.mark.by_day(4)
def test_a_downloaded_backbone_loads(name, tmp_path, monkeypatch):
    row, published_folder = CATALOGUE[name], tmp_path / "published"
    TINY[name](published_folder)
    with FakeHub(published(row, published_folder)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        folder = hub.download(name, tmp_path / "models")
    assert (folder / "LICENSE").read_bytes() == b"terms" and not (folder / "README.md").exists()
    backbone = load_backbone(folder, "cpu", "fp32")
    assert backbone.preset == row.preset
    assert backbone.grid.row_end == row.grid.row_end
    assert fit(backbone, Rows(), device="cpu").weights == 4 * sum(
        weight.numel() for weight in backbone.parameters())
