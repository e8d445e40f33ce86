"""Postcards by the bundled checker: which of a caption's claims hold. Needs no download.

`frechet` is the distance to real postcards by the bundled classifier, of all pictures; `unjudged`
counts those whose prompts claim nothing that the checker knows.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict

import numpy as np
import torch
from PIL import Image

from ssd_core.backbones.postcard.scenery import at_frame_size
from ssd_core.backbones.postcard.words.aliases import said, without_repeats
from ssd_core.backbones.postcard.words.negations import negations
from ssd_core.errors import SSDError

from ...postcards import check, frame_of
from ...postcards.claims import claims
from ...train.features import load_classifier
from ..metrics import SIZES, objects, with_errors
from .gallery import Gallery, Scoring

NAMED = 5  # prompts in a line


def score(gallery: Gallery, scoring: Scoring) -> dict[str, float]:
    """Shares of claims and of things that are right. SSDError for what is no postcard."""
    classifier, features, out = load_classifier(), [], defaultdict(list)
    for pictures, prompts in gallery.batches(scoring.batch):
        pixels = [as_postcard(picture, gallery) for picture in pictures]
        for picture_pixels, prompt in zip(pixels, prompts, strict=True):
            features.append(classifier.features_of(torch.from_numpy(picture_pixels)[None]))
            if claimed := claims(in_own_words(prompt)):
                held = check(picture_pixels, claimed)
                out["caption_accuracy"].append(sum(held) / len(held))
                out["object_accuracy"] += objects(claimed, held)
    measured = {name: values for name, values in out.items() if values}
    return {**with_errors(measured), "unjudged": float(tell_unjudged(gallery, scoring)),
            **classifier.distance(torch.cat(features))}


def in_own_words(prompt: str) -> str:
    """What a prompt in English or Chinese asks for, in the words that captions are made of."""
    plain = unicodedata.normalize("NFKC", prompt)
    for denied in reversed(negations(plain)):
        plain = plain[: denied.start] + plain[denied.end :]
    return " ".join(without_repeats(word for piece in said(plain) for word in piece.words or ()))


def tell_unjudged(gallery: Gallery, scoring: Scoring) -> int:
    """Name the prompts that claim nothing the checker knows, and count their pictures."""
    prompts = [prompt for _, prompt in gallery.pictures if not claims(in_own_words(prompt))]
    each = [repr(prompt[:60]) for prompt in dict.fromkeys(prompts)]
    named = ", ".join(each[:NAMED] + [f"and {len(each) - NAMED} more"] * (len(each) > NAMED))
    if len(prompts) == len(gallery.pictures):
        raise SSDError(f"{gallery.folder}: no prompt claims anything that the checker knows "
                       f"({named}): score postcards, or use another scorer")
    if prompts:
        scoring.say(f"{len(prompts)} of {len(gallery.pictures)} pictures cannot be judged: "
                    f"{named}")
    return len(prompts)


def as_postcard(picture: Image.Image, gallery: Gallery) -> np.ndarray:
    """uint8 [H, W, 3]."""
    pixels = at_frame_size(np.array(picture))
    if frame_of(*pixels.shape[:2]) is None:
        raise SSDError(f"{gallery.folder}: pictures of {picture.width}x{picture.height} px; the "
                       f"checker reads postcards of {SIZES}: use another scorer")
    return pixels
