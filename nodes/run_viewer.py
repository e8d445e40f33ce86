"""Run Viewer: how a run went, as a map and as a film."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.files import atomic_write
from .errors import readable_errors
from .filenames import new_file, place_for
from .later import heatmap, replay
from .types import COMPARE, Run, RunStats, RunType, image_of

FORMATS, NO_FILE = ("webp", "mp4"), "do not save"
LONGEST = 60.0  # seconds of a film


class RunViewer(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_RunViewer", display_name="Run Viewer (SSD)", category=COMPARE,
            description="Shows once more how the pictures grew, row by row, and saves it as an "
                        "animated WebP or an MP4. Its map shows over the picture where drafts "
                        "were accepted and where they were repaired.",
            inputs=[
                RunType.Input("run", tooltip="From a node that draws. If its preview was off, "
                                             "the rows appear at an even pace."),
                io.Boolean.Input("overlay", default=False, optional=True,
                                 tooltip="Tints the cells of the film: accepted at once, repaired, "
                                         "or still a draft. Needs the preview of the sampler."),
                io.Float.Input("seconds", default=0.0, min=0.0, max=LONGEST, step=0.5,
                               optional=True,
                               tooltip="Length of the film without the still at its end. 0 = as "
                                       "long as the run took, but at least 3 and at most 12 "
                                       "seconds."),
                io.Combo.Input("format", options=[*FORMATS, NO_FILE], default="webp", optional=True,
                               tooltip="What to save in the output folder. webp plays in browsers "
                                       "and chats, mp4 in video editors."),
                io.String.Input("filename_prefix", default="SSD/run", optional=True,
                                tooltip="Start of the file name. It may contain a folder and "
                                        "the patterns of Save Image."),
            ],
            outputs=[
                io.Image.Output(display_name="map",
                                tooltip="One sheet for each picture: bright cells were accepted "
                                        "at once, dark ones were repaired; below it the share of "
                                        "accepted drafts by round."),
                io.Image.Output(display_name="frames",
                                tooltip="The film as a batch of pictures, for video nodes."),
                io.Float.Output(display_name="fps",
                                tooltip="Frames a second at which the batch takes as long as the "
                                        "film.")],
            is_output_node=True,
            search_aliases=["replay", "acceptance map", "heatmap", "timelapse", "animation",
                             "video", "gif"])

    @classmethod
    @readable_errors
    def execute(cls, run: Run, overlay: bool, seconds: float, format: str,
                filename_prefix: str) -> io.NodeOutput:
        stats = run.drawn()
        film = list(film_of(stats, overlay, seconds or None))
        frames = image_of(frame.picture for frame in film)
        values = map_of(stats), frames, len(film) / sum(frame.seconds for frame in film)
        if format == NO_FILE:
            return io.NodeOutput(*values)
        height, width = frames.shape[1:3]
        place = place_for(filename_prefix, width, height, cls.hidden.prompt)
        file = save(replay.FILMS[format](film), format, *place)
        return io.NodeOutput(*values, ui={"images": [file], "animated": (True,)})


def map_of(stats: RunStats) -> torch.Tensor:
    """IMAGE of a sheet for each picture: its cells by how often their drafts were accepted."""
    acceptance = stats.stats["acceptance"]
    return image_of(heatmap.acceptance_sheet(share, acceptance, picture, stats.label)
                    for share, picture in stats.cells())


def film_of(stats: RunStats, overlay: bool, seconds: float | None) -> Iterator[replay.FilmFrame]:
    """The frames of the run from its preview; without one, the finished pictures row by row."""
    if stats.messages:
        return replay.moments(stats.messages, overlay, seconds)
    if stats.pictures is None:
        raise SSDError("there is nothing to show: the tokens could not be decoded, and the "
                       "sampler's preview was off")
    rows = stats.acceptance.shape[1]
    first = stats.recipes[0]["keep_rows"]
    films = [replay.grown(picture, rows, first, **({"length": seconds} if seconds else {}))
             for picture in stats.pictures]
    return (replay.FilmFrame(replay.side_by_side([frame.picture for frame in shown]),
                             shown[0].seconds) for shown in zip(*films, strict=True))


def save(film: bytes, suffix: str, folder: str, name: str, counter: int,
         subfolder: str) -> dict[str, str]:
    """Write the film to the output folder; return its entry for ComfyUI's page."""
    with new_file(folder, name, counter, suffix) as (file, _), atomic_write(file) as temporary:
        temporary.write_bytes(film)
    return {"filename": file.name, "subfolder": subfolder, "type": "output"}
