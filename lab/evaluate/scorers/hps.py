"""Human Preference Score v2 (Wu et al., 2023) by its own package and weights.

The score is 100 times the cosine of picture and prompt under a CLIP trained on human preferences,
as in its benchmark. Scores of v2.0 and v2.1 cannot be compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ssd_core.backbones.reading.tensor_files import open_tensors
from ssd_core.errors import SSDError, first_line

from ..metrics import with_errors
from .gallery import Gallery, Scoring

MODEL = "ViT-H-14"
FILES = ("HPS_v2.1_compressed.pt", "HPS_v2_compressed.pt")
WANTED = f"{FILES[0]} or {FILES[1]} of https://huggingface.co/xswu/HPSv2"
# Not an extra: the wheel on PyPI (1.2.0) lacks the vocabulary of its tokenizer.
INSTALL = "pip install git+https://github.com/tgxs002/HPSv2"


def score(gallery: Gallery, scoring: Scoring) -> dict[str, float]:
    open_clip = package()
    weights = file_in(scoring.required_weights(WANTED))
    model, prepare = load(open_clip, weights, scoring.device)
    tokenize, values = open_clip.get_tokenizer(MODEL), []
    for pictures, prompts in gallery.batches(scoring.batch):
        pixels = torch.stack([prepare(picture) for picture in pictures]).to(scoring.device)
        with torch.inference_mode(), half(scoring.device):
            out = model(pixels, tokenize(prompts).to(scoring.device))
        cosines = (out["image_features"] * out["text_features"]).sum(-1)  # both have length 1
        values += (100 * cosines.float()).tolist()
    return with_errors({"hpsv2": values})


def package() -> Any:
    """Import the open_clip inside hpsv2, which can read its checkpoint."""
    try:
        from hpsv2.src import open_clip
    except (ImportError, OSError) as error:
        raise SSDError(f"hpsv2 cannot be imported ({error}): run {INSTALL}") from error
    return open_clip


def file_in(path: Path) -> Path:
    """Return the only weights file in a folder, or the file itself."""
    if path.is_file():
        return path
    files = [path / name for name in FILES if (path / name).is_file()]
    if len(files) != 1:
        raise SSDError(f"weights {path}: holds {len(files)} versions of HPSv2: name one file, "
                       f"{WANTED}")
    return files[0]


def load(open_clip: Any, path: Path, device: torch.device) -> tuple[torch.nn.Module, Any]:
    """Load the model and the function that prepares a picture for it."""
    model, _, prepare = open_clip.create_model_and_transforms(
        MODEL, None, precision="fp32", device="cpu", light_augmentation=True, output_dict=True)
    file = open_tensors(path)
    try:
        model.load_state_dict({name: file.tensor(name) for name in file.shapes})
    except RuntimeError as error:
        raise SSDError(f"weights {path}: not those of HPSv2 ({first_line(error)}): give "
                       f"{WANTED}") from error
    return model.to(device).eval(), prepare


def half(device: torch.device) -> torch.autocast:
    """fp16 where the package uses it, on CUDA."""
    return torch.autocast(device.type, torch.float16, enabled=device.type == "cuda")
