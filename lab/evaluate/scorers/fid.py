"""Frechet Inception distance to a folder of real pictures, with clean-fid's features.

clean-fid (Parmar et al., 2022) resizes the pictures and runs Inception; its package needs
torchvision. The distance between the features is computed as for postcards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ssd_core.errors import SSDError

from ...train.features import frechet_distance, moments
from .gallery import Gallery, Scoring, required

FILE = "inception-2015-12-05.pt"
URL = f"https://nvlabs-fi-cdn.nvidia.com/stylegan2-ada-pytorch/pretrained/metrics/{FILE}"
WEIGHTS = f"the folder with {FILE}, which is at {URL}"
REFERENCE = "a folder of real pictures, such as COCO's val2017"
LEAST = 2  # pictures, for a covariance


def score(gallery: Gallery, scoring: Scoring) -> dict[str, float]:
    """Return `fid` and the number of real pictures."""
    clean_fid = package()
    weights = scoring.required_weights(WEIGHTS)
    real = real_pictures(required("reference", scoring.reference, REFERENCE))
    model = inception(weights if weights.is_dir() else weights.parent, scoring.device)
    own, other = (moments(features(clean_fid, files, model, scoring))
                  for files in ([str(path) for path, _ in gallery.pictures], real))
    return {"fid": frechet_distance(own, other), "real_pictures": len(real)}


def package() -> Any:
    try:
        from cleanfid import fid
    except ImportError as error:
        raise SSDError(f"clean-fid cannot be imported ({error}): run pip install clean-fid, which "
                       "is the extra fid") from error
    return fid


def real_pictures(folder: Path) -> list[str]:
    """Return all pictures below a folder, with clean-fid's file endings."""
    from cleanfid.utils import EXTENSIONS

    endings = {f".{ending.lower()}" for ending in EXTENSIONS}
    paths = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in endings)
    if len(paths) < LEAST:
        raise SSDError(f"reference {folder}: holds {len(paths)} pictures: give {REFERENCE}")
    return paths


def inception(folder: Path, device: torch.device) -> torch.nn.Module:
    """Load clean-fid's network from the user's folder; by default it would download it."""
    from cleanfid.inception_torchscript import InceptionV3W

    if not (folder / FILE).is_file():
        raise SSDError(f"weights {folder}: holds no {FILE}: give {WEIGHTS}")
    return InceptionV3W(str(folder), download=False, resize_inside=False).to(device).eval()


def features(clean_fid: Any, files: list[str], model: torch.nn.Module,
             scoring: Scoring) -> torch.Tensor:
    """float64 [n, 2048]."""
    vectors = clean_fid.get_files_features(files, model=model, num_workers=0, mode="clean",
                                           batch_size=scoring.batch, device=scoring.device,
                                           verbose=False)
    return torch.from_numpy(vectors).double()
