"""Postcards by the bundled checker: which of a caption's claims hold. Needs no download.

`frechet` is the distance to real postcards by the bundled classifier.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from PIL import Image

from ...errors import SSDError
from ...postcards import SIZE, check, claims
from ...train.features import load_classifier
from ..metrics import objects, with_errors
from .gallery import Gallery, Scoring


def score(gallery: Gallery, scoring: Scoring) -> dict[str, float]:
    """Shares of claims and of things that are right. SSDError for what is no postcard."""
    classifier, features, out = load_classifier(), [], defaultdict(list)
    for pictures, prompts in gallery.batches(scoring.batch):
        pixels = np.stack([as_postcard(picture, gallery) for picture in pictures])
        features.append(classifier.features_of(torch.from_numpy(pixels)))
        for one, prompt in zip(pixels, prompts, strict=True):
            said = claims(prompt)
            if not said:
                raise SSDError(f"{gallery.folder}: the prompt {prompt[:60]!r} claims nothing that "
                               "the checker knows: score postcards, or use another scorer")
            verdicts = check(one, said)
            out["caption_accuracy"].append(sum(verdicts) / len(verdicts))
            out["object_accuracy"] += objects(said, verdicts)
    measured = {name: values for name, values in out.items() if values}
    return {**with_errors(measured), **classifier.distance(torch.cat(features))}


def as_postcard(picture: Image.Image, gallery: Gallery) -> np.ndarray:
    """uint8 [SIZE, SIZE, 3]."""
    if picture.size != (SIZE, SIZE):
        raise SSDError(f"{gallery.folder}: pictures of {picture.width}x{picture.height} px; the "
                       f"checker reads postcards of {SIZE}x{SIZE}: use another scorer")
    return np.array(picture)
