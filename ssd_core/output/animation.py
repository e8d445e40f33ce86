"""Write the moments of a replay to a file: an animated WebP or an MP4. Knows no host."""

from __future__ import annotations

import io
from collections.abc import Iterable
from importlib.util import find_spec

import numpy as np
from PIL import Image

from ..errors import SSDError
from .replay import FilmFrame

QUALITY = 90  # of WebP
CRF, FPS = "18", 24  # of MP4: x264's quality (less is better), frames per second


def can_write_mp4() -> bool:
    """Whether the optional package av is installed."""
    return find_spec("av") is not None


def webp(moments: Iterable[FilmFrame]) -> bytes:
    """An animated WebP that plays in a loop."""
    durations: list[int] = []

    def images() -> Iterable[Image.Image]:
        for moment in moments:
            durations.append(max(1, round(moment.seconds * 1000)))
            yield Image.fromarray(moment.picture)

    first, *rest = images()
    file = io.BytesIO()
    first.save(file, "WEBP", save_all=True, append_images=rest, duration=durations, loop=0,
               quality=QUALITY, method=2)
    return file.getvalue()


def mp4(moments: Iterable[FilmFrame]) -> bytes:
    """An H.264 video that browsers and phones play; SSDError if the package av is missing."""
    if not can_write_mp4():
        raise SSDError("an MP4 needs the package av: install it with `pip install av`, or choose "
                       "WebP, which needs nothing")
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream, owed = None, 0.0
        for moment in moments:
            picture = even(moment.picture)
            if stream is None:
                stream = container.add_stream("libx264", FPS, options={"crf": CRF})
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = "yuv420p"
            owed += moment.seconds * FPS
            while owed >= 1:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
                owed -= 1
        if stream is not None:
            container.mux(stream.encode())
    return file.getvalue()


def even(picture: np.ndarray) -> np.ndarray:
    """A picture [H, W, 3] whose sides are even, as the video format needs."""
    height, width = picture.shape[:2]
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")


FILMS = {"webp": webp, "mp4": mp4}  # by the ending of the file
